//! Reports on the databases and indexes: their contents, sizes and faults.

pub(crate) mod doctor;
pub(crate) mod finding;
mod sample;
pub(crate) mod statistics;
pub(crate) mod status;
