//! LongMemEval's questions with their histories as published (`longmemeval_s_cleaned.json` and others of
//! xiaowu0162/LongMemEval).
//!
//! The file is a list of questions. Each has a history of its own: `haystack_sessions`, lists of turns, with
//! their `haystack_session_ids` and `haystack_dates`. The turns that answer have `has_answer`.

use std::{collections::HashSet, fs::File, io::BufReader, path::Path};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::corpus::{self, EvalMessage, EvalQuery, EvalSet};
use super::wrong_form;

const FORM: &str = "LongMemEval";

#[derive(Deserialize)]
struct LongMemEvalQuestion {
    question_id: String,
    question: String,
    haystack_session_ids: Vec<String>,
    #[serde(default)]
    haystack_dates: Vec<Value>,
    haystack_sessions: Vec<Vec<LongMemEvalTurn>>,
}

#[derive(Deserialize)]
struct LongMemEvalTurn {
    role: String,
    content: String,
    has_answer: Option<bool>,
}

/// Adds the questions of a file to `set`. Each session is a conversation, and stored once if several
/// histories have it. A question is ranked within its history.
pub(crate) fn read(path: &Path, set: &mut EvalSet) -> Result<()> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    // The largest file has 2.7 GB, so its text is not kept.
    let questions: serde_json::Result<Vec<LongMemEvalQuestion>> =
        serde_json::from_reader(BufReader::with_capacity(1 << 20, file));
    for question in questions.map_err(|error| wrong_form(path, FORM, error))? {
        let LongMemEvalQuestion { haystack_session_ids: names, haystack_sessions, .. } = question;
        if names.len() != haystack_sessions.len() {
            let question = question.question_id;
            let reason = format!(
                "{question}: {} sessions with {} ids",
                haystack_sessions.len(),
                names.len()
            );
            return Err(wrong_form(path, FORM, reason));
        }
        let mut relevant = HashSet::new();
        let mut dates = question.haystack_dates.iter();
        for (name, turns) in names.iter().zip(haystack_sessions) {
            let time = dates.next().and_then(corpus::time);
            let is_new = !set.corpus.has(name);
            for (number, turn) in (1..).zip(turns) {
                let id = format!("{name}/{number}");
                if turn.has_answer == Some(true) {
                    relevant.insert(id.clone());
                }
                if is_new {
                    let LongMemEvalTurn { role: speaker, content: text, .. } = turn;
                    set.corpus.add(name, EvalMessage { id, speaker, text, time });
                }
            }
        }
        set.queries.push(EvalQuery { text: question.question, conversations: names, relevant });
    }
    Ok(())
}
