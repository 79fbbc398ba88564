//! What memory has to say to a text: the passages that bear on it, the best first.
//!
//! Ranking tells which passages answer best; whether the best answers at all is asked of each by
//! itself: of the words and the meaning that it shares with the text, more than chance would have
//! it among so many messages.

use std::{collections::HashSet, time::Duration};

use crate::engine::{Engine, Error, Fields, Mode, Question, Scope, Source, SourceKind};
use crate::{
    embed::Model,
    model::{Instant, Stop},
    text::{snippet, words::Tokenizer},
};

/// Characters of a turn that memory is asked by: what it is about is said at its beginning.
const ASKED: usize = 1000;

/// Terms of a text that are looked for in a passage, the longest, which are the rarest.
const TERMS: usize = 16;

/// The share of a text that the built-in model must know for its meaning to be compared.
const KNOWN: f64 = 0.5;

/// The likeness that is assumed where it is not known: between that of a question and its answer
/// (0.74 on LoCoMo) and that of any two turns (0.6).
const LIKENESS: f64 = 0.65;

/// The share of its terms and its likeness, summed, from which on a passage bears on a text: of one
/// message, what each e-fold of messages adds, and of very many.
///
/// Of questions of LoCoMo about people who are in none of the messages, memory answers one in ten
/// while it holds up to a thousand, and one in four where it holds 5,000.
const BEARS: (f64, f64, f64) = (0.7, 0.07, 1.25);

/// What is said without being about anything.
const PLEASANTRIES: &str = "ok okay yes yeah yep sure please thanks thank hi hello hey good great nice \
    cool fine perfect awesome right well continue proceed go ahead next again try done sorry";

/// Conversations that passages are taken from.
const CONVERSATIONS: usize = 10;

/// How long memory is asked: less than a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Bytes of a database whose first index is soon made.
const SMALL: u64 = 32 << 20;

/// What the whole of a text in the topic of a thread without messages is worth.
const IN_TOPIC: f64 = 0.3;

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
    /// Returns the passages of the export and of threads other than `thread` that bear on a turn of
    /// it, the best first.
    pub(crate) fn recall(
        &self,
        text: &str,
        thread: &str,
        limit: usize,
        stop: &Stop,
    ) -> Result<Vec<Recalled>, Error> {
        let sources: Vec<Source> =
            self.sources().into_iter().filter(|it| self.is_memory(it)).collect();
        let text = plain(text);
        let gist = Gist::of(&text);
        if sources.is_empty() || !gist.is_about_something() {
            return Ok(Vec::new());
        }
        // Nobody who takes a turn waits for a provider; and its text is sent nowhere.
        let mode = if self.model().is_built_in() { Mode::Both } else { Mode::Text };
        let question = Question {
            concepts: vec![text],
            mode,
            fields: Fields::Messages,
            scope: Scope {
                sources: sources.iter().map(|it| it.kind).collect(),
                ..Scope::default()
            },
            limit: CONVERSATIONS + 1,
        };
        let ranking = self.rank_conversations(&question, &stop.within(PATIENCE))?;
        let least =
            least(sources.iter().filter_map(|it| Some(self.latest_index(it)?.max_doc())).sum());
        let mut found = Vec::new();
        for item in ranking.items.into_iter().filter(|item| item.about.id != thread) {
            let title = &item.about.title;
            let bears =
                item.matches.into_iter().filter(|one| gist.shared(title, &one.passage) >= least);
            found.extend(bears.map(|one| Recalled {
                source: one.source,
                conversation: item.about.id.clone(),
                title: title.clone(),
                role: one.hit.role,
                time: one.hit.time,
                passage: on_one_line(&one.passage),
                score: one.score,
            }));
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen = HashSet::new();
        found.retain(|one| seen.insert((one.role.clone(), one.passage.clone())));
        found.truncate(limit);
        Ok(found)
    }

    /// Returns whether a turn is answered from a source: one that has an index, or soon has.
    fn is_memory(&self, source: &Source) -> bool {
        let is_small = || source.path.metadata().is_ok_and(|it| it.len() <= SMALL);
        source.kind != SourceKind::Archive && (is_small() || self.latest_index(source).is_some())
    }

    /// Returns what of the threads bears on a text, the best first, each thread once.
    pub fn search_threads(
        &self,
        text: &str,
        limit: usize,
        stop: &Stop,
    ) -> Result<Vec<Recalled>, Error> {
        let source = self.sources().into_iter().find(|it| it.kind == SourceKind::Threads);
        let Some(source) = source else { return Ok(Vec::new()) };
        let text = snippet::cut(text, ASKED).unwrap_or(text);
        let gist = Gist::of(text);
        let question = Question {
            concepts: vec![text.to_owned()],
            mode: Mode::Both,
            fields: Fields::Both,
            scope: Scope { sources: vec![SourceKind::Threads], ..Scope::default() },
            limit,
        };
        let ranking = self.rank_conversations(&question, stop)?;
        let least = least(self.latest_index(&source).map_or(0, |it| it.max_doc()));
        let mut found: Vec<Recalled> = Vec::new();
        for item in ranking.items {
            let title = item.about.title;
            let best = item.matches.into_iter().next();
            let passage = best.as_ref().map_or("", |best| best.passage.as_str());
            // Who searches is told of any word that is there.
            if gist.share(&title, passage) == 0.0 && gist.shared(&title, passage) < least {
                continue;
            }
            found.push(Recalled {
                source: SourceKind::Threads,
                conversation: item.about.id,
                passage: on_one_line(if passage.is_empty() { &title } else { passage }),
                title,
                time: best.as_ref().map_or(item.about.last, |best| best.hit.time),
                role: best.map(|best| best.hit.role).unwrap_or_default(),
                score: item.score,
            });
        }
        // A thread of which nothing is recorded yet has a topic all the same.
        for thread in self.threads_titled(&gist.terms)? {
            if found.iter().all(|known| known.conversation != thread.id) {
                found.push(Recalled {
                    source: SourceKind::Threads,
                    conversation: thread.id,
                    score: IN_TOPIC * gist.share(&thread.topic, ""),
                    passage: on_one_line(&thread.topic),
                    title: thread.topic,
                    role: String::new(),
                    time: thread.last.or(thread.begun),
                });
            }
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found.truncate(limit);
        Ok(found)
    }
}

/// What of a text is compared with passages.
struct Gist {
    terms: Vec<String>,
    /// Its vector by the built-in model, where that knows its language.
    vector: Option<Vec<f32>>,
    cutter: Tokenizer,
}

impl Gist {
    fn of(text: &str) -> Gist {
        let cutter = Tokenizer::default();
        let mut terms = cutter.question(text);
        terms.sort_by_key(|term| std::cmp::Reverse(term.chars().count()));
        terms.truncate(TERMS);
        let model = Model::built_in();
        let vector = (model.known(text) >= KNOWN).then(|| vector(&model, text));
        Gist { terms, vector, cutter }
    }

    fn is_about_something(&self) -> bool {
        let idle = self.cutter.question(PLEASANTRIES);
        self.terms.iter().any(|term| !idle.contains(term))
    }

    /// Returns the share of its terms that a passage and the title over it have.
    fn share(&self, title: &str, passage: &str) -> f64 {
        let mut missing: HashSet<&str> = self.terms.iter().map(String::as_str).collect();
        for text in [title, passage] {
            self.cutter.cut(text, |term| {
                missing.remove(term);
            });
        }
        let all = self.terms.len().max(1) as f64;
        (self.terms.len() - missing.len()) as f64 / all
    }

    /// Returns what it shares with a passage: of its terms, and of its meaning.
    fn shared(&self, title: &str, passage: &str) -> f64 {
        let likeness = self.vector.as_ref().map_or(LIKENESS, |vector| {
            let other = self::vector(&Model::built_in(), passage);
            vector.iter().zip(&other).map(|(one, other)| f64::from(one * other)).sum()
        });
        self.share(title, passage) + likeness
    }
}

fn vector(model: &Model, text: &str) -> Vec<f32> {
    model.encode_query(text, &Stop::never()).unwrap_or_default()
}

/// Returns what a passage must share with a text to bear on it, one of so many messages.
fn least(messages: u32) -> f64 {
    let (one, fold, most) = BEARS;
    (one + fold * f64::from(messages.max(1)).ln()).min(most)
}

/// Returns the beginning of a turn without what ranking reads as operators.
fn plain(turn: &str) -> String {
    let turn = snippet::cut(turn, ASKED).unwrap_or(turn);
    let is_operator = |c: char| matches!(c, '"' | '\u{201C}' | '\u{201D}');
    let words = turn.split(|c: char| c.is_whitespace() || is_operator(c));
    let words = words.map(|word| word.trim_start_matches(['-', '(']));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_words_in_a_turn() {
        let turn = "say \"drop  it\" -- not\n -fast (-x) \u{201C}well-known\u{201D}";
        assert_eq!(plain(turn), "say drop it not fast x) well-known");
        assert!(plain(&"ab ".repeat(1000)).chars().count() <= ASKED);
    }

    #[test]
    fn what_bears_on_a_text() {
        let question = Gist::of("Why did the postgres migration of the orders table fail?");
        let bears = |title: &str, passage: &str, messages: u32| {
            question.shared(title, passage) >= least(messages)
        };
        let same = "The postgres migration failed on the orders table.";
        for (title, passage, messages, expected) in [
            ("", same, 1_000_000, true),
            ("Postgres migration", "It failed again, because of orders.", 1000, true),
            ("", "The move of our PostgreSQL database broke", 2, true),
            ("", "We ate green soup.", 1, false),
            ("Orders", "We ate green soup.", 1000, false),
        ] {
            assert_eq!(bears(title, passage, messages), expected, "{title} {passage}");
        }
        for nothing in ["Ok, thanks!", "Continue.", "yes please do that", "..."] {
            assert!(!Gist::of(nothing).is_about_something(), "{nothing}");
        }
        let question = Gist::of("数据库迁移为什么失败");
        let shared = |passage: &str| question.shared("", passage);
        assert!(shared("昨天数据库迁移失败了") >= least(100), "{}", shared("昨天数据库迁移失败了"));
        assert!(shared("我们吃了绿色的汤") < least(2));
    }
}
