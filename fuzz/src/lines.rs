//! Lines of JSON-RPC with any content: each request is answered or delivered; what is written is JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};
use verbatim_server::mcp::lines::connected;
use verbatim_text::content::mend_surrogates;

/// How often each request waits for an answer, by the JSON of its id.
type Waiting = BTreeMap<String, i64>;

/// The id of a line, whose other fields may be numbers that no `Value` can hold.
#[derive(Deserialize)]
struct Numbered {
    id: Value,
}

/// Returns the id in a line, and whether it is surely that of a request.
fn id_in(line: &[u8]) -> Option<(String, bool)> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    let text = String::from_utf8_lossy(line);
    let is_text = std::str::from_utf8(line).is_ok();
    let message: Value = match serde_json::from_str(&mend_surrogates(&text)) {
        Ok(message) => message,
        // A number that is out of range: the line is answered if it has an id.
        Err(_) => match serde_json::from_str::<Numbered>(&mend_surrogates(&text)) {
            Ok(Numbered { id }) => json!({ "id": id }),
            Err(_) => return None,
        },
    };
    let id = message.get("id").filter(|id| id.is_string() || id.is_i64())?;
    // Answers of the client's have the ids of our requests.
    let is_answer = message.get("result").is_some() || message.get("error").is_some();
    Some((id.to_string(), is_text && !is_answer))
}

/// Takes the answer in a written line from what waits.
fn answered(line: &[u8], waiting: &mut Waiting) {
    let (end, line) = line.split_last().expect("a line break");
    assert!(*end == b'\n' && !line.contains(&b'\n'));
    let answer: Value = serde_json::from_slice(line).expect("JSON");
    assert_eq!(answer["jsonrpc"], "2.0");
    assert!(answer.get("error").is_some(), "{answer}");
    take(&answer["id"], waiting);
}

fn take(id: &Value, waiting: &mut Waiting) {
    if let Some(count) = waiting.get_mut(&id.to_string()) {
        *count -= 1;
    }
}

pub(super) fn run(data: &[u8]) {
    let (input, mut lines, written) = connected(data.len() + 1, Default::default());
    let mut waiting = Waiting::new();
    let mut unclear = BTreeSet::new();
    for mut line in data.split_inclusive(|byte| *byte == b'\n') {
        if let Some((id, is_request)) = id_in(line) {
            if is_request {
                *waiting.entry(id).or_default() += 1;
            } else {
                unclear.insert(id);
            }
        }
        input.read(&mut line);
        while let Ok(message) = lines.incoming.try_recv() {
            let message = serde_json::to_value(&message).expect("what was read can be written");
            if let (Some(id), Some(_)) = (message.get("id"), message.get("method")) {
                take(id, &mut waiting);
            }
        }
        for line in written.try_iter() {
            answered(&line, &mut waiting);
        }
    }
    for (id, count) in waiting {
        assert!(count == 0 || unclear.contains(&id), "{id} waits for {count} answers");
    }
}
