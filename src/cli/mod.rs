//! The command line: reads the arguments and the environment of the process, and runs a command.

pub mod clients;
mod command;
mod commands;
mod error;
mod help;
#[cfg(feature = "picker")]
mod picker;
mod settings;
mod terminal;
mod tips;

use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anstream::AutoStream;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};

use self::command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal};
use self::commands::{
    completions, connect, demo, doctor, export, forget, import, indexing, interactive, list, open,
    reindex, search, serve, show, stats, status, transcripts, watch, web,
};
use self::error::refuse_torn;
pub use self::error::{Error, Result};
use self::settings::engine_config::{self, PlaceArgs};
pub use self::settings::environment::Environment;
use self::terminal::output::{FOUND, TROUBLE, TerminalWriter, complain, write_usage};
use self::terminal::pager::Paged;
use self::terminal::waiting::{EndsWaiting, Waiting};
use self::terminal::wrap::{Wrapped, shortened};
use verbatim_base::map_faults;
use verbatim_engine::{self as engine, Engine};

/// Find what was said in your AI chats, exactly
///
/// Searches exported conversations (ChatGPT, Claude.ai) and the transcripts of coding
/// agents in the terminal, and serves the same search to AI clients over the Model
/// Context Protocol.
#[derive(Debug, Parser)]
#[command(name = "verbatim", version = verbatim_engine::VERSION)]
struct Cli {
    #[command(flatten)]
    places: PlaceArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

macro_rules! commands {
    ($($(#[$attribute:meta])* $name:ident($args:ty),)*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($(#[$attribute])* $name($args),)*
        }

        impl Command {
            fn into_args(self) -> Box<dyn CommandArgs> {
                match self {
                    $(Command::$name(args) => Box::new(args),)*
                }
            }
        }
    };
}

commands! {
    Demo(demo::Args),
    Import(import::ImportArgs),
    Reindex(reindex::Args),
    #[command(visible_aliases = ["find", "grep"])]
    Search(search::Args),
    List(list::Args),
    Show(show::Args),
    Open(open::OpenArgs),
    Resume(open::ResumeArgs),
    Stats(stats::Args),
    Export(export::Args),
    #[command(alias = "delete")]
    Forget(forget::Args),
    Connect(connect::ConnectArgs),
    Disconnect(connect::DisconnectArgs),
    Web(web::Args),
    Serve(serve::Args),
    Watch(watch::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
}

struct ParsedCommand {
    places: PlaceArgs,
    args: Box<dyn CommandArgs>,
    facts: Facts,
}

impl ParsedCommand {
    fn of(cli: Cli, environment: &Environment) -> Result<ParsedCommand, clap::Error> {
        let args = match cli.command {
            Some(command) => command.into_args(),
            None if environment.full_screen => Box::new(interactive::SearchAsTyped),
            None => Box::new(interactive::Examples),
        };
        let facts = args.facts();
        if cli.places.db.is_some() && !facts.takes_db {
            let text = "this command reads no database, so leave out --db\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(ParsedCommand { places: cli.places, args, facts })
    }
}

/// Runs the program `verbatim` with the arguments, the environment and the streams of this process.
/// Returns the exit code as in grep: 0 if something was found, 1 if nothing was found, 2 for
/// errors.
pub fn run_program() -> ExitCode {
    let error = match run_command() {
        Ok(code) => return ExitCode::from(code),
        Err(error) => error,
    };
    // A closed pipe is not an error.
    let broken = error.chain().any(|cause| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    });
    if broken {
        return ExitCode::SUCCESS;
    }
    match error.downcast_ref::<Error>() {
        Some(Error::Usage(usage)) => write_usage(usage),
        Some(error @ Error::Engine(engine::Error::NoDatabase { .. })) => {
            let environment = Environment::of_process().unwrap_or_default();
            let user = engine_config::user_prefix(&environment);
            complain(&shortened(&error.to_string(), user.as_deref()));
        }
        _ => complain(&error.to_string()),
    }
    ExitCode::from(TROUBLE)
}

fn run_command() -> anyhow::Result<u8> {
    map_faults::survive();
    #[cfg(debug_assertions)]
    if let Some(number) = env::var("VERBATIM_FAILPOINT").ok().and_then(|text| text.parse().ok()) {
        verbatim_base::failpoint::arm(number);
    }
    let environment = Environment::of_process()?;
    if completions::answer(command, env::args_os(), &environment)? {
        return Ok(FOUND);
    }
    // This stream does not choose colours; it only converts them for old Windows consoles.
    let mut out = BufWriter::new(AutoStream::always(io::stdout()));
    let code = run(env::args_os(), &environment, &mut out)?;
    out.flush()?;
    Ok(code)
}

/// Runs the command in `arguments`, which begin with the program's name; returns the exit code.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8> {
    let command = help::with_help(Cli::command(), environment);
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = command.try_get_matches_from(&arguments).and_then(|mut matches| {
        ParsedCommand::of(Cli::from_arg_matches_mut(&mut matches)?, environment)
    });
    match parsed {
        Ok(mut parsed) => {
            parsed.places.expand(environment);
            let environment = &environment.with_settings()?;
            if environment.terminal {
                execute_on_terminal(parsed, environment, out)
            } else {
                execute(parsed, environment, &mut EndsWaiting(out))
            }
        }
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            let text = error.render();
            if environment.colours {
                write!(out, "{}", text.ansi())?;
            } else {
                write!(out, "{text}")?;
            }
            Ok(FOUND)
        }
        Err(error) => Err(Error::Usage(tips::with_tip(error, &arguments, &Cli::command()))),
    }
}

fn execute_on_terminal(
    parsed: ParsedCommand,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8> {
    let form = parsed.facts.form;
    let mut out = Paged::new(out, environment, matches!(form, OutputForm::Pages));
    let mut out_on_terminal = TerminalWriter::new(&mut out);
    let (columns, indent) = match form {
        OutputForm::Sentences(indent) => (environment.columns, indent),
        OutputForm::AsItIs | OutputForm::Pages => (None, 0),
    };
    let user = engine_config::user_prefix(environment);
    let mut wrapped = Wrapped::new(&mut out_on_terminal, columns, indent, user);
    let code = execute(parsed, environment, &mut EndsWaiting(&mut wrapped));
    wrapped.flush()?;
    out.finish()?;
    code
}

fn execute(parsed: ParsedCommand, environment: &Environment, out: &mut dyn Write) -> Result<u8> {
    let ParsedCommand { places, mut args, facts } = parsed;
    if facts.reads != Reads::Nothing {
        engine_config::check_home(&places, environment)?;
    }
    let mut config = engine_config::config(&places, environment);
    config.vector_share = engine_config::vector_share(environment)?;
    let provider = engine_config::embeddings(args.model(), environment);
    // If the provider is unknown, the indexes are not changed, because vectors of another model
    // would replace the existing vectors.
    config.leave_indexes = provider.is_err();
    let no_provider = match provider {
        Ok(provider) => {
            config.embeddings = provider;
            None
        }
        Err(error) if facts.makes_vectors => return Err(error.into()),
        Err(error) => Some(error),
    };
    config.cluster_login = engine_config::cluster_login(environment)?;
    args.configure(&mut config, environment);
    engine::prepare_home(&config, facts.writes);
    let engine = Arc::new(Engine::new(config));
    if matches!(facts.reads, Reads::EverySource | Reads::EverySourceExactly) {
        transcripts::sync_for_reading(&engine, environment);
    }
    if facts.reads == Reads::EverySourceExactly {
        indexing::index_in_passing(&engine, environment);
    }
    let _waiting = facts.waits_for.map(|what| Waiting::begin(environment, what));
    let terminal = Terminal { environment, out };
    let code = args.run(Invocation {
        engine: &engine,
        places: &places,
        no_provider,
        parse_serve,
        terminal,
    })?;
    // The answer is written before the memory of the engine is freed.
    out.flush()?;
    if facts.may_be_torn {
        refuse_torn(&engine)?;
    }
    Ok(code)
}

/// Parses the arguments with which a client starts the program; `None` if the command is not `serve`.
fn parse_serve(arguments: &[&str]) -> Result<Option<PlaceArgs>, clap::Error> {
    let words = std::iter::once("verbatim").chain(arguments.iter().copied());
    let mut matches = Cli::command().try_get_matches_from(words)?;
    let cli = Cli::from_arg_matches_mut(&mut matches)?;
    Ok(matches!(cli.command, Some(Command::Serve(_))).then_some(cli.places))
}

pub fn command() -> clap::Command {
    Cli::command()
}
