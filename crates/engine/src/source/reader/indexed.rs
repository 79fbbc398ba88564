//! The reader that answers from the index of a source.

use std::sync::{Arc, OnceLock};
use std::{collections::HashSet, ops::ControlFlow};

use super::catalogue::{Catalogue, Origins};
use super::{Counts, Listing, Messages, Reader, SearchPlan};
use super::{counter::Counter, live::LiveReader, sink::Sink, turns::TurnFinder};
use crate::error::{Error, Result};
use crate::scoring::{IndexedScorer, Scorer};
use crate::source::scope::{About, Scope};
use crate::source::store::Source;
use crate::source::store::handle::FallbackReason;
use verbatim_base::call::Call;
use verbatim_base::map_faults::{self, FaultWatch};
use verbatim_base::model::{Hit, Instant, Origin, Request};
use verbatim_chats::db;
use verbatim_index::{self as index, Found, Snapshot};
use verbatim_text::matcher::texts;

#[derive(Debug)]
pub(crate) struct IndexedReader {
    source: Source,
    snapshot: Arc<Snapshot>,
    catalogue: OnceLock<Arc<Catalogue>>,
    /// Whether `LIKE` answers the rest of a search in which the index fails.
    falls_back: bool,
}

enum IndexOutcome {
    Found(SearchPlan),
    /// The index failed after this many hits had been shown.
    Failed {
        reason: String,
        confirmed: usize,
    },
}

impl IndexedReader {
    pub(crate) fn new(source: Source, snapshot: Arc<Snapshot>) -> IndexedReader {
        IndexedReader { source, snapshot, catalogue: OnceLock::new(), falls_back: false }
    }

    /// Returns a reader whose search lets `LIKE` answer the rest if the index fails.
    pub(crate) fn falling_back(source: Source, snapshot: Arc<Snapshot>) -> IndexedReader {
        IndexedReader { falls_back: true, ..IndexedReader::new(source, snapshot) }
    }

    /// Lets `LIKE` answer the rest of a search after `confirmed` hits of the index.
    fn by_like(
        &self,
        reason: String,
        confirmed: usize,
        request: &Request,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<SearchPlan> {
        let state = self.snapshot.state().parse().unwrap_or_default();
        let live = LiveReader::new(self.source.clone(), FallbackReason::Unreadable(reason));
        live.search_after(confirmed, Some(&state), request, call, sink)
    }

    /// Returns the reason why only `LIKE` can answer a request; `None` if the index can answer.
    fn only_like(&self, request: &Request) -> Option<FallbackReason> {
        // The index stores NULL as an empty role, but SQLite distinguishes the two. A replacement
        // character may stand for bytes that are not UTF-8.
        if request.roles.iter().any(|role| role.is_empty() || role.contains('\u{FFFD}')) {
            return Some(FallbackReason::EmptyRole);
        }
        if texts(request).iter().flatten().any(|text| text.contains('\0')) {
            return Some(FallbackReason::NulInPattern);
        }
        let is_bytewise = request.roles.is_empty() || self.snapshot.reading().bytewise_roles;
        (!is_bytewise).then_some(FallbackReason::RoleColumn)
    }

    /// Searches the index, or the database if only `LIKE` can answer the request.
    fn attempt(&self, request: &Request, call: &Call, sink: &mut dyn Sink) -> Result<IndexOutcome> {
        if let Some(reason) = self.only_like(request) {
            let live = LiveReader::new(self.source.clone(), reason);
            return Ok(IndexOutcome::Found(live.search(request, call, sink)?));
        }
        let only = sink.only();
        let none = HashSet::new();
        let mut verified = VerifiedSink::new(&self.snapshot, call, sink);
        // The files were checked when they were opened, but a file may change during the search.
        let found = map_faults::caught(|| {
            let stop = &call.stop;
            let trace = match &only {
                Some(only) => {
                    let ids = only.get(&self.source.kind).unwrap_or(&none);
                    self.snapshot
                        .search_in(ids, request, stop, &mut |found| verified.push(found))?
                }
                None => self.snapshot.search(request, stop, &mut |found| verified.push(found))?,
            };
            verified.confirm();
            Ok(trace)
        });
        let reason = match found {
            Ok(Ok(_)) if verified.is_stopped => return Err(db::Error::Stopped.into()),
            Ok(Ok(trace)) if !verified.is_torn => {
                return Ok(IndexOutcome::Found(SearchPlan::ByIndex { trace }));
            }
            Ok(Ok(_)) => "its files changed while they were read".to_owned(),
            Ok(Err(error @ index::Error::Expression(_))) => return Err(error.into()),
            Ok(Err(index::Error::Stopped)) => return Err(db::Error::Stopped.into()),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("searching it failed: {panic}"),
        };
        verified.sink.discard();
        Ok(IndexOutcome::Failed { reason, confirmed: verified.confirmed })
    }

    fn catalogue(&self) -> &Arc<Catalogue> {
        self.catalogue.get_or_init(|| self.source.catalogue(&self.snapshot))
    }

    /// Returns the origins of conversations; `None` for sources without origins.
    fn origins(&self, call: &Call) -> Result<Option<Arc<Origins>>> {
        if !self.source.kind.has_origins() {
            return Ok(None);
        }
        let path = self.source.path()?;
        Ok(Some(self.catalogue().origins(|| db::read_tables(path, call, db::origins))?))
    }
}

impl Reader for IndexedReader {
    fn search(&self, request: &Request, call: &Call, sink: &mut dyn Sink) -> Result<SearchPlan> {
        match self.attempt(request, call, sink)? {
            IndexOutcome::Found(plan) => return Ok(plan),
            IndexOutcome::Failed { .. } if !self.falls_back => {
                let folder = self.source.index_dir()?.folder().to_owned();
                return Err(Error::Torn { folder });
            }
            IndexOutcome::Failed { reason, confirmed: confirmed @ 1.. } => {
                return self.by_like(reason, confirmed, request, call, sink);
            }
            IndexOutcome::Failed { .. } => {}
        }
        // The files may have changed before the search, so the index is opened and checked again.
        let again = match self.source.current_index(call) {
            Ok(snapshot) => IndexedReader::new(self.source.clone(), snapshot),
            Err(reason) => {
                return LiveReader::new(self.source.clone(), reason).search(request, call, sink);
            }
        };
        match again.attempt(request, call, sink)? {
            IndexOutcome::Found(plan) => Ok(plan),
            IndexOutcome::Failed { reason, confirmed } => {
                again.by_like(reason, confirmed, request, call, sink)
            }
        }
    }

    fn list(&self, scope: &Scope, call: &Call) -> Result<Box<dyn Listing>> {
        let catalogue = self.catalogue();
        let origins = match self.origins(call) {
            Ok(origins) => origins,
            // Only a scope with a project or a session needs the origins.
            Err(error) if scope.has_origin() => return Err(error),
            Err(_) => None,
        };
        let numbers =
            if scope.is_open() { None } else { Some(catalogue.within(scope, origins.as_deref())) };
        Ok(Box::new(IndexedListing { catalogue: Arc::clone(catalogue), origins, numbers }))
    }

    fn read(&self, id: &str, raw_content: bool, _: &Call) -> Result<Option<Box<dyn Messages>>> {
        let catalogue = Arc::clone(self.catalogue());
        let Some(conversation) = catalogue.find(id) else { return Ok(None) };
        let finder = TurnFinder::default();
        Ok(Some(Box::new(IndexedMessages { catalogue, conversation, raw_content, finder })))
    }

    fn count(&self, scope: &Scope, day: &dyn Fn(Instant) -> i64, call: &Call) -> Result<Counts> {
        let catalogue = self.catalogue();
        let origins = if scope.has_origin() { self.origins(call)? } else { None };
        let mut counter = Counter::new(self.source.kind, scope, origins.as_deref(), day);
        // Roles are checked for each message, not for each conversation.
        let any_role = Scope { roles: Vec::new(), ..scope.clone() };
        for conversation in catalogue.within(&any_role, origins.as_deref()) {
            call.stop.check(db::Error::Stopped)?;
            let mut messages = 0;
            for doc_id in catalogue.doc_ids(conversation) {
                let role = self.snapshot.role(doc_id);
                let time = self.snapshot.time(doc_id);
                if scope.accepts_message(role, time) {
                    counter.add(role, time);
                    messages += 1;
                }
            }
            if messages > 0 {
                counter.add_to_conversation(catalogue.id(conversation), messages);
            }
        }
        let models = self.source.on_database(|path| {
            if scope.is_open() {
                return db::read_tables(path, call, db::tally::models);
            }
            db::read(path, call, |database| {
                db::tally::models_where(database, &mut |message| counter.accepts(message))
            })
        })?;
        Ok(counter.into_counts(models))
    }

    fn span(&self, _: &Call) -> Result<Option<(Instant, Instant)>> {
        let snapshot = &self.snapshot;
        // Within a segment the newest message is first, and messages without a time are last.
        let spans = snapshot.segments().into_iter().filter_map(|segment| {
            let mut living = segment.doc_ids.filter(|doc_id| snapshot.is_alive(*doc_id));
            let last = living.find_map(|doc_id| snapshot.time(doc_id))?;
            Some((living.rev().find_map(|doc_id| snapshot.time(doc_id)).unwrap_or(last), last))
        });
        Ok(spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))))
    }

    fn scorer(&self, scope: &Scope, call: &Call) -> Result<Option<Box<dyn Scorer>>> {
        let origins = self.origins(call)?;
        let searcher = self.source.searcher(self.catalogue());
        Ok(Some(Box::new(IndexedScorer::new(searcher, scope, origins))))
    }

    fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        Some(&self.snapshot)
    }
}

struct IndexedListing {
    catalogue: Arc<Catalogue>,
    origins: Option<Arc<Origins>>,
    /// Numbers of the listed conversations in the catalogue; `None` for all conversations.
    numbers: Option<Vec<u32>>,
}

impl IndexedListing {
    fn number(&self, place: usize) -> u32 {
        self.numbers.as_ref().map_or(place as u32, |found| found[place])
    }
}

impl Listing for IndexedListing {
    fn len(&self) -> usize {
        self.numbers.as_ref().map_or(self.catalogue.count(), Vec::len)
    }

    fn last(&self, place: usize) -> Option<Instant> {
        self.catalogue.last(self.number(place))
    }

    fn heading(&self, place: usize) -> (&str, &str) {
        let number = self.number(place);
        (self.catalogue.id(number), self.catalogue.title(number))
    }

    fn turns(&self, place: usize) -> u32 {
        self.catalogue.turns(self.number(place))
    }

    fn messages(&self) -> u64 {
        match &self.numbers {
            Some(numbers) => {
                numbers.iter().map(|number| u64::from(self.catalogue.turns(*number))).sum()
            }
            None => self.catalogue.snapshot().messages().into(),
        }
    }

    fn origin(&self, place: usize) -> Option<&Origin> {
        self.origins.as_ref()?.get(self.heading(place).0)
    }

    fn describe(&self, place: usize, with_summary: bool) -> About {
        self.catalogue.about(self.number(place), self.origins.as_deref(), with_summary)
    }

    fn shared_start(&self, id: &str) -> usize {
        self.catalogue.shared_start(id)
    }

    fn beginning_with(&self, start: &str) -> Option<Vec<usize>> {
        if self.numbers.is_some() {
            return None;
        }
        let numbers = self.catalogue.beginning_with(start).into_iter();
        Some(numbers.map(|number| number as usize).collect())
    }
}

#[derive(Debug)]
struct IndexedMessages {
    catalogue: Arc<Catalogue>,
    conversation: u32,
    raw_content: bool,
    finder: TurnFinder,
}

impl IndexedMessages {
    fn doc_ids(&self) -> &[u32] {
        self.catalogue.reading(self.conversation)
    }

    fn snapshot(&self) -> &Snapshot {
        self.catalogue.snapshot()
    }
}

impl Messages for IndexedMessages {
    fn turns(&self) -> usize {
        self.doc_ids().len()
    }

    fn role(&self, turn: usize) -> &str {
        self.snapshot().role(self.doc_ids()[turn])
    }

    fn time(&self, turn: usize) -> Option<Instant> {
        self.snapshot().time(self.doc_ids()[turn])
    }

    fn position(&self, turn: usize) -> Option<i64> {
        self.snapshot().position(self.doc_ids()[turn])
    }

    fn message(&self, turn: usize) -> Hit<'_> {
        self.snapshot().hit(self.doc_ids()[turn], self.raw_content)
    }

    fn turn_of(&self, hit: &Hit<'_>) -> Option<usize> {
        let wanted = (hit.time, hit.position);
        self.finder.find(
            self.turns(),
            &wanted,
            |turn| (self.time(turn), self.position(turn)),
            |turn| {
                (self.time(turn), self.position(turn)) == wanted
                    && self.snapshot().hit(self.doc_ids()[turn], false).message_id == hit.message_id
            },
        )
    }
}

/// Number of hits that are held back before the stamps of the index files are checked.
const BATCH_HITS: usize = 256;

/// Number of bytes of text that are held back before the stamps of the index files are checked.
const BATCH_BYTES: usize = 1 << 20;

/// Sink that confirms hits only while the index files stay unchanged.
struct VerifiedSink<'a> {
    snapshot: &'a Snapshot,
    call: &'a Call,
    faults: FaultWatch,
    sink: &'a mut dyn Sink,
    /// Number of hits that are not confirmed yet, and the bytes of their texts.
    held: usize,
    bytes: usize,
    confirmed: usize,
    is_over: bool,
    is_stopped: bool,
    /// Whether the index files changed during the search.
    is_torn: bool,
}

impl<'a> VerifiedSink<'a> {
    fn new(snapshot: &'a Snapshot, call: &'a Call, sink: &'a mut dyn Sink) -> VerifiedSink<'a> {
        VerifiedSink {
            snapshot,
            call,
            faults: FaultWatch::begin(),
            sink,
            held: 0,
            bytes: 0,
            confirmed: 0,
            is_over: false,
            is_stopped: false,
            is_torn: false,
        }
    }

    fn push(&mut self, mut found: Found<'_, '_>) -> ControlFlow<()> {
        let is_read = self.sink.reads(&found.conversation_id()) || !found.is_by_text();
        let hit = if is_read { found.hit() } else { found.unread() };
        self.bytes += hit.content.len();
        self.held += 1;
        self.sink.push(hit);
        if self.held >= BATCH_HITS || self.bytes >= BATCH_BYTES {
            self.confirm();
        }
        if self.is_over || self.is_torn || self.is_stopped {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Confirms the hits so far, unless the index files may have changed.
    fn confirm(&mut self) {
        if self.is_over || self.is_torn || self.is_stopped {
            return;
        }
        if self.faults.has_noticed() || !self.snapshot.is_intact() {
            self.is_torn = true;
            return;
        }
        self.confirmed += self.held;
        self.held = 0;
        self.bytes = 0;
        self.is_over = self.sink.confirm(self.call).is_break();
        self.is_stopped = self.call.stop.requested();
    }
}
