//! Numbers of messages by month, role, source and model.

use std::collections::{BTreeMap, HashMap};

use crate::error::Result;
use crate::source::{Note, Scope, SourceKind, Sources};
use verbatim_base::{call::Call, model::Instant};
use verbatim_text::date;

/// The label in place of a month for messages without a time.
const NO_TIME: &str = "no time";

/// Numbers of messages, counted in several ways.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of messages in conversations.
    pub messages: u64,
    /// Number of conversations that have messages.
    pub conversations: usize,
    /// The time of the first message.
    pub first: Option<Instant>,
    /// The time of the last message.
    pub last: Option<Instant>,
    /// Numbers of messages by month, with keys such as `2025-01`.
    pub months: BTreeMap<String, u64>,
    /// Numbers of messages by role.
    pub roles: BTreeMap<String, u64>,
    /// Numbers of messages by source.
    pub sources: BTreeMap<String, u64>,
    /// Numbers of messages by the model that wrote them, if the source names the model.
    pub models: BTreeMap<String, u64>,
    /// Numbers of messages by the id of their conversation, for each source.
    pub by_conversation: Vec<(SourceKind, HashMap<String, u64>)>,
    /// Notes about messages that were not counted.
    pub notes: Vec<Note>,
}

/// Counts the messages in a scope. `day` returns the day of a time, counted from 1970-01-01.
pub(crate) fn tally(
    sources: &Sources,
    scope: &Scope,
    day: &dyn Fn(Instant) -> i64,
    call: &Call,
) -> Result<Tally> {
    let (counted, notes) = sources.each(&scope.sources, |source| {
        Ok((source.kind, source.reader(call).count(scope, day, call)?))
    })?;
    let mut tally = Tally { notes, ..Tally::default() };
    for (kind, counts) in counted {
        tally.conversations += counts.conversations.len();
        tally.by_conversation.push((kind, counts.conversations));
        tally.first = earliest(tally.first, counts.first);
        tally.last = tally.last.max(counts.last);
        let messages: u64 = counts.roles.values().sum();
        tally.messages += messages;
        *tally.sources.entry(kind.name().to_owned()).or_default() += messages;
        for (role, count) in counts.roles {
            let role = if role.is_empty() { "unknown".to_owned() } else { role };
            *tally.roles.entry(role).or_default() += count;
        }
        for (day, count) in counts.days {
            *tally.months.entry(month_of(day)).or_default() += count;
        }
        for (model, count) in counts.models {
            *tally.models.entry(model).or_default() += count;
        }
    }
    Ok(tally)
}

/// Returns the numbers of messages and conversations of all sources that can be read.
pub(crate) fn size(sources: &Sources, call: &Call) -> Result<(u64, usize)> {
    let (sizes, _) = sources.each(&[], |source| {
        let listing = source.reader(call).list(&Scope::default(), call)?;
        Ok((listing.messages(), listing.len()))
    })?;
    Ok(sizes.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)))
}

/// Counts the messages in a scope that have a time, by the number that `of` computes from the time.
pub fn counted_by(
    sources: &Sources,
    scope: &Scope,
    of: &dyn Fn(Instant) -> i64,
    call: &Call,
) -> Result<BTreeMap<i64, u64>> {
    let (counted, _) =
        sources.each(&scope.sources, |source| source.reader(call).count(scope, of, call))?;
    let mut counts = BTreeMap::new();
    for (number, count) in counted.into_iter().flat_map(|counts| counts.days) {
        if let Some(number) = number {
            *counts.entry(number).or_default() += count;
        }
    }
    Ok(counts)
}

fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    [one, other].into_iter().flatten().min()
}

/// Returns the month of a day that is counted from 1970-01-01, such as `2025-01`. Years may have more
/// digits.
fn month_of(day: Option<i64>) -> String {
    /// Seconds in a day.
    const DAY: i64 = 86_400;

    let month = day.and_then(|day| {
        let minute = date::to_minute(Instant { seconds: day.saturating_mul(DAY), nanos: 0 })?;
        let (day, _) = minute.split_once(' ')?;
        day.rsplit_once('-').map(|(month, _)| month.to_owned())
    });
    month.unwrap_or_else(|| NO_TIME.to_owned())
}
