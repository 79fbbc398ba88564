//! The promises to a sink: no hit after it broke off, nothing shown unconfirmed, nothing twice, and
//! an end when a stop is requested.

use std::{collections::HashSet, ops::ControlFlow, sync::Arc};

use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Request};
use verbatim_engine::{ConversationIds, Error, Reader, Scope, SearchPlan, Sink, SourceKind};

use crate::database::{Database, Message, Schema};
use crate::oracle::Oracle;
use crate::{Damage, reindex, subjects_of};

const MESSAGES: usize = 1_200;

fn database() -> Database {
    let messages: Vec<Message> = (0..MESSAGES)
        .map(|n| Message {
            conversation: n % 2,
            time: n % 13,
            position: Some(n as i64),
            ..Message::stored(format!("the thing {n}").as_str())
        })
        .collect();
    Database::of(Schema::Typed, &["a".into(), "b".into()], &messages)
}

fn request() -> Request {
    Request { text: "thing".to_owned(), ..Request::default() }
}

/// Records the calls of a search, and fails when a promise is broken.
struct Recorder<'a> {
    /// Called with the number of hits taken so far.
    on_take: &'a mut dyn FnMut(usize),
    /// The number of shown hits after which the sink breaks off.
    wanted: usize,
    /// The conversation whose hits are wanted; `None` for all.
    only: Option<&'static str>,
    taken: usize,
    held: Vec<Hit<'static>>,
    shown: Vec<Hit<'static>>,
    discarded: usize,
    is_over: bool,
}

impl<'a> Recorder<'a> {
    fn new(wanted: usize, on_take: &'a mut dyn FnMut(usize)) -> Recorder<'a> {
        let (held, shown) = (Vec::new(), Vec::new());
        let (only, taken, discarded, is_over) = (None, 0, 0, false);
        Recorder { on_take, wanted, only, taken, held, shown, discarded, is_over }
    }
}

impl Sink for Recorder<'_> {
    fn push(&mut self, hit: Hit<'_>) {
        assert!(!self.is_over, "a hit after the sink broke off");
        self.taken += 1;
        if self.only.is_none_or(|only| only == hit.conversation_id) {
            self.held.push(hit.into_owned());
        }
        (self.on_take)(self.taken);
    }

    fn only(&self) -> Option<Arc<ConversationIds>> {
        let ids = HashSet::from([self.only?.to_owned()]);
        Some(Arc::new(SourceKind::ALL.map(|kind| (kind, ids.clone())).into()))
    }

    fn confirm(&mut self, _: &Call) -> ControlFlow<()> {
        assert!(!self.is_over, "a confirmation after the sink broke off");
        self.shown.append(&mut self.held);
        self.is_over = self.shown.len() >= self.wanted;
        if self.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn discard(&mut self) {
        self.discarded += self.held.len();
        self.held.clear();
    }
}

#[test]
fn a_sink_that_breaks_off_gets_no_more() {
    let database = database();
    let expected = Oracle::of(&database).search(&request());
    for subject in subjects_of(&database) {
        let reader = subject.open(&database);
        for wanted in [1, 300, 700, MESSAGES, usize::MAX] {
            let mut on_take = |_| ();
            let mut sink = Recorder::new(wanted, &mut on_take);
            reader.search(&request(), &Call::default(), &mut sink).expect("an answer");
            let name = subject.name();
            assert!(sink.held.is_empty(), "{name} left {} hits unconfirmed", sink.held.len());
            assert!(sink.shown.len() >= wanted.min(MESSAGES), "{name}: {}", sink.shown.len());
            assert_eq!(sink.shown, expected[..sink.shown.len()], "{name}");
            // A reader may pass on some hits before the next confirmation, but not all hits.
            assert!(wanted > 700 || sink.taken < MESSAGES, "{name} took {}", sink.taken);
        }
    }
}

#[test]
fn nothing_is_shown_of_files_that_were_damaged() {
    for subject in subjects_of(&database()) {
        let damages = [Damage::Bytes, Damage::Texts];
        for (at, damage) in [1, 300].into_iter().flat_map(|at| damages.map(|it| (at, it))) {
            let database = database();
            let expected = Oracle::of(&database).search(&request());
            let reader = subject.open(&database);
            let mut is_damaged = false;
            let mut on_take = |taken| {
                if taken == at {
                    is_damaged = subject.damage(&database, damage);
                }
            };
            let mut sink = Recorder::new(usize::MAX, &mut on_take);
            let answer = reader.search(&request(), &Call::default(), &mut sink);
            let Recorder { shown, held, .. } = sink;
            let name = subject.name();
            assert!(held.is_empty(), "{name} left hits that are neither confirmed nor discarded");
            assert_eq!(shown, expected[..shown.len()], "{name}");
            match answer {
                Ok(_) => assert_eq!(shown.len(), expected.len(), "{name}"),
                Err(error) => {
                    assert!(is_damaged && !error.is_stopped(), "{name}: {error}");
                    assert!(
                        shown.len() < at,
                        "{name} showed {} hits, damaged at {at}",
                        shown.len()
                    );
                }
            }
        }
    }
}

/// `Source` lets `LIKE` go on where an index fails: no hit is missing or shown twice.
#[test]
fn like_goes_on_where_an_index_fails() {
    for subject in subjects_of(&database()) {
        let damages = [
            (1, Damage::Bytes, None),
            (300, Damage::Texts, None),
            (300, Damage::Texts, Some("b")),
            (900, Damage::Bytes, None),
        ];
        for (at, damage, only) in damages {
            let database = database();
            let mut expected = Oracle::of(&database).search(&request());
            expected.retain(|hit| only.is_none_or(|only| only == hit.conversation_id));
            let source = database.source();
            reindex(&source);
            let mut on_take = |taken| {
                if taken == at {
                    subject.damage(&database, damage);
                }
            };
            let mut sink = Recorder { only, ..Recorder::new(usize::MAX, &mut on_take) };
            let plan = source.search(&request(), &Call::default(), &mut sink).expect("an answer");
            assert_eq!(sink.shown, expected);
            let is_by_index = matches!(plan, SearchPlan::ByIndex { .. });
            assert_eq!(is_by_index, sink.discarded == 0, "{plan:?}");
        }
    }
}

#[track_caller]
fn assert_stopped<T>(answer: Result<T, Error>, name: &str) {
    match answer {
        Ok(_) => panic!("{name} went on after the stop"),
        Err(error) => assert!(error.is_stopped(), "{name}: {error}"),
    }
}

#[test]
fn a_stop_that_was_requested_before_ends_a_search() {
    let database = database();
    for subject in subjects_of(&database) {
        let reader = subject.open(&database);
        for text in ["thing", "no such thing", "%", ""] {
            let call = Call::default();
            call.stop.request();
            let request = Request { text: text.to_owned(), ..Request::default() };
            let mut on_take = |_| ();
            let mut sink = Recorder::new(usize::MAX, &mut on_take);
            let answer = reader.search(&request, &call, &mut sink);
            assert_stopped(answer, subject.name());
        }
    }
}

#[test]
fn a_stop_during_a_search_ends_it() {
    let database = database();
    let expected = Oracle::of(&database).search(&request());
    for subject in subjects_of(&database) {
        let reader = subject.open(&database);
        for at in [1, 256, 300, 600] {
            let call = Call::default();
            let mut on_take = |taken| {
                if taken == at {
                    call.stop.request();
                }
            };
            let mut sink = Recorder::new(usize::MAX, &mut on_take);
            let answer = reader.search(&request(), &call, &mut sink);
            assert_stopped(answer, subject.name());
            assert!(sink.taken < at + 300, "{}: {} hits", subject.name(), sink.taken);
            assert_eq!(sink.shown, expected[..sink.shown.len()], "{}", subject.name());
        }
    }
}

/// Every other question either ends with the error of a stop or is answered in full.
#[test]
fn a_stop_ends_the_other_questions() {
    let database = database();
    for subject in subjects_of(&database) {
        let reader: &dyn Reader = &*subject.open(&database);
        let (before, call) = (Call::default(), Call::default());
        call.stop.request();
        let scope = Scope::default();
        let name = subject.name();
        match reader.list(&scope, &call) {
            Ok(listing) => assert_eq!(listing.len(), 2, "{name}"),
            Err(error) => assert!(error.is_stopped(), "{name}: {error}"),
        }
        match reader.read("c0", false, &call) {
            Ok(messages) => assert_eq!(messages.expect("c0").turns(), MESSAGES / 2, "{name}"),
            Err(error) => assert!(error.is_stopped(), "{name}: {error}"),
        }
        let count = |call: &Call| reader.count(&scope, &Instant::day, call);
        match count(&call) {
            Ok(counts) => assert_eq!(counts, count(&before).expect("counts"), "{name}"),
            Err(error) => assert!(error.is_stopped(), "{name}: {error}"),
        }
        match reader.span(&call) {
            Ok(span) => assert_eq!(span, reader.span(&before).expect("a span"), "{name}"),
            Err(error) => assert!(error.is_stopped(), "{name}: {error}"),
        }
    }
}
