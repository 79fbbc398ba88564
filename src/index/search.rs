//! Exact search in a snapshot: its parts' matches, merged in result order.

use std::{
    cmp::Ordering,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use super::{
    Error, Snapshot,
    cursor::{Cursor, Query},
};
use crate::model::{Hit, Request, Stop};

/// A gram that a search looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GramUse {
    /// The gram, ASCII letters in lower case.
    pub gram: String,
    /// Whether it was looked up in the titles rather than the texts.
    pub in_titles: bool,
    /// The number of messages that hold it.
    pub messages: u32,
}

/// What a search did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The grams whose lists were used.
    pub grams: Vec<GramUse>,
    /// How many `_` the candidates were narrowed by.
    pub gaps: u64,
    /// Messages that the lists proposed, within the dates and roles asked for.
    pub candidates: u64,
    /// Messages that matched.
    pub verified: u64,
    /// Bytes of text read to verify.
    pub bytes_read: u64,
    /// Time to find the posting lists.
    pub lookup: Duration,
    /// Time to intersect them and to verify.
    pub search: Duration,
    /// Time to make rows and to hand them over.
    pub rows: Duration,
}

impl Snapshot {
    /// Gives the messages that match a request to `sink`, in result order.
    pub fn search(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<Trace, Error> {
        let mut trace = Trace::default();
        let begun = Instant::now();
        let Some(mut limit) = Some(request.limit.unwrap_or(usize::MAX)).filter(|limit| *limit > 0)
        else {
            return Ok(trace);
        };
        let query = Query::new(request, &self.common);
        let mut needed = query.needed();
        let mut cursors: Vec<Cursor<'_>> = Vec::with_capacity(self.members.len());
        for member in &self.members {
            cursors.extend(Cursor::open(member, &query, &mut needed, &mut trace)?);
        }
        trace.lookup = begun.elapsed();

        let mut rows_time = Duration::ZERO;
        let mut stopped = false;
        let mut ask = || {
            stopped = stopped || stop.requested();
            stopped
        };
        // The next message of each part: the first among them is the next of all.
        let mut heads: Vec<Option<u32>> = Vec::with_capacity(cursors.len());
        for cursor in &mut cursors {
            heads.push(cursor.next(&mut ask, &mut trace)?);
        }
        while let Some((place, doc)) = first(&cursors, &heads) {
            let matched = Instant::now();
            let flow = sink(cursors[place].member.part.rows.hit(doc, request.raw_content));
            rows_time += matched.elapsed();
            limit -= 1;
            if flow.is_break() || limit == 0 {
                break;
            }
            heads[place] = cursors[place].next(&mut ask, &mut trace)?;
        }
        if stopped {
            return Err(Error::Stopped);
        }
        trace.rows = rows_time;
        trace.search = begun.elapsed().saturating_sub(trace.lookup + rows_time);
        Ok(trace)
    }
}

/// Returns which part has the first of the next messages, and that message.
fn first(cursors: &[Cursor<'_>], heads: &[Option<u32>]) -> Option<(usize, u32)> {
    let rows = |place: usize| &cursors[place].member.part.rows;
    let mut first: Option<(usize, u32)> = None;
    for (place, doc) in heads.iter().enumerate() {
        let Some(doc) = *doc else { continue };
        let is_first = first.is_none_or(|(best, best_doc)| {
            rows(place).order(doc, rows(best), best_doc) == Ordering::Less
        });
        if is_first {
            first = Some((place, doc));
        }
    }
    first
}
