//! The list of the ids of forgotten conversations. It keeps imports from adding them again.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::list::Decision;

/// A conversation that was forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenId {
    pub id: String,
    /// The service or agent of the conversation, if it is known.
    pub service: Option<String>,
    /// The time when the conversation was forgotten, in seconds since 1970.
    pub at: u64,
}

impl Decision for ForgottenId {
    const LIST: &'static str = "forgotten";
    const CONTENT: &'static str = "the list of forgotten conversations";
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
    pub(super) fn matches(&self, id: &str, service: &str) -> bool {
        // Names of services have `_` in the database and `-` in output.
        let is_same = |known: &str| known.replace('_', "-") == service.replace('_', "-");
        match self.id.strip_suffix(id) {
            Some("") => self.service.as_deref().is_none_or(is_same),
            Some(before) => before.strip_suffix('/').is_some_and(is_same),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::Config;
    use crate::decisions::{Decisions, list};

    #[test]
    fn the_list_knows_ids_of_both_forms() {
        let home = tempfile::tempdir().unwrap();
        let config = Config { home: home.path().join("new"), ..Config::default() };
        assert!(Decisions::of(&config).unwrap().is_empty());
        let forgotten = |id: &str, service: Option<&str>| {
            ForgottenId::now(id.to_owned(), service.map(str::to_owned))
        };
        fs::create_dir_all(&config.home).unwrap();
        fs::write(config.home.join(".verbatim-left.tmp"), "of a killed process").unwrap();
        list::change(&config, |list| {
            list.push(forgotten("a", Some("chatgpt")));
            list.push(forgotten("claude/b", Some("claude")));
            list.push(forgotten("c", None));
        })
        .unwrap();
        assert_eq!(fs::read_dir(&config.home).unwrap().count(), 2, "the list and its lock");
        let decisions = Decisions::of(&config).unwrap();
        for (id, service, expected) in [
            ("a", "chatgpt", true),
            ("a", "claude", false),
            ("b", "claude", true),
            ("b", "chatgpt", false),
            ("claude/b", "claude", true),
            ("c", "codex", true),
            ("d", "codex", false),
        ] {
            assert_eq!(decisions.is_forgotten(id, service), expected, "{id} {service}");
        }
        fs::write(list::path::<ForgottenId>(&config), "{").unwrap();
        assert!(Decisions::of(&config).is_err(), "nothing comes back because of a damaged list");
    }
}
