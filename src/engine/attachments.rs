//! The files of imported messages: pictures, documents and sounds, in a folder of the home.
//!
//! `files/` holds each content once, under its SHA-256. `chats/` holds a list for each conversation:
//! which message has which file. The canonical database knows the names of files only.
//!
//! Invariant: no name or path of an export decides where a file is written.
//! Invariant: a content that no list has any more is removed with the conversation that had it.
//! Invariant: no content is removed unless every list could be read.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::{config::Config, error::Error};
use crate::{
    db::{self, writer::message_keys},
    failpoint,
    import::Export,
    model::{AttachedContent, Conversation, Stop},
    private,
};

/// The folder of the store in the home folder, and what is in it.
pub(crate) const ATTACHMENTS: &str = "attachments";
const FILES: &str = "files";
const CHATS: &str = "chats";
const LOCK: &str = "lock";

/// The beginning of the names of files that are being written.
const BEGUN: &str = "new-";

/// The file that exists while contents may be without a list. If the process is killed, the next
/// process that locks the store removes these contents.
const UNDER_WAY: &str = "new-begun";

/// The end of the names of lists.
const LIST: &str = ".json";

/// The most bytes of one file.
pub(crate) const MAX_FILE: u64 = 100_000_000;

/// The most bytes of all files.
pub(crate) const MAX_ALL: u64 = 8_000_000_000;

/// How long to wait before the lock is tried again.
const PAUSE: Duration = Duration::from_millis(50);

/// How many of the left-out files are listed by name.
const NAMED: usize = 10;

/// Bytes that are copied at once. The first block tells the type of a file.
const BLOCK: usize = 64 << 10;

/// A file of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attachment {
    /// The message's id in the export, with a number if its conversation repeats it.
    message: String,
    /// The file's id in the export; empty for a text that the message itself has.
    id: String,
    /// The name that the export gives.
    pub(crate) name: String,
    /// The type, by the content: `image/png`, `text/plain`.
    #[serde(rename = "type")]
    pub(crate) media_type: String,
    pub(crate) bytes: u64,
    sha256: String,
}

/// The key of an entry of a list: the message, the id, and for a text also the name and the content.
type ListKey = [String; 4];

impl Attachment {
    /// Returns the hash of the content, which names its file.
    pub(crate) fn sha256(&self) -> &str {
        &self.sha256
    }

    fn key(&self) -> ListKey {
        // Several texts of a message may have one name.
        let (name, content) = match self.id.is_empty() {
            true => (self.name.clone(), self.sha256.clone()),
            false => Default::default(),
        };
        [self.message.clone(), self.id.clone(), name, content]
    }

    /// Returns whether the file belongs to the message with this id in a conversation of the export.
    pub(crate) fn is_of(&self, conversation: &str, message: &str) -> bool {
        // Where two conversations have the same message id, the database puts the conversation's id
        // before it.
        let own = message.strip_prefix(conversation).and_then(|rest| rest.strip_prefix('/'));
        message == self.message || own == Some(&self.message)
    }
}

/// What an import kept of the files of messages, and what it left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AttachmentCounts {
    /// Files that are in the store, those of earlier imports too; each content once.
    pub(crate) kept: u64,
    /// The bytes of the kept files.
    pub(crate) bytes: u64,
    /// Files that messages name and the export does not have.
    pub(crate) absent: u64,
    /// Files of more than [`MAX_FILE`] bytes.
    pub(crate) too_large: FilesLeftOut,
    /// Files for which the store has no room.
    pub(crate) no_room: FilesLeftOut,
    /// Why files could not be read or written, a sentence each; the first ones.
    pub(crate) failures: Vec<String>,
}

impl AttachmentCounts {
    /// Returns whether messages name any files.
    pub(crate) fn any(&self) -> bool {
        self.kept + self.absent + self.too_large.number + self.no_room.number > 0
            || !self.failures.is_empty()
    }
}

/// Files that were left out for one reason.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FilesLeftOut {
    pub(crate) number: u64,
    /// The names of the first ones.
    pub(crate) names: Vec<String>,
}

/// The store of a home.
#[derive(Clone, Debug)]
pub(crate) struct AttachmentStore {
    folder: PathBuf,
}

impl AttachmentStore {
    pub(crate) fn of(config: &Config) -> AttachmentStore {
        AttachmentStore { folder: config.home.join(ATTACHMENTS) }
    }

    /// Returns the store for an import into a database; `None` if that is not in the home folder.
    pub(crate) fn beside(config: &Config, database: &Path) -> Option<AttachmentStore> {
        database.starts_with(config.db_folder()).then(|| AttachmentStore::of(config))
    }

    /// Returns the files of a conversation.
    pub(crate) fn list(&self, conversation: &str) -> Result<Vec<Attachment>, Error> {
        let path = self.list_path(conversation);
        match read_list(&path).map_err(|error| (error.kind(), error)) {
            Ok(list) => Ok(list),
            Err((io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, _)) => Ok(Vec::new()),
            Err((_, error)) => Err(failed(&path)(error)),
        }
    }

    /// Opens a file.
    pub(crate) fn open(&self, attachment: &Attachment) -> Result<File, Error> {
        let path = self.file_path(&attachment.sha256);
        File::open(&path).map_err(failed(&path))
    }

    /// Returns a text that changes when a list or a file is added, changed or removed.
    pub(crate) fn state(&self) -> Result<String, Error> {
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

    /// Returns whether a file is there, whole.
    pub(crate) fn has(&self, attachment: &Attachment) -> bool {
        let found = fs::metadata(self.file_path(&attachment.sha256));
        found.is_ok_and(|found| found.is_file() && found.len() == attachment.bytes)
    }

    /// Removes the files of conversations. Returns the lists that are damaged: while there is one, the
    /// contents stay, because they may be its own.
    ///
    /// `wait` is called with the folder while another process writes to the store; it returns whether
    /// to go on.
    pub(crate) fn forget(
        &self,
        conversations: &[String],
        wait: &mut dyn FnMut(&Path) -> bool,
    ) -> Result<Vec<PathBuf>, Error> {
        if !self.folder.try_exists().map_err(failed(&self.folder))? {
            return Ok(Vec::new());
        }
        let _lock = self.lock(wait)?;
        self.sweep(&conversations.iter().map(|id| self.list_path(id)).collect())
    }

    /// Moves the content of another store into this one. A move that was interrupted is done again.
    pub(crate) fn adopt(&self, other: &AttachmentStore) -> Result<(), Error> {
        let chats = other.folder.join(CHATS);
        if !chats.try_exists().map_err(failed(&chats))? {
            return Ok(());
        }
        let lock_now = |store: &AttachmentStore| {
            store.lock(&mut |_| false).map_err(|error| match error.is_stopped() {
                true => failed(&store.folder)(io::Error::other("another process writes to them")),
                false => error,
            })
        };
        let (_own, others) = (lock_now(self)?, lock_now(other)?);
        let lists = other.hashed(CHATS, LIST)?;
        // The lists come first: what no list has may be removed at any time.
        for path in &lists {
            let target = self.folder.join(CHATS).join(path.file_name().unwrap_or_default());
            self.merge_list(path, &target).map_err(failed(path))?;
        }
        for path in other.hashed(FILES, "")? {
            let target = self.folder.join(FILES).join(path.file_name().unwrap_or_default());
            self.take(&path, &target).map_err(failed(&path))?;
        }
        for path in &lists {
            fs::remove_file(path).map_err(failed(path))?;
        }
        drop(others);
        // A folder in which somebody has put other files is not removed.
        drop(fs::remove_file(other.folder.join(LOCK)));
        for folder in [FILES, CHATS, ""] {
            drop(fs::remove_dir(other.folder.join(folder)));
        }
        Ok(())
    }

    /// Adds the entries of another store's list to the list at `target`.
    fn merge_list(&self, path: &Path, target: &Path) -> io::Result<()> {
        if !target.try_exists()? {
            return self.put(target, &fs::read(path)?);
        }
        let (mut list, mut more) = (read_list(target)?, read_list(path)?);
        let known: HashSet<ListKey> = list.iter().map(Attachment::key).collect();
        more.retain(|attachment| !known.contains(&attachment.key()));
        list.append(&mut more);
        self.put(target, &serde_json::to_vec(&list)?)
    }

    /// Moves a content of another store to its place, unless the content is there.
    fn take(&self, path: &Path, target: &Path) -> io::Result<()> {
        let length = fs::metadata(path)?.len();
        if fs::metadata(target).is_ok_and(|there| there.len() >= length) {
            return fs::remove_file(path);
        }
        if fs::rename(path, target).is_err() {
            // The other store may be on another disk.
            let mut file = self.begun_file()?;
            io::copy(&mut File::open(path)?, &mut file)?;
            file.persist(target)?;
            fs::remove_file(path)?;
        }
        Ok(())
    }

    fn list_path(&self, conversation: &str) -> PathBuf {
        let name = hex(&Sha256::digest(conversation.as_bytes()));
        self.folder.join(CHATS).join(format!("{name}{LIST}"))
    }

    fn file_path(&self, sha256: &str) -> PathBuf {
        // A list that somebody changed must not lead to a file elsewhere.
        self.folder.join(FILES).join(if is_hash(sha256) { sha256 } else { "" })
    }

    /// Waits until nobody else writes to the store, and removes what a killed process left.
    fn lock(&self, wait: &mut dyn FnMut(&Path) -> bool) -> Result<File, Error> {
        for folder in [FILES, CHATS].map(|name| self.folder.join(name)) {
            private::create_dir_all(&folder).map_err(failed(&folder))?;
        }
        let path = self.folder.join(LOCK);
        let lock = private::open_file(&path).map_err(failed(&path))?;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if wait(&self.folder) => {}
                Err(TryLockError::WouldBlock) => return Err(db::Error::Stopped.into()),
                Err(TryLockError::Error(source)) => return Err(failed(&path)(source)),
            }
        }
        self.sweep(&HashSet::new())?;
        let is_left = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(BEGUN) && name != UNDER_WAY
        };
        for path in entries(&self.folder)?.iter().filter(|path| is_left(path)) {
            fs::remove_file(path).map_err(failed(path))?;
        }
        Ok(lock)
    }

    /// Notes that contents may be without a list, until [`AttachmentStore::sweep`] or the end of an
    /// import.
    fn mark(&self) -> Result<(), Error> {
        let path = self.folder.join(UNDER_WAY);
        private::write(&path, b"").map_err(failed(&path))
    }

    /// Removes the lists at these paths, and the contents that no other list has. Returns the lists that
    /// are damaged: while there is one, no content is removed.
    fn sweep(&self, gone: &HashSet<PathBuf>) -> Result<Vec<PathBuf>, Error> {
        let under_way = self.folder.join(UNDER_WAY);
        let mut is_any = false;
        for path in gone.iter().chain([&under_way]) {
            is_any |= path.try_exists().map_err(failed(path))?;
        }
        if !is_any {
            return Ok(Vec::new());
        }
        // Everything is read before anything is removed.
        let (mut used, mut damaged) = (HashSet::new(), Vec::new());
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

    /// Returns the files in a folder of the store that are named by a hash. Others put more there, such
    /// as `.DS_Store`.
    fn hashed(&self, folder: &str, end: &str) -> Result<Vec<PathBuf>, Error> {
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(|name| name.strip_suffix(end)).is_some_and(is_hash)
        };
        let mut paths = entries(&self.folder.join(folder))?;
        paths.retain(is_ours);
        Ok(paths)
    }

    /// Writes a file whole, and only then gives it its name.
    fn put(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut file = self.begun_file()?;
        file.write_all(content)?;
        file.persist(path)?;
        Ok(())
    }

    fn begun_file(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new().prefix(BEGUN).tempfile_in(&self.folder)
    }
}

/// Returns whether a file or folder is one of the store.
pub(crate) fn is_in_store(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [FILES, CHATS, LOCK].contains(&&*name) || name.starts_with(BEGUN)
}

/// Keeps the files of the exports of one import.
///
/// The lists are written by [`AttachmentImport::publish`], after the conversations are in the database
/// for good. So no list is of a conversation that a failed import did not write.
#[derive(Debug)]
pub(super) struct AttachmentImport<'a> {
    store: &'a AttachmentStore,
    stop: &'a Stop,
    /// The lock of the store, and the bytes of all its files, once there is a file to keep.
    open: Option<(File, u64)>,
    pending: Vec<Pending>,
    /// The lists that changed, by their conversations.
    lists: HashMap<String, Vec<Attachment>>,
    /// The contents that were counted.
    counted: HashSet<String>,
    counts: AttachmentCounts,
    /// Whether the store could not be written.
    is_broken: bool,
}

/// A conversation whose files are still to be kept.
#[derive(Debug)]
struct Pending {
    conversation: String,
    /// The files of the conversation; files with an id have not been read yet.
    files: Vec<Attachment>,
}

/// The files of an export.
struct ExportFiles<'a> {
    export: &'a mut Export,
    /// The files that were looked for, by their ids: each with its name in the export; `None` if it is
    /// not kept.
    known: HashMap<String, Option<(String, Attachment)>>,
}

/// Why a file is not kept.
enum LeftOut {
    TooLarge,
    /// The store is full.
    NoRoom,
    /// A sentence without the file's name.
    Unreadable(String),
    /// The store cannot be written.
    Failed(Error),
}

impl<'a> AttachmentImport<'a> {
    pub(super) fn new(store: &'a AttachmentStore, stop: &'a Stop) -> AttachmentImport<'a> {
        let (open, pending, lists, counted, counts) = Default::default();
        AttachmentImport { store, stop, open, pending, lists, counted, counts, is_broken: false }
    }

    /// Takes the files of a conversation, whose row in the database has this id. Texts are kept at
    /// once; for the others the export is read again at its end.
    pub(super) fn add(&mut self, row: String, conversation: &Conversation) {
        if conversation.files.is_empty() || self.is_broken {
            return;
        }
        let keys = message_keys(conversation);
        let mut files = Vec::new();
        for file in &conversation.files {
            let (message, name) = (keys[file.message].clone(), file.name.clone());
            match &file.content {
                AttachedContent::Id(id) => {
                    files.push(Attachment {
                        message,
                        name,
                        id: id.clone(),
                        ..Attachment::default()
                    });
                }
                AttachedContent::Text(text) => match self.keep(&mut text.as_bytes()) {
                    Ok(kept) => files.push(Attachment { message, name, ..kept }),
                    Err(reason) => self.leave_out(&name, reason),
                },
            }
        }
        self.pending.push(Pending { conversation: row, files });
    }

    /// Keeps the files of the conversations that were taken, which are in this export; calls
    /// `progress` for each file.
    pub(super) fn finish(&mut self, export: &mut Export, progress: &dyn Fn()) {
        let mut source = ExportFiles { export, known: HashMap::new() };
        for pending in std::mem::take(&mut self.pending) {
            if self.is_broken {
                return;
            }
            if let Err(error) = self.finish_one(pending, &mut source, progress) {
                self.leave_out("", LeftOut::Failed(error));
            }
        }
    }

    fn finish_one(
        &mut self,
        Pending { conversation, files }: Pending,
        source: &mut ExportFiles<'_>,
        progress: &dyn Fn(),
    ) -> Result<(), Error> {
        // Nobody else changes the list meanwhile.
        self.begin()?;
        let (mut list, mut is_changed) = match self.lists.remove(&conversation) {
            Some(list) => (list, true),
            None => match self.store.list(&conversation) {
                Ok(list) => (list, false),
                Err(error) => {
                    self.warn(error.to_string());
                    return Ok(());
                }
            },
        };
        let mut places = HashMap::new();
        for (place, known) in list.iter().enumerate() {
            places.entry(known.key()).or_insert(place);
        }
        for mut file in files {
            progress();
            let known = places.get(&file.key()).copied();
            if !file.id.is_empty() {
                if let Some(place) = known.filter(|place| self.store.has(&list[*place])) {
                    self.count(&list[place]);
                    continue;
                }
                if self.stop.requested() {
                    continue;
                }
                let Some((name, kept)) = self.read(source, &file) else { continue };
                file = Attachment { message: file.message, id: file.id, name, ..kept };
            }
            self.count(&file);
            match known {
                Some(place) if list[place] == file => continue,
                Some(place) => list[place] = file,
                None => {
                    places.insert(file.key(), list.len());
                    list.push(file);
                }
            }
            is_changed = true;
        }
        if is_changed {
            self.lists.insert(conversation, list);
        }
        Ok(())
    }

    /// Returns what was kept and left out until now.
    pub(super) fn counts(&self) -> &AttachmentCounts {
        &self.counts
    }

    /// Writes the lists, after their conversations were written for good; returns the counts.
    pub(super) fn publish(mut self) -> AttachmentCounts {
        failpoint::pass("files of messages kept");
        for (conversation, list) in std::mem::take(&mut self.lists) {
            let path = self.store.list_path(&conversation);
            let written = serde_json::to_vec(&list).map_err(io::Error::from);
            if let Err(error) = written.and_then(|list| self.store.put(&path, &list)) {
                self.leave_out("", LeftOut::Failed(failed(&path)(error)));
                break;
            }
        }
        failpoint::pass("lists of files written");
        // A failed import may have left contents without a list.
        if self.open.is_some() && !self.is_broken && self.counts.failures.is_empty() {
            let path = self.store.folder.join(UNDER_WAY);
            if let Err(error) = fs::remove_file(&path) {
                self.warn(failed(&path)(error).to_string());
            }
        }
        self.counts
    }

    /// Returns a file of the export, which is read and kept once, and its name.
    fn read(
        &mut self,
        source: &mut ExportFiles<'_>,
        wanted: &Attachment,
    ) -> Option<(String, Attachment)> {
        if !source.known.contains_key(&wanted.id) {
            let found = self.read_first(source.export, wanted);
            source.known.insert(wanted.id.clone(), found);
        }
        let (file, kept) = source.known[&wanted.id].clone()?;
        Some((name_of(wanted, &file).to_owned(), kept))
    }

    fn read_first(
        &mut self,
        export: &mut Export,
        wanted: &Attachment,
    ) -> Option<(String, Attachment)> {
        let Some(found) = export.attached(&wanted.id) else {
            self.counts.absent += 1;
            return None;
        };
        let kept = self.admit(found.size).and_then(|()| {
            let mut content = export.open_attached(&found).map_err(LeftOut::Unreadable)?;
            self.keep(&mut content)
        });
        match kept {
            Ok(kept) => Some((found.name, kept)),
            Err(reason) => {
                self.leave_out(name_of(wanted, &found.name), reason);
                None
            }
        }
    }

    fn leave_out(&mut self, name: &str, reason: LeftOut) {
        let too_many = match reason {
            LeftOut::TooLarge => &mut self.counts.too_large,
            LeftOut::NoRoom => &mut self.counts.no_room,
            LeftOut::Unreadable(reason) => {
                return self.warn(format!("{name}: the file is not kept: {reason}"));
            }
            // The chats are more important than their files: the import goes on without these.
            LeftOut::Failed(error) => {
                self.is_broken = true;
                // The import itself says that it was stopped.
                if !error.is_stopped() {
                    self.counts.failures.push(error.to_string());
                }
                return;
            }
        };
        too_many.number += 1;
        if too_many.names.len() < NAMED {
            too_many.names.push(name.to_owned());
        }
    }

    fn warn(&mut self, line: String) {
        if self.counts.failures.len() < NAMED {
            self.counts.failures.push(line);
        }
    }

    fn count(&mut self, kept: &Attachment) {
        if self.counted.insert(kept.sha256.clone()) {
            self.counts.kept += 1;
            self.counts.bytes += kept.bytes;
        }
    }

    /// Checks that a file of so many bytes can be kept.
    fn admit(&mut self, bytes: u64) -> Result<(), LeftOut> {
        let used = self.begin().map_err(LeftOut::Failed)?;
        if bytes > MAX_FILE {
            return Err(LeftOut::TooLarge);
        }
        if used + bytes > MAX_ALL { Err(LeftOut::NoRoom) } else { Ok(()) }
    }

    /// Copies a content into the store.
    fn keep(&mut self, input: &mut dyn Read) -> Result<Attachment, LeftOut> {
        let store = self.store;
        let io_failed = |source| LeftOut::Failed(failed(&store.folder)(source));
        self.begin().map_err(LeftOut::Failed)?;
        let mut file = store.begun_file().map_err(io_failed)?;
        let mut block = vec![0; BLOCK];
        let (mut hash, mut bytes, mut media_type) = (Sha256::new(), 0, None);
        loop {
            let read = match input.read(&mut block) {
                Ok(read) => &block[..read],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(LeftOut::Unreadable(error.to_string())),
            };
            media_type.get_or_insert_with(|| type_of(read));
            if read.is_empty() {
                break;
            }
            bytes += read.len() as u64;
            self.admit(bytes)?;
            hash.update(read);
            file.write_all(read).map_err(io_failed)?;
        }
        let sha256 = hex(&hash.finalize());
        let path = store.file_path(&sha256);
        if fs::metadata(&path).is_ok_and(|found| found.len() == bytes) {
            drop(file);
        } else {
            file.persist(&path).map_err(|error| io_failed(error.error))?;
            self.open.as_mut().expect("it is open").1 += bytes;
        }
        let media_type = media_type.unwrap_or(PLAIN).to_owned();
        Ok(Attachment { media_type, bytes, sha256, ..Attachment::default() })
    }

    /// Locks the store, if this import has not locked it yet; returns the bytes of its files.
    fn begin(&mut self) -> Result<u64, Error> {
        if let Some((_, used)) = &self.open {
            return Ok(*used);
        }
        let lock = self.store.lock(&mut |_| {
            thread::sleep(PAUSE);
            !self.stop.requested()
        })?;
        let contents = self.store.hashed(FILES, "")?;
        let used = contents.iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum();
        self.store.mark()?;
        self.open = Some((lock, used));
        Ok(used)
    }
}

/// Returns the name of a file: the name that the message gives, or else the part after the id of its
/// name in the export.
fn name_of<'n>(wanted: &'n Attachment, file: &'n str) -> &'n str {
    let own = file.strip_prefix(&wanted.id).unwrap_or(file).trim_start_matches(['-', '_']);
    match &*wanted.name {
        "" if own.is_empty() || own.starts_with('.') => file,
        "" => own,
        name => name,
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Attachments { path: path.clone(), source }
}

/// Returns what is in a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let paths = fs::read_dir(folder).and_then(|all| all.map(|entry| Ok(entry?.path())).collect());
    paths.map_err(failed(folder))
}

/// Reads a list. If it is damaged, the error is of the kind `InvalidData`.
fn read_list(path: &Path) -> io::Result<Vec<Attachment>> {
    let text = fs::read(path)?;
    serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn is_hash(name: &str) -> bool {
    name.len() == 2 * Sha256::output_size() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The type of texts, and the type of contents whose type is unknown.
const PLAIN: &str = "text/plain";
const UNKNOWN: &str = "application/octet-stream";

/// Returns the type of a content by its first bytes. The type that the export gives is not used: a
/// browser may act on it.
fn type_of(start: &[u8]) -> &'static str {
    match start {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "audio/wav",
        [b'I', b'D', b'3', ..] => "audio/mpeg",
        [b'O', b'g', b'g', b'S', ..] => "audio/ogg",
        [_, _, _, _, b'f', b't', b'y', b'p', b'M', b'4', b'A', ..] => "audio/mp4",
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => "video/mp4",
        [b'%', b'P', b'D', b'F', b'-', ..] => "application/pdf",
        [b'P', b'K', 3, 4, ..] => "application/zip",
        _ if start.contains(&0) => UNKNOWN,
        _ => match std::str::from_utf8(start) {
            // The last character may be cut.
            Err(error) if error.error_len().is_some() => UNKNOWN,
            _ => PLAIN,
        },
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn store(home: &TempDir) -> AttachmentStore {
        let config = Config { home: home.path().to_owned(), ..Config::default() };
        AttachmentStore::of(&config)
    }

    /// Puts a conversation with a file into a store.
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
    fn a_store_takes_in_another_one() {
        let home = tempfile::tempdir().unwrap();
        // Where there is another disk, from there.
        let old_home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (new, old) = (store(&home), store(&old_home));
        new.adopt(&old).unwrap();
        assert!(!new.folder.exists());
        put(&old, "both", &["one", "two"]);
        put(&old, "old", &["two", "three"]);
        put(&new, "both", &["zero", "one"]);
        fs::write(old.folder.join(FILES).join(".DS_Store"), "theirs").unwrap();
        new.adopt(&old).unwrap();
        assert_eq!(ids(&new, "both"), ["zero", "one", "two"]);
        assert_eq!(ids(&new, "old"), ["two", "three"]);
        assert_eq!(old.hashed(FILES, "").unwrap().len(), 0);
        assert!(!old.folder.join(CHATS).exists() && old.folder.join(FILES).exists());
        new.forget(&["both".to_owned()], &mut |_| false).unwrap();
        assert_eq!(ids(&new, "old"), ["two", "three"]);
        assert_eq!(new.hashed(FILES, "").unwrap().len(), 2);
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_not_empty() {
        let home = tempfile::tempdir().unwrap();
        assert!(entries(&home.path().join("missing")).is_err());
        let store = store(&home);
        put(&store, "one", &["a"]);
        put(&store, "two", &["b"]);
        // A list that cannot be read, for root too.
        fs::create_dir(store.list_path("three")).unwrap();
        assert!(store.forget(&["one".to_owned()], &mut |_| false).is_err());
        assert_eq!((ids(&store, "one").len(), ids(&store, "two").len()), (1, 1));
        fs::remove_dir(store.list_path("three")).unwrap();
        assert!(store.forget(&["one".to_owned()], &mut |_| false).unwrap().is_empty());
        assert_eq!((ids(&store, "one").len(), ids(&store, "two").len()), (0, 1));
        assert_eq!(store.hashed(FILES, "").unwrap().len(), 1);
    }
}
