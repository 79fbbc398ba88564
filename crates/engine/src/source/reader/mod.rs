//! The questions that every source answers, independent of where its messages are stored.

pub(crate) mod catalogue;
mod catalogue_table;
#[cfg(feature = "cluster")]
pub(crate) mod cluster_about;
#[cfg(feature = "cluster")]
pub(super) mod clustered;
mod counter;
pub(super) mod indexed;
pub(super) mod live;
mod read_messages;
pub(crate) mod request;
pub(crate) mod sink;
mod slots;
mod sorted_ids;
pub(super) mod turns;

use std::collections::{BTreeMap, HashMap};
use std::{sync::Arc, time::Duration};

use crate::source::reader::sink::Sink;
use crate::source::scope::{About, Scope, is_agent_of, shared_start};
use crate::source::store::handle::FallbackReason;
use crate::{error::Result, scoring::Scorer};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Origin, Request};
use verbatim_index::{Snapshot, Trace};

/// Interface for reading a source. All readers of one state of a source give the same answers.
///
/// `tests/contract` compares every reader with SQLite. A new reader must pass these tests.
pub trait Reader: Send + Sync {
    /// Passes the messages that match a request to `sink`, newest first, until the sink breaks off.
    ///
    /// The hits are those of SQLite's `LIKE '%text%'` over contents and titles or, for another
    /// [`Matching`](verbatim_base::model::Matching), the messages whose content or title matches.
    fn search(&self, request: &Request, call: &Call, sink: &mut dyn Sink) -> Result<SearchPlan>;

    /// Returns the conversations in a scope that have messages, latest activity first.
    ///
    /// A scope of dates accepts a conversation if its time span overlaps them. A scope of roles accepts
    /// a conversation if one of its messages has such a role.
    fn list(&self, scope: &Scope, call: &Call) -> Result<Box<dyn Listing>>;

    /// Opens the messages of a conversation; `None` if it has none or does not exist.
    ///
    /// If `raw_content` is set, contents in the form of JSON parts are returned as stored.
    fn read(&self, id: &str, raw_content: bool, call: &Call) -> Result<Option<Box<dyn Messages>>>;

    /// Counts the messages in a scope. `day` returns the day of a time, counted from 1970-01-01. It is
    /// [`Instant::day`] or a function for another time zone.
    fn count(&self, scope: &Scope, day: &dyn Fn(Instant) -> i64, call: &Call) -> Result<Counts>;

    /// Returns the times of the first and the last message; `None` if no message has a time.
    fn span(&self, call: &Call) -> Result<Option<(Instant, Instant)>>;

    /// Returns the scorer for the messages in a scope; `None` if this reader cannot rank.
    fn scorer(&self, scope: &Scope, call: &Call) -> Result<Option<Box<dyn Scorer>>>;

    /// Returns the snapshot of an index on this computer from which the reader answers.
    fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        None
    }
}

/// The conversations of one source that are in a scope, latest activity first.
pub trait Listing {
    /// Returns the number of conversations.
    fn len(&self) -> usize;

    /// Returns whether there are no conversations.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the time of a conversation's last activity.
    fn last(&self, place: usize) -> Option<Instant>;

    /// Returns the id and the title of a conversation.
    fn heading(&self, place: usize) -> (&str, &str);

    /// Returns the number of messages in a conversation.
    fn turns(&self, place: usize) -> u32 {
        self.about_without_summary(place).turns
    }

    /// Returns the number of messages in all conversations.
    fn messages(&self) -> u64 {
        (0..self.len()).map(|place| u64::from(self.turns(place))).sum()
    }

    /// Returns the origin of a conversation, if it is from a coding agent.
    fn origin(&self, place: usize) -> Option<&Origin>;

    /// Returns the description of a conversation. A summary, and a title that is made, are read from its messages.
    fn describe(&self, place: usize, with_summary: bool) -> About;

    /// Returns the full description of a conversation.
    fn about(&self, place: usize) -> About {
        self.describe(place, true)
    }

    /// Returns the description of a conversation without a summary.
    fn about_without_summary(&self, place: usize) -> About {
        self.describe(place, false)
    }

    /// Returns the length in bytes of the longest prefix that an id shares with another id of the source, without
    /// the agents of a session. The case of ASCII letters is ignored.
    fn shared_start(&self, id: &str) -> usize {
        let others = (0..self.len()).map(|place| self.heading(place).0);
        let others = others.filter(|other| *other != id && !is_agent_of(other, id));
        others.map(|other| shared_start(id, other)).max().unwrap_or(0)
    }

    /// Returns the conversations whose ids begin with a text, in any case of ASCII letters; `None` if all
    /// conversations must be compared to find them.
    fn beginning_with(&self, _start: &str) -> Option<Vec<usize>> {
        None
    }
}

/// The messages of a conversation in reading order. Turns count from 0.
pub trait Messages: std::fmt::Debug + Send + Sync {
    /// Returns the number of messages.
    fn turns(&self) -> usize;

    /// Returns the role of a message; empty for NULL.
    fn role(&self, turn: usize) -> &str;

    /// Returns when a message was written.
    fn time(&self, turn: usize) -> Option<Instant>;

    /// Returns the position of a message, if the database has the column `position`.
    fn position(&self, turn: usize) -> Option<i64>;

    /// Returns the message with a number in reading order, from 0.
    fn message(&self, turn: usize) -> Hit<'_>;

    /// Returns the number of a message of this conversation in reading order.
    fn turn_of(&self, hit: &Hit<'_>) -> Option<usize>;
}

/// The messages of a conversation in reading order: id, position and time, as in a skeleton.
pub(crate) type OrderedIds = Vec<(String, Option<i64>, Option<Instant>)>;

/// Numbers of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Numbers of messages by conversation id.
    pub conversations: HashMap<String, u64>,
    /// Numbers of messages by role. The key is empty for NULL.
    pub roles: BTreeMap<String, u64>,
    /// Numbers of messages by day, counted from 1970-01-01. The key is `None` for messages without a time.
    pub days: BTreeMap<Option<i64>, u64>,
    /// The time of the first message.
    pub first: Option<Instant>,
    /// The time of the last message.
    pub last: Option<Instant>,
    /// Numbers of messages by the model that wrote them, if the source names the model.
    pub models: BTreeMap<String, u64>,
}

/// The way in which an answer was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants say what the fields hold")]
pub enum SearchPlan {
    /// The index answered.
    ByIndex { trace: Trace },
    /// SQLite answered and compared every message in the database. The duration includes reading the rows.
    ByLike { why: FallbackReason, took: Duration },
    /// A cluster proposed messages, and their texts were verified. The duration includes reading the rows.
    ByCluster { took: Duration },
}
