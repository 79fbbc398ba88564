//! The files of a segment's vectors.
//!
//! ```text
//! SEGMENT/vectors-MODEL/
//!     manifest        format, shape, and a record of the other file
//!     rows            count × dimensions int8, or count codes ([`CodeForm`]);
//!                     padding; count × float32, the scales;
//!                     if there are clusters: count × uint32, the doc id of each row;
//!                     count × uint32, the row of each doc id;
//!                     clusters + 1 × uint32, the first row of each cluster;
//!                     clusters × float32, the scales of their centres;
//!                     clusters × dimensions int8, the centres;
//!                     with codes: dimensions × float32, the mean of all vectors;
//!                     if the vectors are keyed: count × uint64, the hashes of the texts
//! ```
//!
//! Numbers are little-endian.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::codes::CodeForm;
use crate::artifact::{self, ArtifactFile, FileRecord, Unfinished, read_manifest};
use crate::{Error, Result};
use verbatim_base::map_faults::Mapped;

const FORMAT: u32 = 3;

const ROWS: &str = "rows";

#[derive(Debug, Serialize, Deserialize)]
struct VectorManifest {
    format: u32,
    shape: Shape,
    files: Vec<FileRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    pub(super) model: String,
    pub(super) dimensions: usize,
    pub(super) count: u32,
    /// 0 if every vector is compared.
    pub(super) clusters: u32,
    pub(super) bits: u32,
    #[serde(default)]
    pub(super) is_keyed: bool,
}

/// The bits of a component in int8, for any model: the error of a cosine is about 0.002.
pub(super) const BYTE: u32 = 8;

/// The bits of a component in a code: the error of a cosine is about 0.003.
pub(super) const FOUR_BITS: u32 = 4;

/// The bits of a component in a smaller code: the error of a cosine is about 0.01, so the best messages must
/// be scored again from their texts.
pub(super) const TWO_BITS: u32 = 2;

/// The sections of the file, as ranges of bytes.
#[derive(Clone, Debug)]
pub(super) struct Sections {
    pub(super) rows: Range<usize>,
    pub(super) scales: Range<usize>,
    pub(super) doc_ids: Range<usize>,
    pub(super) row_of: Range<usize>,
    pub(super) starts: Range<usize>,
    pub(super) centre_scales: Range<usize>,
    pub(super) centres: Range<usize>,
    /// Empty for vectors in int8.
    pub(super) mean: Range<usize>,
    /// Empty unless the vectors are keyed.
    pub(super) hashes: Range<usize>,
}

impl Shape {
    pub(super) fn row_bytes(&self) -> usize {
        self.code().map_or(self.dimensions, CodeForm::bytes)
    }

    /// Returns the form of the rows; `None` for int8 rows.
    pub(super) fn code(&self) -> Option<CodeForm> {
        (self.bits != BYTE).then_some(CodeForm { bits: self.bits, dimensions: self.dimensions })
    }

    pub(super) fn sections(&self) -> Option<Sections> {
        let count = self.count as usize;
        let clusters = self.clusters as usize;
        let is_divided = clusters > 0;
        let listed = if is_divided { count } else { 0 };
        let starts = if is_divided { clusters.checked_add(1)? } else { 0 };
        let means = if self.code().is_some() { self.dimensions } else { 0 };
        let end = &mut 0_usize;
        Some(Sections {
            rows: section(end, count, self.row_bytes())?,
            scales: section(end, count, 4)?,
            doc_ids: section(end, listed, 4)?,
            row_of: section(end, listed, 4)?,
            starts: section(end, starts, 4)?,
            centre_scales: section(end, clusters, 4)?,
            centres: section(end, clusters, self.dimensions)?,
            mean: section(end, means, 4)?,
            hashes: section(end, if self.is_keyed { count } else { 0 }, 8)?,
        })
    }

    pub(super) const PREFIX: &'static str = "vectors-";

    pub(super) fn folder(model: &str) -> String {
        format!("{}{model}", Shape::PREFIX)
    }
}

/// Returns the place of so many numbers of a size after `end`, and moves `end` behind them.
fn section(end: &mut usize, numbers: usize, size: usize) -> Option<Range<usize>> {
    let start = end.checked_next_multiple_of(4)?;
    *end = start.checked_add(numbers.checked_mul(size)?)?;
    Some(start..*end)
}

/// Opens a segment's vectors of a model, `count` if it is known; `None` if they are missing, damaged or of
/// another form.
pub(super) fn open(segment: &Path, model: &str, count: Option<u32>) -> Option<(Shape, Mapped)> {
    let folder = segment.join(Shape::folder(model));
    let manifest: VectorManifest = read_manifest(&folder, FORMAT, None).ok()?;
    let VectorManifest { shape, files, .. } = manifest;
    let [file] = &files[..] else { return None };
    let fits = shape.model == model
        && count.is_none_or(|count| shape.count == count)
        && shape.dimensions > 0
        && [BYTE, FOUR_BITS, TWO_BITS].contains(&shape.bits)
        && file.name == ROWS
        && file.length == shape.sections()?.hashes.end as u64;
    if !fits {
        return None;
    }
    let map = file.open(&folder).ok()?.map().ok()?;
    Some((shape, map))
}

#[derive(Debug)]
pub(super) struct FileWriter {
    // This field comes first, so that the file is closed before its folder is removed.
    file: ArtifactFile,
    unfinished: Unfinished,
    length: u64,
}

impl FileWriter {
    pub(super) fn begin(segment: &Path, model: &str) -> Result<FileWriter> {
        let unfinished =
            Unfinished::begin(segment, &Shape::folder(model)).map_err(failed(segment))?;
        let file = ArtifactFile::begin(unfinished.folder(), ROWS).map_err(failed(segment))?;
        Ok(FileWriter { file, unfinished, length: 0 })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.length += bytes.len() as u64;
        self.file.write_all(bytes).map_err(failed(self.unfinished.folder()))
    }

    /// Writes a section of four-byte numbers, aligned to four bytes.
    pub(super) fn write_numbers(&mut self, numbers: impl Iterator<Item = [u8; 4]>) -> Result<()> {
        let padding = self.length.next_multiple_of(4) - self.length;
        self.write(&[0; 3][..padding as usize])?;
        for number in numbers {
            self.write(&number)?;
        }
        Ok(())
    }

    /// Returns an unnamed file for rows that cannot be written yet.
    pub(super) fn begin_spill(&self) -> Result<VectorSpill> {
        let folder = self.unfinished.folder().to_owned();
        let file = tempfile::tempfile_in(&folder).map_err(failed(&folder))?;
        Ok(VectorSpill { folder, file: BufWriter::with_capacity(1 << 20, file) })
    }

    /// Makes the file durable and moves it to its place, where it replaces older vectors.
    pub(super) fn publish(self, shape: Shape) -> Result<()> {
        let FileWriter { file, unfinished, .. } = self;
        let folder = unfinished.folder().to_owned();
        let files = file.finish().and_then(|file| artifact::seal(&folder, &[file]));
        let published = files
            .and_then(|files| unfinished.publish(&VectorManifest { format: FORMAT, shape, files }));
        published.map_err(failed(&folder))
    }
}

/// An unnamed file. The system deletes it when this value is dropped.
#[derive(Debug)]
pub(super) struct VectorSpill {
    folder: PathBuf,
    file: BufWriter<File>,
}

impl VectorSpill {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(failed(&self.folder))
    }

    /// Calls `each` with every row, one at a time, so that not all rows are in memory.
    pub(super) fn read_rows(
        self,
        length: usize,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let VectorSpill { folder, file } = self;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error);
        let mut file = file.map_err(failed(&folder))?;
        let bytes = file.stream_position().map_err(failed(&folder))?;
        file.rewind().map_err(failed(&folder))?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut row = vec![0; length];
        for _ in 0..bytes / length.max(1) as u64 {
            file.read_exact(&mut row).map_err(failed(&folder))?;
            each(&row)?;
        }
        Ok(())
    }

    pub(super) fn read(self) -> Result<Mapped> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error);
        file.and_then(|file| Mapped::new(&file)).map_err(failed(&self.folder))
    }
}

fn failed(folder: &Path) -> impl Fn(io::Error) -> Error {
    move |error| Error::WriteVectors { path: folder.to_owned(), error }
}
