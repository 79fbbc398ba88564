//! The tokenizer of the multilingual model: SentencePiece's unigram model.
//!
//! A text is normalized, a space put before it, and the whole of it split into those pieces of the vocabulary
//! whose scores, which are logarithms of probabilities, have the highest sum. Pieces may cross the ends of
//! words.
//!
//! Invariant: the pieces are those of Hugging Face's `tokenizers` (`Precompiled`, `Metaspace`, `Unigram`).
//! Invariant: all tables are read in place, so there is nothing to load.
//!
//! Sources: Kudo, *Subword Regularization* (2018), section 3.2;
//! [SentencePiece's normalizer](https://github.com/google/sentencepiece/blob/master/src/normalizer.cc).

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use yada::DoubleArray;

/// The place of a piece in the vocabulary, which is also its row in the model's table.
pub(super) type PieceId = u32;

/// Stands for all that the vocabulary does not spell. Neighbours of it are one piece.
pub(super) const UNKNOWN: PieceId = 0;

pub(super) const SPACE: char = '\u{2581}';

/// Stands for NUL, which is no key of a trie. Neither is in a rule or in a piece.
const NO_PIECE: char = '\u{FFFF}';

/// The lowest score of a piece, less the penalty of ten for an unknown character.
const UNKNOWN_SCORE: f64 = -18.833_036_422_729_492 - 10.0;

/// Maximum number of bytes of what a rule replaces as a whole; it looks at characters one by one in longer
/// clusters.
const LONGEST_CLUSTER: usize = 5;

/// A vocabulary with its scores, and the rules by which texts are normalized.
pub(super) struct SentencePiece {
    pieces: DoubleArray<&'static [u8]>,
    /// Float32 by piece.
    scores: &'static [[u8; 4]],
    rules: DoubleArray<&'static [u8]>,
    /// What the rules put in place, each text ended by a NUL.
    replacements: &'static str,
}

#[derive(Debug, PartialEq)]
pub(super) struct PieceAt {
    pub(super) id: PieceId,
    /// Its bytes in the normalized text.
    pub(super) bytes: Range<usize>,
}

impl SentencePiece {
    /// Reads a vocabulary: a trie from pieces to their ids, the scores of the pieces, and SentencePiece's
    /// table of rules (`precompiled_charsmap`). The tries are not checked; returns none if the table is cut.
    pub(super) fn new(
        pieces: &'static [u8],
        scores: &'static [[u8; 4]],
        charsmap: &'static [u8],
    ) -> Option<SentencePiece> {
        let (length, rest) = charsmap.split_first_chunk()?;
        let (rules, replacements) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        Some(SentencePiece {
            pieces: DoubleArray(pieces),
            scores,
            rules: DoubleArray(rules),
            replacements: str::from_utf8(replacements).ok()?,
        })
    }

    /// Returns a text as pieces spell it: with compatible forms of characters made one, and with one U+2581
    /// before it and for each run of white space; empty for a blank text.
    pub(super) fn normalize(&self, text: &str) -> String {
        let mut mapped = String::with_capacity(text.len());
        for cluster in text.graphemes(true) {
            if cluster.len() <= LONGEST_CLUSTER
                && let Some(replacement) = self.replacement(cluster)
            {
                mapped.push_str(replacement);
                continue;
            }
            for c in cluster.chars() {
                match self.replacement(c.encode_utf8(&mut [0; 4])) {
                    Some(replacement) => mapped.push_str(replacement),
                    None => mapped.push(if c == '\0' { NO_PIECE } else { c }),
                }
            }
        }
        let mapped = mapped.trim();
        let mut normalized = String::with_capacity(mapped.len() * 3 / 2 + SPACE.len_utf8());
        if !mapped.is_empty() {
            normalized.push(SPACE);
        }
        let mut after_space = false;
        for c in mapped.chars() {
            match c {
                ' ' if after_space => {}
                ' ' => normalized.push(SPACE),
                c => normalized.push(c),
            }
            after_space = c == ' ';
        }
        normalized
    }

    /// Returns what the first rule puts in the place of a cluster of characters. That rule may look at the
    /// cluster's beginning alone, and replaces the whole of it.
    fn replacement(&self, cluster: &str) -> Option<&'static str> {
        if cluster.starts_with('\0') {
            return None;
        }
        let (start, _) = self.rules.common_prefix_search(cluster).next()?;
        let rest = self.replacements.get(start as usize..)?;
        rest.split('\0').next()
    }

    pub(super) fn split(&self, normalized: &str) -> Vec<PieceAt> {
        /// The best pieces up to a byte: the sum of their scores, and the last one with its start.
        #[derive(Clone, Copy)]
        struct BestPath {
            score: f64,
            last: Option<(PieceId, usize)>,
        }
        impl BestPath {
            fn offer(&mut self, id: PieceId, start: usize, score: f64) {
                if self.last.is_none() || score > self.score {
                    *self = BestPath { score, last: Some((id, start)) };
                }
            }
        }
        let mut best = vec![BestPath { score: 0.0, last: None }; normalized.len() + 1];
        for (start, c) in normalized.char_indices() {
            let before = best[start].score;
            let known = self.pieces.common_prefix_search(&normalized.as_bytes()[start..]);
            let mut is_known = false;
            for (id, length) in known {
                is_known |= length == c.len_utf8();
                let score = before + f64::from(f32::from_le_bytes(self.scores[id as usize]));
                best[start + length].offer(id, start, score);
            }
            if !is_known {
                best[start + c.len_utf8()].offer(UNKNOWN, start, before + UNKNOWN_SCORE);
            }
        }
        let mut pieces: Vec<PieceAt> = Vec::new();
        let mut end = normalized.len();
        while let Some((id, start)) = best[end].last {
            match pieces.last_mut() {
                Some(next) if (next.id, id) == (UNKNOWN, UNKNOWN) => next.bytes.start = start,
                _ => pieces.push(PieceAt { id, bytes: start..end }),
            }
            end = start;
        }
        pieces.reverse();
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: &[u8] = include_bytes!("../../../assets/multilingual/pieces.trie");
    const CHARSMAP: &[u8] = include_bytes!("../../../assets/multilingual/charsmap.bin");
    const TEXTS: &str = include_str!("../../../assets/multilingual/pieces.txt");

    /// Returns a tokenizer whose pieces have the score −1 for each character, so that long pieces win.
    fn tokenizer() -> SentencePiece {
        let scores = TEXTS.lines().map(|_| (-1_f32).to_le_bytes()).collect::<Vec<_>>();
        SentencePiece::new(PIECES, scores.leak(), CHARSMAP).unwrap()
    }

    #[test]
    fn the_trie_has_all_pieces_and_no_others() {
        let mut pieces: Vec<(&str, PieceId)> = TEXTS.split_terminator('\n').zip(0..).collect();
        assert_eq!(pieces.len(), 128_000);
        pieces.sort_unstable();
        assert_eq!(yada::builder::DoubleArrayBuilder::build(&pieces).unwrap(), PIECES);
    }

    /// Reading a trie is safe if it passes the check of its crate.
    #[test]
    fn the_tries_are_whole() {
        let tokenizer = tokenizer();
        DoubleArray::new(tokenizer.pieces.0).unwrap();
        DoubleArray::new(tokenizer.rules.0).unwrap();
    }

    #[test]
    fn texts_are_normalized() {
        let table = [
            ("", ""),
            (" \t\r\n", ""),
            ("a", "▁a"),
            ("  two\r\n  words ", "▁two▁words"),
            ("▁a▁▁b ▁", "▁a▁b"),
            ("ﬁne Ｆｕｌｌ ｗｉｄｔｈ ﾃｽﾄ ½", "▁fine▁Full▁width▁テスト▁1⁄2"),
            ("e\u{301}", "▁é"),
            ("zero\u{200B}width\u{7F}", "▁zero▁width\u{7F}"),
            ("no\0nul", "▁no\u{FFFF}nul"),
        ];
        let tokenizer = tokenizer();
        for (text, expected) in table {
            assert_eq!(tokenizer.normalize(text), expected, "{text:?}");
        }
    }

    #[test]
    fn unknown_neighbours_are_one_piece() {
        let pieces = tokenizer().split("▁a\u{FFFF}🤔b\u{FFFF}");
        let pieces: Vec<_> = pieces.into_iter().map(|piece| (piece.id, piece.bytes)).collect();
        let b = TEXTS.lines().position(|piece| piece == "b").unwrap() as PieceId;
        let a = TEXTS.lines().position(|piece| piece == "▁a").unwrap() as PieceId;
        assert_eq!(pieces, [(a, 0..4), (UNKNOWN, 4..11), (b, 11..12), (UNKNOWN, 12..15)]);
    }

    #[test]
    fn a_cut_table_is_refused() {
        for length in [0, 3, 4, 1_000] {
            assert!(SentencePiece::new(PIECES, &[], &CHARSMAP[..length]).is_none(), "{length}");
        }
    }
}
