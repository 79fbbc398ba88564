//! The tool contracts. Each tool parses its arguments, asks the engine and writes the answer.
//!
//! Invariant: the tools do not depend on a protocol. A front end passes a JSON object and shows the answer.
//!
//! A new tool is a file here with a `TOOL`, its `mod` line and its line in [`ALL`].

mod arguments;
mod bound;
pub mod chatgpt;
pub mod conversation_search;
pub mod delete_conversation;
mod error;
pub mod manage_conversation;
pub mod query_conversations;
pub mod read;
pub mod save_conversation_context;
pub mod search;
pub mod search_workspace;
mod tool;

use verbatim_text::snippet;

pub use read::transcript;
pub(crate) use tool::REQUEST_LOCK_WAIT;
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

/// The tools that are offered only if they are named, because they save or delete conversations.
const ON_REQUEST: [&str; 2] =
    [save_conversation_context::TOOL.name, delete_conversation::TOOL.name];

/// The tools for ChatGPT. Its `search` has another format, so these tools are offered alone.
const CHATGPT: &[Tool] = &[chatgpt::SEARCH, chatgpt::FETCH];

const CHATGPT_PROFILE: &str = "chatgpt";

/// The name of ChatGPT's client in the protocol.
pub(crate) const CHATGPT_CLIENT: &str = "openai-mcp";

const PROFILES: [(&str, &[&str]); 2] = [
    (
        "agent",
        &[
            query_conversations::TOOL.name,
            search::TOOL.name,
            read::TOOL.name,
            manage_conversation::TOOL.name,
        ],
    ),
    ("letta", &[conversation_search::TOOL.name]),
];

const EVERY: &str = "all";

/// An error of a list of tools.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// The list names a tool that does not exist.
    #[error(
        "there is no tool {:?}; the tools are {}; agent, letta, chatgpt and all stand for several",
        snippet::echo(name), names().join(", ")
    )]
    Unknown {
        /// The name as given, without white space at its ends.
        name: String,
    },
    /// ChatGPT's tools are named together with other tools.
    #[error("chatgpt cannot be combined with other tools, because its search differs")]
    NotAlone,
}

/// The tools that a server offers.
#[derive(Clone, Debug)]
pub struct Offer {
    tools: Vec<&'static Tool>,
    /// Whether ChatGPT gets its own tools instead.
    adapts: bool,
}

impl Offer {
    /// Returns the tools for a client with this name.
    pub fn to(&self, client: Option<&str>) -> Vec<&'static Tool> {
        if self.adapts && client.is_some_and(|name| name.starts_with(CHATGPT_CLIENT)) {
            CHATGPT.iter().collect()
        } else {
            self.tools.clone()
        }
    }
}

/// Returns the tools in a list of names and profiles. Without a list, selects the contract tools that
/// the configuration allows (`search_workspace` needs a workspace), and ChatGPT gets its own tools.
pub fn selected(list: Option<&str>, has_workspace: bool) -> Result<Offer, OfferError> {
    let words = list.unwrap_or_default().split(',').map(str::trim);
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.contains(&CHATGPT_PROFILE) {
        return if words.iter().all(|word| *word == CHATGPT_PROFILE) {
            Ok(Offer { tools: CHATGPT.iter().collect(), adapts: false })
        } else {
            Err(OfferError::NotAlone)
        };
    }
    let mut wanted: Vec<&str> = Vec::new();
    for word in words {
        match PROFILES.iter().find(|(name, _)| *name == word) {
            Some((_, names)) => wanted.extend(*names),
            None if word == EVERY => wanted.extend(names()),
            None if names().contains(&word) => wanted.push(word),
            None => return Err(OfferError::Unknown { name: word.to_owned() }),
        }
    }
    let adapts = wanted.is_empty();
    if adapts {
        wanted = names();
        wanted.retain(|name| {
            !ON_REQUEST.contains(name) && (has_workspace || *name != search_workspace::TOOL.name)
        });
    }
    let tools = ALL.iter().filter(|tool| wanted.contains(&tool.name)).collect();
    Ok(Offer { tools, adapts })
}

fn names() -> Vec<&'static str> {
    ALL.iter().map(|tool| tool.name).collect()
}
