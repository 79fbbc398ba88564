//! Chats where they are stored, read and written: no index, no ranking, no question.
//!
//! - [`db`]: canonical SQLite databases, our own stores among them; search with SQLite's own `LIKE`
//! - [`import`]: one file for each export format; exports and transcripts become plain conversations
//! - [`workspace`]: folders of dated conversations as files, searched with ripgrep's libraries
//!
//! The three do not use each other. It uses `verbatim-text` and `verbatim-base`, and is the only crate that
//! names rusqlite.
//!
//! Invariant: a user's database is opened read-only, and no file is added to its folder.

pub mod db;
mod fingerprint;
pub mod import;
pub mod workspace;
