//! The reader of an index in a cluster.

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    sync::{Arc, Mutex},
};

use super::{
    Counts, Listing, Messages, Reader, SearchPlan,
    catalogue::Origins,
    cluster_about::{KIND, about, origins, within},
    counter::Counter,
    read_messages::ReadMessages,
    scan::ScanStore,
    sink::Sink,
};
use crate::{
    error::Result,
    scoring::{ClusterScorer, Scorer},
    source::scope::{About, Scope},
};
use verbatim_base::{
    lock::lock,
    model::{Hit, Instant, Matching, Origin, Request, Stop},
};
use verbatim_chats::db::{self, ScanFilter, ScanPlace, ScannedMessage, tally::MessageFacts};
#[cfg(feature = "cluster")]
use verbatim_cluster::{Cluster, ClusterConversation, Taken, View};
use verbatim_embed::Model;

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
        match &*view {
            Some(view) => Ok(Arc::clone(view)),
            None => Ok(Arc::clone(view.insert(self.cluster.view(stop)?))),
        }
    }
}

impl Reader for ClusterReader {
    fn search(&self, request: &Request, stop: &Stop, sink: &mut dyn Sink) -> Result<SearchPlan> {
        let view = self.view(stop)?;
        let outcome =
            view.search(self.cluster.client()?, request, stop, &mut |taken| match taken {
                Taken::Hit(hit, _) => {
                    sink.push(hit);
                    if stop.requested() {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                }
                Taken::End => sink.confirm(stop),
            });
        // If the work was stopped, the search may have broken off for this reason.
        if stop.requested() {
            sink.discard();
            return Err(db::Error::Stopped.into());
        }
        let found = outcome.inspect_err(|_| sink.discard())?;
        Ok(SearchPlan::ByCluster { took: found.took })
    }

    fn list(&self, scope: &Scope, stop: &Stop) -> Result<Box<dyn Listing>> {
        let view = self.view(stop)?;
        let places = within(&view, scope);
        Ok(Box::new(ClusterListing { view, places }))
    }

    fn read(&self, id: &str, raw_content: bool, stop: &Stop) -> Result<Option<Box<dyn Messages>>> {
        let messages = self.view(stop)?.read(self.cluster.client()?, id, raw_content, stop)?;
        Ok(match messages.is_empty() {
            true => None,
            false => Some(Box::new(ReadMessages::new(messages))),
        })
    }

    fn count(&self, scope: &Scope, day: &dyn Fn(Instant) -> i64, stop: &Stop) -> Result<Counts> {
        let view = self.view(stop)?;
        let origins = if scope.has_origin() { origins(&view) } else { Origins::new() };
        let mut counter = Counter::new(KIND, scope, Some(&origins), day);
        let mut models: BTreeMap<String, u64> = BTreeMap::new();
        view.tallies(self.cluster.client()?, stop, &mut |it, messages| {
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
        Ok(counter.finish(models))
    }

    fn span(&self, stop: &Stop) -> Result<Option<(Instant, Instant)>> {
        let view = self.view(stop)?;
        let spans = view.conversations().iter().filter_map(|it| it.begun.zip(it.last));
        Ok(spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))))
    }

    fn scorer(&self, scope: &Scope, stop: &Stop) -> Result<Option<Box<dyn Scorer>>> {
        let state = (Arc::clone(&self.cluster), self.view(stop)?);
        Ok(Some(Box::new(ClusterScorer::new(state, &self.model, scope, stop)?)))
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

    fn about(&self, place: usize) -> About {
        about(self.at(place))
    }
}

/// A scan of the messages in a cluster for ranking. Only messages that contain one of the words come with
/// their texts.
pub(crate) struct ClusterScan<'a> {
    cluster: &'a Cluster,
    view: Arc<View>,
    words: Vec<String>,
    filter: ScanFilter<'a>,
    stop: &'a Stop,
    /// The names of the scanned documents, by the numbers of their places.
    names: Vec<String>,
}

impl<'a> ClusterScan<'a> {
    /// Opens the current state of the index. The scan reads messages that pass `filter`.
    pub(crate) fn open(
        cluster: &'a Cluster,
        words: Vec<String>,
        filter: ScanFilter<'a>,
        stop: &'a Stop,
    ) -> Result<ClusterScan<'a>> {
        let view = cluster.view(stop)?;
        Ok(ClusterScan { cluster, view, words, filter, stop, names: Vec::new() })
    }
}

impl ScanStore for ClusterScan<'_> {
    fn scan(&mut self, each: &mut dyn FnMut(ScannedMessage<'_>)) -> Result<()> {
        let ScanFilter { roles, since, until } = self.filter;
        let scope = Scope { roles: roles.to_vec(), since, until, ..Scope::default() };
        let mut scanned: HashMap<String, usize> = HashMap::new();
        let mut words = self.words.iter().filter(|word| !word.is_empty()).cloned();
        if let Some(text) = words.next() {
            let request = Request {
                text,
                or: words.collect(),
                matching: Matching::Literal,
                since,
                until,
                ..Request::default()
            };
            let names = &mut self.names;
            let mut take = |hit: Hit<'_>, name: &str| {
                if !scope.accepts_message(&hit.role, hit.time) {
                    return;
                }
                *scanned.entry(hit.conversation_id.to_string()).or_default() += 1;
                let place = ScanPlace::numbered(names.len() as u64);
                names.push(name.to_owned());
                let (conversation, text) = (&*hit.conversation_id, hit.content.as_bytes());
                each(ScannedMessage { place, conversation, time: hit.time, text });
            };
            let client = self.cluster.client()?;
            self.view.search(client, &request, self.stop, &mut |taken| {
                if let Taken::Hit(hit, name) = taken {
                    take(hit, name);
                }
                ControlFlow::Continue(())
            })?;
        }
        // Messages without the words are passed on without text, because they count for the IDF.
        self.view.tallies(self.cluster.client()?, self.stop, &mut |it, messages| {
            let conversation = it.stored.id.as_str();
            let role = |at: u32| it.roles.get(at as usize).map_or("", String::as_str);
            let within = messages.iter().filter(|m| scope.accepts_message(role(m.role), m.time));
            let known = scanned.get(conversation).copied().unwrap_or(0);
            for message in within.skip(known) {
                let (place, time) = (ScanPlace::numbered(u64::MAX), message.time);
                each(ScannedMessage { place, conversation, time, text: b"" });
            }
        })?;
        Ok(())
    }

    fn fetch(
        &mut self,
        places: &[ScanPlace],
        find: &dyn Fn(&str) -> usize,
    ) -> Result<Vec<Hit<'static>>> {
        let name = |place: &ScanPlace| self.names.get(usize::try_from(place.number()).ok()?);
        let names: Vec<&str> = places.iter().filter_map(name).map(String::as_str).collect();
        let hits = self.view.fetch(self.cluster.client()?, &names, self.stop)?;
        Ok(hits.into_iter().map(|hit| hit.into_owned_around(find)).collect())
    }

    fn titles(&mut self) -> Result<Vec<(String, String)>> {
        let all = self.view.conversations().iter();
        Ok(all.map(|it| (it.stored.id.clone(), it.title.clone())).collect())
    }
}
