//! Counts the messages of a source that are in a scope.

use std::collections::BTreeMap;

use super::{Counts, catalogue::Origins};
use crate::source::{kind::SourceKind, scope::Scope};
use verbatim_base::model::Instant;
use verbatim_chats::db::tally::MessageFacts;

/// Seconds in a quarter of an hour. In every time zone, days and clock changes begin at a full quarter.
const QUARTER: i64 = 15 * 60;

/// Counter of messages, which takes one message at a time.
pub(crate) struct Counter<'a> {
    kind: SourceKind,
    scope: &'a Scope,
    origins: Option<&'a Origins>,
    day: &'a dyn Fn(Instant) -> i64,
    /// Counts by role. It is a list, because a list is faster than a map for a few roles.
    roles: Vec<(String, u64)>,
    /// The last counted quarter of an hour with its day; `None` if a day ends within the quarter.
    quarter: Option<(i64, i64)>,
    counts: Counts,
}

impl<'a> Counter<'a> {
    /// Returns a counter for the messages in a scope. `day` returns the day of a time.
    pub(crate) fn new(
        kind: SourceKind,
        scope: &'a Scope,
        origins: Option<&'a Origins>,
        day: &'a dyn Fn(Instant) -> i64,
    ) -> Counter<'a> {
        let counts = Counts::default();
        Counter { kind, scope, origins, day, roles: Vec::new(), quarter: None, counts }
    }

    pub(crate) fn accepts(&self, message: MessageFacts<'_>) -> bool {
        let MessageFacts { conversation, role, time } = message;
        self.scope.accepts_message(role, time)
            && self.scope.accepts_id(self.kind, conversation)
            && (!self.scope.has_origin() || {
                let origin = self.origins.and_then(|origins| origins.get(conversation));
                self.scope.accepts_origin(self.kind, origin)
            })
    }

    pub(crate) fn add_message(&mut self, message: MessageFacts<'_>) {
        if self.accepts(message) {
            self.add(message.role, message.time);
            self.add_to_conversation(message.conversation, 1);
        }
    }

    /// Counts a message in the scope by role and time, but not by conversation.
    pub(crate) fn add(&mut self, role: &str, time: Option<Instant>) {
        match self.roles.iter_mut().find(|(name, _)| name == role) {
            Some((_, count)) => *count += 1,
            None => self.roles.push((role.to_owned(), 1)),
        }
        let day = time.map(|time| self.day_of(time));
        let counts = &mut self.counts;
        *counts.days.entry(day).or_default() += 1;
        if let Some(time) = time {
            counts.first = Some(counts.first.map_or(time, |first| first.min(time)));
            counts.last = counts.last.max(Some(time));
        }
    }

    /// Returns the day of a time. Remembers the last quarter of an hour, because messages are close
    /// together and computing with time zones is slow.
    fn day_of(&mut self, time: Instant) -> i64 {
        let quarter = time.seconds.div_euclid(QUARTER);
        if let Some((known, day)) = self.quarter
            && known == quarter
        {
            return day;
        }
        let day = (self.day)(time);
        let begin = quarter.saturating_mul(QUARTER);
        let ends = [begin, begin.saturating_add(QUARTER - 1)];
        let has_one_day =
            ends.iter().all(|end| (self.day)(Instant { seconds: *end, nanos: 0 }) == day);
        self.quarter = has_one_day.then_some((quarter, day));
        day
    }

    pub(crate) fn add_to_conversation(&mut self, id: &str, messages: u64) {
        match self.counts.conversations.get_mut(id) {
            Some(count) => *count += messages,
            None => drop(self.counts.conversations.insert(id.to_owned(), messages)),
        }
    }

    pub(crate) fn into_counts(self, models: BTreeMap<String, u64>) -> Counts {
        Counts { roles: self.roles.into_iter().collect(), models, ..self.counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second at which the clocks of a place go back from 00:01 to 23:01.
    const BACK: i64 = 20_000 * 86_400 + 9_060;

    #[test]
    fn days_of_quarters_are_days_of_messages() {
        let day = |time: Instant| {
            let offset = if time.seconds < BACK { 9_000 } else { 12_600 };
            (time.seconds - offset).div_euclid(86_400)
        };
        let scope = Scope::default();
        let mut counter = Counter::new(SourceKind::Export, &scope, None, &day);
        let mut expected = BTreeMap::new();
        for seconds in (BACK - 100_000..BACK + 100_000).step_by(20).chain([-1 << 50, 1 << 50]) {
            let time = Instant { seconds, nanos: 0 };
            counter.add("user", Some(time));
            *expected.entry(Some(day(time))).or_default() += 1;
        }
        assert_eq!(
            counter.into_counts(BTreeMap::new()).days.into_iter().collect::<BTreeMap<_, u64>>(),
            expected
        );
    }
}
