//! The tools, called in this process.

#[path = "../../../../tests/shared/calls.rs"]
mod calls;
#[path = "../../../../tests/shared/cases.rs"]
mod cases;
#[allow(dead_code, reason = "not every binary needs it")]
#[path = "../../../../tests/shared/corpus.rs"]
mod corpus;
mod promises;
mod query_conversations;
mod read;
#[allow(dead_code, reason = "not every binary needs it")]
#[path = "../../../../tests/shared/schema.rs"]
mod schema;
mod search_tool;
mod threads;
mod writers;
