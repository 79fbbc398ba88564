//! `verbatim search --mode text|vector|both`: the messages that answer a question best.

use std::io::{self, Write};

use serde::Serialize;

use super::{
    environment::Environment,
    error::Error,
    indexing, notes,
    output::{FOUND, JsonHit, NOTHING, clock, harmless, json_line, role, title},
};
use crate::{
    engine::{Engine, Match, Question},
    model::{Hit, Stop},
    text::snippet,
};

/// Messages printed with `--limit 0`: later ones do not answer the question.
const MOST: usize = 1_000;

/// How the messages are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// How many messages before and after each are written too.
    pub(super) context: usize,
    pub(super) json: bool,
}

/// Writes the messages that answer a question, the best first.
pub(super) fn run(
    question: Question,
    form: Form,
    engine: &Engine,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    indexing::complete(engine, environment);
    let limit = if question.limit == 0 { MOST } else { question.limit };
    let question = Question { limit, ..question };
    let ranking = engine.rank(&question, &Stop::never())?;
    notes::print(&ranking.notes);
    for (number, one) in ranking.items.iter().enumerate() {
        if form.json {
            json_line(out, &JsonMatch::of(one))?;
            continue;
        }
        if number > 0 {
            writeln!(out)?;
        }
        let (before, after) = match form.context {
            0 => Default::default(),
            count => engine.neighbours(one.source, &one.hit, count, false, &Stop::never())?,
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
    let copies = if one.copies > 1 { format!("  ({} times)", one.copies) } else { String::new() };
    writeln!(
        out,
        "{:.2}  {}  {}  {}{copies}",
        one.score,
        clock(&one.hit),
        role(&one.hit),
        harmless(&title(&one.hit))
    )
}

/// Writes the beginning of a message before or after a match.
fn aside(out: &mut dyn Write, hit: &Hit) -> io::Result<()> {
    let text = snippet::trim(&hit.content).replace('\n', " ");
    let text = snippet::cut(&text, 200).map_or_else(|| text.clone(), |start| format!("{start}…"));
    writeln!(out, "  | {}: {}", harmless(&hit.role), harmless(&text))
}

#[derive(Serialize)]
struct JsonMatch<'a> {
    #[serde(flatten)]
    hit: JsonHit<'a>,
    source: &'static str,
    score: f64,
    line: u32,
    passage: &'a str,
    copies: u32,
}

impl JsonMatch<'_> {
    fn of(one: &Match) -> JsonMatch<'_> {
        JsonMatch {
            hit: JsonHit::of(&one.hit),
            source: one.source.name(),
            score: one.score,
            line: one.line,
            passage: &one.passage,
            copies: one.copies,
        }
    }
}
