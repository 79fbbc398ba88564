//! Searches a workspace. The files of the newest conversations come first, and older ones follow until the limit
//! is reached.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::WalkBuilder;

use super::layout::{ConversationFile, WorkspacePlace};
use super::{Error, Folder, FoundLines, Line, WorkspaceQuestion};
use verbatim_base::{call::Stop, files, lock::lock};
use verbatim_text::excerpt::{self, Room, characters};
use verbatim_text::expression::{COMPILING, ExpressionError, MAX_PROGRAM_BYTES, check_size};

const MAX_THREADS: usize = 12;

const MAX_UNREAD: usize = 20;

/// The longest line in bytes. A line is matched in one piece, which a stop cannot interrupt.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The memory limit of each thread for the cached states of the lazy DFA.
const MAX_STATES_BYTES: usize = 1 << 20;

/// The limits of all matching: a fixed time, and the least speed in bytes per second. Simple
/// expressions match a thousand times as fast as this speed; the slowest match 10 kB per second.
const MATCH_TIME: Duration = Duration::from_secs(1);
const LEAST_SPEED: u64 = 100_000;

/// The size in bytes of a read, after which the limits are checked. The slowest expressions match it in half a
/// second.
const READ: usize = 4 << 10;

/// The time of matching a read that does not count as slow.
const FAST: Duration = Duration::from_millis(2);

/// The shown part of a line, in characters.
const ROOM: Room = Room { all: 1000, before: 200, is_filled: true, is_one_line: false };

/// Returns the first matching lines.
pub fn search(
    folders: &[Folder],
    question: &WorkspaceQuestion,
    stop: &Stop,
) -> Result<FoundLines, Error> {
    let matcher = compiled(&question.pattern)?;
    let mut found = FoundLines::default();
    let mut files = Vec::new();
    for folder in folders {
        add_files(folder, question, stop, &mut files, &mut found);
    }
    files.sort_unstable();
    let search = Search {
        question,
        matcher: &matcher,
        files: &files,
        stop,
        speed: Speed::default(),
        next_file: AtomicUsize::new(0),
        number_of_lines: AtomicUsize::new(0),
        lines: Mutex::default(),
        unread: Mutex::new(found.unread),
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    thread::scope(|scope| {
        for _ in 0..threads.min(files.len()) {
            scope.spawn(|| search.search_files());
        }
    });
    stop.check(Error::Stopped)?;
    if search.speed.is_too_slow() {
        return Err(Error::Slow);
    }
    let lines = search.lines.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.lines = lines.into_values().flatten().take(question.limit).collect();
    found.unread = search.unread.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(found)
}

/// Compiles an expression as `rg -i` does. Only one is compiled at a time, which limits the memory.
fn compiled(pattern: &str) -> Result<RegexMatcher, Error> {
    check_size(pattern).map_err(Error::from_expression)?;
    let _alone = lock(&COMPILING);
    RegexMatcherBuilder::new()
        .size_limit(MAX_PROGRAM_BYTES)
        .dfa_size_limit(MAX_STATES_BYTES)
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .case_insensitive(true)
        .line_terminator(Some(b'\n'))
        .dot_matches_new_line(false)
        .ban_byte(Some(b'\0'))
        .build(pattern)
        .map_err(|error| {
            let error = error.to_string();
            Error::from_expression(ExpressionError::from_compiler(
                pattern,
                &error,
                MAX_PROGRAM_BYTES,
            ))
        })
}

/// Adds the files of the wanted conversations in a folder, which is walked as `rg` does it.
fn add_files(
    folder: &Folder,
    question: &WorkspaceQuestion,
    stop: &Stop,
    files: &mut Vec<ConversationFile>,
    found: &mut FoundLines,
) {
    found.has_conversations |= matches!(folder.locate(&folder.path), WorkspacePlace::InDate(_));
    let has_dates = Arc::new(AtomicBool::new(false));
    let mut walk = WalkBuilder::new(&folder.path);
    walk.add_custom_ignore_filename(".rgignore").filter_entry({
        let has_dates = Arc::clone(&has_dates);
        let folder = folder.clone();
        let question = question.clone();
        move |entry| match folder.locate(entry.path()) {
            WorkspacePlace::AboveDates => true,
            WorkspacePlace::InDate(place) => {
                has_dates.store(true, Ordering::Relaxed);
                question.accepts(place)
            }
            WorkspacePlace::Outside => false,
        }
    });
    for entry in walk.build() {
        if stop.requested() {
            break;
        }
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                if let WorkspacePlace::InDate(place) = folder.locate(entry.path()) {
                    files.extend(place.file(entry.path()));
                }
            }
            Ok(_) => {}
            Err(error) => add_unread(&mut found.unread, error.to_string()),
        }
    }
    found.has_conversations |= has_dates.load(Ordering::Relaxed);
}

fn add_unread(unread: &mut Vec<String>, message: String) {
    if unread.len() < MAX_UNREAD && !unread.contains(&message) {
        unread.push(message);
    }
}

struct Search<'a> {
    question: &'a WorkspaceQuestion,
    matcher: &'a RegexMatcher,
    files: &'a [ConversationFile],
    stop: &'a Stop,
    speed: Speed,
    /// The place in `files` of the file that is searched next.
    next_file: AtomicUsize,
    number_of_lines: AtomicUsize,
    /// The lines of each file, by its place in `files`.
    lines: Mutex<BTreeMap<usize, Vec<Line>>>,
    unread: Mutex<Vec<String>>,
}

impl Search<'_> {
    /// Searches files in their order until there are enough lines. The files that other threads search at the
    /// end come before all that were not begun.
    fn search_files(&self) {
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .heap_limit(Some(MAX_LINE_BYTES))
            .binary_detection(BinaryDetection::quit(b'\0'))
            .build();
        while self.number_of_lines.load(Ordering::Relaxed) < self.question.limit
            && !self.has_to_end()
        {
            let at = self.next_file.fetch_add(1, Ordering::Relaxed);
            let Some(file) = self.files.get(at) else { return };
            let lines = self.search_file(file, &mut searcher);
            if !lines.is_empty() {
                self.number_of_lines.fetch_add(lines.len(), Ordering::Relaxed);
                lock(&self.lines).insert(at, lines);
            }
        }
    }

    fn search_file(&self, file: &ConversationFile, searcher: &mut Searcher) -> Vec<Line> {
        let mut lines = Vec::new();
        let sink = LineSink { search: self, file, lines: &mut lines };
        let searched = files::open(&file.path).and_then(|file| {
            searcher.search_reader(
                self.matcher,
                StoppableFile { file, search: self, last: None },
                sink,
            )
        });
        if let Err(error) = searched
            && !self.has_to_end()
        {
            let path = file.path.display();
            // The searcher has no error kind for a line that is too long, so the error's text is checked.
            let message = if error.to_string().contains("allocation limit") {
                let most = MAX_LINE_BYTES >> 20;
                format!("{path}: searched only up to a line that is longer than {most} MB")
            } else {
                format!("{path}: {error}")
            };
            add_unread(&mut lock(&self.unread), message);
        }
        lines
    }

    fn has_to_end(&self) -> bool {
        self.stop.requested() || self.speed.is_too_slow()
    }
}

struct LineSink<'s, 'a> {
    search: &'s Search<'a>,
    file: &'s ConversationFile,
    lines: &'s mut Vec<Line>,
}

impl Sink for LineSink<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let bytes = hit.bytes();
        let at = self.search.matcher.find(bytes).ok().flatten().map_or(0, |hit| hit.start());
        self.lines.push(Line {
            conversation: self.file.conversation.clone(),
            path: self.file.path.clone(),
            number: hit.line_number().unwrap_or_default(),
            text: excerpt(bytes, at),
        });
        Ok(self.lines.len() < self.search.question.limit)
    }
}

/// Returns a line without white space at its ends, cut around the match that begins at `at`.
fn excerpt(line: &[u8], at: usize) -> String {
    // In a line that is not UTF-8, an empty match may lie inside a character.
    let before = String::from_utf8_lossy(&line[..at]);
    let whole = format!("{before}{}", String::from_utf8_lossy(&line[at..]));
    let text = whole.trim_start();
    let at = before.len().saturating_sub(whole.len() - text.len());
    let text = text.trim_end();
    let at = at.min(text.len());
    excerpt::text_around(text, Some(at..at), ROOM, characters)
}

struct StoppableFile<'a> {
    file: File,
    search: &'a Search<'a>,
    /// The number of bytes of the last read, and the time at which the read ended.
    last: Option<(usize, Instant)>,
}

impl Read for StoppableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some((bytes, end)) = self.last {
            self.search.speed.add(bytes, end.elapsed());
        }
        if self.search.has_to_end() {
            return Err(io::Error::other("stopped"));
        }
        let most = buffer.len().min(READ);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_are_whole() {
        assert_eq!(excerpt(b"  a red thing\r\n", 4), "a red thing");
        assert_eq!(excerpt(b"", 0), "");
        assert_eq!(excerpt(b"\xff x", 2), "\u{FFFD} x");
        assert_eq!(excerpt(b"\xbfQu\xe9?", 0), "\u{FFFD}Qu\u{FFFD}?", "a match of nothing");
        assert_eq!(excerpt("é".repeat(ROOM.all).as_bytes(), 0), "é".repeat(ROOM.all));
        let end = format!("{}red", "x".repeat(900));
        assert_eq!(excerpt(end.as_bytes(), 900), end);
    }

    #[test]
    fn long_lines_are_cut_around_the_match() {
        for filler in ["x", "é", "語", "😀"] {
            let line = format!("{}needle{}\n", filler.repeat(5000), filler.repeat(5000));
            let text = excerpt(line.as_bytes(), filler.len() * 5000);
            let expected = format!(
                "…{}needle{}…",
                filler.repeat(ROOM.before),
                filler.repeat(ROOM.all - ROOM.before - "…needle…".chars().count())
            );
            assert_eq!(text, expected, "{filler}");
        }
        let start = format!("  needle {}", "y".repeat(5000));
        let text = excerpt(start.as_bytes(), 2);
        assert!(text.starts_with("needle") && text.ends_with("y…"), "{text}");
        let end = format!("{} needle  ", "y ".repeat(5000));
        let text = excerpt(end.as_bytes(), 10_001);
        assert!(text.starts_with('…') && text.ends_with("needle"), "{text}");
    }
}
