//! Facts about the current state of a database that an index does not hold, kept beside its snapshot.

use serde::{Serialize, de::DeserializeOwned};

use super::sources::Source;
use crate::error::Result;
use verbatim_base::model::Stop;
use verbatim_index::Snapshot;

/// The version of the files.
const FORMAT: u32 = 1;

/// The number of messages of a snapshot from which a file is read faster than its content is made.
const WORTH_KEEPING: u32 = 20_000;

/// Keeps a file beside a snapshot that is not small. A folder that cannot be written to only costs the time to
/// make the content again.
pub(super) fn keep(snapshot: &Snapshot, name: &str, format: u32, bytes: &[u8]) {
    if snapshot.messages() >= WORTH_KEEPING {
        drop(snapshot.keep(name, format, bytes));
    }
}

impl Source {
    /// Returns a fact about the database. If the index is current, the fact is looked up under a name
    /// beside it, and kept there if it was not known.
    pub(crate) fn fact<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        stop: &Stop,
        read: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Ok(snapshot) = self.current_index(stop) else { return read() };
        let kept = snapshot.kept(name, FORMAT).ok();
        if let Some(known) = kept.and_then(|file| serde_json::from_slice(&file).ok()) {
            return Ok(known);
        }
        let fact = read()?;
        // The database may have changed since the index was compared with it. This compares again.
        let is_of_snapshot =
            self.current_index(&Stop::never()).is_ok_and(|it| it.name() == snapshot.name());
        if is_of_snapshot && let Ok(bytes) = serde_json::to_vec(&fact) {
            keep(&snapshot, name, FORMAT, &bytes);
        }
        Ok(fact)
    }
}
