//! Lists and descriptions of conversations, and the filters by name.

pub(super) mod description;
pub(super) mod list;
mod narrow;
pub(super) mod places;
mod resolve;
pub(super) mod session;
mod sessions;
