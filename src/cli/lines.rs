//! Writes found messages during the search, one line each.

use std::{
    collections::HashSet,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    ops::ControlFlow,
};

use serde::Serialize;
use tempfile::SpooledTempFile;
use unicode_width::UnicodeWidthStr;

use super::{
    clock::Clock,
    error::Result,
    found::{
        ConversationJson, DescribedConversation, FoundHit, Key, MessageKey, Page, conversations,
    },
    look::{DIM, Look, ROLE, around_match, excerpt, padded},
    output::{JsonHit, harmless},
};
use verbatim_base::model::{Hit, Stop};
use verbatim_engine::{Note, Session, SourceKind};

/// The number of lines in the first batch; later batches have `BATCH` lines.
const FIRST_BATCH: usize = 64;
const BATCH: usize = 2048;

/// The maximum number of bytes of a hit and of a batch in memory. More bytes go to a temporary file.
const HIT_IN_MEMORY: usize = 64 << 10;
const BATCH_IN_MEMORY: usize = 1 << 20;

/// The width of an id with a message number.
const ID: usize = 13;

/// A collector that writes items in batches, until `most` counted items are written.
struct LineBatches<T> {
    most: usize,
    count: usize,
    uncounted: usize,
    size: usize,
    held: Vec<T>,
    outcome: Result<()>,
}

impl<T> LineBatches<T> {
    fn new(most: usize) -> LineBatches<T> {
        LineBatches {
            most,
            count: 0,
            uncounted: 0,
            size: FIRST_BATCH,
            held: Vec::new(),
            outcome: Ok(()),
        }
    }

    fn take(
        &mut self,
        one: T,
        is_counted: bool,
        write: &mut dyn FnMut(Vec<T>) -> Result<()>,
    ) -> ControlFlow<()> {
        let count = if is_counted { &mut self.count } else { &mut self.uncounted };
        *count += 1;
        self.held.push(one);
        if self.held.len() >= self.size || self.count >= self.most {
            self.size = BATCH;
            self.outcome = write(std::mem::take(&mut self.held));
        }
        match self.outcome.is_ok() && self.count < self.most {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    /// Writes the last batch; returns the number of counted items.
    fn finish(self, write: &mut dyn FnMut(Vec<T>) -> Result<()>) -> Result<usize> {
        self.outcome?;
        write(self.held)?;
        Ok(self.count)
    }
}

/// The output of `--flat`: a line for each message, with ID:NUMBER, time, role and text.
pub(super) struct FlatLines<'a> {
    page: Page<'a>,
    out: &'a mut dyn Write,
    batches: LineBatches<FoundHit>,
    /// The conversations whose title was written. Each title is written only once.
    titles: HashSet<Key>,
}

impl FlatLines<'_> {
    pub(super) fn new<'a>(page: Page<'a>, most: usize, out: &'a mut dyn Write) -> FlatLines<'a> {
        FlatLines { page, out, batches: LineBatches::new(most), titles: HashSet::new() }
    }

    pub(super) fn show(&mut self, found: FoundHit) -> ControlFlow<()> {
        let is_title = found.text.is_none();
        if is_title
            && (self.batches.uncounted >= self.batches.most
                || !self.titles.insert(found.key.clone()))
        {
            return ControlFlow::Continue(());
        }
        let (page, out) = (&self.page, &mut *self.out);
        self.batches.take(found, !is_title, &mut |batch| write_flat(page, out, &batch))
    }

    /// Writes the last lines; returns the numbers of messages and of titles.
    pub(super) fn finish(self) -> Result<(usize, usize)> {
        let FlatLines { page, out, batches, .. } = self;
        let titles = batches.uncounted;
        Ok((batches.finish(&mut |batch| write_flat(&page, out, &batch))?, titles))
    }
}

fn write_flat(page: &Page<'_>, out: &mut dyn Write, batch: &[FoundHit]) -> Result<()> {
    let keys: Vec<Key> = batch.iter().map(|found| found.key.clone()).collect();
    let conversations = conversations(page.engine, &keys, &Stop::never())?;
    let mut neighbours = Neighbours::new(*page);
    for found in batch {
        let conversation = &conversations[&found.key];
        let hit = found.message.hit(&found.key.1);
        let context = neighbours.of(&found.key, &hit)?.filter(|_| found.text.is_some());
        let (before, after) = match (&context, conversation.number(&hit)) {
            (Some(context), Some(number)) => {
                context.split_at(context.partition_point(|one| one.number < number))
            }
            _ => (&[][..], &[][..]),
        };
        write_neighbours(page, out, conversation, before)?;
        let number = match found.text {
            Some(_) => conversation.number(&found.message.hit(&found.key.1)),
            None => None,
        };
        let number = number.map_or_else(String::new, |number| format!(":{number}"));
        let id = harmless(&format!("{}{number}", conversation.short_id));
        let minute = found.message.time().and_then(|time| page.clock.minute(time));
        let minute = minute.unwrap_or_else(|| "(no time)".to_owned());
        let role = if found.text.is_some() { &found.role } else { "title" };
        // A narrow terminal has room for the text only.
        let (id, start) = match page.look.is_narrow() {
            true => (id, String::new()),
            false => (padded(&id, ID), format!("{minute:<16}  {}  ", padded(role, ROLE))),
        };
        let room = room_beside(&id, &start, page.look);
        let text = match (&found.text, page.look.is_cut) {
            (None, false) => found.title.clone(),
            (text, _) => around_match(text.as_ref().unwrap_or(&found.title), room),
        };
        let id = page.look.linked(&id, conversation.link());
        let text = page.look.joined(&text, anstyle::Style::new());
        writeln!(out, "{id}  {}{text}", page.look.styled(DIM, &start))?;
        write_neighbours(page, out, conversation, after)?;
        if context.is_some() {
            writeln!(out, "{}", page.look.styled(DIM, "--"))?;
        }
    }
    Ok(())
}

/// Returns the columns for a text. An id is never cut, so there may be room for an ellipsis only.
fn room_beside(id: &str, start: &str, look: Look) -> usize {
    look.columns.saturating_sub(id.width() + 2 + start.width()).max(1)
}

/// Writes the messages around a match as `grep -n` does: a dash in place of the colon before the number.
fn write_neighbours(
    page: &Page<'_>,
    out: &mut dyn Write,
    conversation: &DescribedConversation,
    neighbours: &[JsonNeighbour],
) -> io::Result<()> {
    for JsonNeighbour { number, role, content, .. } in neighbours {
        let id = padded(&harmless(&format!("{}-{number}", conversation.short_id)), ID);
        let start = match page.look.is_narrow() {
            true => String::new(),
            false => format!("{:<16}  {}  ", "", padded(&harmless(role), ROLE)),
        };
        let room = room_beside(&id, &start, page.look);
        let text = excerpt(content, &[], room);
        let text = page.look.joined(&text, DIM);
        writeln!(out, "{id}  {}{text}", page.look.styled(DIM, &start))?;
    }
    Ok(())
}

/// The result of writing JSON lines.
pub(super) struct JsonAnswer {
    pub(super) count: usize,
    /// Whether there are more messages beyond the limit.
    pub(super) is_cut: bool,
    pub(super) notes: Vec<Note>,
}

/// The output of `--json`: a JSON object for each message.
pub(super) struct JsonLines<'a> {
    page: Page<'a>,
    out: &'a mut dyn Write,
    batches: LineBatches<JsonEnd>,
    spool: SpooledTempFile,
}

/// A hit as JSON, without the fields of its conversation.
pub(super) struct JsonPage {
    key: Key,
    message: MessageKey,
    title_only: bool,
    json: io::Result<SpooledTempFile>,
}

/// The length of a hit's JSON in the batch, and the keys to look up the other fields of the hit.
struct JsonEnd {
    key: Key,
    message: MessageKey,
    title_only: bool,
    length: u64,
}

#[derive(Serialize)]
struct JsonPlace<'a> {
    #[serde(flatten)]
    origin: ConversationJson<'a>,
    number: Option<u32>,
    title_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Vec<JsonNeighbour>>,
}

/// A message of a conversation, before or after a match.
#[derive(Serialize)]
pub(super) struct JsonNeighbour {
    number: u32,
    role: String,
    time: Option<String>,
    content: String,
}

/// Reads the messages around matches; keeps the last conversation.
pub(super) struct Neighbours<'a> {
    page: Page<'a>,
    last: Option<(Key, Option<Session>)>,
}

impl Neighbours<'_> {
    pub(super) fn new(page: Page<'_>) -> Neighbours<'_> {
        Neighbours { page, last: None }
    }

    /// Returns the messages before and after a match; `None` if none are requested.
    pub(super) fn of(&mut self, key: &Key, hit: &Hit<'_>) -> Result<Option<Vec<JsonNeighbour>>> {
        let page = self.page;
        if page.context.is_empty() {
            return Ok(None);
        }
        if self.last.as_ref().is_none_or(|(last, _)| last != key) {
            let find = page.engine.find(&Stop::never()).session(key.0, &key.1, page.raw_content);
            self.last = Some((key.clone(), find?));
        }
        let session = self.last.as_ref().and_then(|(_, session)| session.as_ref());
        let Some((session, turn)) = session.and_then(|it| Some((it, it.turn_of(hit)?))) else {
            return Ok(Some(Vec::new()));
        };
        let turns = page.context.around(turn, session).filter(|other| *other != turn);
        let neighbours = turns.map(|turn| {
            let message = session.message(turn);
            JsonNeighbour {
                number: session.line(turn),
                role: message.role.into_owned(),
                time: message.time.and_then(|time| page.clock.iso(time)),
                content: message.content.into_owned(),
            }
        });
        Ok(Some(neighbours.collect()))
    }
}

impl JsonLines<'_> {
    pub(super) fn new<'a>(page: Page<'a>, most: usize, out: &'a mut dyn Write) -> JsonLines<'a> {
        let spool = tempfile::spooled_tempfile(BATCH_IN_MEMORY);
        JsonLines { page, out, batches: LineBatches::new(most), spool }
    }

    /// Writes the JSON of a hit to a temporary file. The text of the hit is borrowed, and may be
    /// too long to copy into memory. `title_only` tells whether only the title of the hit matches.
    pub(super) fn render(
        kind: SourceKind,
        hit: &Hit<'_>,
        title_only: bool,
        clock: Clock,
    ) -> JsonPage {
        let write = || -> io::Result<SpooledTempFile> {
            let mut page = BufWriter::new(tempfile::spooled_tempfile(HIT_IN_MEMORY));
            serde_json::to_writer(&mut page, &JsonHit::of(hit, clock))?;
            let mut page = page.into_inner().map_err(io::IntoInnerError::into_error)?;
            page.rewind()?;
            Ok(page)
        };
        let key = (kind, hit.conversation_id.clone().into_owned());
        JsonPage { key, message: MessageKey::of(hit), title_only, json: write() }
    }

    pub(super) fn show(&mut self, page: JsonPage) -> ControlFlow<()> {
        let JsonPage { key, message, title_only, json } = page;
        let copied = json.and_then(|mut json| io::copy(&mut json, &mut self.spool));
        let length = match copied {
            Ok(length) => length,
            Err(error) => {
                self.batches.outcome = Err(error.into());
                return ControlFlow::Break(());
            }
        };
        let (page, out, spool) = (&self.page, &mut *self.out, &mut self.spool);
        let end = JsonEnd { key, message, title_only, length };
        self.batches.take(end, true, &mut |batch| write_json(page, out, spool, &batch))
    }

    pub(super) fn finish(self) -> Result<usize> {
        let JsonLines { page, out, batches, mut spool } = self;
        batches.finish(&mut |batch| write_json(&page, out, &mut spool, &batch))
    }
}

fn write_json(
    page: &Page<'_>,
    out: &mut dyn Write,
    spool: &mut SpooledTempFile,
    batch: &[JsonEnd],
) -> Result<()> {
    let keys: Vec<Key> = batch.iter().map(|end| end.key.clone()).collect();
    let conversations = conversations(page.engine, &keys, &Stop::never())?;
    spool.rewind()?;
    let mut neighbours = Neighbours::new(*page);
    for JsonEnd { key, message, title_only, length } in batch {
        let conversation = &conversations[key];
        let hit = message.hit(&key.1);
        let place = JsonPlace {
            origin: conversation.json(),
            number: conversation.number(&hit),
            title_only: *title_only,
            context: neighbours.of(key, &hit)?,
        };
        // The fields of both objects become one object, so the closing brace of the first object is left out.
        io::copy(&mut (&mut *spool).take(length - 1), out)?;
        spool.seek(SeekFrom::Current(1))?;
        let place = serde_json::to_string(&place).map_err(io::Error::from)?;
        writeln!(out, ",{}", &place[1..])?;
    }
    spool.rewind()?;
    spool.set_len(0)?;
    Ok(())
}
