//! Groups found messages by conversation.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};

use serde::{Deserialize, Serialize};
use tempfile::SpooledTempFile;

use super::hit_lines::{HitLine, HitMarks, Page, facts};
use super::layout::{DIM, Piece, excerpt};
use super::output::{counted, grouped, harmless};
use crate::cli::error::Result;
use verbatim_answer::conversation::{DescribedConversation, MessageKey, conversations};
use verbatim_base::{call::Call, model::Instant};
use verbatim_engine::ConversationKey as Key;

/// The maximum number of bytes of lines in memory. Further lines are in a temporary file.
const IN_MEMORY: usize = 1 << 20;

/// The number of conversations that are looked up in one step.
const AT_ONCE: usize = 500;

/// The number of hits after which groups are written for the first time during a search, and for each further
/// time.
const FIRST_PATIENCE: usize = 256;
const PATIENCE: usize = 1024;

/// The found messages, grouped by conversation; the conversation with the newest match comes first.
pub(crate) struct HitGroups<'a> {
    page: Page<'a>,
    marks: HitMarks<'a>,
    /// The maximum number of messages to show. At most as many conversations are shown by their titles only.
    most: usize,
    /// Whether the search ended before everything was counted.
    pub(crate) is_cut: bool,
    seen: HashMap<Key, Seen>,
    groups: Vec<Group>,
    /// The number of groups that are written already.
    written: usize,
    /// The next groups to write, as far as they are looked up.
    described: HashMap<Key, DescribedConversation>,
    /// The number of hits since groups were written, and the number of hits after which to write again.
    waiting: usize,
    patience: usize,
    lines: BufWriter<SpooledTempFile>,
    end: u64,
    shown_messages: usize,
    /// The number of shown conversations of which only the title is shown.
    shown_titles: usize,
    pub(crate) messages: usize,
}

#[derive(Clone, Copy)]
struct Seen {
    group: Option<usize>,
    has_message: bool,
}

struct Group {
    key: Key,
    title: Vec<Piece>,
    time: Option<Instant>,
    /// The offsets of the group's lines in the temporary file.
    lines: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct GroupLine {
    message: MessageKey,
    role: String,
    text: Vec<Piece>,
}

impl<'a> HitGroups<'a> {
    pub(crate) fn new(most: usize, page: Page<'a>, marks: HitMarks<'a>) -> HitGroups<'a> {
        HitGroups {
            page,
            marks,
            most,
            is_cut: false,
            seen: HashMap::new(),
            groups: Vec::new(),
            written: 0,
            described: HashMap::new(),
            waiting: 0,
            patience: FIRST_PATIENCE,
            lines: BufWriter::new(tempfile::spooled_tempfile(IN_MEMORY)),
            end: 0,
            shown_messages: 0,
            shown_titles: 0,
            messages: 0,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.shown_messages >= self.most
    }

    pub(crate) fn add(&mut self, line: HitLine) -> Result<()> {
        let HitLine { key, message, title, role, text } = line;
        let known = self.seen.get(&key).copied();
        let has_message = text.is_some();
        if !has_message && known.is_some() {
            return Ok(());
        }
        self.messages += usize::from(has_message);
        let has_room = !self.is_full() && (has_message || self.shown_titles < self.most);
        // A written group gets no further line. Only if the conversation changed during the search, there is
        // one, and it gets a group of its own.
        let mut group = known.and_then(|seen| seen.group).filter(|group| *group >= self.written);
        if has_room && group.is_none() {
            group = Some(self.groups.len());
            self.shown_titles += 1;
            self.groups.push(Group {
                key: key.clone(),
                title,
                time: message.time(),
                lines: Vec::new(),
            });
        }
        let has_message = has_message || known.is_some_and(|seen| seen.has_message);
        self.seen.insert(key, Seen { group, has_message });
        if let (Some(text), Some(group), true) = (text, group, has_room) {
            self.shown_messages += 1;
            let lines = &mut self.groups[group].lines;
            self.shown_titles -= usize::from(lines.is_empty());
            lines.push(self.end);
            let line = serde_json::to_string(&GroupLine { message, role, text });
            let line = line.map_err(std::io::Error::from)?;
            writeln!(self.lines, "{line}")?;
            self.end += line.len() as u64 + 1;
        }
        Ok(())
    }

    pub(crate) fn totals(&self) -> String {
        let with_message = self.seen.values().filter(|seen| seen.has_message).count();
        let by_title = self.seen.len() - with_message;
        let mut totals = Vec::new();
        if self.messages > 0 || by_title == 0 {
            let few = if self.shown_messages < self.messages || self.is_cut {
                format!("{} of ", grouped(self.shown_messages as u64))
            } else {
                String::new()
            };
            let more = if self.is_cut { "more than " } else { "" };
            let messages = counted(self.messages, "message");
            let conversations = counted(with_message, "conversation");
            totals.push(format!("{few}{more}{messages} in {conversations}"));
        }
        if by_title > 0 {
            totals.push(format!("{} by title", counted(by_title, "conversation")));
        }
        let mut totals = totals.join(", ");
        if self.groups.len() < self.seen.len() || self.shown_messages < self.messages || self.is_cut
        {
            totals.push_str("; `-n 0` shows all");
        }
        totals
    }

    /// Writes the first groups during the search, if it is time to: those whose conversations have only
    /// messages newer than `time`, the time of the last hit. Hits come newest first, so these groups are
    /// complete.
    pub(crate) fn write_begun(&mut self, time: Option<Instant>, out: &mut dyn Write) -> Result<()> {
        self.waiting += 1;
        if time.is_none() || self.waiting < self.patience {
            return Ok(());
        }
        self.waiting = 0;
        self.patience = PATIENCE;
        self.write_newer(time, out)?;
        Ok(out.flush()?)
    }

    /// Writes all groups that are not written yet; returns the number of messages and titles.
    pub(crate) fn write(&mut self, out: &mut dyn Write) -> Result<usize> {
        self.write_newer(None, out)?;
        Ok(self.shown_messages + self.shown_titles)
    }

    /// Writes the next groups up to the first conversation with a message that is not newer than `time`.
    fn write_newer(&mut self, time: Option<Instant>, out: &mut dyn Write) -> Result<()> {
        let page = self.page;
        self.lines.flush()?;
        let mut lines = BufReader::new(self.lines.get_mut());
        while let Some(group) = self.groups.get_mut(self.written) {
            let Some(conversation) = self.described.get(&group.key) else {
                let next = self.groups[self.written..].iter().take(AT_ONCE);
                let keys: Vec<Key> = next.map(|group| group.key.clone()).collect();
                self.described = conversations(page.engine, &keys, &Call::default())?;
                continue;
            };
            if time.is_some_and(|time| !conversation.is_newer(time)) {
                break;
            }
            if self.written > 0 {
                writeln!(out)?;
            }
            let facts = facts(conversation, &page, group.time);
            page.layout.heading(out, &group.title, &facts, conversation.link())?;
            let of_group = group.read(&mut lines, conversation)?;
            group.write(page, &of_group, self.marks, out)?;
            group.title = Vec::new();
            group.lines = Vec::new();
            self.written += 1;
        }
        lines.seek(SeekFrom::End(0))?;
        Ok(())
    }
}

impl Group {
    /// Returns the lines of the group in reading order, with their numbers.
    fn read(
        &self,
        spool: &mut BufReader<&mut SpooledTempFile>,
        conversation: &DescribedConversation,
    ) -> Result<Vec<(Option<u32>, GroupLine)>> {
        let mut lines = Vec::new();
        let mut text = String::new();
        for start in &self.lines {
            spool.seek(SeekFrom::Start(*start))?;
            text.clear();
            spool.read_line(&mut text)?;
            let line: GroupLine = serde_json::from_str(&text).map_err(std::io::Error::from)?;
            lines.push((conversation.number(&line.message.hit(&self.key.1)), line));
        }
        lines.sort_by_key(|(number, _)| *number);
        Ok(lines)
    }

    fn write(
        &self,
        page: Page<'_>,
        lines: &[(Option<u32>, GroupLine)],
        marks: HitMarks<'_>,
        out: &mut dyn Write,
    ) -> Result<()> {
        if lines.is_empty() {
            return Ok(writeln!(out, "{}", page.layout.styled(DIM, "     (title)"))?);
        }
        let (kind, id) = &self.key;
        let session = if page.context.is_empty() {
            None
        } else {
            page.engine.find(&Call::default()).session(*kind, id, false)?
        };
        let Some(session) = session else {
            for (number, line) in lines {
                let number = number.map_or_else(|| "?".to_owned(), |number| number.to_string());
                page.layout.message(out, &number, &line.role, &line.text)?;
            }
            return Ok(());
        };
        let hits = lines.iter().map(|(_, line)| line.message.hit(id));
        let mut turns: Vec<usize> = hits.filter_map(|hit| session.turn_of(&hit)).collect();
        turns.sort_unstable();
        let mut next = 0;
        for turn in &turns {
            let around = page.context.around(*turn, &session);
            let start = around.start.max(next);
            if start > next && next > 0 {
                writeln!(out, "{}", page.layout.styled(DIM, " --"))?;
            }
            for turn in start..around.end {
                let message = session.message(turn);
                let number = session.line(turn).to_string();
                let role = harmless(&message.role);
                let is_context = turns.binary_search(&turn).is_err();
                let spans = if is_context { Vec::new() } else { marks.spans(&message.content) };
                let mut text = excerpt(&message.content, &spans, page.layout.columns_of_message());
                if is_context {
                    text.insert(0, Piece::plain("| "));
                }
                page.layout.message(out, &number, &role, &text)?;
            }
            next = around.end.max(next);
        }
        Ok(())
    }
}
