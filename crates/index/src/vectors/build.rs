//! Writes the vectors of a segment. The caller computes the rows with a model.

use std::path::{Path, PathBuf};

use super::codes::{CodeWriter, Mean};
use super::file::{BYTE, FOUR_BITS, FileWriter, Shape, TWO_BITS, VectorSpill};
use super::{EXACT_MOST, EXACT_MOST_CODES, Vectors, clusters};
use crate::{Error, Result};
use verbatim_base::call::Stop;

const SHORT_TEXTS: u64 = 400;

/// The options for building vectors.
#[derive(Clone, Copy, Debug)]
pub struct VectorOptions {
    /// Threads that divide vectors into clusters.
    pub threads: usize,
    /// The number of vectors above which a build makes clusters. Tests use other values than the default.
    pub exact_most: u32,
    /// The number of bits of a component: 8, 4 or 2.
    pub bits: u32,
}

impl Default for VectorOptions {
    fn default() -> VectorOptions {
        VectorOptions { threads: 1, exact_most: EXACT_MOST, bits: BYTE }
    }
}

impl VectorOptions {
    /// Returns the options for the built-in model, by the average length of texts. The built-in model
    /// computes a vector in microseconds.
    ///
    /// Vectors of long texts get more bits, because scoring many long texts again takes too long.
    pub fn codes(average: u64) -> VectorOptions {
        let bits = if average > SHORT_TEXTS { FOUR_BITS } else { TWO_BITS };
        VectorOptions { threads: 1, exact_most: EXACT_MOST_CODES, bits }
    }
}

/// The vectors of a segment under construction. Dropping the builder removes its files.
#[derive(Debug)]
pub struct VectorBuilder {
    segment: PathBuf,
    shape: Shape,
    options: VectorOptions,
    scales: Vec<f32>,
    /// The rows in doc-id order, if all rows must be known before the first is written: for clusters, or for
    /// codes, which need the mean of all rows.
    spill: Option<VectorSpill>,
    mean: Mean,
    writer: FileWriter,
}

impl VectorBuilder {
    /// Begins the vectors of a segment with `count` doc ids. `model` is the name of the model.
    pub fn begin(
        segment: &Path,
        model: &str,
        dimensions: usize,
        count: u32,
        options: VectorOptions,
    ) -> Result<VectorBuilder> {
        let writer = FileWriter::begin(segment, model)?;
        let is_exact = count <= options.exact_most;
        let clusters = if is_exact { 0 } else { clusters::number(count) };
        let bits = options.bits;
        let is_written_at_once = is_exact && bits == BYTE;
        Ok(VectorBuilder {
            segment: segment.to_owned(),
            shape: Shape {
                model: model.to_owned(),
                dimensions,
                count,
                clusters,
                bits,
                is_keyed: false,
            },
            options,
            scales: Vec::with_capacity(count as usize),
            spill: if is_written_at_once { None } else { Some(writer.begin_spill()?) },
            mean: Mean::new(dimensions),
            writer,
        })
    }

    /// Adds the next vectors in doc-id order: the int8 rows, one after the other, and their scales. A message
    /// with scale 0 has no vector.
    pub fn add(&mut self, rows: &[u8], scales: &[f32]) -> Result<()> {
        self.scales.extend_from_slice(scales);
        if self.options.bits != BYTE {
            self.mean.add(rows, scales);
        }
        match &mut self.spill {
            None => self.writer.write(rows),
            Some(spill) => spill.write(rows),
        }
    }

    /// Publishes the vectors and opens them. Calls `progress` with the finished share of the clustering.
    /// Readers of older vectors keep their open files.
    pub fn finish(self, stop: &Stop, progress: &mut dyn FnMut(f64)) -> Result<Vectors> {
        let VectorBuilder { segment, shape, options, mut scales, spill, mean, mut writer } = self;
        let mean = mean.finish();
        let mut codes = shape.code().map(|form| CodeWriter::new(form, &mean));
        match spill {
            None => writer.write_numbers(scales.iter().map(|scale| scale.to_le_bytes()))?,
            Some(spill) if shape.clusters == 0 => {
                let mut scale = scales.iter_mut();
                spill.read_rows(shape.dimensions, |row| {
                    let (Some(scale), Some(codes)) = (scale.next(), &mut codes) else {
                        return Ok(());
                    };
                    let (code, code_scale) = codes.encode(row, *scale);
                    *scale = code_scale;
                    writer.write(code)
                })?;
                writer.write_numbers(scales.iter().map(|scale| scale.to_le_bytes()))?;
            }
            Some(spill) => {
                let rows = spill.read()?;
                let rows =
                    clusters::Rows { rows: &rows, scales: &scales, dimensions: shape.dimensions };
                let divided =
                    clusters::divide(rows, shape.clusters, options.threads, stop, progress)?;
                write_by_cluster(&mut writer, rows, &divided, codes)?;
            }
        }
        if shape.code().is_some() {
            writer.write_numbers(mean.iter().map(|number| number.to_le_bytes()))?;
        }
        let model = shape.model.clone();
        let count = shape.count;
        writer.publish(shape)?;
        Vectors::open(&segment, &model, count).ok_or(Error::Vanished { path: segment })
    }
}

fn write_by_cluster(
    writer: &mut FileWriter,
    rows: clusters::Rows<'_>,
    clusters: &clusters::Clusters,
    mut codes: Option<CodeWriter<'_>>,
) -> Result<()> {
    let count = clusters.assignments.len();
    let mut starts = vec![0_u32; clusters.centres.scales.len() + 1];
    for cluster in &clusters.assignments {
        starts[*cluster as usize + 1] += 1;
    }
    for cluster in 1..starts.len() {
        starts[cluster] += starts[cluster - 1];
    }
    let mut next = starts.clone();
    let mut doc_ids = vec![0_u32; count];
    let mut row_of = vec![0_u32; count];
    for (doc_id, cluster) in clusters.assignments.iter().enumerate() {
        let row = next[*cluster as usize];
        next[*cluster as usize] += 1;
        doc_ids[row as usize] = doc_id as u32;
        row_of[doc_id] = row;
    }
    let mut scales = Vec::with_capacity(count);
    for doc_id in &doc_ids {
        let mut row = rows.row(*doc_id as usize);
        let mut scale = rows.scales[*doc_id as usize];
        if let Some(codes) = &mut codes {
            (row, scale) = codes.encode(row, scale);
        }
        writer.write(row)?;
        scales.push(scale);
    }
    writer.write_numbers(scales.iter().map(|scale| scale.to_le_bytes()))?;
    for numbers in [&doc_ids, &row_of, &starts] {
        writer.write_numbers(numbers.iter().map(|number| number.to_le_bytes()))?;
    }
    writer.write_numbers(clusters.centres.scales.iter().map(|scale| scale.to_le_bytes()))?;
    writer.write(&clusters.centres.rows)
}
