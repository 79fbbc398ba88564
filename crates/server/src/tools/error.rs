//! The error of a tool that gives no answer.

use verbatim_answer::hint::Explained;
use verbatim_engine as engine;

pub(super) type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The caller has to change the call; the text says how.
    #[error("{0}")]
    Refused(String),
    /// The caller has to change the call; the text is a sentence of the tool's contract, without a prefix.
    #[error("{0}")]
    Contract(String),
    #[error("{}", Explained(.0))]
    Engine(#[from] engine::Error),
}

impl Error {
    pub(super) fn refused(text: impl Into<String>) -> Error {
        Error::Refused(text.into())
    }

    /// Returns whether an index changed during the call, so that the call must run again.
    pub(super) fn is_torn<T>(done: &Result<T>) -> bool {
        matches!(done, Err(Error::Engine(error)) if error.is_of_index())
    }

    /// Returns the text for the log; `None` if the caller can correct the error.
    pub(super) fn unexpected(&self) -> Option<String> {
        use engine::Error as E;
        let Error::Engine(error) = self else { return None };
        let is_expected = error.is_not_found()
            || error.is_stopped()
            || error.is_of_request()
            || matches!(error, E::Threads(_) | E::Workspace(_));
        (!is_expected).then(|| format!("{error} ({error:?})"))
    }
}
