//! `verbatim search --count`: how many messages match.

use std::{collections::HashSet, io::Write, ops::ControlFlow};

use serde::Serialize;

use super::{
    error::Result,
    found::Key,
    output::{counted, json_line},
};
use verbatim_base::model::Hit;
use verbatim_engine::SourceKind;
use verbatim_text::matcher::Matchers;

/// The number of messages whose content matches, and of conversations whose title alone matches.
#[derive(Default)]
pub(super) struct Count {
    messages: usize,
    conversations: HashSet<Key>,
    titles: HashSet<Key>,
}

impl Count {
    /// Returns the conversation of a hit, and whether only its title matches.
    pub(super) fn render(matchers: &Matchers, kind: SourceKind, hit: &Hit<'_>) -> (Key, bool) {
        let is_title = !matchers.is_empty()
            && !matchers.accept_text(&hit.content)
            && matchers.accept_text(&hit.title);
        ((kind, hit.conversation_id.clone().into_owned()), is_title)
    }

    pub(super) fn take(&mut self, (key, is_title): (Key, bool)) -> ControlFlow<()> {
        if is_title {
            self.titles.insert(key);
        } else {
            self.messages += 1;
            self.conversations.insert(key);
        }
        ControlFlow::Continue(())
    }

    /// Writes the numbers. Returns the number of messages and titles.
    pub(super) fn write(&self, is_json: bool, out: &mut dyn Write) -> Result<usize> {
        #[derive(Serialize)]
        struct JsonCount {
            messages: usize,
            conversations: usize,
            titles: usize,
        }
        let (messages, conversations) = (self.messages, self.conversations.len());
        let titles = self.titles.difference(&self.conversations).count();
        if is_json {
            json_line(out, &JsonCount { messages, conversations, titles })?;
        } else {
            let (of_messages, of_conversations) =
                (counted(messages, "message"), counted(conversations, "conversation"));
            writeln!(out, "{of_messages} in {of_conversations}")?;
            if titles > 0 {
                writeln!(out, "{} by title", counted(titles, "conversation"))?;
            }
        }
        Ok(messages + titles)
    }
}
