//! Excluded and forgotten conversations.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::calls::has;
use crate::program::Server;
use crate::pty::OnTerminal;
use crate::threads;
use crate::user::{self, Said};

/// A user with a home, an archive of transcripts and a configuration file.
struct User(user::User);

impl User {
    fn new() -> User {
        let user = User(user::User::new());
        fs::create_dir(user.path("agent")).unwrap();
        user.set("");
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn set(&self, settings: &str) {
        let text = format!(
            "home = '{}'\narchives = ['{}']\n{settings}",
            self.path("home").display(),
            self.path("agent").display()
        );
        fs::write(self.path("config.toml"), text).unwrap();
    }

    fn transcript(&self, session: &str, folder: &str, texts: &[&str]) {
        self.0.write(&format!("agent/p/{session}.jsonl"), transcript(session, folder, texts));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command(arguments);
        command.env("VERBATIM_CONFIG", self.path("config.toml"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        Said::of(&mut self.command(arguments))
    }

    /// Runs a command that succeeds.
    #[track_caller]
    fn done(&self, arguments: &[&str]) -> Said {
        let said = self.run(arguments);
        said.ends(0);
        said
    }

    /// Returns how many messages an exact search finds; a ranked one finds some if there are any.
    #[track_caller]
    fn found(&self, text: &str) -> usize {
        let exact = self.run(&["search", text, "--json", "-n", "0"]).out.lines().count();
        let ranked = self.run(&["search", text, "--json", "--mode", "words"]).out;
        assert_eq!(exact > 0, ranked.to_lowercase().contains(text), "{text}: {ranked}");
        exact
    }

    fn export(&self, name: &str, chats: &Value) -> String {
        self.0.write(name, chats.to_string()).to_string_lossy().into_owned()
    }

    /// Returns the files below the home that hold a text, in capitals too.
    fn files_with(&self, text: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        files_with(&self.path("home"), &text.to_lowercase(), &mut found);
        found
    }
}

/// Returns what was read; `None` if a server removed the file meanwhile.
fn unless_gone<T>(read: io::Result<T>) -> Option<T> {
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        read => Some(read.unwrap()),
    }
}

fn files_with(folder: &Path, text: &str, found: &mut Vec<PathBuf>) {
    for path in unless_gone(fs::read_dir(folder)).into_iter().flatten() {
        let path = path.unwrap().path();
        if path.is_dir() {
            files_with(&path, text, found);
        } else if let Some(bytes) = unless_gone(fs::read(&path)) {
            let bytes = bytes.to_ascii_lowercase();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path);
            }
        }
    }
}

fn transcript(session: &str, folder: &str, texts: &[&str]) -> String {
    let record = |(number, text): (usize, &&str)| {
        let record = json!({
            "type": "user", "uuid": format!("{session}-{number}"), "sessionId": session,
            "timestamp": format!("2025-01-04T10:00:{number:02}Z"), "cwd": folder,
            "message": {"role": "user", "content": text},
        });
        format!("{record}\n")
    };
    texts.iter().enumerate().map(record).collect()
}

fn chat(id: &str, title: &str, texts: &[&str]) -> Value {
    let message = |(number, text): (usize, &&str)| {
        json!({"uuid": format!("{id}-m{number}"), "sender": "human", "text": text,
            "created_at": format!("2025-01-03T10:00:{number:02}Z")})
    };
    let messages: Vec<Value> = texts.iter().enumerate().map(message).collect();
    json!({"uuid": id, "name": title, "chat_messages": messages})
}

#[test]
fn excluded_projects_and_folders_are_in_no_answer() {
    let user = User::new();
    user.transcript("s1", "/home/ann/secret", &["apple secret"]);
    user.transcript("s2", "/home/ann/private/deep/x", &["apple private"]);
    user.transcript("s3", "/home/ann/parser", &["apple open"]);
    assert_eq!(user.found("apple"), 3);
    user.done(&["reindex"]);
    user.set("exclude = ['SECR*', '/home/ann/private']\n");
    // There was no synchronisation or indexing since then: only the filter excludes the messages.
    let mut server = Server::start(&mut user.command(&["serve", "--no-watch"]));
    let answer = server.call("search", &json!({"query": "apple", "mode": "text"})).to_string();
    assert!(answer.contains("apple open"), "{answer}");
    assert!(!answer.contains("apple secret") && !answer.contains("apple private"), "{answer}");
    for (tool, arguments) in [
        ("search", json!({"query": "apple", "mode": "both"})),
        ("search", json!({"query": "apple", "mode": "vector"})),
        ("query_conversations", json!({"mode": "search", "query": "apple"})),
        ("query_conversations", json!({"mode": "list"})),
    ] {
        let answer = server.call(tool, &arguments).to_string();
        assert!(answer.contains("s3") || answer.contains("apple open"), "{tool}: {answer}");
        for hidden in ["apple secret", "apple private", "/s1.jsonl", "/s2.jsonl"] {
            assert!(!answer.contains(hidden), "{tool} {arguments}: {answer}");
        }
    }
    let read = server.call("query_conversations", &json!({"mode": "get", "session": "s1"}));
    assert!(!read.to_string().contains("apple"), "{read}");
    drop(server);
    let status = user.done(&["status"]).out;
    let expected =
        "excluded: SECR*, /home/ann/private; in no answer: 2 conversations of the archive\n";
    assert!(status.contains(expected), "{status}");

    assert_eq!(user.found("apple"), 1);
    assert_eq!(user.done(&["list", "--json"]).out.lines().count(), 1);
    user.run(&["show", "s1"]).ends(2);
    user.done(&["status"]).prints(expected);
    user.run(&["doctor"]).prints("excluded: SECR*, /home/ann/private; in no answer: 2 conv");
    // Later messages are left out too. They are found when the conversation is no longer excluded.
    user.transcript("s1", "/home/ann/secret", &["apple secret", "apple secret two"]);
    user.transcript("s4", "/home/ann/secret", &["apple secret four"]);
    assert_eq!(user.found("apple"), 1);
    user.set("");
    assert_eq!(user.found("apple"), 5);
}

#[test]
fn an_excluded_conversation_is_forgotten_by_its_id() {
    let user = User::new();
    let (secret, open) =
        ("5ec2e700-0000-4000-8000-000000000001", "09e40000-0000-4000-8000-000000000002");
    user.transcript(secret, "/home/ann/secret", &["wombatword one"]);
    user.transcript(open, "/home/ann/parser", &["kept apple"]);
    user.done(&["reindex"]);
    user.set("exclude = ['secret', 'parser']\n");
    user.run(&["list"]).ends(0).warns("those that the setting `exclude` names");
    assert!(!user.files_with("wombatword").is_empty(), "it was only excluded");
    user.run(&["forget", "5ec2", "--yes"]).ends(2).warns("no conversation has the id");
    user.done(&["forget", "5ec2e700", "--yes"]).prints("1 conversation forgotten").prints(secret);
    assert_eq!(user.files_with("wombatword"), Vec::<PathBuf>::new());
    user.set("");
    assert_eq!((user.found("wombatword"), user.found("apple")), (0, 1));
    user.done(&["forget", "--list"]).prints(secret);
}

#[test]
fn no_byte_of_a_transcript_that_is_gone_is_left_if_those_are_forgotten() {
    let user = User::new();
    user.transcript("s1", "/home/ann/parser", &["wombatword one"]);
    user.transcript("s2", "/home/ann/parser", &["kept apple"]);
    user.done(&["reindex"]);
    fs::remove_file(user.path("agent/p/s1.jsonl")).unwrap();
    assert_eq!(user.found("wombatword"), 1);
    let forget =
        |arguments: &[&str]| Said::of(user.command(arguments).env("VERBATIM_FORGET_DELETED", "1"));
    forget(&["search", "wombatword", "-c"]).ends(1);
    assert_eq!(user.files_with("wombatword"), Vec::<PathBuf>::new());
    forget(&["search", "apple", "-c"]).ends(0);
    forget(&["reindex"]).ends(0);
    assert_eq!(user.files_with("wombatword"), Vec::<PathBuf>::new());
}

#[test]
fn a_server_notices_what_is_excluded_while_it_runs() {
    let user = User::new();
    user.transcript("s1", "/home/ann/secret", &["apple secret"]);
    user.transcript("s2", "/home/ann/parser", &["apple open"]);
    for flags in [&["serve"][..], &["serve", "--no-watch"]] {
        user.set("");
        user.done(&["reindex"]);
        let mut server = Server::start(&mut user.command(flags));
        let mut found = |mode: &str| -> usize {
            let ask = json!({"query": "apple", "mode": mode});
            let answer = server.call("search", &ask);
            let listed = server.call("query_conversations", &json!({"mode": "list"}));
            let count = ["apple secret", "apple open"].map(|text| answer.contains(text));
            assert_eq!(listed.contains("\"n\":2"), count == [true; 2], "{listed}");
            count.into_iter().filter(|is_found| *is_found).count()
        };
        assert_eq!(found("text"), 2);
        user.set("exclude = ['secret']\n");
        assert_eq!((found("text"), found("both")), (1, 1));
        // Both changes are within one tick of the clock and have the same length.
        user.set("exclude = ['parser']\n");
        user.set("exclude = ['secre*']\n");
        assert_eq!(found("text"), 1);
        // A file that was emptied a moment ago is about to be written.
        fs::write(user.path("config.toml"), "").unwrap();
        assert_eq!(found("text"), 1);
        // While the file is wrong or gone, excluded conversations stay excluded.
        user.set("exclude = [");
        assert_eq!(found("text"), 1);
        fs::remove_file(user.path("config.toml")).unwrap();
        assert_eq!(found("text"), 1);
        user.set("exclude = ['secret', 'parser']\n");
        assert_eq!(found("text"), 0);
    }
    user.set("");
    assert_eq!(user.found("apple"), 2);
}

#[test]
fn excluded_transcripts_are_not_imported_and_imported_ones_are_hidden() {
    let user = User::new();
    fs::create_dir_all(user.path("old")).unwrap();
    for (session, folder, text) in
        [("s1", "/w/secret", "apple one"), ("s2", "/w/open", "apple two")]
    {
        let path = user.path("old").join(format!("{session}.jsonl"));
        fs::write(path, transcript(session, folder, &[text, "apple again"])).unwrap();
    }
    let old = user.path("old").to_string_lossy().into_owned();
    user.done(&["import", &old]);
    let export = user.export("conversations.json", &json!([chat("c1", "Fruit", &["apple three"])]));
    user.done(&["import", &export]);
    assert_eq!(user.found("apple"), 5);
    user.set("exclude = ['secret']\n");
    for _ in 0..2 {
        assert_eq!(user.found("apple"), 3);
        // The limit counts only the messages that are shown.
        let shown = user.done(&["search", "apple", "--json", "-n", "2"]).out;
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert_eq!(user.done(&["list", "--json"]).out.lines().count(), 2);
        let stats = user.done(&["stats", "--json"]).out;
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(stats["messages"], 3, "{stats}");
        assert_eq!(stats["conversations"], 2, "{stats}");
        user.run(&["show", "s1"]).ends(2);
        // The result is the same without an index.
        fs::remove_dir_all(user.path("home/index")).unwrap();
    }
    let other = user.path("other.db").to_string_lossy().into_owned();
    user.done(&["import", &old, "--db", &other])
        .prints("left out: 1 conversation of excluded projects and folders; ");
    let connection = Connection::open(&other).unwrap();
    let count = |table: &str| -> i64 {
        connection
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!((count("conversations"), count("messages")), (1, 2));
}

#[test]
fn no_byte_of_a_deleted_thread_is_left() {
    let user = User::new();
    let id = threads::record(&user.path("home"), "zanzibarish topic", Some("zanzibarish turn"));
    user.done(&["reindex"]);
    assert!(user.files_with("zanzibarish turn").len() > 1, "the database and its index");
    let mut server = Server::start(&mut user.command(&["serve"]));
    let query = json!({"query": "zanzibarish", "mode": "text"});
    assert!(server.call("search", &query).to_string().contains("zanzibarish turn"));
    user.done(&["list", "--service", "threads"]).prints("zanzibarish topic");
    user.done(&["show", &id]).prints("zanzibarish turn");
    user.done(&["forget", "--yes", &id]);
    assert_eq!(user.files_with("zanzibarish"), Vec::<PathBuf>::new());
    let answer = server.call("search", &query).to_string();
    assert!(!answer.contains("zanzibarish turn"), "{answer}");
}

#[test]
fn no_byte_of_what_is_forgotten_is_left_and_it_does_not_come_back() {
    let user = User::new();
    let chats = |marked: &str| {
        json!([
            chat(
                "chat-forgotten",
                "Zanzibarish plans",
                &["zanzibarish first", marked, "common words"]
            ),
            chat("chat-kept", "Kept", &["common words", "kept words"]),
        ])
    };
    // The text is changed once, so that an older version is in the free pages of the database.
    let long = format!("zanzibarish {}", "and more text ".repeat(2_000));
    user.done(&["import", &user.export("a.json", &chats(&long))]);
    let export = user.export("b.json", &chats("zanzibarish changed"));
    user.done(&["import", &export]);
    user.transcript("s-forgotten", "/w/a", &["zanzibarish prompt", "zanzibarish answer"]);
    user.transcript("s-kept", "/w/b", &["another prompt"]);
    let saved = threads::record(&user.path("home"), "zanzibarish topic", Some("zanzibarish turn"));
    user.done(&["reindex"]);
    // The home folder was once at another path: its indexes have names from that time.
    for folder in fs::read_dir(user.path("home/index")).unwrap().map(|it| it.unwrap().path()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if let (true, Some((stem, _))) = (folder.is_dir(), name.rsplit_once('-')) {
            fs::rename(&folder, folder.with_file_name(format!("{stem}-0123456789abcdef"))).unwrap();
        }
    }
    user.done(&["reindex"]);
    user.done(&["search", "zanzibarish", "--mode", "both"]);
    assert_eq!(user.found("common"), 2);
    assert!(!user.files_with("zanzibarish").is_empty());
    // A server that runs meanwhile answers right afterwards.
    let mut server = Server::start(&mut user.command(&["serve"]));
    let query = json!({"query": "zanzibarish"});
    assert!(server.call("conversation_search", &query).to_string().contains("zanzibarish first"));

    let Said { code, out, errors } = user.run(&["forget", "chat-forgotten", "s-forgotten"]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{errors}");
    assert!(errors.contains("verbatim forget --yes chat-forgotten s-forgotten"), "{errors}");
    let out = user.done(&["forget", "--yes", "chat-forgotten", "s-forgotten", &saved]).out;
    assert!(out.starts_with("3 conversations forgotten, 6 messages\n"), "{out}");
    assert!(out.contains("`verbatim forget --undo chat-forgotten` lets it come back"), "{out}");
    assert!(out.contains("a recorded thread cannot be brought back"), "{out}");
    assert_eq!(user.files_with("zanzibarish"), Vec::<PathBuf>::new());
    assert_eq!(user.files_with("and more text"), Vec::<PathBuf>::new());
    let answer = server.call("conversation_search", &query).to_string();
    assert!(!answer.contains("zanzibarish first"), "{answer}");
    drop(server);
    assert_eq!((user.found("zanzibarish"), user.found("common"), user.found("another")), (0, 1, 1));

    // Neither an import nor a transcript that continues brings the messages back.
    user.done(&["import", &export]).prints("left out: 1 conversation that you forgot; ");
    user.transcript(
        "s-forgotten",
        "/w/a",
        &["zanzibarish prompt", "zanzibarish answer", "zanzibarish on"],
    );
    user.done(&["reindex", "--full"]);
    assert_eq!(user.found("zanzibarish"), 0);
    assert_eq!(user.files_with("zanzibarish"), Vec::<PathBuf>::new());
    fs::remove_dir_all(user.path("home/index")).unwrap();
    assert_eq!(user.found("zanzibarish"), 0, "the store is read anew");
    assert_eq!(user.files_with("zanzibarish"), Vec::<PathBuf>::new());

    let listed = user.done(&["forget", "--list"]).out;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    has(&listed, &["chat-forgotten  20", "s-forgotten  20"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        for name in ["forgotten.jsonl", "forgotten.lock"] {
            let file = fs::metadata(user.path("home").join(name)).unwrap();
            assert_eq!(file.mode() & 0o777, 0o600, "{name}");
        }
    }
    user.done(&["status"]).prints("forgotten: 2 conversations");
    user.done(&["forget", "--undo", "s-forg"]);
    assert_eq!(user.found("zanzibarish"), 3);
    user.done(&["forget", "--undo", "chat-forgotten"]);
    user.done(&["import", &export]);
    assert_eq!(user.found("zanzibarish"), 5 + 1, "and its title");
    user.run(&["forget", "--list"]).ends(0);
    user.run(&["forget", "--undo", "s-forgotten"]).ends(2);
}

#[test]
fn databases_that_are_only_read_are_not_written_to() {
    let user = User::new();
    fs::create_dir_all(user.path("home/db")).unwrap();
    let path = user.path("home/db/a.db");
    drop(crate::corpus::database(&path, &["red"]));
    let before = fs::read(&path).unwrap();
    user.run(&["forget", "--yes", "conv-0001"]).ends(2).warns("a.db: only read");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!user.path("home/forgotten.jsonl").exists());
    user.run(&["forget", "--yes", "nothing-of-it"]).ends(2).warns("nothing-of-it");
    // A database in the working folder is only read, even if an import made it.
    let export = user.export("a.json", &json!([chat("c1", "Fruit", &["apple"])]));
    fs::create_dir_all(user.path("work/db")).unwrap();
    let local = user.path("work/db/b.db").to_string_lossy().into_owned();
    user.done(&["import", &export, "--db", &local]);
    fs::write(user.path("config.toml"), "archives = []\n").unwrap();
    user.run(&["forget", "--yes", "c1"]).ends(2).warns("b.db: only read");
}

#[test]
fn a_broken_off_command_is_finished_by_the_next_one() {
    let user = User::new();
    let chats = json!([chat("c1", "Fruit", &["zanzibarish"]), chat("c2", "Kept", &["kept"])]);
    user.done(&["import", &user.export("a.json", &chats)]);
    // The process may be killed after the id was put into the list, or after the rows were removed.
    let line = json!({"id": "c1", "service": "claude", "at": 1});
    fs::write(user.path("home/forgotten.jsonl"), format!("{line}\n")).unwrap();
    user.done(&["forget", "--yes", "c1"]);
    assert_eq!(user.files_with("zanzibarish"), Vec::<PathBuf>::new());
    user.done(&["forget", "--yes", "c1"]);
    assert_eq!((user.found("kept"), user.done(&["forget", "--list"]).out.lines().count()), (1, 1));
}

#[test]
fn nothing_is_left_of_an_index_that_was_not_current() {
    let user = User::new();
    user.transcript("s-a", "/w/a", &["zanzibarish prompt", "zanzibarish answer"]);
    user.done(&["reindex"]);
    user.transcript("s-b", "/w/b", &["another prompt"]);
    assert!(!user.files_with("zanzibarish").is_empty());
    user.done(&["forget", "--yes", "s-a"]);
    assert_eq!(user.files_with("zanzibarish"), Vec::<PathBuf>::new());
}

#[test]
fn a_fork_does_not_take_over_what_it_repeats() {
    let user = User::new();
    let first = transcript("s-a", "/w/a", &["shared prompt", "zanzibarish secret"]);
    fs::create_dir_all(user.path("agent/p")).unwrap();
    fs::write(user.path("agent/p/s-a.jsonl"), &first).unwrap();
    let more = transcript("s-b", "/w/a", &["unused", "unused", "own words"]);
    let own = more.lines().last().unwrap();
    fs::write(user.path("agent/p/s-b.jsonl"), format!("{first}{own}\n")).unwrap();
    assert_eq!((user.found("zanzibarish"), user.found("own")), (1, 1));
    user.done(&["forget", "--yes", "s-a"]);
    assert_eq!((user.found("zanzibarish"), user.found("own")), (0, 1));
    assert_eq!(user.files_with("zanzibarish"), Vec::<PathBuf>::new());
}

#[cfg(unix)]
#[test]
fn a_terminal_is_asked_and_an_empty_line_is_a_no() {
    use pty_process::blocking::Command;

    let user = User::new();
    user.done(&[
        "import",
        &user.export("a.json", &json!([chat("c1", "Fruit", &["apple", "pear"])])),
    ]);
    let asked = |answer: &str| {
        let command = Command::new(env!("CARGO_BIN_EXE_verbatim"))
            .env_clear()
            .env("HOME", user.path(""))
            .env("VERBATIM_CONFIG", user.path("config.toml"))
            .args(["forget", "fruit"]);
        let mut on = OnTerminal::start(command, (24, 200));
        on.press(answer);
        let mut text = String::new();
        OnTerminal::read(&on.pty, |bytes| {
            text.push_str(&String::from_utf8_lossy(bytes));
            true
        });
        (on.child.wait().unwrap().code(), text)
    };
    for (answer, takes_long) in [("\n", false), ("n\n", true)] {
        if takes_long {
            let texts = vec!["plum"; 5_000];
            user.done(&["import", &user.export("b.json", &json!([chat("c2", "Plums", &texts)]))]);
        }
        let (code, text) = asked(answer);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("Fruit (claude), 2 messages, c1"), "{text}");
        assert_eq!(
            text.contains("index is built again afterwards, for 5,002 messages"),
            takes_long
        );
        assert!(text.contains("Forget this conversation for good? [y/N]"), "{text}");
        assert_eq!(user.found("apple"), 1);
    }
    let (code, text) = asked("y\n");
    assert!(code == Some(0) && text.contains("1 conversation forgotten, 2 messages"), "{text}");
    assert_eq!(user.found("apple"), 0);
}

#[test]
fn writers_and_servers_that_run_meanwhile_bring_nothing_back() {
    let user = User::new();
    let mut chats: Vec<Value> = (0..300)
        .map(|number| chat(&format!("c{number}"), "Filler", &[&format!("filler {number}"), "pear"]))
        .collect();
    chats.push(chat("c-forgotten", "Plans", &["zanzibarish"]));
    let export = user.export("a.json", &json!(chats));
    user.done(&["import", &export]);
    user.transcript("s-forgotten", "/w/a", &["zanzibarish prompt"]);
    user.transcript("s-kept", "/w/b", &["kept"]);
    user.done(&["list"]);
    let mut server = Server::start(&mut user.command(&["serve"]));
    let query = json!({"query": "zanzibarish", "mode": "text"});
    server.call("search", &query);
    std::thread::scope(|threads| {
        let importing = threads.spawn(|| {
            for _ in 0..4 {
                user.run(&["import", &export]);
            }
        });
        let growing = threads.spawn(|| {
            let texts: Vec<&str> = vec!["zanzibarish prompt"; 20];
            let lines = transcript("s-forgotten", "/w/a", &texts);
            let path = user.path("agent/p/s-forgotten.jsonl");
            for line in lines.lines().skip(1) {
                let mut file = fs::File::options().append(true).open(&path).unwrap();
                writeln!(file, "{line}").unwrap();
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        });
        user.done(&["forget", "--yes", "c-forgotten", "s-forgotten"]);
        importing.join().unwrap();
        growing.join().unwrap();
    });
    let answer = server.call("search", &query).to_string();
    assert!(!answer.contains("zanzibarish prompt"), "{answer}");
    drop(server);
    assert_eq!(user.found("zanzibarish"), 0);
    assert_eq!(user.found("pear"), 300);
    user.done(&["reindex"]);
    assert_eq!(user.files_with("zanzibarish"), Vec::<PathBuf>::new());
}

#[test]
fn an_id_of_two_services_is_forgotten_for_both() {
    let user = User::new();
    fs::write(user.path("a.json"), crate::exports::chat("same-id", 1.0, &["apple"])).unwrap();
    let claude = user.export("b.json", &json!([chat("same-id", "Pears", &["pear"])]));
    for export in [&user.path("a.json").to_string_lossy(), claude.as_str()] {
        user.done(&["import", export]);
        user.done(&["forget", "--yes", "same-id"]);
        user.done(&["import", export]).prints("left out: 1 conversation that you forgot; ");
    }
    assert_eq!(user.done(&["forget", "--list"]).out.lines().count(), 2);
    user.done(&["forget", "--yes", "same-id"]);
    assert_eq!(user.done(&["forget", "--list"]).out.lines().count(), 2);
}

#[test]
fn what_cannot_be_forgotten_is_an_error_and_the_rest_is_forgotten() {
    let user = User::new();
    let chats = json!([chat("c-1", "Plans", &["zanzibarish"]), chat("c-2", "Kept", &["kept"])]);
    user.done(&["import", &user.export("a.json", &chats)]);
    fs::remove_file(user.path("a.json")).unwrap();
    let older = user.path("home/db/older.db");
    fs::copy(user.path("home/db/verbatim.db"), &older).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
    fs::File::options().write(true).open(&older).unwrap().set_modified(long_ago).unwrap();
    user.transcript("s-1", "/w/a", &["a prompt"]);
    user.done(&["reindex"]);
    let locked = Connection::open(&older).unwrap();
    locked.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let Said { code, out, errors } = user.run(&["forget", "--yes", "c-1"]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{errors}");
    assert!(errors.contains("older.db: the database is locked"), "{errors}");
    assert_eq!(user.files_with("zanzibarish"), [older]);
    drop(locked);
    let store = user.path("home/transcripts.db");
    Connection::open(&store).unwrap().execute_batch("PRAGMA user_version = 2").unwrap();
    user.run(&["forget", "--yes", "c-1"]).ends(2).warns("transcripts.db: another version");
    assert_eq!(user.files_with("zanzibarish"), Vec::<PathBuf>::new());
    fs::remove_file(store).unwrap();
    user.done(&["forget", "--yes", "c-1"]);
    assert_eq!(user.found("kept"), 1);
}

#[test]
fn damaged_stores_are_named() {
    let user = User::new();
    user.transcript("s-1", "/w/a", &["zanzibarish prompt"]);
    user.transcript("s-2", "/w/a", &["kept"]);
    user.done(&["import", &user.export("a.json", &json!([chat("c-1", "Plans", &["apple"])]))]);
    user.done(&["reindex"]);
    let damaged = user.path("home/transcripts.damaged-1");
    fs::write(&damaged, "zanzibarish").unwrap();
    user.run(&["forget", "--yes", "s-1"])
        .ends(1)
        .prints("1 conversation forgotten")
        .warns("transcripts.damaged-1: may still have the text");
    assert_eq!(user.files_with("zanzibarish"), [damaged]);
    // A chat of a service was never in it.
    assert_eq!(user.run(&["forget", "--yes", "c-1"]).errors, "");
}

#[test]
fn whoever_forgets_is_told_what_it_waits_for() {
    use std::io::{BufRead, BufReader};

    let user = User::new();
    user.transcript("s-1", "/w/a", &["zanzibarish"]);
    assert_eq!(user.found("zanzibarish"), 1);
    let lock = fs::File::options().write(true).open(user.path("home/transcripts.lock")).unwrap();
    lock.lock().unwrap();
    let mut forgetting = user.command(&["forget", "--yes", "s-1"]).spawn().unwrap();
    let errors = BufReader::new(forgetting.stderr.take().unwrap());
    let line = errors.lines().map(Result::unwrap).find(|line| line.contains("waiting"));
    assert!(line.as_ref().is_some_and(|it| it.contains("transcripts.db")), "{line:?}");
    lock.unlock().unwrap();
    assert!(forgetting.wait().unwrap().success());
    assert_eq!(user.found("zanzibarish"), 0);
}

#[test]
fn words_of_excluded_conversations_are_not_suggested() {
    let user = User::new();
    user.transcript("s1", "/w/secret", &["zebraprompt one", "zebraprompt two"]);
    user.transcript("s2", "/w/open", &["apple one", "apple two"]);
    user.done(&["reindex"]);
    let query = json!({"query": "zebraprompp apple", "mode": "both"});
    for (settings, is_suggested) in [("", true), ("exclude = ['secret']\n", false)] {
        user.set(settings);
        let mut server = Server::start(&mut user.command(&["serve", "--no-watch"]));
        let answer = server.call("search", &query).to_string();
        assert!(answer.contains("apple one"), "{answer}");
        assert_eq!(answer.contains("zebraprompt"), is_suggested, "{answer}");
    }
}

#[test]
fn the_status_says_what_it_does_not_know() {
    let user = User::new();
    let path = user.path("s1.jsonl");
    fs::write(&path, transcript("s1", "/w/secret", &["apple", "pear", "plum"])).unwrap();
    user.done(&["import", &path.to_string_lossy()]);
    let status =
        || -> Value { serde_json::from_str(&user.done(&["status", "--json"]).out).unwrap() };
    let before = status();
    assert_eq!(before["sources"][0]["last"], "2025-01-04T10:00:02Z", "{before}");
    user.set("exclude = ['secret']\n");
    let after = status();
    for key in ["conversations", "messages", "first", "last"] {
        assert_eq!(before["sources"][0][key], after["sources"][0][key], "{key}");
    }
    assert_eq!((&after["sources"][0]["excluded"], &after["forgotten"]), (&1.into(), &0.into()));
    fs::write(user.path("home/forgotten.jsonl"), "{").unwrap();
    let damaged = status();
    assert_eq!(damaged["forgotten"], Value::Null);
    assert_eq!(damaged["sources"][0]["excluded"], Value::Null);
    let text = user.done(&["status"]).out;
    for part in ["forgotten: unknown: ", "in no answer: an unknown number of the export: "] {
        assert!(text.contains(part) && text.contains("forgotten.jsonl"), "{text}");
    }
    user.set("exclude = ['ann/secret']\n");
    user.run(&["status"]).ends(2).warns("ann/secret").warns("whole path");
}

#[test]
fn a_word_of_several_titles_is_shown_as_it_was_given() {
    let user = User::new();
    let chats = json!([chat("c-1", "The Nile", &["one"]), chat("c-2", "A Nile", &["two"])]);
    user.done(&["import", &user.export("a.json", &chats)]);
    user.run(&["show", "Nile"]).ends(2).warns("\"Nile\" may be any of");
}
