//! The questions that every source answers, whatever stores its messages.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use super::{
    handle::FallbackReason,
    scope::{About, Scope, shared_start},
    scoring::Scorer,
    sink::Sink,
};
use crate::{
    engine::error::Error,
    index::Trace,
    model::{Hit, Instant, Origin, Request, Stop},
};

/// What can be asked of a source. All readers of one state of a source give the same answers.
///
/// `tests/contract` holds every reader against SQLite: a new reader is done when it passes.
pub trait Reader: Send + Sync {
    /// Hands the messages that match a request to `sink`, newest first, until it breaks off.
    ///
    /// The hits are those of SQLite's `LIKE '%text%'` over contents and titles or, for another
    /// [`Matching`](crate::model::Matching), the messages whose content or title matches.
    fn search(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> Result<SearchPlan, Error>;

    /// Returns the conversations in a scope that have messages, latest activity first.
    ///
    /// A conversation is in a scope of dates if it was going on at any of them, and in a scope of
    /// roles if one of its messages has one.
    fn list(&self, scope: &Scope, stop: &Stop) -> Result<Box<dyn Listing>, Error>;

    /// Opens the messages of a conversation; `None` if it has none or does not exist.
    ///
    /// With `raw_content`, contents that are JSON parts come as stored.
    fn read(
        &self,
        id: &str,
        raw_content: bool,
        stop: &Stop,
    ) -> Result<Option<Box<dyn Messages>>, Error>;

    /// Counts the messages in a scope. `day` returns the day of a time, counted from 1970-01-01:
    /// [`Instant::day`] or that of another time zone.
    fn count(
        &self,
        scope: &Scope,
        day: &dyn Fn(Instant) -> i64,
        stop: &Stop,
    ) -> Result<Counts, Error>;

    /// Returns the times of the first and the last message; `None` if no message has a time.
    fn span(&self, stop: &Stop) -> Result<Option<(Instant, Instant)>, Error>;

    /// Returns what ranks the messages in a scope; `None` if this reader cannot rank.
    fn scorer(&self, scope: &Scope, stop: &Stop) -> Result<Option<Box<dyn Scorer>>, Error>;
}

/// The conversations of one source that are in a scope, latest activity first.
pub trait Listing {
    /// How many conversations there are.
    fn len(&self) -> usize;

    /// Whether there are no conversations.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The time of a conversation's last activity.
    fn last(&self, place: usize) -> Option<Instant>;

    /// The id and the title of a conversation.
    fn heading(&self, place: usize) -> (&str, &str);

    /// The number of messages of a conversation.
    fn turns(&self, place: usize) -> u32 {
        self.brief(place).turns
    }

    /// The origin of a coding agent's conversation.
    fn origin(&self, place: usize) -> Option<&Origin>;

    /// Everything that is known of a conversation. This may read its messages.
    fn about(&self, place: usize) -> About;

    /// Prepares that many conversations are described: by [`Listing::about`] or, if they are to be
    /// described `briefly`, by [`Listing::brief`].
    fn prepare(&self, _places: &[usize], _briefly: bool) {}

    /// How many bytes an id has in common with the beginning of the most similar other id of the
    /// source; the case of ASCII letters does not count.
    fn shared_start(&self, id: &str) -> usize {
        let others = (0..self.len()).map(|place| self.heading(place).0);
        others.filter(|other| *other != id).map(|other| shared_start(id, other)).max().unwrap_or(0)
    }

    /// What is known of a conversation without a summary. This reads messages only for a title.
    fn brief(&self, place: usize) -> About {
        self.about(place)
    }
}

/// The messages of a conversation in reading order. Turns count from 0.
pub trait Messages: std::fmt::Debug + Send + Sync {
    /// How many messages there are.
    fn turns(&self) -> usize;

    /// The role of a message; empty for NULL.
    fn role(&self, turn: usize) -> &str;

    /// The position of a message, if the database has that column.
    fn position(&self, turn: usize) -> Option<i64>;

    /// Returns the message with a number, counted in reading order.
    fn message(&self, turn: usize) -> Hit<'_>;

    /// The turn of a message of this conversation.
    fn turn_of(&self, hit: &Hit<'_>) -> Option<usize>;
}

/// Numbers of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages by the id of their conversation.
    pub conversations: HashMap<String, u64>,
    /// Messages by role; empty for NULL.
    pub roles: BTreeMap<String, u64>,
    /// Messages by day, counted from 1970-01-01; `None` for messages without a time.
    pub days: BTreeMap<Option<i64>, u64>,
    /// The time of the first message.
    pub first: Option<Instant>,
    /// The time of the last message.
    pub last: Option<Instant>,
    /// Messages by the model that wrote them, as far as the source says.
    pub models: BTreeMap<String, u64>,
}

/// How an answer was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchPlan {
    /// The index answered.
    ByIndex {
        /// The name of the snapshot.
        snapshot: String,
        /// The steps and counts of the search.
        trace: Trace,
    },
    /// SQLite answered: it compared every message of the database.
    ByLike {
        /// The reason why the index did not answer.
        why: FallbackReason,
        /// How long that took, rows included.
        took: Duration,
    },
    /// A cluster proposed messages, and their texts were compared.
    ByCluster {
        /// The index that was asked.
        index: String,
        /// How many messages the cluster proposed.
        candidates: u64,
        /// How long that took, rows included.
        took: Duration,
    },
}
