//! The errors of the engine.

use std::{fmt::Write, path::PathBuf};

use verbatim_chats::db::{self, Heading};
#[cfg(feature = "cluster")]
use verbatim_cluster as cluster;
use verbatim_index as index;
use verbatim_text::{date, like::MOST_PATTERN_BYTES, snippet::echo};

/// The result of a call that fails with the error of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// Nothing was configured, and there is nothing in the home folder either.
    #[error("Database not found: no *.db file in {}", folder.display())]
    NoDatabase { folder: PathBuf },
    /// The query contains a NUL character.
    #[error(
        "query contains a NUL character, where SQLite's LIKE stops reading; \
         search for the text before or after it"
    )]
    NulInQuery,
    /// The query is longer than SQLite's LIKE takes.
    #[error(
        "query is too long: {bytes} bytes with the two %, and SQLite's LIKE takes {}; \
         search for a part of it",
        MOST_PATTERN_BYTES
    )]
    QueryTooLong { bytes: usize },
    /// The text of a literal search is too long.
    #[error(
        "query is too long: {bytes} bytes, and at most {} can be searched for; \
         search for a part of it",
        MOST_PATTERN_BYTES
    )]
    TextTooLong { bytes: usize },
    /// A request has more texts to search for than is allowed.
    #[error("{count} texts are looked for at once, and at most {most} can be")]
    TooManyTexts { count: usize, most: usize },
    /// Accents can be ignored for texts and words only.
    #[error(
        "accents can be ignored for texts and words only, not for LIKE patterns and regular expressions"
    )]
    AccentsOfPattern,
    /// The text has only accents, and accents are ignored.
    #[error("{text:?} has nothing but accents, which are ignored")]
    OnlyAccents { text: String },
    /// No conversation has that id or title.
    #[error("no conversation has the id, the beginning of an id or the title {word:?}")]
    NoConversation { word: String },
    /// Several conversations may be meant.
    #[error("{word:?} may be any of:{}\nuse one of these ids", list(candidates, *total))]
    Ambiguous { word: String, candidates: Vec<Heading>, total: usize },
    /// Several sources have a conversation with this id.
    #[error("the id {id:?} is in several sources: use {} in its place", either(keys))]
    SameId { id: String, keys: Vec<(&'static str, String)> },
    /// Another process is building the index.
    #[error("{}: another process is building this index; wait for it to finish", folder.display())]
    Indexing { folder: PathBuf },
    /// The index was damaged while it was read.
    #[error("{}: files of this index were changed while they were read", folder.display())]
    Torn { folder: PathBuf },
    /// The database has no row ids, by which an index could fetch rows.
    #[error(
        "{}: cannot be indexed, because its tables are views or WITHOUT ROWID, or have columns named rowid, \
         oid and _rowid_; searching it works without an index",
        path.display()
    )]
    NoKeys { path: PathBuf },
    /// The database has more messages than an index can number.
    #[error("{}: more than four thousand million messages cannot be indexed", path.display())]
    TooMany { path: PathBuf },
    /// A conversation cannot be changed, because its database is opened read-only.
    #[error(
        "{}: only read, because another program made it; conversation {id} stays in it",
        path.display()
    )]
    ReadOnly { path: PathBuf, id: String },
    /// Files of an index could not be removed.
    #[error("{}: files of this index cannot be removed; end the programs that use them", folder.display())]
    NotWiped { folder: PathBuf },
    /// A database could not be written.
    #[error(transparent)]
    Writer(#[from] db::writer::Error),
    /// A file that only this program uses cannot be read or written.
    #[error("{}: {what} cannot be used: {source}", path.display())]
    OwnFile { what: &'static str, path: PathBuf, source: std::io::Error },
    /// Reading the database failed.
    #[error(transparent)]
    Db(#[from] db::Error),
    /// A request to a cluster failed.
    #[error("{reason}")]
    Cluster { reason: String },
    /// Writing the transcript store failed.
    #[error(transparent)]
    Transcripts(#[from] db::transcripts::Error),
    /// A transcript could not be read to its end.
    #[error("the transcript cannot be read: {0}")]
    Transcript(#[from] std::io::Error),
    /// Writing or reading the index failed.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// A thread does not exist or cannot be recorded.
    #[error(transparent)]
    Threads(#[from] db::threads::Error),
    /// Searching the workspace failed.
    #[error(transparent)]
    Workspace(#[from] verbatim_chats::workspace::Error),
    /// Turning texts into vectors failed.
    #[error(transparent)]
    Embed(#[from] verbatim_embed::Error),
}

#[cfg(feature = "cluster")]
impl From<cluster::Error> for Error {
    fn from(error: cluster::Error) -> Error {
        match error {
            cluster::Error::Stopped => db::Error::Stopped.into(),
            cluster::Error::Expression(error) => db::Error::from(error).into(),
            error => Error::Cluster { reason: error.to_string() },
        }
    }
}

impl Error {
    /// Returns whether the error is that there is no database.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::NoDatabase { .. } | Error::Db(db::Error::NotFound { .. }))
    }

    /// Returns whether reading an index failed. The next attempt may read a repaired index, or no index.
    pub fn is_of_index(&self) -> bool {
        match self {
            Error::Index(_) => !self.is_stopped(),
            error => matches!(error, Error::Torn { .. }),
        }
    }

    /// Returns whether the error concerns only one source, so that the other sources can still answer.
    pub(crate) fn is_of_source(&self) -> bool {
        !self.is_stopped()
            && !self.is_of_expression()
            && matches!(
                self,
                Error::Db(_)
                    | Error::Cluster { .. }
                    | Error::Index(_)
                    | Error::Torn { .. }
                    | Error::Transcripts(_)
            )
    }

    /// Returns whether a text or an expression of the request is wrong, so that no source can answer.
    pub fn is_of_request(&self) -> bool {
        self.is_of_expression()
            || matches!(
                self,
                Error::NulInQuery
                    | Error::QueryTooLong { .. }
                    | Error::TextTooLong { .. }
                    | Error::TooManyTexts { .. }
                    | Error::AccentsOfPattern
                    | Error::OnlyAccents { .. }
            )
    }

    /// Returns whether a regular expression of the request is wrong.
    pub(crate) fn is_of_expression(&self) -> bool {
        matches!(
            self,
            Error::Db(db::Error::Expression(_)) | Error::Index(index::Error::Expression(_))
        )
    }

    /// Returns whether other programs wrote to the database, so that a later attempt may succeed.
    pub fn is_contention(&self) -> bool {
        matches!(self, Error::Db(db::Error::Unsteady { .. } | db::Error::Busy { .. }))
    }

    /// Returns whether the question was cancelled.
    pub fn is_stopped(&self) -> bool {
        matches!(
            self,
            Error::Db(db::Error::Stopped)
                | Error::Index(index::Error::Stopped)
                | Error::Workspace(verbatim_chats::workspace::Error::Stopped)
        )
    }
}

fn either(keys: &[(&'static str, String)]) -> String {
    let keys = keys.iter().map(|(source, key)| format!("{} (of the {source})", echo(key)));
    keys.collect::<Vec<_>>().join(" or ")
}

fn list(candidates: &[Heading], total: usize) -> String {
    let mut list = String::new();
    for Heading { id, title, messages, last } in candidates {
        let day = last.and_then(date::to_minute).unwrap_or_else(|| "(no time)".to_owned());
        let day = day.split(' ').next().unwrap_or_default().to_owned();
        let unit = if *messages == 1 { "message" } else { "messages" };
        let _ = write!(list, "\n  {}  {title}  ({day}, {messages} {unit})", echo(id));
    }
    if total > candidates.len() {
        let _ = write!(list, "\nand {} more", total - candidates.len());
    }
    list
}
