//! The list of the ids of forgotten conversations. It keeps imports from adding them again.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::list_file::ListFile;
use crate::{config::Config, error::Result};

const LIST: ListFile =
    ListFile { name: "forgotten.jsonl", what: "the list of forgotten conversations" };

/// A conversation that was forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenId {
    pub id: String,
    /// The service or agent of the conversation, if it is known.
    pub service: Option<String>,
    /// The time when the conversation was forgotten, in seconds since 1970.
    pub at: u64,
}

impl ForgottenId {
    pub(crate) fn now(id: String, service: Option<String>) -> ForgottenId {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        ForgottenId { id, service, at }
    }

    /// Returns whether this entry also covers conversations with the given id and service.
    pub(crate) fn covers(&self, id: &str, service: Option<&str>) -> bool {
        self.id == id && (self.service.is_none() || self.service.as_deref() == service)
    }

    /// Returns whether a conversation of a service is this forgotten one. If two services use the same id,
    /// the ids in the database begin with the service.
    fn matches(&self, id: &str, service: &str) -> bool {
        // Names of services have `_` in the database and `-` in output.
        let is_same = |known: &str| known.replace('_', "-") == service.replace('_', "-");
        match self.id.strip_suffix(id) {
            Some("") => self.service.as_deref().is_none_or(is_same),
            Some(before) => before.strip_suffix('/').is_some_and(is_same),
            None => false,
        }
    }
}

/// The forgotten conversations of a home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forgotten(pub(crate) Vec<ForgottenId>);

impl Forgotten {
    pub(crate) fn of(config: &Config) -> Result<Forgotten> {
        Ok(Forgotten(LIST.read(&config.home)?))
    }

    pub(crate) fn has(&self, id: &str, service: &str) -> bool {
        self.0.iter().any(|forgotten| forgotten.matches(id, service))
    }

    /// Changes the list of a home while its lock is held. Returns the result of `change`.
    pub(crate) fn change<T>(
        config: &Config,
        change: impl FnOnce(&mut Vec<ForgottenId>) -> T,
    ) -> Result<T> {
        LIST.change(&config.home, change)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_list_knows_ids_of_both_forms() {
        let home = tempfile::tempdir().unwrap();
        let config = Config { home: home.path().join("new"), ..Config::default() };
        assert!(Forgotten::of(&config).unwrap().0.is_empty());
        let forgotten = |id: &str, service: Option<&str>| {
            ForgottenId::now(id.to_owned(), service.map(str::to_owned))
        };
        fs::create_dir_all(&config.home).unwrap();
        fs::write(config.home.join(".verbatim-left.tmp"), "of a killed process").unwrap();
        Forgotten::change(&config, |list| {
            list.push(forgotten("a", Some("chatgpt")));
            list.push(forgotten("claude/b", Some("claude")));
            list.push(forgotten("c", None));
        })
        .unwrap();
        assert_eq!(fs::read_dir(&config.home).unwrap().count(), 2, "the list and its lock");
        let list = Forgotten::of(&config).unwrap();
        for (id, service, expected) in [
            ("a", "chatgpt", true),
            ("a", "claude", false),
            ("b", "claude", true),
            ("b", "chatgpt", false),
            ("claude/b", "claude", true),
            ("c", "codex", true),
            ("d", "codex", false),
        ] {
            assert_eq!(list.has(id, service), expected, "{id} {service}");
        }
        fs::write(config.home.join(LIST.name), "{").unwrap();
        assert!(Forgotten::of(&config).is_err(), "nothing comes back because of a damaged list");
    }
}
