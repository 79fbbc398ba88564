//! Counts the messages of a source that are in a scope.

use std::collections::BTreeMap;

use super::{catalogue::Origins, kind::SourceKind, reader::Counts, scope::Scope};
use crate::{db::tally::MessageFacts, model::Instant};

/// Counts messages one by one.
pub(super) struct Counter<'a> {
    kind: SourceKind,
    scope: &'a Scope,
    origins: Option<&'a Origins>,
    day: &'a dyn Fn(Instant) -> i64,
    /// A list, because it is faster than a map for a few roles.
    roles: Vec<(String, u64)>,
    counts: Counts,
}

impl<'a> Counter<'a> {
    /// Returns a counter of the messages in a scope; `day` returns the day of a time.
    pub(super) fn new(
        kind: SourceKind,
        scope: &'a Scope,
        origins: Option<&'a Origins>,
        day: &'a dyn Fn(Instant) -> i64,
    ) -> Counter<'a> {
        Counter { kind, scope, origins, day, roles: Vec::new(), counts: Counts::default() }
    }

    /// Returns whether a message is in the scope.
    pub(super) fn accepts(&self, message: MessageFacts<'_>) -> bool {
        let origin = || self.origins.and_then(|origins| origins.get(message.conversation));
        self.scope.accepts_message(message.role, message.time)
            && self.scope.accepts_id(self.kind, message.conversation)
            && (!self.scope.has_origin() || self.scope.accepts_origin(self.kind, origin()))
    }

    /// Counts a message if it is in the scope.
    pub(super) fn take(&mut self, message: MessageFacts<'_>) {
        if self.accepts(message) {
            self.add(message.role, message.time);
            self.add_to_conversation(message.conversation, 1);
        }
    }

    /// Counts a message that is in the scope, but not for its conversation.
    pub(super) fn add(&mut self, role: &str, time: Option<Instant>) {
        match self.roles.iter_mut().find(|(name, _)| name == role) {
            Some((_, count)) => *count += 1,
            None => self.roles.push((role.to_owned(), 1)),
        }
        let counts = &mut self.counts;
        *counts.days.entry(time.map(self.day)).or_default() += 1;
        if let Some(time) = time {
            counts.first = Some(counts.first.map_or(time, |first| first.min(time)));
            counts.last = counts.last.max(Some(time));
        }
    }

    /// Counts messages of a conversation.
    pub(super) fn add_to_conversation(&mut self, id: &str, messages: u64) {
        match self.counts.conversations.get_mut(id) {
            Some(count) => *count += messages,
            None => drop(self.counts.conversations.insert(id.to_owned(), messages)),
        }
    }

    pub(super) fn finish(self, models: BTreeMap<String, u64>) -> Counts {
        Counts { roles: self.roles.into_iter().collect(), models, ..self.counts }
    }
}
