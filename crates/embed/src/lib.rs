//! Texts into vectors: the built-in model, and servers with a cache of their answers.
//!
//! [`Model`] is a model, [`Provider`] says which one. The files of the built-in model are in `model/`.
//! It uses `verbatim-base`, and knows nothing of messages, databases or indexes.
//!
//! Invariant: vectors of different models are never mixed: a model's name is part of the name of
//! its cache.
//! Invariant: no text is sent anywhere unless a provider was configured.

mod builtin;
pub mod cache;
#[cfg(feature = "multilingual")]
mod dense;
mod encoder;
mod model;
#[cfg(feature = "multilingual")]
pub mod multilingual;
mod provider;
pub mod remote;
mod safetensors;
mod sentence_encoder;
#[cfg(feature = "multilingual")]
mod sentencepiece;
mod static_model;
mod texts;
mod transport;
mod wordpiece;

use std::{io, path::PathBuf};

pub use cache::prune_caches;
pub use encoder::EmbedProgress;
pub use model::{Model, is_word};
pub use provider::{Key, Provider, Remote, Unknown};
pub use sentence_encoder::SentenceEncoder;
pub use texts::Texts;

/// Returns the dot product of two vectors: their cosine, if both have the length 1.
pub fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

const MOST_DIMENSIONS: usize = 65_536;

/// The result of a call that fails with the error of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of embedding. Messages can still be ranked by their words.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// The work was stopped.
    #[error("embedding was stopped")]
    Stopped,
    /// A cache could not be written.
    #[error("writing vectors in {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    /// A provider did not answer, or its answer is wrong.
    #[error("the embedding provider at {endpoint}: {why}")]
    Provider { endpoint: String, why: String },
    /// A provider's vectors have another dimension than those in its cache.
    #[error(
        "the embedding model's vectors have {theirs} dimensions now, and had {ours} before; to make all of them \
         again, delete {} and run `verbatim reindex --full`",
        path.display()
    )]
    Lengths { path: PathBuf, ours: usize, theirs: usize },
}
