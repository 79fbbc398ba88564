//! The commands, a file each, and what only commands share.

mod background;
pub(super) mod completions;
pub(super) mod connect;
pub(super) mod demo;
pub(super) mod doctor;
mod exclusions;
pub(super) mod export;
pub(super) mod filters;
pub(super) mod forget;
mod http_listener;
pub(super) mod import;
pub(super) mod indexing;
pub(super) mod interactive;
#[cfg(test)]
#[path = "../../../tests/shared/json_document.rs"]
mod json_document;
pub(super) mod list;
pub(super) mod open;
pub(super) mod reindex;
pub(super) mod search;
pub(super) mod serve;
pub(super) mod show;
pub(super) mod stats;
pub(super) mod status;
pub(super) mod transcripts;
pub(super) mod watch;
pub(super) mod web;
