//! Values of flags that several commands take.

/// Returns the limit that a count means; 0 means none.
pub(super) fn limit(count: usize) -> usize {
    if count == 0 { usize::MAX } else { count }
}
