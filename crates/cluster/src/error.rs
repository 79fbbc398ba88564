//! An error of a cluster.

use verbatim_text::expression::ExpressionError;

/// The result of a call that fails with the error of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a cluster. Its texts never contain a password or a key.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// A text is not the address of an index.
    #[error("{given:?} is not the address of an index: {reason}")]
    Address { given: String, reason: String },
    /// A request to the cluster failed.
    #[error("{address}: cannot {what}: {why}")]
    Failed {
        /// The address of the index, or the path of the file with trusted certificates.
        address: String,
        what: &'static str,
        why: String,
    },
    /// The index belongs to another program or to a later version.
    #[error("{address}: {reason}")]
    Foreign { address: String, reason: String },
    /// An earlier version wrote the index.
    #[error(
        "{address}: an earlier version of verbatim wrote this index (format {format}); reindexing \
         rebuilds it"
    )]
    Older { address: String, format: u64 },
    /// No import has made the index yet.
    #[error("{address}: the cluster has no such index yet; nothing was imported into it")]
    Empty { address: String },
    /// A later import removed the state that was being read. A new search succeeds.
    #[error("{address}: later imports replaced what was being read; ask again")]
    Replaced { address: String },
    /// Conversations of an import cannot be stored in an index.
    #[error("{address}: not imported: {reason}")]
    Refused { address: String, reason: String },
    /// A regular expression of the request is refused.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The [`Stop`](verbatim_base::call::Stop) was requested.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// Returns the error with advice: what is true now, and what the user can do.
    pub(super) fn with_advice(self, advice: &str) -> Error {
        match self {
            Error::Failed { address, what, why } => {
                Error::Failed { address, what, why: format!("{why}; {advice}") }
            }
            other => other,
        }
    }
}
