//! The words of a part's messages, to rank by: posting lists with frequencies, and lengths.
//!
//! ```text
//! PART/words/
//!     manifest    format, which part it is of, and length, checksum and identity of each file
//!     terms/      a tantivy index of one segment whose doc ids are the part's doc ids from 0 on
//!     lengths     how long each message is, a byte each
//! ```
//!
//! Derived from a part once the part is in use, built beside its place and moved there in one
//! step. What is not whole, not of this part or of another format is built anew.
//!
//! Invariant: words that open are those of the part's messages as the sidecar has them.

mod build;
mod score;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use tantivy::{
    Index, InvertedIndexReader, SegmentReader, Term,
    directory::MmapDirectory,
    postings::BlockSegmentPostings,
    query::FuzzyTermQuery,
    schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
};

use super::{Error, map::Mapped, segment::FileRecord};

pub use build::build_terms;
pub use score::{DocSet, Norms, WeightedTerm, best, frequencies, holding};

/// The version of the folder and of how texts are cut into terms; another is built anew.
const FORMAT: u32 = 2;

const FOLDER: &str = "words";
const TERMS: &str = "terms";
const LENGTHS: &str = "lengths";
const MANIFEST: &str = "manifest";

/// The fewest letters of a term that is taken for a slip: short words resemble too many others.
const SHORTEST_SLIP: usize = 4;

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    /// The checksum of the manifest of the part.
    part: u32,
    documents: u32,
    /// The sum of all lengths.
    tokens: u64,
    files: Vec<FileRecord>,
}

/// The words of a part, open for ranking.
pub struct TermIndex {
    list: Arc<InvertedIndexReader>,
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
    /// Opens the words of a part that has `documents` doc ids.
    pub fn open(part: &Path, documents: u32) -> Result<TermIndex, Error> {
        let folder = part.join(FOLDER);
        let damaged = |reason: String| Error::TermIndex { path: folder.clone(), reason };
        let read = |path: PathBuf| fs::read(path).map_err(|error| damaged(error.to_string()));
        let manifest: Manifest = serde_json::from_slice(&read(folder.join(MANIFEST))?)
            .map_err(|error| damaged(error.to_string()))?;
        let is_ours = manifest.format == FORMAT
            && manifest.part == crc32fast::hash(&read(part.join(MANIFEST))?)
            && manifest.documents == documents;
        if !is_ours {
            return Err(damaged("it is of something else".to_owned()));
        }
        for record in &manifest.files {
            drop(record.open(&folder)?);
        }
        let lengths =
            Mapped::open(&folder.join(LENGTHS)).map_err(|error| damaged(error.to_string()))?;
        let list = open_list(&folder.join(TERMS), documents)
            .map_err(|error| damaged(error.to_string()))?
            .filter(|_| lengths.len() == documents as usize)
            .ok_or_else(|| damaged("it is of another number of messages".to_owned()))?;
        Ok(TermIndex { list, lengths, documents, tokens: manifest.tokens })
    }

    /// How many messages it is of, and how long they are together.
    pub fn size(&self) -> (u32, u64) {
        (self.documents, self.tokens)
    }

    /// How many words that count a message has, about.
    pub fn length(&self, document: u32) -> u32 {
        length_of(self.lengths[document as usize])
    }

    /// How many messages have a term.
    pub fn frequency(&self, term: &str) -> Result<u32, Error> {
        Ok(self.list.terms().get(term.as_bytes())?.map_or(0, |info| info.doc_freq))
    }

    /// Calls `each` with the terms that differ from a term by one slip of the keyboard, and how many
    /// messages have them. A slip is a letter too many, too few or wrong, or two letters swapped.
    pub fn slips(&self, term: &str, each: &mut dyn FnMut(&str, u32)) -> Result<(), Error> {
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

    /// The messages that have a term, and how often each does.
    fn postings(&self, term: &str) -> Result<Option<BlockSegmentPostings>, Error> {
        let Some(info) = self.list.terms().get(term.as_bytes())? else { return Ok(None) };
        let option = IndexRecordOption::WithFreqs;
        Ok(Some(self.list.read_block_postings_from_terminfo(&info, option)?))
    }
}

fn open_list(folder: &Path, documents: u32) -> tantivy::Result<Option<Arc<InvertedIndexReader>>> {
    let index = Index::open(MmapDirectory::open(folder)?)?;
    let segments = index.searchable_segments()?;
    let [segment] = &segments[..] else { return Ok(None) };
    let reader = SegmentReader::open(segment)?;
    if reader.max_doc() != documents {
        return Ok(None);
    }
    reader.inverted_index(field()).map(Some)
}

fn field() -> Field {
    Field::from_field_id(0)
}

fn schema() -> Schema {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqs);
    let mut schema = Schema::builder();
    schema.add_text_field("words", TextOptions::default().set_indexing_options(indexing));
    schema.build()
}

/// The lengths up to which each has a code of its own; beyond, codes are 4 % apart.
const EXACT: u32 = 64;

fn code_of(length: u32) -> u8 {
    if length < EXACT {
        return length as u8;
    }
    let steps = (f64::from(length) / f64::from(EXACT)).ln() / 1.04f64.ln();
    (f64::from(EXACT) + steps).round().min(255.0) as u8
}

fn length_of(code: u8) -> u32 {
    let steps = f64::from(code) - f64::from(EXACT);
    if steps < 0.0 { code.into() } else { (f64::from(EXACT) * 1.04f64.powf(steps)).round() as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back_nearly() {
        for length in (0..2000).chain([5_000, 20_000, 100_000]) {
            let back = length_of(code_of(length));
            assert!((f64::from(back) - f64::from(length)).abs() <= f64::from(length) * 0.03);
        }
        assert_eq!(code_of(u32::MAX), 255);
        assert!((0..255).all(|code| length_of(code) < length_of(code + 1)));
    }
}
