//! Narrows a scope to the conversations that a person describes: their source, project, branch, folder.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{
    kind::SourceKind,
    note::Note,
    resolve::nearest,
    scope::{Scope, is_same},
    sources::{Source, Sources},
};
use crate::{
    db,
    engine::error::Error,
    model::{Origin, Provenance, Stop},
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
        let Narrowing { services, project, branch, folder } = narrowing;
        let mut services = Known::of("source", services, is_same);
        let mut project = Known::of("project", project.as_slice(), is_part);
        let mut branch = Known::of("branch", branch.as_slice(), is_same);
        let mut folder = Known::of("folder", folder.as_slice(), is_part);
        let mut ids = HashSet::new();
        let (_, mut notes) = self.each(&scope, |source| {
            let provenance = match narrowing.services.is_empty() {
                true => HashMap::new(),
                false => source.provenance(None, stop)?,
            };
            let listing = source.reader(stop).list(&Scope::default(), stop)?;
            for place in 0..listing.len() {
                let (id, _) = listing.heading(place);
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
                ];
                if is_wanted.iter().all(|is_wanted| *is_wanted) {
                    ids.insert(id.to_owned());
                }
            }
            Ok(())
        })?;
        for known in [services, project, branch, folder] {
            if let Some(given) = known.given.first().filter(|_| !known.is_met) {
                let names = nearest(given, known.names.into_iter().collect());
                notes.push(Note::Unknown { what: known.what, given: given.clone(), known: names });
            }
        }
        Ok((Scope { conversations: Some(Arc::new(ids)), ..scope }, notes))
    }

    /// Returns which services conversations of a kind of source are from, by id.
    pub(crate) fn provenance(
        &self,
        kind: SourceKind,
        ids: &[&str],
        stop: &Stop,
    ) -> Result<HashMap<String, Provenance>, Error> {
        let Some(source) = self.of_kind(kind) else { return Ok(HashMap::new()) };
        source.provenance(Some(ids), stop)
    }
}

impl Sources {
    /// Returns how many messages are from each service, of some kinds of sources or of all. Where the
    /// service is not known, the source counts.
    pub(crate) fn services(
        &self,
        kinds: &[SourceKind],
        stop: &Stop,
    ) -> Result<BTreeMap<String, u64>, Error> {
        let scope = Scope { sources: kinds.to_vec(), ..Scope::default() };
        let mut services: BTreeMap<String, u64> = BTreeMap::new();
        self.each(&scope, |source| {
            let provenance = source.provenance(None, stop)?;
            let listing = source.reader(stop).list(&Scope::default(), stop)?;
            for place in 0..listing.len() {
                let service = provenance.get(listing.heading(place).0).map(|it| &*it.service);
                let name = service.unwrap_or(source.kind.name());
                let turns = u64::from(listing.turns(place));
                match services.get_mut(name) {
                    Some(count) => *count += turns,
                    None => drop(services.insert(name.to_owned(), turns)),
                }
            }
            Ok(())
        })?;
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
}

impl Sources {
    /// Returns where every conversation is from. Sources that cannot be read are left out.
    pub(crate) fn places(
        &self,
        stop: &Stop,
    ) -> Result<HashMap<(SourceKind, String), Place>, Error> {
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
            let listing = source.reader(stop).list(&Scope::default(), stop)?;
            for at in 0..listing.len() {
                let (id, _) = listing.heading(at);
                let service = provenance.get(id).map(|it| &*it.service);
                let service = service.filter(|name| !name.is_empty());
                let project = listing.origin(at).and_then(|origin| origin.project.as_deref());
                let project = project.filter(|name| !name.is_empty()).map(&mut shared);
                let service = shared(service.unwrap_or(source.kind.name()));
                places.insert((source.kind, id.to_owned()), Place { service, project });
            }
            Ok(())
        })?;
        Ok(places)
    }
}

impl Source {
    fn provenance(
        &self,
        ids: Option<&[&str]>,
        stop: &Stop,
    ) -> Result<HashMap<String, Provenance>, Error> {
        self.on_database(|path| db::read(path, stop, |database| db::provenance(database, ids)))
    }
}

/// Returns whether a text is a part of a name, in any letter case.
fn is_part(text: &str, name: &str) -> bool {
    name.to_lowercase().contains(&text.to_lowercase())
}
