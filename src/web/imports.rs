//! The import that somebody began on the page: how far it is, and how it ended.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The import that is under way, or the last one.
#[derive(Default)]
pub(super) struct Imports(Mutex<Option<Upload>>);

/// A file that was dropped on the page.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    /// The name that the browser gave it.
    pub(super) name: String,
    pub(super) stage: Stage,
}

/// How far an import is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The file is being received: bytes that came, of how many if the browser said so.
    Receiving(u64, Option<u64>),
    /// It is being read.
    Reading(ReadSoFar),
    /// It was imported.
    Done(Outcome),
    /// It could not be imported; why.
    Failed(String),
}

/// How much of a file was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadSoFar {
    pub(super) done: u64,
    pub(super) total: u64,
    pub(super) conversations: u64,
    pub(super) messages: u64,
}

/// What an import changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) conversations: u64,
    pub(super) new_conversations: u64,
    pub(super) new_messages: u64,
    pub(super) updated_messages: u64,
    /// What could not be read, a sentence each.
    pub(super) missing: Vec<String>,
}

impl Imports {
    fn locked(&self) -> MutexGuard<'_, Option<Upload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an import; returns whether no other is under way.
    pub(super) fn begin(&self, name: &str, bytes: Option<u64>) -> bool {
        let mut now = self.locked();
        if now.as_ref().is_some_and(Upload::is_under_way) {
            return false;
        }
        *now = Some(Upload { name: name.to_owned(), stage: Stage::Receiving(0, bytes) });
        true
    }

    /// Says how far the import is.
    pub(super) fn set(&self, stage: Stage) {
        if let Some(upload) = &mut *self.locked() {
            upload.stage = stage;
        }
    }

    /// Returns the import that is under way, or the last one.
    pub(super) fn last(&self) -> Option<Upload> {
        self.locked().clone()
    }
}

impl Upload {
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.stage, Stage::Receiving(..) | Stage::Reading(_))
    }
}
