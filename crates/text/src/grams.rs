//! Extracts the n-grams of a text for the index, and the n-grams that a query looks up.
//!
//! Grams are runs of 1 to 8 folded characters ([`super::fold`]). So one index serves searches that ignore the
//! case of all letters, of ASCII letters, or of none. The index has the following grams of each text:
//!
//! 1. every trigram;
//! 2. every 1-gram and 2-gram that is not common, and every ASCII character;
//! 3. for each common ASCII trigram, its extension by the ASCII characters that follow, up to the
//!    first gram that is not common, or to eight characters;
//! 4. each whole word of up to seven ASCII characters, or of up to two others, that is a common gram but
//!    not a frequent word: `t` is in most texts, but seldom a word;
//! 5. with its case kept, every ASCII capital, every pair of ASCII characters with a capital unless it begins
//!    with white space, and every ASCII trigram that begins with a capital. Capitals are rare, so these grams
//!    are few, and searches that heed case find texts by them.
//!
//! The grams of a text's loose form ([`super::loose`]) are indexed too, for searches that ignore accents.
//!
//! The common grams are counted in a sample and stored with the index. Any set is correct, as long as texts
//! and queries use the same set. With the extensions, the longest indexed gram at a position of a query is
//! seldom common, even if its trigram is. The idea to index the shortest gram that is rare enough is from Cho
//! and Rajagopalan, "A fast regular expression indexing engine" (ICDE 2002).
//!
//! Invariant: if a pattern matches a text, the text has all grams that [`query_grams`] returns for the
//! pattern. The same holds for the loose forms of the pattern and the text.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::fold::fold;
use super::pattern::Pattern;
use super::word_break::{is_of_run, runs};

/// The maximum number of characters in a gram. Only ASCII grams can be longer than three.
pub const LONGEST: usize = 8;

/// A packed gram. Numeric order equals the byte order of the terms.
///
/// An ASCII gram has one byte per character, from the highest byte on, then zeros. Any other gram has the
/// highest bit set, and 21 bits for each of up to three characters. A whole word is the gram of its
/// characters after a NUL, which no other gram has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gram(pub u64);

const WIDE: u64 = 1 << 63;

/// The number of counters for the first count of sampled grams: 4 MiB, partly in the cache.
const SIEVE: usize = 1 << 20;

impl Gram {
    /// Packs one to three characters, or up to eight ASCII characters. NUL is not allowed.
    fn pack(characters: &[char]) -> Gram {
        if characters.iter().all(char::is_ascii) {
            let packed = characters.iter().fold(0, |sum, c| sum << 8 | u64::from(*c as u8));
            Gram(packed << (8 * (LONGEST - characters.len())))
        } else {
            let shifted = characters.iter().zip([42, 21, 0]);
            Gram(shifted.fold(WIDE, |sum, (c, shift)| sum | u64::from(u32::from(*c)) << shift))
        }
    }

    fn pack_ascii(bytes: &[u8]) -> Gram {
        let packed = bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Gram(packed << (8 * (LONGEST - bytes.len())))
    }

    fn as_word(self) -> Option<Gram> {
        match self.0 & WIDE {
            0 if self.0 & 0xFF == 0 => Some(Gram(self.0 >> 8)),
            WIDE if self.0 & 0x1F_FFFF == 0 => Some(Gram(WIDE | (self.0 ^ WIDE) >> 21)),
            _ => None,
        }
    }

    /// Returns whether the gram belongs to whole words, and not to any run of characters.
    pub fn is_of_word(self) -> bool {
        matches!(self.0 >> 42, 0..=0x3FFF | 0x20_0000)
    }

    /// Returns the gram as a term: the characters of an ASCII gram, the packed number of any other gram.
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
        let codes = match self.0 & WIDE {
            0 => self.term(&mut [0; 8]).iter().map(|byte| u32::from(*byte)).collect::<Vec<_>>(),
            _ => [42, 21, 0].map(|shift| (self.0 >> shift & 0x1F_FFFF) as u32).to_vec(),
        };
        let edge = if self.is_of_word() { r"\b" } else { "" };
        let characters = codes.into_iter().filter(|code| *code != 0);
        let characters = characters.map(|code| char::from_u32(code).unwrap_or('\u{FFFD}'));
        write!(f, "{edge}{}{edge}", characters.collect::<String>())
    }
}

/// The grams that are common in an index, and the frequent whole words. Every prefix of a gram in the set is
/// in the set too.
#[derive(Clone, Debug, Default)]
pub struct CommonGrams {
    all: HashSet<u64, BuildHasherDefault<Mix>>,
    /// A bitmap of the ASCII grams of one to three characters, for the inner loop.
    short: Vec<u64>,
    /// A bitmap of the hashes of all other grams. The bitmap rejects nearly every gram that is not in the
    /// set.
    long: Vec<u64>,
}

impl CommonGrams {
    /// A gram is common if at least this share of the sampled texts has it. Of the shares with a median
    /// search time below 100 µs, 2 % gives the smallest index of a million messages.
    pub const SHARE: f64 = 0.02;

    /// A word is frequent if at least this share of the sampled texts has it as a whole word: then
    /// verification finds it soon.
    pub const WORD_SHARE: f64 = 0.06;

    /// Counts the grams of sampled texts and collects the common ones.
    ///
    /// Works level by level, like Apriori (Agrawal and Srikant): a gram can be common only if the gram
    /// without its last character and the gram without its first character are common. [`GramTokenizer`]
    /// relies on this property of the set.
    pub fn from_sample<'a>(texts: impl Iterator<Item = &'a str>) -> CommonGrams {
        let mut characters: Vec<char> = Vec::new();
        let mut ends = Vec::new();
        for text in texts {
            characters.extend(text.chars().map(fold));
            // No gram contains a NUL, so a NUL also separates the texts.
            characters.push('\0');
            ends.push(characters.len());
        }
        let least = ((ends.len() as f64 * CommonGrams::SHARE).ceil() as u32).max(2);
        let mut common = CommonGrams::from_packed(&[]);
        let mut level = vec![0u8; characters.len()];
        for length in 1..LONGEST {
            // Most grams are rare, and a table of all would be large. A first count by hash slot rejects most
            // rare grams.
            let mut sieve = vec![0u32; SIEVE];
            for at in 0..characters.len() {
                if let Some(gram) = candidate(&characters, &level, at, length) {
                    sieve[mix(gram.0) as usize % SIEVE] += 1;
                }
            }
            // For each gram, the number of texts that hold it, and the last such text.
            let mut counts: HashMap<u64, (u32, u32), BuildHasherDefault<Mix>> = HashMap::default();
            let mut start = 0;
            for (text, end) in (1..).zip(&ends) {
                for at in start..*end {
                    let Some(gram) = candidate(&characters, &level, at, length) else { continue };
                    if sieve[mix(gram.0) as usize % SIEVE] < least {
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
                let gram = candidate(&characters, &level, at, length);
                if gram.is_some_and(|gram| common.contains(gram)) {
                    // The next place already has its new level, but levels never decrease.
                    level[at] = length as u8;
                }
            }
        }
        common.add_frequent_words(&characters, &ends);
        common
    }

    /// Adds the frequent words of sampled texts, each of which ends with a NUL.
    fn add_frequent_words(&mut self, characters: &[char], ends: &[usize]) {
        let least = ((ends.len() as f64 * CommonGrams::WORD_SHARE).ceil() as u32).max(2);
        let mut counts: HashMap<u64, u32, BuildHasherDefault<Mix>> = HashMap::default();
        let mut start = 0;
        for end in ends {
            let mut words = Vec::new();
            cut_words(&characters[start..end - 1], self, |word| words.push(word.0));
            words.sort_unstable();
            words.dedup();
            words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
            start = *end;
        }
        for (word, count) in counts {
            if count >= least {
                self.insert(Gram(word));
            }
        }
    }

    /// Builds the set from the numbers that [`CommonGrams::packed`] returns.
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

/// Returns the gram of this length at a place of sampled texts, if it may be common: `level` has, for each
/// place, the length of the longest known common gram that begins there.
#[inline]
fn candidate(characters: &[char], level: &[u8], at: usize, length: usize) -> Option<Gram> {
    let gram = characters.get(at..at + length)?;
    let shorter = (length - 1) as u8;
    let may_be = level[at] == shorter
        && (length == 1 || level[at + 1] >= shorter)
        && gram[length - 1] != '\0'
        && (length <= 3 || gram.iter().all(char::is_ascii));
    if may_be { Some(Gram::pack(gram)) } else { None }
}

/// The number of bits of the bitmap for longer grams (32 KiB). A large corpus has about twenty
/// thousand such grams.
const SLOTS: usize = 1 << 18;

/// Returns the slot of a longer gram: upper bits of its hash, because the set uses the lower bits.
#[inline]
fn long_slot(gram: Gram) -> usize {
    (gram.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 46) as usize
}

/// Returns the bit of an ASCII gram of one to three characters: seven bits of each character.
#[inline]
fn short_place(gram: Gram) -> usize {
    let [first, second, third, ..] = gram.0.to_be_bytes().map(usize::from);
    first << 14 | second << 7 | third
}

/// A tokenizer that splits texts into the grams to index.
#[derive(Debug, Default)]
pub struct GramTokenizer {
    folded: Vec<u8>,
    characters: Vec<char>,
}

impl GramTokenizer {
    /// Calls `emit` with every indexed gram of the text, in no particular order. A gram may come several
    /// times.
    pub fn tokenize(&mut self, text: &str, common: &CommonGrams, mut emit: impl FnMut(Gram)) {
        let mut seen = 0;
        if text.is_ascii() {
            self.folded.clear();
            self.folded.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
            cut_ascii(&self.folded, common, &mut seen, &mut emit);
            cut_words(&self.folded, common, without_repeats(&mut emit));
            cut_capitals(text.as_bytes(), &mut seen, &mut emit);
            return;
        }
        cut_capitals(text.as_bytes(), &mut seen, &mut emit);
        self.characters.clear();
        self.characters.extend(text.chars().map(fold));
        cut_words(&self.characters, common, without_repeats(&mut emit));
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
            cut_ascii(&self.folded, common, &mut seen, &mut emit);
            // The last two characters begin grams that extend beyond the run.
            for ahead in 1..=length.min(2) {
                cut_wide(&rest[length - ahead..], common, ahead, &mut emit);
            }
            rest = &rest[length..];
        }
    }
}

/// Calls `emit` with the grams of an ASCII run. `seen` has a bit for each character that occurred already.
#[inline]
fn cut_ascii(folded: &[u8], common: &CommonGrams, seen: &mut u128, emit: &mut impl FnMut(Gram)) {
    // The length of the longest common gram at the last place. At the next place it is at most one character
    // shorter, because every suffix of a common gram is common.
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
        let mut characters = known.saturating_sub(1);
        while characters < length.min(LONGEST - 1)
            && common.contains(first_of(eight, characters + 1))
        {
            characters += 1;
        }
        known = characters;
        let bit = 1 << folded[at];
        if *seen & bit == 0 {
            *seen |= bit;
            emit(first_of(eight, 1));
        }
        if characters < 2 && length >= 2 {
            emit(first_of(eight, 2));
        }
        if length >= 3 {
            emit(first_of(eight, 3));
            if characters >= 3 && characters < length {
                emit(first_of(eight, characters + 1));
            }
        }
    }
}

#[inline]
fn first_of(eight: u64, characters: usize) -> Gram {
    Gram(eight & !(u64::MAX >> (8 * characters - 1) >> 1))
}

/// Calls `emit` with the grams that keep the case of capitals. `seen` is the same as for [`cut_ascii`], whose
/// characters are folded.
fn cut_capitals(text: &[u8], seen: &mut u128, emit: &mut impl FnMut(Gram)) {
    for (at, capital) in text.iter().enumerate().filter(|(_, byte)| byte.is_ascii_uppercase()) {
        if *seen & 1 << capital == 0 {
            *seen |= 1 << capital;
            emit(Gram::pack_ascii(&[*capital]));
        }
        capital_grams_at(text, at).into_iter().flatten().for_each(&mut *emit);
    }
}

/// Returns the grams of a capital and its neighbours: the pair that it ends, the pair and the trigram that it
/// begins. The pair of two capitals belongs to the first.
#[inline]
fn capital_grams_at(text: &[u8], at: usize) -> [Option<Gram>; 3] {
    let ends_pair =
        at > 0 && !text[at - 1].is_ascii_uppercase() && !text[at - 1].is_ascii_whitespace();
    let ended = if ends_pair { indexed_ascii(text, at - 1, 2) } else { None };
    [ended, indexed_ascii(text, at, 2), indexed_ascii(text, at, 3)]
}

#[inline]
fn indexed_ascii(text: &[u8], at: usize, length: usize) -> Option<Gram> {
    let bytes = text.get(at..at + length)?;
    let is_indexed = bytes.iter().all(|byte| byte.is_ascii() && *byte != 0);
    if is_indexed { Some(Gram::pack_ascii(bytes)) } else { None }
}

/// Returns the grams with capitals that every text with this run has. A text with these capitals in another
/// case may lack them.
pub fn capital_grams(run: &str) -> Vec<Gram> {
    let mut grams = Vec::new();
    let text = run.as_bytes();
    for (at, capital) in text.iter().enumerate().filter(|(_, byte)| byte.is_ascii_uppercase()) {
        let [ended, pair, trigram] = capital_grams_at(text, at);
        // The grams of a capital before this one have this one too, and the character after it.
        let is_covered = at > 0 && text[at - 1].is_ascii_uppercase();
        let begun = if is_covered { trigram } else { trigram.or(pair) };
        if ended.is_none() && begun.is_none() && !is_covered {
            grams.push(Gram::pack_ascii(&[*capital]));
        }
        grams.extend(ended.into_iter().chain(begun));
    }
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// Returns the gram with capitals that is the whole pattern. A text has the gram exactly if it has the
/// pattern's characters in this case.
pub fn only_capital_gram(pattern: &Pattern<'_>) -> Option<Gram> {
    let [part] = &pattern.segments[..] else { return None };
    let [run] = part.runs[..] else { return None };
    match capital_grams(run)[..] {
        [gram] if gram.term(&mut [0; 8]) == run.as_bytes() => Some(gram),
        _ => None,
    }
}

/// Calls `emit` with the grams of more than `ascii` and up to three characters that start `characters`.
fn cut_wide(characters: &[char], common: &CommonGrams, ascii: usize, emit: &mut impl FnMut(Gram)) {
    for length in ascii + 1..=characters.len().min(3) {
        let gram = Gram::pack(&characters[..length]);
        if length == 3 || !common.contains(gram) {
            emit(gram);
        }
    }
}

/// Calls `emit` with the indexed whole words of folded characters.
fn cut_words<C: Copy + Into<char>>(folded: &[C], common: &CommonGrams, mut emit: impl FnMut(Gram)) {
    runs(folded, |run| {
        if run.len() < LONGEST {
            let mut word = ['\0'; LONGEST];
            word.iter_mut().zip(&folded[run.clone()]).for_each(|(to, from)| *to = (*from).into());
            if let Some(gram) = indexed_word(&word[..run.len()], common) {
                emit(gram);
            }
        }
    });
}

fn without_repeats(emit: &mut impl FnMut(Gram)) -> impl FnMut(Gram) {
    const SLOTS: usize = 64;

    let mut last = [0; SLOTS];
    move |gram| {
        let slot = &mut last[mix(gram.0) as usize % SLOTS];
        if std::mem::replace(slot, gram.0) != gram.0 {
            emit(gram);
        }
    }
}

/// Returns the gram of a whole word of folded characters, if it is indexed.
fn indexed_word(word: &[char], common: &CommonGrams) -> Option<Gram> {
    let most = if word.iter().all(char::is_ascii) { LONGEST } else { 3 };
    if !(1..=most).contains(&word.len()) {
        return None;
    }
    let gram = Gram::pack(word);
    let of_word = gram.as_word()?;
    (common.contains(gram) && !common.contains(of_word)).then_some(of_word)
}

/// Returns the grams of every text in which the pattern matches as whole words, without wildcards. There are
/// boundaries at its ends, as at the ends of a text, so its words are words of the text too.
pub fn word_grams(pattern: &Pattern<'_>, common: &CommonGrams) -> Vec<Gram> {
    let characters = fold_run(pattern.text);
    let mut grams = Vec::new();
    cut_words(&characters, common, |gram| grams.push(gram));
    let is_one_word = characters.iter().all(|character| is_of_run(*character));
    if !is_one_word || grams.is_empty() {
        grams.extend(query_grams(pattern, common));
    }
    grams
}

/// Returns grams that every matching text has: the longest indexed gram at each position of each run, sorted,
/// without repeats.
///
/// The list is empty if no gram of the pattern is indexed. Then any text may match.
pub fn query_grams(pattern: &Pattern<'_>, common: &CommonGrams) -> Vec<Gram> {
    let mut grams = Vec::new();
    for run in pattern.runs() {
        let run = fold_run(run);
        if run.len() < 3 {
            grams.extend(short_gram(&run, common));
        }
        for at in 0..run.len().saturating_sub(2) {
            grams.push(longest_at(&run[at..], common));
        }
    }
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// Returns the gram of one or two characters, if it is indexed.
fn short_gram(run: &[char], common: &CommonGrams) -> Option<Gram> {
    let gram = Gram::pack(run);
    let is_character = run.len() == 1 && run[0].is_ascii();
    (is_character || !common.contains(gram)).then_some(gram)
}

/// Returns the first characters, folded, of a pattern that is a single run. Returns `None` for other
/// patterns, or if folding changes more than ASCII letters.
fn only_run(pattern: &Pattern<'_>) -> Option<Vec<char>> {
    let [part] = &pattern.segments[..] else { return None };
    let [run] = part.runs[..] else { return None };
    let is_folded = run.chars().all(|c| fold(c) == c.to_ascii_lowercase());
    is_folded.then(|| run.chars().take(LONGEST + 1).map(fold).collect())
}

/// Returns the gram that is the whole pattern, if the gram is indexed and folding changes only its ASCII
/// letters. Then `LIKE` matches every text with the gram in which folding changes only ASCII letters.
pub fn only_gram(pattern: &Pattern<'_>, common: &CommonGrams) -> Option<Gram> {
    let characters = only_run(pattern)?;
    match characters.len() {
        1 | 2 => short_gram(&characters, common),
        3..=LONGEST if characters.len() == 3 || characters.iter().all(char::is_ascii) => {
            Some(Gram::pack(&characters)).filter(|gram| longest_at(&characters, common) == *gram)
        }
        _ => None,
    }
}

/// A run of two characters that is a whole pattern and so common that it has no posting list.
///
/// A text has the run if it has a trigram that begins with the run, or if it ends with the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonRun([char; 2]);

impl CommonRun {
    /// Returns the run that is the whole pattern, if it is not indexed; for indexed grams see [`only_gram`].
    pub fn from_pattern(pattern: &Pattern<'_>, common: &CommonGrams) -> Option<CommonRun> {
        let run = only_run(pattern)?;
        let two = <[char; 2]>::try_from(&run[..]).ok()?;
        short_gram(&run, common).is_none().then_some(CommonRun(two))
    }

    /// Returns whether a text whose last byte is given may end with the run.
    #[inline]
    pub fn may_end_with(self, last: u8) -> bool {
        let second = self.0[1];
        // A non-ASCII character may be another case of an ASCII letter.
        !last.is_ascii() || !second.is_ascii() || char::from(last.to_ascii_lowercase()) == second
    }

    /// Returns the trigrams of ASCII characters that begin with the run.
    pub fn ascii_trigrams(self) -> impl Iterator<Item = Gram> {
        let [first, second] = self.0;
        let third = (1..0x80u8).map(char::from).filter(|c| !c.is_ascii_uppercase());
        let is_ascii = first.is_ascii() && second.is_ascii();
        third.filter(move |_| is_ascii).map(move |third| Gram::pack(&[first, second, third]))
    }

    /// Returns the range of the packed trigrams that begin with the run and are not ASCII.
    pub fn wide_trigrams(self) -> Range<Gram> {
        let [first, second] = self.0.map(|c| u64::from(u32::from(c)));
        let start = WIDE | first << 42 | second << 21;
        Gram(start + 1)..Gram(start + (1 << 21))
    }
}

/// A character of a pattern or an expression that may be one of many, such as `_` or `.`, with the known
/// characters before it and after it, folded.
///
/// Each character that may fill the gap makes a run with the neighbouring characters, and the grams of this
/// run can be looked up. Only few characters occur there in any text. So the posting lists tell which
/// documents have one of these runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WildcardGap {
    left: Vec<char>,
    right: Vec<char>,
}

/// Returns the gaps of a pattern, see [`Pattern::gaps`].
pub fn wildcard_gaps(pattern: &Pattern<'_>) -> Vec<WildcardGap> {
    pattern.gaps().map(|(left, right)| WildcardGap::between(left, right)).collect()
}

fn fold_run(run: &str) -> Vec<char> {
    run.chars().map(fold).collect()
}

impl WildcardGap {
    /// Returns the gap between two runs, which have at least two characters together. The first is not empty.
    pub fn between(left: &str, right: &str) -> WildcardGap {
        let mut left = fold_run(left);
        let mut right = fold_run(right);
        left.drain(..left.len().saturating_sub(2));
        right.truncate(LONGEST);
        WildcardGap { left, right }
    }

    /// Returns whether the gap can narrow the candidates: two characters with a posting list of their own
    /// narrow them already.
    pub fn can_narrow(&self, common: &CommonGrams) -> bool {
        !self.right.is_empty() || short_gram(&self.left, common).is_none()
    }

    /// Returns the indexed grams that a text must hold if this character fills the gap.
    pub fn grams_filled_with(&self, character: char, common: &CommonGrams) -> Vec<Gram> {
        let run = [&self.left[..], &[fold(character)], &self.right].concat();
        let last = self.left.len().min(run.len() - 3);
        (0..=last).map(|at| longest_at(&run[at..], common)).collect()
    }

    /// Returns the range of packed trigrams that have the last characters before the gap, followed by a
    /// non-ASCII character.
    pub fn wide_range(&self) -> Range<Gram> {
        let mut start = self.left.clone();
        start.push('\u{80}');
        let mut end = self.left.clone();
        end.push(char::MAX);
        // A gram is wide if any of its characters is wide, so they are packed together.
        let start = Gram::pack(&start[..start.len().min(3)]);
        // The end allows any character in the third place, which is the gap or the place after the gap.
        start..Gram(Gram::pack(&end).0 | 0x1F_FFFF)
    }

    /// Returns the character in the place of the gap, for a packed trigram from [`WildcardGap::wide_range`].
    pub fn filling_char(&self, gram: Gram) -> Option<char> {
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

/// A hasher for packed grams, which are well-spread integers except for zeros in their low bits.
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
        GramTokenizer::default().tokenize(text, common, |gram| grams.push(gram));
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
    fn trigrams_tell_what_holds_a_common_run() {
        let set = common(&["t", "th", "語", "語é"]);
        let of = |text| CommonRun::from_pattern(&Pattern::literal(text), &set);
        for text in ["he", "t", "the", "tK", "语", ""] {
            assert_eq!(of(text), None, "{text}");
        }
        for (run, text) in
            [("TH", "xth"), ("th", "日th語"), ("th", "the"), ("語é", "語éa"), ("語é", "a語É語")]
        {
            let run = of(run).expect("a common run");
            let wide = run.wide_trigrams();
            let narrow: Vec<Gram> = run.ascii_trigrams().collect();
            let found = cut(text, &set).into_iter();
            let found = found.filter(|it| narrow.contains(it) || wide.contains(it)).count();
            assert_eq!(found, usize::from(text != "xth"), "{text}");
        }
    }

    #[test]
    fn common_grams_give_way_to_longer_ones() {
        let set = common(&["t", "h", "e", " ", "th", "he", "e ", "the", "he ", "the "]);
        let expected = ["the", "the x", "he ", "he x", "e x", " x", "x", "t", "h", "e", " "];
        let mut expected: Vec<Gram> = expected.iter().map(|text| gram(text)).collect();
        expected.extend(word_grams(&Pattern::literal("the"), &set));
        expected.extend(["T", "Th", "The"].map(gram));
        expected.sort_unstable();
        assert_eq!(cut("The x", &set), expected);
        let query = |text| query_grams(&Pattern::parse(text), &set);
        assert_eq!(query("THE X"), [gram("e x"), gram("he x"), gram("the x")]);
        assert_eq!(query("the"), [gram("the")]);
        assert_eq!(query("t%h"), [gram("h"), gram("t")]);
        assert_eq!(query("th%he"), []);
        assert_eq!(query("th_x"), [gram("x")]);
    }

    #[test]
    fn words_that_are_common_runs_have_grams_of_their_own() {
        let set = common(&["t", "s", "th", "the", "я", "日", "ab", "b"]);
        let word = |text: &str| word_grams(&Pattern::literal(text), &set);
        for (text, words) in [
            ("Don_t _t The th.t T", "the th t"),
            ("is 't s' T,t 1t", "t s"),
            ("a.b b_ b:b bb", "b"),
            ("Я 日t яb", "я t"),
            ("t\u{301}x \u{212A}t t\u{17F} \u{17F}", "t s"),
        ] {
            let found = cut(text, &set);
            for query in ["t", "s", "th", "the", "я", "日", "ab", "b", "is", "thethe", "ttttttttt"]
            {
                let is_word = |gram: &Gram| gram.to_string().starts_with(r"\b");
                let is_there = word(query).iter().any(|gram| is_word(gram) && found.contains(gram));
                assert_eq!(is_there, words.split(' ').any(|word| word == query), "{text}: {query}");
            }
        }
        for (text, words, others) in [
            ("T", vec![r"\bt\b"], 0),
            ("", vec![], 0),
            ("a", vec![], 1),
            ("日", vec![], 0),
            ("t.", vec![r"\bt\b"], 1),
            ("'t", vec![r"\bt\b"], 1),
            ("T-s b", vec![r"\bt\b", r"\bs\b", r"\bb\b"], 3),
            ("a't", vec![r"\bt\b"], 1),
        ] {
            let mut grams: Vec<String> = word(text).iter().map(ToString::to_string).collect();
            grams.retain(|gram| words.contains(&gram.as_str()) || !gram.starts_with(r"\b"));
            assert_eq!(grams.len(), words.len() + others, "{text}: {grams:?}");
        }
        let texts: Vec<String> =
            (0..100).map(|n| format!("{} it's{n}", ["t ", ""][n % 10 / 9])).collect();
        let set = CommonGrams::from_sample(texts.iter().map(String::as_str));
        let word = |text| word_grams(&Pattern::literal(text), &set)[0].to_string();
        assert_eq!(["t", "s", "i"].map(word), ["t", r"\bs\b", r"\bi\b"]);
        assert_eq!(CommonGrams::from_packed(&set.packed()).packed(), set.packed());
    }

    #[test]
    fn capitals_have_grams_of_their_own() {
        let set = common(&[]);
        for (text, expected) in [
            ("getUser Id", "I|Id|U|Us|Use|tU"),
            ("IDs", "D|Ds|I|ID|IDs"),
            ("x\nA", "A"),
            ("éA日 (B", "(B|A|B"),
            ("A\0B C", "A|B|B |B C|C"),
        ] {
            let found = cut(text, &set).into_iter().map(|gram| gram.to_string());
            let is_capital = |gram: &String| gram.contains(|c: char| c.is_ascii_uppercase());
            let found: Vec<String> = found.filter(is_capital).collect();
            assert_eq!(found.join("|"), expected, "{text}");
        }
        let query = |run| {
            let grams = capital_grams(run).into_iter().map(|gram| gram.to_string());
            grams.collect::<Vec<_>>().join("|")
        };
        for (run, expected) in [
            ("getUser", "Use|tU"),
            ("getU", "tU"),
            (" U", "U"),
            ("日U", "U"),
            ("Us", "Us"),
            ("ID", "ID"),
            ("xID", "ID|xI"),
            ("IDs", "IDs"),
            ("B C", "B C|C"),
            ("É user", ""),
        ] {
            assert_eq!(query(run), expected, "{run}");
        }
        let only = |text| only_capital_gram(&Pattern::literal(text)).map(|gram| gram.to_string());
        for text in ["U", "Us", "tU", "Use", "ID", "IDs"] {
            assert_eq!(only(text).as_deref(), Some(text));
        }
        for text in ["u", " U", "Uä", "tUs", "User", "use"] {
            assert_eq!(only(text), None, "{text}");
        }
    }

    #[test]
    fn a_pattern_may_be_one_gram() {
        let set = common(&["t", "h", "th", "he", "the", "the "]);
        let only = |text| only_gram(&Pattern::parse(text), &set).map(|gram| gram.to_string());
        for (text, gram) in [
            ("x", "x"),
            ("T", "t"),
            ("xy", "xy"),
            ("XYz", "xyz"),
            ("%日本語%", "日本語"),
            ("the", "the"),
        ] {
            assert_eq!(only(text).as_deref(), Some(gram));
        }
        assert_eq!(only("the x").as_deref(), Some("the x"));
        for text in ["", "th", "xyzz", "the xy", "a%b", "a_b", "_ab", "日本語文", "É", "\u{212A}"]
        {
            assert_eq!(only(text), None, "{text}");
        }
    }

    #[test]
    fn other_scripts_are_cut_by_characters() {
        let set = common(&[]);
        let mut expected: Vec<Gram> =
            ["日", "日本", "日本a", "本", "本a", "a", "A"].iter().map(|text| gram(text)).collect();
        expected.sort_unstable();
        assert_eq!(cut("日本A", &set), expected);
    }

    #[test]
    fn all_cases_of_a_letter_give_the_same_grams() {
        let set = common(&["t", "s", "k"]);
        for (one, other) in
            [("ПРИВЕТ", "привет"), ("\u{212A}ißt\u{17F}", "kIẞTS"), ("ΛΌΓΟΣ", "λόγος")]
        {
            let folded = |text| {
                let mut grams = cut(text, &set);
                grams.retain(|gram| !gram.to_string().contains(|c: char| c.is_ascii_uppercase()));
                grams
            };
            assert_eq!(folded(one), folded(other));
            let query = |text| query_grams(&Pattern::literal(text), &set);
            assert_eq!(query(one), query(other));
            assert!(query(one).iter().all(|gram| cut(other, &set).contains(gram)));
        }
    }

    #[test]
    fn a_gap_may_have_any_character_beyond_ascii() {
        for (pattern, left, right) in
            [("ab_cd", "ab", "cd"), ("b_cd", "b", "cd"), ("ж_x", "ж", "x")]
        {
            let [gap] = &wildcard_gaps(&Pattern::parse(pattern))[..] else { panic!("{pattern}") };
            let range = gap.wide_range();
            for character in ['\u{80}', '\u{FF}', '日', '\u{E000}', '\u{10FFFE}', '\u{10FFFF}'] {
                let run: Vec<char> =
                    format!("{left}{character}{right}").chars().map(fold).collect();
                let gram = Gram::pack(&run[..3]);
                assert!(range.contains(&gram), "{pattern} {character:?}");
                assert_eq!(gap.filling_char(gram), Some(fold(character)));
            }
        }
    }

    #[test]
    fn a_sample_tells_what_is_common() {
        let texts: Vec<String> = (0..100).map(|n| format!("the word {n} 的")).collect();
        let set = CommonGrams::from_sample(texts.iter().map(String::as_str));
        for text in ["t", "the", "the wor", " 的", "的"] {
            assert!(set.contains(gram(text)), "{text}");
        }
        assert!(!set.contains(gram("word 37")));
        assert_eq!(CommonGrams::from_packed(&set.packed()).packed(), set.packed());
    }
}
