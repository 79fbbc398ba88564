//! `mode="get"`: one conversation with its first turns.

use serde::Serialize;
use serde_json::json;

use super::{
    answer::{answer, compact_id, iso, summary, text_of},
    turn::{ANSWER_TOKENS, Budget, CompactTurn, TurnText},
};
use crate::{
    engine::{About, Scope, Session},
    tools::{
        error::Error,
        tool::{Answer, Call},
    },
};

/// The shortest prefix of an id that names a session, in characters.
const SHORTEST_ID: usize = 4;

/// Tokens of one turn of `mode="get"` at most.
const READ_TURN_TOKENS: usize = 4_000;

#[derive(Serialize)]
struct Got {
    mode: &'static str,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Described>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<Vec<TurnText>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Described {
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

/// Answers with the session of an id, else of a key, and at most `most_turns` of its turns.
pub(super) fn get(
    call: &Call<'_>,
    id: Option<&str>,
    key: Option<&str>,
    most_turns: usize,
) -> Result<Answer, Error> {
    let Call { engine, options, stop, .. } = call;
    let (about, word) = match (id, key) {
        (Some(id), _) => (by_id(call, id)?, format!("ID: {id}")),
        (None, Some(key)) => (engine.find(stop).by_key(key)?, format!("key: {key}")),
        (None, None) => {
            let text =
                "Missing session identifier: sessionId or sessionKey is required for mode=\"get\"";
            return Err(Error::refused(text));
        }
    };
    let session = match &about {
        Some(about) => engine.session(about.source, &about.id, options.raw_content, stop)?,
        None => None,
    };
    let Some(session) = session else { return Ok(not_found(call, &word)) };
    let about = &session.about;
    let mut budget = Budget::new(ANSWER_TOKENS, READ_TURN_TOKENS);
    let wanted = session.turns().min(most_turns);
    let turns: Vec<TurnText> =
        (0..wanted).map_while(|at| TurnText::of(&session, at, &mut budget)).collect();
    let message = (budget.is_cut || turns.len() < session.turns())
        .then(|| rest(call, &session, turns.len(), budget.is_cut));
    let described = Described {
        id: about.id.clone(),
        session_key: engine.find(stop).key_of(about)?,
        title: text_of(&about.title),
        summary: summary(call, about)?,
        turn_count: session.turns(),
        last_activity: iso(about.last),
        created_at: iso(about.begun),
    };
    let compact = CompactGot {
        id: compact_id(&described.id),
        k: described.session_key.clone(),
        t: described.title.clone(),
        sum: described.summary.clone(),
        n: described.turn_count,
        turns: turns.iter().map(|turn| CompactTurn::of(turn, usize::MAX)).collect(),
        message: message.clone(),
    };
    let got =
        Got { mode: "get", found: true, session: Some(described), turns: Some(turns), message };
    Ok(answer(options, &compact, &got))
}

fn not_found(call: &Call<'_>, word: &str) -> Answer {
    let mut message =
        format!("Session not found: No conversation found with {word}. Check with mode=list.");
    for note in call.engine.unreadable(&Scope::default(), call.stop) {
        message.push_str(&format!(" Note: {note}."));
    }
    let compact = json!({"found": false, "message": message});
    let message = Some(message);
    let got = Got { mode: "get", found: false, session: None, turns: None, message };
    answer(call.options, &compact, &got)
}

/// Says that an answer shows only a part of a session, and how to read the rest.
fn rest(call: &Call<'_>, session: &Session, shown: usize, is_cut: bool) -> String {
    let total = session.turns();
    let path = call.engine.find(call.stop).path_of(&session.about);
    let next = session.line(shown.min(total - 1));
    let cut = if is_cut { " Long ones are cut to keep this short." } else { "" };
    let from = if shown < total { format!(" startLine={next}") } else { String::new() };
    format!("{shown} of {total} turns.{cut} For more, tool read: path={path}{from}")
}

/// Returns the conversation that an id or the beginning of one names.
fn by_id(call: &Call<'_>, word: &str) -> Result<Option<About>, Error> {
    let mut abouts = call.engine.find(call.stop).by_id(word)?;
    let is_short = word.chars().count() < SHORTEST_ID;
    if is_short && abouts.iter().all(|about| about.id != word) {
        return Err(Error::Refused(format!(
            "sessionId takes a whole id, or at least its first {SHORTEST_ID} characters; got {word:?}"
        )));
    }
    if abouts.len() > 1 {
        let ids: Vec<&str> = abouts.iter().take(5).map(|about| about.id.as_str()).collect();
        return Err(Error::Refused(format!(
            "sessionId {word:?} may be any of: {}; give more of it",
            ids.join(", ")
        )));
    }
    Ok(abouts.pop())
}
