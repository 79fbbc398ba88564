//! A JSON reader that tolerates the errors that exports contain.
//!
//! Values are slices of the input and are parsed on demand. [`Brackets`] finds all closing brackets in one
//! pass. So the large metadata of an export costs little time and memory. Invalid UTF-8, half surrogate
//! pairs, control characters in strings, `NaN` and trailing commas are accepted.
//!
//! Invariant: recursion is bounded, so no nesting in the input is too deep.

use std::{borrow::Cow, ops::ControlFlow};

use memchr::{memchr, memchr2};

use super::brackets::BracketScan;
use verbatim_text::lossy;

/// The place in the input that is not JSON, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {what} at `{near}`")]
pub(super) struct Damage {
    what: &'static str,
    near: String,
}

/// The maximum number of pairs of brackets that are stored. A text with more pairs is not an export.
const MOST_PAIRS: usize = 4 << 20;

/// The places where the brackets of a JSON text close. They are found in one pass, so the end of a nested
/// value is not searched again.
#[derive(Debug, Default)]
pub(super) struct Brackets {
    pairs: Vec<Pair>,
    /// The pairs that are still open during the pass.
    open: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    start: u32,
    /// The place after the closing bracket; [`NO_END`] if there is none.
    end: u32,
    /// The number of pairs from the opening to the closing bracket, including this pair.
    inside: u32,
}

const NO_END: u32 = u32::MAX;

impl Brackets {
    /// Returns the value in `bytes`, after finding its brackets.
    pub(super) fn value<'a>(&'a mut self, bytes: &'a [u8]) -> Raw<'a> {
        let value = Raw::new(bytes);
        self.find(value.bytes);
        Raw { pairs: &self.pairs, ..value }
    }

    fn find(&mut self, bytes: &[u8]) {
        self.pairs.clear();
        self.open.clear();
        if bytes.len() >= NO_END as usize {
            return;
        }
        let Brackets { pairs, open } = self;
        let flow = BracketScan::default().go_on(bytes, |at, byte| {
            if matches!(byte, b'{' | b'[') {
                if pairs.len() == MOST_PAIRS {
                    return ControlFlow::Break(());
                }
                open.push(pairs.len());
                pairs.push(Pair { start: at as u32, end: NO_END, inside: 1 });
            } else if let Some(opening) = open.pop() {
                let inside = (pairs.len() - opening) as u32;
                let pair = &mut pairs[opening];
                (pair.end, pair.inside) = (at as u32 + 1, inside);
            }
            ControlFlow::Continue(())
        });
        if flow.is_break() {
            pairs.clear();
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'a> {
    bytes: &'a [u8],
    /// The pairs of brackets in the value, the outermost first; empty if they are not known.
    pairs: &'a [Pair],
    /// The start of the value in the text that `pairs` refer to.
    origin: usize,
}

impl<'a> Raw<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Raw<'a> {
        Raw { bytes: bytes.trim_ascii(), pairs: &[], origin: 0 }
    }

    /// Returns the value at the beginning of `bytes`, and the bytes after the value; `None` if the value has
    /// no end.
    pub(super) fn split(bytes: &'a [u8]) -> Option<(Raw<'a>, &'a [u8])> {
        let mut cursor = Parser { bytes, at: 0, pairs: &[], origin: 0 };
        let value = cursor.value().ok()?;
        Some((value, &bytes[cursor.at..]))
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn is_object(self) -> bool {
        self.bytes.first() == Some(&b'{')
    }

    pub(super) fn is_array(self) -> bool {
        self.bytes.first() == Some(&b'[')
    }

    /// Returns whether this is `null` or not a finite number.
    pub(super) fn is_null(self) -> bool {
        matches!(self.bytes.first(), Some(b'n' | b'N' | b'I') | None)
            || self.bytes.starts_with(b"-I")
    }

    /// Returns the fields of an object in order; no fields for any other value.
    pub(super) fn fields(self) -> Result<ObjectFields<'a>, Damage> {
        match self.fields_until_damage() {
            (fields, None) => Ok(fields),
            (_, Some(damage)) => Err(damage),
        }
    }

    /// Returns the fields before the first damage, and the damage if there is any.
    pub(super) fn fields_until_damage(self) -> (ObjectFields<'a>, Option<Damage>) {
        let mut fields = Vec::new();
        if !self.is_object() {
            return (ObjectFields(fields), None);
        }
        let mut cursor = self.inside();
        let damage = loop {
            match cursor.next_field() {
                Ok(Some((name, value))) => fields.push((decode(name), value)),
                Ok(None) => break None,
                Err(damage) => break Some(damage),
            }
        };
        (ObjectFields(fields), damage)
    }

    /// Returns the last field with each of these names; no fields if the value is not an object. This is
    /// faster than [`Raw::fields`].
    pub(super) fn last_fields<const N: usize>(
        self,
        names: [&str; N],
    ) -> Result<[Option<Raw<'a>>; N], Damage> {
        let mut picked = [None; N];
        if !self.is_object() {
            return Ok(picked);
        }
        let mut cursor = self.inside();
        while let Some((name, value)) = cursor.next_field()? {
            let is_plain = !name.contains(&b'\\');
            let name = if is_plain {
                Cow::Borrowed(name)
            } else {
                decode(name).into_owned().into_bytes().into()
            };
            if let Some(at) = names.iter().position(|wanted| wanted.as_bytes() == &*name) {
                picked[at] = Some(value);
            }
        }
        Ok(picked)
    }

    /// Returns the items of an array in order; no items for any other value.
    pub(super) fn items(self) -> Result<Vec<Raw<'a>>, Damage> {
        let mut items = Vec::new();
        if self.is_array() {
            let mut cursor = self.inside();
            while let Some(byte) = cursor.next_token() {
                match byte {
                    b']' => return Ok(items),
                    b',' => cursor.at += 1,
                    _ => items.push(cursor.value()?),
                }
            }
            return Err(cursor.damage("an array without an end"));
        }
        Ok(items)
    }

    /// Returns a parser positioned after the opening bracket of the value.
    fn inside(self) -> Parser<'a> {
        let pairs = self.pairs.get(1..).unwrap_or_default();
        Parser { bytes: self.bytes, at: 1, pairs, origin: self.origin }
    }

    /// Returns the text of a string, or the source text of a number or boolean.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        match self.bytes.first()? {
            b'"' => Some(decode(&self.bytes[1..self.bytes.len().max(2) - 1])),
            b'{' | b'[' => None,
            _ if self.is_null() => None,
            _ => Some(lossy(self.bytes)),
        }
    }

    /// Returns the text of a string; `None` for any other value.
    pub(super) fn string(self) -> Option<Cow<'a, str>> {
        if self.bytes.first() == Some(&b'"') { self.text() } else { None }
    }

    pub(super) fn is_true(self) -> bool {
        self.bytes == b"true"
    }

    /// Parses the value with all nested values. The texts in values deeper than [`MAX_NESTING`] are in one list.
    pub(super) fn value(self) -> Result<Value, Damage> {
        self.value_to(MAX_NESTING)
    }

    fn value_to(self, depth: usize) -> Result<Value, Damage> {
        if self.is_object() || self.is_array() {
            if depth == 0 {
                return Ok(Value::Array(texts_in(self.bytes)));
            }
            if self.is_array() {
                let items = self.items()?.into_iter().map(|item| item.value_to(depth - 1));
                return Ok(Value::Array(items.collect::<Result<_, _>>()?));
            }
            let fields = self.fields()?.0.into_iter();
            let fields =
                fields.map(|(name, raw)| Ok((name.into_owned(), raw.value_to(depth - 1)?)));
            return Ok(Value::Object(fields.collect::<Result<_, _>>()?));
        }
        Ok(match (self.string(), self.text()) {
            (Some(text), _) => Value::String(text.into_owned()),
            (None, Some(text)) => Value::Scalar(text.into_owned()),
            (None, None) => Value::Null,
        })
    }
}

/// The maximum depth of values that [`Raw::value`] keeps apart. No export nests that deep.
const MAX_NESTING: usize = 48;

/// The fields of one object, in their order in the text.
#[derive(Debug)]
pub(super) struct ObjectFields<'a>(Vec<(Cow<'a, str>, Raw<'a>)>);

impl<'a> ObjectFields<'a> {
    pub(super) fn get(&self, name: &str) -> Option<Raw<'a>> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, raw)| *raw)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Raw<'a>)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// Returns the text of the field with this name; see [`Raw::text`].
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name)?.text()
    }

    /// Returns the fields of the object in the field with this name; no fields for any other value.
    pub(super) fn object(&self, name: &str) -> Result<ObjectFields<'a>, Damage> {
        self.get(name).map_or(Ok(ObjectFields(Vec::new())), Raw::fields)
    }
}

impl<'a> IntoIterator for ObjectFields<'a> {
    type Item = (Cow<'a, str>, Raw<'a>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `null`, or not a finite number.
    Null,
    /// A number or boolean, as its source text.
    Scalar(String),
    String(String),
    Array(Vec<Value>),
    /// An object, with its fields in their order in the text.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Returns the last field with this name, if this value is an object.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let Value::Object(fields) = self else { return None };
        fields.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the field with this name; `Null` if there is none.
    pub(super) fn at(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }

    /// Returns the text of the field with this name; empty if there is none.
    pub(super) fn str(&self, name: &str) -> &str {
        self.at(name).as_str().unwrap_or_default()
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) | Value::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Changes every string in the value. Recursion is safe, because the depth of a [`Value`] is bounded.
    pub(super) fn map_strings(&mut self, change: fn(&str) -> Cow<'_, str>) {
        match self {
            Value::String(text) => {
                if let Cow::Owned(changed) = change(text) {
                    *text = changed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| item.map_strings(change)),
            Value::Object(fields) => {
                fields.iter_mut().for_each(|(_, value)| value.map_strings(change));
            }
            Value::Null | Value::Scalar(_) => {}
        }
    }

    /// Returns the items of an array; none for `null`; any other value counts as an array of one item.
    pub(super) fn items(&self) -> &[Value] {
        match self {
            Value::Array(items) => items,
            Value::Null => &[],
            other => std::slice::from_ref(other),
        }
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The pairs of brackets after the position; empty if they are unknown.
    pairs: &'a [Pair],
    origin: usize,
}

impl<'a> Parser<'a> {
    /// Moves to the next byte that is not white space, and returns it.
    fn next_token(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Reads the next field of an object: the bytes of its name, and its value; `None` at the end of the
    /// object.
    fn next_field(&mut self) -> Result<Option<(&'a [u8], Raw<'a>)>, Damage> {
        loop {
            match self.next_token() {
                Some(b'}') => return Ok(None),
                Some(b',') => self.at += 1,
                Some(b'"') => break,
                Some(_) => return Err(self.damage("a name is missing")),
                None => return Err(self.damage("an object without an end")),
            }
        }
        let name = self.string()?;
        if self.next_token() != Some(b':') {
            return Err(self.damage("a name without a value"));
        }
        self.at += 1;
        Ok(Some((name, self.value()?)))
    }

    /// Reads the string at the position; returns the bytes between its quotes.
    fn string(&mut self) -> Result<&'a [u8], Damage> {
        let start = self.at + 1;
        match string_end(self.bytes, start) {
            Some(end) => {
                self.at = end;
                Ok(&self.bytes[start..end - 1])
            }
            None => Err(self.damage("a string without an end")),
        }
    }

    fn value(&mut self) -> Result<Raw<'a>, Damage> {
        let first = self.next_token();
        let start = self.at;
        let mut pairs: &[Pair] = &[];
        match first {
            Some(b'"') => {
                self.string()?;
            }
            Some(b'{' | b'[') => match self.nested_end(start) {
                Some((end, own)) => (self.at, pairs) = (end, own),
                None => return Err(self.damage("brackets that do not close")),
            },
            _ => {
                let rest = &self.bytes[start..];
                let end = rest.iter().position(|byte| {
                    matches!(byte, b',' | b'}' | b']' | b':' | b'"' | b'{' | b'[')
                        || byte.is_ascii_whitespace()
                });
                let word = &rest[..end.unwrap_or(rest.len())];
                if !is_scalar(word) {
                    return Err(self.damage("a value is missing"));
                }
                self.at += word.len();
            }
        }
        Ok(Raw { bytes: &self.bytes[start..self.at], pairs, origin: self.origin + start })
    }

    /// Returns the place after the bracket that closes the bracket at `start`, and the known pairs of
    /// brackets from the opening bracket on.
    fn nested_end(&mut self, start: usize) -> Option<(usize, &'a [Pair])> {
        let own = self.pairs;
        match own.first() {
            Some(pair) if pair.start as usize == self.origin + start => {
                let end = (pair.end as usize).checked_sub(self.origin)?;
                self.pairs = own.get(pair.inside as usize..).unwrap_or_default();
                (pair.end != NO_END && end <= self.bytes.len()).then_some((end, own))
            }
            _ => nested_end(self.bytes, start).map(|end| (end, &[][..])),
        }
    }

    fn damage(&self, what: &'static str) -> Damage {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let near = String::from_utf8_lossy(&rest[..rest.len().min(24)]);
        let near = near.split_whitespace().collect::<Vec<_>>().join(" ");
        Damage { what, near }
    }
}

/// Returns the strings in a value of any depth; a string in a field is in an object with only that field.
fn texts_in(bytes: &[u8]) -> Vec<Value> {
    let mut texts = Vec::new();
    let mut at = 0;
    let mut field = None;
    while let Some(start) = memchr(b'"', &bytes[at..]).map(|found| at + found + 1) {
        let Some(end) = string_end(bytes, start) else { break };
        let text = decode(&bytes[start..end - 1]).into_owned();
        let next = bytes[end..].trim_ascii_start();
        at = end;
        if let Some(value) = next.strip_prefix(b":") {
            field = value.trim_ascii_start().starts_with(b"\"").then_some(text);
        } else {
            texts.push(match field.take() {
                Some(name) => Value::Object(vec![(name, Value::String(text))]),
                None => Value::String(text),
            });
        }
    }
    texts
}

fn is_scalar(word: &[u8]) -> bool {
    match word {
        b"true" | b"false" | b"null" | b"NaN" | b"nan" | b"Infinity" | b"-Infinity" => true,
        [b'-' | b'0'..=b'9', rest @ ..] => rest
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')),
        _ => false,
    }
}

/// Returns the place after the closing quote of the string whose first byte is at `start`.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let found = at + memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[found] == b'"' {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

/// Returns the place after the bracket that closes the bracket at `start`.
fn nested_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let end = BracketScan::new(start).go_on(bytes, |at, byte| {
        depth = if matches!(byte, b'{' | b'[') { depth + 1 } else { depth - 1 };
        if depth == 0 { ControlFlow::Break(at + 1) } else { ControlFlow::Continue(()) }
    });
    end.break_value()
}

fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let Some(first) = memchr(b'\\', bytes) else { return lossy(bytes) };
    let mut text = String::with_capacity(bytes.len());
    text.push_str(&lossy(&bytes[..first]));
    let mut at = first;
    while at < bytes.len() {
        // `at` is at a backslash, so the escaped character is skipped too.
        at += 2;
        match bytes.get(at - 1) {
            Some(b'n') => text.push('\n'),
            Some(b't') => text.push('\t'),
            Some(b'r') => text.push('\r'),
            Some(b'b') => text.push('\u{8}'),
            Some(b'f') => text.push('\u{c}'),
            Some(b'u') => {
                let unit = hex(bytes, at);
                at += if unit.is_some() { 4 } else { 0 };
                let low = if bytes[at.min(bytes.len())..].starts_with(b"\\u") {
                    hex(bytes, at + 2)
                } else {
                    None
                };
                match (unit, low) {
                    (Some(high @ 0xD800..=0xDBFF), Some(low @ 0xDC00..=0xDFFF)) => {
                        at += 6;
                        let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    (Some(code), _) => {
                        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    (None, _) => text.push_str("\\u"),
                }
            }
            Some(b'"' | b'\\' | b'/') => text.push(char::from(bytes[at - 1])),
            // Both characters of an unknown escape stay in the text.
            Some(_) => {
                text.push('\\');
                at -= 1;
            }
            None => text.push('\\'),
        }
        let rest = &bytes[at.min(bytes.len())..];
        // Texts in other scripts are often sequences of escapes, without plain bytes between them.
        if rest.first() != Some(&b'\\') {
            let plain = memchr(b'\\', rest).unwrap_or(rest.len());
            text.push_str(&lossy(&rest[..plain]));
            at += plain;
        }
    }
    Cow::Owned(text)
}

/// Returns the four hexadecimal digits at `at` as a number.
fn hex(bytes: &[u8], at: usize) -> Option<u32> {
    let digits: &[u8; 4] = bytes.get(at..)?.first_chunk()?;
    digits.iter().try_fold(0, |sum, digit| Some(sum << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        Raw::new(json.as_bytes()).text().expect(json).into_owned()
    }

    #[test]
    fn strings_as_they_come() {
        for (json, expected) in [
            (r#""plain""#, "plain"),
            (r#""""#, ""),
            (r#""a\"b\\c\/d\n\t""#, "a\"b\\c/d\n\t"),
            (r#""\u00e9\u4e2d""#, "é中"),
            (r#""\ud83d\ude00!""#, "😀!"),
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\ud83dx\ude00""#, "\u{fffd}x\u{fffd}"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\u12""#, "\\u12"),
            (r#""\x\d""#, "\\x\\d"),
            ("\"line\nbreak\"", "line\nbreak"),
            ("12.50", "12.50"),
            ("true", "true"),
        ] {
            assert_eq!(text(json), expected, "{json}");
        }
        assert_eq!(Raw::new(b"\"caf\xe9\"").text().as_deref(), Some("caf\u{fffd}"));
        for none in ["null", "NaN", "Infinity", "-Infinity", "{}", "[]"] {
            assert_eq!(Raw::new(none.as_bytes()).text(), None, "{none}");
        }
    }

    #[test]
    fn fields_and_items() {
        let raw = Raw::new(br#" {"a": 1, "b" : [1,"]",{"c":"}"}], "a":2, "n": NaN, } "#);
        let fields = raw.fields().unwrap();
        assert_eq!(fields.text("a").as_deref(), Some("2"));
        assert_eq!(fields.get("b").unwrap().items().unwrap().len(), 3);
        assert!(fields.get("n").unwrap().is_null());
        assert!(fields.get("c").is_none());
        let picked = raw.last_fields(["n", "c", "a"]).unwrap().map(|raw| raw.map(Raw::bytes));
        assert_eq!(picked, [Some(&b"NaN"[..]), None, Some(&b"2"[..])]);
        let escaped = Raw::new(br#"{"\u0061": 3}"#).last_fields(["a"]).unwrap();
        assert_eq!(escaped[0].map(Raw::bytes), Some(&b"3"[..]));
        assert_eq!(Raw::new(b"7").fields().unwrap().into_iter().count(), 0);
    }

    #[test]
    fn known_brackets_change_nothing() {
        let whole = br#" {"a": [1, {"b": "]"}, [[]], {}], "c": {"d": {"e": [2, "x\"}"]}}, "f": [{"g": 3}]} "#;
        let bytes = || 0..whole.len();
        let cut = bytes().map(|end| whole[..end].to_vec());
        let lost = bytes().map(|at| [&whole[..at], &whole[at + 1..]].concat());
        let added = bytes().flat_map(|at| {
            [b'{', b'}', b'[', b']', b'"', b'x']
                .map(|byte| [&whole[..at], &[byte], &whole[at..]].concat())
        });
        let mut brackets = Brackets::default();
        for json in cut.chain(lost).chain(added) {
            let text = String::from_utf8_lossy(&json).into_owned();
            let plain = Raw::new(&json);
            assert_eq!(brackets.value(&json).value(), plain.value(), "{text}");
            let fields = |raw: Raw<'_>| {
                let (fields, damage) = raw.fields_until_damage();
                let read = |(name, raw): (Cow<'_, str>, Raw<'_>)| {
                    (
                        name.into_owned(),
                        raw.bytes.to_vec(),
                        raw.value(),
                        raw.items().map(|it| it.len()),
                    )
                };
                (fields.into_iter().map(read).collect::<Vec<_>>(), damage)
            };
            assert_eq!(fields(brackets.value(&json)), fields(plain), "{text}");
        }
    }

    #[test]
    fn damage_is_told() {
        for json in [
            r#"{"a" 1}"#,
            r#"{"a": oops}"#,
            r#"{"a": }"#,
            r#"{"a": "b}"#,
            r#"{"a": [1}"#,
            r#"{a: 1}"#,
            r#"{"a": 1"#,
        ] {
            assert!(Raw::new(json.as_bytes()).fields().is_err(), "{json}");
            assert!(Raw::new(json.as_bytes()).last_fields(["b"]).is_err(), "{json}");
        }
    }

    #[test]
    fn any_depth() {
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
        let fields = Raw::new(deep.as_bytes()).fields().unwrap();
        assert!(fields.get("a").unwrap().value().is_ok());
    }
}
