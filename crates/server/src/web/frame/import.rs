//! The page that says how to import chats.

use maud::{Markup, html};

use super::site::{Problem, Site};
use super::{Frame, Tab, import_state::Stage, upload::MOST_UPLOAD_BYTES};
use crate::web::search::page_query::PageQuery;
use verbatim_base::call::Call;
use verbatim_text::amount::{bytes, counted};

/// The number of units in the progress bar of an index.
const BAR: f64 = 1e4;

pub(crate) fn page(site: &Site, call: &Call) -> Result<Markup, Problem> {
    Ok(page_on(site, Tab::Import, &PageQuery::default(), site.messages(call)))
}

/// Returns the page; the tab for searches has it if the home folder has no chats.
pub(crate) fn page_on(site: &Site, tab: Tab, query: &PageQuery, messages: Option<u64>) -> Markup {
    let title = "Bring your chats";
    let stamp = site.stamp();
    let frame = Frame { title, tab, query, messages, zone: None, stamp };
    frame.around(html! {
        div.page.plain {
            nav.here-nav aria-label="On this page" {
                a href="#where" { "Where to get an export" } " " a href="#agents" { "Transcripts" }
            }
            main #main {
                h1 { "Bring your chats" }
                p {
                    @if tab == Tab::Search { "There is nothing to search yet. " }
                    "verbatim searches what you and your AI wrote, word for word. For ChatGPT and Claude.ai it needs the export that they mail to you."
                }
                form.drop.scripted #drop {
                    h2 { "Drop an export here" }
                    p #drop-what { "The zip from ChatGPT or Claude.ai, as it is, of up to " (bytes(MOST_UPLOAD_BYTES)) ". It never leaves this computer." }
                    label.sr for="file" { "Export to import" }
                    input #file type="file" name="export" accept=".zip,.json,.jsonl" required
                        aria-describedby="drop-what";
                    label.row { input #branches type="checkbox"; " Edited prompts and regenerated answers too" }
                    p.note { "Otherwise only the versions that the service shows are imported." }
                    button.btn.main { "Import" }
                }
                (progress(site))
                section aria-labelledby="where" {
                    h2 #where { "Where to get an export" }
                    div.two {
                        div {
                            h3.src.chatgpt { "ChatGPT" }
                            ol.steps {
                                li { "Open chatgpt.com, then your name, " b { "Settings" } ", " b { "Data controls" } "." }
                                li { "Beside " b { "Export data" } ", choose " b { "Export" } " and confirm." }
                                li { "A mail arrives within a day. Its link works for 24 hours." }
                            }
                        }
                        div {
                            h3.src.claude { "Claude.ai" }
                            ol.steps {
                                li { "Open claude.ai, then your name, " b { "Settings" } ", " b { "Privacy" } "." }
                                li { "Choose " b { "Export data" } "." }
                                li { "A mail arrives. Its link works for 24 hours." }
                            }
                        }
                    }
                    p.after {
                        span.scripted { "Then drop the zip above as it is, or import it in a terminal:" }
                        span.nojs { "Then import the zip as it is, in a terminal:" }
                    }
                    pre.command tabindex="0" role="group" aria-label="Command" { code { "verbatim import ~/Downloads" } }
                    p.note { "This finds every export in the folder. The exports are only read, and nothing leaves this computer." }
                }
                section aria-labelledby="agents" {
                    h2 #agents { "Transcripts of coding agents" }
                    p { "There is nothing to import: the transcripts of Claude Code and Codex are searched as they are, and kept current." }
                }
            }
        }
    })
}

pub(crate) fn progress(site: &Site) -> Markup {
    let Some(upload) = site.imports.last() else { return html! { div #progress {} } };
    let name = &upload.name;
    html! {
        div.say #progress data-running=[upload.is_under_way().then_some("")] {
            @match &upload.stage {
                Stage::Receiving(done, total) => {
                    p { b { "Receiving " bdi { (name) } } " " (bytes(*done)) }
                    (bar(*done, total.unwrap_or(0)))
                }
                Stage::Reading(read) => {
                    @let doing = if read.source.is_copy { "Copying into the cluster " } else { "Reading " };
                    p { b { (doing) bdi { (name) } } " " (counted(read.source.conversations as usize, "conversation"))
                        ", " (counted(read.source.messages as usize, "message")) }
                    (bar(read.done, read.total))
                }
                Stage::Indexing(share) => {
                    p { b { "Indexing " bdi { (name) } } }
                    (bar((share * BAR) as u64, BAR as u64))
                }
                Stage::Done(outcome) => {
                    p { b { bdi { (name) } " is imported" } }
                    p { (outcome.stored) "." }
                    @if !outcome.is_whole { p.warn { b { "Not everything was imported" } } }
                    @if !outcome.left_out.is_empty() {
                        ul.list { @for line in &outcome.left_out { li dir="auto" { (line) } } }
                    }
                    @if let Some(why) = &outcome.unindexed {
                        p.warn { b { "Not all of it is indexed" } }
                        p.broken { (why) "." }
                    }
                    @if let Some(left) = &outcome.vectors_left { p { (left) } }
                    p { a.btn.main href="/" { "Search it" } }
                }
                Stage::Failed(why) => {
                    p.warn { b { bdi { (name) } " was not imported" } }
                    p.broken { (why) }
                }
            }
        }
    }
}

/// Draws a bar; a `total` of 0 is unknown.
fn bar(done: u64, total: u64) -> Markup {
    html! {
        @if total > 0 {
            progress value=(done.min(total)) max=(total) aria-label="Progress of the import" {}
        } @else {
            progress aria-label="Progress of the import" {}
        }
    }
}
