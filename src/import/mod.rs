//! Exports of chat services and transcripts of coding agents, read into [`crate::model`].
//!
//! A zip is read as it is, never unpacked. What a file is shows in its content: its name says
//! only in which order files are read.
//!
//! Invariant: never holds more of an export than its longest conversation.
//! Invariant: an export, however broken, makes an error or a line in the [`Tally`], never a panic.

mod chatgpt;
mod citations;
mod claude;
mod claude_code;
mod codex;
pub mod compressed;
mod fields;
mod json;
mod package;
mod part;
pub mod repeats;
mod scan;
mod tool;
pub mod transcript;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use self::{
    json::{Damage, Fields, Raw},
    package::Package,
    part::{Part, Watched},
    repeats::ImportHistory,
};
use crate::model::Conversation;

/// What can go wrong with an export as a whole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path does not exist or cannot be opened.
    #[error("{path}: cannot read the export: {source}")]
    Open {
        /// What was opened.
        path: PathBuf,
        /// Why it could not be.
        source: io::Error,
    },
    /// A zip that cannot be read as one.
    #[error(
        "{path}: cannot read the zip: {reason}; a download that was cut off looks like this, so try it again"
    )]
    Zip {
        /// The zip.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A zip whose entries unpack to far more than any export does.
    #[error(
        "{path}: refused: unpacks to {unpacked} bytes, more than {ratio} times its size, as no export does"
    )]
    Bomb {
        /// The zip.
        path: PathBuf,
        /// What its entries claim to hold.
        unpacked: u64,
        /// The most that is taken for honest.
        ratio: u64,
    },
    /// Nothing in it is a conversation.
    #[error(
        "{path}: not an export we know: {found}; looked for conversations with `mapping` (ChatGPT) or `chat_messages` (Claude.ai) in conversations.json or any other .json file, and for transcripts of Claude Code and Codex in .jsonl or .jsonl.zst files"
    )]
    NotAnExport {
        /// What was looked into.
        path: PathBuf,
        /// What was there instead.
        found: String,
    },
    /// It is an export, and not one conversation could be read.
    #[error("{path}: no conversation could be read: {reason}")]
    NothingReadable {
        /// The export.
        path: PathBuf,
        /// What is wrong with the first.
        reason: String,
    },
}

/// Which messages of a conversation with several branches are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Branches {
    /// Those that the service shows.
    #[default]
    Shown,
    /// Every branch, the shown one first.
    All,
}

/// The service that an export comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// ChatGPT.
    ChatGpt,
    /// Claude.ai.
    Claude,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
}

impl Kind {
    /// Returns the name that databases know it by.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ChatGpt => "chatgpt",
            Kind::Claude => "claude",
            Kind::ClaudeCode => "claude_code",
            Kind::Codex => "codex",
        }
    }

    /// Tells the kind of a conversation from the names of its fields.
    fn of(fields: &Fields<'_>) -> Option<Kind> {
        // Settings of many programs hold a `mapping`, too.
        let heading = ["title", "create_time", "current_node", "id", "conversation_id"];
        if fields.get("mapping").is_some() && heading.iter().any(|name| fields.get(name).is_some())
        {
            Some(Kind::ChatGpt)
        } else if fields.get("chat_messages").is_some() {
            Some(Kind::Claude)
        } else if fields.get("loglines").is_some_and(Raw::is_array) {
            Some(Kind::ClaudeCode)
        } else if fields.get("session").is_some_and(Raw::is_object)
            && fields.get("items").is_some_and(Raw::is_array)
        {
            Some(Kind::Codex)
        } else {
            None
        }
    }
}

/// What reading exports came upon beside the conversations.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Conversations read.
    pub conversations: u64,
    /// Messages in them.
    pub messages: u64,
    /// Messages left out because they hold neither text nor files.
    pub empty: u64,
    /// Content types that we do not know, and how often each came.
    pub unknown: BTreeMap<String, u64>,
    /// Conversations that could not be read; the first [`Tally::NAMED`] of them.
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
    history: ImportHistory,
}

impl Tally {
    /// How many of the conversations that could not be read are kept by name.
    pub const NAMED: usize = 100;

    fn unknown(&mut self, kind: &str) {
        let kind: String = kind.chars().take(60).collect();
        *self.unknown.entry(kind).or_default() += 1;
    }

    fn skip(&mut self, skipped: Skipped) {
        self.skipped_count += 1;
        if self.skipped.len() < Tally::NAMED {
            self.skipped.push(skipped);
        }
    }
}

/// A conversation that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The file it is in.
    pub file: String,
    /// Its place in the file, from 1.
    pub ordinal: u64,
    /// Its title, or else its id, where either could be read.
    pub name: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

/// Why one conversation could not be read.
#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("{0}")]
    Damaged(#[from] Damage),
    #[error("its `{0}` holds no messages")]
    NoMessages(&'static str),
    #[error("neither `mapping` nor `chat_messages` is in it")]
    Unknown,
    #[error("a bracket is missing")]
    Unbalanced,
    #[error("the file ends in the middle of it")]
    CutOff,
    #[error("it is longer than any conversation")]
    TooLong,
}

/// An export that has been found and can be read.
#[derive(Debug)]
pub struct Export {
    path: PathBuf,
    package: Package,
}

impl Export {
    /// Finds the files of the export at `path`: a zip, a folder or a JSON file.
    pub fn open(path: &Path) -> Result<Export, Error> {
        Ok(Export { path: path.to_owned(), package: Package::open(path)? })
    }

    /// Returns the bytes of JSON there are to read.
    pub fn size(&self) -> u64 {
        self.package.parts().iter().map(|part| part.size).sum()
    }

    /// Hands each conversation to `sink`, in the order of the export.
    ///
    /// `progress` is told of bytes as they are read. An error of the sink ends the reading.
    pub fn read<E: From<Error>>(
        mut self,
        branches: Branches,
        tally: &mut Tally,
        progress: &dyn Fn(u64),
        sink: &mut dyn FnMut(Kind, Conversation) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = tally.conversations;
        let mut recognised = false;
        let mut first_failure = None;
        tally.damaged.extend(self.package.refused().iter().cloned());
        for at in 0..self.package.parts().len() {
            let name = self.package.parts()[at].name.clone();
            let reader = match self.package.reader(at) {
                Ok(reader) => Watched { inner: reader, progress, read: 0 },
                Err(reason) => {
                    tally.damaged.push(format!("{name}: {reason}"));
                    first_failure.get_or_insert(reason);
                    continue;
                }
            };
            let mut part = Part {
                name: &name,
                branches,
                tally: &mut *tally,
                recognised: false,
                pending: Vec::new(),
            };
            part.read(reader, sink)?;
            recognised |= part.recognised;
        }
        if tally.conversations > before {
            return Ok(());
        }
        let error = if recognised {
            let skipped = tally
                .skipped
                .last()
                .map(|it| format!("conversation {}: {}", it.ordinal, it.reason));
            let reason = skipped.or_else(|| tally.damaged.last().cloned());
            let reason = reason.unwrap_or_else(|| "nothing is said in it".to_owned());
            Error::NothingReadable { path: self.path, reason }
        } else if let Some(reason) = first_failure {
            Error::NothingReadable { path: self.path, reason }
        } else {
            let found = self.package.describe();
            Error::NotAnExport { path: self.path, found }
        };
        Err(error.into())
    }
}
