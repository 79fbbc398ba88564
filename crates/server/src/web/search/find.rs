//! Finds messages, and groups them by conversation.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant as Clockwork};

use super::excerpt::{Excerpt, FIRST_SPANS, readable, whole};
use super::page_query::{PageQuery, Way};
use super::scope;
use crate::web::frame::site::{Problem, Site};
use verbatim_answer::conversation::{DescribedConversation, UNTITLED, conversations};
use verbatim_answer::exact::{ExactSearch, GroupedConversation, Grouping};
use verbatim_answer::{asked::Asked, marks::Marks, ranked::RankedMessages, words::Words};
use verbatim_base::model::{Hit, Instant};
use verbatim_base::{call::Call, lock::lock};
use verbatim_engine::{
    ConversationIds, ConversationKey, Facets, FallbackReason, Flags, ListOptions, Make, Match,
    Mode, MoreAlike, Note, QueryReading, Question, ReadingKind, Render, Scope, SearchPlan,
    SourceKind, count_of,
};
use verbatim_text::{excerpt::Piece, snippet};

/// The number of conversations on a page.
pub(super) const GROUPS: usize = 20;

/// The maximum number of shown messages of a conversation; the others are on the conversation's page.
const MOST_LINES: usize = 8;

/// The maximum number of bytes after the first match that an excerpt shows.
const MOST_AROUND: usize = 4 << 10;

/// The maximum number of messages of a conversation to read, including messages with the same text.
const MOST_READ: usize = 60;

/// The time limit of counting messages beyond a full page. The request for the filters counts all messages.
const MOST_COUNTING: Duration = Duration::from_millis(1);

/// The time limit of counting the messages with a text as it was typed.
const MOST_COUNTING_TYPED: Duration = Duration::from_millis(20);

/// How long a search without an index may take before the page says why it is slow.
const SLOW: Duration = Duration::from_millis(200);

/// The number of results of a search by meaning.
const NEAREST: usize = 60;

/// The number of other readings of a text that was found nowhere.
const MOST_READINGS: usize = 4;

/// The results of a search, grouped by conversation.
#[derive(Default)]
pub(super) struct SearchResults {
    pub(super) groups: Vec<FoundGroup>,
    /// The numbers of counted messages and conversations.
    pub(super) messages: usize,
    pub(super) conversations: usize,
    /// Whether there are more messages than were counted.
    pub(super) is_cut: bool,
    /// The counts of all messages, if the search was cut and counting did not take long.
    pub(super) totals: Option<Arc<Facets>>,
    pub(super) took: Duration,
    /// The reason why the text is no expression.
    pub(super) problem: Option<String>,
    /// Whether the search was slow because a source has no current index.
    pub(super) is_without_index: bool,
    /// The sentence above messages that have none of the words.
    pub(super) heading: Option<&'static str>,
    pub(super) notes: Vec<Note>,
    pub(super) flags: Flags,
    /// The other readings of a text that was found nowhere. Each finds something.
    pub(super) readings: Vec<OtherReading>,
    /// The number of messages with the text as it was typed, if it was read in another way.
    pub(super) as_typed: Option<usize>,
    /// The messages that match too if signs of equal look do.
    pub(super) more_alike: Option<MoreAlike>,
    /// The messages with all the words of a text that was found nowhere.
    pub(super) in_any_order: Option<Box<WordsInAnyOrder>>,
}

/// Another reading of a text, and the request that asks for it.
pub(super) struct OtherReading {
    pub(super) reading: QueryReading,
    pub(super) query: PageQuery,
}

/// The messages with all the words of a text, in any order.
pub(super) struct WordsInAnyOrder {
    pub(super) of: OtherReading,
    pub(super) results: SearchResults,
}

/// A conversation in the results.
pub(super) struct FoundGroup {
    pub(super) card: DescribedConversation,
    pub(super) title: Vec<Piece>,
    pub(super) time: Option<Instant>,
    /// The summary of the conversation, in a list without a search text.
    pub(super) summary: String,
    pub(super) lines: Vec<FoundLine>,
    /// The number of counted messages that are not among the lines; more if the search was cut.
    pub(super) more: usize,
    /// Whether all its messages are far from the question.
    pub(super) is_far: bool,
}

/// A message in the results.
pub(super) struct FoundLine {
    pub(super) number: u32,
    /// The position in the conversation, from 0 to 1.
    pub(super) place: f64,
    pub(super) role: String,
    pub(super) text: Excerpt,
    /// The number of messages with the same text, including this message.
    pub(super) copies: u32,
    /// The message numbers of the other messages with the same text, as far as they are known.
    pub(super) same: Vec<u32>,
}

/// Finds the conversations and messages for a request.
pub(super) fn find(site: &Site, query: &PageQuery, call: &Call) -> Result<SearchResults, Problem> {
    let begun = Clockwork::now();
    let flags = site.flags()?;
    let (scope, notes) = scope::scope(site, query, &flags, call)?;
    let is_of_none = scope.only().is_some_and(|only| count_of(&only) == 0);
    let mut results = match (query.text(), query.way) {
        _ if query.is_beyond() || is_of_none => Ok(SearchResults::default()),
        ("", _) if query.hour.is_none() => recent(site, query, &scope, call),
        ("", _) | (_, Way::Exact) => exact(site, query, &scope, call),
        (_, Way::Meaning) => by_meaning(site, query, scope.clone(), call),
    }?;
    // This check counts every message, so it runs only if there are no results.
    if results.groups.is_empty() && !query.is_beyond() && !is_of_none {
        results.notes.extend(site.engine.all_sources().unknown_role(&scope, call)?);
        if query.way == Way::Exact && !query.text().is_empty() && query.page == 0 {
            read_otherwise(site, query, &scope, &mut results, call)?;
        }
    }
    if query.way == Way::Exact && !results.groups.is_empty() && query.hour.is_none() {
        results.more_alike = site.engine.more_alike(&scope::request(query), &scope, call);
    }
    results.notes.extend(notes);
    if query.typed.is_some() && query.way == Way::Exact {
        results.as_typed = count_as_typed(site, query, &flags, call)?;
    }
    results.flags = flags;
    if results.took == Duration::ZERO {
        results.took = begun.elapsed();
    }
    Ok(results)
}

/// Counts the messages with the text as it was typed; `None` if that takes long.
fn count_as_typed(
    site: &Site,
    query: &PageQuery,
    flags: &Flags,
    call: &Call,
) -> Result<Option<usize>, Problem> {
    let query = PageQuery { typed: None, is_as_typed: true, reading: None, ..query.clone() };
    let (scope, _) = scope::scope(site, &query, flags, call)?;
    let limited = call.within(MOST_COUNTING_TYPED);
    let counted = site.engine.all_sources().count(&scope::request(&query), &scope, &limited);
    let counted = counted.ok().filter(|_| !limited.stop.requested());
    Ok(counted.map(|(count, _)| count.messages))
}

/// Adds the other readings of a text that was found nowhere. If messages have all its words, adds these.
fn read_otherwise(
    site: &Site,
    query: &PageQuery,
    scope: &Scope,
    results: &mut SearchResults,
    call: &Call,
) -> Result<(), Problem> {
    let search = ExactSearch::new(&site.engine, scope::request(query), scope.clone(), call)?;
    for reading in search.readings(MOST_READINGS) {
        if let Some(query) = query_of(&reading, query) {
            results.readings.push(OtherReading { reading, query });
        }
    }
    let all_words = results.readings.iter().position(|OtherReading { reading, .. }| {
        reading.kind == ReadingKind::Words && reading.is_of_words(&search.request)
    });
    if let Some(place) = all_words {
        let of = results.readings.remove(place);
        let results_of = exact(site, &of.query, scope, call)?;
        results.in_any_order = Some(Box::new(WordsInAnyOrder { of, results: results_of }));
    }
    Ok(())
}

/// Returns the request of a page for another reading; `None` if no address says it.
fn query_of(reading: &QueryReading, query: &PageQuery) -> Option<PageQuery> {
    let QueryReading { kind, request, .. } = reading;
    let read_as = PageQuery { reading: Some(*kind), ..query.clone() };
    let has_operators = !(request.or.is_empty() && request.not.is_empty());
    let has_words = !request.and.is_empty();
    match kind {
        ReadingKind::AnyScope => Some(query.bare()),
        ReadingKind::AnyCase => Some(PageQuery { is_case_sensitive: false, ..query.clone() }),
        ReadingKind::Words if query.reading.is_none() && (has_operators || has_words) => {
            Some(read_as)
        }
        ReadingKind::AnyAccents | ReadingKind::Expression if query.reading.is_none() => {
            Some(read_as)
        }
        ReadingKind::Rendered if !has_operators && !has_words => {
            let reading = Some(ReadingKind::Expression);
            let is_case_sensitive = request.case_sensitive;
            let q = request.text.clone();
            Some(PageQuery { q, reading, is_case_sensitive, is_word: false, ..query.clone() })
        }
        ReadingKind::Rendered => None,
        ReadingKind::AnyAccents | ReadingKind::Expression => None,
        ReadingKind::Words if has_operators => None,
        ReadingKind::Words | ReadingKind::Nearest => {
            let texts: Vec<&str> =
                [&request.text].into_iter().chain(&request.and).map(String::as_str).collect();
            let reading = if has_words { Some(ReadingKind::Words) } else { None };
            let filters = query.typed_filters().iter().map(String::as_str);
            let q = texts.into_iter().chain(filters).collect::<Vec<_>>().join(" ");
            Some(PageQuery { q, typed: None, reading, ..query.clone() })
        }
    }
}

/// Returns what marks the matches of a request.
pub(crate) fn marks(query: &PageQuery) -> Marks {
    match (query.text(), query.way) {
        ("", _) => Marks::None,
        (_, Way::Exact) => Marks::of(&scope::request(query)).unwrap_or_default(),
        (text, Way::Meaning) => Marks::Words(Words::of(&[text])),
    }
}

fn title_of(title: &str, marker: &Marks) -> Vec<Piece> {
    match snippet::trim(title) {
        "" => whole(UNTITLED, &[]),
        title => whole(title, &marker.spans(title, FIRST_SPANS)),
    }
}

/// A hit of an exact search.
struct StreamedHit {
    kind: SourceKind,
    /// The message with its role, without other texts.
    hit: Hit<'static>,
    title: Vec<Piece>,
    /// Whether the message is shown, and not only its title.
    is_in_text: bool,
    /// The text around the first matches, and a hash of the whole text; `None` if the text is not needed.
    text: Option<(Excerpt, u64)>,
}

/// A message to show, and the messages with the same text.
struct ShownHit {
    hit: Hit<'static>,
    text: Excerpt,
    hash: u64,
    same: Vec<Hit<'static>>,
}

/// Adds a hit to those that are shown, if its conversation is on the page and has not enough messages. Returns
/// the conversation if the texts of its next hits are not needed.
fn add_hit(
    grouping: &mut Grouping<ShownHit>,
    found: StreamedHit,
    first_shown: usize,
) -> Option<&ConversationKey> {
    let StreamedHit { kind, hit, title, is_in_text, text } = found;
    let key = (kind, hit.conversation_id.clone().into_owned());
    let place = grouping.add(key, title, hit.time, !is_in_text);
    let is_shown = (first_shown..first_shown.saturating_add(GROUPS)).contains(&place);
    let conversation = &mut grouping.conversations[place];
    if !is_in_text {
        return None;
    }
    let kept = &mut conversation.kept;
    if let Some((text, hash)) = text
        && is_shown
        && !has_enough(kept)
    {
        match kept.iter_mut().find(|it| it.hash == hash && it.hit.role == hit.role) {
            Some(first) => first.same.push(hit),
            None => kept.push(ShownHit { hit, text, hash, same: Vec::new() }),
        }
    }
    (!is_shown || has_enough(kept)).then_some(&conversation.key)
}

/// Returns whether the text of a hit is needed: the page is not full, and the conversation is not in `done`.
fn is_needed(
    is_full: &AtomicBool,
    done: &Mutex<ConversationIds>,
    kind: SourceKind,
    id: &str,
) -> bool {
    !is_full.load(Ordering::Relaxed) && !lock(done).get(&kind).is_some_and(|ids| ids.contains(id))
}

fn has_enough(kept: &[ShownHit]) -> bool {
    kept.len() == MOST_LINES || kept.iter().map(|it| 1 + it.same.len()).sum::<usize>() == MOST_READ
}

/// Finds the messages that contain the text, newest first.
fn exact(
    site: &Site,
    query: &PageQuery,
    scope: &Scope,
    call: &Call,
) -> Result<SearchResults, Problem> {
    let begun = Clockwork::now();
    let mut search = ExactSearch::new(&site.engine, scope::request(query), scope.clone(), call)?;
    search.oldest_first = query.is_oldest;
    let marker = &search.marks;
    let first_shown = query.page.saturating_mul(GROUPS);
    let is_full = AtomicBool::new(false);
    // Conversations that have enough messages to show. Their further hits are only counted.
    let done: Mutex<ConversationIds> = Mutex::default();
    let clock = site.clock();
    let make: Make<'_, StreamedHit> = &|kind, hit: Hit<'_>| {
        if let Some(hour) = query.hour
            && hit.time.map(|time| clock.hour_of_week(time)) != Some(hour)
        {
            return None;
        }
        let is_in_text = !search.is_title_only(&hit);
        let is_shown = is_needed(&is_full, &done, kind, &hit.conversation_id);
        let title = if is_shown { title_of(&hit.title, marker) } else { Vec::new() };
        let text = (is_shown && is_in_text).then(|| {
            // An excerpt needs only the text around the first match.
            let first = marker.spans(&hit.content, 1).first().map_or(0, |span| span.end);
            let near = first.saturating_add(MOST_AROUND)..hit.content.len();
            let end = near.clone().find(|at| hit.content.is_char_boundary(*at)).unwrap_or(near.end);
            let (text, spans) = readable(marker, &hit.content[..end]);
            let mut hasher = DefaultHasher::new();
            hit.content.hash(&mut hasher);
            (Excerpt::of(&text, &spans, &hit.role), hasher.finish())
        });
        let hit = Hit { content: "".into(), title: "".into(), ..hit }.into_owned();
        Some(StreamedHit { kind, hit, title, is_in_text, text })
    };
    let mut grouping: Grouping<ShownHit> = Grouping::default();
    let mut until = None;
    let mut is_cut = false;
    let render = Render { make, reads: &|kind, id| is_needed(&is_full, &done, kind, id) };
    let searched = search.each(None, render, &mut |found: StreamedHit| {
        if let Some((kind, id)) = add_hit(&mut grouping, found, first_shown) {
            let mut done = lock(&done);
            done.entry(*kind).or_default().insert(id.clone());
        }
        // A conversation beyond the page is needed to know whether there is a next page.
        if grouping.conversations.len() <= first_shown.saturating_add(GROUPS) {
            return ControlFlow::Continue(());
        }
        is_full.store(true, Ordering::Relaxed);
        let until = *until.get_or_insert_with(|| Clockwork::now() + MOST_COUNTING);
        if Clockwork::now() < until {
            return ControlFlow::Continue(());
        }
        is_cut = true;
        ControlFlow::Break(())
    })?;
    let took = begun.elapsed();
    let is_without_index = searched.plans.iter().any(|plan| match plan {
        SearchPlan::ByLike {
            why: FallbackReason::NoIndex | FallbackReason::Stale | FallbackReason::Moved,
            took,
        } => *took >= SLOW,
        _ => false,
    });
    let messages = grouping.messages();
    let found = grouping.conversations.len();
    let all = grouping.conversations.into_iter();
    let shown: Vec<GroupedConversation<ShownHit>> = all.skip(first_shown).take(GROUPS).collect();
    let keys: Vec<ConversationKey> = shown.iter().map(|seen| seen.key.clone()).collect();
    let mut cards = conversations(&site.engine, &keys, call)?;
    let groups = shown.into_iter().filter_map(|seen| {
        let card = cards.remove(&seen.key)?;
        Some(group_of(seen, card))
    });
    Ok(SearchResults {
        groups: groups.collect(),
        messages,
        conversations: found,
        is_cut,
        took,
        is_without_index,
        notes: searched.notes,
        ..SearchResults::default()
    })
}

/// Returns the question of a search by words and meaning.
pub(super) fn question(query: &PageQuery, scope: Scope) -> Question {
    Asked { limit: Some(NEAREST), ..query.asked() }.question(Mode::Both, scope)
}

/// Finds the best messages by words and meaning.
fn by_meaning(
    site: &Site,
    query: &PageQuery,
    scope: Scope,
    call: &Call,
) -> Result<SearchResults, Problem> {
    let mut ranking = RankedMessages::find(&site.engine, &question(query, scope), call)?;
    retain_hour(site, query, &mut ranking.items);
    let marker = &ranking.marks;
    let keys = ranking.items.iter().map(|it| (it.source, it.hit.conversation_id.to_string()));
    let keys: Vec<ConversationKey> = keys.collect();
    let mut cards = conversations(&site.engine, &keys, call)?;
    let mut grouping: Grouping<&Match> = Grouping::default();
    for (one, key) in ranking.items.iter().zip(keys) {
        let place = grouping.add(key, title_of(&one.hit.title, marker), one.hit.time, false);
        grouping.conversations[place].kept.push(one);
    }
    let messages = grouping.messages();
    let groups = grouping.conversations.into_iter().filter_map(|found| {
        let card = cards.remove(&found.key)?;
        Some(ranked_group(found, card, marker))
    });
    let groups: Vec<FoundGroup> = groups.collect();
    Ok(SearchResults {
        conversations: groups.len(),
        groups,
        messages,
        heading: ranking.heading(),
        notes: ranking.true_notes().cloned().collect(),
        ..SearchResults::default()
    })
}

/// Leaves out the messages of other hours than the chosen one.
pub(super) fn retain_hour(site: &Site, query: &PageQuery, messages: &mut Vec<Match>) {
    let clock = site.clock();
    if query.hour.is_some() {
        messages.retain(|one| one.hit.time.map(|time| clock.hour_of_week(time)) == query.hour);
    }
}

/// Returns a conversation with its best messages, the best first.
fn ranked_group(
    found: GroupedConversation<&Match>,
    card: DescribedConversation,
    marker: &Marks,
) -> FoundGroup {
    let mut lines = Vec::new();
    for one in &found.kept {
        let passage = one.passage.trim();
        lines.push(FoundLine {
            number: one.line,
            place: card.place(&one.hit),
            role: one.hit.role.clone().into_owned(),
            text: Excerpt::passage(passage, &marker.spans(passage, FIRST_SPANS)),
            copies: one.copies,
            same: Vec::new(),
        });
    }
    // The messages that are far from the question come last.
    let is_far = found.kept.iter().all(|one| one.is_far);
    let GroupedConversation { title, time, .. } = found;
    FoundGroup { card, title, time, summary: String::new(), lines, more: 0, is_far }
}

/// Lists the conversations, latest activity first.
fn recent(
    site: &Site,
    query: &PageQuery,
    scope: &Scope,
    call: &Call,
) -> Result<SearchResults, Problem> {
    let first = query.page.saturating_mul(GROUPS);
    let wanted = first..first.saturating_add(GROUPS);
    let options = ListOptions { oldest_first: query.is_oldest, ..ListOptions::default() };
    let totals = site.totals(scope, call)?;
    let sources = site.engine.all_sources();
    let mut page = sources.list(scope, wanted.clone(), options, call)?;
    // A list has the conversations that overlap with the dates. Some may have no message within.
    if page.total > totals.conversations {
        let tally = site.engine.tally(scope, &|_| 0, call)?;
        let with_messages = tally.by_conversation.into_iter();
        let ids: ConversationIds =
            with_messages.map(|(kind, counts)| (kind, counts.into_keys().collect())).collect();
        let scope = Scope { conversations: Some(Arc::new(ids)), ..scope.clone() };
        page = sources.list(&scope, wanted, options, call)?;
    }
    let keys: Vec<ConversationKey> =
        page.abouts.iter().map(|about| (about.source, about.id.clone())).collect();
    let mut cards = conversations(&site.engine, &keys, call)?;
    let groups = page.abouts.into_iter().filter_map(|about| {
        let card = cards.remove(&(about.source, about.id))?;
        Some(FoundGroup {
            card,
            title: title_of(&about.title, &Marks::None),
            time: about.last,
            summary: about.summary,
            lines: Vec::new(),
            more: about.turns as usize,
            is_far: false,
        })
    });
    Ok(SearchResults {
        groups: groups.collect(),
        messages: totals.messages as usize,
        conversations: page.total,
        notes: page.notes,
        ..SearchResults::default()
    })
}

/// Returns a conversation of the page with its messages in reading order.
fn group_of(found: GroupedConversation<ShownHit>, card: DescribedConversation) -> FoundGroup {
    let GroupedConversation { title, time, kept, messages, .. } = found;
    let mut lines = Vec::new();
    for ShownHit { hit, text, same, .. } in kept {
        // The number of each message with this text, and its place from 0 to 1.
        let mut places: Vec<(u32, f64)> = same
            .iter()
            .chain([&hit])
            .map(|hit| (card.number(hit).unwrap_or(1), card.place(hit)))
            .collect();
        places.sort_unstable_by_key(|(number, _)| *number);
        lines.push(FoundLine {
            number: places[0].0,
            place: places[0].1,
            role: hit.role.into_owned(),
            text,
            copies: places.len() as u32,
            same: places[1..].iter().map(|(number, _)| *number).collect(),
        });
    }
    lines.sort_by_key(|line| line.number);
    let more = messages - lines.iter().map(|line| line.copies as usize).sum::<usize>();
    FoundGroup { card, title, time, summary: String::new(), lines, more, is_far: false }
}
