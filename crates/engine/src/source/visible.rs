//! The one place where decisions are applied to answers: the reader that leaves out excluded and superseded
//! conversations. `decisions` says what these words mean.
//!
//! Invariant: an exact search of the export alone, as in `conversation_search`, leaves out only what the
//! user excludes.

use std::{collections::HashSet, ops::ControlFlow, path::Path, sync::Arc};

use super::reader::sink::Sink;
use super::reader::{Counts, Listing, Messages, Reader, SearchPlan};
use super::scope::{ConversationIds, Scope};
use super::{kind::SourceKind, store::Source};
use crate::decisions::superseded::Ids;
use crate::{error::Result, scoring::Scorer};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Request};

impl Source {
    /// Returns whether the user's exclusions may concern the source.
    pub(crate) fn may_exclude(&self) -> bool {
        self.kind.may_be_left_out() && !self.exclusions().is_empty()
    }

    /// Returns the ids of the conversations that the user excludes from all answers.
    pub(crate) fn excluded(&self, call: &Call) -> Result<Ids> {
        if !self.may_exclude() {
            return Ok(Arc::default());
        }
        self.store().excluded(self, &self.exclusions(), call)
    }

    /// Returns the conversations of this source of which another source, or another configuration of the
    /// home, has the copy to show. `None` if there are none, or if a database cannot be read.
    fn superseded(&self, call: &Call) -> Option<Ids> {
        let config = self.config();
        let is_whole = self.kind == SourceKind::Export && self.is_alone;
        if !self.kind.may_be_left_out() || is_whole || !config.has_transcripts() {
            return None;
        }
        let export = match self.kind {
            SourceKind::Export => self.database().map(Path::to_owned),
            _ => config.export_store().ok().and_then(|it| it.path().map(Path::to_owned)),
        };
        let superseded = &self.shared.superseded;
        let superseded = superseded.between(config.archive_database(), export, config, call)?;
        let ids = match self.kind {
            SourceKind::Export => superseded.in_export,
            _ if self.is_alone => superseded.elsewhere,
            _ => superseded.in_store,
        };
        (!ids.is_empty()).then_some(ids)
    }

    pub(crate) fn left_out(&self, call: &Call) -> Result<Ids> {
        let excluded = self.excluded(call)?;
        Ok(match self.superseded(call) {
            None => excluded,
            Some(superseded) if excluded.is_empty() => superseded,
            Some(superseded) => Arc::new(superseded.union(&excluded).cloned().collect()),
        })
    }

    /// Wraps a reader so that it leaves out the conversations that answers must not show.
    pub(super) fn visible(&self, reader: Arc<dyn Reader>) -> Arc<dyn Reader> {
        let may_be_superseded = self.kind.may_be_left_out() && self.config().has_transcripts();
        if may_be_superseded || self.may_exclude() {
            Arc::new(VisibleReader { source: self.clone(), inner: reader })
        } else {
            reader
        }
    }
}

/// A reader that leaves out some conversations of its source.
struct VisibleReader {
    source: Source,
    inner: Arc<dyn Reader>,
}

impl VisibleReader {
    /// Returns the scope, with the conversations that are left out as its exclusions.
    fn within(&self, scope: &Scope, call: &Call) -> Result<Scope> {
        Ok(Scope { excluded: self.source.left_out(call)?, ..scope.clone() })
    }
}

impl Reader for VisibleReader {
    fn search(&self, request: &Request, call: &Call, sink: &mut dyn Sink) -> Result<SearchPlan> {
        let left_out = self.source.left_out(call)?;
        search(&left_out, request, sink, |request, sink| self.inner.search(request, call, sink))
    }

    fn list(&self, scope: &Scope, call: &Call) -> Result<Box<dyn Listing>> {
        self.inner.list(&self.within(scope, call)?, call)
    }

    fn read(&self, id: &str, raw_content: bool, call: &Call) -> Result<Option<Box<dyn Messages>>> {
        if self.source.left_out(call)?.contains(id) {
            return Ok(None);
        }
        self.inner.read(id, raw_content, call)
    }

    fn count(&self, scope: &Scope, day: &dyn Fn(Instant) -> i64, call: &Call) -> Result<Counts> {
        self.inner.count(&self.within(scope, call)?, day, call)
    }

    fn span(&self, call: &Call) -> Result<Option<(Instant, Instant)>> {
        if self.source.left_out(call)?.is_empty() {
            return self.inner.span(call);
        }
        let listing = self.list(&Scope::default(), call)?;
        let abouts = (0..listing.len()).map(|place| listing.about_without_summary(place));
        let spans = abouts.filter_map(|about| about.begun.zip(about.last));
        Ok(spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))))
    }

    fn scorer(&self, scope: &Scope, call: &Call) -> Result<Option<Box<dyn Scorer>>> {
        self.inner.scorer(&self.within(scope, call)?, call)
    }
}

/// Runs a search, and drops the hits in conversations that are left out.
fn search(
    left_out: &HashSet<String>,
    request: &Request,
    sink: &mut dyn Sink,
    run: impl FnOnce(&Request, &mut dyn Sink) -> Result<SearchPlan>,
) -> Result<SearchPlan> {
    if left_out.is_empty() {
        return run(request, sink);
    }
    // Dropped hits do not count towards the limit.
    let all = Request { limit: None, ..request.clone() };
    let most = request.limit.unwrap_or(usize::MAX);
    run(&all, &mut VisibleSink { left_out, most, taken: 0, confirmed: 0, sink })
}

/// Sink that passes on hits whose conversations are not left out, up to a limit.
struct VisibleSink<'a> {
    left_out: &'a HashSet<String>,
    most: usize,
    taken: usize,
    confirmed: usize,
    sink: &'a mut dyn Sink,
}

impl Sink for VisibleSink<'_> {
    fn push(&mut self, hit: Hit<'_>) {
        if self.taken < self.most && !self.left_out.contains(&*hit.conversation_id) {
            self.taken += 1;
            self.sink.push(hit);
        }
    }

    fn confirm(&mut self, call: &Call) -> ControlFlow<()> {
        self.confirmed = self.taken;
        match self.sink.confirm(call) {
            ControlFlow::Continue(()) if self.confirmed < self.most => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn discard(&mut self) {
        self.taken = self.confirmed;
        self.sink.discard();
    }

    fn reads(&self, conversation: &str) -> bool {
        self.sink.reads(conversation)
    }

    fn left_out(&self) -> Option<(HashSet<String>, usize)> {
        let (mut ids, most) = self.sink.left_out().unwrap_or((HashSet::new(), usize::MAX));
        ids.extend(self.left_out.iter().cloned());
        Some((ids, most.min(self.most - self.taken)))
    }

    fn only(&self) -> Option<Arc<ConversationIds>> {
        self.sink.only()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{reader::live::LiveReader, store::handle::FallbackReason};
    use super::*;
    use crate::Rendered;

    fn hit(conversation: &'static str, message: &'static str) -> Hit<'static> {
        Hit {
            message_id: message.into(),
            conversation_id: conversation.into(),
            title: "".into(),
            role: "".into(),
            time: None,
            content: "".into(),
            position: None,
        }
    }

    #[test]
    fn without_an_index_no_more_is_read_than_asked_for() {
        /// Sink that counts the hits it receives from a reader.
        struct Counted<'a>(usize, &'a mut dyn Sink);

        impl Sink for Counted<'_> {
            fn push(&mut self, hit: Hit<'_>) {
                self.0 += 1;
                self.1.push(hit);
            }
            fn confirm(&mut self, call: &Call) -> ControlFlow<()> {
                self.1.confirm(call)
            }
            fn discard(&mut self) {
                self.1.discard();
            }
            fn left_out(&self) -> Option<(HashSet<String>, usize)> {
                self.1.left_out()
            }
        }

        let export = crate::TestExport::of(&["red"; 40]);
        let source = export.engine.sources().remove(0);
        let (superseded, excluded) = (["39"], ["38", "36"]);
        let [superseded, excluded] = [&superseded[..], &excluded]
            .map(|ids| ids.iter().map(|id| id.to_string()).collect::<HashSet<String>>());
        let request = Request { text: "red".to_owned(), limit: Some(3), ..Request::default() };
        let (mut shown, mut count, call) = (Vec::new(), 0, Call::default());
        let show = |id: String| {
            shown.push(id);
            ControlFlow::Continue(())
        };
        let mut sink = Rendered::new(|hit: Hit<'_>| Some(hit.message_id.into_owned()), show);
        search(&superseded, &request, &mut sink, |request, sink| {
            search(&excluded, request, sink, |request, sink| {
                let mut counted = Counted(0, sink);
                let reader = LiveReader::new(source.clone(), FallbackReason::NoIndex);
                let plan = reader.search(request, &call, &mut counted);
                count = counted.0;
                plan
            })
        })
        .unwrap();
        assert_eq!((shown.join(" ").as_str(), count), ("m37 m35 m34", 3));
    }

    #[test]
    fn excluded_hits_do_not_count_for_the_limit() {
        let excluded = HashSet::from(["a".to_owned()]);
        let (mut shown, call) = (Vec::new(), Call::default());
        let show = |id: String| {
            shown.push(id);
            ControlFlow::Continue(())
        };
        let mut inner = Rendered::new(|hit: Hit<'_>| Some(hit.message_id.into_owned()), show);
        let mut sink =
            VisibleSink { left_out: &excluded, most: 3, taken: 0, confirmed: 0, sink: &mut inner };
        sink.push(hit("a", "1"));
        sink.push(hit("b", "2"));
        assert!(sink.confirm(&call).is_continue());
        // Another reader finds the discarded hits again.
        sink.push(hit("b", "lost"));
        sink.discard();
        for (conversation, message) in [("a", "3"), ("b", "4"), ("b", "5"), ("b", "6")] {
            sink.push(hit(conversation, message));
        }
        assert!(sink.confirm(&call).is_break());
        assert_eq!(shown, ["2", "4", "5"]);
    }
}
