//! Marks matches in HTML that this program made. Only text between tags is changed, never a tag.
//!
//! A match may begin in one element and end in another, as in `<b>bo</b>rrow`. A match never
//! crosses the end of a paragraph.

use std::ops::Range;

use verbatim_text::parts::tag_length;

/// The block elements: no match crosses their borders.
const BLOCKS: &str = "p li ul ol pre td th tr table thead tbody div h1 h2 h3 h4 h5 h6 blockquote br hr \
    figure figcaption dl dt dd";

/// The escaped forms of characters in the HTML that this program makes.
const ENTITIES: [(&str, char); 6] = [
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&amp;", '&'),
    ("&quot;", '"'),
    ("&#39;", '\''),
    ("&#x27;", '\''),
];

/// The maximum number of matches that are marked in a message: each is an element to lay out.
pub(super) const MOST_MARKED: usize = 2_000;

/// A piece of HTML: a tag, or text with its place in the text without tags.
enum HtmlPiece {
    Tag(Range<usize>),
    Text { html: Range<usize>, plain: Range<usize> },
}

/// Returns the HTML with its matches marked, and the number of matches. `spans` returns the matches
/// in a text; `most` of them are marked. The match with the index `now` is marked as the current match, and is
/// the anchor `hit`; then those beside it are marked.
pub(super) fn mark_html(
    html: &str,
    now: Option<usize>,
    most: usize,
    spans: &dyn Fn(&str) -> Vec<Range<usize>>,
) -> (String, usize) {
    let (tokens, plain) = tokens(html);
    let spans = spans(&plain);
    let marked = match now.map(|now| now.min(spans.len())) {
        Some(now) if now >= most / 2 => now - most / 2..now + most.div_ceil(2).max(1),
        _ => 0..most.max(usize::from(now.is_some())),
    };
    if spans.is_empty() || marked.is_empty() {
        return (html.to_owned(), spans.len());
    }
    let mut out = String::with_capacity(html.len() + spans.len() * 16);
    let mut next = 0;
    for token in tokens {
        let (at, plain) = match token {
            HtmlPiece::Tag(at) => {
                out.push_str(&html[at]);
                continue;
            }
            HtmlPiece::Text { html, plain } => (html, plain),
        };
        // A mark contains an escaped character completely, or not at all.
        let is_escaped = at.len() != plain.len();
        let mut done = plain.start;
        while done < plain.end {
            while spans.get(next).is_some_and(|span| span.end <= done) {
                next += 1;
            }
            let span = spans.get(next).filter(|span| span.start < plain.end);
            let (end, is_match) = match span {
                Some(span) if span.start <= done => {
                    (span.end.min(plain.end), marked.contains(&next))
                }
                Some(span) => (span.start, false),
                None => (plain.end, false),
            };
            let piece = if is_escaped {
                at.clone()
            } else {
                at.start + (done - plain.start)..at.start + (end - plain.start)
            };
            if is_match {
                let is_start = spans[next].start == done;
                out.push_str(match now {
                    Some(now) if now == next && is_start => "<mark class=\"now\" id=\"hit\">",
                    Some(now) if now == next => "<mark class=\"now\">",
                    _ => "<mark>",
                });
            }
            out.push_str(&html[piece]);
            if is_match {
                out.push_str("</mark>");
            }
            done = end;
        }
    }
    (out, spans.len())
}

pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Splits HTML into tags and text. Also returns the text without tags.
fn tokens(html: &str) -> (Vec<HtmlPiece>, String) {
    let mut tokens = Vec::new();
    let mut plain = String::with_capacity(html.len());
    let mut at = 0;
    while at < html.len() {
        let rest = &html[at..];
        if rest.starts_with('<') {
            let length = tag_length(rest);
            if is_block(&rest[..length]) && !plain.ends_with('\n') {
                plain.push('\n');
            }
            tokens.push(HtmlPiece::Tag(at..at + length));
            at += length;
            continue;
        }
        let entity = ENTITIES.iter().find(|(name, _)| rest.starts_with(name));
        let start = plain.len();
        let length = match entity {
            Some((name, character)) => {
                plain.push(*character);
                name.len()
            }
            None => {
                let first = rest.chars().next().map_or(1, char::len_utf8);
                let length = length_of_text(rest, first);
                plain.push_str(&rest[..length]);
                length
            }
        };
        tokens.push(HtmlPiece::Text { html: at..at + length, plain: start..plain.len() });
        at += length;
    }
    (tokens, plain)
}

/// Returns the length of the text before the next tag or escaped character.
fn length_of_text(text: &str, first: usize) -> usize {
    text[first..].find(['<', '&']).map_or(text.len(), |at| first + at)
}

fn is_block(tag: &str) -> bool {
    let name = tag.trim_start_matches(['<', '/']);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    BLOCKS.split(' ').any(|block| block == &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbatim_text::literal::LiteralPattern;

    fn marked(html: &str, text: &str) -> (String, usize) {
        mark_html(html, None, 100, &|plain| {
            LiteralPattern::new(text, false).first_spans(plain, 100)
        })
    }

    #[test]
    fn marks_are_between_tags() {
        for (html, text, expected) in [
            ("<p>Borrow</p>", "borrow", "<p><mark>Borrow</mark></p>"),
            ("<p><b>Bo</b>rrow</p>", "borrow", "<p><b><mark>Bo</mark></b><mark>rrow</mark></p>"),
            ("<p>one</p><p>two</p>", "onetwo", "<p>one</p><p>two</p>"),
            ("<a href=\"x>mark\">mark</a>", "mark", "<a href=\"x>mark\"><mark>mark</mark></a>"),
            (
                "a &lt;b&gt; &amp;",
                "<B> &",
                "a <mark>&lt;</mark><mark>b</mark><mark>&gt;</mark><mark> </mark><mark>&amp;</mark>",
            ),
            (
                "<p>日本&#39;日本</p>",
                "本'日",
                "<p>日<mark>本</mark><mark>&#39;</mark><mark>日</mark>本</p>",
            ),
            ("a&b & c", "b &", "a&<mark>b </mark><mark>&</mark> c"),
            ("xx", "x", "<mark>x</mark><mark>x</mark>"),
        ] {
            assert_eq!(marked(html, text).0, expected, "{html}");
        }
        assert_eq!(marked("<p class=\"p\">p p</p>", "p").1, 2);
        let (html, _) = mark_html("a <b>a</b>b", Some(1), 100, &|_| vec![0..1, 2..4]);
        let current = "<b><mark class=\"now\" id=\"hit\">a</mark></b><mark class=\"now\">b</mark>";
        assert_eq!(html, format!("<mark>a</mark> {current}"));
        let spans = |_: &str| (0..9).map(|at| at..at + 1).collect();
        for (now, most, expected) in [
            (None, 2, "<mark>a</mark><mark>b</mark>cdefghi"),
            (
                Some(4),
                3,
                "abc<mark>d</mark><mark class=\"now\" id=\"hit\">e</mark><mark>f</mark>ghi",
            ),
            (Some(8), 0, "abcdefgh<mark class=\"now\" id=\"hit\">i</mark>"),
            (Some(0), 0, "<mark class=\"now\" id=\"hit\">a</mark>bcdefghi"),
            (None, 0, "abcdefghi"),
        ] {
            assert_eq!(mark_html("abcdefghi", now, most, &spans), (expected.to_owned(), 9));
        }
    }
}
