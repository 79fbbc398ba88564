//! Signatures of long messages. A signature tells in which pieces of a long text a run of characters may be.
//!
//! Few messages are long, but a long message has nearly every gram. So the posting lists propose long
//! messages for queries that do not match, and reading the texts takes long. The signature is read first. It
//! is a table of bits: a row for each slot (a hash of trigrams), a column for each piece of the text. A bit
//! is set if a trigram of the slot begins in the piece or soon after the piece. So a piece in which a run
//! begins has the bits of all trigrams of the run.
//!
//! The file `signatures`, whose numbers are little-endian:
//!
//! ```text
//! the tables, one after the other: rows of whole bytes, the first piece in the lowest bit
//! for each table: its message (u32), the bytes of a piece (u32), the start of the table (u64)
//! the number of tables (u64)
//! ```
//!
//! Trigrams are folded ([`verbatim_text::fold`]), but not in loose form.
//!
//! This is a bit-sliced signature file of blocks (Faloutsos and Christodoulakis, "Signature files", 1984).
//!
//! Invariant: [`Signature::next_piece`] finds every piece in which a run begins.

use std::io::{self, Write};
use std::path::Path;

use super::artifact::{ArtifactFile, WrittenFile};
use super::store::LONG;
use verbatim_base::map_faults::Mapped;
use verbatim_text::{fold::fold, matcher::Matcher, pattern::Pattern, run_query::RunQuery};

/// The limits for the bytes of a piece. Only a text that would have more than `MOST_PIECES` pieces has larger
/// pieces.
const SMALLEST_PIECE: usize = 256;
const USUAL_PIECE: usize = 1 << 10;
const MOST_PIECES: usize = 4 << 10;

/// The number of slots, as a power of two. About two in five bits of a table are set. So by chance, one piece
/// in fifteen has all three trigrams of a run of five characters.
const SLOT_BITS: u32 = 10;
const SLOTS: usize = 1 << SLOT_BITS;

/// A signature covers each piece and this many bytes after it, so that the piece has all trigrams of a run
/// that begins near its end.
const OVERLAP: usize = 256;

const LONGEST_CHARACTER: usize = 4;

const MOST_CHARACTERS: usize = OVERLAP / LONGEST_CHARACTER;

const MOST_SLOTS: usize = 16;

/// The size in bytes of a table's entry, and of the number of tables at the end of the file.
const ENTRY: usize = 16;
const COUNT: usize = 8;

/// Moves a trigram, 21 bits per character, by one folded character.
#[inline]
fn next_trigram(trigram: u64, folded: char) -> u64 {
    (trigram << 21 | u64::from(folded)) & (u64::MAX >> 1)
}

#[inline]
fn slot(trigram: u64) -> usize {
    (trigram.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SLOT_BITS)) as usize
}

fn piece_bytes(text: &str) -> usize {
    let usual = text.len().div_ceil(8).clamp(SMALLEST_PIECE, USUAL_PIECE);
    usual.max(text.len().div_ceil(MOST_PIECES))
}

#[derive(Debug)]
pub(super) struct SignatureWriter {
    file: ArtifactFile,
    entries: Vec<u8>,
    length: u64,
    table: Vec<u8>,
}

impl SignatureWriter {
    pub(super) fn create(folder: &Path, name: &str) -> io::Result<SignatureWriter> {
        let file = ArtifactFile::begin(folder, name)?;
        Ok(SignatureWriter { file, entries: Vec::new(), length: 0, table: Vec::new() })
    }

    /// Adds the signature of a message's text, if the text is long. Signatures of shorter texts would save
    /// little time and take much space. Messages come in ascending order.
    pub(super) fn add(&mut self, doc: u32, text: &str) -> io::Result<()> {
        if text.len() < LONG {
            return Ok(());
        }
        let piece = piece_bytes(text);
        self.fill(text, piece);
        for bytes in
            [&doc.to_le_bytes()[..], &(piece as u32).to_le_bytes(), &self.length.to_le_bytes()]
        {
            self.entries.extend_from_slice(bytes);
        }
        self.length += self.table.len() as u64;
        self.file.write_all(&self.table)
    }

    fn fill(&mut self, text: &str, piece: usize) {
        let width = text.len().div_ceil(piece).div_ceil(8);
        self.table.clear();
        self.table.resize(SLOTS * width, 0);
        // The last three characters as a trigram, and where they begin.
        let mut trigram = 0;
        let mut starts = [0; 3];
        let mut column = 0;
        let mut column_at = 0;
        for (place, (at, character)) in text.char_indices().enumerate() {
            trigram = next_trigram(trigram, fold(character));
            starts = [starts[1], starts[2], at];
            if place < 2 {
                continue;
            }
            let row = width * slot(trigram);
            let begin = starts[0];
            while begin >= column_at + piece {
                column += 1;
                column_at += piece;
            }
            self.table[row + column / 8] |= 1 << (column % 8);
            if column > 0 && begin < column_at + OVERLAP {
                self.table[row + (column - 1) / 8] |= 1 << ((column - 1) % 8);
            }
        }
    }

    pub(super) fn finish(mut self) -> io::Result<WrittenFile> {
        self.file.write_all(&self.entries)?;
        self.file.write_all(&((self.entries.len() / ENTRY) as u64).to_le_bytes())?;
        self.file.finish()
    }
}

#[derive(Debug)]
pub(super) struct Signatures {
    file: Mapped,
    entries_at: usize,
    /// The messages that have a signature, ascending.
    docs: Vec<u32>,
    /// A bit per message: whether it has a signature. This check is fast, and most messages have none.
    has: Vec<u64>,
}

impl Signatures {
    /// Opens the signatures of a segment with `messages` messages; `None` if the file is invalid.
    pub(super) fn open(file: Mapped, messages: u32) -> Option<Signatures> {
        let count_at = file.len().checked_sub(COUNT)?;
        let count = u64::from_le_bytes(file[count_at..].try_into().ok()?);
        let entries_at = count_at.checked_sub(usize::try_from(count).ok()?.checked_mul(ENTRY)?)?;
        let mut has = vec![0; (messages as usize).div_ceil(64)];
        let mut docs: Vec<u32> = Vec::with_capacity(count as usize);
        let mut last_start = 0;
        for entry in file[entries_at..count_at].chunks_exact(ENTRY) {
            let (doc, piece, start) = parse_entry(entry);
            let is_next = docs.last().is_none_or(|last| *last < doc) && doc < messages;
            if !is_next || piece == 0 || start < last_start || start > entries_at as u64 {
                return None;
            }
            last_start = start;
            has[doc as usize / 64] |= 1 << (doc % 64);
            docs.push(doc);
        }
        Some(Signatures { file, entries_at, docs, has })
    }

    #[inline]
    pub(super) fn get(&self, doc: u32) -> Option<Signature<'_>> {
        let has_one = self.has[doc as usize / 64] >> (doc % 64) & 1 == 1;
        if has_one { self.find(doc) } else { None }
    }

    fn find(&self, doc: u32) -> Option<Signature<'_>> {
        let place = self.docs.binary_search(&doc).ok()?;
        let at = self.entries_at + ENTRY * place;
        let (_, piece, start) = parse_entry(&self.file[at..at + ENTRY]);
        let end = if place + 1 < self.docs.len() {
            parse_entry(&self.file[at + ENTRY..at + 2 * ENTRY]).2 as usize
        } else {
            self.entries_at
        };
        let table = self.file.get(start as usize..end)?;
        Some(Signature { table, width: table.len() / SLOTS, piece: piece as usize })
    }
}

/// Reads an entry: the doc id of the message, the length of its pieces in bytes, and the offset of its
/// table in the file.
fn parse_entry(entry: &[u8]) -> (u32, u32, u64) {
    let (two, start) = entry.split_at(8);
    let start = u64::from_le_bytes(start.try_into().expect("eight bytes"));
    let two = u64::from_le_bytes(two.try_into().expect("eight bytes"));
    (two as u32, (two >> 32) as u32, start)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Signature<'a> {
    table: &'a [u8],
    width: usize,
    piece: usize,
}

impl Signature<'_> {
    /// Returns the first piece from `from` on that has the bits of all `slots`. A run may begin there.
    fn next_piece(&self, slots: &[u16], from: usize) -> Option<usize> {
        let mut first = u8::MAX << (from % 8);
        for byte in from / 8..self.width {
            let mut bits = first;
            for slot in slots {
                bits &= self.table[usize::from(*slot) * self.width + byte];
                if bits == 0 {
                    break;
                }
            }
            if bits != 0 {
                return Some(8 * byte + bits.trailing_zeros() as usize);
            }
            first = u8::MAX;
        }
        None
    }

    pub(super) fn may_have(&self, query: &SignatureQuery) -> bool {
        match query {
            SignatureQuery::Anything => true,
            SignatureQuery::Run { slots, .. } => self.next_piece(slots, 0).is_some(),
            SignatureQuery::All(parts) => parts.iter().all(|part| self.may_have(part)),
            SignatureQuery::OneOf(parts) => parts.iter().any(|part| self.may_have(part)),
        }
    }

    /// Returns whether `matches` is true for a part of the text in which a run may be. Parts are whole
    /// characters. If the text has the run, one part has the whole run.
    pub(super) fn any_part(
        &self,
        slots: &[u16],
        characters: usize,
        text: &[u8],
        mut matches: impl FnMut(&[u8]) -> bool,
    ) -> bool {
        let mut from = 0;
        while let Some(first) = self.next_piece(slots, from) {
            // Consecutive pieces are read as one part.
            let mut last = first;
            while self.next_piece(slots, last + 1) == Some(last + 1) {
                last += 1;
            }
            let end = (last + 1) * self.piece + LONGEST_CHARACTER * characters;
            let start = (first * self.piece).min(text.len());
            let end = end.min(text.len());
            // A character that begins before `end` may have three more bytes after `end`.
            let read = (end + LONGEST_CHARACTER - 1).min(text.len());
            let part = &text[start..read];
            let begin = part.iter().position(begins_character).unwrap_or(part.len());
            let rest = part[end - start..].iter();
            let to = end - start + rest.take_while(|byte| !begins_character(byte)).count();
            if begin < to && matches(&part[begin..to]) {
                return true;
            }
            from = last + 1;
        }
        false
    }
}

fn begins_character(byte: &u8) -> bool {
    byte & 0xC0 != 0x80
}

#[derive(Debug)]
pub(super) enum SignatureQuery {
    /// Matches every text, because a signature cannot exclude any.
    Anything,
    /// A run with known and unknown characters: the slots of its trigrams, and its number of characters.
    Run {
        slots: Vec<u16>,
        characters: usize,
    },
    All(Vec<SignatureQuery>),
    OneOf(Vec<SignatureQuery>),
}

impl SignatureQuery {
    /// Returns a query that matches at least the texts that the matcher matches.
    pub(super) fn new(matcher: &Matcher, pattern: Option<&Pattern<'_>>) -> SignatureQuery {
        match (matcher, pattern) {
            (Matcher::Regex(expression), _) => SignatureQuery::from_runs(expression.runs()),
            (_, None) => SignatureQuery::Anything,
            (_, Some(pattern)) => {
                let segments = pattern.segments.iter();
                let mut all: Vec<_> = segments.map(|it| SignatureQuery::run(&it.runs)).collect();
                if all.len() == 1 { all.remove(0) } else { SignatureQuery::All(all) }
            }
        }
    }

    fn from_runs(query: &RunQuery) -> SignatureQuery {
        match query {
            RunQuery::Anything | RunQuery::Cased(_) => SignatureQuery::Anything,
            RunQuery::Run(run) | RunQuery::Word(run) => SignatureQuery::run(&[run]),
            RunQuery::All(parts) => {
                SignatureQuery::All(parts.iter().map(SignatureQuery::from_runs).collect())
            }
            RunQuery::OneOf(parts) => {
                SignatureQuery::OneOf(parts.iter().map(SignatureQuery::from_runs).collect())
            }
        }
    }

    /// Returns the query for consecutive runs with exactly one unknown character between two runs.
    fn run(runs: &[&str]) -> SignatureQuery {
        let mut characters: Vec<Option<char>> = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            if place > 0 {
                characters.push(None);
            }
            characters.extend(run.chars().map(|character| Some(fold(character))));
        }
        let looked_up = &characters[..characters.len().min(MOST_CHARACTERS)];
        let trigrams: Vec<u64> = looked_up
            .windows(3)
            .filter_map(|three| {
                three.iter().try_fold(0, |trigram, folded| Some(next_trigram(trigram, (*folded)?)))
            })
            .collect();
        let step = trigrams.len().div_ceil(MOST_SLOTS).max(1);
        let slots: Vec<u16> =
            trigrams.into_iter().step_by(step).map(|three| slot(three) as u16).collect();
        if slots.is_empty() {
            SignatureQuery::Anything
        } else {
            SignatureQuery::Run { slots, characters: characters.len() }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// Makes the signatures of texts; the doc id is the text's place.
    fn signatures(texts: &[&str]) -> Signatures {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("signatures");
        let mut writer = SignatureWriter::create(folder.path(), "signatures").expect("create");
        for (doc, text) in (0..).zip(texts) {
            writer.add(doc, text).expect("add");
        }
        writer.finish().expect("finish");
        let file = Mapped::new(&File::open(path).expect("open")).expect("a map");
        Signatures::open(file, texts.len() as u32).expect("whole")
    }

    /// Returns a long pseudo-random text with characters of several scripts.
    fn long_text(characters: usize, seed: u32) -> String {
        const LETTERS: [char; 12] =
            ['a', 'B', 'c', ' ', 'é', 'É', '日', '本', '\u{10348}', '\u{212A}', 'ß', '.'];
        let mut state = seed;
        let letter = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            LETTERS[(state >> 16) as usize % LETTERS.len()]
        };
        (0..characters).map(letter).collect()
    }

    #[test]
    fn a_run_is_found_wherever_it_begins() {
        let texts: Vec<String> =
            [700, 1_500, 9_000, 40_000].map(|count| long_text(count, 1)).into();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let signatures = signatures(&texts);
        assert!(signatures.get(0).is_none());
        for (doc, text) in (0..).zip(&texts).skip(1) {
            let signature = signatures.get(doc).expect("it is long");
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            for (place, length) in
                (0..starts.len()).step_by(7).zip([3, 4, 64, 65, 300].iter().cycle())
            {
                let run: String = text[starts[place]..].chars().take(*length).collect();
                if run.chars().count() < 3 {
                    continue;
                }
                let query =
                    SignatureQuery::from_runs(&RunQuery::Run(run.to_lowercase().replace('ß', "ẞ")));
                assert!(signature.may_have(&query), "{place} {length}");
                let exact = SignatureQuery::run(&[&run]);
                let SignatureQuery::Run { slots, characters } = &exact else { panic!("{run}") };
                let mut parts = 0;
                let has = |part: &[u8]| {
                    parts += part.len();
                    str::from_utf8(part).expect("whole characters").contains(&run)
                };
                assert!(
                    signature.any_part(slots, *characters, text.as_bytes(), has),
                    "{place} {length}"
                );
            }
        }
    }

    #[test]
    fn little_is_read_of_a_text_without_the_run() {
        let text = long_text(40_000, 1);
        let signatures = signatures(&[&text]);
        let signature = signatures.get(0).expect("it is long");
        let absent = ["zebra crossing", "something else"];
        for run in absent {
            let query = SignatureQuery::run(&[run]);
            let SignatureQuery::Run { slots, characters } = &query else { panic!("{run}") };
            let mut read = 0;
            let found = signature.any_part(slots, *characters, text.as_bytes(), |part| {
                read += part.len();
                false
            });
            assert!(!found && read < text.len() / 4, "{run}: {read} of {}", text.len());
        }
        let either = absent.map(|run| RunQuery::Run(run.to_owned()));
        let known = RunQuery::Run(text.chars().take(9).collect());
        let both = RunQuery::All(vec![known.clone(), RunQuery::OneOf(either.into())]);
        assert!(!signature.may_have(&SignatureQuery::from_runs(&both)));
        assert!(
            signature.may_have(&SignatureQuery::from_runs(&RunQuery::OneOf(vec![both, known])))
        );
        assert!(signature.may_have(&SignatureQuery::from_runs(&RunQuery::Run("zz".to_owned()))));
    }

    #[test]
    fn what_is_no_file_of_signatures_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("signatures");
        for bytes in [&b""[..], b"1234567", &[1, 0, 0, 0, 0, 0, 0, 0], &[0xFF; 40]] {
            std::fs::write(&path, bytes).expect("write");
            let file = Mapped::new(&File::open(&path).expect("open")).expect("a map");
            assert!(Signatures::open(file, 10).is_none(), "{bytes:?}");
        }
    }
}
