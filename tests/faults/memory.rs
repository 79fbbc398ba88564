//! The memory of an index build is bounded by the setting `memory` and a few copies of the longest message, and that
//! of a search by a few copies of it.
//!
//! The tests measure the memory that the program allocates (`RssAnon`), not mapped pages of files.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use rusqlite::Connection;

use crate::corpus::{database, folder_with};

/// The maximum number of bytes that an index build takes in addition to the setting `memory`.
const BESIDE: u64 = 128 << 20;

/// The maximum number of copies of a very long message that are in memory at once.
const COPIES: u64 = 6;

/// Texts of different kinds: prose, one sentence again and again, a pasted picture, and a script
/// whose characters the beginning of the text does not have.
const KINDS: [&str; 4] = ["prose", "repeated", "base64", "chinese"];

/// Makes a text of a kind.
fn text(kind: &str, bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "The beginning. ".to_owned();
    let mut state = 1u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    while text.len() < bytes {
        match kind {
            "prose" => {
                text.push_str(&format!("Line {}: {} words of prose. ", random(), text.len()));
            }
            "repeated" => text.push_str("All work and no play makes Jack a dull boy. "),
            "base64" => text.push(char::from(LETTERS[random() as usize % 64])),
            _ => text.extend(char::from_u32(0x4E00 + random() % 20_000)),
        }
    }
    text + " the needle at the end"
}

/// Makes a database with one long message, which may be JSON parts, and a short one.
fn long_message(path: &Path, kind: &str, bytes: usize, is_json: bool) -> Connection {
    let stored = |text: String| match is_json {
        true => serde_json::to_string(&[text]).unwrap(),
        false => text,
    };
    database(path, &[&stored(text(kind, bytes)), &stored("a short one".to_owned())])
}

/// Waits for the program; returns the most memory that it allocated, in bytes.
fn peak(mut child: Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes =
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0) << 10);
        thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    peak
}

fn start(home: &Path, database: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("XDG_CONFIG_HOME", home);
    command.arg("--home").arg(home).arg("--db").arg(database).args(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Builds an index of a long message within the setting `memory`, and searches and shows it. Each takes at most `beside` in
/// addition.
fn holds(kind: &str, bytes: usize, is_json: bool, memory: u64, beside: u64) {
    let (folder, path) = folder_with("long.db");
    drop(long_message(&path, kind, bytes, is_json));
    let settings = format!("memory = '{}M'\n", memory >> 20);
    fs::create_dir(folder.path().join("verbatim")).unwrap();
    fs::write(folder.path().join("verbatim/config.toml"), settings).unwrap();
    let search = ["search", "needle at the end"];
    let all: [(&[&str], u64); 3] =
        [(&["reindex"], memory + beside), (&search, beside), (&["show", "Colours"], beside)];
    for (arguments, most) in all {
        let peak = peak(start(folder.path(), &path, arguments));
        assert!(peak < most, "{kind}: {arguments:?} takes {} MB", peak >> 20);
    }
}

#[test]
fn a_long_message_takes_no_more_memory_than_a_build_may_have() {
    holds("prose", 12_000_000, false, 16 << 20, BESIDE);
    holds("base64", 6_000_000, true, 16 << 20, BESIDE);
}

/// The maximum memory of a command that needs no message in memory.
const WITHOUT_MESSAGES: u64 = 40 << 20;

#[test]
fn a_long_message_is_in_memory_a_few_times_without_an_index() {
    let (folder, path) = folder_with("long.db");
    let text = "All work and no play makes Jack a dull boy. ".repeat(1_500_000);
    let most = COPIES * text.len() as u64 + WITHOUT_MESSAGES;
    drop(database(&path, &[&(text + " the needle at the end"), "a short one"]));
    let all: [&[&str]; 3] = [
        &["search", "needle at the end"],
        &["search", "-e", r"needle\s+at the end"],
        &["show", "Colours"],
    ];
    for arguments in all {
        let peak = peak(start(folder.path(), &path, arguments));
        assert!(peak < most, "{arguments:?} takes {} MB", peak >> 20);
    }
}

/// The size of a very long message in megabytes: a debug build takes minutes for more.
const VERY_LONG: usize = if cfg!(debug_assertions) { 6 } else { 100 };

/// `VERBATIM_LONG=500` is another size in megabytes, for a release build.
#[test]
#[ignore = "takes minutes"]
fn a_very_long_message_is_in_memory_a_few_times() {
    let megabytes = std::env::var("VERBATIM_LONG").ok().and_then(|size| size.parse().ok());
    let bytes = megabytes.unwrap_or(VERY_LONG) * 1_000_000;
    let beside = BESIDE + COPIES * bytes as u64;
    for kind in KINDS {
        for is_json in [false, true] {
            holds(kind, bytes, is_json, 64 << 20, beside);
        }
    }
}

/// Starts a server that may have 2 GB of address space, and waits until it has indexed its database.
fn server_indexes(kind: &str, bytes: usize) {
    let (folder, path) = folder_with("long.db");
    drop(long_message(&path, kind, bytes, false));
    let mut server = Command::new("sh");
    server.arg("-c").arg("ulimit -v 2000000; exec \"$0\" \"$@\"");
    server.arg(env!("CARGO_BIN_EXE_verbatim")).arg("--home").arg(folder.path());
    server.arg("--db").arg(&path).arg("serve").env_clear();
    server.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    let index = folder.path().join("index");
    let is_indexed = || {
        let folders = fs::read_dir(&index).into_iter().flatten().flatten();
        folders.into_iter().any(|folder| folder.path().join("current").exists())
    };
    while !is_indexed() {
        assert!(server.try_wait().unwrap().is_none(), "{kind}: the server ended");
        thread::sleep(Duration::from_millis(50));
    }
    // Words and vectors come next.
    thread::sleep(Duration::from_secs(2));
    assert!(server.try_wait().unwrap().is_none(), "{kind}: the server ended");
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_server_with_little_address_space_indexes_a_long_message() {
    server_indexes("repeated", 8_000_000);
}

/// This test takes a minute.
#[test]
#[ignore = "takes a minute"]
fn a_server_with_little_address_space_indexes_a_very_long_message() {
    for kind in ["prose", "base64"] {
        server_indexes(kind, if cfg!(debug_assertions) { 10_000_000 } else { 60_000_000 });
    }
}
