//! A small database with an index, and copies of the index whose files were changed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use tempfile::TempDir;
use verbatim_base::call::Call;
use verbatim_engine::{Config, Engine, Reindex};
use verbatim_index::Resources;

/// The database and its whole index.
pub struct Original {
    folder: TempDir,
    /// The files of the index, sorted.
    files: Vec<PathBuf>,
}

impl Original {
    /// Makes both; `more` adds what the index alone does not hold.
    pub fn new(more: impl FnOnce(&Engine, Resources)) -> Original {
        let folder = tempfile::tempdir().expect("a folder");
        let connection = Connection::open(folder.path().join("chats.db")).expect("a database");
        connection
            .execute_batch(
                "CREATE TABLE conversations (id TEXT PRIMARY KEY, create_time TEXT, update_time TEXT, title TEXT);
                 CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, role TEXT,
                     content TEXT, create_time TEXT, update_time TEXT, position INTEGER NOT NULL);
                 INSERT INTO conversations VALUES ('c', '1', '1', 'The title');
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
                 INSERT INTO messages SELECT 'm' || i, 'c', 'user',
                     'the other thing, rare ' || i % 9 || ' q' || i || 'x 和平', i, NULL, i FROM n",
            )
            .expect("messages");
        drop(connection);
        let mut original = Original { folder, files: Vec::new() };
        let engine = original.engine("index");
        let resources = Resources { memory: 16 << 20, threads: 1 };
        let options = Reindex { resources, full: true };
        engine.upkeep().reindex(options, &Call::default(), &mut |_| {}).expect("an index");
        more(&engine, resources);
        collect(&original.folder.path().join("index"), &mut original.files).expect("the index");
        original.files.sort();
        original
    }

    /// Returns an engine whose index lies in this folder beside the database.
    pub fn engine(&self, index: &str) -> Engine {
        Engine::new(Config {
            db: Some(self.folder.path().join("chats.db").into()),
            home: self.folder.path().to_owned(),
            index: Some(self.folder.path().join(index)),
            ..Config::default()
        })
    }

    /// Returns an engine over a copy of the index with these changes. Each takes seven bytes: two
    /// choose one of the files that `is_changed` names, four a place in it, and one the kind.
    pub fn changed(&self, changes: &[u8], is_changed: impl Fn(&Path) -> bool) -> Engine {
        let root = self.folder.path().join("index");
        let copy = self.folder.path().join("copy");
        drop(fs::remove_dir_all(&copy));
        let place =
            |file: &PathBuf| copy.join(file.strip_prefix(&root).expect("a file of the index"));
        for file in &self.files {
            let to = place(file);
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            // The fuzzer's clock interrupts system calls.
            while let Err(error) = fs::copy(file, &to) {
                assert_eq!(error.kind(), io::ErrorKind::Interrupted, "{error}");
            }
        }
        let files: Vec<&PathBuf> = self.files.iter().filter(|file| is_changed(file)).collect();
        for change in changes.chunks_exact(7).take(8) {
            let number = usize::from(u16::from_le_bytes([change[0], change[1]]));
            let file = place(files[number % files.len()]);
            let Ok(mut bytes) = fs::read(&file) else { continue };
            let at = u32::from_le_bytes([change[2], change[3], change[4], change[5]]) as usize;
            let at = at % (bytes.len() + 1);
            match change[6] {
                0 => bytes.truncate(at),
                1 => drop(fs::remove_file(&file)),
                2 => bytes.extend_from_within(at..),
                mask if at < bytes.len() => bytes[at] ^= mask,
                _ => {}
            }
            if change[6] != 1 {
                fs::write(&file, bytes).expect("a changed file");
            }
        }
        self.engine("copy")
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
