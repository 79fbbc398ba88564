//! Reading a call's arguments: a wrong one is named, with what it takes and what came.

use serde_json::{Map, Value};

use crate::text::snippet;

/// Characters of a wrong value that are shown back.
const SHOWN: usize = 80;

/// An argument that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The tool has no such argument.
    #[error("{tool} has no argument {name:?}; it takes {takes}")]
    Unknown {
        /// The tool.
        tool: &'static str,
        /// What came.
        name: String,
        /// The arguments it has.
        takes: String,
    },
    /// The value is of the wrong kind.
    #[error("{name} takes {takes}; got {got}")]
    Wrong {
        /// The argument.
        name: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What came, as JSON.
        got: String,
    },
}

/// Refuses arguments that are not among `known`.
pub(super) fn only(
    tool: &'static str,
    known: &[&str],
    arguments: &Map<String, Value>,
) -> Result<(), Error> {
    match arguments.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Error::Unknown { tool, name: name.clone(), takes: known.join(", ") }),
    }
}

/// Returns a string; `None` where it is absent or null.
pub(super) fn string<'a>(
    arguments: &'a Map<String, Value>,
    name: &'static str,
    takes: &'static str,
) -> Result<Option<&'a str>, Error> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(name, takes, other)),
    }
}

/// Returns an array of strings; empty where it is absent or null.
pub(super) fn strings<'a>(
    arguments: &'a Map<String, Value>,
    name: &'static str,
    takes: &'static str,
) -> Result<Vec<&'a str>, Error> {
    let items = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(wrong(name, takes, other)),
    };
    let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
    texts.ok_or_else(|| wrong(name, takes, &arguments[name]))
}

/// Returns a whole number clamped to a range, also from `20.0` and `"20"`.
pub(super) fn integer(
    arguments: &Map<String, Value>,
    name: &'static str,
    takes: &'static str,
    range: std::ops::RangeInclusive<usize>,
) -> Result<Option<usize>, Error> {
    let Some((whole, _)) = number(arguments, name, takes)? else { return Ok(None) };
    // A float in the range of a usize clamps without loss where the range is small.
    Ok(Some(whole.clamp(*range.start() as f64, *range.end() as f64) as usize))
}

/// Returns a whole number that must be in a range, also from `20.0` and `"20"`.
pub(super) fn integer_in(
    arguments: &Map<String, Value>,
    name: &'static str,
    takes: &'static str,
    range: std::ops::RangeInclusive<usize>,
) -> Result<Option<usize>, Error> {
    let Some((whole, value)) = number(arguments, name, takes)? else { return Ok(None) };
    if whole < *range.start() as f64 || whole > *range.end() as f64 {
        return Err(wrong(name, takes, value));
    }
    Ok(Some(whole as usize))
}

/// Returns a whole number with the value that it is from.
fn number<'a>(
    arguments: &'a Map<String, Value>,
    name: &'static str,
    takes: &'static str,
) -> Result<Option<(f64, &'a Value)>, Error> {
    let value = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number_in(text),
        _ => None,
    };
    let whole = number.filter(|number| number.fract() == 0.0);
    Ok(Some((whole.ok_or_else(|| wrong(name, takes, value))?, value)))
}

/// Returns one of several words; `None` where it is absent or null.
pub(super) fn choice<T: Copy>(
    arguments: &Map<String, Value>,
    name: &'static str,
    takes: &'static str,
    choices: &[(&str, T)],
) -> Result<Option<T>, Error> {
    let Some(text) = string(arguments, name, takes)? else { return Ok(None) };
    let chosen = choices.iter().find(|(word, _)| *word == text);
    match chosen {
        Some((_, choice)) => Ok(Some(*choice)),
        None => Err(wrong(name, takes, &arguments[name])),
    }
}

/// Returns `true` or `false`; `false` where it is absent or null.
pub(super) fn flag(arguments: &Map<String, Value>, name: &'static str) -> Result<bool, Error> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(wrong(name, "true or false", other)),
    }
}

/// Returns the number that a text is, in the form in which JSON would have it.
fn number_in(text: &str) -> Option<f64> {
    let text = snippet::trim(text);
    text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c)).then(|| text.parse().ok())?
}

/// Returns the error that an argument's value is.
pub(super) fn wrong(name: &'static str, takes: &'static str, value: &Value) -> Error {
    Error::Wrong { name, takes, got: shown(value) }
}

/// Returns a value as JSON, cut where it is long.
pub(super) fn shown(value: &Value) -> String {
    let json = value.to_string();
    match snippet::cut(&json, SHOWN) {
        Some(start) => format!("{start}…"),
        None => json,
    }
}
