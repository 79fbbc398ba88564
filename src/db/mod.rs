//! (room db)

mod schema;
pub mod writer;
