//! Excerpts of any text, around any matches, for any room.

use std::ops::Range;

use proptest::{collection::vec, prelude::*, sample::select};
use unicode_segmentation::UnicodeSegmentation;

use super::cases;
use verbatim_text::{
    excerpt::{ELLIPSIS, Piece, Room, around, characters, columns, part, pieces, start},
    snippet,
};

/// Words, white space, clusters of several characters, wide and invisible characters, and text from right to left.
const PARTS: &[&str] = &[
    "a",
    "word",
    "https://a.example/long/path?and=more",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\u{3000}",
    "é",
    "e\u{301}",
    "\u{301}",
    "日本語",
    "。",
    "👨\u{200D}👩\u{200D}👧",
    "🇫🇷",
    "👍🏽",
    "❤\u{FE0F}",
    "\u{200B}",
    "\u{1b}",
    "\u{202E}",
    "क्षि",
    "각",
    "שלום",
    "مرحبا",
    "…",
];

fn weight(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 2 } else { 7 }).sum()
}

const MEASURES: [fn(&str) -> usize; 3] = [columns, characters, weight];

/// Returns spans in order from places in a text.
fn spans_of(text: &str, places: &[usize]) -> Vec<Range<usize>> {
    let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut chosen: Vec<usize> = places.iter().map(|place| ends[place % ends.len()]).collect();
    ends.clear();
    chosen.sort_unstable();
    chosen.chunks_exact(2).map(|ends| ends[0]..ends[1]).collect()
}

fn boundaries(text: &str) -> Vec<usize> {
    text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect()
}

/// Returns the sum of the measures of the characters of a text as it is shown.
fn size(text: &str, is_one_line: bool, measure: impl Fn(&str) -> usize) -> usize {
    let shown = pieces(text, 0..text.len(), &[], is_one_line);
    shown.iter().flat_map(|piece| piece.text.graphemes(true)).map(measure).sum()
}

proptest! {
    #![proptest_config(cases::config(3_000))]

    #[test]
    fn an_excerpt_has_room_and_shows_the_match(
        text in vec(select(PARTS), 0..30).prop_map(|parts| parts.concat()),
        places in vec(0_usize..200, 0..7),
        all in 0_usize..60,
        before in 0_usize..60,
        is_filled: bool,
        is_one_line: bool,
        unit in 0_usize..3,
    ) {
        let measure = MEASURES[unit];
        let spans = spans_of(&text, &places);
        let room = Room { all, before, is_filled, is_one_line };
        let part = part(&text, spans.first().cloned(), room, measure);
        let Range { start: from, end: to } = part.range;
        let ends = boundaries(&text);
        prop_assert!(from <= to && ends.contains(&from) && ends.contains(&to), "{part:?}");

        let dots = usize::from(part.is_cut_before) + usize::from(part.is_cut_after);
        let taken = size(&text[from..to], is_one_line, measure) + dots * measure(ELLIPSIS);
        prop_assert!(taken <= all, "{taken} of {all}: {part:?}");

        // Everything is shown if it has room.
        let blank = text.len() - text.trim_start().len();
        let is_in_text = spans.first().is_none_or(|first| first.start >= blank);
        if is_in_text && before >= all && size(&text, false, measure) <= all {
            prop_assert!(!part.is_cut_before && !part.is_cut_after, "{part:?}");
        }
        if let Some(first) = spans.first() {
            let whole = ends.iter().rev().find(|end| **end <= first.start).unwrap();
            let whole = *whole..*ends.iter().find(|end| **end >= first.end).unwrap();
            // White space at the beginning of a line takes room, and is not shown.
            let frame = 2 * measure(ELLIPSIS) + measure(" ");
            let needed = size(&text[whole.clone()], is_one_line, measure) + frame;
            if needed <= all {
                prop_assert!(from <= whole.start && whole.end <= to, "{part:?} of {whole:?}");
            }
            let lead = size(&text[from.min(whole.start)..whole.start], is_one_line, measure);
            prop_assert!(is_filled || lead <= before + measure(" "), "{lead}: {part:?}");
        }

        if from < to {
            let is_left_out =
                |rest: &str| !if is_one_line { snippet::trim(rest) } else { rest }.is_empty();
            prop_assert_eq!(part.is_cut_before, is_left_out(&text[..from]));
            prop_assert_eq!(part.is_cut_after, is_left_out(&text[to..]));
        }
        let of_part = pieces(&text, from..to, &spans, false);
        let joined: String = of_part.iter().map(|piece| piece.text.as_str()).collect();
        prop_assert_eq!(&joined, &text[from..to]);
        let mut at = from;
        for piece in &of_part {
            at += piece.text.len();
            prop_assert!(ends.contains(&at), "{of_part:?}");
        }
        let line = pieces(&text, from..to, &spans, true);
        let line: String = line.iter().map(|piece| piece.text.as_str()).collect();
        prop_assert!(line.split_whitespace().eq(joined.split_whitespace()), "{line:?}");
        let letters: Vec<&str> = line.graphemes(true).collect();
        prop_assert!(!letters.windows(2).any(|two| two == [" ", " "]), "{line:?}");
    }

    #[test]
    fn a_beginning_is_the_longest(
        text in vec(select(PARTS), 0..30).prop_map(|parts| parts.concat()),
        most in 0_usize..60,
    ) {
        let begun = start(&text, most, columns);
        let ends = boundaries(&text);
        let fits = |end: &&usize| size(&text[..**end], false, columns) <= most;
        prop_assert_eq!(Some(&begun.len()), ends.iter().rfind(fits));
    }
}

fn shown(text: &str, word: &str, room: Room) -> String {
    let spans: Vec<Range<usize>> =
        text.match_indices(word).map(|(at, word)| at..at + word.len()).collect();
    let spans = if word.is_empty() { &[][..] } else { &spans };
    let marked = |piece: Piece| {
        if piece.is_match { format!("[{}]", piece.text) } else { piece.text }
    };
    around(text, spans, room, columns).into_iter().map(marked).collect()
}

#[test]
fn lines() {
    let line = |text: &str, word: &str, columns| shown(text, word, Room::line(columns));
    assert_eq!(line(" a b\n\n  c d ", "c", 40), "a b [c] d");
    let long = format!("{}needle {}", "before ".repeat(50), "after ".repeat(50));
    assert_eq!(line(&long, "needle", 40), "…before [needle] after after after…");
    assert_eq!(line(&long, "", 20), "before before…");
    assert_eq!(line("one two needle", "needle", 14), "one two [needle]");
    assert_eq!(line("日本語の質問です", "質問", 12), "…語の[質問]で…");
    assert_eq!(line(&"e\u{301}".repeat(500), "", 10), "e\u{301}".repeat(9) + "…");
    assert_eq!(line("cafe\u{301}s", "e", 40), "caf[e\u{301}]s");
    assert_eq!(line(&"x".repeat(50), "xxxxxxxxxxxxxxxxxxxx", 12), "[xxxxxxxxxxx]…");
    assert_eq!(line("שלום עולם needle שלום", "needle", 12), "…[needle]…");
    assert_eq!(line("a", "", 0), "");
    // Marks without end on one letter take room too.
    assert_eq!(line(&format!("a{}b", "\u{301}".repeat(10_000)), "", 20), "…");
}

#[test]
fn room_that_is_not_filled_keeps_the_match_near_the_beginning() {
    let room = Room { all: 40, before: 10, is_filled: false, is_one_line: false };
    assert_eq!(shown("one two three four\tfive  needle", "needle", room), "…five  [needle]");
}
