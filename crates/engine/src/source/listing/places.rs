//! Where conversations are from: their services, projects and models.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::{
    decisions::exclusions::projects as projects_of,
    error::Result,
    source::{kind::SourceKind, scope::Scope, sources::Sources},
};
use verbatim_base::call::Call;

/// The properties of a conversation by which filters select it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The service or the agent, or the name of the source if neither is known.
    pub service: Arc<str>,
    /// The projects of a coding agent's conversation, each once.
    pub projects: Vec<Arc<str>>,
    /// The models that answered, if the database names them.
    pub models: Vec<Arc<str>>,
}

impl Place {
    /// Returns the names that a facet has for the projects of a conversation: the empty name for none.
    pub fn named_projects(projects: &[Arc<str>]) -> impl Iterator<Item = &str> {
        let none = projects.is_empty().then_some("");
        projects.iter().map(|project| &**project).chain(none)
    }
}

/// Where every conversation is from.
pub type Places = HashMap<(SourceKind, String), Place>;

impl Sources {
    /// Returns the service, project and models of every conversation. Reads the models only if
    /// `with_models` is set, because they take long. Leaves out sources that cannot be read.
    pub fn places(&self, with_models: bool, call: &Call) -> Result<Places> {
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
        self.each(&[], |source| {
            let provenance = source.store().provenance(&source, None, call)?;
            let models =
                if with_models { source.store().models(&source, call)? } else { HashMap::new() };
            let listing = source.reader(call).list(&Scope::default(), call)?;
            for at in 0..listing.len() {
                let (id, _) = listing.heading(at);
                let service = provenance.get(id).map(|it| &*it.service);
                let service = service.filter(|name| !name.is_empty());
                let mut projects: Vec<Arc<str>> = Vec::new();
                for project in listing.origin(at).into_iter().flat_map(projects_of) {
                    if projects.iter().all(|known| **known != *project) {
                        projects.push(shared(project));
                    }
                }
                let service = shared(service.unwrap_or(source.kind.name()));
                let models = models.get(id).map(Vec::as_slice).unwrap_or_default();
                let models = models.iter().map(|name| shared(name)).collect();
                places.insert((source.kind, id.to_owned()), Place { service, projects, models });
            }
            Ok(())
        })?;
        Ok(places)
    }

    /// Splits counts of messages by conversation into counts by service. If a service is not known, the
    /// name of the source is used.
    pub fn services(
        &self,
        counted: &[(SourceKind, HashMap<String, u64>)],
        call: &Call,
    ) -> Result<BTreeMap<String, u64>> {
        let mut services: BTreeMap<String, u64> = BTreeMap::new();
        for (kind, conversations) in counted {
            let provenance = match self.of_kind(*kind)? {
                Some(source) => source.store().provenance(&source, None, call)?,
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
