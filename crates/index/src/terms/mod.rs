//! The term index of a segment, for ranking by BM25: posting lists with frequencies, and lengths.
//!
//! ```text
//! SEGMENT/words/
//!     manifest    format, checksum of the segment's manifest, and a record of each file
//!     terms/      a tantivy index; its doc ids count from 0 in the segment
//!     lengths     the length of each message, a byte each
//! ```
//!
//! The term index is built when its segment is already in use. A term index is rebuilt if it is damaged, or
//! belongs to another segment, or has another format.
//!
//! Invariant: a term index that opens without an error has the terms of the segment's messages.

mod build;
mod score;

use std::{path::Path, sync::Arc};

use serde::{Deserialize, Serialize};
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::FuzzyTermQuery;
use tantivy::schema::{Field, IndexRecordOption, Schema};
use tantivy::{InvertedIndexReader, Term};

use super::Result;
use super::artifact::{FileRecord, damaged, manifest_checksum, read_manifest, unreadable};
use super::lists::{self, ListMaps};
use verbatim_base::map_faults::Mapped;

pub use build::build_terms;
pub use build::speaker;
pub use score::{Bm25, DocSet, Norms, WeightedTerm, frequencies, holding};

/// The version of the folder and of the tokenizer. A term index of another version is rebuilt.
const FORMAT: u32 = 4;

const FOLDER: &str = "words";
const TERMS: &str = "terms";
const LENGTHS: &str = "lengths";

/// The minimum length of a term whose typing errors are corrected. Shorter words are too similar.
const SHORTEST_SLIP: usize = 4;

#[derive(Debug, Serialize, Deserialize)]
struct TermManifest {
    format: u32,
    segment: u32,
    documents: u32,
    /// The sum of the lengths of all messages.
    tokens: u64,
    files: Vec<FileRecord>,
}

/// The term index of a segment, open for ranking.
pub struct TermIndex {
    list: Arc<InvertedIndexReader>,
    _maps: ListMaps,
    lengths: Mapped,
    documents: u32,
    tokens: u64,
}

impl std::fmt::Debug for TermIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TermIndex").field("documents", &self.documents).finish_non_exhaustive()
    }
}

impl TermIndex {
    /// Opens the term index of a segment that has `documents` doc ids.
    pub fn open(segment: &Path, documents: u32) -> Result<TermIndex> {
        let folder = segment.join(FOLDER);
        let manifest: TermManifest = read_manifest(&folder, FORMAT, None)?;
        let checksum = manifest_checksum(segment).map_err(unreadable(&folder))?;
        if manifest.segment != checksum || manifest.documents != documents {
            return Err(damaged(&folder, "it is of another segment"));
        }
        let mut lengths = None;
        for record in &manifest.files {
            let file = record.open(&folder)?;
            if record.name == LENGTHS {
                let map = file.map().map_err(unreadable(&folder))?;
                lengths = Some(map).filter(|lengths| lengths.len() == documents as usize);
            }
        }
        let opened = lists::open(&folder.join(TERMS)).map_err(unreadable(&folder))?;
        let (Some(lengths), Some((reader, maps))) = (lengths, opened) else {
            return Err(damaged(&folder, "it was built for another number of messages"));
        };
        let list = reader.inverted_index(field()).map_err(unreadable(&folder))?;
        Ok(TermIndex { list, _maps: maps, lengths, documents, tokens: manifest.tokens })
    }

    /// Returns the number of messages, and the sum of their lengths.
    pub fn size(&self) -> (u32, u64) {
        (self.documents, self.tokens)
    }

    /// Returns the number of indexed words of a message, approximately.
    #[inline]
    pub fn length(&self, document: u32) -> u32 {
        decode_length(self.lengths[document as usize])
    }

    /// Returns the document frequency of a term: the number of messages with it; 0 if unknown.
    pub fn frequency(&self, term: &str) -> Result<u32> {
        Ok(self.list.terms().get(term.as_bytes())?.map_or(0, |info| info.doc_freq))
    }

    /// Calls `each` with every indexed term that differs from `term` by one typing error, and its number of
    /// messages. A typing error is one extra, missing or wrong letter, or two swapped letters.
    pub fn slips(&self, term: &str, each: &mut dyn FnMut(&str, u32)) -> Result<()> {
        if term.len() < SHORTEST_SLIP {
            return Ok(());
        }
        let query = FuzzyTermQuery::new(Term::from_field_text(field(), term), 1, true);
        let automaton = query.automaton().expect("a term of text and a distance of one are valid");
        let mut terms = self.list.terms().search(automaton).into_stream()?;
        while let Some((other, info)) = terms.next() {
            if let Ok(other) = std::str::from_utf8(other)
                && other.is_ascii()
                && other != term
            {
                each(other, info.doc_freq);
            }
        }
        Ok(())
    }

    fn postings(&self, term: &str) -> Result<Option<BlockSegmentPostings>> {
        let Some(info) = self.list.terms().get(term.as_bytes())? else { return Ok(None) };
        let option = IndexRecordOption::WithFreqs;
        Ok(Some(self.list.read_block_postings_from_terminfo(&info, option)?))
    }
}

fn field() -> Field {
    Field::from_field_id(0)
}

fn schema() -> Schema {
    lists::schema(&["words"], IndexRecordOption::WithFreqs)
}

/// The length above which several lengths share a code. Consecutive codes are then 4 % apart.
const EXACT: u32 = 64;

/// Returns a length as rounded in term indexes.
pub fn rounded_length(length: u32) -> u32 {
    decode_length(encode_length(length))
}

fn encode_length(length: u32) -> u8 {
    if length < EXACT {
        return length as u8;
    }
    let steps = (f64::from(length) / f64::from(EXACT)).ln() / 1.04f64.ln();
    (f64::from(EXACT) + steps).round().min(255.0) as u8
}

fn decode_length(code: u8) -> u32 {
    let steps = f64::from(code) - f64::from(EXACT);
    if steps < 0.0 { code.into() } else { (f64::from(EXACT) * 1.04f64.powf(steps)).round() as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back_nearly() {
        for length in (0..2000).chain([5_000, 20_000, 100_000]) {
            let back = decode_length(encode_length(length));
            assert!((f64::from(back) - f64::from(length)).abs() <= f64::from(length) * 0.03);
        }
        assert_eq!(encode_length(u32::MAX), 255);
        assert!((0..255).all(|code| decode_length(code) < decode_length(code + 1)));
    }
}
