//! The sentence encoder, whose vectors of messages are made in the background, beside those of the model.

#[cfg(feature = "multilingual")]
use super::multilingual;

/// The sentence encoder of the program. There is no value of this type if the program was built without it.
#[derive(Clone, Copy, Debug)]
pub struct SentenceEncoder {
    #[cfg(not(feature = "multilingual"))]
    never: std::convert::Infallible,
}

#[cfg(feature = "multilingual")]
impl SentenceEncoder {
    pub(super) fn compiled_in() -> Option<SentenceEncoder> {
        Some(SentenceEncoder {})
    }

    /// Returns the encoder's name, which consists of letters, digits and hyphens. Vectors of encoders with
    /// equal names can be compared.
    pub fn name(self) -> &'static str {
        multilingual::ENCODER_NAME
    }

    /// Returns the number of dimensions of a vector.
    pub fn dimensions(self) -> usize {
        multilingual::STORED_DIMENSIONS
    }

    /// Returns the mean of the vectors of real messages, whatever the messages of the user are.
    pub fn mean(self) -> &'static [f32] {
        multilingual::mean()
    }

    /// Returns how many bytes of a text the encoder reads at most.
    pub fn most_read(self) -> usize {
        multilingual::MOST_READ
    }

    /// Returns the unit vector of each text. It takes about a millisecond for a short text.
    pub fn encode(self, texts: &[&str]) -> Vec<Vec<f32>> {
        multilingual::encode(texts).iter().map(|vector| multilingual::stored(vector)).collect()
    }

    /// Returns the degree to which the encoder knows the language of a text, from 0 to 1.
    pub fn known_share(self, text: &str) -> f64 {
        multilingual::known_share(text)
    }

    /// Returns whether a lower-case word is one piece of the encoder's vocabulary.
    pub(super) fn is_word(self, word: &str) -> bool {
        multilingual::is_word(word)
    }
}

#[cfg(not(feature = "multilingual"))]
#[allow(missing_docs, reason = "the methods are documented above")]
impl SentenceEncoder {
    pub(super) fn compiled_in() -> Option<SentenceEncoder> {
        None
    }

    pub fn name(self) -> &'static str {
        match self.never {}
    }

    pub fn dimensions(self) -> usize {
        match self.never {}
    }

    pub fn mean(self) -> &'static [f32] {
        match self.never {}
    }

    pub fn most_read(self) -> usize {
        match self.never {}
    }

    pub fn encode(self, _: &[&str]) -> Vec<Vec<f32>> {
        match self.never {}
    }

    pub fn known_share(self, _: &str) -> f64 {
        match self.never {}
    }

    pub(super) fn is_word(self, _: &str) -> bool {
        match self.never {}
    }
}
