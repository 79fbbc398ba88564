//! Narrows a scope to the conversations that a person describes: their source, project, branch, folder,
//! model.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::ControlFlow,
    sync::Arc,
};

use super::{
    kind::SourceKind,
    note::Note,
    resolve::nearest,
    scope::{About, ConversationIds, Scope, is_same},
    sink::Rendered,
    sources::{Source, Sources},
};
use crate::{
    engine::error::Error,
    import::tool,
    model::{Hit, Matching, Origin, Provenance, Request, Stop},
};

/// What describes conversations beyond a scope; empty for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Narrowing {
    /// Names of sources, services and agents.
    pub(crate) services: Vec<String>,
    /// A part of the project's name.
    pub(crate) project: Option<String>,
    /// The branch's name.
    pub(crate) branch: Option<String>,
    /// A part of the working folder's path.
    pub(crate) folder: Option<String>,
    /// A part of the name of a model that answered.
    pub(crate) model: Option<String>,
    /// A part of the name of a tool that an agent called.
    pub(crate) tool: Option<String>,
    /// A part of the path of a file that an agent's call names.
    pub(crate) file: Option<String>,
}

/// One of the descriptions, and the names that conversations have for it.
struct Known<'a> {
    what: &'static str,
    given: &'a [String],
    fits: fn(&str, &str) -> bool,
    names: BTreeSet<String>,
    is_met: bool,
}

impl Known<'_> {
    fn of<'a>(what: &'static str, given: &'a [String], fits: fn(&str, &str) -> bool) -> Known<'a> {
        Known { what, given, fits, names: BTreeSet::new(), is_met: false }
    }

    /// Notes the names of a conversation; returns whether one of them fits.
    fn look(&mut self, names: &[&str]) -> bool {
        if self.given.is_empty() {
            return true;
        }
        for name in names {
            if !self.names.contains(*name) {
                self.names.insert((*name).to_owned());
            }
        }
        let fits = |name: &&str| self.given.iter().any(|given| (self.fits)(given, name));
        let is_met = names.iter().any(fits);
        self.is_met |= is_met;
        is_met
    }
}

/// The descriptions of what agents called.
struct Calls<'a>(Vec<Call<'a>>);

/// What an agent's message has if a call in it is as described.
struct Call<'a> {
    what: &'static str,
    given: &'a str,
    fits: fn(&str, &str) -> bool,
    is_met: bool,
}

impl Calls<'_> {
    fn of(narrowing: &Narrowing) -> Calls<'_> {
        type Fits = fn(&str, &str) -> bool;
        let tool: Fits = |name, content| tool::called(content).any(|tool| is_part(name, tool));
        let file: Fits = |path, content| tool::named_files(content).any(|file| is_part(path, file));
        let calls = [("tool", &narrowing.tool, tool), ("file", &narrowing.file, file)];
        let given = calls.into_iter().filter_map(|(what, given, fits)| {
            Some(Call { what, given: given.as_deref()?, fits, is_met: false })
        });
        Calls(given.collect())
    }

    /// Returns for each description the conversations of a source that it fits.
    fn look(&mut self, source: &Source, stop: &Stop) -> Result<Vec<HashSet<String>>, Error> {
        let look = |call: &mut Call<'_>| {
            let (given, fits) = (call.given, call.fits);
            let id =
                |hit: Hit<'_>| fits(given, &hit.content).then(|| hit.conversation_id.into_owned());
            let mut ids = HashSet::new();
            source.calls(given, &id, &mut |id| ids.extend([id]), stop)?;
            call.is_met |= !ids.is_empty();
            Ok(ids)
        };
        self.0.iter_mut().map(look).collect()
    }
}

impl Sources {
    /// Returns the scope with the conversations that have all of the descriptions. Notes names that
    /// nothing has.
    pub(crate) fn narrowed(
        &self,
        scope: Scope,
        narrowing: &Narrowing,
        stop: &Stop,
    ) -> Result<(Scope, Vec<Note>), Error> {
        if *narrowing == Narrowing::default() {
            return Ok((scope, Vec::new()));
        }
        let Narrowing { services, project, branch, folder, model, .. } = narrowing;
        let mut services = Known::of("source", services, is_same);
        let mut project = Known::of("project", project.as_slice(), is_part);
        let mut branch = Known::of("branch", branch.as_slice(), is_same);
        let mut folder = Known::of("folder", folder.as_slice(), is_part);
        let mut model = Known::of("model", model.as_slice(), is_part);
        let mut without_models = Vec::new();
        let mut calls = Calls::of(narrowing);
        let mut ids = ConversationIds::new();
        let (_, mut notes) = self.each(&scope, |source| {
            let provenance = match narrowing.services.is_empty() {
                true => HashMap::new(),
                false => source.provenance(None, stop)?,
            };
            let models = match narrowing.model {
                None => HashMap::new(),
                Some(_) => source.models(stop)?,
            };
            let listing = source.reader(stop).list(&Scope::default(), stop)?;
            let has_model = |place: usize| models.contains_key(listing.heading(place).0);
            let has_models = (0..listing.len()).any(has_model);
            if narrowing.model.is_some() && !has_models && !listing.is_empty() {
                without_models.push(Note::NoModels { source: source.kind });
            }
            let called = calls.look(&source, stop)?;
            for place in 0..listing.len() {
                let (id, _) = listing.heading(place);
                let of_models = models.get(id).map(Vec::as_slice).unwrap_or_default();
                let of_models: Vec<&str> = of_models.iter().map(String::as_str).collect();
                let service = provenance.get(id).map(|provenance| provenance.service.as_str());
                let names: Vec<&str> = service.into_iter().chain([source.kind.name()]).collect();
                let of = |field: fn(&Origin) -> &Option<String>| -> Vec<&str> {
                    listing.origin(place).and_then(|it| field(it).as_deref()).into_iter().collect()
                };
                let is_wanted = [
                    services.look(&names),
                    project.look(&of(|origin| &origin.project)),
                    branch.look(&of(|origin| &origin.branch)),
                    folder.look(&of(|origin| &origin.folder)),
                    model.look(&of_models),
                ];
                let is_called = called.iter().all(|ids| ids.contains(id));
                if is_called && is_wanted.iter().all(|is_wanted| *is_wanted) {
                    ids.entry(source.kind).or_default().insert(id.to_owned());
                }
            }
            Ok(())
        })?;
        // Where no source names models, nobody knows whether one has this model.
        let is_model_unknown = model.names.is_empty() && !without_models.is_empty();
        notes.append(&mut without_models);
        let model = Some(model).filter(|_| !is_model_unknown);
        for known in [services, project, branch, folder].into_iter().chain(model) {
            if let Some(given) = known.given.first().filter(|_| !known.is_met) {
                let names = nearest(given, known.names.into_iter().collect());
                notes.push(Note::Unknown { what: known.what, given: given.clone(), known: names });
            }
        }
        for Call { what, given, .. } in calls.0.into_iter().filter(|call| !call.is_met) {
            let known = match what {
                "tool" => nearest(given, self.called_tools(&scope, stop)?),
                _ => Vec::new(),
            };
            notes.push(Note::Unknown { what, given: given.to_owned(), known });
        }
        Ok((Scope { conversations: Some(Arc::new(ids)), ..scope }, notes))
    }

    /// Returns the names of the tools that agents called.
    fn called_tools(&self, scope: &Scope, stop: &Stop) -> Result<Vec<String>, Error> {
        let mut names = BTreeSet::new();
        self.each(scope, |source| {
            let of = |content: &str| tool::called(content).map(str::to_owned).collect::<Vec<_>>();
            source.calls(
                tool::CALL,
                &|hit| Some(of(&hit.content)),
                &mut |of| names.extend(of),
                stop,
            )
        })?;
        Ok(names.into_iter().collect())
    }

    /// Returns which services conversations of a kind of source are from, by id.
    pub(crate) fn provenance(
        &self,
        kind: SourceKind,
        ids: &[&str],
        stop: &Stop,
    ) -> Result<HashMap<String, Provenance>, Error> {
        let Some(source) = self.of_kind(kind)? else { return Ok(HashMap::new()) };
        source.provenance(Some(ids), stop)
    }

    /// Returns the messages of a conversation that its service does not show, as `db::branches` does.
    pub(crate) fn branches(
        &self,
        kind: SourceKind,
        id: &str,
        stop: &Stop,
    ) -> Result<HashMap<String, String>, Error> {
        let Some(source) = self.of_kind(kind)?.filter(|_| kind == SourceKind::Export) else {
            return Ok(HashMap::new());
        };
        source.branches(id, stop)
    }

    /// Returns the conversation that a coding agent's session was forked from, if it is known.
    pub(crate) fn forked_from(&self, id: &str, stop: &Stop) -> Result<Option<About>, Error> {
        let Some(source) = self.of_kind(SourceKind::Archive)? else { return Ok(None) };
        match source.forked_from(id, stop)? {
            Some(parent) if parent != id => self.about(SourceKind::Archive, &parent, stop),
            _ => Ok(None),
        }
    }
}

impl Sources {
    /// Returns how many of the messages that were counted by conversation are from each service. Where
    /// the service is not known, the source counts.
    pub(crate) fn services(
        &self,
        counted: &[(SourceKind, HashMap<String, u64>)],
        stop: &Stop,
    ) -> Result<BTreeMap<String, u64>, Error> {
        let mut services: BTreeMap<String, u64> = BTreeMap::new();
        for (kind, conversations) in counted {
            let provenance = match self.of_kind(*kind)? {
                Some(source) => source.provenance(None, stop)?,
                None => HashMap::new(),
            };
            for (id, messages) in conversations {
                let service = provenance.get(id).map(|it| &*it.service);
                let name = service.unwrap_or(kind.name());
                match services.get_mut(name) {
                    Some(count) => *count += messages,
                    None => drop(services.insert(name.to_owned(), *messages)),
                }
            }
        }
        Ok(services)
    }
}

/// Where a conversation is from, as filters name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The service or the agent; the source where that is not known.
    pub(crate) service: Arc<str>,
    /// The project, of a coding agent's conversation.
    pub(crate) project: Option<Arc<str>>,
    /// The models that answered, as far as the database names them.
    pub(crate) models: Vec<Arc<str>>,
}

/// Where every conversation is from.
pub(crate) type Places = HashMap<(SourceKind, String), Place>;

impl Sources {
    /// Returns where every conversation is from, without their models unless they are wanted: those take
    /// long to read. Sources that cannot be read are left out.
    pub(crate) fn places(&self, with_models: bool, stop: &Stop) -> Result<Places, Error> {
        let mut names: HashSet<Arc<str>> = HashSet::new();
        let mut shared = |name: &str| match names.get(name) {
            Some(name) => Arc::clone(name),
            None => {
                let name: Arc<str> = name.into();
                names.insert(Arc::clone(&name));
                name
            }
        };
        let mut places = HashMap::new();
        self.each(&Scope::default(), |source| {
            let provenance = source.provenance(None, stop)?;
            let models = match with_models {
                true => source.models(stop)?,
                false => HashMap::new(),
            };
            let listing = source.reader(stop).list(&Scope::default(), stop)?;
            for at in 0..listing.len() {
                let (id, _) = listing.heading(at);
                let service = provenance.get(id).map(|it| &*it.service);
                let service = service.filter(|name| !name.is_empty());
                let project = listing.origin(at).and_then(|origin| origin.project.as_deref());
                let project = project.filter(|name| !name.is_empty()).map(&mut shared);
                let service = shared(service.unwrap_or(source.kind.name()));
                let models = models.get(id).map(Vec::as_slice).unwrap_or_default();
                let models = models.iter().map(|name| shared(name)).collect();
                places.insert((source.kind, id.to_owned()), Place { service, project, models });
            }
            Ok(())
        })?;
        Ok(places)
    }
}

impl Source {
    /// Calls `take` with what `render` makes of each message of an assistant that has a text.
    fn calls<T>(
        &self,
        text: &str,
        render: &dyn Fn(Hit<'_>) -> Option<T>,
        take: &mut dyn FnMut(T),
        stop: &Stop,
    ) -> Result<(), Error> {
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

/// Returns whether a text is a part of a name, in any letter case.
fn is_part(text: &str, name: &str) -> bool {
    name.to_lowercase().contains(&text.to_lowercase())
}
