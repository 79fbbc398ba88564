//! Verbatim's own form of an evaluation: messages and questions as lines of JSON.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value};

use super::corpus::{self, EvalMessage, EvalQuery, EvalSet};

pub(crate) fn read(queries: &Path, messages: &Path) -> Result<EvalSet> {
    let mut set = EvalSet::default();
    lines(queries, |object| {
        let text = field(&object, &["text", "query"]).context("no \"text\"")?;
        let ids = object.get("relevant").and_then(Value::as_array).into_iter().flatten();
        let relevant = ids.filter_map(self::text).collect();
        let conversations = field(&object, &["conversation"]).into_iter().collect();
        set.queries.push(EvalQuery { text, conversations, relevant });
        Ok(())
    })?;
    lines(messages, |object| {
        let message = EvalMessage {
            id: field(&object, &["id"]).context("no \"id\"")?,
            speaker: field(&object, &["speaker", "role"]).unwrap_or_default(),
            text: field(&object, &["text", "content"]).unwrap_or_default(),
            time: object.get("time").and_then(corpus::time),
        };
        set.corpus.add(&field(&object, &["conversation"]).unwrap_or_default(), message);
        Ok(())
    })?;
    if set.corpus.messages() == 0 {
        bail!("{}: no messages", messages.display());
    }
    Ok(set)
}

/// Calls `each` with the JSON object of every line. Skips blank lines.
fn lines(path: &Path, mut each: impl FnMut(Map<String, Value>) -> Result<()>) -> Result<()> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut input = BufReader::new(file);
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes).with_context(|| path.display().to_string())? == 0 {
            return Ok(());
        }
        number += 1;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_start_matches('\u{FEFF}').trim();
        if text.is_empty() {
            continue;
        }
        let read = serde_json::from_str(text).map_err(anyhow::Error::from).and_then(&mut each);
        read.map_err(|reason| anyhow!("{}:{number}: {reason}", path.display()))?;
    }
}

/// Returns the first field of `object` with one of these names, as text.
fn field(object: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| text(object.get(*name)?))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
