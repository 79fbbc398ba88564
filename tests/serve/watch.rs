//! The index follows the data: every change is answered at once, and by the index soon after.

use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_base::{call::Call, model::Request};
use verbatim_engine::{Config, Engine, Reindex, Resources, SearchPlan};
use verbatim_server::watch::{self, Watch};

use crate::corpus::{add, database, files, folder, folder_with};
use crate::running::Running;

/// A time limit that is long enough for a busy machine.
const SOON: Duration = Duration::from_secs(40);

/// A home folder whose indexes are kept current.
struct Home {
    folder: TempDir,
    engine: Arc<Engine>,
    log: Arc<Mutex<Vec<String>>>,
    _watch: Watch,
}

impl Home {
    /// Starts to watch a home folder that does not exist yet.
    fn watched() -> Home {
        let (folder, home) = folder_with("home");
        Home::with(folder, Config { home, ..Config::default() })
    }

    fn with(folder: TempDir, config: Config) -> Home {
        let engine = Arc::new(Engine::new(config));
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&log);
        let watch = watch::start(Arc::clone(&engine), move |event| {
            lines.lock().unwrap().push(event.to_string());
        });
        Home { folder, engine, log, _watch: watch.unwrap() }
    }

    fn db(&self) -> PathBuf {
        let folder = self.engine.config().db_folder();
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Searches for every message; returns their texts, and whether the index answered.
    fn ask(&self) -> Result<(Vec<String>, bool), String> {
        let mut texts = Vec::new();
        let answered = self.engine.exact(&Request::default(), &Call::default(), &mut |hit| {
            texts.push(hit.content.into_owned());
            ControlFlow::Continue(())
        });
        texts.reverse();
        answered
            .map(|answered| (texts, matches!(answered, SearchPlan::ByIndex { .. })))
            .map_err(|error| error.to_string())
    }

    /// Compares every answer with `expected` until the index answers; returns how long that took.
    #[track_caller]
    fn answers(&self, expected: &[&str]) -> Duration {
        let begun = Instant::now();
        loop {
            let (texts, by_index) = self.ask().unwrap();
            assert_eq!(texts, expected, "{}", self.log());
            if by_index {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < SOON, "still by LIKE; the log:\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < SOON, "{what}; the log:\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Makes a database in another folder, as a single file.
fn made(folder: &Path, name: &str, texts: &[&str]) -> PathBuf {
    let path = folder.join(name);
    drop(database(&path, texts));
    path
}

#[test]
fn a_database_that_comes_goes_and_changes_is_followed() {
    let home = Home::watched();
    assert!(home.ask().unwrap_err().contains("Database not found"));
    let first = home.db().join("first.db");
    let connection = database(&first, &["red"]);
    home.answers(&["red"]);
    add(&connection, "green");
    home.answers(&["red", "green"]);
    drop(connection);
    // The new file is renamed over the file that is searched.
    let other = made(home.folder.path(), "other.db", &["blue", "yellow"]);
    fs::rename(&other, &first).unwrap();
    home.answers(&["blue", "yellow"]);
    // A newer file appears beside the old one.
    let newer = made(home.folder.path(), "newer.db", &["white"]);
    fs::rename(newer, home.db().join("second.db")).unwrap();
    home.answers(&["white"]);
    fs::remove_file(home.db().join("second.db")).unwrap();
    home.answers(&["blue", "yellow"]);
    // Another folder replaces the whole folder.
    let folder = home.folder.path().join("home/db-2");
    fs::create_dir(&folder).unwrap();
    made(&folder, "third.db", &["grey"]);
    fs::rename(home.db(), home.folder.path().join("home/db-1")).unwrap();
    fs::rename(&folder, home.folder.path().join("home/db")).unwrap();
    home.answers(&["grey"]);
    let third = Connection::open(home.db().join("third.db")).unwrap();
    add(&third, "black");
    home.answers(&["grey", "black"]);
    drop(third);
    fs::remove_dir_all(home.db()).unwrap();
    assert!(home.ask().unwrap_err().contains("Database not found"));
    made(&home.db(), "fourth.db", &["brown"]);
    home.answers(&["brown"]);
    assert!(!home.log().contains("its index stays"), "{}", home.log());
}

#[test]
fn what_is_still_being_written_is_not_indexed_half() {
    let home = Home::watched();
    made(&home.db(), "old.db", &["red"]);
    home.answers(&["red"]);
    let long = "green ".repeat(20_000);
    let new = made(home.folder.path(), "new.db", &[&long]);
    let bytes = fs::read(&new).unwrap();
    // First, the file has the temporary name that a browser gives.
    let partial = home.db().join("new.db.crdownload");
    for length in [0, bytes.len() / 2, bytes.len()] {
        fs::write(&partial, &bytes[..length]).unwrap();
        assert_eq!(home.ask(), Ok((vec!["red".to_owned()], true)));
    }
    fs::rename(&partial, home.db().join("downloaded.db")).unwrap();
    home.answers(&[&long]);
    // The copy is written under its final name from the start.
    made(home.folder.path(), "copied.db", &[&long, "blue"]);
    let bytes = fs::read(home.folder.path().join("copied.db")).unwrap();
    let mut copy = fs::File::create(home.db().join("copied.db")).unwrap();
    for piece in bytes.chunks(bytes.len().div_ceil(12)) {
        assert_eq!(home.ask(), Ok((vec![long.clone()], true)), "{}", home.log());
        copy.write_all(piece).unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    drop(copy);
    home.answers(&[&long, "blue"]);
    thread::sleep(Duration::from_millis(500));
    assert!(!home.log().contains("its index stays"), "{}", home.log());
    assert_eq!(home.log().matches(": indexed ").count(), 3, "once each:\n{}", home.log());
}

#[test]
fn a_writer_at_work_is_waited_for_and_then_followed() {
    let home = Home::watched();
    let writer = database(&home.db().join("live.db"), &["0"]);
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    let mut texts = vec!["0".to_owned()];
    for number in 1..40 {
        let text = number.to_string();
        add(&writer, &text);
        texts.push(text);
        assert_eq!(home.ask().unwrap().0, texts, "{}", home.log());
        thread::sleep(Duration::from_millis(50));
    }
    home.answers(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    thread::sleep(Duration::from_secs(1));
    let refreshes = || home.log().matches("messages added").count();
    let before = refreshes();
    assert!(before < 10, "refreshed while it was written to:\n{}", home.log());
    // A reader in WAL mode changes nothing.
    for _ in 0..20 {
        assert!(home.ask().unwrap().1);
    }
    assert_eq!(refreshes(), before);
}

/// A writer in WAL mode moves its log into the database when it closes it, unless it is being read.
#[test]
fn a_writer_that_closes_its_database_can_tidy_up() {
    let home = Home::watched();
    let path = home.db().join("live.db");
    let writer = database(&path, &["0"]);
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    drop(writer);
    home.until("an index", || home.ask().unwrap().1);
    for round in 0..3 {
        let writer = rusqlite::Connection::open(&path).unwrap();
        add(&writer, &format!("round {round}"));
        thread::sleep(Duration::from_millis(1_200));
        let by_index = home.ask().unwrap().1;
        assert!(!by_index, "nobody reads while the writer may close: {}", home.log());
        drop(writer);
        assert_eq!(files(&home.db()).len(), 1, "round {round}: {}", home.log());
        let copy = home.folder.path().join(format!("copy-{round}.db"));
        fs::copy(&path, &copy).unwrap();
        let copy = rusqlite::Connection::open(copy).unwrap();
        let last = "SELECT content FROM messages ORDER BY position DESC LIMIT 1";
        let last: String = copy.query_row(last, [], |row| row.get(0)).unwrap();
        assert_eq!(last, format!("round {round}"));
        home.until("a refresh", || home.ask().unwrap().1);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_spoken_of_once_and_tried_again() {
    let (folder, home) = folder_with("home");
    let index = folder.path().join("index");
    fs::write(&index, "a file in place of the folder").unwrap();
    fs::create_dir_all(home.join("db")).unwrap();
    made(&home.join("db"), "a.db", &["red"]);
    let home = Home::with(folder, Config { home, index: Some(index.clone()), ..Config::default() });
    home.until("nothing was said", || home.log().contains("its index stays"));
    let connection = Connection::open(home.db().join("a.db")).unwrap();
    add(&connection, "green");
    thread::sleep(Duration::from_secs(6));
    assert_eq!(home.ask(), Ok((vec!["red".to_owned(), "green".to_owned()], false)));
    assert_eq!(home.log().lines().count(), 1, "{}", home.log());
    fs::remove_file(index).unwrap();
    home.answers(&["red", "green"]);
}

#[test]
fn an_export_that_was_not_imported_is_spoken_of_once() {
    let home = Home::watched();
    made(&home.db(), "a.db", &["red"]);
    home.answers(&["red"]);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/import/claude.json");
    fs::copy(golden, home.db().join("conversations.json")).unwrap();
    fs::write(home.db().join("settings.json"), "{}").unwrap();
    home.until("nothing was said", || home.log().contains("was not imported"));
    thread::sleep(Duration::from_secs(1));
    assert_eq!(home.log().matches("was not imported").count(), 1, "{}", home.log());
    assert!(!home.log().contains("settings.json"));
    assert_eq!(home.ask().unwrap(), (vec!["red".to_owned()], true));
}

#[test]
fn at_rest_nothing_is_written() {
    let place = folder();
    let archives = vec![place.path().join("sessions")];
    fs::create_dir_all(&archives[0]).unwrap();
    let record = json!({
        "type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": "2026-11-01T10:00:00.000Z",
        "message": { "role": "user", "content": "a marmalade question" },
    });
    fs::write(archives[0].join("s1.jsonl"), format!("{record}\n")).unwrap();
    let home = place.path().join("home");
    let watched = Home::with(place, Config { home: home.clone(), archives, ..Config::default() });
    watched.until("the transcript is indexed", || watched.log().contains("vectors of 1 message"));
    // Files that come and go change the time of their folder. A poll without an event comes after five
    // seconds.
    let age = |folder: &Path| {
        let modified = fs::metadata(folder).and_then(|folder| folder.modified()).unwrap();
        modified.elapsed().unwrap_or_default()
    };
    watched.until("the home is at rest", || age(&home) > Duration::from_secs(7));
}

#[test]
fn a_coding_agent_may_be_installed_while_a_server_runs() {
    let (place, projects) = folder_with("user/.claude/projects");
    let home = place.path().join("home");
    let absent_archives = vec![projects.clone(), place.path().join("user/.codex/sessions")];
    let watched = Home::with(place, Config { home, absent_archives, ..Config::default() });
    std::thread::sleep(Duration::from_secs(1));
    fs::create_dir_all(projects.join("p")).unwrap();
    let record = json!({
        "type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": "2026-11-01T10:00:00.000Z",
        "message": { "role": "user", "content": "a marmalade question" },
    });
    fs::write(projects.join("p/s1.jsonl"), format!("{record}\n")).unwrap();
    watched.until("the transcript is indexed", || watched.log().contains("vectors of 1 message"));
}

#[test]
fn words_and_vectors_that_an_index_lacks_are_made() {
    let (folder, home) = folder_with("home");
    fs::create_dir_all(home.join("db")).unwrap();
    drop(database(&home.join("db/a.db"), &["red", "green"]));
    let config = Config { home, ..Config::default() };
    let options = Reindex { resources: Resources { memory: 64 << 20, threads: 1 }, full: false };
    let before = Engine::new(config.clone());
    before.upkeep().reindex(options, &Call::default(), &mut |_| {}).unwrap();
    let home = Home::with(folder, config);
    home.until("they were not made", || home.log().contains("words of 2 and vectors of 2"));
    // Folders that are made later are watched too.
    add(&Connection::open(home.db().join("a.db")).unwrap(), "blue");
    home.until("they were not made", || home.log().matches("words of").count() == 2);
    home.answers(&["red", "green", "blue"]);
}

#[test]
fn ending_leaves_nothing_behind() {
    let (home, path) = folder_with("a.db");
    large(&path, 20_000);
    let index = home.path().join("index");
    for pause in [0, 50, 200, 600, 1500] {
        let config = Config {
            db: Some(path.clone().into()),
            index: Some(index.clone()),
            ..Config::default()
        };
        let watch = watch::start(Arc::new(Engine::new(config)), |_| {}).unwrap();
        thread::sleep(Duration::from_millis(pause));
        watch.end(SOON);
        if !index.exists() {
            continue;
        }
        let Some(index_dir) = files(&index).into_keys().next() else { continue };
        let left = files(&index_dir);
        let count = segments(&index_dir);
        let expected = usize::from(left.keys().any(|path| path.ends_with("current")));
        assert_eq!(count, expected, "after {pause} ms: {left:?}");
    }
}

/// Returns how many segments an index folder has, in use or not.
fn segments(index_dir: &Path) -> usize {
    let is_segment = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("segment-"))
    };
    files(index_dir).keys().filter(is_segment).count()
}

/// Makes a database whose index takes a while.
fn large(path: &Path, messages: u32) {
    let connection = database(path, &[]);
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {messages})
         INSERT INTO messages SELECT 'm' || i, 'conv-0001', 'user',
             'message ' || i || ' of ' || hex(i * 7919), i, NULL, i FROM n"
    );
    connection.execute_batch(&sql).unwrap();
}

fn program(arguments: &[&str], home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().arg("--home").arg(home).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns whether a fresh process finds the index current.
fn is_indexed(home: &Path) -> bool {
    let output = program(&["status"], home).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("by its index, which is current")
}

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < SOON, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_command_prints_a_line_a_refresh_and_ends_well() {
    let folder = folder();
    let home = folder.path();
    fs::create_dir(home.join("db")).unwrap();
    let connection = database(&home.join("db/a.db"), &["message"]);
    let mut watch = Running::start(&mut program(&["watch"], home));
    let mut output = BufReader::new(watch.0.stdout.take().unwrap());
    let mut lines = output.by_ref().lines();
    let line = lines.next().unwrap().unwrap();
    assert!(line.contains("a.db: indexed 1 message"), "{line}");
    assert!(is_indexed(home));
    add(&connection, "message two");
    let line = lines.map(Result::unwrap).find(|line| !line.contains("words of")).unwrap();
    assert!(line.contains("a.db: refreshed") && line.contains("1 messages added"), "{line}");
    if cfg!(unix) {
        let pid = watch.0.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        assert!(watch.0.wait().unwrap().success());
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert!(rest.lines().all(|line| line.contains("words of")), "{rest}");
    }
}

#[test]
fn a_server_follows_unless_it_is_told_not_to() {
    let folder = folder();
    let home = folder.path();
    fs::create_dir(home.join("db")).unwrap();
    drop(database(&home.join("db/a.db"), &["message"]));
    let still = Running::start(&mut program(&["serve", "--no-watch"], home));
    thread::sleep(Duration::from_secs(1));
    assert!(!home.join("index").exists());
    drop(still);
    let mut server = Running::start(&mut program(&["serve"], home));
    until("the index was not built", || is_indexed(home));
    drop(server.0.stdin.take());
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn the_lock_of_a_killed_process_holds_nobody_up() {
    let folder = folder();
    let home = folder.path();
    fs::create_dir(home.join("db")).unwrap();
    large(&home.join("db/a.db"), 15_000);
    for pause in [50, 300, 900] {
        let builder = Running::start(&mut program(&["watch"], home));
        let begun = Instant::now();
        while !home.join("index").exists() && begun.elapsed() < SOON {
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(pause));
        // A process that is killed when dropped.
        drop(builder);
    }
    let _next = Running::start(&mut program(&["watch"], home));
    until("the index was not built", || is_indexed(home));
    let index_dir = files(&home.join("index")).into_keys().next().unwrap();
    // The new index is in use a moment before the old one is removed.
    until("what the killed ones left is still there", || segments(&index_dir) == 1);
}

#[test]
fn an_import_waits_while_another_process_builds_the_index() {
    let folder = folder();
    let home = folder.path();
    let path = home.join("conversations.json");
    let import = |name: &str| {
        let export = json!([{"uuid": "c", "name": name, "created_at": "2025-01-01T00:00:00Z",
            "updated_at": "2025-01-01T00:00:00Z", "chat_messages": [{"uuid": "m", "text": name,
            "sender": "human", "created_at": "2025-01-01T00:00:00Z"}]}]);
        fs::write(&path, export.to_string()).unwrap();
        let done = program(&["import", path.to_str().unwrap()], home).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    import("red");
    let index_dirs = fs::read_dir(home.join("index")).unwrap().flatten().map(|entry| entry.path());
    let index_dir = index_dirs.into_iter().find(|path| path.is_dir()).unwrap();
    let lock = fs::File::options().write(true).open(index_dir.join("lock")).unwrap();
    lock.lock().unwrap();
    let held = Duration::from_secs(2);
    let begun = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(held);
            lock.unlock().unwrap();
        });
        import("blue");
    });
    assert!(begun.elapsed() > held);
}

#[test]
fn two_servers_and_an_importer_share_an_index() {
    let folder = folder();
    let home = folder.path();
    fs::create_dir(home.join("db")).unwrap();
    let export = |count: u32| -> Value {
        let messages: Vec<Value> = (0..count)
            .map(|number| {
                json!({"uuid": format!("m{number}"), "text": format!("message {number}"),
                "sender": "human", "created_at": format!("2025-01-01T00:{:02}:{:02}Z", number / 60, number % 60)})
            })
            .collect();
        json!([{"uuid": "c", "name": "Colours", "created_at": "2025-01-01T00:00:00Z",
            "updated_at": "2025-01-01T00:00:00Z", "chat_messages": messages}])
    };
    let import = |count: u32| {
        let path = home.join("conversations.json");
        fs::write(&path, export(count).to_string()).unwrap();
        let done = program(&["import", path.to_str().unwrap()], home).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    import(1);
    let mut servers: Vec<Running> = (0..2)
        .map(|_| {
            let mut server = Running::start(&mut program(&["serve"], home));
            server.initialize();
            server
        })
        .collect();
    for count in 2..12 {
        import(count);
        for server in &mut servers {
            let newest = format!("message {}", count - 1);
            let answer = server.ask(&newest);
            assert!(answer.ends_with(&newest), "after {count}: {answer}");
            let all = server.ask("message");
            assert_eq!(all.matches("\nmessage ").count(), count as usize, "{all}");
        }
        thread::sleep(Duration::from_millis(150));
    }
    until("the index was not built", || is_indexed(home));
    for server in &mut servers {
        assert_eq!(server.ask("message").matches("\nmessage ").count(), 11);
        assert!(server.end().success());
    }
}
