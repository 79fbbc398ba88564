//! (room db)
