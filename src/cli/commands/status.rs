//! The command `verbatim status`.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::http_listener::token_of;
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal};
use crate::cli::error::Result;
use crate::cli::settings::engine_config::{self, PlaceArgs};
use crate::cli::settings::settings_report::{self, JsonSettings, SettingsReport};
use crate::cli::terminal::output::{FOUND, harmless};
use verbatim_answer::state::{self, Fact};
use verbatim_base::call::Call;
use verbatim_engine::{self as engine, Engine, Status};

/// Show which databases are searched, and how current their indexes are
///
/// Shows for each source its database and why it was chosen, its contents, its index, and the process
/// that is refreshing the index, if any.
///
///     verbatim status
///     verbatim status --settings
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Show each setting, its value, and what set it: a flag, an environment variable, the configuration
    /// file or nothing
    #[arg(long, conflicts_with = "json")]
    settings: bool,
    /// Print only the token that lets clients in over HTTP
    ///
    /// It is made if there is none. It is in the file `token` of the home folder; without that file, the next
    /// start of the server makes another one.
    #[arg(long, conflicts_with_all = ["json", "settings"])]
    token: bool,
    /// Print JSON, with the settings
    #[arg(long)]
    json: bool,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        let counts = !self.token && !self.settings;
        let form = if self.settings {
            OutputForm::Sentences(settings_report::NAMES)
        } else if self.token || self.json {
            OutputForm::AsItIs
        } else {
            OutputForm::Sentences(0)
        };
        Facts {
            // The token is made where there is no home yet.
            reads: if self.token { Reads::Nothing } else { Reads::Home },
            writes: false,
            takes_db: true,
            makes_vectors: false,
            may_be_torn: false,
            waits_for: counts.then_some("counting messages"),
            form,
        }
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        run(self, invocation.engine, invocation.places, invocation.terminal)
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JsonStatus<'a> {
    /// The version of the program.
    version: &'static str,
    /// The flag, variable or key that names the database.
    named_by: Option<&'static str>,
    #[serde(flatten)]
    settings: JsonSettings<'a>,
    #[serde(flatten)]
    status: Status,
}

fn run(args: &Args, engine: &Engine, places: &PlaceArgs, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    if args.token {
        writeln!(out, "{}", token_of(None, engine.config(), environment)?.as_str())?;
        return Ok(FOUND);
    }
    let settings = SettingsReport::new(places, engine, environment);
    if args.settings {
        settings.write(out)?;
        return Ok(FOUND);
    }
    let named = engine_config::named_by(places, environment);
    let status = engine::status(engine.all_sources(), &Call::default());
    if args.json {
        let version = env!("CARGO_PKG_VERSION");
        let json = JsonStatus { version, named_by: named, settings: settings.json(), status };
        let json = serde_json::to_value(&json).map_err(io::Error::from)?;
        writeln!(out, "{json:#}")?;
        return Ok(FOUND);
    }
    let config = engine.config();
    for source in &status.sources {
        writeln!(out, "{}: {}", source.source, harmless(&source.database.to_string()))?;
        write(state::of_source(source, named, config), "  ", places, out)?;
    }
    write(state::of_home(&status, config), "", places, out)?;
    Ok(FOUND)
}

fn write(
    facts: Vec<Fact>,
    indent: &str,
    places: &PlaceArgs,
    out: &mut dyn Write,
) -> io::Result<()> {
    for fact in facts {
        let line = places.in_commands(&format!("{indent}{}: {fact}", fact.about));
        writeln!(out, "{}", harmless(&line))?;
    }
    Ok(())
}
