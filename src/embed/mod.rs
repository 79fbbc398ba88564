//! Texts into vectors, and the vectors of a part's messages on disk.
//!
//! Invariant: vectors of one model are never compared with another's: what is stored carries the
//! model's name, and so does its folder.
//! Invariant: nothing is sent anywhere unless a provider was configured.

mod build;
mod builtin;
mod cache;
mod cells;
mod file;
mod provider;
mod remote;
mod scan;
mod table;
mod vectors;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::model::Stop;

pub use build::{Options, Progress, Texts};
pub use provider::{Key, Protocol, Provider, Remote, Unknown};
pub use table::Table;
pub use vectors::{Scored, Vectors};

use remote::{Client, Purpose};

/// The most numbers a vector may have: more than any model's, and no room for nonsense.
const MOST_DIMENSIONS: usize = 65_536;

/// What can go wrong with vectors; text is ranked by its words all the same.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The work was called off.
    #[error("embedding was stopped")]
    Stopped,
    /// A file could not be written.
    #[error("writing vectors in {}: {error}", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// What was written is not there, or not as it was written.
    #[error("{}: the vectors that were just written cannot be read back", path.display())]
    Vanished {
        /// The folder of the part.
        path: PathBuf,
    },
    /// A provider did not answer, or not with what was asked for.
    #[error("the embedding provider at {endpoint}: {why}")]
    Provider {
        /// Where it was asked.
        endpoint: String,
        /// What went wrong.
        why: String,
    },
    /// A question's vector cannot be compared with those of the messages.
    #[error(
        "the embedding model answers with {theirs} numbers now, and the messages' vectors have \
         {ours}; `verbatim reindex --full` embeds them anew"
    )]
    Lengths {
        /// How many those on disk have.
        ours: usize,
        /// How many the question's has.
        theirs: usize,
    },
}

/// Turns texts into vectors.
#[derive(Clone, Debug)]
pub struct Model {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    BuiltIn,
    Remote(Arc<Client>),
}

impl Model {
    /// Returns the model that is compiled into the program: offline, some microseconds a text.
    ///
    /// Costs nothing until it is first asked for a vector.
    pub fn built_in() -> Model {
        Model { kind: Kind::BuiltIn }
    }

    /// Returns the model that is meant; a provider is not asked before the first text.
    pub fn of(provider: &Provider) -> Model {
        match provider {
            Provider::BuiltIn => Model::built_in(),
            Provider::Remote(remote) => {
                Model { kind: Kind::Remote(Arc::new(Client::new(remote.clone()))) }
            }
        }
    }

    /// Whether it is in the program; else a server is sent the texts, which takes its time.
    pub fn is_built_in(&self) -> bool {
        matches!(self.kind, Kind::BuiltIn)
    }

    /// Its identity, as letters, digits and hyphens: equal names mean comparable vectors.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::BuiltIn => builtin::NAME,
            Kind::Remote(client) => client.name(),
        }
    }

    /// Returns how many numbers its vectors have; a provider may have to be asked.
    pub fn dimensions(&self, stop: &Stop) -> Result<usize, Error> {
        match &self.kind {
            Kind::BuiltIn => Ok(builtin::DIMENSIONS),
            Kind::Remote(client) => client.dimensions(stop),
        }
    }

    /// Returns the vector of a question, one long; all zeros where the model knows none of it.
    pub fn encode_query(&self, text: &str, stop: &Stop) -> Result<Vec<f32>, Error> {
        let mut vectors = self.encode_for(&[text], Purpose::Question, stop)?;
        Ok(vectors.pop().unwrap_or_default())
    }

    /// Returns a vector for each text, one long; all zeros where the model knows none of it.
    pub fn encode(&self, texts: &[&str], stop: &Stop) -> Result<Vec<Vec<f32>>, Error> {
        self.encode_for(texts, Purpose::Document, stop)
    }

    fn encode_for(
        &self,
        texts: &[&str],
        purpose: Purpose,
        stop: &Stop,
    ) -> Result<Vec<Vec<f32>>, Error> {
        match &self.kind {
            Kind::BuiltIn => {
                let encode = |text: &&str| {
                    if stop.requested() { Err(Error::Stopped) } else { Ok(builtin::encode(text)) }
                };
                texts.iter().map(encode).collect()
            }
            Kind::Remote(client) => client.encode(texts, purpose, stop),
        }
    }

    /// Forgets what is kept in a folder of vectors that a provider made and that are of no use for
    /// these texts, all that the folder's messages have.
    pub fn tidy(&self, folder: &Path, texts: &Texts<'_>, stop: &Stop) -> Result<(), Error> {
        cache::tidy(folder, self.name(), texts, stop)
    }

    /// Returns the share of a text's letters that the model knows the meaning of, 0 to 1.
    ///
    /// Where little is known of a question, its vector says little: Chinese, Japanese or Russian
    /// asked of the built-in model, which is English. Providers are taken to know every language.
    pub fn known(&self, text: &str) -> f64 {
        match &self.kind {
            Kind::BuiltIn => builtin::known(text),
            Kind::Remote(_) => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_encoder_stops() {
        let stop = Stop::never();
        let model = Model::built_in();
        assert_eq!(model.encode(&["a", "b"], &stop).unwrap().len(), 2);
        stop.request();
        assert!(matches!(model.encode(&["a"], &stop), Err(Error::Stopped)));
    }
}
