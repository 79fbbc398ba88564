//! The server's log.

use std::io::{self, Write};

use crate::text::terminal::harmless;

/// Writes a line to standard error; a failure to write is ignored.
pub(super) fn log(message: &str) {
    let _ = writeln!(io::stderr(), "verbatim: {}", harmless(message));
}
