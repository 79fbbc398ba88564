//! What the doctor finds in the configurations of clients.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use super::super::{environment::Environment, places::Places};
use super::{
    Client, ConfigFile, Server, Syntax, can_start, can_start_from_desktop, is_named_verbatim,
    known, of_project, probe, servers,
};
use crate::{
    engine::{Config, Engine, Finding, SourceKind},
    model::Stop,
};

/// Parses the arguments of this program; `None` if they name another command than serve.
pub(crate) type ParseServe = fn(&[&str]) -> Result<Option<Places>, clap::Error>;

/// How long a database that a client names is read.
const MAX_READ: Duration = Duration::from_secs(3);

/// The verdict on a server before it is started.
enum Check {
    /// It does not start, or not as its user wants; what is wrong, and the remedy.
    Fault(String, String),
    /// It cannot be started here; the reason.
    Skip(&'static str),
    /// Nothing is wrong with what can be seen.
    Start,
}

/// Examines the configuration files of all known clients, and starts each server as its client does.
pub(crate) fn examine(
    environment: &Environment,
    parse: ParseServe,
    report: &mut dyn FnMut(Finding),
) {
    let mut configured = 0;
    for client in known(environment).into_iter().chain(of_project(environment)) {
        let about = format!("{} ({})", client.name, client.path.display());
        let file = match ConfigFile::read(&client.path, client.syntax) {
            Ok(file) if file.is_present() => file,
            Ok(_) => continue,
            Err(error) => {
                let what = format!("its configuration cannot be read: {error}");
                report(Finding::wrong(about, what, "let your user read that file"));
                continue;
            }
        };
        let config = match file.parse() {
            Ok(config) => config,
            Err(error) => {
                configured += 1;
                let what = format!("the client cannot read its configuration: {error}");
                report(Finding::wrong(about, what, remedy_of(&client, &file, &error)));
                continue;
            }
        };
        for server in servers(&config) {
            configured += 1;
            let about = format!("{about}, server {:?}", server.name);
            report(finding(about, &client, &server, environment, parse));
        }
    }
    if configured == 0 {
        let what = "none that we know is configured to start verbatim";
        report(Finding::note("clients", what, "verbatim connect lists them and connects one"));
    }
}

/// Returns whether a client starts this program with a database or a home of its own.
pub(crate) fn names_other_places(environment: &Environment, parse: ParseServe) -> bool {
    let clients = known(environment).into_iter().chain(of_project(environment));
    let configs = clients.filter_map(|client| {
        ConfigFile::read(&client.path, client.syntax).ok().and_then(|file| file.parse().ok())
    });
    configs.into_iter().any(|config: Value| {
        servers(&config).iter().any(|server| {
            let places = server.command().and_then(|(_, args)| parse(&args).ok().flatten());
            places.is_some_and(|places| places.db.is_some() || places.home.is_some())
                || ["CONVERSATION_DB", "ORIGIN_CONVERSATION_DB", "VERBATIM_HOME"]
                    .iter()
                    .any(|name| server.variable(name).is_some())
        })
    })
}

/// Says what makes a file readable for its client.
fn remedy_of(client: &Client, file: &ConfigFile, error: &str) -> &'static str {
    if error.to_lowercase().contains("escape") {
        return r"write each backslash twice, as in C:\\Users";
    }
    let is_lenient =
        || ConfigFile::read(&client.path, Syntax::Json).is_ok_and(|file| file.parse().is_ok());
    match client.syntax {
        Syntax::Toml => "correct the TOML in that file",
        Syntax::StrictJson if file.is_present() && is_lenient() => {
            "remove the comments, and the commas before ] and }"
        }
        Syntax::StrictJson | Syntax::Json => "correct the JSON in that file",
    }
}

/// Returns what there is to say about a server.
fn finding(
    about: String,
    client: &Client,
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
    client: &Client,
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
    if server.entry.get("disabled") == Some(&Value::Bool(true))
        || server.entry.get("enabled") == Some(&Value::Bool(false))
    {
        return Check::Skip("is switched off in the client");
    }
    let program = environment.program.display();
    let Some((command, args)) = server.command() else {
        return match server.url().is_some() {
            true => Check::Skip("is reached by its URL, which is not looked at"),
            false => {
                fault("names no \"command\"".to_owned(), format!("set \"command\" to {program}"))
            }
        };
    };
    if std::iter::once(command).chain(args.iter().copied()).any(|text| text.contains("${")) {
        return Check::Skip("uses variables of the client, so it is not started");
    }
    let path = Path::new(command);
    if !can_start(path, environment) {
        let what = format!("starts {command:?}, which is not there or cannot be run");
        return fault(what, format!("set \"command\" to {program}"));
    }
    if client.is_desktop && !can_start_from_desktop(path) {
        let what = format!(
            "starts {command:?} by its name, which apps that are started from the desktop do not find"
        );
        return fault(what, format!("set \"command\" to {program}"));
    }
    if server.entry.get("args").is_some_and(|args| !is_texts(args)) {
        let what = "gives \"args\" that are no list of texts".to_owned();
        return fault(what, "set \"args\" to [\"serve\"]".to_owned());
    }
    // A shell or a wrapper does not say which program it starts.
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
            let what = format!("starts another command than serve ({})", args.join(" "));
            fault(what, "set \"args\" to [\"serve\"]".to_owned())
        }
        Err(error) => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let shown = args.join(" ");
            let what = format!("gives arguments that verbatim does not take ({shown}): {line}");
            fault(what, "see `verbatim serve --help`".to_owned())
        }
    }
}

/// Checks the folders and the database that a server is given.
fn check_places(server: &Server<'_>, places: Places) -> Check {
    let variable =
        |name: &str| server.variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = places.home.or_else(|| variable("VERBATIM_HOME"));
    let db = places.db.or_else(|| variable("CONVERSATION_DB"));
    let db = db.or_else(|| variable("ORIGIN_CONVERSATION_DB"));
    for (what, named) in [("home folder", &home), ("database", &db)] {
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
                format!("names the {what} {path:?}, which is not there"),
                format!("give the path of a {what} that exists, or leave it out"),
            );
        }
    }
    let Some(db) = db else { return Check::Start };
    let engine = Engine::new(Config { db: Some(db.clone()), ..Config::default() });
    match engine.tally(&[SourceKind::Export], &Stop::never().within(MAX_READ)) {
        Err(error) if !error.is_stopped() => Check::Fault(
            format!("names a database that cannot be searched: {error}"),
            "give the path of a database that `verbatim import` made, or leave it out".to_owned(),
        ),
        _ => Check::Start,
    }
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}
