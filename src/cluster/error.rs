//! An error of a cluster.

use crate::text::expression::ExpressionError;

/// The result of a call that fails with the error of this room.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a cluster. Its texts never contain a password or a key.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{given:?} is not the address of an index: {reason}")]
    Address { given: String, reason: String },
    #[error("{address}: cannot {what}: {why}")]
    Failed { address: String, what: &'static str, why: String },
    /// The index belongs to another program or to a later version.
    #[error("{address}: {reason}")]
    Foreign { address: String, reason: String },
    #[error(
        "{address}: an earlier version of verbatim wrote this index (format {format}); reindexing \
         rebuilds it"
    )]
    Older { address: String, format: u64 },
    #[error("{address}: the cluster has no such index yet; nothing was imported into it")]
    Empty { address: String },
    #[error("{address}: later imports replaced what was being read; ask again")]
    Replaced { address: String },
    /// Conversations of an import cannot be stored in an index.
    #[error("{address}: not imported: {reason}")]
    Refused { address: String, reason: String },
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The [`Stop`](crate::model::Stop) was requested.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// Returns the error with advice: what is true now, and what the user can do.
    pub(super) fn advised(self, advice: &str) -> Error {
        match self {
            Error::Failed { address, what, why } => {
                Error::Failed { address, what, why: format!("{why}; {advice}") }
            }
            other => other,
        }
    }
}
