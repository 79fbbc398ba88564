//! Verifies all messages of a segment with several threads. Batches are in result order.
//!
//! A scan is only for queries that the posting lists cannot narrow. The first batches are small, so that a
//! search with early hits reads little.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::plan::{Candidate, GramQuery, Plan};
use super::postings::StopCheck;
use super::segment::Segment;
use super::trace::Trace;
use super::verify::Verifier;
use verbatim_base::{call::Stop, map_faults};

/// The number of messages in the first batch and in the largest batch. One thread verifies the first. All
/// messages of a batch are read, even if the first of them are enough.
const FIRST_BATCH: usize = 256;
const LARGEST_BATCH: usize = 1 << 13;

const GROWTH: usize = 4;

const PIECE: usize = 128;

const MAX_THREADS: usize = 16;

pub(super) struct Scan<'a> {
    segment: &'a Segment,
    query: &'a GramQuery<'a>,
    batch: usize,
    found: VecDeque<u32>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(segment: &'a Segment, query: &'a GramQuery<'a>) -> Scan<'a> {
        Scan { segment, query, batch: FIRST_BATCH, found: VecDeque::new() }
    }

    /// Returns whether the first batches had few hits, and no hit of a batch is waiting.
    pub(super) fn is_slow(&self) -> bool {
        self.found.is_empty() && self.batch > FIRST_BATCH * GROWTH
    }

    /// Returns the next message that matches; `None` after the last, or once a stop is requested.
    pub(super) fn next(
        &mut self,
        plan: &mut Plan<'_>,
        stop: &mut StopCheck<'_>,
        trace: &mut Trace,
    ) -> Option<u32> {
        while self.found.is_empty() {
            let candidates: Vec<Candidate> =
                std::iter::from_fn(|| plan.next(stop)).take(self.batch).collect();
            if candidates.is_empty() {
                return None;
            }
            trace.candidates += candidates.len() as u64;
            self.verify(&candidates, stop.stop, trace);
            self.batch = LARGEST_BATCH.min(self.batch * GROWTH);
            // The threads end early only if the search is stopped.
            if stop.requested() {
                return None;
            }
        }
        trace.verified += 1;
        self.found.pop_front()
    }

    fn verify(&mut self, candidates: &[Candidate], stop: &Stop, trace: &mut Trace) {
        let available = thread::available_parallelism().map_or(1, usize::from);
        let threads = available.min(MAX_THREADS).min(candidates.len().div_ceil(FIRST_BATCH));
        trace.scan_threads = trace.scan_threads.max(threads);
        let pieces: Vec<&[Candidate]> = candidates.chunks(PIECE).collect();
        let next = AtomicUsize::new(0);
        let found = map_faults::on_threads(threads, || {
            let mut verifier = Verifier::new(self.segment, self.query);
            let mut found: Vec<u32> = Vec::new();
            while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stop.requested() {
                    break;
                }
                let matching = piece.iter().filter(|candidate| verifier.matches(candidate));
                found.extend(matching.map(|candidate| candidate.doc));
            }
            found
        });
        let mut found = found.concat();
        // Doc ids are in result order.
        found.sort_unstable();
        self.found.extend(found);
    }
}
