//! Transcripts of coding agents, and the store that they are synchronised into.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use proptest::prelude::*;
use rusqlite::Connection;
use verbatim_base::call::Call;
use verbatim_chats::import::Branches;
use verbatim_engine::{Config, Engine, Question, Reindex, Resources, Scope, import};
use verbatim_search::cli::{self, Environment};

use crate::calls::has;
use crate::cases::config;
use crate::corpus::folder;
use crate::golden::golden;
use crate::transcripts::{Home, copy, engine, goldens, line, rollout};

#[test]
fn golden_transcripts() {
    for kind in ["claude", "codex"] {
        let home = Home::new();
        let archive = home.folder.path().join("archive");
        copy(&goldens(kind), &archive);
        let report = home.sync();
        let told = format!(
            "{} files, {} messages, {} malformed\n",
            report.files, report.messages, report.malformed
        );
        golden(&format!("archives/{kind}.txt"), &(home.held() + &told));
        // Nothing changed: nothing is read.
        let again = home.sync();
        assert_eq!((again.read, again.bytes, again.messages), (0, 0, 0));
    }
}

/// The conversation, the role and the text of every message of a database, in order.
fn texts(database: &Path) -> Vec<(String, String, String)> {
    let connection = Connection::open(database).unwrap();
    let sql = "SELECT conversation_id, role, content FROM messages
               ORDER BY conversation_id, position, rowid";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// Imports the archive of a home, and checks that this gives what the transcript store holds; returns
/// the texts.
#[track_caller]
fn imported_as_synchronised(home: &Home) -> Vec<String> {
    home.sync();
    let archive = home.folder.path().join("archive");
    let out = home.folder.path().join("out.db");
    let import =
        || import::import(std::slice::from_ref(&archive), &out, Branches::Shown, &|_| {}).unwrap();
    let report = import();
    let stored = texts(&home.engine.config().archive_database());
    assert_eq!(texts(&out), stored);
    assert_eq!(report.tally.messages, stored.len() as u64);
    // The second import finds nothing new.
    assert!(!import().changes.any());
    stored.into_iter().map(|(_, _, text)| text).collect()
}

#[test]
fn golden_transcripts_imported_as_synchronised() {
    for kind in ["claude", "codex"] {
        let home = Home::new();
        copy(&goldens(kind), &home.folder.path().join("archive"));
        imported_as_synchronised(&home);
    }
}

#[test]
fn forks_of_forks_repeat_nothing() {
    let home = Home::new();
    home.write("rollout-1.jsonl", rollout("s", None, &["one", "two"]));
    home.write("rollout-2.jsonl", rollout("s-2", Some("s"), &["one", "two", "three"]));
    home.write("rollout-3.jsonl", rollout("s-2-3", Some("s-2"), &["one", "two", "three", "four"]));
    home.write("rollout-4.jsonl", rollout("s-2-3-4", Some("s-2-3"), &["one", "two", "other"]));
    assert_eq!(imported_as_synchronised(&home), ["one", "two", "three", "four", "other"]);
    // The first file is removed: the next file then has its messages, and the others still leave them
    // out.
    fs::remove_file(home.path("rollout-1.jsonl")).unwrap();
    home.sync();
    let mut found = home.found("");
    found.sort();
    assert_eq!(found, ["four", "one", "other", "three", "two"]);
}

#[test]
fn one_session_in_two_files_loses_nothing() {
    let home = Home::new();
    home.write("rollout-1.jsonl", rollout("s", None, &["one", "two"]));
    home.write("rollout-2.jsonl", rollout("s", None, &["one", "two", "three"]));
    home.write("rollout-3.jsonl", rollout("s", None, &["something", "else", "altogether"]));
    let found = imported_as_synchronised(&home);
    assert_eq!(found, ["one", "two", "three", "something", "else", "altogether"]);
}

#[test]
fn an_id_of_several_messages() {
    let home = Home::new();
    let session = |content: String, name: &str| content.replace("\"session\"", name);
    home.write("a.jsonl", line(1, "user", "the same"));
    // The same id and the same beginning, but another message. The third file continues from here.
    let longer = line(1, "user", "the same, and more");
    home.write("b.jsonl", session(longer.clone(), "\"session-b\""));
    let resumed = longer + &line(2, "assistant", "an answer");
    home.write("c.jsonl", session(resumed, "\"session-c\""));
    // A longer file has a message with the same id and a shorter text.
    let shorter = line(1, "user", "the") + &line(3, "user", &"long ".repeat(200));
    home.write("d.jsonl", session(shorter, "\"session-d\""));
    let found = imported_as_synchronised(&home);
    assert_eq!(found[..4], ["the same", "the same, and more", "an answer", "the"]);
}

#[test]
fn resumed_under_a_name_that_comes_first() {
    let home = Home::new();
    let begun = line(1, "user", "the beginning") + &line(2, "assistant", "an answer");
    home.write("b.jsonl", &begun);
    let resumed = begun + &line(3, "user", "and on");
    home.write("a.jsonl", resumed.replace("\"session\"", "\"session-a\""));
    assert_eq!(imported_as_synchronised(&home), ["the beginning", "an answer", "and on"]);
}

#[test]
fn messages_without_ids_go_on() {
    let home = Home::new();
    let block = |text: &str| {
        line(1, "assistant", text).replace("\"uuid\":\"uuid-1\",", "").replace("uuid-1", "")
    };
    home.write("a.jsonl", block("one block") + &block("another"));
    assert_eq!(imported_as_synchronised(&home), ["one block\n\nanother"]);
}

/// Every transcript of the golden files, with the name it has in an archive.
fn samples() -> Vec<(String, Vec<u8>)> {
    fn walk(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
        let mut entries: Vec<_> = fs::read_dir(folder).expect("it is there").flatten().collect();
        entries.sort_by_key(|entry| entry.file_name());
        for entry in entries {
            if entry.path().is_dir() {
                walk(&entry.path(), found);
            } else {
                let name = entry.file_name().to_string_lossy().into_owned();
                found.push((name, fs::read(entry.path()).expect("it can be read")));
            }
        }
    }
    let mut found = Vec::new();
    for kind in ["claude", "codex"] {
        walk(&goldens(kind), &mut found);
    }
    found
}

proptest! {
    #![proptest_config(config(24))]

    /// A transcript that grows in any steps gives the same store as a transcript that is read at once.
    #[test]
    fn grown_in_any_pieces(sample in 0..6_usize, cuts in prop::collection::vec(0.0..1.0_f64, 1..4), rest in 0..4_u8) {
        let (name, mut content) = samples().swap_remove(sample);
        match rest {
            0 => while content.last() == Some(&b'\n') { content.pop(); },
            1 => content.extend(b"\n\xEF\xBB\xBF\0\0{\"type\":\"assistant\",\"uuid\":\"u\",\"timestamp\":\"2025-10-30T12:00:00Z\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9 \\ud83d\"}]}}"),
            2 => content.extend(b"{\"type\":\"x\"} garbage\r\n{\"half"),
            _ => {}
        }
        let whole = Home::new();
        whole.write(&name, &content);
        let expected = whole.synced();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| (cut * content.len() as f64) as usize).collect();
        cuts.sort_unstable();
        let grown = Home::new();
        grown.write(&name, b"");
        let mut at = 0;
        for cut in cuts.into_iter().chain([content.len()]) {
            grown.append(&name, &content[at..cut]);
            at = cut;
            grown.sync();
        }
        prop_assert_eq!(grown.held(), expected);
    }
}

#[test]
fn what_is_no_transcript_is_left_alone() {
    let home = Home::new();
    home.write("a.jsonl", line(1, "user", "Real words"));
    home.write(
        "history.jsonl",
        "{\"display\":\"hello\",\"timestamp\":1,\"project\":\"/x\"}\n".repeat(60),
    );
    home.write("b.json", line(2, "user", "not named as one"));
    home.write("empty.jsonl", "");
    home.write("binary.jsonl", [0_u8, 159, 146, 150, 10, 255]);
    home.write("snapshots.jsonl", "{\"type\":\"file-history-snapshot\",\"snapshot\":{}}\n");
    home.sync();
    assert_eq!(home.found(""), ["Real words"]);
    #[cfg(unix)]
    {
        let outside = home.folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("c.jsonl"), line(3, "user", "out of bounds")).unwrap();
        std::os::unix::fs::symlink(&outside, home.path("linked")).unwrap();
        std::os::unix::fs::symlink(outside.join("c.jsonl"), home.path("linked.jsonl")).unwrap();
        let fifo = home.path("fifo.jsonl");
        assert!(Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success()));
        home.sync();
        assert_eq!(home.found(""), ["Real words"]);
    }
}

/// Runs a command on a home with an archive, and returns what it writes.
fn run(home: &Home, arguments: &[&str]) -> String {
    let folder = home.folder.path().to_string_lossy().into_owned();
    let archive = home.path("").to_string_lossy().into_owned();
    let mut all = vec!["verbatim", "--home", &folder, "--archive", &archive];
    all.extend(arguments);
    let mut out = Vec::new();
    let all = all.into_iter().map(std::ffi::OsString::from);
    cli::run(all, &Environment::default(), &mut out).expect("the command runs");
    String::from_utf8(out).expect("it writes text")
}

#[test]
fn what_cannot_be_read_is_in_the_status() {
    let home = Home::forgetful();
    home.write("0.jsonl", line(1, "user", "plain").replace("\"session\"", "\"session-0\""));
    home.sync();
    assert!(!run(&home, &["status"]).contains("not read"));
    let of_record =
        |fields: &str| format!("{{\"sessionId\":\"session\",\"uuid\":\"u\",{fields}}}\n");
    let content = [
        line(1, "user", "before"),
        "garbage\n[1,2]\n".to_owned(),
        of_record(r#""type":"brand-new","content":"words""#),
        of_record(r#""type":"brand-new","state":{"a":1}"#),
        of_record(r#""type":"system","subtype":"novel","content":"words""#),
        of_record(r#""type":"user","message":{"content":[{"type":"hologram","data":"x"}]}"#),
    ];
    home.write("a.jsonl", content.concat());
    let codex = [
        r#"{"type":"session_meta","payload":{"id":"c"}}"#,
        r#"{"type":"event_msg","payload":{"type":"telepathy","message":"words"}}"#,
        r#"{"type":"event_msg","payload":{"type":"exec_command_end","output":"words"}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"smell"}]}}"#,
    ];
    home.write("b.jsonl", codex.join("\n") + "\n");
    home.write("c.jsonl", "{\"type\":\"alien\",\"text\":\"x\"}\n".repeat(60));
    let deep = "d/".repeat(13);
    home.write(&(deep.clone() + "e.jsonl"), line(1, "user", "deep"));
    let report = home.sync();
    assert_eq!(report.failed, 2, "{:?}", report.failures);
    let status = run(&home, &["status"]);
    let path = |name: &str| home.path(name).canonicalize().unwrap().display().to_string();
    let (a, c) = (path("a.jsonl"), path("c.jsonl"));
    for said in [
        format!("not read: 2 lines in 1 file cannot be read; the first is {a}\n"),
        "not read: of content of types that we do not know, only the text is kept, in 2 files: \
         brand-new (2), hologram (1), smell (1), system/novel (1), telepathy (1); the first is "
            .to_owned()
            + &a,
        format!(
            "not read: 1 file: has no record of an agent that we know; it is not read; \
                 the first is {c}\n"
        ),
        "not read: 1 file or folder is not read; the first is ".to_owned(),
    ] {
        assert!(status.contains(&said), "{said}\n{status}");
    }
    assert!(status.contains("d/d: folders that are nested so deeply are not read\n"), "{status}");
    let doctor = run(&home, &["doctor"]);
    assert!(doctor.contains("2 lines in 1 file cannot be read"), "{doctor}");
    // If a file is deleted, its messages are deleted too.
    fs::remove_file(home.path("c.jsonl")).unwrap();
    fs::remove_dir_all(home.path("d")).unwrap();
    home.write("a.jsonl", line(1, "user", "before"));
    home.sync();
    let status = run(&home, &["status"]);
    assert!(status.contains("is kept, in 1 file: smell (1), telepathy (1)"), "{status}");
    assert!(!status.contains("lines in") && !status.contains("file or folder"), "{status}");
}

#[cfg(unix)]
#[test]
fn a_line_break_in_a_name_breaks_no_line() {
    let home = Home::new();
    home.write("a\nb.jsonl", "{\"type\":\"alien\",\"text\":\"x\"}\n".repeat(60));
    let report = home.sync();
    assert!(report.failures[0].contains("a b.jsonl: has no record"), "{:?}", report.failures);
    assert!(run(&home, &["status"]).contains("a b.jsonl\n"));
}

#[test]
fn bytes_that_are_not_utf_8_are_named() {
    let home = Home::new();
    let mut content = line(1, "user", "before").into_bytes();
    content.extend(line(2, "assistant", "caf#").into_bytes());
    let at = content.iter().position(|byte| *byte == b'#').unwrap();
    content[at] = 0xE9;
    home.write("a.jsonl", &content);
    home.sync();
    assert_eq!(home.found("caf"), ["caf\u{FFFD}"]);
    let status = run(&home, &["status"]);
    let said = "1 line in 1 file: bytes that are not UTF-8 were replaced by U+FFFD; the first is ";
    assert!(status.contains(said) && status.contains("a.jsonl\n"), "{status}");
}

#[test]
fn malformed_lines_are_counted() {
    let home = Home::new();
    let mut content = line(1, "user", "before");
    content.push_str("\r\n \r\n{\"type\":\"user\",\"message\":{\"content\":\"cut\n");
    content.push_str("garbage\n[1,2]\n{\"type\":\"user\",\"uuid\":}\n");
    content.push_str(&line(2, "assistant", "after").replace('\n', "\r\n"));
    content.push_str("{\"type\":\"user\",\"uuid\":\"half\",\"message\":{\"role\":\"user\",\"con");
    home.write("a.jsonl", &content);
    let report = home.sync();
    assert_eq!((report.malformed, report.messages), (4, 2));
    assert_eq!(home.found("after"), ["after"]);
    // Blank lines do not count, malformed lines do.
    assert!(home.held().contains("\"session\" 6 \"uuid-2\""), "{}", home.held());
    home.append("a.jsonl", "tent\":\"whole now\"}}\n");
    let report = home.sync();
    assert_eq!((report.malformed, report.messages), (0, 1));
    assert_eq!(home.found("whole now"), ["whole now"]);
}

#[test]
fn changed_otherwise_than_by_growing() {
    let home = Home::forgetful();
    let both = line(1, "user", "first") + &line(2, "assistant", "second");
    home.write("a.jsonl", &both);
    home.write("b.jsonl", line(3, "user", "other").replace("\"session\"", "\"session-b\""));
    home.sync();
    // The file becomes shorter.
    home.write("a.jsonl", line(1, "user", "first"));
    home.sync();
    assert_eq!(home.found("second"), [""; 0]);
    // Another text of the same length, a moment later.
    std::thread::sleep(Duration::from_millis(30));
    home.write("a.jsonl", line(1, "user", "FIRST"));
    home.sync();
    assert_eq!(home.found("first"), ["FIRST"]);
    // The file becomes longer, with another beginning.
    home.write("a.jsonl", line(1, "user", "Anew") + &line(2, "assistant", "second"));
    home.sync();
    assert_eq!((home.found("first").len(), home.found("second").len()), (0, 1));
    // Another file with the same beginning replaces the file.
    let replacement = home.path("new.tmp");
    let more =
        line(1, "user", "Anew") + &line(2, "assistant", "second") + &line(4, "user", "third");
    fs::write(&replacement, more).unwrap();
    fs::rename(&replacement, home.path("a.jsonl")).unwrap();
    let report = home.sync();
    assert_eq!((report.messages, home.found("third").len()), (1, 1));
    // The file is removed.
    fs::remove_file(home.path("a.jsonl")).unwrap();
    let report = home.sync();
    assert_eq!((report.removed, report.files), (1, 1));
    assert_eq!(home.found(""), ["other"]);
    // The whole archive is removed.
    fs::remove_dir_all(home.folder.path().join("archive")).unwrap();
    assert_eq!(home.sync().removed, 1);
    assert_eq!(home.found(""), [""; 0]);
}

#[test]
fn only_the_files_that_changed() {
    let home = Home::forgetful();
    home.write("p/a.jsonl", line(1, "user", "first"));
    home.write("q/b.jsonl", line(2, "user", "other").replace("\"session\"", "\"session-b\""));
    home.sync();
    home.append("p/a.jsonl", line(3, "assistant", "second"));
    let report = home.sync();
    assert_eq!((report.read, report.messages), (1, 1));
    assert_eq!(home.found("second").len(), 1);
    home.append("q/b.jsonl", line(4, "assistant", "third"));
    let report = home.sync();
    assert_eq!((report.read, report.messages), (1, 1));
    assert_eq!(home.found("third").len(), 1);
    assert_eq!(home.sync().removed, 0);
    fs::remove_file(home.path("p/a.jsonl")).unwrap();
    assert_eq!(home.sync().removed, 1);
    assert_eq!((home.found("first"), home.found("other").len()), (Vec::new(), 1));
}

#[test]
fn repeated_lines_are_told_once() {
    let home = Home::new();
    let begun = line(1, "user", "the beginning") + &line(2, "assistant", "an answer");
    home.write("old.jsonl", &begun);
    let resumed = begun.clone() + &line(3, "user", "and on");
    home.write("new.jsonl", resumed.replace("\"session\"", "\"session-2\""));
    home.sync();
    // One file has the same lines twice.
    home.append("old.jsonl", &begun);
    home.sync();
    assert_eq!(home.found("the beginning").len(), 1);
    assert_eq!(home.found("an answer"), ["an answer"]);
    assert_eq!(home.found("and on").len(), 1);
    // The first file is removed: the other one has all messages.
    fs::remove_file(home.path("old.jsonl")).unwrap();
    home.sync();
    assert_eq!(home.found("the beginning").len(), 1);
    assert_eq!(home.found("").len(), 3);
    // The same id with another text is another message.
    home.write("other.jsonl", line(1, "user", "unrelated").replace("\"session\"", "\"session-3\""));
    home.sync();
    assert_eq!(home.found("").len(), 4);
}

#[test]
fn prompts_of_agents_are_no_titles() {
    let home = Home::new();
    let agents = line(1, "user", "Look around").replace("{\"", "{\"isSidechain\":true,\"");
    assert!(agents.contains("isSidechain"));
    home.write(
        "01234567-89ab-cdef-0123-456789abcdef.jsonl",
        agents + &line(2, "user", "What the user asked"),
    );
    assert!(home.synced().contains("\"What the user asked\" \"17"), "{}", home.held());
}

#[test]
fn a_fork_that_is_shorter_than_its_origin_takes_nothing_from_it() {
    let home = Home::new();
    let begun = line(1, "user", "the beginning");
    let fork = begun.replacen('{', "{\"forkedFrom\": {\"sessionId\": \"session\"}, ", 1)
        + &line(2, "user", "another way");
    home.write("a.jsonl", fork.replace("\"session\"", "\"session-a\""));
    let rest =
        line(3, "assistant", "a long answer") + &line(4, "user", "more") + &line(5, "user", "x");
    home.write("b.jsonl", begun + &rest);
    let stored = home.synced();
    assert!(stored.contains("\"session\" 1 \"uuid-1\""), "{stored}");
    assert!(stored.contains("\"session-a\" 2 \"uuid-2\""), "{stored}");
    imported_as_synchronised(&home);
}

#[test]
fn a_folder_of_transcripts_may_move() {
    let home = Home::new();
    home.write("p/a.jsonl", line(1, "user", "first"));
    home.sync();
    fs::rename(home.folder.path().join("archive"), home.folder.path().join("moved")).unwrap();
    let archives = vec![home.folder.path().join("moved")];
    let config = Config { archives, ..home.engine.config().clone() };
    let home = Home { engine: Engine::new(config), ..home };
    let report = home.sync();
    assert_eq!((home.found("first"), report.removed), (vec!["first".to_owned()], 0));
    assert!(home.held().contains("HOME/moved/p/a.jsonl"), "{}", home.held());
}

#[test]
fn a_copy_of_a_folder_of_transcripts_is_searched_like_the_folder() {
    let home = Home::new();
    home.write("p/a.jsonl", line(1, "user", "first"));
    home.sync();
    let [first, copy] = ["archive", "copy"].map(|name| home.folder.path().join(name));
    fs::create_dir_all(copy.join("p")).unwrap();
    fs::copy(first.join("p/a.jsonl"), copy.join("p/a.jsonl")).unwrap();
    let mut home = home;
    for archive in [&copy, &first, &copy] {
        let config = Config { archives: vec![archive.clone()], ..home.engine.config().clone() };
        home.engine = Engine::new(config);
        home.sync();
        assert_eq!(home.found("first"), ["first"], "{archive:?}");
        assert_eq!(home.origins(), [archive.join("p/a.jsonl")], "else no answer has it");
    }
    // While both are searched, the other one repeats everything.
    for archives in [vec![first.clone(), copy.clone()], vec![first.clone()], vec![copy]] {
        let config = Config { archives: archives.clone(), ..home.engine.config().clone() };
        home.engine = Engine::new(config);
        home.sync();
        assert_eq!(home.found("first"), ["first"], "{archives:?}");
        assert!(archives.iter().any(|folder| home.origins()[0].starts_with(folder)));
    }
}

#[test]
fn what_was_read_of_a_file_that_lost_its_text_is_kept() {
    let home = Home::new();
    let first = line(1, "user", "first");
    home.write("a.jsonl", &first);
    home.sync();
    for blank in ["", "\0\0\0\0\0", "\n \n", ""] {
        home.write("a.jsonl", blank);
        home.sync();
        assert_eq!(home.found("first"), ["first"], "{blank:?}");
    }
    home.write("a.jsonl", first + &line(2, "assistant", "second"));
    home.sync();
    assert_eq!((home.found("first").len(), home.found("second").len()), (1, 1));
    assert!(!home.held().contains("session/a"), "{}", home.held());
}

#[test]
fn what_was_read_of_a_file_that_was_cut_or_rewritten_is_kept() {
    let texts = ["first", "second", "third", "fourth", "fifth"];
    let lines: Vec<String> = (1..).zip(texts).map(|(at, text)| line(at, "user", text)).collect();
    let whole = lines[..3].concat();
    let other = line(8, "user", "other").replace("\"session\"", "\"session-b\"");
    for changed in [
        lines[0].clone(),
        lines[1..3].concat(),
        lines[0].clone() + &lines[2],
        line(2, "user", "SECOND") + &lines[0],
        whole[..whole.len() - 10].to_owned(),
        other,
    ] {
        let home = Home::new();
        home.write("a.jsonl", &whole);
        home.sync();
        home.write("a.jsonl", &changed);
        home.sync();
        for text in &texts[..3] {
            assert!(home.found(text).contains(&(*text).to_owned()), "{changed}: {text}");
        }
        // The file goes on, and is cut again.
        home.append("a.jsonl", String::from("\n") + &lines[3] + &lines[4]);
        home.sync();
        home.write("a.jsonl", &lines[3]);
        home.sync();
        for text in texts {
            assert_eq!(home.found(text).iter().filter(|it| *it == text).count(), 1, "{text}");
        }
        assert_eq!(home.sync().read, 0);
        // The file has all of its first text again.
        home.write("a.jsonl", &whole);
        home.sync();
        home.append("a.jsonl", line(9, "user", "sixth"));
        home.sync();
        let held = home.held();
        assert!(held.contains("\"session\" 4 \"uuid-9\""), "{held}");
        assert_eq!(home.found("first").len(), 1, "{held}");
    }
}

#[test]
fn a_file_that_is_rewritten_while_it_is_read_is_whole_afterwards() {
    let home = Home::new();
    let whole = line(1, "user", "first") + &line(2, "assistant", "second");
    home.write("a.jsonl", &whole);
    let expected = home.synced();
    home.write("a.jsonl", line(1, "user", "first"));
    home.sync();
    home.write("a.jsonl", &whole);
    assert_eq!(home.synced(), expected);
    // Other lines that the reader leaves out take nothing away.
    home.write("a.jsonl", String::from("{\"type\":\"mode\",\"sessionId\":\"session\"}\n") + &whole);
    assert_eq!(home.sync().kept, 0);
    assert_eq!(home.found("").len(), 2);
}

#[test]
fn a_fork_says_where_its_own_records_begin() {
    let home = Home::new();
    let item = |ordinal: u32, text: &str| {
        serde_json::json!({
            "timestamp": "2026-05-01T10:00:00Z", "ordinal": ordinal, "type": "response_item",
            "payload": {"type": "message", "role": "user",
                        "content": [{"type": "input_text", "text": text}]},
        })
        .to_string()
            + "\n"
    };
    let meta = "{\"timestamp\":\"2026-05-01T10:00:00Z\",\"ordinal\":0,\"type\":\"session_meta\",\
                \"payload\":{\"id\":\"child\",\"cwd\":\"/x\",\"subagent_history_start_ordinal\":2}}\n";
    let content = meta.to_owned() + &item(1, "the parent's") + &item(2, "its own");
    home.write("rollout-2026-05-01T10-00-00-child.jsonl", content);
    home.sync();
    assert_eq!(home.found(""), ["its own"]);
}

#[test]
fn made_anew_where_it_is_damaged() {
    let home = Home::new();
    home.write("a.jsonl", line(1, "user", "kept"));
    let expected = home.synced();
    let database = home.engine.config().archive_database();
    for damage in [
        &mut |path: &Path| fs::write(path, b"no database at all, whatever its name says").unwrap(),
        &mut |path: &Path| {
            let length = fs::metadata(path).unwrap().len();
            let noise = vec![0xA5; length as usize - 100];
            let mut content = fs::read(path).unwrap();
            content.splice(100.., noise);
            fs::write(path, content).unwrap();
        },
        &mut |path: &Path| fs::remove_file(path).unwrap(),
    ] as [&mut dyn FnMut(&Path); 3]
    {
        damage(&database);
        let is_there = database.exists();
        let report = home.sync();
        assert_eq!(home.held(), expected);
        // The damaged store may hold conversations that no other place has, so it is kept and named.
        assert_eq!(report.failed, u64::from(is_there));
        let is_named = |failure: &String| failure.contains("transcripts.damaged-");
        assert!(!is_there || report.failures.iter().any(is_named), "{:?}", report.failures);
    }
    // Each answer says that more may be there.
    let question = Question { concepts: vec!["kept".to_owned()], ..Question::default() };
    let notes = || home.engine.rank(&question, &Call::default()).unwrap().notes().concat();
    assert!(notes().contains("a damaged transcript store was set aside"), "{}", notes());
    for number in 1..=2 {
        fs::remove_file(database.with_extension(format!("damaged-{number}"))).unwrap();
    }
    assert!(!notes().contains("set aside"), "{}", notes());
    // The store of another version may hold conversations that no other place has.
    for version in [1, 999] {
        let sql = format!("PRAGMA user_version = {version}");
        Connection::open(&database).unwrap().execute_batch(&sql).unwrap();
        let other = home.engine.upkeep().sync_transcripts(&Call::default(), &|_| {}).unwrap_err();
        assert!(other.to_string().contains("another version of verbatim"), "{other}");
    }
}

#[cfg(unix)]
#[test]
fn databases_that_cannot_be_looked_up_are_named() {
    let home = Home::new();
    home.write("a.jsonl", line(1, "user", "kept"));
    home.sync();
    let question = Question { concepts: vec!["kept".to_owned()], ..Question::default() };
    let ranked = || home.engine.rank(&question, &Call::default()).unwrap();
    assert!(ranked().is_complete());
    // The system fails to list the folder, as it does if too many files are open.
    let folder = home.engine.config().db_folder();
    std::os::unix::fs::symlink(&folder, &folder).unwrap();
    let answer = ranked();
    assert!(answer.total == 1 && !answer.is_complete(), "{:?}", answer.notes());
    assert!(answer.notes().concat().contains("the export cannot be read"), "{:?}", answer.notes());
}

#[test]
fn one_process_at_a_time() {
    let home = Home::new();
    home.write("a.jsonl", line(1, "user", "first"));
    home.sync();
    let lock = home.engine.config().archive_database().with_extension("lock");
    let held = File::options().write(true).open(lock).unwrap();
    held.lock().unwrap();
    home.append("a.jsonl", line(2, "assistant", "second"));
    assert!(home.sync().elsewhere);
    drop(held);
    assert_eq!(home.sync().messages, 1);
}

#[test]
fn without_archives_nothing_is_made() {
    let folder = folder();
    let none = Engine::new(Config { home: folder.path().to_owned(), ..Config::default() });
    assert_eq!(none.upkeep().sync_transcripts(&Call::default(), &|_| {}).unwrap().files, 0);
    let missing =
        engine(folder.path()).upkeep().sync_transcripts(&Call::default(), &|_| {}).unwrap();
    assert_eq!((missing.files, missing.failed), (0, 1));
    assert!(
        missing.failures[0]
            .ends_with("archive: there is no such folder to look for transcripts in")
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn stopped_and_gone_on() {
    let home = Home::new();
    for number in 0..4 {
        let content = line(number, "user", "words");
        home.write(
            &format!("{number}.jsonl"),
            content.replace("\"session\"", &format!("\"session-{number}\"")),
        );
    }
    let call = Call::default();
    call.stop.request();
    home.engine.upkeep().sync_transcripts(&call, &|_| {}).unwrap();
    home.sync();
    assert_eq!(home.found("words").len(), 4);
}

#[test]
fn long_lines_and_files() {
    let home = Home::new();
    let long = "x".repeat(20 << 20);
    let mut content = line(1, "user", "before");
    content.push_str(&line(2, "assistant", &long));
    for number in 3..40 {
        content.push_str(&line(number, "user", &format!("{number} {}", "y".repeat(1 << 20))));
    }
    home.write("a.jsonl", &content);
    let report = home.sync();
    assert_eq!((report.messages, report.bytes), (39, content.len() as u64));
    assert_eq!(home.found("39 y").len(), 1);
}

#[test]
fn indexed_from_the_terminal() {
    let home = Home::new();
    home.write("a.jsonl", line(1, "user", "words"));
    let path = |name: &str| home.folder.path().join(name).to_string_lossy().into_owned();
    let run = |arguments: &[&str]| {
        let (root, archive) = (path(""), path("archive"));
        let mut all = vec!["verbatim", "--home", &root, "--archive", &archive];
        all.extend(arguments);
        let mut out = Vec::new();
        let all = all.into_iter().map(std::ffi::OsString::from);
        let code = cli::run(all, &Environment::default(), &mut out);
        (code.map_err(|error| error.to_string()), String::from_utf8(out).unwrap())
    };
    let (code, out) = run(&["reindex"]);
    assert_eq!(code, Ok(0));
    assert!(out.starts_with("1 of 1 transcripts read, 1 messages added"), "{out}");
    assert!(out.contains("\n1 messages of coding agents indexed in "), "{out}");
    home.write("b.jsonl", line(2, "user", "new").replace("\"session\"", "\"session-b\""));
    assert!(run(&["list"]).1.contains("new"));
    home.append(
        "b.jsonl",
        line(3, "assistant", "blue whales").replace("\"session\"", "\"session-b\""),
    );
    assert!(run(&["search", "whales", "--mode", "words"]).1.contains("blue whales"));
    assert!(run(&["show", "session-b"]).1.contains("new"));
    fs::remove_file(home.path("b.jsonl")).unwrap();
    let (_, again) = run(&["reindex"]);
    // Conversations of deleted files are kept.
    let is_same = again.starts_with("the index is up to date: 3 messages")
        || again.contains("0 messages added, 3 messages");
    assert!(is_same, "{again}");
    let none = run(&["reindex", "--no-archive"]).0.unwrap_err();
    assert!(none.contains("no chats are imported yet"), "{none}");
}

#[test]
fn followed_while_they_grow() {
    let home = Home::new();
    home.write("p/a.jsonl", line(1, "user", "first"));
    let engine = std::sync::Arc::new(engine(home.folder.path()));
    let (tell, told) = std::sync::mpsc::channel();
    let watch = verbatim_server::watch::start(engine, move |event| {
        drop(tell.send(event.to_string()));
    });
    let watch = watch.expect("a thread can be started");
    let wait_for = |text: &str| {
        let begun = std::time::Instant::now();
        while home.found(text).is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(40), "{text} is not found");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for("first");
    home.append("p/a.jsonl", line(2, "assistant", "appended"));
    wait_for("appended");
    let other = line(3, "user", "in a new folder").replace("\"session\"", "\"session-b\"");
    home.write("new/session/subagents/b.jsonl", other);
    wait_for("in a new folder");
    watch.end(Duration::from_secs(20));
    assert!(told.iter().any(|news| news.contains("1 of 1 transcripts read, 1 messages added")));
}

/// Synchronises in a process of its own, for the test that kills it.
#[test]
fn synchronising_that_is_killed() {
    const HOME: &str = "VERBATIM_TEST_SYNC";
    if let Some(home) = std::env::var_os(HOME) {
        engine(Path::new(&home)).upkeep().sync_transcripts(&Call::default(), &|_| {}).unwrap();
        return;
    }
    let home = Home::new();
    for file in 0..12_u32 {
        let mut content = String::new();
        for number in 0..300 {
            let text = format!("{number} {}", "words of some length ".repeat(60));
            content.push_str(&line(file * 1000 + number, "user", &text));
        }
        let content = content.replace("\"session\"", &format!("\"session-{file}\""));
        home.write(&format!("{file}.jsonl"), content);
    }
    for attempt in 0..6_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["archives::synchronising_that_is_killed", "--exact"])
            .env(HOME, home.folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(20 + attempt * 60));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let report = home.sync();
    assert_eq!(report.failed, 0);
    assert_eq!(home.found("").len(), 12 * 300);
    let fresh = Home::new();
    for file in 0..12 {
        let name = format!("{file}.jsonl");
        fs::copy(home.path(&name), fresh.path(&name)).unwrap();
    }
    assert_eq!(home.held(), fresh.synced());
}

#[test]
fn a_project_is_not_known_where_the_store_cannot_be_read() {
    let home = Home::new();
    home.write("p/a.jsonl", line(1, "user", "first"));
    home.sync();
    let source = home.engine.sources().pop().unwrap();
    let options = Reindex { resources: Resources { memory: 64 << 20, threads: 1 }, full: false };
    source.reindex(options, &Call::default(), &mut |_| ()).unwrap();
    let project = {
        let about = home.engine.find(&Call::default()).by_word("session").unwrap();
        about.project.expect("transcripts have a project")
    };
    home.engine.close();
    // The index is current, and then its database is removed.
    let reader = source.reader(&Call::default());
    let listed = |scope: &Scope| reader.list(scope, &Call::default()).map(|found| found.len());
    let of_project = Scope { project: Some(project), ..Scope::default() };
    let path = source.database().unwrap();
    let away = path.with_extension("away");
    fs::rename(path, &away).unwrap();
    assert!(listed(&of_project).is_err());
    assert_eq!(listed(&Scope::default()).unwrap(), 1);
    fs::rename(&away, path).unwrap();
    assert_eq!(listed(&of_project).unwrap(), 1, "the failure is not kept");
}

#[test]
fn every_folder_of_a_session_counts() {
    let home = Home::new();
    let moved = line(2, "user", "Barn step").replace("/home/ann/code", "/home/ann/barn");
    home.write("a.jsonl", line(1, "user", "Open the barn") + &moved + &line(3, "user", "and back"));
    home.sync();
    let count = |filter: &str, value: &str| run(&home, &["search", "", "--count", filter, value]);
    for (filter, value) in [
        ("--folder", "/home/ann/barn"),
        ("--folder", "/home/ann/code"),
        ("--project", "barn"),
        ("--project", "code"),
    ] {
        assert_eq!(count(filter, value).trim(), "3", "{value}");
    }
    assert!(run(&home, &["list"]).contains(" · code"));
    let config =
        Config { exclude: vec!["/home/ann/barn".to_owned()], ..home.engine.config().clone() };
    let home = Home { engine: Engine::new(config), ..home };
    home.sync();
    assert_eq!(home.found(""), [""; 0]);
}

#[test]
fn warm_ups_of_agents_are_left_out() {
    let home = Home::new();
    let agent = |number, kind, text: &str| {
        let fields = r#"{"isSidechain":true,"agentId":"a1","#;
        line(number, kind, text).replacen('{', fields, 1)
    };
    let warm_up = agent(1, "user", "Warmup") + &agent(2, "assistant", "I am ready.");
    home.write("agent-a1.jsonl", &warm_up);
    home.write("session.jsonl", line(3, "user", "Warmup"));
    home.sync();
    assert_eq!(home.found(""), ["Warmup"], "that of the user stays");
    assert!(!run(&home, &["list"]).contains("agent-a1"));
    home.append("agent-a1.jsonl", agent(4, "user", "Look around"));
    home.sync();
    assert!(home.held().contains("\"session/agent-a1\" \"Look around\""), "{}", home.held());
    assert!(!home.held().contains("I am ready"), "{}", home.held());
}

#[test]
fn helpers_that_no_person_saw_are_left_out() {
    let home = Home::new();
    let agent = |number: u32, id: &str, more: &str, prompt: &str| {
        let fields = format!(r#"{{"isSidechain":true,"agentId":"{id}",{more}"#);
        let said = [line(number, "user", prompt), line(number + 1, "assistant", "done")];
        said.map(|line| line.replacen('{', &fields, 1)).concat()
    };
    home.write("session.jsonl", line(1, "user", "Dig"));
    let helpers = [
        ("aprompt_suggestion-1a2b3c", "Look at the answer"),
        ("acompact-0123456789abcdef", "Sum it up"),
        ("ayet_unknown-1a2b3c4d", "Take a note"),
        ("hook-agent-5f0c9a52", "Is it done?"),
        ("a1b2c3d", "[SUGGESTION MODE: Suggest what comes next.]"),
        (
            "a1b2c3e",
            "Your task is to create a detailed summary of the conversation so far, in full.",
        ),
    ];
    let agents = [
        ("a7f7f7f", "", "Count the beds"),
        ("anna-b", "", "Count the rows"),
        ("amole-1a2b3c", r#""agentName":"mole","#, "Count the worms"),
    ];
    for (number, (id, prompt)) in (10..).step_by(2).zip(helpers) {
        home.write(&format!("s/subagents/agent-{id}.jsonl"), agent(number, id, "", prompt));
    }
    for (number, (id, more, prompt)) in (50..).step_by(2).zip(agents) {
        home.write(&format!("s/subagents/agent-{id}.jsonl"), agent(number, id, more, prompt));
    }
    let rollouts = [
        (r#"{"subagent":"review"}"#, true),
        (r#"{"subagent":{"thread_spawn":{"parent_thread_id":"p","depth":1}}}"#, true),
        (r#"{"subagent":{"other":"agent_job:1"}}"#, true),
        (r#""vscode""#, true),
        ("null", true),
        (r#"{"subagent":"compact"}"#, false),
        (r#"{"subagent":"memory_consolidation"}"#, false),
        (r#"{"subagent":{"other":"guardian"}}"#, false),
        (r#"{"internal":"memory_consolidation"}"#, false),
    ];
    for (number, (source, _)) in (0..).zip(rollouts) {
        let own = format!(r#""source":{source},"cwd""#);
        let text = rollout(&format!("r-{number}"), None, &[&format!("rollout {number}")]);
        home.write(&format!("rollout-{number}.jsonl"), text.replacen("\"cwd\"", &own, 1));
    }
    home.sync();
    let mut found = home.found("");
    found.retain(|text| text != "done");
    found.sort();
    let prompts = agents.map(|(_, _, prompt)| prompt.to_owned()).into_iter();
    let shown = (0..).zip(rollouts).filter(|(_, (_, is_shown))| *is_shown);
    let shown = shown.map(|(number, _): (u32, _)| format!("rollout {number}"));
    assert_eq!(found, prompts.chain(["Dig".to_owned()]).chain(shown).collect::<Vec<_>>());
    has(&run(&home, &["status"]), &["not read: 10 files: helpers of agents, which no person saw"]);
    // Short ids are those of sessions, and an agent is found below its session.
    has(&run(&home, &["list"]), &["\nsession  ", "\nsession/agent-am  "]);
    has(&run(&home, &["show", "sess/agent-am"]), &["Count the worms"]);
    has(&run(&home, &["show", "sess"]), &["Dig"]);
}

#[test]
fn the_title_is_what_the_user_first_said_to_the_model() {
    let program = [
        "<local-command-caveat>Caveat: …</local-command-caveat>",
        "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args>haiku</command-args>",
        "<local-command-stdout>Set model to haiku</local-command-stdout>",
        "<bash-input>ls -l</bash-input>",
        "<bash-stdout>a</bash-stdout>",
        "<teammate-message teammate_id=\"mole\">Dig deeper</teammate-message>",
        "<task-notification><task-id>1</task-id></task-notification>",
        "<some-new-wrapper kind=\"x\">Words of a program</some-new-wrapper>",
        "[Request interrupted by user]",
        "This session is being continued from a previous conversation that ran out of context.",
        "Stop hook feedback:\n- no tests",
    ];
    for (number, text) in (10..).zip(program) {
        let home = Home::new();
        home.write("a.jsonl", line(number, "user", text) + &line(90, "user", "Prune the roses."));
        home.sync();
        assert!(home.held().contains("\"session\" \"Prune the roses.\""), "{}", home.held());
        assert_eq!(home.found("Prune"), ["Prune the roses."]);
    }
    for prompt in ["/home/ann/a.rs is cut", "<b>Why</b> is it bold?"] {
        let home = Home::new();
        home.write("a.jsonl", line(1, "user", prompt) + &line(90, "user", "Prune the roses."));
        home.sync();
        assert!(home.held().contains(&format!("\"session\" {prompt:?}")), "{}", home.held());
    }
}

#[test]
fn a_copy_says_what_it_continues() {
    let home = Home::new();
    let begun = line(1, "user", "Count the beehives") + &line(2, "assistant", "Seventeen");
    let copy = begun.clone() + &line(3, "user", "And the wasps?");
    home.write("a.jsonl", &begun);
    home.write("b.jsonl", copy.replace("\"session\"", "\"session-b\""));
    home.sync();
    assert_eq!(home.found("").len(), 3);
    assert!(run(&home, &["show", "session-b"]).contains(" · continues `session`"));
    let listed = run(&home, &["list"]);
    assert_eq!(listed.matches(" · continues session").count(), 1, "{listed}");
    let json = run(&home, &["list", "--json"]);
    has(&json, &[r#""continues":"session""#, r#""continues":null"#]);
    home.append("a.jsonl", line(4, "user", "more"));
    home.sync();
    assert_eq!(run(&home, &["list"]).matches("continues").count(), 1);
}
