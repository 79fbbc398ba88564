//! The attachment store. `files/` holds each content once, named by its SHA-256. `chats/` holds a list
//! for each conversation, which says which message has which file.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::attachment::Attachment;
use crate::config::Config;
use crate::error::{Error, Result};
use verbatim_base::private::{self, FileLock};
use verbatim_base::{failpoint, files};
use verbatim_chats::db;

/// The names of the attachment stores in the home folder, and of the files and folders in a store.
pub(crate) const ATTACHMENTS: &str = "attachments";
pub(crate) const TRANSCRIPT_FILES: &str = "transcript-files";
pub(super) const FILES: &str = "files";
const CHATS: &str = "chats";
const LOCK: &str = "lock";

/// The beginning of the names of files that are being written.
const BEGUN: &str = "new-";

/// The file that exists while contents may be without a list. If the process is killed, the next
/// process that locks the store removes these contents.
pub(super) const UNDER_WAY: &str = "new-begun";

/// The end of the names of lists.
const LIST: &str = ".json";

#[derive(Clone, Debug)]
pub(crate) struct AttachmentStore {
    pub(super) folder: PathBuf,
}

impl AttachmentStore {
    pub(crate) fn from_config(config: &Config) -> AttachmentStore {
        AttachmentStore { folder: config.home.join(ATTACHMENTS) }
    }

    /// Returns the store of files from transcripts. It is separate from the store of imports: an import
    /// compares the state of its own store, which a growing transcript must not change.
    pub(crate) fn of_transcripts(config: &Config) -> AttachmentStore {
        AttachmentStore { folder: config.home.join(TRANSCRIPT_FILES) }
    }

    /// Returns the store for an import into a database; `None` if the database is not in the home folder.
    pub(crate) fn beside(config: &Config, database: &Path) -> Option<AttachmentStore> {
        database.starts_with(config.db_folder()).then(|| AttachmentStore::from_config(config))
    }

    pub(crate) fn list(&self, conversation: &str) -> Result<Vec<Attachment>> {
        let path = self.list_path(conversation);
        match read_list(&path).map_err(|error| (error.kind(), error)) {
            Ok(list) => Ok(list),
            Err((io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, _)) => Ok(Vec::new()),
            Err((_, error)) => Err(failed(&path)(error)),
        }
    }

    pub(crate) fn open(&self, attachment: &Attachment) -> Result<File> {
        let path = self.file_path(&attachment.sha256);
        files::open(&path).map_err(failed(&path))
    }

    /// Returns a text that changes when a list or a file is added, changed or removed.
    pub(crate) fn state(&self) -> Result<String> {
        let mut hash = Sha256::new();
        for folder in [FILES, CHATS].map(|name| self.folder.join(name)) {
            let mut paths = entries(&folder)?;
            paths.sort();
            for path in paths {
                let found = fs::symlink_metadata(&path);
                let found = found.map(|found| (found.len(), found.modified().ok()));
                hash.update(format!("{path:?} {found:?}\n"));
            }
        }
        Ok(hex(&hash.finalize()))
    }

    /// Returns whether the store has a file in its full length.
    pub(crate) fn has(&self, attachment: &Attachment) -> bool {
        let found = fs::metadata(self.file_path(&attachment.sha256));
        found.is_ok_and(|found| found.is_file() && found.len() == attachment.bytes)
    }

    /// Removes the files of conversations. Returns the damaged lists. While a list is damaged, no content
    /// is removed, because the damaged list may have named it.
    ///
    /// `wait` is called with the folder while another process writes to the store; it returns whether
    /// to go on.
    pub(crate) fn forget(
        &self,
        conversations: &[String],
        wait: &mut dyn FnMut(&Path) -> bool,
    ) -> Result<Vec<PathBuf>> {
        if !self.folder.try_exists().map_err(failed(&self.folder))? {
            return Ok(Vec::new());
        }
        let _lock = self.lock(wait)?;
        self.sweep(&conversations.iter().map(|id| self.list_path(id)).collect())
    }

    pub(super) fn list_path(&self, conversation: &str) -> PathBuf {
        let name = hex(&Sha256::digest(conversation.as_bytes()));
        self.folder.join(CHATS).join(format!("{name}{LIST}"))
    }

    pub(super) fn file_path(&self, sha256: &str) -> PathBuf {
        // A manipulated list must not give access to files outside the store.
        self.folder.join(FILES).join(if is_hash(sha256) { sha256 } else { "" })
    }

    /// Locks the store when no other process writes to it, and removes what a killed process left.
    pub(super) fn lock(&self, wait: &mut dyn FnMut(&Path) -> bool) -> Result<FileLock> {
        for folder in [FILES, CHATS].map(|name| self.folder.join(name)) {
            private::create_dir_all(&folder).map_err(failed(&folder))?;
        }
        let path = self.folder.join(LOCK);
        let lock = loop {
            match FileLock::try_acquire(&path, 1).map_err(failed(&path))? {
                Some(lock) => break lock,
                None if wait(&self.folder) => {}
                None => return Err(db::Error::Stopped.into()),
            }
        };
        self.sweep(&HashSet::new())?;
        for path in entries(&self.folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(BEGUN) && name != UNDER_WAY {
                fs::remove_file(&path).map_err(failed(&path))?;
            }
        }
        Ok(lock)
    }

    /// Creates the file that says that contents may be without a list. [`AttachmentStore::sweep`] or the
    /// end of an import removes this file.
    pub(super) fn mark(&self) -> Result<()> {
        let path = self.folder.join(UNDER_WAY);
        private::write(&path, b"").map_err(failed(&path))
    }

    /// Removes the lists at these paths, and the contents that no other list names. Returns the damaged
    /// lists. While a list is damaged, no content is removed.
    pub(super) fn sweep(&self, gone: &HashSet<PathBuf>) -> Result<Vec<PathBuf>> {
        let under_way = self.folder.join(UNDER_WAY);
        let mut is_any = false;
        for path in gone.iter().chain([&under_way]) {
            is_any |= path.try_exists().map_err(failed(path))?;
        }
        if !is_any {
            return Ok(Vec::new());
        }
        // Everything is read before anything is removed.
        let mut used = HashSet::new();
        let mut damaged = Vec::new();
        for path in self.hashed(CHATS, LIST)?.into_iter().filter(|path| !gone.contains(path)) {
            match read_list(&path) {
                Ok(list) => used.extend(list.into_iter().map(|it| self.file_path(&it.sha256))),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => damaged.push(path),
                Err(error) => return Err(failed(&path)(error)),
            }
        }
        let contents = self.hashed(FILES, "")?;
        self.mark()?;
        for path in gone {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(path)(error));
                }
                _ => {}
            }
        }
        failpoint::pass("lists of files removed");
        if damaged.is_empty() {
            for path in contents.iter().filter(|path| !used.contains(*path)).chain([&under_way]) {
                fs::remove_file(path).map_err(failed(path))?;
            }
        }
        Ok(damaged)
    }

    /// Returns the files in a folder of the store that are named by a hash. Other programs put files
    /// there too, such as `.DS_Store`.
    pub(super) fn hashed(&self, folder: &str, end: &str) -> Result<Vec<PathBuf>> {
        let mut paths = entries(&self.folder.join(folder))?;
        paths.retain(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(|name| name.strip_suffix(end)).is_some_and(is_hash)
        });
        Ok(paths)
    }

    /// Writes a file atomically: under a temporary name, which is changed at the end.
    pub(super) fn put(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut file = self.begun_file()?;
        file.write_all(content)?;
        private::replace(file.into_temp_path(), path)
    }

    pub(super) fn begun_file(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new().prefix(BEGUN).tempfile_in(&self.folder)
    }
}

/// Returns whether a path has the name of a file or folder of an attachment store.
pub(crate) fn is_in_store(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [FILES, CHATS, LOCK].contains(&&*name) || name.starts_with(BEGUN)
}

pub(super) fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::OwnFile { what: "the files of messages", path: path.clone(), source }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder).and_then(|all| all.map(|entry| Ok(entry?.path())).collect());
    paths.map_err(failed(folder))
}

/// Reads a list. If it is damaged, the error is of the kind `InvalidData`.
fn read_list(path: &Path) -> io::Result<Vec<Attachment>> {
    let text = files::read(path)?;
    serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn is_hash(name: &str) -> bool {
    name.len() == 2 * Sha256::output_size() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn store(home: &TempDir) -> AttachmentStore {
        let config = Config { home: home.path().to_owned(), ..Config::default() };
        AttachmentStore::from_config(&config)
    }

    fn put(store: &AttachmentStore, conversation: &str, ids: &[&str]) {
        let _lock = store.lock(&mut |_| false).unwrap();
        let list = ids.iter().map(|id| {
            let sha256 = hex(&Sha256::digest(id.as_bytes()));
            store.put(&store.file_path(&sha256), id.as_bytes()).unwrap();
            let bytes = id.len() as u64;
            Attachment { id: (*id).to_owned(), sha256, bytes, ..Attachment::default() }
        });
        let list = serde_json::to_vec(&list.collect::<Vec<_>>()).unwrap();
        store.put(&store.list_path(conversation), &list).unwrap();
    }

    fn ids(store: &AttachmentStore, conversation: &str) -> Vec<String> {
        let list = store.list(conversation).unwrap();
        list.into_iter()
            .map(|it| {
                assert_eq!(io::read_to_string(store.open(&it).unwrap()).unwrap(), it.id);
                it.id
            })
            .collect()
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_not_empty() {
        let home = tempfile::tempdir().unwrap();
        assert!(entries(&home.path().join("missing")).is_err());
        let store = store(&home);
        put(&store, "one", &["a"]);
        put(&store, "two", &["b"]);
        // Nobody can read a folder as a list, not even root.
        fs::create_dir(store.list_path("three")).unwrap();
        assert!(store.forget(&["one".to_owned()], &mut |_| false).is_err());
        assert_eq!((ids(&store, "one").len(), ids(&store, "two").len()), (1, 1));
        fs::remove_dir(store.list_path("three")).unwrap();
        assert!(store.forget(&["one".to_owned()], &mut |_| false).unwrap().is_empty());
        assert_eq!((ids(&store, "one").len(), ids(&store, "two").len()), (0, 1));
        assert_eq!(store.hashed(FILES, "").unwrap().len(), 1);
    }
}
