//! The statistics: the number of messages by month, hour, source and role.

use std::{collections::BTreeMap, sync::Arc};

use maud::{Markup, html};

use super::chart::{DAYS, HOURS, as_table, bar, columns, count_at, heat, month_name, months};
use super::labels::{moment, role_name, service};
use super::site::{Problem, Site};
use super::{Frame, Tab};
use crate::web::search::chosen_filters::chosen;
use crate::web::search::page_query::{NO_PROJECT, PageQuery, ShownParts, Way};
use crate::web::search::scope::{choice, scope};
use verbatim_answer::conversation::title_line;
use verbatim_base::{call::Call, model::Instant};
use verbatim_engine::{self as engine, About, Engine, Error, Facets, Scope};
use verbatim_text::amount::{counted, grouped};
use verbatim_text::{address::page_path, snippet};

/// The maximum number of rows of a table; the last row may be the sum of all others.
const MOST_ROWS: usize = 12;

const LONGEST: usize = 10;

/// The numbers of messages that a search finds, or of all.
struct MessageFigures {
    counts: Arc<Facets>,
    hours: BTreeMap<i64, u64>,
    /// The times of the first and the last message, and the longest conversations; only for all messages.
    of_all: Option<([Option<Instant>; 2], Vec<About>)>,
}

impl MessageFigures {
    fn count(site: &Site, query: &PageQuery, call: &Call) -> Result<MessageFigures, Problem> {
        let sources = site.engine.all_sources();
        let clock = site.clock();
        if !query.text().is_empty() {
            let choice = choice(site, query, &site.flags()?, call)?;
            let places = site.places(true, call)?;
            let request = &choice.request;
            let mut counts = sources.facets(
                &choice,
                &places,
                &|time| clock.month(time).filter(|_| request.has_time(Some(time))),
                None,
                call,
            )?;
            // A facet counts what another choice would find; statistics count what is chosen.
            for (names, chosen) in [
                (&mut counts.services, &choice.services),
                (&mut counts.projects, &choice.projects),
                (&mut counts.models, &choice.models),
                (&mut counts.roles, &choice.request.roles),
            ] {
                names.retain(|name, _| chosen.is_empty() || chosen.contains(name));
            }
            let by_hour = sources.facets(
                &choice,
                &places,
                &|time| {
                    let hour = clock.hour_of_week(time).to_string();
                    request.has_time(Some(time)).then_some(hour)
                },
                None,
                call,
            )?;
            let hours = by_hour.months;
            let hours = hours.iter().filter_map(|(hour, count)| Some((hour.parse().ok()?, *count)));
            return Ok(MessageFigures {
                counts: Arc::new(counts),
                hours: hours.collect(),
                of_all: None,
            });
        }
        let mut scope = scope(site, query, &site.flags()?, call)?.0;
        let mut of_all = None;
        if !query.has_filters() {
            scope = Scope::default();
            let tally = site.engine.tally(&scope, &|time| clock.day(time), call)?;
            of_all = Some(([tally.first, tally.last], longest(&site.engine, call)?));
        }
        let counts = site.totals(&scope, call)?;
        let hours = engine::counted_by(sources, &scope, &|time| clock.hour_of_week(time), call)?;
        Ok(MessageFigures { counts, hours, of_all })
    }
}

pub(crate) fn page(site: &Site, query: &PageQuery, call: &Call) -> Result<Markup, Problem> {
    let stamp = site.stamp();
    let clock = site.clock();
    // An hour cannot be counted, and a search by meaning has no number of messages.
    let query = &PageQuery {
        find: String::new(),
        view: ShownParts::All,
        page: 0,
        hour: None,
        way: Way::Exact,
        ..query.clone()
    };
    let figures = MessageFigures::count(site, query, call)?;
    let counts = &*figures.counts;
    let of_filters = site.chosen(&query.conversations(), call)?.notes;
    let title = "Statistics";
    let tab = Tab::Statistics;
    let messages = site.messages(call);
    let zone = Some(clock.zone());
    let frame = Frame { title, tab, query, messages, zone, stamp };
    let months = months(&counts.months);
    Ok(frame.around(html! {
        div.page.plain {
            nav.here-nav aria-label="On this page" {
                a href="#by-month" { "Messages by month" } a href="#by-hour" { "Hour and weekday" }
                a href="#by-service" { "Services" }
                @if counts.projects.len() > 1 { a href="#by-project" { "Projects" } }
                a href="#by-role" { "Who wrote" }
                @if !counts.models.is_empty() { a href="#by-model" { "Models" } }
                @if figures.of_all.is_some() { a href="#longest" { "Longest conversations" } }
            }
            main #main {
                h1 { (counted(counts.messages as usize, "message")) " in " (counted(counts.conversations, "conversation")) }
                (figures_line(site, query, &figures))
                @for note in counts.notes.iter().chain(&of_filters) { p.say.warn { b { "Note" } " " (note.to_string()) "." } }
                section aria-labelledby="by-month" {
                    h2 #by-month { "Messages by month" }
                    (columns(&months, &|month| in_month(query, month)))
                    (months_as_table(&months, query))
                }
                section aria-labelledby="by-hour" {
                    h2 #by-hour { "Hour and weekday" }
                    (heat(&figures.hours, &|hour| in_hour(query, hour)))
                    (hours_as_table(&figures.hours, query))
                }
                div.two {
                    (table("by-service", "Services", &counts.services, &|name| service(name),
                        &|name| named(query, "service", name)))
                    (table("by-role", "Who wrote", &counts.roles, &|name| html! { (role_name(name)) },
                        &|name| by_role(query, name)))
                    @if !counts.models.is_empty() {
                        (table("by-model", "Models", &counts.models, &|name| html! { (name) },
                            &|name| named(query, "model", name)))
                    }
                    @if counts.projects.len() > 1 {
                        (table("by-project", "Projects", &counts.projects,
                            &|name| html! { @if name.is_empty() { "No project" } @else { (name) } },
                            &|name| named(query, "project", if name.is_empty() { NO_PROJECT } else { name })))
                    }
                    @if let Some((_, longest)) = &figures.of_all { (longest_table(site, longest)) }
                }
            }
        }
    }))
}

fn in_month(query: &PageQuery, month: &str) -> String {
    let mut query = query.clone();
    query.filters.since = Some(month.to_owned());
    query.filters.until = Some(month.to_owned());
    query.address()
}

fn in_hour(query: &PageQuery, hour: i64) -> String {
    PageQuery { hour: Some(hour), ..query.clone() }.address()
}

fn named(query: &PageQuery, filter: &str, name: &str) -> String {
    let mut query = query.clone();
    query.filters.names.set(filter, vec![name.to_owned()]);
    query.address()
}

fn by_role(query: &PageQuery, role: &str) -> String {
    let mut query = query.clone();
    query.filters.roles = vec![role.to_owned()];
    query.address()
}

fn figures_line(site: &Site, query: &PageQuery, figures: &MessageFigures) -> Markup {
    let clock = site.clock();
    html! {
        @match &figures.of_all {
            Some(([first, last], _)) => p {
                // A time beyond the calendar has no words.
                @if [first, last].iter().all(|time| time.and_then(|time| clock.iso(time)).is_some()) {
                    "From " (moment(clock, *first)) " to " (moment(clock, *last)) ". "
                }
                (share_sentence(&figures.counts))
            },
            None => p {
                @if !query.text().is_empty() { "They have “" bdi { (snippet::echo(query.text())) } "”. " }
                @if query.has_filters() { "Filters: " bdi { (chosen(query)) } ". " }
                (share_sentence(&figures.counts)) " "
                a href=(query.address()) { "Show them" } " · " a href="/stats" { "All messages" }
            },
        }
    }
}

fn share_sentence(counts: &Facets) -> String {
    let own = counts.roles.get("user").copied().unwrap_or(0);
    match (own * 100).checked_div(counts.messages) {
        Some(share) => format!("You wrote {share}\u{a0}% of the messages."),
        None => String::new(),
    }
}

fn months_as_table(months: &[(String, u64)], query: &PageQuery) -> Markup {
    let head = html! { th scope="col" { "Month" } th.r scope="col" { "Messages" } };
    let rows = html! {
        @for (month, count) in months.iter().rev() {
            tr { th scope="row" { a href=(in_month(query, month)) { (month_name(month)) } } td.r { (grouped(*count as usize)) } }
        }
    };
    as_table("Messages by month", &head, &rows)
}

fn hours_as_table(hours: &BTreeMap<i64, u64>, query: &PageQuery) -> Markup {
    let head = html! { th scope="col" { "Hour" } @for day in DAYS { th.r scope="col" { (day) } } };
    let rows = html! {
        @for hour in 0..HOURS {
            tr {
                th scope="row" { (hour) "–" (hour + 1) }
                @for day in 0..DAYS.len() {
                    @let count = count_at(hours, day, hour) as usize;
                    td.r {
                        @if count == 0 { "0" } @else { a href=(in_hour(query, (day * HOURS + hour) as i64)) { (grouped(count)) } }
                    }
                }
            }
        }
    };
    as_table("Messages by hour and weekday", &head, &rows)
}

fn table(
    id: &str,
    heading: &str,
    counts: &BTreeMap<String, u64>,
    label: &dyn Fn(&str) -> Markup,
    address: &dyn Fn(&str) -> String,
) -> Markup {
    let mut rows: Vec<(&str, u64)> =
        counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let others = rows.split_off(rows.len().min(MOST_ROWS));
    let most = rows.first().map_or(0, |(_, count)| *count);
    let all = counts.values().sum();
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (heading) }
            table.bars {
                thead { tr {
                    th scope="col" { span.sr { "Name" } }
                    th scope="col" { span.sr { "Share" } }
                    th.r scope="col" { "Messages" }
                } }
                tbody {
                    @for (name, count) in &rows {
                        tr { th scope="row" { a href=(address(name)) { (label(name)) } } td { (bar(*count, most, all)) } td.r { (grouped(*count as usize)) } }
                    }
                    @if !others.is_empty() {
                        @let sum = others.iter().map(|(_, count)| *count).sum();
                        tr { th scope="row" { (counted(others.len(), "other")) } td { (bar(sum, most, all)) } td.r { (grouped(sum as usize)) } }
                    }
                }
            }
        }
    }
}

fn longest(engine: &Engine, call: &Call) -> Result<Vec<About>, Error> {
    let mut found = Vec::new();
    for source in engine.sources() {
        // An error of a source is ignored here, because the error is shown beside the counts.
        let Ok(listing) = source.reader(call).list(&Scope::default(), call) else { continue };
        let mut places: Vec<(u32, usize)> =
            (0..listing.len()).map(|place| (listing.turns(place), place)).collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        places.truncate(LONGEST);
        found.extend(places.into_iter().map(|(_, place)| listing.about_without_summary(place)));
    }
    found.sort_by_key(|about| std::cmp::Reverse(about.turns));
    found.truncate(LONGEST);
    Ok(found)
}

fn longest_table(site: &Site, longest: &[About]) -> Markup {
    html! {
        section aria-labelledby="longest" {
            h2 #longest { "Longest conversations" }
            table {
                thead { tr {
                    th scope="col" { span.sr { "Conversation" } }
                    th.r scope="col" { "Begun" }
                    th.r scope="col" { "Messages" }
                } }
                tbody {
                    @for about in longest {
                        tr {
                            th scope="row" dir="auto" {
                                a href=(page_path(&about.id)) { (title_line(&about.title)) }
                            }
                            td.r { (moment(site.clock(), about.begun)) }
                            td.r { (grouped(about.turns as usize)) }
                        }
                    }
                }
            }
        }
    }
}
