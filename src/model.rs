//! Plain data that every room shares: conversations, messages, instants, and the word to stop.

use std::{
    borrow::Cow,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time,
};

/// A moment in time to the nanosecond, as a message's `create_time` denotes it.
///
/// Seconds and nanoseconds are kept apart so that every time a database can
/// hold (milliseconds taken for seconds included) keeps its place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    /// Seconds since 1970-01-01T00:00:00Z, rounded down.
    pub seconds: i64,
    /// Nanoseconds within the second, 0 to 999,999,999.
    pub nanos: u32,
}

impl Instant {
    /// Returns the instant as seconds with up to nine decimals and no trailing zeros.
    ///
    /// This is how imports store times, in the manner of ChatGPT's own exports.
    pub fn to_decimal(self) -> String {
        let (negative, seconds, nanos) = if self.seconds < 0 && self.nanos > 0 {
            (true, -(self.seconds + 1), 1_000_000_000 - self.nanos)
        } else {
            (self.seconds < 0, self.seconds.saturating_abs(), self.nanos)
        };
        let sign = if negative { "-" } else { "" };
        let text = format!("{sign}{seconds}.{nanos:09}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// One conversation as an importer hands it over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The export's own id.
    pub id: String,
    /// The title, where the export has one.
    pub title: Option<String>,
    /// When it was begun.
    pub create_time: Option<Instant>,
    /// When it was last changed.
    pub update_time: Option<Instant>,
    /// The model it was held with, as the export names it.
    pub model: Option<String>,
    /// A link to it on the service's site.
    pub link: Option<String>,
    /// Whether the user put it in the archive.
    pub archived: bool,
    /// Whether the user marked it with a star.
    pub starred: bool,
    /// Its messages in reading order.
    pub messages: Vec<Message>,
    /// Where a coding agent's transcript comes from.
    pub origin: Option<Origin>,
}

/// Where a coding agent's transcript comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its file.
    pub file: String,
    /// The session; several files may be of one.
    pub session: Option<String>,
    /// The project's name.
    pub project: Option<String>,
    /// The folder that the session worked in.
    pub folder: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
}

/// One turn of a conversation as an importer hands it over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// The export's own id; exports repeat ids across conversations.
    pub id: String,
    /// `user`, `assistant`, `tool`, `system`, or what else the export says.
    pub role: String,
    /// The text as a person reads it.
    pub content: String,
    /// When it was written.
    pub create_time: Option<Instant>,
    /// When it was last changed.
    pub update_time: Option<Instant>,
    /// The model that wrote it, as the export names it.
    pub model: Option<String>,
    /// Names of the files that came with it.
    pub attachments: Vec<String>,
    /// The line of its transcript that it begins at, from 1; blank lines do not count.
    pub line: Option<u32>,
}

/// One row of an answer: a message that matched, with what is shown of its conversation.
///
/// Its texts may be lent by the index that they are stored in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit<'a> {
    /// `messages.id`.
    pub message_id: Cow<'a, str>,
    /// `messages.conversation_id`.
    pub conversation_id: Cow<'a, str>,
    /// `conversations.title`; empty where it is NULL.
    pub title: Cow<'a, str>,
    /// `messages.role`; empty where it is NULL.
    pub role: Cow<'a, str>,
    /// The instant that `messages.create_time` denotes, if it denotes one.
    pub time: Option<Instant>,
    /// The text as matched and shown.
    pub content: Cow<'a, str>,
    /// `messages.position`, where the database has that column and it holds an integer.
    pub position: Option<i64>,
}

impl Hit<'_> {
    /// Returns the hit with copies of its texts.
    pub fn into_owned(self) -> Hit<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Hit {
            message_id: owned(self.message_id),
            conversation_id: owned(self.conversation_id),
            title: owned(self.title),
            role: owned(self.role),
            time: self.time,
            content: owned(self.content),
            position: self.position,
        }
    }

    /// Returns the hit with its texts lent, not copied.
    pub fn lent(&self) -> Hit<'_> {
        Hit {
            message_id: Cow::Borrowed(&self.message_id),
            conversation_id: Cow::Borrowed(&self.conversation_id),
            title: Cow::Borrowed(&self.title),
            role: Cow::Borrowed(&self.role),
            time: self.time,
            content: Cow::Borrowed(&self.content),
            position: self.position,
        }
    }
}

/// What to look for in an exact search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Text for `LIKE '%text%'`, trimmed of spaces; empty for no text filter.
    pub text: String,
    /// Roles to keep, as stored; empty for all.
    pub roles: Vec<String>,
    /// The earliest instant to keep, inclusive.
    pub since: Option<Instant>,
    /// The latest instant to keep, inclusive.
    pub until: Option<Instant>,
    /// The most hits to return; `None` for all.
    pub limit: Option<usize>,
    /// Whether ASCII letters match only in their own case.
    pub case_sensitive: bool,
    /// Whether the stored column alone is matched and shown, even where it holds JSON parts.
    pub raw_content: bool,
}

/// A word to long work that nobody waits for its end any more: it was cancelled, or its time is over.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    deadline: Option<time::Instant>,
}

impl Stop {
    /// Returns a stop that is never requested unless someone calls [`Stop::request`].
    pub fn never() -> Stop {
        Stop::default()
    }

    /// Returns a stop that requests itself once `timeout` has passed.
    pub fn after(timeout: time::Duration) -> Stop {
        Stop { flag: Arc::default(), deadline: time::Instant::now().checked_add(timeout) }
    }

    /// Returns a stop that is requested with this one, or once `timeout` has passed.
    pub fn within(&self, timeout: time::Duration) -> Stop {
        let end = time::Instant::now().checked_add(timeout);
        let deadline = [self.deadline, end].into_iter().flatten().min();
        Stop { flag: Arc::clone(&self.flag), deadline }
    }

    /// Asks the work that holds a clone of this to end.
    pub fn request(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Returns whether the work should end now.
    pub fn requested(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| time::Instant::now() >= deadline)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_decimal())
    }
}
