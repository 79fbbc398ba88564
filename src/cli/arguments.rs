//! Values of flags that several commands take.

use crate::{
    engine::SourceKind,
    model::Instant,
    text::date::{self, Edge},
};

/// Parses the source that a name means.
pub(super) fn source(name: &str) -> Result<SourceKind, String> {
    let kinds = SourceKind::ALL;
    kinds
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| format!("the sources are {}", kinds.map(SourceKind::name).join(", ")))
}

/// Parses the start of a range of time.
pub(super) fn since(text: &str) -> Result<Instant, String> {
    instant(text, Edge::Start)
}

/// Parses the end of a range of time.
pub(super) fn until(text: &str) -> Result<Instant, String> {
    instant(text, Edge::End)
}

fn instant(text: &str, edge: Edge) -> Result<Instant, String> {
    date::parse_iso(text, edge).ok_or_else(|| "not an ISO 8601 date or date-time".to_owned())
}

/// Returns the limit that a count means; 0 means none.
pub(super) fn limit(count: usize) -> usize {
    if count == 0 { usize::MAX } else { count }
}
