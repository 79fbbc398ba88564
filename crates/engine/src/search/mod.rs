//! Exact search in all sources: hits, counts, and what to search for instead if nothing is found.

pub(crate) mod alike;
pub(crate) mod count;
pub(crate) mod exact;
pub(crate) mod facets;
pub(crate) mod readings;
