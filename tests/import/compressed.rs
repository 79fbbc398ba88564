//! Compressed transcripts of Codex give the same messages as plain ones.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::json;
use verbatim_chats::import::{Branches, compressed::unpacked};
use verbatim_engine::{Engine, import};

use crate::calls::found;
use crate::corpus::folder;
use crate::transcripts::{Home, copy, goldens, line};

fn transcripts(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(transcripts(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn packed(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.zst", path.display()))
}

/// Compresses every transcript of a folder, and removes the plain ones if `alone`.
fn compress(archive: &Path, alone: bool) {
    for plain in transcripts(archive) {
        let text = fs::read(&plain).unwrap();
        let bytes = compress_to_vec(text.as_slice(), CompressionLevel::Fastest);
        fs::write(packed(&plain), bytes).unwrap();
        if alone {
            fs::remove_file(&plain).unwrap();
        }
    }
}

#[test]
fn synchronised_as_plain_ones() {
    let home = Home::new();
    let archive = home.folder.path().join("archive");
    copy(&goldens("codex"), &archive);
    let files = home.sync().files;
    let plain = home.held();
    // The files are compressed later; the plain file counts while both exist.
    compress(&archive, false);
    assert_eq!((home.sync().files, home.held()), (files, plain.clone()));
    for file in transcripts(&archive).into_iter().filter(|file| packed(file).is_file()) {
        fs::remove_file(file).unwrap();
    }
    assert_eq!(home.sync().files, files);
    assert_eq!(home.held().replace(".jsonl.zst", ".jsonl"), plain);
    let again = home.sync();
    assert_eq!((again.read, again.bytes, again.messages), (0, 0, 0), "nothing changed");
    // The files are plain again, because the session continues.
    for file in transcripts(&archive) {
        fs::remove_file(file).unwrap();
    }
    copy(&goldens("codex"), &archive);
    home.sync();
    assert_eq!(home.held(), plain);
}

#[test]
fn read_by_the_tools() {
    let home = Home::new();
    let text = line(1, "user", "How do streams end?") + &line(2, "assistant", "With a last frame.");
    let bytes = compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
    let path = home.write("-home-ann-code/session.jsonl.zst", bytes);
    home.sync();
    let path = path.canonicalize().unwrap();
    let engine: &Engine = &home.engine;
    let results = found(engine, "search", json!({"query": "last frame", "mode": "text"}));
    assert!(results.contains("**Path:** `session`"), "{results}");
    let whole = found(engine, "read", json!({"path": path.to_str().unwrap(), "startLine": 2}));
    assert!(whole.starts_with("# Conversation: session\n# Project: code\n"), "{whole}");
    assert!(whole.contains("With a last frame.") && !whole.contains("streams"), "{whole}");
}

#[test]
fn one_that_is_damaged_is_told() {
    let home = Home::new();
    let lines: String = (0..20_000).map(|at| line(at, "user", &format!("number {at}"))).collect();
    let bytes = compress_to_vec(lines.as_bytes(), CompressionLevel::Fastest);
    let cut = &bytes[..bytes.len() / 2];
    home.write("cut.jsonl.zst", cut);
    let mut whole = Vec::new();
    unpacked(cut).read_to_end(&mut whole).expect_err("its end is missing");
    let whole = whole.iter().filter(|byte| **byte == b'\n').count() as u64;
    home.write("none.jsonl.zst", "no zstd at all");
    home.write("empty.jsonl.zst", "");
    home.write("other.jsonl", line(1, "user", "all is well").replace("session", "other"));
    let report = home.sync();
    assert_eq!((report.failed, report.files), (2, 4), "{:?}", report.failures);
    assert!(report.failures.iter().any(|failure| failure.contains("cut.jsonl.zst")));
    assert!(whole > 1000 && report.messages == whole + 1, "{} of {whole} + 1", report.messages);
    assert!(home.held().contains("\"number 0\"") && home.held().contains("\"all is well\""));
    let again = home.sync();
    assert_eq!((again.read, again.failed), (0, 0), "not before they are others");
}

#[test]
fn imported_as_plain_ones() {
    let home = folder();
    let [plain, archive] = ["plain", "archive"].map(|name| home.path().join(name));
    copy(&goldens("codex"), &plain);
    copy(&goldens("codex"), &archive);
    compress(&archive, true);
    let texts = |from: &Path, name: &str| {
        let out = home.path().join(name);
        import::import(&[from.to_owned()], &out, Branches::Shown, &|_| {}).unwrap();
        let connection = Connection::open(out).unwrap();
        let sql = "SELECT conversation_id, role, content FROM messages
                   ORDER BY conversation_id, position, rowid";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.unwrap().collect::<Result<Vec<(String, String, String)>, _>>().unwrap()
    };
    let expected = texts(&plain, "plain.db");
    assert_eq!(texts(&archive, "packed.db"), expected);
    let one = &transcripts(&archive)[0];
    let of_one = texts(one, "one.db");
    assert!(!of_one.is_empty() && of_one.iter().all(|row| expected.contains(row)));
}

#[test]
fn an_unrelated_file_of_the_same_name_does_not_replace_what_was_kept() {
    let packed = |name: &str, text: &str| match name.ends_with(".zst") {
        true => compress_to_vec(text.as_bytes(), CompressionLevel::Fastest),
        false => text.as_bytes().to_vec(),
    };
    let only = line(1, "user", "the only copy");
    let other: String = (2..50).map(|at| line(at, "user", "unrelated")).collect();
    let other = other.replace("\"session\"", "\"other\"");
    for (kept, new) in [("a/log.jsonl", "b/log.jsonl.zst"), ("a/log.jsonl.zst", "b/log.jsonl")] {
        let home = Home::new();
        home.write(kept, packed(kept, &only));
        home.sync();
        fs::remove_file(home.path(kept)).unwrap();
        home.write(new, packed(new, &other));
        let report = home.sync();
        assert_eq!((report.removed, report.kept), (1, 1), "{kept}");
        assert_eq!((home.found("only copy").len(), home.found("unrelated").len()), (1, 48));
    }
    // A file that begins with all the text that was read is the same transcript, wherever the file is.
    let home = Home::new();
    home.write("a/log.jsonl", &only);
    home.sync();
    fs::remove_file(home.path("a/log.jsonl")).unwrap();
    home.write("b/log.jsonl.zst", packed(".zst", &(only + &line(2, "user", "goes on"))));
    let report = home.sync();
    assert_eq!((report.removed, report.kept), (0, 0));
    assert_eq!((home.found("only copy").len(), home.found("goes on").len()), (1, 1));
}
