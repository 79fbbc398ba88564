//! The counts and reports of an import.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::json::Damage;

/// Which messages of a conversation with several branches are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Branches {
    /// The messages that the service shows.
    #[default]
    Shown,
    /// All branches, the shown branch first.
    All,
}

/// The phrase for messages that [`Branches::Shown`] leaves out.
pub const OTHER_BRANCHES: &str = "messages on other branches";

/// Counts of the conversations, messages and files that were read, left out or could not be read.
#[derive(Clone, Debug, Default)]
pub struct ImportTally {
    /// Conversations read.
    pub conversations: u64,
    /// Messages of the conversations that were read.
    pub messages: u64,
    /// Conversations without messages, among those that were read.
    pub bare: u64,
    /// Messages left out because they have neither text nor files.
    pub empty: u64,
    /// Unknown content types, with their counts.
    pub unknown: BTreeMap<String, u64>,
    /// Phrases for content that was left out on purpose or is not a chat, with the counts.
    pub left_out: BTreeMap<String, u64>,
    /// The first [`ImportTally::NAMED`] conversations that could not be read.
    pub skipped: Vec<Skipped>,
    /// The number of conversations that could not be read.
    pub skipped_count: u64,
    /// A sentence about each file that is damaged or was refused.
    pub damaged: Vec<String>,
    /// Lines of transcripts that could not be read.
    pub malformed: u64,
    /// Bytes of JSON read.
    pub bytes: u64,
    pub(super) history: ImportHistory,
}

impl ImportTally {
    /// The maximum number of listed conversations that could not be read.
    pub const NAMED: usize = 100;

    pub(super) fn unknown(&mut self, kind: &str, count: u64) {
        let kind: String = kind.chars().take(60).collect();
        *self.unknown.entry(kind).or_default() += count;
    }

    /// Counts content that is left out under the phrase `what`. Only the first [`ImportTally::NAMED`] phrases
    /// are kept; later ones count as `others`.
    pub(super) fn leave_out(&mut self, what: String, others: &str, count: u64) {
        let is_full = self.left_out.len() >= ImportTally::NAMED;
        let is_new = !self.left_out.contains_key(&what);
        let what = if is_full && is_new { others.to_owned() } else { what };
        *self.left_out.entry(what).or_default() += count;
    }

    pub(super) fn leave_out_branches(&mut self, count: u64) {
        if count > 0 {
            self.leave_out(OTHER_BRANCHES.to_owned(), OTHER_BRANCHES, count);
        }
    }

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
    /// The title of the conversation, or else its id; `None` if neither could be read.
    pub name: Option<String>,
    /// The reason why the conversation could not be read.
    pub reason: String,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Reason {
    #[error("{0}")]
    Damaged(#[from] Damage),
    #[error("its `{0}` holds no messages")]
    NoMessages(&'static str),
    /// The object has none of the fields with these names.
    #[error("neither {0} is in it")]
    Unknown(String),
    #[error("a bracket is missing")]
    Unbalanced,
    #[error("the file ends in the middle of it")]
    CutOff,
    #[error("it is longer than any conversation")]
    TooLong,
}

/// The messages of all transcripts of an import so far; see [`super::repeats`].
#[derive(Clone, Debug, Default)]
pub(super) struct ImportHistory {
    /// Fingerprints of the messages with ids: each as that of any conversation, and as that of its own.
    pub(super) fingerprints: HashSet<u64>,
    /// Fingerprints of the messages without ids, by the id of the transcript.
    pub(super) sequences: HashMap<String, Vec<Vec<u64>>>,
    pub(super) conversations: HashSet<String>,
}
