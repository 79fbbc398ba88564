//! `verbatim connect` and `verbatim disconnect`: the configurations of AI clients.

pub(super) mod error;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::builder::PossibleValuesParser;
use serde_json::Value;

use self::error::Error;
use super::{
    clients::{
        self, AiClient, CLIENTS, ConfigFile, NOT_TAKEN, OFF, PROFILE, RemoteEntry, SERVER,
        TOKEN_VARIABLE, answers, is_of_this_computer, known_clients, probe,
    },
    command::{CommandArgs, Facts, Invocation, OutputForm, Reads},
    engine_config::{agents_folders, default_home},
    environment::{Environment, Terminal},
    output::{FOUND, NOTHING, confirm, harmless},
    token::token_of,
    wrap::wrapped,
};
use verbatim_engine::{Config, StoreAddress};

const DEFAULT_URL: &str = "http://127.0.0.1:8377/mcp";

const NAMES: usize = 20;

/// The number of unchanged lines shown before and after a change.
const CONTEXT: usize = 2;

/// The maximum number of characters shown of a line.
const LONGEST_LINE: usize = 200;

fn ids() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().map(|client| client.id)
}

/// Let an AI client search your chats
///
///     verbatim connect
///     verbatim connect claude-desktop
///
/// Without a name, lists the AI clients on this machine and whether they reach Verbatim. With a name,
/// shows the change to the client's configuration and makes it after a yes. The file keeps its
/// comments and order, and a backup is left beside it; `verbatim disconnect` undoes the change.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ConnectArgs {
    /// The client to connect
    #[arg(value_parser = PossibleValuesParser::new(ids()))]
    client: Option<String>,
    /// Let the client reach a running server (`verbatim serve --http`), with its token
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
/// Shows the change and makes it after a yes; a backup is left beside the file.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct DisconnectArgs {
    /// The client to disconnect
    #[arg(value_parser = PossibleValuesParser::new(ids()))]
    client: String,
    /// Make the change without asking
    #[arg(long, short)]
    yes: bool,
}

enum ChangeOutcome {
    Same,
    Refused,
    Made,
}

type Result<T, E = Error> = std::result::Result<T, E>;

impl CommandArgs for ConnectArgs {
    fn facts(&self) -> Facts {
        // The client's configuration gets the paths that the server uses.
        let passes_places_on = self.client.is_some() && self.http.is_none();
        let is_list = self.client.is_none();
        let form = if is_list { OutputForm::Sentences(0) } else { OutputForm::AsItIs };
        Facts {
            reads: Reads::Nothing,
            writes: false,
            takes_db: passes_places_on,
            makes_vectors: false,
            may_be_torn: false,
            waits_for: None,
            form,
        }
    }

    fn run(&self, call: Invocation<'_>) -> super::error::Result<u8> {
        Ok(connect(self, call.engine.config(), call.terminal)?)
    }
}

/// Connects a client, or lists the clients. `config` holds the paths that the server uses.
fn connect(args: &ConnectArgs, config: &Config, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let Some(id) = &args.client else { return list(environment, out) };
    let client = client(id, environment)?;
    let (file, config_now) = read(&client)?;
    let remote = args.http.as_deref();
    let remote = remote.map(|url| remote_entry(&client, url, config, environment));
    let remote = remote.transpose()?;
    let entry = match &remote {
        Some(remote) => remote.entry.clone(),
        None => {
            let mut arguments = ["serve", "--tools", PROFILE].map(str::to_owned).to_vec();
            arguments.extend(server_places(config, environment)?);
            client.entry(&environment.program, &arguments)
        }
    };
    let ours = client.servers(&config_now);
    let old = ours.iter().find(|server| server.name == SERVER).or(ours.first());
    let name = old.map_or(SERVER, |server| server.name);
    let was_remote = old.map_or(remote.is_some(), |server| server.url().is_some());
    let syntax = |reason| unreadable(&client, &file, reason);
    // No client accepts a command and an address in one entry, so an entry of the other kind is removed.
    let base = match was_remote == remote.is_some() {
        true => file.text().to_owned(),
        false => file.without_servers(client.key, &[name]).map_err(syntax)?,
    };
    let base = ConfigFile::new(&client.path, client.syntax, Some(base));
    let text = base.with_server(client.key, name, &entry).map_err(syntax)?;
    // Other users of the computer must not read the token.
    let holds_token = remote.as_ref().is_some_and(|remote| remote.holds_token);
    let file = if holds_token { file.kept_private() } else { file };
    let outcome = change(&client, &file, &text, args.yes, Terminal { environment, out })?;
    match outcome {
        ChangeOutcome::Refused => return Ok(NOTHING),
        ChangeOutcome::Same => {}
        ChangeOutcome::Made => {
            let suits = match remote {
                Some(_) => String::new(),
                None => format!(", with the tools that suit it (--tools {PROFILE})"),
            };
            let connected = format!("{} is connected{suits}. {}", client.name, client.restart());
            writeln!(out, "{}", wrapped(&connected, environment.columns, 2))?;
        }
    }
    for other in ours.iter().map(|server| server.name).filter(|other| *other != name) {
        writeln!(
            out,
            "{other:?} starts Verbatim too; `verbatim disconnect {}` removes all its entries.",
            client.id
        )?;
    }
    if let Some(remote) = remote.as_ref().filter(|remote| !remote.holds_token) {
        let token = if remote.is_here {
            "$(verbatim status --token)"
        } else {
            "TOKEN (that of the server)"
        };
        writeln!(
            out,
            "{} reads the token from a variable; set it where you start it: \
             export {TOKEN_VARIABLE}={token}",
            client.name
        )?;
    }
    match reach(&client, environment) {
        None => {}
        Some(Ok(())) if remote.is_some() => writeln!(out, "Checked: the server answers.")?,
        Some(Ok(())) => writeln!(out, "Checked: the server starts and answers a search.")?,
        Some(Err(Unreached::Unknown(error))) => return Err(error),
        Some(Err(Unreached::Off)) => writeln!(out, "The server {OFF}; switch it on there.")?,
        Some(Err(Unreached::Server(what))) => {
            writeln!(out, "The server {}", harmless(&what))?;
            match remote {
                _ if what.starts_with(NOT_TAKEN) => {}
                Some(_) => writeln!(out, "Start it: verbatim serve --http")?,
                None => writeln!(out, "If no chats are imported yet: verbatim import")?,
            }
        }
    }
    writeln!(out, "Undo it with: verbatim disconnect {}", client.id)?;
    Ok(FOUND)
}

impl CommandArgs for DisconnectArgs {
    fn facts(&self) -> Facts {
        Facts {
            reads: Reads::Nothing,
            writes: false,
            takes_db: false,
            makes_vectors: false,
            may_be_torn: false,
            waits_for: None,
            form: OutputForm::AsItIs,
        }
    }

    fn run(&self, call: Invocation<'_>) -> super::error::Result<u8> {
        Ok(disconnect(self, call.terminal)?)
    }
}

fn disconnect(args: &DisconnectArgs, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let client = client(&args.client, environment)?;
    let (file, config) = read(&client)?;
    let names: Vec<&str> = client.servers(&config).iter().map(|server| server.name).collect();
    let in_client = clients::servers(&config).into_iter().filter(|it| it.key == client.key);
    let left = match in_client.count() > names.len() {
        true => "starts Verbatim only in its projects, which stay as they are",
        false if names.is_empty() => "does not start Verbatim",
        false => "does not start Verbatim any more",
    };
    if names.is_empty() {
        writeln!(out, "{} {left}; nothing to do.", client.name)?;
        return Ok(FOUND);
    }
    let text = file.without_servers(client.key, &names);
    let text = text.map_err(|reason| unreadable(&client, &file, reason))?;
    match change(&client, &file, &text, args.yes, Terminal { environment, out })? {
        ChangeOutcome::Same => return Ok(FOUND),
        ChangeOutcome::Refused => return Ok(NOTHING),
        ChangeOutcome::Made => {}
    }
    if names.len() > 1 {
        let list = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        writeln!(out, "{} entries were removed: {list}.", names.len())?;
    }
    let gone = format!("{} {left}. {}", client.name, client.restart());
    writeln!(out, "{}", wrapped(&gone, environment.columns, 2))?;
    Ok(FOUND)
}

/// Lists the clients, and starts the server of each connected client to test it.
fn list(environment: &Environment, out: &mut dyn Write) -> Result<u8> {
    let (here, missing): (Vec<AiClient>, Vec<AiClient>) =
        known_clients(environment).into_iter().partition(AiClient::is_installed);
    for client in &here {
        let state = match reach(client, environment) {
            Some(Err(Unreached::Unknown(error))) => {
                format!("not known whether it is connected: {error}")
            }
            None => format!("not connected; `verbatim connect {}`", client.id),
            Some(Ok(())) => "connected, and the server answers".to_owned(),
            Some(Err(problem)) => format!("connected, but {problem}"),
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

fn client(id: &str, environment: &Environment) -> Result<AiClient> {
    let client = known_clients(environment).into_iter().find(|client| client.id == id);
    client.ok_or_else(|| Error::NoFolder(id.to_owned()))
}

fn read(client: &AiClient) -> Result<(ConfigFile, Value)> {
    let file = ConfigFile::read(&client.path, client.syntax).map_err(|source| {
        let path = client.path.clone();
        match source.kind() {
            io::ErrorKind::InvalidData => {
                Error::Syntax { path, reason: source.to_string(), remedy: clients::SAVE_AS_UTF_8 }
            }
            _ => Error::File { path, source },
        }
    })?;
    let config = file.parse().map_err(|reason| unreadable(client, &file, reason))?;
    Ok((file, config))
}

fn remote_entry(
    client: &AiClient,
    url: &str,
    config: &Config,
    environment: &Environment,
) -> Result<RemoteEntry> {
    let is_web = ["http://", "https://"].iter().any(|start| url.starts_with(start));
    if !is_web || !url.ends_with(clients::MCP_PATH) || url.contains(char::is_whitespace) {
        return Err(Error::NoUrl(url.to_owned()));
    }
    let is_here = is_of_this_computer(url);
    // The token of this home must not be sent to a server on another computer.
    let is_known = is_here || environment.filled(TOKEN_VARIABLE).is_some();
    let token = is_known.then(|| token_of(None, config, environment)).transpose()?;
    let given = token.as_ref().map_or("", |token| token.as_str());
    let entry = client.remote_entry(url, given).ok_or(Error::NoHttp(client.name))?;
    match entry.holds_token && token.is_none() {
        true => Err(Error::ForeignServer(url.to_owned())),
        false => Ok(entry),
    }
}

fn unreadable(client: &AiClient, file: &ConfigFile, reason: String) -> Error {
    let (path, remedy) = (client.path.clone(), file.remedy(&reason));
    Error::Syntax { path, reason, remedy }
}

fn holds_token(file: &ConfigFile) -> bool {
    let config = file.parse().unwrap_or_default();
    clients::servers(&config).iter().any(clients::Server::holds_token)
}

#[derive(Debug, thiserror::Error)]
enum Unreached {
    /// The configuration cannot be read, so it is unknown whether the client has a server.
    #[error("{0}")]
    Unknown(Error),
    /// The client's configuration switches off every entry of this program.
    #[error("the server {OFF}")]
    Off,
    /// The server gave no right answer; the text completes a sentence about the server.
    #[error("the server {0}")]
    Server(String),
}

/// Tests the server in a client's configuration; returns `None` if the configuration has no such server.
fn reach(client: &AiClient, environment: &Environment) -> Option<Result<(), Unreached>> {
    let config = match read(client) {
        Ok((_, config)) => config,
        Err(error) => return Some(Err(Unreached::Unknown(error))),
    };
    let mut servers = client.servers(&config);
    if servers.is_empty() {
        return None;
    }
    servers.retain(|server| !server.is_switched_off());
    if servers.is_empty() {
        return Some(Err(Unreached::Off));
    }
    let mut answers = servers.iter().map(|server| match server.url() {
        Some(url) => answers(url, server.token(environment).as_deref()),
        None => probe(server, environment).map(drop),
    });
    Some(answers.try_for_each(|answer| answer.map_err(Unreached::Server)))
}

fn change(
    client: &AiClient,
    file: &ConfigFile,
    text: &str,
    yes: bool,
    terminal: Terminal<'_>,
) -> Result<ChangeOutcome> {
    let Terminal { environment, out } = terminal;
    if text == file.text() {
        writeln!(out, "{} is connected already: {}", client.name, client.path.display())?;
        if file.close_to_others() {
            writeln!(out, "Other users could read the token in it; now only you can.")?;
        }
        return Ok(ChangeOutcome::Same);
    }
    writeln!(out, "{}", client.path.display())?;
    write_change(out, file.text(), text)?;
    if !confirm_change(yes, environment, out)? {
        writeln!(out, "Nothing was changed.")?;
        return Ok(ChangeOutcome::Refused);
    }
    let backup =
        file.write(text).map_err(|source| Error::File { path: client.path.clone(), source })?;
    if let Some(backup) = &backup {
        let kept = format!("The file as it was: {}", backup.display());
        writeln!(out, "{}", wrapped(&kept, environment.columns, 2))?;
        if holds_token(file) {
            writeln!(
                out,
                "It still holds the token: delete it. For a new token, delete the file `token` of the home \
                 folder, and start the server again."
            )?;
        }
    }
    Ok(ChangeOutcome::Made)
}

/// Returns whether the user agrees: by a flag, or else on the terminal.
fn confirm_change(yes: bool, environment: &Environment, out: &mut dyn Write) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if !environment.can_ask {
        return Err(Error::NoTerminal);
    }
    out.flush()?;
    Ok(confirm("Make this change?")?)
}

fn write_change(out: &mut dyn Write, before: &str, after: &str) -> io::Result<()> {
    let [before, after] = [before, after].map(|text| text.lines().collect::<Vec<_>>());
    let has_long = before.iter().any(|line| line.chars().count() > LONGEST_LINE);
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = before.iter().zip(&after).take_while(same).count();
    let rest = (before[head..].iter().rev()).zip(after[head..].iter().rev());
    let tail = rest.take_while(same).count();
    let removed = before[head..before.len() - tail].iter().map(|line| ("-", line));
    let added = after[head..after.len() - tail].iter().map(|line| ("+", line));
    let around = |lines: &[&str]| lines.len().min(CONTEXT);
    let first = before[head - around(&before[..head])..head].iter().map(|line| (" ", line));
    let last = &after[after.len() - tail..];
    let last = last[..around(last)].iter().map(|line| (" ", line));
    for (mark, line) in first.chain(removed).chain(added).chain(last) {
        // Only the beginning of a long line is printed, because a whole file can be one line, and
        // may hold keys of other programs.
        match line.char_indices().nth(LONGEST_LINE) {
            Some((end, _)) if mark != "+" || has_long => {
                writeln!(out, "  {mark} {}…", harmless(&line[..end]))?;
            }
            _ => writeln!(out, "  {mark} {}", harmless(line))?,
        }
    }
    Ok(())
}

/// Returns the flags for the paths of a server that differ from the default paths.
fn server_places(config: &Config, environment: &Environment) -> Result<Vec<String>> {
    let mut places = Vec::new();
    let path = |path: &PathBuf| StoreAddress::Database(path.clone());
    if environment.data_folder.is_none() || config.home != default_home(environment) {
        places.push(("--home", path(&config.home)));
    }
    places.extend(config.db.clone().map(|db| ("--db", db)));
    let other_archives = config.archives != agents_folders(environment);
    if other_archives {
        places.extend(config.archives.iter().map(|folder| ("--archive", path(folder))));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_the_lines_around_it() {
        for (before, after, expected) in [
            ("", "{\n}\n", "  + {\n  + }\n"),
            ("a\nb\nc\nd\ne\n", "a\nb\nc\nX\nd\ne\n", "    b\n    c\n  + X\n    d\n    e\n"),
            ("a\nb\n", "a\nc\n", "    a\n  - b\n  + c\n"),
            ("a\na\n", "a\na\na\n", "    a\n    a\n  + a\n"),
        ] {
            let mut out = Vec::new();
            write_change(&mut out, before, after).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
