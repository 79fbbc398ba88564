//! Counts the messages of an exact search, without a limit.

use std::{collections::HashSet, ops::ControlFlow};

use schemars::JsonSchema;
use serde::Serialize;

use crate::source::{Note, Scope, Sources};
use crate::{error::Result, search::exact::Make};
use verbatim_base::{call::Call, model::Request};
use verbatim_index::Error as IndexError;
use verbatim_text::matcher::Matchers;

/// The number of messages that match, and of conversations whose title alone matches
/// ([`Matchers::has_only_title`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Count {
    /// Messages whose text matches.
    pub messages: usize,
    /// Conversations that they are in.
    pub conversations: usize,
    /// Conversations of which only the title matches.
    pub titles: usize,
}

impl Count {
    /// Returns whether nothing matches.
    pub fn is_empty(self) -> bool {
        self.messages + self.titles == 0
    }
}

impl Sources {
    /// Returns whether anything matches a request in a scope.
    pub fn finds(&self, request: &Request, scope: &Scope, call: &Call) -> Result<bool> {
        let mut found = false;
        let show = &mut |()| {
            found = true;
            ControlFlow::Break(())
        };
        let request = Request { limit: Some(1), ..request.clone() };
        let make: Make<'_, ()> = &|_, _| Some(());
        self.search(&request, scope, call, make.into(), show)?;
        Ok(found)
    }

    /// Counts what matches a request in a scope. Also returns the notes of the search.
    pub fn count(
        &self,
        request: &Request,
        scope: &Scope,
        call: &Call,
    ) -> Result<(Count, Vec<Note>)> {
        let matchers = Matchers::of(request).map_err(IndexError::from)?;
        let mut messages = 0;
        let mut conversations = HashSet::new();
        let mut titles = HashSet::new();
        let unlimited = Request { limit: None, ..request.clone() };
        let render: Make<'_, _> = &|kind, hit| {
            let is_title = matchers.has_only_title(&hit.content, &hit.title);
            Some(((kind, hit.conversation_id.into_owned()), is_title))
        };
        let searched =
            self.search(&unlimited, scope, call, render.into(), &mut |(key, is_title)| {
                if is_title {
                    titles.insert(key);
                } else {
                    messages += 1;
                    conversations.insert(key);
                }
                ControlFlow::Continue(())
            })?;
        let titles = titles.difference(&conversations).count();
        Ok((Count { messages, conversations: conversations.len(), titles }, searched.notes))
    }
}
