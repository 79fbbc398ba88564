//! Exact search in a snapshot: the matches of its segments, merged in result order.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::cursor::Cursor;
use super::plan::GramQuery;
use super::postings::{DocBits, StopCheck};
use super::store::DocStore;
use super::trace::Trace;
use super::{Error, Result, Snapshot};
use verbatim_base::call::Stop;
use verbatim_base::model::{Hit, Request};
use verbatim_text::lossy;

/// One in this many rows is timed.
const TIMED_ROWS: u32 = 8;

/// A message that matches.
#[derive(Debug)]
pub struct Found<'f, 'a> {
    cursor: &'f mut Cursor<'a>,
    request: &'a Request,
    doc: u32,
}

impl Found<'_, '_> {
    /// Returns the id of the conversation, with U+FFFD for bytes that are not UTF-8.
    pub fn conversation_id(&self) -> Cow<'_, str> {
        let store = &self.cursor.segment.data.store;
        lossy(store.conversation_id(store.conversation(self.doc)))
    }

    /// Returns the message with the text that the request asks for: shown or stored.
    pub fn hit(&self) -> Hit<'_> {
        self.cursor.hit(self.doc, self.request.raw_content)
    }

    /// Returns whether the message is known to match by its shown text, and not only by its stored text or
    /// its title.
    pub fn is_by_text(&mut self) -> bool {
        self.cursor.is_by_text(self.doc)
    }

    /// Returns the message without reading its text. The searched text replaces the message's text.
    pub fn unread(&self) -> Hit<'_> {
        self.cursor.segment.data.store.hit_with(self.doc, self.request.text.as_str().into())
    }
}

impl Snapshot {
    /// Calls `sink` with each message that matches a request, in result order.
    pub fn search(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Found<'_, '_>) -> ControlFlow<()>,
    ) -> Result<Trace> {
        self.run(request, None, false, stop, sink)
    }

    /// Like [`search`](Snapshot::search), but finds only the messages of the conversations with these ids.
    /// Reads no others.
    pub fn search_in(
        &self,
        conversations: &HashSet<String>,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Found<'_, '_>) -> ControlFlow<()>,
    ) -> Result<Trace> {
        self.run(request, Some(conversations), false, stop, sink)
    }

    /// Calls `each` with the doc id of each message whose text matches a request, in result order. Titles do
    /// not count.
    pub fn search_texts(
        &self,
        request: &Request,
        stop: &Stop,
        each: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Result<()> {
        self.run(request, None, true, stop, &mut |found| {
            each(found.cursor.segment.first + found.doc)
        })?;
        Ok(())
    }

    fn run(
        &self,
        request: &Request,
        conversations: Option<&HashSet<String>>,
        texts_only: bool,
        stop: &Stop,
        sink: &mut dyn FnMut(Found<'_, '_>) -> ControlFlow<()>,
    ) -> Result<Trace> {
        let mut trace = Trace::default();
        let begun = Instant::now();
        let mut limit = request.limit.unwrap_or(usize::MAX);
        if limit == 0 {
            return Ok(trace);
        }
        let (mut query, mut grams) = GramQuery::new(request, &self.common)?;
        query.texts_only = texts_only;
        let mut cursors: Vec<Cursor<'_>> = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            let only = conversations.map(|ids| docs_in_conversations(&segment.data.store, ids));
            if only.as_ref().is_some_and(|only| only.count() == 0) {
                continue;
            }
            let cursor = Cursor::open(segment, &query, &mut grams, &mut trace)?;
            cursors.extend(cursor.map(|cursor| match only {
                Some(only) => cursor.restrict_to(only),
                None => cursor,
            }));
        }
        let mut rows_time = Duration::ZERO;
        let mut rows = 0u32;
        let mut stop = StopCheck::new(stop);
        // The next match of each segment. The next hit is the match that comes first in result order.
        let mut heads: Vec<Option<u32>> = Vec::with_capacity(cursors.len());
        for cursor in &mut cursors {
            heads.push(cursor.next(&mut stop, &mut trace)?);
        }
        while let Some((place, doc)) = first_head(&cursors, &heads) {
            // Reading the clock takes as long as a tenth of a row.
            let matched = if rows.is_multiple_of(TIMED_ROWS) { Some(Instant::now()) } else { None };
            let flow = sink(Found { cursor: &mut cursors[place], request, doc });
            rows_time += matched.map_or(Duration::ZERO, |matched| matched.elapsed());
            rows += 1;
            limit -= 1;
            if flow.is_break() || limit == 0 {
                break;
            }
            heads[place] = cursors[place].next(&mut stop, &mut trace)?;
        }
        if stop.is_noticed {
            return Err(Error::Stopped);
        }
        let timed = rows.div_ceil(TIMED_ROWS).max(1);
        let rows_time = rows_time.mul_f64(f64::from(rows) / f64::from(timed));
        trace.took = begun.elapsed().saturating_sub(rows_time);
        Ok(trace)
    }
}

fn docs_in_conversations(store: &DocStore, ids: &HashSet<String>) -> DocBits {
    let mut docs = DocBits::new(store.messages());
    for number in 0..store.conversations() {
        let id = str::from_utf8(store.conversation_id(number));
        if !id.is_ok_and(|id| ids.contains(id)) {
            continue;
        }
        let Some(mut members) = store.members(number) else { continue };
        docs.insert(members.doc());
        while members.seek(members.doc() + 1) {
            docs.insert(members.doc());
        }
    }
    docs
}

/// Returns the next match in result order, with the place of its segment.
fn first_head(cursors: &[Cursor<'_>], heads: &[Option<u32>]) -> Option<(usize, u32)> {
    let heads = heads.iter().enumerate().filter_map(|(place, doc)| Some((place, (*doc)?)));
    heads.min_by(|(place, doc), (other, other_doc)| {
        let store = &cursors[*place].segment.data.store;
        store.order(*doc, &cursors[*other].segment.data.store, *other_doc)
    })
}
