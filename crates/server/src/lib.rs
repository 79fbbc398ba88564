//! What serves answers to other programs and to a browser.
//!
//! - [`http`]: the listener: who is let in, limits, MCP over HTTP, search as JSON
//! - [`mcp`]: the Model Context Protocol: lines, calls, resources, prompts; the only user of rmcp
//! - [`web`]: the page in the browser, as a router without authorisation
//! - [`watch`]: file events, and a thread that keeps the indexes current
//! - [`tools`]: the tool contracts: arguments, engine, answer; they know no protocol
//! - [`markdown`]: the dialect of Markdown in messages, for the page and the terminal
//! - `log`: the lines of a server on standard error
//!
//! `http` uses `mcp`; all use `tools`. It uses `verbatim-answer`, `verbatim-engine`, and
//! `verbatim-text` for excerpts.

#![cfg_attr(not(feature = "page"), allow(dead_code, reason = "some is for the page alone"))]

pub mod http;
mod log;
pub mod markdown;
pub mod mcp;
pub mod tools;
pub mod watch;
#[cfg(feature = "page")]
pub mod web;

#[cfg(test)]
#[allow(dead_code, reason = "parts of it are for the page")]
#[path = "../../../tests/shared/test_export.rs"]
mod test_export;
