//! The text in a stored `content`.

use std::{borrow::Cow, fmt};

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

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
