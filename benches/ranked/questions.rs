//! Questions of every kind, made of words from the messages.

use std::collections::{HashMap, HashSet};

use verbatim_text::words::{Tokenizer, is_unspaced};

use crate::corpus::random::Random;

/// Messages whose words are counted.
const SAMPLE: usize = 20_000;

/// A word is frequent if at least this share of the messages has it.
const FREQUENT: f64 = 0.05;

/// The kinds of question, by the words that they are made of.
pub(crate) const KINDS: [&str; 9] = [
    "one rare word",
    "one frequent word",
    "two words of a message",
    "four words",
    "eight words",
    "twelve words",
    "six frequent words",
    "a rare word and three frequent ones",
    "eight Chinese characters",
];

/// Returns `count` questions of each kind; none if the messages do not have the words for the kind.
pub(crate) fn questions(texts: &[&str], count: usize) -> Vec<Vec<String>> {
    let mut random = Random::new(7);
    let cutter = Tokenizer::default();
    let step = (texts.len() / SAMPLE).max(1);
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let sample: Vec<&str> = texts.iter().copied().step_by(step).collect();
    for text in &sample {
        let words: HashSet<&str> = words(text).collect();
        words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
    }
    let says = |word: &str| !cutter.question(word).is_empty();
    let mut rare = Vec::new();
    let mut frequent = Vec::new();
    for (word, count) in counts {
        if count == 1 {
            rare.push(word);
        } else if count as f64 >= FREQUENT * sample.len() as f64 && says(word) {
            frequent.push(word);
        }
    }
    rare.sort_unstable();
    frequent.sort_unstable();
    let long: Vec<&str> =
        sample.iter().copied().filter(|text| words(text).nth(11).is_some()).collect();
    let chinese: Vec<Vec<char>> = sample
        .iter()
        .map(|text| text.chars().filter(|c| is_unspaced(*c)).collect())
        .filter(|characters: &Vec<char>| characters.len() >= 8)
        .collect();
    let several = |from: &[&str], count: usize, random: &mut Random| {
        let picked: Vec<&str> = (0..count).map(|_| random.pick(from)).collect();
        picked.join(" ")
    };
    let of_message = |count: usize, random: &mut Random| {
        let all: Vec<&str> = words(random.pick(&long)).collect();
        let from = random.below(all.len() - count + 1);
        all[from..from + count].join(" ")
    };
    let mut make = |kind: usize| match kind {
        0 => several(&rare, 1, &mut random),
        1 => several(&frequent, 1, &mut random),
        2 => of_message(2, &mut random),
        3 => of_message(4, &mut random),
        4 => of_message(8, &mut random),
        5 => of_message(12, &mut random),
        6 => several(&frequent, 6, &mut random),
        7 => several(&rare, 1, &mut random) + " " + &several(&frequent, 3, &mut random),
        _ => {
            let characters = &chinese[random.below(chinese.len())];
            let from = random.below(characters.len() - 7);
            characters[from..from + 8].iter().collect()
        }
    };
    let has = |kind: usize| match kind {
        1 | 6 | 7 => !frequent.is_empty(),
        8 => !chinese.is_empty(),
        _ => true,
    };
    let of_kind = |kind: usize| match has(kind) {
        true => (0..count).map(|_| make(kind)).collect(),
        false => Vec::new(),
    };
    (0..KINDS.len()).map(of_kind).collect()
}

/// Returns the words of a text that are plain letters.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '.' | ',' | '?' | '!'));
    words.filter(|word| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase()))
}
