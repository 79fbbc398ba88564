//! How chats get here.

use maud::{Markup, html};

use super::{
    ask::Ask,
    frame::{Frame, Tab},
    site::{Problem, Site},
};
use crate::model::Stop;

/// Returns the page that says how to bring chats.
pub(super) fn page(site: &Site, stop: &Stop) -> Result<Markup, Problem> {
    let ask = Ask::default();
    let messages = site.messages(stop);
    let frame =
        Frame { title: "Bring your chats", tab: Tab::Import, ask: &ask, messages, zone: None };
    Ok(frame.around(html! {
        div.page.plain {
            nav.here-nav aria-label="On this page" {
                a href="#where" { "Where to get an export" } " " a href="#agents" { "Transcripts" }
            }
            main #main {
                h1 { "Bring your chats" }
                p { "verbatim searches what you and your AI wrote, word for word. For ChatGPT and Claude.ai it needs the export that they mail to you." }
                (begin())
            }
        }
    }))
}

/// Returns how to get an export and what is done with it.
pub(super) fn begin() -> Markup {
    html! {
        section aria-labelledby="where" {
            h2 #where { "Where to get an export" }
            div.two {
                div {
                    h3.src.chatgpt { "ChatGPT" }
                    ol.steps {
                        li { "Open chatgpt.com, then your name, " b { "Settings" } ", " b { "Data controls" } "." }
                        li { "Beside " b { "Export data" } ", choose " b { "Export" } " and confirm." }
                        li { "A mail comes, within minutes or a day. Its link works for 24 hours." }
                    }
                }
                div {
                    h3.src.claude { "Claude.ai" }
                    ol.steps {
                        li { "Open claude.ai, then your name, " b { "Settings" } ", " b { "Privacy" } "." }
                        li { "Choose " b { "Export data" } "." }
                        li { "A mail comes. Its link works for 24 hours." }
                    }
                }
            }
            p.after { "Then import the zip as it is, without unpacking it:" }
            pre.command tabindex="0" role="group" aria-label="Command" { code { "verbatim import ~/Downloads" } }
            p.note { "This finds every export in the folder. The exports are only read, and nothing leaves this computer." }
        }
        section aria-labelledby="agents" {
            h2 #agents { "Transcripts of coding agents" }
            p { "There is nothing to import: the transcripts of Claude Code and Codex are read where they lie, and kept current." }
        }
    }
}
