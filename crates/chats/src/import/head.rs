//! The events and the head (title, session, project) of a transcript, for the readers of all formats.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};

use super::inline::InlineFile;
use super::json::{Damage, ObjectFields, Value};
use super::plain::{is_encoded, plain};
use super::tool::lines;
use verbatim_base::model::{Instant, Message};
use verbatim_text::{screen, snippet};

const LONGEST_TITLE: usize = 100;

/// The maximum number of unknown kinds that are counted separately, and the maximum number of
/// characters of a kind.
const MOST_UNKNOWN: usize = 20;
const LONGEST_KIND: usize = 60;

const MOST_FOLDERS: usize = 100;

/// The fields with the text of a record of an unknown kind. Agents write many other fields for their own use.
const TEXTS: [&str; 17] = [
    "answer",
    "answers",
    "body",
    "content",
    "error",
    "message",
    "output",
    "parts",
    "prompt",
    "question",
    "questions",
    "reasoning",
    "result",
    "stderr",
    "stdout",
    "text",
    "thinking",
];

/// An event of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum TranscriptEvent {
    /// A message begins. If its id begins with `/`, the conversation's id must be put before the slash.
    Message(Message),
    /// An earlier message, which has this id, continues.
    More {
        /// The id of the message that continues.
        id: String,
        /// The text to append to the message, as it is.
        text: String,
    },
    /// A file of the message with this id. Its name may be empty.
    File {
        /// The id of the message.
        message: String,
        /// The name of the file; empty if the record has none.
        name: String,
        /// The content of the file in base64.
        base64: String,
    },
}

impl TranscriptEvent {
    pub(super) fn clean(&mut self) {
        match self {
            TranscriptEvent::Message(Message { content: text, .. })
            | TranscriptEvent::More { text, .. } => clean(text),
            TranscriptEvent::File { .. } => {}
        }
    }

    pub(super) fn files(
        message: &str,
        files: Vec<InlineFile>,
    ) -> impl Iterator<Item = TranscriptEvent> {
        files.into_iter().map(move |InlineFile { name, base64 }| TranscriptEvent::File {
            message: message.to_owned(),
            name,
            base64,
        })
    }
}

pub(super) fn clean(text: &mut String) {
    if let Cow::Owned(plain) = screen::written(text) {
        *text = plain;
    }
}

/// The data of a transcript as a whole: its session, its title, its project.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Head {
    /// The first session that the transcript names.
    pub(super) session: Option<String>,
    /// Whether the transcript names another session later.
    #[serde(default)]
    pub(super) has_later_session: bool,
    pub(super) agent: Option<String>,
    /// The parent session. The transcript may repeat its beginning.
    pub(super) parent: Option<String>,
    /// The session that started this transcript's session as an agent.
    pub(super) spawner: Option<String>,
    pub(super) folder: Option<String>,
    /// The working folders to which the session changed later, each once.
    #[serde(default)]
    pub(super) later_folders: Vec<String>,
    /// The last branch that was checked out.
    pub(super) branch: Option<String>,
    /// The model that answered last.
    pub(super) model: Option<String>,
    pub(super) given_title: Option<String>,
    /// The title that a program gave.
    pub(super) made_title: Option<String>,
    prompt: Option<String>,
    /// A title from a prompt that may not be the user's words to the model.
    #[serde(default)]
    command: Option<String>,
    /// A title that is used only if there is no other. It may belong to another conversation.
    pub(super) last_resort: Option<String>,
    #[serde(with = "instant")]
    pub(super) time: Option<Instant>,
    /// Unknown kinds of records and other content with text, with their counts.
    #[serde(default)]
    pub(super) unknown: BTreeMap<String, u64>,
    /// Phrases for content that was left out on purpose, with their counts.
    #[serde(default)]
    pub(super) left_out: BTreeMap<String, u64>,
}

/// The phrase for notes that an agent wrote for its model.
pub(super) const NOTES_LEFT_OUT: &str = "notes of Claude Code to the model";

/// The phrase for agents that a program started for itself.
pub const HELPERS_LEFT_OUT: &str =
    "helpers of agents, which no person saw, such as suggestions of prompts and summaries";

impl Head {
    /// Makes the title from a prompt, if it is the first one with words to the model: not a command, a picture
    /// or an element that a program wrote. A command with words, or an element, is the title if there is no
    /// such prompt.
    pub(super) fn prompt(&mut self, text: &str) {
        if self.prompt.is_none() {
            let text = screen::written(text);
            let words = text.split_whitespace().filter(|word| *word != "[image]");
            let line = words.collect::<Vec<_>>().join(" ");
            let is_command = is_command(&line);
            if line.is_empty() || line.starts_with("! ") || is_command && !line.contains(' ') {
                return;
            }
            let is_said = !is_command && !is_element(&line);
            let title = if is_said { &mut self.prompt } else { &mut self.command };
            set_first(title, Some(snippet::shortened(&line, LONGEST_TITLE)));
        }
    }

    /// Returns a message with the time of the last record.
    pub(super) fn message(&self, id: String, role: &str, content: String, line: u32) -> Message {
        Message {
            id,
            role: role.to_owned(),
            content,
            create_time: self.time,
            line: Some(line),
            ..Message::default()
        }
    }

    pub(super) fn unknown(&mut self, kind: &str) {
        let kind = if kind.is_empty() { "(no type)" } else { kind };
        let kind: String = kind.chars().take(LONGEST_KIND).collect();
        let is_counted = self.unknown.contains_key(&kind) || self.unknown.len() < MOST_UNKNOWN;
        *self.unknown.entry(if is_counted { kind } else { "others".to_owned() }).or_default() += 1;
    }

    pub(super) fn folder(&mut self, folder: &str) {
        match &self.folder {
            _ if folder.is_empty() => {}
            None => self.folder = Some(folder.to_owned()),
            Some(first) if first == folder => {}
            Some(_) if self.later_folders.len() >= MOST_FOLDERS => {}
            Some(_) if self.later_folders.iter().any(|known| known == folder) => {}
            Some(_) => self.later_folders.push(folder.to_owned()),
        }
    }

    pub(super) fn left_out(&mut self, what: &str) {
        *self.left_out.entry(what.to_owned()).or_default() += 1;
    }

    /// Counts a record of an unknown kind, and returns its text.
    pub(super) fn unknown_record(
        &mut self,
        kind: &str,
        fields: &ObjectFields<'_>,
    ) -> Result<String, Damage> {
        self.unknown(kind);
        let fields = fields.iter().map(|(name, field)| Ok((name.to_owned(), field.value()?)));
        Ok(Head::words(&Value::Object(fields.collect::<Result<_, Damage>>()?)))
    }

    /// Returns the text of a value of an unknown kind.
    pub(super) fn words(value: &Value) -> String {
        let mut texts = Vec::new();
        let name = if matches!(value, Value::Object(_)) { "" } else { TEXTS[0] };
        add_texts(name, value, &mut texts);
        if texts.is_empty() {
            add_sentences(name, value, &mut texts);
        }
        lines(&texts)
    }

    pub(super) fn forget_titles(&mut self) {
        (self.given_title, self.made_title, self.command, self.last_resort) = Default::default();
        // Keeps an empty prompt, so that no later prompt becomes the title.
        self.prompt = self.prompt.take().map(|_| String::new());
    }

    pub(super) fn title(&self) -> Option<&String> {
        let Head { given_title, made_title, prompt, command, last_resort, .. } = self;
        let titles = [given_title, made_title, prompt, command, last_resort];
        titles.into_iter().find_map(Option::as_ref)
    }
}

/// Returns whether a prompt begins with the name of a command, and not with a path.
fn is_command(line: &str) -> bool {
    let name = line.split(' ').next().and_then(|word| word.strip_prefix('/'));
    name.is_some_and(|name| {
        name.chars().all(|c| c.is_alphanumeric() || matches!(c, ':' | '-' | '_'))
    })
}

/// Returns whether a text is one element, from its first to its last tag. Programs put such texts in the user's
/// place.
fn is_element(line: &str) -> bool {
    let name = line.strip_prefix('<').and_then(|rest| rest.split(['>', ' ']).next());
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && line.ends_with(&format!("</{name}>"))
    })
}

/// Adds the texts in the fields of a value that have the names of [`TEXTS`], each once. Recursion is safe, because
/// the depth of a [`Value`] is bounded.
fn add_texts(name: &str, value: &Value, texts: &mut Vec<String>) {
    let text = match value {
        Value::String(text) if text.contains(char::is_whitespace) || !is_encoded(text) => {
            text.clone()
        }
        Value::Null | Value::Scalar(_) | Value::String(_) => return,
        value if TEXTS.contains(&name) => plain(value, true),
        Value::Object(fields) => {
            return fields.iter().for_each(|(name, value)| add_texts(name, value, texts));
        }
        value => return value.items().iter().for_each(|value| add_texts(name, value, texts)),
    };
    if TEXTS.contains(&name) && !text.trim().is_empty() && !texts.contains(&text) {
        texts.push(text);
    }
}

/// The fields whose texts are no words of anyone.
const NO_TEXTS: [&str; 8] =
    ["cwd", "gitBranch", "git_branch", "path", "slug", "timestamp", "type", "version"];

/// Adds the strings of a value that have white space, each once, whatever the names of their fields. Recursion is
/// safe, because the depth of a [`Value`] is bounded.
fn add_sentences(name: &str, value: &Value, texts: &mut Vec<String>) {
    let is_id = ["id", "Id", "ID"].iter().any(|end| name.ends_with(end));
    match value {
        _ if is_id || NO_TEXTS.contains(&name) => {}
        Value::String(text)
            if text.trim().contains(char::is_whitespace) && !texts.contains(text) =>
        {
            texts.push(text.clone());
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| add_sentences(name, value, texts));
        }
        Value::Array(items) => items.iter().for_each(|item| add_sentences(name, item, texts)),
        _ => {}
    }
}

/// Sets `known` to `new` if `known` has no value and `new` is not empty.
pub(super) fn set_first(known: &mut Option<String>, new: Option<impl Into<String>>) {
    if known.is_none() {
        set_last(known, new);
    }
}

/// Replaces a value, unless the new value is empty.
pub(super) fn set_last(known: &mut Option<String>, new: Option<impl Into<String>>) {
    if let Some(new) = new.map(Into::into).filter(|new| !new.is_empty()) {
        *known = Some(new);
    }
}

/// Returns the name of the project in a folder: the name of the folder, or of the repository that a
/// work tree belongs to.
pub fn project(folder: &str) -> Option<&str> {
    let parts: Vec<&str> = folder.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let trees = parts.iter().position(|part| matches!(*part, ".worktrees" | "worktrees"));
    let inner = trees.map(|at| match at.checked_sub(1).map(|before| parts[before]) {
        Some(".claude" | ".git") => at - 1,
        _ => at,
    });
    let end = inner.filter(|end| *end > 0).unwrap_or(parts.len());
    end.checked_sub(1).map(|last| parts[last])
}

/// Returns the UUID that a file's name ends with.
pub(super) fn ending_uuid(stem: &str) -> Option<&str> {
    let start = stem.len().checked_sub(36)?;
    stem.get(start..).filter(|uuid| is_uuid(uuid))
}

pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Serialises instants as two numbers.
mod instant {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use verbatim_base::model::Instant;

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Instant>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| (time.seconds, time.nanos)).serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Option<Instant>, D::Error> {
        let time = Option::<(i64, u32)>::deserialize(deserializer)?;
        Ok(time.map(|(seconds, nanos)| Instant { seconds, nanos }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_by_folder() {
        for (folder, expected) in [
            ("/home/ann/code/verbatim", "verbatim"),
            ("/home/ann/code/verbatim/", "verbatim"),
            ("C:\\code\\verbatim", "verbatim"),
            ("/home/ann/verbatim/.worktrees/streams", "verbatim"),
            ("/home/ann/verbatim/.claude/worktrees/streams/src", "verbatim"),
            ("/worktrees/a", "a"),
        ] {
            assert_eq!(project(folder), Some(expected), "{folder}");
        }
        assert_eq!(project("/"), None);
    }

    #[test]
    fn titles() {
        let mut head = Head::default();
        for passed_over in ["  ", "/clear", "! ls -l", "[image]\n[image]"] {
            head.prompt(passed_over);
        }
        assert_eq!(head.title(), None);
        for fallback in ["/model haiku", "<tick at='9'>Go on</tick>", "/plan the garden"] {
            head.prompt(fallback);
            assert_eq!(head.title().unwrap(), "/model haiku");
        }
        head.prompt(&format!("Why\n does {}", "it ".repeat(100)));
        assert!(head.title().unwrap().starts_with("Why does it it"));
        assert_eq!(head.title().unwrap().chars().count(), LONGEST_TITLE + 1);
        head.prompt("another");
        assert!(head.title().unwrap().starts_with("Why"));
        let mut head = Head::default();
        for path in ["/home/ann/a.rs is cut", "<b>bold</b> words"] {
            head = Head::default();
            head.prompt(path);
            assert!(head.prompt.is_some(), "{path}");
        }
        head.prompt("/model haiku");
        assert_eq!(head.command, None);
    }
}
