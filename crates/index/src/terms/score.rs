//! BM25 over the term indexes of several segments, the best messages first (Robertson and Zaragoza,
//! 2009).
//!
//! Messages are scored in windows that fit the cache, one term after the other. Terms whose weights sum up to
//! less than the best messages' lowest score are looked up only for messages that have another term
//! (MaxScore: Turtle and Flood, 1995). Rejected messages are never among the best.

use std::ops::Range;

use tantivy::postings::BlockSegmentPostings;

use super::{TermIndex, decode_length};
use crate::scored::{BestDocs, ScoredDoc};
use crate::{Error, Result};
use verbatim_base::call::Stop;

/// The number of documents per window. Their scores take 128 KB.
const WINDOW: u32 = 1 << 15;

/// A term of a query and its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedTerm {
    /// The term.
    pub term: String,
    /// The weight of the term, which is higher for rarer terms.
    pub weight: f32,
}

/// The parameters of BM25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norms {
    /// The term frequency saturation: the higher, the more further occurrences of a term count.
    pub k1: f32,
    /// The length normalization, from 0 (none) to 1 (full).
    pub b: f32,
    /// The average length of the messages, in terms. A value below 1 counts as 1.
    pub average: f32,
}

impl Norms {
    /// Returns the score of a term of weight 1 in a message, by its frequency and the message's length.
    #[inline]
    pub fn score(&self, frequency: u32, length: u32) -> f32 {
        let share = length as f32 / self.average.max(1.0);
        let frequency = frequency as f32;
        let norm = self.k1 * (1.0 - self.b + self.b * share);
        (self.k1 + 1.0) * frequency / (frequency + norm)
    }

    /// Returns the length norm of each length code. BM25 adds the norm to the term frequency.
    fn table(&self) -> [f32; 256] {
        std::array::from_fn(|code| {
            let share = decode_length(code as u8) as f32 / self.average.max(1.0);
            self.k1 * (1.0 - self.b + self.b * share)
        })
    }
}

/// The messages to rank.
#[derive(Clone, Copy, Debug)]
pub enum DocSet<'a> {
    /// One interval of doc ids per segment.
    Intervals(&'a [Range<u32>]),
    /// Some doc ids, ascending.
    DocIds(&'a [u32]),
}

/// A query for ranking by BM25.
#[derive(Clone, Copy)]
pub struct Bm25<'a> {
    /// The segments' doc ids and term indexes.
    pub segments: &'a [(Range<u32>, &'a TermIndex)],
    /// The terms of the query with their weights.
    pub terms: &'a [WeightedTerm],
    /// The parameters, which are the same for all segments.
    pub norms: Norms,
}

impl std::fmt::Debug for Bm25<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bm25").field("terms", &self.terms).finish_non_exhaustive()
    }
}

impl Bm25<'_> {
    /// Returns the `most` doc ids with the highest scores and these scores, the best first.
    ///
    /// `accepts` is a filter. It may read texts, because it is called only for messages that would be among
    /// the best.
    pub fn best(
        &self,
        among: DocSet<'_>,
        accepts: &dyn Fn(u32) -> bool,
        most: usize,
        stop: &Stop,
    ) -> Result<Vec<(u32, f32)>> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let mut best = BestDocs::new(most, f32::MIN_POSITIVE);
        let table = self.norms.table();
        for (doc_ids, words) in self.segments {
            let cursors = self.cursors(words)?;
            let scorer = ListScorer { words, table: &table, first: doc_ids.start, accepts, stop };
            match among {
                DocSet::Intervals(intervals) => {
                    let inside = intervals.iter().find(|interval| {
                        doc_ids.start <= interval.start
                            && interval.end <= doc_ids.end
                            && !interval.is_empty()
                    });
                    if let Some(interval) = inside {
                        let start = doc_ids.start;
                        let documents = interval.start - start..interval.end - start;
                        scorer.score_all(cursors, documents, &mut best)?;
                    }
                }
                DocSet::DocIds(wanted) => {
                    let from = wanted.partition_point(|doc_id| *doc_id < doc_ids.start);
                    let to = wanted.partition_point(|doc_id| *doc_id < doc_ids.end);
                    scorer.score_some(cursors, &wanted[from..to], &mut best)?;
                }
            }
        }
        Ok(best.sorted().into_iter().map(|scored| (scored.doc_id, scored.score)).collect())
    }

    fn cursors(&self, words: &TermIndex) -> Result<Vec<TermCursor>> {
        let mut cursors = Vec::new();
        for term in self.terms {
            if let Some(postings) = words.postings(&term.term)? {
                let weight = term.weight * (self.norms.k1 + 1.0);
                cursors.push(TermCursor { postings, at: 0, weight });
            }
        }
        Ok(cursors)
    }
}

/// Returns the doc ids of the messages that have all of these terms, ascending.
pub fn holding(
    segments: &[(Range<u32>, &TermIndex)],
    terms: &[String],
    stop: &Stop,
) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    'segments: for (doc_ids, words) in segments {
        let mut lists = Vec::new();
        for term in terms {
            match words.postings(term)? {
                Some(list) => lists.push(list),
                None => continue 'segments,
            }
        }
        lists.sort_by_key(BlockSegmentPostings::doc_freq);
        let Some((shortest, others)) = lists.split_first_mut() else { continue };
        loop {
            stop.check(Error::Stopped)?;
            let documents = shortest.docs();
            if documents.is_empty() {
                break;
            }
            for document in documents {
                if others.iter_mut().all(|list| seek(list, *document).is_some()) {
                    found.push(doc_ids.start + document);
                }
            }
            shortest.advance();
        }
    }
    Ok(found)
}

/// Returns for each term the number of messages of `doc_ids` that have it; `doc_ids` must be ascending.
pub fn frequencies(
    segments: &[(Range<u32>, &TermIndex)],
    terms: &[String],
    doc_ids: &[u32],
) -> Result<Vec<u32>> {
    let mut counts = vec![0; terms.len()];
    for (range, words) in segments {
        let from = doc_ids.partition_point(|doc_id| *doc_id < range.start);
        let to = doc_ids.partition_point(|doc_id| *doc_id < range.end);
        for (count, term) in counts.iter_mut().zip(terms) {
            let Some(mut list) = words.postings(term)? else { continue };
            for doc_id in &doc_ids[from..to] {
                *count += u32::from(seek(&mut list, doc_id - range.start).is_some());
            }
        }
    }
    Ok(counts)
}

/// Returns the term frequency of a document, if the list has it. Documents must ascend from call to call.
fn seek(list: &mut BlockSegmentPostings, document: u32) -> Option<u32> {
    let at = list.seek(document);
    (at < list.block_len() && list.doc(at) == document).then(|| list.freq(at))
}

/// The list of a term, and the next place in its block.
struct TermCursor {
    postings: BlockSegmentPostings,
    at: usize,
    /// The upper bound of the term's contribution to a score.
    weight: f32,
}

/// The terms of a window that cannot bring a document among the best without other terms.
struct Inessential<'a> {
    cursors: &'a mut [TermCursor],
    weight: f32,
}

struct ListScorer<'a> {
    words: &'a TermIndex,
    table: &'a [f32; 256],
    /// The doc id of the first document.
    first: u32,
    accepts: &'a dyn Fn(u32) -> bool,
    stop: &'a Stop,
}

impl ListScorer<'_> {
    #[inline]
    fn norm(&self, document: u32) -> f32 {
        self.table[usize::from(self.words.lengths[document as usize])]
    }

    /// Returns the contribution of a term to a score, by the term's frequency and the document's norm.
    #[inline]
    fn share(weight: f32, frequency: u32, norm: f32) -> f32 {
        weight * frequency as f32 / (frequency as f32 + norm)
    }

    fn score_all(
        &self,
        mut cursors: Vec<TermCursor>,
        documents: Range<u32>,
        best: &mut BestDocs,
    ) -> Result<()> {
        // Ascending by weight, because the terms of the least weight become inessential first.
        cursors.sort_by(|a, b| a.weight.total_cmp(&b.weight));
        let mut sums = vec![0f32; WINDOW as usize];
        let mut touched: Vec<u32> = Vec::new();
        let mut start = documents.start;
        while start < documents.end {
            self.stop.check(Error::Stopped)?;
            let end = documents.end.min(start.saturating_add(WINDOW));
            let threshold = best.threshold;
            let mut rest = Inessential { cursors: &mut [], weight: 0.0 };
            let mut count = 0;
            while count < cursors.len() && rest.weight + cursors[count].weight < threshold {
                rest.weight += cursors[count].weight;
                count += 1;
            }
            let (inessential, essential) = cursors.split_at_mut(count);
            if essential.is_empty() {
                return Ok(());
            }
            touched.clear();
            for cursor in essential {
                self.add_window(cursor, start..end, &mut sums, &mut touched);
            }
            rest.cursors = inessential;
            self.offer(start, &mut touched, &mut sums, rest, best);
            start = end;
        }
        Ok(())
    }

    /// Adds the inessential terms to the scores of the `touched` documents, and offers the documents. Resets
    /// all sums to 0.
    fn offer(
        &self,
        start: u32,
        touched: &mut Vec<u32>,
        sums: &mut [f32],
        rest: Inessential<'_>,
        best: &mut BestDocs,
    ) {
        if rest.cursors.is_empty() {
            for document in touched {
                let score = std::mem::take(&mut sums[(*document - start) as usize]);
                self.offer_one(self.first + *document, score, best);
            }
            return;
        }
        let threshold = best.threshold;
        touched.retain(|document| {
            let sum = &mut sums[(document - start) as usize];
            let stays = *sum + rest.weight >= threshold;
            if !stays {
                *sum = 0.0;
            }
            stays
        });
        // Lists are read in ascending order.
        touched.sort_unstable();
        for document in touched {
            let mut score = std::mem::take(&mut sums[(*document - start) as usize]);
            let norm = self.norm(*document);
            let mut left = rest.weight;
            for cursor in rest.cursors.iter_mut().rev() {
                if score + left < best.threshold {
                    break;
                }
                left -= cursor.weight;
                if let Some(frequency) = seek(&mut cursor.postings, *document) {
                    score += Self::share(cursor.weight, frequency, norm);
                }
            }
            self.offer_one(self.first + *document, score, best);
        }
    }

    #[inline]
    fn offer_one(&self, doc_id: u32, score: f32, best: &mut BestDocs) {
        best.offer(ScoredDoc { doc_id, score }, || (self.accepts)(doc_id));
    }

    fn add_window(
        &self,
        cursor: &mut TermCursor,
        window: Range<u32>,
        sums: &mut [f32],
        touched: &mut Vec<u32>,
    ) {
        let TermCursor { postings, at, weight } = cursor;
        if postings.docs().last().is_some_and(|last| *last < window.start) {
            *at = 0;
            postings.seek(window.start);
        }
        loop {
            let documents = postings.docs();
            if documents.is_empty() {
                return;
            }
            let from = *at + documents[*at..].partition_point(|doc| *doc < window.start);
            let to = from + documents[from..].partition_point(|doc| *doc < window.end);
            let frequencies = &postings.freqs()[from..to];
            for (document, frequency) in documents[from..to].iter().zip(frequencies) {
                let sum = &mut sums[(document - window.start) as usize];
                if *sum == 0.0 {
                    touched.push(*document);
                }
                *sum += Self::share(*weight, *frequency, self.norm(*document));
            }
            if to < documents.len() {
                *at = to;
                return;
            }
            *at = 0;
            postings.advance();
        }
    }

    /// Scores the documents with these ids, which ascend: the cursors only move forwards.
    fn score_some(
        &self,
        mut cursors: Vec<TermCursor>,
        doc_ids: &[u32],
        best: &mut BestDocs,
    ) -> Result<()> {
        for (count, doc_id) in doc_ids.iter().enumerate() {
            if count % 1024 == 1023 && self.stop.requested() {
                return Err(Error::Stopped);
            }
            let document = doc_id - self.first;
            let norm = self.norm(document);
            let mut score = 0.0;
            for cursor in &mut cursors {
                if let Some(frequency) = seek(&mut cursor.postings, document) {
                    score += Self::share(cursor.weight, frequency, norm);
                }
            }
            self.offer_one(*doc_id, score, best);
        }
        Ok(())
    }
}
