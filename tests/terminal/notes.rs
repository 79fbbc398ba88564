//! Answers say what they leave out: sources without an index, sources that cannot be read, unknown names.

use std::{fs, path::PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_engine::{Config, Engine, Mode, Question};

use crate::calls::{call, found, refused, with};
use crate::corpus::{SCHEMA, folder_with};
use crate::ranked::converse;
use crate::transcripts::line;

/// A home with an export, and with a transcript of an agent.
struct Home {
    folder: TempDir,
    config: Config,
}

impl Home {
    fn new() -> Home {
        let (folder, db) = folder_with("chats.db");
        let connection = Connection::open(&db).expect("a database");
        connection.execute_batch(SCHEMA).expect("the schema");
        let talks = [
            ("food", "Dinner plans", "A vegetarian restaurant near San Jose, please."),
            ("meat", "Steak", "Which restaurant has the best steak?"),
            ("code", "Programming", "The borrow checker refuses it."),
        ];
        for ((id, title, text), time) in talks.into_iter().zip(100..) {
            converse(&connection, id, Some(title), &[("user", text, Some(time))]);
        }
        let transcripts = folder.path().join("transcripts/my-project");
        fs::create_dir_all(&transcripts).expect("folders can be made");
        let talk = line(1, "user", "How do I deploy the zeppelin?");
        fs::write(transcripts.join("deadbeef.jsonl"), talk).expect("files can be written");
        fs::create_dir(folder.path().join("home")).expect("folders can be made");
        let config = Config {
            db: Some(db.into()),
            home: folder.path().join("home"),
            archives: vec![folder.path().join("transcripts")],
            ..Config::default()
        };
        Home { folder, config }
    }

    fn db(&self) -> PathBuf {
        let db = self.config.db.as_ref().and_then(|db| db.path());
        db.expect("it is named").to_owned()
    }

    /// An engine that has read the transcripts.
    fn engine(&self) -> Engine {
        let engine = Engine::new(self.config.clone());
        engine.upkeep().sync_transcripts(&Default::default(), &|_| {}).expect("they are read");
        engine
    }

    /// An engine that leaves indexes as they are.
    fn frozen(&self) -> Engine {
        drop(self.engine());
        Engine::new(Config { leave_indexes: true, ..self.config.clone() })
    }
}

/// ChatGPT's tools, and a filter, say which source they could not read.
#[cfg(unix)]
#[test]
fn what_cannot_be_read_is_named_where_something_is_not_found() {
    let home = Home::new();
    drop(home.engine());
    fs::write(home.db(), "no database, but long enough to be looked at").expect("a file");
    let command = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().args(words).arg("--db").arg(home.db()).arg("--home");
        command.arg(&home.config.home).arg("--archive").arg(&home.config.archives[0]);
        command
    };
    let mut server =
        crate::program::Server::start(&mut command(&["serve", "--tools", "chatgpt", "--no-watch"]));
    let answer = server.call("search", &json!({"query": "zeppelin"}));
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["results"].as_array().map(Vec::len), Some(1), "{answer}");
    assert!(answer["notes"].to_string().contains("chats.db"), "{answer}");
    let missing = server.call("fetch", &json!({"id": "nowhere"}));
    assert!(missing.contains("no conversation") && missing.contains("chats.db"), "{missing}");
    let output = command(&["search", "zeppelin", "--in", "nowhere"]).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("chats.db"), "{errors}");
}

fn search(engine: &Engine, arguments: Value) -> Value {
    let arguments = with(arguments, &json!({"response_format": "json"}));
    serde_json::from_str(&found(engine, "search", arguments)).unwrap()
}

fn query(engine: &Engine, arguments: Value) -> (Value, Value) {
    let answer = call(engine, "query_conversations", arguments);
    assert!(!answer.is_error, "{}", answer.text);
    (serde_json::from_str(&answer.text).unwrap(), answer.structured.unwrap())
}

fn titles(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap().iter();
    results.map(|one| one["title"].as_str().unwrap()).collect()
}

#[track_caller]
fn says(answer: &Value, part: &str) {
    let notes = answer["notes"].as_array().unwrap_or_else(|| panic!("no notes: {answer}"));
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains(part)), "{part}: {answer}");
}

#[test]
fn without_an_index_the_words_of_a_question_are_found_and_that_is_said() {
    let home = Home::new();
    let engine = home.frozen();
    for mode in ["both", "vector"] {
        for (text, expected) in [
            ("vegetarian restaurants in San Jose", &["Dinner plans"][..]),
            // No message has all of these words.
            ("the best vegetarian steak", &["Steak", "Dinner plans"]),
            ("restaurant -steak", &["Dinner plans"]),
            ("\"restaurant near\"", &["Dinner plans"]),
            ("where is the \"restaurant in\" San Jose?", &["Dinner plans"]),
        ] {
            let answer = search(&engine, json!({"query": text, "mode": mode}));
            assert_eq!(titles(&answer), expected, "{text}: {answer}");
            assert_eq!(answer["complete"], false);
            says(
                &answer,
                "the export is not ranked yet: messages with the words of the query are shown, the newest first",
            );
            let notes = answer["notes"].as_array().unwrap();
            let count = notes.iter().filter(|note| note.to_string().contains("export")).count();
            assert_eq!(count, 1, "{answer}");
        }
    }
    let text = found(&engine, "search", json!({"query": "xylophone"}));
    assert!(text.starts_with("Nothing found so far") && text.contains("not ranked yet"), "{text}");
    for fields in ["summary", "turns", "both"] {
        let question =
            json!({"mode": "search", "query": "a vegetarian restaurant", "searchMode": fields});
        let (text, answer) = query(&engine, question);
        assert_eq!(answer["conversations"][0]["sessionId"], "food", "{answer}");
        assert_eq!(answer["complete"], false);
        says(&answer, "the export is not ranked yet");
        assert!(text["message"].as_str().unwrap().contains("not ranked yet"), "{text}");
    }
    let (text, answer) = query(&engine, json!({"mode": "search", "query": "xylophone"}));
    assert_eq!((&text["n"], &answer["totalResults"]), (&json!(0), &json!(0)));
    assert!(text["message"].as_str().unwrap().contains("not ranked yet"), "{text}");
    // Nothing was built.
    let folders = fs::read_dir(engine.config().index_folder()).into_iter().flatten().flatten();
    assert!(folders.into_iter().all(|entry| entry.path().is_file()));
    // Several concepts must be in one conversation; exact search needs no index and has no note.
    let two = search(&engine, json!({"query": ["restaurant", "steak"]}));
    assert_eq!(titles(&two), ["Steak"]);
    let exact = search(&engine, json!({"query": "restaurant", "mode": "text"}));
    assert_eq!((&exact["total"], exact.get("complete")), (&json!(2), None), "{exact}");
}

/// The words of a question are found in an export that has changed since it was indexed, and its other messages
/// are not shown as they were.
#[test]
fn what_is_not_ranked_yet_stands_beside_what_is_ranked() {
    let home = Home::new();
    // The first question builds what ranking needs.
    search(&home.engine(), json!({"query": "restaurant"}));
    let engine = home.frozen();
    let ask = |text: &str| search(&engine, json!({"query": text}));
    let before = ask("restaurant");
    assert!(titles(&before).contains(&"Steak") && before.get("complete").is_none(), "{before}");
    let connection = Connection::open(home.db()).unwrap();
    connection
        .execute_batch(
            "DELETE FROM messages WHERE conversation_id = 'meat';
             UPDATE messages SET content = 'A restaurant in Rome.' WHERE conversation_id = 'food';
             UPDATE conversations SET title = 'Rome' WHERE id = 'food';",
        )
        .unwrap();
    converse(&connection, "new", Some("Fish"), &[("user", "A fish restaurant?", Some(200))]);
    // A message that has all words is first.
    let answer = ask("fish restaurant");
    assert_eq!(titles(&answer)[0], "Fish", "{answer}");
    let answer = ask("restaurant zeppelin");
    let title = |place: usize| titles(&answer)[place];
    assert_eq!((title(1), title(2), titles(&answer).len()), ("Fish", "Rome", 3), "{answer}");
    assert!(answer["results"][0]["snippet"].as_str().unwrap().contains("zeppelin"), "{answer}");
    assert_eq!(answer["complete"], false);
    says(&answer, "the export is not ranked yet");
    let scores: Vec<f64> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["score"].as_f64())
        .collect();
    assert!(scores.len() == 3 && scores.is_sorted_by(|a, b| a >= b), "{answer}");
    let two = search(&engine, json!({"query": ["fish", "restaurant"]}));
    assert_eq!((titles(&two), &two["total"]), (vec!["Fish"], &json!(1)));
}

#[test]
fn views_are_never_ranked() {
    let home = Home::new();
    let db = home.folder.path().join("views.db");
    let connection = Connection::open(&db).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE m (id TEXT, conversation_id TEXT, role TEXT, content TEXT, create_time REAL);
             CREATE TABLE c (id TEXT, title TEXT);
             INSERT INTO c VALUES ('c', 'A title');
             INSERT INTO m VALUES ('1', 'c', 'user', 'hello view', 1), ('2', 'c', 'user', 'bye', 2);
             CREATE VIEW messages AS SELECT * FROM m;
             CREATE VIEW conversations AS SELECT * FROM c;",
        )
        .unwrap();
    let engine =
        Engine::new(Config { db: Some(db.into()), archives: Vec::new(), ..home.config.clone() });
    for text in ["hello view", "view hello"] {
        let answer = search(&engine, json!({"query": text}));
        assert_eq!(titles(&answer), ["A title"], "{answer}");
        assert_eq!(answer["results"][0]["line"], 1);
        assert_eq!(answer["complete"], false);
        says(&answer, "the export cannot be ranked: messages with the words");
    }
}

#[test]
fn a_source_that_cannot_be_read_is_named_and_takes_no_other_away() {
    let home = Home::new();
    let garbage = home.folder.path().join("garbage.db");
    fs::write(&garbage, "no database at all, but long enough to have a header".repeat(9)).unwrap();
    let missing = home.folder.path().join("nope.db");
    for (db, reason) in [(&missing, "Database not found: "), (&garbage, "not an SQLite database")] {
        let other = Home::new();
        let config = Config { db: Some(db.clone().into()), ..other.config.clone() };
        let home = Home { config, ..other };
        let engine = home.engine();
        for mode in ["text", "both", "vector"] {
            let answer = search(&engine, json!({"query": "zeppelin", "mode": mode}));
            assert_eq!(answer["results"].as_array().unwrap().len(), 1, "{mode}: {answer}");
            says(&answer, reason);
            says(&answer, &db.display().to_string());
            assert_eq!(answer["complete"], false);
            let none = found(&engine, "search", json!({"query": "xylophones", "mode": mode}));
            assert!(mode == "vector" || none.starts_with("Nothing found so far"), "{none}");
            assert!(none.contains(reason), "{none}");
        }
        for call in [
            json!({"mode": "list"}),
            json!({"mode": "search", "query": "zeppelin", "searchMode": "turns"}),
        ] {
            let (text, answer) = query(&engine, call);
            assert_eq!(answer["conversations"].as_array().unwrap().len(), 1, "{answer}");
            says(&answer, reason);
            assert!(text["message"].as_str().unwrap().contains(reason), "{text}");
        }
        let (_, get) = query(&engine, json!({"mode": "get", "sessionId": "ffffffff"}));
        assert!(get["message"].as_str().unwrap().contains(reason), "{get}");
        let read = refused(&engine, "read", json!({"path": "/nowhere"}));
        assert!(read.starts_with("File not found: /nowhere") && read.contains(reason), "{read}");
        // If no source can be read, the answer is an error.
        fs::remove_file(engine.config().archive_database()).unwrap();
        let alone = Engine::new(Config { archives: Vec::new(), ..engine.config().clone() });
        let error = refused(&alone, "search", json!({"query": "zeppelin"}));
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_broken_database_of_threads_takes_no_other_source_away() {
    let home = Home::new();
    let engine = home.engine();
    fs::create_dir_all(&engine.config().home).unwrap();
    let threads = engine.config().home.join("threads.db");
    fs::write(&threads, "not a database".repeat(100)).unwrap();
    let (_, list) = query(&engine, json!({"mode": "list"}));
    assert_eq!(list["total"], 4, "{list}");
    says(&list, "the threads cannot be read");
    let (_, answer) = query(&engine, json!({"mode": "search", "query": "steak restaurant"}));
    assert_eq!(answer["conversations"][0]["sessionId"], "meat", "{answer}");
    says(&answer, "the threads cannot be read");
    let (_, get) = query(&engine, json!({"mode": "get", "sessionId": "food"}));
    assert_eq!(get["found"], true);
    let (_, by_key) =
        query(&engine, json!({"mode": "get", "sessionKey": get["session"]["sessionKey"]}));
    assert_eq!(by_key["found"], true);
}

#[test]
fn the_line_is_of_the_message_that_has_the_text() {
    let home = Home::new();
    let connection = Connection::open(home.db()).unwrap();
    let messages = [
        ("user", "hello", Some(200)),
        ("assistant", "the zebra protocol decision is X", Some(201)),
        ("user", "unrelated", Some(202)),
        ("assistant", "goodbye", Some(203)),
    ];
    converse(&connection, "z", Some("zebra notes"), &messages);
    converse(&connection, "t", Some("zebra in the title"), &messages[2..]);
    let indexed = home.engine();
    drop(search(&indexed, json!({"query": "zebra"})));
    for engine in [home.frozen(), indexed] {
        let answer = search(&engine, json!({"query": "zebra", "mode": "text"}));
        let of = |title: &str| {
            let mut results = answer["results"].as_array().unwrap().iter();
            results.find(|one| one["title"] == title).unwrap()
        };
        let both = of("zebra notes");
        assert_eq!(both["line"], 2, "{answer}");
        assert_eq!(both["snippet"], "the zebra protocol decision is X");
        let title = of("zebra in the title");
        assert_eq!((&title["line"], &title["snippet"]), (&json!(1), &json!("(the title matches)")));
    }
}

#[test]
fn a_project_and_a_session_are_taken_as_they_are_printed() {
    let home = Home::new();
    let engine = home.engine();
    let transcript = search(&engine, json!({"query": "zeppelin", "mode": "text"}));
    let project = transcript["results"][0]["project"].as_str().unwrap().to_owned();
    for mode in ["text", "both"] {
        let count = |arguments: Value| {
            let text = if mode == "text" { "re" } else { "restaurant deploy zeppelin" };
            let answer = search(&engine, with(json!({"query": text, "mode": mode}), &arguments));
            (answer["results"].as_array().unwrap().len(), answer)
        };
        let text = if mode == "text" { 2 } else { 3 };
        for (arguments, expected) in [
            (json!({"project": ""}), None),
            (json!({"session_id": " "}), None),
            (json!({"project": project.to_uppercase()}), Some(if mode == "text" { 0 } else { 1 })),
            (json!({"project": "Export"}), Some(if mode == "text" { 3 } else { 2 })),
            (json!({"session_id": "food"}), Some(1)),
            (json!({"session_id": "FO"}), Some(1)),
        ] {
            let (found, answer) = count(arguments.clone());
            assert!(expected.map_or(found >= text, |it| it == found), "{arguments}: {answer}");
            assert!(found > 0 || answer.get("notes").is_some(), "{arguments}: {answer}");
        }
        let (none, answer) = count(json!({"project": "exprot"}));
        assert_eq!((none, answer.get("complete")), (0, None));
        says(&answer, "no conversation has the project \"exprot\"; known: export, ");
        let (none, answer) = count(json!({"session_id": "fool"}));
        assert_eq!(none, 0);
        says(&answer, "no conversation has the session \"fool\"; known: food");
    }
    let question = Question {
        concepts: vec!["restaurant".to_owned()],
        mode: Mode::Text,
        scope: verbatim_engine::Scope { roles: vec!["uesr".to_owned()], ..Default::default() },
        limit: 5,
        ..Question::default()
    };
    let ranking = engine.rank(&question, &Default::default()).unwrap();
    assert_eq!(ranking.notes(), ["no conversation has the role \"uesr\"; known: user"]);
    assert!(ranking.is_complete());
}

#[test]
fn how_many_answer_is_counted() {
    let home = Home::new();
    let engine = home.engine();
    let one = search(&engine, json!({"query": "restaurant", "mode": "text", "limit": 1}));
    assert_eq!((&one["total"], one["results"].as_array().unwrap().len()), (&json!(2), 1));
    says(&one, "Raise limit");
    let question =
        json!({"mode": "search", "query": "restaurant", "searchMode": "turns", "limit": 1});
    let (_, answer) = query(&engine, question);
    assert!(answer["totalResults"].as_u64().unwrap() > 1, "{answer}");
    says(&answer, "1 of ");
}

#[cfg(unix)]
mod program {
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use super::*;
    use crate::program::Server;
    use crate::user::Said;

    fn command(home: &Home, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().args(arguments).arg("--home").arg(&home.config.home);
        command.arg("--archive").arg(home.folder.path().join("transcripts"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn with_db(home: &Home, arguments: &[&str], db: &Path) -> Command {
        let mut command = command(home, arguments);
        command.arg("--db").arg(db);
        command
    }

    /// Makes the export so large that no question builds its index.
    fn enlarge(home: &Home) {
        let connection = Connection::open(home.db()).unwrap();
        connection
            .execute_batch(
                "INSERT INTO conversations VALUES ('large', NULL, NULL, 'Large');
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
                 INSERT INTO messages SELECT 'l' || i, 'large', 'user',
                     'word' || (i % 977) || hex(randomblob(150)), i, NULL, i FROM n",
            )
            .unwrap();
    }

    #[test]
    fn the_first_question_is_answered() {
        let home = Home::new();
        enlarge(&home);
        let mut server = Server::start(&mut with_db(&home, &["serve"], &home.db()));
        let question =
            json!({"query": "vegetarian restaurant in San Jose", "response_format": "json"});
        let begun = Instant::now();
        let answer = server.call("search", &question);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["results"][0]["title"], "Dinner plans", "{answer}");
        // The question waits for the build, but not for long.
        assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
        if answer["complete"] == false {
            // The words may be indexed already, and the vectors not yet.
            let notes = answer["notes"].to_string();
            let states = ["the export is not ranked yet", "the index of the export is being built"];
            assert!(states.iter().any(|state| notes.contains(state)), "{answer}");
            says(&answer, "ask again in about ");
        }
        let question = json!({"query": "deploy zeppelin", "response_format": "json"});
        let answer: Value = serde_json::from_str(&server.call("search", &question)).unwrap();
        assert_eq!(answer["results"][0]["snippet"], "How do I deploy the zeppelin?", "{answer}");
    }

    #[test]
    fn a_server_that_does_not_watch_builds_nothing() {
        let home = Home::new();
        let mut server = Server::start(&mut with_db(&home, &["serve", "--no-watch"], &home.db()));
        let answer = server.call("search", &json!({"query": "a vegetarian restaurant"}));
        assert!(answer.contains("Dinner plans"), "{answer}");
        assert!(answer.contains("the export is not ranked yet"), "{answer}");
        assert!(answer.contains("the transcripts of coding agents were not read yet"), "{answer}");
        assert!(!home.config.index_folder().exists());
    }

    #[test]
    fn a_command_builds_what_is_missing_and_names_what_it_cannot_read() {
        let home = Home::new();
        enlarge(&home);
        let run = |mut command: Command| Said::of(&mut command);
        let question = ["search", "vegetarian restaurant in San Jose", "--mode", "both"];
        let first = run(with_db(&home, &question, &home.db()));
        first.ends(0).prints("A vegetarian restaurant near San Jose");
        let copied = "verbatim: copied 1 transcript of coding agents into ";
        assert!(first.errors.starts_with(copied), "{first}");
        // The vectors of the sentence model take longer.
        first.warns("\nverbatim: the sentence model has read 0 of 30,003 ");
        assert_eq!(first.errors.lines().count(), 2, "{first}");
        let status = run(with_db(&home, &["status", "--json"], &home.db()));
        status.prints("\"words\"").prints("\"vectors\"");
        let missing = home.folder.path().join("nope.db");
        for arguments in [&["list"][..], &["stats"], &["search", "zeppelin", "--mode", "words"]] {
            let said = run(with_db(&home, arguments, &missing));
            assert!(!said.ends(0).warns("Database not found: ").out.is_empty(), "{arguments:?}");
        }
        // With transcripts alone, an exact search asks them.
        let exact = run(command(&home, &["search", "zeppelin", "-C", "1"]));
        assert_eq!(exact.ends(0).prints("How do I deploy the zeppelin?").errors, "");
        let unknown = run(command(&home, &["search", "zeppelin", "--role", "uesr"]));
        unknown.ends(2).warns("no conversation has the role \"uesr\"; known: user");
    }
}
