//! Lines of JSON-RPC with any content, single messages and batches: each request is answered, or
//! delivered and then answered; what is written is JSON.
//!
//! Input: a byte that allows batches, then the lines.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};
use verbatim_server::mcp::lines::{Lines, connected};
use verbatim_text::content::mend_surrogates;

/// How often each request waits for an answer, by the JSON of its id.
type Waiting = BTreeMap<String, i64>;

/// The id of a line, whose other fields may be numbers that no `Value` can hold.
#[derive(Deserialize)]
struct Numbered {
    id: Value,
}

/// Returns the ids in a line, and whether each is surely that of a request.
fn ids(line: &[u8]) -> Vec<(String, bool)> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    let text = String::from_utf8_lossy(line);
    let is_text = std::str::from_utf8(line).is_ok();
    let items = match serde_json::from_str(&mend_surrogates(&text)) {
        Ok(Value::Array(items)) => items,
        Ok(single) => vec![single],
        // A number that is out of range: the line is answered if it has an id.
        Err(_) => match serde_json::from_str::<Numbered>(&mend_surrogates(&text)) {
            Ok(Numbered { id }) => vec![json!({ "id": id })],
            Err(_) => return Vec::new(),
        },
    };
    let is_id = |id: &&Value| id.is_string() || id.is_i64();
    let known = items.iter().filter_map(|item| {
        let id = item.get("id").filter(is_id)?;
        // Answers of the client's have the ids of our requests.
        let is_answer = item.get("result").is_some() || item.get("error").is_some();
        Some((id.to_string(), is_text && !is_answer))
    });
    known.collect()
}

/// Takes the answers in a written line from what waits.
fn answered(line: &[u8], waiting: &mut Waiting) {
    let (end, line) = line.split_last().expect("a line break");
    assert!(*end == b'\n' && !line.contains(&b'\n'));
    take(serde_json::from_slice(line).expect("JSON"), waiting);
}

fn take(written: Value, waiting: &mut Waiting) {
    let answers = match written {
        Value::Array(answers) => answers,
        answer => vec![answer],
    };
    assert!(!answers.is_empty());
    for answer in answers {
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer.get("error").is_some() != answer.get("result").is_some(), "{answer}");
        if let Some(count) = waiting.get_mut(&answer["id"].to_string()) {
            *count -= 1;
        }
    }
}

/// Answers a delivered request as the session would.
fn answer(lines: &mut Lines, id: &Value, result: &Value, waiting: &mut Waiting) {
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
    let message = serde_json::from_value(answer).expect("an answer of ours");
    if let Some(line) = lines.line(&message).expect("an answer can be written") {
        take(serde_json::from_slice(&line).expect("JSON"), waiting);
    }
}

pub(super) fn run(data: &[u8]) {
    let Some((settings, data)) = data.split_first() else { return };
    let (input, mut lines, written) = connected(data.len() + 1, Default::default());
    if settings & 1 == 1 {
        let begun = json!({
            "protocolVersion": "2025-03-26", "capabilities": {},
            "serverInfo": {"name": "x", "version": "1"},
        });
        answer(&mut lines, &json!("begin"), &begun, &mut Waiting::new());
    }
    let mut waiting = Waiting::new();
    let (mut delivered, mut cancelled) = (Vec::new(), Vec::new());
    let mut unclear = BTreeSet::new();
    for mut line in data.split_inclusive(|byte| *byte == b'\n') {
        for (id, is_request) in ids(line) {
            match is_request {
                true => *waiting.entry(id).or_default() += 1,
                false => drop(unclear.insert(id)),
            }
        }
        input.read(&mut line);
        while let Ok(message) = lines.incoming.try_recv() {
            let message = serde_json::to_value(&message).expect("what was read can be written");
            match (message.get("id"), message.get("method").and_then(Value::as_str)) {
                (Some(id), Some(_)) => delivered.push(id.clone()),
                (None, Some("notifications/cancelled")) => {
                    let id = message["params"]["requestId"].clone();
                    unclear.insert(id.to_string());
                    cancelled.push(id);
                }
                _ => {}
            }
        }
        for line in written.try_iter() {
            answered(&line, &mut waiting);
        }
    }
    for id in &delivered {
        if !cancelled.contains(id) {
            answer(&mut lines, id, &json!({}), &mut waiting);
        }
    }
    for (id, count) in waiting {
        assert!(count == 0 || unclear.contains(&id), "{id} waits for {count} answers");
    }
}
