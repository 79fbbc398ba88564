//! Which n-grams of a text are indexed, and which of them a query asks for.
//!
//! Grams are runs of 1 to 8 characters with ASCII letters folded. Of a text are indexed, once each:
//!
//! 1. every trigram;
//! 2. its 1- and 2-grams that are not common;
//! 3. where a trigram is common and ASCII, its extension by the following ASCII characters up to
//!    the first gram that is not common, eight characters at most.
//!
//! What is common is counted in a sample and frozen with an index: any set serves, as long as the
//! texts and the queries are cut with the same one. The longest indexed gram at a position of a
//! query is then seldom common, however common its trigrams are. Indexing the shortest gram that is
//! rare enough is the idea of Cho and Rajagopalan, "A fast regular expression indexing engine"
//! (ICDE 2002).
//!
//! Invariant: a text that a pattern matches holds every gram of [`query_grams`] of that pattern.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    hash::{BuildHasherDefault, Hasher},
};

/// The longest gram, in characters.
pub const LONGEST: usize = 8;

/// A gram, packed so that numeric order is the order of its term's bytes.
///
/// ASCII: one byte a character from the top, zeros after. Others: the top bit, then 21 bits for
/// each of at most three characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gram(pub u64);

const WIDE: u64 = 1 << 63;

impl Gram {
    /// Packs one to three characters, or up to eight if all are ASCII; none may be NUL.
    fn pack(characters: &[char]) -> Gram {
        if characters.iter().all(char::is_ascii) {
            let packed = characters.iter().fold(0, |sum, c| sum << 8 | u64::from(*c as u8));
            Gram(packed << (8 * (LONGEST - characters.len())))
        } else {
            let shift = |place: usize| 42 - 21 * place;
            Gram(
                characters
                    .iter()
                    .enumerate()
                    .fold(WIDE, |sum, (place, c)| sum | u64::from(u32::from(*c)) << shift(place)),
            )
        }
    }

    /// Returns the gram's bytes as a term: ASCII as it is, others as the packed number.
    pub fn term(self, buffer: &mut [u8; 8]) -> &[u8] {
        *buffer = self.0.to_be_bytes();
        if self.0 & WIDE != 0 {
            return &buffer[..];
        }
        let length = LONGEST - self.0.trailing_zeros() as usize / 8;
        &buffer[..length]
    }
}

impl fmt::Display for Gram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 & WIDE == 0 {
            return f.write_str(&String::from_utf8_lossy(self.term(&mut [0; 8])));
        }
        let characters = [42, 21, 0].map(|shift| (self.0 >> shift & 0x1F_FFFF) as u32);
        characters
            .into_iter()
            .filter(|code| *code != 0)
            .try_for_each(|code| write!(f, "{}", char::from_u32(code).unwrap_or('\u{FFFD}')))
    }
}

/// The grams that are common in an index: a prefix of each longer one is in the set too.
#[derive(Clone, Debug, Default)]
pub struct CommonGrams {
    all: HashSet<u64, BuildHasherDefault<Mix>>,
    /// The ASCII grams of one to three characters again, a bit each, for the inner loop.
    short: Vec<u64>,
}

impl CommonGrams {
    /// The share of sampled texts in which a gram is common. At 2 % the index of a million
    /// messages is smallest among the settings whose medians stay below 100 µs.
    pub const SHARE: f64 = 0.02;

    /// Counts the grams of sampled texts; those in [`CommonGrams::SHARE`] of them or more are common.
    pub fn of_sample<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> CommonGrams {
        let total = texts.clone().count();
        let least = ((total as f64 * CommonGrams::SHARE).ceil() as u32).max(2);
        let mut common = CommonGrams::from_packed(&[]);
        for length in 1..LONGEST {
            let mut counts: HashMap<u64, u32, BuildHasherDefault<Mix>> = HashMap::default();
            let mut seen: HashSet<u64, BuildHasherDefault<Mix>> = HashSet::default();
            let mut characters = Vec::new();
            for text in texts.clone() {
                characters.clear();
                characters.extend(text.chars().map(|c| c.to_ascii_lowercase()));
                seen.clear();
                for window in characters.windows(length) {
                    let counts_here = if length <= 3 {
                        !window.contains(&'\0')
                    } else {
                        window.iter().all(|c| c.is_ascii() && *c != '\0')
                            && common.contains(Gram::pack(&window[..length - 1]))
                    };
                    if counts_here {
                        seen.insert(Gram::pack(window).0);
                    }
                }
                for gram in &seen {
                    *counts.entry(*gram).or_default() += 1;
                }
            }
            for (gram, count) in counts {
                if count >= least {
                    common.insert(Gram(gram));
                }
            }
        }
        common
    }

    /// Builds the set from [`CommonGrams::packed`].
    pub fn from_packed(packed: &[u64]) -> CommonGrams {
        let mut common =
            CommonGrams { all: HashSet::default(), short: vec![0; 3 * (1 << 21) / 64] };
        for gram in packed {
            common.insert(Gram(*gram));
        }
        common
    }

    /// Returns the set as numbers, sorted.
    pub fn packed(&self) -> Vec<u64> {
        let mut packed: Vec<u64> = self.all.iter().copied().collect();
        packed.sort_unstable();
        packed
    }

    fn insert(&mut self, gram: Gram) {
        self.all.insert(gram.0);
        let bytes = gram.0.to_be_bytes();
        if gram.0 & WIDE == 0 && bytes[3] == 0 {
            let length = 3 - gram.0.trailing_zeros().saturating_sub(40) as usize / 8;
            let place = short_place(bytes[0], bytes[1], bytes[2], length);
            self.short[place / 64] |= 1 << (place % 64);
        }
    }

    fn contains(&self, gram: Gram) -> bool {
        self.all.contains(&gram.0)
    }

    fn contains_short(&self, a: u8, b: u8, c: u8, length: usize) -> bool {
        let place = short_place(a, b, c, length);
        self.short[place / 64] >> (place % 64) & 1 == 1
    }
}

/// The bit of an ASCII gram of one to three characters.
fn short_place(a: u8, b: u8, c: u8, length: usize) -> usize {
    (length - 1) << 21 | usize::from(a) << 14 | usize::from(b) << 7 | usize::from(c)
}

/// Cuts texts into the grams that are indexed, each once a text.
#[derive(Debug, Default)]
pub struct Cutter {
    folded: Vec<u8>,
    characters: Vec<char>,
    /// Open addressing over the grams already given, cleared for each text.
    seen: Vec<u64>,
    given: usize,
}

impl Cutter {
    /// Calls `emit` with every gram of the text that is indexed, in no particular order.
    ///
    /// The texts given in one call count as one: a gram that is in several is given once.
    pub fn cut(&mut self, texts: &[&str], common: &CommonGrams, mut emit: impl FnMut(Gram)) {
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        self.seen.clear();
        self.seen.resize((bytes * 2).next_power_of_two().clamp(256, 1 << 14), 0);
        self.given = 0;
        for text in texts {
            self.folded.clear();
            self.folded.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
            if text.is_ascii() {
                self.cut_ascii(common, &mut emit);
            } else {
                self.characters.clear();
                self.characters.extend(text.chars().map(|c| c.to_ascii_lowercase()));
                self.cut_wide(common, &mut emit);
            }
        }
    }

    fn cut_ascii(&mut self, common: &CommonGrams, emit: &mut impl FnMut(Gram)) {
        let folded = std::mem::take(&mut self.folded);
        // Eight bytes from each position, zeros beyond the end.
        let mut ahead = [0; 8];
        for at in 0..folded.len() {
            let eight = match folded.get(at..at + 8) {
                Some(eight) => u64::from_be_bytes(eight.try_into().expect("eight bytes")),
                None => {
                    ahead.fill(0);
                    ahead[..folded.len() - at].copy_from_slice(&folded[at..]);
                    u64::from_be_bytes(ahead)
                }
            };
            self.cut_ascii_at(eight, (folded.len() - at).min(LONGEST), common, emit);
        }
        self.folded = folded;
    }

    /// Gives the grams that begin at a position, of whose characters the next `length` are ASCII.
    #[inline]
    fn cut_ascii_at(
        &mut self,
        eight: u64,
        length: usize,
        common: &CommonGrams,
        emit: &mut impl FnMut(Gram),
    ) {
        let [a, b, c, ..] = eight.to_be_bytes();
        let first = |characters: usize| Gram(eight & !(u64::MAX >> (8 * characters - 1) >> 1));
        if !common.contains_short(a, 0, 0, 1) {
            self.give(first(1), emit);
        }
        if length < 2 {
            return;
        }
        if !common.contains_short(a, b, 0, 2) {
            self.give(first(2), emit);
        }
        if length < 3 {
            return;
        }
        self.give(first(3), emit);
        if !common.contains_short(a, b, c, 3) {
            return;
        }
        for characters in 4..=length {
            if characters == LONGEST || !common.contains(first(characters)) {
                self.give(first(characters), emit);
                return;
            }
        }
    }

    fn cut_wide(&mut self, common: &CommonGrams, emit: &mut impl FnMut(Gram)) {
        let characters = std::mem::take(&mut self.characters);
        let mut ascii_ahead = 0;
        // Backwards, so that the length of the ASCII run ahead is at hand.
        for at in (0..characters.len()).rev() {
            ascii_ahead = if characters[at].is_ascii() { ascii_ahead + 1 } else { 0 };
            let length = LONGEST.min(ascii_ahead);
            if length > 0 {
                let eight = Gram::pack(&characters[at..at + length]).0;
                self.cut_ascii_at(eight, length, common, emit);
            }
            for length in length + 1..=3.min(characters.len() - at) {
                let gram = Gram::pack(&characters[at..at + length]);
                if length == 3 || !common.contains(gram) {
                    self.give(gram, emit);
                }
            }
        }
        self.characters = characters;
    }

    #[inline]
    fn give(&mut self, gram: Gram, emit: &mut impl FnMut(Gram)) {
        if note(&mut self.seen, gram.0) {
            emit(gram);
            self.given += 1;
            if self.given * 2 > self.seen.len() {
                let mut wider = vec![0; self.seen.len() * 4];
                for known in self.seen.iter().filter(|known| **known != 0) {
                    note(&mut wider, *known);
                }
                self.seen = wider;
            }
        }
    }
}

/// Puts a gram into a table of open addressing; returns whether it is new there.
#[inline]
fn note(table: &mut [u64], gram: u64) -> bool {
    let mask = table.len() - 1;
    let mut slot = mix(gram) as usize & mask;
    loop {
        match table[slot] {
            0 => {
                table[slot] = gram;
                return true;
            }
            known if known == gram => return false,
            _ => slot = (slot + 1) & mask,
        }
    }
}

/// Returns the grams that every text matching the pattern holds, the longest indexed at each
/// position of each run between wildcards, sorted, each once.
///
/// Empty where nothing in the pattern is indexed: then any text may match.
pub fn query_grams(pattern: &str, common: &CommonGrams) -> Vec<Gram> {
    let mut grams = Vec::new();
    for run in pattern.split(['%', '_']) {
        let run: Vec<char> = run.chars().map(|c| c.to_ascii_lowercase()).collect();
        if (1..3).contains(&run.len()) {
            let gram = Gram::pack(&run);
            if !common.contains(gram) {
                grams.push(gram);
            }
        }
        for at in 0..run.len().saturating_sub(2) {
            grams.push(longest_at(&run[at..], common));
        }
    }
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// A single `_` of a pattern with the characters beside it, ASCII letters folded.
///
/// Whatever character stands for it makes a run with them, and of such runs every gram is known
/// but for that character: there are so few that occur that the messages holding one of them can
/// be told from the posting lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    left: Vec<char>,
    right: Vec<char>,
}

/// Returns the gaps of a pattern that have characters on both sides.
pub fn gaps(pattern: &str) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for part in pattern.split('%') {
        let runs: Vec<Vec<char>> = part
            .split('_')
            .map(|run| run.chars().map(|c| c.to_ascii_lowercase()).collect())
            .collect();
        for pair in runs.windows(2) {
            if !pair[0].is_empty() && !pair[1].is_empty() {
                let left = pair[0][pair[0].len().saturating_sub(2)..].to_vec();
                let right = pair[1][..pair[1].len().min(LONGEST)].to_vec();
                gaps.push(Gap { left, right });
            }
        }
    }
    gaps
}

impl Gap {
    /// Returns the indexed grams that a text holds if this character fills the gap.
    pub fn filled(&self, character: char, common: &CommonGrams) -> Vec<Gram> {
        let run: Vec<char> = self
            .left
            .iter()
            .copied()
            .chain([character])
            .chain(self.right.iter().copied())
            .collect();
        let last = self.left.len().min(run.len() - 3);
        (0..=last).map(|at| longest_at(&run[at..], common)).collect()
    }

    /// Returns the packed trigrams between which all lie that the last characters before the gap
    /// and one that is not ASCII begin; the second is beyond the last.
    pub fn wide_range(&self) -> (Gram, Gram) {
        let mut start = self.left.clone();
        start.push('\u{80}');
        let mut end = self.left.clone();
        end.push(char::MAX);
        // ASCII before a wide character makes a wide gram: pack them as one.
        let (start, end) = (Gram::pack(&start[..start.len().min(3)]), Gram::pack(&end));
        (start, Gram(end.0 | if self.left.len() == 1 { 0x1F_FFFF } else { 0 }))
    }

    /// Returns the character at the gap of a packed trigram in [`Gap::wide_range`].
    pub fn filling(&self, gram: Gram) -> Option<char> {
        let shift = 42 - 21 * self.left.len();
        char::from_u32((gram.0 >> shift & 0x1F_FFFF) as u32)
    }
}

/// Returns the longest indexed gram at the start of a run of three characters or more.
fn longest_at(run: &[char], common: &CommonGrams) -> Gram {
    let trigram = Gram::pack(&run[..3]);
    let ascii = run.iter().take(LONGEST).take_while(|c| c.is_ascii()).count();
    if ascii < 3 || !common.contains(trigram) {
        return trigram;
    }
    (4..=ascii)
        .map(|length| (length, Gram::pack(&run[..length])))
        .find(|(length, gram)| *length == LONGEST || !common.contains(*gram))
        .map_or(trigram, |(_, gram)| gram)
}

#[inline]
fn mix(key: u64) -> u64 {
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}

/// Hashes packed grams, which are already well-spread integers but for their low zeros.
#[derive(Clone, Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = mix(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gram(text: &str) -> Gram {
        Gram::pack(&text.chars().collect::<Vec<_>>())
    }

    fn cut(text: &str, common: &CommonGrams) -> Vec<Gram> {
        let mut grams = Vec::new();
        Cutter::default().cut(&[text], common, |gram| grams.push(gram));
        grams.sort_unstable();
        grams
    }

    fn common(grams: &[&str]) -> CommonGrams {
        CommonGrams::from_packed(&grams.iter().map(|text| gram(text).0).collect::<Vec<_>>())
    }

    #[test]
    fn packed_order_is_term_order() {
        let mut texts = ["a", "ab", "abc", "abcdefgh", "b", "é", "éa", "aé", "日本語", "日", "~"];
        texts.sort_by_key(|text| gram(text));
        let terms: Vec<Vec<u8>> =
            texts.iter().map(|text| gram(text).term(&mut [0; 8]).to_vec()).collect();
        assert!(terms.is_sorted());
        assert_eq!(gram("abc").term(&mut [0; 8]), b"abc");
        assert_eq!(gram("abcdefgh").term(&mut [0; 8]), b"abcdefgh");
    }

    #[test]
    fn common_grams_give_way_to_longer_ones() {
        let set = common(&["t", "h", "th", "the", "the "]);
        let expected = ["the", "the x", "he", "he ", "e", "e ", "e x", " ", " x", "x"];
        let mut expected: Vec<Gram> = expected.iter().map(|text| gram(text)).collect();
        expected.sort_unstable();
        assert_eq!(cut("The x", &set), expected);
        assert_eq!(query_grams("THE X", &set), [gram("e x"), gram("he "), gram("the x")]);
        assert_eq!(query_grams("the", &set), [gram("the")]);
        assert_eq!(query_grams("t%h", &set), []);
        assert_eq!(query_grams("th_x", &set), [gram("x")]);
    }

    #[test]
    fn other_scripts_are_cut_by_characters() {
        let set = common(&[]);
        let mut expected: Vec<Gram> =
            ["日", "日本", "日本a", "本", "本a", "a"].iter().map(|text| gram(text)).collect();
        expected.sort_unstable();
        assert_eq!(cut("日本A", &set), expected);
    }

    #[test]
    fn a_sample_tells_what_is_common() {
        let texts: Vec<String> = (0..100).map(|n| format!("the word {n} 的")).collect();
        let set = CommonGrams::of_sample(texts.iter().map(String::as_str));
        for text in ["t", "the", "the wor", " 的", "的"] {
            assert!(set.contains(gram(text)), "{text}");
        }
        assert!(!set.contains(gram("word 37")));
        assert_eq!(CommonGrams::from_packed(&set.packed()).packed(), set.packed());
    }
}
