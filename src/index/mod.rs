//! (room index)
