//! Verbatim: finds what was said in your AI chats, exactly and fast.
//!
//! The rooms, each using only those below it:
//!
//! - [`cli`], [`mcp`]: the faces; one file per command, the tool table over stdio
//! - [`watch`]: file events, and a thread that keeps the indexes current
//! - [`tools`]: the tool contracts: arguments, engine, answer; knows no protocol
//! - [`engine`]: the only room that joins `db`, `index`, `import` and `workspace`
//! - [`db`]: canonical SQLite databases; [`index`]: n-grams in tantivy, derived and rebuildable;
//!   [`embed`]: texts into vectors; [`import`]: exports read into [`model`]; [`workspace`]: dated
//!   conversation folders, searched as ripgrep does
//! - [`text`]: LIKE patterns, n-grams, dates, snippets: pure functions over text
//! - [`model`]: plain data; `int8`: rounded vectors; [`map_faults`]: mapped files that are cut; [`failpoint`]: where tests kill the
//!   program

pub mod cli;
pub mod db;
pub mod embed;
pub mod engine;
pub mod failpoint;
pub mod import;
pub mod index;
mod int8;
pub mod map_faults;
pub mod mcp;
pub mod model;
pub mod text;
pub mod tools;
pub mod watch;
pub mod workspace;
