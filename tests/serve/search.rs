//! `conversation_search` and the engine under it against plain SQL run by SQLite.

use std::{fmt::Write, ops::ControlFlow, path::Path};

use proptest::{collection::vec, option, prelude::*, sample::select};
use rusqlite::{Connection, params, types::Value};
use serde_json::{Map, json};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Request};
use verbatim_engine::{Config, Engine};
use verbatim_server::tools::{Options, conversation_search::TOOL};

use crate::cases::config;
use crate::corpus::{folder, folder_with};

/// The characters of texts and queries: scripts, cases, wildcards, quotes, escapes, emoji.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "a", "B", "ab", "AB", "é", "É", "ß", "日本", "語", "привет", "ПРИВЕТ", "مرحبا", "😀", "👩‍👧",
    "%", "_", "'", "\"", "\\", "\n", " ", "  ", "[", "]", "\u{301}", "\u{a0}", "\u{1f}",
    "\u{2028}", "x", "1", "\u{fffd}", "-",
];

/// Stored times and the instants that they denote.
const TIMES: &[(&str, Option<(i64, u32)>)] = &[
    ("'1700000000'", Some((1_700_000_000, 0))),
    ("1700000000", Some((1_700_000_000, 0))),
    ("1700000000.5", Some((1_700_000_000, 500_000_000))),
    ("'1700000000.5'", Some((1_700_000_000, 500_000_000))),
    ("'2023-11-14T22:13:20Z'", Some((1_700_000_000, 0))),
    ("'2023-11-15 00:13:20.5+02:00'", Some((1_700_000_000, 500_000_000))),
    ("'2023-11-14T22:13:19.999'", Some((1_699_999_999, 999_000_000))),
    ("'2023-11-15'", Some((1_700_006_400, 0))),
    ("-1.5", Some((-2, 500_000_000))),
    ("'99999999999'", Some((99_999_999_999, 0))),
    ("9", Some((9, 0))),
    ("'soon'", None),
    ("''", None),
    ("NULL", None),
];

#[derive(Clone, Debug)]
struct Row {
    conversation: usize,
    role: Option<&'static str>,
    content: Value,
    time: usize,
    position: Option<i64>,
}

#[derive(Clone, Debug)]
struct Corpus {
    titles: Vec<Option<String>>,
    rows: Vec<Row>,
    parts: bool,
    position: bool,
}

#[derive(Clone, Debug)]
struct Query {
    text: String,
    roles: Vec<&'static str>,
    since: Option<usize>,
    until: Option<usize>,
    limit: usize,
    case_sensitive: bool,
    raw: bool,
}

fn text() -> impl Strategy<Value = String> {
    vec(select(PIECES), 0..7).prop_map(|pieces| pieces.concat())
}

fn corpus() -> impl Strategy<Value = Corpus> {
    let content = prop_oneof![
        12 => text().prop_map(Value::Text),
        1 => text().prop_map(|text| Value::Blob(text.into_bytes())),
        1 => any::<i16>().prop_map(|number| Value::Integer(number.into())),
        1 => Just(Value::Real(1.5)),
        1 => Just(Value::Null),
    ];
    let row = (
        0..4_usize,
        select(
            &[Some("user"), Some("assistant"), Some("tool"), Some("system"), Some(""), None][..],
        ),
        content,
        0..TIMES.len(),
        option::weighted(0.9, 0..3_i64),
    )
        .prop_map(|(conversation, role, content, time, position)| Row {
            conversation,
            role,
            content,
            time,
            position,
        });
    (vec(option::of(text()), 3), vec(row, 0..24), any::<bool>(), any::<bool>())
        .prop_map(|(titles, rows, parts, position)| Corpus { titles, rows, parts, position })
}

fn query() -> impl Strategy<Value = Query> {
    (
        prop_oneof![
            1 => Just(String::new()),
            8 => vec(select(PIECES), 1..4).prop_map(|pieces| pieces.concat()),
        ],
        prop_oneof![2 => Just(Vec::new()), 1 => vec(select(&["user", "assistant", "tool"][..]), 1..3)],
        option::weighted(0.3, 0..TIMES.len()),
        option::weighted(0.3, 0..TIMES.len()),
        prop_oneof![Just(200_usize), 1..5_usize],
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
    )
        .prop_map(|(text, roles, since, until, limit, case_sensitive, raw)| Query {
            text,
            roles,
            since: since.filter(|at| TIMES[*at].1.is_some()),
            until: until.filter(|at| TIMES[*at].1.is_some()),
            limit,
            case_sensitive,
            raw,
        })
}

/// Writes the corpus; the text of the parts has a column of its own, for the oracle.
fn store(path: &Path, corpus: &Corpus) -> Connection {
    let connection = Connection::open(path).unwrap();
    let position = if corpus.position { ", position INTEGER" } else { "" };
    let schema = format!(
        "CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
         CREATE TABLE messages (id TEXT, conversation_id TEXT, role TEXT, content, create_time, plain
         {position});"
    );
    connection.execute_batch("PRAGMA synchronous = OFF; BEGIN").unwrap();
    connection.execute_batch(&schema).unwrap();
    for (number, title) in corpus.titles.iter().enumerate() {
        let id = format!("conversation-{number}");
        connection
            .execute("INSERT INTO conversations VALUES (?1, ?2)", params![id, title])
            .unwrap();
    }
    for (number, row) in corpus.rows.iter().enumerate() {
        let (content, plain) = match &row.content {
            // ASCII only, as Python's json.dumps writes it.
            Value::Text(text) if corpus.parts => {
                (Value::Text(format!("[{}]", ascii(text))), row.content.clone())
            }
            other => (other.clone(), Value::Null),
        };
        let time = TIMES[row.time].0;
        // The last of four conversations is missing: its messages are not searched.
        let id = format!("conversation-{}", row.conversation);
        let sql = format!(
            "INSERT INTO messages (id, conversation_id, role, content, create_time, plain) \
             VALUES (?1, ?2, ?3, ?4, {time}, ?5)"
        );
        let id_of = format!("message-{number}");
        connection.execute(&sql, params![id_of, id, row.role, content, plain]).unwrap();
        if corpus.position {
            let sql = "UPDATE messages SET position = ?1 WHERE id = ?2";
            connection.execute(sql, params![row.position, id_of]).unwrap();
        }
    }
    connection.execute_batch("COMMIT").unwrap();
    connection
}

fn ascii(text: &str) -> String {
    let mut json = serde_json::to_string(text).unwrap();
    let mut units = [0; 2];
    while let Some(character) = json.chars().find(|character| !character.is_ascii()) {
        let mut escaped = String::new();
        for unit in character.encode_utf16(&mut units) {
            write!(escaped, "\\u{unit:04x}").unwrap();
        }
        json = json.replace(character, &escaped);
    }
    json
}

/// The characters that Python's `str.strip()` removes: those for which `str.isspace()` holds.
pub(crate) const SPACES: [char; 29] = [
    '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{1c}', '\u{1d}', '\u{1e}', '\u{1f}', ' ', '\u{85}',
    '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}', '\u{2002}', '\u{2003}', '\u{2004}', '\u{2005}',
    '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}', '\u{2028}', '\u{2029}', '\u{202f}',
    '\u{205f}', '\u{3000}',
];

/// Returns a text as Python's `str.strip()` leaves it.
pub(crate) fn stripped(text: &str) -> &str {
    text.trim_matches(|c| SPACES.contains(&c))
}

/// Returns the rows that plain SQL finds, in the contract's order.
fn oracle(connection: &Connection, corpus: &Corpus, decodes: bool, query: &Query) -> Vec<usize> {
    if query.case_sensitive {
        connection.execute_batch("PRAGMA case_sensitive_like = ON").unwrap();
    }
    let pattern = "'%' || ?1 || '%'";
    let decoded =
        if decodes && !query.raw { format!("OR m.plain LIKE {pattern}") } else { String::new() };
    let sql = format!(
        "SELECT m.rowid - 1 FROM messages m JOIN conversations c ON c.id = m.conversation_id \
         WHERE ?2 OR m.content LIKE {pattern} OR c.title LIKE {pattern} {decoded}"
    );
    let text = stripped(&query.text);
    let blank = text.is_empty();
    let mut statement = connection.prepare(&sql).unwrap();
    let rows = statement.query_map(params![text, blank], |row| row.get(0)).unwrap();
    let mut rows: Vec<usize> = rows.map(|row: Result<i64, _>| row.unwrap() as usize).collect();
    let instant = |row: &usize| TIMES[corpus.rows[*row].time].1;
    rows.retain(|row| {
        query.roles.is_empty() || corpus.rows[*row].role.is_some_and(|r| query.roles.contains(&r))
    });
    if let Some(since) = query.since {
        rows.retain(|row| instant(row).is_some_and(|time| Some(time) >= TIMES[since].1));
    }
    if let Some(until) = query.until {
        rows.retain(|row| instant(row).is_some_and(|time| Some(time) <= TIMES[until].1));
    }
    rows.sort_by_key(|row| {
        let position = if corpus.position { corpus.rows[*row].position } else { None };
        std::cmp::Reverse((instant(row), position, *row))
    });
    rows.truncate(query.limit);
    rows
}

fn shown(corpus: &Corpus, decodes: bool, raw: bool, row: &Row) -> String {
    match &row.content {
        Value::Text(text) if corpus.parts && (raw || !decodes) => format!("[{}]", ascii(text)),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Null => String::new(),
    }
}

proptest! {
    #![proptest_config(config(160))]

    #[test]
    fn hits_are_those_of_plain_sql(corpus in corpus(), queries in vec(query(), 6)) {
        let (home, path) = folder_with("a.db");
        drop(store(&path, &corpus));
        let engine = Engine::new(Config {
            db: Some(path.clone().into()),
            home: home.path().to_owned(),
            index: None,
            ..Config::default()
        });
        // Content counts as parts if at least half of the messages that are not empty are parts.
        let texts = corpus.rows.iter().filter(|row| matches!(&row.content, Value::Text(_))).count();
        let blobs = corpus.rows.iter()
            .filter(|row| matches!(&row.content, Value::Blob(bytes) if !bytes.is_empty()))
            .count();
        let decodes = corpus.parts && texts > 0 && texts >= blobs;
        for query in &queries {
            let connection = Connection::open(&path).unwrap();
            let expected = oracle(&connection, &corpus, decodes, query);
            drop(connection);
            let instant = |at: usize| {
                let (seconds, nanos) = TIMES[at].1.expect("only real times are asked for");
                Instant { seconds, nanos }
            };
            let request = Request {
                text: query.text.clone(),
                roles: query.roles.iter().map(|role| (*role).to_owned()).collect(),
                since: query.since.map(instant),
                until: query.until.map(instant),
                limit: Some(query.limit),
                case_sensitive: query.case_sensitive,
                raw_content: query.raw,
                ..Request::default()
            };
            let mut hits: Vec<Hit<'static>> = Vec::new();
            engine.exact(&request, &Call::default(), &mut |hit| {
                hits.push(hit);
                ControlFlow::Continue(())
            }).unwrap();
            let ids: Vec<String> = expected.iter().map(|row| format!("message-{row}")).collect();
            prop_assert_eq!(hits.iter().map(|hit| &hit.message_id).collect::<Vec<_>>(), ids.iter().collect::<Vec<_>>());
            for (hit, row) in hits.iter().zip(&expected) {
                let row = &corpus.rows[*row];
                prop_assert_eq!(&hit.content, &shown(&corpus, decodes, query.raw, row));
                prop_assert_eq!(hit.time.map(|time| (time.seconds, time.nanos)), TIMES[row.time].1);
                prop_assert_eq!(hit.position, row.position.filter(|_| corpus.position));
                prop_assert_eq!(&hit.role, row.role.unwrap_or_default());
            }
            let blocks = answer(&engine, query);
            prop_assert_eq!(blocks, written(&corpus, decodes, query, &expected));
        }
    }
}

#[test]
fn white_space_is_what_python_calls_so() {
    for character in (0..=0x0010_FFFF).filter_map(char::from_u32) {
        let is_space = verbatim_text::snippet::trim(&character.to_string()).is_empty();
        assert_eq!(is_space, SPACES.contains(&character), "{character:?}");
    }
}

/// A home with a word in every kind of place, its engine, and its workspace.
fn one_word(home: &Path) -> Engine {
    let db = home.join("chats.db");
    drop(crate::corpus::database(&db, &["we use npm here", "not that", "npm"]));
    let notes = home.join("notes");
    std::fs::create_dir_all(notes.join("plan/2025-11-10/001-a")).unwrap();
    std::fs::write(notes.join("plan/2025-11-10/001-a/a.md"), "npm\n").unwrap();
    let (home, workspaces) = (home.to_owned(), vec![notes]);
    Engine::new(Config { db: Some(db.into()), home, workspaces, ..Config::default() })
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn white_space_at_the_ends_of_a_query_is_stripped_unless_it_is_literal(
        before in vec(select(&SPACES[..]), 0..4),
        after in vec(select(&SPACES[..]), 1..4),
        other in select(&['\u{200b}', '\u{feff}', '\u{180e}', '\u{2060}', '\u{1b}', '.'][..]),
    ) {
        let home = folder();
        let engine = one_word(home.path());
        let text = |spaces: &[char]| spaces.iter().collect::<String>();
        let padded = format!("{}npm{}", text(&before), text(&after));
        for (tool, more) in [
            ("conversation_search", json!({})),
            ("search", json!({"mode": "both"})),
            ("query_conversations", json!({"mode": "search", "searchMode": "turns"})),
        ] {
            let ask = |query: &str| {
                let mut arguments = more.clone();
                arguments["query"] = json!(query);
                crate::calls::call(&engine, tool, arguments).text.replace(query, "npm")
            };
            prop_assert_eq!(ask(&padded), ask("npm"), "{} {:?}", tool, &padded);
        }
        // Other characters than white space are searched for.
        let kept = json!({"query": format!("npm{other}")});
        let kept = crate::calls::call(&engine, "conversation_search", kept).text;
        prop_assert_eq!(kept, "No matching messages.");
    }
}

#[test]
fn the_shell_strips_white_space_too() {
    let home = folder();
    drop(one_word(home.path()));
    let ask = |query: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().arg("search").arg(query).arg("--home").arg(home.path());
        let output = command.arg("--db").arg(home.path().join("chats.db")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(ask("npm").contains("we use npm here"));
    assert_eq!(ask("\t\u{3000}npm\u{1f}\n"), ask("npm"));
}

/// Calls the tool with the dates as text.
fn answer(engine: &Engine, query: &Query) -> String {
    let iso = |at: Option<usize>| {
        at.map(|at| {
            let (seconds, nanos) = TIMES[at].1.expect("only real times are asked for");
            verbatim_text::date::to_iso(Instant { seconds, nanos }).expect("in the calendar")
        })
    };
    let mut arguments = Map::new();
    arguments.insert("query".to_owned(), json!(query.text));
    arguments.insert("roles".to_owned(), json!(query.roles));
    arguments.insert("start_date".to_owned(), json!(iso(query.since)));
    arguments.insert("end_date".to_owned(), json!(iso(query.until)));
    arguments.insert("limit".to_owned(), json!(query.limit.to_string()));
    let options = Options {
        case_sensitive: query.case_sensitive,
        raw_content: query.raw,
        ..Options::default()
    };
    TOOL.call(engine, &options, &arguments, &Call::default()).text
}

/// Writes the rows in the contract's form.
fn written(corpus: &Corpus, decodes: bool, query: &Query, rows: &[usize]) -> String {
    let clock = |time: usize| match time {
        0..=6 => "2023-11-14 22:13",
        7 => "2023-11-15 00:00",
        8 => "1969-12-31 23:59",
        9 => "5138-11-16 09:46",
        10 => "1970-01-01 00:00",
        _ => "(no time)",
    };
    let blocks: Vec<String> = rows
        .iter()
        .map(|row| {
            let row = &corpus.rows[*row];
            let role = row.role.filter(|role| !role.is_empty()).unwrap_or("unknown");
            let title = stripped(corpus.titles[row.conversation].as_deref().unwrap_or_default());
            let title = if title.is_empty() { "conversa" } else { title };
            let content = shown(corpus, decodes, query.raw, row);
            format!("[{}] {role} (conv: {title})\n{}", clock(row.time), stripped(&content))
        })
        .collect();
    if blocks.is_empty() { "No matching messages.".to_owned() } else { blocks.join("\n\n---\n\n") }
}

#[test]
fn the_newest_database_is_found_anew_each_time() {
    let home = folder();
    let engine = Engine::new(Config { home: home.path().to_owned(), ..Config::default() });
    let ask = || TOOL.call(&engine, &Options::default(), &Map::new(), &Call::default()).text;
    assert!(ask().starts_with("Database not found: no *.db file in "), "{}", ask());
    let db = home.path().join("db");
    std::fs::create_dir(&db).unwrap();
    std::fs::create_dir(db.join("folder.db")).unwrap();
    std::fs::write(db.join("notes.db-wal"), "").unwrap();
    assert!(ask().ends_with("folder.db: it is a folder, not a file"), "{}", ask());
    drop(crate::corpus::database(&db.join("b.db"), &["red"]));
    assert!(ask().ends_with("\nred"), "{}", ask());
    drop(crate::corpus::database(&db.join("a.db"), &["green"]));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    std::fs::File::options()
        .append(true)
        .open(db.join("a.db"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    assert!(ask().ends_with("\ngreen"), "{}", ask());
    let configured = Engine::new(Config {
        db: Some(home.path().join("missing.db").into()),
        home: home.path().to_owned(),
        index: None,
        ..Config::default()
    });
    let answer = TOOL.call(&configured, &Options::default(), &Map::new(), &Call::default());
    assert_eq!(
        answer.text,
        format!("Database not found: {}", home.path().join("missing.db").display())
    );
    assert!(!answer.is_error);
}

#[test]
fn views_and_tables_without_rowids_are_searched() {
    let (_home, path) = folder_with("a.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE c (id TEXT PRIMARY KEY, title TEXT) WITHOUT ROWID;
             CREATE TABLE m (rowid TEXT, id TEXT PRIMARY KEY, c TEXT, role TEXT COLLATE NOCASE, content TEXT, t REAL);
             INSERT INTO c VALUES ('1', 'Colours');
             INSERT INTO m VALUES ('x', 'a', '1', 'user', 'red', 5), ('x', 'b', '1', 'User', 'dark red', 5);
             CREATE VIEW conversations AS SELECT * FROM c;
             CREATE VIEW messages AS SELECT id, c AS conversation_id, role, content, t AS create_time FROM m;",
        )
        .unwrap();
    drop(connection);
    let engine = crate::corpus::engine(&path);
    let found = |roles: &[&str]| {
        let mut hits = Vec::new();
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        let request = Request { text: "RED".to_owned(), roles, ..Request::default() };
        engine
            .exact(&request, &Call::default(), &mut |hit| {
                hits.push(hit.content);
                ControlFlow::Continue(())
            })
            .unwrap();
        hits
    };
    assert_eq!(found(&[]), ["dark red", "red"]);
    // A view has the collations of its columns.
    assert_eq!(found(&["user"]), ["dark red", "red"]);
    assert_eq!(found(&["USER", "tool"]), ["dark red", "red"]);
    assert_eq!(found(&["tool"]), [""; 0]);
}

#[test]
fn a_stop_ends_a_long_search_at_once() {
    let (_home, path) = folder_with("a.db");
    let connection = crate::corpus::database(&path, &[]);
    connection
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
             INSERT INTO messages SELECT 'm' || i, 'conv-0001', 'user', hex(randomblob(100)), i, NULL, i FROM n",
        )
        .unwrap();
    drop(connection);
    let engine = crate::corpus::engine(&path);
    for (text, limit) in [("%Q%Q%", Some(50)), ("%", None)] {
        // On a very fast or busy machine the search may end before the stop; the test then repeats it.
        let mut stopped = false;
        for wait in [20, 10, 5, 2, 1, 20, 10, 5, 2, 1] {
            let call = Call::default();
            let request_stop = call.clone();
            let thread = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(wait));
                request_stop.stop.request();
                std::time::Instant::now()
            });
            let request = Request { text: text.to_owned(), limit, ..Request::default() };
            let answer = engine.exact(&request, &call, &mut |_| ControlFlow::Break(()));
            let ended = std::time::Instant::now();
            let late = ended.saturating_duration_since(thread.join().unwrap());
            assert!(late < std::time::Duration::from_secs(5), "{late:?} late");
            stopped |= answer.is_err_and(|error| error.is_stopped());
        }
        assert!(stopped, "{text} was never stopped");
    }
}
