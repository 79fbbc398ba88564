//! Compressed texts. Only short texts are packed: few messages are long, but searches read them most.
//!
//! Texts are packed with FSST: a byte is the code of a symbol of one to eight bytes, and code 255 means that
//! the next byte is a literal byte (Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression",
//! VLDB 2020). Different languages need different symbols. So a segment has up to seven symbol tables,
//! trained on groups of similar texts. Each text uses the table that packs it best.
//!
//! ```text
//! length of the text (varint) | codes
//! ```

use std::{borrow::Cow, ops::Range};

use fsst::Compressor;

use crate::varint::{push_varint, take_varint};

const MOST_TABLES: usize = 7;

/// The number of sampled bytes per table. With fewer, a table does not save its own size.
const BYTES_PER_TABLE: usize = 16 << 10;

/// The maximum number of texts to train tables on, and the maximum number of bytes of each text.
const MOST_TEXTS: usize = 8_000;
const MOST_OF_TEXT: usize = 4 << 10;

/// The number of rounds of training. Each round trains the tables, then moves every text to its
/// best table.
const ROUNDS: usize = 6;

const TRIED: usize = 96;

const PAIRS: usize = 1 << 16;

/// The number of occurrences that is added to each pair, so that an unseen pair has a finite cost.
const UNSEEN: f32 = 0.1;

const PER_BIT: f32 = 8.0;

/// The length in bytes from which texts are not packed, so that reading them needs no copy.
pub(crate) const LONG: usize = 2 << 10;

const SYMBOL: usize = 8;

/// The maximum number of bytes of two characters and of a cut character before them.
const TAIL: usize = 2 * 4 + 3;

const ESCAPE: u8 = 255;

const CODES: usize = ESCAPE as usize;

const TABLE_BYTES: usize = (SYMBOL + 1) * CODES;

pub(super) struct Packer {
    tables: Vec<Compressor>,
    /// The cost of each pair of bytes in each table, in units of [`PER_BIT`]. The rarer a pair is in the
    /// texts of a table, the higher is its cost.
    costs: Vec<[u8; MOST_TABLES + 1]>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Packer").field(&self.tables.len()).finish()
    }
}

impl Packer {
    /// Trains tables on a sample of the texts. Makes no tables if the sample is small.
    pub(super) fn train(sample: &[&str]) -> Packer {
        let step = sample.len().div_ceil(MOST_TEXTS).max(1);
        let texts = sample.iter().step_by(step).map(|text| text.as_bytes());
        let texts: Vec<&[u8]> = texts.map(|text| &text[..text.len().min(MOST_OF_TEXT)]).collect();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let count = (bytes / BYTES_PER_TABLE).min(MOST_TABLES);
        let mut packer = Packer { tables: Vec::new(), costs: Vec::new() };
        if count == 0 {
            return packer;
        }
        // The first byte above those of ASCII and accented Latin letters tells the script.
        let scripts = texts.iter().map(|text| text.iter().copied().find(|byte| *byte > 0xC3));
        let mut group_of: Vec<usize> = scripts
            .enumerate()
            .map(|(place, script)| script.map_or(place, usize::from) % count)
            .collect();
        for _ in 0..ROUNDS {
            let groups = (0..count).map(|group| {
                let members = texts.iter().zip(&group_of).filter(|(_, of)| **of == group);
                members.map(|(text, _)| *text).collect::<Vec<&[u8]>>()
            });
            let groups = groups.filter(|group| !group.is_empty());
            packer.tables = groups.map(|group| Compressor::train(&group)).collect();
            group_of = texts.iter().map(|text| packer.best(text)).collect();
        }
        packer.learn(&texts, &group_of);
        packer
    }

    fn best(&self, text: &[u8]) -> usize {
        let begin = &text[..text.len().min(TRIED)];
        let tables = self.tables.iter().enumerate();
        let packed = tables.map(|(place, table)| (table.compress(begin).len(), place));
        packed.min().map_or(0, |(_, place)| place)
    }

    /// Counts the pairs of bytes in the texts of each table, for [`Packer::likely`].
    fn learn(&mut self, texts: &[&[u8]], table_of: &[usize]) {
        self.costs = vec![[u8::MAX; MOST_TABLES + 1]; PAIRS];
        for table in 0..self.tables.len() {
            let mut counts = vec![0u32; PAIRS];
            for (text, _) in texts.iter().zip(table_of).filter(|(_, of)| **of == table) {
                pairs(text).for_each(|pair| counts[pair] += 1);
            }
            let total = counts.iter().map(|count| *count as f32 + UNSEEN).sum::<f32>();
            for (costs, count) in self.costs.iter_mut().zip(counts) {
                costs[table] = (PER_BIT * (total / (count as f32 + UNSEEN)).log2()) as u8;
            }
        }
    }

    /// Returns the place of the table that probably suits a text best: a naive Bayes classifier over pairs
    /// of bytes, which takes a tenth of the time of [`Packer::best`].
    fn likely(&self, text: &[u8]) -> usize {
        let mut sums = [0u16; MOST_TABLES + 1];
        for pair in pairs(&text[..text.len().min(TRIED)]) {
            let costs = &self.costs[pair];
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += u16::from(*cost));
        }
        let sums = sums.iter().take(self.tables.len()).zip(0..);
        sums.min().map_or(0, |(_, place)| place)
    }

    /// Appends a packed text, and returns the number of its table (at least 1). If the text should not be
    /// packed, appends nothing and returns 0.
    pub(super) fn pack(&self, text: &[u8], out: &mut Vec<u8>) -> u8 {
        if self.tables.is_empty() || text.len() >= LONG {
            return 0;
        }
        let place = self.likely(text);
        let before = out.len();
        push_varint(out, text.len() as u64);
        out.extend_from_slice(&self.tables[place].compress(text));
        if out.len() - before >= text.len() {
            out.truncate(before);
            return 0;
        }
        place as u8 + 1
    }

    pub(super) fn tables(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(TABLE_BYTES * self.tables.len());
        for table in &self.tables {
            let symbols = table.symbol_table().iter().map(|symbol| symbol.to_u64().to_le_bytes());
            let symbols = symbols.chain(std::iter::repeat([0; SYMBOL]));
            bytes.extend(symbols.take(CODES).flatten());
            let lengths = table.symbol_lengths().iter().copied().take(table.symbol_table().len());
            bytes.extend(lengths.chain(std::iter::repeat(0)).take(CODES));
        }
        bytes
    }
}

/// Returns the pairs of neighbouring bytes of a text, as numbers below [`PAIRS`].
fn pairs(text: &[u8]) -> impl Iterator<Item = usize> {
    text.windows(2).map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]])))
}

#[derive(Debug, Default)]
pub(super) struct Symbols(Vec<PackTable>);

struct PackTable {
    symbols: [[u8; SYMBOL]; 256],
    lengths: [u8; 256],
}

impl std::fmt::Debug for PackTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

impl Symbols {
    /// Reads the bytes of [`Packer::tables`]; returns `None` if they are invalid.
    pub(super) fn read(bytes: &[u8]) -> Option<Symbols> {
        let tables = bytes.chunks(TABLE_BYTES).map(|bytes| {
            let (symbols, lengths) = bytes.split_at_checked(SYMBOL * CODES)?;
            let is_table = lengths.len() == CODES
                && lengths.iter().all(|length| usize::from(*length) <= SYMBOL);
            let mut table = PackTable { symbols: [[0; SYMBOL]; 256], lengths: [0; 256] };
            table.symbols[..CODES].copy_from_slice(symbols.as_chunks().0);
            table.lengths[..CODES].copy_from_slice(lengths.get(..CODES)?);
            is_table.then_some(table)
        });
        tables.collect::<Option<Vec<PackTable>>>().map(Symbols)
    }

    #[inline]
    pub(super) fn text<'a>(&'a self, number: u8, mut bytes: &'a [u8]) -> Text<'a> {
        let Some(table) = number.checked_sub(1).and_then(|place| self.0.get(usize::from(place)))
        else {
            return Text::plain(bytes);
        };
        let length = (take_varint(&mut bytes) as usize).min(LONG);
        let packed = Packed { table, length, codes: bytes };
        Text { body: Body::Packed(packed), range: (0, length) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    body: Body<'a>,
    range: (usize, usize),
}

#[derive(Clone, Copy, Debug)]
enum Body<'a> {
    Plain(&'a [u8]),
    Packed(Packed<'a>),
}

impl<'a> Text<'a> {
    pub(crate) fn plain(bytes: &'a [u8]) -> Text<'a> {
        Text { body: Body::Plain(bytes), range: (0, bytes.len()) }
    }

    /// Returns the length of the text in bytes, without reading the text.
    pub(crate) fn len(&self) -> usize {
        self.range.1 - self.range.0
    }

    /// Returns whether [`Text::read`] puts the text at the beginning of the buffer.
    pub(crate) fn fills_buffer(&self) -> bool {
        matches!(self.body, Body::Packed(_)) && self.range.0 == 0
    }

    pub(super) fn split_at(self, at: usize) -> (Text<'a>, Text<'a>) {
        let (start, end) = self.range;
        let middle = (start + at).min(end);
        (Text { range: (start, middle), ..self }, Text { range: (middle, end), ..self })
    }

    /// Returns the text. If the text is packed, unpacks it into `buffer`.
    #[inline]
    pub(crate) fn read<'b>(&self, buffer: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        self.part(0..self.len(), buffer)
    }

    /// Returns a part of the text. If the text is packed, unpacks the part into `buffer`.
    #[inline]
    pub(crate) fn part<'b>(&self, range: Range<usize>, buffer: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        let range = self.range.0 + range.start..self.range.0 + range.end;
        match &self.body {
            Body::Plain(bytes) => &bytes[range],
            Body::Packed(packed) => {
                packed.unpack(range.end, buffer);
                &buffer[range]
            }
        }
    }

    /// Returns the end of a valid UTF-8 text: whole characters, at least two. If the text is packed, unpacks
    /// them into `buffer`.
    pub(crate) fn tail<'b>(&self, buffer: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        let tail = match &self.body {
            Body::Packed(packed) if self.range == (0, packed.length) => packed.tail(buffer),
            _ => self.part(self.len().saturating_sub(TAIL)..self.len(), buffer),
        };
        let begin = tail.iter().position(|byte| byte & 0xC0 != 0x80);
        &tail[begin.unwrap_or(tail.len())..]
    }

    /// Returns the last byte of a valid UTF-8 text, without reading the text. Returns `None` for an empty
    /// text and for a part of a packed text.
    #[inline]
    pub(crate) fn last(&self) -> Option<u8> {
        match &self.body {
            Body::Plain(bytes) => bytes.get(self.range.0..self.range.1)?.last().copied(),
            Body::Packed(packed) if self.range == (0, packed.length) => packed.last(),
            Body::Packed(_) => None,
        }
    }

    pub(crate) fn until(&self, end: usize) -> Cow<'a, [u8]> {
        let range = self.range.0..(self.range.0 + end).min(self.range.1);
        match &self.body {
            Body::Plain(bytes) => Cow::Borrowed(&bytes[range]),
            Body::Packed(packed) => {
                let mut buffer = Vec::new();
                packed.unpack(range.end, &mut buffer);
                buffer.truncate(range.end);
                buffer.drain(..range.start);
                Cow::Owned(buffer)
            }
        }
    }

    pub(crate) fn bytes(&self) -> Cow<'a, [u8]> {
        self.until(self.len())
    }
}

#[derive(Clone, Copy, Debug)]
struct Packed<'a> {
    table: &'a PackTable,
    length: usize,
    codes: &'a [u8],
}

impl Packed<'_> {
    /// Unpacks the text before offset `end`. The buffer never shrinks.
    fn unpack(&self, end: usize, buffer: &mut Vec<u8>) {
        // Every symbol is written as eight bytes, even a shorter symbol.
        if buffer.len() < end + SYMBOL {
            buffer.resize(end + SYMBOL, 0);
        }
        self.table.decode(self.codes, &mut buffer[..end + SYMBOL]);
    }

    /// Returns the last byte of a text that does not contain the byte 255, as UTF-8 never does.
    #[inline]
    fn last(&self) -> Option<u8> {
        let (code, before) = self.codes.split_last()?;
        if before.last() == Some(&ESCAPE) {
            return Some(*code);
        }
        let length = usize::from(self.table.lengths[usize::from(*code)]);
        self.table.symbols[usize::from(*code)].get(length.checked_sub(1)?).copied()
    }

    /// Unpacks the last bytes of a text that does not contain the byte 255, as UTF-8 never does. In such a
    /// text, 255 is always the code before a literal byte.
    fn tail<'b>(&self, buffer: &'b mut Vec<u8>) -> &'b [u8] {
        let mut at = self.codes.len();
        let mut length = 0;
        while at > 0 && length < TAIL {
            if at >= 2 && self.codes[at - 2] == ESCAPE {
                at -= 2;
                length += 1;
            } else {
                at -= 1;
                length += usize::from(self.table.lengths[usize::from(self.codes[at])]);
            }
        }
        if buffer.len() < length + SYMBOL {
            buffer.resize(length + SYMBOL, 0);
        }
        self.table.decode(&self.codes[at..], buffer);
        &buffer[..length]
    }
}

impl PackTable {
    /// Writes the symbols of codes to a buffer. The buffer must have room for one more symbol.
    #[inline]
    fn decode(&self, codes: &[u8], buffer: &mut [u8]) {
        let mut codes = codes.iter();
        let mut at = 0;
        while let Some(code) = codes.next() {
            let Some(out) = buffer[at..].first_chunk_mut::<SYMBOL>() else { break };
            if *code == ESCAPE {
                out[0] = codes.next().copied().unwrap_or_default();
                at += 1;
            } else {
                *out = self.symbols[usize::from(*code)];
                at += usize::from(self.lengths[usize::from(*code)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Vec<String> {
        let parts =
            ["the same words ", "日本語の文", "ещё слова ", "é", "x\0", "12:30 ", "{\"a\": 1}"];
        let mut state = 1_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        (0..600)
            .map(|place| {
                let count = if place % 50 == 0 { 900 } else { random(12) };
                let kind = random(parts.len());
                (0..count).map(|_| parts[(kind + random(2)) % parts.len()]).collect()
            })
            .collect()
    }

    #[test]
    fn texts_and_their_parts_come_back() {
        let texts = texts();
        let sample: Vec<&str> = texts.iter().map(String::as_str).collect();
        let packer = Packer::train(&sample);
        let symbols = Symbols::read(&packer.tables()).expect("tables");
        assert!(symbols.0.len() > 1);
        let (mut before, mut after, mut buffer) = (0, 0, vec![7; 3]);
        let noise: Vec<u8> = (0..=255).cycle().take(5_000).collect();
        for text in texts.iter().map(String::as_bytes).chain([&noise[..], &[255; 2_000]]) {
            let mut bytes = Vec::new();
            let number = packer.pack(text, &mut bytes);
            let bytes = if number == 0 { text } else { &bytes[..] };
            if number != 0 {
                (before, after) = (before + text.len(), after + bytes.len());
            }
            let packed = symbols.text(number, bytes);
            assert_eq!((packed.len(), &*packed.bytes()), (text.len(), text));
            assert_eq!(packed.read(&mut buffer), text);
            if let Ok(text) = str::from_utf8(text) {
                let tail = str::from_utf8(packed.tail(&mut buffer)).expect("whole characters");
                assert!(
                    text.ends_with(tail) && tail.chars().count() >= text.chars().count().min(2)
                );
            }
            let places = [0, 1, text.len() / 3, text.len().saturating_sub(1), text.len()];
            for start in places.into_iter().filter(|place| *place <= text.len()) {
                for end in places.into_iter().filter(|end| (start..=text.len()).contains(end)) {
                    assert_eq!(packed.part(start..end, &mut buffer), &text[start..end]);
                    let (one, other) = packed.split_at(start);
                    assert_eq!((&*one.bytes(), &*other.bytes()), text.split_at(start));
                    assert_eq!(other.part(0..end - start, &mut buffer), &text[start..end]);
                    assert_eq!(&*other.until(end - start), &text[start..end]);
                }
            }
        }
        assert!(after * 2 < before, "{after} of {before} bytes");
    }

    #[test]
    fn small_samples_and_long_texts_are_not_packed() {
        assert_eq!(Packer::train(&["a few words"]).pack(b"a few words", &mut Vec::new()), 0);
        let text = "the same words ".repeat(LONG / 10);
        let packer = Packer::train(&vec![&text[..1_000]; 100]);
        let mut packed = Vec::new();
        assert_eq!(packer.pack(&text.as_bytes()[..LONG], &mut packed), 0);
        assert!(packed.is_empty() && packer.pack(&text.as_bytes()[..LONG - 1], &mut packed) > 0);
    }

    #[test]
    fn damaged_bytes_are_no_panic() {
        let texts = texts();
        let sample: Vec<&str> = texts.iter().map(String::as_str).collect();
        let packer = Packer::train(&sample);
        let tables = packer.tables();
        let symbols = Symbols::read(&tables).expect("tables");
        assert!(Symbols::read(&tables[1..]).is_none());
        let mut bytes = Vec::new();
        let short = texts.iter().filter(|text| text.len() < LONG).max_by_key(|text| text.len());
        let number = packer.pack(short.expect("most are short").as_bytes(), &mut bytes);
        assert!(number > 0);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x91;
            for bytes in [&damaged[..], &bytes[..at], &damaged[..at]] {
                let text = symbols.text(number, bytes);
                assert_eq!(text.bytes().len(), text.len());
                text.part(text.len() / 2..text.len(), &mut Vec::new());
                text.tail(&mut Vec::new());
            }
        }
    }
}
