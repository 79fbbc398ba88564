//! How much there is: messages by month, role, source and model.

use std::collections::BTreeMap;

use crate::engine::{Engine, Error, Scope, SourceKind};
use crate::{
    db,
    model::{Instant, Stop},
    text::date,
};

/// The month of messages that have no time.
pub const NO_TIME: &str = "no time";

/// Numbers of messages by what they have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages in conversations.
    pub messages: u64,
    /// Conversations that have messages.
    pub conversations: usize,
    /// When the first message was written.
    pub first: Option<Instant>,
    /// When the last one was.
    pub last: Option<Instant>,
    /// By month, as `2025-01`.
    pub months: BTreeMap<String, u64>,
    /// By role.
    pub roles: BTreeMap<String, u64>,
    /// By source.
    pub sources: BTreeMap<String, u64>,
    /// By the model that wrote them, as far as the sources say.
    pub models: BTreeMap<String, u64>,
}

impl Engine {
    /// Counts the messages of some kinds of sources; of all for none named.
    pub fn tally(&self, kinds: &[SourceKind], stop: &Stop) -> Result<Tally, Error> {
        let scope = Scope { sources: kinds.to_vec(), ..Scope::default() };
        let (_, conversations) = self.list(&scope, 0, 0)?;
        let mut tally = Tally { conversations, ..Tally::default() };
        // By number, because a text a message takes as long as all the rest.
        let mut months: BTreeMap<i64, u64> = BTreeMap::new();
        for source in self.sources_of(&scope)? {
            let mut roles: Vec<(String, u64)> = Vec::new();
            let mut count = |role: &str, time: Option<Instant>| {
                match roles.iter_mut().find(|(name, _)| name == role) {
                    Some((_, count)) => *count += 1,
                    None => roles.push((role.to_owned(), 1)),
                }
                *months.entry(time.map_or(i64::MIN, day_of)).or_default() += 1;
                if let Some(time) = time {
                    tally.first = Some(tally.first.map_or(time, |first| first.min(time)));
                    tally.last = tally.last.max(Some(time));
                }
            };
            if let Ok(catalogue) = self.catalogue(&source) {
                let snapshot = catalogue.snapshot();
                for conversation in 0..catalogue.conversations().len() as u32 {
                    for doc_id in catalogue.doc_ids(conversation) {
                        count(snapshot.role(*doc_id), snapshot.time(*doc_id));
                    }
                }
            } else {
                self.on_source(&source, |path| {
                    db::read(path, stop, |database| db::tally::messages(database, &mut count))
                })?;
            }
            let models = self.on_source(&source, |path| db::read(path, stop, db::tally::models))?;
            for (model, count) in models {
                *tally.models.entry(model).or_default() += count;
            }
            let sum: u64 = roles.iter().map(|(_, count)| count).sum();
            tally.messages += sum;
            *tally.sources.entry(source.kind.name().to_owned()).or_default() += sum;
            for (role, count) in roles {
                let role = if role.is_empty() { "unknown".to_owned() } else { role };
                *tally.roles.entry(role).or_default() += count;
            }
        }
        for (day, count) in months {
            let time = (day > i64::MIN).then(|| Instant { seconds: day * DAY, nanos: 0 });
            let month = time.and_then(date::to_minute).and_then(|minute| month_of(&minute));
            *tally.months.entry(month.unwrap_or_else(|| NO_TIME.to_owned())).or_default() += count;
        }
        Ok(tally)
    }
}

/// Seconds in a day.
const DAY: i64 = 86_400;

fn day_of(time: Instant) -> i64 {
    time.seconds.div_euclid(DAY)
}

/// Returns the month of `YYYY-MM-DD HH:MM`; years may have more digits.
fn month_of(minute: &str) -> Option<String> {
    let (day, _) = minute.split_once(' ')?;
    day.rsplit_once('-').map(|(month, _)| month.to_owned())
}
