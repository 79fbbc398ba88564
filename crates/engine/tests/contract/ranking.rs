//! Ranked search: the properties of every reader that has a scorer.

use std::collections::HashMap;

use verbatim_base::call::{Call, Stop};
use verbatim_engine::scoring::{Concept, Nearness, Scale, Scorer, VectorWeights, idf};
use verbatim_engine::{Messages, Reader, Scope, SourceKind};
use verbatim_index::WeightedTerm;
use verbatim_text::{query::Query, words::Tokenizer};

use crate::database::{Cell, Content, Database, Message, Schema, times};
use crate::lists::{ids, transcripts};
use crate::oracle::{Oracle, instant};
use crate::subjects_of;

const DEPTH: usize = 20;

/// Words of the messages; the rarer ones come last.
const WORDS: [&str; 12] = [
    "river", "garden", "window", "silver", "market", "thunder", "lantern", "copper", "orchard",
    "violin", "glacier", "marble",
];

const ROLES: [&str; 3] = ["user", "assistant", "tool"];

/// Messages of random words. One message has "glacier violin orchard", which no other one has.
fn messages() -> Vec<Message> {
    let mut seed = 7u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let times = times().len();
    (0..240)
        .map(|n| {
            let count = 3 + next(9);
            let mut words: Vec<&str> = (0..count)
                .map(|_| {
                    let common = next(WORDS.len()).min(next(WORDS.len()));
                    WORDS[common.min(WORDS.len() - 5)]
                })
                .collect();
            match n {
                100 => words = vec!["a", "glacier", "near", "the", "violin", "orchard"],
                _ if n % 16 == 3 => words.push(["glacier", "violin", "orchard"][n / 16 % 3]),
                _ => {}
            }
            Message {
                conversation: n % 6,
                role: ROLES[next(3)].into(),
                content: Content::Stored(Cell::from(words.join(" ").as_str())),
                time: next(times),
                position: Some(n as i64),
            }
        })
        .collect()
}

/// Returns six conversations; the messages of the last one refer to a missing conversation.
fn database() -> Database {
    let titles: Vec<Cell> = (0..5).map(|n| Cell::from(format!("Talk {n}").as_str())).collect();
    Database::of(Schema::Typed, &titles, &messages())
}

/// Parses a question as ranked search does: the terms that occur, with their IDF.
fn concept(scorer: &dyn Scorer, text: &str, vector: Option<Vec<f32>>) -> Concept {
    let query = Query::parse(text);
    let terms = Tokenizer::default().question(&query.text);
    let statistics = scorer.statistics(&terms).expect("statistics");
    let messages = statistics.messages as f32;
    let weighted = terms.into_iter().zip(statistics.frequencies).filter(|(_, count)| *count > 0);
    let weighted = weighted.map(|(term, count)| {
        let weight = idf(messages, count as f32);
        WeightedTerm { term, weight }
    });
    let terms: Vec<WeightedTerm> = weighted.collect();
    let weight = terms.iter().map(|term| term.weight).sum();
    let average = (statistics.tokens as f32 / messages.max(1.0)).max(1.0);
    Concept {
        query,
        terms,
        weight,
        average,
        vector,
        known: 1.0,
        encoded: None,
        is_encoded: false,
        encoded_known: 0.0,
        author: None,
    }
}

/// A message that was found: its id, its score, and what it is.
#[derive(Clone, Debug, PartialEq)]
struct Ranked {
    id: String,
    score: f32,
    conversation: String,
    role: String,
    content: String,
    time: Option<verbatim_base::model::Instant>,
}

/// Ranks one source alone; checks the properties that every answer has.
fn rank(reader: &dyn Reader, scope: &Scope, text: &str, vector: Option<Vec<f32>>) -> Vec<Ranked> {
    let call = Call::default();
    let scorer = reader.scorer(scope, &call).expect("an answer").expect("it can rank");
    assert_eq!(scorer.missing(), (0, 0));
    let concept = concept(&*scorer, text, vector);
    let opened = scorer.open(&concept, &call).expect("a scorer of the concept");
    let weights = VectorWeights { model: 1.0, encoder: 0.0 };
    let candidates = |depth| {
        let by_terms = opened.by_terms(depth, &call).expect("candidates");
        let by_vector = opened.by_vector(weights, depth, &call).expect("candidates");
        assert_eq!(by_vector.not_encoded, []);
        let all = concept.terms.iter().map(|term| term.weight).sum::<f32>();
        assert!((0.0..=all + 1e-4).contains(&by_terms.covered), "{} of {all}", by_terms.covered);
        (by_terms.messages, by_vector.messages)
    };
    let (by_terms, by_vector) = candidates(DEPTH);
    for found in [&by_terms, &by_vector] {
        assert!(found.len() <= DEPTH, "{} candidates", found.len());
        assert!(found.is_sorted_by(|a, b| a.1 >= b.1), "{found:?}");
        let fewer = candidates(DEPTH / 4);
        assert!(fewer.0.len() <= DEPTH / 4 && fewer.1.len() <= DEPTH / 4);
    }
    let vector_share = if concept.vector.is_some() { 0.35 } else { 0.0 };
    let cosines: Vec<f32> = by_vector.iter().map(|(_, cosine)| *cosine).collect();
    let nearness = Nearness::among(&cosines);
    let scale = Scale {
        term_share: 1.0 - vector_share,
        vector_share,
        best_terms: by_terms.first().map_or(1.0, |(_, score)| *score),
        vectors: weights,
        nearness,
        nearness_not_encoded: nearness,
    };
    let found = by_terms.iter().chain(&by_vector);
    let mut doc_ids = found.map(|(doc_id, _)| *doc_id);
    let mut scores = opened.scores(&mut doc_ids, &scale, &call).expect("scores");
    scores.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut read: HashMap<String, Box<dyn Messages>> = HashMap::new();
    let ranked = scores.into_iter().map(|(doc_id, score)| {
        assert!(score > 0.0 && score <= 1.0, "a score of {score}");
        let hit = scorer.hit(doc_id).into_owned();
        assert_eq!(scorer.role(doc_id), hit.role);
        assert_eq!(scorer.content(doc_id), hit.content);
        assert_eq!(scorer.content_length(doc_id), hit.content.len());
        let conversation = scorer.conversation(doc_id).expect("it is in a conversation");
        assert_eq!(scorer.about(conversation).id, hit.conversation_id);
        let messages = read.entry(hit.conversation_id.to_string()).or_insert_with(|| {
            reader.read(&hit.conversation_id, false, &call).expect("reads").expect("is")
        });
        assert_eq!(scorer.turn(doc_id).map(|turn| turn as usize), messages.turn_of(&hit));
        Ranked {
            id: hit.message_id.into_owned(),
            score,
            conversation: hit.conversation_id.into_owned(),
            role: hit.role.into_owned(),
            content: hit.content.into_owned(),
            time: hit.time,
        }
    });
    let ranked: Vec<Ranked> = ranked.collect();
    let mut ids: Vec<&str> = ranked.iter().map(|ranked| ranked.id.as_str()).collect();
    ids.sort_unstable();
    assert!(ids.is_sorted_by(|a, b| a < b), "a message is ranked twice: {ids:?}");
    ranked
}

/// Opens a reader of every subject that can rank; the others must say that they cannot.
fn rankers(database: &Database) -> Vec<(&'static str, std::sync::Arc<dyn Reader>)> {
    let opened = subjects_of(database).into_iter().map(|subject| {
        let reader = subject.open_to_rank(database);
        let scorer = reader.scorer(&Scope::default(), &Call::default()).expect("an answer");
        assert_eq!(scorer.is_some(), subject.can_rank(), "{}", subject.name());
        subject.can_rank().then_some((subject.name(), reader))
    });
    opened.flatten().collect()
}

fn vector(_: &Database, text: &str) -> Option<Vec<f32>> {
    let vector = verbatim_embed::Model::built_in().encode_query(text, &Stop::never());
    Some(vector.expect("the built-in model"))
}

fn scopes() -> Vec<Scope> {
    let at = |seconds: i64| Some(instant(seconds * 1_000_000_000));
    let roles = |roles: &[&str]| roles.iter().map(|role| (*role).to_owned()).collect::<Vec<_>>();
    vec![
        Scope::default(),
        Scope { roles: roles(&["user"]), ..Scope::default() },
        Scope { roles: roles(&["tool", "assistant"]), ..Scope::default() },
        Scope { roles: roles(&["nobody"]), ..Scope::default() },
        Scope { since: at(1_700_000_000), ..Scope::default() },
        Scope { until: at(1_000_000_000), ..Scope::default() },
        Scope { since: at(-5), until: at(1_700_000_000), ..Scope::default() },
        Scope { conversation: Some("c2".into()), ..Scope::default() },
        Scope { conversation: Some("c5".into()), ..Scope::default() },
        Scope { conversations: ids(&["c1", "c2"]), ..Scope::default() },
        Scope {
            conversation: Some("c1".into()),
            roles: roles(&["user", "tool"]),
            since: at(0),
            until: at(1_700_000_001),
            ..Scope::default()
        },
    ]
}

fn is_within(ranked: &Ranked, scope: &Scope) -> bool {
    (scope.roles.is_empty() || scope.roles.contains(&ranked.role))
        && scope.since.is_none_or(|since| ranked.time.is_some_and(|time| time >= since))
        && scope.until.is_none_or(|until| ranked.time.is_some_and(|time| time <= until))
        && scope.conversation.as_ref().is_none_or(|id| *id == ranked.conversation)
        && scope
            .conversations
            .as_ref()
            .is_none_or(|ids| ids[&SourceKind::Export].contains(&ranked.conversation))
}

#[test]
fn every_result_is_in_the_scope_and_the_same_each_time() {
    let database = database();
    let ids: Vec<String> = Oracle::of(&database)
        .search(&Default::default())
        .into_iter()
        .map(|hit| hit.message_id.into_owned())
        .collect();
    for (name, reader) in rankers(&database) {
        let mut found = 0;
        for text in ["river garden", "copper", "glacier", "thunder -river", "\"silver market\""] {
            for vector in [None, vector(&database, text)] {
                for scope in scopes() {
                    let ranked = rank(&*reader, &scope, text, vector.clone());
                    for one in &ranked {
                        assert!(is_within(one, &scope), "{name}: {text}: {scope:?}: {one:?}");
                        assert!(ids.contains(&one.id), "{name}: {one:?} has no conversation");
                    }
                    assert_eq!(ranked, rank(&*reader, &scope, text, vector.clone()), "{name}");
                    found += ranked.len();
                }
            }
        }
        assert!(found > 500, "{name}: {found}");
    }
}

#[test]
fn projects_and_sessions_are_part_of_the_scope() {
    let database = transcripts();
    for (name, reader) in rankers(&database) {
        let ids = |project: Option<&str>, session: Option<&str>| {
            let scope = Scope {
                project: project.map(str::to_owned),
                session: session.map(str::to_owned),
                ..Scope::default()
            };
            let ranked = rank(&*reader, &scope, "red", None);
            let mut ids: Vec<String> = ranked.into_iter().map(|ranked| ranked.id).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(None, None), ["a/1", "b/1", "c/1", "d/1"], "{name}");
        assert_eq!(ids(Some("paint"), None), ["a/1", "c/1"], "{name}");
        assert_eq!(ids(Some("walls"), Some("s1")), ["b/1"], "{name}");
        assert!(ids(Some("walls"), Some("s2")).is_empty(), "{name}");
    }
}

#[test]
fn the_only_message_with_all_words_is_first() {
    let database = database();
    for (name, reader) in rankers(&database) {
        for text in ["glacier violin orchard", "orchard glacier violin", "\"violin orchard\""] {
            for vector in [None, vector(&database, text)] {
                let ranked = rank(&*reader, &Scope::default(), text, vector);
                let first = ranked.first().map(|ranked| ranked.content.as_str());
                assert_eq!(first, Some("a glacier near the violin orchard"), "{name}: {text}");
            }
        }
    }
}

#[test]
fn excluded_words_never_appear_and_quoted_ones_always() {
    let database = database();
    for (name, reader) in rankers(&database) {
        for (text, wanted, excluded) in [
            ("river -garden", "", "garden"),
            ("thunder -silver", "", "silver"),
            ("window -\"river garden\"", "", "river garden"),
            ("\"silver market\"", "silver market", "\0"),
            ("\"copper\" river", "copper", "\0"),
        ] {
            for vector in [None, vector(&database, text)] {
                let ranked = rank(&*reader, &Scope::default(), text, vector);
                assert!(!ranked.is_empty(), "{name}: {text}");
                for one in ranked {
                    assert!(one.content.contains(wanted), "{name}: {text}: {one:?}");
                    assert!(!one.content.contains(excluded), "{name}: {text}: {one:?}");
                }
            }
        }
    }
}

/// The statistics of all conversations add up to what SQLite counts.
#[test]
fn statistics_add_up() {
    let database = database();
    let terms: Vec<String> =
        WORDS.iter().flat_map(|word| Tokenizer::default().question(word)).collect();
    assert_eq!(terms.len(), WORDS.len());
    let oracle = Oracle::of(&database);
    let count = |text: &str| {
        let from = "FROM messages m JOIN conversations c ON c.id = m.conversation_id";
        let sql = format!("SELECT count(*) {from} WHERE m.content LIKE '%{text}%'");
        oracle.number(&sql).unwrap_or_default() as u64
    };
    let total = count("");
    let expected: Vec<u64> = WORDS.iter().map(|word| count(word)).collect();
    drop(oracle);
    for (name, reader) in rankers(&database) {
        let (mut messages, mut frequencies) = (0, vec![0u64; terms.len()]);
        for n in 0..6 {
            let scope = Scope { conversation: Some(format!("c{n}")), ..Scope::default() };
            let scorer =
                reader.scorer(&scope, &Call::default()).expect("an answer").expect("ranks");
            let statistics = scorer.statistics(&terms).expect("statistics");
            messages += statistics.messages;
            assert!(statistics.tokens >= statistics.messages, "{name}");
            let sums = frequencies.iter_mut().zip(statistics.frequencies);
            sums.for_each(|(sum, here)| *sum += u64::from(here));
        }
        assert_eq!((messages, &frequencies), (total, &expected), "{name}");
        let scorer = reader.scorer(&Scope::default(), &Call::default()).expect("an answer");
        let scorer = scorer.expect("ranks");
        let all = scorer.statistics(&terms).expect("statistics");
        // Deleted messages count until segments are merged.
        assert!(all.messages >= total && all.messages < total * 2, "{name}: {}", all.messages);
        for (term, at_least) in terms.iter().zip(&expected) {
            assert_eq!(scorer.has_term(term).expect("an answer"), *at_least > 0, "{name}: {term}");
        }
        assert!(!scorer.has_term("zzyzx").expect("an answer"), "{name}");
    }
}

#[test]
fn a_stop_ends_ranking() {
    let database = database();
    for (name, reader) in rankers(&database) {
        let scorer = reader.scorer(&Scope::default(), &Call::default()).expect("an answer");
        let scorer = scorer.expect("ranks");
        let concept = concept(&*scorer, "river garden", None);
        let opened = scorer.open(&concept, &Call::default()).expect("a scorer of the concept");
        let call = Call::default();
        call.stop.request();
        let candidates = opened.by_terms(DEPTH, &call);
        assert!(candidates.is_err_and(|error| error.is_stopped()), "{name}");
    }
}
