//! One line as it is shown.

use crate::text::snippet;

/// Characters shown of a line; of a longer one, what surrounds its first match.
const SHOWN: usize = 1000;

/// Characters of these that come before the match.
const BEFORE: usize = 200;

/// The longest encoding of a character.
const CHARACTER: usize = 4;

/// Returns a line without white space at its ends, cut around the match that begins at `at`.
///
/// Reads no more of the line than it shows, because a line may be as long as a file.
pub(super) fn shown(line: &[u8], at: usize) -> String {
    let start = boundary(line, at.saturating_sub(CHARACTER * SHOWN));
    let end = boundary(line, line.len().min(at.saturating_add(CHARACTER * SHOWN)));
    let before = String::from_utf8_lossy(&line[start..at]);
    let after = String::from_utf8_lossy(&line[at..end]);
    let whole = format!("{before}{after}");
    let trimmed = snippet::trim(&whole);
    if (start, end) == (0, line.len()) && snippet::cut(trimmed, SHOWN).is_none() {
        return trimmed.to_owned();
    }
    let back = before.char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    let rest = &whole[back..];
    let text = snippet::cut(rest, SHOWN).unwrap_or(rest);
    let dots = |is_cut| if is_cut { "…" } else { "" };
    let first = dots(start > 0 || !snippet::trim(&whole[..back]).is_empty());
    let last = dots(end < line.len() || !snippet::trim(&rest[text.len()..]).is_empty());
    format!("{first}{}{last}", snippet::trim(text))
}

/// Returns the next place at which a character may begin.
fn boundary(line: &[u8], mut at: usize) -> usize {
    for _ in 0..CHARACTER {
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
        assert_eq!(shown(b"  a red thing\r\n", 4), "a red thing");
        assert_eq!(shown(b"", 0), "");
        assert_eq!(shown(b"\xff x", 2), "\u{FFFD} x");
        assert_eq!(shown("é".repeat(SHOWN).as_bytes(), 0), "é".repeat(SHOWN));
    }

    #[test]
    fn long_lines_are_cut_around_the_match() {
        for filler in ["x", "é", "語", "😀"] {
            let line = format!("{}needle{}\n", filler.repeat(5000), filler.repeat(5000));
            let text = shown(line.as_bytes(), filler.len() * 5000);
            let expected = format!(
                "…{}needle{}…",
                filler.repeat(BEFORE),
                filler.repeat(SHOWN - BEFORE - "needle".len())
            );
            assert_eq!(text, expected, "{filler}");
        }
        let start = format!("  needle {}", "y".repeat(5000));
        let text = shown(start.as_bytes(), 2);
        assert!(text.starts_with("needle") && text.ends_with("y…"), "{text}");
        let end = format!("{} needle  ", "y ".repeat(5000));
        let text = shown(end.as_bytes(), 10_001);
        assert!(text.starts_with('…') && text.ends_with("needle"), "{text}");
    }
}
