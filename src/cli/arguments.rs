//! Values of flags that several commands take.

use crate::engine::SourceKind;

/// Parses the source that a name means.
pub(super) fn source(name: &str) -> Result<SourceKind, String> {
    let kinds = SourceKind::ALL;
    kinds
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| format!("the sources are {}", kinds.map(SourceKind::name).join(", ")))
}

/// Returns the limit that a count means; 0 means none.
pub(super) fn limit(count: usize) -> usize {
    if count == 0 { usize::MAX } else { count }
}
