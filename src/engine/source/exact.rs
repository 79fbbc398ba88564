//! Exact search: the index where it mirrors the database, SQLite's `LIKE` where it does not.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use crate::engine::{Engine, Error, FallbackReason, Source, source::request};
use crate::{
    db,
    index::{self, Snapshot, Trace},
    map_faults,
    model::{Hit, Request, Stop},
};

/// How an answer was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchPlan {
    /// By the index.
    ByIndex {
        /// The name of its snapshot.
        snapshot: String,
        /// What the search did.
        trace: Trace,
    },
    /// By SQLite's `LIKE` over the database.
    ByLike {
        /// FallbackReason not by the index.
        why: FallbackReason,
        /// How long that took, rows included.
        took: Duration,
    },
}

impl Engine {
    /// Hands the messages of the export that match to `sink`, newest first, until it breaks off.
    ///
    /// The hits are those of SQLite's `LIKE '%text%'` over contents and titles, whichever way they
    /// are found; returns which.
    pub fn exact(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<SearchPlan, Error> {
        self.exact_in(&self.export()?, request, stop, sink)
    }

    /// Does as [`Engine::exact`] does, in any source.
    pub fn exact_in(
        &self,
        source: &Source,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<SearchPlan, Error> {
        let request = request::checked(request)?;
        let (why, handed) = match self.by_index(source, &request, stop, sink)? {
            Ok(answered) => return Ok(answered),
            Err(failed) => failed,
        };
        let begun = Instant::now();
        let hits = self.on_source(source, |path| {
            db::read(path, stop, |database| db::search(database, &request))
        })?;
        // What an index handed over before it failed was right as far as it went.
        let mut passed = 0;
        hits.hand_over(&mut |hit| {
            passed += 1;
            if passed > handed { sink(hit) } else { ControlFlow::Continue(()) }
        })?;
        Ok(SearchPlan::ByLike { why, took: begun.elapsed() })
    }

    /// Searches the index; else says why it did not answer, and how many hits it handed over.
    fn by_index(
        &self,
        source: &Source,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<Result<SearchPlan, (FallbackReason, usize)>, Error> {
        // An empty role means NULL to some and a text of no characters to SQLite.
        if request.roles.iter().any(String::is_empty) {
            return Ok(Err((FallbackReason::NotForIndex, 0)));
        }
        let snapshot = match self.current_index(source) {
            Ok(snapshot) => snapshot,
            Err(why) => return Ok(Err((why, 0))),
        };
        let mut handing = VerifiedSink::new(&snapshot, stop, sink);
        // Its files were checked when it was opened, and looked at a moment ago.
        let found = map_faults::caught(|| {
            let trace = snapshot.search(request, stop, &mut |hit| handing.take(hit))?;
            handing.hand_over();
            Ok(trace)
        });
        let handed = handing.handed;
        Ok(match found {
            Ok(Ok(_)) if handing.is_torn => Err((
                FallbackReason::Unreadable("its files changed while they were read".to_owned()),
                handed,
            )),
            Ok(Ok(trace)) => {
                Ok(SearchPlan::ByIndex { snapshot: snapshot.name().to_owned(), trace })
            }
            Ok(Err(index::Error::Stopped)) => return Err(db::Error::Stopped.into()),
            Ok(Err(error)) => Err((FallbackReason::Unreadable(error.to_string()), handed)),
            Err(panic) => {
                Err((FallbackReason::Unreadable(format!("searching it failed: {panic}")), handed))
            }
        })
    }
}

/// Hits that are held back until the files that they are from were looked at once more, and bytes of
/// their texts.
const HELD: (usize, usize) = (256, 1 << 20);

/// Hands hits on, as long as the files that they are from stay as they were.
struct VerifiedSink<'a> {
    snapshot: &'a Snapshot,
    stop: &'a Stop,
    faults: u64,
    sink: &'a mut dyn FnMut(Hit) -> ControlFlow<()>,
    held: Vec<Hit>,
    bytes: usize,
    /// How many were handed on.
    handed: usize,
    is_over: bool,
    /// Whether the files did not stay as they were.
    is_torn: bool,
}

impl<'a> VerifiedSink<'a> {
    fn new(
        snapshot: &'a Snapshot,
        stop: &'a Stop,
        sink: &'a mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> VerifiedSink<'a> {
        VerifiedSink {
            snapshot,
            stop,
            faults: map_faults::count(),
            sink,
            held: Vec::new(),
            bytes: 0,
            handed: 0,
            is_over: false,
            is_torn: false,
        }
    }

    fn take(&mut self, hit: Hit) -> ControlFlow<()> {
        self.bytes += hit.content.len();
        self.held.push(hit);
        if self.held.len() >= HELD.0 || self.bytes >= HELD.1 {
            self.hand_over();
        }
        match self.is_over || self.is_torn {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Hands on what is held, unless that may not be what was written.
    fn hand_over(&mut self) {
        if map_faults::count() != self.faults || !self.snapshot.is_intact() {
            self.is_torn = true;
            return;
        }
        self.bytes = 0;
        for hit in self.held.drain(..) {
            if self.is_over || self.stop.requested() {
                break;
            }
            self.handed += 1;
            self.is_over = (self.sink)(hit).is_break();
        }
    }
}
