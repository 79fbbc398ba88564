//! `mode="list"`: conversations, latest activity first.

use serde::Serialize;

use super::answer::{answer, compact_id, iso, text_of};
use crate::{
    engine::{Note, Scope},
    tools::{
        error::Error,
        notes,
        tool::{Answer, Call},
    },
};

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

impl CompactListItem<'_> {
    fn of(item: &ListItem) -> CompactListItem<'_> {
        CompactListItem {
            id: compact_id(&item.session_id),
            k: &item.session_key,
            t: &item.title,
            turns: item.turn_count,
            last: &item.last_activity,
        }
    }
}

#[derive(Serialize)]
struct CompactListPage<'a> {
    n: usize,
    c: Vec<CompactListItem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: &'a Option<String>,
}

/// Answers with one page of conversations.
pub(super) fn list(call: &Call<'_>, offset: usize, limit: usize) -> Result<Answer, Error> {
    let listed = call.engine.listed(&Scope::default(), offset, limit, call.stop)?;
    let mut conversations = Vec::new();
    for about in &listed.abouts {
        conversations.push(ListItem {
            session_id: about.id.clone(),
            session_key: call.engine.find(call.stop).key_of(about)?,
            title: text_of(&about.title),
            turn_count: about.turns,
            last_activity: iso(about.last),
            created_at: iso(about.begun),
        });
    }
    let notes = notes::lines(&listed.notes);
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
    let compact = page.conversations.iter().map(CompactListItem::of).collect();
    let compact = CompactListPage { n: page.total, c: compact, message: &page.message };
    Ok(answer(call.options, &compact, &page))
}
