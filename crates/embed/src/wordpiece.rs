//! The tokenizer of the built-in model: the WordPiece of BERT's uncased models.
//!
//! A text becomes words in lower case without accents, and each word the longest pieces of the vocabulary
//! that spell it, from left to right: "embeddings" is `em`, `##bed`, `##ding`, `##s`.
//!
//! Invariant: the pieces are those of Hugging Face's `tokenizers` (`BertNormalizer`, `BertPreTokenizer`,
//! `WordPiece`) to the last one, because vectors are compared with vectors that were made before. So the
//! categories of characters are those of the crate `unicode_categories`, which knows Unicode 8.

use std::{borrow::Cow, fmt, iter};

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use unicode_categories::UnicodeCategories;
use unicode_normalization::{UnicodeNormalization, char::decompose_canonical};

const LONGEST_PIECE: usize = 18;

/// Maximum number of characters of a word. A longer word is one unknown piece.
const LONGEST_WORD: usize = 100;

/// What a piece begins with that continues a word.
const CONTINUATION: &str = "##";

/// The place of a piece in the vocabulary, which is also its row in the model's table.
pub(super) type Id = u16;

/// A vocabulary of pieces, and the tokenizer that splits texts into them.
pub(super) struct WordPiece {
    pieces: Vec<VocabularyPiece>,
    /// A hash table with open addressing: `SLOTS` pairs of a piece's id, or `FREE`, and the lowest bits of
    /// the piece's hash.
    slots: Vec<(Id, u16)>,
    hints: Hints,
    /// The pieces that a text can contain literally, such as `[SEP]`. Each begins with a bracket.
    special: Vec<Special>,
    unknown: Id,
}

/// The parts of `tokenizer.json` that are not the same for all uncased models.
#[derive(Deserialize)]
struct TokenizerFile {
    added_tokens: Vec<Special>,
    model: VocabularyModel,
}

#[derive(Deserialize)]
struct Special {
    content: String,
    id: Id,
}

#[derive(Deserialize)]
struct VocabularyModel {
    unk_token: String,
    #[serde(deserialize_with = "in_order")]
    vocab: Vec<VocabularyPiece>,
}

impl WordPiece {
    /// Reads a vocabulary from a `tokenizer.json`.
    ///
    /// Fails if the file is of another form, if its ids are not 0, 1, 2, … in its order, if a piece is too
    /// long, or if there are more than `SLOTS` / 2 or no unknown piece.
    pub(super) fn parse(json: &[u8]) -> serde_json::Result<WordPiece> {
        let TokenizerFile { added_tokens, model } = serde_json::from_slice(json)?;
        let pieces = model.vocab;
        let mut slots = vec![(FREE, 0); SLOTS];
        let mut hints = Hints(vec![0; 2 * SLOTS]);
        for (id, VocabularyPiece(piece)) in pieces.iter().enumerate() {
            let mut hash = u64::from(piece[LONGEST_PIECE + 1]);
            for (byte, next) in piece.iter().zip(&piece[1..]).take_while(|(byte, _)| **byte != 0) {
                hash = extend(hash, *byte);
                hints.add(hash, *next == 0);
            }
            let mut at = slot(hash);
            while slots[at].0 != FREE {
                at = (at + 1) % SLOTS;
            }
            slots[at] = (id as Id, hash as u16);
        }
        let unknown = added_tokens.iter().find(|special| special.content == model.unk_token);
        let unknown = unknown.ok_or_else(|| Error::custom("no unknown piece"))?.id;
        Ok(WordPiece { pieces, slots, hints, special: added_tokens, unknown })
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn unknown_id(&self) -> Id {
        self.unknown
    }

    pub(super) fn encode(&self, text: &str, most: usize) -> Vec<Id> {
        let mut ids = Vec::with_capacity(most.min(text.len()));
        let mut normalized = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() && ids.len() < most {
            // Special pieces are found before the text is normalized, and in the middle of words.
            let special = rest.match_indices('[').find_map(|(at, _)| {
                let here =
                    self.special.iter().find(|special| rest[at..].starts_with(&special.content))?;
                Some((at, at + here.content.len(), here.id))
            });
            let (end, next, special) = match special {
                Some((start, end, id)) => (start, end, Some(id)),
                None => (rest.len(), rest.len(), None),
            };
            normalized.clear();
            normalize(&rest[..end], &mut normalized);
            for word in split_words(&normalized) {
                self.split(word, &mut ids);
                if ids.len() >= most {
                    break;
                }
            }
            ids.extend(special);
            rest = &rest[next..];
        }
        ids.truncate(most);
        ids
    }

    /// Appends the pieces of a word; the unknown piece if there are none that spell all of it.
    fn split(&self, word: &str, ids: &mut Vec<Id>) {
        let before = ids.len();
        let mut start = 0;
        if word.len() <= LONGEST_WORD || word.chars().count() <= LONGEST_WORD {
            while let Some((id, length)) = self.longest(word, start, |_| true) {
                ids.push(id);
                start += length;
            }
        }
        if start < word.len() {
            ids.truncate(before);
            ids.push(self.unknown);
        }
    }

    /// Returns the longest of the wanted pieces that stand in a word at the byte `start`, with its number
    /// of bytes.
    #[inline]
    pub(super) fn longest(
        &self,
        word: &str,
        start: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<(Id, usize)> {
        let bytes = &word.as_bytes()[start..];
        let bytes = &bytes[..bytes.len().min(LONGEST_PIECE)];
        let mut hashes = [u64::from(start > 0); LONGEST_PIECE + 1];
        let mut most = 0;
        for (at, byte) in bytes.iter().enumerate() {
            hashes[at + 1] = extend(hashes[at], *byte);
            let (begins, ends) = self.hints.lookup(hashes[at + 1]);
            if !begins {
                break;
            }
            most = if ends { at + 1 } else { most };
        }
        (1..=most).rev().find_map(|end| {
            let id = self.find(hashes[end], start > 0, &bytes[..end])?;
            wanted(&word[start..start + end]).then_some((id, end))
        })
    }

    /// Returns the id of the piece of this text, whose hash is given.
    fn find(&self, hash: u64, continues: bool, text: &[u8]) -> Option<Id> {
        let mut at = slot(hash);
        loop {
            let (id, lower) = self.slots[at];
            if id == FREE {
                return None;
            }
            if lower == hash as u16 && self.pieces[usize::from(id)].matches(continues, text) {
                return Some(id);
            }
            at = (at + 1) % SLOTS;
        }
    }
}

/// A piece's text without `##`, filled up with zeros, and in the last byte 1 if it continues a word, else 0.
struct VocabularyPiece([u8; LONGEST_PIECE + 2]);

impl VocabularyPiece {
    fn matches(&self, continues: bool, text: &[u8]) -> bool {
        self.0[LONGEST_PIECE + 1] == u8::from(continues)
            && self.0[text.len()] == 0
            // Texts are short: a call that compares memory takes longer.
            && self.0.iter().zip(text).all(|(ours, theirs)| ours == theirs)
    }
}

/// The number of slots of the hash table: twice as many as pieces.
const SLOTS: usize = 1 << 16;

const FREE: Id = Id::MAX;

/// Returns the first slot for a hash. The upper bits are the best mixed.
fn slot(hash: u64) -> usize {
    (hash >> 48) as usize
}

/// Returns the hash of some bytes and one more, so that all beginnings of a word are hashed in one pass.
fn extend(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Which texts may begin pieces, and which may be pieces, by their hashes. It says yes of some others too,
/// as Bloom filters do, and spares most looks into the hash table.
struct Hints(Vec<u8>);

impl Hints {
    /// Returns the byte for a hash, and the bit for beginnings in it. The bit for pieces is four higher.
    fn bit_place(hash: u64) -> (usize, u8) {
        ((hash >> 47) as usize, 1 << (hash >> 45 & 3))
    }

    fn add(&mut self, hash: u64, is_piece: bool) {
        let (at, bit) = Hints::bit_place(hash);
        self.0[at] |= bit | if is_piece { bit << 4 } else { 0 };
    }

    fn lookup(&self, hash: u64) -> (bool, bool) {
        let (at, bit) = Hints::bit_place(hash);
        (self.0[at] & bit != 0, self.0[at] & bit << 4 != 0)
    }
}

/// Reads a JSON object whose values are 0, 1, 2, … and returns its keys.
fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<VocabularyPiece>, D::Error> {
    struct InOrder;
    impl<'de> Visitor<'de> for InOrder {
        type Value = Vec<VocabularyPiece>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("pieces with their numbers, in order")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            #[derive(Deserialize)]
            struct PieceText<'a>(#[serde(borrow)] Cow<'a, str>);
            let mut pieces = Vec::new();
            while let Some((PieceText(text), id)) = map.next_entry::<_, usize>()? {
                let rest = text.strip_prefix(CONTINUATION);
                let mut piece = [0; LONGEST_PIECE + 2];
                piece[LONGEST_PIECE + 1] = u8::from(rest.is_some());
                let rest = rest.unwrap_or(&text);
                if rest.len() > LONGEST_PIECE || pieces.len() != id || id >= SLOTS / 2 {
                    let error = format!("{text} is too long, too many or not in order");
                    return Err(Error::custom(error));
                }
                piece[..rest.len()].copy_from_slice(rest.as_bytes());
                pieces.push(VocabularyPiece(piece));
            }
            Ok(pieces)
        }
    }
    from.deserialize_map(InOrder)
}

/// Appends a text in lower case, without accents and control characters, with white space in ASCII, and
/// with spaces around Chinese characters, each of which is a word.
///
/// The text stays decomposed (NFD), and letters are lowered one by one: a final sigma is not special.
fn normalize(text: &str, normalized: &mut String) {
    let mut rest = text;
    while !rest.is_empty() {
        // ASCII decomposes into itself and, as Chinese characters do, ends the reach of accents.
        let end = rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
        let start = normalized.len();
        normalized.push_str(&rest[..end]);
        normalized[start..].make_ascii_lowercase();
        rest = &rest[end..];
        while let Some(c) = rest.chars().next().filter(|c| is_chinese(*c)) {
            normalized.push(' ');
            decompose_canonical(c, |c| normalized.push(c));
            normalized.push(' ');
            rest = &rest[c.len_utf8()..];
        }
        let end = rest.find(|c| u8::try_from(c).is_ok_and(is_plain) || is_chinese(c));
        let (other, next) = rest.split_at(end.unwrap_or(rest.len()));
        let letters = other.chars().filter(|c| !is_removed(*c));
        let letters = letters.map(|c| if c.is_whitespace() { ' ' } else { c }).nfd();
        normalized.extend(letters.filter(|c| !is_accent(*c)).flat_map(char::to_lowercase));
        rest = next;
    }
}

/// Returns whether a byte is ASCII that stays: printable, or white space in BERT's sense.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}

/// Returns whether a character is removed before the text is decomposed: control characters and such.
fn is_removed(c: char) -> bool {
    match c {
        // No control characters are in these ranges, which most texts do not leave.
        '\u{AE}'..='\u{5FF}' | '\u{2070}'..='\u{D7FF}' => false,
        '\t' | '\n' | '\r' => false,
        _ => c == '\u{FFFD}' || c.is_other(),
    }
}

fn is_accent(c: char) -> bool {
    !matches!(c, '\0'..='\u{2FF}' | '\u{1100}'..='\u{11FF}') && c.is_mark_nonspacing()
}

/// Returns whether a character is Chinese by BERT's list, which lacks the start of extension E and all
/// later extensions.
fn is_chinese(c: char) -> bool {
    matches!(
        c,
        '\u{4E00}'..='\u{9FFF}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{20000}'..='\u{2A6DF}'
            | '\u{2A700}'..='\u{2B73F}'
            | '\u{2B740}'..='\u{2B81F}'
            | '\u{2B920}'..='\u{2CEAF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{2F800}'..='\u{2FA1F}'
    )
}

/// Returns the words of a normalized text. Each punctuation mark is a word.
fn split_words(normalized: &str) -> impl Iterator<Item = &str> {
    let mut rest = normalized;
    iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let first = rest.chars().next()?;
        let end = if is_punctuation(first) {
            first.len_utf8()
        } else {
            let end = rest.find(|c: char| {
                !c.is_ascii_alphanumeric() && (c.is_ascii_whitespace() || is_punctuation(c))
            });
            end.unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

fn is_punctuation(c: char) -> bool {
    match c {
        '\0'..='\u{7F}' => c.is_ascii_punctuation(),
        // No punctuation is in these ranges, which most texts do not leave.
        '\u{C0}'..='\u{37D}' | '\u{400}'..='\u{559}' | '\u{1100}'..='\u{11FF}' => false,
        '\u{3041}'..='\u{309F}' | '\u{3400}'..='\u{A4CF}' => false,
        _ => c.is_punctuation(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::builtin::TOKENIZER;

    /// Returns the first `most` pieces of a text, between spaces.
    fn pieces(text: &str, most: usize) -> String {
        let tokenizer = WordPiece::parse(TOKENIZER).unwrap();
        let file: Value = serde_json::from_slice(TOKENIZER).unwrap();
        let vocab = file["model"]["vocab"].as_object().unwrap();
        let ids = tokenizer.encode(text, most).into_iter();
        let pieces =
            ids.map(|id| vocab.iter().find(|(_, at)| **at == json!(id)).unwrap().0.clone());
        pieces.collect::<Vec<_>>().join(" ")
    }

    /// The expected pieces are from `tokenizers` 0.21.4.
    #[test]
    fn pieces_equal_those_of_the_crate_tokenizers() {
        let table = [
            ("", ""),
            (" \t\r\n", ""),
            ("Embeddings, don't!", "em ##bed ##ding ##s , don ' t !"),
            ("snake_case $5.00 a≤b", "snake _ case $ 5 . 00 a ##≤ ##b"),
            ("Café naïve Straße \u{130}STANBUL ı", "cafe naive st ##raße istanbul ı"),
            ("e\u{301}x a\u{1}\u{323}b x\u{1d16d}\u{1d165}", "ex ab [UNK]"),
            ("ΟΔΟΣ Σίσυφος", "ο ##δ ##ο ##σ σ ##ι ##σ ##υ ##φ ##ος"),
            ("a[CLS]b [cls] [SEP][PAD] [UNK]x", "a [CLS] b [ cl ##s ] [SEP] [PAD] [UNK] x"),
            ("[\u{200b}MASK] [MASK", "[ mask ] [ mask"),
            ("我们plan天", "我 [UNK] plan 天"),
            ("豈丽\u{2B820}", "[UNK] [UNK] [UNK]"),
            ("\u{304C}カ 안녕", "か ##カ ᄋ ##ᅡ ##ᆫ ##ᄂ ##ᅧ ##ᆼ"),
            ("\u{FB01}le", "ﬁ ##le"),
            ("a\0b\u{FFFD}c\u{ad}d\u{feff}e\u{b}f", "abc ##de ##f"),
            ("x\u{a0}y\u{3000}z\u{2028}w\u{85}v", "x y z w ##v"),
            ("a\u{e000}b a\u{e001}b", "ab ab"),
            ("«one»—two…three。four", "« one » — two … three 。 four"),
            ("\u{378} 😀go", "[UNK] [UNK]"),
            (
                "telecommunications xtelecommunicationsy",
                "telecommunications x ##tel ##ec ##om ##mun ##ication ##sy",
            ),
            ("qzxj unbelievablyzzz", "q ##z ##x ##j un ##bel ##ie ##va ##bly ##zz ##z"),
        ];
        for (text, expected) in table {
            assert_eq!(pieces(text, 512), expected, "{text:?}");
        }
    }

    #[test]
    fn long_words_are_unknown_and_the_rest_of_a_text_is_cut() {
        assert_eq!(pieces(&"a".repeat(101), 512), "[UNK]");
        assert_eq!(pieces(&"\u{E9}".repeat(101), 512), "[UNK]");
        assert_eq!(pieces(&"a".repeat(100), 3), "aaa ##aa ##aa");
        assert_eq!(pieces("the[SEP]the", 1), "the");
        assert_eq!(pieces("the[SEP]the", 2), "the [SEP]");
        assert_eq!(pieces("the", 0), "");
    }

    #[test]
    fn the_file_asks_for_what_is_built() {
        let mut file: Value = serde_json::from_slice(TOKENIZER).unwrap();
        for special in file["added_tokens"].as_array().unwrap() {
            assert!(special["content"].as_str().unwrap().starts_with('['));
            for other in ["single_word", "lstrip", "rstrip", "normalized"] {
                assert_eq!(special[other], false);
            }
        }
        file["model"].as_object_mut().unwrap().remove("vocab");
        let normalizer = json!({"type": "BertNormalizer", "clean_text": true,
            "handle_chinese_chars": true, "strip_accents": null, "lowercase": true});
        let model = json!({"type": "WordPiece", "unk_token": "[UNK]",
            "continuing_subword_prefix": CONTINUATION, "max_input_chars_per_word": LONGEST_WORD});
        assert_eq!(file["normalizer"], normalizer);
        assert_eq!(file["pre_tokenizer"], json!({"type": "BertPreTokenizer"}));
        assert_eq!(file["model"], model);
    }

    #[test]
    fn shortcuts_agree_with_the_tables() {
        for c in '\0'..='\u{FFFF}' {
            let stays = matches!(c, '\t' | '\n' | '\r') || c != '\u{FFFD}' && !c.is_other();
            assert_eq!(is_removed(c), !stays, "{c:?}");
            assert_eq!(is_accent(c), c.is_mark_nonspacing(), "{c:?}");
            assert_eq!(is_punctuation(c), c.is_ascii_punctuation() || c.is_punctuation(), "{c:?}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let file = |vocab: &str| {
            let special = r#"[{"content": "[UNK]", "id": 0}]"#;
            let model = format!(r#"{{"unk_token": "[UNK]", "vocab": {vocab}}}"#);
            let file = format!(r#"{{"added_tokens": {special}, "model": {model}}}"#);
            WordPiece::parse(file.as_bytes()).map(|tokenizer| tokenizer.encode("ab", 9))
        };
        assert_eq!(file(r###"{"[UNK]": 0, "a": 1, "##b": 2}"###).unwrap(), [1, 2]);
        assert_eq!(file(r###"{"[UNK]": 0, "a": 1, "b": 2}"###).unwrap(), [0]);
        assert!(file(r#"{"[UNK]": 0, "a": 2, "b": 1}"#).is_err());
        assert!(file(r#"{"[UNK]": 0, "abcdefghijklmnopqrs": 1}"#).is_err());
        assert!(file("[]").is_err());
    }
}
