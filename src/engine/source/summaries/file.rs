//! The file that briefs are kept in, with what they are ranked by.
//!
//! ```text
//! SHELF/summaries   "VBSU" | u32 format | u32 dimensions | u32 bytes of the model's name | the name
//!                   | one record after the other | u32 CRC-32 of all before it
//! record            u64 print of the place | u64 print of the text | u32 bytes of the title | u32 bytes of the summary | u32 terms of
//!                   the title | u32 terms of the summary | f32 scale | title | summary | u32 each
//!                   term | one byte for each dimension
//! ```
//!
//! Numbers are little-endian. Where there are no vectors, there are no dimensions.
//!
//! Invariant: what is damaged or of another format is as if it were not there.

use std::{
    collections::HashMap,
    fs,
    io::{self, BufWriter, Write},
    ops::Range,
    path::Path,
};

use super::{Summary, features::SummaryFeatures};

const MAGIC: &[u8; 4] = b"VBSU";

/// The version of the file, and of how briefs and their terms are made.
const FORMAT: u32 = 3;

/// Bytes of a record before its title.
const HEAD: usize = 36;

/// What was kept, by print.
#[derive(Debug, Default)]
pub(crate) struct SummaryCache {
    bytes: Vec<u8>,
    /// Where the record of each print begins.
    by_place: HashMap<u64, usize>,
    by_text: HashMap<u64, usize>,
    dimensions: usize,
}

/// What tells the opening of a conversation from others: by where it is, and by what it says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprints {
    pub(crate) place: u64,
    pub(crate) text: u64,
}

/// What was kept of one conversation.
#[derive(Debug)]
pub(crate) struct Record<'k> {
    /// The print of its text.
    pub(crate) text: u64,
    pub(crate) brief: Summary,
    pub(crate) title_terms: Vec<u32>,
    pub(crate) summary_terms: Vec<u32>,
    /// The row and the scale of its vector.
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
            by_place.insert(print(&bytes, at)?, at);
            by_text.insert(print(&bytes, at + 8)?, at);
            at = sections(&bytes, at)?.3.end.checked_add(stored)?;
        }
        let dimensions = if is_of_model { stored } else { 0 };
        (at == end).then_some(SummaryCache { bytes, by_place, by_text, dimensions })
    }

    /// How many conversations it knows.
    pub(crate) fn len(&self) -> usize {
        self.by_place.len()
    }

    /// How many numbers its vectors have; 0 where there are none by the model asked for.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns what was kept of the conversation whose opening is at a place.
    pub(crate) fn at_place(&self, print: u64) -> Option<Record<'_>> {
        self.record(*self.by_place.get(&print)?)
    }

    /// Returns what was kept of a conversation whose opening says the same.
    pub(crate) fn of_text(&self, print: u64) -> Option<Record<'_>> {
        self.record(*self.by_text.get(&print)?)
    }

    fn record(&self, at: usize) -> Option<Record<'_>> {
        let (title, summary, title_terms, summary_terms) = sections(&self.bytes, at)?;
        let text = |range: Range<usize>| {
            let bytes = self.bytes.get(range)?;
            Some(std::str::from_utf8(bytes).ok()?.to_owned())
        };
        let terms = |range: Range<usize>| -> Option<Vec<u32>> {
            let bytes = self.bytes.get(range)?.as_chunks::<4>().0;
            Some(bytes.iter().map(|four| u32::from_le_bytes(*four)).collect())
        };
        let row = summary_terms.end..summary_terms.end + self.dimensions;
        Some(Record {
            text: print(&self.bytes, at + 8)?,
            brief: Summary { title: text(title)?, summary: text(summary)? },
            title_terms: terms(title_terms)?,
            summary_terms: terms(summary_terms)?,
            vector: (self.bytes.get(row)?, f32::from_bits(number(&self.bytes, at + 32)?)),
        })
    }
}

/// Returns where the parts of the record at `at` are: texts and terms of title and summary.
#[allow(clippy::type_complexity)]
fn sections(
    bytes: &[u8],
    at: usize,
) -> Option<(Range<usize>, Range<usize>, Range<usize>, Range<usize>)> {
    let length = |field: usize| Some(number(bytes, at + 16 + 4 * field)? as usize);
    let mut end = at.checked_add(HEAD)?;
    let mut next = |length: usize| {
        let start = end;
        end = end.checked_add(length)?;
        Some(start..end)
    };
    let found = (
        next(length(0)?)?,
        next(length(1)?)?,
        next(length(2)?.checked_mul(4)?)?,
        next(length(3)?.checked_mul(4)?)?,
    );
    (end <= bytes.len()).then_some(found)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn print(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Writes briefs in one step: of each its number among the gists, its prints, and itself.
pub(crate) fn store(
    path: &Path,
    model: &str,
    briefs: &[(usize, Fingerprints, &Summary)],
    gists: &SummaryFeatures,
) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let file = tempfile::Builder::new().prefix("current-summaries-").tempfile_in(folder)?;
    let mut writer = Sum { writer: BufWriter::new(file), crc: crc32fast::Hasher::new() };
    let size = |length: usize| (length as u32).to_le_bytes();
    writer.write_all(MAGIC)?;
    writer.write_all(&FORMAT.to_le_bytes())?;
    writer.write_all(&size(gists.vectors().dimensions()))?;
    writer.write_all(&size(model.len()))?;
    writer.write_all(model.as_bytes())?;
    for (at, prints, brief) in briefs {
        let [of_title, of_summary] = gists.terms(*at);
        let (row, scale) = gists.vectors().row(*at);
        writer.write_all(&prints.place.to_le_bytes())?;
        writer.write_all(&prints.text.to_le_bytes())?;
        let lengths = [brief.title.len(), brief.summary.len(), of_title.len(), of_summary.len()];
        for length in lengths {
            writer.write_all(&size(length))?;
        }
        writer.write_all(&scale.to_le_bytes())?;
        writer.write_all(brief.title.as_bytes())?;
        writer.write_all(brief.summary.as_bytes())?;
        for term in of_title.iter().chain(of_summary) {
            writer.write_all(&term.to_le_bytes())?;
        }
        writer.write_all(row)?;
    }
    let Sum { mut writer, crc } = writer;
    writer.write_all(&crc.finalize().to_le_bytes())?;
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes, and sums up what was written.
struct Sum<W> {
    writer: W,
    crc: crc32fast::Hasher,
}

impl<W: Write> Write for Sum<W> {
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
    fn kept_as_written_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summaries");
        let brief = |title: &str, summary: &str| Summary {
            title: title.to_owned(),
            summary: summary.to_owned(),
        };
        let briefs = [brief("", "Größe."), brief("Titel", "")];
        let mut gists = SummaryFeatures::new(3);
        gists.push(&[1, 2], &[3], |vectors| vectors.push(&[0.0, 1.0, 0.0]));
        gists.push(&[], &[], |vectors| vectors.push(&[]));
        let prints = |place| Fingerprints { place, text: place + 100 };
        let written = [(0, prints(7), &briefs[0]), (1, prints(9), &briefs[1])];
        store(&path, "m", &written, &gists).unwrap();
        let kept = SummaryCache::load(&path, "m");
        assert_eq!((kept.len(), kept.dimensions()), (2, 3));
        let record = kept.at_place(7).unwrap();
        assert_eq!((&record.brief, &record.title_terms[..]), (&briefs[0], &[1, 2][..]));
        assert_eq!((&record.summary_terms[..], record.vector), (&[3][..], gists.vectors().row(0)));
        assert_eq!((&kept.of_text(109).unwrap().brief, record.text), (&briefs[1], 107));
        assert!(kept.at_place(8).is_none() && kept.of_text(7).is_none());
        // Of another model the vectors say nothing.
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
