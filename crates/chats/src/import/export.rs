//! Reads the files of an export, one after the other.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::attached::AttachedTexts;
use super::compressed::is_named_as_transcript;
use super::file::{self, CountingReader, ExportFile, FileContents};
use super::format::Format;
use super::package::{FoundFile, Package, is_named_as_conversations, part_left_out};
use super::tally::{Branches, ImportTally};
use super::{Error, beside, downloads, results, transcript};
use verbatim_base::model::Conversation;
use verbatim_text::amount::counted;

/// The number of bytes of a file that are read to detect its format.
const BYTES_LOOKED_AT: u64 = 1 << 20;

/// The phrase for files that are not listed one by one.
const OTHER_FILES: &str = "more files that are not transcripts";

/// An export that can be read.
#[derive(Debug)]
pub struct Export {
    path: PathBuf,
    package: Package,
}

/// The file by which `verbatim export` knows the folders that it wrote.
const WRITTEN_BY_EXPORT: &str = ".verbatim-export.json";

impl Export {
    /// Finds the files of the export at `path`: a zip, a folder or a JSON file.
    pub fn open(path: &Path) -> Result<Export, Error> {
        Ok(Export { path: path.to_owned(), package: Package::open(path, true)? })
    }

    /// Works like [`Export::open`], but faster: does not unpack zips inside a zip.
    pub fn open_outer(path: &Path) -> Result<Export, Error> {
        Ok(Export { path: path.to_owned(), package: Package::open(path, false)? })
    }

    /// Returns the total size of the JSON files in bytes.
    pub fn size(&self) -> u64 {
        self.package.files().iter().map(|file| file.size).sum()
    }

    /// Returns the format of the first conversation. Reads the beginnings of at most `most` files. Files with
    /// the usual names for conversations come first.
    pub fn format(&mut self, most: usize) -> Option<&'static Format> {
        let files = self.package.files();
        let (usual, others): (Vec<usize>, Vec<usize>) =
            (0..files.len()).partition(|at| files[*at].name.contains("conversations"));
        let format = usual.into_iter().chain(others).take(most).find_map(|at| {
            let name = self.package.files()[at].name.clone();
            let mut start = Vec::new();
            let mut reader = self.package.reader(at).ok()?;
            transcript::read_start(&mut reader, &name, BYTES_LOOKED_AT, &mut start).ok()?;
            file::detect_format(&start)
        });
        format.or_else(|| self.package.look_inside(BYTES_LOOKED_AT, &file::detect_format))
    }

    /// Returns whether there are files that [`Export::format`] does not look at, or that were refused.
    pub(super) fn has_more(&self) -> bool {
        self.package.has_unopened() || !self.package.refused().is_empty()
    }

    /// Returns a phrase for the export's part of which imports read nothing, such as web pages, if it has one.
    pub(super) fn part_left_out(&self) -> Option<&'static str> {
        self.package.files().iter().find_map(|file| part_left_out(&file.name))
    }

    /// Returns a phrase for what the export is a part of, or for the program that wrote it, if imports read nothing
    /// of it.
    pub(super) fn described_part(&mut self) -> Option<String> {
        let mut tally = ImportTally::default();
        let part = self.part_left_out().map(str::to_owned);
        part.or_else(|| {
            self.read::<Error>(Branches::Shown, &mut tally, &|_| {}, &mut |_, _| Ok(())).err()?;
            tally.left_out.into_keys().find(|what| what.contains("not read yet"))
        })
    }

    /// Calls `sink` with each conversation, in the order of the export.
    ///
    /// Calls `progress` with the number of bytes after each read. An error of `sink` ends the reading.
    pub fn read<E: From<Error>>(
        &mut self,
        branches: Branches,
        tally: &mut ImportTally,
        progress: &dyn Fn(u64),
        sink: &mut dyn FnMut(&'static Format, Conversation) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = tally.conversations;
        let before_messages = tally.messages;
        let before_left_out = tally.left_out.clone();
        let mut is_recognised = false;
        let mut is_blank = false;
        let mut first_failure = None;
        let mut unreadable = Vec::new();
        tally.damaged.extend(self.package.refused().iter().cloned());
        let names = self.names();
        let root = self.path.clone();
        let mut attached = self.package.has_others().then(|| AttachedTexts::new(&self.path));
        let sink: &mut dyn FnMut(&'static Format, Conversation) -> Result<(), E> =
            &mut |format, mut conversation| {
                if let Some(name) = names.get(&conversation.id).filter(|_| format.is_transcript()) {
                    conversation.title = Some(name.clone());
                }
                if let Some(attached) = &mut attached {
                    attached.add_to(&mut conversation);
                }
                let file = conversation.origin.as_ref().and_then(|origin| origin.file.as_ref());
                if let Some(file) = file.filter(|_| format.is_transcript()).cloned() {
                    let path = if root.is_dir() { root.join(file) } else { root.clone() };
                    for message in &mut conversation.messages {
                        results::complete_beside(message, &path);
                        if let Some(attached) = &mut attached {
                            results::complete(message, &mut |name| attached.named(name));
                        }
                    }
                }
                sink(format, conversation)
            };
        for at in 0..self.package.files().len() {
            let file = &self.package.files()[at];
            let name = file.name.clone();
            let is_empty = file.size == 0;
            if beside::is_no_transcript(&self.path_of(&name)) {
                continue;
            }
            match self.package.checked_reader(at) {
                Ok(inner) => {
                    let reader = CountingReader { inner, progress, read: 0 };
                    let contents = ExportFile::new(&name, branches, tally).read(reader, sink)?;
                    is_recognised |= contents == FileContents::Conversations;
                    is_blank |= contents == FileContents::Blank;
                    let is_other =
                        matches!(contents, FileContents::Foreign | FileContents::Nothing);
                    if let Some(what) = part_left_out(&name).filter(|_| is_other) {
                        tally.leave_out(what.to_owned(), OTHER_FILES, 1);
                    } else if contents == FileContents::Foreign {
                        if is_named_as_conversations(&name) {
                            let what =
                                "this part of the export has no conversation that can be read";
                            unreadable.push(format!("{name}: {what}; ask for the export again"));
                        } else if !is_empty && is_named_as_transcript(Path::new(&name)) {
                            let what = format!("{name}: not a transcript that we know");
                            tally.leave_out(what, OTHER_FILES, 1);
                        } else if !is_empty && self.path.is_dir() {
                            let what = format!("{name}: no chats that we know are in it");
                            tally.leave_out(what, OTHER_FILES, 1);
                        }
                    }
                }
                Err(reason) => {
                    tally.damaged.push(format!("{name}: {reason}"));
                    first_failure.get_or_insert(reason);
                }
            }
        }
        // The page of an export has the conversations that are in its JSON too.
        for file in self.package.others_with_chats(!is_recognised) {
            if let Ok(inner) = self.package.open_found(&file) {
                let reader = CountingReader { inner, progress, read: 0 };
                let contents = ExportFile::new(&file.name, branches, tally).read(reader, sink)?;
                is_recognised |= contents == FileContents::Conversations;
            }
        }
        if let Some(attached) = &attached {
            attached.count(tally);
        }
        let is_only_blank = is_blank && !is_recognised && first_failure.is_none();
        if tally.conversations > before || is_only_blank {
            tally.damaged.extend(unreadable);
            if tally.messages == before_messages && !is_only_blank {
                let read = counted(tally.conversations - before, "conversation");
                tally
                    .damaged
                    .push(format!("{}: nothing is said in {read} of it", self.path.display()));
            }
            return Ok(());
        }
        let path = self.path.clone();
        let error = if path.join(WRITTEN_BY_EXPORT).exists() {
            let found = "notes that `verbatim export` wrote, whose chats Verbatim has";
            Error::NotAnExport { path, found: found.to_owned() }
        } else if is_recognised {
            let of_file = tally.skipped.last().map(|skipped| self.path_of(&skipped.file));
            let path = of_file.unwrap_or(path);
            let skipped = tally
                .skipped
                .last()
                .map(|it| format!("conversation {}: {}", it.ordinal, it.reason));
            let reason = skipped.or_else(|| tally.damaged.last().cloned());
            let reason = reason.unwrap_or_else(|| "nothing is said in it".to_owned());
            Error::NothingReadable { path, reason }
        } else if let Some(reason) = first_failure {
            Error::NothingReadable { path, reason }
        } else if let Some(error) = downloads::only_links(&path) {
            error
        } else {
            let found = match tally.left_out.keys().find(|it| !before_left_out.contains_key(*it)) {
                Some(what) => what.clone(),
                None => self.package.describe(),
            };
            Error::NotAnExport { path, found }
        };
        Err(error.into())
    }

    /// Returns the path of a file of the export, if the export is not a zip.
    fn path_of(&self, name: &str) -> PathBuf {
        if self.path.is_dir() { self.path.join(name) } else { self.path.clone() }
    }

    /// Returns the names of the conversations that programs keep beside the transcripts, by id.
    fn names(&self) -> HashMap<String, String> {
        let files = self.package.files().iter().map(|file| self.path_of(&file.name));
        let files: BTreeSet<PathBuf> = files.filter_map(|file| beside::names_file(&file)).collect();
        let mut names = HashMap::new();
        files.iter().for_each(|file| beside::add_names(file, &mut names));
        names
    }

    /// Returns the attached file whose name begins with an id from a message.
    pub fn attached(&mut self, id: &str) -> Option<FoundFile> {
        self.package.find(id)
    }

    /// Opens a file that was found; the error is a sentence about it.
    pub fn open_attached(&mut self, file: &FoundFile) -> Result<Box<dyn Read + '_>, String> {
        self.package.open_found(file)
    }
}
