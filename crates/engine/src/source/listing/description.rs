//! Descriptions of the conversations in an answer, and the lines of their messages.

use std::collections::HashMap;

use super::session::line_number;
use crate::error::Result;
use crate::source::reader::turns::TurnFinder;
use crate::source::reader::{Listing, Messages};
use crate::source::scope::{About, Scope};
use crate::source::store::Source;
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Origin};
use verbatim_chats::db::{self, Outline, Skeleton};

/// A conversation of an answer.
#[derive(Debug)]
pub struct Description {
    /// The title, the summary and the times of the conversation.
    pub about: About,
    /// The origin, if the conversation is from a coding agent.
    pub(crate) origin: Option<Origin>,
    order: OrderedMessages,
}

/// The messages in reading order, to find the turn of a message.
#[derive(Debug)]
enum OrderedMessages {
    Open(Box<dyn Messages>),
    Read(Skeleton, TurnFinder),
}

impl Description {
    /// Returns whether all messages of the conversation are newer than a time.
    pub fn is_newer(&self, time: Instant) -> bool {
        let is_newer = |of: Option<Instant>| of.is_some_and(|of| of > time);
        match &self.order {
            OrderedMessages::Open(messages) => {
                (0..messages.turns()).all(|turn| is_newer(messages.time(turn)))
            }
            OrderedMessages::Read(skeleton, _) => {
                skeleton.messages.iter().all(|(_, _, time)| is_newer(*time))
            }
        }
    }

    /// Returns the line of a message of the conversation.
    pub fn line(&self, hit: &Hit<'_>) -> u32 {
        line_number(self.about.source, hit.position, self.turn(hit))
    }

    /// Returns the number of a message of the conversation, from 0 in reading order.
    pub fn turn(&self, hit: &Hit<'_>) -> usize {
        let turn = match &self.order {
            OrderedMessages::Open(messages) => messages.turn_of(hit),
            OrderedMessages::Read(skeleton, finder) => {
                let messages = &skeleton.messages;
                let key = |turn: usize| messages[turn].0.as_str();
                finder.find(messages.len(), &&*hit.message_id, key, |turn| {
                    key(turn) == hit.message_id && messages[turn].1 == hit.position
                })
            }
        };
        turn.unwrap_or(0)
    }
}

impl Source {
    /// Returns descriptions of conversations by id. In a cluster, and without an index, the messages are read
    /// once for all conversations together.
    pub(crate) fn descriptions(
        &self,
        ids: &[&str],
        with_summaries: bool,
        call: &Call,
    ) -> Result<HashMap<String, Description>> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let describe = |listing: &dyn Listing, place| match with_summaries {
            true => listing.about(place),
            false => listing.about_without_summary(place),
        };
        if let Some(mut orders) = self.store().orders(ids, call)? {
            let listing = self.reader(call).list(&Scope::of_ids(self.kind, ids), call)?;
            let description = |place: usize| {
                let id = listing.heading(place).0.to_owned();
                let skeleton = Skeleton { messages: orders.remove(&id)?, ..Skeleton::default() };
                let order = OrderedMessages::Read(skeleton, TurnFinder::default());
                let (about, origin) = (describe(&*listing, place), listing.origin(place).cloned());
                Some((id, Description { about, origin, order }))
            };
            return Ok((0..listing.len()).filter_map(description).collect());
        }
        if self.is_indexed(call) {
            let reader = self.reader(call);
            let mut descriptions = HashMap::new();
            for id in ids {
                let scope = Scope { conversation: Some((*id).to_owned()), ..Scope::default() };
                let listing = reader.list(&scope, call)?;
                if let Some(messages) = reader.read(id, false, call)?
                    && !listing.is_empty()
                {
                    let order = OrderedMessages::Open(messages);
                    let (about, origin) = (describe(&*listing, 0), listing.origin(0).cloned());
                    descriptions.insert((*id).to_owned(), Description { about, origin, order });
                }
            }
            return Ok(descriptions);
        }
        let left_out = self.left_out(call)?;
        let is_kept = |id: &&str| !left_out.contains(*id);
        let ids: Vec<&str> = ids.iter().copied().filter(is_kept).collect();
        let (skeletons, mut origins) = self.read_database(call, |database| {
            let has_origins = self.kind.has_origins();
            let origins = if has_origins { db::origins(database)? } else { HashMap::new() };
            Ok((db::skeletons(database, &ids)?, origins))
        })?;
        let description = |(id, skeleton): (String, Skeleton)| {
            let known = origins.remove(&id);
            let origin = known.clone().unwrap_or_default();
            let times = || skeleton.messages.iter().filter_map(|(_, _, time)| *time);
            let outline = Outline {
                id: id.clone(),
                title: skeleton.title.clone(),
                turns: u32::try_from(skeleton.messages.len()).unwrap_or(u32::MAX),
                begun: times().min(),
                last: times().max(),
            };
            let about = About::of_outline(self.kind, outline, origin);
            let order = OrderedMessages::Read(skeleton, TurnFinder::default());
            (id, Description { about, origin: known, order })
        };
        Ok(skeletons.into_iter().map(description).collect())
    }
}
