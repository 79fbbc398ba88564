//! The index against SQLite's own `LIKE`: the same messages, in the same order, with the same text.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use proptest::{collection::vec, option, prelude::*, sample::select};
use rusqlite::{Connection, params, types::Value};
use tempfile::TempDir;
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Matching, Request};
use verbatim_engine::{Config, Engine, FallbackReason, Reindex, Reindexed, SearchPlan};
use verbatim_index::Resources;

use crate::corpus::{SCHEMA, folder, folder_with};
use crate::pieces::{PIECES, bytes, text};

/// A message as a test puts it into a database.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) conversation: usize,
    pub(crate) role: Value,
    pub(crate) content: Value,
    pub(crate) time: Value,
    pub(crate) position: i64,
}

const ROLES: &[&str] = &["user", "assistant", "tool", "system", ""];

fn words(words: &[&str]) -> Vec<Value> {
    words.iter().map(|word| Value::Text((*word).to_owned())).collect()
}

/// Contents that are text, and some that are not.
fn content(is_parts: bool) -> BoxedStrategy<Value> {
    let plain = prop_oneof![
        12 => text().prop_map(Value::Text),
        3 => (text(), text()).prop_map(|(a, b)| Value::Text(format!("{a}\0{b}"))),
        2 => bytes().prop_map(Value::Blob),
        1 => Just(Value::Null),
        1 => any::<i16>().prop_map(|n| Value::Integer(n.into())),
        1 => Just(Value::Real(1.5e9)),
        // The text is longer than a block of postings is wide, and than a window of the search.
        1 => text().prop_map(|text| Value::Text(text.repeat(200))),
    ];
    if !is_parts {
        return plain.boxed();
    }
    let parts = vec(text(), 0..3)
        .prop_map(|parts| Value::Text(serde_json::to_string(&parts).expect("strings are JSON")));
    // Parts that are no UTF-8: they decode, and the stored text is still to be matched as it is.
    let broken = bytes().prop_map(|bytes| Value::Blob([b"[\"", &bytes[..], b"\"]"].concat()));
    prop_oneof![4 => parts, 1 => broken, 1 => plain].boxed()
}

pub(crate) fn message(is_parts: bool) -> impl Strategy<Value = Message> {
    let times = prop_oneof![
        4 => select(words(&["1700000000", "1700000000.5", "1700000001.000001", "1e9", "", "soon",
            "2023-11-14T22:13:20Z", "2023-11-14 22:13:20.5", "2023-11-15T00:13:20+02:00", "-5"])),
        1 => Just(Value::Real(1_700_000_000.5)),
        1 => Just(Value::Integer(1_700_000_000)),
        1 => Just(Value::Null),
    ];
    let roles = prop_oneof![
        8 => select(words(ROLES)),
        1 => Just(Value::Null),
    ];
    (0..4usize, roles, content(is_parts), times, -1..3i64).prop_map(
        |(conversation, role, content, time, position)| Message {
            conversation,
            role,
            content,
            time,
            position,
        },
    )
}

pub(crate) fn titles() -> impl Strategy<Value = Vec<Value>> {
    let title = prop_oneof![
        5 => vec(select(PIECES), 0..8).prop_map(|pieces| Value::Text(pieces.concat())),
        1 => bytes().prop_map(Value::Blob),
        1 => Just(Value::Null),
    ];
    // The fourth conversation is missing: its messages are in no answer.
    vec(title, 3)
}

/// A description of a query that is made from the messages.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    from: prop::sample::Index,
    start: prop::sample::Index,
    length: usize,
    changes: Vec<(prop::sample::Index, usize)>,
    other: Option<String>,
    roles: Vec<&'static str>,
    since: Option<i64>,
    until: Option<i64>,
    limit: Option<usize>,
    case_sensitive: bool,
    raw_content: bool,
}

pub(crate) fn query() -> impl Strategy<Value = Query> {
    let other = vec(select(PIECES), 0..6).prop_map(|pieces| pieces.concat());
    let instant = || option::weighted(0.2, prop_oneof![-3..4i64, 699_999_998..700_000_003i64]);
    (
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..14usize),
        vec((any::<prop::sample::Index>(), 0..5usize), 0..4),
        option::weighted(0.3, other),
        prop_oneof![4 => Just(vec![]), 1 => vec(select(ROLES), 1..3)],
        (instant(), instant()),
        select(vec![None, Some(50), Some(50), Some(3), Some(1)]),
        (prop::bool::weighted(0.1), prop::bool::weighted(0.2)),
    )
        .prop_map(|((from, start, length), changes, other, roles, dates, limit, flags)| {
            Query {
                from,
                start,
                length,
                changes,
                other,
                roles,
                since: dates.0,
                until: dates.1,
                limit,
                case_sensitive: flags.0,
                raw_content: flags.1,
            }
        })
}

impl Query {
    /// A slice of some text with wildcards put in and letters' case changed, or pieces at random.
    pub(crate) fn request(&self, texts: &[String]) -> Request {
        let mut pattern: Vec<char> = match &self.other {
            Some(other) => other.chars().collect(),
            None if texts.is_empty() => Vec::new(),
            None => {
                let text: Vec<char> = self.from.get(texts).chars().collect();
                let start = if text.is_empty() { 0 } else { self.start.index(text.len()) };
                text.into_iter().skip(start).take(self.length).filter(|c| *c != '\0').collect()
            }
        };
        for (at, change) in &self.changes {
            if pattern.is_empty() {
                break;
            }
            let at = at.index(pattern.len());
            match change {
                0 | 1 => pattern[at] = '_',
                2 => pattern[at] = '%',
                3 => pattern.insert(at, '%'),
                _ if pattern[at].is_ascii_lowercase() => pattern[at].make_ascii_uppercase(),
                _ => pattern[at].make_ascii_lowercase(),
            }
        }
        let instant = |seconds: i64| Instant { seconds: 1_000_000_000 + seconds, nanos: 0 };
        Request {
            text: pattern.into_iter().collect(),
            roles: self.roles.iter().map(|role| (*role).to_owned()).collect(),
            since: self.since.map(instant),
            until: self.until.map(instant),
            limit: self.limit,
            case_sensitive: self.case_sensitive,
            raw_content: self.raw_content,
            ..Request::default()
        }
    }
}

/// A database with an engine that has an index of it, and one that has none.
pub(crate) struct Pair {
    folder: TempDir,
    pub(crate) with: Engine,
    without: Engine,
}

impl Pair {
    pub(crate) fn of(titles: &[Value], messages: &[Message]) -> Pair {
        let (folder, path) = folder_with("chats.db");
        let mut connection = Connection::open(&path).expect("a database can be made");
        connection.execute_batch(SCHEMA).expect("the schema is sound");
        let transaction = connection.transaction().expect("a transaction");
        for (number, title) in titles.iter().enumerate() {
            transaction
                .execute(
                    "INSERT INTO conversations VALUES (?1, NULL, NULL, ?2)",
                    params![format!("c{number}"), title],
                )
                .expect("a conversation");
        }
        for (number, message) in messages.iter().enumerate() {
            let id = if number % 2 == 0 {
                format!("message-{number}")
            } else {
                format!("0123abcd-0000-4000-8000-{number:012x}")
            };
            transaction
                .execute(
                    "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6)",
                    params![
                        id,
                        format!("c{}", message.conversation),
                        message.role,
                        message.content,
                        message.time,
                        message.position
                    ],
                )
                .expect("a message");
        }
        transaction.commit().expect("a commit");
        drop(connection);
        let engine = |index: &str| {
            Engine::new(Config {
                db: Some(path.clone().into()),
                home: folder.path().to_owned(),
                index: Some(folder.path().join(index)),
                ..Config::default()
            })
        };
        let pair = Pair { with: engine("index"), without: engine("none"), folder };
        pair.reindex();
        pair
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("chats.db")
    }

    /// The folder of the snapshots.
    pub(crate) fn index_dir(&self) -> PathBuf {
        let index = std::fs::read_dir(self.folder.path().join("index")).expect("an index");
        index
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.is_dir())
            .expect("an index directory")
    }

    /// Returns the number of segments of the index.
    pub(crate) fn segments(&self) -> usize {
        let entries = std::fs::read_dir(self.index_dir()).expect("an index directory").flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("segment-")).count()
    }

    pub(crate) fn reindex(&self) -> Reindexed {
        reindex(&self.with, false)
    }

    /// Asks both engines, and panics if their answers differ. Returns the plan of the first engine.
    pub(crate) fn compare(&self, request: &Request) -> SearchPlan {
        let (found, answered) = ask(&self.with, request);
        let (expected, by_like) = ask(&self.without, request);
        assert!(matches!(
            by_like,
            SearchPlan::ByLike { why: FallbackReason::NoIndex | FallbackReason::EmptyRole, .. }
        ));
        assert_eq!(found, expected, "{request:?}");
        answered
    }
}

fn reindex(engine: &Engine, full: bool) -> Reindexed {
    let resources = Resources { memory: 64 << 20, threads: 2 };
    engine
        .upkeep()
        .reindex(Reindex { resources, full }, &Call::default(), &mut |_| {})
        .expect("the database can be indexed")
}

fn ask(engine: &Engine, request: &Request) -> (Vec<Hit<'static>>, SearchPlan) {
    let mut hits = Vec::new();
    let answered = engine
        .exact(request, &Call::default(), &mut |hit| {
            hits.push(hit);
            ControlFlow::Continue(())
        })
        .expect("an answer");
    (hits, answered)
}

/// The texts of the messages, to take queries from.
pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    let text = |message: &Message| match &message.content {
        Value::Text(text) => Some(text.clone()),
        Value::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    };
    messages.iter().filter_map(text).collect()
}

fn check(titles: &[Value], messages: &[Message], queries: &[Query]) {
    let pair = Pair::of(titles, messages);
    let texts = texts(messages);
    for query in queries {
        let request = query.request(&texts);
        let answered = pair.compare(&request);
        let is_for_index = !request.roles.iter().any(String::is_empty);
        assert_eq!(matches!(answered, SearchPlan::ByIndex { .. }), is_for_index, "{answered:?}");
    }
}

proptest! {
    #![proptest_config(crate::cases::config(60))]

    #[test]
    fn the_index_answers_as_like_does(
        titles in titles(),
        messages in vec(message(false), 0..80),
        queries in vec(query(), 40),
    ) {
        check(&titles, &messages, &queries);
    }

    #[test]
    fn the_index_answers_as_like_does_over_json_parts(
        titles in titles(),
        messages in vec(message(true), 1..60),
        queries in vec(query(), 30),
    ) {
        check(&titles, &messages, &queries);
    }
}

proptest! {
    #![proptest_config(crate::cases::config(250))]

    /// 100,000 queries, over databases of up to a thousand messages: `cargo test -- --ignored`.
    #[test]
    #[ignore = "takes minutes"]
    fn a_hundred_thousand_queries(
        titles in titles(),
        messages in (0..1000usize, prop::bool::weighted(0.2))
            .prop_flat_map(|(size, is_parts)| vec(message(is_parts), size..=size)),
        queries in vec(query(), 400),
    ) {
        check(&titles, &messages, &queries);
    }
}

/// Messages whose common words make long chains of grams, and rare matches of common runs.
fn wordy(count: usize) -> Vec<Message> {
    let words =
        ["the", "thing", "nothing", "ethic", "other", "then", "wether", "a", "和平", "的", "是的"];
    let mut seed = 1u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    (0..count)
        .map(|number| {
            let mut text = String::new();
            for _ in 0..next(40) {
                text.push_str(words[next(words.len())]);
                text.push_str(if next(9) == 0 { "\n" } else { " " });
            }
            if number % 701 == 0 {
                text.push_str(&format!("q{}x{}z 的{}平", next(10), next(10), next(10)));
            }
            Message {
                conversation: next(3),
                role: Value::Text(ROLES[next(4)].to_owned()),
                content: Value::Text(text),
                time: Value::Integer(1_700_000_000 + next(count) as i64),
                position: number as i64,
            }
        })
        .collect()
}

#[test]
fn patterns_of_common_runs_are_narrowed_by_their_gaps() {
    let titles: Vec<Value> = words(&["the other thing", "q7x7z in a title", "和平 o-o-o"]);
    let pair = Pair::of(&titles, &wordy(20_000));
    let mut narrowed = 0;
    for text in [
        "q_x_z",
        "的_平",
        "o_o_o",
        "th_q",
        "r_th_ng_的",
        "e_q",
        "q_x%x_z",
        "t_e_q",
        "_q_x_z_",
        "z_的",
        "q__x",
        "n_th%q_x",
        "in_a_ti",
        "the_%_q",
        "平_t",
        "qu__x",
        "ow%_q%x",
        "fo__%",
    ] {
        let request = Request { text: text.to_owned(), limit: Some(50), ..Request::default() };
        if let SearchPlan::ByIndex { trace, .. } = pair.compare(&request) {
            narrowed += trace.gaps;
        }
        pair.compare(&Request { roles: vec!["tool".to_owned()], ..request.clone() });
        pair.compare(&Request { limit: None, ..request });
    }
    assert!(narrowed > 5, "only {narrowed} gaps were used");

    // Expressions without a run that has a posting list are scanned until their gaps are expanded.
    let mut narrowed = 0;
    for text in [
        "q.x",
        "(?-i)Q.z",
        "o.o.o",
        "t.q",
        r"\w[^a]q.[x-z]",
        "的.(?:平)",
        "(e.q|z)",
        "e.q$",
        "平.t",
        "qu..k",
        "ow.*x",
        "fo$.",
    ] {
        let request = Request {
            text: text.to_owned(),
            matching: Matching::Regex,
            limit: Some(50),
            ..Request::default()
        };
        if let SearchPlan::ByIndex { trace, .. } = pair.compare(&request) {
            narrowed += trace.gaps;
        }
        pair.compare(&Request { roles: vec!["tool".to_owned()], ..request.clone() });
        pair.compare(&Request { limit: None, ..request.clone() });
        pair.compare(&Request { not: vec!["fox".to_owned()], limit: None, ..request });
    }
    assert!(narrowed > 3, "only {narrowed} gaps of expressions were used");
}

/// Messages of many conversations at once, in several scripts, some of them long.
fn mixed(count: usize, conversations: usize, is_parts: bool) -> Vec<Message> {
    const LINES: [&str; 6] = [
        "the quick brown fox jumps over it",
        "ещё несколько слов о погоде",
        "日本語の文章です。検索",
        "größer als gestern, sagte er",
        "fn main() { let x = 1; }",
        "order 4711 was sent at 12:30",
    ];
    let mut messages = wordy(count);
    for (number, message) in messages.iter_mut().enumerate() {
        let Value::Text(text) = &mut message.content else { continue };
        text.push_str(LINES[number % LINES.len()]);
        if number % 97 == 0 {
            *text = format!("{text} {number}\n").repeat(60 + number % 40);
        }
        if is_parts {
            *text = serde_json::json!([text]).to_string();
        }
        message.conversation = number / 16 * 7 % conversations + number % 3;
    }
    messages
}

#[test]
fn packed_texts_and_titles_of_many_conversations_are_found() {
    let title = |number: usize| match number % 9 {
        0 => Value::Null,
        1 => Value::Text(format!("the fox of {number}")),
        2 => Value::Text(format!("погода {}", number % 50)),
        _ => Value::Text(format!("a plan for the {} thing", number % 20)),
    };
    for is_parts in [false, true] {
        let titles: Vec<Value> = (0..303).map(title).collect();
        let messages = mixed(4_000, 300, is_parts);
        let pair = Pair::of(&titles, &messages);
        let rows = std::fs::metadata(pair.index_dir().join("segment-1/rows")).expect("rows").len();
        let text_bytes: usize = texts(&messages).iter().map(String::len).sum();
        // With JSON parts, both the stored and the shown form exist.
        let forms = if is_parts { 2 } else { 1 };
        assert!(rows as usize * 10 < text_bytes * forms * 9, "{rows} of {text_bytes} bytes");
        for text in [
            "fox of 1", "а 7", "the 1", "thing", "plan for", "q_x", "文章", "1\nthe", "x = 1",
            "zzz",
        ] {
            let request = Request { text: text.to_owned(), ..Request::default() };
            let at = |seconds: i64| Some(Instant { seconds: 1_700_000_000 + seconds, nanos: 0 });
            let roles = vec!["tool".to_owned()];
            for limit in [Some(5), None] {
                let request = Request { limit, ..request.clone() };
                let answered = pair.compare(&request);
                assert!(matches!(answered, SearchPlan::ByIndex { .. }), "{answered:?}");
                let old = Request { since: at(100), until: at(900), ..request.clone() };
                pair.compare(&Request { roles: roles.clone(), ..old.clone() });
                pair.compare(&old);
                pair.compare(&Request { or: vec!["слов".to_owned()], ..request.clone() });
                pair.compare(&Request { and: vec!["the".to_owned()], ..old.clone() });
                pair.compare(&Request { not: vec!["fox".to_owned()], ..old });
                pair.compare(&Request { raw_content: true, ..request });
            }
        }
        // The texts in the segments are the texts that were written.
        assert!(matches!(reindex(&pair.with, true), Reindexed::Built { .. }));
        pair.compare(&Request { text: String::new(), ..Request::default() });
    }
}

#[test]
fn a_gap_is_filled_by_the_first_and_the_last_character_beyond_ascii() {
    let text = |number: usize| match number {
        0 => "ab\u{10FFFF}cd last".to_owned(),
        1 => "ab\u{10FFFE}cd last".to_owned(),
        2 => "x\u{10FFFF}cd last".to_owned(),
        3 => "ab\u{80}cd first".to_owned(),
        number => format!("abxxcd {number}"),
    };
    let messages = (0..6_000).map(|number| Message {
        conversation: 0,
        role: Value::Text("user".to_owned()),
        content: Value::Text(text(number)),
        time: Value::Integer(1_700_000_000 + number as i64),
        position: number as i64,
    });
    let pair = Pair::of(&words(&["a title"]), &messages.collect::<Vec<_>>());
    let mut narrowed = 0;
    for text in ["ab_cd", "b_cd", "x_cd la", "_b_cd la", "ab_c_"] {
        let request = Request { text: text.to_owned(), limit: None, ..Request::default() };
        if let SearchPlan::ByIndex { trace, .. } = pair.compare(&request) {
            narrowed += trace.gaps;
        }
    }
    assert!(narrowed > 0, "no gap was used");
}

#[test]
fn a_changed_database_is_answered_by_like_until_it_is_indexed_again() {
    let pair = Pair::of(&words(&["a", "b", "c"]), &wordy(300));
    let request = Request { text: "thing".to_owned(), ..Request::default() };
    assert!(matches!(pair.compare(&request), SearchPlan::ByIndex { .. }));
    assert!(matches!(pair.reindex(), Reindexed::Current { messages: 300 }));
    let writer = Connection::open(pair.folder.path().join("chats.db")).expect("the database");
    writer
        .execute("UPDATE messages SET content = 'a new thing' WHERE rowid = 7", [])
        .expect("a write");
    assert!(matches!(
        pair.compare(&request),
        SearchPlan::ByLike { why: FallbackReason::Stale, .. }
    ));
    assert!(matches!(pair.reindex(), Reindexed::Refreshed { added: 1, removed: 1, .. }));
    assert!(matches!(pair.compare(&request), SearchPlan::ByIndex { .. }));
    // In a log, where the database's own file stays as it is.
    writer.pragma_update(None, "journal_mode", "wal").expect("a log");
    pair.reindex();
    assert!(matches!(pair.compare(&request), SearchPlan::ByIndex { .. }));
    for rowid in 8..20 {
        writer
            .execute("UPDATE messages SET content = 'thing' WHERE rowid = ?1", [rowid])
            .expect("a write");
        assert!(matches!(
            pair.compare(&request),
            SearchPlan::ByLike { why: FallbackReason::Stale, .. }
        ));
        if rowid % 4 == 0 {
            pair.reindex();
            assert!(matches!(pair.compare(&request), SearchPlan::ByIndex { .. }));
        }
    }
}

/// More roles than the 256 numbers of a byte.
#[test]
fn more_roles_than_a_byte_can_number() {
    let messages: Vec<Message> = (0..900)
        .map(|number| Message {
            conversation: number % 3,
            role: Value::Text(format!("author {}", number * 7 % 300)),
            content: Value::Text(format!("the thing {number} of author {}", number % 300)),
            time: Value::Integer(1_700_000_000 + number as i64),
            position: number as i64,
        })
        .collect();
    let pair = Pair::of(&words(&["a", "b", "c"]), &messages);
    let by_index = |text: &str, roles: &[&str]| {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        let request = Request { text: text.to_owned(), roles, ..Request::default() };
        let answered = pair.compare(&request);
        assert!(matches!(answered, SearchPlan::ByIndex { .. }), "{answered:?}");
        ask(&pair.with, &request).0.len()
    };
    for role in 0..300 {
        assert_eq!(by_index("thing", &[&format!("author {role}")]), 3);
    }
    assert_eq!(by_index("", &["author 0", "author 255", "author 256", "author 299"]), 12);
    assert_eq!(by_index("thing 7", &[]), 111);
    assert_eq!(by_index("", &["user"]), 0);
}

#[test]
fn a_damaged_index_is_not_used() {
    let pair = Pair::of(&words(&["a", "b", "c"]), &wordy(500));
    let request = Request { text: "q".to_owned(), ..Request::default() };
    assert!(matches!(pair.compare(&request), SearchPlan::ByIndex { .. }));
    let mut files = Vec::new();
    collect(&pair.folder.path().join("index"), &mut files);
    let files: Vec<_> = files
        .into_iter()
        .filter(|path| {
            let name = path.file_name().unwrap_or_default();
            !["lock", "last", "database", "checked"].iter().any(|other| name == *other)
        })
        .collect();
    assert!(files.len() > 8);
    for path in files {
        let good = std::fs::read(&path).expect("a file of the index");
        let mut flipped = good.clone();
        for place in [0, good.len() / 3, good.len().saturating_sub(1)] {
            if let Some(byte) = flipped.get_mut(place) {
                *byte ^= 0x41;
            }
        }
        for bad in [&flipped[..], &good[..good.len() / 2], b"", b"no index at all"] {
            if bad == good {
                continue;
            }
            std::fs::write(&path, bad).expect("a damaged file");
            let fresh = Pair {
                with: Engine::new(pair.with.config().clone()),
                without: Engine::new(pair.without.config().clone()),
                folder: folder(),
            };
            let answered = fresh.compare(&request);
            assert!(
                matches!(answered, SearchPlan::ByLike { .. }),
                "{} {answered:?}",
                path.display()
            );
        }
        std::fs::write(&path, &good).expect("the file as it was");
        let mended = Engine::new(pair.with.config().clone());
        assert!(
            matches!(ask(&mended, &request).1, SearchPlan::ByIndex { .. }),
            "{}",
            path.display()
        );
    }
    assert!(matches!(reindex(&pair.with, true), Reindexed::Built { .. }));
}

#[test]
fn an_index_of_an_older_format_is_built_again() {
    let pair = Pair::of(&words(&["a", "b", "c"]), &wordy(50));
    let index_dir = pair.index_dir();
    let manifest = r#"{"format": 2, "segments": []}"#;
    for name in ["snapshot-9", "segment-7"] {
        std::fs::create_dir(index_dir.join(name)).expect("a folder");
        std::fs::write(index_dir.join(name).join("manifest"), manifest).expect("a manifest");
    }
    let checksum = crc32fast::hash(manifest.as_bytes());
    std::fs::write(index_dir.join("current"), format!("snapshot-9 {checksum:08x}\n"))
        .expect("another commit");
    let request = Request { text: "thing".to_owned(), ..Request::default() };
    let fresh = Engine::new(pair.with.config().clone());
    let (_, answered) = ask(&fresh, &request);
    assert!(format!("{answered:?}").contains("format 2"), "{answered:?}");
    assert!(matches!(reindex(&fresh, false), Reindexed::Built { .. }));
    assert!(matches!(pair.compare(&request), SearchPlan::ByIndex { .. }));
    assert!(!index_dir.join("snapshot-9").exists() && !index_dir.join("segment-7").exists());
    assert_eq!(pair.segments(), 1);
}

fn collect(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the index") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

/// A log whose frames are written over keeps its length, and two writes within a tick of the clock
/// leave the same time: only the head of the `-shm` tells them apart.
#[test]
fn a_write_that_leaves_no_trace_in_times_and_lengths_is_seen() {
    let pair = Pair::of(&words(&["a", "b", "c"]), &wordy(50));
    let path = pair.folder.path().join("chats.db");
    let writer = Connection::open(&path).expect("the database");
    writer
        .execute_batch("PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0")
        .expect("a log");
    let write = |text: &str| {
        writer
            .execute("UPDATE messages SET content = ?1 WHERE rowid < 30", [text])
            .expect("a write");
    };
    write(&"long ".repeat(3000));
    writer.execute_batch("PRAGMA wal_checkpoint(restart)").expect("a checkpoint");
    write("first thing");
    let log = pair.folder.path().join("chats.db-wal");
    let stamp = |path: &Path| {
        let metadata = std::fs::metadata(path).expect("a log");
        (metadata.len(), metadata.modified().expect("a time"))
    };
    let before = stamp(&log);
    pair.reindex();
    let request = Request { text: "thing".to_owned(), ..Request::default() };
    assert!(matches!(pair.compare(&request), SearchPlan::ByIndex { .. }));
    write("second");
    let file = std::fs::File::options().append(true).open(&log).expect("the log");
    file.set_modified(before.1).expect("a time can be set");
    assert_eq!(stamp(&log), before);
    assert!(matches!(
        pair.compare(&request),
        SearchPlan::ByLike { why: FallbackReason::Stale, .. }
    ));
}

#[test]
fn a_search_by_index_stops_when_told_to() {
    let pair = Pair::of(&words(&["a", "b", "c"]), &wordy(3_000));
    let request = Request { text: "_".to_owned(), ..Request::default() };
    let call = Call::default();
    let mut hits = 0;
    let result = pair.with.exact(&request, &call, &mut |_| {
        hits += 1;
        call.stop.request();
        ControlFlow::Continue(())
    });
    assert!(result.is_err_and(|error| error.is_stopped()));
    assert!(hits < 100, "{hits} hits after the stop");
}
