//! Finds the passage of a text that answers best. A passage is short enough to be read at a glance.

use std::ops::Range;

use verbatim_text::excerpt::{self, Room, characters};
use verbatim_text::words::{Token, Tokenizer, grams, tokens};
use verbatim_text::{matcher::Matchers, snippet, up_to};

pub(crate) const LENGTH: usize = 300;

/// Number of bytes of a text that are searched for terms in one step.
const PIECE: usize = 1 << 20;

/// Number of bytes that are searched after the best range so far, for a better range.
const MOST_BEYOND: usize = 16 << 20;

/// Returns the first place of a concept in a text.
pub(crate) fn span_of(text: &str, concept: &Matchers) -> Option<Range<usize>> {
    concept.first_spans(text, 1).into_iter().find(|span| !span.is_empty())
}

/// Returns the largest total weight of terms in a range of a trimmed text that is at most as long as a
/// passage, and this range; `None` if the first `most` bytes contain no term. In a long text, the first
/// range with half of the weight of all terms is good enough.
pub(crate) fn heaviest_place(
    text: &str,
    terms: &[(String, f32)],
    cutter: &Tokenizer,
    most: usize,
) -> Option<(f32, Range<usize>)> {
    let text = up_to(text, most);
    let enough = terms.iter().map(|(_, weight)| weight).sum::<f32>() / 2.0;
    let mut best: Option<(f32, Range<usize>)> = None;
    let mut start = 0;
    while start < text.len() {
        let piece = piece(&text[start..]);
        if let Some((weight, range)) = heaviest(piece, terms, cutter)
            && best.as_ref().is_none_or(|(most, _)| weight > *most)
        {
            best = Some((weight, start + range.start..start + range.end));
        }
        start += piece.len();
        if let Some((weight, range)) = &best
            && (*weight >= enough || start - range.start > MOST_BEYOND)
        {
            break;
        }
    }
    best
}

/// Returns the beginning of a text that is searched in one step. It ends at a space if possible.
fn piece(text: &str) -> &str {
    let piece = up_to(text, PIECE);
    match piece.rfind(char::is_whitespace) {
        Some(space) if piece.len() < text.len() && space > PIECE / 2 => &piece[..space],
        _ => piece,
    }
}

/// Returns the largest total weight of terms within the length of a passage, and the range; `None` if
/// the text has no term.
fn heaviest(
    text: &str,
    terms: &[(String, f32)],
    cutter: &Tokenizer,
) -> Option<(f32, Range<usize>)> {
    let marks = marks(text, terms, cutter);
    // A letter takes at least one byte, so the range has at most as many letters as a passage.
    let reach = LENGTH * 3 / 4;
    let mut best: Option<(f32, Range<usize>)> = None;
    let mut counts = vec![0u32; terms.len()];
    let mut sum = 0.0;
    let mut first = 0;
    for (at, term) in &marks {
        if counts[*term] == 0 {
            sum += terms[*term].1;
        }
        counts[*term] += 1;
        while marks[first].0 + reach < *at {
            let left = marks[first].1;
            counts[left] -= 1;
            if counts[left] == 0 {
                sum -= terms[left].1;
            }
            first += 1;
        }
        if sum > best.as_ref().map_or(0.0, |(weight, _)| *weight) + 1e-6 {
            best = Some((sum, marks[first].0..*at));
        }
    }
    best
}

/// Returns the passage around a range of a trimmed text. Returns all of a short text.
pub(crate) fn passage_around(text: &str, range: Range<usize>) -> String {
    let text = snippet::trim(text);
    // The range is in the middle, if there is as much text.
    let before = LENGTH.saturating_sub(text[range.clone()].chars().count()) / 2;
    let room = Room { all: LENGTH, before, is_filled: true, is_one_line: false };
    excerpt::text_around(text, Some(range), room, characters)
}

/// Returns the passage around a range of a text that is not trimmed.
pub(crate) fn around_span(text: &str, span: Range<usize>) -> String {
    let trimmed = snippet::trim(text);
    let before = trimmed.as_ptr().addr() - text.as_ptr().addr();
    let [start, end] =
        [span.start, span.end].map(|at| at.saturating_sub(before).min(trimmed.len()));
    passage_around(trimmed, start..end)
}

/// Divides a text into chunks of about half the length of a passage. Chunks end at the end of a sentence
/// or a line if possible.
pub(crate) fn chunks(text: &str) -> Vec<Range<usize>> {
    let mut chunks = Vec::new();
    let mut start = 0;
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        let is_end = matches!(character, '.' | '!' | '?' | '\n' | '。' | '！' | '？');
        if is_end && end - start > LENGTH / 4 || end - start > LENGTH {
            chunks.push(start..end);
            start = end;
        }
    }
    if start < text.len() {
        chunks.push(start..text.len());
    }
    chunks
}

/// Returns the offset of each occurrence of a term, with the position of the term in `terms`.
fn marks(text: &str, terms: &[(String, f32)], cutter: &Tokenizer) -> Vec<(usize, usize)> {
    let mut marks = Vec::new();
    let mut mark = |at: &str, term: &str| {
        if let Some(place) = terms.iter().position(|(known, _)| known == term) {
            marks.push((at.as_ptr().addr() - text.as_ptr().addr(), place));
        }
    };
    tokens(text, |token| match token {
        Token::Word(word) => cutter.word(word, &mut |term| mark(word, term)),
        Token::Run(run) => drop(grams(run, &mut |gram: &str| mark(gram, gram))),
    });
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(text: &str, terms: &[(String, f32)]) -> String {
        let place = heaviest_place(snippet::trim(text), terms, &Tokenizer::default(), usize::MAX);
        passage_around(text, place.map_or(0..0, |(_, range)| range))
    }

    fn terms(text: &str) -> Vec<(String, f32)> {
        Tokenizer::default().question(text).into_iter().map(|term| (term, 1.0)).collect()
    }

    #[test]
    fn the_place_with_most_terms_is_shown() {
        let filler = "nothing to see here at all, ".repeat(40);
        let text = format!("a turtle. {filler} The turtle swam over the reef. {filler}");
        let found = passage(&text, &terms("turtles reef"));
        assert!(found.contains("The turtle swam over the reef."), "{found}");
        assert!(found.starts_with('…') && found.ends_with('…'));
        assert!((200..=LENGTH + 2).contains(&found.chars().count()), "{}", found.chars().count());
        let found = passage(&text, &terms("absent"));
        assert!(found.starts_with("a turtle. nothing") && found.ends_with('…'));
        let found = passage("  short \n", &terms("x"));
        assert_eq!(found, "short");
        let text = format!("{}東京タワーへ行く{}", "犬".repeat(500), "猫".repeat(500));
        let found = passage(&text, &terms("東京タワー"));
        let far = format!("{}The turtle swam.", "nothing at all ".repeat(PIECE / 12));
        let place = |most| heaviest_place(&far, &terms("turtle"), &Tokenizer::default(), most);
        assert!(far[place(usize::MAX).unwrap().1.start..].starts_with("turtle"));
        assert_eq!(place(PIECE), None);
        assert!(found.contains("東京タワーへ行く") && found.chars().count() <= LENGTH + 2);
    }
}
