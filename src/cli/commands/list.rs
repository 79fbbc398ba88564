//! The command `verbatim list`.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::filters::FilterArgs;
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal};
use crate::cli::error::Result;
use crate::cli::settings::values;
use crate::cli::terminal::hit_lines::place;
use crate::cli::terminal::layout::{LineLayout, ListEntry};
use crate::cli::terminal::notes;
use crate::cli::terminal::output::{
    FOUND, NOTHING, complain, grouped, harmless, json_line, on_one_line,
};
use verbatim_answer::clock::Clock;
use verbatim_answer::conversation::{ConversationJson, DescribedConversation, listed, title_line};
use verbatim_base::call::Call;
use verbatim_engine::{About, Engine, ListOptions, Scope};

/// The maximum width of the column of ids; longer ids are not aligned.
const LONGEST_ID: usize = 16;

/// The length of the id of another conversation in a line.
const SHORT_ID: usize = 8;

/// How many conversations are read and printed at a time. The first part is small, so that it is printed
/// before the slower work that prepares the rest of a long list.
const FIRST_PART: usize = 50;
const PART: usize = 500;

const MOST_LISTED: usize = 50;

/// List conversations, the most recently active first
///
/// Prints a line for each: id, time of the last activity, number of messages, title and service.
///
///     verbatim list --since 7d --service claude-code
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    filters: FilterArgs,
    /// List the least recently active first
    #[arg(long)]
    oldest: bool,
    /// Print at most this many, 0 for all [default: 50]
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = values::parse_count)]
    limit: Option<usize>,
    /// Print one JSON object per conversation
    #[arg(long)]
    pub(crate) json: bool,
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
        run(self, invocation.engine, invocation.terminal)
    }
}

fn run(args: &Args, engine: &Engine, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let call = Call::default();
    let clock = environment.clock();
    let (scope, notes) = args.filters.scope(engine, clock, &call)?;
    notes::print(&notes);
    let limit = match args.limit {
        Some(0) => usize::MAX,
        limit => limit.unwrap_or(MOST_LISTED),
    };
    let options = ListOptions { oldest_first: args.oldest, ..ListOptions::BRIEF };
    let page = engine.all_sources().undescribed(&scope, 0..limit, options, &call)?;
    notes::print(&page.notes);
    let short = engine.find(&call).short_ids(&page.ids())?;
    let id = short.iter().map(|id| id.width()).max().unwrap_or(0).min(LONGEST_ID);
    let columns = ListColumns { layout: LineLayout::of(environment), clock, id };
    let mut start = 0;
    while start < short.len() {
        let size = if start == 0 { FIRST_PART } else { PART };
        let part = start..short.len().min(start + size);
        if start == FIRST_PART {
            out.flush()?;
        }
        start = part.end;
        let abouts = page.abouts(part.clone(), !args.json);
        let conversations = listed(engine, &abouts, &short[part], &call)?;
        for (about, conversation) in abouts.iter().zip(&conversations) {
            if args.json {
                write_json(out, engine, about, conversation, clock)?;
            } else {
                write_text(out, about, conversation, &columns)?;
            }
        }
    }
    let has_chats = !short.is_empty() || !notes::has_no_chats(engine, &call)?;
    if short.is_empty() && page.notes.is_empty() {
        let no_chats = (!has_chats).then(|| notes::no_chats(engine));
        complain(if let Some(no_chats) = &no_chats {
            no_chats
        } else if scope != Scope::default() {
            "no conversation found; without filters, `verbatim list` shows all"
        } else {
            "no conversation found; those that the setting `exclude` names are left out"
        });
    }
    let more = page.total.saturating_sub(short.len());
    if more > 0 {
        let shown = grouped(short.len() as u64);
        let text =
            format!("{shown} of {} conversations; `-n 0` shows all", grouped(page.total as u64));
        // Who gives a limit knows that there may be more.
        if environment.terminal && !args.json {
            writeln!(out, "{}", columns.layout.note(&text))?;
        } else if args.limit.is_none() {
            out.flush()?;
            complain(&text);
        }
    }
    // An empty list is an answer, but not if a filter names nothing or a source could not be read.
    let is_answer = has_chats && notes.is_empty() && page.notes.is_empty();
    Ok(if short.is_empty() && !is_answer { NOTHING } else { FOUND })
}

struct ListColumns {
    layout: LineLayout,
    clock: Clock,
    id: usize,
}

fn write_text(
    out: &mut dyn Write,
    about: &About,
    conversation: &DescribedConversation,
    columns: &ListColumns,
) -> io::Result<()> {
    let ListColumns { layout, clock, .. } = *columns;
    let id = on_one_line(&conversation.short_id);
    let title = harmless(&title_line(&about.title));
    let mut place = place(conversation);
    if let Some(earlier) = &about.continues {
        let earlier: String = earlier.chars().take(SHORT_ID).collect();
        place += &format!(" · continues {}", on_one_line(&earlier));
    }
    let entry = ListEntry {
        id: &id,
        link: conversation.link(),
        gap: columns.id.saturating_sub(id.width()),
        time: &clock.words(about.last),
        count: &grouped(about.turns),
        title: &title,
        place: &place,
    };
    layout.entry(out, &entry)
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JsonConversation<'a> {
    /// The conversation's id.
    id: &'a str,
    /// Its title, or one that is made of its messages.
    title: &'a str,
    /// How many messages it has.
    messages: u32,
    /// The time of the first message.
    begun: Option<String>,
    /// The time of the last message.
    last: Option<String>,
    /// The agent's session.
    session: Option<&'a str>,
    /// The transcript, or the database and the id: `verbatim show` takes it.
    path: String,
    /// One or two of its own sentences; may be empty.
    summary: &'a str,
    /// Since when the transcript's file is gone.
    gone: Option<String>,
    /// The id of the conversation whose messages this one repeated, and leaves out.
    continues: Option<&'a str>,
    #[serde(flatten)]
    origin: ConversationJson<'a>,
}

fn write_json(
    out: &mut dyn Write,
    engine: &Engine,
    about: &About,
    conversation: &DescribedConversation,
    clock: Clock,
) -> io::Result<()> {
    let conversation = JsonConversation {
        id: &about.id,
        title: &about.title,
        messages: about.turns,
        begun: about.begun.and_then(|time| clock.iso(time)),
        last: about.last.and_then(|time| clock.iso(time)),
        session: about.session.as_deref(),
        path: engine.find(&Call::default()).path_of(about),
        summary: &about.summary,
        gone: about.gone.and_then(|time| clock.iso(time)),
        continues: about.continues.as_deref(),
        origin: conversation.json(),
    };
    json_line(out, &conversation)
}
