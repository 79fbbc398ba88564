//! Makes the features of a text for ranked search: its terms, its length, and its vector.
//!
//! The client compares packed vectors. The cluster finds near vectors by vector words: a document has a word
//! for each dimension in which its vector has a large component. The words that two vectors share estimate
//! their dot product. Each word is a single character, because words are the largest part of a document.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::document::{ConversationDocument, MessageDocument};
use verbatim_base::call::Stop;
use verbatim_base::model::{StoredConversation, StoredMessage};
use verbatim_embed::Model;
use verbatim_index::{pack, speaker};
use verbatim_text::summary::{self, Summary, term_hashes};
use verbatim_text::words::Tokenizer;

/// The levels above which a component gets a word, in standard deviations of all components, and the amount
/// that the word adds to the estimate of the component. The estimate is the mean of a normal distribution
/// between this level and the next.
const LEVELS: [(f32, f32); 2] = [(1.2, 1.518), (2.0, 0.855)];

/// The character of the first word. The words of 256 dimensions take two bytes each in UTF-8.
const FIRST_WORD: u32 = 0x100;

const MOST_DIMENSIONS: usize = 64;

pub(super) struct FeatureMaker {
    tokenizer: Tokenizer,
    model: Model,
}

impl Default for FeatureMaker {
    fn default() -> FeatureMaker {
        FeatureMaker { tokenizer: Tokenizer::default(), model: model() }
    }
}

/// Returns the model for the vectors of indexes: always the built-in model, because a provider would get a
/// request for every message.
pub(super) fn model() -> Model {
    Model::built_in()
}

impl FeatureMaker {
    /// Adds the features for ranking to the document of a message at a place in reading order.
    pub(super) fn add(&self, document: &mut MessageDocument, place: u32, message: &StoredMessage) {
        let text = shown_text(message);
        document.i = place;
        for text in [speaker(&message.role), &text] {
            document.l += self.tokenizer.tokenize(text, |term| {
                document.w.push_str(term);
                document.w.push(' ');
            });
        }
        (document.vt, document.v) = self.vector(&text);
    }

    /// Adds the summary and its terms to the document of a conversation. The messages must be in reading order.
    pub(super) fn add_summary(
        &self,
        document: &mut ConversationDocument,
        conversation: &StoredConversation,
        messages: &[StoredMessage],
    ) {
        let title = String::from_utf8_lossy(conversation.title.as_deref().unwrap_or_default());
        let mut opening: Vec<usize> = (0..messages.len()).collect();
        opening.sort_by_key(|at| messages[*at].time);
        opening.truncate(summary::TURNS);
        opening.sort_unstable();
        let texts: Vec<(&str, String)> = opening
            .into_iter()
            .map(|at| {
                let text = shown_text(&messages[at]);
                let end = text.char_indices().map(|(start, it)| start + it.len_utf8());
                let end = end.take_while(|end| *end <= summary::BYTES_READ).last();
                (messages[at].role.as_str(), text[..end.unwrap_or(0)].to_owned())
            })
            .collect();
        let texts: Vec<(&str, &str)> = texts.iter().map(|(role, it)| (*role, &**it)).collect();
        let made = Summary::of_messages(&texts);
        document.summary = made.text;
        if title.trim().is_empty() {
            document.made = made.title;
        }
        let shown = if document.made.is_empty() { &*title } else { &document.made };
        document.tw = hashes(&self.tokenizer, shown);
        document.sw = hashes(&self.tokenizer, &document.summary);
    }

    /// Returns the words for the vector of a text, and the packed vector.
    fn vector(&self, text: &str) -> (String, String) {
        let vectors = self.model.encode(&[text], &Stop::never());
        let vector = vectors.ok().and_then(|mut it| it.pop()).unwrap_or_default();
        let packed = pack(&vector);
        if packed.is_empty() {
            return (String::new(), String::new());
        }
        let deviations = (vector.len() as f32).sqrt();
        let mut words = String::new();
        for (dimension, component) in vector.iter().enumerate() {
            for (level, (far, _)) in LEVELS.iter().enumerate() {
                if component.abs() * deviations >= *far {
                    words.extend(word(dimension, *component, level));
                }
            }
        }
        (words, STANDARD.encode(packed))
    }
}

/// Returns the words by which near vectors are found, and the amount that each word adds to the estimate.
pub(super) fn vector_words(vector: &[f32]) -> Vec<(String, f32)> {
    let mut dimensions: Vec<usize> = (0..vector.len()).filter(|at| vector[*at] != 0.0).collect();
    dimensions.sort_by(|a, b| vector[*b].abs().total_cmp(&vector[*a].abs()));
    dimensions.truncate(MOST_DIMENSIONS);
    let words = dimensions.into_iter().flat_map(|dimension| {
        let component = vector[dimension];
        LEVELS.iter().enumerate().filter_map(move |(level, (_, adds))| {
            Some((word(dimension, component, level)?.to_string(), component.abs() * adds))
        })
    });
    words.collect()
}

fn word(dimension: usize, component: f32, level: usize) -> Option<char> {
    let direction = usize::from(component > 0.0);
    let number = (2 * dimension + direction) * LEVELS.len() + level;
    char::from_u32(FIRST_WORD + u32::try_from(number).ok()?)
}

/// Returns the hash of a term of a title or summary as a word.
pub(super) fn hash_word(hash: u32) -> String {
    format!("{hash:x}")
}

fn hashes(tokenizer: &Tokenizer, text: &str) -> String {
    let words: Vec<String> = term_hashes(tokenizer, text).into_iter().map(hash_word).collect();
    words.join(" ")
}

fn shown_text(message: &StoredMessage) -> std::borrow::Cow<'_, str> {
    match &message.decoded {
        Some(decoded) => decoded.into(),
        None => String::from_utf8_lossy(message.content.as_deref().unwrap_or_default()),
    }
}
