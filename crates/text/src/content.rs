//! The text in a stored `content`.

use std::{
    borrow::Cow,
    fmt,
    io::{self, Write},
};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Returns the text in the JSON of ChatGPT's `parts`; `None` if `stored` is not such JSON.
///
/// The text consists of the strings and of the field `text` of the objects, one part per line. Objects
/// without `text` add nothing. A lone surrogate is possible in JSON but not in a text, so it becomes U+FFFD.
pub fn decode_parts(stored: &str) -> Option<String> {
    if !stored.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('[') {
        return None;
    }
    let parts: Vec<JsonPart> = serde_json::from_str(&mend_surrogates(stored)).ok()?;
    let mut texts = parts.into_iter().filter_map(|JsonPart(text)| text);
    let first = texts.next().unwrap_or_default();
    Some(texts.fold(first, |text, part| text + "\n" + &part))
}

/// Writes the text that [`decode_parts`] would return to `out`; returns whether `stored` is the JSON of
/// parts. Does not keep whole parts in memory.
pub fn write_parts(stored: &str, out: &mut dyn Write) -> io::Result<bool> {
    if !stored.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('[') {
        return Ok(false);
    }
    let mut failed = None;
    let mut json = serde_json::Deserializer::from_str(stored);
    let read = json.deserialize_seq(PartsWriter { out, failed: &mut failed });
    let is_parts = read.and_then(|()| json.end()).is_ok();
    failed.map_or(Ok(is_parts), Err)
}

struct PartsWriter<'w> {
    out: &'w mut dyn Write,
    failed: &'w mut Option<io::Error>,
}

impl<'de> Visitor<'de> for PartsWriter<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of strings and objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<(), A::Error> {
        let mut is_first = true;
        while let Some(part) = parts.next_element::<&'de RawValue>()? {
            let text = match part.get().as_bytes()[0] {
                b'"' => Some(part),
                b'{' => {
                    serde_json::from_str::<LongPart<'de>>(part.get()).map_err(de::Error::custom)?.0
                }
                _ => return Err(de::Error::custom("neither a string nor an object")),
            };
            let Some(text) = text else { continue };
            let before = if is_first { "" } else { "\n" };
            is_first = false;
            let literal = &text.get()[1..text.get().len() - 1];
            let written =
                self.out.write_all(before.as_bytes()).and_then(|()| unescape(literal, self.out));
            if let Err(error) = written {
                *self.failed = Some(error);
                return Err(de::Error::custom("the text cannot be written"));
            }
        }
        Ok(())
    }
}

fn unescape(literal: &str, out: &mut dyn Write) -> io::Result<()> {
    let bytes = literal.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        out.write_all(&bytes[at..at + found])?;
        at += found;
        let (character, length) = match bytes.get(at + 1) {
            Some(b'n') => ('\n', 2),
            Some(b't') => ('\t', 2),
            Some(b'r') => ('\r', 2),
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'u') => {
                let units = [escape(bytes, at), escape(bytes, at + 6)];
                let first = char::decode_utf16(units.into_iter().flatten()).next();
                let character = first.and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER);
                (character, 6 * character.len_utf16())
            }
            Some(other) => (char::from(*other), 2),
            None => break,
        };
        out.write_all(character.encode_utf8(&mut [0; 4]).as_bytes())?;
        at += length;
    }
    out.write_all(&bytes[at.min(bytes.len())..])
}

struct LongPart<'de>(Option<&'de RawValue>);

impl<'de> Deserialize<'de> for LongPart<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LongPart<'de>, D::Error> {
        struct LongPartVisitor;
        impl<'de> Visitor<'de> for LongPartVisitor {
            type Value = LongPart<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LongPart<'de>, A::Error> {
                let mut text = None;
                while let Some(key) = map.next_key::<&'de RawValue>()? {
                    let value = map.next_value::<&'de RawValue>()?;
                    if !is_text_key(key.get()) {
                        continue;
                    }
                    if value.get().starts_with('"') {
                        text = Some(value);
                    } else {
                        // Other values are parsed too, so that this check is as strict as that of `JsonPart`.
                        serde_json::from_str::<serde_json::Value>(&mend_surrogates(value.get()))
                            .map_err(de::Error::custom)?;
                    }
                }
                Ok(LongPart(text))
            }
        }
        deserializer.deserialize_map(LongPartVisitor)
    }
}

/// Returns whether a key, given as JSON, is `text`. JSON may write its letters as escapes (`t\u0065xt`).
fn is_text_key(json: &str) -> bool {
    const LONGEST: usize = r#""\u0074\u0065\u0078\u0074""#.len();
    json.len() <= LONGEST
        && serde_json::from_str::<Cow<'_, str>>(&mend_surrogates(json))
            .is_ok_and(|key| key == "text")
}

/// Replaces every lone surrogate escape in JSON (`\ud83d` without its other half) by `\ufffd`.
pub fn mend_surrogates(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        match escape(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(escape(bytes, at + 6), Some(0xDC00..=0xDFFF)) => {
                at += 12;
            }
            Some(0xD800..=0xDFFF) => {
                mended.push_str(&json[copied..at]);
                mended.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // The escaped character is skipped too, because it may be another backslash.
            _ => at += 2,
        }
        at = at.min(bytes.len());
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[copied..]);
    Cow::Owned(mended)
}

/// Returns the number in the escape `\uXXXX` that begins at `at`.
fn escape(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

struct JsonPart(Option<String>);

impl<'de> Deserialize<'de> for JsonPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonPart, D::Error> {
        struct PartVisitor;
        impl<'de> Visitor<'de> for PartVisitor {
            type Value = JsonPart;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object")
            }

            fn visit_str<E>(self, text: &str) -> Result<JsonPart, E> {
                Ok(JsonPart(Some(text.to_owned())))
            }

            fn visit_string<E>(self, text: String) -> Result<JsonPart, E> {
                Ok(JsonPart(Some(text)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonPart, A::Error> {
                let mut text = None;
                while let Some(key) = map.next_key::<Cow<'_, str>>()? {
                    if key == "text" {
                        if let serde_json::Value::String(value) = map.next_value()? {
                            text = Some(value);
                        }
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(JsonPart(text))
            }
        }
        deserializer.deserialize_any(PartVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        for (stored, text) in [
            (r#"["caf\u00e9\n\"x\""]"#, Some("café\n\"x\"")),
            (r#"["a", "b"]"#, Some("a\nb")),
            (r#" ["", "b"] "#, Some("\nb")),
            (
                r#"[{"content_type": "audio", "text": "said"}, {"asset": [1]}, "b"]"#,
                Some("said\nb"),
            ),
            (r#"[{"text": null}]"#, Some("")),
            ("[]", Some("")),
            (r#"["\ud83d\ude00 \ud83d \\ud83d \ude00"]"#, Some("😀 \u{FFFD} \\ud83d \u{FFFD}")),
            (r#"["\u0000x"]"#, Some("\0x")),
            (r#"["\"\\\/\b\f\r\t\""]"#, Some("\"\\/\u{8}\u{c}\r\t\"")),
            (r#"["\ud83d\u0041\ud83d\ud83d\ude00"]"#, Some("\u{FFFD}A\u{FFFD}😀")),
            (r#"[{"text": "a", "text": 1, "t\u0065xt": "b\n"}, {"text": {}}]"#, Some("b\n")),
            (r#"[{"t\ude00": [1], "\ud800": 2, "text": "a"}, {"text": ["\ud800"]}]"#, Some("a")),
            (r#"[{"\x": 1}]"#, None),
            (r#"[{"text": 1e999}]"#, None),
            (r#"["\x"]"#, None),
            ("[\"\n\"]", None),
            (r#"["a", ]"#, None),
            ("[1]", None),
            ("[null]", None),
            (r#"[["a"]]"#, None),
            (r#"["a"] b"#, None),
            (r#""a""#, None),
            ("{}", None),
            ("", None),
            ("[citation needed]", None),
        ] {
            assert_eq!(decode_parts(stored).as_deref(), text, "{stored}");
            let mut written = Vec::new();
            let is_parts = write_parts(stored, &mut written).expect("memory can be written");
            assert_eq!(is_parts.then_some(written.as_slice()), text.map(str::as_bytes), "{stored}");
        }
    }

    #[test]
    fn surrogates() {
        for (json, mended) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uD83D\uD83D\uDE00""#, r#""\ufffd\uD83D\uDE00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\ud8""#, r#""\ud8""#),
            ("\\", "\\"),
            ("\\é\\ud800", "\\é\\ufffd"),
        ] {
            assert_eq!(mend_surrogates(json), mended);
        }
    }
}
