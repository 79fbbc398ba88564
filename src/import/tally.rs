//! Counts and reports of reading exports.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::json::Damage;

/// Which messages of a conversation with several branches are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Branches {
    /// The messages that the service shows.
    #[default]
    Shown,
    /// Every branch, the shown one first.
    All,
}

/// The phrase for messages that [`Branches::Shown`] leaves out.
pub(crate) const OTHER_BRANCHES: &str = "messages on other branches";

/// The phrase for content of transcripts of a kind that we do not know.
pub(super) const UNKNOWN_CONTENT: &str = "content of a type that we do not know";

/// Counts of what was read, and what could not be read.
#[derive(Clone, Debug, Default)]
pub struct ImportTally {
    /// Conversations read.
    pub conversations: u64,
    /// Messages of the conversations that were read.
    pub messages: u64,
    /// Those of the conversations that have no messages.
    pub bare: u64,
    /// Messages left out because they have neither text nor files.
    pub empty: u64,
    /// Content types that we do not know, with their counts.
    pub unknown: BTreeMap<String, u64>,
    /// What was left out on purpose, or is no chat, with the counts; a phrase each.
    pub left_out: BTreeMap<String, u64>,
    /// Conversations that could not be read; the first [`ImportTally::NAMED`] of them.
    pub skipped: Vec<Skipped>,
    /// How many could not be read.
    pub skipped_count: u64,
    /// Files that are damaged or were refused, a sentence each.
    pub damaged: Vec<String>,
    /// Lines of transcripts that could not be read.
    pub malformed: u64,
    /// Bytes of JSON read.
    pub bytes: u64,
    /// The messages of the transcripts read so far.
    pub(super) history: ImportHistory,
}

impl ImportTally {
    /// How many of the conversations that could not be read are listed.
    pub const NAMED: usize = 100;

    /// Counts a content type that we do not know.
    pub(super) fn unknown(&mut self, kind: &str) {
        let kind: String = kind.chars().take(60).collect();
        *self.unknown.entry(kind).or_default() += 1;
    }

    /// Counts something that is left out. Of the phrases that name a file, only the first
    /// [`ImportTally::NAMED`] are kept; the other files count as `others`.
    pub(super) fn leave_out(&mut self, what: String, others: &str, count: u64) {
        let is_full = self.left_out.len() >= ImportTally::NAMED;
        let is_new = !self.left_out.contains_key(&what);
        let what = if is_full && is_new { others.to_owned() } else { what };
        *self.left_out.entry(what).or_default() += count;
    }

    /// Counts messages that are not on the shown branch.
    pub(super) fn leave_out_branches(&mut self, count: u64) {
        if count > 0 {
            self.leave_out(OTHER_BRANCHES.to_owned(), OTHER_BRANCHES, count);
        }
    }

    /// Counts a conversation that could not be read.
    pub(super) fn skip(&mut self, skipped: Skipped) {
        self.skipped_count += 1;
        if self.skipped.len() < ImportTally::NAMED {
            self.skipped.push(skipped);
        }
    }
}

/// A conversation that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The file of the conversation.
    pub file: String,
    /// The number of the conversation in the file, from 1.
    pub ordinal: u64,
    /// The title of the conversation, or else its id, if either could be read.
    pub name: Option<String>,
    /// The reason why the conversation could not be read.
    pub reason: String,
}

/// The reason why one conversation could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Reason {
    #[error("{0}")]
    Damaged(#[from] Damage),
    #[error("its `{0}` holds no messages")]
    NoMessages(&'static str),
    /// It has none of the fields with these names.
    #[error("neither {0} is in it")]
    Unknown(String),
    #[error("a bracket is missing")]
    Unbalanced,
    #[error("the file ends in the middle of it")]
    CutOff,
    #[error("it is longer than any conversation")]
    TooLong,
}

/// The messages that the transcripts of an import hold; see [`super::repeats`].
#[derive(Clone, Debug, Default)]
pub(super) struct ImportHistory {
    /// Fingerprints of messages with ids.
    pub(super) fingerprints: HashSet<u64>,
    /// Fingerprints of the messages without ids, by the id of the transcript. If several
    /// transcripts have the same id, these are the first one's.
    pub(super) sequences: HashMap<String, Vec<u64>>,
    pub(super) conversations: HashSet<String>,
}
