//! The messages and questions of an evaluation, read from lines of JSON.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use serde_json::{Map, Value};

use super::error::Error;
use verbatim_base::model::{Conversation, Instant, Message};
use verbatim_engine::Writer;
use verbatim_text::date::{self, Edge};

/// The maximum number of roles. With more speakers, every role is `user`, and texts begin with the
/// speaker's name.
const MOST_SPEAKERS: usize = 200;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The messages of a corpus by conversation. The database uses numbers as ids, because ids in a
/// corpus may repeat or differ only in case.
pub(super) struct Corpus {
    ids: Vec<String>,
    places: HashMap<String, usize>,
    conversations: Vec<Conversation>,
}

/// A question with its known answers.
pub(super) struct EvalQuery {
    pub(super) text: String,
    pub(super) conversation: Option<String>,
    pub(super) relevant: HashSet<String>,
}

/// Calls `each` with the number and the JSON object of every line. Skips blank lines.
fn lines(
    path: &Path,
    mut each: impl FnMut(usize, Map<String, Value>) -> Result<(), Error>,
) -> Result<(), Error> {
    let failed = |error| Error::Read { path: path.to_owned(), error };
    let mut input = BufReader::new(File::open(path).map_err(failed)?);
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            return Ok(());
        }
        number += 1;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_start_matches('\u{FEFF}').trim();
        if text.is_empty() {
            continue;
        }
        let wrong = |reason| Error::Line { path: path.to_owned(), line: number, reason };
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => each(number, object)?,
            Ok(_) => return Err(wrong("not a JSON object".to_owned())),
            Err(error) => return Err(wrong(error.to_string())),
        }
    }
}

/// Returns the first field of `object` with one of these names, as text.
fn field(object: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| text(object.get(*name)?))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) fn read(path: &Path) -> Result<Corpus, Error> {
    let mut corpus = Corpus { ids: Vec::new(), places: HashMap::new(), conversations: Vec::new() };
    let mut speakers = HashSet::new();
    lines(path, |line, object| {
        let Some(id) = field(&object, &["id"]) else {
            let reason = "no \"id\"".to_owned();
            return Err(Error::Line { path: path.to_owned(), line, reason });
        };
        let name = field(&object, &["conversation"]).unwrap_or_default();
        let next = corpus.conversations.len();
        let place = *corpus.places.entry(name).or_insert(next);
        if place == next {
            let id = format!("conversation-{next}");
            corpus.conversations.push(Conversation { id, ..Conversation::default() });
        }
        let role = field(&object, &["speaker", "role"]).unwrap_or_default();
        let plain = role.to_lowercase();
        let is_plain = matches!(plain.as_str(), "user" | "assistant" | "tool" | "system");
        let role = if is_plain { plain } else { role };
        speakers.insert(role.clone());
        corpus.conversations[place].messages.push(Message {
            id: corpus.ids.len().to_string(),
            role,
            content: field(&object, &["text", "content"]).unwrap_or_default(),
            create_time: object.get("time").and_then(time),
            ..Message::default()
        });
        corpus.ids.push(id);
        Ok(())
    })?;
    if corpus.ids.is_empty() {
        return Err(Error::Empty { path: path.to_owned(), what: "no messages" });
    }
    if speakers.len() > MOST_SPEAKERS {
        for message in corpus.conversations.iter_mut().flat_map(|one| &mut one.messages) {
            let speaker = std::mem::replace(&mut message.role, "user".to_owned());
            message.content.insert_str(0, &format!("{speaker}: "));
        }
    }
    Ok(corpus)
}

pub(super) fn queries(path: &Path) -> Result<Vec<EvalQuery>, Error> {
    let mut queries = Vec::new();
    lines(path, |line, object| {
        let Some(text) = field(&object, &["text", "query"]) else {
            let reason = "no \"text\"".to_owned();
            return Err(Error::Line { path: path.to_owned(), line, reason });
        };
        let ids = object.get("relevant").and_then(Value::as_array).into_iter().flatten();
        let relevant = ids.filter_map(self::text).collect();
        let conversation = field(&object, &["conversation"]);
        queries.push(EvalQuery { text, conversation, relevant });
        Ok(())
    })?;
    if queries.is_empty() {
        return Err(Error::Empty { path: path.to_owned(), what: "no questions" });
    }
    Ok(queries)
}

impl Corpus {
    pub(super) fn messages(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn conversations(&self) -> usize {
        self.conversations.len()
    }

    /// Returns the database id of a conversation of the corpus.
    pub(super) fn conversation(&self, name: &str) -> Option<String> {
        Some(self.conversations[*self.places.get(name)?].id.clone())
    }

    /// Returns the corpus id of a message of the database.
    pub(super) fn id(&self, message: &str) -> Option<&str> {
        self.ids.get(message.parse::<usize>().ok()?).map(String::as_str)
    }

    /// Writes the messages into a database.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let mut writer = Writer::open(path)?;
        for conversation in &self.conversations {
            writer.put("eval", conversation)?;
        }
        writer.finish()?;
        Ok(())
    }
}

/// Reads a time: seconds or milliseconds since 1970, ISO 8601, or words with a day, a month and a
/// year, such as "1:56 pm on 8 May, 2023". Only the order of times matters.
fn time(value: &Value) -> Option<Instant> {
    let seconds =
        |number: f64| date::from_number(if number.abs() > 1e11 { number / 1e3 } else { number });
    match value {
        Value::Number(number) => seconds(number.as_f64()?),
        Value::String(text) => {
            let text = text.trim();
            date::parse_iso(text, Edge::Start)
                .or_else(|| date::parse_iso(&text.replace('/', "-"), Edge::Start))
                .or_else(|| text.parse().ok().and_then(seconds))
                .or_else(|| in_words(text))
        }
        _ => None,
    }
}

fn in_words(text: &str) -> Option<Instant> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != ':').collect();
    let number = |word: &str| {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        digits.parse::<u32>().ok()
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_come() {
        for (value, expected) in [
            (Value::from("1:56 pm on 8 May, 2023"), Some("2023-05-08T13:56:00Z")),
            (Value::from("May 8th 2023"), Some("2023-05-08T00:00:00Z")),
            (Value::from("12:05 am, 1 January 2024"), Some("2024-01-01T00:05:00Z")),
            (Value::from("2023-05-08T13:56:00Z"), Some("2023-05-08T13:56:00Z")),
            (Value::from("2023/05/08"), Some("2023-05-08T00:00:00Z")),
            (Value::from(1_683_554_160), Some("2023-05-08T13:56:00Z")),
            (Value::from(1_683_554_160_000i64), Some("2023-05-08T13:56:00Z")),
            (Value::from("the day after"), None),
            (Value::Null, None),
        ] {
            let found = time(&value).and_then(date::to_iso);
            let same = match (found.as_deref(), expected) {
                (Some(found), Some(expected)) => found.starts_with(&expected[..19]),
                (found, expected) => found == expected,
            };
            assert!(same, "{value}: {found:?}");
        }
    }
}
