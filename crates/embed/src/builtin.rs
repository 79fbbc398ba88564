//! The built-in model: a table of token vectors that is compiled into the program.
//!
//! `model/README.md` describes the model and how it was made.

use std::sync::LazyLock;

use super::{static_model::VectorRows, wordpiece::WordPiece};

pub(super) const TOKENIZER: &[u8] = include_bytes!("../model/tokenizer.json");
const TABLE: &[u8] = include_bytes!("../model/model.safetensors");

/// Name of the model. It ends with the CRC-32 of tokenizer, table and configuration, in this order.
pub(super) const NAME: &str = "built-in-256-ede10d80";

pub(super) const DIMENSIONS: usize = 256;

/// Number of bytes of a text that the model reads at most. It ignores the rest of the text.
pub(super) const MOST_READ: usize = 16 << 10;

const MOST_PIECES: usize = 512;

/// Number of characters of a text that the model reads at most, as model2vec does: the pieces that count,
/// times the median length of a piece in bytes.
const MOST_CHARACTERS: usize = MOST_PIECES * 6;

struct BuiltIn {
    tokenizer: WordPiece,
    table: VectorRows<DIMENSIONS>,
}

/// The built-in model. It is loaded at the first use, so that exact searches do not wait for it (2 ms).
static MODEL: LazyLock<BuiltIn> = LazyLock::new(|| {
    let tokenizer =
        WordPiece::parse(TOKENIZER).expect("the model is compiled in, and a test loads it");
    let table = VectorRows::parse(TABLE, tokenizer.len())
        .expect("the model is compiled in, and a test loads it");
    BuiltIn { tokenizer, table }
});

/// Returns the unit vector of a text; all zeros if the model knows no part of it.
///
/// Only the first 512 pieces of a text count (about 2,500 letters).
pub(super) fn encode(text: &str) -> Vec<f32> {
    let end = text.char_indices().nth(MOST_CHARACTERS).map_or(text.len(), |(end, _)| end);
    let BuiltIn { tokenizer, table } = &*MODEL;
    let mut ids = tokenizer.encode(&text[..end], MOST_PIECES);
    ids.retain(|id| *id != tokenizer.unknown_id());
    table.mean(&ids)
}

/// Returns whether a lower-case word is one piece of the vocabulary.
pub(super) fn is_word(word: &str) -> bool {
    let longest = MODEL.tokenizer.longest(word, 0, |_| true);
    longest.is_some_and(|(_, length)| length == word.len())
}

/// Returns whether the piece at the byte `start` of a word has a useful vector: whole ASCII words, and other
/// pieces of at least three letters.
///
/// A word that is split into single letters gets a vector too, but that vector means nothing.
fn is_meaningful(piece: &str, start: usize) -> bool {
    start == 0 && piece.is_ascii() || piece.chars().count() > 2
}

/// Returns the share of a text's letters and digits that belong to meaningful pieces, from 0 to 1.
pub(super) fn known_share(text: &str) -> f64 {
    let mut known = 0;
    let mut all = 0;
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        all += word.chars().count();
        known += known_letters(&word);
    }
    if all == 0 { 0.0 } else { known as f64 / all as f64 }
}

/// Returns how many letters of a word belong to meaningful pieces. Splits the word as the model does: the
/// longest piece first.
fn known_letters(word: &str) -> usize {
    let mut known = 0;
    let mut start = 0;
    while let Some(first) = word[start..].chars().next() {
        let longest = MODEL.tokenizer.longest(word, start, |piece| is_meaningful(piece, start));
        let letters = longest.map_or(0, |(_, length)| word[start..][..length].chars().count());
        match longest {
            // A piece of one or two letters counts only at the end of the word.
            Some((_, length)) if letters > 2 || start + length == word.len() => {
                known += letters;
                start += length;
            }
            _ => start += first.len_utf8(),
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &[u8] = include_bytes!("../model/config.json");

    #[test]
    fn the_name_is_that_of_the_files() {
        let mut hasher = crc32fast::Hasher::new();
        for file in [TOKENIZER, TABLE, CONFIG] {
            hasher.update(file);
        }
        assert_eq!(NAME, format!("built-in-{DIMENSIONS}-{:08x}", hasher.finalize()));
        assert_eq!(encode("").len(), DIMENSIONS);
    }

    /// The expected vectors are from Python: model2vec 0.8,
    /// `StaticModel.from_pretrained("model").encode(text, max_length=512)`.
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
            let share = known_share(text);
            assert!((least..=most).contains(&share), "{text}: {share}");
        }
    }

    /// The expected checksums of the vectors' bytes are from the crate model2vec-rs 0.4.0: the vectors of an
    /// index and of a question must be the same to the bit, whichever version made them.
    #[test]
    fn vectors_equal_those_of_the_first_version() {
        let crc = |texts: &mut dyn Iterator<Item = String>| {
            let mut hasher = crc32fast::Hasher::new();
            texts.for_each(|text| {
                encode(&text).iter().for_each(|x| hasher.update(&x.to_le_bytes()));
            });
            hasher.finalize()
        };
        let characters = ('\0'..='\u{E01FF}').step_by(61);
        let mut strange = characters.map(|c| format!("pl{c}ay {c}\u{323}\u{301}Q[SEP]\u{130}{c}"));
        assert_eq!(crc(&mut strange), 0x1f7c_04c8);
        let repeated =
            ["the ", "ab", "\u{E9}", "\u{5B57}", "a\u{301}", "[MASK]", "\0", "tokenizer, "];
        let lengths = [1, 99, 100, 101, 511, 512, 513, 1536, 3071, 3072, 3073, 9999];
        let repeat = |part: &'static str| lengths.map(|count| part.repeat(count) + "end");
        assert_eq!(crc(&mut repeated.into_iter().flat_map(repeat)), 0x4ba7_00c2);
    }

    #[test]
    fn the_most_characters_follow_from_the_median_length() {
        let file: serde_json::Value = serde_json::from_slice(TOKENIZER).unwrap();
        let vocab = file["model"]["vocab"].as_object().unwrap();
        let mut lengths: Vec<usize> = vocab.keys().map(String::len).collect();
        lengths.sort_unstable();
        assert_eq!(MOST_CHARACTERS, MOST_PIECES * lengths[lengths.len() / 2]);
    }
}
