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

/// Returns why the index is not used, and the command that changes this.
pub fn because(reason: &FallbackReason) -> String {
    let command = match reason {
        FallbackReason::NoIndex => "; `verbatim reindex` builds it",
        FallbackReason::Stale => "; `verbatim reindex` brings it up to date",
        FallbackReason::Unreadable(_) => "; `verbatim reindex --full` builds it again",
        FallbackReason::EmptyRole | FallbackReason::RoleColumn => "",
    };
    format!("{reason}{command}")
}
