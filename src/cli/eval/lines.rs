//! Verbatim's own form of an evaluation: messages and questions as lines of JSON.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use serde_json::{Map, Value};

use super::{
    corpus::{self, EvalMessage, EvalQuery, EvalSet},
    error::Error,
};

pub(super) fn read(queries: &Path, messages: &Path) -> Result<EvalSet, Error> {
    let mut set = EvalSet::default();
    lines(queries, |object| {
        let text = field(&object, &["text", "query"]).ok_or("no \"text\"")?;
        let ids = object.get("relevant").and_then(Value::as_array).into_iter().flatten();
        let relevant = ids.filter_map(self::text).collect();
        let conversations = field(&object, &["conversation"]).into_iter().collect();
        set.queries.push(EvalQuery { text, conversations, relevant });
        Ok(())
    })?;
    lines(messages, |object| {
        let message = EvalMessage {
            id: field(&object, &["id"]).ok_or("no \"id\"")?,
            speaker: field(&object, &["speaker", "role"]).unwrap_or_default(),
            text: field(&object, &["text", "content"]).unwrap_or_default(),
            time: object.get("time").and_then(corpus::time),
        };
        set.corpus.add(&field(&object, &["conversation"]).unwrap_or_default(), message);
        Ok(())
    })?;
    if set.corpus.messages() == 0 {
        return Err(Error::Empty { path: messages.to_owned(), what: "no messages" });
    }
    Ok(set)
}

/// Calls `each` with the JSON object of every line. Skips blank lines.
fn lines(
    path: &Path,
    mut each: impl FnMut(Map<String, Value>) -> Result<(), &'static str>,
) -> Result<(), Error> {
    let failed = |error| Error::Read { path: path.to_owned(), error };
    let mut input = BufReader::new(File::open(path).map_err(failed)?);
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            return Ok(());
        }
        number += 1;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_start_matches('\u{FEFF}').trim();
        if text.is_empty() {
            continue;
        }
        let read = match serde_json::from_str(text) {
            Ok(Value::Object(object)) => each(object).map_err(str::to_owned),
            Ok(_) => Err("not a JSON object".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        read.map_err(|reason| Error::Line { path: path.to_owned(), line: number, reason })?;
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
