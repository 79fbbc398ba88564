//! Questions during imports. Each answer shows one state, and no state from before the last import that ended
//! before the question.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;

use rusqlite::{Connection, params};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Request};
use verbatim_engine::{Reader, Scope};

use crate::nodes::{AllNodes, nodes};
use crate::{hits, import, new_name, reader};

/// The number of imports. Each import adds a message, and changes every other message.
const IMPORTS: i64 = 5;

/// How many messages state 0 has.
const MESSAGES: i64 = 40;

/// Writes a database in a state: all messages, titles and times name it.
fn database(folder: &Path, state: i64) -> PathBuf {
    let path = folder.join(format!("{state}.db"));
    let connection = Connection::open(&path).expect("a database");
    let sql = "CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT, update_time TEXT);
         CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT,
             content TEXT, create_time TEXT, position INTEGER);";
    connection.execute_batch(sql).expect("tables");
    let content = format!("state {state} of the thing");
    let sql = "INSERT INTO conversations VALUES ('c', ?1, ?2)";
    connection.execute(sql, params![content, state.to_string()]).expect("a conversation");
    for position in 0..MESSAGES + state {
        let sql = "INSERT INTO messages VALUES (?1, 'c', 'user', ?2, ?3, ?1)";
        connection.execute(sql, params![position, content, state.to_string()]).expect("a message");
    }
    path
}

/// Returns the state that the messages belong to. The messages must be exactly the messages of one state.
#[track_caller]
fn state_of(hits: Vec<Hit<'_>>) -> i64 {
    let texts: BTreeSet<&str> = hits.iter().map(|hit| &*hit.content).collect();
    let titles: BTreeSet<&str> = hits.iter().map(|hit| &*hit.title).collect();
    assert_eq!(texts.len(), 1, "a mixture of states: {texts:?}");
    assert_eq!(texts, titles, "a mixture of states");
    let state = texts.first().and_then(|text| text.split(' ').nth(1)?.parse().ok());
    let state = state.expect("a number");
    assert_eq!(hits.len() as i64, MESSAGES + state, "messages of state {state}");
    assert!(hits.iter().all(|hit| hit.time.is_some_and(|time| time.seconds == state)));
    state
}

/// Asks one reader a question of each kind; returns the state that all answers show.
#[track_caller]
fn asked(reader: &dyn Reader) -> i64 {
    let request = Request { text: "thing".to_owned(), ..Request::default() };
    let state = state_of(hits(reader, &request).0);
    let messages = reader.read("c", false, &Call::default()).expect("an answer").expect("c");
    assert_eq!(state_of((0..messages.turns()).map(|turn| messages.message(turn)).collect()), state);
    let listing = reader.list(&Scope::default(), &Call::default()).expect("a list");
    assert_eq!(listing.len(), 1);
    assert_eq!(listing.about(0).title, format!("state {state} of the thing"));
    assert_eq!(i64::from(listing.about(0).turns), MESSAGES + state);
    let counts = reader.count(&Scope::default(), &Instant::day, &Call::default()).expect("counts");
    assert_eq!(counts.roles["user"] as i64, MESSAGES + state);
    state
}

#[test]
fn answers_are_of_one_state_while_imports_are_written() {
    let Some(nodes) = nodes() else { return };
    let _all = AllNodes::enter();
    let (folder, index) = (tempfile::tempdir().expect("a folder"), new_name());
    import(nodes, &database(folder.path(), 0), &index);
    let (begun, done) = (AtomicI64::new(0), AtomicI64::new(0));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for state in 1..=IMPORTS {
                let path = database(folder.path(), state);
                begun.store(state, SeqCst);
                import(nodes, &path, &index);
                done.store(state, SeqCst);
            }
            is_over.store(true, SeqCst);
        });
        let mut last = 0;
        while !is_over.load(SeqCst) {
            let earliest = done.load(SeqCst);
            let state = asked(&*reader(nodes, &index));
            let latest = begun.load(SeqCst);
            assert!((earliest..=latest).contains(&state), "{state}, not {earliest}..={latest}");
            assert!(state >= last, "{state} after {last}");
            last = state;
        }
    });
    assert_eq!(asked(&*reader(nodes, &index)), IMPORTS);
    nodes.remove(&index);
}

/// After an import, an open reader still answers from its old state, and a new reader answers from the new
/// state.
#[test]
fn an_open_reader_answers_one_state() {
    let Some(nodes) = nodes() else { return };
    let _all = AllNodes::enter();
    let (folder, index) = (tempfile::tempdir().expect("a folder"), new_name());
    import(nodes, &database(folder.path(), 0), &index);
    let open = reader(nodes, &index);
    assert_eq!(asked(&*open), 0);
    import(nodes, &database(folder.path(), 1), &index);
    assert_eq!(asked(&*open), 0, "the open reader");
    assert_eq!(asked(&*reader(nodes, &index)), 1, "a new reader");
    nodes.remove(&index);
}
