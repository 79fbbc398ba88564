//! Finds the passages of messages that answer a question best: by quoted texts, by terms, or by meaning.

use std::ops::Range;

use super::passage::{self, span_of};
use crate::scoring::Concept;
use verbatim_base::call::Stop;
use verbatim_embed::{Model, SentenceEncoder, dot};
use verbatim_text::{matcher::Matchers, query::PhraseSearch, snippet, up_to, words::Tokenizer};

/// Maximum number of chunks of messages that the encoder reads to find the passages of an answer. It reads
/// a chunk of 130 bytes in .7 to 4 ms, and the best messages come first.
const MAX_ENCODED: usize = 16;

/// Number of bytes of a text in which the passage nearest to the query's vector is searched.
const MAX_CHUNKED: usize = 16 << 10;

/// The share of the question's IDF from which a passage is chosen by its terms, and not by meaning.
const LEAST_BY_TERMS: f32 = 0.5;

/// Maximum number of chunks of a message of which the encoder chooses the passage, after the other model.
const MAX_COMPARED: usize = 4;

/// Maximum number of groups of chunks of a message that the encoder compares without the other model.
const MAX_GROUPS: usize = 12;

/// Number of bytes of a chunk, or of a group of chunks, that the encoder reads.
const MAX_ENCODED_OF_CHUNK: usize = 300;

/// Number of bytes at the beginning of a quoted text that a passage is placed around.
const MAX_SPAN: usize = 200;

/// Number of bytes of a text that are searched for terms if the text may have none of them.
const MAX_WITHOUT_TERMS: usize = 64 << 20;

/// Finder of the passages of one answer.
pub(super) struct Passages<'a> {
    model: &'a Model,
    /// The quoted texts, or the whole question.
    phrases: Vec<Matchers>,
    terms: Vec<(String, f32)>,
    /// The sum of the IDFs of the question's terms, also of those that occur in no message.
    weight: f32,
    vector: Option<&'a [f32]>,
    /// The encoder, and its vector of the question.
    encoded: Option<(SentenceEncoder, &'a [f32])>,
    tokenizer: Tokenizer,
    /// The number of chunks that the encoder may still read.
    chunks_left: usize,
}

impl<'a> Passages<'a> {
    pub(super) fn new(model: &'a Model, concepts: &'a [Concept]) -> Passages<'a> {
        let terms = concepts.iter().flat_map(|concept| &concept.terms);
        let quoted = concepts.iter().flat_map(|concept| &concept.query.phrases);
        let texts = concepts.iter().map(|concept| &concept.query.text);
        let whole = texts.filter(|text| !text.is_empty()).map(|text| PhraseSearch::literal(text));
        let phrases = quoted.map(|phrase| PhraseSearch::quoted(phrase)).chain(whole);
        let encoded = concepts.iter().find_map(|concept| concept.encoded.as_deref());
        Passages {
            model,
            phrases: phrases.filter_map(|phrase| Matchers::of(&phrase.request).ok()).collect(),
            terms: terms.map(|term| (term.term.clone(), term.weight)).collect(),
            weight: concepts.iter().map(|concept| concept.weight).sum(),
            vector: concepts.iter().find_map(|concept| concept.vector.as_deref()),
            encoded: model.sentence_encoder().zip(encoded),
            tokenizer: Tokenizer::default(),
            chunks_left: MAX_ENCODED,
        }
    }

    /// Returns the passage with the quoted text, the whole question or the query's terms, and its offset in the
    /// text. If there are none, or too few terms, returns the passage nearest to the query's vector, by the
    /// encoder if `may_encode`.
    pub(super) fn best(&mut self, text: &str, may_encode: bool) -> (String, usize) {
        let trimmed = snippet::trim(text);
        let before = trimmed.as_ptr().addr() - text.as_ptr().addr();
        let range = self.range(trimmed, may_encode).unwrap_or(0..0);
        (passage::passage_around(trimmed, range.clone()), before + range.start)
    }

    fn range(&mut self, text: &str, may_encode: bool) -> Option<Range<usize>> {
        if let Some(span) = self.phrases.iter().find_map(|phrase| span_of(text, phrase)) {
            let start = span.start;
            return Some(start..start + up_to(&text[span], MAX_SPAN).len());
        }
        // Without a vector, the message was found by a term, so its text has one.
        let has_vector = self.vector.is_some() || self.encoded.is_some();
        let most = if has_vector { MAX_WITHOUT_TERMS } else { usize::MAX };
        let of_terms = passage::heaviest_place(text, &self.terms, &self.tokenizer, most);
        let is_enough = of_terms.as_ref().is_some_and(|(weight, _)| {
            self.encoded.is_none() || *weight >= LEAST_BY_TERMS * self.weight
        });
        let of_terms = of_terms.map(|(_, range)| range);
        let is_short = snippet::cut(text, passage::LENGTH).is_none();
        if is_enough || is_short || !self.model.is_built_in() {
            return of_terms;
        }
        match self.encoded {
            Some((encoder, vector)) if may_encode && self.chunks_left > 0 => {
                self.nearest_encoded(text, of_terms, encoder, vector)
            }
            _ => of_terms.or_else(|| self.nearest_chunks(text)?.into_iter().next()),
        }
    }

    /// Returns the chunks at the beginning of a text, the nearest to the question's vector by the model of all
    /// messages first; `None` if the question has no such vector.
    fn nearest_chunks(&self, text: &str) -> Option<Vec<Range<usize>>> {
        let vector = self.vector?;
        let chunks = passage::chunks(up_to(text, MAX_CHUNKED));
        let texts: Vec<&str> = chunks.iter().map(|chunk| &text[chunk.clone()]).collect();
        let vectors = self.model.encode(&texts, &Stop::never()).ok()?;
        let cosines = vectors.iter().map(|other| dot(vector, other));
        let mut nearest: Vec<_> = cosines.zip(chunks).collect();
        nearest.sort_by(|a, b| b.0.total_cmp(&a.0));
        Some(nearest.into_iter().map(|(_, chunk)| chunk).collect())
    }

    /// Returns the chunk of a text that is nearest to the question's vector by the encoder. Compares the chunk
    /// with the terms, and the nearest ones by the other model. If that does not know the question, compares
    /// groups of neighbouring chunks by their beginnings, and then the chunks of the nearest group.
    fn nearest_encoded(
        &mut self,
        text: &str,
        of_terms: Option<Range<usize>>,
        encoder: SentenceEncoder,
        vector: &[f32],
    ) -> Option<Range<usize>> {
        if let Some(mut chunks) = self.nearest_chunks(text) {
            if let Some(by_terms) = of_terms {
                let place = chunks.iter().position(|chunk| chunk.contains(&by_terms.start));
                let first = place.map_or(by_terms, |place| chunks.remove(place));
                chunks.insert(0, first);
            }
            chunks.truncate(MAX_COMPARED);
            return self.nearest_of(text, &chunks, encoder, vector);
        }
        let chunks = passage::chunks(up_to(text, MAX_CHUNKED));
        let most = MAX_GROUPS.min(self.chunks_left);
        let groups: Vec<&[Range<usize>]> =
            chunks.chunks(chunks.len().div_ceil(most).max(1)).collect();
        let wholes: Vec<Range<usize>> =
            groups.iter().map(|group| group[0].start..group[group.len() - 1].end).collect();
        let nearest = self.nearest_of(text, &wholes, encoder, vector)?;
        let group = groups.into_iter().find(|group| group[0].start == nearest.start)?;
        match group.len() {
            1 => Some(nearest),
            _ => self.nearest_of(text, group, encoder, vector).or(Some(nearest)),
        }
    }

    /// Returns the range of a text whose beginning is nearest to the question's vector by the encoder.
    fn nearest_of(
        &mut self,
        text: &str,
        ranges: &[Range<usize>],
        encoder: SentenceEncoder,
        vector: &[f32],
    ) -> Option<Range<usize>> {
        let ranges = &ranges[..ranges.len().min(self.chunks_left)];
        self.chunks_left -= ranges.len();
        let texts = ranges.iter().map(|it| up_to(&text[it.clone()], MAX_ENCODED_OF_CHUNK));
        let vectors = encoder.encode(&texts.collect::<Vec<_>>());
        let cosines = vectors.iter().map(|other| dot(vector, other));
        let nearest = cosines.zip(ranges).max_by(|a, b| a.0.total_cmp(&b.0));
        nearest.map(|(_, range)| range.clone())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Mode, Question, TestExport};
    use verbatim_base::call::Call;

    #[test]
    fn the_passage_is_the_sentence_that_answers() {
        let filler = |topics: &[&str]| -> String {
            let sentence = |topic: &&str| {
                format!(
                    "Here are some thoughts about {topic} that you may want to keep in mind for later. "
                )
            };
            topics.iter().map(sentence).collect()
        };
        let before = filler(&[
            "packing for a holiday",
            "the weather in spring",
            "painting the kitchen",
            "a birthday cake",
            "repairing a bicycle",
            "learning the guitar",
            "the train timetable",
            "a garden fence",
        ]);
        let after = filler(&[
            "buying new shoes",
            "a school trip",
            "cleaning windows",
            "the neighbour's dog",
            "board games",
            "sorting photographs",
            "a broken lamp",
            "the town library",
        ]);
        let answer =
            "To end your gym membership, send a written notice four weeks before the month ends.";
        let text = format!("{before}{answer} {after}");
        let other = "The sourdough needs flour, water and salt, and a night in the refrigerator.";
        let export = TestExport::indexed(&[&text, other]);
        for source in export.engine.all_sources().present() {
            source.encode(1, &Call::default(), &|_| ()).unwrap();
        }
        for (question, mode) in [
            ("Wie kündige ich meinen Vertrag im Fitnessstudio?", Mode::Both),
            ("Как мне расторгнуть договор с фитнес-клубом?", Mode::Both),
            ("我怎么取消健身房的会员？", Mode::Vector),
            ("how can I cancel the contract with my fitness studio", Mode::Vector),
            // Only “keep” is a word of the message, and not of the sentence that answers.
            ("keep quitting a subscribed fitness studio", Mode::Both),
        ] {
            let concepts = vec![question.to_owned()];
            let question = Question { concepts, mode, limit: 5, ..Question::default() };
            let ranking = export.engine.rank(&question, &Call::default()).unwrap();
            let found = ranking.items.iter().find(|it| it.hit.message_id == "m0").unwrap();
            assert!(found.passage.contains(answer), "{:?}: {}", question.concepts, found.passage);
            let ranking = export.engine.rank_conversations(&question, &Call::default()).unwrap();
            let found = ranking.items.iter().find(|it| it.about.id == "0").unwrap();
            assert!(found.matches[0].passage.contains(answer), "{}", found.matches[0].passage);
        }
        // Words that are most of the question decide.
        let concepts = vec!["painting the kitchen".to_owned()];
        let question = Question { concepts, limit: 5, ..Question::default() };
        let found = export.engine.rank(&question, &Call::default()).unwrap().items;
        assert!(found[0].passage.contains("painting the kitchen"), "{}", found[0].passage);
    }
}
