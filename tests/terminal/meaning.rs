//! The vectors of the sentence model, which come after everything else: who makes them, and what is said of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use pty_process::blocking::Command as PtyCommand;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::user::Said;
use crate::{corpus::folder, exports, pty::OnTerminal};

/// More messages than an import makes vectors for.
const MANY: usize = 2_100;

/// The longest time that a test waits for a process in the background.
const PATIENCE: Duration = Duration::from_secs(300);

struct User {
    folder: TempDir,
    export: PathBuf,
}

impl User {
    /// Returns a user with an export of some messages.
    fn with(messages: usize) -> User {
        let folder = folder();
        let texts: Vec<String> = (0..messages).map(|number| format!("tulip {number}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let export = folder.path().join("conversations.json");
        fs::write(&export, exports::chat("garden", 1.0, &texts)).unwrap();
        User { folder, export }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns the program with a command, which starts no process in the background.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().env("HOME", self.folder.path()).env("VERBATIM_BACKGROUND", "0");
        command.current_dir(&self.folder).arg("--home").arg(self.home()).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    fn import(&self) -> Command {
        self.command(&["import", self.export.to_str().unwrap()])
    }

    fn run(&self, arguments: &[&str]) -> Said {
        done(&mut self.command(arguments))
    }

    /// Returns how far the model is, by `verbatim status`: as text, if it says so, and as JSON.
    fn meaning(&self) -> (Option<String>, Value) {
        let text = self.run(&["status"]).out;
        let line = text.lines().find_map(|line| line.strip_prefix("  meaning: "));
        let json = self.run(&["status", "--json"]).json();
        (line.map(str::to_owned), json[0]["sources"][0]["generation"]["meaning"].clone())
    }

    fn made(&self) -> u64 {
        self.meaning().1["made"].as_u64().unwrap()
    }
}

/// Runs a command that succeeds.
#[track_caller]
fn done(command: &mut Command) -> Said {
    let said = Said::of(command);
    said.ends(0);
    said
}

#[test]
fn an_import_makes_the_vectors_of_a_few_messages_at_once() {
    let user = User::with(40);
    let Said { out, .. } = done(&mut user.import());
    assert!(!out.contains("sentence model") && !out.contains("background"), "{out}");
    let (line, meaning) = user.meaning();
    assert_eq!(line, None, "nothing is missing");
    assert_eq!((&meaning["made"], &meaning["total"]), (&json!(40), &json!(40)));
    assert_eq!(meaning["vector_share"], 0.3);
    assert!(meaning["model"].as_str().is_some_and(|name| !name.is_empty()), "{meaning}");
    let Said { errors: notes, .. } = user.run(&["search", "flowers", "--mode", "both"]);
    assert!(!notes.contains("sentence model"), "{notes}");
}

#[test]
fn vectors_that_are_missing_are_named_and_reindex_makes_them() {
    let user = User::with(MANY);
    let Said { out, .. } = done(&mut user.import());
    let missing =
        "2,100 messages have no vectors of the sentence model yet: `verbatim reindex --home";
    assert!(out.replace('\n', " ").contains(missing), "{out}");
    let (line, meaning) = user.meaning();
    assert_eq!(line.as_deref(), Some("0 of 2,100 messages (0 %), the newest first"));
    assert_eq!((&meaning["made"], &meaning["total"]), (&json!(0), &json!(MANY)));

    let note = "the sentence model has read 0 of 2,100 messages of the export";
    let notes = |mode: &str| user.run(&["search", "tulip 7", "--mode", mode]).errors;
    for mode in ["both", "vector"] {
        assert!(notes(mode).contains(note), "{mode}: {}", notes(mode));
    }
    for mode in ["words", "exact"] {
        assert!(!notes(mode).contains("sentence model"), "{mode}: {}", notes(mode));
    }
    // The share of vectors may be nothing.
    let mut command = user.command(&["search", "tulip 7", "--mode", "both"]);
    let Said { errors: notes, .. } = done(command.env("VERBATIM_VECTOR_SHARE", "0%"));
    assert!(!notes.contains("sentence model"), "{notes}");
    assert_eq!(user.made(), 0, "no search waits for so many");

    user.run(&["reindex", "--model", "static"]);
    assert_eq!(user.made(), 0);
    let nonsense = Said::of(&mut user.command(&["reindex", "--model", "nonsense"]));
    nonsense.ends(2).warns("--model: \"nonsense\"");
    // The flag comes before the variable.
    let mut command = user.command(&["reindex", "--model", "built-in"]);
    done(command.env("VERBATIM_EMBEDDINGS", "static"));
    assert_eq!(user.made(), MANY as u64);
    assert_eq!(user.meaning().0, None);
    let Said { errors: notes, .. } = user.run(&["search", "tulip 7", "--mode", "both"]);
    assert!(!notes.contains("sentence model"), "{notes}");
}

#[test]
fn a_search_makes_the_vectors_of_a_few_messages() {
    let user = User::with(60);
    done(user.import().env("VERBATIM_EMBEDDINGS", "static"));
    let search = |mode: &str| user.run(&["search", "tulip", "--mode", mode]);
    search("words");
    assert_eq!(user.made(), 0, "words need no vectors");
    search("both");
    assert_eq!(user.made(), 60);
    let mut command = user.command(&["status", "--json"]);
    let Said { out, .. } = done(command.env("VERBATIM_EMBEDDINGS", "static"));
    let status: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(status["sources"][0]["generation"]["meaning"], Value::Null, "it is left out");
}

#[test]
fn an_import_of_many_messages_lets_a_process_make_the_vectors() {
    let user = User::with(MANY);
    let Said { out, .. } = done(user.import().env_remove("VERBATIM_BACKGROUND"));
    let line = out.replace('\n', " ");
    assert!(
        line.contains("2,100 messages get their vectors for meaning in the background"),
        "{out}"
    );
    assert!(line.contains("`verbatim status --home"), "{out}");
    wait_until("the vectors are made", || user.made() == MANY as u64);
    assert_eq!(user.meaning().0, None);
}

/// A second import while the process of the first one still makes vectors: all messages get theirs.
#[test]
fn two_imports_in_a_row_get_all_their_vectors() {
    let user = User::with(2 * MANY);
    done(user.import().env_remove("VERBATIM_BACKGROUND"));
    let texts: Vec<String> = (0..MANY).map(|number| format!("rose {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    fs::write(&user.export, exports::chat("roses", 2.0, &texts)).unwrap();
    done(user.import().env_remove("VERBATIM_BACKGROUND"));
    wait_until("all vectors are made", || user.made() == 3 * MANY as u64);
    assert_eq!(user.meaning().0, None);
}

/// A home that is removed while a process makes vectors for it stays away, and the process ends.
#[cfg(target_os = "linux")]
#[test]
fn a_home_that_is_removed_stays_removed() {
    let user = User::with(3 * MANY);
    done(user.import().env_remove("VERBATIM_BACKGROUND"));
    let mut process = None;
    wait_until("a process begins", || {
        process = process_for(&user.home());
        process.is_some() && user.made() > 0
    });
    let process = process.expect("the wait has ended");
    assert_eq!(niceness(&process), (niceness(Path::new("/proc/self")) + 10).min(19));
    wait_until("the home is removed", || fs::remove_dir_all(user.home()).is_ok());
    wait_until("the process ends", || process_for(&user.home()).is_none());
    assert!(!user.home().exists(), "{:?}", fs::read_dir(user.home()));
}

/// Returns the folder in `/proc` of the `verbatim reindex` that runs for a home.
#[cfg(target_os = "linux")]
fn process_for(home: &Path) -> Option<PathBuf> {
    let home = home.to_str().unwrap();
    let mut processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes.find(|process| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = line.split('\0').collect();
        words.contains(&"reindex") && words.contains(&home)
    })
}

/// Returns the number by which the priority of a process is lower than usual.
#[cfg(target_os = "linux")]
fn niceness(process: &Path) -> i32 {
    let fields = fs::read_to_string(process.join("stat")).unwrap();
    // The name of the program, in brackets, may have spaces.
    let (_, rest) = fields.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(16).unwrap().parse().unwrap()
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ctrl_c_keeps_the_vectors_that_were_made() {
    let user = User::with(6 * MANY);
    done(&mut user.import());
    let mut command = PtyCommand::new(env!("CARGO_BIN_EXE_verbatim"));
    command = command.env_clear().env("HOME", user.folder.path()).env("TERM", "xterm");
    command = command.arg("--home").arg(user.home()).args(["reindex", "--full"]);
    let mut terminal = OnTerminal::start(command, (24, 100));
    let (pty, mut screen, mut is_stopped) = (terminal.pty.clone(), String::new(), false);
    OnTerminal::read(&pty, |bytes| {
        screen += &String::from_utf8_lossy(bytes);
        if !is_stopped && screen.contains("meaning: ") && user.made() > 0 {
            is_stopped = true;
            terminal.press("\x03");
        }
        true
    });
    assert_eq!(terminal.child.wait().unwrap().code(), Some(130), "{screen}");
    let instant = screen.find("searches are instant now").expect(&screen);
    assert!(screen.find("meaning: ").is_some_and(|at| at > instant), "{screen}");
    assert!(screen.contains(" of 12,600 messages, the newest first"), "{screen}");
    assert!(screen.contains("the vectors that were made stay"), "{screen}");
    let made = user.made();
    assert!(made > 0 && made < 6 * MANY as u64, "{made}");
    let (line, _) = user.meaning();
    assert!(line.is_some_and(|line| line.ends_with(" %), the newest first")), "{screen}");
    user.run(&["reindex"]);
    assert_eq!(user.made(), 6 * MANY as u64);
}
