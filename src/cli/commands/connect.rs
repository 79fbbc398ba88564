//! `verbatim connect` and `verbatim disconnect`: the entry of this program in the configurations of AI clients.

pub(crate) mod error;

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;

use self::error::{Error, MCP_PATH};
use crate::cli::clients::{
    AiClient, BY_ADDRESS, ConfigFile, EntryPlace, Fault, OFF, PROFILE, SERVER, Server, TABLE,
    TOKEN_VARIABLE, known_clients, probe,
};
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Terminal};
use crate::cli::settings::engine_config::{agents_folders, default_home};
use crate::cli::settings::environment::Environment;
use crate::cli::settings::{SetBy, settings_file};
use crate::cli::terminal::output::{FOUND, NOTHING, confirm, harmless};
use crate::cli::terminal::wrap::wrapped;
use verbatim_engine::{Config, StoreAddress};

const DEFAULT_URL: &str = "http://127.0.0.1:8377/mcp";

/// The width of the names of clients in the list.
const NAMES: usize = 20;

fn ids() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|client| client.id)
}

/// Let an AI client search your chats
///
///     verbatim connect
///     verbatim connect claude-desktop
///
/// Without a name, lists the AI clients on this machine and whether they reach Verbatim. With a name,
/// shows the entry for the client's configuration and writes it after a yes. The file keeps its
/// comments and order, and a copy of it is left beside it; `verbatim disconnect` removes the entry.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ConnectArgs {
    /// The client to connect
    #[arg(value_parser = PossibleValuesParser::new(ids()))]
    client: Option<String>,
    /// Print the entry for a server that runs already (`verbatim serve --http`)
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = DEFAULT_URL, requires = "client")]
    http: Option<String>,
    /// Make the change without asking
    #[arg(long, short)]
    yes: bool,
}

/// Remove Verbatim from the configuration of an AI client
///
///     verbatim disconnect claude-desktop
///
/// Asks, and leaves the rest of the file as it is; a copy of the file is left beside it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DisconnectArgs {
    /// The client to disconnect
    #[arg(value_parser = PossibleValuesParser::new(ids()))]
    client: String,
    /// Make the change without asking
    #[arg(long, short)]
    yes: bool,
}

type Result<T, E = Error> = std::result::Result<T, E>;

impl CommandArgs for ConnectArgs {
    fn facts(&self) -> Facts {
        let is_list = self.client.is_none();
        Facts {
            // The client's configuration gets the paths that the server uses.
            takes_db: self.client.is_some() && self.http.is_none(),
            form: if is_list { OutputForm::Sentences(0) } else { OutputForm::AsItIs },
            ..Facts::WITHOUT_CHATS
        }
    }

    fn run(&self, invocation: Invocation<'_>) -> crate::cli::Result<u8> {
        let Invocation { engine, terminal: Terminal { environment, out }, .. } = invocation;
        let Some(id) = &self.client else { return Ok(list(environment, out)?) };
        let client = client(id, environment)?;
        if let Some(url) = &self.http {
            return Ok(write_remote(&client, url, out)?);
        }
        let file = client.read().map_err(|fault| refused(&client, fault))?;
        let ours = client.servers(&file.config);
        let old = ours.iter().find(|server| server.name == SERVER).or(ours.first());
        let place = EntryPlace { key: client.key, name: old.map_or(SERVER, |server| server.name) };
        let mut arguments = ["serve", "--tools", PROFILE].map(str::to_owned).to_vec();
        arguments.extend(server_places(engine.config(), environment)?);
        let entry = client.entry(&environment.program, &arguments);
        let text = file.edit(place, Some(&entry)).map_err(|fault| refused(&client, fault))?;
        if text == file.text() {
            writeln!(out, "{} is connected already: {}", client.name, client.path.display())?;
        } else {
            let shown = client.file_with(&entry).map_err(|fault| refused(&client, fault))?;
            writeln!(out, "{}", client.path.display())?;
            write_lines(&shown, out)?;
            if !confirm_change(self.yes, "Add this entry?", environment, out)? {
                writeln!(out, "Nothing was changed.")?;
                return Ok(NOTHING);
            }
            write(&client, &file, &text, Terminal { environment, out })?;
            let connected = format!(
                "{} is connected, with the tools that suit it (--tools {PROFILE}). {}",
                client.name,
                client.restart()
            );
            writeln!(out, "{}", wrapped(&connected, environment.columns, 2))?;
        }
        let config = client.syntax.parse(&text).map_err(|fault| refused(&client, fault))?;
        match Reached::of(&client.servers(&config), environment) {
            Reached::NotConnected | Reached::ByAddress => {}
            Reached::Answers => writeln!(out, "Checked: the server starts and answers a search.")?,
            Reached::Off => writeln!(out, "The server {OFF}; switch it on there.")?,
            Reached::Fails(what) => {
                writeln!(out, "The server {}", harmless(&what))?;
                writeln!(out, "If no chats are imported yet: verbatim import")?;
            }
        }
        writeln!(out, "Undo it with: verbatim disconnect {}", client.id)?;
        Ok(FOUND)
    }
}

impl CommandArgs for DisconnectArgs {
    fn facts(&self) -> Facts {
        Facts::WITHOUT_CHATS
    }

    fn run(&self, invocation: Invocation<'_>) -> crate::cli::Result<u8> {
        let Terminal { environment, out } = invocation.terminal;
        let client = client(&self.client, environment)?;
        let file = client.read().map_err(|fault| refused(&client, fault))?;
        let names: Vec<&str> = client.servers(&file.config).iter().map(|it| it.name).collect();
        let path = client.path.display();
        let list = client.key;
        if names.is_empty() {
            writeln!(out, "No entry in {list:?} of {path} starts Verbatim; nothing to do.")?;
            return Ok(FOUND);
        }
        let mut text = file.text().to_owned();
        for name in &names {
            let edited = client.syntax.edit(&text, EntryPlace { key: list, name }, None);
            text = edited.map_err(|fault| refused(&client, fault))?;
        }
        let shown = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        writeln!(out, "{path}")?;
        writeln!(out, "  loses {} in {list:?}", harmless(&shown))?;
        if !confirm_change(self.yes, "Make this change?", environment, out)? {
            writeln!(out, "Nothing was changed.")?;
            return Ok(NOTHING);
        }
        write(&client, &file, &text, Terminal { environment, out })?;
        let gone =
            format!("{} does not start Verbatim any more. {}", client.name, client.restart());
        writeln!(out, "{}", wrapped(&gone, environment.columns, 2))?;
        Ok(FOUND)
    }
}

/// Lists the clients, and starts the server of each connected client to test it.
fn list(environment: &Environment, out: &mut dyn Write) -> Result<u8> {
    let (here, missing): (Vec<AiClient>, Vec<AiClient>) =
        known_clients(environment).into_iter().partition(AiClient::is_installed);
    for client in &here {
        let state = match client
            .read()
            .map(|file| Reached::of(&client.servers(&file.config), environment))
        {
            Err(fault) => {
                let path = client.path.display();
                format!("not known whether it is connected: {path}: {fault}")
            }
            Ok(Reached::NotConnected) => format!("not connected; `verbatim connect {}`", client.id),
            Ok(Reached::Answers) => "connected, and the server answers".to_owned(),
            Ok(Reached::ByAddress) => format!("connected; the server {BY_ADDRESS}"),
            Ok(Reached::Off) => format!("connected, but the server {OFF}"),
            Ok(Reached::Fails(what)) => format!("connected, but the server {what}"),
        };
        writeln!(out, "{:<NAMES$}{}", client.name, harmless(&state))?;
        out.flush()?;
    }
    if here.is_empty() {
        writeln!(out, "No AI client that Verbatim knows is installed.")?;
    }
    let names: Vec<&str> = missing.iter().map(|client| client.id).collect();
    if !names.is_empty() {
        writeln!(out, "Not found on this machine: {}", names.join(", "))?;
    }
    Ok(FOUND)
}

/// Writes the entry for a server over HTTP, which the user copies.
fn write_remote(client: &AiClient, url: &str, out: &mut dyn Write) -> Result<u8> {
    let is_web = ["http://", "https://"].iter().any(|start| url.starts_with(start));
    if !is_web || !url.ends_with(MCP_PATH) || url.contains(char::is_whitespace) {
        return Err(Error::NoUrl(url.to_owned()));
    }
    let text = client.remote_file(url).ok_or(Error::NoHttp(client.name))?;
    let text = text.map_err(|fault| refused(client, fault))?;
    writeln!(out, "Add this to {} yourself:", client.path.display())?;
    write_lines(&text, out)?;
    let token = if text.contains(TOKEN_VARIABLE) { TOKEN_VARIABLE } else { "TOKEN" };
    writeln!(
        out,
        "{token} stands for the token of the server; `verbatim status --token` prints it there."
    )?;
    Ok(FOUND)
}

fn write_lines(text: &str, out: &mut dyn Write) -> io::Result<()> {
    text.lines().try_for_each(|line| writeln!(out, "  {}", harmless(line)))
}

/// Writes the new text of a configuration, and says where the old one is.
fn write(client: &AiClient, file: &ConfigFile, text: &str, terminal: Terminal<'_>) -> Result<()> {
    let Terminal { environment, out } = terminal;
    let written = file.write(text);
    let backup = written.map_err(|source| Error::File { path: client.path.clone(), source })?;
    if let Some(backup) = backup {
        let kept = format!("The file as it was: {}", backup.display());
        writeln!(out, "{}", wrapped(&kept, environment.columns, 2))?;
    }
    Ok(())
}

fn client(id: &str, environment: &Environment) -> Result<AiClient> {
    let client = known_clients(environment).into_iter().find(|client| client.id == id);
    client.ok_or_else(|| Error::NoFolder(id.to_owned()))
}

fn refused(client: &AiClient, fault: Fault) -> Error {
    Error::Config { path: client.path.clone(), fault }
}

/// Whether a client reaches the servers in its configuration.
enum Reached {
    NotConnected,
    /// The client's configuration switches off every entry of this program.
    Off,
    Answers,
    ByAddress,
    /// The server gave no right answer; the text completes a sentence about the server.
    Fails(String),
}

impl Reached {
    /// Starts the servers as the client does, until one fails.
    fn of(servers: &[Server<'_>], environment: &Environment) -> Reached {
        if servers.is_empty() {
            return Reached::NotConnected;
        }
        let mut reached = Reached::Off;
        for server in servers.iter().filter(|server| !server.is_switched_off()) {
            if server.has_address() {
                reached = Reached::ByAddress;
            } else if let Err(what) = probe(server, environment) {
                return Reached::Fails(what);
            } else {
                reached = Reached::Answers;
            }
        }
        reached
    }
}

/// Returns whether the user agrees: by a flag, or else on the terminal.
pub(super) fn confirm_change(
    yes: bool,
    question: &str,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if !environment.can_ask {
        return Err(Error::NoTerminal);
    }
    out.flush()?;
    Ok(confirm(question)?)
}

/// Returns the flags for the paths of a server that differ from the default paths.
fn server_places(config: &Config, environment: &Environment) -> Result<Vec<String>> {
    let mut places = Vec::new();
    if environment.data_folder.is_none() || config.home != default_home(environment) {
        places.push(("--home", StoreAddress::Database(config.home.clone())));
    }
    places.extend(config.db.clone().map(|db| ("--db", db)));
    // The server reads the configuration file too.
    let in_file = environment.setting(&settings_file::ARCHIVES);
    let is_in_file = matches!(in_file.by, SetBy::File(..))
        && in_file.paths().is_some_and(|archives| archives == config.archives);
    let other_archives = !is_in_file && config.archives != agents_folders(environment);
    if other_archives {
        for folder in &config.archives {
            places.push(("--archive", StoreAddress::Database(folder.clone())));
        }
    }
    let named = places.iter().filter_map(|(_, place)| place.path());
    let program = environment.program.as_path();
    if let Some(path) = named.chain([program]).find(|path| path.to_str().is_none()) {
        return Err(Error::NoText { path: path.to_owned() });
    }
    let words = places.into_iter().map(|(flag, it)| [flag.to_owned(), it.absolute().to_string()]);
    let mut words: Vec<String> = words.flatten().collect();
    if other_archives && config.archives.is_empty() {
        words.push("--no-archive".to_owned());
    }
    Ok(words)
}
