//! Transcripts of coding agents: a file a session, a record a line, read as far as they go.
//!
//! A transcript grows while it is read, so reading may stop anywhere and go on later: what it must
//! know of the lines before is small, and can be kept with [`Reader::save`].
//!
//! Invariant: reading a transcript in two goes, cut at any byte, tells what one go tells.
//! Invariant: holds no more of a transcript than one line.

mod head;

use std::{
    io::{self, Read},
    path::Path,
};

use memchr::memchr;
use serde::{Deserialize, Serialize};

use self::head::project;
pub(super) use self::head::{Head, first, last};
use super::{
    Kind, claude_code, codex, compressed,
    json::{Fields, Raw},
};
use crate::model::{Message, Origin};

/// How much is read at once.
const CHUNK: u64 = 256 << 10;

/// The longest line that is read. Real ones, with pictures in them, stay below 50 MB.
const LONGEST: usize = 128 << 20;

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message begins. An id that begins with `/` is to be put behind the conversation's.
    Message(Message),
    /// A message that began earlier goes on with this text.
    More {
        /// Its id.
        id: String,
        /// What is to be put behind the text there is.
        text: String,
    },
}

/// Reads one transcript, in one go or in several.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reader {
    /// The file's name without its ending.
    stem: String,
    /// Lines so far that are not blank.
    lines: u32,
    /// Whether the last of them may go on: it had no end when it was read.
    in_line: bool,
    malformed: u64,
    head: Head,
    format: Format,
}

/// What the reader of one format keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Format {
    /// No line has told yet.
    Open,
    ClaudeCode(claude_code::State),
    Codex(codex::State),
    /// The first lines are those of something else.
    Foreign,
}

/// Lines that may be unknown before a file is taken for something else.
const FOREIGN_AFTER: u32 = 50;

impl Reader {
    /// Returns a reader for the transcript in the file of that name.
    pub fn new(file: &Path) -> Reader {
        Reader {
            stem: compressed::stem(file),
            lines: 0,
            in_line: false,
            malformed: 0,
            head: Head::default(),
            format: Format::Open,
        }
    }

    /// Returns the reader that was saved; `None` if another version saved it.
    pub fn restore(saved: &str) -> Option<Reader> {
        serde_json::from_str(saved).ok()
    }

    /// Returns what [`Reader::restore`] makes a reader of that goes on where this one stands.
    pub fn save(&self) -> String {
        serde_json::to_string(self).expect("it holds nothing but text, numbers and lists")
    }

    /// Returns which kind of transcript it is, once a line has told.
    pub fn kind(&self) -> Option<Kind> {
        match self.format {
            Format::Open | Format::Foreign => None,
            Format::ClaudeCode(_) => Some(Kind::ClaudeCode),
            Format::Codex(_) => Some(Kind::Codex),
        }
    }

    /// Returns whether the file is none.
    pub fn is_foreign(&self) -> bool {
        matches!(self.format, Format::Foreign)
    }

    /// Returns how many lines there were that are not blank.
    pub fn lines(&self) -> u32 {
        self.lines
    }

    /// Returns how many of them could not be read.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Returns the id of the conversation; it does not change once a message has come.
    pub fn id(&self) -> String {
        let session = self.head.session.as_deref();
        match (&self.format, session, &self.head.agent) {
            (Format::Codex(_), Some(session), _) => session.to_owned(),
            (Format::Codex(_), None, _) => ending_uuid(&self.stem).unwrap_or(&self.stem).to_owned(),
            (_, Some(session), Some(agent)) => format!("{session}/agent-{agent}"),
            (_, Some(session), None) if ending_uuid(&self.stem) != Some(&self.stem) => {
                session.to_owned()
            }
            _ => self.stem.clone(),
        }
    }

    /// Returns the title: what the user called it, else what it was called, else the first prompt.
    pub fn title(&self) -> Option<&str> {
        self.head.title().map(String::as_str)
    }

    /// Returns the model that answered last.
    pub fn model(&self) -> Option<&str> {
        self.head.model.as_deref()
    }

    /// Returns the conversation whose beginning this one repeats, where it says so.
    pub fn parent(&self) -> Option<&str> {
        self.head.parent.as_deref()
    }

    /// Returns where it comes from, for the file at a path.
    pub fn origin(&self, file: &Path) -> Origin {
        let slug = || {
            let mut folders = file.ancestors().skip(1).filter_map(Path::file_name);
            let folder =
                folders.find(|name| *name != "subagents" && !is_uuid(&name.to_string_lossy()));
            folder.map(|name| name.to_string_lossy().into_owned())
        };
        let project = self.head.folder.as_deref().and_then(project);
        Origin {
            file: file.to_string_lossy().into_owned(),
            session: self.head.session.clone().or_else(|| Some(self.id())),
            project: project
                .map(str::to_owned)
                .or_else(|| slug().filter(|_| matches!(self.format, Format::ClaudeCode(_)))),
            folder: self.head.folder.clone(),
            branch: self.head.branch.clone(),
        }
    }

    /// Reads on from where it stands; returns how many bytes that took.
    ///
    /// `input` goes on behind the bytes taken so far. A last line that has no end is read if it is
    /// whole, else it is left for later. `sink` says of a message whether it is taken; one that is
    /// not, because it was there before, does not go on either.
    pub fn read<E: From<io::Error>>(
        &mut self,
        mut input: &mut dyn Read,
        sink: &mut dyn FnMut(&Reader, Event) -> Result<bool, E>,
    ) -> Result<u64, E> {
        let mut buffer = Vec::new();
        let mut taken = 0;
        let mut searched = 0;
        // Bytes of a line that is too long: they count once its end is found.
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
                    self.in_line = false;
                } else {
                    self.line(&buffer[line], sink)?;
                }
            }
            // What came before a failure has been read.
            let read = read?;
            buffer.drain(..at);
            searched = buffer.len();
            taken += at as u64;
            if read == 0 {
                break;
            }
            if dropped > 0 || buffer.len() > LONGEST {
                dropped += buffer.len() as u64;
                buffer.clear();
                searched = 0;
            }
        }
        Ok(if dropped > 0 { taken } else { taken + self.unfinished(&buffer, sink)? })
    }

    /// Reads records that come one by one; a record counts as a line.
    pub(super) fn record_alone<E>(
        &mut self,
        record: &[u8],
        sink: &mut dyn FnMut(&Reader, Event) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.line(record, sink)
    }

    /// Reads a line that has an end, or the rest of one whose beginning has been read.
    fn line<E>(
        &mut self,
        line: &[u8],
        sink: &mut dyn FnMut(&Reader, Event) -> Result<bool, E>,
    ) -> Result<(), E> {
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
        self.in_line = false;
        Ok(())
    }

    /// Reads what is whole of a line that has no end yet; returns how many bytes that is.
    fn unfinished<E>(
        &mut self,
        line: &[u8],
        sink: &mut dyn FnMut(&Reader, Event) -> Result<bool, E>,
    ) -> Result<u64, E> {
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

    /// Reads one record, which may be one of several in its line.
    fn record<E>(
        &mut self,
        record: Raw<'_>,
        sink: &mut dyn FnMut(&Reader, Event) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.count_line();
        let Ok(fields) = record.fields() else {
            self.malformed += 1;
            return Ok(());
        };
        if matches!(self.format, Format::Open) {
            match kind_of(&fields) {
                Some(Kind::ClaudeCode) => self.format = Format::ClaudeCode(Default::default()),
                Some(Kind::Codex) => self.format = Format::Codex(Default::default()),
                _ if self.lines >= FOREIGN_AFTER => self.format = Format::Foreign,
                _ => {}
            }
        }
        let (head, line) = (&mut self.head, self.lines);
        let pieces = match &mut self.format {
            Format::ClaudeCode(state) => claude_code::record(&fields, line, head, state),
            Format::Codex(state) => codex::record(&fields, line, head, state),
            Format::Open | Format::Foreign => return Ok(()),
        };
        match pieces {
            Ok(pieces) => {
                for piece in pieces {
                    let id = match &piece {
                        Event::Message(message) => Some(message.id.clone()),
                        Event::More { .. } => None,
                    };
                    if !sink(self, piece)?
                        && let (Some(id), Format::ClaudeCode(state)) = (id, &mut self.format)
                    {
                        state.not_taken(&id);
                    }
                }
            }
            Err(_) => self.malformed += 1,
        }
        Ok(())
    }

    fn count_line(&mut self) {
        if !self.in_line {
            self.lines = self.lines.saturating_add(1);
            self.in_line = true;
        }
    }

    fn count_malformed(&mut self) {
        self.count_line();
        self.malformed += 1;
    }
}

/// Bytes of a file that are enough to tell whether it is a transcript.
pub(super) const ENOUGH: u64 = 256 << 10;

/// Returns whether the beginning of a file is that of a transcript.
pub(super) fn is_one(start: &[u8]) -> bool {
    let lines = start.split(|byte| *byte == b'\n').map(trimmed).filter(|line| !line.is_empty());
    for line in lines.take(FOREIGN_AFTER as usize) {
        let (fields, _) = Raw::new(line).fields_until_damage();
        if Kind::of(&fields).is_some() {
            return false;
        }
        if kind_of(&fields).is_some() {
            return true;
        }
    }
    false
}

/// Tells the kind of a transcript by one of its lines.
pub(super) fn kind_of(fields: &Fields<'_>) -> Option<Kind> {
    let kind = fields.text("type").unwrap_or_default();
    let has = |name| fields.get(name).is_some();
    if codex::is_record(&kind, fields) {
        return Some(Kind::Codex);
    }
    let is_claude_code = match &*kind {
        "user" | "assistant" => {
            has("message") && (has("timestamp") || has("uuid") || has("sessionId"))
        }
        "summary" => has("summary"),
        "file-history-snapshot" => has("snapshot"),
        "system" | "progress" | "attachment" => has("uuid") || has("sessionId"),
        "queue-operation" | "custom-title" | "ai-title" | "last-prompt" | "permission-mode"
        | "agent-name" | "mode" => has("sessionId"),
        _ => false,
    };
    is_claude_code.then_some(Kind::ClaudeCode)
}

/// Returns the UUID that a file's name ends with.
fn ending_uuid(stem: &str) -> Option<&str> {
    let start = stem.len().checked_sub(36)?;
    stem.get(start..).filter(|uuid| is_uuid(uuid))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Returns a line without what says nothing: blanks, a byte order mark, and the NULs that a crash
/// of the machine leaves.
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
            let mut reader = Reader::new(Path::new(file));
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
}
