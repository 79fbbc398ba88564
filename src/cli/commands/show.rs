//! The command `verbatim show`.

use std::cell::Cell;
use std::cmp::Ordering;
use std::io::{self, Write};
use std::ops::{Range, RangeInclusive};

use clap_complete::ArgValueCompleter;
use schemars::JsonSchema;
use serde::Serialize;

use super::completions::conversations;
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal};
use crate::cli::error::{Result, usage};
use crate::cli::terminal::hit_lines::place;
use crate::cli::terminal::layout::{DIM, LineLayout, TITLE};
use crate::cli::terminal::markdown::{self, CodeHighlighter, MOST_RENDERED};
use crate::cli::terminal::output::{
    FOUND, JsonHit, NOTHING, complain, counted, harmless, json_line,
};
use crate::cli::terminal::pager::{FoundPlace, Landing};
use crate::cli::terminal::wrap::wrapped;
use crate::cli::terminal::{notes, progress};
use verbatim_answer::{
    clock::Clock,
    conversation::{ConversationJson, DescribedConversation, UNTITLED, conversation, target},
};
use verbatim_base::{call::Call, model::Hit};
use verbatim_engine::{self as engine, Attachment, AttachmentFiles, Engine, Session, SourceKind};
use verbatim_text::literal::LiteralPattern;
use verbatim_text::parts::{Part, parts};
use verbatim_text::{snippet, up_to};

/// Print one conversation
///
/// A terminal gets its Markdown rendered, with code in colours; a file or another program gets it as it
/// is, unless CLICOLOR_FORCE is set. Messages of more than 256 KiB, calls of tools and their results are
/// not rendered.
///
/// CONVERSATION is the beginning of an id, a title or a part of one, a link to chatgpt.com or
/// claude.ai, or a path as `verbatim list --json` prints it. ID:NUMBER begins at a message, as
/// `verbatim search` numbers them, with two before it, of which a terminal shows the first lines. The
/// conversation may come from any source.
///
///     verbatim show 6650a1b2:7 --match "borrow checker"
///     verbatim show 6650a1b2 > chat.md
#[derive(Debug, Default, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The conversation: the beginning of its id, its title or a part of it, its link, its path
    ///
    /// Several words are one title.
    #[arg(required = true, add = ArgValueCompleter::new(conversations))]
    conversation: Vec<String>,
    /// Print only these lines: 10, 10-20, 10- (lines of a transcript's file, else messages)
    #[arg(long, value_name = "FROM-TO", value_parser = lines)]
    lines: Option<RangeInclusive<u32>>,
    /// Print one JSON object per message, as docs/json.md says
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not render Markdown on a terminal
    #[arg(long)]
    raw: bool,
    /// Mark this text on a terminal, in any letter case
    #[arg(long = "match", value_name = "TEXT", conflicts_with_all = ["raw", "json"])]
    matching: Option<String>,
}

impl Args {
    /// Returns the arguments that show the conversation, at the message if `word` names one.
    #[cfg(feature = "picker")]
    pub(crate) fn of(word: &str) -> Args {
        Args { conversation: vec![word.to_owned()], ..Args::default() }
    }
}

const BEFORE: usize = 2;

/// The maximum size on a terminal of each message before the requested message, in lines and in
/// characters. So the requested message is on the first screen.
const LINES_BEFORE: usize = 3;
const CHARACTERS_BEFORE: usize = 240;

/// The maximum number of highlighted matches in a block.
pub(crate) const MOST_MARKS: usize = 1_000;

/// Stands for a backtick of an id or a path while the backticks that mark code are removed.
const BACKTICK: &str = "\u{1}";

/// The number of bytes that are escaped at once.
const PIECE: usize = 64 << 10;

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number > 0)
}

fn lines(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (from, to) = match text.split_once('-') {
        None => (number(text), number(text)),
        Some((from, "")) => (number(from), Some(u32::MAX)),
        Some((from, to)) => (number(from), number(to)),
    };
    match (from, to) {
        (Some(from), Some(to)) if from <= to => Ok(from..=to),
        _ => Err("takes lines from 1 on, the smaller number first: 10, 10-20 or 10-".to_owned()),
    }
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        let form = if self.json { OutputForm::AsItIs } else { OutputForm::Pages };
        Facts {
            reads: Reads::EverySource,
            writes: false,
            takes_db: true,
            makes_vectors: false,
            may_be_torn: true,
            waits_for: Some("looking up conversations"),
            form,
        }
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        run(self, invocation.engine, invocation.terminal, None)
    }
}

/// Prints a conversation; `found` is the message that it begins at, as the picker shows it.
pub(crate) fn run(
    args: &Args,
    engine: &Engine,
    terminal: Terminal<'_>,
    found: Option<Landing<'_>>,
) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let call = Call::default();
    notes::print(&engine.all_sources().problems(&call));
    let clock = environment.clock();
    let word = args.conversation.join(" ");
    let (about, number) = target(engine, &word, &call)?;
    if number.is_some() && args.lines.is_some() {
        let text =
            "--lines and the number after the colon both choose messages; give only one of them";
        return Err(usage(text.to_owned()));
    }
    let session = engine.find(&call).session(about.source, &about.id, false)?;
    let session = session.ok_or_else(|| engine::Error::NoConversation { word: word.clone() })?;
    let requested = match number {
        None => 0,
        Some(number) => {
            let turn = (0..session.turns()).find(|turn| session.line(*turn) >= number);
            let last = session.line(session.turns().saturating_sub(1));
            turn.ok_or_else(|| usage(format!("the last message of this conversation is {last}")))?
        }
    };
    let first = requested.saturating_sub(BEFORE);
    let mut turns: Vec<usize> = (first..session.turns()).collect();
    if let Some(lines) = &args.lines {
        turns.retain(|turn| lines.contains(&session.line(*turn)));
    }
    if turns.is_empty() && args.lines.is_some() {
        let last = session.line(session.turns().saturating_sub(1));
        complain(&format!("no message begins in these lines; the last one is {last}"));
        return Ok(NOTHING);
    }
    let key = (about.source, about.id);
    let attachments = attachments(engine, key.0, &key.1);
    let conversation = conversation(engine, key.clone(), &call)?;
    if args.json {
        for turn in turns {
            let message = session.message(turn);
            let attachments = of_message(&attachments, &message).map(|it| JsonAttachment {
                name: &it.name,
                media_type: &it.media_type,
                bytes: it.bytes,
            });
            let line = JsonMessage {
                hit: JsonHit::of(&message, clock),
                number: session.line(turn),
                origin: conversation.json(),
                attachments: attachments.collect(),
            };
            json_line(out, &line)?;
        }
        return Ok(FOUND);
    }
    let is_rendered = (environment.terminal || environment.colours) && !args.raw;
    let layout = LineLayout::of(environment);
    let pattern = args.matching.as_deref().map(snippet::trim).filter(|text| !text.is_empty());
    let pattern = pattern.map(|text| LiteralPattern::new(text, false));
    let by_text = |text: &str| {
        pattern.as_ref().map_or_else(Vec::new, |pattern| pattern.first_spans(text, MOST_MARKS))
    };
    let place = Cell::default();
    let found = found.unwrap_or(Landing { mark: &by_text, place: &place });
    let mut page = ConversationPage {
        out,
        attachments,
        rendered: is_rendered.then_some(layout),
        is_terminal: environment.terminal,
        clock,
        mark: found.mark,
        highlighter: CodeHighlighter::default(),
    };
    page.head(&session, &conversation)?;
    if first > 0 {
        page.note(&format!("{} before this", counted(first, "message")))?;
    }
    for turn in turns {
        found.place.set(match turn.cmp(&requested) {
            Ordering::Less => FoundPlace::Before,
            Ordering::Equal => FoundPlace::Within,
            Ordering::Greater => FoundPlace::After,
        });
        page.message(&session, turn, turn < requested)?;
    }
    Ok(FOUND)
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JsonMessage<'a> {
    #[serde(flatten)]
    hit: JsonHit<'a>,
    /// Its number in the conversation: `verbatim show ID:NUMBER` shows it.
    number: u32,
    #[serde(flatten)]
    origin: ConversationJson<'a>,
    /// Its files, as far as the import kept them.
    attachments: Vec<JsonAttachment<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct JsonAttachment<'a> {
    /// The name that the export gives; may be empty.
    name: &'a str,
    /// The type by the content, such as `image/png`.
    #[serde(rename = "type")]
    media_type: &'a str,
    /// The length.
    bytes: u64,
}

fn of_message<'a>(
    attachments: &'a [Attachment],
    message: &Hit<'_>,
) -> impl Iterator<Item = &'a Attachment> {
    attachments.iter().filter(|it| it.is_of(&message.conversation_id, &message.message_id))
}

/// Returns the attachments of a conversation. If they cannot be read, reports the error and returns none.
pub(super) fn attachments(engine: &Engine, source: SourceKind, id: &str) -> Vec<Attachment> {
    AttachmentFiles::from_config(engine.config()).list(source, id).unwrap_or_else(|error| {
        complain(&error.to_string());
        Vec::new()
    })
}

struct ConversationPage<'w> {
    out: &'w mut dyn Write,
    attachments: Vec<Attachment>,
    /// The capabilities of the terminal; `None` if the Markdown is written without rendering.
    rendered: Option<LineLayout>,
    /// Whether the output is a terminal. Control characters must then be escaped.
    is_terminal: bool,
    clock: Clock,
    mark: &'w dyn Fn(&str) -> Vec<Range<usize>>,
    highlighter: CodeHighlighter,
}

impl ConversationPage<'_> {
    fn text(&mut self, text: &str) -> io::Result<()> {
        if !self.is_terminal && self.rendered.is_none() {
            return self.out.write_all(text.as_bytes());
        }
        pieces(text).try_for_each(|piece| self.out.write_all(harmless(piece).as_bytes()))
    }

    fn heading(&mut self, level: &str, text: &str) -> io::Result<()> {
        match self.rendered.filter(|layout| layout.colours) {
            Some(layout) => {
                let text = layout.styled(TITLE, &harmless(&self.wrapped(text)));
                writeln!(self.out, "{text}")
            }
            None => self.text(&(self.wrapped(&format!("{level} {text}")) + "\n")),
        }
    }

    /// Returns a line, wrapped to the width if the Markdown is rendered. An id or a command that were broken
    /// could not be copied.
    fn wrapped(&self, line: &str) -> String {
        wrapped(line, self.rendered.and_then(LineLayout::wrap_columns), 2)
    }

    fn head(&mut self, session: &Session, conversation: &DescribedConversation) -> io::Result<()> {
        let about = &session.about;
        let title = match snippet::trim(&about.title) {
            "" => UNTITLED.to_owned(),
            title => title.replace(['\n', '\r'], " "),
        };
        self.heading("#", &title)?;
        let messages = counted(session.turns(), "message");
        let id = self.code(&about.id);
        let mut facts = format!("\n{id} · {messages} · {}", place(conversation));
        if let Some(file) = &about.file {
            facts += &format!(" · {}", self.code(&file.display().to_string()));
        }
        if let Some(gone) = about.gone.and_then(|gone| self.clock.minute(gone)) {
            let is_there = about.file.as_ref().is_some_and(|file| file.exists());
            let what = if is_there { "no longer has all of this" } else { "is gone" };
            facts += &format!(" · the file {what} (noticed {gone}), and this is kept");
        }
        if let Some(earlier) = &about.continues {
            facts += &format!(" · continues {}", self.code(earlier));
        }
        facts.push('\n');
        self.facts(&facts)?;
        match (conversation.link(), self.rendered) {
            (Some(link), Some(layout)) => {
                let shown = layout.linked(&harmless(link), Some(link));
                writeln!(self.out, "\n{shown}")?;
            }
            (Some(link), None) => self.text(&format!("\n<{link}>\n"))?,
            (None, _) => {}
        }
        let mut facts = String::new();
        if !self.attachments.is_empty() {
            let export = self.code("verbatim export");
            let files = counted(self.attachments.len(), "attachment");
            let them = if self.attachments.len() == 1 { "it" } else { "them" };
            facts += &format!("\n{files}: {export} writes {them} to a folder\n");
        }
        if let Some(session) = conversation.resume() {
            facts += &format!("\nresume: {}\n", self.code(&session.to_string()));
        }
        self.facts(&facts)
    }

    /// Writes lines about the conversation. If Markdown is rendered, removes the backticks that
    /// mark code.
    fn facts(&mut self, facts: &str) -> io::Result<()> {
        let lines: Vec<String> = facts.split('\n').map(|line| self.wrapped(line)).collect();
        let text = lines.join("\n");
        match self.rendered {
            Some(_) => self.text(&text.replace('`', "").replace(BACKTICK, "`")),
            None => self.text(&text),
        }
    }

    /// Returns an id, a path or a command as code, which is not broken into lines.
    fn code(&self, text: &str) -> String {
        match self.rendered {
            Some(_) => format!("`{}`", text.replace('`', BACKTICK)),
            None => format!("`{text}`"),
        }
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        match self.rendered {
            Some(layout) => writeln!(self.out, "\n{}", layout.styled(DIM, text)),
            None => self.text(&format!("\n*{text}*\n")),
        }
    }

    /// Writes a message; a rendered message before the requested one is cut.
    fn message(&mut self, session: &Session, turn: usize, is_before: bool) -> io::Result<()> {
        let mut message = session.message(turn);
        let attachments: Vec<&Attachment> = of_message(&self.attachments, &message).collect();
        if self.rendered.is_some() && !attachments.is_empty() {
            message.content = without_names(&message.content, &attachments).into();
        }
        let names: String = attachments
            .iter()
            .map(|it| {
                format!("\n[{}, {}, {}]\n", it.name, it.media_type, progress::bytes(it.bytes))
            })
            .collect();
        if is_before && self.rendered.is_some() {
            let whole = snippet::trim(&message.content);
            let lines = whole.match_indices('\n').nth(LINES_BEFORE - 1);
            let lines = lines.map_or(whole, |(end, _)| &whole[..end]);
            let short = snippet::cut(lines, CHARACTERS_BEFORE).unwrap_or(lines);
            if short.len() < whole.len() {
                message.content = format!("{short} …").into();
            }
        }
        self.content(session, turn, &message)?;
        let is_empty = snippet::trim(&message.content).is_empty();
        self.text(if is_empty { names.trim_start_matches('\n') } else { &names })
    }

    fn content(&mut self, session: &Session, turn: usize, message: &Hit<'_>) -> io::Result<()> {
        let role = if message.role.is_empty() { "unknown" } else { &message.role };
        let time = message.time.and_then(|time| self.clock.minute(time));
        let time = time.map_or_else(String::new, |time| format!(" · {time}"));
        self.text("\n")?;
        self.heading("##", &format!("{} · {role}{time}", session.line(turn)))?;
        self.text("\n")?;
        let content = snippet::trim(&message.content);
        let Some(layout) = self.rendered else {
            self.text(content)?;
            return self.text("\n");
        };
        if content.len() > MOST_RENDERED {
            let limit = MOST_RENDERED >> 10;
            let note = format!("(longer than {limit} KiB: shown as it is)\n\n");
            write!(self.out, "{}", layout.styled(DIM, &note))?;
            self.text(content)?;
            return self.text("\n");
        }
        match role {
            // The output of a tool is not Markdown.
            "tool" => markdown::write_plain(self.out, content, layout, self.mark),
            _ => {
                let parts = match role {
                    "user" => vec![Part::Text(content)],
                    _ => parts(content, false),
                };
                markdown::write(self.out, parts, layout, &self.highlighter, self.mark)
            }
        }
    }
}

/// Returns a text without the lines that imports write in place of attachments, which have lines of their own.
fn without_names(text: &str, attachments: &[&Attachment]) -> String {
    const PICTURE: &str = "[image]";
    let mut names: Vec<String> =
        attachments.iter().map(|it| format!("[file: {}]", it.name)).collect();
    let pictures = attachments.iter().filter(|it| it.media_type.starts_with("image/")).count();
    if text.lines().filter(|line| line.trim() == PICTURE).count() <= pictures {
        names.push(PICTURE.to_owned());
    }
    let lines = text.lines().filter(|line| !names.iter().any(|name| name == line.trim()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a text in pieces, so that a very long text is not copied.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let piece = up_to(rest, PIECE);
        rest = &rest[piece.len()..];
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_a_terminal_is_harmless_wherever_it_is_cut() {
        let text = "é\u{1b}[2J日本\n".repeat(20_000);
        assert!(pieces(&text).count() > 2);
        assert_eq!(pieces(&text).map(harmless).collect::<String>(), harmless(&text));
    }
}
