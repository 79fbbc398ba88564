//! The files of imported messages: pictures, documents and sounds, in a folder of the home.
//!
//! `files/` holds each content once, under its SHA-256. `chats/` holds a list for each conversation:
//! which message has which file. The canonical database knows the names of files only.
//!
//! Invariant: no name or path of an export decides where a file is written.
//! Invariant: a content that no list has any more is removed with the conversation that had it.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{config::Config, error::Error};
use crate::{
    db::writer::message_keys,
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

/// The most bytes of one file.
const MAX_FILE: u64 = 100 << 20;

/// The most bytes of all files.
const MAX_ALL: u64 = 8 << 30;

/// How many of the files that were left out are named.
const NAMED: usize = 10;

/// Bytes that are copied at once. Those of the first copy tell the type of a file.
const BLOCK: usize = 64 << 10;

/// A file of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl Attachment {
    /// Returns the hash of the content, which names its file.
    pub(crate) fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns whether it is of the message with this id in a conversation of the export.
    pub(crate) fn is_of(&self, conversation: &str, message: &str) -> bool {
        // Where messages of two conversations have one id, the database puts the conversation's before it.
        let own = message.strip_prefix(conversation).and_then(|rest| rest.strip_prefix('/'));
        message == self.message || own == Some(&self.message)
    }
}

/// What an import kept of the files of messages, and what it left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AttachmentCounts {
    /// Files that are in the store, those of earlier imports too.
    pub(crate) kept: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Files that messages name and the export does not have.
    pub(crate) absent: u64,
    /// Files that are too long, or for which the store has no room.
    pub(crate) too_large: u64,
    /// The names of some of them.
    pub(crate) too_large_names: Vec<String>,
    /// Why files could not be read or written, a sentence each; the first ones.
    pub(crate) failures: Vec<String>,
}

impl AttachmentCounts {
    /// Returns whether messages name files at all.
    pub(crate) fn any(&self) -> bool {
        self.kept + self.absent + self.too_large > 0 || !self.failures.is_empty()
    }
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
        match fs::read(&path).map_err(|error| (error.kind(), error)) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| failed(&path)(error.into())),
            Err((io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, _)) => Ok(Vec::new()),
            Err((_, error)) => Err(failed(&path)(error)),
        }
    }

    /// Opens a file.
    pub(crate) fn open(&self, attachment: &Attachment) -> Result<File, Error> {
        let path = self.file_path(&attachment.sha256);
        File::open(&path).map_err(failed(&path))
    }

    /// Returns a text that is another once a list or a file was added, changed or removed.
    pub(crate) fn state(&self) -> String {
        let mut hash = Sha256::new();
        for folder in [FILES, CHATS].map(|name| self.folder.join(name)) {
            let mut paths: Vec<PathBuf> = entries(&folder).collect();
            paths.sort();
            for path in paths {
                let found = fs::symlink_metadata(&path);
                let found = found.map(|found| (found.len(), found.modified().ok()));
                hash.update(format!("{path:?} {found:?}\n"));
            }
        }
        hex(&hash.finalize())
    }

    /// Returns whether a file is there, whole.
    pub(crate) fn has(&self, attachment: &Attachment) -> bool {
        let found = fs::metadata(self.file_path(&attachment.sha256));
        found.is_ok_and(|found| found.is_file() && found.len() == attachment.bytes)
    }

    /// Removes the files of conversations.
    pub(crate) fn forget(&self, conversations: &[String]) -> Result<(), Error> {
        if !self.folder.exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        for conversation in conversations {
            let path = self.list_path(conversation);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(&path)(error));
                }
                _ => {}
            }
        }
        let mut used = HashSet::new();
        for path in entries(&self.folder.join(CHATS)) {
            let list: Vec<Attachment> = fs::read(&path)
                .and_then(|text| Ok(serde_json::from_slice(&text)?))
                .map_err(failed(&path))?;
            used.extend(list.into_iter().map(|attachment| attachment.sha256));
        }
        let is_used = |path: &PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| used.contains(name))
        };
        for path in entries(&self.folder.join(FILES)).filter(|path| !is_used(path)) {
            fs::remove_file(&path).map_err(failed(&path))?;
        }
        Ok(())
    }

    fn list_path(&self, conversation: &str) -> PathBuf {
        let name = hex(&Sha256::digest(conversation.as_bytes()));
        self.folder.join(CHATS).join(format!("{name}.json"))
    }

    fn file_path(&self, sha256: &str) -> PathBuf {
        // A list that somebody changed leads nowhere else.
        let is_hash = sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.folder.join(FILES).join(if is_hash { sha256 } else { "" })
    }

    /// Waits until nobody else writes to the store, and removes what a killed process left.
    fn lock(&self) -> Result<File, Error> {
        for folder in [FILES, CHATS].map(|name| self.folder.join(name)) {
            private::create_dir_all(&folder).map_err(failed(&folder))?;
        }
        let path = self.folder.join(LOCK);
        let lock = private::open_file(&path).map_err(failed(&path))?;
        lock.lock().map_err(failed(&path))?;
        let is_begun = |path: &PathBuf| {
            path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(BEGUN))
        };
        for path in entries(&self.folder).filter(is_begun) {
            fs::remove_file(&path).map_err(failed(&path))?;
        }
        Ok(lock)
    }
}

/// Returns whether a file or folder is one of the store.
pub(crate) fn is_in_store(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [FILES, CHATS, LOCK].contains(&&*name) || name.starts_with(BEGUN)
}

/// Keeps the files of the exports of one import.
#[derive(Debug)]
pub(super) struct AttachmentImport<'a> {
    store: &'a AttachmentStore,
    /// The lock of the store, and the bytes of all its files, once there is a file to keep.
    open: Option<(File, u64)>,
    pending: Vec<Pending>,
    counts: AttachmentCounts,
    /// Whether the store could not be written.
    is_broken: bool,
}

/// A conversation whose files are still to be kept.
#[derive(Debug)]
struct Pending {
    conversation: String,
    files: Vec<PendingFile>,
}

#[derive(Debug)]
struct PendingFile {
    message: String,
    name: String,
    /// Its id in the export, or what is in the store already.
    content: Result<Attachment, String>,
}

/// Why a file is not kept.
enum LeftOut {
    TooLarge,
    /// A sentence without the file's name.
    Unreadable(String),
    /// The store cannot be written.
    Failed(Error),
}

impl<'a> AttachmentImport<'a> {
    pub(super) fn new(store: &'a AttachmentStore) -> AttachmentImport<'a> {
        let (open, pending, counts) = Default::default();
        AttachmentImport { store, open, pending, counts, is_broken: false }
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
            let content = match &file.content {
                AttachedContent::Id(id) => Err(id.clone()),
                AttachedContent::Text(text) => match self.keep(&mut text.as_bytes()) {
                    Ok(kept) => Ok(kept),
                    Err(reason) => {
                        self.leave_out(&name, reason);
                        continue;
                    }
                },
            };
            files.push(PendingFile { message, name, content });
        }
        self.pending.push(Pending { conversation: row, files });
    }

    /// Keeps the files of the conversations that were taken, which are in this export; calls
    /// `progress` for each file.
    pub(super) fn finish(&mut self, export: &mut Export, stop: &Stop, progress: &dyn Fn()) {
        for pending in std::mem::take(&mut self.pending) {
            if self.is_broken {
                return;
            }
            if let Err(error) = self.finish_one(pending, export, (stop, progress)) {
                self.leave_out("", LeftOut::Failed(error));
            }
        }
    }

    fn finish_one(
        &mut self,
        Pending { conversation, files }: Pending,
        export: &mut Export,
        (stop, progress): (&Stop, &dyn Fn()),
    ) -> Result<(), Error> {
        // Nobody else changes the list meanwhile.
        self.begin()?;
        let before = self.store.list(&conversation)?;
        let mut list = before.clone();
        for PendingFile { message, name, content } in files {
            progress();
            let id = content.as_ref().err().cloned().unwrap_or_default();
            let is_same = |known: &Attachment| match &content {
                // Several texts of a message may have one name.
                Ok(text) => known.name == name && known.sha256 == text.sha256,
                Err(_) => true,
            };
            let is_known =
                |known: &Attachment| known.message == message && known.id == id && is_same(known);
            let known = list.iter().position(is_known);
            let kept = match (content, known) {
                (Ok(text), _) => Some((name, text)),
                (Err(_), Some(at)) if self.store.has(&list[at]) => {
                    self.counts.kept += 1;
                    self.counts.bytes += list[at].bytes;
                    None
                }
                (Err(_), _) if stop.requested() => None,
                (Err(id), _) => self.read(export, &id, &name),
            };
            let Some((name, kept)) = kept else { continue };
            self.counts.kept += 1;
            self.counts.bytes += kept.bytes;
            let kept = Attachment { message, id, name, ..kept };
            match known {
                Some(at) => list[at] = kept,
                None => list.push(kept),
            }
        }
        if list == before { Ok(()) } else { self.write(&conversation, &list) }
    }

    pub(super) fn into_counts(self) -> AttachmentCounts {
        self.counts
    }

    /// Keeps the file of the export whose name begins with an id; returns its name.
    fn read(&mut self, export: &mut Export, id: &str, name: &str) -> Option<(String, Attachment)> {
        let (file, kept) = match export.attached(id) {
            None => {
                self.counts.absent += 1;
                return None;
            }
            Some(Err(reason)) => (name.to_owned(), Err(LeftOut::Unreadable(reason))),
            Some(Ok(mut file)) => (file.name, self.keep(&mut file.content)),
        };
        let own = file.strip_prefix(id).unwrap_or(&file).trim_start_matches(['-', '_']);
        let name = match name {
            "" if own.is_empty() || own.starts_with('.') => &file,
            "" => own,
            name => name,
        };
        match kept {
            Ok(kept) => Some((name.to_owned(), kept)),
            Err(reason) => {
                self.leave_out(name, reason);
                None
            }
        }
    }

    fn leave_out(&mut self, name: &str, reason: LeftOut) {
        match reason {
            LeftOut::TooLarge => {
                self.counts.too_large += 1;
                if self.counts.too_large_names.len() < NAMED {
                    self.counts.too_large_names.push(name.to_owned());
                }
            }
            LeftOut::Unreadable(reason) if self.counts.failures.len() < NAMED => {
                self.counts.failures.push(format!("{name}: the file is not kept: {reason}"));
            }
            LeftOut::Unreadable(_) => {}
            // The chats are more important than their files: the import goes on without these.
            LeftOut::Failed(error) => {
                self.is_broken = true;
                self.counts.failures.push(error.to_string());
            }
        }
    }

    /// Copies a content into the store.
    fn keep(&mut self, input: &mut dyn Read) -> Result<Attachment, LeftOut> {
        let store = self.store;
        let io_failed = |source| LeftOut::Failed(failed(&store.folder)(source));
        let used = self.begin().map_err(LeftOut::Failed)?;
        let mut builder = tempfile::Builder::new();
        let mut file = builder.prefix(BEGUN).tempfile_in(&store.folder).map_err(io_failed)?;
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
            if bytes > MAX_FILE || used + bytes > MAX_ALL {
                return Err(LeftOut::TooLarge);
            }
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
        let (message, id, name) = Default::default();
        Ok(Attachment { message, id, name, media_type, bytes, sha256 })
    }

    /// Locks the store, if that was not done yet; returns the bytes of its files.
    fn begin(&mut self) -> Result<u64, Error> {
        if let Some((_, used)) = &self.open {
            return Ok(*used);
        }
        let lock = self.store.lock()?;
        let sizes = entries(&self.store.folder.join(FILES))
            .filter_map(|path| Some(fs::metadata(path).ok()?.len()));
        let used = sizes.sum();
        self.open = Some((lock, used));
        Ok(used)
    }

    /// Writes the list of a conversation whole, and only then gives it its name.
    fn write(&mut self, conversation: &str, list: &[Attachment]) -> Result<(), Error> {
        self.begin()?;
        let path = self.store.list_path(conversation);
        let write = || {
            let mut builder = tempfile::Builder::new();
            let mut file = builder.prefix(BEGUN).tempfile_in(&self.store.folder)?;
            serde_json::to_writer(&mut file, list)?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(failed(&path))
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Attachments { path: path.clone(), source }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The type of texts, and that of contents that are of no type we know.
const PLAIN: &str = "text/plain";
const UNKNOWN: &str = "application/octet-stream";

/// Returns the type of a content by its first bytes. The export's own word for it is not taken: a
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
