//! Reads transcripts of coding agents: one file per session, one record per line.
//!
//! A transcript grows while it is read, so reading may stop at any byte and continue later.
//! [`TranscriptReader::save`] saves the state between two readings, which is small.
//!
//! Invariant: reading a transcript in two steps, cut at any byte, gives the same events as in one step.
//! Invariant: memory holds at most one line of a transcript.
//! Invariant: no event and no title has an escape sequence of a terminal.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use memchr::{memchr, memchr_iter};
use serde::{Deserialize, Serialize};

use super::fields::time;
use super::format::{Format, RecordReader};
use super::head::{self, Head, ending_uuid, is_uuid};
pub use super::head::{HELPERS_LEFT_OUT, TranscriptEvent, project};
use super::json::{ObjectFields, Raw};
use super::{beside, compressed, foreign, formats};
use verbatim_base::model::{Message, Origin};
use verbatim_text::screen;

const CHUNK: u64 = 256 << 10;

/// The maximum length of a line in bytes. Real lines stay below 50 MB, even with pictures.
const MAX_LINE_BYTES: usize = 128 << 20;

/// If this many records at the beginning of a file have no known format, the file is not a transcript.
const FOREIGN_AFTER_LINES: u32 = 50;

/// The maximum length of an early record that is kept; the type of a longer one is only counted.
const MAX_EARLY_BYTES: usize = 64 << 10;

/// A receiver of events. It returns whether it accepts a message.
pub type EventSink<'a, E> =
    &'a mut dyn FnMut(&TranscriptReader, TranscriptEvent) -> Result<bool, E>;

/// A reader of one transcript, in one step or in several.
#[derive(Debug)]
pub struct TranscriptReader {
    position: Position,
    format: TranscriptKind,
}

/// The place up to which a transcript was read, and the head of the transcript.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Position {
    stem: String,
    /// The number of lines so far that are not blank.
    lines: u32,
    /// Whether the last line had no end when it was read, so that the line may continue.
    in_line: bool,
    malformed: u64,
    /// The number of records with bytes that are not UTF-8.
    #[serde(default)]
    not_utf8: u64,
    /// What the file is, if another program wrote it whose records are known.
    #[serde(default)]
    foreign: Option<String>,
    /// The records before the first one of a known shape, with the numbers of their lines. The reader gets them
    /// when the file's session is known.
    #[serde(default)]
    early: Vec<(u32, String)>,
    head: Head,
}

/// The kind of file that is read.
#[derive(Debug)]
enum TranscriptKind {
    /// No record was recognised so far.
    Unknown,
    Known(&'static Format, Box<dyn RecordReader>),
    /// The first lines are not records of a transcript.
    Foreign,
}

#[derive(Serialize, Deserialize)]
struct SavedReader {
    position: Position,
    is_foreign: bool,
    /// The name of the format and the state of its reader.
    format: Option<(String, String)>,
}

impl TranscriptReader {
    /// Makes a reader at the beginning of a transcript. Uses only the name of `file`.
    pub fn new(file: &Path) -> TranscriptReader {
        let position = Position { stem: compressed::stem(file), ..Position::default() };
        TranscriptReader { position, format: TranscriptKind::Unknown }
    }

    /// Restores a reader that was saved; returns `None` if the state is none of a reader.
    pub fn restore(saved: &str) -> Option<TranscriptReader> {
        let saved: SavedReader = serde_json::from_str(saved).ok()?;
        let format = match saved.format {
            Some((name, state)) => {
                let format = formats::find_by_name(&name)?;
                TranscriptKind::Known(format, (format.transcript()?.restore)(&state)?)
            }
            None if saved.is_foreign => TranscriptKind::Foreign,
            None => TranscriptKind::Unknown,
        };
        Some(TranscriptReader { position: saved.position, format })
    }

    /// Returns the state as text, for [`TranscriptReader::restore`].
    pub fn save(&self) -> String {
        let saved = SavedReader {
            position: self.position.clone(),
            is_foreign: self.is_foreign(),
            format: match &self.format {
                TranscriptKind::Known(format, reader) => {
                    Some((format.name.to_owned(), reader.save()))
                }
                TranscriptKind::Unknown | TranscriptKind::Foreign => None,
            },
        };
        serde_json::to_string(&saved).expect("it holds nothing but text, numbers and lists")
    }

    /// Returns the format of the transcript; `None` before a record was recognised.
    pub fn format(&self) -> Option<&'static Format> {
        match self.format {
            TranscriptKind::Unknown | TranscriptKind::Foreign => None,
            TranscriptKind::Known(format, _) => Some(format),
        }
    }

    /// Returns whether the file turned out not to be a transcript.
    pub fn is_foreign(&self) -> bool {
        matches!(self.format, TranscriptKind::Foreign)
    }

    /// Returns whether the file has records, but none of a known shape so far.
    pub fn is_unrecognised(&self) -> bool {
        self.format().is_none() && u64::from(self.position.lines) > self.position.malformed
    }

    /// Returns what the file is, if it turned out not to be a transcript and its program is known.
    pub fn foreign(&self) -> Option<String> {
        self.position.foreign.clone()
    }

    /// Returns the number of lines so far that are not blank.
    pub fn lines(&self) -> u32 {
        self.position.lines
    }

    /// Returns how many lines could not be read.
    pub fn malformed(&self) -> u64 {
        self.position.malformed
    }

    /// Returns how many records have bytes that are not UTF-8. In their texts, U+FFFD stands for such bytes.
    pub fn not_utf8(&self) -> u64 {
        self.position.not_utf8
    }

    /// Returns the unknown kinds of content with text, with their counts.
    pub fn unknown(&self) -> &BTreeMap<String, u64> {
        &self.position.head.unknown
    }

    /// Returns phrases for the content that was left out on purpose, with the counts.
    pub fn left_out(&self) -> &BTreeMap<String, u64> {
        &self.position.head.left_out
    }

    /// Returns how many helpers the transcript has: agents that a program started for itself, which are left out.
    pub fn helpers(&self) -> u64 {
        self.left_out().get(HELPERS_LEFT_OUT).copied().unwrap_or_default()
    }

    /// Returns the id of the conversation. The id no longer changes after the first message.
    pub fn id(&self) -> String {
        let Position { head, stem, .. } = &self.position;
        let transcript = self.format().and_then(Format::transcript);
        transcript.map_or_else(|| stem.clone(), |transcript| (transcript.id)(head, stem))
    }

    /// Returns whether the transcript, or the name of its file, names its session, and no other one.
    pub fn names_session(&self) -> bool {
        let Position { head, stem, .. } = &self.position;
        head.session.is_some() && !head.has_later_session || ending_uuid(stem).is_some()
    }

    /// Returns the messages that come at the end if the transcript has no more records.
    pub fn at_end(&self) -> Vec<Message> {
        match &self.format {
            TranscriptKind::Unknown | TranscriptKind::Foreign => Vec::new(),
            TranscriptKind::Known(_, reader) => {
                let mut messages = reader.at_end(&self.position.head, self.position.lines);
                messages.iter_mut().for_each(|message| head::clean(&mut message.content));
                messages
            }
        }
    }

    /// Returns the title: by the user, else by a program, else from the first prompt.
    pub fn title(&self) -> Option<Cow<'_, str>> {
        self.position.head.title().map(|title| screen::written(title))
    }

    /// Removes the titles read so far, because titles are texts of the transcript.
    pub fn forget_titles(&mut self) {
        self.position.head.forget_titles();
    }

    /// Returns the model that answered last; `None` if no record read so far names one.
    pub fn model(&self) -> Option<&str> {
        self.position.head.model.as_deref()
    }

    /// Returns the parent conversation, if the transcript names one. The transcript may repeat its beginning.
    pub fn parent(&self) -> Option<&str> {
        self.position.head.parent.as_deref()
    }

    /// Returns the origin of the conversation. `file` is the path of the transcript.
    pub fn origin(&self, file: &Path) -> Origin {
        let head = &self.position.head;
        let transcript = self.format().and_then(Format::transcript);
        let has_project_folders = transcript.is_some_and(|it| it.has_project_folders);
        let project = if beside::is_of_cowork(file) {
            Some(beside::COWORK.to_owned())
        } else if let Some(project) = head.folder.as_deref().and_then(project) {
            Some(project.to_owned())
        } else if has_project_folders {
            let mut folders = file.ancestors().skip(1).filter_map(Path::file_name);
            let folder =
                folders.find(|name| *name != "subagents" && !is_uuid(&name.to_string_lossy()));
            folder.map(|name| name.to_string_lossy().into_owned())
        } else {
            None
        };
        Origin {
            file: Some(file.to_string_lossy().into_owned()),
            // An agent belongs to the session that started it.
            session: head.spawner.clone().or(head.session.clone()).or_else(|| Some(self.id())),
            project,
            folder: head.folder.clone(),
            later_folders: head.later_folders.clone(),
            branch: head.branch.clone(),
            gone: None,
            continues: None,
        }
    }

    /// Reads the next bytes of the transcript; returns how many were read.
    ///
    /// If the last line has no end, reads the line if it is a complete record, and otherwise leaves it for
    /// later. `sink` returns whether it accepts a message. If `sink` rejects a message as a repeat, it gets
    /// no more text and no files of this message.
    pub fn read<E: From<io::Error>>(
        &mut self,
        mut input: &mut dyn Read,
        sink: EventSink<'_, E>,
    ) -> Result<u64, E> {
        let mut buffer = Vec::new();
        let mut taken = 0;
        let mut searched = 0;
        // Bytes of a line that is too long. They count as read when the end of the line is found.
        let mut dropped = 0;
        loop {
            let read = (&mut input).take(CHUNK).read_to_end(&mut buffer);
            let mut at = 0;
            while let Some(end) = memchr(b'\n', &buffer[searched..]) {
                let line = at..searched + end;
                at = line.end + 1;
                searched = at;
                let is_too_long = dropped > 0;
                taken += std::mem::take(&mut dropped);
                if is_too_long {
                    self.count_malformed();
                    self.position.in_line = false;
                } else {
                    self.line(&buffer[line], sink)?;
                }
            }
            // A failure is returned only after the lines before it were read.
            let read = read?;
            buffer.drain(..at);
            searched = buffer.len();
            taken += at as u64;
            if read == 0 {
                break;
            }
            if dropped > 0 || buffer.len() > MAX_LINE_BYTES {
                dropped += buffer.len() as u64;
                buffer.clear();
                searched = 0;
            }
        }
        Ok(if dropped > 0 { taken } else { taken + self.unfinished(&buffer, sink)? })
    }

    /// Reads a complete line, or the rest of a line whose beginning has been read. A record that is an item of
    /// an object counts as a line.
    pub(super) fn line<E>(&mut self, line: &[u8], sink: EventSink<'_, E>) -> Result<(), E> {
        let mut rest = trimmed(line);
        while !rest.is_empty() {
            match Raw::split(rest).filter(|(record, _)| record.is_object()) {
                Some((record, after)) => {
                    self.record(record, sink)?;
                    rest = trimmed(after);
                }
                None => {
                    self.count_malformed();
                    break;
                }
            }
        }
        self.position.in_line = false;
        Ok(())
    }

    /// Reads the complete records of an unfinished line; returns the number of their bytes.
    fn unfinished<E>(&mut self, line: &[u8], sink: EventSink<'_, E>) -> Result<u64, E> {
        let mut taken = 0;
        loop {
            let rest = trimmed(&line[taken..]);
            match Raw::split(rest).filter(|(record, _)| record.is_object()) {
                Some((record, after)) => {
                    let start = line.len() - trimmed_start(&line[taken..]).len();
                    taken = start + (rest.len() - after.len());
                    self.record(record, sink)?;
                }
                None => return Ok(taken as u64),
            }
        }
    }

    /// Reads one record. A line may have several records.
    fn record<E>(&mut self, record: Raw<'_>, sink: EventSink<'_, E>) -> Result<(), E> {
        self.count_line();
        self.position.not_utf8 += u64::from(str::from_utf8(record.bytes()).is_err());
        let Ok(fields) = record.fields() else {
            self.position.malformed += 1;
            return Ok(());
        };
        if matches!(self.format, TranscriptKind::Unknown) {
            if let Some(what) = foreign::describe_record(&fields) {
                self.position.foreign = Some(what);
                self.format = TranscriptKind::Foreign;
            } else if let Some((format, transcript)) = formats::detect_record(&fields) {
                self.format = TranscriptKind::Known(format, (transcript.reader)());
            } else if self.position.lines >= FOREIGN_AFTER_LINES {
                self.format = TranscriptKind::Foreign;
            } else {
                self.keep_early(record, &fields);
            }
            if self.is_foreign() {
                self.position.early.clear();
            }
        }
        let TranscriptKind::Known(_, reader) = &mut self.format else { return Ok(()) };
        let Position { head, lines, malformed, early, .. } = &mut self.position;
        if let Some(time) = fields.get("timestamp").and_then(time) {
            head.time = Some(time);
        }
        let Ok(events) = reader.record(&fields, *lines, head) else {
            *malformed += 1;
            return Ok(());
        };
        let mut all = Vec::new();
        if head.session.is_some() || !events.is_empty() {
            let now = head.time;
            for (line, record) in std::mem::take(early) {
                let fields = Raw::new(record.as_bytes()).fields();
                if let Some(time) = fields.as_ref().ok().and_then(|it| time(it.get("timestamp")?)) {
                    head.time = Some(time);
                }
                match fields.and_then(|fields| reader.record(&fields, line, head)) {
                    Ok(events) => all.extend(events),
                    Err(_) => *malformed += 1,
                }
                head.time = now;
            }
        }
        all.extend(events);
        let mut rejected = None;
        for mut event in all {
            event.clean();
            let id = match &event {
                TranscriptEvent::Message(message) => Some(message.id.clone()),
                TranscriptEvent::File { message, .. } if rejected.as_ref() == Some(message) => {
                    continue;
                }
                TranscriptEvent::More { .. } | TranscriptEvent::File { .. } => None,
            };
            if !sink(self, event)?
                && let (Some(id), TranscriptKind::Known(_, reader)) = (id, &mut self.format)
            {
                reader.skip(&id);
                rejected = Some(id);
            }
        }
        Ok(())
    }

    fn keep_early(&mut self, record: Raw<'_>, fields: &ObjectFields<'_>) {
        let Position { early, head, lines, .. } = &mut self.position;
        if early.len() < FOREIGN_AFTER_LINES as usize && record.bytes().len() <= MAX_EARLY_BYTES {
            early.push((*lines, String::from_utf8_lossy(record.bytes()).into_owned()));
        } else {
            head.unknown(&fields.text("type").unwrap_or_default());
        }
    }

    fn count_line(&mut self) {
        if !self.position.in_line {
            self.position.lines = self.position.lines.saturating_add(1);
            self.position.in_line = true;
        }
    }

    fn count_malformed(&mut self) {
        self.count_line();
        self.position.malformed += 1;
    }
}

/// The number of bytes that usually tell whether a file is a transcript.
pub(super) const ENOUGH: u64 = 256 << 10;

/// Reads the beginning of a file into `start`, at least `least` bytes. If the file has the name of a
/// transcript, reads on until its format is known, because the first record may be long.
pub(super) fn read_start(
    input: &mut dyn Read,
    file: &str,
    least: u64,
    start: &mut Vec<u8>,
) -> io::Result<()> {
    let mut read = input.take(least).read_to_end(start)?;
    let is_named = compressed::is_named_as_transcript(Path::new(file));
    while is_named && read > 0 && start.len() < MAX_LINE_BYTES && is_undecided(start) {
        // Doubles the number of bytes, so that a long line is parsed only a few times.
        read = (&mut *input).take(start.len() as u64).read_to_end(start)?;
    }
    Ok(())
}

/// Returns whether more bytes are needed to decide if a file is a transcript.
fn is_undecided(start: &[u8]) -> bool {
    let lines = memchr_iter(b'\n', start).take(FOREIGN_AFTER_LINES as usize).count();
    lines < FOREIGN_AFTER_LINES as usize && first_record(start).is_none()
}

/// Returns whether a file has the name of a transcript, and begins with lines that are too long to decide what
/// it is.
pub(super) fn is_too_long(file: &str, start: &[u8]) -> bool {
    compressed::is_named_as_transcript(Path::new(file))
        && start.len() >= MAX_LINE_BYTES
        && is_undecided(start)
}

/// Returns whether a file that begins with these bytes is a transcript.
pub(super) fn is_transcript(start: &[u8]) -> bool {
    format_of(start).is_some()
}

/// Returns the format of the transcript that begins with these bytes, if it is one.
pub(super) fn format_of(start: &[u8]) -> Option<&'static Format> {
    first_record(start)?.ok()
}

/// Returns what a file is that begins with these bytes, if it is a transcript of another program.
pub(super) fn foreign_transcript(start: &[u8]) -> Option<String> {
    first_record(start)?.err()
}

/// Returns the format of the first record that is known, or what the file is if another program writes such
/// records.
fn first_record(start: &[u8]) -> Option<Result<&'static Format, String>> {
    let lines = start.split(|byte| *byte == b'\n').map(trimmed).filter(|line| !line.is_empty());
    for line in lines.take(FOREIGN_AFTER_LINES as usize) {
        let (fields, _) = Raw::new(line).fields_until_damage();
        if formats::of_conversation(&fields).is_some() {
            return None;
        }
        if let Some(what) = foreign::describe_record(&fields) {
            return Some(Err(what));
        }
        if let Some((format, _)) = formats::detect_record(&fields) {
            return Some(Ok(format));
        }
    }
    None
}

/// Returns a line without a byte order mark, and without the blanks and NULs (from a crash) at its ends.
fn trimmed(line: &[u8]) -> &[u8] {
    let line = trimmed_start(line);
    let end = line.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
    &line[..end]
}

fn trimmed_start(mut line: &[u8]) -> &[u8] {
    loop {
        let start = line.iter().position(|byte| !is_blank(*byte)).unwrap_or(line.len());
        line = &line[start..];
        match line.strip_prefix(b"\xEF\xBB\xBF") {
            Some(rest) => line = rest,
            None => return line,
        }
    }
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_by_file_and_session() {
        let uuid = "01234567-89ab-cdef-0123-456789abcdef";
        let id = |file: &str, line: &str| {
            let mut reader = TranscriptReader::new(Path::new(file));
            reader
                .read::<io::Error>(&mut line.as_bytes(), &mut |_, _| Ok(true))
                .expect("memory can be read");
            reader.id()
        };
        let user = |rest: &str| {
            format!(r#"{{"type":"user","uuid":"u","message":{{"content":"x"}}{rest}}}"#)
        };
        let session = r#","sessionId":"s""#;
        assert_eq!(id(&format!("{uuid}.jsonl"), &user(session)), uuid);
        assert_eq!(id("renamed.jsonl", &user(session)), "s");
        assert_eq!(id("renamed.jsonl", &user("")), "renamed");
        let agent = r#","sessionId":"s","isSidechain":true,"agentId":"a1""#;
        assert_eq!(id("agent-a1.jsonl", &user(agent)), "s/agent-a1");
        let rollout = format!("rollout-2025-09-24T19-22-20-{uuid}.jsonl");
        let message = r#"{"type":"message","role":"user","content":[]}"#;
        assert_eq!(id(&rollout, message), uuid);
        let header = r#"{"id":"h","timestamp":"2025-05-01T00:00:00Z","instructions":null}"#;
        assert_eq!(id(&rollout, header), "h");
    }

    #[test]
    fn a_fork_by_reference_names_what_it_continues() {
        let parent = |more: &str| {
            let line = format!(
                r#"{{"timestamp":"2026-08-20T10:00:00Z","ordinal":0,"type":"session_meta","payload":{{"id":"own","history_mode":"paginated"{more}}}}}"#
            );
            let mut reader = TranscriptReader::new(Path::new("rollout.jsonl"));
            reader
                .read::<io::Error>(&mut line.as_bytes(), &mut |_, _| Ok(true))
                .expect("memory can be read");
            reader.parent().map(str::to_owned)
        };
        assert_eq!(parent(""), None);
        let base = |id: &str| format!(r#","history_base":{{"thread_id":"{id}","ordinal":4}}"#);
        assert_eq!(parent(&base("first")).as_deref(), Some("first"));
        assert_eq!(parent(&base("own")), None);
        let both = format!(r#","forked_from_id":"thread"{}"#, base("first"));
        assert_eq!(parent(&both).as_deref(), Some("thread"));
    }
}
