//! `verbatim list`.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::{
    arguments::{self, since, source, until},
    environment::Environment,
    error::Error,
    notes,
    output::{FOUND, NOTHING, harmless, json_line, plural},
};
use crate::{
    engine::{About, Engine, ListedPage, Scope, SourceKind},
    model::{Instant, Stop},
    text::{date, snippet},
};

/// Characters shown of a title.
const TITLE: usize = 100;

/// List conversations, the most recently active first
///
/// Prints a line for each: time of the last activity, id, number of messages, title and, for coding
/// agents, project. The exit code is 1 if there are none.
///
///     verbatim list --since 2025-01 --source archive
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Only conversations of this source: export, archive, threads (repeatable)
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    source: Vec<SourceKind>,
    /// Only conversations of coding agents in this project
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Only conversations of coding agents in this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only conversations in which this role spoke (repeatable)
    #[arg(long, value_name = "ROLE")]
    role: Vec<String>,
    /// Only conversations that were active at or after this day or moment, UTC
    #[arg(long, value_name = "DATE", value_parser = since)]
    since: Option<Instant>,
    /// Only conversations that were active before the end of this day or moment
    #[arg(long, value_name = "DATE", value_parser = until)]
    until: Option<Instant>,
    /// Print at most this many, 0 for all
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// Skip this many
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    offset: usize,
    /// Print one JSON object per conversation
    #[arg(long)]
    json: bool,
}

pub(super) fn run(
    args: &Args,
    engine: &Engine,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let scope = Scope {
        sources: args.source.clone(),
        roles: args.role.clone(),
        since: args.since,
        until: args.until,
        conversation: None,
        project: args.project.clone(),
        session: args.session.clone(),
    };
    let limit = arguments::limit(args.limit);
    let listed = engine.listed(&scope, args.offset, limit, &Stop::never())?;
    let ListedPage { abouts, total, notes } = listed;
    notes::print(&notes);
    for about in &abouts {
        if args.json {
            write_json(out, engine, about)?;
        } else {
            write_text(out, about, environment.colours)?;
        }
    }
    let more = total.saturating_sub(args.offset.saturating_add(abouts.len()));
    if more > 0 && environment.terminal && !args.json {
        writeln!(out, "… {more} more; --limit 0 shows all")?;
    }
    Ok(if abouts.is_empty() { NOTHING } else { FOUND })
}

fn write_text(out: &mut dyn Write, about: &About, colours: bool) -> io::Result<()> {
    let style = if colours { AnsiColor::Green.on_default() } else { Style::new() };
    let time = about.last.and_then(date::to_minute).unwrap_or_else(|| "(no time)".to_owned());
    let id = harmless(&about.id);
    let plural = plural(about.turns.into());
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

fn write_json(out: &mut dyn Write, engine: &Engine, about: &About) -> io::Result<()> {
    #[derive(Serialize)]
    struct JsonConversation<'a> {
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
    let conversation = JsonConversation {
        id: &about.id,
        title: &about.title,
        source: about.source.name(),
        messages: about.turns,
        begun: about.begun.and_then(date::to_iso),
        last: about.last.and_then(date::to_iso),
        project: about.project.as_deref(),
        session: about.session.as_deref(),
        path: engine.find(&Stop::never()).path_of(about),
        summary: &about.summary,
    };
    json_line(out, &conversation)
}
