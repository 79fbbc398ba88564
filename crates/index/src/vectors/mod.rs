//! The vectors of a segment's messages, for finding similar messages. They are quantized and memory-mapped.
//!
//! A vector takes one byte per dimension and four bytes for its scale: a component is its int8 times the
//! scale. Vectors of the built-in model take four bits per dimension, or two if texts are short ([`codes`]);
//! the caller then scores the best messages again. Up to [`EXACT_MOST`] vectors, or [`EXACT_MOST_CODES`], a
//! search compares all of them. More vectors are divided into clusters ([`clusters`]), and a search reads
//! only the clusters nearest to the query. Clusters take twelve more bytes per vector.
//!
//! This module contains no models. Callers compute the rows with a model and give them to [`VectorBuilder`].
//!
//! Invariant: vectors of different models are never compared. The folder and the manifest name the model.
//! Invariant: vectors that open are unchanged since they were written. Changed vectors count as missing and
//! are rebuilt.

mod build;
mod clusters;
mod codes;
mod file;
mod kernel;
mod packed;
mod parts;
mod query;

use std::{ops::Range, path::Path};

use super::scored::{BestDocs, ScoredDoc};
use super::{Error, Result};
use verbatim_base::map_faults::Mapped;

pub use build::{VectorBuilder, VectorOptions};
pub use packed::{PackedQuery, pack};
pub(crate) use parts::keep;
pub use parts::{KeptVectors, KeyedCode, VectorPartWriter, VectorParts};

use file::{Sections, Shape};
use query::QueryVector;

/// The maximum number of vectors that a search compares one by one. A million take about 30 ms with AVX-512
/// and 50 ms with AVX2.
const EXACT_MOST: u32 = 1 << 20;

/// The maximum for vectors of two or four bits per dimension.
const EXACT_MOST_CODES: u32 = 1 << 22;

/// The number of rows that are compared at once. Their products fit into the fastest cache.
const BLOCK: usize = 256;

/// The number of doc ids that are sampled to estimate the share that a filter accepts.
const SAMPLE: u32 = 1024;

/// If a quarter of the sample passes the filter, score first and filter after; otherwise filter first.
const WIDE: u32 = SAMPLE / 4;

/// A search of clusters compares at least this many accepted vectors per wanted result.
const DEPTH: usize = 512;

/// The vectors of one segment by one model, open for searching.
#[derive(Debug)]
pub struct Vectors {
    shape: Shape,
    sections: Sections,
    map: Mapped,
}

impl Vectors {
    /// Opens the vectors of a segment with `count` doc ids; returns `None` if the vectors must be built.
    pub fn open(segment: &Path, model: &str, count: u32) -> Option<Vectors> {
        let (shape, map) = file::open(segment, model, Some(count))?;
        let sections = shape.sections()?;
        Some(Vectors { shape, sections, map })
    }

    /// Returns the number of doc ids.
    pub fn count(&self) -> u32 {
        self.shape.count
    }

    /// Returns the number of doc ids with a vector: the model knows some part of their texts.
    pub fn known(&self) -> u32 {
        (0..self.count() as usize).filter(|row| self.scale(*row) != 0.0).count() as u32
    }

    /// Returns the number of dimensions of each vector.
    pub fn dimensions(&self) -> usize {
        self.shape.dimensions
    }

    /// Returns how many of the best messages the caller should score again, because scores are estimates.
    /// Returns 0 if the scores are accurate enough.
    pub fn scored_again(&self) -> usize {
        match self.shape.bits {
            file::TWO_BITS => 100,
            // Four bits have smaller errors. They are used for longer texts, which take longer to score.
            file::FOUR_BITS => 30,
            _ => 0,
        }
    }

    /// Returns the bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Returns the `k` doc ids most similar to the query among those that pass `accepts`, the best first.
    /// Equal scores are ordered by doc id.
    ///
    /// The result has no messages without a vector. `accepts` may be called several times for a doc id.
    pub fn top_k(
        &self,
        query: &[f32],
        k: usize,
        accepts: impl Fn(u32) -> bool,
    ) -> Result<Vec<ScoredDoc>> {
        let query = self.query(query)?;
        let mut best = BestDocs::new(k, f32::MIN);
        if k == 0 || self.count() == 0 || query.scale == 0.0 {
            return Ok(Vec::new());
        }
        let step = (self.count() / SAMPLE).max(1) as usize;
        let sample = (0..self.count()).step_by(step);
        let all = sample.len() as u32;
        let accepted = sample.filter(|doc_id| accepts(*doc_id)).count() as u32;
        let is_wide = accepted * (SAMPLE / WIDE) >= all;
        if self.shape.clusters == 0 {
            self.search(0..self.count() as usize, &query, is_wide, &accepts, &mut best);
            return Ok(best.sorted());
        }
        // The fewer vectors the filter accepts, the more clusters are searched. A very narrow filter searches
        // all of them.
        let least = (self.shape.clusters as usize / 16).max(32);
        let mut compared = 0;
        for (searched, cluster) in self.nearest_clusters(&query).into_iter().enumerate() {
            if searched >= least && compared >= DEPTH.saturating_mul(k) {
                break;
            }
            let rows = self.start(cluster)..self.start(cluster + 1);
            compared += self.search(rows, &query, is_wide, &accepts, &mut best);
        }
        Ok(best.sorted())
    }

    /// Returns for each doc id the similarity of the message to the query; -1 if there is no vector.
    pub fn scores(&self, query: &[f32], doc_ids: &[u32]) -> Result<Vec<f32>> {
        let query = self.query(query)?;
        let scores = doc_ids.iter().map(|doc_id| {
            if *doc_id >= self.count() {
                return -1.0;
            }
            let row = self.row_of(*doc_id);
            let mut product = [0];
            self.products(&query, row..row + 1, &mut product);
            query.score(product[0], self.scale(row)).max(-1.0)
        });
        Ok(scores.collect())
    }

    /// Compares a range of rows. Returns the number of accepted rows, or of all rows if the filter is wide.
    fn search(
        &self,
        rows: Range<usize>,
        query: &QueryVector,
        is_wide: bool,
        accepts: &impl Fn(u32) -> bool,
        best: &mut BestDocs,
    ) -> usize {
        let mut compared = 0;
        let mut products = [0; BLOCK];
        let end = rows.end;
        for start in rows.step_by(BLOCK) {
            let block = start..end.min(start + BLOCK);
            if is_wide {
                let products = &mut products[..block.len()];
                self.products(query, block.clone(), products);
                compared += block.len();
                for (row, product) in block.zip(products) {
                    let score = query.score(*product, self.scale(row));
                    if score >= best.threshold {
                        let doc_id = self.doc_id_of(row);
                        best.offer(ScoredDoc { doc_id, score }, || accepts(doc_id));
                    }
                }
            } else {
                for row in block {
                    let doc_id = self.doc_id_of(row);
                    if accepts(doc_id) {
                        compared += 1;
                        self.products(query, row..row + 1, &mut products[..1]);
                        let score = query.score(products[0], self.scale(row));
                        best.offer(ScoredDoc { doc_id, score }, || true);
                    }
                }
            }
        }
        compared
    }

    fn nearest_clusters(&self, query: &QueryVector) -> Vec<usize> {
        let clusters = self.shape.clusters as usize;
        let mut products = vec![0; clusters];
        let numbers = &query.numbers[..self.dimensions()];
        kernel::dots(numbers, &self.map[self.sections.centres.clone()], &mut products);
        let scales = &self.map[self.sections.centre_scales.clone()];
        let similarities: Vec<f32> = products
            .iter()
            .enumerate()
            .map(|(cluster, product)| *product as f32 * f32_at(scales, cluster))
            .collect();
        let mut order: Vec<usize> = (0..clusters).collect();
        order.sort_by(|a, b| similarities[*b].total_cmp(&similarities[*a]));
        order
    }

    fn query(&self, query: &[f32]) -> Result<QueryVector> {
        if self.dimensions() != query.len() {
            return Err(Error::Lengths { ours: self.dimensions(), theirs: query.len() });
        }
        let mut rounded = QueryVector::new(query);
        if let Some(form) = self.shape.code() {
            form.fill(&mut rounded);
            let mean = &self.map[self.sections.mean.clone()];
            rounded.of_mean =
                query.iter().enumerate().map(|(at, x)| x * f32_at(mean, at)).sum::<f32>();
        }
        Ok(rounded)
    }

    /// Writes the integer dot product of the query with each row of a range, before the scales apply.
    fn products(&self, query: &QueryVector, rows: Range<usize>, out: &mut [i32]) {
        let length = self.shape.row_bytes();
        let rows = &self.map[self.sections.rows.clone()][rows.start * length..rows.end * length];
        match self.shape.code() {
            Some(form) => form.products(query, rows, out),
            None => kernel::dots(&query.numbers, rows, out),
        }
    }

    #[inline]
    fn scale(&self, row: usize) -> f32 {
        f32_at(&self.map[self.sections.scales.clone()], row)
    }

    #[inline]
    fn doc_id_of(&self, row: usize) -> u32 {
        if self.shape.clusters == 0 {
            row as u32
        } else {
            u32_at(&self.map[self.sections.doc_ids.clone()], row)
        }
    }

    fn row_of(&self, doc_id: u32) -> usize {
        if self.shape.clusters == 0 {
            doc_id as usize
        } else {
            u32_at(&self.map[self.sections.row_of.clone()], doc_id as usize) as usize
        }
    }

    fn start(&self, cluster: usize) -> usize {
        u32_at(&self.map[self.sections.starts.clone()], cluster) as usize
    }
}

fn four_at(bytes: &[u8], at: usize) -> [u8; 4] {
    bytes.as_chunks::<4>().0[at]
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(four_at(bytes, at))
}

fn f32_at(bytes: &[u8], at: usize) -> f32 {
    f32::from_le_bytes(four_at(bytes, at))
}
