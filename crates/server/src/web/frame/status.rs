//! The status page: the searched sources, the state of their indexes, and errors.

use maud::{Markup, html};

use super::{
    Frame, Tab,
    labels::label_of,
    site::{Problem, Site},
};
use crate::web::search::page_query::PageQuery;
use verbatim_answer::hint::because;
use verbatim_base::call::Call;
use verbatim_engine::{self as engine, SourceStatus, ago};
use verbatim_text::amount::{bytes, counted, grouped};

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
    let kept = [("Home", &status.home), ("Indexes", &status.index)];
    Ok(frame.around(html! {
        div.page.plain {
            nav.here-nav aria-label="On this page" {
                @if has_sources { a href="#sources" { "Sources" } a href="#indexes" { "Indexes" } }
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
                @for path in &status.not_imported {
                    p.say.warn {
                        b { "Not imported" } " " code { (path.display()) } " is newer than the chats that are searched. "
                        code { "verbatim import" } " adds it."
                    }
                }
                @if has_sources { (tables(&status.sources)) }
                section aria-labelledby="home" {
                    h2 #home { "Where it is kept" }
                    dl.facts {
                        @for (name, path) in kept { div { dt { (name) } " " dd { code { (path.display()) } } } }
                    }
                    p.note { "Only you can read the files in them. This page loads nothing from anywhere else." }
                }
            }
        }
    }))
}

fn tables(sources: &[SourceStatus]) -> Markup {
    html! {
        section aria-labelledby="sources" {
            h2 #sources { "Sources" }
            div.scroll tabindex="0" role="group" aria-label="Sources" {
                table.cols {
                    thead { tr { th scope="col" { "Source" } th scope="col" { "State" } th.r scope="col" { "Messages" } } }
                    tbody { @for source in sources { (row(source)) } }
                }
            }
        }
        section aria-labelledby="indexes" {
            h2 #indexes { "Indexes" }
            div.scroll tabindex="0" role="group" aria-label="Indexes" {
                table.cols {
                    thead { tr { th scope="col" { "Index" } th scope="col" { "State" } th.r scope="col" { "Size" } } }
                    tbody { @for source in sources { (index(source)) } }
                }
            }
            p.note.after { "Searches are complete without an index, and only slower. Indexes can be rebuilt at any time: "
                code { "verbatim reindex" } "." }
        }
    }
}

fn name_of(source: &SourceStatus) -> &'static str {
    label_of(source.source).1
}

fn row(source: &SourceStatus) -> Markup {
    let changed = source.changed.map(|at| time_ago(ago(at).as_secs()));
    html! {
        tr {
            th scope="row" {
                (name_of(source))
                p.note { code { (source.database) } }
                @for path in &source.passed_over {
                    p.note { "not searched: " code { (path.display()) } }
                }
            }
            td {
                @match &source.error {
                    Some(error) => { b.warn { "Not read" } p.note { (error) } }
                    None => {
                        b.ok { "Read" }
                        @if let Some(changed) = changed { p.note { "changed " (changed) } }
                    }
                }
            }
            td.r {
                @match source.messages {
                    Some(count) => (grouped(count as usize)),
                    None => "–",
                }
                p.note {
                    @if let Some(count) = source.conversations { (counted(count as usize, "conversation")) ", " }
                    (bytes(source.bytes))
                }
                @match &source.excluded {
                    Ok(0) => {}
                    Ok(excluded) => p.note { (counted(*excluded, "conversation")) " excluded, in no answer" },
                    Err(error) => p.note { "it is not known how many are excluded: " (error) },
                }
            }
        }
    }
}

fn index(source: &SourceStatus) -> Markup {
    let what = source.generation.as_ref().map(|index| index.derived.join(", "));
    let meaning = source.generation.as_ref().and_then(|index| index.meaning.as_ref());
    let meaning = meaning.filter(|meaning| !meaning.is_complete());
    html! {
        tr {
            th scope="row" {
                (name_of(source))
                p.note {
                    @match &what {
                        Some(derived) if derived.is_empty() => "exact text",
                        Some(derived) => { "exact text, " (derived) }
                        None => "none",
                    }
                }
                @if let Some(meaning) = meaning { p.note { "meaning: " (meaning) } }
            }
            td {
                @match (&source.by_like, &source.at_work) {
                    (None, _) => b.ok { "Current" },
                    (Some(_), Some(_)) => b { "Being brought up to date" },
                    (Some(reason), None) => { b.warn { "Behind" } p.note { (because(reason)) } }
                }
            }
            td.r {
                @match &source.generation {
                    Some(index) => {
                        (bytes(index.bytes))
                        p.note { (grouped(index.messages as usize)) " messages" }
                    }
                    None => "–",
                }
            }
        }
    }
}

fn time_ago(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{} ago", counted(number as usize, unit))
}
