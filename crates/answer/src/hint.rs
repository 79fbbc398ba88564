//! The engine's messages, with the command that helps.

use std::fmt;

use verbatim_engine::{Error, FallbackReason, IndexError};

/// An error of the engine with the command that helps, as the command line and the tools show it.
#[derive(Debug)]
pub struct Explained<'a>(pub &'a Error);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explained(error) = self;
        error.fmt(f)?;
        match error {
            Error::NoDatabase { .. } => f.write_str(
                " (import an export with `verbatim import`, or name a database with --db or \
                 CONVERSATION_DB)",
            ),
            Error::Torn { .. } => f.write_str("; `verbatim reindex` repairs it"),
            Error::Index(IndexError::Damaged { .. }) => {
                f.write_str("; `verbatim reindex --full` builds it again")
            }
            Error::Index(IndexError::Format { .. }) => {
                f.write_str("; `verbatim reindex` builds it again")
            }
            Error::Index(IndexError::Lengths { .. }) => {
                f.write_str("; `verbatim reindex --full` embeds them again")
            }
            _ => Ok(()),
        }
    }
}

/// A command that helps, and what it does.
#[derive(Clone, Debug)]
pub struct Remedy {
    /// The command; or in the words of a person what to do.
    pub command: String,
    /// The effect, as a verb with its object.
    pub effect: &'static str,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.command, self.effect)
    }
}

/// Returns the command after which the index is used.
pub(super) fn remedy(reason: &FallbackReason) -> Option<Remedy> {
    let (command, effect) = match reason {
        FallbackReason::NoIndex => ("verbatim reindex", "builds it"),
        FallbackReason::Stale | FallbackReason::Moved => {
            ("verbatim reindex", "brings it up to date")
        }
        FallbackReason::Unreadable(_) => ("verbatim reindex --full", "builds it again"),
        FallbackReason::EmptyRole | FallbackReason::NulInPattern | FallbackReason::RoleColumn => {
            return None;
        }
    };
    Some(Remedy { command: command.to_owned(), effect })
}
