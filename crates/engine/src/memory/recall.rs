//! Recall: the passages of earlier conversations that are relevant to a text, the best first.
//!
//! Ranking says which passages answer best, not whether they answer at all. So the terms and
//! meaning that a passage shares with the text must exceed what chance would give in that number of
//! messages.

use std::{collections::HashSet, time::Duration};

use super::database::Memory;
use crate::error::Result;
use crate::rank::{Fields, Mode, Question, Ranker};
use crate::source::{Scope, SourceKind};
use verbatim_base::call::{Call, Stop};
use verbatim_base::model::Instant;
use verbatim_embed::{Model, dot};
use verbatim_text::{snippet, words::Tokenizer};

/// Number of characters of a turn that recall uses. The beginning says what the turn is about.
const MAX_TURN: usize = 1000;

/// Number of terms of a text that recall looks for. It takes the longest, which are the rarest.
const TERMS: usize = 16;

/// Share of a text that the built-in model must know. Below this share, vectors are not compared.
const KNOWN: f64 = 0.5;

/// The cosine that is assumed if the model does not know the language. It lies between the mean cosine of
/// a question and its answer (0.74 on LoCoMo) and that of any two turns (0.6).
const LIKENESS: f64 = 0.65;

/// Minimum relevance of a passage. Relevance is the share of the text's terms in the passage, plus
/// the cosine of both vectors. Among more messages, more passages are similar by chance. So the
/// minimum rises with each e-fold of the number of messages.
///
/// Of LoCoMo's questions about people whom no message mentions, recall answers one in ten with up to
/// 1,000 messages, and one in four with 5,000.
const LEAST_RELEVANCE: f64 = 0.7;
const RELEVANCE_PER_E_FOLD: f64 = 0.07;
const MAX_LEAST_RELEVANCE: f64 = 1.25;

/// Words that say nothing about the topic of a turn: greetings, and work without its subject.
const PLEASANTRIES: &str = "ok okay yes yeah yep sure please thanks thank hi hello hey good great nice \
    cool fine perfect awesome right well continue proceed go ahead next again try done sorry \
    morning afternoon evening night day today tomorrow bye goodbye later back all welcome everyone there \
    fix change make write run test check look show tell help explain work works start stop finish end it \
    this that thing things something more now new another";

/// The same in German, in Spanish and in Chinese.
const FURTHER_PLEASANTRIES: [&str; 3] = [
    "ok ja nein danke dir dank vielen schön bitte hallo hi guten morgen tag abend nacht tschüss bis später gut super \
     toll prima alles klar genau richtig mach weiter nochmal noch einmal mal das dies es war wars für heute \
     fertig korrigiere repariere behebe ändere zeig erkläre und so jetzt ist in ordnung passt",
    "ok sí si no vale gracias muchas por favor hola buenos buenas días tardes noches adiós hasta luego mañana \
     bien muy genial perfecto claro eso es todo hoy esto lo sigue continúa adelante otra vez de nuevo \
     arréglalo corrígelo hazlo listo y ahora ya está",
    "你好 您好 早上好 晚上好 晚安 谢谢 谢谢你 谢谢您 多谢 不客气 好的 好 好吧 是的 对 可以 没问题 请继续 继续吧 \
     再来一次 再试一次 太好了 很好 不错 再见 明天见 今天就到这里 今天就这样 就这些 修一下 修复它 改一下 请修复",
];

/// Maximum number of conversations from which passages are taken.
const CONVERSATIONS: usize = 10;

/// Time limit of recall. It is shorter than the time that clients wait for an answer.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// Maximum size in bytes of a database that recall indexes at once.
const SMALL: u64 = 32 << 20;

/// Score of a thread without messages if its topic has all terms of the text.
const IN_TOPIC: f64 = 0.3;

/// A passage that is relevant to a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// The source of the passage's conversation.
    pub source: SourceKind,
    /// The id of the passage's conversation.
    pub conversation: String,
    /// The title of the passage's conversation.
    pub title: String,
    /// The author of the passage.
    pub role: String,
    /// The time of the passage's message, or of the thread if its title or topic is the passage.
    pub time: Option<Instant>,
    /// The text of the passage on one line.
    pub passage: String,
    /// How well the passage answers, from 0 to 1.
    pub score: f64,
}

impl Memory {
    /// Returns the passages that are relevant to a turn of a thread, the best first. They are from
    /// the export and from other threads.
    pub(crate) fn recall(
        &self,
        text: &str,
        thread: &str,
        limit: usize,
        call: &Call,
    ) -> Result<Vec<Recalled>> {
        let mut sources = self.sources.present();
        // Those with an index, and those that are so small that indexing is quick.
        sources.retain(|source| {
            source.kind != SourceKind::Archive
                && (source.store().bytes() <= SMALL || source.latest_index(call).is_some())
        });
        let text = plain(text);
        let topic = Topic::new(&text);
        if sources.is_empty() || !topic.is_about_something() {
            return Ok(Vec::new());
        }
        // The turn's text is not sent to a provider, whose answer would also take too long.
        let mode = if self.sources.model().is_built_in() { Mode::Both } else { Mode::Text };
        let question = Question {
            concepts: vec![text],
            mode,
            fields: Fields::Messages,
            scope: Scope {
                sources: sources.iter().map(|it| it.kind).collect(),
                ..Scope::default()
            },
            limit: CONVERSATIONS + 1,
            ..Question::default()
        };
        let in_time = call.within(MAX_WAIT);
        let ranking = Ranker::new(&self.sources, &question, &in_time).quick().conversations()?;
        let messages = sources.iter().filter_map(|it| Some(it.latest_index(call)?.max_doc()));
        let least = least(messages.sum());
        let mut recalled = Vec::new();
        for item in ranking.items.into_iter().filter(|item| item.about.id != thread) {
            for one in item.matches {
                if topic.relevance(&item.about.title, &one.passage) >= least {
                    recalled.push(Recalled {
                        source: one.source,
                        conversation: item.about.id.clone(),
                        title: item.about.title.clone(),
                        role: one.hit.role.into_owned(),
                        time: one.hit.time,
                        passage: on_one_line(&one.passage),
                        score: one.score,
                    });
                }
            }
        }
        recalled.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen = HashSet::new();
        recalled.retain(|one| seen.insert((one.role.clone(), one.passage.clone())));
        recalled.truncate(limit);
        Ok(recalled)
    }

    /// Returns the threads that are relevant to a text, the best first, with a passage of each.
    pub fn search_threads(&self, text: &str, limit: usize, call: &Call) -> Result<Vec<Recalled>> {
        self.on_indexes(call, |call| self.relevant_threads(text, limit, call))
    }

    fn relevant_threads(&self, text: &str, limit: usize, call: &Call) -> Result<Vec<Recalled>> {
        let Some(source) = self.sources.of_kind(SourceKind::Threads)? else {
            return Ok(Vec::new());
        };
        let text = snippet::cut(text, MAX_TURN).unwrap_or(text);
        let topic = Topic::new(text);
        let question = Question {
            concepts: vec![text.to_owned()],
            mode: Mode::Both,
            fields: Fields::Both,
            scope: Scope { sources: vec![SourceKind::Threads], ..Scope::default() },
            limit,
            ..Question::default()
        };
        let ranking = Ranker::new(&self.sources, &question, call).conversations()?;
        let least = least(source.latest_index(call).map_or(0, |it| it.max_doc()));
        let mut found: Vec<Recalled> = Vec::new();
        for item in ranking.items {
            let title = item.about.title;
            let best = item.matches.into_iter().next();
            let passage = best.as_ref().map_or("", |best| best.passage.as_str());
            // Ranking also finds threads that share very little with the text.
            if topic.share(&title, passage) == 0.0 && topic.relevance(&title, passage) < least {
                continue;
            }
            found.push(Recalled {
                source: SourceKind::Threads,
                conversation: item.about.id,
                passage: on_one_line(if passage.is_empty() { &title } else { passage }),
                title,
                time: best.as_ref().map_or(item.about.last, |best| best.hit.time),
                role: best.map(|best| best.hit.role.into_owned()).unwrap_or_default(),
                score: item.score,
            });
        }
        // A thread without messages still has a topic.
        for thread in self.threads_titled(&topic.terms)? {
            if found.iter().all(|known| known.conversation != thread.id) {
                found.push(Recalled {
                    source: SourceKind::Threads,
                    conversation: thread.id,
                    score: IN_TOPIC * topic.share(&thread.topic, ""),
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

/// The terms and the vector of a text, with which passages are compared.
struct Topic {
    terms: Vec<String>,
    /// The text's vector from the built-in model; `None` if the model does not know the language.
    vector: Option<Vec<f32>>,
    tokenizer: Tokenizer,
}

impl Topic {
    fn new(text: &str) -> Topic {
        let tokenizer = Tokenizer::default();
        let mut terms = tokenizer.question(text);
        terms.sort_by_key(|term| std::cmp::Reverse(term.chars().count()));
        terms.truncate(TERMS);
        let model = Model::built_in();
        let vector = (model.known_share(text) >= KNOWN).then(|| vector(&model, text));
        Topic { terms, vector, tokenizer }
    }

    fn is_about_something(&self) -> bool {
        let mut idle = self.tokenizer.question(PLEASANTRIES);
        idle.extend(FURTHER_PLEASANTRIES.iter().flat_map(|text| self.tokenizer.question(text)));
        self.terms.iter().any(|term| !idle.contains(term))
    }

    /// Returns the share of the terms that occur in a passage or its title.
    fn share(&self, title: &str, passage: &str) -> f64 {
        let mut missing: HashSet<&str> = self.terms.iter().map(String::as_str).collect();
        for text in [title, passage] {
            self.tokenizer.tokenize(text, |term| {
                missing.remove(term);
            });
        }
        (self.terms.len() - missing.len()) as f64 / self.terms.len().max(1) as f64
    }

    /// Returns the relevance of a passage: the share of the terms that it has, plus the vectors' cosine.
    fn relevance(&self, title: &str, passage: &str) -> f64 {
        let likeness = self.vector.as_ref().map_or(LIKENESS, |vector| {
            let other = self::vector(&Model::built_in(), passage);
            f64::from(dot(vector, &other))
        });
        self.share(title, passage) + likeness
    }
}

fn vector(model: &Model, text: &str) -> Vec<f32> {
    model.encode_query(text, &Stop::never()).unwrap_or_default()
}

/// Returns the minimum relevance of a passage, for a number of messages.
fn least(messages: u32) -> f64 {
    let e_folds = f64::from(messages.max(1)).ln();
    (LEAST_RELEVANCE + RELEVANCE_PER_E_FOLD * e_folds).min(MAX_LEAST_RELEVANCE)
}

/// Returns the beginning of a turn without the characters that ranking treats as operators.
fn plain(turn: &str) -> String {
    let turn = snippet::cut(turn, MAX_TURN).unwrap_or(turn);
    let words =
        turn.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\u{201C}' | '\u{201D}'));
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
        assert!(plain(&"ab ".repeat(1000)).chars().count() <= MAX_TURN);
    }

    #[test]
    fn what_bears_on_a_text() {
        let question = Topic::new("Why did the postgres migration of the orders table fail?");
        let bears = |title: &str, passage: &str, messages: u32| {
            question.relevance(title, passage) >= least(messages)
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
        for nothing in [
            "ok great",
            "hello",
            "Danke, das war alles für heute!",
            "Guten Morgen",
            "ja, mach bitte weiter",
            "Gracias, eso es todo por hoy.",
            "¡Hola, buenos días!",
            "vale, arréglalo",
            "你好",
            "谢谢，今天就到这里",
            "好的，请继续",
            "修一下",
            "Ok, thanks!",
            "Continue.",
            "yes please do that",
            "...",
            "fix it",
            "Back again",
            "good morning",
            "thanks, that is all for today",
            "please write a test for it",
        ] {
            assert!(!Topic::new(nothing).is_about_something(), "{nothing}");
        }
        for topic in [
            "fix the parser",
            "a test for the checkout cache",
            "good morning, Lisbon",
            "Guten Morgen, Köln",
            "arregla el analizador, gracias",
            "修一下数据库",
        ] {
            assert!(Topic::new(topic).is_about_something(), "{topic}");
        }
        let question = Topic::new("数据库迁移为什么失败");
        let shared = |passage: &str| question.relevance("", passage);
        assert!(shared("昨天数据库迁移失败了") >= least(100), "{}", shared("昨天数据库迁移失败了"));
        assert!(shared("我们吃了绿色的汤") < least(2));
    }
}
