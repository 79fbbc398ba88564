//! Where to look, and what is known of a conversation that is found.

use std::path::PathBuf;

use super::kind::SourceKind;
use crate::model::{Instant, Origin};

/// Where to look; applied before anything is ranked or counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Kinds of sources; empty for all.
    pub sources: Vec<SourceKind>,
    /// Roles, as stored; empty for all.
    pub roles: Vec<String>,
    /// The earliest instant, inclusive.
    pub since: Option<Instant>,
    /// The latest instant, inclusive.
    pub until: Option<Instant>,
    /// The id of one conversation.
    pub conversation: Option<String>,
    /// A project of coding agents' transcripts.
    pub project: Option<String>,
    /// A session of coding agents' transcripts.
    pub session: Option<String>,
}

impl Scope {
    /// Returns whether a conversation that took place between two instants is within the dates.
    pub(super) fn covers(&self, begun: Option<Instant>, last: Option<Instant>) -> bool {
        self.since.is_none_or(|since| last.is_some_and(|last| last >= since))
            && self.until.is_none_or(|until| begun.is_some_and(|begun| begun <= until))
    }

    /// Returns whether the scope names a project or a session.
    pub(super) fn has_origin(&self) -> bool {
        self.project.is_some() || self.session.is_some()
    }

    /// Returns whether a conversation is of the project and the session asked for.
    pub(super) fn accepts_origin(&self, origin: Option<&Origin>) -> bool {
        let fits = |wanted: &Option<String>, here: Option<&String>| {
            wanted.as_ref().is_none_or(|wanted| here == Some(wanted))
        };
        fits(&self.project, origin.and_then(|origin| origin.project.as_ref()))
            && fits(&self.session, origin.and_then(|origin| origin.session.as_ref()))
    }
}

/// What is known of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Where it is from.
    pub source: SourceKind,
    /// `conversations.id`.
    pub id: String,
    /// `conversations.title`, or a title made from its messages; empty if there is neither.
    pub title: String,
    /// One or two of its own sentences that tell what it is about; empty if it has none.
    pub summary: String,
    /// How many messages it has.
    pub turns: u32,
    /// When its first message was written.
    pub begun: Option<Instant>,
    /// When its last message was written.
    pub last: Option<Instant>,
    /// The transcript's file, of a coding agent's conversation.
    pub file: Option<PathBuf>,
    /// The project, of a coding agent's conversation.
    pub project: Option<String>,
    /// The session, of a coding agent's conversation.
    pub session: Option<String>,
}
