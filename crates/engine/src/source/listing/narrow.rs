//! Restricts a scope to the conversations that the filters by name accept.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::{ops::ControlFlow, sync::Arc};

use super::resolve::unknown;
use crate::error::Result;
use crate::filters::{FilterBy, NameFilter, NamedFacts, Narrowing};
use crate::source::kind::SourceKind;
use crate::source::note::Note;
use crate::source::reader::sink::Rendered;
use crate::source::scope::{ConversationIds, Scope};
use crate::source::sources::Sources;
use crate::source::store::Source;
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Matching, Origin, Request};

/// A filter with the names that are given to it, and all names that conversations have for it.
struct GivenFilter<'a> {
    filter: &'static NameFilter,
    given: &'a [String],
    names: BTreeSet<String>,
    /// Which of the given names some conversation has.
    are_met: Vec<bool>,
}

impl GivenFilter<'_> {
    /// Collects the names of a conversation. Returns whether the filter accepts one of them.
    fn accepts(&mut self, facts: &NamedFacts<'_>, is_whole: bool) -> bool {
        let FilterBy::Names { names, fits } = &self.filter.by else { return true };
        let names = names(facts);
        for name in &names {
            if !self.names.contains(*name) {
                self.names.insert((*name).to_owned());
            }
        }
        let mut is_met = false;
        for (given, is_given_met) in self.given.iter().zip(&mut self.are_met) {
            let is_it = if !is_whole || !self.filter.is_facet {
                names.iter().any(|name| fits(given, name))
            } else if given.is_empty() {
                names.is_empty()
            } else {
                names.iter().any(|name| name == given)
            };
            is_met |= is_it;
            *is_given_met |= is_it;
        }
        is_met
    }

    /// Returns the conversations of a source with an accepted call; `None` if the filter is not by calls.
    fn called(&mut self, source: &Source, call: &Call) -> Result<Option<HashSet<String>>> {
        let FilterBy::Calls { fits, .. } = &self.filter.by else { return Ok(None) };
        let mut ids = HashSet::new();
        for (given, is_met) in self.given.iter().zip(&mut self.are_met) {
            source.calls(
                given,
                &|hit| fits(given, &hit.content).then(|| hit.conversation_id.into_owned()),
                &mut |id| {
                    *is_met = true;
                    ids.insert(id);
                },
                call,
            )?;
        }
        Ok(Some(ids))
    }

    /// Returns the first given name that no conversation has. The empty name is none.
    fn unmet(&self) -> Option<&String> {
        let mut given = self.given.iter().zip(&self.are_met);
        given.find_map(|(given, is_met)| (!is_met && !given.is_empty()).then_some(given))
    }
}

impl Sources {
    /// Returns the scope of the conversations that pass all filters, and notes about names that nothing has, and
    /// about sources that name no models.
    pub fn narrowed(&self, narrowing: &Narrowing, call: &Call) -> Result<(Scope, Vec<Note>)> {
        let mut scope = Scope::default();
        let mut given: Vec<GivenFilter<'_>> = Vec::new();
        for (filter, names) in narrowing.given() {
            let are_met = vec![false; names.len()];
            given.push(GivenFilter { filter, given: names, names: BTreeSet::new(), are_met });
        }
        // Sources that are named need not be compared.
        if !narrowing.is_whole
            && let Some(place) = given.iter().position(|it| it.filter.name == "service")
            && let Some(kinds) = kinds_of(given[place].given)
        {
            scope.sources = kinds;
            given.remove(place);
        }
        if given.is_empty() {
            return Ok((scope, Vec::new()));
        }
        let has_services = given.iter().any(|it| it.filter.name == "service");
        let has_models = given.iter().any(|it| it.filter.name == "model");
        let mut without_models = Vec::new();
        let mut ids = ConversationIds::new();
        // The notes about sources themselves are also those of the search in this scope.
        self.each(&scope.sources, |source| {
            let mut provenance = HashMap::new();
            if has_services {
                provenance = source.store().provenance(&source, None, call)?;
            }
            let mut models = HashMap::new();
            if has_models {
                models = source.store().models(&source, call)?;
            }
            let listing = source.reader(call).list(&Scope::default(), call)?;
            if has_models
                && !listing.is_empty()
                && (0..listing.len()).all(|place| !models.contains_key(listing.heading(place).0))
            {
                without_models.push(Note::NoModels { source: source.kind });
            }
            let unknown = Origin::default();
            let called = given.iter_mut().map(|it| it.called(&source, call));
            let called: Vec<_> = called.collect::<Result<_>>()?;
            for place in 0..listing.len() {
                let (id, title) = listing.heading(place);
                let facts = NamedFacts {
                    kind: source.kind,
                    service: provenance.get(id).map(|provenance| provenance.service.as_str()),
                    title,
                    origin: listing.origin(place).unwrap_or(&unknown),
                    models: models.get(id).map(Vec::as_slice).unwrap_or_default(),
                };
                let mut is_wanted = true;
                // Each filter sees every conversation, because errors name what conversations have.
                for (filter, called) in given.iter_mut().zip(&called) {
                    let is_accepted = filter.accepts(&facts, narrowing.is_whole);
                    is_wanted &= is_accepted && called.as_ref().is_none_or(|ids| ids.contains(id));
                }
                if is_wanted {
                    ids.entry(source.kind).or_default().insert(id.to_owned());
                }
            }
            Ok(())
        })?;
        // If no source names models, it is unknown whether a conversation has this model.
        let are_models_unknown = !without_models.is_empty();
        let mut notes = without_models;
        for filter in &given {
            let Some(name) = filter.unmet() else { continue };
            let what = filter.filter.name;
            if what == "model" && are_models_unknown && filter.names.is_empty() {
                continue;
            }
            let mut names = filter.names.clone();
            if let FilterBy::Calls { known: Some(known), .. } = &filter.filter.by {
                self.each(&scope.sources, |source| {
                    let begin = verbatim_text::parts::CALL;
                    let take = &mut |found: Vec<String>| names.extend(found);
                    source.calls(begin, &|hit| Some(known(&hit.content)), take, call)
                })?;
            }
            notes.push(unknown(what, name, names.into_iter().collect()));
        }
        Ok((Scope { conversations: Some(Arc::new(ids)), ..scope }, notes))
    }
}

/// Returns the sources that the names of services mean, if all are names of sources.
fn kinds_of(services: &[String]) -> Option<Vec<SourceKind>> {
    let kinds = services.iter().map(|name| SourceKind::ALL.iter().find(|it| it.name() == name));
    kinds.map(Option::<&SourceKind>::copied).collect()
}

impl Source {
    /// Renders each message of an assistant that contains `text`, and passes the results to `take`.
    fn calls<T>(
        &self,
        text: &str,
        render: &dyn Fn(Hit<'_>) -> Option<T>,
        take: &mut dyn FnMut(T),
        call: &Call,
    ) -> Result<()> {
        let request = Request {
            text: text.to_owned(),
            roles: vec!["assistant".to_owned()],
            matching: Matching::Literal,
            ..Request::default()
        };
        let mut sink = Rendered::new(render, |one| {
            take(one);
            ControlFlow::Continue(())
        });
        self.search(&request, call, &mut sink).map(drop)
    }
}
