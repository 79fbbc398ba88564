//! A home or a database that moves still has everything, and what lies in the place of a file is named.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use verbatim_text::hash::fnv1a;

use crate::user::Said;
use crate::{corpus::folder, exports};

/// The default home in the folder of a user.
const DEFAULT: &str = ".local/share/verbatim";

/// A user of this computer or of another one, with a home.
struct User {
    folder: PathBuf,
    home: PathBuf,
    variables: Vec<(&'static str, PathBuf)>,
}

impl User {
    fn at(folder: PathBuf) -> User {
        fs::create_dir_all(&folder).unwrap();
        User { home: folder.join(DEFAULT), folder, variables: Vec::new() }
    }

    /// Returns a user with an export, two transcripts, and all indexes and vectors.
    fn with_chats(place: &TempDir) -> User {
        let user = User::at(place.path().join("ann"));
        user.write_transcript("tulips", &["blue tulips", "tulips are bulbs"]);
        user.write_transcript("whales", &["grey whales", "whales dive"]);
        user.import(&["brown bears", "bears sleep", "bears fish"]);
        user.run(&["search", "--mode", "both", "bears"]).ends(0);
        assert_eq!(user.missing(), [0, 0]);
        user
    }

    fn import(&self, texts: &[&str]) {
        let export = self.folder.join("conversations.json");
        fs::write(&export, exports::chat("bears", 1.0, texts)).unwrap();
        self.run(&["import", export.to_str().unwrap()]).ends(0);
    }

    fn write_transcript(&self, project: &str, texts: &[&str]) {
        let transcripts = self.folder.join(".claude/projects").join(project);
        fs::create_dir_all(&transcripts).unwrap();
        let mut lines = String::new();
        for (number, text) in texts.iter().enumerate() {
            let line = json!({
                "type": "user", "uuid": format!("{project}{number}"), "sessionId": project,
                "timestamp": format!("2026-02-03T10:0{number}:00Z"), "cwd": format!("/src/{project}"),
                "message": {"role": "user", "content": text},
            });
            lines += &format!("{line}\n");
        }
        fs::write(transcripts.join(format!("{project}.jsonl")), lines).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().env("HOME", &self.folder).env("VERBATIM_BACKGROUND", "0");
        command.envs(self.variables.iter().map(|(name, path)| (name, path)));
        command.current_dir(&self.folder).stdin(Stdio::null());
        Said::of(command.args(arguments))
    }

    fn count(&self, text: &str) -> String {
        self.run(&["search", "-c", text]).out.trim().to_owned()
    }

    /// Returns how many messages lack a vector of the sentence model, for each source.
    fn missing(&self) -> Vec<i64> {
        let status = self.run(&["status", "--json"]).json().remove(0);
        let sources = status["sources"].as_array().unwrap().iter();
        let meanings = sources.map(|source| &source["generation"]["meaning"]);
        meanings.map(|it| it["total"].as_i64().unwrap() - it["made"].as_i64().unwrap()).collect()
    }

    /// Returns the messages that the index of the only source holds, and how many of them have vectors.
    fn of_database(&self, db: &Path) -> Option<[i64; 2]> {
        let arguments = ["status", "--json", "--no-archive", "--db", db.to_str().unwrap()];
        let status = self.run(&arguments).json().remove(0);
        let meaning = &status["sources"][0]["generation"]["meaning"];
        Some([meaning["total"].as_i64()?, meaning["made"].as_i64()?])
    }

    fn indexes(&self) -> usize {
        fs::read_dir(self.home.join("index")).unwrap().count()
    }

    /// Returns whether any file of the indexes has these bytes.
    fn has_bytes(&self, bytes: &[u8]) -> bool {
        files(&self.home.join("index"))
            .iter()
            .any(|file| fs::read(file).unwrap().windows(bytes.len()).any(|window| window == bytes))
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let status = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_home_that_moves_still_has_everything() {
    let place = folder();
    let ann = User::with_chats(&place);
    assert_eq!((ann.count("tulips"), ann.count("bears")), ("2".to_owned(), "3".to_owned()));
    let elsewhere = place.path().join("mnt/chats");
    let mut others = Vec::new();
    // Another user name, while the old home is still there.
    others.push(User::at(place.path().join("ben")));
    // A home that is named.
    let home = elsewhere.join("one");
    let variables = vec![("VERBATIM_HOME", home.clone())];
    others.push(User { home, variables, ..User::at(place.path().join("cid")) });
    // Settings that name a folder that is gone, and one that never was in this home.
    let dan = User::at(place.path().join("dan"));
    fs::create_dir_all(dan.folder.join(".config/verbatim")).unwrap();
    let settings = "archives = [\"/gone/projects\", \"~/agents\"]\n";
    fs::write(dan.folder.join(".config/verbatim/config.toml"), settings).unwrap();
    others.push(dan);
    let variables = vec![("VERBATIM_ARCHIVE", PathBuf::from("/gone/projects"))];
    others.push(User { variables, ..User::at(place.path().join("eve")) });
    for other in &others {
        copy(&ann.home, &other.home);
    }
    // The folder of the user is renamed; a part of the transcripts is gone.
    fs::rename(&ann.folder, place.path().join("anna")).unwrap();
    let anna = User::at(place.path().join("anna"));
    fs::remove_dir_all(anna.folder.join(".claude/projects/tulips")).unwrap();
    others.push(anna);
    for user in &others {
        let name = user.folder.display();
        assert_eq!((user.count("tulips"), user.count("bears")), ("2".into(), "3".into()), "{name}");
        assert_eq!(user.indexes(), 2, "{name}");
        assert_eq!(user.missing(), [0, 0], "{name}");
        let status = user.run(&["status"]);
        status.prints("searched: by its index, which is current").prints_not("slowly");
        user.run(&["doctor"]).ends(0).prints_not("the index of");
        user.run(&["list"]).prints("tulips").prints("whales");
    }
    others[0]
        .run(&["status"])
        .prints("kept: 2 conversations whose transcripts were deleted, cut or moved");
    // A folder filters if it is named.
    let named = ["--archive", "/gone/projects"];
    others[0].run(&[&["search", "tulips", "-c"], &named[..]].concat()).prints("0");
    let doctor = others[0].run(&[&["doctor"], &named[..]].concat());
    doctor.prints("2 conversations of transcripts in other folders than those of --archive");
    others[0].run(&["search", "tulips", "-c", "--no-archive"]).prints("0");
}

#[test]
fn an_index_belongs_to_its_database() {
    let place = folder();
    let user = User::with_chats(&place);
    let db = place.path().join("a/chats.db");
    copy(&user.home.join("db/verbatim.db"), &db);
    let reindex = |db: &Path| {
        user.run(&["reindex", "--no-archive", "--db", db.to_str().unwrap()]).ends(0);
    };
    reindex(&db);
    assert_eq!(user.indexes(), 3);
    let mut at = db;
    for next in ["b/chats.db", "b/renamed.db", "c/other name.db"] {
        let next = place.path().join(next);
        fs::create_dir_all(next.parent().unwrap()).unwrap();
        fs::rename(&at, &next).unwrap();
        assert_eq!(user.of_database(&next), Some([3, 3]), "{}", next.display());
        user.run(&["search", "-c", "--no-archive", "bears", "--db", next.to_str().unwrap()]);
        let status = user.run(&["status", "--no-archive", "--db", next.to_str().unwrap()]);
        status.prints("by its index, which is current");
        assert_eq!(user.indexes(), 3);
        at = next;
    }
    // A copy beside it, and one of the same name, have indexes of their own.
    for copied in ["c/copy.db", "d/other name.db"] {
        let copied = place.path().join(copied);
        copy(&at, &copied);
        assert_eq!(user.of_database(&copied), None);
        reindex(&copied);
        assert_eq!(user.of_database(&at), Some([3, 3]));
        assert_eq!(user.of_database(&copied), Some([3, 3]));
    }
    assert_eq!(user.indexes(), 5);
    // The orphan is named, with its place.
    fs::remove_file(place.path().join("c/copy.db")).unwrap();
    user.run(&["doctor"]).prints("c/copy.db, which is gone").prints("which is not searched");
    // Its texts are among those of a conversation that is forgotten.
    user.run(&["forget", "--yes", "bears"]).ends(0);
    let doctor = user.run(&["doctor"]);
    doctor.prints_not("c/copy.db");
    assert_eq!(user.of_database(&at), Some([3, 3]), "another database has it still");
}

#[test]
fn what_is_forgotten_or_excluded_leaves_the_other_vectors() {
    let place = folder();
    let user = User::with_chats(&place);
    let hash = fnv1a(b"blue tulips").to_le_bytes();
    assert!(user.has_bytes(&hash), "the hash of a text is beside its vector");
    user.run(&["forget", "--yes", "tulips"]).ends(0);
    assert_eq!(user.missing(), [0, 0]);
    assert!(!user.has_bytes(&hash));
    assert!(user.has_bytes(&fnv1a(b"grey whales").to_le_bytes()));
    user.run(&["forget", "--undo", "tulips"]).ends(0);
    assert_eq!(user.count("tulips"), "2");
    user.run(&["search", "--mode", "both", "tulips"]).ends(0);
    assert_eq!(user.missing(), [0, 0]);
    // Exclusions come and go. Nothing is encoded.
    let settings = user.folder.join(".config/verbatim/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, "exclude = [\"tulips\"]\n").unwrap();
    assert_eq!(user.count("tulips"), "0");
    user.run(&["reindex", "--model", "static"]).ends(0);
    assert_eq!(user.missing(), [0, 0]);
    fs::write(&settings, "").unwrap();
    assert_eq!(user.count("tulips"), "2");
    user.run(&["reindex", "--model", "static"]).ends(0);
    assert_eq!(user.missing(), [0, 0]);
    let status = user.run(&["status", "--json"]).json().remove(0);
    assert_eq!(status["sources"][1]["messages"], 4);
    assert_eq!(status["sources"][1]["generation"]["messages"], 4);
}

#[test]
fn what_is_no_file_is_named_and_not_waited_for() {
    let place = folder();
    let user = User::with_chats(&place);
    let whole = place.path().join("whole");
    copy(&user.home, &whole);
    for name in [
        "db/verbatim.db",
        "transcripts.db",
        "threads.db",
        "forgotten.jsonl",
        "flags.jsonl",
        "token",
    ] {
        for kind in ["a folder", "a link to something that is gone", "a pipe"] {
            fs::remove_dir_all(&user.home).unwrap();
            copy(&whole, &user.home);
            let path = user.home.join(name);
            drop(fs::remove_file(&path));
            match kind {
                "a folder" => fs::create_dir(&path).unwrap(),
                "a pipe" => make_pipe(&path),
                _ => std::os::unix::fs::symlink("/nowhere/it", &path).unwrap(),
            }
            let doctor = user.run(&["doctor"]);
            doctor.ends(1).prints(&format!("it is {kind}"));
            assert!(
                doctor.out.lines().any(|line| line.starts_with("WRONG") && line.contains(name))
            );
            let found = user.run(&["search", "e", "-n", "0"]);
            if name.ends_with(".db") {
                found.warns("cannot be read and").warns(&format!("it is {kind}"));
            } else {
                found.prints("bears").prints("whales");
            }
        }
    }
    // Files of the index and followed transcripts.
    fs::remove_dir_all(&user.home).unwrap();
    copy(&whole, &user.home);
    make_pipe(&user.folder.join(".claude/projects/tulips/pipe.jsonl"));
    let dead = user.folder.join(".claude/projects/tulips/dead.jsonl");
    std::os::unix::fs::symlink("/nowhere/it", dead).unwrap();
    let found = user.run(&["search", "tulips"]);
    found.ends(0).warns("pipe.jsonl: it is a pipe").warns("dead.jsonl: it is a link");
    for file in files(&user.home.join("index")) {
        fs::remove_file(&file).unwrap();
        make_pipe(&file);
    }
    assert_eq!(user.count("bears"), "3");
    let import = user.run(&["import", "/proc/kmsg"]);
    assert_ne!(import.code, Some(0), "{import}");
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_large_index_that_was_copied_is_checked_once() {
    let place = folder();
    let user = User::at(place.path().join("ann"));
    let word = |number: u32| format!(" {:x}", fnv1a(&number.to_le_bytes()));
    let text = |number: u32| (0..30).map(|at| word(30 * number + at)).collect::<String>();
    let texts: Vec<String> = (0..6_000).map(|number| format!("river{}", text(number))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    user.import(&texts);
    let checked = || {
        let files = files(&user.home.join("index"));
        files.into_iter().filter(|path| path.ends_with("checked")).count()
    };
    assert_eq!((user.count("river"), checked()), ("6000".to_owned(), 0));
    let backup = place.path().join("backup");
    copy(&user.home, &backup);
    fs::remove_dir_all(&user.home).unwrap();
    thread::sleep(Duration::from_millis(200));
    copy(&backup, &user.home);
    assert_eq!(user.count("river"), "6000");
    let noted = checked();
    assert!(noted > 0);
    assert_eq!((user.count("river"), checked()), ("6000".to_owned(), noted));
    // What is damaged later is still found.
    let rows = files(&user.home.join("index")).into_iter().find(|path| path.ends_with("rows"));
    let rows = rows.unwrap();
    let mut bytes = fs::read(&rows).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(7);
    fs::write(&rows, bytes).unwrap();
    assert_eq!(user.count("river"), "6000");
    user.run(&["doctor"]).ends(1).prints("is not as it was written");
}

#[test]
fn a_database_of_another_version_is_searched_and_named() {
    let place = folder();
    let user = User::with_chats(&place);
    let db = user.home.join("db/verbatim.db");
    for value in ["99", "'x'"] {
        let sql = format!("UPDATE verbatim_meta SET value = {value} WHERE name = 'schema'");
        Connection::open(&db).unwrap().execute_batch(&sql).unwrap();
        assert_eq!(user.count("bears"), "3");
        let doctor = user.run(&["doctor"]);
        doctor.ends(1).prints("nothing can be added: another version of verbatim made it (schema");
    }
    // What else lies in the home.
    copy(&db, &user.home.join("old.db"));
    fs::write(user.home.join("transcripts.damaged-1"), "noise").unwrap();
    let doctor = user.run(&["doctor"]);
    doctor.prints("old.db: lies in the home and is not searched").prints("was set aside");
}
