//! The scope of a search, and the description of a conversation.

use std::path::PathBuf;

use super::kind::SourceKind;
use crate::model::{Instant, Origin};

/// The scope of a search; applied before anything is ranked or counted.
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

    /// Returns whether an origin has the scope's project and session.
    pub(super) fn accepts_origin(&self, origin: Option<&Origin>) -> bool {
        let fits = |wanted: &Option<String>, here: Option<&String>| {
            wanted.as_ref().is_none_or(|wanted| here == Some(wanted))
        };
        fits(&self.project, origin.and_then(|origin| origin.project.as_ref()))
            && fits(&self.session, origin.and_then(|origin| origin.session.as_ref()))
    }
}

/// The description of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The kind of the conversation's source.
    pub source: SourceKind,
    /// The conversation's id, from `conversations.id`.
    pub id: String,
    /// `conversations.title`, or a title made from its messages; empty if there is neither.
    pub title: String,
    /// One or two of the conversation's own sentences, as a summary; may be empty.
    pub summary: String,
    /// The number of messages of the conversation.
    pub turns: u32,
    /// The time of the conversation's first message.
    pub begun: Option<Instant>,
    /// The time of the conversation's last message.
    pub last: Option<Instant>,
    /// The transcript's file, of a coding agent's conversation.
    pub file: Option<PathBuf>,
    /// The project, of a coding agent's conversation.
    pub project: Option<String>,
    /// The session, of a coding agent's conversation.
    pub session: Option<String>,
}
