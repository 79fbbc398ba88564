//! `verbatim search -l`: the conversations that match.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::{
    error::Result,
    terminal::{
        hit_lines::{Page, place},
        output::{grouped, harmless, json_line},
    },
};
use verbatim_answer::{
    conversation::{ConversationJson, conversations, title_line},
    exact::{ExactSearch, GroupedConversation, Grouping},
};
use verbatim_base::model::{Hit, Instant, Stop};
use verbatim_engine::{ConversationKey as Key, SourceKind};
use verbatim_text::{excerpt::Piece, snippet};

/// The number of conversations that are looked up in one step.
const AT_ONCE: usize = 500;

/// The form of the output.
#[derive(Clone, Copy)]
pub(super) struct ListForm {
    pub(super) json: bool,
    /// Whether only ids are written, each followed by a zero byte.
    pub(super) null: bool,
}

/// The conversations that match, in the order of their first matches; with their titles.
#[derive(Default)]
pub(super) struct MatchingConversations {
    grouping: Grouping<()>,
}

/// A hit of a conversation.
pub(super) struct MatchingHit {
    key: Key,
    title: String,
    time: Option<Instant>,
    is_title_only: bool,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::cli::commands) struct JsonMatchingConversation<'a> {
    /// The conversation's id.
    id: &'a str,
    /// Its title; may be empty.
    title: &'a str,
    /// How many of its messages match; 0 if only the title does.
    matches: usize,
    /// The time of the first match.
    time: Option<String>,
    #[serde(flatten)]
    origin: ConversationJson<'a>,
}

impl MatchingConversations {
    pub(super) fn render(search: &ExactSearch<'_>, kind: SourceKind, hit: &Hit<'_>) -> MatchingHit {
        MatchingHit {
            key: (kind, hit.conversation_id.clone().into_owned()),
            title: hit.title.clone().into_owned(),
            time: hit.time,
            is_title_only: search.is_title_only(hit),
        }
    }

    pub(super) fn add(&mut self, MatchingHit { key, title, time, is_title_only }: MatchingHit) {
        self.grouping.add(key, (vec![Piece::plain(&title)], time), is_title_only);
    }

    pub(super) fn len(&self) -> usize {
        self.grouping.conversations.len()
    }

    /// Writes the first `most` conversations; returns their number.
    pub(super) fn write(
        &self,
        most: usize,
        form: ListForm,
        page: Page<'_>,
        out: &mut dyn Write,
    ) -> Result<usize> {
        let shown = &self.grouping.conversations[..most.min(self.len())];
        for part in shown.chunks(AT_ONCE) {
            if form.null {
                for GroupedConversation { key: (_, id), .. } in part {
                    write!(out, "{id}\0")?;
                }
                continue;
            }
            let keys: Vec<Key> = part.iter().map(|one| one.key.clone()).collect();
            let described = conversations(page.engine, &keys, &Stop::never())?;
            for GroupedConversation { key, title, time, messages, .. } in part {
                let title = title.first().map_or("", |piece| &piece.text);
                let conversation = &described[key];
                if form.json {
                    let title = snippet::trim(title);
                    let time = time.and_then(|time| page.clock.iso(time));
                    let origin = conversation.json();
                    let (id, matches) = (&key.1, *messages);
                    json_line(out, &JsonMatchingConversation { id, title, matches, time, origin })?;
                    continue;
                }
                let title = harmless(&title_line(title));
                let count = match messages {
                    0 => "title".to_owned(),
                    count => grouped(*count as u64),
                };
                page.layout.entry(
                    out,
                    (&harmless(&conversation.short_id), conversation.link(), 0),
                    [&page.clock.words(*time), &count],
                    (&title, &place(conversation)),
                )?;
            }
        }
        Ok(shown.len())
    }
}
