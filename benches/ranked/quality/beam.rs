//! BEAM's chats and questions as published (a folder of `chats/` of mohammadtavakoli78/BEAM).
//!
//! The folder of a chat has `chat.json`, batches of turns of messages, and
//! `probing_questions/probing_questions.json`, lists of questions by their kind. `source_chat_ids` of a
//! question are the numbers of the messages that answer, in lists or objects.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::corpus::{self, EvalMessage, EvalQuery, EvalSet};
use super::{read_text, wrong_form};

const CHAT: &str = "chat.json";

#[derive(Deserialize)]
struct BeamBatch {
    turns: Vec<Vec<BeamMessage>>,
}

#[derive(Deserialize)]
struct BeamMessage {
    id: u64,
    role: String,
    content: String,
    time_anchor: Option<Value>,
}

#[derive(Deserialize)]
struct BeamQuestion {
    question: String,
    #[serde(default)]
    source_chat_ids: Value,
}

/// Returns the folders of chats: `folder` or folders in it, in the order of their numbers.
pub(crate) fn chats(folder: &Path) -> Vec<PathBuf> {
    if folder.join(CHAT).is_file() {
        return vec![folder.to_owned()];
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut chats: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join(CHAT).is_file()).collect();
    chats.sort_by_cached_key(|chat| (name(chat).parse::<u32>().unwrap_or(u32::MAX), name(chat)));
    chats
}

fn name(chat: &Path) -> String {
    chat.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Adds a chat and its questions to `set`. The chat is a conversation.
pub(crate) fn read(chat: &Path, set: &mut EvalSet) -> Result<()> {
    let name = name(chat);
    let mut known = HashSet::new();
    for batch in read_json::<Vec<BeamBatch>>(&chat.join(CHAT))? {
        let mut time = None;
        for message in batch.turns.into_iter().flatten() {
            time = message.time_anchor.as_ref().and_then(corpus::time).or(time);
            // What follows the arrow numbers the message in the plan of the chat.
            let (text, _) = message.content.split_once("->->").unwrap_or((&message.content, ""));
            let (id, text) = (id(&name, message.id), text.trim_end().to_owned());
            set.corpus.add(&name, EvalMessage { id, speaker: message.role, text, time });
            known.insert(message.id);
        }
    }
    let questions = chat.join("probing_questions").join("probing_questions.json");
    let questions = read_json::<BTreeMap<String, Vec<BeamQuestion>>>(&questions)?;
    for BeamQuestion { question, source_chat_ids } in questions.into_values().flatten() {
        let mut sources = HashSet::new();
        collect_numbers(&source_chat_ids, &mut sources);
        let relevant = sources.intersection(&known).map(|source| id(&name, *source)).collect();
        set.queries.push(EvalQuery { text: question, conversations: vec![name.clone()], relevant });
    }
    Ok(())
}

fn id(name: &str, number: u64) -> String {
    format!("{name}/{number}")
}

fn collect_numbers(value: &Value, numbers: &mut HashSet<u64>) {
    match value {
        Value::Number(number) => numbers.extend(number.as_u64()),
        Value::Array(values) => values.iter().for_each(|value| collect_numbers(value, numbers)),
        Value::Object(object) => object.values().for_each(|value| collect_numbers(value, numbers)),
        _ => {}
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_str(&read_text(path)?).map_err(|error| wrong_form(path, "BEAM", error))
}
