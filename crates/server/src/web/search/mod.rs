//! The search page: results, or a hint if there are none.

pub(super) mod chosen_filters;
pub(super) mod excerpt;
pub(super) mod facets;
pub(super) mod find;
pub(super) mod page_query;
pub(super) mod scope;

use axum::http::StatusCode;
use maud::{Markup, html};

use crate::web::conversation::{self, flags};
use crate::web::frame::labels::{meta, role_name};
use crate::web::frame::site::{Problem, Site, sentence};
use crate::web::frame::{Frame, Tab, import};
use chosen_filters::date_fields;
use excerpt::marked;
use find::{FoundGroup, FoundLine, GROUPS, OtherReading, SearchResults, WordsInAnyOrder, find};
use page_query::{MOST_PAGES, PageQuery, Way};
use verbatim_answer::{conversation::DescribedConversation, readings};
use verbatim_base::call::Call;
use verbatim_engine::{Note, QueryReading, ReadingKind};
use verbatim_text::amount::{counted, grouped};
use verbatim_text::{hash::fnv1a, snippet};

/// The number of messages of a conversation that are visible; the others are in a collapsed list.
const OPEN_LINES: usize = 3;

pub(super) fn page(site: &Site, query: &PageQuery, call: &Call) -> Result<Markup, Problem> {
    let stamp = site.stamp();
    let mut results = match find(site, query, call) {
        Err(Problem::Engine(error)) if error.is_not_found() => {
            return Ok(import::page_on(site, Tab::Search, query, None));
        }
        Err(Problem::Wrong(reason)) if query.reads().is_some() => SearchResults {
            problem: Some(reason),
            flags: site.flags()?,
            ..SearchResults::default()
        },
        results => results?,
    };
    if results.is_cut {
        let most = facets::MOST_TOTAL_COUNTING;
        let facets = facets::count(site, query, &results.flags, most, call)?;
        results.totals = Some(facets).filter(|it| it.is_complete);
    }
    let messages = site.messages(call);
    let title = match query.q.trim() {
        "" => "Search",
        text => text,
    };
    let zone = Some(site.clock().zone());
    let frame = Frame { title, tab: Tab::Search, query, messages, zone, stamp };
    let filters = facets::filters(site, query, None, &results.flags, call)?;
    let page = frame.around(html! {
        div.page.search {
            aside aria-label="Filters" tabindex="0" { (filters) }
            main #main {
                (results_part(site, query, &results, messages))
            }
            aside.peek #peek aria-label="The chosen message" {}
        }
    });
    match results.problem {
        Some(_) => Err(Problem::Shown(StatusCode::BAD_REQUEST, page)),
        None => Ok(page),
    }
}

/// Returns the part of the page that changes while the user types.
pub(super) fn fragment(site: &Site, query: &PageQuery, call: &Call) -> Result<Markup, Problem> {
    let results = find(site, query, call)?;
    Ok(results_part(site, query, &results, site.messages(call)))
}

fn results_part(
    site: &Site,
    query: &PageQuery,
    results: &SearchResults,
    messages: Option<u64>,
) -> Markup {
    html! {
        @if let Some(reason) = &results.problem {
            div #count { p.say.warn { (sentence(reason)) } }
            (date_fields(query, false))
            div #list {}
        } @else { (found(site, query, results, messages)) }
    }
}

fn found(site: &Site, query: &PageQuery, results: &SearchResults, messages: Option<u64>) -> Markup {
    html! {
        div #count {
            (headline(query, results))
            @if !results.groups.is_empty() || query.page > 0 && !query.is_beyond() { (count(query, results, messages)) }
            @if results.is_without_index {
                p.say { "There is no current index yet, so every message was read: the answer is complete, and only slower. " a href="/status" { "Status" } }
            }
            @if let Some(heading) = results.heading { p.say { (sentence(heading.trim_end_matches(':'))) } }
            (notices(&results.notes))
            @if let Some(more) = &results.more_alike {
                p.say { a href=(PageQuery { reading: Some(ReadingKind::AnyAccents), page: 0, ..query.clone() }.address()) { bdi { (readings::more_alike(more)) } } }
            }
            (read_as(query, results))
            (flags::hidden_note(&results.flags, query))
        }
        (date_fields(query, false))
        div #list {
            @if results.groups.is_empty() && query.page > 0 {
                p {
                    @if query.is_beyond() {
                        "A search shows " (MOST_PAGES) " pages of " (GROUPS) " conversations. Set the dates to see others. "
                    } @else {
                        "There are no more results: a page has " (GROUPS) " conversations. "
                    }
                    a href=(PageQuery { page: 0, ..query.clone() }.address()) { "The first page" } "."
                }
            } @else if results.groups.is_empty() {
                @if let Some(found) = &results.in_any_order { (in_any_order(site, found)) }
                (nothing_found(query, results, messages))
            } @else {
                @let near = results.groups.partition_point(|group| !group.is_far);
                ol.groups aria-label="Conversations" {
                    @for place in 0..near { (conversation(site, query, results, place)) }
                }
                @if near < results.groups.len() {
                    h2.further #further { "Further away" }
                    ol.groups aria-labelledby="further" {
                        @for place in near..results.groups.len() { (conversation(site, query, results, place)) }
                    }
                }
                (pages(query, results))
            }
        }
    }
}

fn headline(query: &PageQuery, results: &SearchResults) -> Markup {
    let text = snippet::echo(query.q.trim());
    let is_empty = results.groups.is_empty() && query.page == 0;
    let request = scope::request(query);
    let is_one_text = results.in_any_order.is_some()
        || results.readings.iter().any(|other| other.reading.is_of_words(&request));
    let how = match &query.how()[..] {
        "" if is_one_text => " as one text".to_owned(),
        "" => String::new(),
        how => format!(", {how}"),
    };
    let within = if query.has_filters() { " within these filters" } else { "" };
    html! {
        @match (query.text(), query.way) {
            ("", _) if is_empty => h1 { "There is no conversation here" },
            ("", _) => h1.sr { "Recent conversations" },
            (_, Way::Exact) if is_empty => {
                h1.nothing { "No message has “" bdi { (text) } "”" (how) (within) }
            }
            (_, Way::Meaning) if is_empty => {
                h1.nothing { "No message answers “" bdi { (text) } "”" (within) }
            }
            (_, Way::Exact) => h1.sr { "Messages that have “" (text) "”" (how) },
            (_, Way::Meaning) => h1.sr { "Messages that answer “" (text) "”" },
        }
    }
}

/// Returns the numbers of messages and conversations, and the time of the search.
fn count(query: &PageQuery, results: &SearchResults, all: Option<u64>) -> Markup {
    let is_cut = results.is_cut && results.totals.is_none();
    let totals = results.totals.as_ref();
    let messages = totals.map_or(results.messages, |all| all.messages as usize);
    let conversations = totals.map_or(results.conversations, |all| all.conversations);
    let took = results.took.as_secs_f64() * 1e3;
    let took = match took {
        ..10.0 => format!("{took:.1} ms"),
        ..1e3 => format!("{took:.0} ms"),
        _ => format!("{:.1} s", took / 1e3),
    };
    let leaves_out = !results.flags.hidden.is_empty();
    let of = all.filter(|_| !query.has_filters() && !is_cut && !leaves_out);
    let total = facets::total(query, messages, conversations, is_cut);
    html! {
        p.count {
            @match (query.text(), query.way) {
                ("", _) => (total),
                (_, Way::Exact) => {
                    span {
                        @if messages > 1 && query.page == 0 { b #rank aria-hidden="true" {} }
                        (total)
                    }
                    a href=(PageQuery { is_oldest: !query.is_oldest, page: 0, ..query.clone() }.address()) {
                        @if query.is_oldest { "newest first" } @else { "oldest first" }
                    }
                    span { @if let Some(of) = of { (grouped(of as usize)) " searched in " } (took) }
                }
                (_, Way::Meaning) => {
                    span #status {
                        b { "The " (grouped(messages)) " nearest messages" }
                        " in " (counted(conversations, "conversation")) ", the best first"
                    }
                    span { (took) }
                }
            }
            @if query.way == Way::Exact && !query.text().is_empty() && query.hour.is_none() {
                a href=(format!("/stats?{}", PageQuery { page: 0, ..query.clone() }.to_query_string())) { "statistics" }
            }
            @if query.has_filters() {
                a href=(query.bare().address()) {
                    "without filters"
                }
            }
        }
    }
}

/// Returns how the text is read, with a link that reads it as one text. The form keeps the reading and the
/// order.
fn read_as(query: &PageQuery, results: &SearchResults) -> Markup {
    let other =
        PageQuery { typed: None, is_as_typed: !query.is_as_typed, page: 0, ..query.clone() };
    html! {
        @if let Some(typed) = &query.typed {
            @if let Some(problem) = &typed.problem { p.say.warn { b { "Note" } " " (sentence(problem)) } }
            @if !typed.filters.is_empty() || results.as_typed.is_some_and(|count| count > 0) {
                p.say {
                    @if typed.filters.is_empty() { "Found without the quotation marks" }
                    @else { "Filters: " @for filter in &typed.filters { code { (filter) } " " } }
                    @if results.as_typed != Some(0) {
                        " " a href=(other.address()) {
                            "As text" @if let Some(count) = results.as_typed { ": " (counted(count, "message")) }
                        }
                    }
                }
            }
        }
        @if query.is_as_typed {
            p.say {
                "Found as it was typed. "
                a href=(other.address()) { "With its filters and phrases" }
                input type="hidden" name="match" value="text" form="find";
            }
        }
        @if let Some((name, words)) = query.reads().filter(|_| query.reading != Some(ReadingKind::Expression)) {
            p.say {
                "Found: " (words) ". "
                a href=(PageQuery { reading: None, page: 0, ..query.clone() }.address()) { "As one text" }
                input type="hidden" name="match" value=(name) form="find";
            }
        }
        @if query.is_oldest { input type="hidden" name="sort" value="oldest" form="find"; }
    }
}

/// Returns the messages with all the words of a text that was found nowhere.
fn in_any_order(site: &Site, found: &WordsInAnyOrder) -> Markup {
    let WordsInAnyOrder { of: OtherReading { reading, query }, results } = found;
    html! {
        h2 { a href=(query.address()) { (described(reading)) } }
        (notices(&results.notes))
        ol.groups aria-label="Conversations" {
            @for place in 0..results.groups.len() { (conversation(site, query, results, place)) }
        }
        (pages(query, results))
    }
}

/// Returns what a reading finds.
fn described(reading: &QueryReading) -> String {
    readings::described(reading, |text| format!("“{}”", snippet::echo(text)))
}

/// Returns the notes about missing results, and about words that no message has.
fn notices(notes: &[Note]) -> Markup {
    html! {
        @for note in notes {
            @if note.absent_words().is_empty() {
                p.say.warn { b { "Note" } " " (note.to_string()) ". " a href="/status" { "Status" } }
            } @else {
                p.say.warn { b { "Note" } " " (note.to_string()) }
            }
        }
    }
}

fn conversation(site: &Site, query: &PageQuery, results: &SearchResults, place: usize) -> Markup {
    let group = &results.groups[place];
    let address = format!("{}{}", group.card.address(), query.marks());
    let (open, folded) = group.lines.split_at(group.lines.len().min(OPEN_LINES));
    let clock = site.clock();
    html! {
        li.group id=(group_id(&group.card)) {
            header {
                h2 dir="auto" { a href=(address) { (marked(&group.title)) } (flags::star(&results.flags, &group.card)) }
                p.meta {
                    @if query.text().is_empty() && group.lines.is_empty() { span { (counted(group.more, "message")) } " " }
                    (meta(&group.card, clock, group.time))
                    @if !group.lines.is_empty() { (ticks(&group.lines)) }
                }
            }
            @if !group.summary.is_empty() { p.text.summary dir="auto" { (group.summary) } }
            @if !open.is_empty() {
                ol.hits { @for line in open { (hit(query, group, line)) } }
            } @else if !query.text().is_empty() {
                p.note.by-title { "Found by its title" }
            }
            @if !folded.is_empty() {
                details.more {
                    summary { (folded.len()) " more in this conversation" }
                    ol.hits { @for line in folded { (hit(query, group, line)) } }
                }
            }
            @if group.more > 0 && !query.text().is_empty() {
                p.note.rest { a href=(address) {
                    @if results.is_cut { "At least " } (grouped(group.more)) " more in the conversation itself"
                } }
            }
        }
    }
}

/// Returns the id of the element of a conversation in the list. The script knows the element by it.
fn group_id(card: &DescribedConversation) -> String {
    format!("g{:x}", fnv1a(card.id.as_bytes()))
}

fn hit(query: &PageQuery, group: &FoundGroup, line: &FoundLine) -> Markup {
    let number = line.number;
    let label = format!("Message {number}, {}", role_name(&line.role));
    let text = format!("{}-{number}", group_id(&group.card));
    html! {
        li {
            a.no href=(conversation::address(&group.card, query, number)) aria-label=(label) aria-describedby=(text) { (number) }
            " " span.who aria-hidden="true" { (role_name(&line.role).to_lowercase()) }
            (line.text.html(&text))
            @if line.copies > 1 && line.same.is_empty() { p.same { (line.copies) " times" } }
            @if !line.same.is_empty() {
                details.same {
                    summary { "and " (counted(line.same.len(), "identical message")) }
                    @for number in &line.same { a href=(conversation::address(&group.card, query, *number)) { (number) } " " }
                }
            }
        }
    }
}

/// Draws the positions of messages in their conversation.
fn ticks(lines: &[FoundLine]) -> Markup {
    html! {
        svg.pos aria-hidden="true" {
            rect y="5.5" width="100%" height="1" {}
            @for line in lines {
                rect.t x=(format!("{:.1}%", line.place * 98.0)) width="2" height="12" {}
            }
        }
    }
}

fn pages(query: &PageQuery, results: &SearchResults) -> Markup {
    let before = PageQuery { page: query.page.saturating_sub(1), ..query.clone() };
    let after = PageQuery { page: query.page.saturating_add(1), ..query.clone() };
    let has_more = results.conversations > after.page.saturating_mul(GROUPS);
    let is_last = after.is_beyond();
    html! {
        @if query.page > 0 || has_more {
            p.row.turn {
                @if query.page > 0 {
                    a.btn href=(before.address()) rel="prev" { "Previous " (GROUPS) }
                }
                @if has_more && is_last {
                    "Set the dates to see conversations after these."
                } @else if has_more && (query.way == Way::Exact || query.text().is_empty()) {
                    a.btn href=(after.address()) rel="next" { "Next " (GROUPS) " conversations" }
                }
            }
        }
    }
}

/// Returns the text that nothing was found, with advice.
fn nothing_found(query: &PageQuery, results: &SearchResults, messages: Option<u64>) -> Markup {
    if query.text().is_empty() {
        return html! {
            p { "No conversation is within these filters. " a href="/" { "Remove them" } "." }
        };
    }
    let (other, label, note) = match query.way {
        Way::Exact => (Way::Meaning, "By meaning", "other words for the same thing"),
        Way::Meaning => (Way::Exact, "Exactly this text", "letter by letter"),
    };
    let looked = match (messages, query.has_filters()) {
        (_, true) => "the messages within the filters".to_owned(),
        (Some(count), false) => format!("{} messages and their titles", grouped(count as usize)),
        (None, false) => "every message and title".to_owned(),
    };
    html! {
        p {
            @match query.way {
                Way::Exact if query.how().is_empty() => {
                    "Looked for exactly this text, in any letter case, in " (looked) "."
                }
                Way::Exact => { "Looked in " (looked) "." }
                Way::Meaning => { "Looked for its words and its meaning in " (looked) "." }
            }
        }
        section.try aria-labelledby="try" {
            h2 #try { "What may find something" }
            ul.list {
                @for OtherReading { reading, query } in &results.readings {
                    li { a href=(query.address()) { bdi { (described(reading)) } } }
                }
                @let is_offered = results.readings.iter().any(|other| other.reading.kind == ReadingKind::AnyScope);
                @if query.has_filters() && !is_offered {
                    li {
                        a href=(query.bare().address()) {
                            "The same text without the filters"
                        }
                    }
                }
                li {
                    a href=(PageQuery { page: 0, way: other, ..query.clone() }.address()) {
                        (label)
                    }
                    " " span.note { (note) }
                }
                li { a href="/status" { "What is searched" } " " span.note { "sources, and how current they are" } }
            }
        }
    }
}
