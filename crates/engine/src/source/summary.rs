//! The summaries of conversations, and titles for conversations without one. They are made when they are
//! asked for, from the first messages.

use std::{borrow::Cow, cmp::Reverse, sync::Arc};

use crate::error::Result;
use crate::source::catalogue::{Catalogue, Origins, TitleTerms};
use crate::source::{About, SourceKind};
use verbatim_base::{call::Stop, lock::lock};
use verbatim_chats::db::{self, Outline};
use verbatim_text::summary::{self, Summary, term_hashes};
use verbatim_text::{snippet, words::Tokenizer};

/// The role of a thread's first message if this message is the summary that a client saved.
pub const SAVED: &str = "system";

/// Number of bytes that are read of a summary that a client saved.
const MAX_SAVED_BYTES: usize = 64 << 10;

/// Maximum number of characters of a summary that a client saved.
const MAX_SAVED: usize = 10_000;

impl Catalogue {
    /// Returns the summary of a conversation.
    pub(crate) fn summary(&self, conversation: u32) -> &Summary {
        self.summaries.slot(conversation).get_or_init(|| self.summarise(conversation))
    }

    /// Returns the description of a conversation. Its summary needs its messages.
    pub(crate) fn about(
        &self,
        conversation: u32,
        origins: Option<&Origins>,
        with_summary: bool,
    ) -> About {
        let id = self.id(conversation);
        let made = self.made_title(conversation);
        let origin = origins.and_then(|origins| origins.get(id));
        let outline = Outline {
            id: id.to_owned(),
            title: made.unwrap_or_else(|| self.title(conversation)).to_owned(),
            turns: self.turns(conversation),
            begun: self.begun(conversation),
            last: self.last(conversation),
        };
        let is_title_made = made.is_some();
        let summary =
            if with_summary { self.summary(conversation).text.clone() } else { String::new() };
        let about = About::of_outline(self.kind, outline, origin.cloned().unwrap_or_default());
        About { is_title_made, summary, ..about }
    }

    /// Returns the terms of the titles and summaries of all conversations, by conversation.
    pub(crate) fn title_terms(&self, stop: &Stop) -> Result<Arc<[TitleTerms]>> {
        let mut held = lock(&self.title_terms);
        if let Some(known) = &*held {
            return Ok(Arc::clone(known));
        }
        let tokenizer = Tokenizer::default();
        let mut all = Vec::with_capacity(self.count());
        for conversation in 0..self.count() as u32 {
            stop.check(db::Error::Stopped)?;
            let title = self.made_title(conversation).unwrap_or(self.title(conversation));
            all.push(TitleTerms {
                of_title: term_hashes(&tokenizer, title).into(),
                of_summary: term_hashes(&tokenizer, &self.summary(conversation).text).into(),
            });
        }
        Ok(Arc::clone(held.insert(all.into())))
    }

    /// Returns the title that is made for a conversation without one.
    fn made_title(&self, conversation: u32) -> Option<&str> {
        let is_untitled = self.title(conversation).trim().is_empty();
        is_untitled.then(|| &*self.summary(conversation).title).filter(|made| !made.is_empty())
    }

    fn summarise(&self, conversation: u32) -> Summary {
        let snapshot = self.snapshot();
        let mut doc_ids = self.doc_ids(conversation);
        doc_ids.sort_unstable_by_key(|doc_id| (snapshot.time(*doc_id), Reverse(*doc_id)));
        doc_ids.truncate(summary::TURNS);
        // The summary needs the messages in reading order.
        doc_ids.sort_by_key(|doc_id| (snapshot.position(*doc_id), snapshot.time(*doc_id)));
        let texts: Vec<(&str, Cow<'_, str>)> = doc_ids
            .into_iter()
            .map(|doc_id| (snapshot.role(doc_id), snapshot.beginning(doc_id, summary::BYTES_READ)))
            .collect();
        let messages: Vec<(&str, &str)> =
            texts.iter().map(|(role, text)| (*role, &**text)).collect();
        let made = Summary::of_messages(&messages);
        let text = self.saved_summary(conversation).unwrap_or(made.text);
        Summary { text, ..made }
    }

    fn saved_summary(&self, conversation: u32) -> Option<String> {
        if self.kind != SourceKind::Threads {
            return None;
        }
        let first = *self.reading(conversation).first()?;
        let snapshot = self.snapshot();
        (snapshot.role(first) == SAVED).then(|| {
            let content = snapshot.beginning(first, MAX_SAVED_BYTES);
            let content = snippet::trim(&content);
            snippet::cut(content, MAX_SAVED).unwrap_or(content).to_owned()
        })
    }
}
