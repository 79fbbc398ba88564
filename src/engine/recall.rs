//! What memory has to say to a text: the passages that share most of its words.

use std::{collections::BTreeMap, ops::ControlFlow, time::Duration};

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

/// What a word counts that so many messages have.
const COMMON: f64 = 0.25;

/// How long memory is asked: less than a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Words that say nothing of what a text is about.
const PLAIN: &str = " about after again also although always another because been before being between both \
    cannot could does doing done down during each else ever every from going have having here hers \
    himself into itself just know like made make many maybe more most much must myself need never \
    none only other ours over please said same shall should since some such tell than that their \
    them then there these they thing things think this those though through till today under until \
    upon very want wants well were what when where whether which while whom whose will with within \
    without would yours yourself ";

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
        let within = stop.within(PATIENCE);
        let mut found: BTreeMap<(usize, String, String), (Hit, Vec<usize>)> = BTreeMap::new();
        let mut counts = vec![0; words.len()];
        for source in self.sources() {
            let Some(place) = sources.iter().position(|kind| *kind == source.kind) else {
                continue;
            };
            for (at, word) in words.iter().enumerate() {
                let request =
                    Request { text: word.clone(), limit: Some(EACH), ..Request::default() };
                let asked = self.exact_in(&source, &request, &within, &mut |hit| {
                    counts[at] += 1;
                    let key = (place, hit.conversation_id.clone(), hit.message_id.clone());
                    found.entry(key).or_insert_with(|| (hit, Vec::new())).1.push(at);
                    ControlFlow::Continue(())
                });
                match asked {
                    // A source without an index may take too long: what was found by then counts.
                    Err(error) if error.is_stopped() && !stop.requested() => break,
                    asked => asked.map(drop)?,
                }
            }
        }
        let weight = |at: &usize| if counts[*at] < EACH { 1.0 } else { COMMON };
        let all: f64 = (0..words.len()).map(|at| weight(&at)).sum();
        let mut found: Vec<(f64, usize, Hit)> = found
            .into_iter()
            .map(|((place, ..), (hit, has))| {
                (has.iter().map(weight).sum::<f64>() / all, place, hit)
            })
            .collect();
        found.sort_by(|(x, _, a), (y, _, b)| y.total_cmp(x).then(b.time.cmp(&a.time)));
        let recalled = |(score, place, hit): (f64, usize, Hit)| Recalled {
            source: sources[place],
            passage: passage(&hit.content, &words),
            conversation: hit.conversation_id,
            title: hit.title,
            role: hit.role,
            time: hit.time,
            score,
        };
        Ok(found.into_iter().take(limit).map(recalled).collect())
    }
}

/// Returns the words of a text that are worth looking for; all of them where none is.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut all: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .flat_map(pieces)
        .map(|word| word.chars().take(64).collect::<String>().to_ascii_lowercase())
        .take(10_000)
        .collect();
    all.sort();
    all.dedup();
    let counts = |word: &String| {
        let is_long = word.chars().count() >= SHORTEST || !word.is_ascii();
        is_long && !PLAIN.contains(&format!(" {word} "))
    };
    if all.iter().any(counts) {
        all.retain(counts);
    }
    all.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    all.truncate(WORDS);
    all
}

/// Returns a word, or its pairs of characters where it is written without spaces between words.
fn pieces(word: &str) -> Vec<&str> {
    let spaceless = |c: char| matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}');
    let mut ends: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
    ends.push(word.len());
    if !word.chars().any(spaceless) || ends.len() <= 3 {
        return vec![word];
    }
    ends.windows(3).map(|window| &word[window[0]..window[2]]).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_count() {
        assert_eq!(
            words("Why did the Postgres migration fail?"),
            ["migration", "postgres", "fail"]
        );
        assert_eq!(words("to be or not to be"), ["not", "be", "or", "to"]);
        assert_eq!(words("日本語の質問"), ["の質", "日本", "本語", "語の", "質問"]);
        assert_eq!(words("... %_"), [""; 0]);
        assert_eq!(words(&"x".repeat(1000)), ["x".repeat(64)]);
    }

    #[test]
    fn passages() {
        let text = format!("{} the needle\n in hay {}", "é ".repeat(100), "z".repeat(500));
        let shown = passage(&text, &words("needle"));
        assert!(shown.starts_with("…é") && shown.contains("the needle in hay"), "{shown}");
        assert!(shown.ends_with("z…") && shown.chars().count() <= PASSAGE + 2, "{shown}");
        assert_eq!(passage("short", &words("needle")), "short");
    }
}
