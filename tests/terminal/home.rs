//! The first steps of a new user: one home, exports that are found, and an import that indexes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;
use verbatim_search::cli::{self, Environment};

use crate::corpus::{database, files};
use crate::exports::{chat, zip_of};
use crate::user::{Said, User};

impl User {
    fn home(&self, name: &str) -> PathBuf {
        self.path(".local/share/verbatim").join(name)
    }

    fn searched(&self) -> String {
        let status = self.run(&["status", "--json"]).json();
        status[0]["sources"][0]["database"].as_str().unwrap_or("none").to_owned()
    }
}

/// Returns every file below a folder with its content.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for (path, content) in files(folder) {
        if path.is_dir() {
            all.extend(tree(&path));
        }
        all.insert(path, content);
    }
    all
}

fn chatgpt() -> Vec<u8> {
    zip_of(&[("conversations.json", chat("a", 1.0, &["red"]).as_bytes()), ("chat.html", b"<html>")])
}

fn claude() -> Vec<u8> {
    let json = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/import/claude.json"));
    let json = String::from_utf8(json.unwrap()).unwrap();
    zip_of(&[("conversations.json", json.as_bytes()), ("users.json", b"[]")])
}

#[test]
fn the_working_folder_is_read_and_not_written_to() {
    let user = User::new();
    let export = user.write("chats.json", chat("a", 1.0, &["violet"]));
    fs::create_dir(user.path("work/db")).unwrap();
    drop(database(&user.path("work/db/a.db"), &["red", "green"]));
    let before = tree(&user.path("work"));
    assert_eq!(user.searched(), user.path("work/db/a.db").to_str().unwrap());
    user.run(&["search", "red"]).ends(0);
    user.run(&["status"]).prints("the db/ of the working folder, which is only read");
    let log = Said::of(&mut user.command(&["serve"])).errors;
    assert!(log.contains("because the working folder has it; it is only read"), "{log}");
    let import = user.run(&["import", export.to_str().unwrap()]);
    import
        .ends(0)
        .prints("Your chats are in ~/.local/share/verbatim")
        .prints("searches here read ~/work/db/a.db");
    user.run(&["reindex"]).ends(0);
    user.run(&["search", "violet"]).ends(1);
    assert_eq!(tree(&user.path("work")), before, "nothing is written to it");
    assert!(user.home("db/verbatim.db").is_file() && user.home("index").is_dir());
    // The command in the hint finds the imported text.
    let home = user.home("");
    user.run(&["search", "violet", "--home", home.to_str().unwrap()]).ends(0);
    // With `--home .` the working folder is the home, as before.
    let here = user.run(&["import", export.to_str().unwrap(), "--home", "."]);
    assert!(here.code == Some(0) && user.path("work/db/verbatim.db").is_file(), "{}", here.errors);
}

#[test]
fn databases_of_other_programs_are_ignored() {
    let user = User::new();
    fs::create_dir(user.path("work/db")).unwrap();
    let rails = Connection::open(user.path("work/db/development.db")).unwrap();
    rails.execute_batch("CREATE TABLE users (id); CREATE TABLE messages (id, body)").unwrap();
    let before = tree(&user.path("work"));
    let export = user.write("chats.json", chat("a", 1.0, &["violet"]));
    user.run(&["import", export.to_str().unwrap()]).ends(0);
    assert_eq!(user.searched(), user.home("db/verbatim.db").to_str().unwrap());
    user.run(&["search", "violet"]).ends(0);
    assert_eq!(tree(&user.path("work")), before);
    // Canonical tables in the write-ahead log alone count as well.
    fs::remove_dir_all(user.path("work/db")).unwrap();
    fs::create_dir(user.path("work/db")).unwrap();
    let wal = Connection::open(user.path("work/db/live.db")).unwrap();
    wal.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    wal.execute_batch(crate::corpus::SCHEMA).unwrap();
    assert_eq!(user.searched(), user.path("work/db/live.db").to_str().unwrap());
}

#[test]
fn of_several_databases_the_newest_with_chats_is_searched() {
    let user = User::new();
    fs::create_dir_all(user.home("db")).unwrap();
    let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
    drop(database(&user.home("db/old.db"), &["grey"]));
    pause();
    drop(database(&user.home("db/new.db"), &["red"]));
    pause();
    Connection::open(user.home("db/z.db")).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    assert_eq!(user.searched(), user.home("db/new.db").to_str().unwrap());
    let status = user.run(&["status"]).out;
    assert!(status.contains("newer than 1 other in"), "{status}");
    let not_searched = |name: &str| format!("not searched: {}", user.home(name).display());
    assert!(status.contains(&not_searched("db/old.db")), "{status}");
    let other = format!("{}, which holds no chats", not_searched("db/z.db"));
    assert!(status.contains(&other), "{status}");
}

#[test]
fn an_import_goes_to_the_database_that_is_named() {
    let user = User::new();
    let export = user.write("my chats/it's.json", chat("a", 1.0, &["violet"]));
    let export = export.to_str().unwrap();
    let import = user.run(&["import", export, "--db", "mine.db"]);
    import.ends(0);
    let mine = user.path("work/mine.db");
    assert!(mine.is_file() && !user.home("db").exists());
    import.prints("Your chats are in mine.db.");
    let hint = format!("Try: verbatim search --db {}", mine.display());
    import.prints(&hint);
    // The database is named a second time, and then by the variable.
    user.run(&["import", export, "--db", "mine.db"]).ends(0);
    let named = Said::of(user.command(&["import", export]).env("CONVERSATION_DB", "other.db"));
    assert!(named.code == Some(0) && user.path("work/other.db").is_file(), "{}", named.errors);
    // A database that another program made is only read.
    drop(database(&user.path("work/foreign.db"), &["red"]));
    let before = fs::read(user.path("work/foreign.db")).unwrap();
    user.run(&["import", export, "--db", "foreign.db"])
        .ends(2)
        .warns("another program made it; leave out --db");
    Said::of(user.command(&["import", export]).env("CONVERSATION_DB", "foreign.db"))
        .warns("leave out CONVERSATION_DB");
    assert_eq!(fs::read(user.path("work/foreign.db")).unwrap(), before);
}

#[test]
fn exports_among_the_downloads_are_found() {
    let user = User::new();
    let nothing = user.run(&["import"]);
    nothing
        .ends(1)
        .prints("found in ~/Downloads.")
        .prints("Settings > Data controls > Export data");

    user.write("Downloads/my chatgpt.zip", chatgpt());
    user.write("Downloads/data-2026.zip", claude());
    user.write("Downloads/photos.zip", zip_of(&[("a.jpg", b"x")]));
    user.write("Downloads/package.json", r#"{"name": "x", "mapping": 1, "dependencies": {}}"#);
    user.write("Downloads/deep/er/conversations.json", chat("d", 1.0, &["deep"]));
    user.write("Downloads/half.zip", &chatgpt()[..40]);
    #[cfg(unix)]
    {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let pipe = user.path("Downloads/pipe.json");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
    let unanswered = user.run(&["import"]);
    unanswered.ends(2);
    let lines: Vec<&str> = unanswered.out.lines().collect();
    assert_eq!((lines[0], lines.len()), ("Found in ~/Downloads:", 3), "{lines:?}");
    let of = |name: &str| lines.iter().find(|line| line.contains(name)).copied().unwrap();
    assert!(of("my chatgpt.zip").contains("  ChatGPT, "), "{lines:?}");
    assert!(of("data-2026.zip").contains("  Claude.ai, "), "{lines:?}");
    unanswered.warns("verbatim import --yes").warns("half.zip: cannot read the zip");
    unanswered.warns_not("photos");
    assert!(!user.home("db").exists(), "nothing was imported");

    user.write("Downloads/unpacked/conversations.json", chat("u", 1.0, &["unpacked"]));
    let import = user.run(&["import", "--yes"]);
    // A conversation of the sample cannot be read.
    import.ends(1).prints("Imported 5 conversations, 9 messages, 1 file (15 bytes)\n");
    import.prints("left out: 1 conversation without messages, 1 empty message, ");
    import.prints("\nTry: verbatim search \"");
    assert!(!import.errors.contains('█'), "no progress in a pipe: {}", import.errors);
    let again = user.run(&["import", "--yes"]);
    again.ends(0);
    assert_eq!(again.out.matches("(imported already)").count(), 3, "{}", again.out);
    again.prints("Nothing is new.");
    // The program offers only the newer download, and does not read the others again.
    user.write("Downloads/new.zip", zip_of(&[("c.json", chat("n", 1.0, &["new"]).as_bytes())]));
    user.run(&["import", "-y"]).prints("Imported 1 conversation, 1 message\n");
    // A download without new messages is not offered again, even inside another zip.
    user.write("Downloads/outer.zip", zip_of(&[("new.zip", &chatgpt())]));
    user.run(&["import", "-y"]).prints("  1  outer.zip ").prints_not("Nothing is new.");
    user.run(&["import", "-y"]).prints("Nothing is new.");
}

#[test]
fn an_import_suggests_a_word_of_the_messages() {
    let user = User::new();
    let export = |title: &str, text: &str| {
        let chat =
            chat("c", 1.0, &[text]).replace("\"title\":\"c\"", &format!("\"title\":{title:?}"));
        user.write("work/c.json", chat.replace(r#""update_time":1.0"#, r#""update_time":9.0"#))
    };
    for (title, text, word) in [
        ("Restaurants_2", "Nice Restaurants and hotels", "Restaurants"),
        ("Reservation", "book a dinner for two", "dinner"),
    ] {
        let db = user.path(word).with_extension("db");
        let export = export(title, text);
        let words = ["import", export.to_str().unwrap(), "--db", db.to_str().unwrap()];
        let import = user.run(&words);
        let hint = import.out.lines().last().unwrap();
        assert!(hint.ends_with(&format!(" \"{word}\"")), "{}{}", import.out, import.errors);
        user.run(&["search", word, "-c", "--db", db.to_str().unwrap()]).ends(0);
    }
}

#[test]
fn without_a_chat_nothing_is_said_about_words_and_filters() {
    let user = User::new();
    let export = user.write("work/c.json", chat("c", 1.0, &["a cat"]));
    user.run(&["import", export.to_str().unwrap()]);
    user.run(&["forget", "--yes", "c"]).ends(0);
    for words in [
        &["search", "cat"][..],
        &["search", "cat", "--since", "7d"],
        &["search", "cat", "--mode", "words"],
        &["list"],
        &["stats"],
    ] {
        let answer = user.run(words);
        answer.ends(1);
        assert!(answer.errors.starts_with("verbatim: there are no chats; "), "{}", answer.errors);
        assert_eq!(answer.errors.lines().count(), 1, "{}", answer.errors);
    }
}

#[test]
fn the_homes_of_windows_are_looked_at_in_wsl() {
    let user = User::new();
    user.write("windows/ann/Downloads/chatgpt.zip", chatgpt());
    user.write("windows/ben/x", "");
    let transcript = r#"{"type": "user", "uuid": "u", "sessionId": "s", "cwd": "/shop",
        "message": {"role": "user", "content": "from Windows"}}"#;
    let transcript = transcript.replace('\n', "");
    user.write("windows/ann/.claude/projects/shop/s.jsonl", transcript + "\n");
    let environment = Environment {
        data_folder: Some(user.path("data")),
        working_folder: user.path("work"),
        windows_homes: ["ann", "ben"].map(|name| user.path("windows").join(name)).into(),
        ..Environment::default()
    };
    let run = |arguments: &[&str]| {
        let arguments = ["verbatim"].iter().chain(arguments).map(OsString::from);
        let mut out = Vec::new();
        let code = cli::run(arguments, &environment, &mut out).unwrap();
        (code, String::from_utf8(out).unwrap())
    };
    let downloads = user.path("windows/ann/Downloads");
    let (code, out) = run(&["import", "--yes"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with(&format!("Found in {}:\n", downloads.display())), "{out}");
    assert_eq!(run(&["search", "from Windows", "-c"]).1, "1\n");
    assert_eq!(run(&["search", "red", "-c"]).1, "1\n");
}

#[test]
fn of_a_folder_of_zips_nothing_is_passed_over_in_silence() {
    let user = User::new();
    let late = chat("late", 1.0, &["green"]);
    let others: Vec<String> = (0..9).map(|number| format!("a{number}.json")).collect();
    let mut entries: Vec<(&str, &[u8])> = others.iter().map(|name| (&**name, &b"{}"[..])).collect();
    entries.push(("my/chats.json", late.as_bytes()));
    user.write("zips/late.zip", zip_of(&entries));
    let good = user.write("zips/good.zip", chatgpt());
    let bad = user.write("zips/bad.zip", &claude()[..80]);
    for name in &others {
        user.write(&format!("zips/{name}"), "{}");
    }
    user.write("zips/z.json", chat("beside", 1.0, &["yellow"]));
    let import = user.run(&["import", "~/zips"]);
    import.ends(1);
    let all = import.out + &import.errors;
    assert!(all.contains("Imported 3 conversations, 3 messages"), "{all}");
    assert!(all.contains("bad.zip: cannot read the zip"), "{all}");
    assert!(!all.contains("ignored"), "{all}");
    // An export whose conversations were forgotten counts as read.
    user.run(&["forget", "--yes", "a"]).ends(0);
    user.run(&["import", good.to_str().unwrap(), bad.to_str().unwrap()])
        .ends(1)
        .prints("left out: 1 conversation that you forgot; ");
}

#[test]
fn folders_of_zips_and_zips_in_zips_are_read() {
    let user = User::new();
    let inner = [("chatgpt.zip", chatgpt()), ("claude.zip", claude())];
    let inner: Vec<(&str, &[u8])> = inner.iter().map(|(name, zip)| (*name, &zip[..])).collect();
    let outer = user.write("outer.zip", zip_of(&inner));
    let read = |answer: &Said| answer.out.contains("Imported 4 conversations, 8 messages");
    let import = user.run(&["import", outer.to_str().unwrap()]);
    assert!(read(&import), "{}{}", import.out, import.errors);
    import.prints("claude.zip/conversations.json: conversation 4");

    let user = User::new();
    user.write("zips/a.zip", chatgpt());
    user.write("zips/b.zip", claude());
    user.write("zips/photos.zip", zip_of(&[("a.jpg", b"x")]));
    let import = user.run(&["import", "~/zips"]);
    assert!(read(&import), "{}{}", import.out, import.errors);
    import.prints("1 zip without chats, ").warns_not("photos");
    // The folder has a zip bomb inside a zip, and zips nested three deep.
    let bomb = zip_of(&[("conversations.json", &vec![b' '; 64 << 20])]);
    let bomb = user.write("bomb.zip", zip_of(&[("b.zip", &bomb)]));
    user.run(&["import", bomb.to_str().unwrap()]).ends(2).warns("refused: unpacks to 67 MB");
    let deep = user.write("deep.zip", zip_of(&[("o.zip", &zip_of(&[("a.zip", &chatgpt())]))]));
    user.run(&["import", deep.to_str().unwrap()]).ends(2);
}

#[test]
fn a_manifest_names_the_zips_to_download() {
    let user = User::new();
    let zips = ["light_metadata", "projects", "frames", "conversations"];
    let list: Vec<String> = zips
        .iter()
        .map(|zip| {
            format!(
                r#"{{"category": "{zip}", "export_url": "https://example.com/{zip}",
                "filename": "{zip}-000.zip"}}"#
            )
        })
        .collect();
    let list = format!(r#"{{"total_files": 4, "data_files": [{}]}}"#, list.join(","));
    let manifest = user.write("Downloads/manifest-1-2026-09-10.json", list);
    let manifest = manifest.to_str().unwrap();
    let all =
        "light_metadata-000.zip, projects-000.zip, frames-000.zip, conversations-000.zip; then";
    for (arguments, code) in [
        (vec!["import", "-y"], 1),
        (vec!["import", manifest], 2),
        (vec!["import", "~/Downloads"], 2),
    ] {
        let answer = user.run(&arguments);
        answer.ends(code);
        for said in ["manifest-1-2026-09-10.json: ", "the 4 zips", "works once", "none of", all] {
            answer.warns(said);
        }
        answer.prints_not("Each service sends");
    }
    let chats = zip_of(&[(
        "conversations.json",
        br#"[{"uuid": "c", "chat_messages": [{"uuid": "m", "text": "a"}]}]"#,
    )]);
    user.write("Downloads/conversations-000 (1).zip", chats);
    let frames = zip_of(&[("frames/f/index.html", b"<p>"), ("frames/f/metadata.json", b"{}")]);
    user.write("Downloads/frames-000.zip", frames);
    user.write("Downloads/photos.zip", zip_of(&[("a.jpg", b"x")]));
    for arguments in [["import", "-y"], ["import", "~/Downloads"]] {
        let answer = user.run(&arguments);
        let said = "here already: frames-000.zip, conversations-000.zip; to be";
        answer.prints("Imported 1 conversation");
        assert!(answer.out.contains(said) != answer.errors.contains(said), "once: {answer}");
        let said = "artifacts of Claude.ai as web pages (frames): frames-000.zip";
        answer.prints(said);
    }
    // What an import does not read need not be there.
    let project = br#"{"uuid": "p", "name": "Pond", "prompt_template": "x", "docs": []}"#;
    user.write("Downloads/projects-000.zip", zip_of(&[("projects/p.json", project)]));
    let answer = user.run(&["import", "~/Downloads"]);
    assert_eq!((answer.code, answer.errors.as_str()), (Some(0), ""), "{}", answer.out);
    answer.prints("left out: 1 zip without chats, ");
    user.run(&["list"]).prints("Project: Pond");
}

#[test]
fn what_is_no_export_is_refused_with_a_hint() {
    let user = User::new();
    let page = user.write("chat.html", "<html>");
    let db = user.path("a.db");
    drop(database(&db, &["red"]));
    let note = user.write("a.json", "{}");
    for (path, said, is_long) in [
        (page, "a web page, in which no conversation is found\n", false),
        (db, "it is a database; search it with --db\n", false),
        (note, "it holds no conversation; looked for", true),
    ] {
        let refused = user.run(&["import", path.to_str().unwrap()]);
        refused.ends(2).warns(said);
        assert_eq!(refused.errors.contains("looked for"), is_long, "{}", refused.errors);
    }
}

#[test]
fn an_import_indexes_at_its_end() {
    let user = User::new();
    let export = user.write("chats.json", chat("a", 1.0, &["violet", "green"]));
    let export = export.to_str().unwrap();
    let index = |user: &User| -> Value {
        user.run(&["status", "--json"]).json()[0]["sources"][0]["generation"].clone()
    };
    let full = user.run(&["import", export]);
    full.prints("\nReady in ");
    assert_eq!(index(&user)["current"], true);
    assert_eq!(index(&user)["derived"], serde_json::json!(["words", "vectors"]));

    let current = user.run(&["reindex"]).out;
    assert_eq!(current, "the index is up to date: 2 messages\n");
    let built = user.run(&["reindex", "--full"]).out;
    assert!(
        built.starts_with("2 messages indexed in ") && built.contains("instant now ("),
        "{built}"
    );
    assert_eq!(built.lines().count(), 1, "{built}");
}

#[test]
fn commands_to_paste_are_quoted() {
    let user = User::new();
    let home = user.path("My Chats");
    let export = user.write("My Chats/db/it's my export.zip", chatgpt());
    std::thread::sleep(std::time::Duration::from_secs(3));
    let home = home.to_str().unwrap();
    let quoted = format!("'{}'", export.display().to_string().replace('\'', r"'\''"));
    for command in ["status", "doctor"] {
        let said = user.run(&[command, "--home", home]).out;
        let command = format!("verbatim import --home '{home}' {quoted}");
        assert!(said.contains(&command), "{said}");
    }
}

/// Returns a user with a session of Claude Code in a folder that does not exist.
fn user_of_an_agent() -> User {
    let user = User::new();
    let lines = [("user", "Where is the zeppelin?"), ("assistant", "In the hangar.")];
    let lines = lines.map(|(role, text)| {
        serde_json::json!({
            "type": role, "sessionId": "0d9b2f10-0000-4000-8000-000000000007", "uuid": text,
            "cwd": user.path("gone/zeppelin"), "timestamp": "2025-03-04T05:06:07Z",
            "message": {"role": role, "content": text},
        })
        .to_string()
    });
    user.write(
        ".claude/projects/-gone-zeppelin/0d9b2f10-0000-4000-8000-000000000007.jsonl",
        lines.join("\n") + "\n",
    );
    user
}

#[test]
fn a_command_that_reads_makes_no_home() {
    let user = user_of_an_agent();
    let typo = user.path("typo");
    let words = [
        &["search", "zeppelin"][..],
        &["list"],
        &["show", "0d9b"],
        &["open", "0d9b"],
        &["resume", "0d9b"],
        &["stats"],
        &["export", "notes"],
        &["forget", "--list"],
        &["status"],
    ];
    for words in words {
        let answer = user.run(&[words, &["--home", typo.to_str().unwrap()]].concat());
        assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{words:?}");
        let expected = "verbatim: there is no such home: ~/typo; ";
        assert!(answer.errors.starts_with(expected), "{}", answer.errors);
        assert!(!typo.exists() && !user.path("work/notes").exists(), "{words:?}");
    }
    user.run(&["doctor", "--home", typo.to_str().unwrap()]).prints("there is no such home: ~/typo");
    // A tilde that the shell leaves as it is stands for the user's folder.
    user.write("chats.json", chat("a", 1.0, &["violet"]));
    let import = user.run(&["import", "~/chats.json", "--home=~/typo"]);
    assert_eq!((import.code, user.path("typo/db/verbatim.db").exists()), (Some(0), true));
    user.run(&["search", "violet", "--home=~/typo"]).ends(0);
    // The usual home is made, and what is copied into it is said once.
    for (variable, home) in [(None, "~/.local/share/verbatim"), (Some("usual"), "~/usual")] {
        let variable = variable.map(|name| ("VERBATIM_HOME", user.path(name)));
        let search = || Said::of(user.command(&["search", "zeppelin"]).envs(variable.clone()));
        let first = search();
        let said = format!("verbatim: copied 1 transcript of coding agents into {home}, ");
        assert!(first.code == Some(0) && first.errors.starts_with(&said), "{}", first.errors);
        assert_eq!(search().errors, "");
    }
}

#[test]
fn a_session_does_not_start_in_another_folder() {
    let user = user_of_an_agent();
    let resumed = user.run(&["resume", "0d9b2f10", "--run"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(2), ""), "{}", resumed.errors);
    let folder = user.path("gone/zeppelin");
    let folder = folder.to_str().unwrap();
    resumed.warns(&format!("folder is gone: {folder}"));
    let command = "claude --resume 0d9b2f10-0000-4000-8000-000000000007";
    for command in [format!("`cd {folder} && {command}`"), format!("`{command}`")] {
        resumed.warns(&command);
    }
}

#[test]
fn words_of_several_titles_are_not_forgotten_by_mistake() {
    let user = User::new();
    for (id, title) in [("a1", "alpha"), ("b1", "beta"), ("c1", "alpha beta"), ("d1", "gamma rays")]
    {
        let title = format!("\"title\":\"{title}\"");
        let export = chat(id, 1.0, &["red"]).replace(&format!("\"title\":\"{id}\""), &title);
        let export = user.write(&format!("{id}.json"), export);
        user.run(&["import", export.to_str().unwrap()]).ends(0);
    }
    let doubtful = user.run(&["forget", "--yes", "alpha", "beta"]);
    assert_eq!((doubtful.code, doubtful.out.as_str()), (Some(2), ""), "{}", doubtful.errors);
    doubtful.warns("verbatim forget 'alpha beta'");
    assert_eq!(user.run(&["list", "--json"]).out.lines().count(), 4);
    user.run(&["forget", "--yes", "--json", "gamma", "rays"]).ends(0).prints("[\"d1\"]");
    user.run(&["forget", "--yes", "--json", "a1", "b1"]).ends(0).prints("\"a1\"").prints("\"b1\"");
}
