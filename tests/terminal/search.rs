//! `verbatim search` beyond the plain answer: hints, order, conversations only, and what JSON says.

use std::{path::PathBuf, process::Command};

use tempfile::TempDir;

use crate::corpus::{add, database, folder};
use crate::user::Said;

struct Chats {
    home: TempDir,
    database: PathBuf,
}

impl Chats {
    fn of(texts: &[&str]) -> Chats {
        let home = folder();
        let path = home.path().join("a.db");
        drop(database(&path, texts));
        let chats = Chats { home, database: path };
        assert!(chats.command("reindex").status().unwrap().success());
        chats
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().env("HOME", self.home.path());
        command.env("VERBATIM_DB", &self.database).arg(verb);
        command
    }

    fn search(&self, arguments: &[&str]) -> Said {
        Said::of(self.command("search").args(arguments))
    }
}

const TEXTS: [&str; 8] = [
    "the tomato wants sun",
    "sun on the roof",
    "a Tomato in the sun",
    "the build has an error in it",
    "una canción",
    "the fail of the night",
    "optimize the query",
    "reconfiguration",
];

#[test]
fn each_hint_finds_what_it_says() {
    let chats = Chats::of(&TEXTS);
    for (words, hint) in [
        (&["tomato sun"][..], "2 messages have both words: verbatim search tomato --and sun"),
        (&["roof error sun"], "1 message has \"roof\" and \"sun\": verbatim search roof --and sun"),
        (&["SUN"], "3 messages in any letter case: verbatim search -i SUN"),
        (&["error|fail"], "2 messages as a regular expression: verbatim search -e 'error|fail'"),
        (&["error.*it"], "1 message as a regular expression: verbatim search -e 'error.*it'"),
        (&["error OR fail"], "2 messages have one of the texts: verbatim search error --or fail"),
        (
            &["cancion"],
            "1 message with other accents, width or signs: verbatim search --fold cancion",
        ),
        (
            &["optimise the query"],
            "1 message has \"optimize the query\": verbatim search 'optimize the query'",
        ),
        (
            &["CANCION"],
            "1 message with other accents, width or signs: verbatim search --fold -i CANCION",
        ),
        (&["reconfigurator"], "1 message has \"reconfigurat\": verbatim search reconfigurat"),
        (&["tom*"], "2 messages have \"tom\": verbatim search tom"),
        (
            &["sun", "--role", "user", "--until", "2001"],
            "3 messages without the filters: verbatim search sun",
        ),
        (&["-w", "SUN"], "3 messages in any letter case: verbatim search -w -i SUN"),
    ] {
        let Said { code, out, errors } = chats.search(words);
        assert_eq!((code, &*out), (Some(1), ""), "{words:?}");
        assert!(errors.contains(hint), "{words:?}: {errors}");
        // The command is typed as the hint prints it, and finds as many messages.
        let (count, command) = hint.split_once(": verbatim search ").unwrap();
        let line = format!("set -- {command}; printf '%s\\n' \"$@\"");
        let typed = Command::new("sh").args(["-c", &line]).output().unwrap();
        let typed = String::from_utf8(typed.stdout).unwrap();
        let typed: Vec<&str> = typed.lines().chain(["-c"]).collect();
        let count = count.split(' ').next().unwrap();
        let said = chats.search(&typed);
        assert_eq!((&*said.ends(0).out, &*said.errors), (&*format!("{count}\n"), ""));
    }
    for words in ["zqxj", "Zqxj", "zqxj|wvut", "zqxj wvut"] {
        chats.search(&[words]).warns_not("verbatim search");
    }
    chats.search(&["tomato sun"]).warns("no message has \"tomato sun\" as one text (8 messages in");
}

#[test]
fn what_looks_equal_is_found_and_counted() {
    let chats = Chats::of(&[
        "I don't think so",
        "I don’t know",
        "DON´T go – never",
        "they co\u{AD}operate",
        "Die Straße",
        "10\u{A0}km",
        "a message for them",
    ]);
    for (words, count) in [
        ("don't", "3\n"),
        ("DON’T", "3\n"),
        ("go - never", "1\n"),
        ("cooperate", "1\n"),
        ("strasse", "1\n"),
        ("10 km", "1\n"),
    ] {
        assert_eq!(chats.search(&["--fold", "-i", "-c", words]).out, count, "{words}");
        let expected = if words == "don't" { 0 } else { 1 };
        assert_eq!(chats.search(&[words]).code, Some(expected), "{words}");
    }
    let counted = chats.search(&["don't", "-c"]);
    assert_eq!(
        (&*counted.out, &*counted.errors),
        ("1\n", "verbatim: 2 more messages with ´ or ’: --fold\n")
    );
    chats.search(&["don't"]).warns("2 more messages with ´ or ’: --fold");
    let within = chats.search(&["don't", "--until", "2001"]);
    assert_eq!(within.code, Some(1));
    chats.search(&["strasse"]).warns("1 message with other accents, width or signs: ");
    // Neither a text without such a sign nor one that asks for a number of messages is told.
    for arguments in [&["message"][..], &["don't", "-n", "5"], &["don't", "--fold"], &["think"]] {
        assert_eq!(chats.search(arguments).errors, "", "{arguments:?}");
    }
}

#[test]
fn what_was_copied_from_a_drawn_page_is_found() {
    let chats = Chats::of(&[
        "the quick\nbrown fox",
        "a **borrow** checker",
        "call `foo` double",
        "> quoted one\n> line goes on",
        "see [the manual](https://example.org) for this",
        "the plain words of a source",
    ]);
    for (copied, command) in [
        ("quick brown", r"-e 'quick[\W_]+brown'"),
        ("borrow checker", r"-e 'borrow[\W_]+checker'"),
        ("foo  double", r"-e 'foo[\W_]+double'"),
        ("one line goes", r"-e 'one[\W_]+line[\W_]+goes'"),
        ("the manual for this", r"-e 'the(?:[\W_]|\]"),
        ("**plain** words", r"-e 'plain[\W_]+words'"),
    ] {
        let hint = "1 message with other spaces or signs between the words: verbatim search ";
        chats.search(&[copied]).warns(&format!("{hint}{command}"));
    }
    assert_eq!(chats.search(&["-c", "-e", r"quick[\W_]+brown"]).out, "1\n");
}

#[test]
fn hints_are_near_to_what_was_meant() {
    let chats = Chats::of(&[
        "a super separate room",
        "super, and superb",
        "how to get to Rome by train",
        "do I know how",
        "an email was definitely sent",
        "tomatoes grow in Strathclyde",
    ]);
    for (words, hint) in [
        ("seperate", "1 message has \"separate\""),
        ("a super seperate room", "1 message has \"a super separate room\""),
        ("definately", "1 message has \"definitely\""),
        ("e-mail", "1 message has \"email\""),
        ("why do I get to rome", "1 message has \"rome\""),
        ("train zzqx to rome sent", "1 message has \"train\" and \"rome\""),
        ("tomatoesque", "1 message has \"tomatoes\""),
    ] {
        chats.search(&[words]).warns(hint);
    }
    for words in ["strasse", "Zqxj", "supr", "zzqx rome", "superfluously"] {
        let Said { errors, .. } = chats.search(&[words]);
        assert!(!errors.contains("verbatim search"), "{words}: {errors}");
    }
}

#[test]
fn hints_keep_the_filters() {
    let chats = Chats::of(&TEXTS);
    let Said { errors, .. } = chats.search(&["tomato sun", "--role", "us", "--since", "2001"]);
    let hint =
        "2 messages have both words: verbatim search --role us --since 2001 tomato --and sun";
    assert!(errors.contains(hint), "{errors}");
    // The flags that say where the chats are, too.
    let database = chats.database.to_str().unwrap();
    let Said { errors, .. } = chats.search(&["SUN", "--db", database, "--no-archive"]);
    let hint = format!(": verbatim search --db {database} --no-archive -i SUN");
    assert!(errors.contains(&hint), "{errors}");
}

#[test]
fn the_oldest_come_first() {
    let texts: Vec<String> = (0..300).map(|number| format!("step {number}.")).collect();
    let chats = Chats::of(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let connection = rusqlite::Connection::open(&chats.database).unwrap();
    // Several messages of one time, and some of none.
    connection
        .execute("UPDATE messages SET create_time = 1700000010 WHERE position < 150", [])
        .unwrap();
    add(&connection, "step without a time");
    connection
        .execute("UPDATE messages SET create_time = NULL WHERE content LIKE '%without%'", [])
        .unwrap();
    drop(connection);
    let ids = |arguments: &[&str]| -> Vec<String> {
        let arguments: Vec<&str> = ["step", "--json"].iter().chain(arguments).copied().collect();
        let Said { out, .. } = chats.search(&arguments);
        let id = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["message_id"].as_str().unwrap().to_owned()
        };
        out.lines().map(id).collect()
    };
    let newest = ids(&["-n", "0"]);
    let (untimed, timed) = newest.split_last().unwrap();
    let expected: Vec<&String> = timed.iter().rev().chain([untimed]).collect();
    assert_eq!(ids(&["-n", "0", "--oldest"]).iter().collect::<Vec<_>>(), expected);
    assert_eq!(ids(&["-n", "7", "--oldest"]).iter().collect::<Vec<_>>(), expected[..7]);
}

#[test]
fn all_hits_are_written_like_many() {
    let chats = Chats::of(&TEXTS);
    let connection = rusqlite::Connection::open(&chats.database).unwrap();
    // Short conversations one after the other, one that lasts from the first to the last of them, one with
    // messages without a time, and one that is found by its title.
    let sql = "
        INSERT INTO conversations SELECT 'c' || value, NULL, NULL, 'Short' FROM generate;
        INSERT INTO conversations VALUES ('long', '1', '1', 'Long'), ('none', '1', '1', 'None'),
            ('title', '1', '1', 'A step');
        INSERT INTO messages SELECT 's' || value || '-' || part, 'c' || value, 'user',
            'step ' || part, 1700000000 + value * 10 + part % 3, NULL, part FROM generate, parts;
        INSERT INTO messages SELECT 'l' || value, 'long', 'user', 'a long step',
            1700000000 + value * 10, NULL, value FROM generate WHERE value % 150 = 7;
        INSERT INTO messages SELECT 'n' || value, 'none', 'user', 'step without a time',
            CASE WHEN value % 2 = 0 THEN 1700000000 + value * 10 END, NULL, value
            FROM generate WHERE value BETWEEN 200 AND 203;
        INSERT INTO messages VALUES ('t', 'title', 'user', 'rain', 1700002000, NULL, 0);";
    let numbers = "CREATE TEMP TABLE generate AS WITH RECURSIVE n(value) AS
            (SELECT 0 UNION ALL SELECT value + 1 FROM n WHERE value < 399) SELECT value FROM n;
        CREATE TEMP TABLE parts AS SELECT 0 AS part UNION SELECT 1 UNION SELECT 2 UNION SELECT 3
            UNION SELECT 4 UNION SELECT 5 UNION SELECT 6;";
    connection.execute_batch(&format!("{numbers}{sql}")).unwrap();
    drop(connection);
    for is_indexed in [false, true] {
        if is_indexed {
            assert!(chats.command("reindex").status().unwrap().success());
        }
        let more: &[&[&str]] = match is_indexed {
            true => &[&[], &["--oldest"], &["-C", "1"]],
            false => &[&[]],
        };
        for more in more.iter().copied() {
            let found = |limit: &str| chats.search(&[&["step", "-n", limit][..], more].concat());
            let Said { code, out: all, errors } = found("0");
            assert_eq!((code, &*errors), (Some(0), ""));
            assert!(all == found("1000000").out, "{is_indexed} {more:?}");
            assert_eq!(all.lines().filter(|line| line.contains("Short")).count(), 400);
            assert_eq!(all.lines().filter(|line| line.contains("Long")).count(), 1);
            assert_eq!(all.lines().filter(|line| line.contains("None")).count(), 1);
        }
    }
}

#[test]
fn conversations_only() {
    let chats = Chats::of(&TEXTS);
    let connection = rusqlite::Connection::open(&chats.database).unwrap();
    let sql = "INSERT INTO conversations VALUES ('conv-0002', '1', '1', 'The sun'); \
               INSERT INTO messages SELECT 'other', 'conv-0002', 'user', 'rain', 1800000000, NULL, 0;";
    connection.execute_batch(sql).unwrap();
    drop(connection);
    let Said { code, out, errors } = chats.search(&["sun", "-l"]);
    assert_eq!((code, &*errors), (Some(0), ""));
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].starts_with("conv-0002") && lines[0].contains("title"),
        "{out}"
    );
    assert!(lines[1].starts_with("conv-0001") && lines[1].contains("  3  Colours"), "{out}");
    assert_eq!(chats.search(&["sun", "-0"]).out, "conv-0002\0conv-0001\0");
    let Said { out: json, .. } = chats.search(&["sun", "-l", "--json", "-n", "1"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["id"].as_str(), json["matches"].as_u64()), (Some("conv-0002"), Some(0)));
    chats.search(&["sun"]).prints("\n     (title)\n");
}

#[test]
fn scripts_get_what_they_ask_for_and_no_more() {
    let chats = Chats::of(&TEXTS);
    let Said { code, out, errors } = chats.search(&["sun", "-q"]);
    assert_eq!((code, &*out, &*errors), (Some(0), "", ""));
    let Said { code, out, errors } = chats.search(&["zqxj", "-q"]);
    assert_eq!((code, &*out, &*errors), (Some(1), "", ""));
    assert_eq!(chats.search(&["sun", "-c"]).out, "3\n");
    assert_eq!(chats.search(&["-c", "--since", "2001"]).out, "8\n");
    let Said { out, errors, .. } = chats.search(&["sun", "--json", "-n", "1"]);
    assert_eq!((out.lines().count(), &*errors), (1, ""));
    let hit: serde_json::Value = serde_json::from_str(&out).unwrap();
    for key in ["service", "source", "project", "branch", "folder", "model", "url", "number"] {
        assert!(hit.get(key).is_some(), "{key}: {hit}");
    }
}

#[test]
fn messages_before_and_after_each_match() {
    let chats = Chats::of(&["one", "two", "three", "four", "five"]);
    let numbers = |arguments: &[&str]| -> Vec<String> {
        let Said { out, .. } = chats.search(arguments);
        let lines = out.lines().skip(1).map(|line| line.split_whitespace().next().unwrap());
        lines.map(str::to_owned).collect()
    };
    assert_eq!(numbers(&["three", "-A", "1"]), ["3", "4"]);
    assert_eq!(numbers(&["three", "-B", "2"]), ["1", "2", "3"]);
    assert_eq!(numbers(&["three", "-C", "1", "-A", "0"]), ["2", "3"]);
    assert_eq!(chats.search(&["-w", "-e", "t..", "-c"]).out, "1\n");
}

#[test]
fn names_of_filters_are_parts_and_unknown_ones_are_refused() {
    let chats = Chats::of(&TEXTS);
    assert_eq!(chats.search(&["sun", "--role", "US", "-c"]).out, "3\n");
    for filter in [
        &["--role", "asistant"][..],
        &["--project", "zebra"],
        &["--branch", "zebra"],
        &["--folder", "zebra"],
        &["--service", "zebra"],
        &["--source", "zebra"],
        &["--tool", "zebra"],
        &["--role", "user", "--role", "zebra"],
    ] {
        let arguments: Vec<&str> = ["sun"].iter().chain(filter).copied().collect();
        let Said { code, out, errors } = chats.search(&arguments);
        assert_eq!((code, &*out), (Some(2), ""), "{filter:?}");
        let lines = errors.lines().count();
        assert!(lines == 1 && errors.starts_with("verbatim: no conversation has the "), "{errors}");
    }
}
