//! Counts of the messages that match, by what a person narrows a search with.

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    sync::Arc,
};

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

/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// What is counted of a message.
struct Counted {
    key: (SourceKind, String),
    role: String,
    time: Option<Instant>,
}

/// What messages of a conversation that are counted together have in common. Role and month are
/// places in a list of names.
#[derive(Clone, Copy, PartialEq, Eq)]
struct MessageClass {
    role: usize,
    month: usize,
    is_in_time: bool,
}

/// The months of times. To name one takes long, so that is done once for each day.
struct Months<'a> {
    month: &'a dyn Fn(Instant) -> Option<String>,
    names: Vec<Option<String>>,
    /// `None` for a day in which a month ends, in the time zone of the names.
    days: HashMap<i64, Option<usize>>,
}

impl Months<'_> {
    /// Returns the place of a time's month among the names.
    fn of(&mut self, time: Option<Instant>) -> usize {
        let Some(time) = time else { return place_of(&mut self.names, None) };
        let day = time.seconds.div_euclid(DAY);
        let names = &mut self.names;
        let known = *self.days.entry(day).or_insert_with(|| {
            let at = |seconds| (self.month)(Instant { seconds, nanos: 0 });
            let (first, last) = (at(day * DAY), at(day * DAY + DAY - 1));
            (first == last).then(|| place_of(names, first))
        });
        known.unwrap_or_else(|| place_of(&mut self.names, (self.month)(time)))
    }
}

/// Returns the place of a name in a short list, to which it is added if need be.
fn place_of<T: PartialEq>(names: &mut Vec<T>, name: T) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

impl Choice {
    /// Returns whether a time is between the dates.
    fn has_time(&self, time: Option<Instant>) -> bool {
        self.since.is_none_or(|since| time >= Some(since))
            && self.until.is_none_or(|until| time.is_some_and(|time| time <= until))
    }
}

/// What a message is counted by.
struct MessageNames<'a> {
    service: &'a str,
    project: &'a str,
    /// The models of its conversation.
    models: &'a [Arc<str>],
    role: &'a str,
    /// Empty for a message without a time.
    month: &'a str,
}

impl Facets {
    /// Counts messages of one class, each kind of name within the choices among the others.
    fn add(&mut self, count: u64, choice: &Choice, is_in_time: bool, names: &MessageNames<'_>) {
        let is_of = |chosen: &[String], name: &str| {
            chosen.is_empty() || chosen.iter().any(|chosen| chosen == name)
        };
        let of_service = is_of(&choice.services, names.service);
        let of_project = is_of(&choice.projects, names.project);
        let of_model = choice.models.is_empty()
            || names.models.iter().any(|model| is_of(&choice.models, model));
        let of_role = is_of(&choice.roles, names.role);
        if of_project && of_model && of_role && is_in_time {
            add(&mut self.services, names.service, count);
        }
        if of_service && of_model && of_role && is_in_time {
            add(&mut self.projects, names.project, count);
        }
        if of_service && of_project && of_role && is_in_time {
            names.models.iter().for_each(|model| add(&mut self.models, model, count));
        }
        if of_service && of_project && of_model && is_in_time {
            add(&mut self.roles, names.role, count);
        }
        if of_service && of_project && of_model && of_role {
            if !names.month.is_empty() {
                add(&mut self.months, names.month, count);
            }
            self.messages += if is_in_time { count } else { 0 };
        }
    }
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
        let matchers = Matchers::of(&request).map_err(index::Error::from)?;
        let mut facets = Facets { is_complete: true, ..Facets::default() };
        let render = |kind, hit: Hit<'_>| {
            // Messages that are found only by the title of their conversation are not counted.
            if !matchers.accept_text(&hit.content) {
                return None;
            }
            let key = (kind, hit.conversation_id.into_owned());
            Some(Counted { key, role: hit.role.into_owned(), time: hit.time })
        };
        let mut months = Months { month, names: Vec::new(), days: HashMap::new() };
        let mut roles: Vec<String> = Vec::new();
        let mut counts: HashMap<(SourceKind, String), Vec<(MessageClass, u64)>> = HashMap::new();
        let mut show = |Counted { key, role, time }: Counted| {
            let (role, month) = (place_of(&mut roles, role), months.of(time));
            let class = MessageClass { role, month, is_in_time: choice.has_time(time) };
            let of_conversation = counts.entry(key).or_default();
            match of_conversation.iter_mut().find(|(known, _)| *known == class) {
                Some((_, count)) => *count += 1,
                None => of_conversation.push((class, 1)),
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
        for (key, classes) in &counts {
            let place = places.get(key);
            let service = place.map_or(key.0.name(), |place| &*place.service);
            let project = place.and_then(|place| place.project.as_deref()).unwrap_or("");
            let models = place.map(|place| place.models.as_slice()).unwrap_or_default();
            let before = facets.messages;
            for (MessageClass { role, month, is_in_time }, count) in classes {
                let month = months.names[*month].as_deref().unwrap_or("");
                let names = MessageNames { service, project, models, role: &roles[*role], month };
                facets.add(*count, choice, *is_in_time, &names);
            }
            facets.conversations += usize::from(facets.messages > before);
        }
        Ok(facets)
    }
}

fn add(counts: &mut BTreeMap<String, u64>, name: &str, number: u64) {
    match counts.get_mut(name) {
        Some(count) => *count += number,
        None => drop(counts.insert(name.to_owned(), number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_that_ends_within_a_day_is_named_for_each_time() {
        // A zone two hours ahead: months begin two hours before midnight.
        let month = |time: Instant| {
            let days = (time.seconds + 2 * 3600).div_euclid(DAY);
            Some(format!("{}", days.div_euclid(30)))
        };
        let mut months = Months { month: &month, names: Vec::new(), days: HashMap::new() };
        for seconds in (28 * DAY..32 * DAY).step_by(1_800).chain([-1, -3 * 3600]) {
            let time = Instant { seconds, nanos: 5 };
            for _ in 0..2 {
                let at = months.of(Some(time));
                assert_eq!(months.names[at], month(time), "{seconds}");
            }
        }
        let none = months.of(None);
        assert_eq!(months.names[none], None);
    }
}
