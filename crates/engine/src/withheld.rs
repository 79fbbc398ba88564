//! The conversations that are not stored: those that the user excludes, and forgotten ones.

use super::{config::Config, error::Result, exclusions::Exclusions, forgotten::Forgotten};
use verbatim_base::model::Origin;

/// The lists that decide which conversations are not stored.
#[derive(Clone, Debug, Default)]
pub struct Withheld {
    exclusions: Exclusions,
    forgotten: Forgotten,
}

impl Withheld {
    /// Returns the current exclusions and forgotten conversations.
    pub fn of(config: &Config) -> Result<Withheld> {
        let exclusions = Exclusions::known(&config.exclude);
        Ok(Withheld { exclusions, forgotten: Forgotten::of(config)? })
    }

    pub(crate) fn forgotten(&self) -> &Forgotten {
        &self.forgotten
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.exclusions.is_empty() && self.forgotten.0.is_empty()
    }

    /// Returns whether a conversation of a service is not stored.
    pub(crate) fn withholds(&self, id: &str, service: &str, origin: &Origin) -> bool {
        self.is_forgotten(id, service) || self.is_excluded(origin)
    }

    pub(crate) fn is_forgotten(&self, id: &str, service: &str) -> bool {
        self.forgotten.has(id, service)
    }

    /// Returns whether an id is in the list of forgotten ones.
    pub(crate) fn lists(&self, id: &str) -> bool {
        self.forgotten.0.iter().any(|known| known.id == id)
    }

    /// Returns whether the user excludes conversations of an origin.
    pub(crate) fn is_excluded(&self, origin: &Origin) -> bool {
        self.exclusions.excludes(origin)
    }
}
