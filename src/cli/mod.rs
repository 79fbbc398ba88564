//! (room cli)

pub mod import;
