//! Answers that are ready to print. The terminal, the picker, the page, MCP and HTTP search share them, so that
//! all say the same; each face only brings them into its form.
//!
//! - [`asked`]: the question of a person or a client as a value, whatever face took it; [`typed`]: of a typed text
//! - [`filters`]: which conversations and messages are asked for; names, dates and roles as people give them
//! - [`marks`]: where a text matches, and texts in pieces
//! - [`exact`]: an exact search, its hits by conversation, and what to say if there are none
//! - [`conversation`]: what is said about a conversation: where it is from, its short id, numbers of messages
//! - [`json_lines`]: found messages as JSON, for programs
//! - [`ranked`]: the best messages or conversations for a question, with its notes and the words to mark
//! - [`markdown`]: messages in files that people keep
//! - [`nothing`]: sentences for searches that find nothing
//! - [`notes`], [`readings`], [`hint`]: sentences about what is left out, and the command that helps
//! - [`state`]: what is searched and how current it is, as facts in sentences
//! - [`words`]: the words of a question; [`clock`]: times; [`resume`]: the command that resumes a session
//! - [`import_report`]: what an import stored and left out, and what is not indexed
//!
//! It uses `verbatim-engine` and plain functions over text. The faces use it.

pub mod asked;
pub mod clock;
pub mod conversation;
pub mod exact;
pub mod filters;
pub mod hint;
pub mod import_report;
pub mod json_lines;
pub mod markdown;
pub mod marks;
pub mod notes;
pub mod nothing;
pub mod ranked;
pub mod readings;
pub mod resume;
pub mod state;
pub mod typed;
pub mod words;

#[cfg(test)]
#[allow(dead_code, reason = "parts of it are for other crates")]
#[path = "../../../tests/shared/test_export.rs"]
mod test_export;
