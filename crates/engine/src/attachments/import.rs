//! Copies the files in the exports of one import into the attachment store.

use std::collections::{HashMap, HashSet};

use super::attachment_writer::{AttachmentWriter, LeftOut};
use super::{attachment::Attachment, store::AttachmentStore};
use crate::error::Result;
use verbatim_base::model::{AttachedContent, Conversation};
use verbatim_base::{call::Call, failpoint};
use verbatim_chats::{db::writer::message_keys, import::Export};
use verbatim_text::snippet;

/// Number of skipped files that are listed by name.
const NAMED: usize = 10;

/// The maximum length of a conversation's title in a name, in characters.
const LONGEST_TITLE: usize = 60;

/// Counts of the files that an import kept or left out.
#[derive(Clone, Debug, Default)]
pub struct AttachmentCounts {
    /// Files that are in the store, also from earlier imports. Files with equal contents count once.
    pub kept: u64,
    /// The total size of the kept files in bytes.
    pub bytes: u64,
    /// Files that a message names but the export does not contain.
    pub absent: u64,
    /// Files of more than [`MAX_FILE`](super::MAX_FILE) bytes.
    pub too_large: FilesLeftOut,
    /// Files for which the store, limited to [`MAX_ALL`](super::MAX_ALL) bytes, has no room.
    pub no_room: FilesLeftOut,
    /// Files in whose place a transcript has something else. The names say which messages.
    pub without_content: FilesLeftOut,
    /// The first failures to read or write files, one sentence each.
    pub failures: Vec<String>,
}

/// Files that were left out for one reason.
#[derive(Clone, Debug, Default)]
pub struct FilesLeftOut {
    pub number: u64,
    /// Names of the first of these files.
    pub names: Vec<String>,
}

impl FilesLeftOut {
    fn add(&mut self, name: String) {
        self.number += 1;
        if self.names.len() < NAMED {
            self.names.push(name);
        }
    }
}

/// Copier of files from the exports of one import into the attachment store.
///
/// [`AttachmentImport::publish`] writes the lists of files after the conversations are committed. So no
/// list belongs to a conversation that a failed import did not write.
#[derive(Debug)]
pub(crate) struct AttachmentImport<'a> {
    writer: AttachmentWriter<'a>,
    pending: Vec<Pending>,
    /// Changed lists of files, by conversation id.
    lists: HashMap<String, Vec<Attachment>>,
    /// SHA-256 of the contents that are already counted.
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

struct ExportFiles<'a> {
    export: &'a mut Export,
    /// Results of look-ups, by file id: the name in the export and the stored file, or `None` if the file
    /// is not kept.
    known: HashMap<String, Option<(String, Attachment)>>,
}

impl<'a> AttachmentImport<'a> {
    pub(crate) fn new(store: &'a AttachmentStore, call: &'a Call) -> AttachmentImport<'a> {
        AttachmentImport {
            writer: AttachmentWriter::new(store, call),
            pending: Vec::new(),
            lists: HashMap::new(),
            counted: HashSet::new(),
            counts: AttachmentCounts::default(),
            is_broken: false,
        }
    }

    /// Adds the files of a conversation; `row` is the conversation's id in the database. Stores texts at
    /// once. Other files are read after the conversations of the export.
    pub(crate) fn add(&mut self, row: String, conversation: &Conversation) {
        if conversation.files.is_empty() || self.is_broken {
            return;
        }
        let keys = message_keys(conversation);
        let mut files = Vec::new();
        for file in &conversation.files {
            let message = keys[file.message].clone();
            let name = file.name.clone();
            match &file.content {
                AttachedContent::Id(id) => {
                    let id = id.clone();
                    files.push(Attachment { message, name, id, ..Attachment::default() });
                }
                AttachedContent::Text(text) => {
                    let kept = self.writer.write_file(&mut text.as_bytes());
                    files.extend(self.taken(kept, &message, &name));
                }
                AttachedContent::Base64(text) => {
                    let kept = self.writer.write_base64(text);
                    if let Err(LeftOut::NoContent(why)) = kept {
                        let place = conversation.messages[file.message].line;
                        let place = place.map_or(file.message as u64 + 1, u64::from);
                        let title = conversation.title.as_ref().unwrap_or(&conversation.id);
                        let title = snippet::line(title, LONGEST_TITLE);
                        self.counts
                            .without_content
                            .add(format!("message {place} of “{title}” ({why})"));
                        continue;
                    }
                    let number = files.iter().filter(|it| it.message == message).count() + 1;
                    files.extend(self.taken(kept, &message, &name).map(|it| it.named(number)));
                }
            }
        }
        self.pending.push(Pending { conversation: row, files });
    }

    /// Returns a message's file if its content was kept. Otherwise counts the file as left out.
    fn taken(
        &mut self,
        kept: Result<Attachment, LeftOut>,
        message: &str,
        name: &str,
    ) -> Option<Attachment> {
        let kept = kept.map_err(|reason| self.leave_out(name, reason)).ok()?;
        Some(Attachment { message: message.to_owned(), name: name.to_owned(), ..kept })
    }

    /// Stores the files of all added conversations, which are in this export. Calls `progress` for each
    /// file.
    pub(crate) fn store_pending(&mut self, export: &mut Export, progress: &dyn Fn()) {
        let mut source = ExportFiles { export, known: HashMap::new() };
        for pending in std::mem::take(&mut self.pending) {
            if self.is_broken {
                return;
            }
            if let Err(error) = self.store_files(pending, &mut source, progress) {
                self.leave_out("", LeftOut::Failed(error));
            }
        }
    }

    fn store_files(
        &mut self,
        Pending { conversation, files }: Pending,
        source: &mut ExportFiles<'_>,
        progress: &dyn Fn(),
    ) -> Result<()> {
        // The lock keeps other processes from changing the list.
        self.writer.begin()?;
        let mut is_changed = self.lists.contains_key(&conversation);
        let known = self.lists.remove(&conversation);
        let mut list = match known.map_or_else(|| self.writer.store.list(&conversation), Ok) {
            Ok(list) => list,
            Err(error) => {
                self.warn(error.to_string());
                return Ok(());
            }
        };
        let mut places = HashMap::new();
        for (place, known) in list.iter().enumerate() {
            places.entry(known.key()).or_insert(place);
        }
        for mut file in files {
            progress();
            let known = places.get(&file.key()).copied();
            if !file.id.is_empty() {
                if let Some(place) = known.filter(|place| self.writer.store.has(&list[*place])) {
                    self.count(&list[place]);
                    continue;
                }
                if self.writer.call.stop.requested() {
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

    /// Writes the lists of files and unlocks the store, after the conversations were committed.
    /// Returns the counts.
    pub(crate) fn publish(mut self) -> AttachmentCounts {
        failpoint::pass("files of messages kept");
        if let Err(error) = self.writer.write_lists(std::mem::take(&mut self.lists)) {
            self.leave_out("", LeftOut::Failed(error));
        }
        failpoint::pass("lists of files written");
        // A failed import may have left contents without a list.
        let is_whole = !self.is_broken && self.counts.failures.is_empty();
        if let Err(error) = self.writer.close(is_whole) {
            self.warn(error.to_string());
        }
        self.counts
    }

    /// Returns a file of the export and its name. Each file is read and stored only once.
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
        let kept = self.writer.admit(found.size).and_then(|()| {
            let mut content = export.open_attached(&found).map_err(LeftOut::Unreadable)?;
            self.writer.write_file(&mut content)
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
            LeftOut::NoContent(_) => &mut self.counts.without_content,
            LeftOut::Unreadable(reason) => {
                return self.warn(format!("{name}: the file is not kept: {reason}"));
            }
            // The chats are more important than their files, so the import goes on without files.
            LeftOut::Failed(error) => {
                self.is_broken = true;
                // The import itself says that it was stopped.
                if !error.is_stopped() {
                    self.counts.failures.push(error.to_string());
                }
                return;
            }
        };
        too_many.add(name.to_owned());
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
}

/// Returns a file's name from the message. If the message gives no name, returns the name in the export
/// without the id.
fn name_of<'n>(wanted: &'n Attachment, file: &'n str) -> &'n str {
    let own = file.strip_prefix(&wanted.id).unwrap_or(file).trim_start_matches(['-', '_']);
    match &*wanted.name {
        "" if own.is_empty() || own.starts_with('.') => file,
        "" => own,
        name => name,
    }
}
