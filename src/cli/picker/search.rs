//! The searches of the picker: finds messages, and reads the messages around a message.

use std::{
    borrow::Cow,
    collections::HashMap,
    io,
    ops::{ControlFlow, Range},
    sync::{Arc, mpsc},
    thread,
};

use super::{
    super::{
        clock::Clock,
        environment::Environment,
        error::Result,
        found::{Key, UNTITLED, conversations, listed, place},
        output::harmless,
    },
    asked::{Asked, TypedSearch},
};
use verbatim_answer::{
    exact::{ExactSearch, NothingFound},
    marks::Marks,
    notes::{Audience, line},
    nothing::{no_answer, sentence},
    ranked::RankedMessages,
    readings::described,
    words::quoted,
};
use verbatim_base::{
    map_faults,
    model::{Hit, Request, Stop},
};
use verbatim_engine::{
    Count, Engine, ListOptions, Make, Messages, Mode, Note, Scope, SourceKind, StoreAddress,
};
use verbatim_text::{
    excerpt::{self, Piece, Room, characters, columns},
    snippet,
};

/// The maximum number of messages, and of conversations whose title matches, in the results of a search.
const MOST_SHOWN: usize = 200;

/// The maximum number of hits that a search reads. If a conversation's title matches, all its messages are
/// hits.
const MOST_SEEN: usize = 20_000;

/// The maximum number of conversations in the list without a search text.
const MOST_LISTED: usize = 200;

/// The text of a found message on one line; a screen is narrower.
const LINE: Room = Room { all: 400, before: 100, is_filled: false, is_one_line: true };

/// The number of messages before and after the chosen message in the preview.
const MESSAGES_BEFORE: usize = 10;
const MESSAGES_AFTER: usize = 20;

/// The text of the chosen message in the preview, and of each other message, in characters.
const CHOSEN: Room = Room { all: 6_000, before: 2_000, is_filled: false, is_one_line: false };
const OTHER: Room = Room { all: 1_500, before: 0, ..CHOSEN };

/// The maximum number of marked matches in a message.
const MOST_MARKS: usize = 1_000;

/// What the picker searches, and how it shows times.
pub(super) struct PickerContext {
    pub(super) engine: Arc<Engine>,
    pub(super) environment: Environment,
}

/// An answer to a search. A search can have several, one after the other.
#[derive(Debug)]
pub(super) enum PickerFinding {
    Found(Results),
    /// The total number of matches of the results; `None` if they could not be counted.
    Counted(Option<Count>),
}

/// The results of a search of all sources, grouped by conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    /// Whether the results are the newest conversations, because no text was typed.
    pub(super) is_list: bool,
    pub(super) is_ranked: bool,
    /// The filters that hold, as they were typed.
    pub(super) filters: Vec<String>,
    /// Says how the results differ from what was asked.
    pub(super) head: Option<String>,
    pub(super) marks: Arc<Marks>,
    pub(super) conversations: Vec<FoundConversation>,
    /// Whether there are more matches than the results contain.
    pub(super) is_cut: bool,
    /// The number of all matches; `None` if they are not counted yet.
    pub(super) count: Option<Count>,
    /// Whether further results for the same text follow.
    pub(super) is_first: bool,
    /// Whether a [`PickerFinding::Counted`] follows.
    pub(super) is_counting: bool,
    /// An error of a source that could not be searched, or of what was typed.
    pub(super) problem: Option<String>,
}

/// A conversation with the messages whose texts match. It has none in the list of all conversations, and if
/// only its title matches.
#[derive(Clone, Debug)]
pub(super) struct FoundConversation {
    pub(super) source: SourceKind,
    pub(super) id: String,
    pub(super) short_id: String,
    /// The service, the agent, or else the source; with the project.
    pub(super) place: String,
    pub(super) title: MarkedText,
    pub(super) time: String,
    /// In reading order.
    pub(super) messages: Vec<FoundMessage>,
}

#[derive(Clone, Debug)]
pub(super) struct FoundMessage {
    /// The message without its text.
    hit: Hit<'static>,
    /// The number of the message that `verbatim show` accepts.
    pub(super) number: Option<u32>,
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
    /// The number of the message.
    pub(super) number: Option<u32>,
    pub(super) marks: Arc<Marks>,
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
    /// Returns whether the results are the list without a filter.
    pub(super) fn is_all(&self) -> bool {
        self.is_list && self.filters.is_empty() && self.problem.is_none()
    }

    /// Returns the number of messages in the results.
    pub(super) fn messages(&self) -> usize {
        self.conversations.iter().map(|conversation| conversation.messages.len()).sum()
    }

    pub(super) fn target(&self, conversation: usize, message: Option<usize>) -> PickerTarget {
        let of = &self.conversations[conversation];
        let message = message.map(|place| &of.messages[place]);
        PickerTarget {
            source: of.source,
            id: of.id.clone(),
            message: message.map(|message| message.hit.clone()),
            number: message.and_then(|message| message.number),
            marks: Arc::clone(&self.marks),
        }
    }

    fn counted(&self) -> Count {
        let conversations = self.conversations.iter().filter(|it| !it.messages.is_empty()).count();
        let titles = self.conversations.len() - conversations;
        Count { messages: self.messages(), conversations, titles }
    }
}

/// Searches all sources as `verbatim search` does. Without a text, lists the newest conversations. A search
/// that was stopped sends nothing more.
pub(super) fn search(
    context: &PickerContext,
    asked: &Asked,
    stop: &Stop,
    send: &mut dyn FnMut(PickerFinding),
) {
    let mut send = |answer| {
        if !stop.requested() {
            send(answer);
        }
    };
    let clock = context.environment.clock(false);
    let search = OngoingSearch { engine: &context.engine, clock, stop };
    let found = map_faults::caught(|| {
        let typed = asked.resolve(search.engine, &context.environment, stop)?;
        search.answer(&typed, &mut send)
    });
    let problem = match found {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(panic) => format!("the search failed: {panic}"),
    };
    let problem = problem.trim_start_matches("error: ").trim_end();
    let problem = Some(clean(problem, false));
    send(PickerFinding::Found(Results { problem, ..Results::default() }));
}

/// A search that goes on.
struct OngoingSearch<'a> {
    engine: &'a Engine,
    clock: Clock,
    stop: &'a Stop,
}

impl OngoingSearch<'_> {
    fn answer(&self, typed: &TypedSearch, send: &mut dyn FnMut(PickerFinding)) -> Result<()> {
        let (filters, problem) = (typed.filters.clone(), typed.problem.clone());
        let mut results = Results { filters, problem, ..Results::default() };
        match typed.mode() {
            _ if typed.text.is_empty() => self.list(&typed.scope, &mut results)?,
            Some(mode) => self.rank(typed, mode, &mut results)?,
            None => self.find(&typed.args.request(), &typed.scope, &mut results)?,
        }
        if results.problem.is_none() {
            results.problem = self.unreadable();
        }
        results.problem = results.problem.map(|problem| clean(&problem, false));
        let is_exact = !results.is_list && !results.is_ranked;
        if is_exact && results.conversations.is_empty() {
            return self.read_otherwise(typed, results, send);
        }
        let is_in_cluster = matches!(self.engine.config().db, Some(StoreAddress::Cluster(_)));
        results.is_counting = results.count.is_none() && !is_in_cluster;
        let must_count = results.is_counting;
        send(PickerFinding::Found(results));
        if must_count {
            let request = typed.args.request();
            let count = self.engine.all_sources().count(&request, &typed.scope, self.stop);
            send(PickerFinding::Counted(count.ok().map(|(count, _)| count)));
        }
        Ok(())
    }

    /// Sends the results of the first other reading that finds something, if nothing was found.
    fn read_otherwise(
        &self,
        typed: &TypedSearch,
        mut results: Results,
        send: &mut dyn FnMut(PickerFinding),
    ) -> Result<()> {
        let request = typed.args.request();
        results.head = Some(sentence(&request, &[], typed.scope != Scope::default()));
        send(PickerFinding::Found(Results { is_first: true, ..results.clone() }));
        let search = ExactSearch::new(self.engine, request, typed.scope.clone(), self.stop)?;
        let NothingFound { sentence, readings, has_nearest } = search.nothing(1);
        let head = match readings.first() {
            None if has_nearest => format!("{sentence}; ^T finds the nearest by meaning"),
            None => sentence,
            Some(reading) => {
                self.find(&reading.request, &reading.scope, &mut results)?;
                results.count = Some(reading.count);
                format!("{sentence}; {}:", described(reading, quoted))
            }
        };
        results.head = Some(harmless(&head));
        send(PickerFinding::Found(results));
        Ok(())
    }

    /// Returns a message about the first source that cannot be read.
    fn unreadable(&self) -> Option<String> {
        let notes = self.engine.all_sources().problems(self.stop);
        let mut gaps = notes.iter().filter(|note| matches!(note, Note::Unreadable { .. }));
        gaps.next().map(ToString::to_string)
    }

    /// Adds the messages that match a request to `results`, the conversation with the newest match first.
    fn find(&self, request: &Request, scope: &Scope, results: &mut Results) -> Result<()> {
        let search = ExactSearch::new(self.engine, request.clone(), scope.clone(), self.stop)?;
        let render = |kind, hit: Hit<'_>| {
            let title = title(&hit.title, &search.marks);
            let message = FoundMessage::of(hit.lent(), &search.marks);
            let is_title_only = message.line.marks.is_empty() && search.is_title_only(&hit);
            Some((kind, title, message, is_title_only))
        };
        let (mut seen, mut shown) = (0, 0);
        let mut places = HashMap::new();
        let mut show = |(source, title, message, is_title_only): (_, _, FoundMessage, bool)| {
            seen += 1;
            let key = (source, message.hit.conversation_id.to_string());
            if is_title_only && places.contains_key(&key) {
                return ControlFlow::Continue(());
            }
            results.is_cut = shown == MOST_SHOWN || seen > MOST_SEEN;
            if results.is_cut {
                return ControlFlow::Break(());
            }
            shown += 1;
            self.add(results, &mut places, title, (source, message), is_title_only);
            ControlFlow::Continue(())
        };
        let make: Make<'_, _> = &render;
        let searched = search.each(None, make.into(), &mut show)?;
        if let Some(note) = searched.notes.first() {
            results.problem.get_or_insert(line(note, Audience::Person));
        }
        results.marks = Arc::new(search.marks);
        self.describe(results);
        results.count = (!results.is_cut).then(|| results.counted());
        Ok(())
    }

    fn add(
        &self,
        results: &mut Results,
        places: &mut HashMap<Key, usize>,
        title: MarkedText,
        (source, message): (SourceKind, FoundMessage),
        is_title_only: bool,
    ) {
        let id = message.hit.conversation_id.to_string();
        let found = &mut results.conversations;
        let place = *places.entry((source, id.clone())).or_insert_with(|| {
            found.push(FoundConversation {
                source,
                id,
                short_id: String::new(),
                place: source.name().to_owned(),
                title,
                time: self.clock.words(message.hit.time),
                messages: Vec::new(),
            });
            found.len() - 1
        });
        if !is_title_only {
            found[place].messages.push(message);
        }
    }

    /// Adds the places and short ids of conversations, and the numbers of messages.
    fn describe(&self, results: &mut Results) {
        let key = |it: &FoundConversation| (it.source, it.id.clone());
        let keys: Vec<Key> = results.conversations.iter().map(key).collect();
        // Without an answer, the names of the sources stay.
        let known = conversations(self.engine, &keys, self.stop).unwrap_or_default();
        for found in &mut results.conversations {
            let Some(conversation) = known.get(&key(found)) else { continue };
            found.place = place(conversation);
            found.short_id = harmless(&conversation.short_id);
            for message in &mut found.messages {
                message.number = conversation.number(&message.hit);
            }
            found.messages.sort_by_key(|message| message.number);
        }
    }

    /// Adds the messages that answer a question best to `results`.
    fn rank(&self, typed: &TypedSearch, mode: Mode, results: &mut Results) -> Result<()> {
        let question = typed.args.question(mode, typed.scope.clone());
        let ranking = RankedMessages::find(self.engine, &question, self.stop)?;
        let (gaps, about_words): (Vec<&Note>, Vec<&Note>) =
            ranking.notes.iter().partition(|note| note.is_gap());
        let gap = gaps.first().map(|note| line(note, Audience::Person));
        results.problem = results.problem.take().or(gap);
        let head: Vec<String> = match ranking.items.is_empty() {
            true => vec![no_answer(&question.concepts[0])],
            false => about_words.iter().map(ToString::to_string).collect(),
        };
        results.head = (!head.is_empty()).then(|| harmless(&head.join("; ").replace(":; ", "; ")));
        let marks = ranking.marks;
        let mut places = HashMap::new();
        let mut near = 0;
        for one in ranking.items {
            let is_far = one.is_far;
            let title = title(&one.hit.title, &marks);
            let hit = Hit { content: one.passage.into(), ..one.hit };
            let message = (one.source, FoundMessage::of(hit, &marks));
            self.add(results, &mut places, title, message, false);
            near = if is_far { near } else { results.conversations.len() };
        }
        self.describe(results);
        for found in &mut results.conversations[near..] {
            found.place = format!("further away, {}", found.place);
        }
        results.marks = Arc::new(marks);
        results.is_ranked = true;
        results.count = Some(results.counted());
        results.is_cut = !ranking.is_total_exact;
        Ok(())
    }

    /// Adds the newest conversations to `results`.
    fn list(&self, scope: &Scope, results: &mut Results) -> Result<()> {
        let sources = self.engine.all_sources();
        let page = sources.list(scope, 0..MOST_LISTED, ListOptions::BRIEF, self.stop)?;
        let ids: Vec<&str> = page.abouts.iter().map(|about| about.id.as_str()).collect();
        let short = self.engine.find(self.stop).short_ids(&ids)?;
        let described = listed(self.engine, &page.abouts, &short, self.stop)?;
        let found = page.abouts.iter().zip(described).map(|(about, described)| FoundConversation {
            source: about.source,
            id: about.id.clone(),
            short_id: harmless(&described.short_id),
            place: place(&described),
            title: title(&about.title, &Marks::None),
            time: self.clock.words(about.last),
            messages: Vec::new(),
        });
        results.conversations = found.collect();
        results.is_list = true;
        results.is_cut = page.total > results.conversations.len();
        results.count = Some(Count { conversations: page.total, ..Count::default() });
        let mut notes = page.notes.iter().filter(|note| note.is_gap());
        let gap = notes.next().map(|note| line(note, Audience::Person));
        results.problem = results.problem.take().or(gap);
        Ok(())
    }
}

/// Reads the messages around a target; `None` if the work was stopped or failed.
pub(super) fn preview(
    context: &PickerContext,
    target: &PickerTarget,
    stop: &Stop,
) -> Option<Preview> {
    let clock = context.environment.clock(false);
    read(&context.engine, target, stop, |messages, chosen| {
        let middle = chosen.unwrap_or(0);
        let end = messages.turns().min(middle + MESSAGES_AFTER + 1);
        let around = middle.saturating_sub(MESSAGES_BEFORE)..end;
        let messages = around.map(|turn| {
            let is_chosen = chosen == Some(turn);
            PreviewMessage::of(&messages.message(turn), &target.marks, is_chosen, clock)
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
    fn of(hit: Hit<'_>, marks: &Marks) -> FoundMessage {
        let line = line_of(&hit.content, marks);
        let role = role(&hit);
        let hit = Hit { content: Cow::Borrowed(""), ..hit }.into_owned();
        FoundMessage { hit, number: None, role, line }
    }
}

impl PreviewMessage {
    fn of(hit: &Hit<'_>, marks: &Marks, is_chosen: bool, clock: Clock) -> PreviewMessage {
        let content = &*hit.content;
        let (first, room) =
            if is_chosen { (marks.spans(content, 1).pop(), CHOSEN) } else { (None, OTHER) };
        let part = excerpt::part(content, first, room, characters);
        let shown = &content[part.range.clone()];
        let spans = marks.spans(shown, MOST_MARKS);
        let pieces = excerpt::pieces(shown, 0..shown.len(), &spans, false);
        let text = MarkedText::of(&part.framed(pieces));
        let time = hit.time.and_then(|time| clock.minute(time));
        let time = time.map_or_else(String::new, |time| format!(" · {time}"));
        let heading = format!("{}{time}", role(hit));
        PreviewMessage { heading, text, is_chosen }
    }
}

impl MarkedText {
    /// Returns the text of some pieces without characters that control a terminal, and its matches.
    pub(super) fn of(pieces: &[Piece]) -> MarkedText {
        let mut marked = MarkedText::default();
        for piece in pieces {
            let start = marked.text.len();
            marked.text += &clean(&piece.text, true);
            marked.marks.extend(piece.is_match.then_some(start..marked.text.len()));
        }
        marked
    }
}

fn title(title: &str, marks: &Marks) -> MarkedText {
    let title = match snippet::trim(title) {
        "" => UNTITLED,
        title => title,
    };
    line_of(title, marks)
}

/// Returns the part of a text around its first match, on one line.
fn line_of(text: &str, marks: &Marks) -> MarkedText {
    MarkedText::of(&excerpt::around(text, &marks.spans(text, 1), LINE, columns))
}

/// Returns a text without control characters; tabs and line breaks become spaces.
fn clean(text: &str, keeps_lines: bool) -> String {
    let text = harmless(&text.replace("\r\n", "\n").replace(['\t', '\r'], " "));
    if keeps_lines { text } else { text.replace('\n', " ") }
}

fn role(hit: &Hit<'_>) -> String {
    if hit.role.is_empty() { "unknown".to_owned() } else { clean(&hit.role, false) }
}

/// A thread that answers only the newest question. A new question stops the work on the question before it.
#[derive(Debug)]
pub(super) struct Worker<Q> {
    questions: mpsc::Sender<(u64, Q, Stop)>,
    stop: Stop,
    asked: u64,
}

impl<Q: Send + 'static> Worker<Q> {
    /// Starts a thread that sends the results of `work`, with the number of the question.
    pub(super) fn start<A: Send + 'static>(
        answers: mpsc::Sender<(u64, A)>,
        work: impl Fn(&Q, &Stop, &mut dyn FnMut(A)) + Send + 'static,
    ) -> io::Result<Worker<Q>> {
        let (questions, asked) = mpsc::channel::<(u64, Q, Stop)>();
        let run = move || {
            while let Ok(first) = asked.recv() {
                let (number, question, stop) = asked.try_iter().last().unwrap_or(first);
                // Sending fails only at the end of the program, when the questions end too.
                work(&question, &stop, &mut |answer| drop(answers.send((number, answer))));
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
    use super::{super::asked::LetterCase, *};
    use crate::test_export::TestExport;

    fn context(config: &verbatim_engine::Config) -> PickerContext {
        let engine = Arc::new(Engine::new(config.clone()));
        PickerContext { engine, environment: Environment::default() }
    }

    fn answers(context: &PickerContext, asked: &Asked, stop: &Stop) -> Vec<PickerFinding> {
        let mut answers = Vec::new();
        search(context, asked, stop, &mut |answer| answers.push(answer));
        answers
    }

    /// Returns the last results of a search.
    fn found_as(context: &PickerContext, asked: &Asked) -> Results {
        let found = answers(context, asked, &Stop::never()).into_iter().rev();
        let mut found = found.filter_map(|answer| match answer {
            PickerFinding::Found(results) => Some(results),
            PickerFinding::Counted(_) => None,
        });
        found.next().unwrap()
    }

    fn found(context: &PickerContext, text: &str) -> Results {
        found_as(context, &Asked { typed: text.to_owned(), ..Asked::default() })
    }

    fn marks(text: &str) -> Marks {
        let matching = verbatim_base::model::Matching::Literal;
        Marks::of(&Request { text: text.to_owned(), matching, ..Request::default() }).unwrap()
    }

    #[test]
    fn lines_are_cut_around_the_match_and_harmless() {
        fn line(content: &str, text: &str) -> String {
            let mut line = line_of(content, &marks(text));
            for mark in line.marks.into_iter().rev() {
                line.text.insert(mark.end, ']');
                line.text.insert(mark.start, '[');
            }
            line.text
        }
        assert_eq!(line("one\n\n  two Three\r\nfour", "three"), "one two [Three] four");
        assert_eq!(line("a\u{1b}[1mÉ\u{202e}", "é"), "a\u{FFFD}[1m[É]\u{FFFD}");
        let long = format!("{}needle{}", "é ".repeat(500), "日".repeat(500));
        let cut = line(&long, "NEEDLE");
        assert!(cut.starts_with("…é") && cut.contains("[needle]日"), "{cut}");
        assert!((390..=LINE.all + 2).contains(&columns(&cut)), "{cut}");
    }

    #[test]
    fn a_source_that_cannot_be_read_is_a_problem() {
        let export = TestExport::of(&[]);
        let broken = export.with_broken_export("red zeppelin");
        let config =
            verbatim_engine::Config { db: Some("/nowhere.db".into()), ..broken.config().clone() };
        for config in [broken.config(), &config] {
            let context = context(config);
            for text in ["", "zeppelin", "absent"] {
                let found = found(&context, text);
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
            let context = context(export.engine.config());
            let all = found(&context, " red ");
            let counts = all.conversations.iter().map(|c| (&*c.id, c.messages.len()));
            assert_eq!(counts.collect::<Vec<_>>(), [("2", 4), ("0", 1)]);
            assert!(!all.is_cut && all.problem.is_none());
            // In reading order, as `verbatim search` numbers them.
            let numbers = all.conversations[0].messages.iter().map(|message| message.number);
            assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3, 4].map(Some));
            let titles = found(&context, "title");
            let counts = titles.conversations.iter().map(|c| (&*c.id, c.messages.len()));
            assert_eq!(counts.collect::<Vec<_>>(), [("2", 0), ("1", 1), ("0", 0)]);
            assert_eq!(titles.conversations[1].title.marks.first(), Some(&(0..5)));
            let count = Count { messages: 1, conversations: 1, titles: 2 };
            assert_eq!(titles.count, Some(count));
            let all = found(&context, "  ");
            let ids: Vec<&str> = all.conversations.iter().map(|c| &*c.id).collect();
            assert_eq!(ids, ["2", "1", "0"]);
            let target = found(&context, "other").target(0, Some(0));
            let preview = preview(&context, &target, &Stop::never()).unwrap();
            assert_eq!(preview.messages.iter().position(|message| message.is_chosen), Some(0));
            assert_eq!(preview.messages.len(), 4);
            assert_eq!(text_of(&context.engine, &target).as_deref(), Some("other RED"));
        }
        let insert = "INSERT INTO messages VALUES ('many' || ?1, ?1 % 3, 'user', 'many title', ?1)";
        for number in 0..250 {
            export.connection.execute(insert, [number]).unwrap();
        }
        let context = context(export.engine.config());
        let many = Asked { typed: "many".to_owned(), ..Asked::default() };
        let all = answers(&context, &many, &Stop::never());
        let [PickerFinding::Found(shown), PickerFinding::Counted(Some(count))] = &all[..] else {
            panic!("{all:?}");
        };
        assert_eq!((shown.messages(), shown.is_cut, shown.count), (MOST_SHOWN, true, None));
        assert_eq!(*count, Count { messages: 250, conversations: 3, titles: 0 });
        let stop = Stop::never();
        stop.request();
        assert!(answers(&context, &many, &stop).is_empty());
    }

    #[test]
    fn another_reading_is_shown_by_itself_and_named() {
        let export = TestExport::indexed(&["the sun and a tomato", "Tomato soup", "café (noir)"]);
        let context = context(export.engine.config());
        for (text, head, id) in [
            (
                "tomato sun",
                "no message has \"tomato sun\" as one text; 1 message has both words:",
                "0",
            ),
            ("SUN", "no message has \"SUN\"; 1 message in any letter case:", "0"),
            ("cafe", "no message has \"cafe\"; 1 message with other accents or width:", "2"),
            ("caf.*noir", "no message has \"caf.*noir\"; 1 message as a regular expression:", "2"),
            ("\"soup\"", "no message has \"soup\"; 1 message without the quotation marks:", "1"),
        ] {
            let found = found(&context, text);
            assert_eq!(found.head.as_deref(), Some(head));
            assert_eq!(found.conversations.len(), 1, "{text}");
            assert_eq!(found.conversations[0].id, id, "{text}");
            assert!(!found.conversations[0].messages[0].line.marks.is_empty(), "{text}");
        }
        let none = found(&context, "zzz");
        let head = "no message has \"zzz\"";
        assert_eq!((none.head.as_deref(), none.conversations.len()), (Some(head), 0));
        // A capital letter makes the case matter, as in `verbatim search`.
        assert_eq!(found(&context, "Tomato").counted().messages, 1);
        assert_eq!(found(&context, "tomato").counted().messages, 2);
    }

    #[test]
    fn what_is_far_is_said_beside_its_title() {
        let texts = [
            "Sea turtles swim over the reef.",
            "The turtles of the reef eat grass.",
            "An aquarium shows fish and corals of the ocean.",
            "The invoice is due on Friday.",
            "Green soup with bread for dinner.",
        ];
        let export = TestExport::indexed(&texts);
        let context = context(export.engine.config());
        let typed = "turtles of the reef".to_owned();
        let asked = Asked { typed, is_ranked: true, ..Asked::default() };
        let far: Vec<bool> = found_as(&context, &asked)
            .conversations
            .iter()
            .map(|it| it.place.starts_with("further away, "))
            .collect();
        assert!(!far[0] && far.last() == Some(&true) && far.is_sorted(), "{far:?}");
    }

    #[test]
    fn keys_change_how_a_text_is_found() {
        let export = TestExport::indexed(&["the sun", "Sunday", "sunny", "a s.n"]);
        let context = context(export.engine.config());
        let asked = |text: &str| Asked { typed: text.to_owned(), ..Asked::default() };
        let count = |asked: Asked| found_as(&context, &asked).counted().messages;
        assert_eq!(count(asked("sun")), 3);
        assert_eq!(count(Asked { is_word: true, ..asked("sun") }), 1);
        assert_eq!(count(Asked { is_expression: true, ..asked("s.n\\b") }), 2);
        assert_eq!(count(Asked { case: LetterCase::Matters, ..asked("sun") }), 2);
        assert_eq!(count(Asked { case: LetterCase::Ignored, ..asked("SUN") }), 3);
        let ranked = found_as(&context, &Asked { is_ranked: true, ..asked("which sun") });
        assert!(ranked.is_ranked && ranked.conversations[0].id == "0", "{ranked:?}");
        assert_eq!(ranked.conversations[0].messages[0].number, Some(1));
        let wrong = found_as(&context, &Asked { is_expression: true, ..asked("s(") });
        assert!(wrong.problem.is_some(), "{wrong:?}");
    }

    #[test]
    fn typed_filters_hold_or_are_text() {
        let export = TestExport::indexed(&["red sun", "project:red sun", "red"]);
        let insert = "INSERT INTO messages VALUES ('a', 2, 'assistant', 'red answer', 1700000100)";
        export.connection.execute(insert, []).unwrap();
        let context = context(export.engine.config());
        let of = |text: &str| {
            let found = found(&context, text);
            (found.counted().messages, found.filters.join(" "), found.problem.is_some())
        };
        assert_eq!(of("red role:assistant"), (1, "role:assistant".to_owned(), false));
        assert_eq!(of("since:2023-01-01 red service:export").0, 4);
        // Without the filter, as its first line says.
        assert_eq!(of("until:2022 red"), (4, "until:2022".to_owned(), false));
        let project = found(&context, "project:red sun");
        assert_eq!(project.counted().messages, 1);
        let problem = project.problem.unwrap();
        assert!(problem.contains("project") && problem.ends_with("searched as text"), "{problem}");
        let role = found(&context, "red role:boss").problem.unwrap();
        assert!(role.contains("assistant") && role.contains("user"), "{role}");
        let list = found(&context, "role:assistant");
        assert!(list.is_list && list.conversations.len() == 1, "{list:?}");
    }

    #[test]
    fn a_worker_answers_the_newest_question() {
        let (answers, received) = mpsc::channel();
        let mut worker = Worker::start(answers, |wait: &bool, stop, send| {
            while *wait && !stop.requested() {
                thread::yield_now();
            }
            send(stop.requested());
        })
        .unwrap();
        worker.ask(true);
        worker.ask(true);
        worker.ask(false);
        let last = received.iter().find(|(number, _)| worker.is_newest(*number));
        assert_eq!(last, Some((3, false)));
    }
}
