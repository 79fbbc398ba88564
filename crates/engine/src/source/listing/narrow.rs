//! Restricts a scope to the conversations that a user describes by their source, project, branch, folder
//! or model.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::ControlFlow,
    sync::Arc,
};

use super::resolve::nearest;
use crate::{
    decisions::exclusions::projects,
    error::Result,
    import::FORMATS,
    source::{
        kind::SourceKind,
        note::Note,
        reader::sink::Rendered,
        scope::{ConversationIds, Scope, is_part, is_same},
        sources::Sources,
        store::Source,
    },
};
use verbatim_base::model::{Hit, Matching, Origin, Request, Stop};
use verbatim_chats::import::tool;

/// Filters of conversations in addition to a scope. A filter accepts the conversations that have one of its
/// names, in any letter case; an empty filter accepts all conversations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// Names of services, agents and sources.
    pub services: Vec<String>,
    /// Parts of names of projects.
    pub projects: Vec<String>,
    /// Parts of names of branches of Git.
    pub branches: Vec<String>,
    /// Parts of paths of working folders.
    pub folders: Vec<String>,
    /// Parts of names of models that answered.
    pub models: Vec<String>,
    /// Parts of names of tools that an agent called.
    pub tools: Vec<String>,
    /// Parts of paths of files that an agent's tool call names.
    pub files: Vec<String>,
}

/// One filter, with all names that conversations have for it.
struct NameFilter<'a> {
    what: &'static str,
    given: &'a [String],
    fits: fn(&str, &str) -> bool,
    names: BTreeSet<String>,
    /// Which of the given names some conversation has.
    are_met: Vec<bool>,
}

impl NameFilter<'_> {
    fn of<'a>(
        what: &'static str,
        given: &'a [String],
        fits: fn(&str, &str) -> bool,
    ) -> NameFilter<'a> {
        NameFilter { what, given, fits, names: BTreeSet::new(), are_met: vec![false; given.len()] }
    }

    /// Collects the names of a conversation. Returns whether the filter accepts one of them.
    fn look(&mut self, names: &[&str]) -> bool {
        if self.given.is_empty() {
            return true;
        }
        for name in names {
            if !self.names.contains(*name) {
                self.names.insert((*name).to_owned());
            }
        }
        let mut is_met = false;
        for (given, is_given_met) in self.given.iter().zip(&mut self.are_met) {
            if names.iter().any(|name| (self.fits)(given, name)) {
                (is_met, *is_given_met) = (true, true);
            }
        }
        is_met
    }
}

/// The filters on tool calls of agents.
struct Calls<'a>([CallFilter<'a>; 2]);

/// A filter on tool calls: by the tools' names or by the files' paths.
struct CallFilter<'a> {
    what: &'static str,
    given: &'a [String],
    fits: fn(&str, &str) -> bool,
    are_met: Vec<bool>,
}

impl Calls<'_> {
    fn of(narrowing: &Narrowing) -> Calls<'_> {
        type Fits = fn(&str, &str) -> bool;
        let tool: Fits = |name, content| tool::called(content).any(|tool| is_part(name, tool));
        let file: Fits = |path, content| tool::named_files(content).any(|file| is_part(path, file));
        let filter =
            |what, given, fits| CallFilter { what, given, fits, are_met: vec![false; given.len()] };
        Calls([
            filter("tool", &narrowing.tools[..], tool),
            filter("file", &narrowing.files[..], file),
        ])
    }

    /// Returns, for each filter that is not empty, the conversations of a source that it accepts.
    fn look(&mut self, source: &Source, stop: &Stop) -> Result<Vec<HashSet<String>>> {
        let look = |call: &mut CallFilter<'_>| {
            let mut ids = HashSet::new();
            for (given, is_met) in call.given.iter().zip(&mut call.are_met) {
                let fits = call.fits;
                let id = |hit: Hit<'_>| {
                    fits(given, &hit.content).then(|| hit.conversation_id.into_owned())
                };
                let mut take = |id| {
                    *is_met = true;
                    ids.extend([id]);
                };
                source.calls(given, &id, &mut take, stop)?;
            }
            Ok(ids)
        };
        self.0.iter_mut().filter(|call| !call.given.is_empty()).map(look).collect()
    }
}

impl Sources {
    /// Returns the scope, restricted to the conversations that pass all filters. Adds notes about names that
    /// nothing has.
    pub fn narrowed(
        &self,
        scope: Scope,
        narrowing: &Narrowing,
        stop: &Stop,
    ) -> Result<(Scope, Vec<Note>)> {
        if *narrowing == Narrowing::default() {
            return Ok((scope, Vec::new()));
        }
        let Narrowing { services, branches, folders, models, .. } = narrowing;
        let mut service = NameFilter::of("service", services, is_service);
        let mut project = NameFilter::of("project", &narrowing.projects, is_part);
        let mut branch = NameFilter::of("branch", branches, is_part);
        let mut folder = NameFilter::of("folder", folders, is_part);
        let mut model = NameFilter::of("model", models, is_part);
        let mut without_models = Vec::new();
        let mut calls = Calls::of(narrowing);
        let mut ids = ConversationIds::new();
        let (_, mut notes) = self.each(&scope.sources, |source| {
            let provenance = match narrowing.services.is_empty() {
                true => HashMap::new(),
                false => source.store().provenance(&source, None, stop)?,
            };
            let models = match narrowing.models.is_empty() {
                true => HashMap::new(),
                false => source.store().models(&source, stop)?,
            };
            let listing = source.reader(stop).list(&Scope::default(), stop)?;
            let has_model = |place: usize| models.contains_key(listing.heading(place).0);
            let has_models = (0..listing.len()).any(has_model);
            if !narrowing.models.is_empty() && !has_models && !listing.is_empty() {
                without_models.push(Note::NoModels { source: source.kind });
            }
            let unknown = Origin::default();
            let called = calls.look(&source, stop)?;
            for place in 0..listing.len() {
                let (id, _) = listing.heading(place);
                let of_models = models.get(id).map(Vec::as_slice).unwrap_or_default();
                let of_models: Vec<&str> = of_models.iter().map(String::as_str).collect();
                let named = provenance.get(id).map(|provenance| provenance.service.as_str());
                let names: Vec<&str> = named.into_iter().chain([source.kind.name()]).collect();
                let origin = listing.origin(place).unwrap_or(&unknown);
                let projects: Vec<&str> = projects(origin).collect();
                let branches: Vec<&str> = origin.branch.as_deref().into_iter().collect();
                let folders: Vec<&str> = origin.folders().collect();
                let is_wanted = [
                    service.look(&names),
                    project.look(&projects),
                    branch.look(&branches),
                    folder.look(&folders),
                    model.look(&of_models),
                ];
                let is_in_scope = scope.accepts_id(source.kind, id);
                let is_called = called.iter().all(|ids| ids.contains(id));
                if is_in_scope && is_called && is_wanted.iter().all(|is_wanted| *is_wanted) {
                    ids.entry(source.kind).or_default().insert(id.to_owned());
                }
            }
            Ok(())
        })?;
        // If no source names models, it is unknown whether a conversation has this model.
        let is_model_unknown = model.names.is_empty() && !without_models.is_empty();
        notes.append(&mut without_models);
        let model = Some(model).filter(|_| !is_model_unknown);
        for filter in [service, project, branch, folder].into_iter().chain(model) {
            let NameFilter { what, given, names, are_met, .. } = filter;
            if let Some(given) = unmet(given, &are_met) {
                let known = nearest(given, names.into_iter().collect());
                notes.push(Note::Unknown { what, given: given.clone(), known });
            }
        }
        for CallFilter { what, given, are_met, .. } in calls.0 {
            let Some(given) = unmet(given, &are_met) else { continue };
            let known = match what {
                "tool" => nearest(given, self.called_tools(&scope.sources, stop)?),
                _ => Vec::new(),
            };
            notes.push(Note::Unknown { what, given: given.clone(), known });
        }
        Ok((Scope { conversations: Some(Arc::new(ids)), ..scope }, notes))
    }

    fn called_tools(&self, kinds: &[SourceKind], stop: &Stop) -> Result<Vec<String>> {
        let mut names = BTreeSet::new();
        self.each(kinds, |source| {
            let of = |content: &str| tool::called(content).map(str::to_owned).collect::<Vec<_>>();
            source.calls(
                verbatim_text::parts::CALL,
                &|hit| Some(of(&hit.content)),
                &mut |of| names.extend(of),
                stop,
            )
        })?;
        Ok(names.into_iter().collect())
    }
}

impl Source {
    /// Renders each message of an assistant that contains `text`, and passes the results to `take`.
    fn calls<T>(
        &self,
        text: &str,
        render: &dyn Fn(Hit<'_>) -> Option<T>,
        take: &mut dyn FnMut(T),
        stop: &Stop,
    ) -> Result<()> {
        let roles = vec!["assistant".to_owned()];
        let request = Request {
            text: text.to_owned(),
            roles,
            matching: Matching::Literal,
            ..Request::default()
        };
        let taken = |one: T| {
            take(one);
            ControlFlow::Continue(())
        };
        self.search(&request, stop, &mut Rendered::new(render, taken)).map(drop)
    }
}

/// Returns the first given name that no conversation has.
fn unmet<'a>(given: &'a [String], are_met: &[bool]) -> Option<&'a String> {
    given.iter().zip(are_met).find_map(|(given, is_met)| (!is_met).then_some(given))
}

/// Returns whether a service is meant by a whole name, or by a part that is not the name of another one: the
/// name of Claude.ai begins that of Claude Code.
fn is_service(given: &str, service: &str) -> bool {
    let is_known = || {
        let kinds = SourceKind::ALL.into_iter().map(SourceKind::name);
        let services = FORMATS.iter().map(|format| format.service());
        kinds.map(str::to_owned).chain(services).any(|known| is_same(given, &known))
    };
    is_same(given, service) || is_part(given, service) && !is_known()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;

    #[test]
    fn conversations_of_a_scope_are_narrowed_further() {
        let export = TestExport::of(&["red", "blue", "green"]);
        let ids = |ids: &[&str]| -> ConversationIds {
            [(SourceKind::Export, ids.iter().map(|id| (*id).to_owned()).collect())].into()
        };
        let narrowing = Narrowing { services: vec!["Export".to_owned()], ..Narrowing::default() };
        let narrowed = |scope: Scope| {
            let sources = export.engine.all_sources();
            let (scope, _) = sources.narrowed(scope, &narrowing, &Stop::never()).unwrap();
            scope.conversations.unwrap()
        };
        assert_eq!(*narrowed(Scope::default()), ids(&["0", "1", "2"]));
        let two = Some(Arc::new(ids(&["0", "1"])));
        assert_eq!(*narrowed(Scope { conversations: two, ..Scope::default() }), ids(&["0", "1"]));
    }
}
