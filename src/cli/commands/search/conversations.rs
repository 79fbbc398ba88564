//! `verbatim search -l`: the conversations that match.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::error::Result;
use crate::cli::terminal::hit_lines::{Page, place};
use crate::cli::terminal::layout::ListEntry;
use crate::cli::terminal::output::{grouped, harmless, json_line, on_one_line};
use verbatim_answer::conversation::{ConversationJson, conversations, title_line};
use verbatim_answer::exact::GroupedConversation;
use verbatim_base::call::Call;
use verbatim_engine::ConversationKey as Key;
use verbatim_text::snippet;

/// The number of conversations that are looked up in one step.
const AT_ONCE: usize = 500;

#[derive(Clone, Copy)]
pub(super) struct ListForm {
    pub(super) json: bool,
    /// Whether only ids are written, each followed by a zero byte.
    pub(super) null: bool,
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

/// Writes conversations; `time` and `title` are those of their first matches.
pub(super) fn write(
    shown: &[GroupedConversation<()>],
    form: ListForm,
    page: Page<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    for part in shown.chunks(AT_ONCE) {
        if form.null {
            for GroupedConversation { key: (_, id), .. } in part {
                write!(out, "{id}\0")?;
            }
            continue;
        }
        let keys: Vec<Key> = part.iter().map(|one| one.key.clone()).collect();
        let described = conversations(page.engine, &keys, &Call::default())?;
        for GroupedConversation { key, title, time, messages, .. } in part {
            let title = title.first().map_or("", |piece| &piece.text);
            let conversation = &described[key];
            if form.json {
                let title = snippet::trim(title);
                let time = time.and_then(|time| page.clock.iso(time));
                let origin = conversation.json();
                let id = &key.1;
                let matches = *messages;
                json_line(out, &JsonMatchingConversation { id, title, matches, time, origin })?;
                continue;
            }
            let title = harmless(&title_line(title));
            let count = match messages {
                0 => "title".to_owned(),
                count => grouped(*count as u64),
            };
            let entry = ListEntry {
                id: &on_one_line(&conversation.short_id),
                link: conversation.link(),
                gap: 0,
                time: &page.clock.words(*time),
                count: &count,
                title: &title,
                place: &place(conversation),
            };
            page.layout.entry(out, &entry)?;
        }
    }
    Ok(())
}
