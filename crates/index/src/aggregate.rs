//! Aggregates the messages that match by their text into values of the caller, with several threads: for
//! counts, which need neither the texts of the messages nor their order.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::plan::{GramQuery, Plan, QueryGrams};
use super::postings::{DocBits, List, StopCheck};
use super::segment::Segment;
use super::snapshot::SegmentReader;
use super::store::DocStore;
use super::trace::Trace;
use super::verify::Verifier;
use super::{Result, Snapshot};
use verbatim_base::call::Stop;
use verbatim_base::map_faults;
use verbatim_base::model::{Instant, Request};
use verbatim_text::{grams::CommonRun, lossy};

/// The minimum number of messages per thread. A thread for fewer would not pay off.
const THREAD_MESSAGES: u32 = if cfg!(test) { 1 << 5 } else { 1 << 16 };

const MAX_THREADS: usize = 16;

/// Parts of a segment per thread. Several parts balance the load, because parts take different times.
const PARTS: usize = 4;

/// A message whose text matches.
#[derive(Clone, Copy, Debug)]
pub struct TextMatch<'a> {
    store: &'a DocStore,
    doc: u32,
}

impl<'a> TextMatch<'a> {
    /// Returns the number of the conversation. The number is valid only within the segment.
    pub fn conversation(&self) -> usize {
        self.store.conversation(self.doc) as usize
    }

    /// Returns the id of the conversation, with U+FFFD for bytes that are not UTF-8.
    pub fn conversation_id(&self) -> Cow<'a, str> {
        lossy(self.store.conversation_id(self.store.conversation(self.doc)))
    }

    /// Returns the number of the role. The number is valid only within the segment.
    pub fn role(&self) -> usize {
        self.store.role(self.doc)
    }

    /// Returns the role; empty for NULL.
    pub fn role_name(&self) -> &'a str {
        self.store.role_name(self.doc)
    }

    /// Returns when the message was written.
    pub fn time(&self) -> Option<Instant> {
        self.store.time(self.doc)
    }
}

impl Snapshot {
    /// Calls `add` with each message that matches a request, but not by its title alone
    /// ([`Matchers::has_any`](verbatim_text::matcher::Matchers::has_any)). Each thread adds to
    /// its own value from `make`. Returns each value with the number of its segment.
    ///
    /// If the search is stopped, returns the values so far.
    pub fn aggregate_texts<T: Send>(
        &self,
        request: &Request,
        stop: &Stop,
        make: &(dyn Fn() -> T + Sync),
        add: &(dyn Fn(&mut T, TextMatch<'_>) + Sync),
    ) -> Result<Vec<(usize, T)>> {
        let (mut query, mut grams) = GramQuery::new(request, &self.common)?;
        // One of several texts may be in the title, and a text that excludes a message too.
        query.texts_only = query.matchers.all.is_empty() && query.matchers.none.is_empty();
        let mut values = Vec::new();
        for (number, segment) in self.segments.iter().enumerate() {
            let before = grams.clone();
            let plan = Plan::new(segment, &query, &mut grams, &mut Trace::default())?;
            let Some(plan) = plan else { continue };
            let followed = match query.common_run {
                Some(run) => Some(segment.data.followed(run)?),
                None => None,
            };
            let aggregation = SegmentAggregation { segment, query: &query, followed, stop, add };
            let threads = aggregation.threads();
            if threads == 1 {
                let mut value = make();
                aggregation.run(plan, &mut value);
                values.push((number, value));
            } else {
                let made = aggregation.run_with(threads, &before, make)?;
                values.extend(made.into_iter().map(|value| (number, value)));
            }
        }
        Ok(values)
    }
}

impl Segment {
    /// Returns the messages in which some character follows the run. They are in the posting lists of the
    /// grams that begin with the run. The result is exact for plain texts. It may include other texts that
    /// have the run only after folding.
    fn followed(&self, run: CommonRun) -> Result<DocBits> {
        let mut lists = Vec::new();
        for gram in run.ascii_trigrams() {
            lists.extend(self.postings.find(List::Text, gram.term(&mut [0; 8]))?);
        }
        self.postings.grams_between(List::Text, run.wide_trigrams(), |_, info| {
            lists.push(info.clone());
            true
        })?;
        let mut followed = DocBits::new(self.store.messages());
        for info in &lists {
            followed.insert_list(self.postings.read(List::Text, info)?);
        }
        Ok(followed)
    }
}

struct SegmentAggregation<'a, T> {
    segment: &'a SegmentReader,
    query: &'a GramQuery<'a>,
    followed: Option<DocBits>,
    stop: &'a Stop,
    add: &'a (dyn Fn(&mut T, TextMatch<'_>) + Sync),
}

impl<T: Send> SegmentAggregation<'_, T> {
    fn threads(&self) -> usize {
        let available = thread::available_parallelism().map_or(1, usize::from);
        let worth = self.segment.data.store.messages() / THREAD_MESSAGES;
        available.min(MAX_THREADS).min(worth.max(1) as usize)
    }

    fn run(&self, mut plan: Plan<'_>, value: &mut T) {
        let store = &self.segment.data.store;
        let verifier = Verifier::new(&self.segment.data, self.query);
        let mut verifier = verifier.with_followed(self.followed.as_ref());
        let mut stop = StopCheck::new(self.stop);
        while let Some(candidate) = plan.next(&mut stop) {
            let is_match = verifier.matches(&candidate);
            if is_match && (self.query.texts_only || verifier.has_in_text(candidate.doc)) {
                (self.add)(value, TextMatch { store, doc: candidate.doc });
            }
        }
    }

    fn run_with(
        &self,
        threads: usize,
        grams: &QueryGrams,
        make: &(dyn Fn() -> T + Sync),
    ) -> Result<Vec<T>> {
        let messages = self.segment.data.store.messages();
        let length = messages.div_ceil((threads * PARTS) as u32).max(1);
        let next = AtomicUsize::new(0);
        let values = map_faults::on_threads(threads, || {
            let mut value = make();
            loop {
                let start = length.saturating_mul(next.fetch_add(1, Ordering::Relaxed) as u32);
                if start >= messages || self.stop.requested() {
                    return Ok(value);
                }
                let part: Range<u32> = start..start.saturating_add(length).min(messages);
                let mut grams = grams.clone();
                let plan = Plan::new(self.segment, self.query, &mut grams, &mut Trace::default())?;
                if let Some(plan) = plan {
                    self.run(plan.restrict_to_range(part), &mut value);
                }
            }
        });
        values.into_iter().collect()
    }
}
