//! `mode="get"`: one conversation with its first turns.

use serde::Serialize;
use serde_json::json;

use super::answer::{answer, summary, title};
use super::turn::{ANSWER_TOKENS, Budget, CompactTurn, TurnText};
use crate::tools::bound;
use crate::tools::error::{Error, Result};
use crate::tools::tool::{Answer, ToolCall, conversation, first_turn};
use verbatim_engine::{self as engine, About, Session};
use verbatim_text::{date, snippet};

const READ_TURN_TOKENS: usize = 4_000;

#[derive(Serialize)]
struct Got {
    mode: &'static str,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<DescribedSession>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<Vec<TurnText>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DescribedSession {
    id: String,
    session_key: String,
    title: Option<String>,
    summary: Option<String>,
    turn_count: usize,
    last_activity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
}

#[derive(Serialize)]
struct CompactGot {
    id: String,
    k: String,
    t: Option<String>,
    sum: Option<String>,
    n: usize,
    turns: Vec<CompactTurn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

pub(super) fn get(
    tool_call: &ToolCall<'_>,
    id: Option<&str>,
    key: Option<&str>,
    most_turns: usize,
    ignored: Option<String>,
) -> Result<Answer> {
    let ToolCall { engine, options, call, .. } = tool_call;
    let (about, word) = match (id, key) {
        (Some(id), _) => {
            (conversation(tool_call, "sessionId", id)?, format!("ID: {}", snippet::echo(id)))
        }
        (None, Some(key)) => {
            (conversation(tool_call, "sessionKey", key)?, format!("key: {}", snippet::echo(key)))
        }
        (None, None) => {
            let text =
                "Missing session identifier: sessionId or sessionKey is required for mode=\"get\"";
            return Err(Error::refused(text));
        }
    };
    let Some(about) = about else { return Ok(not_found(tool_call, &word)) };
    let session = engine.find(call).session(about.source, &about.id, options.raw_content)?;
    // If the session has no messages or no times, the values of the first lookup are used.
    let about = &match &session {
        Some(session) => About {
            begun: session.about.begun.or(about.begun),
            last: session.about.last.or(about.last),
            ..session.about.clone()
        },
        None => about,
    };
    let mut notes: Vec<String> =
        ignored.into_iter().chain(other_key(tool_call, about, id, key)?).collect();
    let title = title(about.own_title());
    let summary = summary(tool_call, about)?;
    let texts = [&title, &summary].into_iter().flatten().map(|text| bound::tokens(text));
    let mut budget = Budget::new(ANSWER_TOKENS.saturating_sub(texts.sum()), READ_TURN_TOKENS);
    let mut turns = Vec::new();
    let mut total = 0;
    if let Some(session) = &session {
        let first = first_turn(session);
        total = session.turns() - first;
        let wanted = first..first + total.min(most_turns);
        turns.extend(wanted.map_while(|at| TurnText::read(session, at, &mut budget)));
        if budget.is_cut || turns.len() < total {
            notes.push(rest_note(tool_call, session, turns.len(), budget.is_cut));
        }
    }
    let message = (!notes.is_empty()).then(|| notes.join(". "));
    let described = DescribedSession {
        id: about.id.clone(),
        session_key: engine.find(call).key_of(about)?,
        title,
        summary,
        turn_count: total,
        last_activity: about.last.and_then(date::to_iso),
        created_at: about.begun.and_then(date::to_iso),
    };
    let compact = CompactGot {
        id: engine.find(call).short_id(&described.id)?,
        k: described.session_key.clone(),
        t: described.title.clone(),
        sum: described.summary.clone(),
        n: described.turn_count,
        turns: turns.iter().map(|turn| CompactTurn::new(turn, usize::MAX)).collect(),
        message: message.clone(),
    };
    let got =
        Got { mode: "get", found: true, session: Some(described), turns: Some(turns), message };
    Ok(answer(options, &compact, &got))
}

/// Returns a note if the given key does not belong to the session with the given id.
fn other_key(
    tool_call: &ToolCall<'_>,
    about: &About,
    id: Option<&str>,
    key: Option<&str>,
) -> Result<Option<String>> {
    let (Some(_), Some(key)) = (id, key) else { return Ok(None) };
    let named = match tool_call.engine.find(tool_call.call).by_key(snippet::trim(key)) {
        Err(engine::Error::Ambiguous { .. }) => return Ok(None),
        named => named?,
    };
    let is_same = named.is_some_and(|it| (it.source, &it.id) == (about.source, &about.id));
    if is_same {
        return Ok(None);
    }
    Ok(Some(format!("sessionKey {:?} is not of this session: ignored", snippet::echo(key))))
}

fn not_found(tool_call: &ToolCall<'_>, word: &str) -> Answer {
    let mut message =
        format!("Session not found: No conversation found with {word}. Check with mode=list.");
    for note in tool_call.engine.all_sources().problems(tool_call.call) {
        message.push_str(&format!(" Note: {note}."));
    }
    let compact = json!({"found": false, "message": message});
    let message = Some(message);
    let got = Got { mode: "get", found: false, session: None, turns: None, message };
    answer(tool_call.options, &compact, &got)
}

fn rest_note(tool_call: &ToolCall<'_>, session: &Session, shown: usize, is_cut: bool) -> String {
    let first = first_turn(session);
    let total = session.turns() - first;
    let path = tool_call.engine.find(tool_call.call).path_of(&session.about);
    let next = session.line(first + shown.min(total.saturating_sub(1)));
    let cut = if is_cut { " Long ones are cut to keep this short." } else { "" };
    let from = if shown < total { format!(" startLine={next}") } else { String::new() };
    format!("{shown} of {total} turns.{cut} For more, tool read: path={path}{from}")
}
