//! Reports: what there is, how much of it, and what is wrong with it.

pub(crate) mod doctor;
pub(crate) mod finding;
mod sample;
pub(crate) mod statistics;
pub(crate) mod status;
