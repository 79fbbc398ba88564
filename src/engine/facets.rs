//! Counts of the messages that match, by what a person narrows a search with.

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    sync::Arc,
};

use super::{
    error::Error,
    source::{Note, Places, Scope, Source, SourceKind, Sources, request::checked, sink::Rendered},
};
use crate::{
    index::{self, TextMatch},
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
    /// The conversations that are counted at all, as far as it names some.
    pub(crate) within: Scope,
}

/// Numbers of messages that match, by service, project, model, role and month. Each number ignores the
/// choice of its own kind and follows all others: it says how many messages another choice would find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facets {
    /// Messages that fit all choices, and the conversations that they are in.
    pub(crate) messages: u64,
    pub(crate) conversations: usize,
    pub(crate) services: BTreeMap<String, u64>,
    pub(crate) projects: BTreeMap<String, u64>,
    pub(crate) models: BTreeMap<String, u64>,
    pub(crate) roles: BTreeMap<String, u64>,
    /// By month, as `2025-01`.
    pub(crate) months: BTreeMap<String, u64>,
    /// Whether every message was counted in time; otherwise there are more messages.
    pub(crate) is_complete: bool,
    pub(crate) notes: Vec<Note>,
}

/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// What messages of a conversation that are counted together have in common. Role and month are
/// places in a list of names.
#[derive(Clone, Copy, PartialEq, Eq)]
struct MessageClass {
    role: usize,
    month: usize,
    is_in_time: bool,
}

/// Numbers of messages by class.
type ClassCounts = Vec<(MessageClass, u64)>;

fn add_to(counts: &mut ClassCounts, class: MessageClass, number: u64) {
    // Messages come ordered by time, so the next message probably has the class of the last one.
    match counts.iter_mut().rev().find(|(known, _)| *known == class) {
        Some((_, count)) => *count += number,
        None => counts.push((class, number)),
    }
}

/// Names the month of a time.
type MonthOf<'a> = &'a (dyn Fn(Instant) -> Option<String> + Sync);

/// The months of times. To name a month takes long, so each day is named only once.
struct Months<'a> {
    month: MonthOf<'a>,
    names: Vec<Option<String>>,
    /// `None` for a day in which a month ends, in the time zone of the names.
    days: HashMap<i64, Option<usize>>,
    /// The day that was asked for last.
    last: Option<(i64, usize)>,
}

impl Months<'_> {
    /// Returns the place of a time's month among the names.
    fn of(&mut self, time: Option<Instant>) -> usize {
        let Some(time) = time else { return place_of(&mut self.names, None) };
        let day = time.seconds.div_euclid(DAY);
        if let Some((_, place)) = self.last.filter(|(last, _)| *last == day) {
            return place;
        }
        let names = &mut self.names;
        let known = *self.days.entry(day).or_insert_with(|| {
            let at = |seconds| (self.month)(Instant { seconds, nanos: 0 });
            let (first, last) = (at(day * DAY), at(day * DAY + DAY - 1));
            (first == last).then(|| place_of(names, first))
        });
        self.last = known.map(|place| (day, place));
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

/// What conversations that are counted together have in common.
#[derive(PartialEq, Eq, Hash)]
struct CommonOrigin<'a> {
    service: &'a str,
    /// Empty for none.
    project: &'a str,
    models: &'a [Arc<str>],
}

impl Choice {
    fn has_origin(&self, origin: &CommonOrigin<'_>) -> bool {
        let is_of = |chosen: &[String], name: &str| {
            chosen.is_empty() || chosen.iter().any(|chosen| chosen == name)
        };
        is_of(&self.services, origin.service)
            && is_of(&self.projects, origin.project)
            && (self.models.is_empty()
                || origin.models.iter().any(|model| is_of(&self.models, model)))
    }

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
    /// The month; empty for a message without a time.
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

/// Counts messages by conversation and class.
struct ClassCounter<'a> {
    choice: &'a Choice,
    months: Months<'a>,
    roles: Vec<String>,
    /// By the number of the conversation.
    conversations: Vec<ClassCounts>,
}

impl<'a> ClassCounter<'a> {
    fn new(choice: &'a Choice, month: MonthOf<'a>) -> ClassCounter<'a> {
        let months = Months { month, names: Vec::new(), days: HashMap::new(), last: None };
        ClassCounter { choice, months, roles: Vec::new(), conversations: Vec::new() }
    }

    fn add(&mut self, conversation: usize, role: &str, time: Option<Instant>) {
        let known = self.roles.iter().position(|known| known == role);
        let role = known.unwrap_or_else(|| place_of(&mut self.roles, role.to_owned()));
        let is_in_time = self.choice.has_time(time);
        let class = MessageClass { role, month: self.months.of(time), is_in_time };
        if self.conversations.len() <= conversation {
            self.conversations.resize(conversation + 1, Vec::new());
        }
        add_to(&mut self.conversations[conversation], class, 1);
    }
}

/// The counts of every source, and the names of their classes.
#[derive(Default)]
struct Collected {
    roles: Vec<String>,
    months: Vec<Option<String>>,
    counts: HashMap<(SourceKind, String), ClassCounts>,
}

impl Collected {
    /// Takes the counts of conversations, of which `id` returns the ids; `None` leaves one out.
    fn take(
        &mut self,
        kind: SourceKind,
        counter: ClassCounter<'_>,
        id: impl Fn(usize) -> Option<String>,
    ) {
        let roles = counter.roles.into_iter().map(|name| place_of(&mut self.roles, name));
        let roles: Vec<usize> = roles.collect();
        let months = counter.months.names.into_iter().map(|name| place_of(&mut self.months, name));
        let months: Vec<usize> = months.collect();
        for (number, classes) in counter.conversations.into_iter().enumerate() {
            if classes.is_empty() {
                continue;
            }
            let Some(id) = id(number) else { continue };
            let of_conversation = self.counts.entry((kind, id)).or_default();
            for (class, count) in classes {
                let (role, month) = (roles[class.role], months[class.month]);
                add_to(of_conversation, MessageClass { role, month, ..class }, count);
            }
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
        month: MonthOf<'_>,
        stop: &Stop,
    ) -> Result<Facets, Error> {
        let request = Request { roles: Vec::new(), since: None, until: None, ..request.clone() };
        let request = checked(&request)?;
        let mut collected = Collected::default();
        let (_, notes) = self.each(&Scope::default(), |source| {
            match count(&source, &request, (choice, month), &mut collected, stop) {
                Err(error) if error.is_stopped() => Ok(()),
                done => done,
            }
        })?;
        let Collected { roles, months, counts } = collected;
        let mut facets = Facets { is_complete: !stop.requested(), notes, ..Facets::default() };
        let is_chosen = |role: &String| choice.roles.is_empty() || choice.roles.contains(role);
        let chosen: Vec<bool> = roles.iter().map(is_chosen).collect();
        // Conversations of one origin are counted together.
        let mut by_origin: HashMap<CommonOrigin<'_>, ClassCounts> = HashMap::new();
        let is_within = |key: &(SourceKind, String)| choice.within.accepts_id(key.0, &key.1);
        for (key, classes) in counts.iter().filter(|(key, _)| is_within(key)) {
            let place = places.get(key);
            let origin = CommonOrigin {
                service: place.map_or(key.0.name(), |place| &*place.service),
                project: place.and_then(|place| place.project.as_deref()).unwrap_or(""),
                models: place.map(|place| place.models.as_slice()).unwrap_or_default(),
            };
            let has_any = |(class, _): &(MessageClass, u64)| class.is_in_time && chosen[class.role];
            facets.conversations +=
                usize::from(choice.has_origin(&origin) && classes.iter().any(has_any));
            let of_origin = by_origin.entry(origin).or_default();
            for (class, count) in classes {
                add_to(of_origin, *class, *count);
            }
        }
        for (CommonOrigin { service, project, models }, classes) in by_origin {
            for (MessageClass { role, month, is_in_time }, count) in classes {
                let month = months[month].as_deref().unwrap_or("");
                let names = MessageNames { service, project, models, role: &roles[role], month };
                facets.add(count, choice, is_in_time, &names);
            }
        }
        Ok(facets)
    }
}

/// Counts the messages of a source whose text matches: in its index, else by a search.
fn count(
    source: &Source,
    request: &Request,
    (choice, month): (&Choice, MonthOf<'_>),
    collected: &mut Collected,
    stop: &Stop,
) -> Result<(), Error> {
    let make = || ClassCounter::new(choice, month);
    let add = |counter: &mut ClassCounter<'_>, it: TextMatch<'_>| {
        counter.add(it.conversation as usize, it.role, it.time);
    };
    if let Some((snapshot, counters)) = source.fold_texts(request, stop, &make, &add) {
        let left_out = source.left_out(stop)?;
        for (segment, counter) in counters {
            collected.take(source.kind, counter, |number| {
                let id =
                    String::from_utf8_lossy(snapshot.conversation_in(segment, number as u32).0);
                (!left_out.contains(&*id)).then(|| id.into_owned())
            });
        }
        return Ok(());
    }
    let matchers = Matchers::of(request).map_err(index::Error::from)?;
    // Messages that are found only by the title of their conversation are not counted.
    let render = |hit: Hit<'_>| {
        let is_counted = matchers.accept_text(&hit.content);
        is_counted.then(|| (hit.conversation_id.into_owned(), hit.role.into_owned(), hit.time))
    };
    let (mut counter, mut numbers) = (make(), HashMap::new());
    let show = |(id, role, time): (String, String, Option<Instant>)| {
        let next = numbers.len();
        counter.add(*numbers.entry(id).or_insert(next), &role, time);
        match stop.requested() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let found = source.search_visible(request, stop, &mut Rendered::new(render, show));
    let mut ids = vec![String::new(); numbers.len()];
    numbers.into_iter().for_each(|(id, number)| ids[number] = id);
    collected.take(source.kind, counter, |number| Some(ids[number].clone()));
    found.map(drop)
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
    use crate::{
        engine::{Config, Engine, TestExport},
        model::Matching,
    };

    #[test]
    fn a_month_that_ends_within_a_day_is_named_for_each_time() {
        // A zone two hours ahead: months begin two hours before midnight.
        let month = |time: Instant| {
            let days = (time.seconds + 2 * 3600).div_euclid(DAY);
            Some(format!("{}", days.div_euclid(30)))
        };
        let mut months =
            Months { month: &month, names: Vec::new(), days: HashMap::new(), last: None };
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

    fn counted(engine: &Engine, text: &str, choice: &Choice) -> Facets {
        let request =
            Request { text: text.to_owned(), matching: Matching::Literal, ..Request::default() };
        let places = engine.places(true, &Stop::never()).unwrap();
        let month = |time: Instant| Some((time.day() / 30).to_string());
        engine.facets(&request, choice, &places, &month, &Stop::never()).unwrap()
    }

    /// Returns an export of some hundred messages, with an index of two segments, and an engine that
    /// has no index.
    fn both() -> (TestExport, Engine, tempfile::TempDir) {
        let words =
            ["red", "Red fox", "STRASSE", "straße", "été", "x", "nothing", "e", "re", "日本"];
        let texts: Vec<String> =
            (0..240).map(|n| format!("{} {}", words[n % 10], words[n / 7 % 10])).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let export = TestExport::of(&texts);
        let add = |from: i64, to: i64| {
            let sql = "INSERT INTO messages VALUES ('a' || ?1, ?1 % 50, ?2, ?3, ?4)";
            for n in from..to {
                let role = ["tool", "assistant", "user"].get(n as usize % 4);
                let time = (n % 9 > 0).then_some(1_600_000_000 + n * 700_000);
                let text = match n % 5 {
                    0 => r#"[{"type": "text", "text": "a fox"}]"#.to_owned(),
                    1 => format!("nul \0 red {n}"),
                    _ => format!("{} {n}", words[n as usize % 10]),
                };
                export.connection.execute(sql, (n, role, text, time)).unwrap();
            }
        };
        add(0, 120);
        let bytes = "INSERT INTO messages VALUES ('b', 3, 'user', x'ff72656420ff', 1700000000)";
        export.connection.execute(bytes, []).unwrap();
        export.reindex();
        add(120, 200);
        export.connection.execute("DELETE FROM messages WHERE id IN ('a3', 'm7')", []).unwrap();
        export.reindex();
        let elsewhere = tempfile::tempdir().unwrap();
        let index = Some(elsewhere.path().to_owned());
        let live = Engine::new(Config { index, ..export.engine.config().clone() });
        (export, live, elsewhere)
    }

    #[test]
    fn an_index_counts_as_the_database_does() {
        let (export, live, _folder) = both();
        let at = |seconds| Some(Instant { seconds, nanos: 0 });
        let ids = [(SourceKind::Export, ["1".to_owned(), "3".to_owned()].into())].into();
        let without = Scope { without: Arc::new(ids), ..Scope::default() };
        let choices = [
            Choice::default(),
            Choice { roles: vec!["user".to_owned()], ..Choice::default() },
            Choice { since: at(1_650_000_000), until: at(1_700_000_100), ..Choice::default() },
            Choice { within: without, ..Choice::default() },
        ];
        // "title" is in every title, and in no text.
        for text in [
            "e", "r", "re", "red", "red fox", "É", "ß", "日", "0", "title", "zz", "fox\"",
            "\u{fffd}",
        ] {
            for choice in &choices {
                let stop = Stop::never();
                let source = export.engine.sources().remove(0);
                let request = Request { text: text.to_owned(), ..Request::default() };
                let used = source.fold_texts(&request, &stop, &|| (), &|(), _| ());
                assert!(used.is_some(), "the index is not used");
                let (by_index, by_like) =
                    (counted(&export.engine, text, choice), counted(&live, text, choice));
                assert_eq!(by_index, by_like, "{text:?} {choice:?}");
            }
        }
    }

    #[test]
    fn counts_are_those_of_sql() {
        let (export, _, _folder) = both();
        for text in ["e", "re", "red", "red fox", "0", "title"] {
            let sql =
                "SELECT count(*), count(DISTINCT conversation_id), ifnull(sum(role = 'user'), 0)
                FROM messages WHERE instr(lower(CAST(content AS TEXT)), ?1) > 0";
            let expected: (i64, i64, i64) = export
                .connection
                .query_row(sql, [text], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .unwrap();
            let facets = counted(&export.engine, text, &Choice::default());
            let users = facets.roles.get("user").copied().unwrap_or(0);
            let counted = (facets.messages as i64, facets.conversations as i64, users as i64);
            assert_eq!(counted, expected, "{text}");
        }
    }
}
