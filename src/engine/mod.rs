//! (room engine)
