//! The model that turns texts into vectors: the built-in one, or a provider's.

use std::sync::Arc;

use super::remote::{Purpose, RemoteModel};
use super::{Error, Provider, Result, SentenceEncoder, builtin};
use verbatim_base::call::Stop;

/// Turns texts into vectors.
#[derive(Clone, Debug)]
pub struct Model {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    BuiltIn { has_encoder: bool },
    Remote(Arc<RemoteModel>),
}

impl Model {
    /// Returns the model that is compiled into the program. It takes some microseconds per text. Its encoder
    /// takes longer.
    ///
    /// It is loaded when the first text is encoded.
    pub fn built_in() -> Model {
        Model { kind: Kind::BuiltIn { has_encoder: true } }
    }

    /// Returns the model of a provider. The provider is first contacted when a text is encoded.
    pub fn new(provider: &Provider) -> Model {
        match provider {
            Provider::BuiltIn => Model::built_in(),
            Provider::Static => Model { kind: Kind::BuiltIn { has_encoder: false } },
            Provider::Remote(remote) => {
                Model { kind: Kind::Remote(Arc::new(RemoteModel::new(remote.clone()))) }
            }
        }
    }

    /// Returns whether the model is part of the program. Other models are servers, which take longer.
    pub fn is_built_in(&self) -> bool {
        matches!(self.kind, Kind::BuiltIn { .. })
    }

    /// Returns the encoder whose vectors are compared beside the model's, if there is one.
    pub fn sentence_encoder(&self) -> Option<SentenceEncoder> {
        match self.kind {
            Kind::BuiltIn { has_encoder: true } => SentenceEncoder::compiled_in(),
            _ => None,
        }
    }

    /// Returns the model's name, which consists of letters, digits and hyphens. Vectors of models with
    /// equal names can be compared.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::BuiltIn { .. } => builtin::NAME,
            Kind::Remote(client) => client.name(),
        }
    }

    /// Returns the share of this model's vectors in ranked search, if the words of the best messages cover a
    /// question; the rest is for words.
    ///
    /// On LoCoMo, REALTALK and BEAM, .3 is best for the model of the program, with or without its encoder. Of
    /// larger models, .5 was best for all-MiniLM-L6-v2.
    pub fn vector_share(&self) -> f32 {
        if self.is_built_in() { 0.3 } else { 0.5 }
    }

    /// Returns how many bytes of a text the model reads at most, if the limit is known.
    pub fn most_read(&self) -> Option<usize> {
        self.is_built_in().then_some(builtin::MOST_READ)
    }

    /// Returns the number of dimensions. May send a request to a provider.
    pub fn dimensions(&self, stop: &Stop) -> Result<usize> {
        match &self.kind {
            Kind::BuiltIn { .. } => Ok(builtin::DIMENSIONS),
            Kind::Remote(client) => client.dimensions(stop),
        }
    }

    /// Returns the unit vector of a question; all zeros if the model knows no part of it.
    pub fn encode_query(&self, text: &str, stop: &Stop) -> Result<Vec<f32>> {
        let mut vectors = self.encode_for(&[text], Purpose::Question, stop)?;
        Ok(vectors.pop().unwrap_or_default())
    }

    /// Returns the unit vector of each text; all zeros if the model knows no part of it.
    pub fn encode(&self, texts: &[&str], stop: &Stop) -> Result<Vec<Vec<f32>>> {
        self.encode_for(texts, Purpose::Document, stop)
    }

    fn encode_for(&self, texts: &[&str], purpose: Purpose, stop: &Stop) -> Result<Vec<Vec<f32>>> {
        match &self.kind {
            Kind::BuiltIn { .. } => {
                let mut vectors = Vec::with_capacity(texts.len());
                for text in texts {
                    stop.check(Error::Stopped)?;
                    vectors.push(builtin::encode(text));
                }
                Ok(vectors)
            }
            Kind::Remote(client) => client.encode(texts, purpose, stop),
        }
    }

    /// Returns the share of a text's letters in words that the model knows, from 0 to 1.
    ///
    /// A low share means that the vector of a question says little: the built-in model knows
    /// English, and hardly any Chinese, Japanese or Russian. Providers are assumed to know every language.
    pub fn known_share(&self, text: &str) -> f64 {
        match &self.kind {
            Kind::BuiltIn { .. } => builtin::known_share(text),
            Kind::Remote(_) => 1.0,
        }
    }
}

/// Returns whether a model of the program has a lower-case word in its vocabulary: many words of English, and
/// the frequent ones of the sentence encoder's languages.
pub fn is_word(word: &str) -> bool {
    builtin::is_word(word) || SentenceEncoder::compiled_in().is_some_and(|it| it.is_word(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_vocabulary_are_known() {
        for (word, expected) in [
            ("lawyer", true),
            ("flight", true),
            ("chekcer", false),
            ("borrrow", false),
            ("", false),
        ] {
            assert_eq!(is_word(word), expected, "{word}");
        }
        for word in ["wann", "habe", "cuándo", "когда"] {
            let is_read = SentenceEncoder::compiled_in().is_some();
            assert_eq!(is_word(word), is_read, "{word}");
        }
        for word in ["recieve", "becuase", "passwrod", "databse", "a b"] {
            assert!(!is_word(word), "{word}");
        }
    }

    #[test]
    fn a_stopped_encoder_stops() {
        let stop = Stop::never();
        let model = Model::built_in();
        assert_eq!(model.encode(&["a", "b"], &stop).unwrap().len(), 2);
        stop.request();
        assert!(matches!(model.encode(&["a"], &stop), Err(Error::Stopped)));
    }
}
