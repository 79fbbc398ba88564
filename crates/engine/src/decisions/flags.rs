//! Flags that a person sets for conversations on the page: starred, or hidden from results. A file in the
//! home folder stores them, never an export.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::list_file::ListFile;
use crate::{
    config::Config,
    error::Result,
    source::{ConversationIds, SourceKind},
};

/// The common beginning of the names of the flags file and its lock, both in the home folder.
pub(crate) const FLAGS: &str = "flags.";

const LIST: ListFile =
    ListFile { name: "flags.jsonl", what: "the stars and the hidden conversations" };

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
struct FlagLine {
    /// The name of the kind of source.
    source: String,
    id: String,
    #[serde(default)]
    starred: bool,
    #[serde(default)]
    hidden: bool,
}

impl Flags {
    /// Reads the flags from the home folder. Fails if the file cannot be read.
    pub fn read(config: &Config) -> Result<Flags> {
        let mut flags: [ConversationIds; 2] = Default::default();
        for line in LIST.read::<FlagLine>(&config.home)? {
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
        crc32fast::hash(&std::fs::read(config.home.join(LIST.name)).unwrap_or_default())
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
        (kind, id): (SourceKind, &str),
        is_set: bool,
    ) -> Result<()> {
        change(config, |lines| {
            let known = lines.iter().position(|it| it.source == kind.name() && it.id == id);
            let at = known.unwrap_or_else(|| {
                let (source, id) = (kind.name().to_owned(), id.to_owned());
                lines.push(FlagLine { source, id, starred: false, hidden: false });
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
        let lines: Vec<FlagLine> = LIST.read(&config.home)?;
        if !lines.iter().any(|line| ids.contains(&*line.id)) {
            return Ok(());
        }
        change(config, |lines| lines.retain(|line| !ids.contains(&*line.id)))
    }
}

/// Changes the flags file while its lock is held.
fn change(config: &Config, change: impl FnOnce(&mut Vec<FlagLine>)) -> Result<()> {
    LIST.change(&config.home, |all| {
        change(all);
        all.retain(|line: &FlagLine| line.starred || line.hidden);
    })
}

/// Returns the number of ids in all sources.
pub fn count(ids: &ConversationIds) -> usize {
    ids.values().map(HashSet::len).sum()
}

/// Returns the ids that both sets have for the same source.
pub fn in_both(one: &ConversationIds, other: &ConversationIds) -> ConversationIds {
    let of = |(kind, ids): (&SourceKind, &HashSet<String>)| {
        let other = other.get(kind)?;
        Some((*kind, ids.intersection(other).cloned().collect()))
    };
    one.iter().filter_map(of).collect::<HashMap<_, _>>()
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
        let (export, archive) = ((SourceKind::Export, "a"), (SourceKind::Archive, "a"));
        Flags::set(&config, Flag::Starred, export, true).unwrap();
        Flags::set(&config, Flag::Hidden, export, true).unwrap();
        Flags::set(&config, Flag::Hidden, archive, true).unwrap();
        Flags::set(&config, Flag::Hidden, export, false).unwrap();
        let flags = Flags::read(&config).unwrap();
        let has = |flag, (kind, id)| flags.has(flag, kind, id);
        assert!(has(Flag::Starred, export) && !has(Flag::Hidden, export));
        assert!(has(Flag::Hidden, archive) && !has(Flag::Starred, archive));
        Flags::forget(&config, &["a".to_owned()]).unwrap();
        assert_eq!(Flags::read(&config).unwrap(), Flags::default());
        assert_eq!(fs::read(config.home.join(LIST.name)).unwrap(), b"");
        fs::write(config.home.join(LIST.name), "no JSON").unwrap();
        assert!(Flags::read(&config).unwrap_err().to_string().contains("flags.jsonl"));
    }
}
