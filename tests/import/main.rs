//! Exports and transcripts: imported, synchronised, kept and forgotten.

mod archives;
mod attachments;
#[path = "../shared/calls.rs"]
mod calls;
#[path = "../shared/cases.rs"]
mod cases;
mod compressed;
#[path = "../shared/corpus.rs"]
mod corpus;
#[path = "../shared/exports.rs"]
mod exports;
mod formats;
#[path = "../shared/golden.rs"]
mod golden;
mod import;
mod kept;
mod not_stored;
mod once;
#[cfg(unix)]
#[path = "../shared/program.rs"]
mod program;
mod programs;
#[cfg(unix)]
#[path = "../shared/pty.rs"]
mod pty;
mod screen;
mod shapes;
#[path = "../shared/threads.rs"]
mod threads;
mod transcript_files;
#[path = "../shared/transcripts.rs"]
mod transcripts;
#[path = "../shared/user.rs"]
mod user;
