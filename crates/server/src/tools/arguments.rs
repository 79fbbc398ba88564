//! Parsing of a call's arguments. An error names the wrong argument, the expected value and the given value.

use serde_json::{Map, Value};

use super::error::{Error, Result};
use verbatim_engine as engine;
use verbatim_text::{like::MOST_PATTERN_BYTES, snippet};

const MOST_NAMED: usize = 5;

/// The maximum number of characters of an id, a key, a path, a title or another name.
const LONGEST_WORD: usize = 1000;

/// The arguments of one call. Null and the empty string count as absent.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    pub(super) tool: &'static str,
    pub(super) values: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    pub(super) fn only(&self, known: &[&str]) -> Result<()> {
        let unknown = self.values.keys().filter(|name| !known.contains(&name.as_str()));
        let unknown = unknown.take(MOST_NAMED).map(|name| format!("{:?}", snippet::echo(name)));
        match unknown.collect::<Vec<_>>() {
            unknown if unknown.is_empty() => Ok(()),
            unknown => {
                let tool = self.tool;
                let names = unknown.join(", ");
                let takes = known.join(", ");
                Err(Error::Refused(format!("{tool} has no argument {names}; it takes {takes}")))
            }
        }
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.values.get(name).filter(|value| !value.is_null() && value.as_str() != Some(""))
    }

    pub(super) fn string(&self, name: &str, takes: &str) -> Result<Option<&'a str>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, takes, other)),
        }
    }

    /// Returns a string that names something; `None` if the argument is absent. Refuses a text that is
    /// longer than any name, because a look-up compares it with every name.
    pub(super) fn word(&self, name: &str, takes: &str) -> Result<Option<&'a str>> {
        let text = self.string(name, takes)?;
        match text.and_then(|text| snippet::cut(text, LONGEST_WORD)) {
            Some(_) => {
                let text =
                    format!("{name} is too long: it takes at most {LONGEST_WORD} characters");
                Err(Error::Refused(text))
            }
            None => Ok(text),
        }
    }

    pub(super) fn strings(&self, name: &str, takes: &str) -> Result<Vec<&'a str>> {
        let Some(value) = self.value(name) else { return Ok(Vec::new()) };
        let texts = value.as_array().and_then(|items| items.iter().map(Value::as_str).collect());
        texts.ok_or_else(|| wrong(name, takes, value))
    }

    /// Returns an integer clamped to a range; `20.0` and `"20"` count as integers.
    pub(super) fn integer(
        &self,
        name: &str,
        takes: &str,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<Option<usize>> {
        let Some((whole, _)) = self.number(name, takes)? else { return Ok(None) };
        // The range is small, so the clamped float converts to a `usize` without loss.
        Ok(Some(whole.clamp(*range.start() as f64, *range.end() as f64) as usize))
    }

    /// Returns an integer that must be in a range; `20.0` and `"20"` count as integers.
    pub(super) fn integer_in(
        &self,
        name: &str,
        takes: &str,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<Option<usize>> {
        let Some((whole, value)) = self.number(name, takes)? else { return Ok(None) };
        if whole < *range.start() as f64 || whole > *range.end() as f64 {
            return Err(wrong(name, takes, value));
        }
        Ok(Some(whole as usize))
    }

    /// Returns an integer, with the value from which it was read.
    fn number(&self, name: &str, takes: &str) -> Result<Option<(f64, &'a Value)>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => number_in(text),
            _ => None,
        };
        let whole = number.filter(|number| number.fract() == 0.0);
        Ok(Some((whole.ok_or_else(|| wrong(name, takes, value))?, value)))
    }

    pub(super) fn choice<T: Copy>(
        &self,
        name: &str,
        takes: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>> {
        let Some(text) = self.string(name, takes)? else { return Ok(None) };
        let chosen = choices.iter().find(|(word, _)| *word == text);
        chosen
            .map(|(_, choice)| Some(*choice))
            .ok_or_else(|| wrong(name, takes, &self.values[name]))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        match self.value(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong(name, "true or false", other)),
        }
    }
}

/// Returns a search text without white space at its ends. A text that is too long for any search is
/// refused here, before the search reads messages.
pub(super) fn searchable(text: &str) -> Result<&str> {
    let text = snippet::trim(text);
    let bytes = text.len() + "%%".len();
    if bytes > MOST_PATTERN_BYTES {
        return Err(engine::Error::QueryTooLong { bytes }.into());
    }
    Ok(text)
}

/// Returns the number in a text in JSON's notation.
fn number_in(text: &str) -> Option<f64> {
    let text = snippet::trim(text);
    text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c)).then(|| text.parse().ok())?
}

pub(super) fn wrong(name: &str, takes: &str, value: &Value) -> Error {
    Error::Refused(format!("{name} takes {takes}; got {}", shown(value)))
}

/// Returns a value as JSON, cut if the JSON is long.
pub(super) fn shown(value: &Value) -> String {
    snippet::echo(&value.to_string()).into_owned()
}
