//! Reads what is new in transcripts into their store.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use super::{
    ArchiveProgress, ArchiveReport, Error, fingerprint,
    sink::Sink,
    walk::{Found, Walk},
};
use crate::{
    db::transcripts::{About, TranscriptFile, TranscriptStore},
    import::{compressed, transcript::Reader},
    model::{self, Stop},
};

/// Bytes read before what came of them is committed.
const BATCH: u64 = 16 << 20;

/// Bytes at either end of what was read by which it is known again.
const ENDS: usize = 4 << 10;

/// One pass over the files that changed.
pub(crate) struct Pass<'a> {
    pub(crate) store: &'a TranscriptStore,
    pub(crate) stop: &'a Stop,
    pub(crate) report: &'a mut ArchiveReport,
}

impl Pass<'_> {
    pub(crate) fn run(
        mut self,
        walk: &Walk,
        progress: &dyn Fn(ArchiveProgress),
    ) -> Result<(), Error> {
        let known = self.store.files()?;
        let found: HashMap<&str, &Found> =
            walk.found.iter().map(|found| (found.name.as_str(), found)).collect();
        self.report.files = found.len() as u64;
        let mut again: Vec<i64> = Vec::new();
        let mut gone: Vec<&TranscriptFile> = known
            .values()
            .filter(|file| !found.contains_key(file.path.as_str()) && walk.is_gone(&file.path))
            .collect();
        gone.sort_by_key(|file| file.id);
        for file in gone {
            self.store.begin()?;
            again.extend(self.store.forget(file.id)?);
            self.report.removed += 1;
        }
        let mut changed: Vec<(&Found, Option<&TranscriptFile>)> = walk
            .found
            .iter()
            .map(|found| (found, known.get(&found.name)))
            .filter(|(found, known)| known.is_none_or(|known| known.stamp != found.stamp))
            .collect();
        // Those that are known have their place already.
        changed.sort_by_cached_key(|(found, known)| known.is_none().then(|| found.key()));
        let size = |(found, known): &(&Found, Option<&TranscriptFile>)| {
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
            let file = if done.insert(id) { self.store.file(id)? } else { None };
            let found = file.and_then(|file| {
                let metadata = fs::symlink_metadata(&file.path).ok()?;
                Some(Found::of(Path::new(&file.path), &file.path, &metadata))
            });
            self.store.begin()?;
            again.extend(self.store.forget(id)?);
            if let Some(found) = found {
                total += found.size;
                self.read(&found, None, &mut again, &mut pending, progress, total)?;
            }
        }
        self.store.commit()?;
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
        // Nobody writes it on, so it is read whole.
        let is_compressed = compressed::plain(&found.path).is_some();
        self.store.begin()?;
        let known = match known {
            Some(id) => self.store.file(id)?,
            None => None,
        };
        let mut file = match known {
            Some(file) => match !is_compressed && goes_on(&mut input, &file, found.size) {
                true => file,
                false => {
                    again.extend(self.store.forget(file.id)?);
                    TranscriptFile::default()
                }
            },
            None => TranscriptFile::default(),
        };
        file.path.clone_from(&found.name);
        let restored = Some(&file.reader).filter(|saved| !saved.is_empty());
        let mut reader = match restored.and_then(|saved| Reader::restore(saved)) {
            Some(reader) => reader,
            None => Reader::new(&found.path),
        };
        if file.id == 0 {
            // Its number, for what is noted of it while it is read.
            self.store.save(&mut file)?;
        }
        self.report.read += 1;
        let malformed = reader.malformed();
        let mut batch = BATCH;
        loop {
            if let Err(error) = input.seek(SeekFrom::Start(file.taken)) {
                self.report.fail(&found.path, &error);
                break;
            }
            let mut sink = Sink { store: self.store, file: &mut file, messages: 0, last: None };
            let mut add = |reader: &Reader, piece| sink.add(reader, piece);
            let (result, is_end) = if is_compressed {
                let mut lines = compressed::unpacked(&mut input);
                (reader.read::<Error>(&mut lines, &mut add).map(|_| found.size), true)
            } else {
                let mut slice = (&mut input).take(batch);
                let result = reader.read::<Error>(&mut slice, &mut add);
                (result, slice.limit() > 0 || reader.is_foreign())
            };
            let last = sink.last;
            self.report.messages += sink.messages;
            let taken = match result {
                Ok(taken) => taken,
                Err(Error::Transcript(error)) => {
                    self.report.fail(&found.path, &error);
                    if !is_compressed {
                        break;
                    }
                    // It stays damaged: read again when it is another.
                    found.size
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
            self.store.commit()?;
            self.store.begin()?;
            *pending = 0;
        }
        self.report.malformed += reader.malformed() - malformed;
        if *pending > BATCH {
            self.store.commit()?;
            *pending = 0;
        }
        Ok(())
    }

    /// Notes where reading a file stands, and what is known of its conversation.
    fn finish(
        &self,
        file: &mut TranscriptFile,
        reader: &Reader,
        input: &mut File,
        last: Option<model::Instant>,
    ) -> Result<(), Error> {
        if let (Some(conversation), Some(kind)) = (&file.conversation, reader.kind()) {
            let origin = reader.origin(Path::new(&file.path));
            let (title, model) = (reader.title(), reader.model());
            let about = About { source: kind.name(), title, model, time: last, origin: &origin };
            self.store.conversation(conversation, about)?;
        }
        file.ends = ends(input, file.taken).unwrap_or_default();
        file.reader = reader.save();
        self.store.save(file)?;
        Ok(())
    }
}

/// Returns whether a file goes on where it was left: one that is no longer than it was and still
/// changed was written anew.
fn goes_on(input: &mut File, file: &TranscriptFile, size: u64) -> bool {
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
