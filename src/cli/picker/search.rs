//! The searches of the picker: finds messages, and reads the messages around a message.

use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};
use std::{io, thread};

use super::asked::{PickerContext, TypedText};
use crate::cli::error::Result;
use crate::cli::terminal::hit_lines::{HitLine, HitMarks, Page, facts};
use crate::cli::terminal::layout::{self, LineLayout};
use crate::cli::terminal::output::{harmless, role};
use verbatim_answer::conversation::{MessageKey, UNTITLED, conversations, listed, title_line};
use verbatim_answer::exact::{ExactSearch, Grouping, NothingFound};
use verbatim_answer::json_lines::Context;
use verbatim_answer::marks::Marks;
use verbatim_answer::notes::{Audience, line};
use verbatim_answer::nothing::{no_answer, sentence};
use verbatim_answer::ranked::RankedMessages;
use verbatim_answer::readings::{described, more_alike};
use verbatim_answer::typed::TypedQuery;
use verbatim_answer::words::quoted;
use verbatim_base::call::Call;
use verbatim_base::map_faults;
use verbatim_base::model::{Hit, Request};
use verbatim_engine::{
    ConversationKey as Key, Count, Engine, ListOptions, Make, Messages, Mode, Note, Scope,
    StoreAddress,
};
use verbatim_text::excerpt::{self, Piece, Room, characters};
use verbatim_text::snippet;

/// The maximum number of messages, and of conversations, in the results of an exact search.
const MOST_SHOWN: usize = 200;

/// The maximum number of hits that a search reads. If a conversation's title matches, all its messages are
/// hits.
const MOST_SEEN: usize = 20_000;

/// The maximum number of conversations in the list without a search text.
const MOST_LISTED: usize = 200;

/// The text of a found message on one line; a screen is narrower.
const LINE: usize = 400;

/// The number of messages after the chosen message in the preview.
const MESSAGES_AFTER: usize = 20;

/// The text of the chosen message in the preview, and of each other message, in characters. The preview begins a
/// few words before the match.
const PREVIEW: Room = Room { all: 4_000, before: 120, is_filled: false, is_one_line: false };

/// The maximum number of marked matches in a message.
const MOST_MARKS: usize = 1_000;

/// An answer of a thread. A search can have several, one after the other.
#[derive(Debug)]
pub(super) enum PickerAnswer {
    Found(Results),
    /// The total number of matches of the results, `None` if they could not be counted; and how many more have
    /// signs of equal look.
    Counted(Option<Count>, Option<String>),
    /// The preview; `None` if it could not be read.
    Read(Option<Preview>),
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
    /// How many more messages match if signs of equal look do.
    pub(super) more_alike: Option<String>,
    /// Whether further results for the same text follow.
    pub(super) is_first: bool,
    /// Whether a [`PickerAnswer::Counted`] follows.
    pub(super) is_counting: bool,
    /// An error of a source that could not be searched, or of what was typed.
    pub(super) problem: Option<String>,
}

/// A conversation with the messages whose texts match. It has none in the list of all conversations, and if
/// only its title matches.
#[derive(Clone, Debug)]
pub(super) struct FoundConversation {
    pub(super) key: Key,
    pub(super) title: Vec<Piece>,
    /// The service with the project, the time and the short id.
    pub(super) facts: [String; 3],
    /// In reading order.
    pub(super) messages: Vec<FoundMessage>,
}

#[derive(Clone, Debug)]
pub(super) struct FoundMessage {
    key: MessageKey,
    /// The number of the message that `verbatim show` accepts.
    pub(super) number: Option<u32>,
    pub(super) role: String,
    pub(super) text: Vec<Piece>,
    is_far: bool,
}

/// The conversation, and maybe the message, to which a key applies.
#[derive(Clone, Debug)]
pub(super) struct PickerTarget {
    pub(super) key: Key,
    message: Option<MessageKey>,
    pub(super) number: Option<u32>,
    pub(super) marks: Arc<Marks>,
}

/// The chosen message from before its match on, and the messages after it.
pub(super) type Preview = Vec<PreviewMessage>;

#[derive(Clone, Debug)]
pub(super) struct PreviewMessage {
    pub(super) heading: String,
    pub(super) text: Vec<Piece>,
    pub(super) is_chosen: bool,
}

impl Results {
    /// Returns whether the results are the list without a filter.
    pub(super) fn is_all(&self) -> bool {
        self.is_list && self.filters.is_empty() && self.problem.is_none()
    }

    pub(super) fn messages(&self) -> usize {
        self.conversations.iter().map(|conversation| conversation.messages.len()).sum()
    }

    pub(super) fn target(&self, conversation: usize, message: Option<usize>) -> PickerTarget {
        let of = &self.conversations[conversation];
        let message = message.map(|place| &of.messages[place]);
        PickerTarget {
            key: of.key.clone(),
            message: message.map(|message| message.key.clone()),
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
    asked: &TypedText,
    call: &Call,
    send: &mut dyn FnMut(PickerAnswer),
) {
    let send: &mut dyn FnMut(PickerAnswer) = &mut |answer| {
        if !call.stop.requested() {
            send(answer);
        }
    };
    let found = map_faults::caught(|| {
        let typed = asked.read(context, call).map_err(|error| error.to_string())?;
        let search = OngoingSearch { page: context.page(), call };
        search.answer(&typed, send).map_err(|error| error.to_string())
    });
    let problem = match found {
        Ok(Ok(())) => return,
        Ok(Err(problem)) => problem,
        Err(panic) => format!("the search failed: {panic}"),
    };
    let problem = Some(without_controls(problem.trim_end()).replace('\n', " "));
    send(PickerAnswer::Found(Results { problem, ..Results::default() }));
}

impl PickerContext {
    fn page(&self) -> Page<'_> {
        let layout = LineLayout { columns: LINE, is_cut: true, colours: false, links: false };
        Page {
            engine: &self.engine,
            layout,
            clock: self.environment.clock(),
            context: Context::default(),
        }
    }
}

struct OngoingSearch<'a> {
    page: Page<'a>,
    call: &'a Call,
}

impl OngoingSearch<'_> {
    fn answer(&self, typed: &TypedQuery, send: &mut dyn FnMut(PickerAnswer)) -> Result<()> {
        let engine = self.page.engine;
        let filters = typed.filters.clone();
        let mut results = Results { filters, problem: typed.problem.clone(), ..Results::default() };
        if typed.asked.text.is_empty() {
            self.list(&typed.scope, &mut results)?;
        } else if let Some(mode) = typed.asked.mode {
            self.rank(typed, mode, &mut results)?;
        } else {
            self.find(&typed.asked.request(), &typed.scope, &mut results)?;
        }
        if results.problem.is_none() {
            let notes = engine.all_sources().problems(self.call);
            let unreadable = notes.iter().find(|note| matches!(note, Note::Unreadable { .. }));
            results.problem = unreadable.map(ToString::to_string);
        }
        results.problem =
            results.problem.map(|problem| without_controls(&problem).replace('\n', " "));
        let is_exact = !results.is_list && !results.is_ranked;
        if is_exact && results.conversations.is_empty() {
            return self.read_otherwise(typed, results, send);
        }
        let is_in_cluster = matches!(engine.config().db, Some(StoreAddress::Cluster(_)));
        results.is_counting = (is_exact || results.count.is_none()) && !is_in_cluster;
        let is_counting = results.is_counting;
        let mut count = results.count;
        send(PickerAnswer::Found(results));
        if is_counting {
            let request = &typed.asked.request();
            if count.is_none() {
                let counted = engine.all_sources().count(request, &typed.scope, self.call);
                count = counted.ok().map(|(count, _)| count);
            }
            let more = engine.more_alike(request, &typed.scope, self.call).filter(|_| is_exact);
            let more = more.map(|more| format!("{}: search --fold", more_alike(&more)));
            send(PickerAnswer::Counted(count, more));
        }
        Ok(())
    }

    /// Sends the results of the first other reading that finds something, if nothing was found.
    fn read_otherwise(
        &self,
        typed: &TypedQuery,
        mut results: Results,
        send: &mut dyn FnMut(PickerAnswer),
    ) -> Result<()> {
        let request = typed.asked.request();
        results.head = Some(harmless(&sentence(&request, &[], typed.scope != Scope::default())));
        send(PickerAnswer::Found(Results { is_first: true, ..results.clone() }));
        let search = ExactSearch::new(self.page.engine, request, typed.scope.clone(), self.call)?;
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
        send(PickerAnswer::Found(results));
        Ok(())
    }

    /// Adds the messages that match a request to `results`, the conversation with the newest match first.
    fn find(&self, request: &Request, scope: &Scope, results: &mut Results) -> Result<()> {
        let engine = self.page.engine;
        let search = ExactSearch::new(engine, request.clone(), scope.clone(), self.call)?;
        let marks = HitMarks { marks: &search.marks, most: MOST_MARKS };
        let make: Make<'_, _> =
            &|kind, hit: Hit<'_>| Some(HitLine::new(kind, &hit, self.page.layout, marks));
        let mut grouping = Grouping::default();
        let mut seen = 0;
        let searched = search.each(None, make.into(), &mut |line: HitLine| {
            seen += 1;
            let shown = grouping.messages().max(grouping.conversations.len());
            results.is_cut = shown == MOST_SHOWN || seen > MOST_SEEN;
            if results.is_cut {
                return ControlFlow::Break(());
            }
            add(&mut grouping, line, false);
            ControlFlow::Continue(())
        })?;
        if let Some(note) = searched.notes.first() {
            results.problem.get_or_insert(line(note, Audience::Person));
        }
        results.marks = Arc::new(search.marks);
        self.describe(grouping, results);
        results.count = (!results.is_cut).then(|| results.counted());
        Ok(())
    }

    /// Adds conversations to `results`, with their facts and the numbers of their messages.
    fn describe(&self, grouping: Grouping<FoundMessage>, results: &mut Results) {
        let keys: Vec<Key> = grouping.conversations.iter().map(|it| it.key.clone()).collect();
        // Without an answer, the names of the sources stay.
        let known = conversations(self.page.engine, &keys, self.call).unwrap_or_default();
        for group in grouping.conversations {
            let key = group.key;
            let mut messages = group.kept;
            let time = self.page.clock.words(group.time);
            let mut facts = match known.get(&key) {
                Some(conversation) => facts(conversation, &self.page, group.time),
                None => [key.0.name().to_owned(), time, String::new()],
            };
            if messages.iter().any(|message| message.is_far) {
                facts[0] = format!("further away, {}", facts[0]);
            }
            if let Some(conversation) = known.get(&key) {
                for message in &mut messages {
                    message.number = conversation.number(&message.key.hit(&key.1));
                }
            }
            messages.sort_by_key(|message| message.number);
            let title = group.title;
            results.conversations.push(FoundConversation { key, title, facts, messages });
        }
    }

    /// Adds the messages that answer a question best to `results`.
    fn rank(&self, typed: &TypedQuery, mode: Mode, results: &mut Results) -> Result<()> {
        let question = typed.asked.question(mode, typed.scope.clone());
        let ranking = RankedMessages::find(self.page.engine, &question, self.call)?;
        let (gaps, about_words): (Vec<&Note>, Vec<&Note>) =
            ranking.notes.iter().partition(|note| note.is_gap());
        let gap = gaps.first().map(|note| line(note, Audience::Person));
        results.problem = results.problem.take().or(gap);
        let head = if ranking.items.is_empty() {
            no_answer(&typed.asked.text)
        } else {
            let notes: Vec<String> = about_words.iter().map(ToString::to_string).collect();
            notes.join("; ").replace(":; ", "; ")
        };
        results.head = Some(harmless(&head)).filter(|head| !head.is_empty());
        let mut grouping = Grouping::default();
        for one in ranking.items {
            let hit = Hit { content: one.passage.into(), ..one.hit };
            let marks = HitMarks { marks: &ranking.marks, most: MOST_MARKS };
            let mut line = HitLine::new(one.source, &hit, self.page.layout, marks);
            // A ranked message is shown even if only its title has words of the question.
            line.text.get_or_insert_with(|| layout::excerpt(&hit.content, &[], LINE));
            add(&mut grouping, line, one.is_far);
        }
        self.describe(grouping, results);
        results.marks = Arc::new(ranking.marks);
        results.is_ranked = true;
        results.count = Some(results.counted());
        results.is_cut = !ranking.is_total_exact;
        Ok(())
    }

    /// Adds the newest conversations to `results`.
    fn list(&self, scope: &Scope, results: &mut Results) -> Result<()> {
        let engine = self.page.engine;
        let sources = engine.all_sources();
        let page = sources.list(scope, 0..MOST_LISTED, ListOptions::BRIEF, self.call)?;
        let ids: Vec<&str> = page.abouts.iter().map(|about| about.id.as_str()).collect();
        let short = engine.find(self.call).short_ids(&ids)?;
        let described = listed(engine, &page.abouts, &short, self.call)?;
        for (about, described) in page.abouts.iter().zip(described) {
            let title = match snippet::trim(&about.title) {
                "" => UNTITLED.to_owned(),
                title => harmless(&title_line(title)),
            };
            results.conversations.push(FoundConversation {
                key: (about.source, about.id.clone()),
                title: vec![Piece::plain(&title)],
                facts: facts(&described, &self.page, about.last),
                messages: Vec::new(),
            });
        }
        results.is_list = true;
        results.is_cut = page.total > results.conversations.len();
        results.count = Some(Count { conversations: page.total, ..Count::default() });
        let mut notes = page.notes.iter().filter(|note| note.is_gap());
        let gap = notes.next().map(|note| line(note, Audience::Person));
        results.problem = results.problem.take().or(gap);
        Ok(())
    }
}

fn add(grouping: &mut Grouping<FoundMessage>, line: HitLine, is_far: bool) {
    let HitLine { key, message, title, role, text } = line;
    let place = grouping.add(key, title, message.time(), text.is_none());
    if let Some(text) = text {
        let message = FoundMessage { key: message, number: None, role, text, is_far };
        grouping.conversations[place].kept.push(message);
    }
}

/// Reads a target's message and the messages after it; `None` if the work was stopped or failed.
pub(super) fn preview(
    context: &PickerContext,
    target: &PickerTarget,
    call: &Call,
) -> Option<Preview> {
    let page = context.page();
    read(&context.engine, target, call, |messages, chosen| {
        let first = chosen.unwrap_or(0);
        let end = messages.turns().min(first + MESSAGES_AFTER + 1);
        (first..end)
            .map(|turn| {
                let is_chosen = chosen == Some(turn);
                PreviewMessage::of(&messages.message(turn), &target.marks, is_chosen, page)
            })
            .collect()
    })
}

/// Returns the whole text of the target's message, or of the first message if no message is chosen.
pub(super) fn text_of(engine: &Engine, target: &PickerTarget) -> Option<String> {
    read(engine, target, &Call::default(), |messages, chosen| {
        messages.message(chosen.unwrap_or(0)).content.into_owned()
    })
}

/// Runs `work` on the messages of a target's conversation and the number of the target's message. Returns
/// `None` if they cannot be read.
fn read<T>(
    engine: &Engine,
    target: &PickerTarget,
    call: &Call,
    work: impl Fn(&dyn Messages, Option<usize>) -> T,
) -> Option<T> {
    let read = map_faults::sound(|| {
        let (kind, id) = &target.key;
        let source = engine.sources().into_iter().find(|source| source.kind == *kind)?;
        let messages = source.reader(call).read(id, false, call).ok().flatten()?;
        let chosen = target.message.as_ref().and_then(|message| messages.turn_of(&message.hit(id)));
        Some(work(&*messages, chosen))
    });
    read.ok().flatten().filter(|_| !call.stop.requested())
}

impl PreviewMessage {
    fn of(hit: &Hit<'_>, marks: &Marks, is_chosen: bool, page: Page<'_>) -> PreviewMessage {
        let content = hit.content.trim_end();
        let first = if is_chosen { marks.spans(content, 1).pop() } else { None };
        let part = excerpt::part(content, first, PREVIEW, characters);
        let shown = &content[part.range.clone()];
        let spans = marks.spans(shown, MOST_MARKS);
        let mut text = part.framed(excerpt::pieces(shown, 0..shown.len(), &spans, false));
        for piece in &mut text {
            piece.text = without_controls(&piece.text);
        }
        let time = hit.time.and_then(|time| page.clock.minute(time));
        let time = time.map_or_else(String::new, |time| format!(" · {time}"));
        let heading = format!("{}{time}", role(hit));
        PreviewMessage { heading, text, is_chosen }
    }
}

/// Returns a text without control characters other than line breaks.
fn without_controls(text: &str) -> String {
    harmless(&text.replace("\r\n", "\n").replace(['\t', '\r'], " "))
}

/// A thread that answers only the newest question. A new question stops the work on the question before it.
#[derive(Debug)]
pub(super) struct Worker<Q> {
    questions: mpsc::Sender<(u64, Q, Call)>,
    call: Call,
    asked: u64,
}

impl<Q: Send + 'static> Worker<Q> {
    /// Starts a thread that sends the results of `work`, with the number of the question.
    pub(super) fn start<A: Send + 'static>(
        answers: mpsc::Sender<(u64, A)>,
        work: impl Fn(&Q, &Call, &mut dyn FnMut(A)) + Send + 'static,
    ) -> io::Result<Worker<Q>> {
        let (questions, asked) = mpsc::channel::<(u64, Q, Call)>();
        thread::Builder::new().name("picker".to_owned()).spawn(move || {
            while let Ok(first) = asked.recv() {
                let (number, question, call) = asked.try_iter().last().unwrap_or(first);
                // Sending fails only at the end of the program, when the questions end too.
                work(&question, &call, &mut |answer| drop(answers.send((number, answer))));
            }
        })?;
        Ok(Worker { questions, call: Call::default(), asked: 0 })
    }

    /// Asks a question, and stops the work on the question before it.
    pub(super) fn ask(&mut self, question: Q) {
        self.call.stop.request();
        self.call = Call::default();
        self.asked += 1;
        // Sending fails only if the thread ended, at the end of the program.
        let _ = self.questions.send((self.asked, question, self.call.clone()));
    }

    pub(super) fn is_newest(&self, number: u64) -> bool {
        self.asked == number
    }
}

impl<Q> Drop for Worker<Q> {
    fn drop(&mut self) {
        self.call.stop.request();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::settings::environment::Environment;
    use crate::test_export::TestExport;

    fn context(config: &verbatim_engine::Config) -> PickerContext {
        let engine = Arc::new(Engine::new(config.clone()));
        PickerContext { engine, environment: Environment::default() }
    }

    fn answers(context: &PickerContext, asked: &TypedText, call: &Call) -> Vec<PickerAnswer> {
        let mut answers = Vec::new();
        search(context, asked, call, &mut |answer| answers.push(answer));
        answers
    }

    /// Returns the last results of a search.
    fn results_of(context: &PickerContext, asked: &TypedText) -> Results {
        let found = answers(context, asked, &Call::default()).into_iter().rev();
        let mut found = found.filter_map(|answer| match answer {
            PickerAnswer::Found(results) => Some(results),
            PickerAnswer::Counted(..) | PickerAnswer::Read(_) => None,
        });
        found.next().unwrap()
    }

    fn found(context: &PickerContext, text: &str) -> Results {
        results_of(context, &TypedText { typed: text.to_owned(), ..TypedText::default() })
    }

    /// Returns the text of pieces, with the matches in brackets.
    fn marked(pieces: &[Piece]) -> String {
        let marked = pieces.iter().map(|piece| {
            if piece.is_match { format!("[{}]", piece.text) } else { piece.text.clone() }
        });
        marked.collect()
    }

    #[test]
    fn the_preview_begins_before_the_match_and_is_harmless() {
        let long = format!("{}\nsee the needle\t\r\n{}", "é ".repeat(500), "日".repeat(5_000));
        let export = TestExport::indexed(&[&long, "a\u{1b}[1mÉ\u{202e} needle"]);
        let insert = "INSERT INTO messages VALUES ('n', 0, 'a\u{1b}b', 'next', 1800000000)";
        export.connection.execute(insert, []).unwrap();
        let context = context(export.engine.config());
        let of = |text: &str, conversation: usize| {
            let target = found(&context, text).target(conversation, Some(0));
            preview(&context, &target, &Call::default()).unwrap()
        };
        let [first, next] = &of("NEEDLE".to_lowercase().as_str(), 1)[..] else { panic!() };
        let text = marked(&first.text);
        let start = text.split_once("see the [needle] \n日").unwrap().0;
        assert!(
            first.is_chosen && start.starts_with("…é ") && start.chars().count() < 125,
            "{start}"
        );
        // The line break after the needle took two characters.
        assert!((3_900..=PREVIEW.all + 2).contains(&text.chars().count()), "{text}");
        assert_eq!((marked(&next.text).as_str(), next.is_chosen), ("next", false));
        assert!(next.heading.starts_with("a\u{FFFD}b"), "{}", next.heading);
        let other = of("needle", 0);
        assert_eq!(marked(&other[0].text), "a\u{FFFD}[1mÉ\u{FFFD} [needle]");
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
            let counts = all.conversations.iter().map(|c| (&*c.key.1, c.messages.len()));
            assert_eq!(counts.collect::<Vec<_>>(), [("2", 4), ("0", 1)]);
            assert!(!all.is_cut && all.problem.is_none());
            // In reading order, as `verbatim search` numbers them.
            let numbers = all.conversations[0].messages.iter().map(|message| message.number);
            assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3, 4].map(Some));
            let titles = found(&context, "title");
            let counts = titles.conversations.iter().map(|c| (&*c.key.1, c.messages.len()));
            assert_eq!(counts.collect::<Vec<_>>(), [("2", 0), ("1", 1), ("0", 0)]);
            assert_eq!(marked(&titles.conversations[1].title), "[Title] 1");
            let count = Count { messages: 1, conversations: 1, titles: 2 };
            assert_eq!(titles.count, Some(count));
            let all = found(&context, "  ");
            let ids: Vec<&str> = all.conversations.iter().map(|c| &*c.key.1).collect();
            assert_eq!(ids, ["2", "1", "0"]);
            let target = found(&context, "other").target(0, Some(0));
            let preview = preview(&context, &target, &Call::default()).unwrap();
            assert_eq!(preview.iter().position(|message| message.is_chosen), Some(0));
            assert_eq!(preview.len(), 4);
            assert_eq!(text_of(&context.engine, &target).as_deref(), Some("other RED"));
        }
        let insert = "INSERT INTO messages VALUES ('many' || ?1, ?1 % 3, 'user', 'many title', ?1)";
        for number in 0..250 {
            export.connection.execute(insert, [number]).unwrap();
        }
        let context = context(export.engine.config());
        let many = TypedText { typed: "many".to_owned(), ..TypedText::default() };
        let all = answers(&context, &many, &Call::default());
        let [PickerAnswer::Found(shown), PickerAnswer::Counted(Some(count), None)] = &all[..]
        else {
            panic!("{all:?}");
        };
        assert_eq!((shown.messages(), shown.is_cut, shown.count), (MOST_SHOWN, true, None));
        assert_eq!(*count, Count { messages: 250, conversations: 3, titles: 0 });
        let insert = "INSERT INTO messages VALUES (?1, 1, 'user', ?1, 1700000300)";
        export.connection.execute(insert, ["I don't"]).unwrap();
        export.connection.execute(insert, ["I don’t"]).unwrap();
        let alike = TypedText { typed: "don't".to_owned(), ..TypedText::default() };
        let all = answers(&context, &alike, &Call::default());
        let Some(PickerAnswer::Counted(Some(count), Some(more))) = all.last() else {
            panic!("{all:?}");
        };
        assert_eq!((count.messages, &**more), (1, "1 more message with ’: search --fold"));
        let call = Call::default();
        call.stop.request();
        assert!(answers(&context, &many, &call).is_empty());
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
            ("cafe", "no message has \"cafe\"; 1 message with other accents, width or signs:", "2"),
            ("caf.*noir", "no message has \"caf.*noir\"; 1 message as a regular expression:", "2"),
        ] {
            let found = found(&context, text);
            assert_eq!(found.head.as_deref(), Some(head));
            assert_eq!(found.conversations.len(), 1, "{text}");
            assert_eq!(found.conversations[0].key.1, id, "{text}");
            assert!(
                found.conversations[0].messages[0].text.iter().any(|piece| piece.is_match),
                "{text}"
            );
        }
        assert_eq!(found(&context, "\"soup\"").counted().messages, 1);
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
        let asked = TypedText { typed, is_ranked: true };
        let far: Vec<bool> = results_of(&context, &asked)
            .conversations
            .iter()
            .map(|it| it.facts[0].starts_with("further away, "))
            .collect();
        assert!(!far[0] && far.last() == Some(&true) && far.is_sorted(), "{far:?}");
    }

    #[test]
    fn a_question_finds_the_best() {
        let export = TestExport::indexed(&["the sun", "Sunday", "sunny", "a s.n"]);
        let context = context(export.engine.config());
        assert_eq!(found(&context, "sun").counted().messages, 3);
        let asked = TypedText { typed: "which sun".to_owned(), is_ranked: true };
        let ranked = results_of(&context, &asked);
        assert!(ranked.is_ranked && ranked.conversations[0].key.1 == "0", "{ranked:?}");
        assert_eq!(ranked.conversations[0].messages[0].number, Some(1));
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
        let mut worker = Worker::start(answers, |wait: &bool, call, send| {
            while *wait && !call.stop.requested() {
                thread::yield_now();
            }
            send(call.stop.requested());
        })
        .unwrap();
        worker.ask(true);
        worker.ask(true);
        worker.ask(false);
        let last = received.iter().find(|(number, _)| worker.is_newest(*number));
        assert_eq!(last, Some((3, false)));
    }
}
