//! Plain data that all modules share: conversations, messages, requests, instants.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

/// A moment in time with the precision of a nanosecond.
///
/// Seconds and nanoseconds are separate integers, so that times are ordered exactly, even in a
/// database that holds milliseconds where seconds are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instant {
    /// Seconds since 1970-01-01T00:00:00Z, rounded down.
    pub seconds: i64,
    /// Nanoseconds within the second, 0 to 999,999,999.
    pub nanos: u32,
}

const DAY: i64 = 86_400;

impl Instant {
    /// Returns the day in UTC, counted from 1970-01-01.
    pub fn day(self) -> i64 {
        self.seconds.div_euclid(DAY)
    }

    /// Returns the instant as seconds with up to nine decimals and no trailing zeros.
    ///
    /// Imports store times in this form, as ChatGPT's own exports do.
    pub fn to_decimal(self) -> String {
        let (negative, seconds, nanos) = if self.seconds < 0 && self.nanos > 0 {
            (true, -(self.seconds + 1), 1_000_000_000 - self.nanos)
        } else {
            (self.seconds < 0, self.seconds.saturating_abs(), self.nanos)
        };
        let mut text = seconds.to_string();
        if negative {
            text.insert(0, '-');
        }
        if nanos > 0 {
            text.push('.');
        }
        // An import writes millions of times, and formatting macros take longer than this loop.
        let mut rest = nanos;
        let mut digit = 100_000_000;
        while rest > 0 {
            text.push(char::from(b'0' + (rest / digit) as u8));
            rest %= digit;
            digit /= 10;
        }
        text
    }
}

/// One conversation of an export.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The id of the conversation in the export.
    pub id: String,
    /// The title, if the export has one.
    pub title: Option<String>,
    /// The time when the conversation was started.
    pub create_time: Option<Instant>,
    /// The time of the last change.
    pub update_time: Option<Instant>,
    /// The model that answered, as the export names it.
    pub model: Option<String>,
    /// A link to the conversation on the service's site.
    pub link: Option<String>,
    /// Whether the user archived the conversation.
    pub archived: bool,
    /// Whether the user starred the conversation.
    pub starred: bool,
    /// The messages in reading order.
    pub messages: Vec<Message>,
    /// The origin, if this is a coding agent's conversation.
    pub origin: Option<Origin>,
    /// Whether the export has bytes here that are not UTF-8, which became U+FFFD.
    pub is_lossy: bool,
    /// The files that are attached to the messages.
    pub files: Vec<AttachedFile>,
    /// Whether these are only the messages that a further transcript adds to the conversation.
    pub is_part: bool,
}

/// A file that is attached to a message of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedFile {
    /// The place of the message in its conversation, from 0.
    pub message: usize,
    /// The file's name; empty if the message does not give it.
    pub name: String,
    /// Where its bytes are.
    pub content: AttachedContent,
}

/// Where the content of an [`AttachedFile`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachedContent {
    /// In the export's file whose name begins with this id.
    Id(String),
    /// In the message itself, as the text of the file.
    Text(String),
    /// In the message itself, as base64.
    Base64(String),
}

/// The origin of a coding agent's conversation, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The path of the transcript.
    pub file: Option<String>,
    /// The id of the session, which may have several files.
    pub session: Option<String>,
    /// The name of the project.
    pub project: Option<String>,
    /// The working folder of the session, in which it began.
    pub folder: Option<String>,
    /// The working folders to which the session changed later, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later_folders: Vec<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// The time at which the transcript's file was found missing, as far as it is known.
    #[serde(skip)]
    pub gone: Option<Instant>,
    /// The id of the conversation that this one continues: its transcript repeats that one's messages.
    #[serde(skip)]
    pub continues: Option<String>,
}

impl Origin {
    /// Returns all working folders of the session, the first one first.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.folder.iter().chain(&self.later_folders).map(String::as_str)
    }

    /// Returns the working folders as databases have them, one a line; `None` if there is none.
    pub fn folder_lines(&self) -> Option<String> {
        let lines: Vec<&str> = self.folders().collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Sets the working folders from the lines that a database has.
    pub fn with_folder_lines(self, lines: Option<&str>) -> Origin {
        let mut lines = lines.into_iter().flat_map(|lines| lines.split('\n')).map(str::to_owned);
        let folder = lines.next();
        Origin { folder, later_folders: lines.collect(), ..self }
    }
}

/// Where a conversation comes from, as the import stored it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The service or the agent: `chatgpt`, `claude`, `claude-code` or `codex`.
    pub service: String,
    /// A link to the conversation on the service's site.
    pub link: Option<String>,
    /// The model that answered, if it is known.
    pub model: Option<String>,
}

/// The columns of a conversation in a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredConversation {
    /// `conversations.id`, as text.
    pub id: String,
    /// The title as SQLite's LIKE reads it; `None` for NULL.
    pub title: Option<Vec<u8>>,
    /// The time of the last change, if the database has that column.
    pub updated: Option<Instant>,
    /// Where a transcript is from; `None` for exports.
    pub origin: Option<Origin>,
    /// The service, if the database has that column.
    pub provenance: Option<Provenance>,
    /// The model that answered, if the messages name none.
    pub model: Option<String>,
}

/// The columns of a message in a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredMessage {
    /// `messages.id`, as text.
    pub id: String,
    /// The role as text; empty for NULL.
    pub role: String,
    /// Whether the stored role has SQLite's type TEXT. In SQL, a BLOB or NULL never equals a text.
    pub has_text_role: bool,
    /// `messages.create_time`; `None` if it denotes no instant.
    pub time: Option<Instant>,
    /// `messages.position`, from 0.
    pub position: Option<i64>,
    /// The key of the row. It is the last sort key of messages.
    pub row: i64,
    /// The content as SQLite's LIKE reads it; `None` for NULL.
    pub content: Option<Vec<u8>>,
    /// The text inside the content's JSON parts, if the content is stored as JSON parts.
    pub decoded: Option<String>,
    /// The model that wrote the message; `None` for a person's message, and if it is not known.
    pub model: Option<String>,
}

impl StoredMessage {
    /// Returns the message as a row of an answer.
    pub fn into_hit(self, conversation: &str, title: &str, raw_content: bool) -> Hit<'static> {
        let content = match self.decoded {
            Some(decoded) if !raw_content => decoded,
            _ => String::from_utf8(self.content.unwrap_or_default())
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        };
        Hit {
            message_id: self.id.into(),
            conversation_id: conversation.to_owned().into(),
            title: title.to_owned().into(),
            role: self.role.into(),
            time: self.time,
            content: content.into(),
            position: self.position,
        }
    }
}

/// One message of an export.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// The id of the message in the export. Messages of different conversations may have the same id. A message
    /// without an id gets its conversation's id, `/` and its number.
    pub id: String,
    /// `user`, `assistant`, `tool`, `system`, or another role that the export names.
    pub role: String,
    /// The text as the service shows it.
    pub content: String,
    /// The time when the message was written.
    pub create_time: Option<Instant>,
    /// The time of the last change.
    pub update_time: Option<Instant>,
    /// The model that wrote the message, as the export names it.
    pub model: Option<String>,
    /// Names of the attached files.
    pub attachments: Vec<String>,
    /// The line of the transcript where the message begins, from 1; blank lines do not count.
    pub line: Option<u32>,
    /// Only for a message on a branch that the service does not show: the id of the message before
    /// this message; empty if this message is the first.
    pub follows: Option<String>,
}

/// One row of an answer: a message that matched, with the id and the title of its conversation.
///
/// The texts may be borrowed from the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit<'a> {
    /// The message's id, from `messages.id`.
    pub message_id: Cow<'a, str>,
    /// The conversation's id, from `messages.conversation_id`.
    pub conversation_id: Cow<'a, str>,
    /// `conversations.title`; empty for NULL.
    pub title: Cow<'a, str>,
    /// `messages.role`; empty for NULL.
    pub role: Cow<'a, str>,
    /// The time in `messages.create_time`, if the value is a valid time.
    pub time: Option<Instant>,
    /// The content, in the form that is matched and shown.
    pub content: Cow<'a, str>,
    /// `messages.position`, if the database has this column and the value is an integer.
    pub position: Option<i64>,
}

/// The maximum number of bytes of a text in a ranked answer.
pub const MOST_KEPT: usize = 4 << 20;

const CUT: &str = " […]";

impl Hit<'_> {
    /// Returns the hit with copies of its texts. A content of more than `most` bytes is cut to the
    /// part around `place`.
    pub fn into_owned_at(mut self, place: usize, most: usize) -> Hit<'static> {
        if self.content.len() > most {
            let start = place.saturating_sub(most / 2).min(self.content.len() - most);
            let [start, end] = [start, start + most].map(|mut at| {
                while !self.content.is_char_boundary(at) {
                    at -= 1;
                }
                at
            });
            let open = if start > 0 { CUT.trim_start() } else { "" };
            let close = if end < self.content.len() { CUT } else { "" };
            let kept = format!("{open}{}{close}", &self.content[start..end]);
            self.content = kept.into();
        }
        self.into_owned()
    }

    /// Returns a key that is equal for hits with the same role and text. Two cut texts may differ
    /// in the parts that were cut off, so a cut text gets a key of its own.
    pub fn copy_key(&self) -> (String, String) {
        let text = self.content.trim();
        let is_cut = text.starts_with(CUT.trim_start()) || text.ends_with(CUT);
        (self.role.to_string(), if is_cut { &*self.message_id } else { text }.to_owned())
    }

    /// Returns the hit with copies of its texts.
    pub fn into_owned(self) -> Hit<'static> {
        Hit {
            message_id: Cow::Owned(self.message_id.into_owned()),
            conversation_id: Cow::Owned(self.conversation_id.into_owned()),
            title: Cow::Owned(self.title.into_owned()),
            role: Cow::Owned(self.role.into_owned()),
            time: self.time,
            content: Cow::Owned(self.content.into_owned()),
            position: self.position,
        }
    }

    /// Returns a hit that borrows the texts of this hit.
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

/// An exact search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The text to find; empty for no text filter.
    pub text: String,
    /// How all texts of the request match.
    pub matching: Matching,
    /// Alternatives to `text`: a message must have `text` or one of these texts.
    pub or: Vec<String>,
    /// Further texts that a message must have, each in its content or its title.
    pub and: Vec<String>,
    /// Texts that neither the content nor the title of a message may have.
    pub not: Vec<String>,
    /// The roles of hits, compared with the stored roles read as text; empty for all roles.
    pub roles: Vec<String>,
    /// The earliest time of hits, inclusive.
    pub since: Option<Instant>,
    /// The latest time of hits, inclusive.
    pub until: Option<Instant>,
    /// The maximum number of hits to return; `None` for all.
    pub limit: Option<usize>,
    /// Whether the case of letters matters. If not, all cases of a letter are equal, in every
    /// script (Unicode's simple case folding). `LIKE` ignores the case of ASCII letters only.
    pub case_sensitive: bool,
    /// Whether all texts of equal look match: accents, width and kinds of quotation marks, dashes and spaces are
    /// ignored too. Only for [`Matching::Literal`] and [`Matching::Word`].
    pub ignore_accents: bool,
    /// Whether JSON parts are matched and shown as stored. Otherwise the text inside the parts is used.
    pub raw_content: bool,
}

impl Request {
    /// Returns whether a time is between the dates of the request.
    pub fn has_time(&self, time: Option<Instant>) -> bool {
        self.since.is_none_or(|since| time >= Some(since))
            && self.until.is_none_or(|until| time.is_some_and(|time| time <= until))
    }
}

/// The way in which a search text is matched.
///
/// All kinds except `Like` match the text inside JSON parts, not the stored JSON. They treat NULL
/// as an empty text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// As SQLite's `LIKE '%text%'` does: `%` stands for any text, `_` for one character.
    #[default]
    Like,
    /// The text as it is, without wildcards.
    Literal,
    /// The text as it is, where no word goes on at its ends, as `\b` in an expression.
    Word,
    /// A regular expression of the `regex` crate; `^` and `$` match at lines.
    Regex,
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_decimal())
    }
}
