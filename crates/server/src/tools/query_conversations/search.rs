//! `mode="search"`: the best conversations for a question.

use serde::Serialize;

use super::answer::{MOST_IN_ANSWER, answer, summary, title};
use super::turn::{ANSWER_TOKENS, Budget, CompactTurn, TURN_FRAME, TurnText, without_summaries};
use crate::tools::tool::{Answer, ToolCall, first_turn};
use crate::tools::{bound, error::Result};
use verbatim_answer::notes::{self, Audience};
use verbatim_answer::ranked::RankedConversations;
use verbatim_engine::{About, ConversationMatch, Fields, Question};

const COMPACT_MATCHED: usize = 3;

/// The number of characters of a matched turn in compact texts.
const COMPACT_MATCHED_TEXT: usize = 100;

/// The maximum number of tokens for the fields of conversations; the other tokens are for turns.
const MOST_FIELD_TOKENS: usize = 10_000;

const FOUND_TURN_TOKENS: usize = 600;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchItem {
    session_id: String,
    session_key: String,
    title: Option<String>,
    summary: Option<String>,
    score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<Vec<TurnText>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_turns: Option<Vec<TurnText>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchReply {
    mode: &'static str,
    total_results: usize,
    #[serde(rename = "total_is_lower_bound", skip_serializing_if = "Option::is_none")]
    total_is_lower_bound: Option<bool>,
    conversations: Vec<SearchItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct CompactSearchItem {
    id: String,
    k: String,
    t: Option<String>,
    s: f64,
    sum: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<Vec<CompactTurn>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<Vec<CompactTurn>>,
}

impl CompactSearchItem {
    fn new(item: &SearchItem, id: String) -> CompactSearchItem {
        let turns = item.turns.as_ref();
        let turns = turns
            .map(|turns| turns.iter().map(|turn| CompactTurn::new(turn, usize::MAX)).collect());
        let matched = item.matched_turns.as_ref();
        let matched = matched.map(|turns| {
            let turns = turns.iter().take(COMPACT_MATCHED);
            turns.map(|turn| CompactTurn::new(turn, COMPACT_MATCHED_TEXT)).collect()
        });
        CompactSearchItem {
            id,
            k: item.session_key.clone(),
            t: item.title.clone(),
            s: item.score,
            sum: item.summary.clone(),
            turns,
            matched,
        }
    }
}

#[derive(Serialize)]
struct CompactSearchResults {
    n: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_is_lower_bound: Option<bool>,
    c: Vec<CompactSearchItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Answers a question; `transcript` is the number of last turns to show of each conversation, if any.
pub(super) fn search(
    tool_call: &ToolCall<'_>,
    question: &Question,
    transcript: Option<usize>,
    ignored: Option<String>,
) -> Result<Answer> {
    let mut ranking = RankedConversations::find(tool_call.engine, question, tool_call.call)?;
    let found = ranking.items.len();
    without_summaries(&mut ranking.items);
    let is_lower_bound = (!ranking.is_total_exact).then_some(true);
    let is_complete = ranking.is_complete();
    let mut notes = notes::lines(ranking.true_notes(), Audience::Model);
    let more = notes::more(ranking.items.len(), ranking.total, ranking.is_total_exact);
    let is_full = found >= question.limit && question.limit < MOST_IN_ANSWER;
    let raise = if is_full { "raise limit (at most 50), or " } else { "" };
    notes
        .extend(more.map(|more| format!("{more}: {raise}narrow it with after, before or project")));
    notes.extend(ignored);
    let mut field_tokens = 0;
    let mut fits: Vec<(&ConversationMatch, Option<String>)> = Vec::new();
    for item in &ranking.items {
        let summary = summary(tool_call, &item.about)?;
        field_tokens += cost(&item.about, summary.as_deref());
        // The first conversation always fits.
        if field_tokens > MOST_FIELD_TOKENS && !fits.is_empty() {
            break;
        }
        fits.push((item, summary));
    }
    if fits.len() < ranking.items.len() {
        let more = ranking.items.len() - fits.len();
        notes.push(format!("{more} more were left out to keep this short: set limit."));
    }
    let left = ANSWER_TOKENS - field_tokens.min(MOST_FIELD_TOKENS);
    let mut budget = Budget::new(left, FOUND_TURN_TOKENS);
    let mut conversations = Vec::new();
    for (item, summary) in fits {
        let about = &item.about;
        // Matched turns get the budget first, because they matter more than the transcript.
        let matched_turns =
            (question.fields != Fields::Summaries).then(|| matched_turns(item, &mut budget));
        let turns =
            transcript.map(|most| last_turns(tool_call, about, most, &mut budget)).transpose()?;
        conversations.push(SearchItem {
            session_id: about.id.clone(),
            session_key: tool_call.engine.find(tool_call.call).key_of(about)?,
            title: title(about.own_title()),
            summary,
            score: (item.score * 100.0).round() / 100.0,
            turns,
            matched_turns,
        });
    }
    if budget.is_cut {
        notes.push("Turns were cut to keep this short: mode=\"get\" has a whole one.".to_owned());
    }
    let message = notes::message(&notes);
    let complete = (!is_complete).then_some(false);
    let ids: Vec<&str> = conversations.iter().map(|item| item.session_id.as_str()).collect();
    let ids = tool_call.engine.find(tool_call.call).short_ids(&ids)?;
    let items = conversations.iter().zip(ids);
    let compact = CompactSearchResults {
        n: ranking.total,
        total_is_lower_bound: is_lower_bound,
        c: items.map(|(item, id)| CompactSearchItem::new(item, id)).collect(),
        message: message.clone(),
    };
    let results = SearchReply {
        mode: "search",
        total_results: ranking.total,
        total_is_lower_bound: is_lower_bound,
        conversations,
        message,
        complete,
        notes,
    };
    Ok(answer(tool_call.options, &compact, &results))
}

fn cost(about: &About, summary: Option<&str>) -> usize {
    let title = title(&about.title).unwrap_or_default();
    let summary = summary.map_or(0, bound::tokens);
    // The title counts twice, because the session key contains most of the title.
    2 * bound::tokens(&title) + summary + bound::tokens(&about.id) + TURN_FRAME
}

/// Returns the turns that matched, the best first.
fn matched_turns(item: &ConversationMatch, budget: &mut Budget) -> Vec<TurnText> {
    let mut turns = Vec::new();
    for matched in item.matches.iter().filter(|matched| !matched.passage.is_empty()) {
        let Some(content) = budget.spend(&matched.passage) else { break };
        turns.push(TurnText {
            role: matched.hit.role.to_string(),
            content,
            score: Some((matched.score * 100.0).round() / 100.0),
            line: Some(matched.line),
            ..TurnText::default()
        });
    }
    turns
}

fn last_turns(
    tool_call: &ToolCall<'_>,
    about: &About,
    most: usize,
    budget: &mut Budget,
) -> Result<Vec<TurnText>> {
    let raw_content = tool_call.options.raw_content;
    let session =
        tool_call.engine.find(tool_call.call).session(about.source, &about.id, raw_content)?;
    let Some(session) = session else { return Ok(Vec::new()) };
    let first = session.turns().saturating_sub(most).max(first_turn(&session));
    // If the budget does not cover all turns, the latest turns are kept, because they matter most.
    let turns = (first..session.turns()).rev();
    let turns = turns.map_while(|at| TurnText::read(&session, at, budget));
    let mut turns: Vec<TurnText> =
        turns.map(|turn| TurnText { created_at: None, ..turn }).collect();
    turns.reverse();
    Ok(turns)
}
