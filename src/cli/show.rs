//! `verbatim show`.

use std::{
    io::{self, Write},
    ops::RangeInclusive,
};

use clap_complete::ArgValueCompleter;

use super::{
    completions::conversations,
    environment::Environment,
    error::Error,
    notes,
    output::{FOUND, JsonHit, harmless, json_line, plural},
};
use crate::{
    engine::{self, Engine, Scope, Session},
    model::Stop,
    text::{date, snippet},
};

/// Print one conversation as Markdown
///
/// CONVERSATION is an id, the beginning of an id if it is unique, a whole title, or a
/// path as `verbatim list --json` prints it. It may come from any source: the export,
/// the transcripts of coding agents, the threads.
///
///     verbatim show 6650a1b2 > chat.md
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The conversation's id, the beginning of its id, its title, or its path
    #[arg(add = ArgValueCompleter::new(conversations))]
    conversation: String,
    /// Print only these lines: 10, 10-20, 10- (lines of a transcript's file, else messages)
    #[arg(long, value_name = "FROM-TO", value_parser = lines)]
    lines: Option<RangeInclusive<u32>>,
    /// Print one JSON object per message, as `verbatim search --json` does
    #[arg(long)]
    json: bool,
    /// Show messages as stored, even if that is the JSON of ChatGPT's message parts
    #[arg(long)]
    raw_content: bool,
}

/// Bytes that are made harmless at once.
const PIECE: usize = 64 << 10;

fn lines(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    let (from, to) = match text.split_once('-') {
        None => (number(text), number(text)),
        Some((from, "")) => (number(from), Some(u32::MAX)),
        Some((from, to)) => (number(from), number(to)),
    };
    match (from, to) {
        (Some(from), Some(to)) if from <= to => Ok(from..=to),
        _ => Err("takes lines from 1 on: 10, 10-20 or 10-".to_owned()),
    }
}

pub(super) fn run(
    args: &Args,
    engine: &Engine,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    notes::print(&engine.unreadable(&Scope::default(), &Stop::never()));
    let stop = Stop::never();
    let about = match engine.find(&stop).by_path(&args.conversation)? {
        Some(about) => about,
        None => engine.find(&stop).by_word(&args.conversation)?,
    };
    let session = engine.session(about.source, &about.id, args.raw_content, &stop)?;
    let gone = || engine::Error::NoConversation { word: args.conversation.clone() };
    let session = session.ok_or_else(gone)?;
    let turns = (0..session.turns()).filter(|turn| {
        args.lines.as_ref().is_none_or(|lines| lines.contains(&session.line(*turn)))
    });
    if args.json {
        for turn in turns {
            json_line(out, &JsonHit::of(&session.message(turn)))?;
        }
        return Ok(FOUND);
    }
    if environment.terminal {
        markdown(&mut Harmless(out), &session, turns)?;
    } else {
        markdown(out, &session, turns)?;
    }
    Ok(FOUND)
}

/// Writes text without the characters that control a terminal, piece by piece.
struct Harmless<'w>(&'w mut dyn Write);

impl Write for Harmless<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        let Some(chunk) = piece.utf8_chunks().next() else { return Ok(0) };
        let (text, length) = match chunk.valid() {
            "" => ("\u{FFFD}", chunk.invalid().len()),
            text => (text, text.len()),
        };
        self.0.write_all(harmless(text).as_bytes())?;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn markdown(
    out: &mut dyn Write,
    session: &Session,
    turns: impl Iterator<Item = usize>,
) -> io::Result<()> {
    let about = &session.about;
    let title = match snippet::trim(&about.title) {
        "" => "Untitled".to_owned(),
        title => title.replace(['\n', '\r'], " "),
    };
    let messages = session.turns();
    let plural = plural(messages as u64);
    writeln!(out, "# {title}\n")?;
    write!(out, "`{}` · {messages} message{plural}", about.id)?;
    if let Some(project) = &about.project {
        write!(out, " · project {project}")?;
    }
    if let Some(file) = &about.file {
        write!(out, " · `{}`", file.display())?;
    }
    writeln!(out)?;
    for turn in turns {
        let message = session.message(turn);
        let role = if message.role.is_empty() { "unknown" } else { &message.role };
        write!(out, "\n## {role}")?;
        if let Some(time) = message.time.and_then(date::to_minute) {
            write!(out, " · {time}")?;
        }
        writeln!(out, "\n\n{}", snippet::trim(&message.content))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_a_terminal_is_harmless_wherever_it_is_cut() {
        let text = "é\u{1b}[2J日本\n".repeat(20_000);
        let mut out = Vec::new();
        Harmless(&mut out).write_all(text.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), harmless(&text));
    }
}
