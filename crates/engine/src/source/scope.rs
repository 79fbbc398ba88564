//! The scope of a search, and the description of a conversation.

use std::collections::{HashMap, HashSet};
use std::{path::PathBuf, sync::Arc};

use super::kind::SourceKind;
use crate::decisions::exclusions::projects;
use verbatim_base::model::{Instant, Origin, Request};
use verbatim_chats::db::Outline;

/// The ids of conversations of each kind of source. Two sources may share an id.
pub type ConversationIds = HashMap<SourceKind, HashSet<String>>;

/// A choice of conversations: some or all, without those that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenIds {
    /// The conversations; `None` for all.
    pub only: Option<Arc<ConversationIds>>,
    /// The conversations that are left out.
    pub without: Arc<ConversationIds>,
}

impl ChosenIds {
    /// Returns whether this conversation of a source is among the chosen ones.
    pub(crate) fn has(&self, kind: SourceKind, id: &str) -> bool {
        self.only.as_deref().is_none_or(|ids| has(ids, kind, id)) && !has(&self.without, kind, id)
    }
}

/// Returns whether a conversation of a source is among those with some ids.
pub(super) fn has(ids: &ConversationIds, kind: SourceKind, id: &str) -> bool {
    ids.get(&kind).is_some_and(|ids| ids.contains(id))
}

/// The scope of a search. It is applied before ranking and counting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Kinds of sources; empty for all. A [`Reader`](super::reader::Reader) is of one source already, and
    /// does not compare its kind.
    pub sources: Vec<SourceKind>,
    /// Roles as stored in the database; empty for all.
    pub roles: Vec<String>,
    /// The earliest instant, inclusive.
    pub since: Option<Instant>,
    /// The latest instant, inclusive.
    pub until: Option<Instant>,
    /// The id of one conversation.
    pub conversation: Option<String>,
    /// A project in any letter case. Conversations without a project have the name of their source.
    pub project: Option<String>,
    /// A session of coding agents' transcripts.
    pub session: Option<String>,
    /// The ids of the wanted conversations, by kind of source; `None` for all conversations.
    pub conversations: Option<Arc<ConversationIds>>,
    /// The ids of conversations to leave out, by kind of source.
    pub without: Arc<ConversationIds>,
    /// The ids of conversations to leave out in all sources.
    pub excluded: Arc<HashSet<String>>,
}

impl Scope {
    pub(crate) fn of_ids(kind: SourceKind, ids: &[&str]) -> Scope {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        Scope { conversations: Some(Arc::new(HashMap::from([(kind, ids)]))), ..Scope::default() }
    }

    /// Returns whether the id filters of the scope accept a conversation of a source.
    pub(crate) fn accepts_id(&self, kind: SourceKind, id: &str) -> bool {
        self.conversation.as_ref().is_none_or(|wanted| wanted == id)
            && self.conversations.as_deref().is_none_or(|ids| has(ids, kind, id))
            && !has(&self.without, kind, id)
            && !self.excluded.contains(id)
    }

    /// Returns the conversations that the scope names by their ids; `None` if it does not.
    pub fn only(&self) -> Option<Arc<ConversationIds>> {
        let Some(id) = &self.conversation else { return self.conversations.clone() };
        let mut only = ConversationIds::new();
        for kind in SourceKind::ALL {
            if (self.sources.is_empty() || self.sources.contains(&kind))
                && self.conversations.as_deref().is_none_or(|ids| has(ids, kind, id))
            {
                only.insert(kind, HashSet::from([id.clone()]));
            }
        }
        Some(Arc::new(only))
    }

    /// Returns a request for the messages that match `request` and have the scope's roles and dates. If both
    /// have roles, the caller must still compare the hits' roles with the scope's.
    pub(crate) fn bounded(&self, request: &Request) -> Request {
        let roles = if request.roles.is_empty() { &self.roles } else { &request.roles };
        Request {
            roles: roles.clone(),
            since: request.since.max(self.since),
            until: [request.until, self.until].into_iter().flatten().min(),
            // A source may stop at the limit only if the scope has all its hits.
            limit: request.limit.filter(|_| {
                let has_all_roles = request.roles.is_empty() || self.roles.is_empty();
                has_all_roles && self.conversation.is_none() && !self.has_names()
            }),
            ..request.clone()
        }
    }

    /// Returns whether the time span of a conversation overlaps the dates of the scope.
    pub(crate) fn covers(&self, begun: Option<Instant>, last: Option<Instant>) -> bool {
        self.since.is_none_or(|since| last.is_some_and(|last| last >= since))
            && self.until.is_none_or(|until| begun.is_some_and(|begun| begun <= until))
    }

    /// Returns whether the scope has every message of its sources.
    pub(crate) fn is_open(&self) -> bool {
        *self == Scope { sources: self.sources.clone(), ..Scope::default() }
    }

    /// Returns the scope of all messages of the same conversations.
    pub(crate) fn any_message(&self) -> Scope {
        Scope { roles: Vec::new(), since: None, until: None, ..self.clone() }
    }

    /// Returns whether the role and date filters of the scope accept a message.
    pub(crate) fn accepts_message(&self, role: &str, time: Option<Instant>) -> bool {
        self.accepts_role(role) && self.covers(time, time)
    }

    pub(crate) fn accepts_role(&self, role: &str) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|wanted| wanted == role)
    }

    /// Returns whether a user restricted the scope. Conversations that are left out for all are no filter.
    pub(crate) fn has_filters(&self) -> bool {
        Scope { without: Arc::default(), excluded: Arc::default(), ..self.clone() }
            != Scope::default()
    }

    /// Returns whether the scope has filters by conversation id.
    pub(crate) fn has_names(&self) -> bool {
        self.conversations.is_some() || !self.without.is_empty() || !self.excluded.is_empty()
    }

    /// Returns whether the scope names a project or a session.
    pub(crate) fn has_origin(&self) -> bool {
        self.project.is_some() || self.session.is_some()
    }

    /// Returns whether a conversation of a source passes the project and session filters.
    pub(super) fn accepts_origin(&self, kind: SourceKind, origin: Option<&Origin>) -> bool {
        let later = origin.into_iter().flat_map(|origin| projects(origin).skip(1));
        let mut projects = later.chain([shown_project(kind, origin)]);
        let mut sessions = origin.and_then(|origin| origin.session.as_deref()).into_iter();
        self.project.as_ref().is_none_or(|wanted| projects.any(|it| same_name(wanted, it)))
            && self.session.as_ref().is_none_or(|wanted| sessions.any(|it| same_name(wanted, it)))
    }
}

/// Returns the project name of a conversation for output. Without a project, it is the source's name.
pub(super) fn shown_project(kind: SourceKind, origin: Option<&Origin>) -> &str {
    origin.and_then(|origin| origin.project.as_deref()).unwrap_or(kind.name())
}

/// Returns whether a text occurs in a name, in any letter case.
pub(crate) fn is_part(text: &str, name: &str) -> bool {
    name.to_lowercase().contains(&text.to_lowercase())
}

/// Returns whether two names are equal when letter case is ignored.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    // Letters in lower case have at most three times as many bytes.
    let is_near = one.len() <= 3 * other.len() && other.len() <= 3 * one.len();
    one == other || is_near && one.to_lowercase() == other.to_lowercase()
}

/// Returns the length in bytes of the common prefix of two ids. The case of ASCII letters is ignored.
pub(crate) fn shared_start(one: &str, other: &str) -> usize {
    let shared = one.chars().zip(other.chars()).take_while(|(a, b)| a.eq_ignore_ascii_case(b));
    shared.map(|(a, _)| a.len_utf8()).sum()
}

/// The mark in the id of an agent's conversation, between the id of its session and the agent's own.
const AGENT: &str = "/agent-";

/// Returns the id of an agent's session, and the rest of the agent's id.
pub(crate) fn agent_parts(id: &str) -> Option<(&str, &str)> {
    id.find(AGENT).filter(|at| *at > 0).map(|at| id.split_at(at))
}

/// Returns whether a conversation belongs to an agent of a session.
pub(crate) fn is_agent_of(id: &str, session: &str) -> bool {
    agent_parts(id).is_some_and(|(of, _)| of.eq_ignore_ascii_case(session))
}

/// Returns whether an id begins with a word, in any case of ASCII letters. The beginning of a session's id names no
/// agent of the session: for that, a slash and the beginning of the rest must follow it.
pub(crate) fn begins_with(id: &str, word: &str) -> bool {
    match (agent_parts(id), word.split_once('/')) {
        (Some((session, own)), Some((start, rest))) => {
            shared_start(session, start) == start.len()
                && shared_start(&own[1..], rest) == rest.len()
        }
        (Some(_), None) => false,
        (None, _) => shared_start(id, word) == word.len(),
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
    /// Whether the title was made from the messages, because the source has none.
    pub is_title_made: bool,
    /// The summary: one or two sentences from the conversation. It may be empty.
    pub summary: String,
    /// The number of messages of the conversation.
    pub turns: u32,
    /// The time of the conversation's first message.
    pub begun: Option<Instant>,
    /// The time of the conversation's last message.
    pub last: Option<Instant>,
    /// The file of the transcript, if the conversation is from a coding agent.
    pub file: Option<PathBuf>,
    /// The project, if the conversation is from a coding agent.
    pub project: Option<String>,
    /// The branch, if the conversation is from a coding agent.
    pub branch: Option<String>,
    /// The working folder, if the conversation is from a coding agent.
    pub folder: Option<String>,
    /// The session, if the conversation is from a coding agent.
    pub session: Option<String>,
    /// The time since which the transcript's file is gone; `None` if it exists.
    pub gone: Option<Instant>,
    /// The id of the conversation that this one continues, without the messages of that one.
    pub continues: Option<String>,
}

impl About {
    pub(crate) fn of_outline(source: SourceKind, outline: Outline, origin: Origin) -> About {
        About {
            source,
            id: outline.id,
            title: outline.title,
            is_title_made: false,
            summary: String::new(),
            turns: outline.turns,
            begun: outline.begun,
            last: outline.last,
            file: origin.file.map(PathBuf::from),
            project: origin.project,
            branch: origin.branch,
            folder: origin.folder,
            session: origin.session,
            gone: origin.gone,
            continues: origin.continues,
        }
    }

    /// Returns the title from the source; empty if the source has none.
    pub fn own_title(&self) -> &str {
        if self.is_title_made { "" } else { &self.title }
    }
}
