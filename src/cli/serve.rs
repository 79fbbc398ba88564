//! `verbatim serve`.

use std::{sync::Arc, time::Duration};

use super::{
    environment::{Environment, is_off},
    error::Error,
    output::{FOUND, complain},
    places, settings, settings_file,
    watch::described,
    workspace::Workspaces,
};
use crate::{
    engine::Engine,
    mcp,
    tools::{self, Options},
    watch,
};

/// How long the program waits at its end for a refresh to stop and clean up.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(2);

/// Serve the search to AI clients over the Model Context Protocol
///
/// Speaks MCP on standard input and output until the input ends; the log goes to
/// standard error. Clients start this command themselves; `verbatim connect` writes
/// their configuration.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Offer these tools, by name, separated by commas; agent, letta and all stand for several
    /// [default: VERBATIM_TOOLS, then all but those that save and delete conversations]
    #[arg(long, value_name = "NAMES")]
    tools: Option<String>,
    #[command(flatten)]
    pub(super) workspaces: Workspaces,
    /// Do not ignore the case of the letters A to Z
    #[arg(long)]
    case_sensitive: bool,
    /// Match and show messages as stored, even if that is the JSON of ChatGPT's message parts
    #[arg(long)]
    raw_content: bool,
    /// Do not refresh indexes; by default, the server follows the databases and refreshes their
    /// indexes in the background
    #[arg(long)]
    pub(super) no_watch: bool,
}

impl Args {
    /// Takes what the configuration file says.
    pub(super) fn take(&mut self, environment: &Environment) {
        let is_on = |setting, flag| settings::is_on(setting, flag, environment);
        self.case_sensitive = is_on(&settings_file::CASE_SENSITIVE, self.case_sensitive);
        self.raw_content = is_on(&settings_file::RAW_CONTENT, self.raw_content);
        self.no_watch |=
            settings::given(&settings_file::WATCH, None, environment).switch() == Some(false);
    }
}

pub(super) fn run(args: &Args, engine: Engine, environment: &Environment) -> Result<u8, Error> {
    let flag = args.tools.as_ref().map(|names| vec![names.into()]);
    let named = settings::given(&settings_file::TOOLS, flag, environment);
    let has_workspace = !engine.config().workspaces.is_empty();
    let tools = tools::selected(named.text().as_deref(), has_workspace)
        .map_err(|source| Error::Tools { by: named.by.to_string(), source })?;
    let options = Options {
        case_sensitive: args.case_sensitive,
        raw_content: args.raw_content,
        verbose: is_off(environment.compact_responses.as_deref()),
        no_conversations: is_off(environment.enable_conversations.as_deref()),
    };
    if let Some(note) = places::local_note(engine.config()) {
        log(&note);
    }
    let engine = Arc::new(engine);
    // Searches are right without the watch, so a server that cannot start its thread still serves.
    let watch = match args.no_watch {
        true => None,
        false => watch::start(Arc::clone(&engine), |event| log(&described(&event)))
            .map_err(|e| log(&e))
            .ok(),
    };
    let served = mcp::serve(engine, options, tools);
    if let Some(watch) = watch {
        watch.end(SHUTDOWN_PATIENCE);
    }
    served?;
    Ok(FOUND)
}

/// Returns whether a variable says no; any other value, or none, leaves the default.
/// Writes a line to standard error; a failure to write is ignored.
fn log(message: &dyn std::fmt::Display) {
    complain(&message.to_string());
}
