//! Expands the gaps of a pattern, such as `_`, to narrow the candidates. The literal runs alone may propose
//! too many: runs of two common characters have no posting list.
//!
//! A character that fills the gap makes a run with its known neighbours. An expansion takes only the
//! characters whose runs occur in some text. For each of these characters, the posting list of the run's
//! rarest gram covers all matches; the union of these lists covers the matches of the pattern. An expansion
//! takes 0.5 to 2 milliseconds, so a search expands only after many candidates did not match.

use tantivy::postings::TermInfo;

use super::{
    Result,
    postings::{DocBits, List},
    segment::Segment,
};
use verbatim_text::grams::{CommonGrams, WildcardGap};

/// The maximum number of terms read to find non-ASCII characters. A script has fewer. Takes about 2 ms.
const MAX_TERMS: u32 = 40_000;

/// The maximum number of postings of an expansion, as a share: one per this many messages. More
/// would hardly narrow the candidates.
const MAX_SHARE: u64 = 2;

impl Segment {
    /// Returns the documents whose texts may match a gap; `None` if there are too many.
    pub(super) fn expand(
        &self,
        gap: &WildcardGap,
        common: &CommonGrams,
    ) -> Result<Option<DocBits>> {
        let mut lists: Vec<TermInfo> = Vec::new();
        let mut postings = 0u64;
        let max_postings = u64::from(self.store.messages()) / MAX_SHARE;
        let mut try_character = |character: char| -> Result<()> {
            let mut rarest: Option<TermInfo> = None;
            for gram in gap.grams_filled_with(character, common) {
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
        self.postings.grams_between(List::Text, gap.wide_range(), |gram, _| {
            terms += 1;
            if let Some(character) = gap.filling_char(gram)
                && wide.last() != Some(&character)
            {
                wide.push(character);
            }
            terms < MAX_TERMS
        })?;
        if terms == MAX_TERMS {
            return Ok(None);
        }
        for character in wide {
            try_character(character)?;
        }
        if postings > max_postings {
            return Ok(None);
        }
        let mut documents = DocBits::new(self.store.messages());
        for info in &lists {
            documents.insert_list(self.postings.read(List::Text, info)?);
        }
        Ok(Some(documents))
    }
}
