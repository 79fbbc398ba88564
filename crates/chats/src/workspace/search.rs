//! Searches a workspace. The newest dates come first, and older dates follow until the limit is reached.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read},
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::{WalkBuilder, WalkState};

use super::{
    Error, Folder, FoundLines, Line, WorkspaceQuestion,
    best::Best,
    expression::Expression,
    layout::{Contents, Rank, WorkspaceLayout},
    line,
};
use verbatim_base::{call::Stop, lock::lock};

/// The number of dates in the first step. Each further step has `STEP` times as many dates. If the
/// newest dates have enough lines, older dates are never read. If nothing matches, the two further
/// walks through the upper folders take about a hundredth of the search time.
const STEP: usize = 16;

/// The greatest depth of a date below the folder that is searched.
const DATE_DEPTH: usize = 3;

const MAX_THREADS: usize = 12;

/// The maximum number of files that are reported as unreadable.
const MAX_UNREAD: usize = 20;

/// The longest line in bytes. A line is matched in one piece, which a stop cannot interrupt.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The limits of all matching: a fixed time, and the least speed in bytes per second. Simple
/// expressions match a thousand times as fast as this speed; the slowest match 10 kB per second.
const MATCH_TIME: Duration = Duration::from_secs(1);
const LEAST_SPEED: u64 = 100_000;

/// The size in bytes of the first read of a file; the next reads double while matching is fast.
const FIRST_READ: usize = 4 << 10;

/// The longest time of a fast match. Only the time above this counts as slow, and after a fast match the next
/// read is twice as long.
const FAST: Duration = Duration::from_millis(2);

/// Returns the first matching lines.
pub fn search(
    folders: &[Folder],
    question: &WorkspaceQuestion,
    stop: &Stop,
) -> Result<FoundLines, Error> {
    let expression = Expression::new(&question.pattern, stop)?;
    let search = Search {
        question,
        matcher: &expression.matcher,
        stop,
        speed: Speed::default(),
        best: Mutex::new(Best::new(question.limit)),
        unread: Mutex::new(Vec::new()),
    };
    let mut dates = search.dates(folders, question.kind.as_deref());
    let has_conversations =
        !dates.is_empty() || question.kind.is_some() && !search.dates(folders, None).is_empty();
    if let Some(wanted) = &question.dates {
        dates.retain(|date| wanted.contain(date));
    }
    stop.check(Error::Stopped)?;
    // The newest date comes first, and a month comes after its days.
    let dates: Vec<String> = dates.into_iter().rev().collect();
    let mut rest = &dates[..];
    let mut step = if question.limit == usize::MAX { rest.len() } else { STEP };
    while !rest.is_empty() && !search.is_full() {
        let (newest, older) = rest.split_at(step.min(rest.len()));
        let newest: BTreeSet<&str> = newest.iter().map(String::as_str).collect();
        for folder in folders {
            search.search_dates(folder, &newest);
        }
        stop.check(Error::Stopped)?;
        if search.speed.is_too_slow() {
            return Err(Error::Slow);
        }
        rest = older;
        step *= STEP;
    }
    let lines = search.best.into_inner().unwrap_or_else(PoisonError::into_inner).into_lines();
    let unread = search.unread.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(FoundLines { lines, unread, has_conversations })
}

/// Returns a walk through a folder as `rg` does it.
fn walk(folder: &Folder) -> WalkBuilder {
    let mut walk = WalkBuilder::new(&folder.path);
    walk.add_custom_ignore_filename(".rgignore");
    walk
}

struct Search<'a> {
    question: &'a WorkspaceQuestion,
    matcher: &'a RegexMatcher,
    stop: &'a Stop,
    speed: Speed,
    best: Mutex<Best>,
    unread: Mutex<Vec<String>>,
}

impl Search<'_> {
    fn layout<'a>(&'a self, folder: &'a Folder) -> WorkspaceLayout<'a> {
        WorkspaceLayout::new(folder, self.question.kind.as_deref())
    }

    fn is_full(&self) -> bool {
        lock(&self.best).is_full()
    }

    /// Returns the dates of conversations of one type, or of all types.
    fn dates(&self, folders: &[Folder], kind: Option<&str>) -> BTreeSet<String> {
        let mut dates = BTreeSet::new();
        let mut open: Vec<_> = folders.iter().map(|folder| (folder, folder.path.clone())).collect();
        while let Some((folder, path)) = open.pop() {
            match WorkspaceLayout::new(folder, kind).contents(&path) {
                Contents::Nothing => {}
                Contents::Conversations(date) => {
                    dates.insert(date.to_owned());
                }
                Contents::Dates if self.stop.requested() => {}
                Contents::Dates => match std::fs::read_dir(&path) {
                    Ok(entries) => {
                        let is_folder = |entry: &std::fs::DirEntry| {
                            entry.file_type().is_ok_and(|kind| kind.is_dir())
                        };
                        let folders = entries.flatten().filter(is_folder);
                        open.extend(folders.map(|entry| (folder, entry.path())));
                    }
                    Err(error) => self.fail(&path, &error),
                },
            }
        }
        dates
    }

    /// Searches the conversations of some dates.
    fn search_dates(&self, folder: &Folder, dates: &BTreeSet<&str>) {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let mut walk = walk(folder);
        walk.threads(threads);
        let (own, kind) = (folder.clone(), self.question.kind.clone());
        let wanted: BTreeSet<String> = dates.iter().map(|date| (*date).to_owned()).collect();
        walk.filter_entry(move |entry| {
            // Deeper folders belong to a date that was accepted; files are checked later.
            if entry.depth() > DATE_DEPTH || !entry.file_type().is_some_and(|kind| kind.is_dir()) {
                return true;
            }
            match WorkspaceLayout::new(&own, kind.as_deref()).contents(entry.path()) {
                Contents::Dates => true,
                Contents::Conversations(date) => wanted.contains(date),
                Contents::Nothing => false,
            }
        });
        walk.build_parallel().run(|| {
            let mut searcher = SearcherBuilder::new()
                .line_number(true)
                .heap_limit(Some(MAX_LINE_BYTES))
                .binary_detection(BinaryDetection::quit(b'\0'))
                .build();
            let layout = self.layout(folder);
            Box::new(move |entry| {
                if self.stop.requested() || self.speed.is_too_slow() {
                    return WalkState::Quit;
                }
                match entry {
                    Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                        self.file(&layout, entry.path(), &mut searcher);
                    }
                    Ok(_) => {}
                    Err(error) => self.note(error.to_string()),
                }
                WalkState::Continue
            })
        });
    }

    /// Searches a file if it could still add a line to the result.
    fn file(&self, layout: &WorkspaceLayout<'_>, path: &Path, searcher: &mut Searcher) {
        let Some(place) = layout.locate(path) else { return };
        let rank = Rank::new(place, path);
        if !lock(&self.best).wants(&rank) {
            return;
        }
        let mut lines = Vec::new();
        let sink = LineSink { search: self, found: &mut lines };
        let searched = File::open(path).and_then(|file| {
            searcher.search_reader(self.matcher, StoppableFile::new(file, self), sink)
        });
        if let Err(error) = searched
            && !self.stop.requested()
            && !self.speed.is_too_slow()
        {
            // The searcher has no error kind for a line that is too long, so the error's text is checked.
            match error.to_string().contains("allocation limit") {
                true => self.note(format!(
                    "{}: searched only up to a line that is longer than {} MB",
                    path.display(),
                    MAX_LINE_BYTES >> 20
                )),
                false => self.fail(path, &error),
            }
        }
        if lines.is_empty() {
            return;
        }
        let line = |(number, text)| Line {
            conversation: place.conversation.to_owned(),
            path: path.to_owned(),
            number,
            text,
        };
        let lines = lines.into_iter().map(line).collect();
        lock(&self.best).add(rank, lines);
    }

    fn fail(&self, path: &Path, error: &io::Error) {
        self.note(format!("{}: {error}", path.display()));
    }

    fn note(&self, message: String) {
        let mut unread = lock(&self.unread);
        if unread.len() < MAX_UNREAD && !unread.contains(&message) {
            unread.push(message);
        }
    }
}

struct LineSink<'s, 'a> {
    search: &'s Search<'a>,
    found: &'s mut Vec<(u64, String)>,
}

impl Sink for LineSink<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let bytes = hit.bytes();
        let at = self.search.matcher.find(bytes).ok().flatten().map_or(0, |hit| hit.start());
        self.found.push((hit.line_number().unwrap_or_default(), line::excerpt(bytes, at)));
        Ok(self.found.len() < self.search.question.limit)
    }
}

struct StoppableFile<'a> {
    file: File,
    search: &'a Search<'a>,
    /// The number of bytes of the last read, and the time at which the read ended.
    last: Option<(usize, Instant)>,
    /// The maximum number of bytes of the next read.
    size: usize,
}

impl<'a> StoppableFile<'a> {
    fn new(file: File, search: &'a Search<'a>) -> StoppableFile<'a> {
        StoppableFile { file, search, last: None, size: FIRST_READ }
    }
}

impl Read for StoppableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some((bytes, end)) = self.last {
            let took = end.elapsed();
            self.search.speed.add(bytes, took);
            self.size = if took < FAST { self.size.saturating_mul(2) } else { FIRST_READ };
        }
        if self.search.stop.requested() || self.search.speed.is_too_slow() {
            return Err(io::Error::other("stopped"));
        }
        let most = buffer.len().min(self.size);
        let read = self.file.read(&mut buffer[..most])?;
        self.last = Some((read, Instant::now()));
        Ok(read)
    }
}

/// The time of slow matching in all threads, and the number of matched bytes.
#[derive(Debug, Default)]
struct Speed {
    micros: AtomicU64,
    bytes: AtomicU64,
}

impl Speed {
    fn add(&self, bytes: usize, took: Duration) {
        let slow = took.saturating_sub(FAST).as_micros();
        self.micros.fetch_add(u64::try_from(slow).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn is_too_slow(&self) -> bool {
        let taken = Duration::from_micros(self.micros.load(Ordering::Relaxed));
        let bytes = self.bytes.load(Ordering::Relaxed);
        taken > MATCH_TIME + Duration::from_micros(bytes * 1_000_000 / LEAST_SPEED)
    }
}
