//! Mirrors the transcripts of coding agents into a canonical database, as far as they have grown.
//!
//! Each file is read once; later only what was added to it. What changes a file otherwise (it is
//! shorter, another file, or not what it was where reading ended) has it read anew.
//!
//! Invariant: what is mirrored of a file, however often it grew, is what one reading of it tells.
//! Invariant: nothing outside the archives is read, wherever links lead.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, TryLockError},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use memchr::memmem;

use super::{Config, Engine, Error};
use crate::{
    db::{
        header::Stamp,
        mirror::{self, About, Mirror, MirroredFile},
    },
    import::transcript::{Piece, Reader},
    model::{self, Message, Stop},
};

/// Bytes read before what came of them is committed.
const BATCH: u64 = 16 << 20;

/// How deep an archive is looked through.
const DEPTH: usize = 12;

/// Bytes at either end of what was read by which it is known again.
const ENDS: usize = 4 << 10;

/// Bytes in which the time that a transcript begins at is looked for.
const START: u64 = 64 << 10;

/// Failures that are told.
const TOLD: usize = 20;

/// What mirroring did.
#[derive(Clone, Debug, Default)]
pub struct ArchiveReport {
    /// Transcripts there are.
    pub files: u64,
    /// Those that were read, from the start or further on.
    pub read: u64,
    /// Those that are gone.
    pub removed: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Messages added.
    pub messages: u64,
    /// Lines that could not be read, in what was read.
    pub malformed: u64,
    /// What could not be read, a sentence each; the first few.
    pub failures: Vec<String>,
    /// How many could not be read.
    pub failed: u64,
    /// Whether another process is at it, so that nothing was done here.
    pub elsewhere: bool,
    /// How long it took.
    pub took: Duration,
}

/// How far mirroring is.
#[derive(Clone, Copy, Debug)]
pub struct ArchiveProgress {
    /// Bytes read.
    pub done: u64,
    /// Bytes to read in all.
    pub total: u64,
}

impl ArchiveReport {
    fn fail(&mut self, path: &Path, reason: &dyn std::fmt::Display) {
        self.failed += 1;
        if self.failures.len() < TOLD {
            self.failures.push(format!("{}: {reason}", path.display()));
        }
    }
}

/// A transcript as it lies there.
#[derive(Debug)]
struct Found {
    path: PathBuf,
    name: String,
    stamp: String,
    size: u64,
}

impl Config {
    /// Returns the archives as one text, which names the database they are mirrored into.
    pub(super) fn archive_name(&self) -> String {
        let mut names: Vec<_> = self.archives.iter().map(|path| path.to_string_lossy()).collect();
        names.sort();
        names.dedup();
        names.join("\n")
    }
}

impl Engine {
    /// Brings the mirror of the transcripts up to date; where nothing changed, that takes a look at
    /// each file's size and times.
    ///
    /// One process does it at a time; another one that comes meanwhile is told so.
    pub fn mirror_archives(
        &self,
        stop: &Stop,
        progress: &dyn Fn(ArchiveProgress),
    ) -> Result<ArchiveReport, Error> {
        self.mirror_within(None, stop, progress)
    }

    /// Does as [`Engine::mirror_archives`] does, looking at the files that changed alone, and below
    /// the folders that did.
    pub fn mirror_changed(&self, changed: &[PathBuf], stop: &Stop) -> Result<ArchiveReport, Error> {
        self.mirror_within(Some(changed), stop, &|_| {})
    }

    fn mirror_within(
        &self,
        changed: Option<&[PathBuf]>,
        stop: &Stop,
        progress: &dyn Fn(ArchiveProgress),
    ) -> Result<ArchiveReport, Error> {
        let begun = Instant::now();
        let mut report = ArchiveReport::default();
        let database = self.config().archive_database();
        let archives = &self.config().archives;
        if archives.is_empty() {
            return Ok(report);
        }
        let walk = walk(archives, changed, &mut report);
        // Nothing there, and nothing was: no files of ours in anybody's folder for that.
        if walk.found.is_empty() && !database.is_file() {
            return Ok(report);
        }
        let Some(_lock) = lock(&database)? else {
            report.elsewhere = true;
            return Ok(report);
        };
        let failures = (report.failures.clone(), report.failed);
        for is_last in [false, true] {
            (report.failures, report.failed) = failures.clone();
            let mirror = Mirror::open(&database)?;
            let pass = Pass { mirror: &mirror, stop, report: &mut report };
            match pass.run(&walk, progress).and_then(|()| Ok(mirror.close()?)) {
                Ok(()) => break,
                // It holds nothing that the files do not: made anew, once.
                Err(Error::Mirror(error)) if error.is_damage() && !is_last => {
                    Mirror::remove(&database)?;
                }
                Err(error) => return Err(error),
            }
        }
        report.took = begun.elapsed();
        Ok(report)
    }
}

/// Takes the lock that one writer of the mirror holds; `None` where another process does.
fn lock(database: &Path) -> Result<Option<File>, Error> {
    let path = database.with_extension("lock");
    let failed = |source| Error::Mirror(mirror::Error::Io { path: path.clone(), source });
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let file =
        File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// What a walk through the archives found.
#[derive(Debug, Default)]
struct Walk {
    found: Vec<Found>,
    /// Files and folders that were looked for: what is known below them and was not found is gone.
    /// `None` for all.
    within: Option<Vec<PathBuf>>,
    /// Folders that could not be read: what is known below them stays.
    unread: Vec<PathBuf>,
}

fn walk(archives: &[PathBuf], changed: Option<&[PathBuf]>, report: &mut ArchiveReport) -> Walk {
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
    fn is_gone(&self, name: &str) -> bool {
        let path = Path::new(name);
        let is_below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        self.within.as_deref().is_none_or(is_below) && !is_below(&self.unread)
    }
}

fn is_named_as_transcript(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

impl Found {
    fn of(path: &Path, name: &str, metadata: &fs::Metadata) -> Found {
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
    fn key(&self) -> (bool, String, u64, &Path) {
        let begun = begun(&self.path);
        (begun.is_none(), begun.unwrap_or_default(), self.size, &self.path)
    }
}

/// Returns the first time that a file names, as it writes it.
fn begun(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(START).read_to_end(&mut start).ok()?;
    let name: &[u8] = b"\"timestamp\":";
    let after = memmem::find(&start, name)? + name.len();
    let value = start[after..].trim_ascii_start().strip_prefix(b"\"")?;
    let end = value.iter().take(40).position(|byte| *byte == b'"')?;
    Some(String::from_utf8_lossy(&value[..end]).into_owned())
}

/// One pass over the files that changed.
struct Pass<'a> {
    mirror: &'a Mirror,
    stop: &'a Stop,
    report: &'a mut ArchiveReport,
}

impl Pass<'_> {
    fn run(mut self, walk: &Walk, progress: &dyn Fn(ArchiveProgress)) -> Result<(), Error> {
        let known = self.mirror.files()?;
        let found: HashMap<&str, &Found> =
            walk.found.iter().map(|found| (found.name.as_str(), found)).collect();
        self.report.files = found.len() as u64;
        let mut again: Vec<i64> = Vec::new();
        let mut gone: Vec<&MirroredFile> = known
            .values()
            .filter(|file| !found.contains_key(file.path.as_str()) && walk.is_gone(&file.path))
            .collect();
        gone.sort_by_key(|file| file.id);
        for file in gone {
            self.mirror.begin()?;
            again.extend(self.mirror.forget(file.id)?);
            self.report.removed += 1;
        }
        let mut changed: Vec<(&Found, Option<&MirroredFile>)> = walk
            .found
            .iter()
            .map(|found| (found, known.get(&found.name)))
            .filter(|(found, known)| known.is_none_or(|known| known.stamp != found.stamp))
            .collect();
        // Those that are known have their place already.
        changed.sort_by_cached_key(|(found, known)| known.is_none().then(|| found.key()));
        let size = |(found, known): &(&Found, Option<&MirroredFile>)| {
            found.size.saturating_sub(known.map_or(0, |known| known.taken))
        };
        let mut total: u64 = changed.iter().map(size).sum();
        let mut pending = 0;
        for (found, known) in changed {
            if self.stop.requested() {
                // What was read so far stays.
                break;
            }
            self.read(
                found,
                known.map(|known| known.id),
                &mut again,
                &mut pending,
                progress,
                total,
            )?;
        }
        // What others left out because of files that are gone now.
        let mut done = HashSet::new();
        while let Some(id) = again.pop() {
            let file = if done.insert(id) { self.mirror.file(id)? } else { None };
            let found = file.and_then(|file| {
                let metadata = fs::symlink_metadata(&file.path).ok()?;
                Some(Found::of(Path::new(&file.path), &file.path, &metadata))
            });
            self.mirror.begin()?;
            again.extend(self.mirror.forget(id)?);
            if let Some(found) = found {
                total += found.size;
                self.read(&found, None, &mut again, &mut pending, progress, total)?;
            }
        }
        self.mirror.commit()?;
        Ok(())
    }

    /// Reads what is new of a file.
    fn read(
        &mut self,
        found: &Found,
        known: Option<i64>,
        again: &mut Vec<i64>,
        pending: &mut u64,
        progress: &dyn Fn(ArchiveProgress),
        total: u64,
    ) -> Result<(), Error> {
        let mut input = match File::open(&found.path) {
            Ok(input) => input,
            // It went away since; the next look says so.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                self.report.fail(&found.path, &error);
                return Ok(());
            }
        };
        self.mirror.begin()?;
        let known = match known {
            Some(id) => self.mirror.file(id)?,
            None => None,
        };
        let mut file = match known {
            Some(file) => match goes_on(&mut input, &file, found.size) {
                true => file,
                false => {
                    again.extend(self.mirror.forget(file.id)?);
                    MirroredFile::default()
                }
            },
            None => MirroredFile::default(),
        };
        file.path.clone_from(&found.name);
        let restored = Some(&file.reader).filter(|saved| !saved.is_empty());
        let mut reader = match restored.and_then(|saved| Reader::restore(saved)) {
            Some(reader) => reader,
            None => Reader::new(&found.path),
        };
        if file.id == 0 {
            // Its number, for what is noted of it while it is read.
            self.mirror.save(&mut file)?;
        }
        self.report.read += 1;
        let malformed = reader.malformed();
        let mut batch = BATCH;
        loop {
            if let Err(error) = input.seek(SeekFrom::Start(file.taken)) {
                self.report.fail(&found.path, &error);
                break;
            }
            let mut slice = (&mut input).take(batch);
            let mut sink = Sink { mirror: self.mirror, file: &mut file, messages: 0, last: None };
            let result =
                reader.read::<Error>(&mut slice, &mut |reader, piece| sink.add(reader, piece));
            let last = sink.last;
            self.report.messages += sink.messages;
            let is_end = slice.limit() > 0 || reader.is_foreign();
            let taken = match result {
                Ok(taken) => taken,
                Err(Error::Transcript(error)) => {
                    self.report.fail(&found.path, &error);
                    break;
                }
                Err(error) => return Err(error),
            };
            file.taken += taken;
            self.report.bytes += taken;
            *pending += taken;
            progress(ArchiveProgress { done: self.report.bytes.min(total), total });
            // The stamp that was taken before reading: what came since makes another one.
            file.stamp = if is_end { found.stamp.clone() } else { "unfinished".to_owned() };
            self.finish(&mut file, &reader, &mut input, last)?;
            if is_end || self.stop.requested() {
                break;
            }
            if taken == 0 {
                // A line longer than that.
                batch *= 2;
            }
            self.mirror.commit()?;
            self.mirror.begin()?;
            *pending = 0;
        }
        self.report.malformed += reader.malformed() - malformed;
        if *pending > BATCH {
            self.mirror.commit()?;
            *pending = 0;
        }
        Ok(())
    }

    /// Notes where reading a file stands, and what is known of its conversation.
    fn finish(
        &self,
        file: &mut MirroredFile,
        reader: &Reader,
        input: &mut File,
        last: Option<model::Instant>,
    ) -> Result<(), Error> {
        if let (Some(conversation), Some(kind)) = (&file.conversation, reader.kind()) {
            let origin = reader.origin(Path::new(&file.path));
            let (title, model) = (reader.title(), reader.model());
            let about = About { source: kind.name(), title, model, time: last, origin: &origin };
            self.mirror.conversation(conversation, about)?;
        }
        file.ends = ends(input, file.taken).unwrap_or_default();
        file.reader = reader.save();
        self.mirror.save(file)?;
        Ok(())
    }
}

/// Takes the pieces of one file.
struct Sink<'a> {
    mirror: &'a Mirror,
    file: &'a mut MirroredFile,
    messages: u64,
    /// The time of the last message that has one.
    last: Option<model::Instant>,
}

impl Sink<'_> {
    fn add(&mut self, reader: &Reader, piece: Piece) -> Result<bool, Error> {
        let message = match piece {
            Piece::Message(message) => message,
            Piece::More { id, text } => {
                if let Some(conversation) = &self.file.conversation {
                    self.mirror.more(conversation, &id, &text)?;
                }
                return Ok(true);
            }
        };
        if self.is_told(reader, &message)? {
            return Ok(false);
        }
        let conversation = match &self.file.conversation {
            Some(conversation) => conversation,
            None => {
                let conversation = self.own_id(reader)?;
                let origin = reader.origin(Path::new(&self.file.path));
                let kind = reader.kind().map_or("", |kind| kind.name());
                let time = message.create_time;
                let about = About { source: kind, title: None, model: None, time, origin: &origin };
                self.mirror.conversation(&conversation, about)?;
                self.file.conversation.insert(conversation)
            }
        };
        self.mirror.message(conversation, &message)?;
        self.messages += 1;
        self.last = message.create_time.or(self.last);
        Ok(true)
    }

    /// Returns whether a message was told before, by this file or another.
    fn is_told(&mut self, reader: &Reader, message: &Message) -> Result<bool, Error> {
        if !message.id.starts_with('/') {
            let holder = self.mirror.holder(message)?;
            if let Some(holder) = &holder
                && self.file.conversation.as_ref() != Some(holder)
            {
                self.mirror.note_repeat(self.file.id, holder)?;
            }
            return Ok(holder.is_some());
        }
        if self.file.conversation.is_some() {
            return Ok(false);
        }
        // Without ids only a beginning can be known to be another's.
        if self.file.parent.is_none() {
            let id = reader.id();
            let parent = match self.mirror.has(&id)? {
                true => Some(id),
                false => reader.parent().map(str::to_owned),
            };
            let Some(parent) = parent else { return Ok(false) };
            self.file.parent = Some(parent);
            self.file.repeated = Some(0);
        }
        let (Some(parent), Some(place)) = (&self.file.parent, self.file.repeated) else {
            return Ok(false);
        };
        if !self.mirror.is_at(parent, place, message)? {
            self.file.repeated = None;
            return Ok(false);
        }
        self.mirror.note_repeat(self.file.id, parent)?;
        self.file.repeated = Some(place + 1);
        Ok(true)
    }

    /// Returns an id for the file's conversation that no other one has.
    fn own_id(&self, reader: &Reader) -> Result<String, Error> {
        let id = reader.id();
        if !self.mirror.has(&id)? {
            return Ok(id);
        }
        // The same whenever the files are read: by the file's name, and only then by a number.
        let stem = Path::new(&self.file.path).file_stem().unwrap_or_default().to_string_lossy();
        let mut other = format!("{id}/{stem}");
        let mut number = 1;
        while self.mirror.has(&other)? {
            number += 1;
            other = format!("{id}/{stem}#{number}");
        }
        Ok(other)
    }
}

/// Returns whether a file goes on where it was left: one that is no longer than it was and still
/// changed was written anew.
fn goes_on(input: &mut File, file: &MirroredFile, size: u64) -> bool {
    size > file.taken
        && Reader::restore(&file.reader).is_some()
        && ends(input, file.taken).is_ok_and(|ends| ends == file.ends)
}

/// Returns what the first and the last of the bytes before a place are, as a text to compare.
fn ends(input: &mut File, taken: u64) -> io::Result<String> {
    let mut hashes = Vec::new();
    for start in [0, taken.saturating_sub(ENDS as u64)] {
        input.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::with_capacity(ENDS);
        let length = taken.min(ENDS as u64);
        input.take(length).read_to_end(&mut bytes)?;
        hashes.push(format!("{:x}", fingerprint(&bytes)));
    }
    Ok(hashes.join(" "))
}

/// FNV-1a, which does not change with the version of a library.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
