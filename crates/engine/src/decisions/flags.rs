//! Flags that a person sets for conversations on the page: starred, or hidden from results. A file in the
//! home folder stores them, never an export.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::list::{self, Decision};
use crate::source::{ConversationIds, SourceKind};
use crate::{config::Config, error::Result};
use verbatim_base::files;

/// A flag that a person can set for a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The person marked the conversation with a star.
    Starred,
    /// The person hid the conversation.
    Hidden,
}

/// The conversations that have flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The ids of the conversations with a star.
    pub starred: Arc<ConversationIds>,
    /// The ids of the hidden conversations.
    pub hidden: Arc<ConversationIds>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FlagLine {
    /// The name of the kind of source.
    source: String,
    id: String,
    #[serde(default)]
    starred: bool,
    #[serde(default)]
    hidden: bool,
}

impl Decision for FlagLine {
    const LIST: &'static str = "flags";
    const CONTENT: &'static str = "the stars and the hidden conversations";

    fn is_made(&self) -> bool {
        self.starred || self.hidden
    }
}

impl Flags {
    /// Reads the flags from the home folder. Fails if the file cannot be read.
    pub fn read(config: &Config) -> Result<Flags> {
        let mut flags: [ConversationIds; 2] = Default::default();
        for line in list::read::<FlagLine>(config)? {
            let kind = SourceKind::ALL.into_iter().find(|kind| kind.name() == line.source);
            let Some(kind) = kind else { continue };
            for (ids, has) in flags.iter_mut().zip([line.starred, line.hidden]) {
                if has {
                    ids.entry(kind).or_default().insert(line.id.clone());
                }
            }
        }
        let [starred, hidden] = flags.map(Arc::new);
        Ok(Flags { starred, hidden })
    }

    /// Returns a number that changes when the flags change.
    pub fn stamp(config: &Config) -> u32 {
        crc32fast::hash(&files::read(&list::path::<FlagLine>(config)).unwrap_or_default())
    }

    pub(crate) fn with(&self, flag: Flag) -> &Arc<ConversationIds> {
        match flag {
            Flag::Starred => &self.starred,
            Flag::Hidden => &self.hidden,
        }
    }

    /// Returns whether the conversation with this id in a source has a flag.
    pub fn has(&self, flag: Flag, kind: SourceKind, id: &str) -> bool {
        self.with(flag).get(&kind).is_some_and(|ids| ids.contains(id))
    }

    /// Sets or removes a flag of one conversation. Fails if the file cannot be written.
    pub fn set(
        config: &Config,
        flag: Flag,
        kind: SourceKind,
        id: &str,
        is_set: bool,
    ) -> Result<()> {
        list::change(config, |lines: &mut Vec<FlagLine>| {
            let known = lines.iter().position(|it| it.source == kind.name() && it.id == id);
            let at = known.unwrap_or_else(|| {
                let source = kind.name().to_owned();
                lines.push(FlagLine { source, id: id.to_owned(), starred: false, hidden: false });
                lines.len() - 1
            });
            match flag {
                Flag::Starred => lines[at].starred = is_set,
                Flag::Hidden => lines[at].hidden = is_set,
            }
        })
    }

    /// Removes the flags of forgotten conversations, so that their ids are gone too.
    pub(crate) fn forget(config: &Config, ids: &[String]) -> Result<()> {
        let ids: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let lines: Vec<FlagLine> = list::read(config)?;
        if !lines.iter().any(|line| ids.contains(&*line.id)) {
            return Ok(());
        }
        list::change(config, |lines: &mut Vec<FlagLine>| {
            lines.retain(|line| !ids.contains(&*line.id));
        })
    }
}

/// Returns the number of ids in all sources.
pub fn count(ids: &ConversationIds) -> usize {
    ids.values().map(HashSet::len).sum()
}

/// Returns the ids that both sets have for the same source.
pub fn in_both(one: &ConversationIds, other: &ConversationIds) -> ConversationIds {
    let mut both = HashMap::new();
    for (kind, ids) in one {
        if let Some(other) = other.get(kind) {
            both.insert(*kind, ids.intersection(other).cloned().collect());
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn flags_are_set_taken_away_and_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let config = Config { home: home.path().join("new"), ..Config::default() };
        assert_eq!(Flags::read(&config).unwrap(), Flags::default());
        let export = SourceKind::Export;
        let archive = SourceKind::Archive;
        Flags::set(&config, Flag::Starred, export, "a", true).unwrap();
        Flags::set(&config, Flag::Hidden, export, "a", true).unwrap();
        Flags::set(&config, Flag::Hidden, archive, "a", true).unwrap();
        Flags::set(&config, Flag::Hidden, export, "a", false).unwrap();
        let flags = Flags::read(&config).unwrap();
        let has = |flag, kind| flags.has(flag, kind, "a");
        assert!(has(Flag::Starred, export) && !has(Flag::Hidden, export));
        assert!(has(Flag::Hidden, archive) && !has(Flag::Starred, archive));
        Flags::forget(&config, &["a".to_owned()]).unwrap();
        assert_eq!(Flags::read(&config).unwrap(), Flags::default());
        assert_eq!(fs::read(list::path::<FlagLine>(&config)).unwrap(), b"");
        fs::write(list::path::<FlagLine>(&config), "no JSON").unwrap();
        assert!(Flags::read(&config).unwrap_err().to_string().contains("flags.jsonl"));
    }
}
