//! Grams as characters: a document names each gram of its texts once, as one character.
//!
//! So the cluster cuts no texts, looks up each gram of a document once, and keeps at most a million lists
//! for the grams of each length. Pairs and triples of ASCII have characters of their own; other grams may
//! share a character, and then the cluster proposes a few messages too many.
//!
//! Indexes store these characters, so a change needs a new format number.

use verbatim_text::fold::fold;

/// The number of characters for the grams of each length: all characters after U+FFFF.
const CODES: u32 = 1 << 20;

const FIRST: u32 = 0x1_0000;

/// The number of values for the middle letter of a gram of three or five letters. Grams that differ in this
/// letter only have consecutive codes. With fewer values for the middle letter, more values are left for the
/// other letters.
const MIDDLES_OF_THREE: u32 = 128;
const MIDDLES_OF_FIVE: u32 = 8;

/// The number of letters with a value of their own: ASCII without capital letters and without most control
/// characters.
const OWN: u32 = 71;

pub(super) const PAIR: usize = 2;
pub(super) const TRIPLE: usize = 3;
pub(super) const LONG_GRAM: usize = 5;

/// Returns the value of a letter that has one of its own.
fn own_value(letter: char) -> Option<u32> {
    let number = letter as u32;
    match letter {
        '['..='~' => Some(number - 91 + 35),
        ' '..='@' => Some(number - 32 + 2),
        '\t' | '\n' => Some(number - 9),
        _ => None,
    }
}

/// Returns a hash of some letters: a number below `most`.
fn hash(letters: &[char], most: u32) -> u32 {
    let mixed = letters.iter().fold(0_u64, |hash, letter| {
        (hash ^ u64::from(*letter as u32)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    });
    let mixed = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    ((mixed * u64::from(most)) >> 32) as u32
}

/// Returns a number below `most` for two letters. Two ASCII letters share their number with no other
/// letters.
fn pair_value(one: char, other: char, most: u32) -> u32 {
    match own_value(one).zip(own_value(other)) {
        Some((one, other)) => one * OWN + other,
        None => OWN * OWN + hash(&[one, other], most - OWN * OWN),
    }
}

/// Returns the codes of a gram with any letter in the middle: the first code, and how many there are. Does
/// not read the middle letter.
fn codes_with_any_middle(gram: &[char]) -> (u32, u32) {
    let (number, middles) = match *gram {
        [first, _, last] => (pair_value(first, last, CODES / MIDDLES_OF_THREE), MIDDLES_OF_THREE),
        [one, two, _, three, four] => {
            (hash(&[one, two, three, four], CODES / MIDDLES_OF_FIVE), MIDDLES_OF_FIVE)
        }
        _ => (hash(gram, CODES), 1),
    };
    (number * middles, middles)
}

pub(super) fn code(gram: &[char]) -> char {
    if let [one, other] = *gram {
        return code_char(pair_value(one, other, CODES));
    }
    let (first, middles) = codes_with_any_middle(gram);
    let middle = gram[gram.len() / 2];
    let number = match own_value(middle).filter(|_| middles > OWN) {
        Some(number) => number,
        None if middles > OWN => OWN + hash(&[middle], middles - OWN),
        None => hash(&[middle], middles),
    };
    code_char(first + number)
}

/// Returns the characters of a gram of three or five letters with any letter in the middle.
pub(super) fn codes_around(gram: &[char]) -> impl Iterator<Item = char> {
    let (first, middles) = codes_with_any_middle(gram);
    (first..first + middles).map(code_char)
}

fn code_char(number: u32) -> char {
    char::from_u32(FIRST + number).unwrap_or(char::MAX)
}

/// Returns whether a gram of two or three letters may share its character with another gram.
pub(super) fn is_shared(gram: &[char]) -> bool {
    gram.iter().any(|letter| own_value(*letter).is_none())
}

#[derive(Debug)]
pub(super) struct GramSet {
    /// A bit for each code that was met in the current text.
    met: Vec<u64>,
}

impl Default for GramSet {
    fn default() -> GramSet {
        GramSet { met: vec![0; CODES as usize / 64] }
    }
}

impl GramSet {
    /// Returns the characters of the grams of some folded texts, each of them once.
    pub(super) fn collect(&mut self, texts: &[Vec<char>], length: usize) -> String {
        let mut all = String::new();
        for gram in texts.iter().flat_map(|text| text.windows(length)) {
            let code = code(gram);
            let (word, bit) = bit_place(code);
            if self.met[word] & bit == 0 {
                self.met[word] |= bit;
                all.push(code);
            }
        }
        for (word, _) in all.chars().map(bit_place) {
            self.met[word] = 0;
        }
        all
    }
}

fn bit_place(code: char) -> (usize, u64) {
    let number = (code as u32).saturating_sub(FIRST);
    (number as usize / 64, 1 << (number % 64))
}

pub(super) fn fold_text(text: &str) -> Vec<char> {
    text.chars().map(fold).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn of(text: &str) -> char {
        code(&fold_text(text))
    }

    #[test]
    fn grams_of_ascii_have_characters_of_their_own() {
        let letters: Vec<char> = (0..128).map(|it| fold(char::from(it))).collect();
        let own: Vec<char> = letters.into_iter().filter(|it| own_value(*it).is_some()).collect();
        let own: Vec<char> = HashSet::<char>::from_iter(own).into_iter().collect();
        assert_eq!(own.len() as u32, OWN);
        let (mut pairs, mut triples) = (HashSet::new(), HashSet::new());
        for one in &own {
            for two in &own {
                assert!(pairs.insert(code(&[*one, *two])));
                assert!(own.iter().all(|three| triples.insert(code(&[*one, *two, *three]))));
            }
        }
        // Other grams do not have the characters of ASCII grams.
        for other in ['é', '的', '\r', '🦀', '\u{10FFFF}'] {
            assert!(own.iter().all(|it| !pairs.contains(&code(&[*it, other]))));
            assert!(own.iter().all(|it| !triples.contains(&code(&[*it, other, 'a']))));
            assert!(own.iter().all(|it| !triples.contains(&code(&[other, *it, 'a']))));
        }
    }

    #[test]
    fn a_gap_has_the_codes_of_all_letters() {
        for (text, gap) in [("GoN", "g_n"), ("一的g", "一_g"), ("thére", "th_re")] {
            assert!(codes_around(&fold_text(gap)).any(|code| code == of(text)), "{text}");
        }
        assert!(!codes_around(&fold_text("g_n")).any(|code| code == of("gom")));
    }

    #[test]
    fn a_text_names_each_gram_once() {
        let mut grams = GramSet::default();
        for _ in 0..2 {
            let texts = [fold_text("Aaaa"), fold_text("aab")];
            assert_eq!(grams.collect(&texts, TRIPLE), format!("{}{}", of("aaa"), of("aab")));
            assert_eq!(grams.collect(&texts, PAIR), format!("{}{}", of("aa"), of("ab")));
            assert_eq!(grams.collect(&texts, LONG_GRAM), "");
        }
    }
}
