//! The loose form of a text, which texts of equal look share: without accents, without differences of width, and
//! with the signs of a keyboard.
//!
//! The loose form is Unicode's form NFKD without marks and without characters that nobody sees. Hangul syllables
//! are composed again, so that a syllable does not match inside another one. `cafe` is the loose form of `café`,
//! `テスト` that of `ﾃｽﾄ`, `don't` that of `don’t`, `strasse` that of `straße`.
//!
//! Invariant: [`LoosePattern`] finds a needle if the text's folded loose form contains the needle's. The text
//! and its [`windows`] have every run of up to eight characters of the folded loose form, but with the signs of
//! the text: they are so many that grams of the typed ones would take space. A query looks up all of equal look.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use unicode_normalization::char::{compose, decompose_compatible, is_combining_mark};

use super::{fold::fold, grams::LONGEST, literal::LiteralPattern};

/// The signs of a keyboard that others look like, and those others. An ASCII character is never among these.
const SIGNS: [(char, &[char]); 5] = [
    ('\'', &['‘', '’', '‚', '‛', '‹', '›', '′', '‵', '´', 'ʹ', 'ʻ', 'ʼ', 'ʽ', '՚', '׳', '❛', '❜']),
    ('"', &['“', '”', '„', '‟', '«', '»', '″', '‶', '〝', '〞', '〟', '״', '❝', '❞']),
    ('-', &['‐', '‑', '‒', '–', '—', '―', '−', '⁃', '˗', '֊', '־', '⸺', '⸻']),
    ('~', &['〜', '∼']),
    ('/', &['⁄', '∕']),
];

/// The end of the table of signs: one more than the last sign of [`SIGNS`], rounded up.
const SIGNS_END: usize = 0x3020;

/// The typed sign of each character that looks like one; 0 for others.
static TYPED: [u8; SIGNS_END] = typed_signs();

const fn typed_signs() -> [u8; SIGNS_END] {
    let mut table = [0; SIGNS_END];
    let mut class = 0;
    while class < SIGNS.len() {
        let mut at = 0;
        while at < SIGNS[class].1.len() {
            table[SIGNS[class].1[at] as usize] = SIGNS[class].0 as u8;
            at += 1;
        }
        class += 1;
    }
    table
}

/// Returns the sign of a keyboard that a character beyond ASCII looks like: `'` for `’`.
#[inline]
fn typed_sign(character: char) -> Option<char> {
    TYPED.get(character as usize).filter(|typed| **typed != 0).map(|typed| char::from(*typed))
}

/// Returns whether other characters look like a character of a keyboard.
pub(super) fn is_sign(typed: char) -> bool {
    !signs_as(typed).is_empty()
}

/// Returns the characters that look like a sign of a keyboard, except itself. Others have none.
pub(super) fn signs_as(typed: char) -> &'static [char] {
    SIGNS.iter().find(|(sign, _)| *sign == typed).map_or(&[], |(_, others)| others)
}

/// Returns the two letters that a letter is a ligature of, if NFKD does not know it.
fn spelled(letter: char) -> Option<&'static str> {
    match letter {
        'ß' => Some("ss"),
        'ẞ' => Some("SS"),
        'æ' => Some("ae"),
        'Æ' => Some("AE"),
        'œ' => Some("oe"),
        'Œ' => Some("OE"),
        _ => None,
    }
}

/// Returns whether nobody sees a character: soft hyphens, characters without width, marks of direction.
fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206F}' | '\u{FEFF}'
    )
}

/// Returns whether a joiner after this character makes another picture of it, as in `👩‍💻`.
fn is_picture(character: char) -> bool {
    matches!(character, '\u{2190}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}')
        && typed_sign(character).is_none()
}

#[derive(Clone, Copy, Debug)]
struct LooseChar {
    character: char,
    /// The range of bytes in the text that make the character, including the marks after it.
    start: usize,
    end: usize,
    /// Whether the text has other characters at this place.
    is_changed: bool,
}

/// What becomes one form besides accents and width.
#[derive(Clone, Copy, Debug)]
struct LooseForm {
    ignore_case: bool,
    /// Whether signs become those of a keyboard.
    types_signs: bool,
}

struct Loosener<F> {
    form: LooseForm,
    last: Option<LooseChar>,
    /// Whether a mark after the last character was left out.
    has_dropped: bool,
    each: F,
}

impl<F: FnMut(LooseChar) -> ControlFlow<()>> Loosener<F> {
    fn run(&mut self, text: &str) -> ControlFlow<()> {
        let mut parts = Vec::new();
        for (start, character) in text.char_indices() {
            let end = start + character.len_utf8();
            if character.is_ascii() || is_syllable(character) {
                self.push(LooseChar { character, start, end, is_changed: false })?;
                continue;
            }
            parts.clear();
            if typed_sign(character).is_some() {
                parts.push(character);
            } else if let Some(letters) = spelled(character) {
                parts.extend(letters.chars());
            } else if !is_unseen(character) || character == '\u{200D}' && self.is_after_picture() {
                decompose_compatible(character, |part| {
                    if !is_combining_mark(part) {
                        parts.push(part);
                    }
                });
            }
            if parts.is_empty() {
                self.has_dropped = true;
                if let Some(last) = &mut self.last {
                    last.end = end;
                }
            }
            for part in &parts {
                let is_changed = *part != character;
                self.push(LooseChar { character: *part, start, end, is_changed })?;
            }
        }
        match self.last.take() {
            Some(last) => self.emit(last),
            None => ControlFlow::Continue(()),
        }
    }

    fn is_after_picture(&self) -> bool {
        self.last.is_some_and(|last| is_picture(last.character))
    }

    fn push(&mut self, mut next: LooseChar) -> ControlFlow<()> {
        next.is_changed |= std::mem::take(&mut self.has_dropped);
        let Some(last) = self.last.replace(next) else { return ControlFlow::Continue(()) };
        if let Some(character) = syllable(last.character, next.character) {
            self.last = Some(LooseChar { character, end: next.end, is_changed: true, ..last });
            return ControlFlow::Continue(());
        }
        self.emit(last)
    }

    fn emit(&mut self, mut next: LooseChar) -> ControlFlow<()> {
        if self.form.ignore_case {
            next.character = fold(next.character);
        }
        if self.form.types_signs {
            next.character = typed_sign(next.character).unwrap_or(next.character);
        }
        (self.each)(next)
    }
}

fn is_syllable(character: char) -> bool {
    ('\u{AC00}'..='\u{D7A3}').contains(&character)
}

/// Returns the composition of two characters: a Hangul syllable, or a vowel of Kirat Rai. All other
/// compositions include marks.
fn syllable(one: char, other: char) -> Option<char> {
    let is_second =
        matches!(other, '\u{1161}'..='\u{1175}' | '\u{11A8}'..='\u{11C2}' | '\u{16D67}');
    if is_second { compose(one, other) } else { None }
}

fn loosen(text: &str, form: LooseForm, each: impl FnMut(LooseChar) -> ControlFlow<()>) {
    let mut loosener = Loosener { form, last: None, has_dropped: false, each };
    let _ = loosener.run(text);
}

/// Returns the loose form of a text, without case if `ignore_case` is set.
pub fn loose(text: &str, ignore_case: bool) -> String {
    let mut loose = String::with_capacity(text.len());
    loosen(text, LooseForm { ignore_case, types_signs: true }, |next| {
        loose.push(next.character);
        ControlFlow::Continue(())
    });
    loose
}

/// Returns short texts of which each text of equal look that does not have `text` itself has one, in any letter
/// case: another sign in the place of one, with what is around it. Texts that differ in their accents and width
/// alone have none of them. Of a text with many signs, only the first count.
pub fn alike(text: &str) -> Vec<String> {
    const AROUND: usize = 16;
    const MOST: usize = 256;
    const MOST_LETTERS: usize = 64;
    /// Where a word may be divided.
    const UNSEEN_IN_WORDS: [char; 2] = ['\u{AD}', '\u{200B}'];

    let characters: Vec<char> = text.chars().collect();
    let mut others = Vec::new();
    // What is at `0..known` has no sign, or is before the last one.
    let mut known = 0;
    let mut at = 0;
    while at < characters.len() && others.len() < MOST {
        let looks = looks_at(&characters, at);
        if looks.is_empty() {
            at += 1;
            continue;
        }
        let before = &characters[known.max(at.saturating_sub(AROUND))..at];
        known = at + if characters[at].eq_ignore_ascii_case(&'s') { 2 } else { 1 };
        // Behind its last other sign, a text is as typed.
        let after: String = characters[known..].iter().take(AROUND).collect();
        let before: String = before.iter().collect();
        others.extend(looks.iter().map(|look| format!("{before}{look}{after}")));
        at = known;
    }
    // A mark that nobody sees may be between any two letters.
    for at in 1..characters.len().min(MOST_LETTERS) {
        let are_letters = characters[at - 1].is_alphabetic() && characters[at].is_alphabetic();
        if are_letters && others.len() < MOST {
            let after: String = characters[at..].iter().take(AROUND).collect();
            let before = characters[at - 1];
            others.extend(UNSEEN_IN_WORDS.map(|mark| format!("{before}{mark}{after}")));
        }
    }
    others
}

/// Returns what may be in the place of a sign, a ligature, the two letters of a sharp s or an unusual space.
fn looks_at(characters: &[char], at: usize) -> Vec<String> {
    let character = characters[at];
    let typed = typed_sign(character).unwrap_or(character);
    if is_sign(typed) {
        let looks = std::iter::once(&typed).chain(signs_as(typed));
        return looks.filter(|look| **look != character).map(char::to_string).collect();
    }
    let is_double_s =
        characters[at..].iter().take(2).filter(|it| it.eq_ignore_ascii_case(&'s')).count() == 2;
    match spelled(character) {
        Some(letters) => vec![letters.to_owned()],
        None if is_double_s => vec!["ß".to_owned()],
        None if is_unseen(character) => vec![String::new()],
        None if character.is_whitespace() && !character.is_ascii() => vec![" ".to_owned()],
        None if character == ' ' => {
            ["\u{A0}", "\u{202F}", "\u{2009}", "\u{3000}"].map(str::to_owned).into()
        }
        None => Vec::new(),
    }
}

/// Returns names of what a text of equal look has in place of the signs of a typed text, each once.
pub fn other_looks(text: &str, typed: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for character in text.chars().filter(|character| !typed.contains(*character)) {
        let is_look = typed_sign(character).is_some() || is_sign(character);
        let name = match character {
            '\u{AD}' => "soft hyphens".to_owned(),
            _ if is_unseen(character) => "characters without width".to_owned(),
            _ if character.is_whitespace() => "other spaces".to_owned(),
            _ if is_look || spelled(character).is_some() => character.to_string(),
            _ => continue,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let letters = typed.chars().filter(|letter| !text.contains(*letter)).filter_map(spelled);
    for letters in letters.map(str::to_lowercase) {
        if text.to_lowercase().contains(&letters) && !names.contains(&letters) {
            names.push(letters);
        }
    }
    names
}

/// Calls `each` with the parts of the folded loose form that differ from the text, with the signs of the text.
/// Each part includes the surrounding characters that may be in the same grams.
pub fn windows<E>(text: &str, mut each: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    /// The number of characters on each side of a changed part that belong to its window.
    const AROUND: usize = LONGEST - 1;
    /// The maximum size of a window in bytes. Windows overlap, so that each gram is whole in one.
    const MOST: usize = 1 << 16;

    if text.is_ascii() {
        return Ok(());
    }
    let mut outcome = Ok(());
    let mut window = String::new();
    let mut before: VecDeque<char> = VecDeque::with_capacity(AROUND + 1);
    // The number of further characters to add to the window.
    let mut left = 0;
    loosen(text, LooseForm { ignore_case: true, types_signs: false }, |next| {
        if next.is_changed {
            if left == 0 {
                window.extend(&before);
            }
            left = AROUND + 1;
        }
        if left > 0 {
            window.push(next.character);
            left -= 1;
        }
        before.push_back(next.character);
        if before.len() > AROUND {
            before.pop_front();
        }
        if !window.is_empty() && (left == 0 || window.len() > MOST) {
            outcome = each(&window);
            window.clear();
            if left > 0 {
                window.extend(&before);
            }
        }
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome?;
    if window.is_empty() { Ok(()) } else { each(&window) }
}

/// Calls `each` with the parts of a text where an ASCII needle of so many characters may be, if the text itself
/// does not have it: around the characters beyond ASCII whose loose form has ASCII characters or is empty.
fn around_ascii_forms(
    text: &str,
    length: usize,
    mut each: impl FnMut(&str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let bytes = text.as_bytes();
    // No match has a character before `wall`. The part that is not passed on yet is at `begun..until`.
    let mut wall = 0;
    let mut begun = 0;
    let mut until = 0;
    let mut at = 0;
    while let Some(ascii) = first_beyond_ascii(&bytes[at..]) {
        let place = at + ascii;
        let character = text[place..].chars().next().unwrap_or_default();
        let after = place + character.len_utf8();
        let may_match = has_ascii_form(character);
        if begun < until && (place >= until || !may_match) {
            each(&text[begun..until.min(place)])?;
            until = begun;
        }
        if !may_match {
            wall = after;
        } else {
            if begun >= until {
                begun = wall.max((place + 1).saturating_sub(length));
            }
            until = (after + length - 1).min(text.len());
        }
        at = after;
    }
    if begun < until { each(&text[begun..until]) } else { ControlFlow::Continue(()) }
}

fn first_beyond_ascii(bytes: &[u8]) -> Option<usize> {
    const STRIDE: usize = 64;

    let start = STRIDE * bytes.chunks(STRIDE).position(|chunk| !chunk.is_ascii())?;
    Some(start + bytes[start..].iter().position(|byte| !byte.is_ascii())?)
}

/// Returns whether the loose form of a character beyond ASCII has an ASCII character, or is empty.
fn has_ascii_form(character: char) -> bool {
    let script = matches!(
        character,
        '\u{391}'..='\u{3CE}' | '\u{400}'..='\u{482}' | '\u{48A}'..='\u{52F}'
            | '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{4E00}'..='\u{9FFF}'
            | '\u{AC00}'..='\u{D7A3}'
    );
    if script {
        return false;
    }
    if typed_sign(character).is_some() || spelled(character).is_some() || is_unseen(character) {
        return true;
    }
    let mut is_empty = true;
    let mut has_ascii = false;
    decompose_compatible(character, |part| {
        is_empty &= is_combining_mark(part);
        has_ascii |= fold(part).is_ascii() || typed_sign(part).is_some();
    });
    is_empty || has_ascii
}

#[derive(Clone, Debug)]
pub(super) struct LooseMatch {
    pub(super) span: Range<usize>,
    /// Whether the match begins and ends between characters, and not inside one such as `ﬁ`.
    pub(super) is_whole: bool,
}

impl LooseMatch {
    /// Makes a match of the last characters, as many as `length`, before the character `next`.
    fn new(last: &VecDeque<LooseChar>, length: usize, next: Option<&LooseChar>) -> LooseMatch {
        let first = last.len() - length;
        let span = last[first].start..last[last.len() - 1].end;
        let begins = first == 0 || last[first - 1].start != span.start;
        let ends = next.is_none_or(|next| next.start >= span.end);
        LooseMatch { span, is_whole: begins && ends }
    }
}

/// A matcher for a text and all texts of equal look.
#[derive(Debug)]
pub struct LoosePattern {
    needle: Vec<char>,
    failure: Vec<usize>,
    form: LooseForm,
    plain: LiteralPattern,
    is_ascii: bool,
}

impl LoosePattern {
    /// Prepares a search for a text. Its loose form must not be empty.
    pub fn new(text: &str, case_sensitive: bool) -> LoosePattern {
        let loose = loose(text, !case_sensitive);
        let needle: Vec<char> = loose.chars().collect();
        LoosePattern {
            failure: super::literal::failure_function(&needle),
            needle,
            form: LooseForm { ignore_case: !case_sensitive, types_signs: true },
            is_ascii: loose.is_ascii(),
            plain: LiteralPattern::new(&loose, case_sensitive),
        }
    }

    /// Returns whether the pattern's text occurs in `text`, which should be UTF-8.
    pub fn matches(&self, text: &[u8]) -> bool {
        if text.is_ascii() {
            return self.is_ascii && self.plain.matches(text);
        }
        // ASCII characters are the same in the loose form.
        if self.is_ascii && self.plain.matches(text) {
            return true;
        }
        let Ok(text) = simdutf8::basic::from_utf8(text) else { return false };
        if !self.is_ascii {
            return self.is_in(text);
        }
        let mut is_found = false;
        let _ = around_ascii_forms(text, self.needle.len().max(1), |part| {
            is_found = self.is_in(part);
            if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        is_found
    }

    fn is_in(&self, text: &str) -> bool {
        let mut is_found = false;
        self.find_all(text, |_| {
            is_found = true;
            ControlFlow::Break(())
        });
        is_found
    }

    /// Returns the byte spans of the first `most` matches in a text. They do not overlap.
    pub fn first_spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        let mut spans: Vec<Range<usize>> = Vec::new();
        self.find_all(text, |found| {
            if spans.len() == most {
                return ControlFlow::Break(());
            }
            if spans.last().is_none_or(|last| last.end <= found.span.start) {
                spans.push(found.span);
            }
            ControlFlow::Continue(())
        });
        spans
    }

    /// Calls `each` with every match, including overlapping matches, until `each` breaks.
    pub(super) fn find_all(&self, text: &str, mut each: impl FnMut(LooseMatch) -> ControlFlow<()>) {
        let length = self.needle.len();
        if length == 0 {
            return;
        }
        let mut matched = 0;
        // The last characters, as many as a match has, and the character before them.
        let mut last: VecDeque<LooseChar> = VecDeque::with_capacity(length + 2);
        // Whether the next character has to show that the match does not end within a character.
        let mut is_pending = false;
        let mut is_over = false;
        loosen(text, self.form, |next| {
            if std::mem::take(&mut is_pending)
                && each(LooseMatch::new(&last, length, Some(&next))).is_break()
            {
                is_over = true;
                return ControlFlow::Break(());
            }
            if matched == length {
                matched = self.failure[matched - 1];
            }
            while matched > 0 && self.needle[matched] != next.character {
                matched = self.failure[matched - 1];
            }
            matched += usize::from(self.needle[matched] == next.character);
            last.push_back(next);
            if last.len() > length + 1 {
                last.pop_front();
            }
            is_pending = matched == length;
            ControlFlow::Continue(())
        });
        if is_pending && !is_over {
            let _ = each(LooseMatch::new(&last, length, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use unicode_normalization::UnicodeNormalization;

    use super::*;
    use crate::bracketed;

    /// Returns the loose form of a whole text, computed directly by its definition.
    fn by_definition(text: &str) -> String {
        let mut form = String::new();
        for character in text.chars() {
            let is_joiner = character == '\u{200D}' && form.ends_with(is_picture);
            match (typed_sign(character), spelled(character)) {
                (Some(sign), _) => form.push(sign),
                (_, Some(letters)) => form.push_str(letters),
                _ if is_unseen(character) && !is_joiner => {}
                _ => form.extend(character.nfkd().filter(|c| !is_combining_mark(*c))),
            }
        }
        form.nfc().map(fold).map(|it| typed_sign(it).unwrap_or(it)).collect()
    }

    #[test]
    fn every_character_has_the_form_of_its_definition() {
        for character in '\0'..='\u{E0FFF}' {
            for text in [format!("{character}"), format!("e{character}\u{301}가{character}ᆨx")] {
                assert_eq!(loose(&text, true), by_definition(&text), "{text:?}");
            }
        }
    }

    #[test]
    fn spans_are_those_of_the_text() {
        for (text, query, expected) in [
            ("un café, CAFE\u{301}S et cafe", "Cafe", "un [café], [CAFE\u{301}]S et [cafe]"),
            ("un cafe", "café", "un [cafe]"),
            ("ﾃｽﾄ テスト ﾃﾞｽﾄ", "テスト", "[ﾃｽﾄ] [テスト] [ﾃﾞｽﾄ]"),
            ("Ｆｕｌｌ width", "full w", "[Ｆｕｌｌ w]idth"),
            ("oﬃce", "fi", "o[ﬃ]ce"),
            ("x² ½", "1⁄2", "x² [½]"),
            ("한국 한국", "한", "[한]국 [한]국"),
            ("한국", "하", "한국"),
            ("aaa\u{301}a", "aa", "[aa][a\u{301}a]"),
            ("Đường đi", "đuong", "[Đường] đi"),
            ("e\u{301}\u{302}\u{303}x", "ex", "[e\u{301}\u{302}\u{303}x]"),
            ("don’t DONʼT don't don`t", "don‘t", "[don’t] [DONʼT] [don't] don`t"),
            ("„so“ ″so‶ «so»", "\"so\"", "[„so“] [″so‶] [«so»]"),
            (
                "a–b a—b a\u{2011}b a−b a－b aーb",
                "a-b",
                "[a–b] [a—b] [a\u{2011}b] [a−b] [a－b] aーb",
            ),
            ("co\u{AD}ope\u{200B}rate\u{AD} x", "cooperate", "[co\u{AD}ope\u{200B}rate\u{AD}] x"),
            ("cooperate", "co\u{AD}operate", "[cooperate]"),
            ("Straße STRASSE STRAẞE", "strasse", "[Straße] [STRASSE] [STRAẞE]"),
            ("Strasse Straße", "straß", "[Strass]e [Straß]e"),
            ("œuvre Æsop", "ae", "œuvre [Æ]sop"),
            ("10\u{A0}km 10\u{202F}km", "10 km", "[10\u{A0}km] [10\u{202F}km]"),
            ("می\u{200C}خواهم", "میخواهم", "[می\u{200C}خواهم]"),
            ("👩\u{200D}💻 👩💻", "👩💻", "👩\u{200D}💻 [👩💻]"),
            ("so…", "so...", "[so…]"),
            ("−\u{200D}x", "-x", "[−\u{200D}x]"),
        ] {
            let pattern = LoosePattern::new(query, false);
            let spans = pattern.first_spans(text, usize::MAX);
            assert_eq!(pattern.matches(text.as_bytes()), !spans.is_empty(), "{text}");
            assert_eq!(bracketed(text, spans), expected, "{query:?}");
        }
        assert!(!LoosePattern::new("Cafe", true).matches("café".as_bytes()));
        assert!(LoosePattern::new("Cafe", true).matches("Café".as_bytes()));
    }

    #[test]
    fn characters_with_ascii_forms_are_known() {
        for character in ('\u{80}'..='\u{E0FFF}').filter(|it| !it.is_ascii()) {
            let form = loose(&character.to_string(), true);
            let has = form.is_empty() || form.contains(|part: char| part.is_ascii());
            assert_eq!(has_ascii_form(character), has, "{character:?} {form:?}");
        }
    }

    #[test]
    fn ascii_needles_are_found_around_other_characters() {
        const PARTS: [&str; 12] = [
            "a",
            "b",
            "ab",
            " ",
            "á",
            "—",
            "日",
            "…",
            "ﬃ",
            "\u{301}",
            "ab\u{212A}a",
            "0123456789 xyz",
        ];
        let mut state = 1_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        for round in 0..20_000 {
            let length = random(9);
            let text: String = (0..length).map(|_| PARTS[random(PARTS.len())]).collect();
            let needle = ["a", "ab", "ba", "bab", "a.", "ffi", "aka", "b a", "9 xyza"][round % 9];
            let pattern = LoosePattern::new(needle, false);
            let expected = loose(&text, true).contains(needle);
            assert_eq!(pattern.matches(text.as_bytes()), expected, "{needle} in {text:?}");
        }
    }

    #[test]
    fn texts_of_equal_look_have_another_sign() {
        for (text, other, names) in [
            ("don't", "I don’t", &["’"][..]),
            ("DON’T", "i don't", &["'"]),
            ("class", "claß", &["ß"]),
            ("Straße", "STRASSE", &["ss"]),
            ("a-b's", "A–B’S", &["–", "’"]),
            ("10\u{A0}km", "10 km", &["other spaces"]),
            ("10 km", "10\u{A0}km", &["other spaces"]),
            ("hyphenation", "hyphen\u{AD}ation", &["soft hyphens"]),
            ("co\u{AD}op", "coop", &[]),
            ("e-mail it's", "e\u{2011}mail it's", &["\u{2011}"]),
        ] {
            let lower = other.to_lowercase();
            assert!(alike(text).iter().any(|it| lower.contains(&it.to_lowercase())), "{text}");
            assert_eq!(
                other_looks(other.trim_start_matches(['I', 'i', ' ']), text),
                names,
                "{text}"
            );
        }
        assert!(alike("s").is_empty() && alike("10.5").is_empty() && alike("ab").len() == 2);
        assert!((256..300).contains(&alike(&"'".repeat(10_000)).len()));
    }

    #[test]
    fn windows_are_around_changes() {
        let mut found = Vec::new();
        let text = "0123456789 é 0123456789, nothing of this at all, ﬁn e\u{301}";
        let _ = windows(text, |window| -> Result<(), ()> {
            found.push(window.to_owned());
            Ok(())
        });
        assert_eq!(found, ["456789 e 012345", "t all, fin e"]);
    }
}
