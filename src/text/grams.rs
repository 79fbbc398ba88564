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

use super::pattern::Pattern;

/// The longest gram, in characters.
pub const LONGEST: usize = 8;

/// A gram, packed so that numeric order is the order of its term's bytes.
///
/// ASCII: one byte a character from the top, zeros after. Others: the top bit, then 21 bits for
/// each of at most three characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gram(pub u64);

const WIDE: u64 = 1 << 63;

/// Slots of the first count of sampled grams: 4 MiB, some of which stay in the cache.
const SIEVE: usize = 1 << 20;

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
    /// A bit for each slot that a longer gram falls into: nearly all that are not in the set are
    /// told by it alone.
    long: Vec<u64>,
}

impl CommonGrams {
    /// The share of sampled texts in which a gram is common. At 2 % the index of a million
    /// messages is smallest among the settings whose medians stay below 100 µs.
    pub const SHARE: f64 = 0.02;

    /// Counts the grams of sampled texts; those in [`CommonGrams::SHARE`] of them or more are common.
    ///
    /// Level by level as in Agrawal and Srikant's Apriori: a gram can only be common if its
    /// beginning and its end, shorter by a character, both are. So the set is closed under taking
    /// either, which [`GramTokenizer`] relies on.
    pub fn of_sample<'a>(texts: impl Iterator<Item = &'a str>) -> CommonGrams {
        let mut characters: Vec<char> = Vec::new();
        let mut ends = Vec::new();
        for text in texts {
            characters.extend(text.chars().map(|c| c.to_ascii_lowercase()));
            // No gram goes beyond a NUL, so it parts the texts as well.
            characters.push('\0');
            ends.push(characters.len());
        }
        let least = ((ends.len() as f64 * CommonGrams::SHARE).ceil() as u32).max(2);
        let mut common = CommonGrams::from_packed(&[]);
        // How many characters from each place on make a gram that is common, as far as is known.
        let mut level: Vec<u8> = characters.iter().map(|_| 0).collect();
        for length in 1..LONGEST {
            let shorter = (length - 1) as u8;
            let candidate = |level: &[u8], at: usize| {
                let gram = characters.get(at..at + length)?;
                let may_be = level[at] == shorter
                    && (length == 1 || level[at + 1] >= shorter)
                    && gram[length - 1] != '\0'
                    && (length <= 3 || gram.iter().all(char::is_ascii));
                may_be.then(|| Gram::pack(gram))
            };
            // Most grams are rare, and their table would be large: a first count, of whatever falls
            // together in a slot, passes over nearly all of them.
            let mut sieve = vec![0u32; SIEVE];
            let slot = |gram: Gram| mix(gram.0) as usize % SIEVE;
            for gram in (0..characters.len()).filter_map(|at| candidate(&level, at)) {
                sieve[slot(gram)] += 1;
            }
            // Each gram with the number of texts that hold it, and the last of them.
            let mut counts: HashMap<u64, (u32, u32), BuildHasherDefault<Mix>> = HashMap::default();
            let mut start = 0;
            for (text, end) in (1..).zip(&ends) {
                for gram in (start..*end).filter_map(|at| candidate(&level, at)) {
                    if sieve[slot(gram)] < least {
                        continue;
                    }
                    let (count, last) = counts.entry(gram.0).or_default();
                    *count += u32::from(*last != text);
                    *last = text;
                }
                start = *end;
            }
            for (gram, (count, _)) in counts {
                if count >= least {
                    common.insert(Gram(gram));
                }
            }
            for at in (0..characters.len()).rev() {
                if candidate(&level, at).is_some_and(|gram| common.contains(gram)) {
                    // The next place has its new level already, which is no less than it was.
                    level[at] = length as u8;
                }
            }
        }
        common
    }

    /// Builds the set from [`CommonGrams::packed`].
    pub fn from_packed(packed: &[u64]) -> CommonGrams {
        let mut common = CommonGrams {
            all: HashSet::default(),
            short: vec![0; (1 << 21) / 64],
            long: vec![0; SLOTS / 64],
        };
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
        if gram.0 & (WIDE | 0xFF_FFFF_FFFF) == 0 {
            let place = short_place(gram);
            self.short[place / 64] |= 1 << (place % 64);
        } else {
            let slot = long_slot(gram);
            self.long[slot / 64] |= 1 << (slot % 64);
        }
    }

    #[inline]
    fn contains(&self, gram: Gram) -> bool {
        if gram.0 & (WIDE | 0xFF_FFFF_FFFF) != 0 {
            let slot = long_slot(gram);
            return self.long[slot / 64] >> (slot % 64) & 1 == 1 && self.all.contains(&gram.0);
        }
        let place = short_place(gram);
        self.short[place / 64] >> (place % 64) & 1 == 1
    }
}

/// Slots for longer grams: 32 KiB of bits, beside some twenty thousand grams of a large corpus.
const SLOTS: usize = 1 << 18;

/// The slot of a longer gram: the upper bits of its hash, of which the set uses the lower ones.
#[inline]
fn long_slot(gram: Gram) -> usize {
    (gram.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 46) as usize
}

/// The bit of an ASCII gram of one to three characters: seven bits of each.
#[inline]
fn short_place(gram: Gram) -> usize {
    let [a, b, c, ..] = gram.0.to_be_bytes().map(usize::from);
    a << 14 | b << 7 | c
}

/// Cuts texts into the grams that are indexed.
#[derive(Debug, Default)]
pub struct GramTokenizer {
    folded: Vec<u8>,
    characters: Vec<char>,
}

impl GramTokenizer {
    /// Calls `emit` with every gram of the text that is indexed, in no particular order, and with
    /// some of them more than once.
    pub fn cut(&mut self, text: &str, common: &CommonGrams, mut emit: impl FnMut(Gram)) {
        if text.is_ascii() {
            self.folded.clear();
            self.folded.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
            cut_ascii(&self.folded, common, &mut emit);
            return;
        }
        self.characters.clear();
        self.characters.extend(text.chars().map(|c| c.to_ascii_lowercase()));
        let mut rest = &self.characters[..];
        while let Some(first) = rest.first() {
            if !first.is_ascii() {
                cut_wide(rest, common, 0, &mut emit);
                rest = &rest[1..];
                continue;
            }
            let length = rest.iter().take_while(|c| c.is_ascii()).count();
            self.folded.clear();
            self.folded.extend(rest[..length].iter().map(|c| *c as u8));
            cut_ascii(&self.folded, common, &mut emit);
            // The last two begin grams that go on beyond the run.
            for ahead in 1..=length.min(2) {
                cut_wide(&rest[length - ahead..], common, ahead, &mut emit);
            }
            rest = &rest[length..];
        }
    }
}

/// Gives the grams of folded ASCII.
#[inline]
fn cut_ascii(folded: &[u8], common: &CommonGrams, emit: &mut impl FnMut(Gram)) {
    // How many characters from the last place on were common. One place on it is no less but for
    // the character left behind, because the end of a common gram is common.
    let mut known = 0usize;
    for at in 0..folded.len() {
        let (eight, length) = match folded.get(at..at + 8) {
            Some(eight) => (u64::from_be_bytes(eight.try_into().expect("eight bytes")), LONGEST),
            None => {
                let mut eight = [0; 8];
                eight[..folded.len() - at].copy_from_slice(&folded[at..]);
                (u64::from_be_bytes(eight), folded.len() - at)
            }
        };
        let first = |characters: usize| Gram(eight & !(u64::MAX >> (8 * characters - 1) >> 1));
        let mut characters = known.saturating_sub(1);
        while characters < length.min(LONGEST - 1) && common.contains(first(characters + 1)) {
            characters += 1;
        }
        known = characters;
        if characters < 1 {
            emit(first(1));
        }
        if characters < 2 && length >= 2 {
            emit(first(2));
        }
        if length >= 3 {
            emit(first(3));
            if characters >= 3 && characters < length {
                emit(first(characters + 1));
            }
        }
    }
}

/// Gives the grams of up to three characters that begin here and go beyond the first `ascii` ones.
fn cut_wide(characters: &[char], common: &CommonGrams, ascii: usize, emit: &mut impl FnMut(Gram)) {
    for length in ascii + 1..=characters.len().min(3) {
        let gram = Gram::pack(&characters[..length]);
        if length == 3 || !common.contains(gram) {
            emit(gram);
        }
    }
}

/// Returns the grams that every text matching the pattern holds: the longest indexed gram at each
/// position of each run, sorted, each once.
///
/// Empty where nothing in the pattern is indexed: then any text may match.
pub fn query_grams(pattern: &Pattern<'_>, common: &CommonGrams) -> Vec<Gram> {
    let mut grams = Vec::new();
    for run in pattern.runs() {
        let run = folded(run);
        if run.len() < 3 {
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
/// A character that fills the gap makes a run with its neighbours, and every gram of that run is
/// known. Few characters occur there in any text, so the posting lists tell which documents hold
/// one of these runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WildcardGap {
    left: Vec<char>,
    right: Vec<char>,
}

/// Returns the gaps of a pattern that have characters on both sides.
pub fn wildcard_gaps(pattern: &Pattern<'_>) -> Vec<WildcardGap> {
    let gaps = pattern.gaps().map(|(left, right)| {
        let (mut left, mut right) = (folded(left), folded(right));
        left.drain(..left.len().saturating_sub(2));
        right.truncate(LONGEST);
        WildcardGap { left, right }
    });
    gaps.collect()
}

fn folded(run: &str) -> Vec<char> {
    run.chars().map(|c| c.to_ascii_lowercase()).collect()
}

impl WildcardGap {
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

    /// Returns the character at the gap of a packed trigram in [`WildcardGap::wide_range`].
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
        GramTokenizer::default().cut(text, common, |gram| grams.push(gram));
        grams.sort_unstable();
        grams.dedup();
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
        let set = common(&["t", "h", "e", " ", "th", "he", "e ", "the", "he ", "the "]);
        let expected = ["the", "the x", "he ", "he x", "e x", " x", "x"];
        let mut expected: Vec<Gram> = expected.iter().map(|text| gram(text)).collect();
        expected.sort_unstable();
        assert_eq!(cut("The x", &set), expected);
        let query = |text| query_grams(&Pattern::parse(text), &set);
        assert_eq!(query("THE X"), [gram("e x"), gram("he x"), gram("the x")]);
        assert_eq!(query("the"), [gram("the")]);
        assert_eq!(query("t%h"), []);
        assert_eq!(query("th_x"), [gram("x")]);
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
