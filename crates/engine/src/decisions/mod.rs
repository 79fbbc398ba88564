//! Decisions: why a conversation is not stored or not shown.
//!
//! | word       | who decides                              | by                | effect                            |
//! |-|-|-|-|
//! | excluded   | the user, in the settings                | project or folder | not stored, and in no answer      |
//! | forgotten  | the user, with `forget`                  | id                | removed, and not stored again     |
//! | hidden     | the user, on the page                    | id                | not in the results of the page    |
//! | superseded | the program: another copy is newer       | id                | this copy is in no answer         |
//!
//! The decisions about ids are two lists in the home folder; `list` reads and writes both. All together are *left out*. [`Decisions`] says what is not stored, to imports and to the transcript store.
//! `source::visible` applies the others to answers.

pub(crate) mod exclusions;
pub(crate) mod flags;
pub(crate) mod forgotten;
pub(crate) mod list;
pub(crate) mod superseded;

use crate::{config::Config, error::Result};
use exclusions::Exclusions;
use forgotten::ForgottenId;
use verbatim_base::model::Origin;

/// The decisions of the user about which conversations are not stored.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    exclusions: Exclusions,
    forgotten: Vec<ForgottenId>,
}

impl Decisions {
    /// Returns the current exclusions and forgotten conversations.
    pub fn of(config: &Config) -> Result<Decisions> {
        let exclusions = Exclusions::known(&config.exclude);
        Ok(Decisions { exclusions, forgotten: list::read(config)? })
    }

    pub(crate) fn forgotten(&self) -> &[ForgottenId] {
        &self.forgotten
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.exclusions.is_empty() && self.forgotten.is_empty()
    }

    /// Returns whether a conversation of a service is not stored.
    pub(crate) fn leaves_out(&self, id: &str, service: &str, origin: &Origin) -> bool {
        self.is_forgotten(id, service) || self.is_excluded(origin)
    }

    pub(crate) fn is_forgotten(&self, id: &str, service: &str) -> bool {
        self.forgotten.iter().any(|known| known.matches(id, service))
    }

    /// Returns whether an id is in the list of forgotten ones.
    pub(crate) fn lists(&self, id: &str) -> bool {
        self.forgotten.iter().any(|known| known.id == id)
    }

    /// Returns whether the user excludes conversations of an origin.
    pub(crate) fn is_excluded(&self, origin: &Origin) -> bool {
        self.exclusions.excludes(origin)
    }
}
