//! The filters with their counts, and the timeline. The browser requests the counts separately, so
//! that the results do not wait for the counts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use maud::{Markup, html};

use super::page_query::{NO_PROJECT, PageQuery, Way};
use super::scope::{choice, scope};
use super::{
    chosen_filters::chosen_names,
    find::{question, retain_hour},
};
use crate::web::frame::chart::{Month, histogram, months};
use crate::web::frame::labels::{role_name, service};
use crate::web::frame::site::{Problem, Site};
use verbatim_answer::filters::WITHIN;
use verbatim_base::call::Call;
use verbatim_engine::{
    AcceptsTime, ChosenIds, Facets, Flags, Match, Place, Places, Scope, count_of,
};
use verbatim_text::amount::{counted, grouped};
use verbatim_text::hash::fnv1a;

/// The time limit of counting. If counting takes longer, the counts are lower bounds.
const MOST_COUNTING: Duration = Duration::from_millis(2_500);

/// The time limit of the counts that the page shows first.
const MOST_FIRST_COUNTING: Duration = Duration::from_millis(80);

/// The time limit of counting before a whole page is sent.
pub(super) const MOST_TOTAL_COUNTING: Duration = Duration::from_millis(20);

/// The number of visible names of a filter.
const MOST_NAMES: usize = 8;

/// The maximum number of names in the collapsed list of a filter.
const MOST_FOLDED: usize = 40;

/// The roles that are offered before messages are counted.
const ROLES: [&str; 4] = ["assistant", "user", "tool", "system"];

/// Returns the filters and the timeline with counts. With `is_first`, counts only for a short time.
pub(crate) fn fragment(
    site: &Site,
    query: &PageQuery,
    is_first: bool,
    call: &Call,
) -> Result<Markup, Problem> {
    let flags = site.flags()?;
    let most = if is_first { MOST_FIRST_COUNTING } else { MOST_COUNTING };
    let facets = &*count(site, query, &flags, most, call)?;
    // A conversation whose title alone matches has no message to count.
    let has_some = facets.messages > 0 || !facets.is_complete;
    let is_exact = query.way == Way::Exact || query.text().is_empty();

    Ok(html! {
        (filters(site, query, Some(facets), &flags, call)?)
        (timeline(site, query, facets, call)?)
        @if is_exact && has_some {
            (total(query, facets.messages as usize, facets.conversations, !facets.is_complete))
        }
    })
}

/// Returns the numbers of messages and conversations, which are lower bounds if the search was cut.
pub(super) fn total(
    query: &PageQuery,
    messages: usize,
    conversations: usize,
    is_cut: bool,
) -> Markup {
    let more = if is_cut { "more than " } else { "" };
    // No text is in a title alone.
    let by_title = messages == 0 && !query.text().is_empty();
    html! {
        span #status {
            b #total data-count=(messages) data-more=[is_cut.then_some("")] {
                @if by_title { "Only the title" } @else { (more) (counted(messages, "message")) }
            }
            @if by_title { " of " } @else { " in " }
            (counted(conversations, "conversation")) @if is_cut { " or more" }
            @if query.text().is_empty() { @if query.is_oldest { ", the oldest first" } @else { ", the latest first" } }
        }
    }
}

/// Counts the matching messages. At the time limit, counting stops, and the counts are incomplete.
pub(crate) fn count(
    site: &Site,
    query: &PageQuery,
    flags: &Flags,
    most: Duration,
    call: &Call,
) -> Result<Arc<Facets>, Problem> {
    if query.way == Way::Meaning && !query.text().is_empty() {
        return Ok(Arc::new(of_nearest(site, query, flags, call)?));
    }
    let choice = choice(site, query, flags, call)?;
    if query.text().is_empty() && choice.is_of_ids() && query.hour.is_none() {
        let ChosenIds { only: conversations, without } = choice.ids;
        let scope = Scope { conversations, without, ..Scope::default() };
        return Ok(site.totals(&scope, call)?);
    }
    let clock = site.clock();
    let of_hour = query.hour.map(|hour| move |time| clock.hour_of_week(time) == hour);
    let accepts: AcceptsTime<'_> = of_hour.as_ref().map(|of_hour| of_hour as _);
    let limited = call.within(most);
    let facets = site.places(true, &limited).and_then(|places| {
        let sources = site.engine.all_sources();
        sources.facets(&choice, &places, &|time| clock.month(time), accepts, &limited)
    });
    match facets {
        Err(error) if error.is_stopped() && !call.stop.requested() => Ok(Arc::default()),
        facets => Ok(Arc::new(facets?)),
    }
}

/// Counts the nearest messages of a search by meaning. As in an exact search, each facet ignores the filter of
/// its own kind.
fn of_nearest(
    site: &Site,
    query: &PageQuery,
    flags: &Flags,
    call: &Call,
) -> Result<Facets, Problem> {
    let places = site.places(true, call)?;
    let clock = site.clock();
    let nearest = Nearest { site, query, flags, call, best: ranked(site, query, flags, call)? };
    let mut facets =
        Facets { messages: nearest.best.len() as u64, is_complete: true, ..Facets::default() };
    for one in nearest.without(|query| query.filters.names.set("service", Vec::new()))? {
        let service = place_of(&one, &places).map_or(one.source.name(), |place| &*place.service);
        add(&mut facets.services, service, 1);
    }
    for one in nearest.without(|query| query.filters.names.set("project", Vec::new()))? {
        let named = place_of(&one, &places).map(|place| &*place.projects).unwrap_or_default();
        for project in Place::named_projects(named) {
            add(&mut facets.projects, project, 1);
        }
    }
    for one in nearest.without(|query| query.filters.names.set("model", Vec::new()))? {
        for model in place_of(&one, &places).into_iter().flat_map(|place| &place.models) {
            add(&mut facets.models, model, 1);
        }
    }
    for one in nearest.without(|query| query.filters.roles.clear())? {
        add(&mut facets.roles, &one.hit.role, 1);
    }
    for one in nearest.without(|query| {
        query.filters.since = None;
        query.filters.until = None;
    })? {
        if let Some(month) = one.hit.time.and_then(|time| clock.month(time)) {
            add(&mut facets.months, &month, 1);
        }
    }
    Ok(facets)
}

/// The nearest messages within all filters, and what finds them without one of the filters.
struct Nearest<'a> {
    site: &'a Site,
    query: &'a PageQuery,
    flags: &'a Flags,
    call: &'a Call,
    best: Vec<Match>,
}

impl Nearest<'_> {
    fn without(&self, clear: impl Fn(&mut PageQuery)) -> Result<Vec<Match>, Problem> {
        let mut other = self.query.clone();
        clear(&mut other);
        if other == *self.query {
            Ok(self.best.clone())
        } else {
            ranked(self.site, &other, self.flags, self.call)
        }
    }
}

fn ranked(
    site: &Site,
    query: &PageQuery,
    flags: &Flags,
    call: &Call,
) -> Result<Vec<Match>, Problem> {
    let scope = scope(site, query, flags, call)?.0;
    let mut items = site.engine.rank(&question(query, scope), call)?.items;
    retain_hour(site, query, &mut items);
    Ok(items)
}

fn place_of<'p>(message: &Match, places: &'p Places) -> Option<&'p Place> {
    places.get(&(message.source, message.hit.conversation_id.to_string()))
}

fn add(counts: &mut BTreeMap<String, u64>, name: &str, count: u64) {
    *counts.entry(name.to_owned()).or_default() += count;
}

/// Returns the filters. A dash stands for an unknown count.
pub(super) fn filters(
    site: &Site,
    query: &PageQuery,
    facets: Option<&Facets>,
    flags: &Flags,
    call: &Call,
) -> Result<Markup, Problem> {
    let mut services: BTreeMap<&str, u64> = BTreeMap::new();
    let mut projects: BTreeMap<&str, u64> = BTreeMap::new();
    let mut models: BTreeMap<&str, u64> = BTreeMap::new();
    // Models are read only together with counts, so that the results do not wait for models.
    let places = site.places(facets.is_some(), call)?;
    for place in places.values() {
        for model in &place.models {
            *models.entry(model).or_default() += 1;
        }
        *services.entry(&place.service).or_default() += 1;
        for project in Place::named_projects(&place.projects) {
            let name = if project.is_empty() { NO_PROJECT } else { project };
            *projects.entry(name).or_default() += 1;
        }
    }
    let roles = ROLES.into_iter().rev().zip(1..);
    // If counting ended early, a missing count is unknown, not 0.
    let rest = facets.and_then(|facets| facets.is_complete.then_some(0));
    let all = [
        Facet {
            name: "service",
            legend: "Service",
            chosen: query.chosen("service"),
            known: services,
            count: &|name| facets?.services.get(name).copied().or(rest),
        },
        Facet {
            name: "project",
            legend: "Project",
            chosen: query.chosen("project"),
            known: projects,
            count: &|name| {
                let name = if name == NO_PROJECT { "" } else { name };
                facets?.projects.get(name).copied().or(rest)
            },
        },
        Facet {
            name: "model",
            legend: "Model",
            chosen: query.chosen("model"),
            known: models,
            count: &|name| facets?.models.get(name).copied().or(rest),
        },
        Facet {
            name: "role",
            legend: "Role",
            chosen: &query.filters.roles,
            known: roles.collect(),
            count: &|name| facets?.roles.get(name).copied().or(rest),
        },
    ];
    // The other filters are listed if they are chosen.
    let others = query.filters.names.given().filter(|(filter, _)| !filter.is_facet);
    let others = others.map(|(filter, names)| (filter.name, filter.legend, names));
    let within = (WITHIN, "Conversation", &query.filters.within[..]);
    let others = others.chain([within]).map(|(name, legend, chosen)| {
        let known = BTreeMap::new();
        Facet { name, legend, chosen, known, count: &|_| None }
    });
    let all = all.into_iter().chain(others);
    let at_least = facets.is_some_and(|facets| !facets.is_complete);
    let number = chosen_names(query).count();
    Ok(html! {
        details.filters #facets {
            summary.btn { "Filters" @if number > 0 { " (" (number) ")" } }
            @for facet in all {
                // A filter with only one name is not shown, because it offers no choice.
                @if facet.known.len() > 1 || !facet.chosen.is_empty() { (facet.show(at_least)) }
            }
            (flag_filters(query, flags))
            (links(query))
            p.go { button.btn.main form="find" { (show_label(query, facets)) } }
        }
    })
}

/// Returns the links of the line of counts that a phone has no room for.
fn links(query: &PageQuery) -> Markup {
    let first = PageQuery { page: 0, ..query.clone() };
    html! {
        p.row.links {
            @if query.way == Way::Exact && !query.text().is_empty() {
                a href=(PageQuery { is_oldest: !query.is_oldest, ..first.clone() }.address()) {
                    @if query.is_oldest { "Newest first" } @else { "Oldest first" }
                }
                a href=(format!("/stats?{}", first.to_query_string())) { "Statistics" }
            }
            @if query.has_filters() { a href=(query.bare().address()) { "Without filters" } }
        }
    }
}

/// Returns the label of the button that shows the results, with their number if it is known.
fn show_label(query: &PageQuery, facets: Option<&Facets>) -> String {
    let facets = facets.filter(|facets| facets.messages > 0);
    let Some(facets) = facets else { return "Show results".to_owned() };
    let is_list = query.text().is_empty();
    let number = if is_list { facets.conversations } else { facets.messages as usize };
    let more = if facets.is_complete { "" } else { "more than " };
    let what = if is_list { "conversation" } else { "result" };
    format!("Show {more}{}", counted(number, what))
}

/// Returns the filters for starred and hidden conversations.
fn flag_filters(query: &PageQuery, flags: &Flags) -> Markup {
    let rows = [
        ("starred", "★ Starred", query.starred, count_of(&flags.starred)),
        ("hidden", "Hidden", query.hidden, count_of(&flags.hidden)),
    ];
    let rows: Vec<_> = rows.into_iter().filter(|row| row.2 || row.3 > 0).collect();
    html! {
        @if !rows.is_empty() {
            fieldset.facet {
                legend { "Yours" }
                @for (name, label, is_chosen, count) in rows {
                    label {
                        input id=(name) type="checkbox" name=(name) value="1" form="find" checked[is_chosen];
                        " " span { (label) } " "
                        span.n title=(counted(count, "conversation")) { (grouped(count)) }
                    }
                }
            }
        }
    }
}

/// One filter.
struct Facet<'a> {
    name: &'static str,
    legend: &'static str,
    chosen: &'a [String],
    /// The names with their number of conversations.
    known: BTreeMap<&'a str, u64>,
    count: &'a dyn Fn(&str) -> Option<u64>,
}

impl Facet<'_> {
    fn show(&self, at_least: bool) -> Markup {
        let mut names: Vec<(&str, u64, Option<u64>)> =
            self.known.iter().map(|(name, weight)| (*name, *weight, (self.count)(name))).collect();
        for name in self.chosen.iter().filter(|name| !self.known.contains_key(name.as_str())) {
            names.push((name, 0, (self.count)(name)));
        }
        // Names with most messages come first; without counts, names with most conversations.
        names.sort_by_key(|(name, weight, count)| {
            std::cmp::Reverse((self.is_chosen(name), count.unwrap_or(0), *weight))
        });
        // Names without a match come last, and are folded away.
        let listed =
            names.iter().filter(|(name, _, count)| self.is_chosen(name) || *count != Some(0));
        let listed = listed.count();
        let shown = MOST_NAMES.max(self.chosen.len()).min(listed);
        let (first, rest) = names.split_at(shown);
        let folded = &rest[..rest.len().min(MOST_FOLDED)];
        let hidden = rest.len() - folded.len();
        html! {
            fieldset.facet {
                legend { (self.legend) }
                @for (name, _, count) in first { (self.choice(name, *count, at_least)) }
                @if !folded.is_empty() {
                    " " details.rest-of {
                        summary {
                            (grouped(rest.len()))
                            @if shown > 0 { " more" }
                            @if shown == listed { " without a match" }
                        }
                        @for (name, _, count) in folded { (self.choice(name, *count, at_least)) }
                        @if hidden > 0 { p.note { (grouped(hidden)) " have fewer, and are not listed" } }
                    }
                }
            }
        }
    }

    fn is_chosen(&self, name: &str) -> bool {
        self.chosen.iter().any(|chosen| chosen == name)
    }

    fn choice(&self, name: &str, count: Option<u64>, at_least: bool) -> Markup {
        html! {
            label.zero[count == Some(0)] {
                input id=(format!("{}-{:x}", self.name, fnv1a(name.as_bytes()))) type="checkbox"
                    name=(self.name) value=(name) form="find" checked[self.is_chosen(name)];
                " " (self.label(name)) " "
                span.n {
                    @match count {
                        Some(count) => { (grouped(count as usize)) @if at_least && count > 0 { "+" } }
                        None => "–",
                    }
                }
            }
        }
    }

    fn label(&self, name: &str) -> Markup {
        match self.name {
            "service" => service(name),
            "role" => html! { span { (role_name(name)) } },
            _ if name == NO_PROJECT => html! { span { "No project" } },
            _ => html! { span dir="auto" title=(name) { (name) } },
        }
    }
}

/// Draws the messages by month; months in the range of dates are darker.
fn timeline(
    site: &Site,
    query: &PageQuery,
    facets: &Facets,
    call: &Call,
) -> Result<Markup, Problem> {
    let choice = choice(site, query, &Flags::default(), call)?;
    let clock = site.clock();
    let first = choice.request.since.and_then(|time| clock.month(time));
    let last = choice.request.until.and_then(|time| clock.month(time));
    let months = months(&facets.months);
    let mut bars = Vec::new();
    for (name, count) in &months {
        let is_in = first.as_ref().is_none_or(|first| name >= first)
            && last.as_ref().is_none_or(|last| name <= last);
        bars.push(Month { name, count: *count, is_in });
    }
    Ok(html! { div #hist { (histogram(&bars)) } })
}
