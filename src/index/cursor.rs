//! The messages of one segment that match, in result order.

use super::{
    Error,
    plan::{Candidate, GramQuery, Plan, QueryGrams},
    postings::DocBits,
    snapshot::SegmentReader,
    store::DocStore,
    trace::Trace,
};
use crate::text::matcher::Matcher;

/// Bytes read for verification after which a pattern with `_` is expanded
/// ([`super::wildcards`]): reading them takes about as long as the expansion.
const BYTES_BEFORE_EXPANSION: u64 = 1 << 20;

/// Candidates after which a pattern with `_` is expanded.
const CANDIDATES_BEFORE_EXPANSION: u64 = 2_000;

/// The most conversations for which the result of comparing the title is remembered.
const CACHED_TITLES: usize = 64;

/// A search in one segment.
pub(super) struct Cursor<'a> {
    pub(super) segment: &'a SegmentReader,
    query: &'a GramQuery<'a>,
    plan: Plan<'a>,
    verifier: Verifier<'a>,
    candidates: u64,
    /// Whether the pattern has `_` that were not expanded yet.
    can_expand: bool,
}

impl<'a> Cursor<'a> {
    /// Plans the search; `None` if nothing can match.
    pub(super) fn open(
        segment: &'a SegmentReader,
        query: &'a GramQuery<'_>,
        grams: &mut QueryGrams,
        trace: &mut Trace,
    ) -> Result<Option<Cursor<'a>>, Error> {
        let Some(plan) = Plan::new(segment, query, grams, trace)? else { return Ok(None) };
        Ok(Some(Cursor {
            segment,
            query,
            plan,
            verifier: Verifier::new(&segment.data.store, query),
            candidates: 0,
            can_expand: !query.gaps.is_empty(),
        }))
    }

    /// Returns the next message that matches; `None` after the last, or once `stop` returns true.
    pub(super) fn next(
        &mut self,
        stop: &mut dyn FnMut() -> bool,
        trace: &mut Trace,
    ) -> Result<Option<u32>, Error> {
        let mut stop = || stop();
        while let Some(candidate) = self.plan.next(&mut stop) {
            self.candidates += 1;
            trace.candidates += 1;
            let read = self.verifier.bytes_read;
            if self.can_expand
                && (read > BYTES_BEFORE_EXPANSION || self.candidates > CANDIDATES_BEFORE_EXPANSION)
            {
                self.expand_wildcards(trace)?;
            }
            let matches = self.verifier.matches(&candidate);
            trace.bytes_read += self.verifier.bytes_read - read;
            if matches {
                trace.verified += 1;
                return Ok(Some(candidate.doc));
            }
        }
        Ok(None)
    }

    /// Narrows the candidates by the pattern's `_`, because the runs around them propose too many.
    fn expand_wildcards(&mut self, trace: &mut Trace) -> Result<(), Error> {
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
            self.plan.narrow_titles(|| self.verifier.titled());
        }
        Ok(())
    }
}

/// Reads candidates and tells whether they match.
struct Verifier<'a> {
    store: &'a DocStore,
    /// `None` without a text filter: then everything matches.
    pattern: Option<&'a Matcher>,
    raw_content: bool,
    /// A cache of conversation numbers, and whether each conversation's title matches.
    titles: [(u32, bool); CACHED_TITLES],
    bytes_read: u64,
}

impl<'a> Verifier<'a> {
    fn new(store: &'a DocStore, query: &'a GramQuery<'_>) -> Verifier<'a> {
        Verifier {
            store,
            pattern: query.matcher.as_ref(),
            raw_content: query.request.raw_content,
            titles: [(u32::MAX, false); CACHED_TITLES],
            bytes_read: 0,
        }
    }

    /// Returns whether a message matches by its text or its title.
    #[inline]
    fn matches(&mut self, candidate: &Candidate) -> bool {
        let Candidate { doc, by_text, by_title } = *candidate;
        let Some(pattern) = self.pattern else { return true };
        let store = self.store;
        let texts = store.texts(doc);
        if pattern.matches_all() {
            return !texts.nothing;
        }
        let first = if self.raw_content { texts.stored } else { texts.shown };
        let second = (texts.differ && !self.raw_content && pattern.matches_stored_parts())
            .then_some(texts.stored);
        if !texts.regular {
            self.bytes_read += (texts.shown.len() + texts.stored.len()) as u64;
            return pattern.matches_irregular(store.title(store.conversation(doc)))
                || pattern.matches_irregular(first)
                || second.is_some_and(|second| pattern.matches_irregular(second));
        }
        if by_title && self.title_matches(pattern, store.conversation(doc)) {
            return true;
        }
        if !by_text {
            return false;
        }
        self.bytes_read += first.len() as u64;
        if pattern.matches(first) {
            return true;
        }
        let Some(second) = second else { return false };
        self.bytes_read += second.len() as u64;
        pattern.matches(second)
    }

    /// Returns the messages of the conversations whose titles match.
    fn titled(&mut self) -> DocBits {
        let store = self.store;
        let matching: Vec<bool> = (0..store.conversations())
            .map(|number| self.pattern.is_none_or(|pattern| pattern.matches(store.title(number))))
            .collect();
        let mut titled = DocBits::new(store.messages());
        (0..store.messages())
            .filter(|doc| matching[store.conversation(*doc) as usize])
            .for_each(|doc| titled.insert(doc));
        titled
    }

    fn title_matches(&mut self, pattern: &Matcher, conversation: u32) -> bool {
        let known = &mut self.titles[conversation as usize % CACHED_TITLES];
        if known.0 != conversation {
            *known = (conversation, pattern.matches(self.store.title(conversation)));
        }
        known.1
    }
}
