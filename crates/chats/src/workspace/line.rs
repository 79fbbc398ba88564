//! Cuts a line to the shown part.

use verbatim_text::excerpt::{self, Room, characters};

/// The shown part of a line, in characters.
const ROOM: Room = Room { all: 1000, before: 200, is_filled: true, is_one_line: false };

/// The number of bytes to read before and after the match: more than the shown part can have.
const READ: usize = 4 * (ROOM.all + 1);

/// Returns a line without white space at its ends, cut around the match that begins at `at`.
///
/// Only the shown part is read, because a line may be as long as a file.
pub(super) fn excerpt(line: &[u8], at: usize) -> String {
    let start = at.saturating_sub(READ);
    let end = line.len().min(at.saturating_add(READ));
    // In a line that is not UTF-8, an empty match may lie inside a character.
    let before = String::from_utf8_lossy(&line[start..at]);
    let whole = format!("{before}{}", String::from_utf8_lossy(&line[at..end]));
    let text = if start == 0 { whole.trim_start() } else { &whole };
    let found = before.len().saturating_sub(whole.len() - text.len());
    let text = if end == line.len() { text.trim_end() } else { text };
    let found = found.min(text.len());
    excerpt::text_around(text, Some(found..found), ROOM, characters)
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
        assert_eq!(excerpt("é".repeat(ROOM.all).as_bytes(), 0), "é".repeat(ROOM.all));
        let end = format!("{}red", "x".repeat(900));
        assert_eq!(excerpt(end.as_bytes(), 900), end);
    }

    #[test]
    fn long_lines_are_cut_around_the_match() {
        for filler in ["x", "é", "語", "😀"] {
            let line = format!("{}needle{}\n", filler.repeat(5000), filler.repeat(5000));
            let text = excerpt(line.as_bytes(), filler.len() * 5000);
            let expected = format!(
                "…{}needle{}…",
                filler.repeat(ROOM.before),
                filler.repeat(ROOM.all - ROOM.before - "…needle…".chars().count())
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
