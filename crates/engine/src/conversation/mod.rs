//! Single conversations: finding the one that a user names, what is said about it, and forgetting it.

pub(crate) mod describe;
pub(crate) mod forget;
pub(crate) mod lookup;
