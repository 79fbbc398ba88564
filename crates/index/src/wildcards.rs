//! Expands the gaps of a pattern, such as `_`, to narrow the candidates. The literal runs alone may propose
//! too many: runs of two common characters have no posting list.
//!
//! A character that fills the gap makes a run with its known neighbours. An expansion takes only the
//! characters whose runs occur in some text. For each of these characters, the posting list of the run's
//! rarest gram covers all matches; the union of these lists covers the matches of the pattern. An expansion
//! takes 0.5 to 2 milliseconds, so a search expands only after many candidates did not match.

use tantivy::postings::TermInfo;

use super::Result;
use super::postings::{DocBits, List};
use super::segment::Segment;
use verbatim_text::grams::{CommonGrams, Gram, WildcardGap};

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
        let mut characters: Vec<char> =
            (1..0x80u8).map(char::from).filter(|c| !c.is_ascii_uppercase()).collect();
        let mut terms = 0;
        self.postings.grams_between(List::Text, gap.wide_range(), |gram, _| {
            terms += 1;
            if let Some(character) = gap.filling_char(gram)
                && characters.last() != Some(&character)
            {
                characters.push(character);
            }
            terms < MAX_TERMS
        })?;
        if terms == MAX_TERMS {
            return Ok(None);
        }
        let mut lists: Vec<TermInfo> = Vec::new();
        for character in characters {
            lists.extend(self.rarest_list(&gap.grams_filled_with(character, common))?);
        }
        let postings: u64 = lists.iter().map(|info| u64::from(info.doc_freq)).sum();
        if postings > u64::from(self.store.messages()) / MAX_SHARE {
            return Ok(None);
        }
        let mut documents = DocBits::new(self.store.messages());
        for info in &lists {
            documents.insert_list(self.postings.read(List::Text, info)?);
        }
        Ok(Some(documents))
    }

    /// Returns the shortest list of some grams; `None` if a gram is in no text.
    fn rarest_list(&self, grams: &[Gram]) -> Result<Option<TermInfo>> {
        let mut rarest: Option<TermInfo> = None;
        for gram in grams {
            match self.postings.find(List::Text, gram.term(&mut [0; 8]))? {
                None => return Ok(None),
                Some(info) if rarest.as_ref().is_some_and(|r| r.doc_freq <= info.doc_freq) => {}
                Some(info) => rarest = Some(info),
            }
        }
        Ok(rarest)
    }
}
