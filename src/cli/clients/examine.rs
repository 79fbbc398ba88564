//! The check of client configurations for `verbatim doctor`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{
    AiClient, BY_ADDRESS, Fault, OFF, SERVER, Server, Syntax, can_start, can_start_from_desktop,
    is_named_verbatim, known_clients, probe, project_clients, servers,
};
use crate::cli::settings::engine_config::PlaceArgs;
use crate::cli::settings::environment::Environment;
use crate::cli::settings::settings_file::{DB, HOME, Setting};
use verbatim_base::{call::Call, model::Instant};
use verbatim_engine::{Config, Engine, Finding, Scope, SourceKind, StoreAddress};

/// A function that parses the program's arguments. It returns `None` for a command other than `serve`.
pub(crate) type ParseServe = fn(&[&str]) -> Result<Option<PlaceArgs>, clap::Error>;

/// The time limit of reading a database that a client names.
const MAX_READ: Duration = Duration::from_secs(3);

enum Check {
    /// The server does not start, or not as the user wants. The texts are the problem and the remedy.
    Fault(String, String),
    /// The server cannot be started here; the text is the reason.
    Skip(&'static str),
    Start,
}

/// Examines configuration files, and starts each server as its client does.
pub(crate) fn examine(
    environment: &Environment,
    parse: ParseServe,
    report: &mut dyn FnMut(Finding),
) {
    let mut count = 0;
    for client in known_clients(environment).into_iter().chain(project_clients(environment)) {
        let about = format!("{} ({})", client.name, client.path.display());
        let file = match client.read() {
            Ok(file) if !file.exists() => continue,
            Ok(file) => file,
            Err(Fault { reason, remedy }) => {
                count += 1;
                let what = format!("the client cannot read its configuration: {reason}");
                report(Finding::wrong(about, what, remedy));
                continue;
            }
        };
        if client.syntax == Syntax::StrictJson && file.text().trim().is_empty() {
            count += 1;
            let what = "the client cannot read its configuration: the file is empty";
            report(Finding::wrong(about, what, "write {} into it"));
            continue;
        }
        let list = file.config.get(client.key).and_then(Value::as_object);
        for (name, entry) in list.into_iter().flatten() {
            if name.eq_ignore_ascii_case(SERVER) && !entry.is_object() {
                count += 1;
                let about = format!("{about}, server {name:?}");
                let remedy = format!("remove it, then: verbatim connect {}", client.id);
                report(Finding::wrong(about, "names no program to start", &remedy));
            }
        }
        for server in servers(&file.config) {
            count += 1;
            let about = format!("{about}, server {:?}", server.name);
            report(match check(&client, &server, environment, parse) {
                Check::Fault(what, remedy) => Finding::wrong(about, what, &remedy),
                Check::Skip(why) => Finding::note(about, why, ""),
                Check::Start => match probe(&server, environment) {
                    Ok(tools) => {
                        let what = format!("starts verbatim, which answers ({tools} tools)");
                        Finding::well(about, what)
                    }
                    Err(what) => {
                        let remedy = format!("correct it, or: verbatim connect {}", client.id);
                        Finding::wrong(about, what, &remedy)
                    }
                },
            });
        }
    }
    if count == 0 {
        let what = "no AI client that Verbatim knows starts it";
        report(Finding::note("clients", what, "verbatim connect lists them and connects one"));
    }
}

fn check(
    client: &AiClient,
    server: &Server<'_>,
    environment: &Environment,
    parse: ParseServe,
) -> Check {
    use Check::{Fault, Skip, Start};
    if server.key != client.key {
        return Fault(
            format!("is listed under {:?}, where {} does not look", server.key, client.name),
            format!("list it under {:?}", client.key),
        );
    }
    if server.is_switched_off() {
        return Skip(OFF);
    }
    let set_command = format!("set \"command\" to {}", environment.program.display());
    let Some((command, args)) = server.command() else {
        if server.has_address() {
            return Skip(BY_ADDRESS);
        }
        return Fault("names no \"command\"".to_owned(), set_command);
    };
    if std::iter::once(&command).chain(&args).any(|text| text.contains("${")) {
        return Skip("uses variables of the client, so it is not started");
    }
    let path = Path::new(command);
    if !can_start(path, environment) {
        let what = format!("starts {command:?}, which does not exist or cannot be run");
        return Fault(what, set_command);
    }
    if client.is_desktop && !can_start_from_desktop(path) {
        let what = format!(
            "starts {command:?} by its name, which apps that are started from the desktop do not find"
        );
        return Fault(what, set_command);
    }
    let set_args = "set \"args\" to [\"serve\"]".to_owned();
    if server.entry.get("args").is_some_and(|args| !is_list_of_strings(args)) {
        return Fault("has \"args\" that is not a list of strings".to_owned(), set_args);
    }
    // If the command is a shell or a wrapper, its program is unknown.
    if !is_named_verbatim(command) {
        return Start;
    }
    match parse(&args) {
        Ok(Some(places)) => check_places(server, places),
        Ok(None) if args.is_empty() => {
            Fault("starts verbatim without a command".to_owned(), set_args)
        }
        Ok(None) => {
            Fault(format!("starts a command other than serve ({})", args.join(" ")), set_args)
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
            Fault(what, "see `verbatim serve --help`".to_owned())
        }
    }
}

fn is_list_of_strings(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

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
    match engine.tally(&scope, &Instant::day, &Call::default().within(MAX_READ)) {
        Err(error) if !error.is_stopped() => Check::Fault(
            format!("names a database that cannot be searched: {error}"),
            "give the path of a database that `verbatim import` made, or leave it out".to_owned(),
        ),
        _ => Check::Start,
    }
}

/// Returns what the variables of an entry say about a setting.
fn variable(server: &Server<'_>, setting: &Setting) -> Option<PathBuf> {
    let variables = server.variables()?;
    let mut values = setting.variables.iter().filter_map(|name| variables.get(*name)?.as_str());
    values.find(|value| !value.is_empty()).map(PathBuf::from)
}
