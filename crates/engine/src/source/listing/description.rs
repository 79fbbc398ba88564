//! Descriptions of the conversations in an answer, and the lines of their messages.

use std::collections::HashMap;

use super::session::line_number;
use crate::error::Result;
use crate::source::reader::Messages;
use crate::source::reader::turns::TurnFinder;
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
        match &self.order {
            OrderedMessages::Open(messages) => {
                (0..messages.turns()).all(|turn| messages.time(turn) > Some(time))
            }
            OrderedMessages::Read(skeleton, _) => {
                skeleton.messages.iter().all(|(_, _, at)| *at > Some(time))
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
                finder.find(
                    messages.len(),
                    &&*hit.message_id,
                    |turn| messages[turn].0.as_str(),
                    |turn| messages[turn].0 == hit.message_id && messages[turn].1 == hit.position,
                )
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
        let mut descriptions = HashMap::new();
        if let Some(mut orders) = self.store().orders(ids, call)? {
            let listing = self.reader(call).list(&Scope::of_ids(self.kind, ids), call)?;
            for place in 0..listing.len() {
                let id = listing.heading(place).0.to_owned();
                let Some(messages) = orders.remove(&id) else { continue };
                let skeleton = Skeleton { messages, ..Skeleton::default() };
                let order = OrderedMessages::Read(skeleton, TurnFinder::default());
                let about = listing.describe(place, with_summaries);
                let origin = listing.origin(place).cloned();
                descriptions.insert(id, Description { about, origin, order });
            }
            return Ok(descriptions);
        }
        if self.is_indexed(call) {
            let reader = self.reader(call);
            for id in ids {
                let scope = Scope { conversation: Some((*id).to_owned()), ..Scope::default() };
                let listing = reader.list(&scope, call)?;
                if let Some(messages) = reader.read(id, false, call)?
                    && !listing.is_empty()
                {
                    let order = OrderedMessages::Open(messages);
                    let about = listing.describe(0, with_summaries);
                    let origin = listing.origin(0).cloned();
                    descriptions.insert((*id).to_owned(), Description { about, origin, order });
                }
            }
            return Ok(descriptions);
        }
        let left_out = self.left_out(call)?;
        let ids: Vec<&str> = ids.iter().copied().filter(|id| !left_out.contains(*id)).collect();
        let (skeletons, mut origins) = self.read_database(call, |database| {
            let has_origins = self.kind.has_origins();
            let origins = if has_origins { db::origins(database)? } else { HashMap::new() };
            Ok((db::skeletons(database, &ids)?, origins))
        })?;
        for (id, skeleton) in skeletons {
            let origin = origins.remove(&id);
            let times = skeleton.messages.iter().filter_map(|(_, _, time)| *time);
            let outline = Outline {
                id: id.clone(),
                title: skeleton.title.clone(),
                turns: u32::try_from(skeleton.messages.len()).unwrap_or(u32::MAX),
                begun: times.clone().min(),
                last: times.max(),
            };
            let about = About::of_outline(self.kind, outline, origin.clone().unwrap_or_default());
            let order = OrderedMessages::Read(skeleton, TurnFinder::default());
            descriptions.insert(id, Description { about, origin, order });
        }
        Ok(descriptions)
    }
}
