//! Messages as lines of JSON, for programs: what `verbatim search --json` and `/search` answer.

use std::io::{self, Write};
use std::ops::{ControlFlow, Range};

use schemars::JsonSchema;
use serde::Serialize;

use super::clock::Clock;
use super::conversation::{ConversationJson, conversations};
use super::exact::ExactSearch;
use super::ranked::RankedMessages;
use verbatim_base::{call::Call, model::Hit};
use verbatim_engine::{self as engine, ConversationKey, Engine, Make, Match, Note, Session};

/// The lines of the first batch; later batches have `BATCH` lines, or `BATCH_BYTES` of text.
const FIRST_BATCH: usize = 64;
const BATCH: usize = 2048;
const BATCH_BYTES: usize = 1 << 20;

/// The numbers of messages before and after each match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The number of messages before it.
    pub before: usize,
    /// The number of messages after it.
    pub after: usize,
}

impl Context {
    /// Returns whether no messages around a match are asked for.
    pub fn is_empty(self) -> bool {
        self.before + self.after == 0
    }

    /// Returns the turns around a turn of a session, this turn included.
    pub fn around(self, turn: usize, session: &Session) -> Range<usize> {
        let end = turn.saturating_add(self.after).saturating_add(1).min(session.turns());
        turn.saturating_sub(self.before)..end
    }
}

/// What was written, and what was not.
#[derive(Debug, Default)]
pub struct WrittenLines {
    /// The number of messages.
    pub count: usize,
    /// Whether the limit left out messages.
    pub is_cut: bool,
    /// The notes of the search.
    pub notes: Vec<Note>,
}

/// The reason why lines cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The search failed.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The writer of the lines.
pub struct JsonLines<'a> {
    /// Whose messages are written.
    pub engine: &'a Engine,
    /// How times are written.
    pub clock: Clock,
    /// The messages around each match that are written with it.
    pub context: Context,
    /// Stops the search.
    pub call: &'a Call,
    /// The output.
    pub out: &'a mut dyn Write,
}

/// A message as JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JsonHit<'a> {
    /// The message's id.
    message_id: &'a str,
    /// The conversation's id.
    conversation_id: &'a str,
    /// The conversation's title; may be empty.
    title: &'a str,
    /// Who wrote it: `user`, `assistant`, `tool`, `system` or another that the export names.
    role: &'a str,
    /// When it was written.
    time: Option<String>,
    /// The whole text; in a ranked search, of a very long one the part around the passage.
    content: &'a str,
    /// The place that the database gives it.
    position: Option<i64>,
}

/// A message that has a text.
#[derive(Serialize, JsonSchema)]
pub struct JsonFound<'a> {
    #[serde(flatten)]
    hit: JsonHit<'a>,
    #[serde(flatten)]
    origin: ConversationJson<'a>,
    /// Its number in the conversation: `verbatim show ID:NUMBER` shows it.
    number: Option<u32>,
    /// Whether only the title has the text, and not `content`: a title that matches brings every message of
    /// its conversation.
    title_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Vec<JsonNeighbour>>,
}

/// A message that answers a question.
#[derive(Serialize, JsonSchema)]
pub struct JsonMatch<'a> {
    #[serde(flatten)]
    hit: JsonHit<'a>,
    #[serde(flatten)]
    origin: ConversationJson<'a>,
    /// How well it answers; compare scores of one answer only.
    score: f64,
    /// The same as `number`.
    line: u32,
    /// The part that answers best.
    passage: &'a str,
    /// How many messages have this text.
    copies: u32,
    /// Its number in the conversation.
    number: u32,
    /// Whether its score is far below the first one's and it has no word of the question.
    far: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    absent_words: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Vec<JsonNeighbour>>,
}

/// A message of a conversation, before or after a match.
#[derive(Serialize, JsonSchema)]
struct JsonNeighbour {
    number: u32,
    role: String,
    time: Option<String>,
    content: String,
}

/// A message that waits for the facts of its conversation, which are looked up for many at once.
struct HeldHit {
    key: ConversationKey,
    hit: Hit<'static>,
    is_title_only: bool,
}

impl JsonLines<'_> {
    /// Writes the first `most` messages of an exact search while it runs; all of them without a limit.
    pub fn exact(
        &mut self,
        search: &ExactSearch<'_>,
        most: Option<usize>,
    ) -> Result<WrittenLines, Error> {
        let mut written = WrittenLines::default();
        let mut held: Vec<HeldHit> = Vec::new();
        let mut bytes = 0;
        let mut size = FIRST_BATCH;
        let mut outcome = Ok(());
        let make: Make<'_, HeldHit> = &|source, hit| {
            let is_title_only = search.is_title_only(&hit);
            let key = (source, hit.conversation_id.clone().into_owned());
            Some(HeldHit { key, hit: hit.into_owned(), is_title_only })
        };
        // One hit more than the limit is read, to know whether there are more hits.
        let limit = most.map(|most| most.saturating_add(1));
        let searched = search.each(limit, make.into(), &mut |one| {
            if most.is_some_and(|most| written.count >= most) {
                written.is_cut = true;
                return ControlFlow::Break(());
            }
            written.count += 1;
            bytes += one.hit.content.len();
            held.push(one);
            if held.len() < size && bytes < BATCH_BYTES {
                return ControlFlow::Continue(());
            }
            size = BATCH;
            bytes = 0;
            outcome = self.write(&std::mem::take(&mut held));
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome?;
        self.write(&held)?;
        written.notes = searched.notes;
        Ok(written)
    }

    fn write(&mut self, batch: &[HeldHit]) -> Result<(), Error> {
        let keys: Vec<ConversationKey> = batch.iter().map(|held| held.key.clone()).collect();
        let conversations = conversations(self.engine, &keys, self.call)?;
        let mut neighbours = Neighbours { last: None };
        for HeldHit { key, hit, is_title_only } in batch {
            let conversation = &conversations[key];
            let line = JsonFound {
                hit: JsonHit::of(hit, self.clock),
                origin: conversation.json(),
                number: conversation.number(hit),
                title_only: *is_title_only,
                context: neighbours.of(self, key, hit)?,
            };
            json_line(self.out, &line)?;
        }
        Ok(())
    }

    /// Writes the best messages for a question.
    pub fn ranked(&mut self, ranking: &RankedMessages) -> Result<WrittenLines, Error> {
        let absent_words = ranking.absent_words();
        let keys: Vec<ConversationKey> = ranking.items.iter().map(key_of).collect();
        let conversations = conversations(self.engine, &keys, self.call)?;
        let mut neighbours = Neighbours { last: None };
        for (one, key) in ranking.items.iter().zip(&keys) {
            let line = JsonMatch {
                hit: JsonHit::of(&one.hit, self.clock),
                origin: conversations[key].json(),
                score: one.score,
                line: one.line,
                passage: &one.passage,
                copies: one.copies,
                number: one.line,
                far: one.is_far,
                absent_words: &absent_words,
                context: neighbours.of(self, key, &one.hit)?,
            };
            json_line(self.out, &line)?;
        }
        Ok(WrittenLines {
            count: ranking.items.len(),
            is_cut: !ranking.is_total_exact,
            notes: ranking.notes.clone(),
        })
    }
}

impl JsonHit<'_> {
    /// Returns a message with its time as `clock` writes it.
    pub fn of<'a>(hit: &'a Hit<'_>, clock: Clock) -> JsonHit<'a> {
        JsonHit {
            message_id: &hit.message_id,
            conversation_id: &hit.conversation_id,
            title: &hit.title,
            role: &hit.role,
            time: hit.time.and_then(|time| clock.iso(time)),
            content: &hit.content,
            position: hit.position,
        }
    }
}

/// Reads the messages around matches; keeps the last conversation.
struct Neighbours {
    last: Option<(ConversationKey, Option<Session>)>,
}

impl Neighbours {
    /// Returns the messages before and after a match; `None` if none are asked for.
    fn of(
        &mut self,
        lines: &JsonLines<'_>,
        key: &ConversationKey,
        hit: &Hit<'_>,
    ) -> Result<Option<Vec<JsonNeighbour>>, Error> {
        if lines.context.is_empty() {
            return Ok(None);
        }
        if self.last.as_ref().is_none_or(|(last, _)| last != key) {
            let session = lines.engine.find(lines.call).session(key.0, &key.1, false)?;
            self.last = Some((key.clone(), session));
        }
        let session = self.last.as_ref().and_then(|(_, session)| session.as_ref());
        let Some((session, turn)) = session.and_then(|it| Some((it, it.turn_of(hit)?))) else {
            return Ok(Some(Vec::new()));
        };
        let turns = lines.context.around(turn, session).filter(|other| *other != turn);
        let neighbours = turns.map(|turn| {
            let message = session.message(turn);
            JsonNeighbour {
                number: session.line(turn),
                role: message.role.into_owned(),
                time: message.time.and_then(|time| lines.clock.iso(time)),
                content: message.content.into_owned(),
            }
        });
        Ok(Some(neighbours.collect()))
    }
}

fn key_of(one: &Match) -> ConversationKey {
    (one.source, one.hit.conversation_id.clone().into_owned())
}

/// Writes a value as one line.
pub fn json_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}
