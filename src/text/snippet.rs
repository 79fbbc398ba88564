//! Cutting text down to what is shown.

use std::ops::Range;

/// Returns the text without white space at its ends, as Python's `str.strip` sees it.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Returns whether Python calls the character white space: Unicode's, and four separators of ASCII's.
fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// Returns the first `count` characters; `None` where there are no more than that.
pub fn cut(text: &str, count: usize) -> Option<&str> {
    let (end, _) = text.char_indices().nth(count)?;
    Some(&text[..end])
}

/// Returns where the pieces of `LIKE '%query%'` between wildcards stand in the text.
///
/// Each match is taken as far left as it goes, and the next one after it. A query of nothing but
/// wildcards stands nowhere in particular.
pub fn spans(text: &str, query: &str, case_sensitive: bool) -> Vec<Range<usize>> {
    let pieces: Vec<&str> = query.split('%').filter(|piece| !piece.is_empty()).collect();
    if pieces.iter().all(|piece| piece.chars().all(|c| c == '_')) {
        return Vec::new();
    }
    // Where a NUL stands LIKE stops reading.
    let text = &text[..text.find('\0').unwrap_or(text.len())];
    let mut spans = Vec::new();
    let mut from = 0;
    loop {
        let whole = spans.len();
        for piece in &pieces {
            let Some(span) = find(text, from, piece, case_sensitive) else {
                spans.truncate(whole);
                return spans;
            };
            from = span.end;
            spans.push(span);
        }
    }
}

/// Returns the first place at or after `from` where a piece without `%` stands.
fn find(text: &str, from: usize, piece: &str, case_sensitive: bool) -> Option<Range<usize>> {
    text[from..].char_indices().find_map(|(at, _)| {
        let start = from + at;
        let mut rest = text[start..].chars();
        let same = |wanted: char, there: char| {
            wanted == '_'
                || wanted == there
                || !case_sensitive && wanted.eq_ignore_ascii_case(&there)
        };
        piece
            .chars()
            .all(|wanted| rest.next().is_some_and(|there| same(wanted, there)))
            .then(|| start..text.len() - rest.as_str().len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trims_as_python_does() {
        assert_eq!(trim("\u{1f} \u{85}\u{3000}a b\u{200b}\n"), "a b\u{200b}");
    }

    #[test]
    fn cuts_characters_not_bytes() {
        assert_eq!(cut("äöü", 2), Some("äö"));
        assert_eq!(cut("äöü", 3), None);
        assert_eq!(cut("", 0), None);
    }

    #[test]
    fn finds_where_like_matched() {
        for (text, query, expected) in [
            ("abcABC", "b", "a[b]cA[B]C"),
            ("caf\u{e9} caf\u{c9}", "f\u{e9}", "ca[f\u{e9}] caf\u{c9}"),
            ("one two one", "o_e", "[one] two [one]"),
            ("one two one two", "n%w", "o[n]e t[w]o o[n]e t[w]o"),
            ("one two", "w%n", "one two"),
            ("aaa", "aa", "[aa]a"),
            ("a\0a", "a", "[a]\0a"),
            ("abc", "%_%", "abc"),
            ("abc", "", "abc"),
            ("日本語", "本_", "日[本語]"),
        ] {
            assert_eq!(marked(text, query, false), expected, "{query:?}");
        }
        assert_eq!(marked("abcABC", "B", true), "abcA[B]C");
    }

    fn marked(text: &str, query: &str, case_sensitive: bool) -> String {
        let mut marked = text.to_owned();
        for span in spans(text, query, case_sensitive).into_iter().rev() {
            marked.insert(span.end, ']');
            marked.insert(span.start, '[');
        }
        marked
    }
}
