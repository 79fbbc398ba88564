//! What memory has to say to a text: the passages that share most of its words.

use std::{collections::BTreeMap, ops::ControlFlow};

use super::{Engine, Error, SourceKind};
use crate::{
    model::{Hit, Instant, Request, Stop},
    text::snippet,
};

/// Words of a text that are looked for, the longest, which are the rarest.
const WORDS: usize = 8;

/// Characters that a word has at least, unless it is written without spaces.
const SHORTEST: usize = 4;

/// Messages looked at for each word, the newest.
const EACH: usize = 200;

/// Characters shown of a passage, and how many of them come before its first word.
const PASSAGE: usize = 300;
const BEFORE: usize = 60;

/// A passage that bears on a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// Where it is from.
    pub source: SourceKind,
    /// The id of its conversation.
    pub conversation: String,
    /// The title of its conversation.
    pub title: String,
    /// Who wrote it.
    pub role: String,
    /// When.
    pub time: Option<Instant>,
    /// Its text, on one line.
    pub passage: String,
    /// How well it answers, 0 to 1.
    pub score: f64,
}

impl Engine {
    /// Returns the passages of some sources that bear on a text, the best first.
    pub(super) fn recall(
        &self,
        text: &str,
        sources: &[SourceKind],
        limit: usize,
        stop: &Stop,
    ) -> Result<Vec<Recalled>, Error> {
        let words = words(text);
        let mut found: BTreeMap<(usize, String, String), (Hit, usize)> = BTreeMap::new();
        for source in self.sources() {
            let Some(place) = sources.iter().position(|kind| *kind == source.kind) else {
                continue;
            };
            for word in &words {
                let request =
                    Request { text: word.clone(), limit: Some(EACH), ..Request::default() };
                self.exact_in(&source, &request, stop, &mut |hit| {
                    let key = (place, hit.conversation_id.clone(), hit.message_id.clone());
                    found.entry(key).or_insert_with(|| (hit, 0)).1 += 1;
                    ControlFlow::Continue(())
                })?;
            }
        }
        let mut found: Vec<(usize, Hit, usize)> =
            found.into_iter().map(|((place, ..), (hit, count))| (place, hit, count)).collect();
        found.sort_by(|(_, a, x), (_, b, y)| y.cmp(x).then(b.time.cmp(&a.time)));
        let recalled = |(place, hit, count): (usize, Hit, usize)| Recalled {
            source: sources[place],
            passage: passage(&hit.content, &words),
            conversation: hit.conversation_id,
            title: hit.title,
            role: hit.role,
            time: hit.time,
            score: count as f64 / words.len() as f64,
        };
        Ok(found.into_iter().take(limit).map(recalled).collect())
    }
}

/// Returns the words of a text that are worth looking for; all of them where none is.
fn words(text: &str) -> Vec<String> {
    let mut all: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().take(64).collect::<String>().to_ascii_lowercase())
        .take(10_000)
        .collect();
    all.sort();
    all.dedup();
    let is_long = |word: &String| word.chars().count() >= SHORTEST || !word.is_ascii();
    if all.iter().any(is_long) {
        all.retain(is_long);
    }
    all.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    all.truncate(WORDS);
    all
}

/// Returns what surrounds the first of the words that a text has.
fn passage(content: &str, words: &[String]) -> String {
    let lower = content.to_ascii_lowercase();
    let at = words.iter().filter_map(|word| lower.find(word.as_str())).min().unwrap_or(0);
    let back = content[..at].char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    let rest = &content[back..];
    let (text, last) = match snippet::cut(rest, PASSAGE) {
        Some(start) => (start, "…"),
        None => (rest, ""),
    };
    let first = if back > 0 { "…" } else { "" };
    format!("{first}{}{last}", text.split_whitespace().collect::<Vec<_>>().join(" "))
}
