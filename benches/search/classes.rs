//! The kinds of query, and literals of each, sampled from the texts by the kind's definition: first frequent
//! queries of people, then queries that are hard for an index of grams.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use verbatim_base::model::{Matching, Request};
use verbatim_text::date;

use crate::corpus::random::Random;
use crate::haystack::{Haystack, Source};

/// The number of literals of a class, if there are enough.
const LITERALS: usize = 24;

/// The number of texts of which every prefix is a literal, as one types them.
const TYPED: usize = 12;

/// The number of tries after which sampling accepts fewer literals.
const TRIES: usize = 100_000;

/// The most hits to a query: the contract's default.
const LIMIT: usize = 50;

/// The number of whole texts in the sample that estimates shares before an exact count.
const SAMPLE: usize = 8_000;

/// A trigram in this share of the texts is common.
const COMMON_TRIGRAM: f64 = 0.02;

pub(crate) struct Class {
    pub(crate) name: &'static str,
    pub(crate) literals: Vec<Literal>,
}

/// A query of a class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Literal {
    pub(crate) text: String,
    pub(crate) role: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    #[serde(default)]
    pub(crate) mode: Mode,
}

/// How the text of a query matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mode {
    #[default]
    Like,
    Literal,
    Case,
    Fold,
    Word,
    Regex,
}

impl Literal {
    fn text(text: impl Into<String>) -> Literal {
        Literal { text: text.into(), ..Literal::default() }
    }

    pub(crate) fn request(&self) -> Request {
        Request {
            text: self.text.clone(),
            roles: self.role.iter().cloned().collect(),
            since: self.since.as_deref().and_then(date::from_stored),
            until: self.until.as_deref().and_then(date::from_stored),
            limit: Some(LIMIT),
            matching: match self.mode {
                Mode::Like => Matching::Like,
                Mode::Literal | Mode::Case | Mode::Fold => Matching::Literal,
                Mode::Word => Matching::Word,
                Mode::Regex => Matching::Regex,
            },
            case_sensitive: self.mode == Mode::Case,
            ignore_accents: self.mode == Mode::Fold,
            raw_content: true,
            ..Request::default()
        }
    }
}

/// Returns the classes of LIKE.
pub(crate) fn sample(source: &Source) -> Vec<Class> {
    let mut sampler = Sampler::new(source);
    let words = sampler.words();
    let common = words.common.clone();
    let literals = |texts: Vec<String>| texts.into_iter().map(Literal::text).collect();
    vec![
        Class { name: "rare word", literals: literals(words.rare) },
        Class { name: "word in 0.05 %", literals: literals(words.scarce) },
        Class { name: "word in 5 %", literals: literals(words.common) },
        Class { name: "“the” and its like", literals: literals(words.commonest) },
        Class { name: "long phrase, once", literals: literals(sampler.phrases()) },
        Class { name: "absent, of common trigrams", literals: literals(sampler.absent()) },
        Class { name: "two characters, rare", literals: literals(sampler.rare_pairs()) },
        Class { name: "one character", literals: literals(sampler.characters()) },
        Class { name: "Chinese, two characters", literals: literals(sampler.chinese()) },
        Class { name: "role = tool", literals: sampler.by_role(&common) },
        Class { name: "old narrow date range", literals: sampler.by_date(&common) },
        Class { name: "no text, role only", literals: roles_only() },
        Class { name: "title only", literals: literals(sampler.titles()) },
        Class { name: "a%b, a_b%c", literals: literals(sampler.wildcards()) },
        Class { name: "emoji", literals: literals(sampler.emoji()) },
        Class { name: "8 digits of a UUID", literals: literals(sampler.uuids()) },
        Class {
            name: "common grams, long messages",
            literals: literals(sampler.of_long_messages()),
        },
        Class { name: "one letter, rare role, old", literals: sampler.rare_and_old() },
        Class {
            name: "wildcards that say little",
            literals: literals(LITTLE.map(str::to_owned).into()),
        },
        Class { name: TYPING, literals: literals(sampler.typed()) },
        Class { name: "3 characters", literals: literals(sampler.pieces(3)) },
        Class { name: "5 characters", literals: literals(sampler.pieces(5)) },
        Class { name: "a_b", literals: literals(sampler.gaps()) },
    ]
}

/// Returns the classes of capitals, for searches that mind the case.
pub(crate) fn capitals(source: &Source) -> Vec<Class> {
    let mut sampler = Sampler::new(source);
    let mut class = |name, lengths, fits: fn(u8, &[u8]) -> bool| {
        let texts = sampler.collect(LITERALS, |sampler| sampler.letters(lengths, fits));
        let literals =
            texts.into_iter().map(|text| Literal { mode: Mode::Case, ..Literal::text(text) });
        Class { name, literals: literals.collect() }
    };
    let begins = |before: u8, letters: &[u8]| {
        !before.is_ascii_alphanumeric()
            && letters[0].is_ascii_uppercase()
            && letters[1..].iter().all(u8::is_ascii_lowercase)
    };
    vec![
        class("cap 3", (3, 3), begins),
        class("cap 4", (4, 4), begins),
        class("camelCase", (3, 6), |_, letters| {
            letters.windows(2).any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase())
        }),
        class("two letters, a capital", (2, 2), |_, two| two.iter().any(u8::is_ascii_uppercase)),
    ]
}

/// The class of what is searched for while somebody types.
pub(crate) const TYPING: &str = "as you type";

/// Patterns whose runs are in nearly every message.
const LITTLE: [&str; 8] = [
    "%e%a%o%t%s%",
    "________________________________________",
    "e_a_o_t",
    "_e_",
    "%x%q%z%j%",
    "t__t__t",
    "%a%_%b%_%c%_%d",
    "the%the%the%the",
];

/// Texts that long messages have in tables, rules and tables of contents.
const RULES: [&str; 6] = [
    "............",
    "------------",
    "============",
    "############",
    "************",
    "| --- | --- |",
];

struct Sampler<'a> {
    source: &'a Source,
    sample: Haystack,
    random: Random,
}

/// Words by the share of messages they are in.
#[derive(Default)]
struct Words {
    rare: Vec<String>,
    scarce: Vec<String>,
    common: Vec<String>,
    commonest: Vec<String>,
}

impl Sampler<'_> {
    fn new(source: &Source) -> Sampler<'_> {
        Sampler { source, sample: source.messages.sample(SAMPLE), random: Random::new(7) }
    }

    /// Fills a class from `candidate`, which returns a text of the class in some of its calls.
    fn collect(
        &mut self,
        wanted: usize,
        mut candidate: impl FnMut(&mut Self) -> Option<String>,
    ) -> Vec<String> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        for _ in 0..TRIES {
            if found.len() == wanted {
                break;
            }
            if let Some(text) = candidate(self)
                && seen.insert(text.clone())
            {
                found.push(text);
            }
        }
        found
    }

    /// Returns a word from a random message. The word has at least four characters, all of them ASCII, and no
    /// wildcards.
    fn word(&mut self) -> Option<String> {
        let words: Vec<&str> =
            self.source.messages.any(&mut self.random).split_ascii_whitespace().collect();
        if words.is_empty() {
            return None;
        }
        let word = words[self.random.below(words.len())];
        (word.len() >= 4 && word.is_ascii() && is_plain(word)).then(|| word.to_owned())
    }

    fn words(&mut self) -> Words {
        let messages = self.source.messages.len() as f64;
        let mut words = Words::default();
        let mut seen = HashSet::new();
        for _ in 0..TRIES {
            if words.rare.len() + words.scarce.len() + words.common.len() == 3 * LITERALS {
                break;
            }
            let Some(word) = self.word() else { continue };
            if !seen.insert(word.to_ascii_lowercase()) {
                continue;
            }
            let share = self.sample.share(&word);
            if words.common.len() < LITERALS && (0.03..0.08).contains(&share) {
                words.common.push(word);
            } else if share < 0.002
                && (words.scarce.len() < LITERALS || words.rare.len() < LITERALS)
            {
                let (few, many) = (0.0003 * messages, 0.0008 * messages);
                let count = self.source.messages.count(&word, many as usize + 11) as f64;
                if words.scarce.len() < LITERALS && (few..=many).contains(&count) && count > 10.0 {
                    words.scarce.push(word);
                } else if words.rare.len() < LITERALS
                    && count <= 10.0
                    && self.source.titles.count(&word, 1) == 0
                {
                    words.rare.push(word);
                }
            }
        }
        words.commonest = self.commonest();
        words
    }

    /// Returns the words of three letters and more that the most messages of the sample hold, inside other words too.
    fn commonest(&self) -> Vec<String> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for at in 0..self.sample.len() {
            for word in self.sample.get(at).split_ascii_whitespace() {
                if word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                    *counts.entry(word.to_ascii_lowercase()).or_default() += 1;
                }
            }
        }
        let mut words: Vec<(usize, String)> =
            counts.into_iter().map(|(word, count)| (count, word)).collect();
        words.sort_by(|one, other| other.cmp(one));
        words.truncate(LITERALS);
        words.into_iter().map(|(_, word)| word).collect()
    }

    /// Returns a message: any, or the one with any byte of all text, which is often a long one.
    fn text(&mut self) -> &str {
        let messages = &self.source.messages;
        match self.random.chance(0.5) {
            true => messages.any(&mut self.random),
            false => messages.around(self.random.below(messages.bytes())),
        }
    }

    /// Returns `length` characters at any place of a message, without line breaks, wildcards or spaces at the ends.
    fn fragment(&mut self, length: usize) -> Option<String> {
        let text = self.text().to_owned();
        let at = self.random.below(text.len().max(1));
        let at = (at..text.len()).find(|at| text.is_char_boundary(*at))?;
        let fragment: String = text[at..].chars().take(length).collect();
        let fits = fragment.trim() == fragment && is_plain(&fragment);
        (fits && fragment.chars().count() == length).then_some(fragment)
    }

    fn pieces(&mut self, length: usize) -> Vec<String> {
        self.collect(LITERALS, |sampler| sampler.fragment(length))
    }

    /// Returns two characters of a message with the wildcard of one between them.
    fn gaps(&mut self) -> Vec<String> {
        self.collect(LITERALS, |sampler| {
            let letters: Vec<char> = sampler.fragment(3)?.chars().collect();
            Some(format!("{}_{}", letters[0], letters[2]))
        })
    }

    /// Returns prefixes of some words that follow one another, in any order.
    fn typed(&mut self) -> Vec<String> {
        let texts = self.collect(TYPED, |sampler| {
            let text = sampler.text().to_owned();
            let words: Vec<&str> = text.split_whitespace().collect();
            let at = sampler.random.below(words.len().checked_sub(4)? + 1);
            let text = String::from_iter(words[at..at + 4].join(" ").chars().take(LITERALS));
            is_plain(&text).then_some(text)
        });
        self.collect(TYPED * LITERALS, |sampler| {
            let text = &texts[sampler.random.below(texts.len())];
            let typed = sampler.random.between(1, LITERALS);
            // LIKE is asked without white space at the ends.
            Some(String::from_iter(text.chars().take(typed)).trim_end().to_owned())
        })
    }

    /// Returns ASCII letters of a message that `fits` takes, together with the byte before them.
    fn letters(
        &mut self,
        (least, most): (usize, usize),
        fits: fn(u8, &[u8]) -> bool,
    ) -> Option<String> {
        let length = self.random.between(least, most);
        let text = format!(" {}", self.text());
        let at = self.random.below(text.len().checked_sub(length)?);
        let (before, letters) = (text.as_bytes()[at], text.get(at + 1..at + 1 + length)?);
        let is_word = letters.bytes().all(|byte| byte.is_ascii_alphabetic());
        (is_word && fits(before, letters.as_bytes())).then(|| letters.to_owned())
    }

    fn phrases(&mut self) -> Vec<String> {
        self.collect(LITERALS, |sampler| {
            let length = sampler.random.between(40, 60);
            sampler.fragment(length).filter(|phrase| sampler.source.messages.count(phrase, 2) == 1)
        })
    }

    /// Returns texts that no message has, although each of their trigrams is in many messages.
    fn absent(&mut self) -> Vec<String> {
        let mut common: HashMap<String, bool> = HashMap::new();
        self.collect(LITERALS, |sampler| {
            let mut text = String::new();
            for _ in 0..sampler.random.between(2, 3) {
                let length = sampler.random.between(4, 7);
                text += &sampler.fragment(length).filter(|piece| piece.is_ascii())?;
            }
            let text = text.to_ascii_lowercase();
            let all_common = (0..text.len() - 2).all(|at| {
                *common
                    .entry(text[at..at + 3].to_owned())
                    .or_insert_with_key(|gram| sampler.sample.share(gram) > COMMON_TRIGRAM)
            });
            let source = sampler.source;
            (all_common
                && source.messages.count(&text, 1) == 0
                && source.titles.count(&text, 1) == 0)
                .then_some(text)
        })
    }

    fn rare_pairs(&mut self) -> Vec<String> {
        let counts = self.source.messages.count_pairs(26 * 26, |first, second| {
            let letters = first.is_ascii_lowercase() && second.is_ascii_lowercase();
            letters.then(|| usize::from(first - b'a') * 26 + usize::from(second - b'a'))
        });
        let letter = |number: usize| char::from(b'a' + number as u8);
        let mut pairs: Vec<(usize, String)> = (counts.into_iter().enumerate())
            .filter(|&(_, count)| count > 0)
            .map(|(code, count)| (count, String::from_iter([letter(code / 26), letter(code % 26)])))
            .collect();
        pairs.sort();
        pairs.truncate(LITERALS);
        pairs.into_iter().map(|(_, pair)| pair).collect()
    }

    /// Returns ASCII characters from the most to the least frequent.
    fn characters(&mut self) -> Vec<String> {
        let counts =
            self.source.messages.count_pairs(128, |byte, _| byte.is_ascii().then_some(byte.into()));
        let mut characters: Vec<(usize, String)> = (counts.into_iter().enumerate())
            .map(|(byte, count)| (count, char::from(byte as u8).to_string()))
            .filter(|(count, text)| *count > 0 && text.trim().len() == 1 && is_plain(text))
            .collect();
        characters.sort_by(|one, other| other.cmp(one));
        let step = (characters.len() / LITERALS).max(1);
        characters.into_iter().step_by(step).map(|(_, text)| text).take(LITERALS).collect()
    }

    /// Returns two neighbouring characters for which `wanted` holds, from any message that has two of them.
    fn neighbours(&mut self, wanted: impl Fn(char) -> bool) -> Option<String> {
        let text = self.source.messages.any(&mut self.random);
        let letters: Vec<char> = text.chars().collect();
        let pairs: Vec<&[char]> =
            letters.windows(2).filter(|pair| wanted(pair[0]) && wanted(pair[1])).collect();
        (!pairs.is_empty()).then(|| String::from_iter(pairs[self.random.below(pairs.len())]))
    }

    fn chinese(&mut self) -> Vec<String> {
        self.collect(LITERALS, |sampler| {
            sampler.neighbours(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter))
        })
    }

    /// Returns common and rarer words, for searches in messages of tools.
    fn by_role(&mut self, common: &[String]) -> Vec<Literal> {
        let (few, many) = self.counts(0.000_05, 0.003);
        let rarer = self.collect(LITERALS / 2, |sampler| {
            let word = sampler.word()?;
            (few..=many).contains(&sampler.source.messages.count(&word, many + 1)).then_some(word)
        });
        let common = common.iter().take(LITERALS / 2).cloned();
        common
            .chain(rarer)
            .map(|word| Literal { role: Some("tool".to_owned()), ..Literal::text(word) })
            .collect()
    }

    /// Returns two shares of the messages as numbers, at least 2 and 10.
    fn counts(&self, few: f64, many: f64) -> (usize, usize) {
        let messages = self.source.messages.len() as f64;
        (((few * messages) as usize).max(2), ((many * messages) as usize).max(10))
    }

    /// Returns common words within two days, a long time ago.
    fn by_date(&self, common: &[String]) -> Vec<Literal> {
        let times = &self.source.times;
        (0..LITERALS)
            .filter_map(|at| {
                let rank = times.len() as f64 * (0.90 + 0.09 * at as f64 / LITERALS as f64);
                let until = date::from_stored(&times[rank as usize])?;
                let mut since = until;
                since.seconds -= 2 * 86_400;
                let text = if at % 2 == 0 { "the" } else { common.get(at)? };
                Some(Literal {
                    since: Some(since.to_decimal()),
                    until: Some(until.to_decimal()),
                    ..Literal::text(text)
                })
            })
            .collect()
    }

    fn titles(&mut self) -> Vec<String> {
        self.collect(LITERALS, |sampler| {
            let length = sampler.random.between(12, 19);
            let title = sampler.source.titles.any(&mut sampler.random);
            if title.len() <= length || !title.is_ascii() {
                return None;
            }
            let at = sampler.random.below(title.len() - length);
            let part = title[at..at + length].trim();
            (is_plain(part) && sampler.source.messages.count(part, 1) == 0).then(|| part.to_owned())
        })
    }

    /// Returns two words of a message with `%` between them; in every fourth, one letter is `_`.
    fn wildcards(&mut self) -> Vec<String> {
        let mut made = 0;
        self.collect(LITERALS, |sampler| {
            let text = sampler.source.messages.any(&mut sampler.random);
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            if words.len() < 12 {
                return None;
            }
            let at = sampler.random.below(words.len() - 8);
            let (first, second) = (words[at], words[at + sampler.random.between(1, 5)]);
            let fit = |word: &str| word.len() >= 4 && word.is_ascii() && is_plain(word);
            if !fit(first) || !fit(second) {
                return None;
            }
            made += 1;
            Some(if made % 4 == 0 {
                format!("{}_{}%{second}", &first[..2], &first[3..])
            } else {
                format!("{first}%{second}")
            })
        })
    }

    fn emoji(&mut self) -> Vec<String> {
        self.collect(LITERALS, |sampler| {
            let text = sampler.source.messages.any(&mut sampler.random);
            let found = text.chars().find(|&letter| {
                ('\u{1f300}'..='\u{1faff}').contains(&letter)
                    || ('\u{2600}'..='\u{27bf}').contains(&letter)
            })?;
            Some(found.to_string())
        })
    }

    /// Returns the longest messages: one of two hundred.
    fn longest(&self) -> Vec<usize> {
        let messages = &self.source.messages;
        let mut longest: Vec<usize> = (0..messages.len()).collect();
        longest.sort_by_key(|at| std::cmp::Reverse(messages.get(*at).len()));
        longest.truncate(messages.len().div_ceil(200));
        longest
    }

    /// Returns rules, and pieces of the longest messages in which every trigram is common.
    fn of_long_messages(&mut self) -> Vec<String> {
        let longest = self.longest();
        let mut common: HashMap<String, bool> = HashMap::new();
        let pieces = self.collect(LITERALS - RULES.len(), |sampler| {
            let text = sampler.source.messages.get(longest[sampler.random.below(longest.len())]);
            let length = sampler.random.between(9, 14);
            if text.len() <= length || !text.is_ascii() {
                return None;
            }
            let at = sampler.random.below(text.len() - length);
            let piece = text[at..at + length].to_ascii_lowercase();
            let is_common = (0..piece.len() - 2).all(|at| {
                *common
                    .entry(piece[at..at + 3].to_owned())
                    .or_insert_with_key(|gram| sampler.sample.share(gram) > COMMON_TRIGRAM)
            });
            (piece.trim() == piece && is_plain(&piece) && is_common).then_some(piece)
        });
        RULES.map(str::to_owned).into_iter().chain(pieces).collect()
    }

    /// Returns letters that are rare in old messages of a rare role.
    fn rare_and_old(&mut self) -> Vec<Literal> {
        let times = &self.source.times;
        let until = times.get(times.len() * 9 / 10).cloned();
        let role = Some("system".to_owned());
        let letters = self.characters().into_iter();
        letters
            .map(|letter| Literal {
                role: role.clone(),
                until: until.clone(),
                ..Literal::text(letter)
            })
            .collect()
    }

    fn uuids(&mut self) -> Vec<String> {
        let mut made = 0;
        self.collect(LITERALS, |sampler| {
            let text = sampler.source.messages.any(&mut sampler.random).as_bytes();
            let uuid = text.windows(36).find(|window| {
                window.iter().enumerate().all(|(at, byte)| match at {
                    8 | 13 | 18 | 23 => *byte == b'-',
                    _ => byte.is_ascii_hexdigit(),
                })
            })?;
            made += 1;
            let at = if made % 2 == 0 { 0 } else { 24 };
            Some(String::from_utf8_lossy(&uuid[at..at + 8]).into_owned())
        })
    }

    /// Returns patterns of every shape: 1 to 40 characters of a message, some of them changed.
    fn pattern(&mut self) -> Option<String> {
        let letters: Vec<char> = self.text().chars().collect();
        let length = self.random.between(1, 40);
        if letters.len() < length {
            return None;
        }
        let at = self.random.below(letters.len() - length + 1);
        let mut pattern = letters[at..at + length].to_vec();
        for (chance, wildcard) in [(0.25, '_'), (0.1, '_'), (0.2, '%'), (0.05, '%')] {
            if self.random.chance(chance) {
                let at = self.random.below(length);
                pattern[at] = wildcard;
            }
        }
        if self.random.chance(0.15) {
            // A piece of another message is appended.
            let other: Vec<char> = self.source.messages.any(&mut self.random).chars().collect();
            let piece = self.random.between(1, 8).min(other.len());
            pattern.truncate(40 - piece);
            pattern.extend(&other[..piece]);
        }
        if self.random.chance(0.15) {
            let at = self.random.below(pattern.len());
            pattern[at] = pattern[self.random.below(pattern.len())];
        }
        if self.random.chance(0.2) {
            for letter in &mut pattern {
                *letter = letter.to_ascii_uppercase();
            }
        }
        let pattern = String::from_iter(pattern).trim().to_owned();
        (!pattern.is_empty()).then_some(pattern)
    }
}

/// Returns `count` patterns among which a slow one may hide.
pub(crate) fn patterns(source: &Source, count: usize) -> Vec<Literal> {
    let sample = Haystack::default();
    let mut sampler = Sampler { source, sample, random: Random::new(11) };
    let mut patterns = Vec::with_capacity(count);
    while patterns.len() < count {
        let Some(text) = sampler.pattern() else { continue };
        let mode = MODES[sampler.random.below(MODES.len())];
        let text = if mode == Mode::Regex { as_expression(&text) } else { text };
        patterns.push(Literal { mode, ..Literal::text(text) });
    }
    patterns
}

/// The modes of random patterns; half of them are LIKE.
const MODES: [Mode; 10] = [
    Mode::Like,
    Mode::Like,
    Mode::Like,
    Mode::Like,
    Mode::Like,
    Mode::Literal,
    Mode::Case,
    Mode::Fold,
    Mode::Word,
    Mode::Regex,
];

/// Returns a pattern of LIKE as an expression.
pub(crate) fn as_expression(pattern: &str) -> String {
    regex::escape(pattern).replace('%', ".*?").replace('_', ".")
}

/// Returns a query with one of its characters changed, left out or doubled; `None` if nothing is left.
pub(crate) fn changed(literal: &Literal, random: &mut Random) -> Option<Literal> {
    let mut letters: Vec<char> = literal.text.chars().collect();
    let at = random.below(letters.len().max(1)).min(letters.len().checked_sub(1)?);
    match random.below(6) {
        0 => letters[at] = '_',
        1 => letters.insert(at, '%'),
        2 => drop(letters.remove(at)),
        3 => letters.insert(at, letters[at]),
        4 => letters[at] = letters[random.below(letters.len())],
        _ => letters.extend_from_within(at..),
    }
    let text = String::from_iter(letters).trim().to_owned();
    let has_marks = literal.mode == Mode::Fold && !text.is_ascii();
    (!text.is_empty() && text.len() < 200 && !has_marks)
        .then(|| Literal { text, ..literal.clone() })
}

fn roles_only() -> Vec<Literal> {
    ["user", "assistant", "tool", "system"]
        .map(|role| Literal { role: Some(role.to_owned()), ..Literal::default() })
        .into()
}

/// Returns whether `text` means itself in a LIKE pattern and stays on one line.
fn is_plain(text: &str) -> bool {
    !text.contains(['%', '_', '\n', '\r', '\0'])
}
