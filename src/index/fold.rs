//! Folds the messages whose text matches into values of the caller, with several threads: for counts,
//! which need neither the texts of the messages nor their order.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    Error, Snapshot,
    plan::{GramQuery, Plan, QueryGrams},
    snapshot::SegmentReader,
    trace::Trace,
    verify::Verifier,
};
use crate::{
    map_faults,
    model::{Instant, Request, Stop},
};

/// The number of messages of a segment from which on a further thread is worth its start.
const THREAD_MESSAGES: u32 = if cfg!(test) { 1 << 5 } else { 1 << 16 };

/// The most threads.
const MAX_THREADS: usize = 16;

/// Parts of a segment for each thread: messages of one part may take longer than those of another.
const PARTS: usize = 4;

/// A message whose text matches.
#[derive(Clone, Copy, Debug)]
pub struct TextMatch<'a> {
    /// The number of the conversation, which is valid within its segment only.
    pub conversation: u32,
    /// The role; empty for NULL.
    pub role: &'a str,
    /// When the message was written.
    pub time: Option<Instant>,
}

impl Snapshot {
    /// Gives the messages whose text matches a request, whatever their title, to `add`. Each thread
    /// adds to its own value, which `make` makes; returns the values with their segments.
    ///
    /// A search that is stopped returns the values as they are then.
    pub fn fold_texts<T: Send>(
        &self,
        request: &Request,
        stop: &Stop,
        make: &(dyn Fn() -> T + Sync),
        add: &(dyn Fn(&mut T, TextMatch<'_>) + Sync),
    ) -> Result<Vec<(usize, T)>, Error> {
        let (mut query, mut grams) = GramQuery::new(request, &self.common)?;
        query.texts_only = true;
        let mut values = Vec::new();
        for (number, segment) in self.segments.iter().enumerate() {
            let before = grams.clone();
            let plan = Plan::new(segment, &query, &mut grams, &mut Trace::default())?;
            let Some(plan) = plan else { continue };
            let fold = SegmentFold { segment, query: &query, stop, add };
            let made = match fold.threads() {
                1 => {
                    let mut value = make();
                    fold.run(plan, &mut value);
                    vec![value]
                }
                threads => fold.run_with(threads, &before, make)?,
            };
            values.extend(made.into_iter().map(|value| (number, value)));
        }
        Ok(values)
    }
}

/// The state that the threads share which fold one segment.
struct SegmentFold<'a, T> {
    segment: &'a SegmentReader,
    query: &'a GramQuery<'a>,
    stop: &'a Stop,
    add: &'a (dyn Fn(&mut T, TextMatch<'_>) + Sync),
}

impl<T: Send> SegmentFold<'_, T> {
    fn threads(&self) -> usize {
        let available = thread::available_parallelism().map_or(1, usize::from);
        let worth = self.segment.data.store.messages() / THREAD_MESSAGES;
        available.min(MAX_THREADS).min(worth.max(1) as usize)
    }

    /// Adds the messages of a plan to a value.
    fn run(&self, mut plan: Plan<'_>, value: &mut T) {
        let store = &self.segment.data.store;
        let mut verifier = Verifier::new(&self.segment.data, self.query);
        let mut is_stopped = || self.stop.requested();
        while let Some(candidate) = plan.next(&mut is_stopped) {
            if verifier.matches(&candidate) {
                let doc = candidate.doc;
                let (role, time) = (store.role_name(doc), store.time(doc));
                (self.add)(value, TextMatch { conversation: store.conversation(doc), role, time });
            }
        }
    }

    fn run_with(
        &self,
        threads: usize,
        grams: &QueryGrams,
        make: &(dyn Fn() -> T + Sync),
    ) -> Result<Vec<T>, Error> {
        let messages = self.segment.data.store.messages();
        let length = messages.div_ceil((threads * PARTS) as u32).max(1);
        let next = AtomicUsize::new(0);
        let work = || -> Result<T, Error> {
            let mut value = make();
            loop {
                let start = length.saturating_mul(next.fetch_add(1, Ordering::Relaxed) as u32);
                if start >= messages || self.stop.requested() {
                    return Ok(value);
                }
                let part: Range<u32> = start..start.saturating_add(length).min(messages);
                let (mut grams, mut trace) = (grams.clone(), Trace::default());
                if let Some(plan) = Plan::new(self.segment, self.query, &mut grams, &mut trace)? {
                    self.run(plan.within(part), &mut value);
                }
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads).map(|_| scope.spawn(|| map_faults::caught(work))).collect();
            let done = workers.into_iter().map(|worker| match worker.join() {
                Ok(Ok(done)) => done,
                // The caller expects panics, because files may change while they are read.
                Ok(Err(panic)) => panic!("{panic}"),
                Err(panic) => std::panic::resume_unwind(panic),
            });
            done.collect()
        })
    }
}
