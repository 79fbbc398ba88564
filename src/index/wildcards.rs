//! Narrows the candidates of a pattern with `_` where its runs alone propose too many.
//!
//! Around a `_` stand characters that are known, and of the characters that may fill it only those
//! count that occur there in some text. So the documents that can match are in the union, over
//! those, of the rarest list of the run thus filled. Worth its half millisecond only once a search
//! has read much and found little.

use tantivy::postings::TermInfo;

use super::{
    Error,
    postings::{DocBits, List},
    segment::Segment,
};
use crate::text::grams::{CommonGrams, WildcardGap};

/// The most terms looked at for characters beyond ASCII: more than a script has, and some 2 ms.
const MOST_TERMS: u32 = 40_000;

impl Segment {
    /// Returns the documents whose texts may hold the gap's characters with any one between.
    ///
    /// `None` where they are too many to be of use.
    pub(super) fn fill(
        &self,
        gap: &WildcardGap,
        common: &CommonGrams,
    ) -> Result<Option<DocBits>, Error> {
        let mut lists: Vec<TermInfo> = Vec::new();
        let mut postings = 0u64;
        let most = u64::from(self.store.messages()) / 4;
        let mut try_character = |character: char| -> Result<(), Error> {
            let mut rarest: Option<TermInfo> = None;
            for gram in gap.filled(character, common) {
                match self.postings.find(List::Text, gram.term(&mut [0; 8]))? {
                    None => return Ok(()),
                    Some(info) if rarest.as_ref().is_some_and(|r| r.doc_freq <= info.doc_freq) => {}
                    Some(info) => rarest = Some(info),
                }
            }
            if let Some(info) = rarest {
                postings += u64::from(info.doc_freq);
                lists.push(info);
            }
            Ok(())
        };
        for character in (1..0x80u8).map(char::from).filter(|c| !c.is_ascii_uppercase()) {
            try_character(character)?;
        }
        let mut wide = Vec::new();
        let mut terms = 0;
        self.postings.grams_between(List::Text, gap.wide_range(), |gram| {
            terms += 1;
            if let Some(character) = gap.filling(gram)
                && wide.last() != Some(&character)
            {
                wide.push(character);
            }
            terms < MOST_TERMS
        })?;
        if terms == MOST_TERMS {
            return Ok(None);
        }
        for character in wide {
            try_character(character)?;
        }
        if postings > most {
            return Ok(None);
        }
        let mut documents = DocBits::new(self.store.messages());
        for info in &lists {
            documents.add(self.postings.read(List::Text, info)?);
        }
        Ok(Some(documents))
    }
}
