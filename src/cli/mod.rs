//! The command line. Each command has a file.

mod archives;
mod arguments;
mod background;
pub mod clients;
mod command;
mod completions;
mod connect;
mod demo;
mod doctor;
mod echo;
mod engine_config;
mod environment;
mod error;
mod exclude;
mod export;
mod filters;
mod forget;
mod found;
mod groups;
mod help;
mod hints;
mod import;
mod indexing;
mod interrupt;
mod list;
mod listen;
mod look;
mod markdown;
mod matching;
mod notes;
mod open;
mod output;
mod pager;
mod patterns;
#[cfg(feature = "picker")]
mod picker;
mod program;
mod progress;
mod ranked;
mod reindex;
mod search;
mod serve;
mod settings;
mod settings_file;
mod settings_report;
mod show;
mod stats;
mod status;
mod tips;
mod token;
mod waiting;
mod watch;
mod web;
mod wrap;

use std::{ffi::OsString, io::Write, sync::Arc};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};

use self::{
    command::{CommandArgs, Facts, Invocation, OutputForm, Reads},
    engine_config::{PlaceArgs, WrongProvider},
    environment::Terminal,
    output::{FOUND, NOTHING, TROUBLE, TerminalWriter},
    pager::Paged,
    waiting::{EndsWaiting, Waiting},
    wrap::Wrapped,
};
pub use self::{
    environment::Environment,
    error::{Error, Result},
    program::run_program,
};
use verbatim_answer::clock;
use verbatim_base::map_faults;
use verbatim_engine::{self as engine, Config, Engine};

/// The output of the program without a command and without a terminal.
const EXAMPLES: &str = "\
Verbatim finds what was said in your AI chats, exactly.

  verbatim demo                     try it on a small sample
  verbatim import                   bring in the exports in your downloads
  verbatim search \"borrow checker\"  find the messages that contain a text
  verbatim search TEXT --mode both  rank messages by words and meaning
  verbatim list                     list the conversations
  verbatim show 6650a1b2            print a conversation
  verbatim connect                  let AI clients search your chats
";

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

#[derive(Debug, Subcommand)]
enum Command {
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

impl Command {
    fn into_args(self) -> Box<dyn CommandArgs> {
        match self {
            Command::Demo(args) => Box::new(args),
            Command::Import(args) => Box::new(args),
            Command::Reindex(args) => Box::new(args),
            Command::Search(args) => Box::new(args),
            Command::List(args) => Box::new(args),
            Command::Show(args) => Box::new(args),
            Command::Open(args) => Box::new(args),
            Command::Resume(args) => Box::new(args),
            Command::Stats(args) => Box::new(args),
            Command::Export(args) => Box::new(args),
            Command::Forget(args) => Box::new(args),
            Command::Connect(args) => Box::new(args),
            Command::Disconnect(args) => Box::new(args),
            Command::Web(args) => Box::new(args),
            Command::Serve(args) => Box::new(args),
            Command::Watch(args) => Box::new(args),
            Command::Status(args) => Box::new(args),
            Command::Doctor(args) => Box::new(args),
            Command::Completions(args) => Box::new(args),
        }
    }
}

/// A command with what is to be known of it; `None` stands for the search as one types.
struct ParsedCommand {
    places: PlaceArgs,
    command: Option<(Box<dyn CommandArgs>, Facts)>,
}

impl ParsedCommand {
    fn of(cli: Cli) -> Result<ParsedCommand, clap::Error> {
        let Some(args) = cli.command.map(Command::into_args) else {
            return Ok(ParsedCommand { places: cli.places, command: None });
        };
        let facts = args.facts();
        if cli.places.db.is_some() && !facts.takes_db {
            let text = "this command reads no database, so leave out --db\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(ParsedCommand { places: cli.places, command: Some((args, facts)) })
    }

    fn form(&self) -> OutputForm {
        self.command.as_ref().map_or(OutputForm::AsItIs, |(_, facts)| facts.form)
    }
}

/// Runs the command in `arguments`, which begin with the program's name; returns the exit code.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8> {
    let command = help::with_help(Cli::command(), environment);
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = command
        .try_get_matches_from(&arguments)
        .and_then(|mut matches| ParsedCommand::of(Cli::from_arg_matches_mut(&mut matches)?));
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
    let form = parsed.form();
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
    let ParsedCommand { places, command } = parsed;
    let Some((mut args, facts)) = command else { return pick(&places, environment, out) };
    if facts.reads != Reads::Nothing {
        engine_config::check_home(&places, environment)?;
    }
    let mut config = engine_config::config(&places, environment);
    let no_provider = choose_model(&mut config, args.model(), facts.makes_vectors, environment)?;
    config.cluster_login = engine_config::cluster_login(environment)?;
    args.take(&mut config, environment);
    engine::prepare_home(&config, facts.writes);
    let engine = Arc::new(Engine::new(config));
    if matches!(facts.reads, Reads::EverySource | Reads::EverySourceExactly) {
        archives::sync_for_reading(&engine, environment);
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

/// Returns an error if what was printed may be torn.
fn refuse_torn(engine: &Engine) -> Result<()> {
    if map_faults::count() > 0 {
        let folder = engine.config().index_folder();
        return Err(engine::Error::Torn { folder }.into());
    }
    Ok(())
}

/// Sets the model of vectors and their share. Returns why the model is unknown, if it is and the command does
/// without it.
fn choose_model(
    config: &mut Config,
    model: Option<&str>,
    makes_vectors: bool,
    environment: &Environment,
) -> Result<Option<WrongProvider>> {
    config.vector_share = engine_config::vector_share(environment)?;
    let provider = engine_config::embeddings(model, environment);
    // If the provider is unknown, the indexes are not changed, because vectors of another model
    // would replace the existing vectors.
    config.leave_indexes = provider.is_err();
    match provider {
        Ok(provider) => {
            config.embeddings = provider;
            Ok(None)
        }
        Err(error) if makes_vectors => Err(error.into()),
        Err(error) => Ok(Some(error)),
    }
}

/// Opens the picker; without a terminal, prints example commands.
fn pick(places: &PlaceArgs, environment: &Environment, out: &mut dyn Write) -> Result<u8> {
    if !environment.full_screen {
        // A script that gives no command is wrong, so standard output stays empty and the exit code is 2.
        let alone = match environment.dumb {
            true => "This terminal cannot show the search screen",
            false => "On a terminal, `verbatim` searches as you type",
        };
        anstream::eprintln!("{EXAMPLES}{alone}; `verbatim --help` says more.");
        return Ok(TROUBLE);
    }
    #[cfg(feature = "picker")]
    return search_as_typed(places, environment, out);
    #[cfg(not(feature = "picker"))]
    Err(Error::NotBuilt { what: "the full-screen search", feature: "picker" })
}

#[cfg(feature = "picker")]
fn search_as_typed(
    places: &PlaceArgs,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8> {
    use std::cell::Cell;

    use pager::{FoundPlace, Landing, PagedAtFound};
    use picker::Picked;

    engine_config::check_home(places, environment)?;
    let mut config = engine_config::config(places, environment);
    config.embeddings = engine_config::embeddings(None, environment)?;
    config.vector_share = engine_config::vector_share(environment)?;
    config.cluster_login = engine_config::cluster_login(environment)?;
    engine::prepare_home(&config, false);
    let engine = Arc::new(Engine::new(config));
    archives::sync_for_reading(&engine, environment);
    let no_chats = || {
        output::complain(notes::NO_CHATS);
        Ok(NOTHING)
    };
    let Some(mut picker) = picker::start(&engine, environment)? else {
        return no_chats();
    };
    loop {
        let (word, marks) = match picker.run()? {
            Picked::NoChats => return no_chats(),
            Picked::Nothing => return Ok(FOUND),
            Picked::Resume(command) => {
                writeln!(out, "{command}")?;
                return Ok(FOUND);
            }
            Picked::Show { word, marks } => (word, marks),
        };
        let mark = |text: &str| marks.spans(text, show::MOST_MARKS);
        let place = Cell::new(FoundPlace::default());
        let found = Landing { mark: &mark, place: &place };
        let Some(paged) = Paged::that_waits(out, environment) else {
            // The picker would hide the answer, and its end lets Ctrl-C end the program.
            drop(picker);
            return show_picked(&word, found, &engine, Terminal { environment, out });
        };
        let mut paged = PagedAtFound::new(paged, &found, picker.size());
        let terminal = Terminal { environment, out: &mut TerminalWriter::new(&mut paged) };
        let code = show_picked(&word, found, &engine, terminal);
        let has_waited = paged.finish()?;
        let code = code?;
        if !has_waited {
            return Ok(code);
        }
    }
}

#[cfg(feature = "picker")]
fn show_picked(
    word: &str,
    found: pager::Landing<'_>,
    engine: &Engine,
    terminal: Terminal<'_>,
) -> Result<u8> {
    let code = show::run(&show::Args::of(word), engine, terminal, Some(found))?;
    refuse_torn(engine)?;
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
