//! Parses a concept of a question: its terms with their IDF, its vector, and the authors that it names.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{notes::Notes, question::Mode, ranker::Ranker, sources::RankedSource};
use crate::scoring::{Concept, Statistics, idf};
use crate::{error::Result, source::Note};
use verbatim_chats::db;
use verbatim_embed as embed;
use verbatim_index::WeightedTerm;
use verbatim_text::query::Query;
use verbatim_text::spelling::{base_forms, variants};
use verbatim_text::words::{Token, Tokenizer, is_character, is_unspaced, tokens};

/// If the model knows a smaller share of a query's letters than the first, the query's vector is
/// not used. From the second share on, the vector has its full weight. Nearly all English queries
/// are above the second share; half of the German ones are between the two.
const LEAST_KNOWN: f64 = 0.7;
const WELL_KNOWN: f64 = 0.95;

/// If the encoder knows a smaller share of a query's letters, the query's vector is not used. It knows at
/// most .3 of a text in another language, and at least .9 of a text in one of its own.
const LEAST_KNOWN_TO_ENCODER: f64 = 0.5;

/// Number of words in ASCII from which a query counts as a text in a language. Fewer may be names.
const LEAST_OF_LANGUAGE: usize = 3;

/// The factor for single characters in scripts without spaces. Pairs of characters have factor 1.
///
/// A word may have other neighbours in the text than in the query, so that pairs miss it. With pairs
/// alone, MRR@10 is .683 on CMRC 2018, .793 on the Chinese part of XQuAD and .821 on DRCD. With single
/// characters it is .685, .804 and .830.
const CHARACTER_WEIGHT: f32 = 0.5;

/// The factor for the parts of a name if the whole name occurs in a message. A query for
/// `parse_config_file` does not ask for every message about parsing.
const NAME_PART_WEIGHT: f32 = 0.3;

/// Parses a concept of a question to some sources. Adds notes about it.
pub(super) fn parse(
    ranker: &Ranker<'_>,
    sources: &[RankedSource],
    text: &str,
    notes: &mut Notes,
) -> Result<Concept> {
    let may_be_elsewhere = notes.has(Note::lacks_words);
    ConceptParser { ranker, sources, may_be_elsewhere, notes, has_word_in_scope: false }.parse(text)
}

struct ConceptParser<'a> {
    ranker: &'a Ranker<'a>,
    sources: &'a [RankedSource],
    /// Whether messages without an index may have words that no other message has.
    may_be_elsewhere: bool,
    notes: &'a mut Notes,
    /// Whether a message in the scope has a word of the concept.
    has_word_in_scope: bool,
}

impl ConceptParser<'_> {
    fn parse(&mut self, text: &str) -> Result<Concept> {
        let mode = self.ranker.question.mode;
        let mut concept = Concept::new(text);
        let absent = self.weigh_terms(&mut concept)?;
        if mode == Mode::Vector {
            concept.terms.clear();
        }
        let named = named_authors(&concept.query.text, self.sources);
        if matches!(mode, Mode::Vector | Mode::Both) && !concept.query.text.is_empty() {
            self.encode(&mut concept, &named)?;
        }
        if let [author] = named[..] {
            concept.author = Some(author.to_owned());
        }
        if !absent.is_empty() {
            let by_meaning = concept.has_vector();
            let by_words = self.has_word_in_scope;
            let is_filtered = self.ranker.question.scope.has_filters();
            self.notes.add(Note::NoWord { is_filtered, words: absent, by_meaning, by_words });
        }
        Ok(concept)
    }

    /// Computes the vector of a concept without names of authors, as these do not describe the topic.
    fn encode(&mut self, concept: &mut Concept, named: &[&str]) -> Result<()> {
        let model = self.ranker.sources.model();
        let names: Vec<String> = named.iter().flat_map(|author| words(author)).collect();
        let mut other_words: Vec<&str> = concept.query.text.split_whitespace().collect();
        other_words.retain(|word| !names.contains(&normalized(word)));
        let nameless = other_words.join(" ");
        let text = if nameless.is_empty() { &concept.query.text } else { &nameless };
        let known = model.known_share(text);
        if self.ranker.question.mode == Mode::Both {
            let share = (known - LEAST_KNOWN) / (WELL_KNOWN - LEAST_KNOWN);
            concept.known = share.clamp(0.0, 1.0) as f32;
        }
        concept.is_encoded = self.sources.iter().any(|source| source.scorer.encoded().0 > 0);
        let mut is_known = known >= LEAST_KNOWN || !is_of_language(text);
        if let Some(encoder) = model.sentence_encoder().filter(|_| concept.is_encoded) {
            let known = encoder.known_share(text);
            let is_known_to_encoder = known >= LEAST_KNOWN_TO_ENCODER;
            if self.ranker.question.mode == Mode::Both {
                concept.encoded_known = if is_known_to_encoder { known as f32 } else { 0.0 };
            }
            if is_known_to_encoder {
                is_known = true;
                concept.encoded = Some(encoder.encode(&[text]).swap_remove(0));
            }
        }
        if !is_known {
            self.notes.add(Note::UnknownLanguage { text: text.clone() });
            if concept.terms.is_empty() {
                self.weigh_terms(concept)?;
            }
            return Ok(());
        }
        if concept.known <= 0.0 {
            return Ok(());
        }
        match model.encode_query(text, &self.ranker.call.stop) {
            Ok(vector) => concept.vector = vector.iter().any(|it| *it != 0.0).then_some(vector),
            Err(embed::Error::Stopped) => return Err(db::Error::Stopped.into()),
            Err(error) => {
                self.notes.add(Note::ProviderAway { reason: error.to_string() });
                if concept.terms.is_empty() {
                    self.weigh_terms(concept)?;
                }
            }
        }
        Ok(())
    }

    /// Computes the IDF of a concept's terms over all messages. If the scope names a conversation, only
    /// its messages count. Returns the words that no message has.
    fn weigh_terms(&mut self, concept: &mut Concept) -> Result<Vec<String>> {
        let tokenizer = Tokenizer::default();
        let mut terms = tokenizer.question(&concept.query.text);
        let absent = self.correct(&concept.query, &mut terms)?;
        let mut all = Statistics { frequencies: vec![0; terms.len()], ..Statistics::default() };
        for source in self.sources {
            let here = source.scorer.statistics(&terms)?;
            for (sum, here) in all.frequencies.iter_mut().zip(here.frequencies) {
                *sum += here;
            }
            all.messages += here.messages;
            all.tokens += here.tokens;
        }
        let messages = all.messages as f32;
        concept.average = (all.tokens as f32 / messages.max(1.0)).max(1.0);
        let mut name_parts: HashSet<String> = HashSet::new();
        for name in tokenizer.names(&concept.query.text) {
            let mut known = terms.iter().zip(&all.frequencies);
            if known.any(|(term, frequency)| *term == name[0] && *frequency > 0) {
                name_parts.extend(name.into_iter().skip(1));
            }
        }
        let mut occurring: Vec<WeightedTerm> = Vec::new();
        let mut others: Vec<WeightedTerm> = Vec::new();
        for (term, frequency) in terms.into_iter().zip(all.frequencies) {
            let factor = if is_character(&term) {
                CHARACTER_WEIGHT
            } else if name_parts.contains(&term) {
                NAME_PART_WEIGHT
            } else {
                1.0
            };
            let weight = factor * idf(messages, frequency as f32);
            let list = if frequency > 0 { &mut occurring } else { &mut others };
            list.push(WeightedTerm { term, weight });
        }
        // A pair of characters that occurs nowhere may be of two words.
        others.retain(|it| !it.term.contains(is_unspaced));
        concept.weight = occurring.iter().chain(&others).map(|it| it.weight).sum();
        concept.terms = occurring;
        Ok(absent)
    }

    /// Replaces each English word that occurs in no message by its British or American form or, if it is no
    /// word that is known, by the most frequent word of which it may be a misspelling. Quoted words stay.
    /// Returns the other words that occur in no message of the scope, as they were typed.
    ///
    /// With one misspelling per question, MRR@10 on LoCoMo over all conversations is .412 without
    /// correction and .492 with correction. Without misspellings it is .503.
    fn correct(&mut self, query: &Query, terms: &mut Vec<String>) -> Result<Vec<String>> {
        let sources = self.sources;
        for source in sources {
            source.scorer.look_up(terms)?;
        }
        let typed = typed_words(&query.outside);
        let mut absent = Vec::new();
        let mut in_scope = vec![false; terms.len()];
        for source in sources {
            for (has, here) in in_scope.iter_mut().zip(source.scorer.has_in_scope(terms)?) {
                *has |= here;
            }
        }
        self.has_word_in_scope = in_scope.contains(&true);
        for (term, is_in_scope) in terms.iter_mut().zip(in_scope) {
            let Some(word) = typed.get(term.as_str()) else { continue };
            if is_in_scope {
                continue;
            }
            // Vectors are of the words as they were typed.
            if self.ranker.question.mode != Mode::Vector
                && !has_term(sources, term)?
                && let Some((form, corrected)) = corrected(word, term, sources)?
            {
                *term = corrected;
                self.has_word_in_scope = true;
                self.notes.add(Note::Slip { word: word.text.clone(), meant: form });
            } else if !word.is_part && !self.may_be_elsewhere {
                absent.push(word.text.clone());
            }
        }
        let mut known = HashSet::new();
        terms.retain(|term| known.insert(term.clone()));
        Ok(absent)
    }
}

/// Returns whether a text is in a language: not only numbers, and no more than a few names.
fn is_of_language(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| word.contains(char::is_alphabetic));
    words.count() >= LEAST_OF_LANGUAGE
        || text.contains(|c: char| c.is_alphabetic() && !c.is_ascii())
}

struct TypedWord {
    /// The word as it was typed or, for a part of a name, its term.
    text: String,
    /// Whether the word is only a part of a name.
    is_part: bool,
}

/// Returns the words of a question by their terms.
fn typed_words(text: &str) -> HashMap<String, TypedWord> {
    let tokenizer = Tokenizer::default();
    let mut typed: HashMap<String, TypedWord> = HashMap::new();
    tokens(text, |token| {
        let Token::Word(word) = token else { return };
        let mut is_part = false;
        tokenizer.word(word, &mut |term| {
            let text = if is_part { term } else { word }.to_owned();
            let new = TypedWord { text, is_part };
            let known = typed.entry(term.to_owned()).or_insert(new);
            known.is_part &= is_part;
            is_part = true;
        });
    });
    typed
}

/// Returns the word and the term that a word stands for which occurs in no message; `None` if it stands for
/// itself.
fn corrected(
    word: &TypedWord,
    term: &str,
    sources: &[RankedSource],
) -> Result<Option<(String, String)>> {
    let written = word.text.to_lowercase();
    if !term.bytes().all(|b| b.is_ascii_lowercase()) || !written.is_ascii() {
        return Ok(None);
    }
    let tokenizer = Tokenizer::default();
    for form in variants(&written) {
        if let [of_form] = &tokenizer.question(&form)[..]
            && has_term(sources, of_form)?
        {
            return Ok(Some((form, of_form.clone())));
        }
    }
    if base_forms(&written).iter().any(|base| embed::is_word(base)) {
        return Ok(None);
    }
    let mut similar: BTreeMap<String, u32> = BTreeMap::new();
    for source in sources {
        source.scorer.corrections(term, &mut similar)?;
    }
    // A stem that is only longer or shorter than the stem of an inflected word is that of another word.
    if written != term {
        similar.retain(|other, _| !other.starts_with(term) && !term.starts_with(other.as_str()));
    }
    // A word that occurs in only one message may be a misspelling itself.
    similar.retain(|_, frequency| *frequency > 1);
    // Misspellings of the first letter are rare.
    let best = similar
        .into_iter()
        .max_by_key(|(other, frequency)| (other.chars().next() == term.chars().next(), *frequency));
    Ok(best.map(|(other, _)| (other.clone(), other)))
}

fn has_term(sources: &[RankedSource], term: &str) -> Result<bool> {
    for source in sources {
        if source.scorer.has_term(term)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn named_authors<'s>(query: &str, sources: &'s [RankedSource]) -> Vec<&'s str> {
    let of_query = words(query);
    let mut named: Vec<&str> = sources.iter().flat_map(|it| it.scorer.authors()).collect();
    named.retain(|author| names(author, &of_query, query));
    named.sort_unstable();
    named.dedup();
    named
}

/// Returns the words of a text in lower case, without a possessive ending.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '\u{2019}'));
    words.map(normalized).filter(|word| !word.is_empty()).collect()
}

fn normalized(word: &str) -> String {
    let word = word.to_lowercase().replace('\u{2019}', "'");
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.strip_suffix("'s").unwrap_or(word).to_owned()
}

/// Returns whether a query contains a part of an author's name, in any case.
fn names(author: &str, words: &[String], query: &str) -> bool {
    if author.chars().any(is_unspaced) {
        return query.contains(author);
    }
    self::words(author).iter().any(|part| part.chars().count() > 1 && words.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Question, Scope, TestExport};
    use verbatim_base::{call::Call, model::Instant};

    fn notes(export: &TestExport, text: &str, mode: Mode) -> Vec<String> {
        let question =
            Question { concepts: vec![text.to_owned()], mode, limit: 5, ..Question::default() };
        export.engine.rank(&question, &Call::default()).unwrap().notes()
    }

    #[test]
    fn a_word_that_is_known_is_not_replaced() {
        let texts =
            ["a layer of paint in every locker", "the baker had one more layer and a locker"];
        let export = TestExport::indexed(&[texts[0], texts[1], "the baker took a flight"]);
        for mode in [Mode::Text, Mode::Both, Mode::Vector] {
            for word in ["lawyer", "docker", "bakery"] {
                let notes = notes(&export, word, mode);
                let said = format!("no message has “{word}”");
                let shown = format!("{said}; nearest by meaning:");
                assert!(notes == [said] || notes == [shown], "{mode:?}: {notes:?}");
            }
            let wrong = notes(&export, "lokcer", mode);
            let is_replaced = wrong[0].ends_with("searched for “locker” instead");
            assert_eq!(is_replaced, mode != Mode::Vector, "{wrong:?}");
        }
    }

    #[test]
    fn words_that_no_message_has_are_said_first() {
        let export = TestExport::indexed(&["the borrow checker", "a borrow of the checker"]);
        let concepts = vec!["chekcer for quantum chromodynamics".to_owned()];
        let question = Question { concepts, limit: 5, ..Question::default() };
        let ranking = export.engine.rank(&question, &Call::default()).unwrap();
        assert_eq!(ranking.absent_words(), ["quantum", "chromodynamics"]);
        let notes = ranking.notes();
        assert!(
            notes[0].starts_with("no message has “quantum” or “chromodynamics”; "),
            "{notes:?}"
        );
        assert!(notes[1].ends_with("searched for “checker” instead"), "{notes:?}");
    }

    #[test]
    fn words_are_looked_for_within_the_filters() {
        let export = TestExport::indexed(&["a zebra in the kitchen", "the hotel", "a kitchen"]);
        let since = Some(Instant { seconds: 1_700_000_001, nanos: 0 });
        for (scope, absent) in [
            (
                Scope { conversation: Some("1".to_owned()), ..Scope::default() },
                &["zebra", "kitchen"][..],
            ),
            (Scope { since, ..Scope::default() }, &["zebra"]),
            (Scope::default(), &[]),
        ] {
            let concepts = vec!["zebra kitchen".to_owned()];
            let question = Question { concepts, limit: 5, scope, ..Question::default() };
            let ranking = export.engine.rank(&question, &Call::default()).unwrap();
            assert_eq!(ranking.absent_words(), absent, "{:?}", question.scope);
            let start = "with these filters, no message has “zebra”";
            let notes = ranking.notes();
            let is_said = notes.first().is_some_and(|note| note.starts_with(start));
            assert_eq!(is_said, !absent.is_empty(), "{notes:?}");
            let says_other = notes.first().is_some_and(|note| note.contains("other words"));
            assert_eq!(says_other, absent == ["zebra"], "{notes:?}");
        }
    }

    #[cfg(feature = "multilingual")]
    #[test]
    fn words_of_another_language_are_not_replaced_and_not_all_listed() {
        let texts = ["I want to have a den", "what do you want to have", "a den that I have"];
        let export = TestExport::indexed(&texts);
        let notes = self::notes(&export, "wann habe ich den Vertrag gekündigt", Mode::Both);
        let said = "no message has “wann” or “habe” or “ich” or “Vertrag” or “gekündigt”";
        assert!(notes.len() == 1 && notes[0].starts_with(said), "{notes:?}");
        let notes = self::notes(&export, "où est mon contrat de bail signé hier", Mode::Both);
        let said = "no message has “où” or “est” or “mon” or “contrat” or 4 more words";
        assert!(notes[0].starts_with(said), "{notes:?}");
    }

    #[test]
    fn a_language_that_no_model_knows_is_said() {
        let export = TestExport::indexed(&["How do I cancel my gym contract?", "συνδρομή: 20 €"]);
        let said = |text: &str| {
            format!(
                "the model for meaning does not know the language of “{text}”; ranked by words alone"
            )
        };
        let greek = "Πώς ακυρώνω τη συνδρομή μου στο γυμναστήριο;";
        let russian = "Как мне расторгнуть договор с фитнес-клубом?";
        let unknown = [greek, "मैं अपनी सदस्यता कैसे रद्द करूं?", "איך מבטלים את המינוי שלי?"];
        for is_encoded in [false, true] {
            if is_encoded {
                for source in export.engine.all_sources().present() {
                    source.encode(1, &Call::default(), &|_| ()).unwrap();
                }
            }
            for mode in [Mode::Both, Mode::Vector] {
                for text in unknown {
                    let notes = notes(&export, text, mode);
                    let count = notes.iter().filter(|note| **note == said(text)).count();
                    assert_eq!(count, 1, "{mode:?}, encoded: {is_encoded}: {notes:?}");
                }
                let of_russian = notes(&export, russian, mode);
                assert_ne!(of_russian.contains(&said(russian)), is_encoded, "{of_russian:?}");
                for text in ["how to stop my membership", "zzyzx qqqq", "2024 10 12 7", "κ"] {
                    let notes = notes(&export, text, mode);
                    let is_said = notes.iter().any(|note| note.contains("language"));
                    assert_eq!(is_said, text == "κ", "{text}: {notes:?}");
                }
            }
            let concepts = vec![greek.to_owned()];
            let question =
                Question { concepts, mode: Mode::Vector, limit: 5, ..Question::default() };
            let found = export.engine.rank(&question, &Call::default()).unwrap().items;
            assert_eq!(found.len(), 1);
            assert!(found[0].hit.content.starts_with("συνδρομή"));
        }
        assert!(!notes(&export, greek, Mode::Text).contains(&said(greek)));
    }

    #[test]
    fn any_part_of_a_name_in_any_case_names() {
        let question = "What did MELANIE's brother and smith say?";
        let of_question = words(question);
        for (author, expected) in
            [("Melanie", true), ("Anna Smith", true), ("Mel", false), ("bob", false), ("A", false)]
        {
            assert_eq!(names(author, &of_question, question), expected, "{author}");
        }
        assert!(names("小明", &[], "小明说了什么"));
    }
}
