//! The interface between the suite and a subject.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Request};
use verbatim_engine::{
    ConversationIds, Reader, Reindex, Rendered, SearchPlan, Sink, Source, SourceKind,
};
use verbatim_index::Resources;

use crate::{SHARE, database::Database, oracle::Oracle, subjects_of};

/// The memory and threads of an index in these tests.
pub(crate) const RESOURCES: Resources = Resources { memory: 64 << 20, threads: 1 };

/// The damage to files that are being read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    /// Every byte changes.
    Bytes,
    /// The texts change and the structure stays whole, so that only a check of the files notices the damage.
    Texts,
}

/// A kind of reader under test.
pub(crate) trait Subject: Sync {
    /// The name in messages.
    fn name(&self) -> &'static str;

    /// Returns a reader of the state that the database is in now.
    fn open(&self, database: &Database) -> Arc<dyn Reader>;

    /// Makes everything that ranking needs, and opens a reader as [`Subject::open`] does.
    fn open_to_rank(&self, database: &Database) -> Arc<dyn Reader> {
        self.open(database)
    }

    /// Whether readers have a scorer.
    fn can_rank(&self) -> bool;

    /// Damages the files that an open reader reads, other than the database; returns whether it
    /// reads any.
    fn damage(&self, _: &Database, _: Damage) -> bool {
        false
    }
}

/// Brings the index of a source up to date.
pub(crate) fn reindex(source: &Source) {
    let options = Reindex { resources: RESOURCES, full: false };
    source.reindex(options, &Call::default(), &mut |_| {}).expect("an index");
}

/// Returns the hits of a request, and how they were found.
pub(crate) fn hits(reader: &dyn Reader, request: &Request) -> (Vec<Hit<'static>>, SearchPlan) {
    let mut found = Vec::new();
    let mut sink = Rendered::new(
        |hit: Hit<'_>| Some(hit.into_owned()),
        |hit| {
            found.push(hit);
            std::ops::ControlFlow::Continue(())
        },
    );
    let plan = reader.search(request, &Call::default(), &mut sink).expect("an answer");
    (found, plan)
}

/// A sink that wants the hits of some conversations.
struct SinkOfSome {
    only: Arc<ConversationIds>,
    held: Vec<Hit<'static>>,
    found: Vec<Hit<'static>>,
}

impl Sink for SinkOfSome {
    fn push(&mut self, hit: Hit<'_>) {
        let is_wanted = |ids: &HashSet<String>| ids.contains(&*hit.conversation_id);
        if self.only.values().any(is_wanted) {
            self.held.push(hit.into_owned());
        }
    }

    fn confirm(&mut self, _: &Call) -> ControlFlow<()> {
        self.found.append(&mut self.held);
        ControlFlow::Continue(())
    }

    fn discard(&mut self) {
        self.held.clear();
    }

    fn only(&self) -> Option<Arc<ConversationIds>> {
        Some(Arc::clone(&self.only))
    }
}

/// Asks for the hits in every second conversation that has some; they must be those of the whole answer.
fn agree_on_some(name: &str, reader: &dyn Reader, request: &Request, all: &[Hit<'static>]) {
    let ids: BTreeSet<&str> = all.iter().map(|hit| &*hit.conversation_id).collect();
    let ids: HashSet<String> = ids.into_iter().step_by(2).map(str::to_owned).collect();
    let expected: Vec<_> = all.iter().filter(|hit| ids.contains(&*hit.conversation_id)).collect();
    let only = Arc::new(SourceKind::ALL.map(|kind| (kind, ids.clone())).into());
    let mut sink = SinkOfSome { only, held: Vec::new(), found: Vec::new() };
    reader.search(request, &Call::default(), &mut sink).expect("an answer");
    assert_eq!(sink.found.iter().collect::<Vec<_>>(), expected, "{name}, some: {request:?}");
}

/// Asks every reader; all must answer as the oracle does. Returns the numbers of hits.
#[track_caller]
pub(crate) fn agree(
    database: &Database,
    requests: &[Request],
    expected: impl Fn(&Oracle, &Request) -> Vec<Hit<'static>>,
) -> Vec<usize> {
    let oracle = Oracle::of(database);
    let expected: Vec<_> = requests.iter().map(|request| expected(&oracle, request)).collect();
    drop(oracle);
    for subject in subjects_of(database) {
        let reader = subject.open(database);
        for (request, expected) in requests.iter().zip(&expected) {
            let (found, _) = hits(&*reader, request);
            assert_eq!(found, *expected, "{}: {request:?}", subject.name());
            if request.limit.is_none() {
                agree_on_some(subject.name(), &*reader, request, expected);
            }
        }
    }
    expected.iter().map(Vec::len).collect()
}

/// Tries a property on `usual` cases, times [`SHARE`] and `VERBATIM_CASES`; the same cases each time, unless
/// `VERBATIM_SEED` says otherwise.
pub(crate) fn config(usual: u32) -> proptest::test_runner::Config {
    fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
        std::env::var(name).ok()?.parse().ok()
    }
    let cases = f64::from(usual) * SHARE * number("VERBATIM_CASES").unwrap_or(1.0);
    let seed = number("VERBATIM_SEED").unwrap_or(1);
    proptest::test_runner::Config {
        cases: cases.ceil() as u32,
        rng_seed: proptest::test_runner::RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Default::default()
    }
}
