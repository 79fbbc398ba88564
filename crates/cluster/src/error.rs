//! An error of a cluster.

use verbatim_text::expression::ExpressionError;

/// The result of a call that fails with the error of this room.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a cluster. Its texts never contain a password or a key.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A text is not the address of an index.
    #[error("{given:?} is not the address of an index: {reason}")]
    Address {
        /// The text, without the login if it contains one.
        given: String,
        /// What is wrong with it, and the right form.
        reason: String,
    },
    /// A request to the cluster failed.
    #[error("{address}: cannot {what}: {why}")]
    Failed {
        /// The address of the index, or the path of the file with trusted certificates.
        address: String,
        /// The failed action, as a phrase after “cannot”.
        what: &'static str,
        /// The reason, with advice if there is any.
        why: String,
    },
    /// The index belongs to another program or to a later version.
    #[error("{address}: {reason}")]
    Foreign {
        /// The address of the index.
        address: String,
        /// The reason why the index cannot be used, and what the user can do.
        reason: String,
    },
    /// An earlier version wrote the index.
    #[error(
        "{address}: an earlier version of verbatim wrote this index (format {format}); reindexing \
         rebuilds it"
    )]
    Older {
        /// The address of the index.
        address: String,
        /// The number of the index format of that version.
        format: u64,
    },
    /// No import has made the index yet.
    #[error("{address}: the cluster has no such index yet; nothing was imported into it")]
    Empty {
        /// The address of the missing index.
        address: String,
    },
    /// A later import removed the state that was being read. A new search succeeds.
    #[error("{address}: later imports replaced what was being read; ask again")]
    Replaced {
        /// The address of the index.
        address: String,
    },
    /// Conversations of an import cannot be stored in an index.
    #[error("{address}: not imported: {reason}")]
    Refused {
        /// The address of the index.
        address: String,
        /// The property of the import that an index cannot store.
        reason: String,
    },
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
