//! `verbatim threads`.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use clap::Subcommand;

use super::{
    arguments,
    environment::Environment,
    error::Error,
    output::{FOUND, NOTHING, complain, harmless, plural},
};
use crate::{
    engine::{Engine, Save, Start, Thread},
    model::Stop,
    text::{date, snippet},
};

/// Record, read and remove threads: conversations kept turn by turn
///
/// These are the threads of the tool manage_conversation. They are in threads.db of the home folder.
///
///     verbatim threads start "database migration"
///     verbatim threads continue CONTINUATION "Which index do we drop?"
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(subcommand)]
    command: ThreadCommand,
}

#[derive(Debug, Subcommand)]
enum ThreadCommand {
    /// List the threads, latest activity first
    List {
        /// Only threads of this user
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// Print at most this many, 0 for all
        #[arg(long, value_name = "COUNT", default_value_t = 20)]
        limit: usize,
    },
    /// Print a thread's details, and the id that continues it
    Show {
        /// The thread's id, or the beginning of it
        thread: String,
    },
    /// Print the latest messages of a thread
    History {
        /// The thread's id, or the beginning of it
        thread: String,
        /// Print at most this many, 0 for all
        #[arg(long, value_name = "COUNT", default_value_t = 10)]
        limit: usize,
    },
    /// Print how the threads are used
    Analytics,
    /// Find threads by their messages
    Search {
        /// The text to find
        query: String,
        /// Print at most this many
        #[arg(long, value_name = "COUNT", default_value_t = 10)]
        limit: usize,
    },
    /// Begin a thread; prints its id and the id that continues it
    Start {
        /// The topic
        #[arg(default_value = "general")]
        topic: String,
        /// The owner of the thread
        #[arg(long, default_value = "default")]
        user: String,
        /// The platform of the conversation
        #[arg(long)]
        platform: Option<String>,
    },
    /// Record a turn; prints the id for the next turn, and related passages from memory
    Continue {
        /// The id that `start` or the last turn printed
        continuation: String,
        /// The turn's text
        text: String,
        /// The role of the speaker
        #[arg(long, default_value = "user", value_parser = ["user", "assistant"])]
        role: String,
    },
    /// Save a conversation under a key: a summary, and turns as lines of JSON {role, content}
    Save {
        /// The summary of the conversation
        summary: String,
        /// The key under which it is saved
        #[arg(long)]
        key: Option<String>,
        /// The title
        #[arg(long)]
        title: Option<String>,
        /// A file of turns, one JSON object per line; - for standard input
        #[arg(long, value_name = "FILE")]
        turns: Option<PathBuf>,
    },
    /// Remove a thread and all its messages, for good
    Delete {
        /// The thread's id, the beginning of it, or the key under which it was saved
        thread: String,
        /// Really remove it
        #[arg(long)]
        yes: bool,
    },
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonTurn {
    role: String,
    content: String,
}

pub(super) fn run(
    args: &Args,
    engine: &Engine,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let mut page = Vec::new();
    let code = write(args, engine, &mut page)?;
    if environment.terminal {
        write!(out, "{}", harmless(&String::from_utf8_lossy(&page)))?;
    } else {
        out.write_all(&page)?;
    }
    Ok(code)
}

fn write(args: &Args, engine: &Engine, out: &mut dyn Write) -> Result<u8, Error> {
    match &args.command {
        ThreadCommand::List { user, limit } => {
            let threads = engine.memory().threads(user.as_deref(), arguments::limit(*limit))?;
            for thread in &threads {
                write_thread(out, thread)?;
            }
            if *limit > 0 && threads.len() == *limit {
                let text = "{limit} threads are shown, and there may be more; --limit 0 shows all";
                complain(&text.replace("{limit}", &limit.to_string()));
            }
            return Ok(if threads.is_empty() { NOTHING } else { FOUND });
        }
        ThreadCommand::Show { thread } => {
            let thread = one(engine, thread)?;
            write_thread(out, &thread)?;
            writeln!(out, "continue with {}", thread.continuation)?;
        }
        ThreadCommand::History { thread, limit } => {
            write_history(engine, thread, arguments::limit(*limit), out)?;
        }
        ThreadCommand::Analytics => write_analytics(engine, out)?,
        ThreadCommand::Search { query, limit } => {
            let found = engine.memory().search_threads(query, *limit, &Stop::never())?;
            for one in &found {
                writeln!(out, "{}  {}\n  {}", one.conversation, one.title, one.passage)?;
            }
            return Ok(if found.is_empty() { NOTHING } else { FOUND });
        }
        ThreadCommand::Start { topic, user, platform } => {
            let start = Start { topic, user, platform: platform.as_deref() };
            let thread = engine.memory().start_thread(&start)?;
            writeln!(out, "{}\ncontinue with {}", thread.id, thread.continuation)?;
        }
        ThreadCommand::Continue { continuation, text, role } => {
            if snippet::trim(text).is_empty() {
                return Err(Error::Threads(
                    "the turn has no text; nothing was recorded".to_owned(),
                ));
            }
            let memory = engine.memory();
            let recorded = memory.continue_thread(continuation, (role, text), &Stop::never())?;
            writeln!(out, "continue with {}", recorded.thread.continuation)?;
            if let Some(trouble) = recorded.trouble {
                writeln!(out, "\nthe turn is recorded, but nothing could be recalled: {trouble}")?;
            }
            for one in recorded.memory {
                let time = one.time.and_then(date::to_minute).unwrap_or_default();
                writeln!(out, "\n[{time}] {} ({})\n{}", one.title, one.source.name(), one.passage)?;
            }
        }
        ThreadCommand::Save { summary, key, title, turns } => {
            let turns = turns.as_deref().map_or(Ok(Vec::new()), read_turns)?;
            let (key, title) = (key.as_deref(), title.as_deref());
            let saved =
                engine.memory().save_conversation(&Save { key, title, summary, turns: &turns })?;
            let key = saved.thread.key.as_deref().unwrap_or_default();
            writeln!(out, "{}\nsaved as {key}, {} new turns", saved.thread.id, saved.turns)?;
        }
        ThreadCommand::Delete { thread, yes } => return delete(engine, thread, *yes, out),
    }
    Ok(FOUND)
}

fn write_history(
    engine: &Engine,
    word: &str,
    limit: usize,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let thread = one(engine, word)?;
    let (turns, total) = engine.memory().thread_history(&thread.id, limit)?;
    if turns.len() < usize::try_from(total).unwrap_or(usize::MAX) {
        writeln!(out, "the latest {} of {total} messages\n", turns.len())?;
    }
    if let Some(summary) = engine.memory().saved_summary(&thread.id)? {
        writeln!(out, "Summary:\n{summary}\n")?;
    }
    for turn in turns {
        let time = turn.time.and_then(date::to_minute).unwrap_or_default();
        writeln!(out, "[{time}] {}\n{}\n", turn.role, turn.content)?;
    }
    Ok(())
}

fn write_analytics(engine: &Engine, out: &mut dyn Write) -> Result<(), Error> {
    let usage = engine.memory().thread_analytics()?;
    let average = usage.messages as f64 / usage.threads.max(1) as f64;
    writeln!(out, "{} threads, {average:.1} messages each", usage.threads)?;
    for (user, threads) in usage.users {
        writeln!(out, "{threads:8}  {user}")?;
    }
    for topic in usage.topics {
        writeln!(out, "recently: {topic}")?;
    }
    Ok(())
}

/// Removes a thread if `is_confirmed`, else shows which one it is.
fn delete(
    engine: &Engine,
    word: &str,
    is_confirmed: bool,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let thread = match engine.memory().thread_keyed(word)? {
        Some(thread) => thread,
        None => one(engine, word)?,
    };
    if !is_confirmed {
        write_thread(out, &thread)?;
        writeln!(out, "nothing was removed; --yes removes it and its messages for good")?;
        return Ok(NOTHING);
    }
    engine.memory().delete_thread(&thread.id)?;
    writeln!(out, "removed {} with {} messages", thread.id, thread.messages)?;
    Ok(FOUND)
}

/// Returns the one thread whose id, or its beginning, is a word.
fn one(engine: &Engine, word: &str) -> Result<Thread, Error> {
    let mut found = engine.memory().threads_named(word)?;
    match (found.pop(), found.pop()) {
        (Some(one), None) => Ok(one),
        (Some(a), Some(b)) => Err(Error::Threads(format!(
            "{word:?} may be {}, {} or another; give more of it",
            b.id, a.id
        ))),
        (None, _) => Err(Error::Threads(format!("Thread {word} not found"))),
    }
}

fn write_thread(out: &mut dyn Write, thread: &Thread) -> io::Result<()> {
    let time = thread.last.or(thread.begun).and_then(date::to_minute).unwrap_or_default();
    let messages = thread.messages;
    let plural = plural(messages);
    write!(out, "{}  {time}  {messages} message{plural}  {}", thread.id, thread.topic)?;
    if let Some(key) = &thread.key {
        write!(out, "  ({key})")?;
    }
    writeln!(out)
}

fn read_turns(path: &Path) -> Result<Vec<(String, String)>, Error> {
    let failed = |what: &dyn std::fmt::Display| {
        Error::Threads(format!("{}: cannot read the turns: {what}", path.display()))
    };
    let mut text = String::new();
    if path.as_os_str() == "-" {
        io::stdin().read_to_string(&mut text).map_err(|error| failed(&error))?;
    } else {
        text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    }
    let mut turns = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let JsonTurn { role, content } = serde_json::from_str(line)
            .map_err(|error| failed(&format_args!("line {number}: {error}")))?;
        if !["user", "assistant", "system"].contains(&role.as_str()) {
            let what =
                format_args!("line {number}: role takes user, assistant or system; got {role:?}");
            return Err(Error::Threads(format!("{}: {what}", path.display())));
        }
        turns.push((role, content));
    }
    Ok(turns)
}
