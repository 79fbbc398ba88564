//! An index whose files are changed, cut and swapped, before it is opened and while a server has it
//! open: the answer is SQLite's, the log says so, and the next refresh builds it again.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::crash::{by_like, change, compare, make, reindex};
use crate::program::{Place, Server};

/// A generator of random numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Returns every file of the index except the lock, in order; leaves out files that are removed meanwhile.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if !path.to_string_lossy().ends_with("lock") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Returns whether exact search reads a file. The other files are for ranked search, or are notes.
fn is_of_exact_search(path: &Path, index: &Path) -> bool {
    let names = path.strip_prefix(index).expect("a file of the index").iter();
    let others = ["words", "vectors", "last", "database", "checked"];
    !names
        .into_iter()
        .any(|name| others.iter().any(|other| name.to_string_lossy().starts_with(other)))
}

/// Changes a file in place, so that processes that have it mapped see the change; returns a description.
fn harm(path: &Path, random: &mut Random) -> String {
    let file = File::options().read(true).write(true).open(path).expect("a file of the index");
    let length = file.metadata().expect("a file").len() as usize;
    let at = random.below(length);
    match random.below(4) {
        0 if length > 0 => {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at as u64).expect("a byte");
            byte[0] ^= 1 << random.below(8);
            file.write_all_at(&byte, at as u64).expect("another byte");
            format!("byte {at} of {length} changed in {}", path.display())
        }
        1 => {
            let zeros = vec![0xA5; 1 + random.below(5_000)];
            file.write_all_at(&zeros, at as u64).expect("other bytes");
            format!("{} bytes from {at} of {length} changed in {}", zeros.len(), path.display())
        }
        2 => {
            file.set_len(0).expect("it can be cut");
            format!("emptied {}", path.display())
        }
        _ => {
            file.set_len(at as u64).expect("it can be cut");
            format!("{length} bytes cut to {at} in {}", path.display())
        }
    }
}

/// Makes a database and an index of it of two segments with deleted documents.
fn prepared() -> (TempDir, Place) {
    let (folder, place) = Place::temporary();
    let connection = make(&place.db);
    reindex(&place, true);
    change(&connection, 1);
    reindex(&place, false);
    assert!(compare(&place));
    (folder, place)
}

#[test]
fn harmed_before_it_is_opened() {
    let (_folder, place) = prepared();
    let mut random = Random(1);
    for _ in 0..crate::cases::config(30).cases {
        let all = files(&place.index);
        let path = &all[random.below(all.len())];
        let before = fs::read(path).expect("a file");
        let done = harm(path, &mut random);
        if fs::read(path).expect("a file") == before {
            continue;
        }
        assert_eq!(compare(&place), !is_of_exact_search(path, &place.index), "{done}");
        reindex(&place, false);
        assert!(compare(&place), "{done}");
    }
}

#[test]
fn harmed_while_a_server_has_it_open() {
    let (folder, place) = prepared();
    let log = folder.path().join("log");
    let start = || {
        let log = File::options().create(true).append(true).open(&log).expect("a log");
        Server::start(place.command(&["serve", "--no-watch"]).stderr(log))
    };
    let mut server = start();
    let mut ask = |done: &str| {
        for text in ["colour", "rare 7", "new", "the_c"] {
            let arguments = json!({"query": text, "limit": 200});
            let answer = server.call("conversation_search", &arguments);
            let found: Vec<&str> =
                answer.split("\n\n---\n\n").filter_map(|block| block.lines().nth(1)).collect();
            let wanted = by_like(&place.db, text);
            let wanted: Vec<&str> = wanted.iter().map(|hit| &*hit.content).collect();
            assert_eq!(found, wanted, "{text:?} {done}");
        }
    };
    ask("at first");
    let mut random = Random(2);
    // The files that are mapped come first, so that each is damaged at least once.
    let mut names = vec!["rows", "columns", "signatures", ".term", ".idx"];
    for _ in 0..crate::cases::config(16).cases {
        let wanted = names.pop().unwrap_or_default();
        let mut all = files(&place.index);
        all.retain(|path| path.to_string_lossy().ends_with(wanted));
        let path = &all[random.below(all.len())];
        let done = harm(path, &mut random);
        ask(&done);
        reindex(&place, true);
        ask(&format!("after a rebuild, {done}"));
    }
    let log = fs::read_to_string(log).expect("a log");
    assert!(log.contains("without its index"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

/// Sets a flag when dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn cut_again_and_again_while_it_is_searched() {
    let (folder, place) = prepared();
    let log = File::create(folder.path().join("log")).expect("a log");
    let mut server = Server::start(place.command(&["serve", "--no-watch"]).stderr(log));
    let texts = ["colour", "rare 7", "new", "the_c", "e"];
    let wanted = texts.map(|text| by_like(&place.db, text));
    let is_over = AtomicBool::new(false);
    let cuts = std::thread::scope(|scope| {
        let cutter = scope.spawn(|| {
            let is_mapped = |path: &PathBuf| {
                let ends = ["rows", "columns", "signatures", ".term", ".idx", "data"];
                ends.iter().any(|end| path.to_string_lossy().ends_with(end))
            };
            let mut random = Random(3);
            let mut cuts = 0;
            while !is_over.load(Ordering::Relaxed) {
                // Ranked search builds the index anew where it is damaged.
                let mut all = files(&place.index);
                all.retain(is_mapped);
                let Some(path) = all.get(random.below(all.len())) else { continue };
                let file = File::options().read(true).write(true).open(path);
                let Ok(whole) = fs::read(path) else { continue };
                let Ok(file) = file else { continue };
                // The file is cut at the end of a page, or within a page.
                let end = [0, whole.len() / 2 / 4096 * 4096, whole.len() / 2][random.below(3)];
                file.set_len(end as u64).expect("it can be cut");
                std::thread::sleep(Duration::from_micros(random.below(300) as u64));
                file.write_all_at(&whole, 0).expect("it can be mended");
                // The pause may be long enough for the index to be opened again.
                std::thread::sleep(Duration::from_micros(random.below(9_000) as u64));
                cuts += 1;
            }
            cuts
        });
        // The other thread ends too, even if this thread panics.
        let over = Over(&is_over);
        for round in 0..crate::cases::config(200).cases as usize {
            let at = round % texts.len();
            let arguments = json!({"query": texts[at], "limit": 200});
            let answer = server.call("conversation_search", &arguments);
            let found: Vec<&str> =
                answer.split("\n\n---\n\n").filter_map(|block| block.lines().nth(1)).collect();
            let wanted: Vec<&str> = wanted[at].iter().map(|hit| &*hit.content).collect();
            assert_eq!(found, wanted[..wanted.len().min(200)], "{:?} in round {round}", texts[at]);
            server.call("query_conversations", &json!({"mode": "list"}));
            if round % 20 == 19 {
                server.call("search", &json!({"query": texts[at], "mode": "both"}));
            }
        }
        drop(over);
        cutter.join().unwrap()
    });
    assert!(cuts > 20, "{cuts}");
}

#[test]
fn an_index_of_another_database() {
    let (_folder, place) = prepared();
    let (_other_folder, other) = Place::temporary();
    drop(crate::corpus::database(&other.db, &["the colour of something else", "rare 7"]));
    reindex(&other, true);
    let index_dir = |place: &Place| {
        let mut entries = fs::read_dir(&place.index).expect("an index");
        entries.next().expect("an index directory").expect("an entry").path()
    };
    let (ours, theirs) = (index_dir(&place), index_dir(&other));
    fs::remove_dir_all(&ours).expect("it can be removed");
    fs::rename(theirs, &ours).expect("it can be moved");
    assert!(!compare(&place));
    let output = place.command(&["reindex"]).stdout(Stdio::null()).output().expect("the program");
    assert!(output.status.success(), "{output:?}");
    assert!(compare(&place));
}

/// Overwrites or truncates a file in place.
fn ruin(path: &Path, how: usize, random: &mut Random) {
    let mut bytes = fs::read(path).expect("a file of the index");
    let file = File::options().write(true).open(path).expect("a file of the index");
    match how {
        0 => bytes.fill(0),
        1 => bytes.iter_mut().for_each(|byte| *byte = random.below(256) as u8),
        2 => {
            for _ in 0..1 + bytes.len() / 8 {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
        }
        _ => return file.set_len(bytes.len() as u64 / 2).expect("it can be cut"),
    }
    file.write_all_at(&bytes, 0).expect("other bytes");
}

#[test]
fn no_tool_fails_over_words_that_are_ruined_while_a_server_has_them_open() {
    let (folder, place) = Place::temporary();
    drop(make(&place.db));
    reindex(&place, true);
    let log = File::create(folder.path().join("log")).expect("a log");
    let mut server = Server::start(place.command(&["serve", "--no-watch"]).stderr(log));
    let mut manage = |arguments: Value| -> Value {
        let answer = server.call("manage_conversation", &arguments);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
        assert_eq!(answer["success"], true, "{arguments}: {answer}");
        answer["data"].clone()
    };
    let thread = manage(json!({"action": "start", "topic": "colours"}));
    let mut next = thread["continuation_id"].clone();
    for turn in 0..20 {
        let text = format!("which colour of {turn} is rare");
        let turn = json!({"action": "continue", "continuation_id": next, "query": text});
        next = manage(turn)["continuation_id"].clone();
    }
    let mut said = 20;
    let mut random = Random(4);
    for how in [0, 1, 2, 1, 2, 3] {
        for end in [".idx", ".term"] {
            reindex(&place, true);
            let ask = json!({"action": "search", "query": "a rare colour"});
            manage(ask.clone());
            for path in files(&place.index) {
                let name = path.to_string_lossy();
                if name.contains("/words/") && name.ends_with(end) {
                    ruin(&path, how, &mut random);
                }
            }
            manage(ask.clone());
            let text = format!("which colour is rare, {how} {end}");
            let turn = json!({"action": "continue", "continuation_id": next, "query": text});
            next = manage(turn)["continuation_id"].clone();
            said += 1;
        }
    }
    let resumed = manage(json!({"action": "resume", "thread_id": thread["thread_id"]}));
    assert_eq!(resumed["message_count"], said);
    for how in [1, 3] {
        reindex(&place, true);
        let ask = json!({"query": "a rare colour"});
        let list = json!({"mode": "search", "query": "a rare colour", "searchMode": "turns"});
        let found = server.call("search", &ask);
        assert!(found.starts_with("## Search Results"), "{found}");
        for path in files(&place.index) {
            if path.to_string_lossy().contains("/words/") {
                ruin(&path, how, &mut random);
            }
        }
        let found = server.call("search", &ask);
        assert!(!found.contains("failed") && !found.contains("reading the index"), "{found}");
        let found = server.call("query_conversations", &list);
        assert!(found.starts_with("{\"n\":"), "{found}");
    }
}
