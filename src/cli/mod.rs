//! The command line: one file per command.

mod archives;
mod clients;
mod demo;
mod doctor;
mod eval;
mod explain;
mod import;
mod list;
mod ranked;
mod reindex;
mod search;
mod serve;
mod show;
mod stats;
mod status;
mod threads;
mod watch;
mod workspace;

use std::{
    env,
    ffi::OsString,
    fmt,
    io::{self, Write},
    path::PathBuf,
};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};

use crate::{
    embed::{self, Provider},
    engine::{self, Config, Engine},
    map_faults, mcp, tools,
};

/// Columns of help where there is no terminal to ask.
const HELP_WIDTH: usize = 100;

/// Found, or done.
const FOUND: u8 = 0;

/// Nothing found.
const NOTHING: u8 = 1;

/// Find what was said in your AI chats, exactly
///
/// Searches exported conversations (ChatGPT, Claude.ai) in the terminal, and serves
/// the same search to AI clients over the Model Context Protocol.
#[derive(Debug, Parser)]
#[command(name = "verbatim", version, max_term_width = HELP_WIDTH, subcommand_required = true)]
struct Cli {
    #[command(flatten)]
    places: Places,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Eval(eval::Args),
    Import(import::ImportArgs),
    Reindex(reindex::Args),
    Search(search::Args),
    List(list::Args),
    Show(show::Args),
    Stats(stats::Args),
    Serve(serve::Args),
    Threads(threads::Args),
    Watch(watch::Args),
    Workspace(workspace::Args),
    Status(status::Args),
    Doctor(doctor::Args),
}

impl Command {
    /// Returns whether it looks at the transcripts of coding agents, too.
    fn asks_every_source(&self) -> bool {
        match self {
            Command::List(_) | Command::Show(_) | Command::Stats(_) => true,
            Command::Search(args) => args.is_ranked(),
            _ => false,
        }
    }
}

/// Where things are.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Places")]
struct Places {
    /// Read this database [default: CONVERSATION_DB, then ORIGIN_CONVERSATION_DB, then the newest *.db
    /// in the home folder's db/]
    #[arg(long, global = true, value_name = "FILE")]
    db: Option<PathBuf>,
    /// Use this home folder, which holds db/ and index/ [default: VERBATIM_HOME, then the working
    /// folder if it has a db/, then the platform's data folder]
    #[arg(long, global = true, value_name = "FOLDER")]
    home: Option<PathBuf>,
    /// Keep the search index here; it can be deleted at any time [default: VERBATIM_INDEX, then the
    /// home folder's index/]
    #[arg(long, global = true, value_name = "FOLDER")]
    index: Option<PathBuf>,
    /// Search the transcripts of coding agents in this folder too; may be given several times
    /// [default: VERBATIM_ARCHIVE, then what Claude Code and Codex keep in the user's home]
    #[arg(long, global = true, value_name = "FOLDER")]
    archive: Vec<PathBuf>,
    /// Search no transcripts of coding agents
    #[arg(long, global = true)]
    no_archive: bool,
}

/// What the program was started in; read once, in `main.rs`.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `CONVERSATION_DB`.
    pub conversation_db: Option<OsString>,
    /// `ORIGIN_CONVERSATION_DB`.
    pub origin_conversation_db: Option<OsString>,
    /// `VERBATIM_HOME`.
    pub verbatim_home: Option<OsString>,
    /// `VERBATIM_INDEX`.
    pub verbatim_index: Option<OsString>,
    /// `VERBATIM_TOOLS`.
    pub verbatim_tools: Option<OsString>,
    /// `COMPACT_RESPONSES`.
    pub compact_responses: Option<OsString>,
    /// `ENABLE_CONVERSATIONS`.
    pub enable_conversations: Option<OsString>,
    /// `VERBATIM_EMBEDDINGS`.
    pub verbatim_embeddings: Option<OsString>,
    /// `VERBATIM_EMBEDDINGS_KEY`; shown nowhere.
    pub verbatim_embeddings_key: Option<Secret>,
    /// `OPENAI_API_KEY`; shown nowhere.
    pub openai_api_key: Option<Secret>,
    /// `VERBATIM_WORKSPACE`.
    pub verbatim_workspace: Option<OsString>,
    /// `VERBATIM_ARCHIVE`.
    pub verbatim_archive: Option<OsString>,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude_config_dir: Option<OsString>,
    /// `CODEX_HOME`.
    pub codex_home: Option<OsString>,
    /// The user's own folder, in which coding agents keep theirs.
    pub user_folder: Option<PathBuf>,
    /// This program's own file, for the configuration of clients that start it.
    pub program: PathBuf,
    /// The working folder.
    pub working_folder: PathBuf,
    /// The platform's folder for a user's data.
    pub data_folder: Option<PathBuf>,
    /// The platform's folder for a user's configurations.
    pub config_folder: Option<PathBuf>,
    /// `PATH`, where programs are looked for.
    pub path: Option<OsString>,
    /// Whether output goes to a terminal that shows colours.
    pub colours: bool,
    /// Whether output goes to a terminal.
    pub terminal: bool,
    /// Whether errors go to a terminal, where progress is shown.
    pub progress: bool,
}

/// A value of the environment that no one is to read in passing.
#[derive(Clone)]
pub struct Secret(pub OsString);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What can go wrong with a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line is not one we know.
    #[error("{0}")]
    Usage(clap::Error),
    /// The engine could not answer.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The server could not serve.
    #[error(transparent)]
    Serve(#[from] mcp::Error),
    /// A thread was named that there is not, or turns that cannot be read.
    #[error("{0}")]
    Threads(String),
    /// A tool was named that there is not.
    #[error("--tools: {0}")]
    Tools(#[from] tools::UnknownTool),
    /// The import went wrong.
    #[error(transparent)]
    Import(#[from] import::Error),
    /// Nothing could be watched.
    #[error("cannot start to watch: {0}")]
    Watch(#[source] io::Error),
    /// The environment names a provider that there is not.
    #[error("VERBATIM_EMBEDDINGS: {0}")]
    Embeddings(#[from] embed::Unknown),
    /// A chart could not be written.
    #[error("{}: cannot write the chart: {source}", path.display())]
    Drawing {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The evaluation went wrong.
    #[error(transparent)]
    Eval(#[from] eval::Error),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}

/// Runs the command that `arguments` name, the program's own name first; returns the exit code.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let mut command = Cli::command();
    if !environment.terminal {
        command = command.term_width(HELP_WIDTH);
    }
    let parsed = command
        .try_get_matches_from(arguments)
        .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            let text = error.render();
            if environment.colours {
                write!(out, "{}", text.ansi())?;
            } else {
                write!(out, "{text}")?;
            }
            return Ok(FOUND);
        }
        Err(error) => return Err(Error::Usage(error)),
    };
    let named = named_by(&cli.places, environment);
    let mut config = config(cli.places, environment);
    config.embeddings = embeddings(environment)?;
    config.workspaces = match &cli.command {
        Command::Serve(args) => args.workspaces.or(environment),
        Command::Workspace(args) => args.workspaces.or(environment),
        _ => Vec::new(),
    };
    let engine = Engine::new(config);
    if cli.command.asks_every_source() {
        archives::mirror(&engine, environment);
    }
    // Exact search sees to it by itself, a server answers again, and a refresh begins again.
    let may_be_torn = cli.command.asks_every_source();
    let torn = engine::Error::Torn { folder: engine.config().index_folder() };
    let code = match cli.command {
        Command::Demo(args) => demo::run(&args, &engine.config().home, &environment.program, out),
        Command::Eval(args) => Ok(eval::run(&args, environment, out)?),
        Command::Import(args) => {
            import::run(&args, &engine, out)?;
            Ok(FOUND)
        }
        Command::Reindex(args) => reindex::run(&args, &engine, environment, out),
        Command::Search(args) => search::run(&args, &engine, environment, out),
        Command::List(args) => list::run(&args, &engine, environment, out),
        Command::Show(args) => show::run(&args, &engine, environment, out),
        Command::Stats(args) => stats::run(&args, &engine, environment, out),
        Command::Serve(args) => serve::run(&args, engine, environment),
        Command::Threads(args) => threads::run(&args, &engine, environment, out),
        Command::Watch(args) => watch::run(&args, engine, out),
        Command::Workspace(args) => workspace::run(&args, &engine, environment, out),
        Command::Doctor(args) => doctor::run(&args, &engine, environment, out),
        Command::Status(args) => status::run(&args, &engine, named, out),
    }?;
    if may_be_torn && map_faults::count() > 0 { Err(torn.into()) } else { Ok(code) }
}

/// Returns the command line's own description, for tests that hold the documents against it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Settles where things are: flags before environment before defaults; an empty variable is none.
fn config(places: Places, environment: &Environment) -> Config {
    let set = |variable: &Option<OsString>| {
        variable.as_ref().filter(|value| !value.is_empty()).map(PathBuf::from)
    };
    let home = places.home.or_else(|| set(&environment.verbatim_home)).unwrap_or_else(|| {
        let here = &environment.working_folder;
        match &environment.data_folder {
            Some(data) if !here.join("db").is_dir() => data.join("verbatim"),
            _ => here.clone(),
        }
    });
    let db = places
        .db
        .or_else(|| set(&environment.conversation_db))
        .or_else(|| set(&environment.origin_conversation_db));
    let index = places.index.or_else(|| set(&environment.verbatim_index));
    let archives = match places.no_archive {
        true => Vec::new(),
        false if !places.archive.is_empty() => places.archive,
        false => match &environment.verbatim_archive {
            Some(folders) => {
                env::split_paths(folders).filter(|it| !it.as_os_str().is_empty()).collect()
            }
            None => agents_folders(environment),
        },
    };
    Config { db, home, index, archives, ..Config::default() }
}

/// Returns where coding agents keep their transcripts, as far as they do.
fn agents_folders(environment: &Environment) -> Vec<PathBuf> {
    let agent = |variable: &Option<OsString>, name: &str| {
        let named = variable.as_ref().filter(|value| !value.is_empty()).map(PathBuf::from);
        named.or_else(|| Some(environment.user_folder.as_ref()?.join(name)))
    };
    let claude = agent(&environment.claude_config_dir, ".claude");
    // Where else it keeps them on some systems, unless it was told where.
    let other =
        environment.user_folder.as_ref().filter(|_| environment.claude_config_dir.is_none());
    let other = other.map(|folder| folder.join(".config/claude"));
    let codex = agent(&environment.codex_home, ".codex");
    [
        (claude, "projects"),
        (other, "projects"),
        (codex.clone(), "sessions"),
        (codex, "archived_sessions"),
    ]
    .into_iter()
    .filter_map(|(folder, inner)| Some(folder?.join(inner)))
    .filter(|folder| folder.is_dir())
    .collect()
}

/// Returns where vectors come from, as the environment says.
fn embeddings(environment: &Environment) -> Result<Provider, embed::Unknown> {
    let Some(name) = environment.verbatim_embeddings.as_ref().filter(|name| !name.is_empty())
    else {
        return Ok(Provider::BuiltIn);
    };
    let key = |secret: &Option<Secret>| Some(secret.as_ref()?.0.to_str()?.to_owned());
    let [key, openai] =
        [&environment.verbatim_embeddings_key, &environment.openai_api_key].map(key);
    let provider: Provider = name.to_string_lossy().parse()?;
    Ok(provider.with_keys(key.as_deref(), openai.as_deref()))
}

/// Returns the flag or variable that named the database, if one did; in the order of [`config`].
fn named_by(places: &Places, environment: &Environment) -> Option<&'static str> {
    let is_set = |variable: &Option<OsString>| variable.as_ref().is_some_and(|v| !v.is_empty());
    if places.db.is_some() {
        Some("--db")
    } else if is_set(&environment.conversation_db) {
        Some("CONVERSATION_DB")
    } else if is_set(&environment.origin_conversation_db) {
        Some("ORIGIN_CONVERSATION_DB")
    } else {
        None
    }
}

/// Returns text that a terminal takes for nothing but text.
fn harmless(text: &str) -> String {
    let plain = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{FFFD}' } else { c };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(flags: [Option<&str>; 3]) -> Places {
        let [db, home, index] = flags.map(|flag| flag.map(PathBuf::from));
        Places { db, home, index, archive: Vec::new(), no_archive: false }
    }

    #[test]
    fn flags_come_before_environment() {
        let environment = Environment {
            conversation_db: Some("".into()),
            origin_conversation_db: Some("origin.db".into()),
            verbatim_home: Some("home".into()),
            verbatim_index: Some("index".into()),
            data_folder: Some("data".into()),
            working_folder: "nowhere".into(),
            ..Environment::default()
        };
        let expected = Config {
            db: Some("origin.db".into()),
            home: "home".into(),
            index: Some("index".into()),
            ..Config::default()
        };
        assert_eq!(config(places([None; 3]), &environment), expected);
        let flags = places([Some("a"), Some("b"), Some("c")]);
        let expected = Config {
            db: Some("a".into()),
            home: "b".into(),
            index: Some("c".into()),
            ..Config::default()
        };
        assert_eq!(config(flags, &environment), expected);
        let bare = Environment { verbatim_home: None, ..environment };
        assert_eq!(config(places([None; 3]), &bare).home, PathBuf::from("data/verbatim"));
    }

    #[test]
    fn archives_by_flag_environment_and_home() {
        let user = tempfile::tempdir().expect("temporary folders can be made");
        let claude = user.path().join(".claude/projects");
        let codex = user.path().join("elsewhere/sessions");
        for folder in [&claude, &codex] {
            std::fs::create_dir_all(folder).expect("folders can be made");
        }
        let mut environment = Environment {
            user_folder: Some(user.path().to_owned()),
            codex_home: Some(user.path().join("elsewhere").into()),
            ..Environment::default()
        };
        assert_eq!(config(places([None; 3]), &environment).archives, [claude, codex]);
        environment.verbatim_archive = Some("a".into());
        assert_eq!(config(places([None; 3]), &environment).archives, [PathBuf::from("a")]);
        let mut flags = places([None; 3]);
        flags.archive = vec!["b".into(), "c".into()];
        assert_eq!(config(flags, &environment).archives, ["b", "c"].map(PathBuf::from));
        let none = Places { no_archive: true, ..places([None; 3]) };
        assert!(config(none, &environment).archives.is_empty());
        assert!(config(places([None; 3]), &Environment::default()).archives.is_empty());
    }
}
