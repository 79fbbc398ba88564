//! The cache file of the summaries, with the features by which they are ranked.
//!
//! ```text
//! INDEX/summaries   "VBSU" | u32 format | u32 dimensions | u32 bytes of the model's name | the name
//!                   | u32 number of terms | u32 hash of each term, the most frequent first
//!                   | u32 bytes of all texts | u32 their bytes in LZ4 | the texts in LZ4
//!                   | records | u32 CRC-32 of everything before it
//! record            u64 fingerprint of the place | u64 fingerprint of the text | f32 scale
//!                   | four bits for each dimension
//!                   | bytes of the title and of the summary, which are the next two texts
//!                   | number of terms in the title and in the summary | numbers of these terms
//! ```
//!
//! Lengths and term numbers in a record have seven bits per byte. Other numbers are little-endian.
//! Without vectors there are no dimensions.
//!
//! Invariant: a file that is damaged or of another format counts as missing.

use std::{
    cmp::Reverse,
    collections::HashMap,
    fs,
    io::{self, BufWriter, Write},
    path::Path,
};

use super::features::{Summary, SummaryFeatures};
use verbatim_base::private;
use verbatim_index::varint::{push_varint, take_varint};

const MAGIC: &[u8; 4] = b"VBSU";

/// The version of the file format, and of the code that makes summaries, terms and fingerprints.
const FORMAT: u32 = 6;

/// Length in bytes of the fingerprints and the scale in a record.
const HEAD: usize = 20;

/// Maximum number of bytes that one byte of LZ4 can unpack to.
const MOST_PER_BYTE: usize = 255;

/// The records of the file, by fingerprint.
#[derive(Debug, Default)]
pub(crate) struct SummaryCache {
    bytes: Vec<u8>,
    /// The hashes of the terms, by number.
    terms: Vec<u32>,
    texts: Vec<u8>,
    by_place: HashMap<u64, RecordPlace>,
    by_text: HashMap<u64, RecordPlace>,
    dimensions: usize,
    /// The length of a stored vector in bytes. The vector may be from another model.
    row: usize,
}

/// The offset of a record, and the offset of its texts.
#[derive(Clone, Copy, Debug)]
struct RecordPlace {
    record: usize,
    text: usize,
}

/// Two fingerprints of a conversation's first messages: of their places, and of their texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprints {
    pub(crate) place: u64,
    pub(crate) text: u64,
}

#[derive(Debug)]
pub(crate) struct SummaryRecord {
    pub(crate) text: u64,
    pub(crate) summary: Summary,
    pub(crate) title_terms: Vec<u32>,
    pub(crate) summary_terms: Vec<u32>,
    /// The row and the scale of the summary's vector.
    pub(crate) vector: (Vec<u8>, f32),
}

impl SummaryCache {
    /// Reads the cache file if it exists. Uses its vectors only if they are from this model.
    pub(crate) fn load(path: &Path, model: &str) -> SummaryCache {
        let bytes = fs::read(path).unwrap_or_default();
        SummaryCache::read(bytes, model).unwrap_or_default()
    }

    fn read(bytes: Vec<u8>, model: &str) -> Option<SummaryCache> {
        let end = bytes.len().checked_sub(4)?;
        let is_ours = bytes.starts_with(MAGIC)
            && number(&bytes, 4)? == FORMAT
            && number(&bytes, end)? == crc32fast::hash(&bytes[..end]);
        if !is_ours {
            return None;
        }
        let stored = number(&bytes, 8)? as usize;
        let mut rest = bytes.get(12..end)?;
        let is_of_model = take_sized(&mut rest)? == model.as_bytes();
        let count = take_number(&mut rest)? as usize;
        let terms = take_bytes(&mut rest, count.checked_mul(4)?)?.as_chunks::<4>().0;
        let terms = terms.iter().map(|four| u32::from_le_bytes(*four)).collect();
        let length = take_number(&mut rest)? as usize;
        let packed = take_sized(&mut rest)?;
        if length > packed.len().saturating_mul(MOST_PER_BYTE) {
            return None;
        }
        let mut texts = vec![0; length];
        let unpacked = lz4_flex::block::decompress_into(packed, &mut texts).ok()?;
        let mut place = RecordPlace { record: end - rest.len(), text: 0 };
        let dimensions = if is_of_model { stored } else { 0 };
        let mut cache = SummaryCache { terms, texts, dimensions, ..SummaryCache::default() };
        cache.row = stored.div_ceil(2);
        while !rest.is_empty() {
            let (of_place, of_text) = (fingerprint(rest, 0)?, fingerprint(rest, 8)?);
            cache.by_place.insert(of_place, place);
            cache.by_text.insert(of_text, place);
            take_bytes(&mut rest, HEAD + cache.row)?;
            let [title, summary, of_title, of_summary] = lengths(&mut rest);
            for _ in 0..of_title.checked_add(of_summary)? {
                if rest.is_empty() || take_varint(&mut rest) >= cache.terms.len() as u64 {
                    return None;
                }
            }
            let text = place.text.checked_add(title)?.checked_add(summary)?;
            place = RecordPlace { record: end - rest.len(), text };
        }
        (unpacked == length && place.text == length).then_some(SummaryCache { bytes, ..cache })
    }

    pub(crate) fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Returns the number of dimensions; 0 if the file has no vectors from this model.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the record of the conversation whose first messages are at the same place.
    pub(crate) fn at_place(&self, fingerprint: u64) -> Option<SummaryRecord> {
        self.record(*self.by_place.get(&fingerprint)?)
    }

    /// Returns the record of a conversation whose first messages have the same text.
    pub(crate) fn of_text(&self, fingerprint: u64) -> Option<SummaryRecord> {
        self.record(*self.by_text.get(&fingerprint)?)
    }

    fn record(&self, place: RecordPlace) -> Option<SummaryRecord> {
        let record = self.bytes.get(place.record..)?;
        let mut rest = record.get(HEAD..)?;
        let row = take_bytes(&mut rest, self.row)?;
        let [title, summary, of_title, of_summary] = lengths(&mut rest);
        let (title_end, end) = (place.text + title, place.text + title + summary);
        let text = |start: usize, end: usize| {
            Some(std::str::from_utf8(self.texts.get(start..end)?).ok()?.to_owned())
        };
        let mut terms = |count: usize| -> Option<Vec<u32>> {
            let mut term = || self.terms.get(take_varint(&mut rest) as usize).copied();
            (0..count).map(|_| term()).collect()
        };
        Some(SummaryRecord {
            text: fingerprint(record, 8)?,
            summary: Summary { title: text(place.text, title_end)?, text: text(title_end, end)? },
            title_terms: terms(of_title)?,
            summary_terms: terms(of_summary)?,
            vector: (unpack(row, self.dimensions), f32::from_bits(number(record, 16)?)),
        })
    }
}

/// Reads the lengths in a record: bytes of title and summary, number of terms of title and summary.
fn lengths(rest: &mut &[u8]) -> [usize; 4] {
    std::array::from_fn(|_| take_varint(rest) as usize)
}

/// Rounds int8 numbers to their upper four bits. Packing the result of [`unpack`] gives the same bytes.
fn pack(row: &[u8]) -> Vec<u8> {
    let pack = |two: &[u8]| two[0] >> 4 | two.get(1).unwrap_or(&0) & 0xF0;
    row.chunks(2).map(pack).collect()
}

/// Returns, for each four bits, the int8 number in the middle of the range that was rounded to them.
fn unpack(packed: &[u8], dimensions: usize) -> Vec<u8> {
    let numbers = packed.iter().flat_map(|byte| [byte << 4 | 8, byte & 0xF0 | 8]);
    numbers.take(dimensions).collect()
}

fn take_bytes<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    number(take_bytes(rest, 4)?, 0)
}

/// Reads a length and as many bytes.
fn take_sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_number(rest)?;
    take_bytes(rest, length as usize)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn fingerprint(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Writes the cache file atomically. Each summary has its position in the features and its fingerprints.
pub(crate) fn store(
    path: &Path,
    model: &str,
    summaries: &[(usize, Fingerprints, &Summary)],
    features: &SummaryFeatures,
) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let file = tempfile::Builder::new().prefix("current-summaries-").tempfile_in(folder)?;
    let mut writer = Checksummed { writer: BufWriter::new(file), crc: crc32fast::Hasher::new() };
    let size = |length: usize| (length as u32).to_le_bytes();
    writer.write_all(MAGIC)?;
    writer.write_all(&FORMAT.to_le_bytes())?;
    writer.write_all(&size(features.vectors().dimensions()))?;
    writer.write_all(&size(model.len()))?;
    writer.write_all(model.as_bytes())?;
    let numbers = TermNumbers::new(summaries, features);
    writer.write_all(&size(numbers.terms.len()))?;
    for term in &numbers.terms {
        writer.write_all(&term.to_le_bytes())?;
    }
    let mut texts = String::new();
    for (_, _, summary) in summaries {
        texts.push_str(&summary.title);
        texts.push_str(&summary.text);
    }
    let packed = lz4_flex::block::compress(texts.as_bytes());
    writer.write_all(&size(texts.len()))?;
    writer.write_all(&size(packed.len()))?;
    writer.write_all(&packed)?;
    let mut record = Vec::new();
    for (at, fingerprints, summary) in summaries {
        let [of_title, of_summary] = features.terms(*at);
        let (row, scale) = features.vectors().row(*at);
        record.clear();
        record.extend_from_slice(&fingerprints.place.to_le_bytes());
        record.extend_from_slice(&fingerprints.text.to_le_bytes());
        record.extend_from_slice(&scale.to_le_bytes());
        record.extend(pack(row));
        let lengths = [summary.title.len(), summary.text.len(), of_title.len(), of_summary.len()];
        for length in lengths {
            push_varint(&mut record, length as u64);
        }
        for term in of_title.iter().chain(of_summary) {
            push_varint(&mut record, numbers.numbers[term].into());
        }
        writer.write_all(&record)?;
    }
    let Checksummed { mut writer, crc } = writer;
    writer.write_all(&crc.finalize().to_le_bytes())?;
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    private::replace(file.into_temp_path(), path)
}

/// The terms of summaries, the most frequent first, and the position of each term in this list.
struct TermNumbers {
    terms: Vec<u32>,
    numbers: HashMap<u32, u32>,
}

impl TermNumbers {
    fn new(summaries: &[(usize, Fingerprints, &Summary)], features: &SummaryFeatures) -> Self {
        let mut counts: HashMap<u32, u32> = HashMap::new();
        for (at, _, _) in summaries {
            for term in features.terms(*at).into_iter().flatten() {
                *counts.entry(*term).or_default() += 1;
            }
        }
        let mut terms: Vec<(u32, u32)> = counts.into_iter().collect();
        terms.sort_unstable_by_key(|(term, count)| (Reverse(*count), *term));
        let terms: Vec<u32> = terms.into_iter().map(|(term, _)| term).collect();
        let numbers = terms.iter().copied().zip(0..).collect();
        TermNumbers { terms, numbers }
    }
}

struct Checksummed<W> {
    writer: W,
    crc: crc32fast::Hasher,
}

impl<W: Write> Write for Checksummed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_as_written_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summaries");
        let summary =
            |title: &str, text: &str| Summary { title: title.to_owned(), text: text.to_owned() };
        let summaries = [summary("", "Größe."), summary("Titel", "")];
        let mut features = SummaryFeatures::new(3);
        features.push(&[1, 2], &[3], |vectors| vectors.push(&[0.0, 1.0, 0.0]));
        features.push(&[], &[], |vectors| vectors.push(&[]));
        let fingerprints = |place| Fingerprints { place, text: place + 100 };
        let written = [(0, fingerprints(7), &summaries[0]), (1, fingerprints(9), &summaries[1])];
        store(&path, "m", &written, &features).unwrap();
        let cache = SummaryCache::load(&path, "m");
        assert_eq!((cache.len(), cache.dimensions()), (2, 3));
        let record = cache.at_place(7).unwrap();
        assert_eq!((&record.summary, &record.title_terms[..]), (&summaries[0], &[1, 2][..]));
        let (row, scale) = features.vectors().row(0);
        assert_eq!((&record.summary_terms[..], record.vector.1), (&[3][..], scale));
        let near = |(a, b): (&u8, &u8)| (*a as i8).abs_diff(*b as i8) <= 8;
        assert!(row.iter().zip(&record.vector.0).all(near), "{row:?} {:?}", record.vector.0);
        assert_eq!(unpack(&pack(&record.vector.0), 3), record.vector.0);
        assert_eq!((&cache.of_text(109).unwrap().summary, record.text), (&summaries[1], 107));
        assert!(cache.at_place(8).is_none() && cache.of_text(7).is_none());
        // Vectors of another model are not used.
        assert_eq!(SummaryCache::load(&path, "n").at_place(7).unwrap().vector.0, [0; 0]);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x11;
            assert!(SummaryCache::read(damaged, "m").is_none(), "byte {at}");
            assert!(SummaryCache::read(bytes[..at].to_vec(), "m").is_none(), "cut at {at}");
        }
    }
}
