//! Walks the archives for transcripts. Links are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io, time::SystemTime};

use super::report::ArchiveReport;
use crate::config::{Config, without_links};
use verbatim_base::files;
use verbatim_chats::db::header::Stamp;
use verbatim_chats::import::beside;
use verbatim_chats::import::compressed::{self, is_named_as_transcript};

const MAX_FOLDER_DEPTH: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TranscriptPath {
    pub(super) path: PathBuf,
    /// The path as text, in the form that the store has.
    pub(super) name: String,
    /// The identity, the size and the times of the last write and the last change of the file.
    pub(super) stamp: String,
    pub(super) size: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ArchiveWalk {
    pub(super) transcripts: Vec<TranscriptPath>,
    /// The files with the names of conversations, each with its stamp.
    pub(super) names: BTreeMap<PathBuf, String>,
    /// The folders of the archives. A walk finds out nothing about files outside them.
    roots: Vec<PathBuf>,
    /// Folders that could not be read. Known files below them do not count as gone.
    unread: Vec<PathBuf>,
}

/// Walks the archives. Adds failures to the report.
pub(super) fn walk_archives(config: &Config, report: &mut ArchiveReport) -> ArchiveWalk {
    let mut walk = ArchiveWalk { roots: config.archive_roots(), ..ArchiveWalk::default() };
    let mut roots: Vec<PathBuf> = Vec::new();
    for archive in config.archives_now() {
        match dunce::canonicalize(archive) {
            Ok(root) => roots.push(root),
            // If the folder of an archive is gone, its transcripts are gone too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                report.fail(archive, &"there is no such folder to look for transcripts in");
            }
            Err(error) => {
                report.fail(archive, &error);
                walk.unread.push(without_links(archive));
            }
        }
    }
    roots.sort();
    roots.dedup();
    // An archive inside another archive is walked only once.
    let outer = roots.clone();
    roots.retain(|root| !outer.iter().any(|it| it != root && root.starts_with(it)));
    for root in roots {
        walk.visit(&root, MAX_FOLDER_DEPTH, report);
    }
    let names: BTreeSet<PathBuf> =
        walk.transcripts.iter().filter_map(|found| beside::names_file(&found.path)).collect();
    for file in names {
        if let Ok(stamp) = Stamp::from_path(&file) {
            let stamp = TranscriptPath::new(&file, "", &stamp).stamp;
            walk.names.insert(file, stamp);
        }
    }
    walk
}

impl ArchiveWalk {
    /// Adds the transcript at a path, or the transcripts below it.
    fn visit(&mut self, path: &Path, depth: usize, report: &mut ArchiveReport) {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return self.fail(path, &error, report),
        };
        if metadata.is_file() && is_named_as_transcript(path) {
            // While a file is being compressed, both files exist, and only the plain file is complete.
            if compressed::plain(path).is_some_and(|plain| plain.exists()) {
                return;
            }
            match path.to_str() {
                Some(name) => match Stamp::from_path(path) {
                    Ok(stamp) => self.transcripts.push(TranscriptPath::new(path, name, &stamp)),
                    Err(error) => self.fail(path, &error, report),
                },
                None => report.fail(path, &"its name is not Unicode"),
            }
        } else if metadata.is_dir() && depth == 0 {
            report.fail(path, &"folders that are nested so deeply are not read");
        } else if metadata.is_dir() {
            let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            let entries = match entries {
                Ok(entries) => entries,
                Err(error) => return self.fail(path, &error, report),
            };
            for entry in entries {
                let is_wanted = match entry.file_type() {
                    // A link is not followed, but if it leads to nothing, transcripts are missing.
                    Ok(kind) if kind.is_symlink() => {
                        is_named_as_transcript(&entry.path())
                            && files::check(&entry.path()).is_err()
                    }
                    Ok(kind) if kind.is_file() => {
                        is_named_as_transcript(&entry.path())
                            && !beside::is_no_transcript(&entry.path())
                    }
                    _ => beside::may_have_transcripts(&entry.path()),
                };
                if is_wanted {
                    self.visit(&entry.path(), depth - 1, report);
                }
            }
        } else if is_named_as_transcript(path)
            && let Err(error) = files::check(path)
        {
            self.fail(path, &error, report);
        }
    }

    /// Reports that a path cannot be read, unless the path no longer exists.
    fn fail(&mut self, path: &Path, error: &io::Error, report: &mut ArchiveReport) {
        if error.kind() != io::ErrorKind::NotFound {
            report.fail(path, error);
            self.unread.push(path.to_owned());
        }
    }

    /// Returns whether a path is below the folder of an archive.
    pub(super) fn is_in_archives(&self, name: &str) -> bool {
        self.roots.iter().any(|root| Path::new(name).starts_with(root))
    }

    /// Returns whether a known file that was not found is missing: it does not exist, or it is compressed
    /// and the plain file exists. Nothing is known about files below folders that could not be read.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        let path = Path::new(name);
        if self.unread.iter().any(|folder| path.starts_with(folder)) {
            return false;
        }
        match fs::symlink_metadata(path) {
            Ok(_) => compressed::plain(path).is_some_and(|plain| plain.exists()),
            Err(error) => {
                matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            }
        }
    }
}

impl TranscriptPath {
    pub(super) fn new(path: &Path, name: &str, stamp: &Stamp) -> TranscriptPath {
        let [device, number] = stamp.identity.numbers();
        let since = stamp.modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let modified = since.map_or(0, |since| since.as_nanos());
        // A program may write to a file and restore its time of the last write, but not this time.
        let (seconds, nanos) = stamp.changed();
        TranscriptPath {
            path: path.to_owned(),
            name: name.to_owned(),
            // The identity comes first, because it stays when the file is renamed.
            stamp: format!("{device:x}.{number:x} {} {modified} {seconds}.{nanos}", stamp.size),
            size: stamp.size,
        }
    }

    /// Opens the text of the transcript.
    pub(super) fn open_unpacked(&self) -> io::Result<Box<dyn io::Read>> {
        let file = files::open(&self.path)?;
        Ok(match compressed::plain(&self.path) {
            Some(_) => Box::new(compressed::unpacked(file)),
            None => Box::new(file),
        })
    }
}
