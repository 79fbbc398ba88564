//! `verbatim show`.

use std::{
    io::{self, Write},
    ops::RangeInclusive,
};

use anstyle::Style;
use clap_complete::ArgValueCompleter;

use super::{
    clock::Clock,
    completions::conversations,
    environment::Environment,
    error::Error,
    filters::usage,
    found::{self, Conversation, target},
    look::TITLE,
    notes, open,
    output::{FOUND, JsonHit, counted_of, harmless, json_line},
    settings, settings_file,
};
use crate::{
    engine::{self, Engine, Scope, Session},
    model::Stop,
    text::snippet,
};

/// Print one conversation as Markdown
///
/// CONVERSATION is the beginning of an id, a title or a part of one, a link to chatgpt.com or
/// claude.ai, or a path as `verbatim list --json` prints it. ID:NUMBER begins at a message, with a few
/// before it, as `verbatim search` numbers them. The conversation may come from any source.
///
///     verbatim show 6650a1b2:7
///     verbatim show 6650a1b2 > chat.md
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The conversation: the beginning of its id, its title or a part of it, its link, its path
    #[arg(add = ArgValueCompleter::new(conversations))]
    conversation: String,
    /// Print only these lines: 10, 10-20, 10- (lines of a transcript's file, else messages)
    #[arg(long, value_name = "FROM-TO", value_parser = lines)]
    lines: Option<RangeInclusive<u32>>,
    /// Print one JSON object per message, as docs/json.md says
    #[arg(long)]
    pub(super) json: bool,
    /// Show messages as stored, even if that is the JSON of ChatGPT's message parts
    #[arg(long)]
    raw_content: bool,
    /// Show times in UTC, not in the time zone of this computer
    #[arg(long)]
    utc: bool,
    /// Do not start a pager
    #[arg(long)]
    pub(super) no_pager: bool,
}

impl Args {
    /// Takes what the configuration file says.
    pub(super) fn take(&mut self, environment: &Environment) {
        self.raw_content =
            settings::is_on(&settings_file::RAW_CONTENT, self.raw_content, environment);
    }
}

/// Messages that are shown before the one that is asked for.
const BEFORE: usize = 2;

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
    let stop = Stop::never();
    notes::print(&engine.unreadable(&Scope::default(), &stop));
    let clock = Clock::of(environment, args.utc);
    let (about, number) = target(engine, &args.conversation, &stop)?;
    let session = engine.session(about.source, &about.id, args.raw_content, &stop)?;
    let gone = || engine::Error::NoConversation { word: args.conversation.clone() };
    let session = session.ok_or_else(gone)?;
    let first = match number {
        None => 0,
        Some(number) => {
            let turn = (0..session.turns()).find(|turn| session.line(*turn) >= number);
            let last = session.line(session.turns().saturating_sub(1));
            let beyond = || usage(format!("the last message of this conversation is {last}"));
            turn.ok_or_else(beyond)?.saturating_sub(BEFORE)
        }
    };
    let turns = (first..session.turns()).filter(|turn| {
        args.lines.as_ref().is_none_or(|lines| lines.contains(&session.line(*turn)))
    });
    if args.json {
        for turn in turns {
            json_line(out, &JsonHit::of(&session.message(turn), clock))?;
        }
        return Ok(FOUND);
    }
    let key = (about.source, about.id);
    let mut found = found::conversations(engine, std::slice::from_ref(&key), &stop)?;
    let conversation =
        found.remove(&key).expect("every conversation that is asked for is described");
    let colours = environment.terminal && environment.colours;
    let mut page = MarkdownPage { out, is_terminal: environment.terminal, colours };
    page.head(&session, &conversation)?;
    if first > 0 {
        page.text(&format!("\n*{} before this*\n", counted_of(first, "message")))?;
    }
    for turn in turns {
        page.message(&session, turn, clock)?;
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

/// A conversation as Markdown; what could control a terminal is replaced on one.
struct MarkdownPage<'w> {
    out: &'w mut dyn Write,
    is_terminal: bool,
    colours: bool,
}

impl MarkdownPage<'_> {
    fn text(&mut self, text: &str) -> io::Result<()> {
        match self.is_terminal {
            true => Harmless(self.out).write_all(text.as_bytes()),
            false => self.out.write_all(text.as_bytes()),
        }
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        let style = if self.colours { TITLE } else { Style::new() };
        write!(self.out, "{style}")?;
        self.text(text)?;
        writeln!(self.out, "{style:#}")
    }

    fn head(&mut self, session: &Session, conversation: &Conversation) -> io::Result<()> {
        let about = &session.about;
        let title = match snippet::trim(&about.title) {
            "" => "Untitled".to_owned(),
            title => title.replace(['\n', '\r'], " "),
        };
        self.heading(&format!("# {title}"))?;
        let messages = counted_of(session.turns(), "message");
        let mut facts = format!("\n`{}` · {messages} · {}", about.id, conversation.place());
        if let Some(file) = &about.file {
            facts += &format!(" · `{}`", file.display());
        }
        facts.push('\n');
        if let Some(link) = conversation.link() {
            facts += &format!("\n<{link}>\n");
        }
        if let Some(session) = open::session(conversation) {
            facts += &format!("\nresume: `{session}`\n");
        }
        self.text(&facts)
    }

    fn message(&mut self, session: &Session, turn: usize, clock: Clock) -> io::Result<()> {
        let message = session.message(turn);
        let role = if message.role.is_empty() { "unknown" } else { &message.role };
        let time = message.time.and_then(|time| clock.minute(time));
        let time = time.map_or_else(String::new, |time| format!(" · {time}"));
        self.text("\n")?;
        self.heading(&format!("## {} · {role}{time}", session.line(turn)))?;
        self.text("\n")?;
        self.text(snippet::trim(&message.content))?;
        self.text("\n")
    }
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
