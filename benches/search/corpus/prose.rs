//! English-like prose: a Zipf vocabulary, words that follow on words, sentences, paragraphs.

use std::collections::{HashMap, HashSet};

use super::random::{Random, Zipf};

/// Frequent English words in roughly falling order of use.
const FREQUENT: &str = include_str!("words.txt");

/// How many words the language has; the rest after [`FREQUENT`] are made up.
const WORDS: usize = 60_000;

/// The probability that a word is followed by one of its usual successors.
const HABIT: f64 = 0.6;

const ACCENTED: [&str; 16] = [
    "café",
    "naïve",
    "über",
    "São",
    "Zürich",
    "façade",
    "résumé",
    "Ångström",
    "jalapeño",
    "Straße",
    "ÉCOLE",
    "señor",
    "Dvořák",
    "smörgåsbord",
    "İstanbul",
    "Łódź",
];

/// Makes up words with the letter statistics of those it has read: each letter follows the two before it.
pub(crate) struct LetterChain {
    follows: HashMap<[char; 2], Vec<char>>,
}

const EDGE: char = ' ';

impl LetterChain {
    pub(crate) fn new<'a>(words: impl Iterator<Item = &'a str>) -> LetterChain {
        let mut follows: HashMap<[char; 2], Vec<char>> = HashMap::new();
        for word in words {
            let mut before = [EDGE, EDGE];
            for letter in word.chars().chain([EDGE]) {
                follows.entry(before).or_default().push(letter);
                before = [before[1], letter];
            }
        }
        LetterChain { follows }
    }

    /// Returns a made-up word of 3 to 14 letters.
    pub(crate) fn word(&self, random: &mut Random) -> String {
        loop {
            let mut word = String::new();
            let mut before = [EDGE, EDGE];
            loop {
                let choices = &self.follows[&before];
                let letter = choices[random.below(choices.len())];
                if letter == EDGE {
                    break;
                }
                word.push(letter);
                before = [before[1], letter];
            }
            if (3..=14).contains(&word.chars().count()) {
                return word;
            }
        }
    }
}

pub(crate) struct Prose {
    words: Vec<String>,
    frequency: Zipf,
    /// The usual successors of each word, the likeliest first.
    successors: Vec<Vec<u32>>,
}

impl Prose {
    pub(crate) fn new(random: &mut Random) -> Prose {
        let mut words: Vec<String> = Vec::with_capacity(WORDS);
        let mut known = HashSet::new();
        for word in FREQUENT.split_whitespace() {
            if known.insert(word.to_owned()) {
                words.push(word.to_owned());
            }
        }
        let chain = LetterChain::new(FREQUENT.split_whitespace());
        let mut made_up = Vec::with_capacity(WORDS);
        while words.len() + made_up.len() < WORDS {
            let word = chain.word(random);
            if known.insert(word.clone()) {
                // Frequent words tend to be short.
                made_up.push((word.len() + random.below(8), word));
            }
        }
        made_up.sort();
        words.extend(made_up.into_iter().map(|(_, word)| word));

        let frequency = Zipf::new(WORDS, 2.7, 1.07);
        let successors = (0..WORDS)
            .map(|rank| {
                let usual = (40_000 / (rank + 20)).max(6);
                (0..usual).map(|_| frequency.draw(random) as u32).collect()
            })
            .collect();
        Prose { words, frequency, successors }
    }

    /// Returns a word that is neither among the most frequent nor rare: a noun, a name.
    pub(crate) fn topic(&self, random: &mut Random) -> &str {
        loop {
            let most = random.between(1, 12_000);
            let word = &self.words[60 + random.below(most)];
            if word.len() >= 3 {
                return word;
            }
        }
    }

    /// Appends `count` words, the first in capitals if `title`, with the small accidents of writing.
    pub(crate) fn phrase(&self, count: usize, title: bool, random: &mut Random, out: &mut String) {
        let mut rank = self.frequency.draw(random);
        for at in 0..count {
            if at > 0 {
                out.push(' ');
            }
            let word = self.words[rank].as_str();
            match random.below(1_000) {
                0 => out.push_str(random.pick(&ACCENTED)),
                1..4 => out.push_str(&misspelt(word, random)),
                4..25 => out.push_str(&capitalized(word)),
                25 => out.push_str(&word.to_uppercase()),
                26..100 => {
                    out.push_str(word);
                    out.push_str(&capitalized(self.topic(random)));
                }
                100..125 => out.push_str(&random.below(3_000).to_string()),
                _ if title => out.push_str(&capitalized(word)),
                _ => out.push_str(word),
            }
            rank = self.next(rank, random);
        }
    }

    fn next(&self, rank: usize, random: &mut Random) -> usize {
        let next = if random.chance(HABIT) {
            let usual = &self.successors[rank];
            let skewed = random.unit() * random.unit();
            usual[(skewed * usual.len() as f64) as usize] as usize
        } else {
            self.frequency.draw(random)
        };
        if next == rank { self.frequency.draw(random) } else { next }
    }

    /// Appends a sentence of about `words` words.
    pub(crate) fn sentence(&self, words: usize, random: &mut Random, out: &mut String) {
        let start = out.len();
        let mut left = words.max(1);
        loop {
            let clause = left.min(random.between(4, 14));
            self.phrase(clause, false, random, out);
            left -= clause;
            if left == 0 {
                break;
            }
            out.push_str(match random.below(12) {
                0 => "; ",
                1 if random.chance(0.2) => " — ",
                1 => " - ",
                2 => ": ",
                _ => ", ",
            });
        }
        // The first letter may be an accented letter; here upper case never changes its length.
        if out.is_char_boundary(start + 1) {
            out[start..=start].make_ascii_uppercase();
        }
        out.push(match random.below(20) {
            0 => '!',
            1 | 2 => '?',
            3 => ':',
            _ => '.',
        });
    }
}

pub(crate) fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters.flat_map(char::to_lowercase)).collect()
    })
}

/// Returns `word` with a typing error.
fn misspelt(word: &str, random: &mut Random) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = random.below(letters.len());
    match random.below(4) {
        0 if at + 1 < letters.len() => letters.swap(at, at + 1),
        1 if letters.len() > 3 => drop(letters.remove(at)),
        2 => letters[at] = char::from(b'a' + random.below(26) as u8),
        _ => letters.insert(at, letters[at]),
    }
    letters.into_iter().collect()
}
