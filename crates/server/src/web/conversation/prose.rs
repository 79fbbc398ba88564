//! Texts without Markdown's signs, for lines that show a few words of a message.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

use verbatim_text::parts::{ANSWER, THINKING};

/// Returns the parts of a text that a reader of its Markdown sees: the text without signs of headings,
/// emphasis, lists, tables and code, and without the addresses of links.
pub(crate) fn visible(text: &str) -> Vec<Range<usize>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut visible: Vec<Range<usize>> = Vec::new();
    let marks = marks(text);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        let part = match event {
            Event::Text(_) | Event::Html(_) | Event::InlineHtml(_) => range,
            Event::SoftBreak | Event::HardBreak => range,
            Event::Code(_) => {
                let code = &text[range.clone()];
                let inner = code.trim_matches('`');
                let start = range.start + (code.len() - code.trim_start_matches('`').len());
                start..start + inner.len()
            }
            Event::Start(Tag::Item) => {
                // The number of a list item is no sign, because a text may refer to it.
                let item = &text[range.clone()];
                let digits =
                    item.len() - item.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                range.start..range.start + if digits > 0 { digits + 1 } else { 0 }
            }
            _ => continue,
        };
        let is_mark = marks.iter().any(|mark| mark.contains(&part.start));
        if !part.is_empty() && !is_mark {
            visible.push(part);
        }
    }
    visible.sort_by_key(|part| part.start);
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(visible.len());
    for part in visible {
        match joined.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => joined.push(part),
        }
    }
    joined
}

/// Returns the lines that an import writes above thinking and answers.
fn marks(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        at += line.len();
        (line.trim(), at - line.len()..at)
    });
    lines.filter(|(line, _)| [THINKING, ANSWER].contains(line)).map(|(_, range)| range).collect()
}

/// Returns whether the gap between two visible parts separates words.
pub(crate) fn separates(gap: &str) -> bool {
    gap.contains(['\n', '|']) || gap.contains(char::is_whitespace)
}

/// Returns the first line of a text that says something, without Markdown's signs.
pub(super) fn first_words(text: &str) -> String {
    let line = telling_line(text);
    let mut words = String::new();
    let mut at = 0;
    for part in visible(line) {
        if separates(&line[at..part.start]) && !words.is_empty() {
            words.push(' ');
        }
        words.push_str(&line[part.clone()]);
        at = part.end;
    }
    if words.trim().is_empty() { line.to_owned() } else { words.trim().to_owned() }
}

/// Returns the first line with letters or digits, or else the first line that is not blank.
pub(super) fn telling_line(text: &str) -> &str {
    let line = text.lines().find(|line| line.contains(char::is_alphanumeric));
    line.or_else(|| text.lines().find(|line| !line.trim().is_empty())).unwrap_or("").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_have_no_signs() {
        for (text, words) in [
            ("**Inspecting TeamSheet file**\n\nMore", "Inspecting TeamSheet file"),
            ("\n## Use `go build` *now*", "Use go build now"),
            ("- see [the page](https://a.example)", "see the page"),
            ("2. snake_case * 3", "2. snake_case * 3"),
            ("╭─────╮\n│ hook │", "│ hook │"),
            ("***", "***"),
            ("", ""),
        ] {
            assert_eq!(first_words(text), words, "{text}");
        }
    }
}
