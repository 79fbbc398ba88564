//! The vectors of a part's messages: one a doc id, int8, mapped into memory, and searched.
//!
//! A vector takes its dimensions and four bytes for its scale: a component is its int8 times the
//! scale. Up to [`EXACT_MOST`] vectors every one is compared. Beyond, they stand in cells by
//! likeness (`cells.rs`), twelve bytes more each, and the cells most like the question are searched.
//!
//! Invariant: holds nothing that the texts and the model cannot make again.

use std::{cmp::Ordering, collections::BinaryHeap, ops::Range, path::Path};

use super::{
    Error,
    file::{self, Mapped, Sections, Shape},
    scan,
};

/// Vectors compared one by one; a million takes some 30 ms with AVX-512 and 50 ms with AVX2.
pub(super) const EXACT_MOST: u32 = 1 << 20;

/// Rows compared at once: their products stay in the fastest cache.
const BLOCK: usize = 256;

/// Slots tried to see how many a filter accepts.
const TRIED: u32 = 1024;

/// Of those tried, as many that a filter is asked after the comparison; of fewer, before it.
const MANY: u32 = TRIED / 4;

/// Accepted vectors compared for each one wanted, before a search of cells ends.
const DEPTH: usize = 512;

/// A doc id and how like the question its message is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The doc id, counted from the part's first.
    pub doc_id: u32,
    /// The cosine, but for what int8 rounds off: -1 to 1.
    pub score: f32,
}

/// The vectors of one part by one model, open for searching.
#[derive(Debug)]
pub struct Vectors {
    shape: Shape,
    sections: Sections,
    map: Mapped,
}

impl Vectors {
    /// Opens the vectors of a part with `count` doc ids; `None` where there are none by this model
    /// that are as they were written, and they have to be built.
    pub fn open(part: &Path, model: &str, count: u32) -> Option<Vectors> {
        let (shape, map) = file::open(part, model, count)?;
        let sections = shape.sections()?;
        Some(Vectors { shape, sections, map })
    }

    /// How many doc ids there are.
    pub fn count(&self) -> u32 {
        self.shape.count
    }

    /// How many numbers a vector has.
    pub fn dimensions(&self) -> usize {
        self.shape.dimensions
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Returns the `k` doc ids most like the question among those that `accepts` takes, the best
    /// first; equally good ones by doc id.
    ///
    /// Slots without a vector (empty texts, and those that the model knows nothing of) are never
    /// among them. `accepts` is asked about any doc id any number of times.
    pub fn top_k(
        &self,
        query: &[f32],
        k: usize,
        accepts: impl Fn(u32) -> bool,
    ) -> Result<Vec<Scored>, Error> {
        let query = self.query(query)?;
        let mut best = Best::new(k);
        if k == 0 || self.count() == 0 || query.scale == 0.0 {
            return Ok(Vec::new());
        }
        let step = (self.count() / TRIED).max(1) as usize;
        let tried = (0..self.count()).step_by(step);
        let (all, accepted) =
            tried.fold((0, 0), |(all, some), doc_id| (all + 1, some + u32::from(accepts(doc_id))));
        let is_wide = accepted * (TRIED / MANY) >= all;
        if self.shape.cells == 0 {
            self.search(0..self.count() as usize, &query, is_wide, &accepts, &mut best);
            return Ok(best.sorted());
        }
        // The fewer of the nearest cells' vectors are accepted, the more cells are searched; all,
        // where what is accepted is little.
        let cells = self.nearest_cells(&query);
        let least = (self.shape.cells as usize / 16).max(32);
        let mut compared = 0;
        for (searched, cell) in cells.into_iter().enumerate() {
            if searched >= least && compared >= DEPTH.saturating_mul(k) {
                break;
            }
            let rows = self.start(cell)..self.start(cell + 1);
            compared += self.search(rows, &query, is_wide, &accepts, &mut best);
        }
        Ok(best.sorted())
    }

    /// Returns how like the question each of some doc ids is, in their order; -1 for those without a
    /// vector.
    pub fn scores(&self, query: &[f32], doc_ids: &[u32]) -> Result<Vec<f32>, Error> {
        let query = self.query(query)?;
        let score = |doc_id: &u32| {
            if *doc_id >= self.count() {
                return -1.0;
            }
            let row = self.row_of(*doc_id);
            let mut product = [0];
            scan::dots(&query.numbers, self.rows(row..row + 1), &mut product);
            query.score(product[0], self.scale(row)).max(-1.0)
        };
        Ok(doc_ids.iter().map(score).collect())
    }

    /// Compares a run of rows; returns how many of them were accepted, or compared at all where
    /// most are.
    fn search(
        &self,
        rows: Range<usize>,
        query: &Query,
        is_wide: bool,
        accepts: &impl Fn(u32) -> bool,
        best: &mut Best,
    ) -> usize {
        let mut compared = 0;
        let mut products = [0; BLOCK];
        let end = rows.end;
        for start in rows.step_by(BLOCK) {
            let block = start..end.min(start + BLOCK);
            if is_wide {
                let products = &mut products[..block.len()];
                scan::dots(&query.numbers, self.rows(block.clone()), products);
                compared += block.len();
                for (row, product) in block.zip(products) {
                    let score = query.score(*product, self.scale(row));
                    if score >= best.bar && accepts(self.doc_id_of(row)) {
                        best.offer(Scored { doc_id: self.doc_id_of(row), score });
                    }
                }
            } else {
                for row in block {
                    let doc_id = self.doc_id_of(row);
                    if accepts(doc_id) {
                        compared += 1;
                        scan::dots(&query.numbers, self.rows(row..row + 1), &mut products[..1]);
                        let score = query.score(products[0], self.scale(row));
                        best.offer(Scored { doc_id, score });
                    }
                }
            }
        }
        compared
    }

    fn nearest_cells(&self, query: &Query) -> Vec<usize> {
        let cells = self.shape.cells as usize;
        let mut products = vec![0; cells];
        scan::dots(&query.numbers, &self.map[self.sections.centres.clone()], &mut products);
        let likeness = |cell: usize| {
            products[cell] as f32 * f32_at(&self.map[self.sections.centre_scales.clone()], cell)
        };
        let mut order: Vec<usize> = (0..cells).collect();
        order.sort_by(|a, b| likeness(*b).total_cmp(&likeness(*a)).then(a.cmp(b)));
        order
    }

    fn query(&self, query: &[f32]) -> Result<Query, Error> {
        let (ours, theirs) = (self.dimensions(), query.len());
        if ours == theirs { Ok(Query::new(query)) } else { Err(Error::Lengths { ours, theirs }) }
    }

    fn rows(&self, rows: Range<usize>) -> &[u8] {
        let dimensions = self.shape.dimensions;
        &self.map[self.sections.rows.clone()][rows.start * dimensions..rows.end * dimensions]
    }

    fn scale(&self, row: usize) -> f32 {
        f32_at(&self.map[self.sections.scales.clone()], row)
    }

    fn doc_id_of(&self, row: usize) -> u32 {
        if self.shape.cells == 0 {
            row as u32
        } else {
            u32_at(&self.map[self.sections.doc_ids.clone()], row)
        }
    }

    fn row_of(&self, doc_id: u32) -> usize {
        if self.shape.cells == 0 {
            doc_id as usize
        } else {
            u32_at(&self.map[self.sections.places.clone()], doc_id as usize) as usize
        }
    }

    /// The first row of a cell.
    fn start(&self, cell: usize) -> usize {
        u32_at(&self.map[self.sections.starts.clone()], cell) as usize
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

/// Rounds a vector to int8, its largest component to 127 or -127; returns the scale, which is 0 for
/// a vector of zeros.
pub(super) fn quantise(vector: &[f32], row: &mut [u8]) -> f32 {
    let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    let factor = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    for (byte, x) in row.iter_mut().zip(vector) {
        *byte = (x * factor).round() as i8 as u8;
    }
    largest / 127.0
}

/// A question's vector, rounded as the messages' are.
pub(super) struct Query {
    numbers: Vec<i8>,
    scale: f32,
}

impl Query {
    pub(super) fn new(vector: &[f32]) -> Query {
        let mut bytes = vec![0; vector.len()];
        let scale = quantise(vector, &mut bytes);
        Query { numbers: bytes.into_iter().map(|byte| byte as i8).collect(), scale }
    }

    pub(super) fn numbers(&self) -> &[i8] {
        &self.numbers
    }

    pub(super) fn score(&self, product: i32, scale: f32) -> f32 {
        // A row without a vector is like nothing, and falls below every bar.
        if scale == 0.0 { f32::NEG_INFINITY } else { product as f32 * (scale * self.scale) }
    }
}

/// The best so far, the worst of them on top.
struct Best {
    heap: BinaryHeap<Worst>,
    k: usize,
    /// What is not above it cannot be among them.
    bar: f32,
}

struct Worst(Scored);

impl Ord for Worst {
    fn cmp(&self, other: &Worst) -> Ordering {
        other.0.score.total_cmp(&self.0.score).then(self.0.doc_id.cmp(&other.0.doc_id))
    }
}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Worst) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worst {
    fn eq(&self, other: &Worst) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Worst {}

impl Best {
    fn new(k: usize) -> Best {
        Best { heap: BinaryHeap::new(), k, bar: f32::MIN }
    }

    fn offer(&mut self, scored: Scored) {
        if scored.score >= self.bar {
            self.heap.push(Worst(scored));
            if self.heap.len() > self.k {
                self.heap.pop();
            }
            if self.heap.len() == self.k {
                self.bar = self.heap.peek().map_or(f32::MIN, |worst| worst.0.score);
            }
        }
    }

    fn sorted(self) -> Vec<Scored> {
        self.heap.into_sorted_vec().into_iter().map(|worst| worst.0).collect()
    }
}
