//! One conversation, once: copies of a session, forks, streams and agents, whatever the order in which the files come.

use std::fs;

use rusqlite::Connection;
use verbatim_base::call::Call;
use verbatim_chats::import::Branches;
use verbatim_engine::{Engine, Scope, import};

use crate::transcripts::{Home, line, rollout};

const SESSION: &str = "5f0c9a52-0000-4000-8000-00000000000";

/// The files of a scene: their paths in the archive and their contents.
type Files<'a> = Vec<(&'a str, String)>;

/// A session of Claude Code with a number: the lines with these numbers and texts. Those with odd numbers are the
/// user's.
fn session(session: u32, said: &[(u32, &str)]) -> String {
    let lines = said.iter().map(|(number, text)| {
        line(*number, if number % 2 == 1 { "user" } else { "assistant" }, text)
    });
    lines.collect::<String>().replace("\"session\"", &format!("\"{SESSION}{session}\""))
}

/// The lines of a session as those of an agent.
fn of_agent(lines: &str, agent: &str) -> String {
    let marked = format!(r#"{{"isSidechain":true,"agentId":"{agent}","#);
    lines.lines().map(|line| line.replacen('{', &marked, 1) + "\n").collect()
}

/// The conversations of a home, each with its title, its number of messages and what it continues, and all texts.
fn listed(home: &Home) -> Vec<String> {
    let engine = Engine::new(home.engine.config().clone());
    let page = engine.list(&Scope::default(), 0..100, &Call::default()).unwrap();
    let mut listed: Vec<String> = page
        .abouts
        .iter()
        .map(|it| format!("{} {:?} {} {:?} {:?}", it.id, it.title, it.turns, it.continues, it.gone))
        .collect();
    listed.extend(home.found(""));
    listed.sort();
    listed
}

/// Asserts that a scene gives the same conversations in every order in which its files come, and for an import.
#[track_caller]
fn assert_in_any_order(files: &Files<'_>, conversations: &[&str]) {
    let fresh = Home::new();
    files.iter().for_each(|(path, content)| drop(fresh.write(path, content)));
    fresh.sync();
    let expected = listed(&fresh);
    let ids: Vec<String> = conversations.iter().map(|it| it.replace('$', SESSION)).collect();
    let found: Vec<&String> = expected.iter().filter(|it| it.starts_with(SESSION)).collect();
    assert!(
        found.len() == ids.len() && ids.iter().zip(&found).all(|(id, it)| it.starts_with(id)),
        "{expected:#?}"
    );
    let mut orders = vec![Vec::new()];
    for _ in files {
        orders = orders
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                let rest = (0..files.len()).filter(|at| !order.contains(at)).collect::<Vec<_>>();
                rest.into_iter().map(move |at| [order.clone(), vec![at]].concat())
            })
            .collect();
    }
    for order in orders {
        let home = Home::new();
        for at in &order {
            home.write(files[*at].0, &files[*at].1);
            home.sync();
        }
        assert_eq!(listed(&home), expected, "{order:?}");
        home.sync();
        assert_eq!(home.sync().read, 0, "{order:?}");
    }
    let archive = fresh.folder.path().join("archive");
    let out = fresh.folder.path().join("out.db");
    for again in [false, true] {
        let report =
            import::import(std::slice::from_ref(&archive), &out, Branches::Shown, &|_| {}).unwrap();
        assert!(!again || !report.changes.any(), "{:?}", report.changes);
    }
    let connection = Connection::open(&out).unwrap();
    let column = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut texts: Vec<String> =
        expected.iter().filter(|it| !it.starts_with(SESSION)).cloned().collect();
    texts.sort();
    assert_eq!(column("SELECT content FROM messages ORDER BY content"), texts);
    assert_eq!(column("SELECT id FROM conversations ORDER BY id"), {
        let mut ids: Vec<String> =
            found.iter().map(|it| it.split(' ').next().unwrap().to_owned()).collect();
        ids.sort();
        ids
    });
}

#[test]
fn copies_of_a_session_are_one_conversation() {
    let path = |folder: &str| format!("{folder}/{SESSION}1.jsonl");
    let [a, b, c] = ["a", "b", "c"].map(path);
    let begun = [(1, "apple"), (2, "pear")];
    let longer = [(1, "apple"), (2, "pear"), (3, "plum"), (4, "quince")];
    let other = [(1, "apple"), (2, "pear"), (5, "cherry"), (6, "sloe")];
    let copies =
        vec![(&*a, session(1, &begun)), (&*b, session(1, &begun)), (&*c, session(1, &begun))];
    assert_in_any_order(&copies, &["$1 \"apple\" 2 None None"]);
    let longer_copy = vec![(&*a, session(1, &begun)), (&*b, session(1, &longer))];
    assert_in_any_order(&longer_copy, &["$1 \"apple\" 4 None None"]);
    let tails =
        vec![(&*a, session(1, &other)), (&*b, session(1, &longer)), (&*c, session(1, &begun))];
    assert_in_any_order(&tails, &["$1 \"apple\" 6 None None"]);
}

#[test]
fn parts_of_a_session_in_two_folders_are_in_order() {
    let path = |folder: &str| format!("{folder}/{SESSION}1.jsonl");
    let [old, new] = ["z", "a"].map(path);
    let parts = [
        (&*old, session(1, &[(1, "apple"), (2, "pear"), (3, "plum"), (4, "quince")])),
        (&*new, session(1, &[(5, "cherry"), (6, "sloe")])),
    ];
    assert_in_any_order(&parts.to_vec(), &["$1 \"apple\" 6 None None"]);
    for order in [[0, 1], [1, 0]] {
        let home = Home::new();
        let out = home.folder.path().join("out.db");
        for at in order {
            let file = home.write(parts[at].0, &parts[at].1);
            home.sync();
            import::import(&[file], &out, Branches::Shown, &|_| {}).unwrap();
        }
        for database in [home.engine.config().archive_database(), out] {
            let connection = Connection::open(database).unwrap();
            let said = "SELECT group_concat(content, ' ') FROM (SELECT content FROM messages ORDER BY position)
                        UNION ALL SELECT title FROM conversations";
            let mut statement = connection.prepare(said).unwrap();
            let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
            let rows: Vec<String> = rows.map(Result::unwrap).collect();
            assert_eq!(rows, ["apple pear plum quince cherry sloe", "apple"], "{order:?}");
        }
    }
}

#[test]
fn copies_of_a_rollout_are_one_conversation() {
    let id = format!("{SESSION}1");
    let path = |folder: &str| format!("{folder}/rollout-2026-05-01T10-00-00-{id}.jsonl");
    let [a, b, c] = ["sessions", "archived_sessions", "copy"].map(path);
    let begun = rollout(&id, None, &["apple", "pear"]);
    let longer = rollout(&id, None, &["apple", "pear", "plum", "quince"]);
    let other = rollout(&id, None, &["apple", "pear", "cherry"]);
    let copies = vec![(&*a, begun.clone()), (&*b, begun.clone()), (&*c, longer.clone())];
    assert_in_any_order(&copies, &["$1 \"apple\" 4 None None"]);
    let tails = vec![(&*a, other), (&*b, longer), (&*c, begun)];
    assert_in_any_order(&tails, &["$1 \"apple\" 5 None None"]);
}

#[test]
fn a_fork_continues_its_source_in_any_order() {
    let [a, b] = [1, 2].map(|number| format!("p/{SESSION}{number}.jsonl"));
    let source = session(1, &[(1, "apple"), (2, "pear"), (3, "plum"), (4, "quince")]);
    let fork = session(2, &[(1, "apple"), (2, "pear"), (5, "cherry")]);
    let marked = format!(r#"{{"forkedFrom":{{"sessionId":"{SESSION}1"}},"#);
    let fork = fork.replacen('{', &marked, 1);
    let expected = format!("$2 \"apple\" 1 Some(\"{SESSION}1\") None");
    let expected = ["$1 \"apple\" 4 None None", &expected];
    assert_in_any_order(&vec![(&*a, source), (&*b, fork)], &expected);
    let [a, b] = [1, 2].map(|number| format!("rollout-{SESSION}{number}.jsonl"));
    let [one, two] = [1, 2].map(|number| format!("{SESSION}{number}"));
    let source = rollout(&one, None, &["apple", "pear", "plum"]);
    let fork = rollout(&two, Some(&one), &["apple", "pear", "cherry"]);
    let expected = ["$1 \"apple\" 3 None None", expected[1]];
    assert_in_any_order(&vec![(&*a, source), (&*b, fork)], &expected);
}

#[test]
fn an_agent_takes_nothing_from_its_session() {
    let own = format!("p/{SESSION}1.jsonl");
    let agents = [2, 3, 4].map(|number| format!("p/{SESSION}1/subagents/agent-{number}.jsonl"));
    let begun = [(1, "apple"), (2, "pear")];
    let whole = session(1, &[(1, "apple"), (2, "pear"), (3, "plum"), (4, "quince")]);
    // A fork of the context that the user asked for, an agent of the model, and a helper.
    let fork = session(1, &begun) + &session(1, &[(5, "<fork-boilerplate>cherry"), (6, "sloe")]);
    let files = vec![
        (&*own, whole),
        (&*agents[0], of_agent(&fork, "acherry-0a1b2c")),
        (&*agents[1], of_agent(&session(1, &[(7, "medlar"), (8, "rowan")]), "a0a1b2c")),
        (
            &*agents[2],
            of_agent(&(session(1, &begun) + &session(1, &[(9, "note")])), "anotes-0a1b2c"),
        ),
    ];
    let expected = [
        "$1 \"apple\" 4 None None",
        "$1/agent-a0a1b2c \"medlar\" 2 None None",
        "$1/agent-acherry-0a1b2c \"<fork-boilerplate>cherry\" 2 None None",
    ];
    assert_in_any_order(&files, &expected);
}

#[test]
fn a_side_question_belongs_to_its_session() {
    let [own, copy] = ["p", "copy"].map(|folder| format!("{folder}/{SESSION}1.jsonl"));
    let begun = session(1, &[(1, "apple"), (2, "pear")]);
    let side = begun.clone() + &session(1, &[(11, "how tall?"), (12, "two metres")]);
    let side = of_agent(&side, "aside_question-0a1b2c");
    let path = format!("p/{SESSION}1/subagents/agent-aside_question-0a1b2c.jsonl");
    let whole = begun.clone() + &session(1, &[(3, "plum")]);
    let files = vec![(&*own, whole), (&*path, side), (&*copy, begun)];
    assert_in_any_order(&files, &["$1 \"apple\" 5 None None"]);
}

#[test]
fn a_stream_repeats_nothing() {
    let home = Home::new();
    let result = |number| {
        let result = r#"[{"type":"tool_result","content":"plum"}]"#;
        line(7, "user", "plum")
            .replace("\"content\":\"plum\"", &format!("\"content\":{result}"))
            .replace("uuid-7", &format!("uuid-{number}"))
    };
    // Two tools give the same result at the same time.
    let said = line(1, "user", "apple") + &line(2, "assistant", "pear") + &result(7) + &result(8);
    let renamed = |text: &str, by: &str| text.replace("\"uuid-", &format!("\"{by}-"));
    let again = line(3, "user", "apple");
    let stream = said.clone() + &renamed(&said, "a") + &again + &renamed(&(said + &again), "b");
    home.write("stream.jsonl", stream);
    home.sync();
    let mut found = home.found("");
    found.sort();
    assert_eq!(found, ["apple", "apple", "pear", "plum", "plum"], "it is said again at the end");
}

#[test]
fn a_copy_stands_for_its_session() {
    let home = Home::new();
    let [a, b] = ["a", "b"].map(|folder| format!("{folder}/{SESSION}1.jsonl"));
    let whole = session(1, &[(1, "apple"), (2, "pear"), (3, "plum")]);
    home.write(&a, session(1, &[(1, "apple"), (2, "pear"), (5, "cherry")]));
    home.write(&b, &whole);
    home.sync();
    fs::remove_file(home.path(&a)).unwrap();
    home.sync();
    let expected = format!("{SESSION}1 \"apple\" 4 None None");
    assert_eq!(listed(&home)[0], expected);
    assert_eq!(home.origins(), [home.path(&b)]);
    // What only the deleted copy had stays, whatever becomes of the other one.
    home.write(&b, session(1, &[(1, "apple"), (2, "pear")]) + &session(1, &[(7, "sloe")]));
    home.sync();
    for text in ["apple", "pear", "plum", "cherry", "sloe"] {
        assert_eq!(home.found(text), [text]);
    }
    fs::remove_file(home.path(&b)).unwrap();
    home.sync();
    let engine = Engine::new(home.engine.config().clone());
    let page = engine.list(&Scope::default(), 0..100, &Call::default()).unwrap();
    assert!(page.abouts.iter().all(|about| about.gone.is_some() && about.continues.is_none()));
}

#[test]
fn a_copy_with_other_ids_is_one_conversation_too() {
    let [a, b] = ["a", "b"].map(|folder| format!("{folder}/{SESSION}1.jsonl"));
    let begun = [(1, "apple"), (2, "pear")];
    let renamed = |text: String| text.replace("\"uuid-", "\"other-");
    let longer = renamed(session(1, &begun)) + &session(1, &[(3, "plum")]);
    let files = vec![(&*a, session(1, &begun)), (&*b, longer.clone())];
    assert_in_any_order(&files, &["$1 \"apple\" 3 None None"]);
    let fork = longer.replace(&format!("{SESSION}1"), &format!("{SESSION}2"));
    let fork = fork.replacen('{', &format!(r#"{{"forkedFrom":{{"sessionId":"{SESSION}1"}},"#), 1);
    let fork_path = format!("b/{SESSION}2.jsonl");
    let expected = format!("$2 \"apple\" 1 Some(\"{SESSION}1\") None");
    let files = vec![(&*a, session(1, &begun)), (&*fork_path, fork)];
    assert_in_any_order(&files, &["$1 \"apple\" 2 None None", &expected]);
}

#[test]
fn a_prompt_to_two_sessions_is_in_both() {
    let [a, b] = [1, 2].map(|number| format!("p/{SESSION}{number}.jsonl"));
    let one = session(1, &[(1, "apple"), (2, "pear"), (9, "use both"), (4, "quince")]);
    let two = session(2, &[(5, "cherry"), (6, "sloe"), (9, "use both"), (8, "medlar")]);
    let expected = ["$1 \"apple\" 4 None None", "$2 \"cherry\" 4 None None"];
    assert_in_any_order(&vec![(&*a, one), (&*b, two)], &expected);
}
