//! The command `verbatim threads`.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use clap::{Subcommand, builder::NonEmptyStringValueParser};
use serde_json::{Map, Value, json};

use super::{
    arguments,
    environment::Terminal,
    error::{Error, Result},
    found::conversation,
    output::{FOUND, NOTHING, complain, counted, harmless, json_line},
};
use verbatim_base::model::Stop;
use verbatim_engine::{Engine, Recalled, Save, SourceKind, Start, Thread};
use verbatim_text::{date, snippet};

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
    /// Print JSON: an object a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ThreadCommand {
    /// List the threads, latest activity first
    ///
    ///     verbatim threads list --limit 0
    #[command(verbatim_doc_comment)]
    List {
        /// Only threads of this user
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// Print at most this many, 0 for all
        #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = arguments::count)]
        limit: usize,
    },
    /// Print a thread's details, and the id that continues it
    ///
    ///     verbatim threads show e42fe2ec
    #[command(verbatim_doc_comment)]
    Show {
        /// The thread's id, or the beginning of it
        thread: String,
    },
    /// Print the latest messages of a thread
    ///
    ///     verbatim threads history e42fe2ec --limit 0
    #[command(verbatim_doc_comment)]
    History {
        /// The thread's id, or the beginning of it
        thread: String,
        /// Print at most this many, 0 for all
        #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = arguments::count)]
        limit: usize,
    },
    /// Print how the threads are used
    ///
    ///     verbatim threads analytics
    #[command(verbatim_doc_comment)]
    Analytics,
    /// Find threads by their messages
    ///
    ///     verbatim threads search "database migration"
    #[command(verbatim_doc_comment)]
    Search {
        /// The text to find
        query: String,
        /// Print at most this many
        #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = arguments::count)]
        limit: usize,
    },
    /// Begin a thread; prints its id and the id that continues it
    ///
    ///     verbatim threads start "database migration"
    #[command(verbatim_doc_comment)]
    Start {
        /// The topic
        #[arg(default_value = "general", value_parser = NonEmptyStringValueParser::new())]
        topic: String,
        /// The owner of the thread
        #[arg(long, default_value = "default")]
        user: String,
        /// The platform of the conversation
        #[arg(long)]
        platform: Option<String>,
    },
    /// Record a turn; prints the id for the next turn, and related passages from memory
    ///
    ///     verbatim threads continue CONTINUATION "Which index do we drop?"
    #[command(verbatim_doc_comment)]
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
    ///
    ///     verbatim threads save "We keep the index" --key decisions
    #[command(verbatim_doc_comment)]
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
    ///
    ///     verbatim threads delete e42fe2ec --yes
    #[command(verbatim_doc_comment)]
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

pub(super) fn run(args: &Args, engine: &Engine, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let mut page = Vec::new();
    let code = write(args, engine, &mut page)?;
    if environment.terminal {
        write!(out, "{}", harmless(&String::from_utf8_lossy(&page)))?;
    } else {
        out.write_all(&page)?;
    }
    Ok(code)
}

fn write(args: &Args, engine: &Engine, out: &mut dyn Write) -> Result<u8> {
    let (memory, json) = (engine.memory(), args.json);
    match &args.command {
        ThreadCommand::List { user, limit } => {
            let threads = memory.threads(user.as_deref(), arguments::limit(*limit))?;
            for thread in &threads {
                write_thread(out, thread, json)?;
            }
            if *limit > 0 && threads.len() == *limit {
                let threads = counted(*limit, "thread");
                complain(&format!("shown: {threads}; there may be more; --limit 0 shows all"));
            }
            if threads.is_empty() {
                complain("there are no threads yet; `verbatim threads start` begins one");
            }
            return Ok(FOUND);
        }
        ThreadCommand::Show { thread } => {
            let thread = thread_named(engine, thread)?;
            write_thread(out, &thread, json)?;
            if !json {
                writeln!(out, "{}", continue_line(&thread))?;
            }
        }
        ThreadCommand::History { thread, limit } => {
            write_history(engine, thread, arguments::limit(*limit), json, out)?;
        }
        ThreadCommand::Analytics => write_analytics(engine, json, out)?,
        ThreadCommand::Search { query, limit } => {
            let found = memory.search_threads(query, *limit, &Stop::never())?;
            for one in &found {
                match json {
                    true => json_line(out, &recalled_json(engine, one)?)?,
                    false => {
                        writeln!(out, "{}  {}\n  {}", one.conversation, one.title, one.passage)?;
                    }
                }
            }
            if found.is_empty() {
                complain("no message of a thread answers this");
                return Ok(NOTHING);
            }
        }
        ThreadCommand::Start { topic, user, platform } => {
            let start = Start { topic, user, platform: platform.as_deref(), turn: None };
            let thread = memory.start_thread(&start, &Stop::never())?.thread;
            match json {
                true => write_thread(out, &thread, json)?,
                false => writeln!(out, "{}\n{}", thread.id, continue_line(&thread))?,
            }
        }
        ThreadCommand::Continue { continuation, text, role } => {
            record_turn(engine, continuation, (role, text), json, out)?;
        }
        ThreadCommand::Save { summary, key, title, turns } => {
            let turns = turns.as_deref().map_or(Ok(Vec::new()), read_turns)?;
            let (key, title) = (key.as_deref(), title.as_deref());
            let saved = memory.save_conversation(&Save { key, title, summary, turns: &turns })?;
            let (thread, turns) = (&saved.thread, saved.turns);
            if json {
                json_line(out, &json!({"thread": as_json(thread), "turns": turns}))?;
            } else {
                let key = thread.key.as_deref().unwrap_or_default();
                let turns = counted(turns, "new turn");
                writeln!(out, "{}\nsaved as {key}, {turns}", thread.id)?;
            }
        }
        ThreadCommand::Delete { thread, yes } => return delete(engine, thread, *yes, json, out),
    }
    Ok(FOUND)
}

fn record_turn(
    engine: &Engine,
    continuation: &str,
    turn: (&str, &str),
    json: bool,
    out: &mut dyn Write,
) -> Result<()> {
    if snippet::trim(turn.1).is_empty() {
        return Err(Error::Threads("the turn has no text; nothing was recorded".to_owned()));
    }
    let recorded = engine.memory().continue_thread(continuation, turn, &Stop::never())?;
    if json {
        let memory = recorded.memory.iter().map(|one| recalled_json(engine, one));
        let memory = memory.collect::<Result<Vec<Value>>>()?;
        let trouble = recorded.trouble.map(|trouble| trouble.to_string());
        let thread = as_json(&recorded.thread);
        json_line(out, &json!({"thread": thread, "trouble": trouble, "memory": memory}))?;
        return Ok(());
    }
    writeln!(out, "{}", continue_line(&recorded.thread))?;
    if let Some(trouble) = recorded.trouble {
        writeln!(out, "\nthe turn is recorded, but nothing could be recalled: {trouble}")?;
    }
    for one in recorded.memory {
        let time = one.time.and_then(date::to_minute).unwrap_or_default();
        writeln!(out, "\n[{time}] {} ({})\n{}", one.title, one.source.name(), one.passage)?;
    }
    Ok(())
}

fn continue_line(thread: &Thread) -> String {
    format!("Continue it with: verbatim threads continue {} \"text\"", thread.continuation)
}

fn write_history(
    engine: &Engine,
    word: &str,
    limit: usize,
    json: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let thread = thread_named(engine, word)?;
    let (turns, total) = engine.memory().thread_history(&thread.id, limit)?;
    let summary = engine.memory().saved_summary(&thread.id)?;
    if json {
        let turns = turns.iter().map(|turn| {
            let time = turn.time.and_then(date::to_iso);
            json!({"role": turn.role, "content": turn.content, "time": time})
        });
        let turns: Vec<Value> = turns.collect();
        let id = &thread.id;
        json_line(out, &json!({"id": id, "total": total, "summary": summary, "turns": turns}))?;
        return Ok(());
    }
    if turns.len() < usize::try_from(total).unwrap_or(usize::MAX) {
        writeln!(out, "the latest {} of {total} messages\n", turns.len())?;
    }
    if let Some(summary) = summary {
        writeln!(out, "Summary:\n{summary}\n")?;
    }
    for turn in turns {
        let time = turn.time.and_then(date::to_minute).unwrap_or_default();
        writeln!(out, "[{time}] {}\n{}\n", turn.role, turn.content)?;
    }
    Ok(())
}

fn write_analytics(engine: &Engine, json: bool, out: &mut dyn Write) -> Result<()> {
    let usage = engine.memory().thread_analytics()?;
    if json {
        let users: Map<String, Value> =
            usage.users.into_iter().map(|(user, threads)| (user, threads.into())).collect();
        let (threads, messages, topics) = (usage.threads, usage.messages, usage.topics);
        let usage = json!({
            "threads": threads, "messages": messages, "users": users, "topics": topics,
        });
        json_line(out, &usage)?;
        return Ok(());
    }
    let average = usage.messages as f64 / usage.threads.max(1) as f64;
    let threads = counted(usage.threads, "thread");
    writeln!(out, "{threads}, {average:.1} messages each")?;
    for (user, threads) in usage.users {
        writeln!(out, "{threads:8}  {user}")?;
    }
    for topic in usage.topics {
        writeln!(out, "recently: {topic}")?;
    }
    Ok(())
}

/// Removes a thread if `is_confirmed` is set. Otherwise shows the thread that would be removed.
fn delete(
    engine: &Engine,
    word: &str,
    is_confirmed: bool,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8> {
    let thread = match engine.memory().thread_keyed(word)? {
        Some(thread) => thread,
        None => thread_named(engine, word)?,
    };
    if is_confirmed {
        engine.memory().delete_thread(&thread.id)?;
    }
    if json {
        json_line(out, &json!({"thread": as_json(&thread), "removed": is_confirmed}))?;
    } else if is_confirmed {
        writeln!(out, "removed {} with {}", thread.id, size_of(&thread))?;
    } else {
        write_thread(out, &thread, json)?;
        writeln!(out, "nothing was removed; --yes removes it and its messages for good")?;
    }
    Ok(if is_confirmed { FOUND } else { NOTHING })
}

/// Returns the thread whose id is `word` or begins with `word`.
fn thread_named(engine: &Engine, word: &str) -> Result<Thread> {
    let mut found = engine.memory().threads_named(word)?;
    match (found.pop(), found.pop()) {
        (Some(one), None) => Ok(one),
        (Some(a), Some(b)) => Err(Error::Threads(format!(
            "{word:?} may be {}, {} or another; give more characters of it",
            b.id, a.id
        ))),
        (None, _) => Err(Error::Threads(format!("Thread {word} not found"))),
    }
}

fn as_json(thread: &Thread) -> Value {
    json!({
        "id": thread.id,
        "source": SourceKind::Threads.name(),
        "service": SourceKind::Threads.name(),
        "continuation": thread.continuation,
        "topic": thread.topic,
        "user": thread.user,
        "platform": thread.platform,
        "key": thread.key,
        "messages": thread.messages,
        "begun": thread.begun.and_then(date::to_iso),
        "last": thread.last.and_then(date::to_iso),
    })
}

fn recalled_json(engine: &Engine, one: &Recalled) -> Result<Value> {
    let key = (one.source, one.conversation.clone());
    let found = conversation(engine, key, &Stop::never())?;
    let mut passage = serde_json::to_value(found.json()).map_err(io::Error::from)?;
    let fields = json!({
        "conversation_id": one.conversation,
        "title": one.title,
        "role": one.role,
        "time": one.time.and_then(date::to_iso),
        "passage": one.passage,
        "score": one.score,
    });
    if let (Some(passage), Value::Object(fields)) = (passage.as_object_mut(), fields) {
        passage.extend(fields);
    }
    Ok(passage)
}

/// Returns what a thread has: its messages, and a summary if the thread was saved under a key.
fn size_of(thread: &Thread) -> String {
    let messages = counted(thread.messages, "message");
    if thread.key.is_some() { format!("a summary, {messages}") } else { messages }
}

fn write_thread(out: &mut dyn Write, thread: &Thread, json: bool) -> io::Result<()> {
    if json {
        return json_line(out, &as_json(thread));
    }
    let time = thread.last.or(thread.begun).and_then(date::to_minute).unwrap_or_default();
    write!(out, "{}  {time}  {}  {}", thread.id, size_of(thread), thread.topic)?;
    if let Some(key) = &thread.key {
        write!(out, "  ({key})")?;
    }
    writeln!(out)
}

fn read_turns(path: &Path) -> Result<Vec<(String, String)>> {
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
