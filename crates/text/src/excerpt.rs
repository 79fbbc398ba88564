//! Cuts a text around its first match, for a room in columns, characters or tokens.
//!
//! A cut never splits what a reader sees as one character (a grapheme cluster). It lies between words if a
//! gap is near. Chinese and Japanese have no gaps, so wide characters can be cut apart.

use std::{iter, ops::Range};

use serde::{Deserialize, Serialize};
use unicode_segmentation::GraphemeCursor;
use unicode_width::UnicodeWidthStr;

use crate::{snippet, terminal::is_deceptive};

/// The sign for text that is left out.
pub const ELLIPSIS: &str = "…";

/// The maximum number of characters of a word that is left out so that the cut lies between words.
const WORD: usize = 20;

/// The maximum number of characters per column: some characters take no column at all.
const PER_COLUMN: usize = 8;

/// A piece of a text, which is a match or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Whether the piece is a match.
    #[serde(rename = "m")]
    pub is_match: bool,
    /// The text.
    #[serde(rename = "t")]
    pub text: String,
}

impl Piece {
    /// Returns a piece that is no match.
    pub fn plain(text: &str) -> Piece {
        Piece { is_match: false, text: text.to_owned() }
    }
}

/// The size of an excerpt, in the unit of its measure.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The maximum size of the excerpt with its ellipses.
    pub all: usize,
    /// The maximum size of the text before the match.
    pub before: usize,
    /// Whether more text before the match takes the room that the text after it leaves.
    pub is_filled: bool,
    /// Whether white space is shown, and measured, as single spaces, with none at the ends of the text.
    pub is_one_line: bool,
}

impl Room {
    /// Returns the room of a line. A third of it is for the text before the match.
    pub fn line(all: usize) -> Room {
        Room { all, before: all / 3, is_filled: true, is_one_line: true }
    }
}

/// The part of a text that an excerpt shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcerptPart {
    /// The place in the text.
    pub range: Range<usize>,
    /// Whether text before the part is left out.
    pub is_cut_before: bool,
    /// Whether text after the part is left out.
    pub is_cut_after: bool,
}

impl ExcerptPart {
    /// Returns pieces of this part between the ellipses that it needs.
    pub fn framed(&self, pieces: Vec<Piece>) -> Vec<Piece> {
        let before = self.is_cut_before.then(|| Piece::plain(ELLIPSIS));
        let after = self.is_cut_after.then(|| Piece::plain(ELLIPSIS));
        before.into_iter().chain(pieces).chain(after).collect()
    }
}

/// Returns the number of columns of a text on a terminal, which shows harmful characters as U+FFFD. Many
/// marks on one letter count as more columns than they take.
pub fn columns(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let hidden = text.chars().filter(|c| is_deceptive(*c)).count();
    (text.width() + hidden).max(text.chars().count().div_ceil(PER_COLUMN))
}

/// Returns the number of characters of a text.
pub fn characters(text: &str) -> usize {
    text.chars().count()
}

/// Returns the excerpt of a text around the first of some spans, or the beginning of the text if there are no
/// spans. The spans are in order.
pub fn around(
    text: &str,
    spans: &[Range<usize>],
    room: Room,
    measure: impl Fn(&str) -> usize,
) -> Vec<Piece> {
    let part = part(text, spans.first().cloned(), room, measure);
    part.framed(pieces(text, part.range.clone(), spans, room.is_one_line))
}

/// Returns the text of the excerpt around a match, or of the beginning if there is no match.
pub fn text_around(
    text: &str,
    found: Option<Range<usize>>,
    room: Room,
    measure: impl Fn(&str) -> usize,
) -> String {
    around(text, found.as_slice(), room, measure).into_iter().map(|piece| piece.text).collect()
}

/// Returns the part of a text around a match, or the beginning if there is no match. The measure of a text is
/// the sum of the measures of its characters. If the match has no room, the part is its beginning.
pub fn part(
    text: &str,
    found: Option<Range<usize>>,
    room: Room,
    measure: impl Fn(&str) -> usize,
) -> ExcerptPart {
    let shown = if room.is_one_line { snippet::trim(text) } else { text };
    let start = shown.as_ptr().addr() - text.as_ptr().addr();
    let all = floor(text, start)..ceil(text, start + shown.len());
    let found = found.unwrap_or(all.start..all.start);
    let found = floor(text, found.start)..ceil(text, found.end.max(found.start));
    let all = all.start.min(found.start)..all.end.max(found.end);
    let range = found.start..found.start;
    let mut cutter = Cutter { text, all, range, taken: 0, room, measure };
    if cutter.has_room_for_all(found.start) {
        return ExcerptPart { range: cutter.all, is_cut_before: false, is_cut_after: false };
    }
    cutter.extend_to(found.end);
    if cutter.range.end == found.end {
        cutter.extend_back(room.before);
        cutter.extend_to(cutter.all.end);
        if room.is_filled {
            cutter.extend_back(usize::MAX);
        }
        cutter.end_between_words(&found);
    }
    cutter.part()
}

/// Returns the longest beginning of a text with a measure of at most `most`.
pub fn start(text: &str, most: usize, measure: impl Fn(&str) -> usize) -> &str {
    let mut taken = 0;
    let mut at = 0;
    while at < text.len() {
        let next = after(text, at);
        taken += measure(&text[at..next]);
        if taken > most {
            break;
        }
        at = next;
    }
    &text[..at]
}

/// Returns the pieces of a part of a text. A match that ends within a character is shown with the whole
/// character. White space becomes single spaces if `is_one_line` is set.
pub fn pieces(
    text: &str,
    part: Range<usize>,
    spans: &[Range<usize>],
    is_one_line: bool,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = part.start;
    for span in spans {
        if span.start >= part.end {
            break;
        }
        if span.is_empty() || span.end <= at {
            continue;
        }
        let start = floor(text, span.start).max(at);
        let end = ceil(text, span.end).min(part.end);
        pieces.push(Piece::plain(&text[at..start]));
        pieces.push(Piece { is_match: true, text: text[start..end].to_owned() });
        at = end;
    }
    pieces.push(Piece::plain(&text[at..part.end]));
    pieces.retain(|piece| !piece.text.is_empty());
    if is_one_line { on_one_line(pieces) } else { pieces }
}

/// Returns the pieces with white space as single spaces, and none at the beginning.
pub fn on_one_line(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut is_after_space = true;
    let mut joined = Vec::with_capacity(pieces.len());
    for Piece { is_match, text } in pieces {
        let mut line = String::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let next = after(&text, at);
            let character = &text[at..next];
            let is_space = is_blank(character);
            if !is_space {
                line.push_str(character);
            } else if !is_after_space {
                line.push(' ');
            }
            is_after_space = is_space;
            at = next;
        }
        if !line.is_empty() {
            joined.push(Piece { is_match, text: line });
        }
    }
    joined
}

/// A part of a text that grows until its room is taken.
struct Cutter<'t, M> {
    text: &'t str,
    /// The text that could be shown.
    all: Range<usize>,
    /// The text that is shown.
    range: Range<usize>,
    /// The measure of the text that is shown.
    taken: usize,
    room: Room,
    measure: M,
}

impl<M: Fn(&str) -> usize> Cutter<'_, M> {
    /// Returns whether all of the text has room without ellipses; `found` is the beginning of the match.
    fn has_room_for_all(&self, found: usize) -> bool {
        let most_before = if self.room.is_filled { self.room.all } else { self.room.before };
        let mut taken = 0;
        let mut at = self.all.start;
        let mut is_after_space = false;
        while at < self.all.end {
            let character = &self.text[at..after(self.text, at)];
            taken += self.size(character, is_after_space);
            at += character.len();
            if taken > self.room.all || at <= found && taken > most_before {
                return false;
            }
            is_after_space = is_blank(character);
        }
        true
    }

    fn extend_to(&mut self, end: usize) {
        let Range { start, end: at } = self.range;
        let mut is_after_space = at > start && is_blank(&self.text[before(self.text, at)..at]);
        while self.range.end < end {
            let next = after(self.text, self.range.end);
            let character = &self.text[self.range.end..next];
            let taken = self.taken + self.size(character, is_after_space);
            if !self.fits(start..next, taken) {
                break;
            }
            self.range.end = next;
            self.taken = taken;
            is_after_space = is_blank(character);
        }
    }

    /// Adds text before the range, with a measure of at most `most`.
    fn extend_back(&mut self, most: usize) {
        let most = self.taken.saturating_add(most);
        let Range { start: at, end } = self.range;
        let mut is_before_space = at < end && is_blank(&self.text[at..after(self.text, at)]);
        while self.range.start > self.all.start {
            let next = before(self.text, self.range.start);
            let character = &self.text[next..self.range.start];
            let taken = self.taken + self.size(character, is_before_space);
            if taken > most || !self.fits(next..end, taken) {
                break;
            }
            self.range.start = next;
            self.taken = taken;
            is_before_space = is_blank(character);
        }
    }

    /// Returns the measure of a character beside the range.
    fn size(&self, character: &str, is_beside_space: bool) -> usize {
        if !self.room.is_one_line || !is_blank(character) {
            (self.measure)(character)
        } else if is_beside_space {
            0
        } else {
            (self.measure)(" ")
        }
    }

    /// Returns whether a range has room with its ellipses.
    fn fits(&self, range: Range<usize>, taken: usize) -> bool {
        let cuts =
            usize::from(range.start > self.all.start) + usize::from(range.end < self.all.end);
        taken + cuts * (self.measure)(ELLIPSIS) <= self.room.all
    }

    /// Removes a part of a word at the ends of the range, unless the part is long, and white space.
    fn end_between_words(&mut self, found: &Range<usize>) {
        let text = self.text;
        if self.range.start > self.all.start {
            let starts = iter::successors(Some(self.range.start), |at| {
                (*at < found.start).then(|| after(text, *at))
            });
            let start = self.gap(starts).unwrap_or(self.range.start);
            self.range.start =
                floor(text, found.start - text[start..found.start].trim_start().len());
        }
        if self.range.end < self.all.end {
            let ends = iter::successors(Some(self.range.end), |at| {
                (*at > found.end).then(|| before(text, *at))
            });
            let end = self.gap(ends).unwrap_or(self.range.end);
            self.range.end = ceil(text, found.end + text[found.end..end].trim_end().len());
        }
    }

    /// Returns the first of some places that lies between words. The text up to it is at most as long as a
    /// word, and as a quarter of the room.
    fn gap(&self, places: impl Iterator<Item = usize>) -> Option<usize> {
        let mut last = None;
        let mut left_out = 0;
        for place in places.take(WORD + 1) {
            if let Some(last) = last.replace(place) {
                left_out += (self.measure)(&self.text[place.min(last)..place.max(last)]);
            }
            if left_out > self.room.all / 4 {
                return None;
            }
            let left = &self.text[before(self.text, place)..place];
            let right = &self.text[place..after(self.text, place)];
            if separates(left) || separates(right) {
                return Some(place);
            }
        }
        None
    }

    fn part(self) -> ExcerptPart {
        let cut_before = self.range.start > self.all.start;
        let cut_after = self.range.end < self.all.end;
        // If no character has room, one ellipsis is enough, or nothing.
        let is_nothing = self.range.is_empty();
        let has_room = !is_nothing || (self.measure)(ELLIPSIS) <= self.room.all;
        ExcerptPart {
            range: self.range,
            is_cut_before: cut_before && has_room && !(is_nothing && cut_after),
            is_cut_after: cut_after && has_room,
        }
    }
}

/// Returns whether a character is white space.
fn is_blank(character: &str) -> bool {
    character.chars().all(char::is_whitespace)
}

/// Returns whether a word ends before or after a character: at white space, and at wide characters.
fn separates(character: &str) -> bool {
    is_blank(character) || !character.is_ascii() && character.width() > 1
}

/// Returns the beginning of the character (the grapheme cluster) at a place, or the place itself if one begins
/// there.
fn floor(text: &str, place: usize) -> usize {
    if is_boundary(text, place) { place } else { before(text, place) }
}

/// Returns the end of the character at a place, or the place itself if one ends there.
fn ceil(text: &str, place: usize) -> usize {
    if is_boundary(text, place) { place } else { after(text, place) }
}

fn is_boundary(text: &str, place: usize) -> bool {
    cursor(text, place).is_boundary(text, 0).unwrap_or(true)
}

/// Returns the end of the character that begins at a place.
fn after(text: &str, place: usize) -> usize {
    match &text.as_bytes()[place..] {
        [] => place,
        [first, second, ..] if is_single(*first) && is_single(*second) => place + 1,
        _ => cursor(text, place).next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
    }
}

/// Returns the beginning of the character that ends at a place.
fn before(text: &str, place: usize) -> usize {
    match &text.as_bytes()[..place] {
        [] => 0,
        [.., first, second] if is_single(*first) && is_single(*second) => place - 1,
        _ => cursor(text, place).prev_boundary(text, 0).ok().flatten().unwrap_or(0),
    }
}

/// Returns whether a byte is a character by itself if the byte beside it is one too.
fn is_single(byte: u8) -> bool {
    byte.is_ascii() && byte != b'\r'
}

fn cursor(text: &str, place: usize) -> GraphemeCursor {
    GraphemeCursor::new(place, text.len(), true)
}
