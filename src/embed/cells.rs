//! Clusters: vectors that are alike stand together, so that a search reads those near its question.
//!
//! As in Faiss's IVF-Flat (Jégou, Douze, Schmid: Product Quantization for Nearest Neighbor Search,
//! 2011), over cosines: spherical k-means on a sample finds the cells' centres; every vector goes
//! to the nearest. The same vectors give the same cells.

use std::thread;

use super::{Error, scan, vectors::quantise};
use crate::model::Stop;

/// Vectors sampled for each cell, and how often its centre moves to their middle.
const SAMPLE: usize = 64;
const ROUNDS: usize = 8;

/// Rows that a thread takes between two looks at the stop.
const SLICE: usize = 4096;

/// The cells of a part's vectors.
#[derive(Debug)]
pub(super) struct Clusters {
    /// The centres, int8, one after the other.
    pub(super) centres: Vec<u8>,
    /// What each centre's int8 are to be multiplied by.
    pub(super) scales: Vec<f32>,
    /// The cell of each row.
    pub(super) of: Vec<u32>,
}

/// Int8 rows with their scales.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    pub(super) rows: &'a [u8],
    pub(super) scales: &'a [f32],
    pub(super) dimensions: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn row(&self, at: usize) -> &'a [u8] {
        &self.rows[at * self.dimensions..(at + 1) * self.dimensions]
    }
}

/// How many cells suit some vectors: as many as each holds.
pub(super) fn number(count: u32) -> u32 {
    f64::from(count).sqrt().ceil() as u32
}

/// Divides rows into cells.
pub(super) fn divide(
    rows: Rows<'_>,
    cells: u32,
    threads: usize,
    stop: &Stop,
    progress: &mut dyn FnMut(f64),
) -> Result<Clusters, Error> {
    let cells = cells as usize;
    let count = rows.scales.len();
    // Rows without a vector have no direction.
    let step = (count / (cells * SAMPLE)).max(1);
    let sample: Vec<u32> = (0..count)
        .step_by(step)
        .filter(|row| rows.scales[*row] > 0.0)
        .map(|row| row as u32)
        .collect();
    let all: Vec<u32> = (0..count as u32).collect();
    let work = (ROUNDS * sample.len() + count) as f64;
    let mut done = 0;
    let mut tell = |more: usize| {
        done += more;
        progress(done as f64 / work);
    };
    let mut centres = vec![0; cells * rows.dimensions];
    let mut scales = vec![0.0; cells];
    for (cell, centre) in centres.chunks_exact_mut(rows.dimensions).enumerate() {
        if let Some(row) = sample.get(cell * sample.len() / cells) {
            centre.copy_from_slice(rows.row(*row as usize));
            scales[cell] = rows.scales[*row as usize];
        }
    }
    for _ in 0..ROUNDS {
        let of = nearest(rows, &sample, &centres, &scales, threads, stop, &mut tell)?;
        let mut sums = vec![0.0_f32; cells * rows.dimensions];
        for (row, cell) in sample.iter().zip(&of) {
            let at = *cell as usize * rows.dimensions;
            let scale = rows.scales[*row as usize];
            let sum = &mut sums[at..at + rows.dimensions];
            for (sum, byte) in sum.iter_mut().zip(rows.row(*row as usize)) {
                *sum += f32::from(*byte as i8) * scale;
            }
        }
        for (cell, sum) in sums.chunks_exact_mut(rows.dimensions).enumerate() {
            let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
            // A cell that nothing is near stays where it is.
            if length > 0.0 {
                sum.iter_mut().for_each(|x| *x /= length);
                let at = cell * rows.dimensions;
                scales[cell] = quantise(sum, &mut centres[at..at + rows.dimensions]);
            }
        }
    }
    let of = nearest(rows, &all, &centres, &scales, threads, stop, &mut tell)?;
    Ok(Clusters { centres, scales, of })
}

/// Returns the cell whose centre each of some rows is nearest to.
fn nearest(
    rows: Rows<'_>,
    wanted: &[u32],
    centres: &[u8],
    scales: &[f32],
    threads: usize,
    stop: &Stop,
    tell: &mut dyn FnMut(usize),
) -> Result<Vec<u32>, Error> {
    let threads = threads.max(1);
    let mut of = Vec::with_capacity(wanted.len());
    for slice in wanted.chunks(SLICE * threads) {
        if stop.requested() {
            return Err(Error::Stopped);
        }
        thread::scope(|scope| {
            let shares: Vec<_> = slice
                .chunks(slice.len().div_ceil(threads))
                .map(|share| scope.spawn(move || nearest_to_each(rows, share, centres, scales)))
                .collect();
            for share in shares {
                of.extend(share.join().expect("comparing numbers does not panic"));
            }
        });
        tell(slice.len());
    }
    Ok(of)
}

fn nearest_to_each(rows: Rows<'_>, wanted: &[u32], centres: &[u8], scales: &[f32]) -> Vec<u32> {
    let mut products = vec![0; scales.len()];
    let nearest = |row: &u32| {
        let row: Vec<i8> = rows.row(*row as usize).iter().map(|byte| *byte as i8).collect();
        scan::dots(&row, centres, &mut products);
        let mut best = (f32::MIN, 0);
        for (cell, (product, scale)) in products.iter().zip(scales).enumerate() {
            let likeness = *product as f32 * scale;
            if likeness > best.0 {
                best = (likeness, cell as u32);
            }
        }
        best.1
    };
    wanted.iter().map(nearest).collect()
}
