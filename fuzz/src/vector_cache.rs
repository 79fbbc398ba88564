//! A cache of vectors with any content: whole records are read, new ones are added after them, and
//! all are there when it is opened again.
//!
//! Input: the number of dimensions; then the whole file, or a byte per change of a valid one: each
//! inverts the byte at its place.

use std::fs;

use tempfile::TempDir;
use verbatim_base::call::Stop;
use verbatim_embed::cache::{Cache, CachedRow, hash};

const TEXTS: [&str; 3] = ["one", "two", "three"];
const DIMENSIONS: usize = 4;

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().expect("a folder");
}

/// Returns the record of a text.
fn record(text: &str, dimensions: usize) -> CachedRow {
    CachedRow { text: hash(text), scale: 0.5, row: vec![text.len() as u8; dimensions] }
}

pub(super) fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    FOLDER.with(|folder| {
        let path = folder.path().join("embedded-m");
        drop(fs::remove_file(&path));
        let open = || Cache::open(folder.path(), "m", &Stop::never()).expect("a cache");
        if kind & 1 == 0 {
            fs::write(&path, data).expect("a file");
        } else {
            let records = TEXTS.map(|text| record(text, DIMENSIONS));
            open().add(DIMENSIONS, &records).expect("records");
            let mut bytes = fs::read(&path).expect("the cache");
            let length = bytes.len();
            for at in data {
                bytes[usize::from(*at) % length] ^= 0xFF;
            }
            bytes.truncate(length - usize::from(*kind >> 1) % length);
            fs::write(&path, bytes).expect("a file");
        }
        let mut cache = open();
        let dimensions = cache.dimensions().unwrap_or(DIMENSIONS);
        let mut row = vec![0; dimensions];
        for text in TEXTS {
            let found = cache.get(hash(text), &mut row).expect("the file can be read");
            if kind & 1 == 1 && found.is_some() {
                assert_eq!(row, record(text, dimensions).row);
            }
        }
        let added = ["four", "five"];
        let records = added.map(|text| record(text, dimensions));
        cache.add(dimensions, &records).expect("records can be added");
        drop(cache);
        let mut again = open();
        for text in added {
            let scale = again.get(hash(text), &mut row).expect("the file can be read");
            assert_eq!((scale, &row), (Some(0.5), &record(text, dimensions).row));
        }
    });
}
