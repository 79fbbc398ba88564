//! `verbatim serve`.

use std::{ffi::OsStr, sync::Arc};

use super::{Environment, Error, FOUND};
use crate::{
    engine::Engine,
    mcp,
    tools::{self, Options},
};

/// Serve the search to AI clients over the Model Context Protocol
///
/// Speaks MCP on standard input and output until the input ends; the log goes to
/// standard error. Clients start this command themselves: see the README for what to
/// put into their configuration.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Offer only these tools, by name, separated by commas [default: VERBATIM_TOOLS, then all]
    #[arg(long, value_name = "NAMES")]
    tools: Option<String>,
    /// Match ASCII letters only in their own case
    #[arg(long)]
    case_sensitive: bool,
    /// Match and show what is stored, even where it is the JSON of ChatGPT's message parts
    #[arg(long)]
    raw_content: bool,
}

pub(super) fn run(args: &Args, engine: Engine, environment: &Environment) -> Result<u8, Error> {
    let variable = environment.verbatim_tools.as_ref().map(|names| names.to_string_lossy());
    let tools = tools::selected(args.tools.as_deref().or(variable.as_deref()))?;
    let options = Options {
        case_sensitive: args.case_sensitive,
        raw_content: args.raw_content,
        verbose: is_off(environment.compact_responses.as_deref()),
        no_conversations: is_off(environment.enable_conversations.as_deref()),
    };
    mcp::serve(Arc::new(engine), options, tools)?;
    Ok(FOUND)
}

/// Returns whether a variable says no; anything else, and nothing, leaves the default.
fn is_off(variable: Option<&OsStr>) -> bool {
    let value = variable.and_then(OsStr::to_str).unwrap_or_default().trim().to_ascii_lowercase();
    ["false", "0", "no", "off"].contains(&value.as_str())
}
