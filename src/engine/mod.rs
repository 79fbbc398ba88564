//! (room engine)

pub mod import;
