//! The messages and questions of an evaluation.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use verbatim_base::model::{Conversation, Instant, Message};
use verbatim_engine::Writer;
use verbatim_text::date::{self, Edge};

/// The maximum number of roles. With more speakers, every role is `user`, and texts begin with the
/// speaker's name.
const MOST_SPEAKERS: usize = 200;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

#[derive(Default)]
pub(crate) struct EvalSet {
    pub(crate) corpus: Corpus,
    pub(crate) queries: Vec<EvalQuery>,
}

/// The messages of a corpus by conversation. The database uses numbers as ids, because ids in a
/// corpus may repeat or differ only in case.
#[derive(Default)]
pub(crate) struct Corpus {
    ids: Vec<String>,
    places: HashMap<String, usize>,
    conversations: Vec<Conversation>,
}

/// A message of a corpus. `speaker` is a role or a name.
pub(crate) struct EvalMessage {
    pub(crate) id: String,
    pub(crate) speaker: String,
    pub(crate) text: String,
    pub(crate) time: Option<Instant>,
}

pub(crate) struct EvalQuery {
    pub(crate) text: String,
    /// The names of the conversations that are ranked; empty for all.
    pub(crate) conversations: Vec<String>,
    pub(crate) relevant: HashSet<String>,
}

impl Corpus {
    /// Adds a message at the end of a conversation, which is begun if there is none of this name.
    pub(crate) fn add(&mut self, conversation: &str, message: EvalMessage) {
        let next = self.conversations.len();
        let place = match self.places.get(conversation) {
            Some(place) => *place,
            None => {
                self.places.insert(conversation.to_owned(), next);
                let id = format!("conversation-{next}");
                self.conversations.push(Conversation { id, ..Conversation::default() });
                next
            }
        };
        let plain = message.speaker.to_lowercase();
        let is_plain = matches!(plain.as_str(), "user" | "assistant" | "tool" | "system");
        self.conversations[place].messages.push(Message {
            id: self.ids.len().to_string(),
            role: if is_plain { plain } else { message.speaker },
            content: message.text,
            create_time: message.time,
            ..Message::default()
        });
        self.ids.push(message.id);
    }

    /// Moves the speakers' names into the texts if there are too many of them to be roles.
    pub(crate) fn limit_roles(&mut self) {
        let all = self.conversations.iter().flat_map(|one| &one.messages);
        let roles: HashSet<&str> = all.map(|message| message.role.as_str()).collect();
        if roles.len() > MOST_SPEAKERS {
            for message in self.conversations.iter_mut().flat_map(|one| &mut one.messages) {
                let speaker = std::mem::replace(&mut message.role, "user".to_owned());
                message.content.insert_str(0, &format!("{speaker}: "));
            }
        }
    }

    pub(crate) fn messages(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn conversations(&self) -> usize {
        self.conversations.len()
    }

    pub(crate) fn has(&self, conversation: &str) -> bool {
        self.places.contains_key(conversation)
    }

    /// Returns the database id of a conversation of the corpus.
    pub(crate) fn conversation(&self, name: &str) -> Option<String> {
        Some(self.conversations[*self.places.get(name)?].id.clone())
    }

    /// Returns the corpus id of a message of the database.
    pub(crate) fn id(&self, message: &str) -> Option<&str> {
        self.ids.get(message.parse::<usize>().ok()?).map(String::as_str)
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let mut writer = Writer::open(path)?;
        for conversation in &self.conversations {
            writer.put("eval", conversation)?;
        }
        writer.finish()?;
        Ok(())
    }
}

/// Reads a time: seconds or milliseconds since 1970, ISO 8601, also with slashes and the day of the week,
/// or words with a day, a month and a year, such as "1:56 pm on 8 May, 2023". Only the order of times
/// matters.
pub(crate) fn time(value: &Value) -> Option<Instant> {
    match value {
        Value::Number(number) => from_seconds(number.as_f64()?),
        Value::String(text) => {
            let text = text.trim();
            date::parse_iso(text, Edge::Start)
                .or_else(|| date::parse_iso(&without_weekday(text).replace('/', "-"), Edge::Start))
                .or_else(|| text.parse().ok().and_then(from_seconds))
                .or_else(|| parse_words(text))
        }
        _ => None,
    }
}

fn from_seconds(number: f64) -> Option<Instant> {
    date::from_number(if number.abs() > 1e11 { number / 1e3 } else { number })
}

/// Removes the day of the week from a time like "2023/05/20 (Sat) 02:21".
fn without_weekday(text: &str) -> String {
    let parts =
        text.split_once(" (").and_then(|(date, rest)| Some((date, rest.split_once(')')?.1)));
    parts.map_or_else(|| text.to_owned(), |(date, clock)| format!("{date}{clock}"))
}

/// Parses a number that letters may follow, as in "8th".
fn number(word: &str) -> Option<u32> {
    word.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()
}

fn parse_words(text: &str) -> Option<Instant> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != ':').collect();
    let month = words.iter().find_map(|word| {
        let is_word = word.bytes().all(|byte| byte.is_ascii_alphabetic());
        let start = word.get(..3).filter(|_| is_word)?;
        MONTHS.iter().position(|month| *month == start)
    })? + 1;
    let year =
        words.iter().find_map(|word| number(word).filter(|year| (1900..2200).contains(year)))?;
    let day = words.iter().find_map(|word| number(word).filter(|day| (1..=31).contains(day)))?;
    let clock = words.iter().find_map(|word| {
        let (hour, minute) = word.split_once(':')?;
        let minute = minute.get(..2)?.parse::<u32>().ok()?;
        Some((hour.parse::<u32>().ok()?, minute))
    });
    let (hour, minute) = clock.unwrap_or((0, 0));
    let hour = match (text.contains("pm"), text.contains("am"), hour) {
        (true, _, 1..=11) => hour + 12,
        (false, true, 12) => 0,
        _ => hour,
    };
    let iso = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:00");
    date::parse_iso(&iso, Edge::Start)
}
