//! Cuts a line to the shown part.

use verbatim_text::snippet;

/// The maximum number of characters shown of a line. A longer line is cut around its first match.
const MAX_SHOWN: usize = 1000;

/// The number of characters shown before the match.
const SHOWN_BEFORE: usize = 200;

const MAX_CHARACTER_BYTES: usize = 4;

/// Returns a line without white space at its ends, cut around the match that begins at `at`.
///
/// Only the shown part is read, because a line may be as long as a file.
pub(super) fn excerpt(line: &[u8], at: usize) -> String {
    // In a line that is not UTF-8, an empty match may lie inside a character.
    let start = boundary(line, at.saturating_sub(MAX_CHARACTER_BYTES * MAX_SHOWN)).min(at);
    let end = boundary(line, line.len().min(at.saturating_add(MAX_CHARACTER_BYTES * MAX_SHOWN)));
    let before = String::from_utf8_lossy(&line[start..at]);
    let after = String::from_utf8_lossy(&line[at..end]);
    let whole = format!("{before}{after}");
    let trimmed = snippet::trim(&whole);
    if (start, end) == (0, line.len()) && snippet::cut(trimmed, MAX_SHOWN).is_none() {
        return trimmed.to_owned();
    }
    let back = before.char_indices().rev().nth(SHOWN_BEFORE - 1).map_or(0, |(at, _)| at);
    let rest = &whole[back..];
    let text = snippet::cut(rest, MAX_SHOWN).unwrap_or(rest);
    let dots = |is_cut| if is_cut { "…" } else { "" };
    let first = dots(start > 0 || !snippet::trim(&whole[..back]).is_empty());
    let last = dots(end < line.len() || !snippet::trim(&rest[text.len()..]).is_empty());
    format!("{first}{}{last}", snippet::trim(text))
}

fn boundary(line: &[u8], mut at: usize) -> usize {
    for _ in 0..MAX_CHARACTER_BYTES {
        match line.get(at) {
            Some(byte) if byte & 0b1100_0000 == 0b1000_0000 => at += 1,
            _ => break,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_are_whole() {
        assert_eq!(excerpt(b"  a red thing\r\n", 4), "a red thing");
        assert_eq!(excerpt(b"", 0), "");
        assert_eq!(excerpt(b"\xff x", 2), "\u{FFFD} x");
        assert_eq!(excerpt(b"\xbfQu\xe9?", 0), "\u{FFFD}Qu\u{FFFD}?", "a match of nothing");
        assert_eq!(excerpt("é".repeat(MAX_SHOWN).as_bytes(), 0), "é".repeat(MAX_SHOWN));
    }

    #[test]
    fn long_lines_are_cut_around_the_match() {
        for filler in ["x", "é", "語", "😀"] {
            let line = format!("{}needle{}\n", filler.repeat(5000), filler.repeat(5000));
            let text = excerpt(line.as_bytes(), filler.len() * 5000);
            let expected = format!(
                "…{}needle{}…",
                filler.repeat(SHOWN_BEFORE),
                filler.repeat(MAX_SHOWN - SHOWN_BEFORE - "needle".len())
            );
            assert_eq!(text, expected, "{filler}");
        }
        let start = format!("  needle {}", "y".repeat(5000));
        let text = excerpt(start.as_bytes(), 2);
        assert!(text.starts_with("needle") && text.ends_with("y…"), "{text}");
        let end = format!("{} needle  ", "y ".repeat(5000));
        let text = excerpt(end.as_bytes(), 10_001);
        assert!(text.starts_with('…') && text.ends_with("needle"), "{text}");
    }
}
