//! The reader without an index: SQLite compares every message. It is slow, but works in every state.

use std::collections::{HashMap, HashSet};
use std::{panic::resume_unwind, sync::OnceLock, thread, time::Instant as Clock};

use super::sorted_ids::{SortedIds, sorted};
use super::{Counts, Listing, Messages, Reader, SearchPlan};
use super::{counter::Counter, read_messages::ReadMessages, sink::Sink};
use crate::error::{Error, Result};
use crate::scoring::Scorer;
use crate::source::kind::SourceKind;
use crate::source::scope::{About, Scope, has};
use crate::source::store::Source;
use crate::source::store::handle::FallbackReason;
use verbatim_base::call::Call;
use verbatim_base::model::{Instant, Matching, Origin, Request};
use verbatim_chats::db::{self, Outline, State};
use verbatim_text::matcher::texts;

/// Number of hits that are passed on between two confirmations.
const PAGE_ROWS: usize = 256;

/// The number of `%` in a pattern for which every thread's stack is large enough. SQLite's `LIKE` calls itself
/// for each `%`.
const DEEP: usize = 1_000;

/// The size in bytes of a stack that is large enough for the longest pattern.
const LARGE_STACK: usize = 64 << 20;

/// Returns the largest number of `%` in a `LIKE` pattern of a request.
fn deepest(request: &Request) -> usize {
    if request.matching != Matching::Like {
        return 0;
    }
    let texts = texts(request).into_iter().flatten();
    texts.map(|text| text.matches('%').count()).max().unwrap_or(0)
}

/// The reader that works without an index.
#[derive(Debug)]
pub struct LiveReader {
    source: Source,
    reason: FallbackReason,
}

impl LiveReader {
    /// Returns a reader of a source. `reason` says why the index does not answer.
    pub fn new(source: Source, reason: FallbackReason) -> LiveReader {
        LiveReader { source, reason }
    }

    /// Runs a search, with a large stack if it needs one.
    fn on_stack<T: Send>(
        &self,
        is_large: bool,
        search: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        if !is_large {
            return search();
        }
        thread::scope(|scope| {
            match thread::Builder::new().stack_size(LARGE_STACK).spawn_scoped(scope, search) {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(source) => {
                    Err(db::Error::Io { path: self.source.path()?.to_owned(), source }.into())
                }
            }
        })
    }

    /// Searches and skips the first `skipped` hits, which an index showed before it failed. This is right
    /// only if the database is still in the state of the index; otherwise the search fails.
    pub(crate) fn search_after(
        &self,
        skipped: usize,
        index_state: Option<&State>,
        request: &Request,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<SearchPlan> {
        let begun = Clock::now();
        // `skipped` includes hits that the sink drops, so the database must return these hits too.
        let left_out = sink.left_out().filter(|_| skipped == 0);
        let mut request = request.clone();
        let mut without = HashSet::new();
        if let Some((ids, most)) = left_out {
            without = ids;
            request.limit = Some(most);
        }
        let is_deep = deepest(&request) > DEEP;
        let hits = self.on_stack(is_deep, || {
            self.source.read_database(call, |database| {
                db::search_without(database, &request, without.clone())
            })
        })?;
        if let Some(state) = index_state.filter(|_| skipped > 0)
            && db::state(self.source.path()?)? != *state
        {
            let folder = self.source.index_dir()?.folder().to_owned();
            return Err(Error::Torn { folder });
        }
        let mut taken = 0;
        let mut is_over = false;
        let only = sink.only();
        for hit in hits {
            if is_over || call.stop.requested() {
                break;
            }
            if only.as_ref().is_some_and(|only| !has(only, self.source.kind, &hit.conversation_id))
            {
                continue;
            }
            taken += 1;
            if taken <= skipped {
                continue;
            }
            sink.push(hit);
            if taken % PAGE_ROWS == 0 {
                is_over = sink.confirm(call).is_break();
            }
        }
        if !is_over && !call.stop.requested() {
            // It does not matter whether the sink wants more hits, because there are none.
            let _ = sink.confirm(call);
        }
        // If the work was stopped, the sink may have broken off for this reason.
        if call.stop.requested() {
            sink.discard();
            return Err(db::Error::Stopped.into());
        }
        Ok(SearchPlan::ByLike { why: self.reason.clone(), took: begun.elapsed() })
    }
}

impl Reader for LiveReader {
    fn search(&self, request: &Request, call: &Call, sink: &mut dyn Sink) -> Result<SearchPlan> {
        self.search_after(0, None, request, call, sink)
    }

    fn list(&self, scope: &Scope, call: &Call) -> Result<Box<dyn Listing>> {
        let (mut outlines, origins) = self.source.read_database(call, |database| {
            let outlines = db::outline(database, &scope.roles)?;
            let has_origins = self.source.kind.has_origins();
            let origins = if has_origins { db::origins(database)? } else { HashMap::new() };
            Ok((outlines, origins))
        })?;
        outlines.retain(|outline| {
            scope.covers(outline.begun, outline.last)
                && scope.accepts_id(self.source.kind, &outline.id)
                && scope.accepts_origin(self.source.kind, origins.get(&outline.id))
        });
        let kind = self.source.kind;
        Ok(Box::new(LiveListing { kind, outlines, origins, sorted_ids: OnceLock::new() }))
    }

    fn read(&self, id: &str, raw_content: bool, call: &Call) -> Result<Option<Box<dyn Messages>>> {
        let messages = self
            .source
            .read_database(call, |database| db::conversation(database, id, raw_content))?;
        Ok(ReadMessages::opened(messages))
    }

    fn count(&self, scope: &Scope, day: &dyn Fn(Instant) -> i64, call: &Call) -> Result<Counts> {
        let kind = self.source.kind;
        self.source.read_database(call, |database| {
            let needs_origins = kind.has_origins() && scope.has_origin();
            let origins = if needs_origins { db::origins(database)? } else { HashMap::new() };
            let mut counter = Counter::new(kind, scope, Some(&origins), day);
            db::tally::messages(database, &mut |message| counter.add_message(message))?;
            let models = if scope.is_open() {
                db::tally::models(database)?
            } else {
                db::tally::models_where(database, &mut |it| counter.accepts(it))?
            };
            Ok(counter.into_counts(models))
        })
    }

    fn span(&self, call: &Call) -> Result<Option<(Instant, Instant)>> {
        self.source.read_database(call, db::span)
    }

    fn scorer(&self, _: &Scope, _: &Call) -> Result<Option<Box<dyn Scorer>>> {
        Ok(None)
    }
}

struct LiveListing {
    kind: SourceKind,
    outlines: Vec<Outline>,
    origins: HashMap<String, Origin>,
    /// The ids in sorted order, built at the first use.
    sorted_ids: OnceLock<Vec<u32>>,
}

impl LiveListing {
    fn id(&self, number: u32) -> &str {
        &self.outlines[number as usize].id
    }
}

impl Listing for LiveListing {
    fn len(&self) -> usize {
        self.outlines.len()
    }

    fn last(&self, place: usize) -> Option<Instant> {
        self.outlines[place].last
    }

    fn heading(&self, place: usize) -> (&str, &str) {
        (&self.outlines[place].id, &self.outlines[place].title)
    }

    fn origin(&self, place: usize) -> Option<&Origin> {
        self.origins.get(&self.outlines[place].id)
    }

    fn shared_start(&self, id: &str) -> usize {
        let count = self.outlines.len();
        let sorted = self.sorted_ids.get_or_init(|| sorted(count, |number| self.id(number)));
        let ids =
            SortedIds { count, number_at: |place| sorted[place], id_of: |number| self.id(number) };
        ids.shared_start(id)
    }

    fn describe(&self, place: usize, _: bool) -> About {
        let origin = self.origin(place).cloned().unwrap_or_default();
        About::of_outline(self.kind, self.outlines[place].clone(), origin)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::{Rendered, TestExport};
    use verbatim_base::model::Hit;

    #[test]
    fn what_an_index_showed_is_followed_only_by_hits_of_the_same_state() {
        let export = TestExport::of(&["red", "green", "blue"]);
        let source = export.engine.sources().remove(0);
        let live = LiveReader::new(source.clone(), FallbackReason::Stale);
        let after = |shown: usize, state: &State| {
            let mut found = Vec::new();
            let show = |text| {
                found.push(text);
                ControlFlow::Continue(())
            };
            let mut sink = Rendered::new(|hit: Hit<'_>| Some(hit.content.into_owned()), show);
            let (request, call) = (Request::default(), Call::default());
            live.search_after(shown, Some(state), &request, &call, &mut sink).map(|_| found)
        };
        let state = db::state(source.path().unwrap()).unwrap();
        assert_eq!(after(1, &state).unwrap(), ["green", "red"]);
        export.add(3, "white");
        let torn = after(1, &state);
        assert!(matches!(torn, Err(Error::Torn { .. })), "{torn:?}");
        // No hit was shown, so there is no hit to continue after.
        assert_eq!(after(0, &state).unwrap(), ["white", "blue", "green", "red"]);
    }
}
