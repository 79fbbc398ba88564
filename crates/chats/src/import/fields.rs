//! Reads times, file names and ids. Several formats use these functions.

use std::{borrow::Cow, collections::VecDeque};

use super::json::{Damage, ObjectFields, Raw};
use super::tool::joined;
use verbatim_base::model::{Instant, Message};
use verbatim_text::{date, hash::Fnv1a};

/// Parses a time in an export, given as a number or as a text.
pub(super) fn time(raw: Raw<'_>) -> Option<Instant> {
    date::from_stored(&raw.text()?)
}

/// Returns the first of these fields that is not blank.
pub(super) fn own_id(fields: &ObjectFields<'_>, names: [&str; 3]) -> Option<String> {
    names
        .into_iter()
        .find_map(|name| fields.text(name).filter(|id| !id.trim().is_empty()))
        .map(Cow::into_owned)
}

/// The name of a file that has none.
const UNNAMED: &str = "file";

/// Returns the names in a list of files; [`UNNAMED`] for a file without a name.
pub(super) fn names(list: Raw<'_>, fields: &[&str]) -> Result<Vec<String>, Damage> {
    let mut names = Vec::new();
    for item in list.items()? {
        let file = item.fields()?;
        let name = fields.iter().find_map(|field| file.text(field)).or_else(|| item.string());
        names
            .push(name.filter(|name| !name.is_empty()).map_or(UNNAMED.to_owned(), Cow::into_owned));
    }
    Ok(names)
}

/// Returns a message's text with a line for each of its files that the text does not name.
pub(super) fn with_files(mut text: String, names: &[String]) -> String {
    let is_only_files = text.trim().is_empty();
    let lines: Vec<String> = names
        .iter()
        .filter(|name| is_only_files || name.as_str() != UNNAMED && !text.contains(name.as_str()))
        .map(|name| format!("[file: {name}]"))
        .collect();
    if !lines.is_empty() {
        let before = if is_only_files { "" } else { text.trim_end() };
        text = joined("\n\n", &[before, &lines.join("\n")]);
    }
    text
}

/// Returns an id for a conversation without an id. Every import gets the same id.
pub(super) fn derive_id(
    time: Option<Instant>,
    title: Option<&str>,
    messages: &[Message],
) -> String {
    let first = messages.first();
    let time = time.map(Instant::to_decimal).unwrap_or_default();
    let title = if time.is_empty() { title.unwrap_or_default() } else { "" };
    let texts = [
        time.as_str(),
        title,
        first.map_or("", |message| message.id.as_str()),
        first.map_or("", |message| message.content.as_str()),
    ];
    format!("conversation-{:016x}", derived_hash(&texts))
}

/// Returns a hash of the words of a text. White space and placeholders of pictures do not count, because two
/// records of the same prompt may differ in them.
pub(super) fn hash_of_words(role: &str, text: &str) -> u64 {
    let words = text.replace("[image]", "");
    let words: String = words.split_whitespace().collect();
    derived_hash(&[role, &words])
}

/// Adds to a queue, and drops the oldest item if there are more than `most`.
pub(super) fn push_within<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    queue.push_back(item);
    if queue.len() > most {
        queue.pop_front();
    }
}

pub(super) fn derived_hash(texts: &[&str]) -> u64 {
    let mut hash = Fnv1a::default();
    for text in texts {
        hash.write(text.as_bytes());
        // The boundaries between texts count too.
        hash.write(&[0]);
    }
    hash.finish()
}
