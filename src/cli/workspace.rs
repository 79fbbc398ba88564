//! The command `verbatim workspace`.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    arguments,
    environment::{Environment, Terminal},
    error::Result,
    output::{FOUND, NOTHING, complain, counted, harmless, json_line},
    settings, settings_file,
};
use verbatim_base::model::Stop;
use verbatim_engine::{
    Engine, search_workspace,
    workspace::{Dates, Line, WorkspaceQuestion},
};

/// Search a workspace of dated conversation folders
///
/// QUERY is a regular expression in ripgrep's syntax; case is ignored. Prints the
/// lines that match, the newest conversation first: file, line number, text. A
/// conversation is a folder TYPE/DATE/NNN-name, where DATE is 2025-11 or 2025-11-10.
/// The exit code is grep's: 0 if something was found, 1 if nothing, 2 for trouble.
///
///     verbatim workspace "auth(entication)?" --workspace ~/notes --date 2025-11
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The regular expression; write -- before one that begins with a dash
    query: String,
    #[command(flatten)]
    pub(super) workspaces: Workspaces,
    /// Search only this folder of a workspace; its path is whole, or begins in the workspace
    #[arg(long, value_name = "FOLDER")]
    path: Option<String>,
    /// Only conversations of this month or day: 2025-11, 2025-11-10
    #[arg(long, value_name = "DATE", value_parser = dates)]
    date: Option<Dates>,
    /// Only conversations of this type, such as brainstorm
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Print at most this many lines, 0 for all
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = arguments::count)]
    limit: usize,
    /// Print one JSON object per line: conversation, date, path, line, text
    #[arg(long, hide_short_help = true)]
    json: bool,
}

/// The flag that names workspaces.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Workspaces {
    /// A folder of dated conversations that may be searched (repeatable) [default: VERBATIM_WORKSPACE,
    /// several separated as in PATH]
    #[arg(long = "workspace", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
}

impl Workspaces {
    pub(super) fn folders_or_setting(&self, environment: &Environment) -> Vec<PathBuf> {
        let flag = self.folders.iter().map(|folder| folder.clone().into_os_string()).collect();
        let flag = Some(flag).filter(|_| !self.folders.is_empty());
        settings::resolve(&settings_file::WORKSPACES, flag, environment).paths().unwrap_or_default()
    }
}

fn dates(text: &str) -> Result<Dates, String> {
    Dates::parse(text).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct JsonLine<'a> {
    conversation: &'a str,
    date: &'a str,
    path: String,
    line: u64,
    text: &'a str,
}

pub(super) fn run(args: &Args, engine: &Engine, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let question = WorkspaceQuestion {
        pattern: args.query.clone(),
        dates: args.date.clone(),
        kind: args.kind.clone().filter(|kind| kind != "all"),
        limit: arguments::limit(args.limit),
    };
    let found = search_workspace(engine.config(), &question, args.path.as_deref(), &Stop::never())?;
    for Line { conversation, date, path, number, text } in &found.lines {
        let path = path.display().to_string();
        if args.json {
            let row = JsonLine { conversation, date, path, line: *number, text };
            json_line(out, &row)?;
        } else if environment.terminal {
            writeln!(out, "{}", harmless(&format!("{path}:{number}: {text}")))?;
        } else {
            writeln!(out, "{path}:{number}: {text}")?;
        }
    }
    out.flush()?;
    if args.limit > 0 && found.lines.len() == args.limit {
        let lines = counted(args.limit, "line");
        complain(&format!("shown: {lines}; there may be more; --limit 0 shows all"));
    }
    if found.lines.is_empty() {
        complain(&format!("no line of a conversation there matches {:?}", args.query));
    }
    for message in &found.unread {
        // The search continues without files that cannot be read, as grep does.
        complain(message);
    }
    if found.lines.is_empty() {
        let folders = engine.config().workspaces.iter().map(|it| it.display().to_string());
        let folders = folders.collect::<Vec<_>>().join(" and ");
        complain(&format!("no line in {folders} matches {}; try a shorter text", args.query));
        return Ok(NOTHING);
    }
    Ok(FOUND)
}
