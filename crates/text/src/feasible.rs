//! Tells whether a regular expression can match at all, as far as its look-arounds decide it.
//!
//! `$a` and `a\bb` match no text, but a search would read every text to learn that. A look-around depends only
//! on the kinds of the characters before and after a place: its context. So each part of an expression is a
//! relation between the contexts where it begins and the contexts where it ends, as a matrix of bits, and the
//! relation of a sequence is the product of matrices. An expression whose relation is empty matches nothing.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// The kinds of characters that look-arounds tell apart, as bits. An edge of the text counts as a character.
mod kind {
    pub(super) const COUNT: usize = 6;
    pub(super) const EDGE: u8 = 1;
    pub(super) const LINE_FEED: u8 = 2;
    pub(super) const RETURN: u8 = 4;
    pub(super) const ASCII_WORD: u8 = 8;
    pub(super) const WIDE_WORD: u8 = 16;
    pub(super) const OTHER: u8 = 32;
    pub(super) const ALL: u8 = 63;

    /// The kinds of any characters beyond ASCII.
    pub(super) const WIDE: u8 = WIDE_WORD | OTHER;

    pub(super) fn of(character: char) -> u8 {
        match character {
            '\n' => LINE_FEED,
            '\r' => RETURN,
            '_' => ASCII_WORD,
            _ if character.is_ascii_alphanumeric() => ASCII_WORD,
            _ if character.is_ascii() => OTHER,
            _ if regex_syntax::is_word_character(character) => WIDE_WORD,
            _ => OTHER,
        }
    }
}

/// The number of characters beyond ASCII in a class up to which their kinds are looked at.
const MOST_WIDE: usize = 64;

const CONTEXTS: usize = kind::COUNT * kind::COUNT;

/// Returns whether some text may match. The answer true may be wrong.
pub(super) fn may_match(hir: &Hir) -> bool {
    let properties = hir.properties();
    // An expression with an empty class in every way has no length.
    properties.minimum_len().is_some()
        && (properties.look_set().is_empty()
            || Relation::from_hir(hir).0.iter().any(|ends| *ends != 0))
}

/// For each context where a part of an expression may begin, the contexts where it may end, as bits.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Relation([u64; CONTEXTS]);

impl Relation {
    fn from_hir(hir: &Hir) -> Relation {
        match hir.kind() {
            HirKind::Empty => Relation::empty_between(kind::ALL, kind::ALL),
            HirKind::Literal(literal) => {
                let text = String::from_utf8_lossy(&literal.0);
                let mut characters = text.chars();
                let Some(first) = characters.next() else {
                    return Relation::from_hir(&Hir::empty());
                };
                let Some(last) = characters.next_back() else { return Relation::of_char(first) };
                let mut before = Relation::of_char(first);
                if characters.next().is_some() {
                    // Any characters, at least one.
                    before = before.compose(&Relation([(1 << CONTEXTS) - 1; CONTEXTS]));
                }
                before.compose(&Relation::of_char(last))
            }
            HirKind::Class(class) => Relation::one_char(kinds_in_class(class)),
            HirKind::Look(look) => Relation::from_look(*look),
            HirKind::Capture(capture) => Relation::from_hir(&capture.sub),
            HirKind::Concat(parts) => {
                let mut parts = parts.iter().map(Relation::from_hir);
                let first = parts.next().unwrap_or_else(|| Relation::from_hir(&Hir::empty()));
                parts.fold(first, |before, part| before.compose(&part))
            }
            HirKind::Alternation(parts) => {
                let nothing = Relation([0; CONTEXTS]);
                parts.iter().map(Relation::from_hir).fold(nothing, |all, part| all.or(&part))
            }
            HirKind::Repetition(repetition) => {
                let once = Relation::from_hir(&repetition.sub);
                let further = repetition.max.map_or(u32::MAX, |max| max - repetition.min);
                let either = Relation::from_hir(&Hir::empty()).or(&once);
                once.power(repetition.min).compose(&either.power(further))
            }
        }
    }

    /// Returns the relation of no character, at the places between characters of these kinds.
    fn empty_between(before: u8, after: u8) -> Relation {
        let mut relation = Relation([0; CONTEXTS]);
        for (context, ends) in relation.0.iter_mut().enumerate() {
            let is_there = before >> (context / kind::COUNT) & after >> (context % kind::COUNT) & 1;
            *ends = u64::from(is_there) << context;
        }
        relation
    }

    fn of_char(character: char) -> Relation {
        match character {
            // Bytes that are not UTF-8.
            char::REPLACEMENT_CHARACTER => Relation::one_char(kind::WIDE),
            _ => Relation::one_char(kind::of(character)),
        }
    }

    fn one_char(kinds: u8) -> Relation {
        let mut relation = Relation([0; CONTEXTS]);
        for (context, ends) in relation.0.iter_mut().enumerate() {
            let after = context % kind::COUNT;
            if kinds >> after & 1 == 1 {
                *ends = u64::from(kind::ALL) << (after * kind::COUNT);
            }
        }
        relation
    }

    fn from_look(look: Look) -> Relation {
        const LINE_ENDS: u8 = kind::EDGE | kind::LINE_FEED;
        const ASCII: u8 = kind::ASCII_WORD;
        const WORD: u8 = kind::ASCII_WORD | kind::WIDE_WORD;

        const NOT_ASCII: u8 = kind::ALL & !ASCII;
        const NOT_WORD: u8 = kind::ALL & !WORD;

        let places: &[(u8, u8)] = match look {
            Look::Start => &[(kind::EDGE, kind::ALL)],
            Look::End => &[(kind::ALL, kind::EDGE)],
            Look::StartLF => &[(LINE_ENDS, kind::ALL)],
            Look::EndLF => &[(kind::ALL, LINE_ENDS)],
            Look::StartCRLF => &[(LINE_ENDS | kind::RETURN, kind::ALL)],
            Look::EndCRLF => &[(kind::ALL, LINE_ENDS | kind::RETURN)],
            Look::WordAscii => &[(ASCII, NOT_ASCII), (NOT_ASCII, ASCII)],
            Look::WordAsciiNegate => &[(ASCII, ASCII), (NOT_ASCII, NOT_ASCII)],
            Look::WordUnicode => &[(WORD, NOT_WORD), (NOT_WORD, WORD)],
            Look::WordUnicodeNegate => &[(WORD, WORD), (NOT_WORD, NOT_WORD)],
            Look::WordStartAscii => &[(NOT_ASCII, ASCII)],
            Look::WordEndAscii => &[(ASCII, NOT_ASCII)],
            Look::WordStartUnicode => &[(NOT_WORD, WORD)],
            Look::WordEndUnicode => &[(WORD, NOT_WORD)],
            Look::WordStartHalfAscii => &[(NOT_ASCII, kind::ALL)],
            Look::WordEndHalfAscii => &[(kind::ALL, NOT_ASCII)],
            Look::WordStartHalfUnicode => &[(NOT_WORD, kind::ALL)],
            Look::WordEndHalfUnicode => &[(kind::ALL, NOT_WORD)],
        };
        let relations =
            places.iter().map(|(before, after)| Relation::empty_between(*before, *after));
        relations.fold(Relation([0; CONTEXTS]), |all, one| all.or(&one))
    }

    fn or(self, other: &Relation) -> Relation {
        let mut both = self;
        both.0.iter_mut().zip(&other.0).for_each(|(ends, more)| *ends |= more);
        both
    }

    fn compose(&self, next: &Relation) -> Relation {
        Relation(self.0.map(|ends| {
            let contexts = (0..CONTEXTS).filter(|context| ends >> context & 1 == 1);
            contexts.fold(0, |all, context| all | next.0[context])
        }))
    }

    /// Returns the relation of this many parts in sequence, by repeated squaring.
    fn power(self, mut times: u32) -> Relation {
        let mut all = Relation::from_hir(&Hir::empty());
        let mut power = self;
        while times > 0 {
            if times & 1 == 1 {
                all = all.compose(&power);
            }
            let square = power.compose(&power);
            // The powers of a relation that has the empty text soon stop to grow.
            if square == power {
                return all.compose(&power);
            }
            power = square;
            times >>= 1;
        }
        all
    }
}

pub(super) fn class_ranges(class: &Class) -> Vec<(u32, u32)> {
    match class {
        Class::Unicode(class) => {
            class.iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
        Class::Bytes(class) => {
            class.iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
    }
}

fn kinds_in_class(class: &Class) -> u8 {
    let ranges = class_ranges(class);
    let ascii = (0..0x80u8).filter(|byte| {
        ranges.iter().any(|(start, end)| (*start..=*end).contains(&u32::from(*byte)))
    });
    let ascii = ascii.fold(0, |all, byte| all | kind::of(byte.into()));
    let mut wide = ranges.iter().flat_map(|(start, end)| *start.max(&0x80)..=*end);
    let is_text = matches!(class, Class::Unicode(_));
    let few = wide.by_ref().take(MOST_WIDE).collect::<Vec<_>>();
    match wide.next() {
        None if is_text || few.is_empty() => {
            few.into_iter().filter_map(char::from_u32).fold(ascii, |all, it| all | kind::of(it))
        }
        _ => ascii | kind::WIDE,
    }
}

#[cfg(test)]
mod tests {
    use regex_syntax::ParserBuilder;

    use super::*;

    #[test]
    fn what_look_arounds_exclude_matches_nothing() {
        let may = |pattern: &str| {
            let hir = ParserBuilder::new().multi_line(true).utf8(false).build().parse(pattern);
            may_match(&hir.expect("it parses"))
        };
        for pattern in [
            "$a",
            "a^",
            "$t$$^",
            "^ ^ ",
            ".$a.sa.s",
            r"\b\B",
            r"a\bb",
            r"x\Ay",
            "[a&&b]e",
            r"日\b本",
            r"a\zb",
            "(a^)+b",
            r"(?:-\B[a-z]){2}",
            r"[a-z]\b[a-zé]",
            r"é\b{start}",
            r"(a\bb|c^d)e",
            r"\b{start}\b{end}",
            r"(?-u:a\bb)",
            r"a(\b\B)?(^$x)+",
        ] {
            assert!(!may(pattern), "{pattern}");
        }
        for pattern in [
            "a",
            "",
            "^$",
            "$\n^",
            "$.?\n^x",
            "(?s)$.a",
            r"a\b-",
            r"\ba",
            r"\bé",
            r"é\b",
            r"a\Bb",
            r"(a^)*b",
            r"x$\r?",
            r"(?-u:a\b)é",
            r"a\b{end}",
            r"(a\bb)?c",
            r"(\bx\b[- ]){3,}",
            "(?R)a$\r",
            r"\w*\b\W+\b\w",
            r"^\s+$",
            r"a{0}$",
        ] {
            assert!(may(pattern), "{pattern}");
        }
    }

    /// Every short expression that matches some short text may match.
    #[test]
    fn what_matches_may_match() {
        let parts = [
            "a",
            "é",
            "\n",
            " ",
            "^",
            "$",
            r"\b",
            r"\B",
            r"\b{start}",
            r"\b{end-half}",
            r"\W",
            ".",
        ];
        let characters = ["a", "é", "\n", " ", "\r"];
        let mut texts = vec![String::new()];
        for _ in 0..3 {
            let longer = texts.iter().flat_map(|text| characters.map(|it| format!("{text}{it}")));
            texts.extend(longer.collect::<Vec<_>>());
        }
        for number in 0..parts.len().pow(3) {
            let places = (0..3).map(|digit| number / parts.len().pow(digit) % parts.len());
            let pattern: String = places.map(|place| parts[place]).collect();
            let regex = regex::RegexBuilder::new(&pattern).multi_line(true).build();
            let regex = regex.expect("a small expression");
            let hir = ParserBuilder::new().multi_line(true).build().parse(&pattern);
            let matches = texts.iter().any(|text| regex.is_match(text));
            assert!(may_match(&hir.expect("it parses")) >= matches, "{pattern:?}");
        }
    }
}
