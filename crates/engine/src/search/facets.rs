//! Counts the messages that match, by service, project, model, role and month.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::{borrow::Cow, ops::ControlFlow, sync::Arc};

use crate::source::request::checked;
use crate::source::sink::Rendered;
use crate::source::{ChosenIds, Note, Place, Places, Source, SourceKind, Sources};
use crate::{decisions::superseded::Ids, error::Result};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Request};
use verbatim_index::{self as index, Snapshot, TextMatch};
use verbatim_text::matcher::Matchers;

/// The filters of a faceted search. An empty filter accepts everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Names of services, agents and sources.
    pub services: Vec<String>,
    /// Names of projects; the empty name means conversations without a project. A conversation fits if it has
    /// one of them.
    pub projects: Vec<String>,
    /// Names of models. A conversation fits if it has one of them.
    pub models: Vec<String>,
    /// The texts that every counted message matches, and the chosen roles and dates.
    pub request: Request,
    /// The conversations whose messages are counted.
    pub ids: ChosenIds,
}

/// Numbers of matching messages by service, project, model, role and month. Each facet ignores the filter
/// of its own kind and obeys all others, so that it says how many messages another choice would find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    /// Messages that fit all filters, and the number of their conversations.
    pub messages: u64,
    /// Conversations with a message that fits all filters.
    pub conversations: usize,
    /// Numbers by service, or by kind of source if the service is unknown.
    pub services: BTreeMap<String, u64>,
    /// Numbers by project; the key is empty for conversations without a project. All messages of a
    /// conversation count for each of its projects.
    pub projects: BTreeMap<String, u64>,
    /// Numbers by model. All messages of a conversation count for each of its models.
    pub models: BTreeMap<String, u64>,
    /// Numbers by role; the key is empty for NULL.
    pub roles: BTreeMap<String, u64>,
    /// Numbers by month; the key has the form `2025-01`.
    pub months: BTreeMap<String, u64>,
    /// Whether counting ended before the time limit. Otherwise there may be more messages.
    pub is_complete: bool,
    /// Notes about sources that were left out.
    pub notes: Vec<Note>,
}

const DAY: i64 = 24 * 60 * 60;

type MonthOf<'a> = &'a (dyn Fn(Instant) -> Option<String> + Sync);

/// What tells which times are counted at all; `None` for every message.
pub type AcceptsTime<'a> = Option<&'a (dyn Fn(Instant) -> bool + Sync)>;

/// Cache of month names. Naming a month is slow, so each day is named only once.
struct Months<'a> {
    month: MonthOf<'a>,
    names: Vec<Option<String>>,
    /// Places of the months among the names, by day; `None` for a day in which a month ends, in local time.
    days: HashMap<i64, Option<usize>>,
    /// The last day that was looked up, and the place of its month.
    last: Option<(i64, usize)>,
}

impl Months<'_> {
    /// Returns the position of a time's month in the list of names.
    fn month_place(&mut self, time: Option<Instant>) -> usize {
        let Some(time) = time else { return place_of(&mut self.names, None) };
        let day = time.seconds.div_euclid(DAY);
        if let Some((_, place)) = self.last.filter(|(last, _)| *last == day) {
            return place;
        }
        let names = &mut self.names;
        let known = *self.days.entry(day).or_insert_with(|| {
            let [first, last] = [day * DAY, day * DAY + DAY - 1]
                .map(|seconds| (self.month)(Instant { seconds, nanos: 0 }));
            // A day may begin and end without a name and have one between.
            (first.is_some() && first == last).then(|| place_of(names, first))
        });
        self.last = known.map(|place| (day, place));
        known.unwrap_or_else(|| place_of(&mut self.names, (self.month)(time)))
    }
}

/// Returns the position of a name in a short list. Adds the name if the list does not have it.
fn place_of<T: PartialEq>(names: &mut Vec<T>, name: T) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// Facet values that conversations share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CommonOrigin<'a> {
    service: &'a str,
    projects: &'a [Arc<str>],
    models: &'a [Arc<str>],
}

/// Returns whether no name is chosen, or this name is chosen.
fn is_of(chosen: &[String], name: &str) -> bool {
    chosen.is_empty() || chosen.iter().any(|chosen| chosen == name)
}

impl Choice {
    /// Returns whether the choice is only of conversations by their ids.
    pub fn is_of_ids(&self) -> bool {
        let Request { roles, since, until, .. } = &self.request;
        let mut names = [&self.services, &self.projects, &self.models, roles].into_iter();
        names.all(Vec::is_empty) && since.is_none() && until.is_none()
    }

    fn has_model(&self, origin: &CommonOrigin<'_>) -> bool {
        self.models.is_empty() || origin.models.iter().any(|model| is_of(&self.models, model))
    }

    fn has_project(&self, origin: &CommonOrigin<'_>) -> bool {
        Place::named_projects(origin.projects).any(|project| is_of(&self.projects, project))
    }

    fn has_origin(&self, origin: &CommonOrigin<'_>) -> bool {
        is_of(&self.services, origin.service) && self.has_project(origin) && self.has_model(origin)
    }
}

struct Counting<'a> {
    kind: SourceKind,
    choice: &'a Choice,
    places: &'a Places,
    month: MonthOf<'a>,
    accepts: AcceptsTime<'a>,
    left_out: Ids,
}

/// Counts messages by the origin of their conversation, by role and by month.
struct ClassCounter<'a> {
    counting: &'a Counting<'a>,
    months: Months<'a>,
    /// Name of each role by its number, and whether the role is chosen.
    roles: Vec<Option<(String, bool)>>,
    /// Facet values of the conversations, and whether they are chosen.
    origins: Vec<(CommonOrigin<'a>, bool)>,
    places_of_origins: HashMap<CommonOrigin<'a>, usize>,
    /// The origin that was found last. The next conversation often has the same origin.
    last_origin: Option<(CommonOrigin<'a>, usize)>,
    /// Position of each conversation's origin; `None` if unknown, `Some(None)` if it is not counted.
    origin_of: Vec<Option<Option<usize>>>,
    /// Whether each conversation has a message that fits all filters, by the conversation's number.
    has_message: Vec<bool>,
    /// Numbers of messages by origin, role and class. A class is twice the month, plus 1 for times in range.
    counts: Vec<Vec<Vec<u64>>>,
    /// The source and the id of a conversation to look up.
    key: (SourceKind, String),
}

impl<'a> ClassCounter<'a> {
    fn new(counting: &'a Counting<'a>) -> ClassCounter<'a> {
        let month = counting.month;
        ClassCounter {
            counting,
            months: Months { month, names: Vec::new(), days: HashMap::new(), last: None },
            roles: Vec::new(),
            origins: Vec::new(),
            places_of_origins: HashMap::new(),
            last_origin: None,
            origin_of: Vec::new(),
            has_message: Vec::new(),
            counts: Vec::new(),
            key: (counting.kind, String::new()),
        }
    }

    /// Counts a message. The conversation and the role are given as numbers, with functions that return their
    /// names. Each function is called once.
    #[inline]
    fn add<'n>(
        &mut self,
        conversation: usize,
        id: impl FnOnce() -> Cow<'n, str>,
        role: usize,
        role_name: impl FnOnce() -> &'n str,
        time: Option<Instant>,
    ) {
        if self.counting.accepts.is_some_and(|accepts| !time.is_some_and(accepts)) {
            return;
        }
        if self.origin_of.len() <= conversation {
            self.origin_of.resize(conversation + 1, None);
            self.has_message.resize(conversation + 1, false);
        }
        let known = self.origin_of[conversation];
        let Some(origin) = known.unwrap_or_else(|| self.find_origin(conversation, &id())) else {
            return;
        };
        let choice = self.counting.choice;
        if self.roles.len() <= role {
            self.roles.resize(role + 1, None);
        }
        let (_, is_chosen) = self.roles[role].get_or_insert_with(|| {
            let name = role_name();
            (name.to_owned(), is_of(&choice.request.roles, name))
        });
        let is_in_time = choice.request.has_time(time);
        if is_in_time && *is_chosen && self.origins[origin].1 {
            self.has_message[conversation] = true;
        }
        let class = 2 * self.months.month_place(time) + usize::from(is_in_time);
        let of_origin = &mut self.counts[origin];
        if of_origin.len() <= role {
            of_origin.resize(role + 1, Vec::new());
        }
        let of_role = &mut of_origin[role];
        if of_role.len() <= class {
            of_role.resize(class + 1, 0);
        }
        of_role[class] += 1;
    }

    fn find_origin(&mut self, conversation: usize, id: &str) -> Option<usize> {
        let Counting { kind, choice, places, left_out, .. } = self.counting;
        if left_out.contains(id) || !choice.ids.has(*kind, id) {
            self.origin_of[conversation] = Some(None);
            return None;
        }
        self.key.1.clear();
        self.key.1.push_str(id);
        let place = places.get(&self.key);
        let origin = CommonOrigin {
            service: place.map_or(kind.name(), |place| &*place.service),
            projects: place.map(|place| place.projects.as_slice()).unwrap_or_default(),
            models: place.map(|place| place.models.as_slice()).unwrap_or_default(),
        };
        let number = match self.last_origin {
            Some((last, number)) if last == origin => number,
            _ => *self.places_of_origins.entry(origin).or_insert_with(|| {
                self.origins.push((origin, choice.has_origin(&origin)));
                self.counts.push(Vec::new());
                self.origins.len() - 1
            }),
        };
        self.last_origin = Some((origin, number));
        self.origin_of[conversation] = Some(Some(number));
        Some(number)
    }

    /// Adds the counts to the facets. Each facet obeys the filters of all other kinds.
    fn add_to(&self, facets: &mut Facets) {
        let choice = self.counting.choice;
        for ((origin, is_chosen), roles) in self.origins.iter().zip(&self.counts) {
            let mut of_origin = 0;
            for (role, classes) in self.roles.iter().zip(roles) {
                let Some((role, is_chosen_role)) = role else { continue };
                let in_time: u64 = classes.iter().skip(1).step_by(2).sum();
                if *is_chosen {
                    add(&mut facets.roles, role, in_time);
                }
                if !is_chosen_role {
                    continue;
                }
                of_origin += in_time;
                for (month, counts) in self.months.names.iter().zip(classes.chunks(2)) {
                    if let (Some(month), true) = (month, *is_chosen) {
                        add(&mut facets.months, month, counts.iter().sum());
                    }
                }
            }
            let of_service = is_of(&choice.services, origin.service);
            let of_project = choice.has_project(origin);
            let of_model = choice.has_model(origin);
            if of_project && of_model {
                add(&mut facets.services, origin.service, of_origin);
            }
            if of_service && of_model {
                Place::named_projects(origin.projects)
                    .for_each(|project| add(&mut facets.projects, project, of_origin));
            }
            if of_service && of_project {
                origin.models.iter().for_each(|model| add(&mut facets.models, model, of_origin));
            }
            facets.messages += if *is_chosen { of_origin } else { 0 };
        }
    }
}

impl Sources {
    /// Counts the messages that match, but not by their title alone ([`Matchers::has_any`]), until `stop`
    /// is requested. `month` names the month of a time; no facet counts messages of other times than `accepts`.
    pub fn facets(
        &self,
        choice: &Choice,
        places: &Places,
        month: MonthOf<'_>,
        accepts: AcceptsTime<'_>,
        call: &Call,
    ) -> Result<Facets> {
        // The messages of other roles and dates are counted too.
        let request = Request {
            roles: Vec::new(),
            since: None,
            until: None,
            limit: None,
            ..choice.request.clone()
        };
        let request = checked(&request)?;
        let mut facets = Facets::default();
        let (_, notes) = self.each(&[], |source| {
            let counted = source.left_out(call).and_then(|left_out| {
                let counting =
                    Counting { kind: source.kind, choice, places, month, accepts, left_out };
                count(&source, &request, &counting, &mut facets, call)
            });
            match counted {
                Err(error) if error.is_stopped() => Ok(()),
                done => done,
            }
        })?;
        Ok(Facets { is_complete: !call.stop.requested(), notes, ..facets })
    }
}

/// Counts the messages of a source that match, in the index if possible, else by a search.
fn count(
    source: &Source,
    request: &Request,
    counting: &Counting<'_>,
    facets: &mut Facets,
    call: &Call,
) -> Result<()> {
    let by_index = source.aggregate_texts(
        request,
        call,
        &|| ClassCounter::new(counting),
        &|counter: &mut ClassCounter<'_>, it: TextMatch<'_>| {
            counter.add(
                it.conversation(),
                || it.conversation_id(),
                it.role(),
                || it.role_name(),
                it.time(),
            );
        },
    );
    if let Some((snapshot, counters)) = by_index {
        counters.iter().for_each(|(_, counter)| counter.add_to(facets));
        facets.conversations += distinct(&snapshot, &counters);
        return Ok(());
    }
    let matchers = Matchers::of(request).map_err(index::Error::from)?;
    let mut counter = ClassCounter::new(counting);
    let mut numbers = HashMap::new();
    let mut roles = Vec::new();
    let mut sink = Rendered::new(
        |hit: Hit<'_>| {
            let is_counted = matchers.has_any(&hit.content);
            is_counted.then(|| (hit.conversation_id.into_owned(), hit.role.into_owned(), hit.time))
        },
        |(id, role, time): (String, String, Option<Instant>)| {
            let next = numbers.len();
            let conversation = *numbers.entry(id.clone()).or_insert(next);
            let number = place_of(&mut roles, role.clone());
            counter.add(conversation, || id.as_str().into(), number, || role.as_str(), time);
            if call.stop.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    let searched = source.search(request, call, &mut sink);
    counter.add_to(facets);
    facets.conversations += counter.has_message.iter().filter(|has| **has).count();
    searched.map(drop)
}

/// Returns the number of different conversations that the counters of all segments found.
fn distinct(snapshot: &Snapshot, counters: &[(usize, ClassCounter<'_>)]) -> usize {
    let mut found: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
    for (segment, counter) in counters {
        let found = found.entry(*segment).or_default();
        found.resize(found.len().max(counter.has_message.len()), false);
        for (found, has_message) in found.iter_mut().zip(&counter.has_message) {
            *found |= has_message;
        }
    }
    // The first segment is the largest. Its ids are looked up and not stored, to save memory.
    let Some((first, in_first)) = found.pop_first() else { return 0 };
    let mut others: HashSet<&[u8]> = HashSet::new();
    for (segment, found) in found {
        for (number, _) in (0..).zip(found).filter(|(_, is_found)| *is_found) {
            others.insert(snapshot.conversation_in(segment, number).0);
        }
    }
    let in_first = (0..).zip(in_first).filter(|(_, is_found)| *is_found);
    let of_first = in_first.filter(|(number, _)| {
        others.is_empty() || !others.contains(snapshot.conversation_in(first, *number).0)
    });
    of_first.count() + others.len()
}

fn add(counts: &mut BTreeMap<String, u64>, name: &str, number: u64) {
    match counts.get_mut(name) {
        Some(count) => *count += number,
        None if number > 0 => drop(counts.insert(name.to_owned(), number)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Engine, Scope, TestExport};
    use verbatim_base::model::Matching;

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
                let at = months.month_place(Some(time));
                assert_eq!(months.names[at], month(time), "{seconds}");
            }
        }
        let none = months.month_place(None);
        assert_eq!(months.names[none], None);
    }

    fn counted(engine: &Engine, text: &str, choice: &Choice) -> Facets {
        let (text, matching) = (text.to_owned(), Matching::Literal);
        let request = Request { text, matching, ..choice.request.clone() };
        let choice = Choice { request, ..choice.clone() };
        let places = engine.all_sources().places(true, &Call::default()).unwrap();
        let month = |time: Instant| Some((time.day() / 30).to_string());
        engine.all_sources().facets(&choice, &places, &month, None, &Call::default()).unwrap()
    }

    /// Returns an export of several hundred messages, with an index of two segments, and an engine that has
    /// no index.
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
                    3 if n % 3 == 0 => format!("é {} red {n}", "日".repeat(400 + n as usize)),
                    1 => format!("nul \0 red {n}"),
                    2 => {
                        ["日re", "re", "語日本", "red fred re", "ss"][n as usize % 7 % 5].to_owned()
                    }
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
        let of = |request| Choice { request, ..Choice::default() };
        let (since, until) = (at(1_650_000_000), at(1_700_000_100));
        let choices = [
            Choice::default(),
            of(Request { roles: vec!["user".to_owned()], ..Request::default() }),
            of(Request { since, until, ..Request::default() }),
            Choice { ids: ChosenIds { without: Arc::new(ids), only: None }, ..Choice::default() },
        ];
        // "title" is in every title, and in no text.
        for text in [
            "e", "r", "re", "Ed", "d ", "日本", "ss", "red", "red fox", "É", "ß", "日", "0",
            "title", "zz", "fox\"", "\u{fffd}",
        ] {
            for choice in &choices {
                let call = Call::default();
                let source = export.engine.sources().remove(0);
                let request = Request { text: text.to_owned(), ..Request::default() };
                let used = source.aggregate_texts(&request, &call, &|| (), &|(), _| ());
                assert!(used.is_some(), "the index is not used");
                let (by_index, by_like) =
                    (counted(&export.engine, text, choice), counted(&live, text, choice));
                assert_eq!(by_index, by_like, "{text:?} {choice:?}");
            }
        }
    }

    #[test]
    fn a_conversation_counts_for_each_of_its_projects() {
        let export = TestExport::indexed(&["red", "red", "red"]);
        let place = |projects: &[&str]| Place {
            service: "codex".into(),
            projects: projects.iter().map(|&name| name.into()).collect(),
            models: Vec::new(),
        };
        let key = |id: &str| (SourceKind::Export, id.to_owned());
        let places = [(key("0"), place(&["shop"])), (key("1"), place(&["shop", "paint"]))].into();
        let counted = |project: &str| {
            let request = Request { text: "red".to_owned(), ..Request::default() };
            let projects = vec![project.to_owned()];
            let choice = Choice { request, projects, ..Choice::default() };
            let (sources, month) = (export.engine.all_sources(), |_| None);
            let facets = sources.facets(&choice, &places, &month, None, &Call::default()).unwrap();
            (facets.messages, facets.conversations, facets.projects)
        };
        let all: BTreeMap<String, u64> =
            [("", 1), ("paint", 1), ("shop", 2)].map(|(name, n)| (name.to_owned(), n)).into();
        assert_eq!(counted("shop"), (2, 2, all.clone()));
        assert_eq!(counted("paint"), (1, 1, all.clone()));
        assert_eq!(counted(""), (1, 1, all));
    }

    #[test]
    fn titles_count_where_a_request_has_several_texts() {
        let (export, live, _folder) = both();
        // "title" is in every title, and in no text.
        let of = |text: &str, [or, and, not]: [&str; 3]| {
            let list = |text: &str| text.split_terminator(',').map(str::to_owned).collect();
            let (text, matching) = (text.to_owned(), Matching::Literal);
            let (or, and, not) = (list(or), list(and), list(not));
            Request { text, or, and, not, matching, ..Request::default() }
        };
        let requests = [
            (of("red", ["", "", ""]), of("red", ["", "title", ""])),
            (of("red", ["", "", ""]), of("title", ["", "red", ""])),
            (of("red", ["fox", "", ""]), of("red", ["fox", "title", ""])),
        ];
        let none = Choice::default();
        for (content, with_title) in requests {
            let of = |engine: &Engine, request: &Request| {
                let choice = Choice { request: request.clone(), ..none.clone() };
                counted(engine, &request.text, &choice)
            };
            assert_eq!(of(&export.engine, &with_title), of(&export.engine, &content));
        }
        for request in [
            of("red", ["", "title 1", ""]),
            of("red", ["", "", "title 1"]),
            of("e", ["fox", "", "title 2,ss"]),
            of("title", ["red", "title 1", ""]),
            of("fox", ["", "", "red"]),
            of("", ["", "", "fox"]),
            of("\u{fffd}", ["日本", "red,title", "title 7"]),
            of("title 3", ["", "日,red", ""]),
        ] {
            let (source, call) = (export.engine.sources().remove(0), Call::default());
            let used = source.aggregate_texts(&request, &call, &|| (), &|(), _| ());
            assert!(used.is_some(), "the index is not used");
            let choice = Choice { request: request.clone(), ..none.clone() };
            let [by_index, by_like] =
                [&export.engine, &live].map(|engine| counted(engine, &request.text, &choice));
            assert!(by_index.messages > 0, "{request:?}");
            assert_eq!(by_index, by_like, "{request:?}");
            let sources = export.engine.all_sources();
            let (count, _) = sources.count(&request, &Scope::default(), &Call::default()).unwrap();
            let facets = (by_index.messages as usize, by_index.conversations);
            assert_eq!(facets, (count.messages, count.conversations), "{request:?}");
        }
    }

    #[test]
    fn counts_are_those_of_sql() {
        let (export, _, _folder) = both();
        for text in ["e", "re", "ed", "d ", "red", "red fox", "0", "title"] {
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
