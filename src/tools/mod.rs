//! The tool contracts: arguments, engine, answer.
//!
//! Invariant: knows no protocol; a face hands in a JSON object and shows the answer.
//!
//! A new tool is a file here with a `TOOL`, its `mod` line and its line in [`ALL`].

mod arguments;
mod bound;
pub mod conversation_search;
pub mod delete_conversation;
mod error;
pub mod manage_conversation;
mod notes;
pub mod query_conversations;
pub mod read;
pub mod save_conversation_context;
pub mod search;
pub mod search_workspace;
mod tool;

pub use read::transcript;
pub use tool::{Answer, Effect, Options, Tool};

/// Every tool, in the order in which they are listed.
pub const ALL: &[Tool] = &[
    conversation_search::TOOL,
    query_conversations::TOOL,
    search::TOOL,
    read::TOOL,
    search_workspace::TOOL,
    manage_conversation::TOOL,
    save_conversation_context::TOOL,
    delete_conversation::TOOL,
];

/// A name that no tool has.
#[derive(Debug, thiserror::Error)]
#[error("there is no tool {name:?}; the tools are {}", names().join(", "))]
pub struct UnknownTool {
    /// The name of the unknown tool.
    pub name: String,
}

/// Returns the tools that a list of names selects; all of them for no list.
pub fn selected(list: Option<&str>) -> Result<Vec<&'static Tool>, UnknownTool> {
    let wanted: Vec<&str> = list
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    if let Some(name) = wanted.iter().find(|name| !names().contains(name)) {
        return Err(UnknownTool { name: (*name).to_owned() });
    }
    Ok(ALL.iter().filter(|tool| wanted.is_empty() || wanted.contains(&tool.name)).collect())
}

fn names() -> Vec<&'static str> {
    ALL.iter().map(|tool| tool.name).collect()
}
