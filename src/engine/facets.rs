//! Counts of the messages that match, by what a person narrows a search with.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use super::{
    error::Error,
    source::{Note, Places, Scope, SourceKind, Sources},
};
use crate::{
    index,
    model::{Hit, Instant, Request, Stop},
    text::matcher::Matchers,
};

/// What a search is narrowed to; empty for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Names of services, agents and sources.
    pub(crate) services: Vec<String>,
    /// Names of projects; empty for conversations without one.
    pub(crate) projects: Vec<String>,
    /// Names of models, of which a conversation has one.
    pub(crate) models: Vec<String>,
    /// Roles, as stored.
    pub(crate) roles: Vec<String>,
    pub(crate) since: Option<Instant>,
    pub(crate) until: Option<Instant>,
}

/// Numbers of messages that match, by service, project, model, role and month. Each is counted within the
/// choices among the others, and not within its own: so it says what another choice would find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facets {
    /// Messages within all choices, and the conversations that they are in.
    pub(crate) messages: u64,
    pub(crate) conversations: usize,
    pub(crate) services: BTreeMap<String, u64>,
    pub(crate) projects: BTreeMap<String, u64>,
    pub(crate) models: BTreeMap<String, u64>,
    pub(crate) roles: BTreeMap<String, u64>,
    /// By month, as `2025-01`.
    pub(crate) months: BTreeMap<String, u64>,
    /// Whether every message was counted in time; else there are more.
    pub(crate) is_complete: bool,
    pub(crate) notes: Vec<Note>,
}

/// What is counted of a message.
struct Counted {
    key: (SourceKind, String),
    role: String,
    time: Option<Instant>,
}

impl Sources {
    /// Counts the messages whose text matches a request, until `stop` is requested. The request's
    /// roles and dates do not count, those of the choice do. `month` names the month of a time.
    pub(crate) fn facets(
        &self,
        request: &Request,
        choice: &Choice,
        places: &Places,
        month: &dyn Fn(Instant) -> Option<String>,
        stop: &Stop,
    ) -> Result<Facets, Error> {
        let request = Request { roles: Vec::new(), since: None, until: None, ..request.clone() };
        let matchers = Matchers::of(&request).map_err(index::Error::of_expression)?;
        let mut facets = Facets { is_complete: true, ..Facets::default() };
        let mut conversations = HashSet::new();
        let render = |kind, hit: Hit<'_>| {
            // Messages that are found only by the title of their conversation are not counted.
            if !matchers.accept_text(&hit.content) {
                return None;
            }
            let key = (kind, hit.conversation_id.into_owned());
            Some(Counted { key, role: hit.role.into_owned(), time: hit.time })
        };
        let mut show = |message: Counted| {
            let place = places.get(&message.key);
            let service = place.map_or(message.key.0.name(), |place| &*place.service);
            let project = place.and_then(|place| place.project.as_deref()).unwrap_or("");
            let is_of = |chosen: &[String], name: &str| {
                chosen.is_empty() || chosen.iter().any(|chosen| chosen == name)
            };
            let of_service = is_of(&choice.services, service);
            let of_project = is_of(&choice.projects, project);
            let models = place.map(|place| place.models.as_slice()).unwrap_or_default();
            let of_model = choice.models.is_empty()
                || models.iter().any(|model| choice.models.iter().any(|it| **it == **model));
            let of_role = is_of(&choice.roles, &message.role);
            let in_time = choice.since.is_none_or(|since| message.time >= Some(since))
                && choice.until.is_none_or(|until| message.time.is_some_and(|time| time <= until));
            if of_project && of_model && of_role && in_time {
                add(&mut facets.services, service);
            }
            if of_service && of_model && of_role && in_time {
                add(&mut facets.projects, project);
            }
            if of_service && of_project && of_role && in_time {
                models.iter().for_each(|model| add(&mut facets.models, model));
            }
            if of_service && of_project && of_model && in_time {
                add(&mut facets.roles, &message.role);
            }
            if of_service && of_project && of_model && of_role {
                if let Some(month) = message.time.and_then(month) {
                    add(&mut facets.months, &month);
                }
                if in_time {
                    facets.messages += 1;
                    if !conversations.contains(&message.key) {
                        conversations.insert(message.key);
                    }
                }
            }
            match stop.requested() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        match self.exact_in_all(&request, &Scope::default(), stop, &render, &mut show) {
            Ok(searched) => facets.notes = searched.notes,
            Err(error) if error.is_stopped() => {}
            Err(error) => return Err(error),
        }
        facets.is_complete = !stop.requested();
        facets.conversations = conversations.len();
        Ok(facets)
    }
}

fn add(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}
