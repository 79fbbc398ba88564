//! Removes citation markers from a text.

use std::borrow::Cow;

use crate::import::json::{Raw, Value};
use crate::import::plain::plain;
use verbatim_text::up_to;

/// The character that opens a marker. A kind follows, then arguments after [`SEPARATOR`]s, then [`CLOSE`].
const MARKER_START: char = '\u{e200}';
const CLOSE: char = '\u{e201}';
const SEPARATOR: char = '\u{e202}';

/// The maximum lengths of markers in bytes. An opening character without an end in reach is not a marker.
const LONGEST_MARKER: usize = 16 << 10;
const LONGEST_BRACKET: usize = 300;

/// The author of a text. It decides what markers mean. The text of a person has no markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The model. A marker in brackets is a citation.
    Model,
    /// A tool that shows a page. A marker in brackets is a link with a text.
    Tool,
}

/// Returns the text without its citation markers. Keeps the text that a marker displays.
pub fn strip(text: &str, author: Author) -> Cow<'_, str> {
    // 0xEE and 0xE3 are the first bytes of U+E200 to U+E2FF and of `【`. Few texts have either.
    if memchr::memchr2(0xEE, 0xE3, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    // U+E200 to U+E2FF begin with one of these pairs of bytes. Every marker in brackets has `【` and `†`.
    let private = memchr::memchr_iter(0xEE, text.as_bytes())
        .any(|at| matches!(text.as_bytes().get(at + 1), Some(0x88..=0x8B)));
    let brackets = text.contains('【') && text.contains('†');
    if !private && !brackets {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut fence = FenceState::default();
    while let Some(at) = rest.find(|c: char| c == '【' || ('\u{e200}'..='\u{e2ff}').contains(&c)) {
        let (before, marker) = rest.split_at(at);
        plain.push_str(before);
        let first = marker.chars().next().unwrap_or_default();
        let after = &marker[first.len_utf8()..];
        rest = after;
        let removed = if first == '【' {
            bracket(after, author).map(|(shown, length)| (Cow::Borrowed(shown), length))
        } else if first == MARKER_START
            && let Some(end) = up_to(after, LONGEST_MARKER).find([CLOSE, MARKER_START])
            && after[end..].starts_with(CLOSE)
        {
            Some((Cow::Owned(marker_text(&after[..end])), end + CLOSE.len_utf8()))
        } else {
            None
        };
        match removed {
            Some((shown, length)) => {
                rest = &after[length..];
                plain.push_str(&shown);
                if shown.is_empty() && !fence.is_open_after(&plain) {
                    rest = close_gap(&mut plain, rest);
                }
            }
            None if first == '【' => plain.push(first),
            None => {}
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Removes one of the spaces around a removed marker: `plain` is the text before the marker, `rest` the text
/// after it. Returns the text after the marker.
fn close_gap<'a>(plain: &mut String, rest: &'a str) -> &'a str {
    let begins = plain.is_empty() || plain.ends_with([' ', '\n']);
    if let Some(after) = rest.strip_prefix(' ').filter(|_| begins) {
        return after;
    }
    let ends =
        rest.is_empty() || rest.starts_with(|c: char| "\r\n.,;:!?)]}…。，、；：！？）".contains(c));
    let is_between = plain.strip_suffix(' ').is_some_and(|it| !it.ends_with([' ', '\n']));
    if ends && is_between {
        plain.pop();
    }
    rest
}

/// Tells whether the end of a growing text is in a fenced block of code.
#[derive(Default)]
struct FenceState {
    /// The length of the whole lines that were looked at.
    read: usize,
    /// The characters that opened the block.
    open: Option<&'static str>,
}

impl FenceState {
    /// Looks at the lines that were added to the text since the last call.
    fn is_open_after(&mut self, text: &str) -> bool {
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        for line in text[self.read.min(whole)..whole].lines() {
            let line = line.trim_start();
            let fence = ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence));
            self.open = match (self.open, fence) {
                (None, fence) => fence,
                (open, fence) if open == fence => None,
                (open, _) => open,
            };
        }
        self.read = whole;
        self.open.is_some()
    }
}

/// Returns the text that a marker displays: the name of a thing, the text of a link, a formula, the words of a
/// widget.
fn marker_text(marker: &str) -> String {
    let mut parts = marker.split(SEPARATOR);
    let kind = parts.next().unwrap_or_default();
    if kind.ends_with("cite") {
        return String::new();
    }
    let shown = parts.map(|argument| {
        let argument = argument.trim();
        match Raw::new(argument.as_bytes()).value() {
            // A category or a reference, then the name, then what the service knows about it.
            Ok(Value::Array(items)) => {
                items.get(1).and_then(Value::as_str).unwrap_or_default().to_owned()
            }
            Ok(Value::Object(widgets)) => {
                let texts: Vec<String> = widgets.iter().map(widget).collect();
                let lines = texts.iter().flat_map(|text| text.lines());
                lines.filter(|line| !is_reference(line)).collect::<Vec<_>>().join("\n")
            }
            _ if is_reference(argument) => String::new(),
            _ => argument.to_owned(),
        }
    });
    shown.into_iter().find(|shown| !shown.is_empty()).unwrap_or_default()
}

/// Returns the text of a widget from its name and its content. LaTeX is between delimiters, as in other
/// messages.
fn widget((name, content): &(String, Value)) -> String {
    let formula = content.str("content");
    if name.starts_with("math") && !formula.is_empty() {
        return format!(r"\[{formula}\]");
    }
    plain(&Value::Object(vec![(name.clone(), content.clone())]), true)
}

/// Returns whether a text is an address, or a place in the results of a tool such as `turn0search3`.
fn is_reference(text: &str) -> bool {
    let place = text.strip_prefix("turn");
    text.starts_with("http")
        || !text.contains(char::is_whitespace)
            && place.is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
}

/// Reads a marker after its opening bracket: `12†source】`, `12:3†file.pdf】`, `12†the link's text】`.
///
/// Returns the text to display instead of the marker, and the length of the marker.
fn bracket(text: &str, author: Author) -> Option<(&str, usize)> {
    let end = up_to(text, LONGEST_BRACKET).find(['】', '\n'])?;
    if !text[end..].starts_with('】') {
        return None;
    }
    let length = end + '】'.len_utf8();
    let mut parts = text[..end].split('†');
    let number = parts.next()?;
    let label = parts.next()?;
    let numeric = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    if !numeric || number.is_empty() && author != Author::Tool {
        return None;
    }
    let lines =
        label.strip_prefix('L').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let cited = author != Author::Tool || label == "source" || lines;
    Some((if cited { "" } else { label }, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_marker_leaves_one_space() {
        for (text, expected) in [
            ("Rain. M Sun.", "Rain. Sun."),
            ("Rain. M M Sun M.", "Rain. Sun."),
            ("Rain MM, sun M\n- wind M\nM Fog", "Rain, sun\n- wind\nFog"),
            ("See M for the list M", "See for the list"),
            ("two  spaces M  \nbreak", "two  spaces  \nbreak"),
            ("    indented M code", "    indented code"),
            ("- M item\n  M more", "- item\n  more"),
            ("```\na M  b M\n```\nafter M the block", "```\na   b \n```\nafter the block"),
            ("~~~\n```\na M b\n~~~\nc M d", "~~~\n```\na  b\n~~~\nc d"),
            ("vrai M !", "vrai !"),
        ] {
            for marker in ["\u{e200}cite\u{e202}turn0search0\u{e201}", "【3:1†source】"] {
                let text = text.replace('M', marker);
                assert_eq!(strip(&text, Author::Model), expected, "{text:?}");
            }
        }
        assert_eq!(strip("two  spaces 【3†source】 here", Author::Tool), "two  spaces here");
    }

    #[test]
    fn markers_go_and_words_stay() {
        for (text, expected) in [
            ("no marks", "no marks"),
            ("Rain.\u{e200}cite\u{e202}turn0search0\u{e201} Sun.", "Rain. Sun."),
            ("a\u{e200}cite\u{e202}turn0search0\u{e202}turn1view2\u{e201}", "a"),
            (
                "\u{e200}entity\u{e202}[\"person\",\"Ada Lovelace\",\"mathematician\"]\u{e201} wrote",
                "Ada Lovelace wrote",
            ),
            ("see \u{e200}url\u{e202}the page\u{e202}https://example.org\u{e201}", "see the page"),
            ("see \u{e200}url\u{e202}turn0search3\u{e201}.", "see."),
            ("\u{e203}quoted\u{e204} by", "quoted by"),
            (
                "\u{e200}navlist\u{e202}In the news\u{e202}turn0news1,turn0news2\u{e201}",
                "In the news",
            ),
            (
                "\u{e200}genui\u{e202}{\"math_block_widget_always_prefetch_v2\":\
                 {\"content\":\"e^{i\\\\pi} + 1 = 0\"}}\u{e201}",
                r"\[e^{i\pi} + 1 = 0\]",
            ),
            (
                "\u{e200}genui\u{e202}{\"suggest_automation\":{\"label\":\"Daily\"}}\u{e201}",
                "Daily",
            ),
            (
                "\u{e200}products\u{e202}{\"selections\":[[\"turn0product1\",\"A lamp\"]]}\u{e201}",
                "A lamp",
            ),
            (
                "\u{e200}image_group\u{e202}{\"layout\":\"carousel\",\"aspect_ratio\":\"1:1\",\
                 \"query\":[\"red roofs\"]}\u{e201}",
                "red roofs",
            ),
            ("\u{e200}entity\u{e202}Ada Lovelace\u{e201} wrote", "Ada Lovelace wrote"),
            ("\u{e200}product_entity\u{e202}[\"turn0product0\",\"A lamp\"]\u{e201}", "A lamp"),
            ("\u{e200}filecite\u{e202}turn0file0\u{e202}L1-L5\u{e201}", ""),
            ("open \u{e200}cite never closed", "open cite never closed"),
            ("Fact【12†source】.", "Fact."),
            ("Fact【4:3†report.pdf】【7†L3-L9】.", "Fact."),
            ("日本語の【注】と【1†source】", "日本語の【注】と"),
            ("【message_idx†source】", "【message_idx†source】"),
            ("【3†no end", "【3†no end"),
        ] {
            assert_eq!(strip(text, Author::Model), expected, "{text:?}");
        }
        assert_eq!(strip("【12†May】【†Home†example.org】【3†source】", Author::Tool), "MayHome");
    }
}
