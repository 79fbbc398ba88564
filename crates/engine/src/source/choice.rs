//! Chooses the reader of a source: the index if it is current, else `LIKE`. If the index cannot answer a
//! request, the reader of the index lets `LIKE` answer.

use std::{ops::ControlFlow, sync::Arc};

use super::listing::session::Session;
use super::reader::sink::{Rendered, Sink};
use super::reader::{Reader, SearchPlan, request};
use super::scope::{About, Scope};
use super::{kind::SourceKind, sources::Sources, store::Source};
use crate::error::Result;
use verbatim_base::model::{Hit, Request};
use verbatim_base::{call::Call, map_faults};
use verbatim_index::{Snapshot, TextMatch};

/// The results of aggregating the messages of a snapshot, each with the number of its segment.
pub(crate) type AggregatedTexts<T> = (Arc<Snapshot>, Vec<(usize, T)>);

impl Source {
    /// Returns the best reader for the current state of the source: the index if it is current, else
    /// the database. Leaves out what the user's decisions leave out.
    pub fn reader(&self, call: &Call) -> Arc<dyn Reader> {
        self.visible(self.whole_reader(call))
    }

    /// Does the same as [`Source::reader`], but leaves out nothing.
    pub(crate) fn whole_reader(&self, call: &Call) -> Arc<dyn Reader> {
        self.store().reader(self, call)
    }

    /// Returns whether an index can answer, either in the cluster or a current index on this computer.
    pub fn is_indexed(&self, call: &Call) -> bool {
        self.store().is_indexed(self, call)
    }

    /// Passes the messages that match a request to `sink`, newest first, until the sink breaks off.
    ///
    /// By default the hits are those of SQLite's `LIKE '%text%'` over contents and titles. If the index turns
    /// out to be damaged during the search, `LIKE` takes over.
    pub fn search(
        &self,
        request: &Request,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<SearchPlan> {
        let request = request::checked(request)?;
        self.visible(self.store().searcher(self, call)).search(&request, call, sink)
    }

    /// Passes each message that matches a request to `add`, as [`Snapshot::aggregate_texts`] does,
    /// including messages that answers leave out. Returns `None` if the index cannot answer.
    pub(crate) fn aggregate_texts<T: Send>(
        &self,
        request: &Request,
        call: &Call,
        make: &(dyn Fn() -> T + Sync),
        add: &(dyn Fn(&mut T, TextMatch<'_>) + Sync),
    ) -> Option<AggregatedTexts<T>> {
        let reader = self.whole_reader(call);
        let snapshot = Arc::clone(reader.snapshot()?);
        let done = map_faults::sound(|| snapshot.aggregate_texts(request, &call.stop, make, add));
        let texts = done.ok()?.ok()?;
        if snapshot.is_intact() { Some((snapshot, texts)) } else { None }
    }

    /// Does the same as [`Source::search`], but passes copies of the hits to `show`.
    pub fn exact(
        &self,
        request: &Request,
        call: &Call,
        show: &mut dyn FnMut(Hit<'static>) -> ControlFlow<()>,
    ) -> Result<SearchPlan> {
        self.search(request, call, &mut Rendered::new(|hit: Hit<'_>| Some(hit.into_owned()), show))
    }

    /// Returns the description of a conversation; `None` if no conversation with this id has messages.
    pub(crate) fn about(&self, id: &str, call: &Call) -> Result<Option<About>> {
        about(&*self.reader(call), id, call)
    }

    /// Opens a conversation; `None` if no conversation with this id has messages.
    pub(crate) fn session(
        &self,
        id: &str,
        raw_content: bool,
        call: &Call,
    ) -> Result<Option<Session>> {
        let reader = self.reader(call);
        let Some(messages) = reader.read(id, raw_content, call)? else { return Ok(None) };
        Ok(about(&*reader, id, call)?.map(|about| Session::new(about, messages)))
    }
}

impl Sources {
    /// Returns the description of a conversation; `None` if the source has no conversation with this id
    /// and messages.
    pub(crate) fn about(&self, kind: SourceKind, id: &str, call: &Call) -> Result<Option<About>> {
        let Some(source) = self.within(&[kind])?.pop() else { return Ok(None) };
        source.about(id, call)
    }
}

fn about(reader: &dyn Reader, id: &str, call: &Call) -> Result<Option<About>> {
    let scope = Scope { conversation: Some(id.to_owned()), ..Scope::default() };
    let listing = reader.list(&scope, call)?;
    Ok((!listing.is_empty()).then(|| listing.about(0)))
}
