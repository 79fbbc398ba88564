//! The searches of the picker: finds messages, and reads the messages around a message.

use std::{
    borrow::Cow,
    collections::HashMap,
    io,
    ops::{ControlFlow, Range},
    sync::{Arc, mpsc},
    thread,
};

use chrono::DateTime;
#[cfg(not(test))]
use chrono::Local;
/// Tests use UTC, so that screens are equal in every time zone.
#[cfg(test)]
use chrono::Utc as Local;

use super::super::output::harmless;
use verbatim_base::{
    map_faults,
    model::{Hit, Instant, Matching, Request, Stop},
};
use verbatim_engine::{self as engine, Engine, Make, Messages, Note, Scope, SourceKind};
use verbatim_text::{literal::LiteralPattern, snippet};

/// The maximum number of messages, and of conversations whose title matches, in the results of a search.
const MOST_SHOWN: usize = 200;

/// The maximum number of hits that a search reads. If a conversation's title matches, all its messages are
/// hits.
const MOST_SEEN: usize = 20_000;

/// The maximum number of conversations in the list without a search text.
const MOST_LISTED: usize = 200;

/// The maximum number of characters of a line before its first match.
const BEFORE_MATCH: usize = 100;

/// The maximum number of characters of a line from the beginning of its first match.
const FROM_MATCH: usize = 300;

/// The number of messages before and after the chosen message in the preview.
const MESSAGES_BEFORE: usize = 10;
const MESSAGES_AFTER: usize = 20;

/// The number of characters of the chosen message before and after the beginning of its first match.
const CHOSEN_BEFORE: usize = 2_000;
const CHOSEN_AFTER: usize = 4_000;

/// The maximum number of characters of each other message in the preview.
const OTHER_CHARACTERS: usize = 1_500;

/// The maximum number of marked matches in a message.
const MOST_MARKS: usize = 1_000;

/// The results of a search of all sources, grouped by conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    /// The search text; empty for the list of all conversations.
    pub(super) text: String,
    pub(super) conversations: Vec<FoundConversation>,
    /// Whether there are more matches than the results contain.
    pub(super) is_cut: bool,
    /// An error of a source that could not be searched.
    pub(super) problem: Option<String>,
}

/// A conversation with the messages whose texts match. It has none in the list of all conversations, and if
/// only its title matches.
#[derive(Clone, Debug)]
pub(super) struct FoundConversation {
    pub(super) source: SourceKind,
    pub(super) id: String,
    /// The service, the agent, or else the source.
    pub(super) service: String,
    pub(super) title: MarkedText,
    pub(super) day: String,
    pub(super) messages: Vec<FoundMessage>,
}

#[derive(Clone, Debug)]
pub(super) struct FoundMessage {
    /// The message without its text.
    hit: Hit<'static>,
    pub(super) role: String,
    pub(super) line: MarkedText,
}

/// A text without control characters, with the ranges of its matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkedText {
    pub(super) text: String,
    pub(super) marks: Vec<Range<usize>>,
}

/// The conversation, and maybe the message, to which a key applies.
#[derive(Clone, Debug)]
pub(super) struct PickerTarget {
    pub(super) source: SourceKind,
    pub(super) id: String,
    pub(super) message: Option<Hit<'static>>,
    pub(super) text: String,
}

/// The chosen message and the messages around it.
#[derive(Clone, Debug, Default)]
pub(super) struct Preview {
    pub(super) messages: Vec<PreviewMessage>,
}

#[derive(Clone, Debug)]
pub(super) struct PreviewMessage {
    pub(super) heading: String,
    pub(super) text: MarkedText,
    pub(super) is_chosen: bool,
}

impl Results {
    /// Returns the number of messages in the results.
    pub(super) fn messages(&self) -> usize {
        self.conversations.iter().map(|conversation| conversation.messages.len()).sum()
    }

    pub(super) fn target(&self, conversation: usize, message: Option<usize>) -> PickerTarget {
        let of = &self.conversations[conversation];
        let message = message.map(|number| of.messages[number].hit.clone());
        PickerTarget { source: of.source, id: of.id.clone(), message, text: self.text.clone() }
    }
}

/// Searches all sources for a text in any letter case, newest first. Without a text, lists all
/// conversations. Returns `None` if the search was stopped.
pub(super) fn search(engine: &Engine, text: &str, stop: &Stop) -> Option<Results> {
    let text = engine::trimmed(text);
    let mut results = Results { text: text.to_owned(), ..Results::default() };
    let found = map_faults::caught(|| match text {
        "" => list(engine, stop, &mut results),
        _ => find(engine, text, stop, &mut results),
    });
    let problem = found.unwrap_or_else(|panic| Some(format!("the search failed: {panic}")));
    name_services(engine, stop, &mut results.conversations);
    let problem = problem.or_else(|| unreadable(engine, stop));
    results.problem = problem.map(|problem| clean(&problem, false));
    (!stop.requested()).then_some(results)
}

/// Replaces the names of sources by the names of services, where these are known.
fn name_services(engine: &Engine, stop: &Stop, found: &mut [FoundConversation]) {
    for kind in SourceKind::ALL {
        let of_kind = || found.iter().filter(|it| it.source == kind);
        let ids: Vec<&str> = of_kind().map(|it| it.id.as_str()).collect();
        if ids.is_empty() {
            continue;
        }
        // Without an answer, the names of the sources stay.
        let known = engine.all_sources().provenance(kind, &ids, stop).unwrap_or_default();
        for conversation in found.iter_mut().filter(|it| it.source == kind) {
            if let Some(provenance) = known.get(&conversation.id)
                && !provenance.service.is_empty()
            {
                conversation.service = harmless(&provenance.service);
            }
        }
    }
}

/// Returns a message about the first source that cannot be read.
fn unreadable(engine: &Engine, stop: &Stop) -> Option<String> {
    let notes = engine.all_sources().problems(stop);
    let mut gaps = notes.iter().filter(|note| matches!(note, Note::Unreadable { .. }));
    gaps.next().map(ToString::to_string)
}

/// Adds the messages that contain a text to `results`; returns the errors of sources.
fn find(engine: &Engine, text: &str, stop: &Stop, results: &mut Results) -> Option<String> {
    let matching = Matching::Literal;
    let request = Request { text: text.to_owned(), matching, ..Request::default() };
    let pattern = LiteralPattern::new(text, false);
    let render = |kind, hit: Hit<'_>| {
        let title = title(&hit.title, Some(&pattern));
        Some((kind, title, FoundMessage::of(hit, &pattern)))
    };
    let (mut seen, mut shown) = (0, 0);
    let mut places: HashMap<(SourceKind, String), usize> = HashMap::new();
    let mut show = |(source, title, message): (SourceKind, MarkedText, FoundMessage)| {
        seen += 1;
        let id = message.hit.conversation_id.to_string();
        let known = places.get(&(source, id.clone())).copied();
        let is_by_title = message.line.marks.is_empty() && !title.marks.is_empty();
        if known.is_some() && is_by_title {
            return ControlFlow::Continue(());
        }
        results.is_cut = shown == MOST_SHOWN || seen > MOST_SEEN;
        if results.is_cut {
            return ControlFlow::Break(());
        }
        shown += 1;
        let place = known.unwrap_or_else(|| {
            let day = day(message.hit.time);
            let service = source.name().to_owned();
            places.insert((source, id.clone()), results.conversations.len());
            let conversation =
                FoundConversation { source, id, service, title, day, messages: Vec::new() };
            results.conversations.push(conversation);
            results.conversations.len() - 1
        });
        if !is_by_title {
            results.conversations[place].messages.push(message);
        }
        ControlFlow::Continue(())
    };
    let render: Make<'_, _> = &render;
    let all = Scope::default();
    match engine.all_sources().search(&request, &all, stop, render.into(), &mut show) {
        Ok(searched) => searched.notes.first().map(ToString::to_string),
        Err(error) => Some(error.to_string()),
    }
}

/// Adds the newest conversations to `results`; returns the errors of sources.
fn list(engine: &Engine, stop: &Stop, results: &mut Results) -> Option<String> {
    let mut problem = None;
    let mut found = Vec::new();
    for source in engine.sources() {
        let listing = match source.reader(stop).list(&Scope::default(), stop) {
            Ok(listing) => listing,
            Err(error) => {
                problem = Some(error.to_string());
                continue;
            }
        };
        results.is_cut |= listing.len() > MOST_LISTED;
        found.extend((0..listing.len().min(MOST_LISTED)).map(|place| {
            let (id, heading) = listing.heading(place);
            let last = listing.last(place);
            let conversation = FoundConversation {
                source: source.kind,
                id: id.to_owned(),
                service: source.kind.name().to_owned(),
                title: title(heading, None),
                day: day(last),
                messages: Vec::new(),
            };
            (last, conversation)
        }));
    }
    found.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
    results.is_cut |= found.len() > MOST_LISTED;
    let conversations = found.into_iter().take(MOST_LISTED).map(|(_, conversation)| conversation);
    results.conversations = conversations.collect();
    problem
}

/// Reads the messages around a target; `None` if the work was stopped or failed.
pub(super) fn preview(engine: &Engine, target: &PickerTarget, stop: &Stop) -> Option<Preview> {
    let pattern = LiteralPattern::new(&target.text, false);
    read(engine, target, stop, |messages, chosen| {
        let middle = chosen.unwrap_or(0);
        let end = messages.turns().min(middle + MESSAGES_AFTER + 1);
        let around = middle.saturating_sub(MESSAGES_BEFORE)..end;
        let messages = around.map(|turn| {
            PreviewMessage::of(&messages.message(turn), &pattern, chosen == Some(turn))
        });
        Preview { messages: messages.collect() }
    })
}

/// Returns the whole text of the target's message, or of the first message if no message is chosen.
pub(super) fn text_of(engine: &Engine, target: &PickerTarget) -> Option<String> {
    read(engine, target, &Stop::never(), |messages, chosen| {
        messages.message(chosen.unwrap_or(0)).content.into_owned()
    })
}

/// Runs `work` on the messages of a target's conversation and the number of the target's message. Returns
/// `None` if they cannot be read.
fn read<T>(
    engine: &Engine,
    target: &PickerTarget,
    stop: &Stop,
    work: impl Fn(&dyn Messages, Option<usize>) -> T,
) -> Option<T> {
    let faults = map_faults::count();
    let read = map_faults::caught(|| {
        let source = engine.sources().into_iter().find(|source| source.kind == target.source)?;
        let messages = source.reader(stop).read(&target.id, false, stop).ok().flatten()?;
        let chosen = target.message.as_ref().and_then(|hit| messages.turn_of(hit));
        Some(work(&*messages, chosen))
    });
    read.ok().flatten().filter(|_| map_faults::count() == faults && !stop.requested())
}

impl FoundMessage {
    fn of(hit: Hit<'_>, pattern: &LiteralPattern) -> FoundMessage {
        let line = first_line(&hit.content, Some(pattern));
        let role = role(&hit);
        let hit = Hit { content: Cow::Borrowed(""), ..hit }.into_owned();
        FoundMessage { hit, role, line }
    }
}

impl PreviewMessage {
    fn of(hit: &Hit<'_>, pattern: &LiteralPattern, is_chosen: bool) -> PreviewMessage {
        let content = &*hit.content;
        let (from, end) = if is_chosen {
            let first = pattern.first_spans(content, 1).pop().map_or(0, |span| span.start);
            (back(content, first, CHOSEN_BEFORE), forth(content, first, CHOSEN_AFTER))
        } else {
            (0, forth(content, 0, OTHER_CHARACTERS))
        };
        let spans = pattern.first_spans(&content[from..end], MOST_MARKS);
        let mut text = MarkedText::of(&content[from..end], &spans, true);
        text.add_ellipses(from > 0, end < content.trim_end().len());
        let time =
            hit.time.and_then(local).map(|time| time.format(" · %Y-%m-%d %H:%M").to_string());
        let heading = format!("{}{}", role(hit), time.unwrap_or_default());
        PreviewMessage { heading, text, is_chosen }
    }
}

impl MarkedText {
    /// Returns a text and its matches, without characters that control a terminal. The text is on
    /// one line unless `keeps_lines` is set.
    pub(super) fn of(text: &str, spans: &[Range<usize>], keeps_lines: bool) -> MarkedText {
        let mut marked = MarkedText::default();
        let mut at = 0;
        for span in spans {
            marked.text += &clean(&text[at..span.start], keeps_lines);
            let start = marked.text.len();
            marked.text += &clean(&text[span.clone()], keeps_lines);
            marked.marks.push(start..marked.text.len());
            at = span.end;
        }
        marked.text += &clean(&text[at..], keeps_lines);
        marked
    }

    /// Adds ellipses if there is more text before or after the text.
    fn add_ellipses(&mut self, before: bool, after: bool) {
        /// The sign for text that is left out.
        const MORE: char = '…';

        if before {
            self.text.insert(0, MORE);
            for mark in &mut self.marks {
                *mark = mark.start + MORE.len_utf8()..mark.end + MORE.len_utf8();
            }
        }
        if after {
            self.text.push(MORE);
        }
    }
}

fn title(title: &str, pattern: Option<&LiteralPattern>) -> MarkedText {
    let title = match snippet::trim(title) {
        "" => "Untitled",
        title => title,
    };
    first_line(&title.replace(['\n', '\r'], " "), pattern)
}

/// Returns the line with the first match, cut around the match; without a match, the first line with text.
fn first_line(content: &str, pattern: Option<&LiteralPattern>) -> MarkedText {
    let found = pattern.and_then(|pattern| pattern.first_spans(content, 1).pop());
    let place = match &found {
        Some(span) => span.start,
        None => content.find(|c: char| !c.is_whitespace()).unwrap_or(0),
    };
    let from = back(content, place, BEFORE_MATCH);
    let line = content[from..place].rfind('\n').map_or(from, |at| from + at + 1);
    let end = forth(content, place, FROM_MATCH);
    let after = found.as_ref().map_or(place, |span| span.end.min(end));
    let end = content[after..end].find('\n').map_or(end, |at| after + at);
    let start = line + (content[line..place].len() - content[line..place].trim_start().len());
    let spans: Vec<_> = found.iter().map(|span| span.start - start..after - start).collect();
    let mut text = MarkedText::of(&content[start..end], &spans, false);
    text.add_ellipses(line == from && from > 0, false);
    text
}

/// Returns the offset `count` characters before another offset.
fn back(text: &str, place: usize, count: usize) -> usize {
    let before = text[..place].char_indices().rev().take(count).last();
    before.map_or(place, |(at, _)| at)
}

/// Returns the offset `count` characters after another offset.
fn forth(text: &str, place: usize, count: usize) -> usize {
    place + snippet::cut(&text[place..], count).map_or(text.len() - place, str::len)
}

/// Returns a text without control characters; tabs and line breaks become spaces.
fn clean(text: &str, keeps_lines: bool) -> String {
    let text = harmless(&text.replace("\r\n", "\n").replace(['\t', '\r'], " "));
    if keeps_lines { text } else { text.replace('\n', " ") }
}

fn role(hit: &Hit<'_>) -> String {
    if hit.role.is_empty() { "unknown".to_owned() } else { clean(&hit.role, false) }
}

/// Returns the day of an instant in the user's time zone.
fn day(time: Option<Instant>) -> String {
    let day = time.and_then(local).map(|time| time.format("%Y-%m-%d").to_string());
    day.unwrap_or_else(|| "(no time) ".to_owned())
}

fn local(time: Instant) -> Option<DateTime<Local>> {
    Some(DateTime::from_timestamp(time.seconds, time.nanos)?.with_timezone(&Local))
}

/// A thread that answers only the newest question. A new question stops the work on the question before it.
#[derive(Debug)]
pub(super) struct Worker<Q> {
    questions: mpsc::Sender<(u64, Q, Stop)>,
    stop: Stop,
    asked: u64,
}

impl<Q: Send + 'static> Worker<Q> {
    /// Starts a thread that sends the results of `work`. `work` gets the number of each question.
    pub(super) fn start<A: Send + 'static>(
        engine: &Arc<Engine>,
        answers: mpsc::Sender<A>,
        work: impl Fn(&Engine, u64, &Q, &Stop) -> Option<A> + Send + 'static,
    ) -> io::Result<Worker<Q>> {
        let engine = Arc::clone(engine);
        let (questions, asked) = mpsc::channel::<(u64, Q, Stop)>();
        let run = move || {
            while let Ok(first) = asked.recv() {
                let (number, question, stop) = asked.try_iter().last().unwrap_or(first);
                let answer = work(&engine, number, &question, &stop);
                if answer.is_some_and(|answer| answers.send(answer).is_err()) {
                    return;
                }
            }
        };
        thread::Builder::new().name("picker".to_owned()).spawn(run)?;
        Ok(Worker { questions, stop: Stop::never(), asked: 0 })
    }

    /// Asks a question, and stops the work on the question before it.
    pub(super) fn ask(&mut self, question: Q) {
        self.stop.request();
        self.stop = Stop::never();
        self.asked += 1;
        // Sending fails only if the thread ended, at the end of the program.
        let _ = self.questions.send((self.asked, question, self.stop.clone()));
    }

    pub(super) fn is_newest(&self, number: u64) -> bool {
        self.asked == number
    }
}

impl<Q> Drop for Worker<Q> {
    fn drop(&mut self) {
        self.stop.request();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_export::TestExport;

    #[test]
    fn lines_are_cut_around_the_match_and_harmless() {
        let line = |content: &str, text: &str| {
            let mut line = first_line(content, Some(&LiteralPattern::new(text, false)));
            for mark in line.marks.clone().into_iter().rev() {
                line.text.insert(mark.end, ']');
                line.text.insert(mark.start, '[');
            }
            line.text
        };
        assert_eq!(line("one\n\n  two Three\r\nfour", "three"), "two [Three] ");
        assert_eq!(line("\n  one\ttwo\nthree", "absent"), "one two");
        assert_eq!(line("a\u{1b}[1mÉ\u{202e}", "é"), "a\u{FFFD}[1m[É]\u{FFFD}");
        let long = format!("{}needle{}", "é ".repeat(500), "日".repeat(500));
        let cut = line(&long, "NEEDLE");
        assert!(cut.starts_with("…é") || cut.starts_with("… "), "{cut}");
        assert_eq!(cut.chars().count(), 1 + BEFORE_MATCH + FROM_MATCH + 2);
        assert_eq!(line(&"x".repeat(1000), &"x".repeat(999)).chars().count(), FROM_MATCH + 2);
    }

    #[test]
    fn a_source_that_cannot_be_read_is_a_problem() {
        let export = TestExport::of(&[]);
        let broken = export.with_broken_export("red zeppelin");
        let config =
            verbatim_engine::Config { db: Some("/nowhere.db".into()), ..broken.config().clone() };
        for engine in [broken, Engine::new(config)] {
            for text in ["", "zeppelin", "absent"] {
                let found = search(&engine, text, &Stop::never()).unwrap();
                assert_eq!(found.conversations.len(), usize::from(text != "absent"), "{text}");
                let problem = found.problem.unwrap_or_default();
                assert!(problem.contains(".db"), "{text}: {problem}");
            }
        }
    }

    #[test]
    fn results_are_grouped_and_a_title_counts_once() {
        let export = TestExport::indexed(&["red one", "Title of a book", "red two"]);
        let insert = "INSERT INTO messages VALUES ('n' || ?1, 2, 'user', 'other RED', ?1)";
        for number in 0..3 {
            export.connection.execute(insert, [number]).unwrap();
        }
        for is_indexed in [false, true] {
            if is_indexed {
                export.reindex();
            }
            let found = search(&export.engine, " red ", &Stop::never()).unwrap();
            let counts = found.conversations.iter().map(|c| (&*c.id, c.messages.len()));
            assert_eq!(counts.collect::<Vec<_>>(), [("2", 4), ("0", 1)]);
            assert!(!found.is_cut && found.problem.is_none());
            let found = search(&export.engine, "title", &Stop::never()).unwrap();
            let counts = found.conversations.iter().map(|c| (&*c.id, c.messages.len()));
            assert_eq!(counts.collect::<Vec<_>>(), [("2", 0), ("1", 1), ("0", 0)]);
            assert_eq!(found.conversations[1].title.marks.first(), Some(&(0..5)));
            let all = search(&export.engine, "  ", &Stop::never()).unwrap();
            let ids: Vec<&str> = all.conversations.iter().map(|c| &*c.id).collect();
            assert_eq!(ids, ["2", "1", "0"]);
            let target =
                search(&export.engine, "other", &Stop::never()).unwrap().target(0, Some(2));
            let preview = preview(&export.engine, &target, &Stop::never()).unwrap();
            assert_eq!(preview.messages.iter().position(|message| message.is_chosen), Some(0));
            assert_eq!(preview.messages.len(), 4);
            assert_eq!(text_of(&export.engine, &target).as_deref(), Some("other RED"));
        }
        let insert = "INSERT INTO messages VALUES ('many' || ?1, ?1 % 3, 'user', 'many title', ?1)";
        for number in 0..250 {
            export.connection.execute(insert, [number]).unwrap();
        }
        let many = search(&export.engine, "many", &Stop::never()).unwrap();
        assert_eq!((many.messages(), many.is_cut), (MOST_SHOWN, true));
        let stop = Stop::never();
        stop.request();
        assert!(search(&export.engine, "red", &stop).is_none());
    }

    #[test]
    fn a_worker_answers_the_newest_question() {
        let export = TestExport::of(&["red"]);
        let (answers, received) = mpsc::channel();
        let engine = Arc::new(Engine::new(export.engine.config().clone()));
        let mut worker = Worker::start(&engine, answers, |_, number, wait: &bool, stop| {
            while *wait && !stop.requested() {
                thread::yield_now();
            }
            Some((number, stop.requested()))
        })
        .unwrap();
        worker.ask(true);
        worker.ask(true);
        worker.ask(false);
        let last = received.iter().find(|(number, _)| worker.is_newest(*number));
        assert_eq!(last, Some((3, false)));
    }
}
