//! The program is killed at every step and at any time, and runs without disk space and without a folder:
//! the next answer is exact, the next attempt succeeds, and nothing is left behind.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};
use std::{env, fs, thread};

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use verbatim_base::call::{Call, Stop};
use verbatim_base::failpoint;
use verbatim_base::model::{Hit, Request};
use verbatim_engine::{Config, Engine, Reindex, Reindexed, Resources, SearchPlan};

use crate::corpus::{add, database};
use crate::program::{Place, Server};

/// Returns a folder in memory if the system has one, because these tests sync files very often.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("temporary folders can be made")
}

fn place() -> (TempDir, Place) {
    let folder = folder();
    let place = Place::in_folder(folder.path());
    (folder, place)
}

const RESOURCES: Resources = Resources { memory: 32 << 20, threads: 1 };

pub(crate) fn ask(engine: &Engine, text: &str) -> (Vec<Hit<'static>>, SearchPlan) {
    let mut hits = Vec::new();
    let request = Request { text: text.to_owned(), ..Request::default() };
    let answered = engine.exact(&request, &Call::default(), &mut |hit| {
        hits.push(hit);
        ControlFlow::Continue(())
    });
    (hits, answered.expect("an answer"))
}

/// Returns SQLite's answer, without an index.
pub(crate) fn by_like(db: &Path, text: &str) -> Vec<Hit<'static>> {
    let nowhere = db.with_extension("no-index");
    let engine = Engine::new(Config {
        db: Some(db.to_owned().into()),
        home: nowhere.clone(),
        index: Some(nowhere),
        ..Config::default()
    });
    ask(&engine, text).0
}

/// Asks a new engine, which must answer as SQLite does; returns whether the index answered.
#[track_caller]
pub(crate) fn compare(place: &Place) -> bool {
    let engine = place.engine();
    let mut all = true;
    for text in ["colour", "rare 7", "new", "", "the_c"] {
        let (hits, answered) = ask(&engine, text);
        assert_eq!(hits, by_like(&place.db, text), "{text:?} {answered:?}");
        all &= matches!(answered, SearchPlan::ByIndex { .. });
    }
    all
}

pub(crate) fn reindex(place: &Place, full: bool) -> Reindexed {
    let options = Reindex { resources: RESOURCES, full };
    let engine = place.engine();
    let done = engine.upkeep().reindex(options, &Call::default(), &mut |_| {});
    // The command answers the same.
    for source in engine.sources() {
        let made = source.enrich(RESOURCES, &Call::default(), &mut |_| {});
        made.expect("words and vectors can be made");
    }
    done.expect("the database can be indexed")
}

/// Makes a database of some hundred messages.
pub(crate) fn make(path: &Path) -> Connection {
    let texts: Vec<String> =
        (0..120).map(|number| format!("the colour of {number}, rare {}", number % 11)).collect();
    database(path, &texts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Changes, removes and adds some messages.
pub(crate) fn change(connection: &Connection, round: usize) {
    connection
        .execute_batch(&format!(
            "UPDATE messages SET content = 'a new colour' WHERE rowid % 40 = {round};
             DELETE FROM messages WHERE rowid % 40 = {round} + 20;"
        ))
        .expect("changes");
    let highest = "(SELECT max(rowid) FROM messages)";
    for number in 0..3 {
        let insert = format!(
            "INSERT INTO messages SELECT 'new-{round}-{number}', 'conv-0001', 'user', 'new colour',
                1700000000 + {highest}, NULL, {highest}"
        );
        connection.execute(&insert, []).expect("a message");
    }
}

/// Lists the files below a folder, without the parts of their names that differ from run to run.
pub(crate) fn shape(folder: &Path) -> Vec<String> {
    fn walk(folder: &Path, above: &str, names: &mut Vec<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            // The note of the last refresh is missing if that refresh was killed.
            if name == "last" {
                continue;
            }
            // Numbers of segments, ids of tantivy, the hash in the name of an index directory.
            let stem = name.split('.').next().unwrap_or_default();
            let plain =
                if stem.len() == 32 { "id" } else { stem.trim_end_matches(char::is_numeric) };
            let plain = plain.split_once("-").map_or(plain, |(first, _)| first);
            let name = format!("{above}/{plain}{}", &name[stem.len()..]);
            if entry.path().is_dir() {
                walk(&entry.path(), &name, names);
            }
            names.push(name);
        }
    }
    let mut names = Vec::new();
    walk(folder, "", &mut names);
    names.sort();
    names
}

/// Runs a command once for each failpoint, and kills it there. `prepare` makes everything anew for each run,
/// and `check` examines what the killed command left. Returns the failpoints.
fn at_each_step(
    prepare: &dyn Fn(&Place),
    command: &dyn Fn(&Place) -> Command,
    check: &dyn Fn(&Place, &str),
) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for number in 1.. {
        assert!(number < 200, "it never ends");
        let (_folder, place) = place();
        prepare(&place);
        let output = command(&place)
            .env("VERBATIM_FAILPOINT", number.to_string())
            .output()
            .expect("the program can be started");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let mark = format!("failpoint {number}: ");
        let Some(killed_at) = errors.lines().find_map(|line| line.strip_prefix(&mark)) else {
            // An import that cannot index ends with 1.
            assert!(output.status.code().is_some_and(|code| code < 2), "{errors}");
            check(&place, "the end");
            break;
        };
        assert!(!output.status.success());
        check(&place, killed_at);
        places.insert(killed_at.to_owned());
    }
    places
}

#[track_caller]
fn assert_passed(places: &BTreeSet<String>, wanted: &[&str]) {
    for wanted in wanted {
        assert!(places.contains(*wanted), "{wanted:?} is not among {places:?}");
    }
}

/// Runs a command to its end.
fn run(place: &Place, arguments: &[&str]) {
    let output = place.command(arguments).output().expect("the program can be started");
    assert!(output.status.success(), "{arguments:?} {output:?}");
}

/// Asserts that after a kill the answer is exact, the next refresh succeeds, and the index equals an index
/// that was never interrupted.
fn assert_recovers(place: &Place, killed_at: &str, clean: &[String]) {
    compare(place);
    run(place, &["reindex"]);
    assert!(compare(place), "killed at {killed_at:?}");
    let left = shape(&place.index);
    assert_eq!(left, clean, "killed at {killed_at:?}");
}

/// Returns the files of an index made without interruption.
fn clean(prepare: &dyn Fn(&Place), work: &dyn Fn(&Place)) -> Vec<String> {
    let (_folder, place) = place();
    prepare(&place);
    work(&place);
    shape(&place.index)
}

#[test]
fn a_build_killed_at_any_step() {
    let prepare = |place: &Place| drop(make(&place.db));
    let files = clean(&prepare, &|place| run(place, &["reindex"]));
    let places =
        at_each_step(&prepare, &|place| place.command(&["reindex"]), &|place, killed_at| {
            assert_recovers(place, killed_at, &files);
        });
    assert_passed(
        &places,
        &[
            "folder of the index made",
            "folder of a segment made",
            "segment filled",
            "manifest empty",
        ],
    );
    assert_passed(&places, &["manifest durable", "next commit written", "snapshot in use"]);
}

/// Prepares an index of several segments with deleted documents, and a database that has changed since.
fn changed(place: &Place) {
    let connection = make(&place.db);
    reindex(place, true);
    change(&connection, 1);
    assert!(matches!(reindex(place, false), Reindexed::Refreshed { .. }));
    change(&connection, 2);
}

#[test]
fn a_refresh_killed_at_any_step() {
    let files = clean(&changed, &|place| run(place, &["reindex"]));
    let places =
        at_each_step(&changed, &|place| place.command(&["reindex"]), &|place, killed_at| {
            assert_recovers(place, killed_at, &files);
        });
    assert_passed(
        &places,
        &["deleted documents written", "segment written", "snapshot in use", "folder removed"],
    );
}

#[test]
fn a_whole_build_over_an_index_killed_at_any_step() {
    let files = clean(&changed, &|place| run(place, &["reindex", "--full"]));
    let command = |place: &Place| place.command(&["reindex", "--full"]);
    let places = at_each_step(&changed, &command, &|place, _| {
        compare(place);
        run(place, &["reindex", "--full"]);
        assert!(compare(place));
        assert_eq!(shape(&place.index), files);
    });
    assert_passed(&places, &["snapshot in use", "folder removed", "older snapshots removed"]);
}

/// The variable with the folder of the folding process. If it is set, this test binary is that process.
const FOLDED: &str = "VERBATIM_FOLDED";

#[test]
fn folder_of_parts() {
    let Some(folder) = env::var_os(FOLDED).map(PathBuf::from) else { return };
    let number = env::var("VERBATIM_FAILPOINT").expect("the number").parse().expect("a number");
    let engine = Place::in_folder(&folder).engine();
    let source = engine.sources().swap_remove(0);
    failpoint::arm(number);
    source.merge(RESOURCES, &Stop::never(), &mut |_| {}).expect("segments can be merged");
}

#[test]
fn a_fold_killed_at_any_step() {
    let prepare = |place: &Place| {
        changed(place);
        reindex(place, false);
    };
    let fold = |place: &Place| {
        let engine = place.engine();
        let source = engine.sources().swap_remove(0);
        source.merge(RESOURCES, &Stop::never(), &mut |_| {}).expect("it can be merged");
    };
    let files = clean(&prepare, &fold);
    let command = |place: &Place| {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", "crash::folder_of_parts", "--nocapture"]);
        command.env(FOLDED, place.db.parent().expect("a folder"));
        command
    };
    let places = at_each_step(&prepare, &command, &|place, killed_at| {
        assert!(compare(place), "killed at {killed_at:?}: the index is as good as before");
        fold(place);
        assert!(compare(place));
        assert_eq!(shape(&place.index), files, "killed at {killed_at:?}");
    });
    assert_passed(
        &places,
        &["segment begun", "segment filled", "snapshot in use", "folder removed"],
    );
}

/// Writes an export of Claude.ai's with these texts, a conversation each.
fn export(path: &Path, texts: &[String]) {
    let conversations: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| {
            json!({"uuid": format!("conv-{number}"), "name": "Title", "created_at": "2025-01-01T00:00:00Z",
                "updated_at": "2025-01-01T00:00:00Z", "chat_messages": [
                {"uuid": format!("m-{number}-0"), "text": text, "sender": "human", "created_at": "2025-01-01T00:00:00Z"},
                {"uuid": format!("m-{number}-1"), "text": "yes", "sender": "assistant", "created_at": "2025-01-01T00:00:01Z"}]})
        })
        .collect();
    fs::write(path, serde_json::to_vec(&conversations).expect("JSON")).expect("an export");
}

/// Returns every message of a database, and checks that the database is sound and its conversations whole.
fn contents(db: &Path) -> Vec<(String, i64)> {
    let connection = Connection::open(db).expect("the database");
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
    assert_eq!(check, "ok");
    let halves: u32 = connection
        .query_row(
            "SELECT count(*) FROM conversations AS c WHERE 2 !=
                (SELECT count(*) FROM messages AS m WHERE m.conversation_id = c.id)",
            [],
            |row| row.get(0),
        )
        .expect("a count");
    assert_eq!(halves, 0, "half a conversation");
    let mut rows = connection
        .prepare("SELECT id, length(content) FROM messages ORDER BY id")
        .expect("a statement");
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("messages");
    rows.collect::<Result<_, _>>().expect("messages")
}

/// Returns an import. Without a folder for the index, it ends when everything is imported.
fn import(place: &Place) -> Command {
    let export = place.db.with_file_name("export.json");
    let mut command = place.command(&["import", export.to_str().expect("a plain name")]);
    command.env("VERBATIM_INDEX", "/dev/null/index");
    command
}

fn is_imported(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains("imported, but not all of it is indexed: ")
}

/// Returns the names in the folder of a database, except for the files of the test.
fn beside(place: &Place) -> Vec<String> {
    let names = shape(place.db.parent().expect("a folder"));
    names.into_iter().filter(|name| !name.contains("export") && !name.contains("index")).collect()
}

#[test]
fn an_import_killed_at_any_step() {
    // A batch is committed in the middle.
    let long: Vec<String> = (0..3).map(|number| number.to_string().repeat(9 << 20)).collect();
    let short = ["one".to_owned(), "two".to_owned()];
    for is_new in [true, false] {
        let prepare = |place: &Place| {
            let path = place.db.with_file_name("export.json");
            if is_new {
                export(&path, &short);
            } else {
                export(&path, &short);
                assert!(is_imported(&import(place).output().expect("the program")));
                export(&path, &long);
            }
        };
        let (_folder, place) = place();
        prepare(&place);
        assert!(is_imported(&import(&place).output().expect("the program")));
        let (wanted, files) = (contents(&place.db), beside(&place));
        let places = at_each_step(&prepare, &import, &|place, killed_at| {
            if place.db.exists() {
                ask(&place.engine(), "1");
            }
            let output = import(place).output().expect("the program");
            assert!(is_imported(&output), "killed at {killed_at:?}: {output:?}");
            assert_eq!(contents(&place.db), wanted, "killed at {killed_at:?}");
            assert_eq!(beside(place), files, "killed at {killed_at:?}");
        });
        if is_new {
            assert_passed(&places, &["database made", "database in its place"]);
        } else {
            assert_passed(&places, &["batch committed", "import committed"]);
        }
    }
}

#[test]
fn killed_at_any_time() {
    let (folder, place) = place();
    let connection = make(&place.db);
    for number in 0..2_000 {
        connection
            .execute(
                "INSERT INTO messages VALUES ('x' || ?1, 'conv-0001', 'user', 'the colour ' || hex(randomblob(40)), ?1, NULL, ?1)",
                [number],
            )
            .expect("a message");
    }
    let rounds = crate::cases::config(8).cases;
    let mut random = 7_u64;
    for round in 0..rounds {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        add(&connection, &format!("new colour {round}"));
        let full: &[&str] = if round % 3 == 0 { &["reindex", "--full"] } else { &["reindex"] };
        let mut child = place.command(full).spawn().expect("the program");
        thread::sleep(Duration::from_millis((random >> 33) % 600));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        compare(&place);
    }
    let fresh = Place { index: folder.path().join("fresh"), ..place.clone() };
    for place in [&place, &fresh] {
        reindex(place, true);
        assert!(compare(place));
        // The sentence encoder takes over the vectors of replaced segments.
        for source in place.engine().sources() {
            source.encode(2, &Call::default(), &|_| ()).expect("vectors can be made");
        }
    }
    assert_eq!(shape(&place.index), shape(&fresh.index));
}

/// Runs a command that may write no file larger than some kilobytes, as on a disk that is full.
fn without_room(command: &Command, kilobytes: u32) -> Output {
    let mut shell = Command::new("sh");
    // If the signal is ignored, the write fails with an error instead.
    shell.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kilobytes * 2));
    shell.arg(command.get_program()).args(command.get_args()).env_clear();
    shell.stdin(Stdio::null()).output().expect("a shell")
}

#[test]
fn without_room_nothing_is_lost_and_nothing_left() {
    let (folder, place) = place();
    let connection = make(&place.db);
    reindex(&place, true);
    let files = shape(&place.index);
    let texts = "INSERT INTO messages SELECT 'y' || rowid, 'conv-0001', 'user',
        'the colour ' || hex(randomblob(300)), rowid, NULL, rowid FROM messages";
    connection.execute(texts, []).expect("messages");
    for kilobytes in [1, 8, 40] {
        let command = place.command(&["reindex", "--full"]);
        let output = without_room(&command, kilobytes);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{kilobytes} KB: {output:?}");
        assert!(errors.contains("writing the index in"), "{errors}");
        compare(&place);
        // The snapshot that is in use stays, and nothing else.
        assert_eq!(shape(&place.index), files, "{kilobytes} KB");
    }
    assert!(!compare(&place), "the index is stale");
    reindex(&place, true);
    assert!(compare(&place));

    let path = place.db.with_file_name("export.json");
    export(&path, &["one".to_owned(), "2".repeat(3 << 20)]);
    let other = Place { db: folder.path().join("other.db"), ..place };
    export(&path, &["one".to_owned()]);
    assert!(is_imported(&import(&other).output().expect("the program")));
    let before = contents(&other.db);
    export(&path, &["one".to_owned(), "2".repeat(3 << 20)]);
    let output = without_room(&import(&other), 1_000);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(contents(&other.db), before);
    assert!(is_imported(&import(&other).output().expect("the program")));
    assert_eq!(contents(&other.db).len(), 4);
}

/// A file system of one megabyte, if the system allows it; unmounted when dropped.
struct Small(PathBuf);

impl Small {
    fn mount(folder: &Path) -> Option<Small> {
        fs::create_dir(folder).expect("a folder");
        let mount = ["-t", "tmpfs", "-o", "size=1m", "tmpfs"];
        let mut command = Command::new("mount");
        let mounted = command.args(mount).arg(folder).stderr(Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then(|| Small(folder.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Databases stay open for all readers of the process, so the file system may be busy.
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

#[test]
fn a_disk_that_is_full_or_read_only() {
    let folder = folder();
    let mut place = Place::in_folder(folder.path());
    let connection = make(&place.db);
    place.index = folder.path().join("small");
    let Some(disk) = Small::mount(&place.index) else { return };
    reindex(&place, true);
    let files = shape(&place.index);
    add(&connection, "a new colour");
    let rest = place.index.join("rest");
    drop(fs::write(&rest, vec![0; 2 << 20]));
    let output = place.command(&["reindex", "--full"]).output().expect("the program");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("writing the index in"));
    assert!(!compare(&place));
    fs::remove_file(&rest).expect("room");
    assert_eq!(shape(&place.index), files);
    reindex(&place, true);
    assert!(compare(&place));
    let mut remount = Command::new("mount");
    remount.args(["-o", "remount,ro"]).arg(&disk.0);
    if remount.status().is_ok_and(|status| status.success()) {
        assert!(compare(&place), "an index that cannot be written can be read");
        add(&connection, "another new colour");
        let output = place.command(&["reindex"]).output().expect("the program");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(!compare(&place));
    }
}

#[test]
fn a_folder_that_cannot_be_had() {
    let folder = folder();
    let mut place = Place::in_folder(folder.path());
    drop(make(&place.db));
    // No user can make a folder below a file.
    place.index = folder.path().join("file/index");
    fs::write(folder.path().join("file"), "not a folder").expect("a file");
    let output = place.command(&["reindex"]).output().expect("the program");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("writing the index in") && !errors.contains("panicked"), "{errors}");
    assert!(!compare(&place));
    let mut server = Server::start(place.command(&["serve"]).stderr(Stdio::null()));
    let answer = server.call("conversation_search", &json!({"query": "rare 7"}));
    assert!(answer.contains("the colour of 7, rare 7"), "{answer}");
}

#[test]
fn an_index_deleted_while_it_is_used() {
    let (_folder, place) = place();
    let connection = make(&place.db);
    reindex(&place, true);
    let mut server = Server::start(place.command(&["serve"]).stderr(Stdio::null()));
    let mut ask = |text: &str| {
        let answer = server.call("conversation_search", &json!({"query": text, "limit": 200}));
        answer.matches("\n\n---\n\n").count() + 1
    };
    assert_eq!(ask("colour"), 120);
    for round in 0..3 {
        drop(fs::remove_dir_all(&place.index));
        assert_eq!(ask("colour"), 120);
        // The change updates two messages, adds three and removes three.
        change(&connection, round);
        assert_eq!(ask("colour"), 120);
    }
    drop(server);
    reindex(&place, false);
    assert!(compare(&place));
}

#[test]
fn clocks_that_are_wrong() {
    let (_folder, place) = place();
    let connection = make(&place.db);
    let year = Duration::from_secs(365 * 86_400);
    let set = |path: &Path, time| {
        let file = File::options().append(true).open(path).expect("a file");
        file.set_modified(time).expect("a time can be set");
    };
    for time in [SystemTime::now() + year, SystemTime::now() - year, SystemTime::UNIX_EPOCH] {
        // The time goes back, as with a restored backup or a clock that was set back.
        set(&place.db, time);
        reindex(&place, false);
        assert!(compare(&place), "{time:?}");
        add(&connection, "new colour");
        set(&place.db, time);
        assert!(!compare(&place), "{time:?}");
    }
    reindex(&place, false);
    assert!(compare(&place));
    // Another file has the same name, length and time.
    connection
        .execute("UPDATE messages SET content = replace(content, 'rare 7', 'rare 8')", [])
        .expect("a change");
    drop(connection);
    reindex(&place, false);
    let time = fs::metadata(&place.db).expect("the database").modified().expect("a time");
    let bytes = fs::read(&place.db).expect("the database");
    let next = place.db.with_extension("next");
    let mut changed = bytes.clone();
    let at: Vec<usize> = bytes
        .windows(6)
        .enumerate()
        .filter(|(_, six)| six == b"rare 9")
        .map(|(at, _)| at)
        .collect();
    assert!(!at.is_empty());
    for at in at {
        changed[at + 5] = b'7';
    }
    fs::write(&next, &changed).expect("another file");
    set(&next, time);
    fs::rename(&next, &place.db).expect("in its place");
    assert!(!compare(&place));
    // The same file has other bytes and the same time.
    reindex(&place, false);
    assert!(compare(&place));
    let file = File::options().write(true).open(&place.db).expect("the database");
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).expect("other bytes");
    file.set_modified(time).expect("a time can be set");
    assert!(!compare(&place));
}

#[test]
fn stored_transcripts_answer_while_the_disk_is_full() {
    let folder = folder();
    let Some(disk) = Small::mount(&folder.path().join("small")) else { return };
    let archives = vec![folder.path().join("projects")];
    fs::create_dir(&archives[0]).expect("a folder");
    let write = |texts: &[&str]| {
        let line = |(number, text): (usize, &&str)| {
            let message = json!({"role": "user", "content": text});
            let time = format!("2026-11-01T10:00:0{number}.000Z");
            json!({"type": "user", "uuid": number.to_string(), "sessionId": "s", "timestamp": time,
                "message": message})
            .to_string()
                + "\n"
        };
        let lines: String = texts.iter().enumerate().map(line).collect();
        fs::write(archives[0].join("s.jsonl"), lines).expect("a transcript");
    };
    let config =
        Config { home: disk.0.join("home"), archives: archives.clone(), ..Config::default() };
    let sync = || {
        let engine = Engine::new(config.clone());
        engine.upkeep().sync_transcripts(&Call::default(), &|_| {}).map(drop)
    };
    write(&["marmalade"]);
    sync().expect("there is room");
    drop(fs::write(disk.0.join("rest"), vec![0; 2 << 20]));
    write(&["marmalade", "and toast"]);
    sync().expect_err("the disk is full");
    let mut found = 0;
    let engine = Engine::new(config.clone());
    let request = Request { text: "marmalade".to_owned(), limit: Some(5), ..Request::default() };
    let answered = engine.sources()[0].exact(&request, &Call::default(), &mut |_| {
        found += 1;
        ControlFlow::Continue(())
    });
    answered.expect("the store can be read");
    assert_eq!(found, 1);
}
