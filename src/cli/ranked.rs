//! `verbatim search --mode text|vector|both`: what answers best, rather than what holds the text.

use std::io::{self, Write};

use serde::Serialize;

use super::{Error, FOUND, NOTHING, harmless};
use crate::{
    engine::{Engine, Match, Question, SourceKind},
    model::{Hit, Stop},
    text::{date, snippet},
};

/// Messages printed where all were asked for: further down there is nothing that answers.
const MOST: usize = 1_000;

/// Prints the messages that answer a question, the best first.
pub(super) fn run(
    question: Question,
    context: usize,
    json: bool,
    engine: &Engine,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let limit = if question.limit == 0 { MOST } else { question.limit };
    let question = Question { limit, ..question };
    let ranking = engine.rank(&question, &Stop::never())?;
    for note in &ranking.notes {
        anstream::eprintln!("verbatim: {note}");
    }
    for (number, one) in ranking.items.iter().enumerate() {
        if json {
            line(out, one)?;
            continue;
        }
        if number > 0 {
            writeln!(out)?;
        }
        let (before, after) = match one.source {
            SourceKind::Export if context > 0 => {
                engine.neighbours(&one.hit, context, false, &Stop::never())?
            }
            _ => Default::default(),
        };
        heading(out, one)?;
        before.iter().try_for_each(|hit| aside(out, hit))?;
        for line in one.passage.lines().filter(|line| !line.trim().is_empty()) {
            writeln!(out, "  {}", harmless(line))?;
        }
        after.iter().try_for_each(|hit| aside(out, hit))?;
    }
    Ok(if ranking.items.is_empty() { NOTHING } else { FOUND })
}

fn heading(out: &mut dyn Write, one: &Match) -> io::Result<()> {
    let time = one.hit.time.and_then(date::to_minute);
    let role = if one.hit.role.is_empty() { "unknown" } else { &one.hit.role };
    let title = match snippet::trim(&one.hit.title) {
        "" => &one.hit.conversation_id,
        title => title,
    };
    let copies = if one.copies > 1 { format!("  ({} times)", one.copies) } else { String::new() };
    writeln!(
        out,
        "{:.2}  {}  {}  {}{copies}",
        one.score,
        time.as_deref().unwrap_or("(no time)"),
        harmless(role),
        harmless(&title.replace('\n', " "))
    )
}

/// Prints the beginning of a message beside one that answers.
fn aside(out: &mut dyn Write, hit: &Hit) -> io::Result<()> {
    let text = snippet::trim(&hit.content).replace('\n', " ");
    let text = snippet::cut(&text, 200).map_or_else(|| text.clone(), |start| format!("{start}…"));
    writeln!(out, "  | {}: {}", harmless(&hit.role), harmless(&text))
}

fn line(out: &mut dyn Write, one: &Match) -> io::Result<()> {
    let hit = &one.hit;
    let line = Line {
        message_id: &hit.message_id,
        conversation_id: &hit.conversation_id,
        title: &hit.title,
        role: &hit.role,
        time: hit.time.and_then(date::to_iso),
        content: &hit.content,
        position: hit.position,
        source: one.source.name(),
        score: one.score,
        line: one.line,
        passage: &one.passage,
        copies: one.copies,
    };
    serde_json::to_writer(&mut *out, &line)?;
    writeln!(out)
}

/// A match for another program.
#[derive(Serialize)]
struct Line<'a> {
    message_id: &'a str,
    conversation_id: &'a str,
    title: &'a str,
    role: &'a str,
    time: Option<String>,
    content: &'a str,
    position: Option<i64>,
    source: &'static str,
    score: f64,
    line: u32,
    passage: &'a str,
    copies: u32,
}
