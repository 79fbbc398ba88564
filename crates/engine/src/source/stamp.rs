//! Computes a stamp that tells clients whether an answer may have changed.

use std::time::Duration;

use super::Sources;
use verbatim_base::call::Call;
use verbatim_text::hash::Fnv1a;

/// Time limit for a cluster to report its state.
const PATIENCE: Duration = Duration::from_secs(5);

impl Sources {
    /// Returns a text that changes whenever a database, its index or the exclusions change. This takes some
    /// system calls, or a request to a cluster.
    pub fn stamp(&self) -> String {
        let mut hash = Fnv1a::default();
        hash.write_text(&format!("{:?}", self.exclusions().now().1));
        for source in self.present() {
            hash.write_text(source.kind.name());
            hash.write_text(&source.store().stamp(&source, &Call::default().within(PATIENCE)));
        }
        format!("{:016x}", hash.finish())
    }
}
