//! `verbatim list`.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::{Environment, Error, FOUND, NOTHING, harmless};
use crate::{
    engine::{About, Engine, Scope, SourceKind},
    model::Instant,
    text::{
        date::{self, Edge},
        snippet,
    },
};

/// Characters shown of a title.
const TITLE: usize = 100;

/// List conversations, those that were active last first
///
/// Prints a line each: when it was last active, its id, how many messages it has, its title and,
/// of a coding agent's, its project. The exit code is 1 if there are none.
///
///     verbatim list --since 2025-01 --source archive
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Only conversations of this source: export, archive, threads (repeatable)
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    source: Vec<SourceKind>,
    /// Only conversations of this project of a coding agent
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Only conversations of this session of a coding agent
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only conversations in which this role spoke (repeatable)
    #[arg(long, value_name = "ROLE")]
    role: Vec<String>,
    /// Only conversations that were going on at or after this day or moment, UTC
    #[arg(long, value_name = "DATE", value_parser = since)]
    since: Option<Instant>,
    /// Only conversations that were going on before the end of this day or moment
    #[arg(long, value_name = "DATE", value_parser = until)]
    until: Option<Instant>,
    /// Print at most this many, 0 for all
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// Leave out this many from the start
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    offset: usize,
    /// Print one JSON object per conversation
    #[arg(long)]
    json: bool,
}

/// Returns the source of a name.
pub(super) fn source(name: &str) -> Result<SourceKind, String> {
    let kinds = SourceKind::ALL;
    kinds
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| format!("the sources are {}", kinds.map(SourceKind::name).join(", ")))
}

fn since(text: &str) -> Result<Instant, String> {
    day(text, Edge::Start)
}

fn until(text: &str) -> Result<Instant, String> {
    day(text, Edge::End)
}

fn day(text: &str, edge: Edge) -> Result<Instant, String> {
    date::parse_iso(text, edge).ok_or_else(|| "not an ISO 8601 date or date-time".to_owned())
}

/// Refuses to go on without a database that was named; other sources would answer for it.
pub(super) fn check(engine: &Engine) -> Result<(), Error> {
    if engine.config().db.is_some() {
        engine.database()?;
    }
    Ok(())
}

pub(super) fn run(
    args: &Args,
    engine: &Engine,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    check(engine)?;
    let scope = Scope {
        sources: args.source.clone(),
        roles: args.role.clone(),
        since: args.since,
        until: args.until,
        conversation: None,
        project: args.project.clone(),
        session: args.session.clone(),
    };
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let (abouts, total) = engine.list(&scope, args.offset, limit)?;
    for about in &abouts {
        if args.json {
            json(out, engine, about)?;
        } else {
            line(out, about, environment.colours)?;
        }
    }
    let more = total.saturating_sub(args.offset.saturating_add(abouts.len()));
    if more > 0 && environment.terminal && !args.json {
        writeln!(out, "… {more} more; --limit 0 shows all")?;
    }
    Ok(if abouts.is_empty() { NOTHING } else { FOUND })
}

fn line(out: &mut dyn Write, about: &About, colours: bool) -> io::Result<()> {
    let style = if colours { AnsiColor::Green.on_default() } else { Style::new() };
    let time = about.last.and_then(date::to_minute).unwrap_or_else(|| "(no time)".to_owned());
    let id = harmless(&about.id);
    let plural = if about.turns == 1 { "" } else { "s" };
    let title = about.title.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = match (title.is_empty(), snippet::cut(&title, TITLE)) {
        (true, _) => "Untitled".to_owned(),
        (_, Some(start)) => format!("{start}…"),
        (_, None) => title,
    };
    let title = harmless(&title);
    write!(out, "{style}{time}  {id}{style:#}  {} message{plural}  {title}", about.turns)?;
    if let Some(project) = &about.project {
        write!(out, "  [{}]", harmless(project))?;
    }
    writeln!(out)
}

fn json(out: &mut dyn Write, engine: &Engine, about: &About) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line<'a> {
        id: &'a str,
        title: &'a str,
        source: &'a str,
        messages: u32,
        begun: Option<String>,
        last: Option<String>,
        project: Option<&'a str>,
        session: Option<&'a str>,
        path: String,
        summary: &'a str,
    }
    let line = Line {
        id: &about.id,
        title: &about.title,
        source: about.source.name(),
        messages: about.turns,
        begun: about.begun.and_then(date::to_iso),
        last: about.last.and_then(date::to_iso),
        project: about.project.as_deref(),
        session: about.session.as_deref(),
        path: engine.path_of(about),
        summary: &about.summary,
    };
    serde_json::to_writer(&mut *out, &line)?;
    writeln!(out)
}
