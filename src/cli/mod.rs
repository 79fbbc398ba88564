//! The command line. Each command has a file.

mod archives;
mod arguments;
mod background;
pub mod clients;
mod completions;
mod config;
mod connect;
mod demo;
mod doctor;
mod echo;
mod engine_config;
mod environment;
mod error;
mod eval;
mod exclude;
mod explain;
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
mod lines;
mod list;
mod listen;
mod look;
mod markdown;
mod matching;
mod notes;
mod old_home;
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
mod service;
mod settings;
mod settings_file;
mod show;
mod stats;
mod status;
mod threads;
mod tips;
mod token;
mod version;
mod waiting;
mod watch;
mod web;
mod workspace;
mod wrap;

use std::{ffi::OsString, io::Write, sync::Arc};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};

use self::{
    engine_config::{PlaceArgs, WrongProvider},
    environment::Terminal,
    old_home::Consent,
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

impl Cli {
    fn refuse_useless_db(self) -> Result<Cli, clap::Error> {
        if self.places.db.is_some() && self.command.as_ref().is_some_and(Command::has_no_use_for_db)
        {
            let text = "this command reads no database, so leave out --db\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(self)
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Eval(eval::Args),
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
    Token(web::TokenArgs),
    Service(service::ServiceArgs),
    Threads(threads::Args),
    Watch(watch::Args),
    Workspace(workspace::Args),
    Config(config::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
    Version(version::Args),
}

impl Command {
    /// Returns whether the command may write to the databases of the home folder.
    fn writes(&self) -> bool {
        matches!(
            self,
            Command::Demo(_)
                | Command::Import(_)
                | Command::Forget(_)
                | Command::Reindex(_)
                | Command::Serve(_)
                | Command::Threads(_)
                | Command::Watch(_)
                | Command::Web(_)
        )
    }

    /// Returns whether the command reads every source, the transcripts of coding agents included.
    fn reads_every_source(&self) -> bool {
        match self {
            Command::List(_)
            | Command::Show(_)
            | Command::Stats(_)
            | Command::Export(_)
            | Command::Open(_)
            | Command::Resume(_)
            | Command::Forget(_) => true,
            Command::Search(args) => args.takes_transcripts(),
            _ => false,
        }
    }

    /// Returns whether the command reads the home. It must not make a home that the user named by mistake.
    fn needs_home(&self) -> bool {
        let searches =
            matches!(self, Command::Search(_) | Command::Status(_) | Command::Workspace(_));
        self.reads_every_source() || searches
    }

    /// Returns whether the command neither reads the database that `--db` names nor passes it on.
    fn has_no_use_for_db(&self) -> bool {
        match self {
            Command::Demo(_)
            | Command::Disconnect(_)
            | Command::Token(_)
            | Command::Threads(_)
            | Command::Workspace(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Version(_) => true,
            Command::Connect(args) => !args.passes_places_on(),
            Command::Service(args) => !args.passes_places_on(),
            _ => false,
        }
    }

    /// Returns whether the command may compute vectors, of messages or of a question.
    fn makes_vectors(&self) -> bool {
        self.writes() || matches!(self, Command::Search(_) | Command::Eval(_))
    }

    /// Returns whether the command prints from mapped files and does not try again after a fault.
    fn may_be_torn(&self) -> bool {
        match self {
            Command::List(_) | Command::Show(_) | Command::Stats(_) | Command::Export(_) => true,
            Command::Search(args) => args.ranks() || args.has_context(),
            _ => false,
        }
    }

    /// Returns the text of the line that the user sees while the command has no output yet. Without an
    /// index, some commands take seconds.
    fn waits_for(&self) -> Option<&'static str> {
        match self {
            Command::Search(_) => Some("searching"),
            Command::List(_)
            | Command::Show(_)
            | Command::Open(_)
            | Command::Resume(_)
            | Command::Export(_)
            | Command::Forget(_) => Some("looking up conversations"),
            Command::Stats(_) | Command::Status(_) => Some("counting messages"),
            Command::Doctor(_) => Some("examining"),
            _ => None,
        }
    }

    /// Returns the indentation of wrapped lines if the output is sentences for a person.
    fn wrap_indent(&self) -> Option<usize> {
        match self {
            Command::Status(args) if !args.json => Some(0),
            Command::Doctor(args) if !args.json => Some(doctor::VERDICT),
            Command::Config(args) if !args.json => Some(config::NAMES),
            Command::Connect(args) if args.is_list() => Some(0),
            _ => None,
        }
    }

    /// Returns whether the answer is for a person, and may be so long that it needs a pager.
    fn is_paged(&self) -> bool {
        match self {
            Command::List(args) => !args.json && !args.no_pager,
            Command::Show(args) => !args.json && !args.no_pager,
            Command::Search(args) => args.is_paged(),
            _ => false,
        }
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
        .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)?.refuse_useless_db());
    match parsed {
        Ok(mut cli) if environment.terminal => {
            cli.places.expand(environment);
            let environment = &environment.with_settings()?;
            let is_paged = cli.command.as_ref().is_some_and(Command::is_paged);
            let mut out = Paged::new(out, environment, is_paged);
            let mut out_on_terminal = TerminalWriter::new(&mut out);
            let indent = cli.command.as_ref().and_then(Command::wrap_indent);
            let columns = environment.columns.filter(|_| indent.is_some());
            let user = engine_config::user_prefix(environment);
            let mut wrapped =
                Wrapped::new(&mut out_on_terminal, columns, indent.unwrap_or(0), user);
            let code = execute(cli, environment, &mut EndsWaiting(&mut wrapped));
            wrapped.flush()?;
            out.finish()?;
            code
        }
        Ok(mut cli) => {
            cli.places.expand(environment);
            execute(cli, &environment.with_settings()?, &mut EndsWaiting(out))
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

fn execute(cli: Cli, environment: &Environment, out: &mut dyn Write) -> Result<u8> {
    let Some(mut command) = cli.command else { return pick(&cli.places, environment, out) };
    if command.needs_home() {
        engine_config::check_home(&cli.places, environment)?;
    }
    let named = engine_config::named_by(&cli.places, environment);
    let mut config = engine_config::config(&cli.places, environment);
    let no_provider = choose_model(&mut config, &command, environment)?;
    config.cluster_login = engine_config::cluster_login(environment)?;
    config.workspaces = match &command {
        Command::Serve(args) => args.workspaces.folders_or_setting(environment),
        Command::Web(args) => args.serving.workspaces.folders_or_setting(environment),
        Command::Workspace(args) => args.workspaces.folders_or_setting(environment),
        _ => Vec::new(),
    };
    match &mut command {
        Command::Search(args) => args.take(environment),
        Command::Show(args) => args.take(environment),
        Command::Serve(args) => args.take(environment),
        Command::Web(args) => args.serving.take(environment),
        _ => {}
    }
    let ask = |has_yes: bool, with_yes: Consent| if has_yes { with_yes } else { Consent::Asked };
    match &command {
        // The flag `--yes` of an import does not agree to moving the home of an older version.
        Command::Import(args) => {
            old_home::offer(&config, ask(args.yes, Consent::Missing), environment)?;
        }
        Command::Reindex(args) => {
            old_home::offer(&config, ask(args.yes, Consent::Given), environment)?;
        }
        Command::Status(_) => old_home::offer(&config, Consent::Missing, environment)?,
        _ => {}
    }
    engine::prepare_home(&config, command.writes());
    config.leave_indexes |= match &command {
        Command::Serve(args) => args.leaves_indexes(),
        Command::Web(args) => args.serving.leaves_indexes(),
        _ => false,
    };
    let engine = Engine::new(config);
    let may_be_torn = command.may_be_torn();
    if command.reads_every_source() {
        archives::sync_for_reading(&engine, environment);
    }
    if let Command::Search(args) = &command
        && args.reads_transcripts_exactly()
    {
        indexing::index_in_passing(&engine, environment);
    }
    let _waiting = command.waits_for().map(|what| Waiting::begin(environment, what));
    let torn = engine::Error::Torn { folder: engine.config().index_folder() };
    let terminal = Terminal { environment, out };
    let code = match command {
        Command::Demo(args) => demo::run(&args, &engine.config().home, terminal),
        Command::Eval(args) => Ok(eval::run(&args, engine.config(), terminal)?),
        Command::Import(args) => Ok(import::run(&args, &engine, (named, &cli.places), terminal)?),
        Command::Reindex(args) => reindex::run(&args, &engine, terminal),
        Command::Search(args) => search::run(&args, &cli.places, &engine, terminal),
        Command::List(args) => list::run(&args, &engine, terminal),
        Command::Show(args) => show::run(&args, &engine, terminal, None),
        Command::Open(args) => open::open(&args, &engine, out),
        Command::Resume(args) => open::resume(&args, &engine, environment.clock(false), out),
        Command::Export(args) => export::run(&args, &engine, terminal),
        Command::Forget(args) => forget::run(&args, &engine, terminal),
        Command::Stats(args) => stats::run(&args, &engine, terminal),
        Command::Connect(args) => Ok(connect::connect(&args, engine.config(), terminal)?),
        Command::Disconnect(args) => Ok(connect::disconnect(&args, terminal)?),
        Command::Web(args) => web::run(&args, engine, terminal),
        Command::Service(args) => Ok(service::run(&args, engine.config(), terminal)?),
        Command::Token(args) => web::token(&args, &engine, terminal),
        Command::Serve(args) => serve::run(&args, engine, environment),
        Command::Threads(args) => threads::run(&args, &engine, terminal),
        Command::Watch(args) => watch::run(&args, engine, terminal),
        Command::Workspace(args) => workspace::run(&args, &engine, terminal),
        Command::Doctor(args) => {
            let no_provider = no_provider.map(|error| error.to_string());
            doctor::run(&args, &engine, (no_provider, &cli.places), parse_serve, terminal)
        }
        Command::Completions(args) => completions::print(&args, out),
        Command::Version(args) => version::run(&args, out),
        Command::Man(args) => completions::write_pages(&args, Cli::command(), out),
        Command::Config(args) => config::run(&args, &cli.places, &engine, terminal),
        Command::Status(args) => status::run(&args, &engine, (named, &cli.places), out),
    }?;
    // The answer is written before the memory of the engine is freed.
    out.flush()?;
    if may_be_torn && map_faults::count() > 0 { Err(torn.into()) } else { Ok(code) }
}

/// Sets the model of vectors and their share. Returns why the model is unknown, if it is and the command does
/// without it.
fn choose_model(
    config: &mut Config,
    command: &Command,
    environment: &Environment,
) -> Result<Option<WrongProvider>> {
    let model = match command {
        Command::Reindex(args) => args.model.as_deref(),
        _ => None,
    };
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
        Err(error) if command.makes_vectors() => Err(error.into()),
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
    let parsed = Cli::try_parse_from(["verbatim", "show", "--", word]);
    let Some(Command::Show(args)) = parsed.map_err(Error::Usage)?.command else {
        return Ok(NOTHING);
    };
    let code = show::run(&args, engine, terminal, Some(found))?;
    let folder = engine.config().index_folder();
    if map_faults::count() > 0 { Err(engine::Error::Torn { folder }.into()) } else { Ok(code) }
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
