//! The cache file of the summaries, with the features that they are ranked by.
//!
//! ```text
//! INDEX/summaries   "VBSU" | u32 format | u32 dimensions | u32 bytes of the model's name | the name
//!                   | records | u32 CRC-32 of everything before it
//! record            u64 fingerprint of the place | u64 fingerprint of the text
//!                   | u32 bytes of the title | u32 bytes of the summary
//!                   | u32 terms of the title | u32 terms of the summary
//!                   | f32 scale | title | summary | u32 each term | i8 each dimension
//! ```
//!
//! Numbers are little-endian. Without vectors there are no dimensions.
//!
//! Invariant: a file that is damaged or of another format counts as missing.

use std::{
    collections::HashMap,
    fs,
    io::{self, BufWriter, Write},
    ops::Range,
    path::Path,
};

use super::features::{Summary, SummaryFeatures};

const MAGIC: &[u8; 4] = b"VBSU";

/// The version of the file, and of how summaries, terms and fingerprints are made.
const FORMAT: u32 = 5;

/// Bytes of a record before the title.
const HEAD: usize = 36;

/// The records of the file, by fingerprint.
#[derive(Debug, Default)]
pub(crate) struct SummaryCache {
    bytes: Vec<u8>,
    /// Offsets of the records.
    by_place: HashMap<u64, usize>,
    by_text: HashMap<u64, usize>,
    dimensions: usize,
}

/// The fingerprints of a conversation's opening: of its place, and of its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprints {
    pub(crate) place: u64,
    pub(crate) text: u64,
}

#[derive(Debug)]
pub(crate) struct SummaryRecord<'k> {
    pub(crate) text: u64,
    pub(crate) summary: Summary,
    pub(crate) title_terms: Vec<u32>,
    pub(crate) summary_terms: Vec<u32>,
    /// The row and the scale of the summary's vector.
    pub(crate) vector: (&'k [u8], f32),
}

impl SummaryCache {
    /// Reads what is there; of vectors those by this model alone.
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
        let length = number(&bytes, 12)? as usize;
        let is_of_model = bytes.get(16..16usize.checked_add(length)?)? == model.as_bytes();
        let mut at = 16 + length;
        let (mut by_place, mut by_text) = (HashMap::new(), HashMap::new());
        while at < end {
            by_place.insert(fingerprint(&bytes, at)?, at);
            by_text.insert(fingerprint(&bytes, at + 8)?, at);
            at = sections(&bytes, at)?[3].end.checked_add(stored)?;
        }
        let dimensions = if is_of_model { stored } else { 0 };
        (at == end).then_some(SummaryCache { bytes, by_place, by_text, dimensions })
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.by_place.len()
    }

    /// The number of dimensions of the vectors; 0 if the file has no vectors of the model.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the record of the conversation whose opening is at a place.
    pub(crate) fn at_place(&self, fingerprint: u64) -> Option<SummaryRecord<'_>> {
        self.record(*self.by_place.get(&fingerprint)?)
    }

    /// Returns the record of a conversation whose opening has the same text.
    pub(crate) fn of_text(&self, fingerprint: u64) -> Option<SummaryRecord<'_>> {
        self.record(*self.by_text.get(&fingerprint)?)
    }

    fn record(&self, at: usize) -> Option<SummaryRecord<'_>> {
        let [title, summary, title_terms, summary_terms] = sections(&self.bytes, at)?;
        let text = |range: Range<usize>| {
            let bytes = self.bytes.get(range)?;
            Some(std::str::from_utf8(bytes).ok()?.to_owned())
        };
        let terms = |range: Range<usize>| -> Option<Vec<u32>> {
            let bytes = self.bytes.get(range)?.as_chunks::<4>().0;
            Some(bytes.iter().map(|four| u32::from_le_bytes(*four)).collect())
        };
        let row = summary_terms.end..summary_terms.end + self.dimensions;
        Some(SummaryRecord {
            text: fingerprint(&self.bytes, at + 8)?,
            summary: Summary { title: text(title)?, text: text(summary)? },
            title_terms: terms(title_terms)?,
            summary_terms: terms(summary_terms)?,
            vector: (self.bytes.get(row)?, f32::from_bits(number(&self.bytes, at + 32)?)),
        })
    }
}

/// Returns where the sections of a record are: title, summary, terms of the title, terms of the
/// summary.
fn sections(bytes: &[u8], at: usize) -> Option<[Range<usize>; 4]> {
    let length = |field: usize| Some(number(bytes, at + 16 + 4 * field)? as usize);
    let mut end = at.checked_add(HEAD)?;
    let mut next = |length: usize| {
        let start = end;
        end = end.checked_add(length)?;
        Some(start..end)
    };
    let found = [
        next(length(0)?)?,
        next(length(1)?)?,
        next(length(2)?.checked_mul(4)?)?,
        next(length(3)?.checked_mul(4)?)?,
    ];
    (end <= bytes.len()).then_some(found)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn fingerprint(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Writes summaries in one step, each with its number among the features and its fingerprints.
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
    for (at, fingerprints, summary) in summaries {
        let [of_title, of_summary] = features.terms(*at);
        let (row, scale) = features.vectors().row(*at);
        writer.write_all(&fingerprints.place.to_le_bytes())?;
        writer.write_all(&fingerprints.text.to_le_bytes())?;
        let lengths = [summary.title.len(), summary.text.len(), of_title.len(), of_summary.len()];
        for length in lengths {
            writer.write_all(&size(length))?;
        }
        writer.write_all(&scale.to_le_bytes())?;
        writer.write_all(summary.title.as_bytes())?;
        writer.write_all(summary.text.as_bytes())?;
        for term in of_title.iter().chain(of_summary) {
            writer.write_all(&term.to_le_bytes())?;
        }
        writer.write_all(row)?;
    }
    let Checksummed { mut writer, crc } = writer;
    writer.write_all(&crc.finalize().to_le_bytes())?;
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Computes the checksum of everything that is written.
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
        assert_eq!(
            (&record.summary_terms[..], record.vector),
            (&[3][..], features.vectors().row(0))
        );
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
