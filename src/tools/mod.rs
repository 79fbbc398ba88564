//! (room tools)
