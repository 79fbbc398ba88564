//! The reader of an index in a cluster.

use std::sync::{Arc, Mutex};
use std::{collections::BTreeMap, ops::ControlFlow};

use super::cluster_about::{KIND, about, origins, within};
use super::{Counts, Listing, Messages, Reader, SearchPlan};
use super::{catalogue::Origins, counter::Counter, read_messages::ReadMessages, sink::Sink};
use crate::error::{Error, Result};
use crate::scoring::{ClusterScorer, Scorer};
use crate::source::scope::{About, Scope};
use verbatim_base::call::{Call, Stop};
use verbatim_base::lock::lock;
use verbatim_base::model::{Instant, Origin, Request};
use verbatim_chats::db::{self, tally::MessageFacts};
use verbatim_cluster::{Cluster, ClusterConversation, Taken, View};
use verbatim_embed::Model;
use verbatim_text::matcher::texts;

/// The reader of an index in a cluster. All its answers show the state at its first question.
pub(crate) struct ClusterReader {
    cluster: Arc<Cluster>,
    model: Model,
    view: Mutex<Option<Arc<View>>>,
}

impl ClusterReader {
    /// Returns a reader. It sends no request before the first question.
    pub(crate) fn new(cluster: Arc<Cluster>, model: &Model) -> ClusterReader {
        ClusterReader { cluster, model: model.clone(), view: Mutex::default() }
    }

    fn view(&self, stop: &Stop) -> Result<Arc<View>> {
        let mut view = lock(&self.view);
        if let Some(view) = &*view {
            return Ok(Arc::clone(view));
        }
        Ok(Arc::clone(view.insert(self.cluster.view(stop)?)))
    }
}

impl Reader for ClusterReader {
    fn search(&self, request: &Request, call: &Call, sink: &mut dyn Sink) -> Result<SearchPlan> {
        if texts(request).iter().flatten().any(|text| text.contains('\0')) {
            return Err(Error::NulInQuery);
        }
        let view = self.view(&call.stop)?;
        let outcome =
            view.search(self.cluster.client()?, request, &call.stop, &mut |taken| match taken {
                Taken::Hit(hit, _) => {
                    sink.push(hit);
                    if call.stop.requested() {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                }
                Taken::End => sink.confirm(call),
            });
        // If the work was stopped, the search may have broken off for this reason.
        if call.stop.requested() {
            sink.discard();
            return Err(db::Error::Stopped.into());
        }
        let found = outcome.inspect_err(|_| sink.discard())?;
        Ok(SearchPlan::ByCluster { took: found.took })
    }

    fn list(&self, scope: &Scope, call: &Call) -> Result<Box<dyn Listing>> {
        let view = self.view(&call.stop)?;
        let places = within(&view, scope);
        Ok(Box::new(ClusterListing { view, places }))
    }

    fn read(&self, id: &str, raw_content: bool, call: &Call) -> Result<Option<Box<dyn Messages>>> {
        let messages =
            self.view(&call.stop)?.read(self.cluster.client()?, id, raw_content, &call.stop)?;
        Ok(ReadMessages::opened(messages))
    }

    fn count(&self, scope: &Scope, day: &dyn Fn(Instant) -> i64, call: &Call) -> Result<Counts> {
        let view = self.view(&call.stop)?;
        let origins = if scope.has_origin() { origins(&view) } else { Origins::new() };
        let mut counter = Counter::new(KIND, scope, Some(&origins), day);
        let mut models: BTreeMap<String, u64> = BTreeMap::new();
        view.tallies(self.cluster.client()?, &call.stop, &mut |it, messages| {
            if !scope.accepts_id(KIND, &it.stored.id) {
                return;
            }
            for message in messages {
                let role = it.roles.get(message.role as usize).map_or("", String::as_str);
                let conversation = it.stored.id.as_str();
                let facts = MessageFacts { conversation, role, time: message.time };
                if !counter.accepts(facts) {
                    continue;
                }
                counter.add_message(facts);
                if let Some(model) = message.model.and_then(|at| it.models.get(at as usize)) {
                    *models.entry(model.clone()).or_default() += 1;
                }
            }
        })?;
        Ok(counter.into_counts(models))
    }

    fn span(&self, call: &Call) -> Result<Option<(Instant, Instant)>> {
        let view = self.view(&call.stop)?;
        let spans = view.conversations().iter().filter_map(|it| it.begun.zip(it.last));
        Ok(spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))))
    }

    fn scorer(&self, scope: &Scope, call: &Call) -> Result<Option<Box<dyn Scorer>>> {
        let cluster = Arc::clone(&self.cluster);
        let view = self.view(&call.stop)?;
        Ok(Some(Box::new(ClusterScorer::new(cluster, view, &self.model, scope, call)?)))
    }
}

struct ClusterListing {
    view: Arc<View>,
    /// Positions of the listed conversations in the view.
    places: Vec<usize>,
}

impl ClusterListing {
    fn at(&self, place: usize) -> &ClusterConversation {
        &self.view.conversations()[self.places[place]]
    }
}

impl Listing for ClusterListing {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn last(&self, place: usize) -> Option<Instant> {
        self.at(place).last
    }

    fn heading(&self, place: usize) -> (&str, &str) {
        let it = self.at(place);
        (&it.stored.id, &it.title)
    }

    /// Returns `None`, because conversations of exports show no origin.
    fn origin(&self, _: usize) -> Option<&Origin> {
        None
    }

    fn describe(&self, place: usize, _: bool) -> About {
        about(self.at(place))
    }
}
