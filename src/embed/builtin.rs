//! The built-in model: a table of token vectors that is compiled into the program.
//!
//! `assets/model/README.md` describes the model and how it was made.

use std::{collections::HashSet, sync::LazyLock};

use model2vec_rs::model::StaticModel;
use serde::Deserialize;

const TOKENIZER: &[u8] = include_bytes!("../../assets/model/tokenizer.json");
const TABLE: &[u8] = include_bytes!("../../assets/model/model.safetensors");
const CONFIG: &[u8] = include_bytes!("../../assets/model/config.json");

/// Name of the model. It ends with the CRC-32 of tokenizer, table and configuration, in this order.
pub(super) const NAME: &str = "built-in-256-ede10d80";

pub(super) const DIMENSIONS: usize = 256;

/// Number of bytes of a text that the model reads at most. It ignores the rest of the text.
pub(super) const MOST_READ: usize = 16 << 10;

/// The built-in model. It is loaded at the first use, so that exact searches do not wait for it (30 ms).
static MODEL: LazyLock<StaticModel> = LazyLock::new(|| {
    StaticModel::from_bytes(TOKENIZER, TABLE, CONFIG, Some(true))
        .expect("the model is compiled in, and a test loads it")
});

/// Returns the unit vector of a text; all zeros if the model knows no part of it.
///
/// Only the first 512 tokens of a text count (about 2,500 letters).
pub(super) fn encode(text: &str) -> Vec<f32> {
    MODEL.encode_single(text)
}

/// Tokens with a useful vector: whole ASCII words, and other tokens of at least three letters.
///
/// A word that is split into single letters gets a vector too, but that vector means nothing.
static MEANINGFUL: LazyLock<HashSet<String>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct WordPiece {
        model: Vocabulary,
    }
    #[derive(Deserialize)]
    struct Vocabulary {
        vocab: std::collections::HashMap<String, u32>,
    }
    let tokenizer: WordPiece =
        serde_json::from_slice(TOKENIZER).expect("the model is compiled in, and a test loads it");
    let mut tokens: HashSet<String> = tokenizer.model.vocab.into_keys().collect();
    tokens.retain(|token| match token.strip_prefix("##") {
        None => token.is_ascii() || token.chars().count() > 2,
        Some(part) => part.chars().count() > 2,
    });
    tokens
});

/// Returns the share of a text's letters and digits that belong to meaningful tokens, from 0 to 1.
pub(super) fn known(text: &str) -> f64 {
    let (mut known, mut all) = (0, 0);
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        all += word.chars().count();
        known += known_of(&word);
    }
    if all == 0 { 0.0 } else { known as f64 / all as f64 }
}

/// Returns how many letters of a word belong to meaningful tokens. Splits the word as the model does: the
/// longest token first.
fn known_of(word: &str) -> usize {
    /// Maximum number of characters of a token.
    const LONGEST: usize = 18;
    let (mut known, mut start) = (0, 0);
    let mut part = String::new();
    while start < word.len() {
        let rest = &word[start..];
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let ends: Vec<usize> = ends.take(LONGEST).collect();
        let meaningful = ends.iter().rposition(|end| {
            part.clear();
            part.push_str(if start == 0 { "" } else { "##" });
            part.push_str(&rest[..*end]);
            MEANINGFUL.contains(&part)
        });
        match meaningful {
            // A token of one or two letters counts only at the end of the word.
            Some(last) if last > 1 || ends[last] == rest.len() => {
                known += last + 1;
                start += ends[last];
            }
            _ => start += ends[0],
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_that_of_the_files() {
        let mut hasher = crc32fast::Hasher::new();
        for file in [TOKENIZER, TABLE, CONFIG] {
            hasher.update(file);
        }
        assert_eq!(NAME, format!("built-in-{DIMENSIONS}-{:08x}", hasher.finalize()));
        assert_eq!(MODEL.dim(), DIMENSIONS);
    }

    /// The expected vectors are from Python: model2vec 0.8,
    /// `StaticModel.from_pretrained("assets/model").encode(text, max_length=512)`.
    #[test]
    fn vectors_equal_those_of_the_python_package() {
        let long = "the Rust borrow checker ".repeat(400);
        let table: [(&str, [f32; 6]); 4] = [
            (
                "Hey Mel! Good to see you! How have you been?",
                [-0.071_138, 0.052_622, 0.069_323, 0.140_450, -0.110_734, -0.072_305],
            ),
            (
                "snake_case and camelCase, naïve café №5",
                [-0.089_788, 0.043_604, 0.066_857, 0.139_600, -0.121_427, -0.006_162],
            ),
            (
                "我们明天去北京。 Привет, мир!",
                [-0.043_562, 0.017_036, -0.032_327, 0.129_695, -0.189_328, -0.051_627],
            ),
            (&long, [-0.079_163, 0.044_165, 0.046_311, 0.041_273, -0.076_379, 0.028_140]),
        ];
        for (text, expected) in table {
            let vector = encode(text);
            for (ours, theirs) in vector.iter().zip(expected) {
                assert!((ours - theirs).abs() < 2e-6, "{text:.40}: {ours} {theirs}");
            }
            let length: f32 = vector.iter().map(|x| x * x).sum();
            assert!((length - 1.0).abs() < 1e-5, "{text:.40}: {length}");
        }
        assert_eq!(encode(""), [0.0; DIMENSIONS]);
        assert_eq!(encode("\u{10FFFF}"), [0.0; DIMENSIONS]);
    }

    #[test]
    fn nothing_is_read_beyond_the_limit() {
        for part in ["internationalization ", "日本語", "\u{10348}", "a"] {
            let long = part.repeat(MOST_READ);
            let end = long.floor_char_boundary(MOST_READ);
            assert_eq!(encode(&long), encode(&long[..end]), "{part}");
        }
    }

    #[test]
    fn known_shares_follow_the_language() {
        let table = [
            ("When did Caroline go to the LGBTQ support group?", 0.85, 1.0),
            ("I am on it, ok?", 0.99, 1.0),
            ("tokenizer trait objects in async Rust", 0.8, 1.0),
            ("我们明天去北京吃烤鸭", 0.0, 0.01),
            ("明日は東京で会いましょう", 0.0, 0.01),
            ("Когда Мария поехала в Москву?", 0.0, 0.1),
            ("我想学 Rust programming", 0.7, 0.9),
            ("?!", 0.0, 0.0),
            ("", 0.0, 0.0),
        ];
        for (text, least, most) in table {
            let share = known(text);
            assert!((least..=most).contains(&share), "{text}: {share}");
        }
    }

    #[test]
    fn no_token_is_longer_than_the_limit() {
        let longest = MEANINGFUL.iter().map(|token| token.trim_start_matches('#').chars().count());
        assert_eq!(longest.max(), Some(18));
    }
}
