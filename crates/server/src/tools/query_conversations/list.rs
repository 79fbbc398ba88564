//! `mode="list"`: conversations, latest activity first or last.

use std::ops::Range;

use serde::Serialize;

use super::answer::{answer, on_one_line, turn_count};
use crate::tools::error::Result;
use crate::tools::tool::{Answer, ToolCall};
use verbatim_answer::notes::{self, Audience};
use verbatim_engine::{ListOptions, Note, Scope};
use verbatim_text::date;

const LONGEST_TITLE: usize = 300;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListItem {
    session_id: String,
    session_key: String,
    title: Option<String>,
    turn_count: u32,
    last_activity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
}

#[derive(Serialize)]
struct ListPage {
    mode: &'static str,
    total: usize,
    returned: usize,
    offset: usize,
    conversations: Vec<ListItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct CompactListItem<'a> {
    id: String,
    k: &'a str,
    t: &'a Option<String>,
    turns: u32,
    last: &'a Option<String>,
}

#[derive(Serialize)]
struct CompactListPage<'a> {
    n: usize,
    c: Vec<CompactListItem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: &'a Option<String>,
}

pub(super) fn list(
    tool_call: &ToolCall<'_>,
    scope: &Scope,
    page: Range<usize>,
    oldest_first: bool,
    ignored: Option<String>,
) -> Result<Answer> {
    let options = ListOptions { briefly: true, with_empty: true, oldest_first };
    let offset = page.start;
    let listed = tool_call.engine.all_sources().list(scope, page, options, tool_call.call)?;
    let mut conversations = Vec::new();
    for about in &listed.abouts {
        conversations.push(ListItem {
            session_id: about.id.clone(),
            session_key: tool_call.engine.find(tool_call.call).key_of(about)?,
            title: on_one_line(about.own_title(), LONGEST_TITLE),
            turn_count: turn_count(tool_call.engine, about)?,
            last_activity: about.last.and_then(date::to_iso),
            created_at: about.begun.and_then(date::to_iso),
        });
    }
    let mut notes = notes::lines(&listed.notes, Audience::Model);
    notes.extend(ignored);
    let page = ListPage {
        mode: "list",
        total: listed.total,
        returned: conversations.len(),
        offset,
        conversations,
        complete: listed.notes.iter().any(Note::is_gap).then_some(false),
        message: notes::message(&notes),
        notes,
    };
    let ids: Vec<&str> = listed.abouts.iter().map(|about| about.id.as_str()).collect();
    let ids = tool_call.engine.find(tool_call.call).short_ids(&ids)?;
    let items = page.conversations.iter().zip(ids);
    let items = items.map(|(item, id)| CompactListItem {
        id,
        k: &item.session_key,
        t: &item.title,
        turns: item.turn_count,
        last: &item.last_activity,
    });
    let compact = CompactListPage { n: page.total, c: items.collect(), message: &page.message };
    Ok(answer(tool_call.options, &compact, &page))
}
