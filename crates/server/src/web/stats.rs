//! The statistics: the number of messages by month, hour, source and role.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{
    ask::Ask,
    card::{counted, moment, role_name, service},
    chart::{DAYS, HOURS, as_table, bar, columns, count_at, heat, month_name, months},
    frame::{Frame, Tab},
    site::{Problem, Site},
};
use verbatim_base::model::Stop;
use verbatim_engine::{self as engine, About, Engine, Error, Scope, Tally};
use verbatim_text::{address::page_path, amount::grouped};

/// The maximum number of rows of a table; the last row may be the sum of all others.
const MOST_ROWS: usize = 12;

/// The number of conversations in the list of the longest conversations.
const LONGEST: usize = 10;

pub(super) fn page(site: &Site, ask: &Ask, stop: &Stop) -> Result<Markup, Problem> {
    let stamp = site.stamp();
    let clock = site.clock();
    let tally = site.engine.tally(&Scope::default(), &|time| clock.day(time), stop)?;
    let services = site.engine.all_sources().services(&tally.by_conversation, stop)?;
    let longest = longest(&site.engine, stop)?;
    let frame = Frame {
        title: "Statistics",
        tab: Tab::Statistics,
        ask,
        messages: Some(tally.messages),
        zone: Some(clock.zone()),
        stamp,
    };
    let months = months(&tally.months);
    let hours =
        engine::counted_by(site.engine.all_sources(), &|time| clock.hour_of_week(time), stop)?;
    Ok(frame.around(html! {
        div.page.plain {
            nav.here-nav aria-label="On this page" {
                a href="#by-month" { "Messages by month" } a href="#by-hour" { "Hour and weekday" }
                a href="#by-service" { "Services" }
                a href="#by-role" { "Who wrote" }
                @if !tally.models.is_empty() { a href="#by-model" { "Models" } }
                a href="#longest" { "Longest conversations" }
            }
            main #main {
                h1 { (counted(tally.messages as usize, "message")) " in " (counted(tally.conversations, "conversation")) }
                p {
                    // A time beyond the calendar has no words.
                    @if [tally.first, tally.last].iter().all(|time| time.and_then(|time| clock.iso(time)).is_some()) {
                        "From " (moment(clock, tally.first)) " to " (moment(clock, tally.last)) ". "
                    }
                    (share(&tally))
                }
                @for note in &tally.notes { p.say.warn { b { "Note" } " " (note.to_string()) "." } }
                section aria-labelledby="by-month" {
                    h2 #by-month { "Messages by month" }
                    (columns(&months))
                    p.note.after { a href="/trends" { "Compare texts by month" } }
                    (months_as_table(&months))
                }
                section aria-labelledby="by-hour" {
                    h2 #by-hour { "Hour and weekday" }
                    (heat(&hours))
                    (hours_as_table(&hours))
                }
                div.two {
                    (table("by-service", "Services", &services, &|name| service(name)))
                    (table("by-role", "Who wrote", &tally.roles, &|name| html! { (role_name(name)) }))
                    @if !tally.models.is_empty() {
                        (table("by-model", "Models", &tally.models, &|name| html! { (name) }))
                    }
                    (longest_table(site, &longest))
                }
            }
        }
    }))
}

/// Returns a sentence about the share of the messages that the person wrote.
fn share(tally: &Tally) -> String {
    let own = tally.roles.get("user").copied().unwrap_or(0);
    match (own * 100).checked_div(tally.messages) {
        Some(share) => format!("You wrote {share}\u{a0}% of the messages."),
        None => String::new(),
    }
}

fn months_as_table(months: &[(String, u64)]) -> Markup {
    let head = html! { th scope="col" { "Month" } th.r scope="col" { "Messages" } };
    let rows = html! {
        @for (month, count) in months.iter().rev() {
            tr { th scope="row" { (month_name(month)) } td.r { (grouped(*count as usize)) } }
        }
    };
    as_table("Messages by month", &head, &rows)
}

fn hours_as_table(hours: &BTreeMap<i64, u64>) -> Markup {
    let head = html! { th scope="col" { "Hour" } @for day in DAYS { th.r scope="col" { (day) } } };
    let rows = html! {
        @for hour in 0..HOURS {
            tr {
                th scope="row" { (hour) "–" (hour + 1) }
                @for day in 0..DAYS.len() { td.r { (grouped(count_at(hours, day, hour) as usize)) } }
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
                        tr { th scope="row" { (label(name)) } td { (bar(*count, most, all)) } td.r { (grouped(*count as usize)) } }
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

/// Returns the conversations with the most messages.
fn longest(engine: &Engine, stop: &Stop) -> Result<Vec<About>, Error> {
    let mut found = Vec::new();
    for source in engine.sources() {
        // An error of a source is ignored here, because the error is shown beside the counts.
        let Ok(listing) = source.reader(stop).list(&Scope::default(), stop) else { continue };
        let mut places: Vec<(u32, usize)> =
            (0..listing.len()).map(|place| (listing.turns(place), place)).collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        places.truncate(LONGEST);
        found.extend(places.into_iter().map(|(_, place)| listing.brief(place)));
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
                        @let title = about.title.trim();
                        tr {
                            th scope="row" dir="auto" {
                                a href=(page_path(&about.id)) {
                                    @if title.is_empty() { "Untitled" } @else { (title) }
                                }
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
