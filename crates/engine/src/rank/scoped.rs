//! A question with the messages that it concerns.

use std::collections::{HashMap, HashSet};
use std::{borrow::Cow, sync::Arc};

use super::{question::Fields, ranker::Ranker};
use crate::source::{Scope, Source, SourceKind};
use crate::{error::Result, source::summary::SAVED};

/// The ids of the conversations that contain every concept, by source.
pub(super) type InCommon = HashMap<SourceKind, HashSet<String>>;

/// A question with the messages that it concerns.
#[derive(Clone)]
pub(super) struct Scoped<'a> {
    pub(super) ranker: &'a Ranker<'a>,
    /// The scope of the question, with the full names of its project and session.
    pub(super) scope: Scope,
    /// The conversations that contain every concept; `None` if there is only one concept, or if the mode
    /// does not match text.
    pub(super) common: Option<Arc<InCommon>>,
}

impl Scoped<'_> {
    /// Returns the scope, restricted to the conversations that contain every concept.
    pub(super) fn narrowed_scope(&self) -> Cow<'_, Scope> {
        if self.common.is_none() {
            return Cow::Borrowed(&self.scope);
        }
        Cow::Owned(Scope { conversations: self.common.clone(), ..self.scope.clone() })
    }

    /// Returns the roles to find in a source; empty for all. The summary that a conversation was saved
    /// with has the role [`SAVED`], which the turns of threads hardly ever have.
    pub(super) fn roles_in(&self, kind: SourceKind) -> Cow<'_, [String]> {
        let roles = &self.scope.roles;
        if self.ranker.question.fields != Fields::Turns || kind != SourceKind::Threads {
            return Cow::Borrowed(roles);
        }
        Cow::Owned(if roles.is_empty() {
            ["user", "assistant"].map(str::to_owned).to_vec()
        } else {
            roles.iter().filter(|role| *role != SAVED).cloned().collect()
        })
    }

    /// Returns the ids of the conversations to search; `None` for all. The scope may name them directly or
    /// by a project or session. Conversations that another source has too are left out.
    pub(super) fn conversations_of_origin(
        &self,
        source: &Source,
    ) -> Result<Option<HashSet<String>>> {
        let call = self.ranker.call;
        let scope = self.narrowed_scope();
        let scope = Scope { conversation: None, ..scope.any_message() };
        if scope.is_open() && source.left_out(call)?.is_empty() {
            return Ok(None);
        }
        let listing = source.reader(call).list(&scope, call)?;
        let ids = (0..listing.len()).map(|place| listing.heading(place).0.to_owned());
        Ok(Some(ids.collect()))
    }
}
