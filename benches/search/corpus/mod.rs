//! A made-up export in the canonical schema, the same for the same size on every machine.
//!
//! The properties that make a search fast or slow are those of real chats: words follow Zipf's law and
//! recur in phrases, pauses are log-normal, code repeats its keywords and never its ids. Lengths, roles,
//! scripts and capitals are those of 532,167 real messages.

mod code;
mod prose;
pub(crate) mod random;
mod scripts;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rusqlite::{Connection, params};

use self::prose::Prose;
use self::random::Random;
use self::scripts::{Script, Scripts};

/// The version of the generator: databases of another version are not used again.
const GENERATOR: u32 = 2;

const SCHEMA: &str = "
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -200000;
    CREATE TABLE conversations(
        id TEXT PRIMARY KEY, create_time TEXT, update_time TEXT, title TEXT);
    CREATE TABLE messages(
        id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, role TEXT, content TEXT,
        create_time TEXT, update_time TEXT, position INTEGER NOT NULL);";

/// The most bytes of a message, but for its last sentence.
const LONGEST: usize = 100_000;

const START: f64 = 1_672_531_200.0; // 2023-01-01
const SPAN: f64 = 3.0 * 365.0 * 86_400.0;

/// Returns the database of `messages` messages in `folder`; generates it if there is none.
pub(crate) fn database(folder: &Path, messages: usize) -> Result<PathBuf> {
    let path = folder.join(format!("corpus-{GENERATOR}-{messages}.db"));
    if !path.exists() {
        let unfinished = path.with_extension("unfinished");
        let _ = fs::remove_file(&unfinished);
        generate(&unfinished, messages).with_context(|| format!("writing {}", path.display()))?;
        fs::rename(&unfinished, &path)?;
    }
    Ok(path)
}

fn generate(path: &Path, messages: usize) -> Result<()> {
    let mut random = Random::new(42);
    let writer = Writer { prose: Prose::new(&mut random), scripts: Scripts::new(&mut random) };
    let mut connection = Connection::open(path)?;
    connection.execute_batch(SCHEMA)?;
    let transaction = connection.transaction()?;
    {
        let mut add_conversation =
            transaction.prepare("INSERT INTO conversations VALUES (?, ?, ?, ?)")?;
        let mut add_message =
            transaction.prepare("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)")?;
        let mut content = String::new();
        for conversation in plan(messages, &mut random) {
            let id = uuid(&mut random);
            let script = script(&mut random);
            let title = writer.title(script, &mut random);
            let mut time = conversation.start;
            for position in 0..conversation.messages {
                let role = role(position, &mut random);
                content.clear();
                writer.message(role, script, &mut random, &mut content);
                let stamp = format!("{time:.6}");
                let text = content.trim_end();
                let message = uuid(&mut random);
                add_message.execute(params![
                    message,
                    id,
                    role,
                    text,
                    stamp,
                    stamp,
                    position as i64
                ])?;
                time += random.log_normal(25.0, 1.2) + random.unit();
            }
            let (first, last) = (format!("{:.6}", conversation.start), format!("{time:.6}"));
            add_conversation.execute(params![id, first, last, title])?;
        }
    }
    transaction.execute_batch("CREATE INDEX messages_conversation ON messages(conversation_id)")?;
    transaction.commit()?;
    Ok(())
}

struct Planned {
    start: f64,
    messages: usize,
}

/// Returns conversations of `messages` messages in all, the newest first, as exports have them.
fn plan(messages: usize, random: &mut Random) -> Vec<Planned> {
    let mut planned = Vec::new();
    let mut left = messages;
    while left > 0 {
        let length = (random.log_normal(12.2, 0.8) as usize).clamp(1, 400).min(left);
        left -= length;
        // Recent times have more messages.
        let start = START + random.unit().powf(0.8) * SPAN;
        planned.push(Planned { start, messages: length });
    }
    planned.sort_by(|one, other| other.start.total_cmp(&one.start));
    planned
}

fn script(random: &mut Random) -> Script {
    match random.below(1_000) {
        0..120 => Script::Chinese,
        120..128 => Script::Japanese,
        128..136 => Script::Korean,
        136..144 => Script::Cyrillic,
        _ => Script::Latin,
    }
}

fn role(position: usize, random: &mut Random) -> &'static str {
    match random.below(100) {
        0..16 if position == 0 => "system",
        0 => "tool",
        1..5 => "assistant",
        _ if position % 2 == 1 => "assistant",
        _ => "user",
    }
}

/// Returns the bytes of a message. Most are short turns, a few are very long: two log-normal laws, of which
/// `share` is that of the second.
fn length(role: &str, random: &mut Random) -> usize {
    let (share, short, long) = match role {
        "user" => (0.003, (45.0, 0.7), (1_300.0, 1.3)),
        "assistant" => (0.12, (52.0, 0.8), (340.0, 1.85)),
        _ => (0.4, (100.0, 0.8), (800.0, 1.1)),
    };
    let (median, sigma) = if random.chance(share) { long } else { short };
    (random.log_normal(median, sigma) as usize).clamp(2, LONGEST)
}

fn uuid(random: &mut Random) -> String {
    let mut text = String::with_capacity(36);
    code::uuid(random, &mut text);
    text
}

struct Writer {
    prose: Prose,
    scripts: Scripts,
}

impl Writer {
    fn title(&self, script: Script, random: &mut Random) -> String {
        let mut title = String::new();
        let words = random.between(3, 6);
        if script == Script::Latin {
            self.prose.phrase(words, true, random, &mut title);
        } else {
            self.scripts.sentence(script, words, random, &mut title);
        }
        title.trim_end_matches(['。', '.', ' ']).to_owned()
    }

    /// Appends a message as `role` would write it: prose, and in long ones code, tables and output too.
    fn message(&self, role: &str, script: Script, random: &mut Random, out: &mut String) {
        // A character of other scripts takes more bytes.
        let length = match length(role, random) {
            bytes if script == Script::Latin => bytes,
            bytes => (bytes * 3 / 2).min(LONGEST),
        };
        let (code, output) = match role {
            "tool" => (0.2, 0.6),
            _ if length > 1_000 => (0.18, 0.08),
            _ => (0.02, 0.02),
        };
        while out.len() < length {
            let left = length - out.len();
            let bytes = left.min(random.log_normal(400.0, 1.0) as usize);
            match random.unit() {
                kind if kind < code && left > 80 => code::block(&self.prose, bytes, random, out),
                kind if kind < code + output && left > 80 => {
                    code::output(&self.prose, bytes, random, out);
                }
                kind if kind > 0.94 => code::particular(&self.prose, random, out),
                _ => self.sentence(role, script, left, random, out),
            }
        }
    }

    /// Appends a sentence of at most about `bytes` bytes, and what comes before and after it.
    fn sentence(
        &self,
        role: &str,
        script: Script,
        bytes: usize,
        random: &mut Random,
        out: &mut String,
    ) {
        if role == "assistant" {
            match random.below(60) {
                0 => out.push_str("\n\n## "),
                1..=4 => out.push_str("\n- "),
                5 | 6 => out.push_str("\n1. "),
                7 => out.push_str("\n- **"),
                _ => {}
            }
        }
        let words = (random.log_normal(13.0, 0.5) as usize).clamp(1, 40);
        let start = out.len();
        if script == Script::Latin || random.chance(0.04) {
            self.prose.sentence(words.min(bytes / 6), random, out);
        } else {
            self.scripts.sentence(script, words.min(bytes / 8 + 1), random, out);
        }
        if out[..start].ends_with("**") {
            out.push_str("**");
        }
        if random.chance(if role == "assistant" { 0.008 } else { 0.004 }) {
            out.push(' ');
            out.push_str(self.scripts.emoji(random));
        }
        out.push_str(match random.below(25) {
            0..=2 => "\n\n",
            3 => "\n",
            _ => " ",
        });
    }
}
