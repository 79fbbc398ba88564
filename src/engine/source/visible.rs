//! Sources without the conversations that other sources have in a newer state.
//!
//! Invariant: an exact search of the export alone, as `conversation_search` asks it, leaves out nothing.

use std::{
    collections::{BTreeMap, HashSet},
    ops::ControlFlow,
    sync::Arc,
};

use super::{
    hidden::{HiddenOf, Ids},
    kind::SourceKind,
    live::Counter,
    reader::{Counts, Listing, Messages, Reader, SearchPlan},
    scope::{About, Scope},
    scoring::Scorer,
    sink::Sink,
    sources::Source,
};
use crate::{
    db,
    engine::error::Error,
    model::{Hit, Instant, Origin, Request, Stop},
};

impl Source {
    /// Returns the conversations of this source that answers about all sources leave out; `None` if
    /// there are none. Where a database cannot be read, nothing is left out.
    pub(crate) fn hidden(&self, stop: &Stop) -> Option<Ids> {
        let config = self.config();
        let is_whole = self.kind == SourceKind::Export && self.is_alone;
        if self.kind == SourceKind::Threads || is_whole || !config.has_transcripts() {
            return None;
        }
        let export = match self.kind {
            SourceKind::Export => Some(self.path.clone()),
            _ => config.export_database().ok(),
        };
        let hidden = self.hidden_ids().of(config.archive_database(), export, config, stop);
        let HiddenOf { elsewhere, in_store, in_export } = hidden?;
        let ids = match self.kind {
            SourceKind::Export => in_export,
            _ if self.is_alone => elsewhere,
            _ => in_store,
        };
        (!ids.is_empty()).then_some(ids)
    }

    /// Does as [`Source::search`] does, without the conversations that another source has too.
    pub(crate) fn search_visible(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> Result<SearchPlan, Error> {
        match self.hidden(stop) {
            None => self.search(request, stop, sink),
            Some(hidden) => {
                let unlimited = Request { limit: None, ..request.clone() };
                self.search(&unlimited, stop, &mut VisibleSink::new(&hidden, request, sink))
            }
        }
    }

    /// Returns a reader without the conversations that another source has too.
    pub(super) fn visible(&self, reader: Arc<dyn Reader>, stop: &Stop) -> Arc<dyn Reader> {
        match self.hidden(stop) {
            None => reader,
            Some(hidden) => Arc::new(VisibleReader { source: self.clone(), inner: reader, hidden }),
        }
    }
}

/// Hands on the hits of conversations that are not left out, as many as a request wants.
struct VisibleSink<'a> {
    hidden: &'a HashSet<String>,
    left: usize,
    sink: &'a mut dyn Sink,
}

impl<'a> VisibleSink<'a> {
    fn new(
        hidden: &'a HashSet<String>,
        request: &Request,
        sink: &'a mut dyn Sink,
    ) -> VisibleSink<'a> {
        VisibleSink { hidden, left: request.limit.unwrap_or(usize::MAX), sink }
    }
}

impl Sink for VisibleSink<'_> {
    fn take(&mut self, hit: Hit<'_>) {
        if self.left > 0 && !self.hidden.contains(&*hit.conversation_id) {
            self.left -= 1;
            self.sink.take(hit);
        }
    }

    fn confirm(&mut self, stop: &Stop) -> ControlFlow<()> {
        self.sink.confirm(stop)?;
        if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn discard(&mut self) {
        self.sink.discard();
    }
}

/// A reader without some conversations.
struct VisibleReader {
    source: Source,
    inner: Arc<dyn Reader>,
    hidden: Ids,
}

impl Reader for VisibleReader {
    fn search(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> Result<SearchPlan, Error> {
        let unlimited = Request { limit: None, ..request.clone() };
        self.inner.search(&unlimited, stop, &mut VisibleSink::new(&self.hidden, request, sink))
    }

    fn list(&self, scope: &Scope, stop: &Stop) -> Result<Box<dyn Listing>, Error> {
        let inner = self.inner.list(scope, stop)?;
        let is_visible = |place: &usize| !self.hidden.contains(inner.heading(*place).0);
        let places = (0..inner.len()).filter(is_visible).collect();
        Ok(Box::new(VisibleListing { inner, places }))
    }

    fn read(
        &self,
        id: &str,
        raw_content: bool,
        stop: &Stop,
    ) -> Result<Option<Box<dyn Messages>>, Error> {
        if self.hidden.contains(id) { Ok(None) } else { self.inner.read(id, raw_content, stop) }
    }

    fn count(&self, stop: &Stop) -> Result<Counts, Error> {
        let mut counts = self.inner.count(stop)?;
        let mut hidden = Counter::default();
        let mut conversations = 0;
        for id in &*self.hidden {
            let Some(messages) = self.inner.read(id, false, stop)? else { continue };
            conversations += 1;
            for turn in 0..messages.turns() {
                hidden.add(messages.role(turn), messages.message(turn).time);
            }
        }
        let models = self.source.on_database(|path| {
            db::read(path, stop, |database| db::tally::models_of(database, &self.hidden))
        })?;
        let hidden = hidden.finish(conversations, models);
        counts.conversations = counts.conversations.saturating_sub(hidden.conversations);
        subtract(&mut counts.roles, &hidden.roles);
        subtract(&mut counts.days, &hidden.days);
        subtract(&mut counts.models, &hidden.models);
        Ok(counts)
    }

    fn span(&self, stop: &Stop) -> Result<Option<(Instant, Instant)>, Error> {
        self.inner.span(stop)
    }

    fn scorer(&self, scope: &Scope, stop: &Stop) -> Result<Option<Box<dyn Scorer>>, Error> {
        let visible = self.list(&Scope::default(), stop)?;
        let ids = (0..visible.len()).map(|place| visible.heading(place).0);
        let ids = ids.filter(|id| scope.accepts_id(id)).map(str::to_owned).collect();
        let scope = Scope { conversations: Some(Arc::new(ids)), ..scope.clone() };
        self.inner.scorer(&scope, stop)
    }
}

/// Takes counts from others. A count of nothing is no count.
fn subtract<K: Ord>(counts: &mut BTreeMap<K, u64>, others: &BTreeMap<K, u64>) {
    for (key, other) in others {
        if let Some(count) = counts.get_mut(key) {
            *count = count.saturating_sub(*other);
        }
    }
    counts.retain(|_, count| *count > 0);
}

/// A list without some conversations.
struct VisibleListing {
    inner: Box<dyn Listing>,
    /// The places of the others in the whole list.
    places: Vec<usize>,
}

impl Listing for VisibleListing {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn last(&self, place: usize) -> Option<Instant> {
        self.inner.last(self.places[place])
    }

    fn heading(&self, place: usize) -> (&str, &str) {
        self.inner.heading(self.places[place])
    }

    fn turns(&self, place: usize) -> u32 {
        self.inner.turns(self.places[place])
    }

    fn origin(&self, place: usize) -> Option<&Origin> {
        self.inner.origin(self.places[place])
    }

    fn about(&self, place: usize) -> About {
        self.inner.about(self.places[place])
    }

    fn shared_start(&self, id: &str) -> usize {
        self.inner.shared_start(id)
    }

    fn brief(&self, place: usize) -> About {
        self.inner.brief(self.places[place])
    }
}
