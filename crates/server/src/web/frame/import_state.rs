//! The import that was begun on the page: its progress and its result.

use std::sync::Mutex;

use verbatim_base::lock::lock;
use verbatim_engine::import::ImportProgress;

/// The current import, or the last one.
#[derive(Default)]
pub(super) struct Imports(Mutex<Option<Upload>>);

#[derive(Clone, Debug)]
pub(super) struct Upload {
    pub(super) name: String,
    pub(super) stage: Stage,
}

#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// The file is being received: the received bytes, and the total if the browser gave it.
    Receiving(u64, Option<u64>),
    Reading(ImportProgress),
    /// Everything is imported, and this share of the index is made.
    Indexing(f64),
    Done(Outcome),
    /// The import failed; the text is the reason.
    Failed(String),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) stored: String,
    pub(super) is_whole: bool,
    pub(super) left_out: Vec<String>,
    /// Why not all of it is indexed.
    pub(super) unindexed: Option<String>,
    /// The vectors that are made later.
    pub(super) vectors_left: Option<String>,
}

impl Imports {
    /// Begins an import; returns false if another import is running.
    pub(super) fn begin(&self, name: &str, bytes: Option<u64>) -> bool {
        let mut now = lock(&self.0);
        if now.as_ref().is_some_and(Upload::is_under_way) {
            return false;
        }
        *now = Some(Upload { name: name.to_owned(), stage: Stage::Receiving(0, bytes) });
        true
    }

    pub(super) fn set(&self, stage: Stage) {
        if let Some(upload) = &mut *lock(&self.0) {
            upload.stage = stage;
        }
    }

    pub(super) fn last(&self) -> Option<Upload> {
        lock(&self.0).clone()
    }
}

impl Upload {
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.stage, Stage::Receiving(..) | Stage::Reading(_) | Stage::Indexing(_))
    }
}
