//! The check of client configurations for `verbatim doctor`.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use super::super::{
    environment::Environment,
    places::PlaceArgs,
    settings_file::{DB, HOME, Setting},
};
use super::{
    AiClient, ConfigFile, SERVER, Server, Syntax, can_start, can_start_from_desktop,
    is_named_verbatim, known, of_project, probe, servers,
};
use verbatim_base::model::{Instant, Stop};
use verbatim_engine::{Config, Engine, Finding, Scope, SourceKind, StoreAddress};

/// A function that parses the program's arguments. It returns `None` for a command other than `serve`.
pub(crate) type ParseServe = fn(&[&str]) -> Result<Option<PlaceArgs>, clap::Error>;

/// The time limit of reading a database that a client names.
const MAX_READ: Duration = Duration::from_secs(3);

/// The result of checking a server's entry before the server is started.
enum Check {
    /// The server does not start, or not as the user wants. The texts are the problem and the remedy.
    Fault(String, String),
    /// The server cannot be started here; the text is the reason.
    Skip(&'static str),
    /// No problem was found, so the server can be started.
    Start,
}

/// The advice about a file in another encoding.
pub(crate) const NOT_UTF_8: &str = "save it as UTF-8";

/// A client's configuration file and its content.
pub(crate) struct Configured {
    client: AiClient,
    file: io::Result<ConfigFile>,
    /// The content, or the reason why the client cannot parse the file. `None` if the file was not read.
    content: Option<Result<Value, String>>,
}

/// Reads the existing configuration files of all known clients.
pub(crate) fn configured(environment: &Environment) -> Vec<Configured> {
    let clients = known(environment).into_iter().chain(of_project(environment));
    let read = clients.map(|client| {
        let file = ConfigFile::read(&client.path, client.syntax);
        let content = file.as_ref().ok().map(ConfigFile::parse);
        Configured { client, file, content }
    });
    read.filter(|found| found.file.as_ref().map_or(true, ConfigFile::exists)).collect()
}

/// Examines configuration files, and starts each server as its client does.
pub(crate) fn examine(
    found: &[Configured],
    environment: &Environment,
    parse: ParseServe,
    report: &mut dyn FnMut(Finding),
) {
    let mut count = 0;
    for Configured { client, file, content } in found {
        let about = format!("{} ({})", client.name, client.path.display());
        let config = match (file, content) {
            (Ok(file), Some(Ok(config))) => {
                if let Some(what) = unread(client, file, config) {
                    count += 1;
                    report(Finding::wrong(about, what, remedy_of(client, file, what)));
                    continue;
                }
                config
            }
            (Ok(file), Some(Err(error))) => {
                count += 1;
                let what = format!("the client cannot read its configuration: {error}");
                report(Finding::wrong(about, what, remedy_of(client, file, error)));
                continue;
            }
            (Err(error), _) => {
                count += 1;
                let what = format!("its configuration cannot be read: {error}");
                let remedy = match error.kind() {
                    io::ErrorKind::InvalidData => NOT_UTF_8,
                    _ => "let your user read that file",
                };
                report(Finding::wrong(about, what, remedy));
                continue;
            }
            (Ok(_), None) => continue,
        };
        let list = config.get(client.key).and_then(Value::as_object);
        let is_ours = |(name, _): &(&String, &Value)| name.eq_ignore_ascii_case(SERVER);
        for (name, entry) in list.into_iter().flatten().filter(is_ours) {
            if !entry.is_object() {
                count += 1;
                let about = format!("{about}, server {name:?}");
                let remedy = format!("remove it, then: verbatim connect {}", client.id);
                report(Finding::wrong(about, "names no program to start", &remedy));
            }
        }
        for server in servers(config) {
            count += 1;
            let about = format!("{about}, server {:?}", server.name);
            report(finding(about, client, &server, environment, parse));
        }
    }
    if count == 0 {
        let what = "no AI client that Verbatim knows starts it";
        report(Finding::note("clients", what, "verbatim connect lists them and connects one"));
    }
}

/// Returns why the client does not read a file, although nothing in its text is wrong.
fn unread(client: &AiClient, file: &ConfigFile, config: &Value) -> Option<&'static str> {
    match client.syntax {
        Syntax::StrictJson if !file.is_present() => {
            Some("the client cannot read its configuration: the file is empty")
        }
        _ if !config.is_object() => {
            Some("the client cannot read its configuration: it is not a JSON object")
        }
        _ => None,
    }
}

/// Returns advice on how to correct a file that its client cannot read.
pub(crate) fn remedy_of(client: &AiClient, file: &ConfigFile, error: &str) -> &'static str {
    if error.to_lowercase().contains("escape") {
        return r"write each backslash twice, as in C:\\Users";
    }
    let text = || Some(file.text().to_owned());
    let is_lenient = || ConfigFile::new(&client.path, Syntax::Json, text()).parse().is_ok();
    match client.syntax {
        Syntax::StrictJson | Syntax::Json if file.parse().is_ok() => "write {} in its place",
        Syntax::Toml => "correct the TOML in that file",
        Syntax::StrictJson if is_lenient() => "remove the comments, and the commas before ] and }",
        Syntax::StrictJson | Syntax::Json => "correct the JSON in that file",
    }
}

fn finding(
    about: String,
    client: &AiClient,
    server: &Server<'_>,
    environment: &Environment,
    parse: ParseServe,
) -> Finding {
    match check(client, server, environment, parse) {
        Check::Fault(what, remedy) => Finding::wrong(about, what, &remedy),
        Check::Skip(why) => Finding::note(about, why, ""),
        Check::Start => {
            let folder = environment.user_folder.as_deref().unwrap_or(Path::new("/"));
            match probe(server, folder) {
                Ok(tools) => {
                    Finding::well(about, format!("starts verbatim, which answers ({tools} tools)"))
                }
                Err(what) => {
                    let remedy = format!("correct it, or: verbatim connect {}", client.id);
                    Finding::wrong(about, what, &remedy)
                }
            }
        }
    }
}

fn check(
    client: &AiClient,
    server: &Server<'_>,
    environment: &Environment,
    parse: ParseServe,
) -> Check {
    let fault = |what: String, remedy: String| Check::Fault(what, remedy);
    if server.key != client.key {
        return fault(
            format!("is listed under {:?}, where {} does not look", server.key, client.name),
            format!("list it under {:?}", client.key),
        );
    }
    if server.is_switched_off() {
        return Check::Skip("is switched off in the client");
    }
    if server.url().is_some() && server.command().is_none() {
        return Check::Skip("is reached by its URL, which is not checked");
    }
    let program = environment.program.display();
    let Some((command, args)) = server.command() else {
        let what = "names no \"command\"".to_owned();
        return fault(what, format!("set \"command\" to {program}"));
    };
    if std::iter::once(command).chain(args.iter().copied()).any(|text| text.contains("${")) {
        return Check::Skip("uses variables of the client, so it is not started");
    }
    let path = Path::new(command);
    if !can_start(path, environment) {
        let what = format!("starts {command:?}, which does not exist or cannot be run");
        return fault(what, format!("set \"command\" to {program}"));
    }
    if client.is_desktop && !can_start_from_desktop(path) {
        let what = format!(
            "starts {command:?} by its name, which apps that are started from the desktop do not find"
        );
        return fault(what, format!("set \"command\" to {program}"));
    }
    if server.entry.get("args").is_some_and(|args| !is_texts(args)) {
        let what = "has \"args\" that is not a list of strings".to_owned();
        return fault(what, "set \"args\" to [\"serve\"]".to_owned());
    }
    // If the command is a shell or a wrapper, its program is unknown.
    if !is_named_verbatim(command) {
        return Check::Start;
    }
    match parse(&args) {
        Ok(Some(places)) => check_places(server, places),
        Ok(None) if args.is_empty() => {
            let what = "starts verbatim without a command".to_owned();
            fault(what, "set \"args\" to [\"serve\"]".to_owned())
        }
        Ok(None) => {
            let what = format!("starts a command other than serve ({})", args.join(" "));
            fault(what, "set \"args\" to [\"serve\"]".to_owned())
        }
        Err(error) => {
            let text = error.render().to_string();
            // clap lists missing arguments in the lines below, each indented.
            let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            let mut line = first.trim_start_matches("error: ").to_owned();
            if line.ends_with(':') {
                let items = rest.lines().take_while(|item| item.starts_with(' ')).map(str::trim);
                line += &format!(" {}", items.collect::<Vec<_>>().join(", "));
            }
            let shown = args.join(" ");
            let what = format!("gives arguments that verbatim does not take ({shown}): {line}");
            fault(what, "see `verbatim serve --help`".to_owned())
        }
    }
}

/// Checks the folders and the database in a server's arguments and variables.
fn check_places(server: &Server<'_>, places: PlaceArgs) -> Check {
    let home = places.home.or_else(|| variable(server, &HOME));
    let db = places.db.or_else(|| variable(server, &DB)).map(StoreAddress::from);
    let db_path = db.as_ref().and_then(StoreAddress::path);
    for (what, named) in [("home folder", home.as_deref()), ("database", db_path)] {
        let Some(path) = named else { continue };
        if !path.is_absolute() {
            return Check::Fault(
                format!(
                    "names the {what} {path:?} by a path that depends on the folder it starts in"
                ),
                format!("give the whole path of the {what}"),
            );
        }
        if !path.exists() {
            return Check::Fault(
                format!("names the {what} {path:?}, which does not exist"),
                format!("give the path of a {what} that exists, or leave it out"),
            );
        }
    }
    // A cluster is tried when the server is started, which knows the login.
    if db_path.is_none() {
        return Check::Start;
    }
    let engine = Engine::new(Config { db, ..Config::default() });
    let scope = Scope { sources: vec![SourceKind::Export], ..Scope::default() };
    match engine.tally(&scope, &Instant::day, &Stop::never().within(MAX_READ)) {
        Err(error) if !error.is_stopped() => Check::Fault(
            format!("names a database that cannot be searched: {error}"),
            "give the path of a database that `verbatim import` made, or leave it out".to_owned(),
        ),
        _ => Check::Start,
    }
}

/// Returns what the variables of an entry say about a setting.
fn variable(server: &Server<'_>, setting: &Setting) -> Option<PathBuf> {
    let values = setting.variables.iter().filter_map(|name| server.variable(name));
    values.into_iter().find(|value| !value.is_empty()).map(PathBuf::from)
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}
