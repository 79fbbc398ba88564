//! Caches files beside a snapshot.

use verbatim_index::Snapshot;

/// The number of messages of a snapshot from which a file is read faster than its content is made. Tests have
/// small snapshots.
const WORTH_KEEPING: u32 = if cfg!(test) { 1 } else { 20_000 };

/// Caches a file beside a snapshot that is not small. A folder that cannot be written to only costs the time to
/// make the content again.
pub(crate) fn cache_file(snapshot: &Snapshot, name: &str, format: u32, bytes: &[u8]) {
    if snapshot.messages() >= WORTH_KEEPING {
        drop(snapshot.keep(name, format, bytes));
    }
}
