//! LoCoMo's conversations and questions as published (`data/locomo10.json` of snap-research/locomo), and
//! those of REALTALK, which have nearly the same form (`data/*.json` of danny911kr/REALTALK).
//!
//! The file is one sample or a list of them. A sample has `qa`, a list of questions whose `evidence` names
//! turns, and `conversation`, an object with the turns of `session_1`, `session_2` and so on. In REALTALK
//! the sessions are beside `qa`.

use std::{collections::HashSet, path::Path};

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::corpus::{self, EvalMessage, EvalQuery, EvalSet};
use super::{read_text, wrong_form};

const FORM: &str = "LoCoMo";

#[derive(Deserialize)]
struct LocomoSample {
    sample_id: Option<String>,
    qa: Vec<LocomoQuestion>,
    conversation: Option<Map<String, Value>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
struct LocomoQuestion {
    question: String,
    evidence: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct LocomoTurn {
    dia_id: String,
    speaker: String,
    #[serde(alias = "clean_text")]
    text: String,
    blip_caption: Option<String>,
}

/// Adds the samples of a file to `set`. Each sample is a conversation.
pub(crate) fn read(path: &Path, set: &mut EvalSet) -> Result<()> {
    let samples = read_samples(&read_text(path)?);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    for (number, sample) in (1..).zip(samples.map_err(|error| wrong_form(path, FORM, error))?) {
        let name = sample.sample_id.unwrap_or_else(|| format!("{stem}-{number}"));
        let known = read_sessions(&name, sample.conversation.unwrap_or(sample.others), set);
        let known = known.map_err(|error| wrong_form(path, FORM, error))?;
        for LocomoQuestion { question, evidence } in sample.qa {
            let evidence = evidence.iter().flatten().flat_map(|text| turns_in(text));
            let relevant = evidence.filter(|turn| known.contains(turn));
            set.queries.push(EvalQuery {
                text: question,
                conversations: vec![name.clone()],
                relevant: relevant.map(|turn| id(&name, &turn)).collect(),
            });
        }
    }
    Ok(())
}

fn read_samples(text: &str) -> serde_json::Result<Vec<LocomoSample>> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text);
    }
    Ok(vec![serde_json::from_str(text)?])
}

/// Adds the turns of all sessions to the conversation `name`. Returns the turns' ids.
fn read_sessions(
    name: &str,
    mut sessions: Map<String, Value>,
    set: &mut EvalSet,
) -> serde_json::Result<HashSet<String>> {
    let number = |key: &String| key.strip_prefix("session_")?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = sessions.keys().filter_map(number).collect();
    numbers.sort_unstable();
    let mut known = HashSet::new();
    for number in numbers {
        let session = format!("session_{number}");
        let time = sessions.get(&format!("{session}_date_time")).and_then(corpus::time);
        let turns = sessions.remove(&session).unwrap_or_default();
        for turn in serde_json::from_value::<Vec<LocomoTurn>>(turns)? {
            let LocomoTurn { dia_id, speaker, mut text, blip_caption } = turn;
            if let Some(caption) = blip_caption.filter(|caption| !caption.is_empty()) {
                text = format!("{text} [image: {caption}]");
            }
            let message = EvalMessage { id: id(name, &dia_id), speaker, text, time };
            set.corpus.add(name, message);
            known.insert(dia_id);
        }
    }
    Ok(known)
}

fn id(name: &str, turn: &str) -> String {
    format!("{name}/{turn}")
}

/// Returns the ids of turns in a piece of evidence. It is meant to be one, such as `D1:3`, but some have
/// several (`D8:6; D9:17`), zeros (`D30:05`) or stops.
pub(crate) fn turns_in(evidence: &str) -> impl Iterator<Item = String> {
    evidence.split('D').skip(1).filter_map(|id| {
        let (session, turn) = id.split_once(':')?;
        let end = turn.find(|c: char| !c.is_ascii_digit()).unwrap_or(turn.len());
        Some(format!("D{}:{}", session.parse::<u32>().ok()?, turn[..end].parse::<u32>().ok()?))
    })
}
