//! The command line. Each command has a file.

mod archives;
mod arguments;
pub mod clients;
mod completions;
mod config;
mod connect;
mod demo;
mod doctor;
mod echo;
mod environment;
mod error;
mod eval;
mod exclude;
mod explain;
mod export;
mod filters;
mod fold;
mod forget;
mod found;
mod found_conversations;
mod groups;
mod hints;
mod import;
mod indexing;
mod interrupt;
mod lines;
mod list;
mod listen;
mod look;
mod markdown;
mod notes;
mod old_home;
mod open;
mod output;
mod pager;
mod patterns;
#[cfg(feature = "picker")]
mod picker;
mod places;
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
mod token;
mod version;
mod waiting;
mod watch;
mod web;
mod workspace;

use std::{ffi::OsString, io::Write, path::Path, sync::Arc};

use clap::{
    Arg, CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};

pub use self::{
    environment::Environment,
    error::{Error, Result},
    program::run_program,
};
use self::{
    environment::Terminal,
    fold::Folded,
    old_home::Consent,
    output::{FOUND, NOTHING, TROUBLE, TerminalWriter},
    pager::Paged,
    places::PlaceArgs,
    waiting::{EndsWaiting, Waiting},
};
use verbatim_base::{map_faults, model::Stop};
use verbatim_engine::{self as engine, Engine};
use verbatim_server::tools::clock;
use verbatim_text::shell::quoted;

/// The width of help if the output is not a terminal.
const HELP_WIDTH: usize = 100;

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

/// The parts of a help; here `before-help` is the examples.
const HELP: &str = "\
{about-with-newline}
{before-help}{usage-heading} {usage}

{all-args}{after-help}";

/// The examples in the help of the program.
const FIRST_STEPS: &str = "    verbatim import
    verbatim search borrow checker
    verbatim show 6650a1b2";

/// The part of a command's help that names the flags of all commands.
const PLACES: &str = "Where the data is: --db, --home, --index, --archive, --no-archive; \
                      `verbatim --help` explains them";

/// The hint that says how to remove the program and all its data.
const UNINSTALL: &str = "to remove Verbatim: `verbatim disconnect CLIENT` for each client, `verbatim \
     service remove` if it runs as a service; then delete the home folder, which `verbatim status` names, \
     and the program (after an installation with Cargo: cargo uninstall verbatim-search)";

/// Flags of other programs, and what to type here.
const HABITS: [(&[&str], &str); 2] = [
    (&["-F", "--fixed-strings"], "a text is found exactly as it is typed, so leave this flag out"),
    (&["--web"], "to read a conversation on its site: verbatim open CONVERSATION"),
];

/// Find what was said in your AI chats, exactly
///
/// Searches exported conversations (ChatGPT, Claude.ai) and the transcripts of coding
/// agents in the terminal, and serves the same search to AI clients over the Model
/// Context Protocol.
#[derive(Debug, Parser)]
#[command(name = "verbatim", version = verbatim_engine::VERSION, max_term_width = HELP_WIDTH)]
struct Cli {
    #[command(flatten)]
    places: PlaceArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

impl Cli {
    /// Refuses a database for a command that reads none.
    fn checked(self) -> Result<Cli, clap::Error> {
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

    /// Returns the indentation of folded lines if the output is sentences for a person.
    fn fold_indent(&self) -> Option<usize> {
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
    let mut command = with_short_help(Cli::command());
    if !environment.terminal {
        command = command.term_width(HELP_WIDTH);
    }
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = command
        .try_get_matches_from(&arguments)
        .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)?.checked());
    match parsed {
        Ok(cli) if environment.terminal => {
            let environment = &environment.with_settings()?;
            let is_paged = cli.command.as_ref().is_some_and(Command::is_paged);
            let mut out = Paged::new(out, environment, is_paged);
            let mut out_on_terminal = TerminalWriter::new(&mut out);
            let indent = cli.command.as_ref().and_then(Command::fold_indent);
            let columns = environment.columns.filter(|_| indent.is_some());
            let user = places::user_prefix(environment);
            let mut folded = Folded::new(&mut out_on_terminal, columns, indent.unwrap_or(0), user);
            let code = execute(cli, environment, &mut EndsWaiting(&mut folded));
            folded.flush()?;
            out.finish()?;
            code
        }
        Ok(cli) => execute(cli, &environment.with_settings()?, &mut EndsWaiting(out)),
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
        Err(error) => Err(Error::Usage(with_tip(error, &arguments))),
    }
}

/// Hides the flags for data paths in the help of commands, and shows the examples before the usage, in
/// the short help too. The help of the program shows these flags.
fn with_short_help(command: clap::Command) -> clap::Command {
    let flags = command.get_arguments().filter(|flag| flag.is_global_set());
    let flags: Vec<Arg> = flags.cloned().map(|flag| flag.hide(true)).collect();
    let command = command.before_help(FIRST_STEPS).help_template(HELP);
    command.mut_subcommands(|command| {
        with_examples(command.args(flags.clone()).after_help(PLACES)).mut_subcommands(with_examples)
    })
}

/// Shows the examples of a command before its usage.
fn with_examples(command: clap::Command) -> clap::Command {
    let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let is_example = |line: &&str| line.starts_with("    ");
    let (examples, text): (Vec<&str>, Vec<&str>) = long.lines().partition(is_example);
    let mut command = command.help_template(HELP);
    if !text.is_empty() {
        command = command.long_about(paragraphs(&text));
    }
    match examples.is_empty() {
        true => command,
        false => command.before_help(examples.join("\n")),
    }
}

/// Returns the lines of a text, joined to one line for each paragraph, so that clap can wrap them.
fn paragraphs(lines: &[&str]) -> String {
    let paragraphs = lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    paragraphs.map(|lines| lines.join(" ")).collect::<Vec<_>>().join("\n\n")
}

/// Adds a tip to an error: a command to type in place of an unknown command, or an example of a
/// missing argument.
fn with_tip(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let words = || arguments.iter().map(|word| word.to_string_lossy());
    // Without this tip, clap says how to pass the negative number as a word of the text. But the
    // user meant it as the value of the flag.
    let pairs = words().zip(words().skip(1));
    let mut pairs = pairs.filter(|(flag, _)| flag.starts_with('-') && flag != "--");
    let negative = pairs.find_map(|(flag, value)| {
        let value =
            value.strip_prefix('-').filter(|it| it.starts_with(|c: char| c.is_ascii_digit()))?;
        Some(format!("the value has no minus: {flag} {value}"))
    });
    if let Some(ContextValue::Strings(similar)) = error.get(ContextKind::SuggestedSubcommand) {
        // clap puts the most similar command last.
        let nearest = similar.iter().rev().take(1).cloned().collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(nearest));
    }
    let tip = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (_, Some(ContextValue::String(word))) if word == "uninstall" => Some(UNINSTALL.to_owned()),
        (_, Some(ContextValue::String(word))) => {
            let words: Vec<_> = words().skip_while(|it| it != word).map(|it| quoted(&it)).collect();
            let what = match () {
                () if word.contains("://") => "to read that conversation: verbatim show",
                () if Path::new(word).exists() => "to import that: verbatim import",
                () => "to find that text in your chats: verbatim search",
            };
            Some(format!("{what} {}", words.join(" ")))
        }
        (ErrorKind::MissingRequiredArgument, _) => match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(missing)) => missing.iter().find_map(|it| {
                let is_man = words().any(|word| word == "man");
                example_of(it, is_man)
            }),
            _ => None,
        },
        (ErrorKind::InvalidValue, _) if names(&error, "<DATE>") => {
            Some("for example 7d, yesterday, 2025-01 or 2025-01-31".to_owned())
        }
        (ErrorKind::ArgumentConflict, _) if names(&error, "[WORDS]") => {
            Some("the expression takes the place of the words; --and adds a text".to_owned())
        }
        (ErrorKind::UnknownArgument, _) if negative.is_some() => negative,
        (ErrorKind::UnknownArgument, _) if words().nth(1).is_some_and(|it| it == "list") => {
            match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::String(word)) if !word.starts_with('-') => Some(format!(
                    "to find that text in your chats: verbatim search {}",
                    quoted(word)
                )),
                _ => None,
            }
        }
        (ErrorKind::UnknownArgument, _) => {
            let words: Vec<_> = words().skip(1).collect();
            let name = words.first().map(|word| word.trim_start_matches('-')).unwrap_or_default();
            let is_command = Cli::command().find_subcommand(name).is_some();
            let is_dashed = words.first().is_some_and(|word| word.starts_with('-'));
            let given = error.get(ContextKind::InvalidArg).map(ToString::to_string);
            let habit = HABITS
                .iter()
                .find(|(flags, _)| given.as_deref().is_some_and(|it| flags.contains(&it)));
            let from = |start| {
                let words = words.iter().skip(start).map(|word| format!(" {}", quoted(word)));
                words.collect::<String>()
            };
            let tip = match () {
                () if is_command && is_dashed => {
                    Some(format!("commands have no dashes: verbatim {name}{}", from(1)))
                }
                () if is_dashed && given.is_some_and(|flag| is_of_search(&flag)) => {
                    Some(format!("flags follow their command: verbatim search{}", from(0)))
                }
                () => habit.map(|(_, tip)| (*tip).to_owned()),
            };
            if tip.is_some() {
                // clap's own tip would be a similar flag, or how to search for the flag as a text.
                error.remove(ContextKind::SuggestedArg);
                error.remove(ContextKind::Usage);
            }
            tip
        }
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Returns whether an error is about an argument with a value of this name.
fn names(error: &clap::Error, value: &str) -> bool {
    matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(it)) if it.contains(value))
}

/// Returns whether the command `search` has a flag.
fn is_of_search(flag: &str) -> bool {
    let command = Cli::command();
    let search = command.find_subcommand("search").into_iter();
    search.flat_map(clap::Command::get_arguments).any(|known| {
        let long = known.get_long().map(|name| format!("--{name}"));
        let short = known.get_short().map(|name| format!("-{name}"));
        [long, short].iter().flatten().any(|name| name == flag)
    })
}

/// Returns a sentence about where to find the value of a missing argument, or an example.
fn example_of(missing: &str, is_man: bool) -> Option<String> {
    let example = match missing {
        "<WORDS>..." => "for example: verbatim search borrow checker",
        "<CONVERSATION>" | "<CONVERSATION>..." => {
            "`verbatim list` and `verbatim search` print the ids of conversations"
        }
        "<CLIENT>" => "`verbatim connect` lists the AI clients, and says which are connected",
        "<FOLDER>" if is_man => "for example: verbatim man ~/.local/share/man/man1",
        "<FOLDER>" => "for example: verbatim export my-chats",
        _ => return None,
    };
    Some(example.to_owned())
}

fn execute(cli: Cli, environment: &Environment, out: &mut dyn Write) -> Result<u8> {
    let Some(mut command) = cli.command else { return pick(&cli.places, environment, out) };
    let named = places::named_by(&cli.places, environment);
    let mut config = places::config(&cli.places, environment);
    let provider = places::embeddings(environment);
    // If the provider is unknown, the indexes are not changed, because vectors of another model
    // would replace the existing vectors.
    config.leave_indexes = provider.is_err();
    let no_provider = match provider {
        Ok(provider) => {
            config.embeddings = provider;
            None
        }
        Err(error) if command.makes_vectors() => return Err(error.into()),
        Err(error) => Some(error),
    };
    config.cluster_login = places::cluster_login(environment)?;
    config.workspaces = match &command {
        Command::Serve(args) => args.workspaces.or(environment),
        Command::Web(args) => args.serving.workspaces.or(environment),
        Command::Workspace(args) => args.workspaces.or(environment),
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
    engine::prepare(&config, command.writes());
    config.leave_indexes |= match &command {
        Command::Serve(args) => args.leaves_indexes(),
        Command::Web(args) => args.serving.leaves_indexes(),
        _ => false,
    };
    let engine = Engine::new(config);
    let may_be_torn = command.may_be_torn();
    if command.reads_every_source() {
        archives::sync(&engine, environment, &Stop::never());
    }
    let _waiting = command.waits_for().map(|what| Waiting::begin(environment, what));
    let torn = engine::Error::Torn { folder: engine.config().index_folder() };
    let terminal = Terminal { environment, out };
    let code = match command {
        Command::Demo(args) => demo::run(&args, &engine.config().home, terminal),
        Command::Eval(args) => Ok(eval::run(&args, engine.config(), terminal)?),
        Command::Import(args) => Ok(import::run(&args, &engine, named, terminal)?),
        Command::Reindex(args) => reindex::run(&args, &engine, terminal),
        Command::Search(args) => search::run(&args, &engine, terminal),
        Command::List(args) => list::run(&args, &engine, terminal),
        Command::Show(args) => show::run(&args, &engine, terminal),
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
        Command::Config(args) => config::run(&args, &cli.places, engine.config(), terminal),
        Command::Status(args) => status::run(&args, &engine, (named, &cli.places), out),
    }?;
    // The answer is written before the memory of the engine is freed.
    out.flush()?;
    if may_be_torn && map_faults::count() > 0 { Err(torn.into()) } else { Ok(code) }
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
    use picker::Picked;

    let mut config = places::config(places, environment);
    config.cluster_login = places::cluster_login(environment)?;
    engine::prepare(&config, false);
    let engine = Arc::new(Engine::new(config));
    archives::sync(&engine, environment, &Stop::never());
    let no_chats = || {
        output::complain(notes::NO_CHATS);
        Ok(NOTHING)
    };
    let Some(mut picker) = picker::start(&engine, environment.colours)? else { return no_chats() };
    loop {
        let (word, text) = match picker.run()? {
            Picked::NoChats => return no_chats(),
            Picked::Nothing => return Ok(FOUND),
            Picked::Resume(command) => {
                writeln!(out, "{command}")?;
                return Ok(FOUND);
            }
            Picked::Show { word, text } => (word, text),
        };
        let Some(mut paged) = Paged::that_waits(out, environment) else {
            // The picker would hide the answer, and its end lets Ctrl-C end the program.
            drop(picker);
            return show_picked([&word, &text], &engine, Terminal { environment, out });
        };
        let terminal = Terminal { environment, out: &mut TerminalWriter::new(&mut paged) };
        let code = show_picked([&word, &text], &engine, terminal);
        let has_waited = paged.finish()?;
        let code = code?;
        if !has_waited {
            return Ok(code);
        }
    }
}

/// Shows a conversation that was chosen in the picker; `text` is marked there.
#[cfg(feature = "picker")]
fn show_picked([word, text]: [&str; 2], engine: &Engine, terminal: Terminal<'_>) -> Result<u8> {
    let mark = format!("--match={text}");
    let parsed = Cli::try_parse_from(["verbatim", "show", &mark, "--", word]);
    let Some(Command::Show(args)) = parsed.map_err(Error::Usage)?.command else {
        return Ok(NOTHING);
    };
    let code = show::run(&args, engine, terminal)?;
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
