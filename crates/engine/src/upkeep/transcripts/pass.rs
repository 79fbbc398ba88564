//! Reads new text in transcripts into the transcript store.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, Read, Seek, SeekFrom};
use std::{fs::File, path::Path, time::SystemTime};

use super::archive_walk::{ArchiveWalk, TranscriptPath};
use super::report::{ArchiveProgress, ArchiveReport, SyncError};
use super::{
    earlier_states,
    sink::{StoreSink, moved_by},
};
use crate::{attachments::TranscriptFiles, decisions::Decisions};
use verbatim_base::{
    call::Call,
    files,
    model::{self, Message},
};
use verbatim_chats::db::header::Stamp;
use verbatim_chats::db::transcripts::{ConversationData, TranscriptFile, TranscriptStore};
use verbatim_chats::import::repeats::ReadingOrder;
use verbatim_chats::import::transcript::TranscriptReader;
use verbatim_chats::import::{Format, beside, compressed};
use verbatim_text::hash::fnv1a;

/// Number of bytes that are read between two commits.
const BATCH_BYTES: u64 = 16 << 20;

/// Number of bytes at either end of the read text whose hashes show later whether the file has only grown.
const ENDS: usize = 4 << 10;

/// The number of bytes that are read to find out whether a file has lost its text.
const BLANK_BYTES: u64 = 4 << 10;

/// The stamp of a file that was not read to its end.
const UNFINISHED: &str = "unfinished";

/// The reason why a file with the name of a transcript is not read.
pub(super) const FOREIGN: &str = "has no record of an agent that we know; it is not read";

pub(super) struct Pass<'a> {
    store: &'a TranscriptStore,
    decisions: &'a Decisions,
    files: TranscriptFiles<'a>,
    forgets_deleted: bool,
    call: &'a Call,
    progress: &'a dyn Fn(ArchiveProgress),
    report: &'a mut ArchiveReport,
    /// Paths of the files that were removed from the store and must be read again. If a stop leaves
    /// some unread, the next pass treats them as new files.
    again: BTreeSet<String>,
    /// The names that programs keep in other files, by the ids of conversations.
    names: HashMap<String, String>,
    /// The number of bytes that the whole pass reads.
    total: u64,
    /// Number of bytes read since the last commit.
    uncommitted: u64,
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        store: &'a TranscriptStore,
        decisions: &'a Decisions,
        files: TranscriptFiles<'a>,
        forgets_deleted: bool,
        call: &'a Call,
        progress: &'a dyn Fn(ArchiveProgress),
        report: &'a mut ArchiveReport,
    ) -> Pass<'a> {
        Pass {
            store,
            decisions,
            files,
            forgets_deleted,
            call,
            progress,
            report,
            again: BTreeSet::new(),
            names: HashMap::new(),
            total: 0,
            uncommitted: 0,
        }
    }

    /// Updates the store from the files that a walk found.
    pub(super) fn run(mut self, walk: &ArchiveWalk) -> Result<(), SyncError> {
        let mut known = self.store.files()?;
        self.report.files = walk.transcripts.len() as u64;
        walk.names.keys().for_each(|file| beside::add_names(file, &mut self.names));
        let gone = self.follow_moved(walk, &mut known)?;
        self.keep_or_forget(gone)?;
        self.leave_out()?;
        let mut changed = Vec::new();
        let mut new = Vec::new();
        for found in &walk.transcripts {
            match known.get(&found.name) {
                Some(known) if known.stamp == found.stamp => self.come_back(known)?,
                Some(file) => {
                    self.total += found.size.saturating_sub(file.taken);
                    let is_whole = whole_again(&known, found).is_some();
                    changed.push((found, file.id, is_whole));
                }
                None => {
                    self.total += found.size;
                    new.push(found.clone());
                }
            }
        }
        for (found, id, is_whole) in changed {
            if !self.call.stop.requested() {
                self.read_known(found, id, is_whole)?;
            }
        }
        let mut once = HashSet::new();
        loop {
            while let Some(name) = self.again.pop_first() {
                let Some(found) = found_at(&name) else { continue };
                self.total += found.size;
                if let Some(earlier) = whole_again(&known, &found)
                    && !self.lacks_text(earlier.id, &found)?
                {
                    self.forget(earlier.id)?;
                }
                new.push(found);
            }
            new.sort_by_cached_key(order);
            let mut read = Vec::new();
            for found in new.drain(..) {
                if !self.call.stop.requested() {
                    read.extend(self.read_new(found)?);
                }
            }
            for file in &read {
                self.read_again_after(file, &mut once)?;
            }
            if self.again.is_empty() || self.call.stop.requested() {
                break;
            }
        }
        for (id, name) in &self.names {
            if self.store.title(id)?.is_some_and(|title| title != *name) {
                self.store.begin()?;
                self.store.set_title(id, name)?;
            }
        }
        self.commit()?;
        Ok(self.files.close()?)
    }

    /// Recognises new files that are known files under another name, and renames them in `known`.
    /// Returns the known files that are gone.
    ///
    /// A file has moved if the new file has its name or its file identity, and begins with all the text
    /// that was read. If an agent has compressed or unpacked the file, the name decides.
    fn follow_moved(
        &mut self,
        walk: &ArchiveWalk,
        known: &mut HashMap<String, TranscriptFile>,
    ) -> Result<Vec<TranscriptFile>, SyncError> {
        let found: HashSet<&str> =
            walk.transcripts.iter().map(|found| found.name.as_str()).collect();
        // A folder of transcripts may have moved or been copied, so files outside the archives are looked at.
        // No answer has them, so they must not stand for the files that were found.
        let mut gone: Vec<TranscriptFile> = Vec::new();
        for file in known.values().filter(|file| !found.contains(file.path.as_str())) {
            if walk.is_missing(&file.path) || !walk.is_in_archives(&file.path) {
                gone.push(file.clone());
            }
        }
        gone.sort_by_key(|file| file.id);
        for found in &walk.transcripts {
            // A file without a conversation may repeat only messages of a file that is gone now.
            let there = known.get(&found.name);
            let repeating = there.filter(|file| file.conversation.is_none()).map(|file| file.id);
            if gone.is_empty() || there.is_some() && repeating.is_none() {
                continue;
            }
            if let Some(at) = gone.iter().position(|file| is_moved(file, found)) {
                let old = gone.remove(at);
                if let Some(id) = repeating {
                    self.store.begin()?;
                    self.forget(id)?;
                }
                known.remove(&old.path);
                if let Some(moved) = self.rename(old.id, found)? {
                    known.insert(found.name.clone(), moved);
                }
            } else if repeating.is_none()
                && let Some(at) = gone
                    .iter()
                    .position(|file| is_repacked(file, found) && walk.is_missing(&file.path))
            {
                let old = gone.remove(at);
                self.store.begin()?;
                self.forget(old.id)?;
            }
        }
        gone.retain(|file| walk.is_in_archives(&file.path));
        Ok(gone)
    }

    /// Gives a known file the path under which it was found.
    fn rename(
        &mut self,
        id: i64,
        found: &TranscriptPath,
    ) -> Result<Option<TranscriptFile>, SyncError> {
        let Some(mut input) = self.open(found) else { return Ok(None) };
        self.store.begin()?;
        let Some(mut file) = self.store.file(id)? else { return Ok(None) };
        file.path.clone_from(&found.name);
        file.gone = None;
        let Some(mut reader) = TranscriptReader::restore(&file.reader) else { return Ok(None) };
        if file.taken == found.size {
            file.stamp.clone_from(&found.stamp);
        }
        self.save(&mut file, &mut reader, &mut input, None)?;
        Ok(Some(file))
    }

    /// Removes a file from the store. Other files that repeat its messages are removed too and read again,
    /// because the store left the repeats out.
    fn forget(&mut self, file: i64) -> Result<(), SyncError> {
        let removed = self.store.forget(file)?;
        self.again.extend(removed.again);
        if !removed.conversations.is_empty() {
            self.files.forget(&removed.conversations)?;
        }
        Ok(())
    }

    /// Marks files as gone. Their messages stay in the store, unless deleted transcripts are forgotten.
    fn keep_or_forget(&mut self, gone: Vec<TranscriptFile>) -> Result<(), SyncError> {
        for file in gone {
            if self.forgets_deleted {
                self.store.begin()?;
                self.forget(file.id)?;
                self.report.removed += 1;
            } else if file.gone.is_none() {
                self.store.begin()?;
                self.store.set_gone(file.id, Some(now()))?;
                self.follow_copy(file.id)?;
                self.report.removed += 1;
                self.report.kept += 1;
            }
        }
        Ok(())
    }

    /// Describes the conversation of a file that is gone by another file of it that is there.
    fn follow_copy(&self, gone: i64) -> Result<(), SyncError> {
        if let Some(conversation) = self.store.file(gone)?.and_then(|file| file.conversation)
            && self.store.has_conversation(&conversation)?
            && let Some(leader) = self.store.leader(&conversation)?
            && let Some(file) = self.store.file(leader)?
            && let Some(reader) = TranscriptReader::restore(&file.reader)
        {
            self.describe(&conversation, Path::new(&file.path), &reader, None)?;
        }
        Ok(())
    }

    /// Removes conversations that are left out now. Files that are no longer left out will be read again.
    pub(super) fn leave_out(&mut self) -> Result<(), SyncError> {
        if !self.decisions.is_empty() {
            let mut gone = Vec::new();
            for (file, id, service, origin) in self.store.stored()? {
                // The store has the only copy of a deleted file, so the copy stays, and answers leave it out.
                let is_kept = origin.gone.is_some() && !self.decisions.is_forgotten(&id, &service);
                if !is_kept && self.decisions.leaves_out(&id, &service, &origin) {
                    self.store.begin()?;
                    self.leave_out_file(file, &id)?;
                    gone.push(id);
                }
            }
            if !gone.is_empty() {
                self.files.forget(&gone)?;
            }
        }
        for file in self.store.without_conversation()? {
            let Some(id) = &file.conversation else { continue };
            let is_left_out = TranscriptReader::restore(&file.reader).is_some_and(|reader| {
                let service = reader.format().map_or("", Format::name);
                self.decisions.leaves_out(id, service, &reader.origin(Path::new(&file.path)))
            });
            if !is_left_out {
                self.store.begin()?;
                self.forget(file.id)?;
                self.again.insert(file.path);
            }
        }
        Ok(())
    }

    /// Removes the conversation of a file. The reading state of the file stays, so that it is not read
    /// again, and other files still leave out the messages that they repeat from it.
    fn leave_out_file(&self, file: i64, id: &str) -> Result<(), SyncError> {
        self.store.remove_conversation(id)?;
        if let Some(mut file) = self.store.file(file)?
            && let Some(mut reader) = TranscriptReader::restore(&file.reader)
        {
            reader.forget_titles();
            file.reader = reader.save();
            self.store.save(&mut file)?;
        }
        Ok(())
    }

    /// Reads the text that was appended to a known file. If the file changed in another way, it is read
    /// again later, together with the files that repeat it. `is_whole` tells whether the file was cut before
    /// and has all its text again.
    fn read_known(
        &mut self,
        found: &TranscriptPath,
        id: i64,
        is_whole: bool,
    ) -> Result<(), SyncError> {
        let Some(mut input) = self.open(found) else { return Ok(()) };
        self.store.begin()?;
        // If an earlier file was removed, a file that repeats its messages was removed too.
        let Some(file) = self.store.file(id)? else { return Ok(()) };
        if file.stamp == found.stamp {
            return Ok(());
        }
        // A crash of an agent or of the system may empty a file. The stored messages are then kept.
        if !self.forgets_deleted && file.taken > 0 && is_blank(&mut input) {
            return self.keep_or_forget(vec![file]);
        }
        if is_whole || !has_only_grown(&mut input, &file, found) {
            return self.set_aside_or_forget(file, found);
        }
        self.come_back(&file)?;
        let reader = TranscriptReader::restore(&file.reader)
            .unwrap_or_else(|| TranscriptReader::new(&found.path));
        self.read(found, input, file, reader).map(drop)
    }

    /// Prepares a file that was cut or rewritten to be read again. If the file lacks a text that
    /// was read from it, the stored messages are kept like those of a deleted file.
    fn set_aside_or_forget(
        &mut self,
        file: TranscriptFile,
        found: &TranscriptPath,
    ) -> Result<(), SyncError> {
        let lacks_text = !self.forgets_deleted && self.lacks_text(file.id, found)?;
        self.again.insert(file.path.clone());
        if !lacks_text {
            return self.forget(file.id);
        }
        let known = self.store.files()?;
        let name = earlier_states::earlier_name(&file.path, |name| known.contains_key(name));
        self.store.rename(file.id, &name)?;
        self.keep_or_forget(vec![file])
    }

    /// Returns whether the store has a text of this file that the file no longer has; true if the
    /// file cannot be read.
    fn lacks_text(&mut self, id: i64, found: &TranscriptPath) -> Result<bool, SyncError> {
        let file = self.store.file(id)?;
        let Some(file) = file.filter(|file| file.conversation.is_some()) else { return Ok(false) };
        let lacks_text = earlier_states::lacks_text(self.store.text_hashes(&file)?, found);
        Ok(lacks_text.unwrap_or_else(|error| {
            self.report.fail(&found.path, &error);
            true
        }))
    }

    fn come_back(&self, file: &TranscriptFile) -> Result<(), SyncError> {
        if file.gone.is_some() {
            self.store.begin()?;
            self.store.set_gone(file.id, None)?;
        }
        Ok(())
    }

    fn read_new(&mut self, found: TranscriptPath) -> Result<Option<NewFile>, SyncError> {
        let Some(input) = self.open(&found) else { return Ok(None) };
        self.store.begin()?;
        let mut file = TranscriptFile { path: found.name.clone(), ..TranscriptFile::default() };
        // Saving gives the file its number, which is needed for reading.
        self.store.save(&mut file)?;
        let id = file.id;
        let transcript = self.read(&found, input, file, TranscriptReader::new(&found.path))?;
        Ok(Some(NewFile { found, id, transcript }))
    }

    /// Removes files that were read before a new file, but come after it in the order of reading, because they
    /// repeat it, name it as their parent or have another part of its conversation. They are read again, each path of `once` only once.
    fn read_again_after(
        &mut self,
        new: &NewFile,
        once: &mut HashSet<String>,
    ) -> Result<(), SyncError> {
        for early in self.store.read_too_early(new.id, &new.transcript)? {
            let Some(found) = found_at(&early.path) else { continue };
            let comes_later =
                early.parent.as_ref() == Some(&new.transcript) || order(&found) > order(&new.found);
            if comes_later && once.insert(early.path.clone()) {
                self.store.begin()?;
                self.forget(early.id)?;
                self.again.insert(early.path);
            }
        }
        Ok(())
    }

    fn open(&mut self, found: &TranscriptPath) -> Option<File> {
        match files::open(&found.path) {
            Ok(input) => Some(input),
            // The file disappeared after the walk; the next walk notices it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.report.fail(&found.path, &error);
                None
            }
        }
    }

    /// Reads a file in batches, beginning at the position of `reader`. Returns the transcript's own id.
    fn read(
        &mut self,
        found: &TranscriptPath,
        mut input: File,
        mut file: TranscriptFile,
        mut reader: TranscriptReader,
    ) -> Result<String, SyncError> {
        self.report.read += 1;
        let malformed = reader.malformed();
        let was_named = reader.is_unrecognised();
        let mut size = BATCH_BYTES;
        // More records may follow, so the messages at the end are not the same then.
        let mut at_end = reader.at_end();
        loop {
            let Some(batch) = self.read_batch(found, &mut input, &mut file, &mut reader, size)?
            else {
                break;
            };
            self.report.bytes += batch.taken;
            self.uncommitted += batch.taken;
            let done = self.report.bytes.min(self.total);
            (self.progress)(ArchiveProgress { done, total: self.total });
            file.taken += batch.taken;
            if let Some(conversation) = &file.conversation {
                for message in at_end.drain(..) {
                    self.store.remove_message(&file, &message.id)?;
                }
                if batch.is_end && self.store.has_conversation(conversation)? {
                    for message in reader.at_end() {
                        let moved = moved_by(self.store, conversation, &file, &message)?;
                        let line = message.line.map(|line| line.saturating_add(moved));
                        self.store.message(&file, &Message { line, ..message })?;
                    }
                }
            }
            // The stamp was taken before reading. So it differs if the file is written to meanwhile.
            file.stamp = if batch.is_end { found.stamp.clone() } else { UNFINISHED.to_owned() };
            self.save(&mut file, &mut reader, &mut input, batch.last)?;
            if batch.is_end || self.call.stop.requested() {
                break;
            }
            if batch.taken == 0 {
                // A line is longer than the batch, so the next batch is larger.
                size *= 2;
            }
            self.commit()?;
            self.store.begin()?;
        }
        self.report.malformed += reader.malformed() - malformed;
        if reader.is_unrecognised() && !was_named {
            match reader.foreign() {
                Some(what) => self.report.fail(&found.path, &what),
                None => self.report.fail(&found.path, &FOREIGN),
            }
        }
        if self.uncommitted > BATCH_BYTES {
            self.commit()?;
        }
        Ok(reader.id())
    }

    /// Reads one batch of a file; `None` if it cannot be read.
    fn read_batch(
        &mut self,
        found: &TranscriptPath,
        input: &mut File,
        file: &mut TranscriptFile,
        reader: &mut TranscriptReader,
        size: u64,
    ) -> Result<Option<ReadBatch>, SyncError> {
        if let Err(error) = input.seek(SeekFrom::Start(file.taken)) {
            self.report.fail(&found.path, &error);
            return Ok(None);
        }
        let is_compressed = compressed::plain(&found.path).is_some();
        let mut sink = StoreSink::new(self.store, self.decisions, &mut self.files, file, reader);
        let mut is_end = true;
        let result: Result<u64, SyncError> = if is_compressed {
            // Nothing is appended to a compressed file, so all of it is read.
            let mut lines = compressed::unpacked(input);
            reader.read(&mut lines, &mut |it: &_, event| sink.add(it, event)).map(|_| found.size)
        } else {
            let mut slice = input.take(size);
            let result = reader.read(&mut slice, &mut |it: &_, event| sink.add(it, event));
            is_end = slice.limit() > 0 || reader.is_foreign();
            result
        };
        let last = sink.last;
        self.report.messages += sink.messages;
        for reason in sink.not_kept {
            self.report.fail(&found.path, &reason);
        }
        let taken = match result {
            Ok(taken) => taken,
            Err(SyncError::Read(error)) => {
                self.report.fail(&found.path, &error);
                if !is_compressed {
                    return Ok(None);
                }
                // A damaged compressed file is read again only if the file is replaced.
                found.size
            }
            Err(error) => return Err(error),
        };
        Ok(Some(ReadBatch { taken, is_end, last }))
    }

    fn commit(&mut self) -> Result<(), SyncError> {
        self.uncommitted = 0;
        // Committed messages are not read again, so the lists of their files are written first.
        self.files.write()?;
        Ok(self.store.commit()?)
    }

    /// Saves the reading state of a file and the data of its conversation.
    fn save(
        &mut self,
        file: &mut TranscriptFile,
        reader: &mut TranscriptReader,
        input: &mut File,
        last: Option<model::Instant>,
    ) -> Result<(), SyncError> {
        let mut stored = file.conversation.as_ref();
        if let (Some(conversation), Some(format)) = (stored, reader.format()) {
            let origin = reader.origin(Path::new(&file.path));
            if self.decisions.leaves_out(conversation, format.name(), &origin) {
                self.store.remove_conversation(conversation)?;
                self.files.forget(std::slice::from_ref(conversation))?;
                reader.forget_titles();
                stored = None;
            }
        }
        let stored = stored.cloned();
        file.ends = ends(input, file.taken).unwrap_or_default();
        file.parent = reader.parent().map(str::to_owned);
        file.reader = reader.save();
        self.store.save(file)?;
        let Some(conversation) = stored else { return Ok(()) };
        if self.store.leader(&conversation)? == Some(file.id) {
            return self.describe(&conversation, Path::new(&file.path), reader, last);
        }
        Ok(self.store.touch(&conversation, last)?)
    }

    /// Stores the data of a conversation as a file of it has them.
    fn describe(
        &self,
        conversation: &str,
        file: &Path,
        reader: &TranscriptReader,
        last: Option<model::Instant>,
    ) -> Result<(), SyncError> {
        let title = reader.title();
        let data = ConversationData {
            source: reader.format().map_or("", Format::name),
            title: self.names.get(conversation).map(String::as_str).or(title.as_deref()),
            model: reader.model(),
            time: last,
            origin: &reader.origin(file),
        };
        Ok(self.store.conversation(conversation, data)?)
    }
}

/// A file that was read from its beginning.
struct NewFile {
    found: TranscriptPath,
    /// The number of the file in the store.
    id: i64,
    /// The transcript's own id.
    transcript: String,
}

struct ReadBatch {
    taken: u64,
    is_end: bool,
    /// The time of the last message that has a time.
    last: Option<model::Instant>,
}

/// Returns the transcript at a path, if it is there.
fn found_at(name: &str) -> Option<TranscriptPath> {
    let path = Path::new(name);
    Some(TranscriptPath::new(path, name, &Stamp::from_path(path).ok()?))
}

/// Returns the sort key of a file in the order of reading.
fn order(found: &TranscriptPath) -> ReadingOrder {
    ReadingOrder::new(&found.path, found.size, found.open_unpacked().ok())
}

/// Returns whether a file begins with no text: it is empty, or has only zeros and white space there.
fn is_blank(input: &mut File) -> bool {
    let mut start = Vec::new();
    let read =
        Read::by_ref(input).take(BLANK_BYTES).read_to_end(&mut start).and_then(|_| input.rewind());
    read.is_ok() && start.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace())
}

/// Returns whether text was appended to a file and nothing else changed. If the file is not longer than
/// before, or if it is compressed, it was rewritten.
fn has_only_grown(input: &mut File, file: &TranscriptFile, found: &TranscriptPath) -> bool {
    compressed::plain(&found.path).is_none()
        && found.size > file.taken
        && TranscriptReader::restore(&file.reader).is_some()
        && ends(input, file.taken).is_ok_and(|ends| ends == file.ends)
}

/// Returns what was kept of a file before it was cut, if the file seems to have all of that text again.
fn whole_again<'f>(
    known: &'f HashMap<String, TranscriptFile>,
    found: &TranscriptPath,
) -> Option<&'f TranscriptFile> {
    let whole = known.values().filter(|file| {
        earlier_states::is_earlier(&file.path, &found.name)
            && (1..=found.size).contains(&file.taken)
            && begins_with(found, file)
    });
    whole.max_by_key(|file| file.taken)
}

/// Returns whether a new file is a known file that was moved.
fn is_moved(gone: &TranscriptFile, found: &TranscriptPath) -> bool {
    let is_candidate =
        identity(&gone.stamp) == identity(&found.stamp) || is_named_alike(gone, found);
    let is_long_enough = match compressed::plain(&found.path) {
        Some(_) => found.size == gone.taken,
        None => found.size >= gone.taken,
    };
    is_candidate
        && is_long_enough
        && gone.taken > 0
        && compressed::plain(Path::new(&gone.path)).is_some()
            == compressed::plain(&found.path).is_some()
        && begins_with(found, gone)
}

/// Returns whether a file begins with the text that was read of a known file.
fn begins_with(found: &TranscriptPath, known: &TranscriptFile) -> bool {
    files::open(&found.path)
        .and_then(|mut input| ends(&mut input, known.taken))
        .is_ok_and(|ends| ends == known.ends)
}

/// Returns whether a new file is a known file that was compressed or unpacked. A compressed file must
/// begin with the text that was read. An unpacked file only needs the same name and folder, because the
/// known hashes are of the compressed bytes.
fn is_repacked(gone: &TranscriptFile, found: &TranscriptPath) -> bool {
    let old = Path::new(&gone.path);
    is_named_alike(gone, found)
        && match (compressed::plain(old), compressed::plain(&found.path)) {
            (None, Some(_)) => found
                .open_unpacked()
                .and_then(|unpacked| ends_of_stream(unpacked, gone.taken))
                .is_ok_and(|ends| ends == gone.ends),
            (Some(_), None) => old.parent() == found.path.parent(),
            _ => false,
        }
}

/// Returns the part of a stamp that stays when a file is renamed.
fn identity(stamp: &str) -> &str {
    stamp.split(' ').next().unwrap_or_default()
}

fn is_named_alike(gone: &TranscriptFile, found: &TranscriptPath) -> bool {
    compressed::stem(Path::new(&gone.path)) == compressed::stem(&found.path)
}

fn now() -> model::Instant {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    model::Instant { seconds: since.as_secs() as i64, nanos: 0 }
}

/// Returns the hashes of the first and of the last bytes before an offset.
fn ends(input: &mut File, taken: u64) -> io::Result<String> {
    let mut hashes = Vec::new();
    for start in [0, taken.saturating_sub(ENDS as u64)] {
        input.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::with_capacity(ENDS);
        let length = taken.min(ENDS as u64);
        input.take(length).read_to_end(&mut bytes)?;
        hashes.push(format!("{:x}", fnv1a(&bytes)));
    }
    Ok(hashes.join(" "))
}

/// Does the same as [`ends`] for a stream.
fn ends_of_stream(mut input: impl Read, taken: u64) -> io::Result<String> {
    let length = taken.min(ENDS as u64);
    let mut first = Vec::with_capacity(ENDS);
    input.by_ref().take(length).read_to_end(&mut first)?;
    // The two ends overlap if the text is shorter than both together.
    let start = taken - length;
    io::copy(&mut input.by_ref().take(start.saturating_sub(length)), &mut io::sink())?;
    let mut last = first.get(start.min(length) as usize..).unwrap_or_default().to_vec();
    input.take(length - last.len().min(length as usize) as u64).read_to_end(&mut last)?;
    Ok([first, last].map(|bytes| format!("{:x}", fnv1a(&bytes))).join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_the_ends_of_its_file() {
        let bytes: Vec<u8> = (0..4 * ENDS).map(|at| (at % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        for taken in
            [0, 1, ENDS - 1, ENDS, ENDS + 7, 2 * ENDS - 1, 2 * ENDS, 3 * ENDS + 5, 5 * ENDS]
        {
            let expected = ends(&mut file, taken as u64).unwrap();
            let found = ends_of_stream(bytes.as_slice(), taken as u64).unwrap();
            assert_eq!(found, expected, "{taken}");
        }
    }
}
