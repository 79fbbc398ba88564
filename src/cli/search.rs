//! `verbatim search`.

use std::{
    io::{self, BufWriter, Seek, Write},
    ops::{ControlFlow, Range},
};

use anstyle::{AnsiColor, Style};
use clap::{ValueEnum, error::ErrorKind};
use tempfile::SpooledTempFile;

use super::{
    arguments::{since, until},
    environment::Environment,
    error::Error,
    explain::explain,
    notes,
    output::{self, FOUND, JsonHit, NOTHING, clock, harmless, json_line, role},
    ranked,
};
use crate::{
    engine::{self, Engine, Question, Rendered, Scope, SourceKind},
    model::{Hit, Instant, Request, Stop},
    text::{like::LikePattern, snippet},
};

/// Matches that are looked for in a message. Lines that match further on are not counted.
const MOST_SPANS: usize = 100_000;

/// Bytes of a hit, as it is printed, that are held in memory. The rest is in a temporary file.
const IN_MEMORY: usize = 1 << 20;

/// Lines shown of one hit; the others are counted.
const MOST_LINES: usize = 10;

/// Characters shown of one line, around its first match.
const WIDTH: usize = 240;

/// Lines shown of a message that is context, or of a hit whose title matched.
const CONTEXT_LINES: usize = 3;

/// Find an exact piece of text in your chats
///
/// Prints the messages whose text or title contains QUERY, newest first: date, role and title, then
/// the lines that match. Case is ignored for the letters A to Z only; % stands for any text and _ for
/// any one character, as in SQL's LIKE.
/// With --mode text, vector or both, QUERY is a question. The messages of all sources that answer it
/// best come first. They contain its "quoted" texts exactly, and none of its -words.
/// The exit code is grep's: 0 if something was found, 1 if nothing, 2 for trouble.
///
///     verbatim search "borrow checker" --role assistant --since 2025-01
///     verbatim search "how did we fix the login?" --mode both
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The text to find; write -- before one that begins with a dash
    query: String,
    /// exact: messages that contain QUERY; text: the best by words; vector: the best by meaning; both: the
    /// best by words and meaning (the MCP tool `search` says text for exact)
    #[arg(long, value_name = "MODE", default_value = "exact")]
    mode: SearchMode,
    /// Only messages with this role: user, assistant, tool, system (repeatable)
    #[arg(long, value_name = "ROLE")]
    role: Vec<String>,
    /// Only messages from this day or moment on, UTC: 2025, 2025-01, 2025-01-31, 2025-01-31T14:30
    #[arg(long, value_name = "DATE", value_parser = since)]
    since: Option<Instant>,
    /// Only messages up to the end of this day or moment
    #[arg(long, value_name = "DATE", value_parser = until)]
    until: Option<Instant>,
    /// Print at most this many messages, 0 for all
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// Print this many messages of the conversation before and after each match
    #[arg(short = 'C', long, value_name = "COUNT", default_value_t = 0)]
    context: usize,
    /// Print one JSON object per message: message_id, conversation_id, title, role, time, content,
    /// position
    #[arg(long, conflicts_with = "context")]
    json: bool,
    /// Show the query plan and timings instead of the answer
    #[arg(long, conflicts_with_all = ["json", "context"])]
    explain: bool,
    /// Do not ignore the case of the letters A to Z
    #[arg(long)]
    case_sensitive: bool,
    /// Match and show messages as stored, even if that is the JSON of ChatGPT's message parts
    #[arg(long)]
    raw_content: bool,
    /// Colour the output
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

impl Args {
    /// Returns whether all sources are searched, not only the export.
    pub(super) fn asks_every_source(&self, engine: &Engine) -> bool {
        let config = engine.config();
        let has_no_export = config.db.is_none() && config.export_database().is_err();
        self.mode != SearchMode::Exact || has_no_export
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SearchMode {
    Exact,
    Text,
    Vector,
    Both,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

pub(super) fn run(
    args: &Args,
    engine: &Engine,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    if let Some(mode) = rank_by(args)? {
        let question = Question {
            concepts: vec![args.query.clone()],
            mode,
            scope: Scope {
                roles: args.role.clone(),
                since: args.since,
                until: args.until,
                ..Scope::default()
            },
            limit: args.limit,
            ..Question::default()
        };
        let form = ranked::Form { context: args.context, json: args.json };
        return ranked::run(question, form, engine, environment, out);
    }
    let request = Request {
        text: args.query.clone(),
        roles: args.role.clone(),
        since: args.since,
        until: args.until,
        limit: (args.limit > 0).then_some(args.limit),
        literal: false,
        case_sensitive: args.case_sensitive,
        raw_content: args.raw_content,
    };
    let colours = match args.color {
        Color::Auto => environment.colours,
        Color::Always => true,
        Color::Never => false,
    };
    let pattern = LikePattern::parse(engine::trimmed(&args.query), args.case_sensitive);
    let writer = HitWriter { pattern, args, engine, colours };
    let stop = Stop::never();
    let mut count = 0_usize;
    let mut outcome = Ok(());
    // A hit is written before it may be shown: its text is lent, and may be too long to be copied.
    let render = |kind: SourceKind, hit: Hit<'_>| {
        let mut page = BufWriter::new(tempfile::spooled_tempfile(IN_MEMORY));
        let written = if args.explain {
            Ok(())
        } else if args.json {
            json_line(&mut page, &JsonHit::of(&hit)).map_err(Error::Write)
        } else {
            writer.write(&mut page, kind, &hit)
        };
        Some(written.map(|()| page))
    };
    let mut show = |page: Result<BufWriter<SpooledTempFile>, Error>| {
        let is_next = count > 0 && !args.json && !args.explain;
        count += 1;
        outcome = page.and_then(|page| {
            let mut page = page.into_inner().map_err(io::IntoInnerError::into_error)?;
            page.rewind()?;
            if is_next {
                writeln!(out)?;
            }
            io::copy(&mut page, out)?;
            Ok(())
        });
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let plans = if args.asks_every_source(engine) {
        let found = engine.exact_in_all(&request, &stop)?;
        notes::print(&found.notes);
        for (kind, hit) in found.hits {
            if render(kind, hit).is_some_and(|page| show(page).is_break()) {
                break;
            }
        }
        found.plans
    } else {
        let render = |hit: Hit<'_>| render(SourceKind::Export, hit);
        let plan = engine.search(&request, &stop, &mut Rendered::new(render, &mut show))?;
        vec![(plan, count)]
    };
    outcome?;
    for (plan, count) in plans.iter().filter(|_| args.explain) {
        explain(out, plan, *count)?;
    }
    if count > 0 {
        return Ok(FOUND);
    }
    let scope = Scope { roles: request.roles, ..Scope::default() };
    notes::print(engine.unknown_role(&scope, &stop)?.as_slice());
    Ok(NOTHING)
}

/// Returns the mode to rank by; `None` for exact search.
fn rank_by(args: &Args) -> Result<Option<engine::Mode>, Error> {
    let mode = match args.mode {
        SearchMode::Exact => return Ok(None),
        SearchMode::Text => engine::Mode::Text,
        SearchMode::Vector => engine::Mode::Vector,
        SearchMode::Both => engine::Mode::Both,
    };
    for (given, name) in [
        (args.explain, "--explain"),
        (args.case_sensitive, "--case-sensitive"),
        (args.raw_content, "--raw-content"),
    ] {
        if given {
            let message = format!("{name} is for exact search; leave out --mode or {name}\n");
            return Err(Error::Usage(clap::Error::raw(ErrorKind::ArgumentConflict, message)));
        }
    }
    Ok(Some(mode))
}

struct HitWriter<'a> {
    pattern: LikePattern,
    args: &'a Args,
    engine: &'a Engine,
    colours: bool,
}

const MATCH: Style = AnsiColor::Red.on_default().bold();
const HEADING: Style = AnsiColor::Green.on_default();
const DIM: Style = Style::new().dimmed();

impl HitWriter<'_> {
    fn write(&self, out: &mut dyn Write, kind: SourceKind, hit: &Hit) -> Result<(), Error> {
        let (before, after) = if self.args.context > 0 {
            let (count, raw) = (self.args.context, self.args.raw_content);
            self.engine.neighbours(kind, hit, count, raw, &Stop::never())?
        } else {
            Default::default()
        };
        self.heading(out, hit)?;
        for message in &before {
            self.context(out, message)?;
        }
        self.matches(out, hit, !before.is_empty() || !after.is_empty())?;
        for message in &after {
            self.context(out, message)?;
        }
        Ok(())
    }

    fn heading(&self, out: &mut dyn Write, hit: &Hit) -> io::Result<()> {
        let start = format!("{}  {}  ", clock(hit), role(hit));
        self.styled(out, HEADING, &start)?;
        self.marked(out, &output::title(hit))?;
        writeln!(out)
    }

    /// Writes the lines that match, or the first lines if only the title matches.
    fn matches(&self, out: &mut dyn Write, hit: &Hit, named: bool) -> io::Result<()> {
        if named {
            self.styled(out, HEADING, &format!("> {}  {}", clock(hit), role(hit)))?;
            writeln!(out)?;
        }
        let content = hit.content.trim_end();
        let spans = self.pattern.first_spans(content, MOST_SPANS);
        let mut rest = &spans[..];
        let mut shown = 0;
        let mut more = 0;
        let mut start = 0;
        for line in content.split_inclusive('\n') {
            let range = start..start + line.len();
            start = range.end;
            let before = rest.iter().take_while(|span| span.end <= range.start).count();
            rest = &rest[before..];
            let touched = rest.first().is_some_and(|span| span.start < range.end);
            let wanted = if spans.is_empty() {
                !line.trim().is_empty() && shown < CONTEXT_LINES
            } else {
                touched
            };
            if !wanted {
                continue;
            }
            if shown == MOST_LINES {
                more += 1;
                continue;
            }
            shown += 1;
            write!(out, "  ")?;
            self.line(out, line.trim_end_matches(['\n', '\r']), range.start, rest)?;
            writeln!(out)?;
        }
        if more > 0 {
            let least = if spans.len() < MOST_SPANS { "" } else { "at least " };
            self.styled(out, DIM, &format!("  … {least}{more} more lines"))?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes a message that did not match, for context.
    fn context(&self, out: &mut dyn Write, message: &Hit) -> io::Result<()> {
        let heading = format!("  {}  {}", clock(message), role(message));
        self.styled(out, DIM, &heading)?;
        writeln!(out)?;
        let lines = message.content.lines().filter(|line| !line.trim().is_empty());
        for line in lines.take(CONTEXT_LINES) {
            let text = match snippet::cut(line, WIDTH) {
                Some(start) => format!("  {}…", harmless(start)),
                None => format!("  {}", harmless(line)),
            };
            self.styled(out, DIM, &text)?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes one line with its matches styled. It begins at `offset` in the text; `spans` are the
    /// matches in that text.
    fn line(
        &self,
        out: &mut dyn Write,
        line: &str,
        offset: usize,
        spans: &[Range<usize>],
    ) -> io::Result<()> {
        let inside: Vec<Range<usize>> = spans
            .iter()
            .map(|span| {
                span.start.saturating_sub(offset).min(line.len())
                    ..span.end.saturating_sub(offset).min(line.len())
            })
            .filter(|span| !span.is_empty())
            .collect();
        let window = window(line, inside.first());
        if window.start > 0 {
            write!(out, "…")?;
        }
        let mut at = window.start;
        for span in inside {
            let span = span.start.clamp(at, window.end)..span.end.clamp(at, window.end);
            write!(out, "{}", harmless(&line[at..span.start]))?;
            self.styled(out, MATCH, &harmless(&line[span.clone()]))?;
            at = span.end;
        }
        write!(out, "{}", harmless(&line[at..window.end]))?;
        if window.end < line.len() {
            write!(out, "…")?;
        }
        Ok(())
    }

    fn marked(&self, out: &mut dyn Write, text: &str) -> io::Result<()> {
        let spans = self.pattern.spans(text);
        self.line(out, text, 0, &spans)
    }

    fn styled(&self, out: &mut dyn Write, style: Style, text: &str) -> io::Result<()> {
        if self.colours && !text.is_empty() {
            write!(out, "{style}{text}{style:#}")
        } else {
            write!(out, "{text}")
        }
    }
}

/// Returns the range of a line that is shown: about [`WIDTH`] characters around its first match.
fn window(line: &str, first: Option<&Range<usize>>) -> Range<usize> {
    if snippet::cut(line, WIDTH).is_none() {
        return 0..line.len();
    }
    let focus = first.map_or(0, |span| span.start);
    let before = line[..focus].char_indices().rev().take(WIDTH / 4).last();
    let start = before.map_or(focus, |(at, _)| at);
    let rest = &line[start..];
    start..start + snippet::cut(rest, WIDTH).map_or(rest.len(), str::len)
}
