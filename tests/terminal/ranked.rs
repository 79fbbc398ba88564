//! Lists of conversations and ranked search.

use std::{fs, path::Path};

use rusqlite::Connection;
use tempfile::TempDir;
use verbatim_base::{call::Call, model::Instant};
use verbatim_engine::{
    About, Config, Engine, Fields, Match, Mode, Question, Ranking, Reindex, Resources, Scope,
    SourceKind,
};

use crate::corpus::{SCHEMA, folder_with};
#[cfg(unix)]
use crate::user::Said;

/// Adds a conversation of messages (role, text, time).
pub(crate) fn converse(
    connection: &Connection,
    id: &str,
    title: Option<&str>,
    messages: &[(&str, &str, Option<i64>)],
) {
    connection
        .execute("INSERT INTO conversations VALUES (?1, NULL, NULL, ?2)", (id, title))
        .expect("a conversation");
    for (position, (role, text, time)) in messages.iter().enumerate() {
        let message = format!("{id}/{position}");
        connection
            .execute(
                "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6)",
                (message, id, role, text, time, position as i64),
            )
            .expect("a message");
    }
}

fn reindex(engine: &Engine) {
    let resources = Resources { memory: 64 << 20, threads: 2 };
    let options = Reindex { resources, full: false };
    engine.upkeep().reindex(options, &Call::default(), &mut |_| ()).expect("the index builds");
}

fn ids(abouts: &[About]) -> Vec<&str> {
    abouts.iter().map(|about| about.id.as_str()).collect()
}

#[test]
fn lists_are_the_same_with_an_index_and_without() {
    let (folder, path) = folder_with("a.db");
    let connection = Connection::open(&path).expect("a database");
    connection.execute_batch(SCHEMA).expect("the schema");
    converse(
        &connection,
        "b",
        Some("Bees"),
        &[("user", "x", Some(10)), ("assistant", "y", Some(50))],
    );
    converse(&connection, "a", None, &[("user", "x", Some(50)), ("tool", "y", Some(20))]);
    converse(&connection, "none", Some("Empty"), &[]);
    converse(&connection, "timeless", Some(""), &[("user", "x", None)]);
    converse(&connection, "old", Some("Old"), &[("user", "x", Some(5))]);
    let engine = Engine::new(Config {
        db: Some(path.into()),
        home: folder.path().into(),
        ..Config::default()
    });
    let list = |scope: &Scope, offset, limit| {
        let page = engine.list(scope, offset..offset + limit, &Call::default()).expect("a list");
        (page.abouts, page.total)
    };
    let scopes = [
        (Scope::default(), vec!["a", "b", "old", "timeless"]),
        (Scope { since: Some(at(11)), until: Some(at(19)), ..Scope::default() }, vec!["b"]),
        (Scope { since: Some(at(21)), ..Scope::default() }, vec!["a", "b"]),
        (Scope { roles: vec!["tool".into(), "system".into()], ..Scope::default() }, vec!["a"]),
        (Scope { conversation: Some("old".into()), ..Scope::default() }, vec!["old"]),
        (Scope { sources: vec![SourceKind::Threads], ..Scope::default() }, vec![]),
    ];
    let read: Vec<_> = scopes.iter().map(|(scope, _)| list(scope, 0, 100)).collect();
    reindex(&engine);
    for ((scope, expected), (read, total)) in scopes.iter().zip(read) {
        assert_eq!(ids(&read), *expected, "{scope:?}");
        assert_eq!(total, expected.len());
        assert_eq!(list(scope, 0, 100), (read, total));
    }
    let (page, total) = list(&Scope::default(), 1, 2);
    assert_eq!((ids(&page), total), (vec!["b", "old"], 4));
    assert_eq!(list(&Scope::default(), 9, 2).0, []);
    let about = engine
        .find(&Call::default())
        .about(SourceKind::Export, "b")
        .expect("reads")
        .expect("is there");
    assert_eq!((about.title.as_str(), about.turns), ("Bees", 2));
    assert_eq!((about.begun, about.last), (Some(at(10)), Some(at(50))));
    assert_eq!(
        engine.find(&Call::default()).about(SourceKind::Export, "none").expect("reads"),
        None
    );
}

fn at(seconds: i64) -> Instant {
    Instant { seconds, nanos: 0 }
}

/// A database with an engine on it.
struct Library {
    folder: TempDir,
    connection: Connection,
    engine: Engine,
}

impl Library {
    fn new() -> Library {
        let (folder, path) = folder_with("a.db");
        let connection = Connection::open(&path).expect("a database");
        connection.execute_batch(SCHEMA).expect("the schema");
        let engine = Library::engine(folder.path());
        Library { folder, connection, engine }
    }

    fn engine(folder: &Path) -> Engine {
        let db = Some(folder.join("a.db").into());
        Engine::new(Config { db, home: folder.into(), ..Config::default() })
    }

    /// A database of conversations about several subjects.
    fn of_things() -> Library {
        let library = Library::new();
        let add = |id, title, messages| converse(&library.connection, id, title, messages);
        add(
            "turtles",
            Some("Sea animals"),
            &[
                ("user", "How deep do turtles swim?", Some(100)),
                ("assistant", "A leatherback dives to 1200 metres.", Some(101)),
            ],
        );
        add(
            "rust",
            Some("Programming"),
            &[
                ("user", "What is wrong with parse_config_file in appConfig.loader?", Some(200)),
                (
                    "assistant",
                    "The borrow checker refuses it: the file is borrowed mutably.",
                    Some(201),
                ),
                ("user", "And what does the checker borrow from ML?", Some(202)),
            ],
        );
        add(
            "tokyo",
            None,
            &[
                ("user", "東京タワーの高さは？", Some(300)),
                ("assistant", "高さは333メートルです。", Some(301)),
                ("user", "Какая высота у башни?", Some(302)),
            ],
        );
        library
    }

    fn rank(&self, mode: Mode, text: &str) -> Vec<Match> {
        self.ranking(mode, text).items
    }

    fn ranking(&self, mode: Mode, text: &str) -> Ranking<Match> {
        self.ask(&question(mode, text))
    }

    fn ask(&self, question: &Question) -> Ranking<Match> {
        let ranking = self.engine.rank(question, &Call::default()).expect("an answer");
        let scores: Vec<f64> = ranking.items.iter().map(|item| item.score).collect();
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        ranking
    }
}

fn question(mode: Mode, text: &str) -> Question {
    Question { concepts: vec![text.into()], mode, limit: 10, ..Question::default() }
}

fn found(matches: &[Match]) -> Vec<&str> {
    matches.iter().map(|one| &*one.hit.message_id).collect()
}

#[track_caller]
fn first(matches: &[Match], expected: &str) {
    assert_eq!(found(matches).first(), Some(&expected), "{matches:#?}");
}

#[test]
fn words_are_found_by_stem_part_and_script() {
    let library = Library::of_things();
    for mode in [Mode::Text, Mode::Both] {
        first(&library.rank(mode, "a turtle swims"), "turtles/0");
        first(&library.rank(mode, "parse_config_file"), "rust/0");
        first(&library.rank(mode, "the config loader?"), "rust/0");
        first(&library.rank(mode, "東京タワー"), "tokyo/0");
        first(&library.rank(mode, "メートル"), "tokyo/1");
        first(&library.rank(mode, "высота башни"), "tokyo/2");
        first(&library.rank(mode, "о высотах"), "tokyo/2");
        // Each character occurs in the texts, but not beside the other one.
        first(&library.rank(mode, "何京都高"), "tokyo/0");
        assert_eq!(library.rank(mode, "").len(), 0);
    }
    // A question of stop words alone finds the exact text.
    first(&library.rank(Mode::Text, "with"), "rust/0");
    assert!(library.rank(Mode::Text, "zzyzx qqqq").is_empty());
    let matches = library.rank(Mode::Vector, "how far down does a sea animal go");
    assert!(found(&matches)[..2].contains(&"turtles/0"), "{matches:#?}");
    first(&library.rank(Mode::Exact, "BORROW"), "rust/2");
}

#[test]
fn no_punctuation_is_an_error() {
    let library = Library::of_things();
    for text in
        ["\"", "-", "(", "a:b^2~ AND NOT \"", "\\ [x] {y} *?", "\u{0}", "- - -", "\"\" -\"\""]
    {
        for mode in [Mode::Text, Mode::Vector, Mode::Both] {
            if let Err(error) = library.engine.rank(&question(mode, text), &Call::default()) {
                assert!(error.to_string().contains("NUL"), "{text:?}: {error}");
            }
        }
    }
}

#[test]
fn phrases_must_be_there_and_minus_words_must_not() {
    let library = Library::of_things();
    for mode in [Mode::Text, Mode::Vector, Mode::Both] {
        let matches = library.rank(mode, "\"borrow checker\"");
        assert_eq!(found(&matches), ["rust/1"], "{mode:?}");
        let matches = library.rank(mode, "borrow checker -mutably");
        assert!(found(&matches).contains(&"rust/2"), "{mode:?}: {matches:#?}");
        assert!(!found(&matches).contains(&"rust/1"), "{mode:?}: {matches:#?}");
        assert_eq!(found(&library.rank(mode, "\"checker borrow\" -\"from ML\"")), [""; 0]);
    }
}

#[test]
fn a_name_is_found_before_its_parts() {
    let library = Library::new();
    let add = |id, text: &str| converse(&library.connection, id, None, &[("user", text, Some(1))]);
    add("parts", "The config of a file is parsed.");
    add("whole", &format!("We call parse_config_file here. {}", "It is a long story. ".repeat(40)));
    add("other", "Nothing of the kind.");
    for mode in [Mode::Text, Mode::Both] {
        let matches = library.rank(mode, "parse_config_file");
        assert_eq!(found(&matches)[..2], ["whole/0", "parts/0"], "{matches:#?}");
        first(&library.rank(mode, "parse_config_files"), "parts/0");
    }
}

#[test]
fn what_a_sentence_quotes_comes_first() {
    let library = Library::of_things();
    for mode in [Mode::Text, Mode::Both] {
        let matches = library.rank(mode, "what does the checker \"borrow from ML\"?");
        first(&matches, "rust/2");
        assert!(found(&matches).contains(&"rust/1"), "{matches:#?}");
        assert!(matches[0].score >= 0.5 && matches[1].score <= 0.5, "{matches:#?}");
        let matches = library.rank(mode, "checker \"borrow from ML\"");
        assert_eq!(found(&matches), ["rust/2"]);
    }
}

#[test]
fn slips_of_the_keyboard_are_mended() {
    let library = Library::of_things();
    for mode in [Mode::Text, Mode::Both] {
        let ranking = |text: &str| library.ranking(mode, text);
        let mended = ranking("chekcer for cofnig");
        assert!(found(&mended.items)[..2].contains(&"rust/1"), "{mended:#?}");
        let said = "no message has “chekcer”; searched for “checker” instead";
        assert!(mended.notes().contains(&said.to_owned()), "{:?}", mended.notes());
        // A letter is missing, extra, wrong, or swapped with the next letter; the first letter too.
        for wrong in
            ["borow", "borrrow", "borraw", "brorow", "orrow", "aborrow", "vorrow", "obrrow"]
        {
            let mended = ranking(&format!("{wrong} from ML"));
            first(&mended.items, "rust/2");
            let said = format!("no message has “{wrong}”; searched for “borrow” instead");
            assert_eq!(mended.notes(), [said]);
        }
        // A word with two errors is not corrected. Only one message has “config”, so that word may be a
        // slip itself.
        for wrong in ["boraw", "obrrwo", "cofnig"] {
            let notes = ranking(&format!("{wrong} borrow")).notes();
            let said = format!("no message has “{wrong}”; ");
            assert!(matches!(&notes[..], [note] if note.starts_with(&said)), "{notes:?}");
        }
    }
}

#[test]
fn a_part_of_a_word_is_found_where_no_message_has_the_word() {
    let library = Library::of_things();
    for mode in [Mode::Text, Mode::Both] {
        let ranking = |text: &str| library.ranking(mode, text);
        for part in ["ecke", "THERBA", "rbac"] {
            let found = ranking(part);
            let texts = found.items.iter().map(|one| one.hit.content.to_lowercase());
            assert!(texts.len() > 0 && texts.clone().all(|it| it.contains(&part.to_lowercase())));
            let said = format!("no message has “{part}” as a word; found it within other words");
            assert_eq!(found.notes(), [said]);
        }
        let said =
            "“the” has no word to rank by; messages with this text are shown, the newest first";
        assert_eq!(ranking("the").notes(), [said]);
        let notes = ranking("borrow ecke").notes();
        assert!(notes[0].starts_with("no message has “ecke”; "), "{notes:?}");
        let common = ranking("the");
        assert!(common.items.iter().all(|one| one.hit.content.to_lowercase().contains("the")));
        assert!(!common.notes().iter().any(|note| note.contains("no message")), "{common:#?}");
        assert_eq!(ranking("zzyzx qqqq").notes(), ["no message has “zzyzx” or “qqqq”"]);
    }
}

#[test]
fn a_right_word_is_never_replaced() {
    let library = Library::new();
    for (number, text) in [
        "An optimistic layer of paint in every locker.",
        "The optimistic baker took the flight.",
        "A flight over one more layer, and a locker for the baker.",
        "We optimize the color of the sea.",
        "To optimize the behavior, travel to the center.",
    ]
    .iter()
    .enumerate()
    {
        converse(&library.connection, &format!("c{number}"), None, &[("user", text, Some(1))]);
    }
    let ranking = |text: &str, mode| library.ranking(mode, text);
    for mode in [Mode::Text, Mode::Both] {
        for word in ["lawyer", "docker", "bakery", "fright", "lawyers"] {
            let shown = match mode {
                Mode::Text => "searched for the other words",
                _ => "nearest by meaning and by the other words:",
            };
            let found = ranking(&format!("the {word} by the sea"), mode);
            assert_eq!(found.notes(), [format!("no message has “{word}”; {shown}")]);
            first(&found.items, "c3/0");
        }
        for (word, meant, expected) in [
            ("optimise", "optimize", ["c3/0", "c4/0"]),
            ("Optimised", "optimized", ["c3/0", "c4/0"]),
            ("colours", "colors", ["c3/0"; 2]),
            ("behaviour", "behavior", ["c4/0"; 2]),
            ("centre", "center", ["c4/0"; 2]),
        ] {
            let ranked = ranking(word, mode);
            let said = format!("no message has “{word}”; searched for “{meant}” instead");
            assert_eq!(ranked.notes(), [said]);
            assert!(expected.contains(&found(&ranked.items)[0]), "{word}: {ranked:#?}");
        }
    }
}

#[test]
fn a_word_that_no_message_has_is_said() {
    let library = Library::of_things();
    let ranking = |text: &str, mode| library.ranking(mode, text);
    for mode in [Mode::Vector, Mode::Both] {
        let found = ranking("harpsichord", mode);
        let said = "no message has “harpsichord”; nearest by meaning:";
        assert_eq!(found.notes(), [said], "{mode:?}");
        assert!(!found.items.is_empty());
    }
    let found = ranking("harpsichord", Mode::Text);
    assert_eq!(found.notes(), ["no message has “harpsichord”"]);
    assert_eq!(found.items, []);
    // A conversation that an exact search would find has the word; a quoted text is no word.
    for text in ["turtles", "\"urtles sw\"", "парашют башни -harpsichord"] {
        let notes = ranking(text, Mode::Both).notes();
        assert!(!notes.iter().any(|note| note.contains("urtles") || note.contains("harps")));
    }
}

#[test]
fn quoted_text_is_any_part_of_a_message() {
    let library = Library::of_things();
    let sorted = |mode, text: &str| {
        let matches = library.rank(mode, text);
        let mut ids: Vec<String> = found(&matches).into_iter().map(str::to_owned).collect();
        ids.sort_unstable();
        ids
    };
    for mode in [Mode::Text, Mode::Vector, Mode::Both] {
        for (text, expected) in [
            ("\"urtles swi\"", &["turtles/0"][..]),
            ("\"efuses it: the f\"", &["rust/1"]),
            ("\"?\"", &["rust/0", "rust/2", "tokyo/2", "turtles/0"]),
            ("\"FIG_FILE in appC\"", &["rust/0"]),
            ("\"the\"", &["rust/1", "rust/2", "turtles/1"]),
            ("\"の高さ\"", &["tokyo/0"]),
            ("\"he ch\" \"ML\"", &["rust/2"]),
            ("\"he ch\" -\"om ML\"", &[]),
            ("\"orrow\" -\"om ML\"", &["rust/1"]),
            ("\"the borrowed\"", &[]),
        ] {
            assert_eq!(sorted(mode, text), expected, "{mode:?}: {text}");
        }
        let passage = &library.rank(mode, "\"utably\"")[0].passage;
        assert!(passage.contains("mutably"), "{passage}");
    }
}

#[test]
fn a_message_with_the_whole_question_is_first() {
    let library = Library::new();
    let filler = "Nothing of that kind was said on any day. ".repeat(40);
    let add = |id: &str, text: &str| {
        converse(&library.connection, id, None, &[("user", text, Some(1))]);
    };
    add(
        "rare",
        "See: room, four, star, hotel. A star hotel room is a room in a hotel with a star.",
    );
    add("flight", "Flight, American, airlines: 1 flight. American Airlines, American flight.");
    add(
        "whole",
        &format!("{filler} I want a Room in a 4 star hotel, and see if there is one. {filler}"),
    );
    add("ticket", &format!("{filler} That makes 1 flight on American Airlines. {filler}"));
    for text in
        ["room in a 4 star", "see if there", "1 flight on american airlines.", "oom in a 4 st"]
    {
        let expected = if text.contains("flight") { "ticket" } else { "whole" };
        for mode in [Mode::Text, Mode::Vector, Mode::Both] {
            let matches = library.rank(mode, text);
            first(&matches, &format!("{expected}/0"));
            assert!(matches[0].score >= 0.5 && matches[1..].iter().all(|it| it.score < 0.5));
            let words = text.split_whitespace().last().unwrap();
            assert!(matches[0].passage.to_lowercase().contains(words), "{matches:#?}");
            let question = question(mode, text);
            let ranked = library.engine.rank_conversations(&question, &Call::default()).unwrap();
            assert_eq!(ranked.items[0].about.id, expected, "{mode:?}: {text}");
        }
    }
    // Of one word, the same form is first.
    first(&library.rank(Mode::Text, "airlines"), "flight/0");
    first(&library.rank(Mode::Text, "rooms"), "rare/0");
}

#[test]
fn a_phrase_quoted_from_memory_is_words() {
    let library = Library::of_things();
    for mode in [Mode::Text, Mode::Both] {
        let ranking = library.ranking(mode, "what about the \"borrowing checker\"");
        assert!(found(&ranking.items)[..2].contains(&"rust/1"), "{ranking:#?}");
        let said = "no message has “borrowing checker”; searched for its words instead";
        assert_eq!(ranking.notes(), [said]);
        assert_eq!(found(&library.rank(mode, "\"borrowing checker\"")), [""; 0]);
    }
}

#[test]
fn filters_come_before_ranking() {
    let library = Library::of_things();
    let ask = |scope: Scope, mode| {
        library.ask(&Question { scope, limit: 1, ..question(mode, "borrow checker turtles") }).items
    };
    for mode in [Mode::Text, Mode::Both, Mode::Vector] {
        let scope = Scope { roles: vec!["user".into()], ..Scope::default() };
        assert_eq!(ask(scope, mode)[0].hit.role, "user");
        let scope = Scope { since: Some(at(202)), until: Some(at(202)), ..Scope::default() };
        first(&ask(scope, mode), "rust/2");
        let scope = Scope { conversation: Some("turtles".into()), ..Scope::default() };
        assert_eq!(ask(scope, mode)[0].hit.conversation_id, "turtles");
        let scope = Scope { conversation: Some("none".into()), ..Scope::default() };
        assert!(ask(scope, mode).is_empty());
        let scope = Scope { sources: vec![SourceKind::Threads], ..Scope::default() };
        assert!(ask(scope, mode).is_empty());
    }
}

#[test]
fn every_concept_must_be_in_the_conversation() {
    let library = Library::of_things();
    for mode in [Mode::Exact, Mode::Text] {
        let ask = |concepts: &[&str]| {
            let concepts = concepts.iter().map(|concept| (*concept).to_owned()).collect();
            let question = Question { concepts, mode, limit: 10, ..Question::default() };
            let found = library.engine.rank_conversations(&question, &Call::default());
            let found = found.expect("an answer").items;
            found.into_iter().map(|one| one.about.id).collect::<Vec<_>>()
        };
        assert_eq!(ask(&["borrow checker", "mutably"]), ["rust"], "{mode:?}");
        assert_eq!(ask(&["borrow checker", "leatherback"]), [""; 0], "{mode:?}");
        assert_eq!(ask(&["leatherback"]), ["turtles"], "{mode:?}");
    }
    let question =
        Question { fields: Fields::Summaries, ..question(Mode::Text, "animals of the sea") };
    let found = library.engine.rank_conversations(&question, &Call::default()).expect("an answer");
    assert_eq!(found.items[0].about.id, "turtles");
    assert_eq!(found.items.len(), 1);
}

#[test]
fn copies_are_counted_and_shown_once() {
    let library = Library::new();
    for id in ["a", "b", "c"] {
        let messages =
            [("user", "a giraffe on stilts", Some(1)), ("user", "yes, a giraffe", Some(2))];
        converse(&library.connection, id, None, &messages);
    }
    for mode in [Mode::Exact, Mode::Text, Mode::Both] {
        let matches = library.rank(mode, "giraffe");
        let copies: Vec<(&str, u32)> =
            matches.iter().map(|one| (&*one.hit.content, one.copies)).collect();
        assert_eq!(copies.len(), 2, "{mode:?}: {copies:?}");
        assert!(copies.iter().all(|(_, copies)| *copies == 3), "{mode:?}: {copies:?}");
    }
}

#[test]
fn answers_are_the_same_each_time_and_follow_the_database() {
    let library = Library::of_things();
    let before = library.rank(Mode::Both, "what swims in the sea");
    let again = Library::engine(library.folder.path());
    let question = question(Mode::Both, "what swims in the sea");
    assert_eq!(again.rank(&question, &Call::default()).expect("an answer").items, before);
    // A new message is found at once, and a deleted one no longer.
    converse(&library.connection, "new", None, &[("user", "quokkas smile", Some(999))]);
    library
        .connection
        .execute("DELETE FROM messages WHERE conversation_id = 'turtles'", [])
        .expect("deletes");
    first(&library.rank(Mode::Text, "quokka"), "new/0");
    first(&library.rank(Mode::Both, "smiling quokka"), "new/0");
    assert!(library.rank(Mode::Text, "leatherback").is_empty());
}

#[test]
fn passages_and_lines_say_where() {
    let library = Library::new();
    let filler = "Nothing of note was said that day. ".repeat(60);
    let long = format!("{filler}The zeppelin landed in Rio. {filler}");
    converse(
        &library.connection,
        "a",
        None,
        &[("user", "hello", Some(1)), ("user", &long, Some(2))],
    );
    for mode in [Mode::Exact, Mode::Text, Mode::Both] {
        let matches = library.rank(mode, "zeppelin landed");
        first(&matches, "a/1");
        assert_eq!(matches[0].line, 2, "{mode:?}");
        assert!(matches[0].passage.contains("The zeppelin landed in Rio."), "{mode:?}");
        assert!(matches[0].passage.chars().count() <= 302);
    }
}

/// Returns the files of every segment's term index.
fn files_of_words(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.join("index")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.components().any(|part| part.as_os_str() == "words") {
                files.push(path);
            }
        }
    }
    files
}

#[test]
fn damaged_words_are_made_anew() {
    let library = Library::of_things();
    let expected = library.rank(Mode::Text, "turtles swim");
    first(&expected, "turtles/0");
    let count = files_of_words(library.folder.path()).len();
    assert!(count > 4);
    for number in 0..count {
        for damage in ["cut", "change", "remove"] {
            // These files get new names each time.
            let mut names = files_of_words(library.folder.path());
            names.sort_by_key(|name| name.extension().map(ToOwned::to_owned));
            let name = &names[number];
            let mut bytes = fs::read(name).expect("a file");
            if bytes.is_empty() {
                continue;
            }
            match damage {
                "cut" => bytes.truncate(bytes.len() / 2),
                "change" => bytes.iter_mut().for_each(|byte| *byte ^= 0x55),
                _ => {}
            }
            fs::remove_file(name).expect("removes");
            if damage != "remove" {
                fs::write(name, bytes).expect("writes");
            }
            let engine = Library::engine(library.folder.path());
            let question = question(Mode::Text, "turtles swim");
            let answer = engine.rank(&question, &Call::default()).expect("an answer");
            assert_eq!(answer.items, expected, "{} {damage}", name.display());
            assert_eq!(answer.notes(), [""; 0]);
        }
    }
}

#[cfg(unix)]
#[test]
fn a_list_that_is_cut_says_so() {
    let folder = crate::corpus::folder();
    let place = crate::program::Place::in_folder(folder.path());
    let texts: Vec<String> = (0..2_500).map(|number| format!("red {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    drop(crate::corpus::database(&place.db, &texts));
    let search = |limit: &[&str]| {
        let words = ["search", "red", "--mode", "words", "--json", "--no-archive"];
        Said::of(&mut place.command(&[&words, limit].concat()))
    };
    let usual = search(&[]);
    assert_eq!(usual.warns("-n 200 shows more").json().len(), 50);
    // Who gives a limit knows that there may be more.
    let ten = search(&["-n", "10"]);
    assert_eq!((ten.json().len(), &*ten.errors), (10, ""));
    for limit in ["0", "2000"] {
        assert!(search(&["-n", limit]).warns("there may be more").json().len() < 2_500);
    }
}
