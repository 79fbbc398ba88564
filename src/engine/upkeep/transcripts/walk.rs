//! Looks through archives for transcripts. Links are not followed.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    time::SystemTime,
};

use memchr::memmem;

use super::ArchiveReport;
use crate::{
    db::header::Stamp,
    import::compressed::{self, is_named_as_transcript},
};

/// How deep an archive is looked through.
const DEPTH: usize = 12;

/// Bytes in which the time that a transcript begins at is looked for.
const START: u64 = 64 << 10;

/// A transcript as it lies there.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) stamp: String,
    pub(crate) size: u64,
}

/// What a walk through the archives found.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) found: Vec<Found>,
    /// Files and folders that were looked for: what is known below them and was not found is gone.
    /// `None` for all.
    within: Option<Vec<PathBuf>>,
    /// Folders that could not be read: what is known below them stays.
    unread: Vec<PathBuf>,
}

pub(crate) fn walk(
    archives: &[PathBuf],
    changed: Option<&[PathBuf]>,
    report: &mut ArchiveReport,
) -> Walk {
    let mut walk = Walk::default();
    let mut roots: Vec<PathBuf> = Vec::new();
    for archive in archives {
        match archive.canonicalize() {
            Ok(root) => roots.push(root),
            // Without its folder nothing of it is there any more.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                report.fail(archive, &"there is no such folder to look for transcripts in");
            }
            Err(error) => {
                report.fail(archive, &error);
                walk.unread.push(archive.clone());
            }
        }
    }
    roots.sort();
    roots.dedup();
    // One within another is looked through with it.
    let outer = roots.clone();
    roots.retain(|root| !outer.iter().any(|it| it != root && root.starts_with(it)));
    let Some(changed) = changed else {
        for root in roots {
            walk.look(&root, DEPTH, report);
        }
        return walk;
    };
    let mut within: Vec<PathBuf> = Vec::new();
    for path in changed {
        // A file that is gone has no path of its own any more, but its folder may have one.
        let real = path.canonicalize().or_else(|_| {
            let folder = path.parent().unwrap_or(path).canonicalize()?;
            Ok::<_, io::Error>(folder.join(path.file_name().unwrap_or_default()))
        });
        let real = real.unwrap_or_else(|_| path.clone());
        let is_link = path.symlink_metadata().is_ok_and(|it| it.is_symlink());
        if !is_link && roots.iter().any(|root| real.starts_with(root)) {
            within.push(real);
        }
    }
    within.sort();
    within.dedup();
    let mut looked: Option<&PathBuf> = None;
    for path in &within {
        if !looked.is_some_and(|looked| path.starts_with(looked)) {
            walk.look(path, DEPTH, report);
            looked = Some(path);
        }
    }
    walk.within = Some(within);
    walk
}

impl Walk {
    /// Adds the transcripts at or below a path. Links are not followed.
    fn look(&mut self, path: &Path, depth: usize, report: &mut ArchiveReport) {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                report.fail(path, &error);
                self.unread.push(path.to_owned());
                return;
            }
        };
        if metadata.is_file() && is_named_as_transcript(path) {
            // While one becomes the other, the plain one is whole.
            if compressed::plain(path).is_some_and(|plain| plain.exists()) {
                return;
            }
            match path.to_str() {
                Some(name) => self.found.push(Found::of(path, name, &metadata)),
                None => report.fail(path, &"its name is not Unicode"),
            }
        } else if metadata.is_dir() && depth > 0 {
            let entries =
                fs::read_dir(path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
            match entries {
                Ok(entries) => {
                    for entry in entries {
                        let is_worth_a_look = match entry.file_type() {
                            Ok(kind) if kind.is_symlink() => false,
                            Ok(kind) if kind.is_file() => is_named_as_transcript(&entry.path()),
                            _ => true,
                        };
                        if is_worth_a_look {
                            self.look(&entry.path(), depth - 1, report);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    report.fail(path, &error);
                    self.unread.push(path.to_owned());
                }
            }
        }
    }

    /// Returns whether a file that is known and was not found is gone.
    pub(crate) fn is_gone(&self, name: &str) -> bool {
        let path = Path::new(name);
        let is_below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        self.within.as_deref().is_none_or(is_below) && !is_below(&self.unread)
    }
}

impl Found {
    pub(crate) fn of(path: &Path, name: &str, metadata: &fs::Metadata) -> Found {
        let stamp = Stamp::of(metadata);
        let [device, number] = stamp.identity.numbers();
        let since = stamp.modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let modified = since.map_or(0, |since| since.as_nanos());
        Found {
            path: path.to_owned(),
            name: name.to_owned(),
            stamp: format!("{device:x}.{number:x} {} {modified}", stamp.size),
            size: stamp.size,
        }
    }

    /// The order in which new files are read: what repeats comes after what it repeats, because it
    /// begins later or, where it begins with the same line, goes on longer.
    pub(crate) fn key(&self) -> (bool, String, u64, &Path) {
        let begun = begun(&self.path);
        (begun.is_none(), begun.unwrap_or_default(), self.size, &self.path)
    }
}

/// Opens a transcript to be read from its start.
fn opened(path: &Path) -> io::Result<Box<dyn Read>> {
    let file = File::open(path)?;
    Ok(match compressed::plain(path) {
        Some(_) => Box::new(compressed::unpacked(file)),
        None => Box::new(file),
    })
}

/// Returns the first time that a file names, as it writes it.
fn begun(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    opened(path).ok()?.take(START).read_to_end(&mut start).ok()?;
    let name: &[u8] = b"\"timestamp\":";
    let after = memmem::find(&start, name)? + name.len();
    let value = start[after..].trim_ascii_start().strip_prefix(b"\"")?;
    let end = value.iter().take(40).position(|byte| *byte == b'"')?;
    Some(String::from_utf8_lossy(&value[..end]).into_owned())
}
