//! Keeps everything that is derived current: transcripts, indexes, terms, vectors and summaries.

pub(crate) mod diff;
pub(crate) mod enrich;
pub(crate) mod events;
pub(crate) mod follow;
pub(crate) mod maintainer;
pub(crate) mod merge;
pub(crate) mod refresh;
pub(crate) mod transcripts;
