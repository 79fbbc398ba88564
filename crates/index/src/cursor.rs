//! Finds the matching messages of one segment, in result order.

use super::Result;
use super::plan::{GramQuery, Plan, QueryGrams};
use super::postings::{DocBits, StopCheck};
use super::scan::Scan;
use super::snapshot::SegmentReader;
use super::trace::Trace;
use super::verify::Verifier;
use verbatim_base::model::Hit;
use verbatim_text::lossy;

/// The number of candidates after which an expansion of a pattern's gaps ([`super::wildcards`]) may pay off,
/// and the number of bytes that take as long as a candidate.
const CANDIDATES_BEFORE_EXPANSION: u64 = 2_000;
const BYTES_OF_CANDIDATE: u64 = 512;

/// The number of candidates that take as long as an expansion.
const CANDIDATES_OF_EXPANSION: u64 = 16_000;

/// The number of bytes that verification may read on one thread. If more candidates come, all cores verify
/// them.
const BYTES_BEFORE_SCAN: u64 = 4 << 20;

pub(super) struct Cursor<'a> {
    pub(super) segment: &'a SegmentReader,
    query: &'a GramQuery<'a>,
    plan: Plan<'a>,
    verifier: Verifier<'a>,
    candidates: u64,
    verified: u64,
    /// Whether the pattern has gaps (`_`, or `.` in an expression) that were not expanded yet.
    can_expand: bool,
    scan: Option<Scan<'a>>,
}

impl std::fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("candidates", &self.candidates).finish_non_exhaustive()
    }
}

impl<'a> Cursor<'a> {
    /// Plans the search; returns `None` if no message can match.
    pub(super) fn open(
        segment: &'a SegmentReader,
        query: &'a GramQuery<'_>,
        grams: &mut QueryGrams,
        trace: &mut Trace,
    ) -> Result<Option<Cursor<'a>>> {
        let Some(plan) = Plan::new(segment, query, grams, trace)? else { return Ok(None) };
        Ok(Some(Cursor {
            segment,
            query,
            // A scan also finds titles.
            scan: if plan.is_scan && !query.texts_only {
                Some(Scan::new(&segment.data, query))
            } else {
                None
            },
            plan,
            verifier: Verifier::new(&segment.data, query),
            candidates: 0,
            verified: 0,
            can_expand: !query.gaps.is_empty(),
        }))
    }

    pub(super) fn restrict_to(self, documents: DocBits) -> Cursor<'a> {
        Cursor { plan: self.plan.restrict_to(documents), ..self }
    }

    /// Returns the next message that matches; `None` after the last, or once a stop is requested.
    pub(super) fn next(
        &mut self,
        stop: &mut StopCheck<'_>,
        trace: &mut Trace,
    ) -> Result<Option<u32>> {
        if self.can_expand && self.scan.as_ref().is_some_and(Scan::is_slow) {
            self.expand_wildcards(trace)?;
        }
        if let Some(scan) = &mut self.scan {
            return Ok(scan.next(&mut self.plan, stop, trace));
        }
        while let Some(candidate) = self.plan.next(stop) {
            self.candidates += 1;
            trace.candidates += 1;
            if self.can_expand && self.is_expansion_cheaper() {
                self.expand_wildcards(trace)?;
            }
            if self.verifier.matches(&candidate) {
                trace.verified += 1;
                self.verified += 1;
                return Ok(Some(candidate.doc));
            }
            if self.verifier.bytes_read > BYTES_BEFORE_SCAN && !self.query.texts_only {
                let scan = Scan::new(&self.segment.data, self.query);
                return Ok(self.scan.insert(scan).next(&mut self.plan, stop, trace));
            }
        }
        Ok(None)
    }

    /// Returns whether the candidates that the missing hits need, at the rate so far, take longer than an
    /// expansion.
    fn is_expansion_cheaper(&self) -> bool {
        let read = self.candidates + self.verifier.bytes_read / BYTES_OF_CANDIDATE;
        let missing = self.query.request.limit.map_or(u64::MAX, |limit| limit as u64);
        let missing = missing.saturating_sub(self.verified);
        read > CANDIDATES_BEFORE_EXPANSION
            && missing.saturating_mul(read) > CANDIDATES_OF_EXPANSION * (self.verified + 1)
    }

    pub(super) fn hit(&self, doc: u32, raw_content: bool) -> Hit<'_> {
        let store = &self.segment.data.store;
        match self.verifier.known_text(doc) {
            Some(text) => store.hit_with(doc, lossy(text)),
            None => store.hit(doc, raw_content),
        }
    }

    /// Returns whether a message that matches is known to match by its shown text, and not only by its
    /// stored text or its title.
    pub(super) fn is_by_text(&mut self, doc: u32) -> bool {
        self.scan.is_none() && self.verifier.is_by_text(doc)
    }

    /// Narrows the candidates by the pattern's gaps: the characters around each gap propose too many.
    fn expand_wildcards(&mut self, trace: &mut Trace) -> Result<()> {
        self.can_expand = false;
        let mut is_narrowed = false;
        for gap in &self.query.gaps {
            if let Some(documents) = self.segment.data.expand(gap, self.query.common)? {
                self.plan.narrow(documents);
                trace.gaps += 1;
                is_narrowed = true;
            }
        }
        if is_narrowed {
            self.plan.narrow_titles(|| self.verifier.docs_by_title());
        }
        Ok(())
    }
}
