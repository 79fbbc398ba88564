//! The status page: what `verbatim status` says of each source and of the home.

use maud::{Markup, html};

use super::site::{Problem, Site};
use super::{Frame, Tab, labels::label_of};
use crate::web::search::page_query::PageQuery;
use verbatim_answer::hint::Remedy;
use verbatim_answer::state::{self, Fact};
use verbatim_base::call::Call;
use verbatim_engine::{self as engine, Verdict};
use verbatim_text::amount::{counted, grouped};

pub(crate) fn page(site: &Site, call: &Call) -> Result<Markup, Problem> {
    let stamp = site.stamp();
    let status = engine::status(site.engine.all_sources(), call);
    let notes = site.engine.all_sources().problems(call);
    let query = PageQuery::default();
    let messages = site.messages(call);
    let title = "Status";
    let frame = Frame { title, tab: Tab::Status, query: &query, messages, zone: None, stamp };
    let behind = status.sources.iter().filter(|source| source.by_like.is_some()).count();
    let broken = status.sources.iter().filter(|source| source.error.is_some()).count();
    let heading = match (status.sources.len(), broken, behind) {
        (0, ..) => "There is nothing to search yet".to_owned(),
        (_, 0, 0) => "Everything is searched, and current".to_owned(),
        (_, 0, _) => "Everything is searched; an index is not up to date".to_owned(),
        (_, broken, _) => format!("{} cannot be read", counted(broken, "source")),
    };
    let has_sources = !status.sources.is_empty();
    let config = site.engine.config();
    Ok(frame.around(html! {
        div.page.plain {
            nav.here-nav aria-label="On this page" {
                @for source in &status.sources { a href={ "#" (source.source) } { (label_of(source.source).1) } }
                a href="#home" { "Where it is kept" }
            }
            main #main {
                h1 { (heading) }
                p {
                    @match (messages, &status.missing) {
                        (Some(count), _) => { (grouped(count as usize)) " messages can be found." }
                        (None, Some(missing)) if !has_sources => { (missing) ". " a href="/import" { "Bring your chats" } }
                        _ => "Not everything could be counted in time.",
                    }
                }
                @for note in &notes {
                    p.say.warn { b { "Warning" } " " (note.to_string()) "." }
                }
                @for source in &status.sources {
                    section aria-labelledby=(source.source) {
                        h2 id=(source.source) { (label_of(source.source).1) }
                        p.note { code { (source.database) } }
                        (list(&state::of_source(source, None, config)))
                    }
                }
                @if has_sources {
                    p.note.after { "Searches are complete without an index, and only slower. Indexes can be rebuilt at any time: "
                        code { "verbatim reindex" } "." }
                }
                section aria-labelledby="home" {
                    h2 #home { "Where it is kept" }
                    (list(&state::of_home(&status, config)))
                    p.note { "Only you can read the files in it. This page loads nothing from anywhere else." }
                }
            }
        }
    }))
}

fn list(facts: &[Fact]) -> Markup {
    html! {
        dl.facts {
            @for fact in facts {
                div {
                    dt { (fact.about) } " "
                    dd {
                        @match fact.verdict {
                            Some(Verdict::Well) => b.ok { (fact.text) },
                            Some(Verdict::Wrong) => b.warn { (fact.text) },
                            Some(Verdict::Note) if fact.remedy.is_some() => b.warn { (fact.text) },
                            _ => (fact.text),
                        }
                        @if let Some(Remedy { command, effect }) = &fact.remedy {
                            @if !effect.is_empty() { "; " code { (command) } " " (effect) }
                        }
                    }
                }
            }
        }
    }
}
