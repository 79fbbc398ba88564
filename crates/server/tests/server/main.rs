//! The tools and the page, called in this process.

#[path = "../../../../tests/shared/calls.rs"]
mod calls;
#[path = "../../../../tests/shared/cases.rs"]
mod cases;
#[path = "../../../../tests/shared/corpus.rs"]
mod corpus;
#[cfg(feature = "page")]
mod page;
#[cfg(feature = "page")]
mod page_conversation;
mod promises;
mod query_conversations;
mod read;
#[path = "../../../../tests/shared/schema.rs"]
mod schema;
mod search_tool;
#[cfg(feature = "page")]
#[allow(dead_code, reason = "parts of it are for other binaries")]
#[path = "../../../../tests/shared/test_export.rs"]
mod test_export;
mod threads;
mod writers;
