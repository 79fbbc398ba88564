//! Clusters of similar vectors: a search reads only the clusters near its query.
//!
//! The method is IVF-Flat as in Faiss (Jégou, Douze, Schmid: Product Quantization for Nearest Neighbor
//! Search, 2011), but with cosines. Spherical k-means on a sample finds the centres. Every vector joins the
//! cluster of the nearest centre. The same vectors always give the same clusters.

use std::thread;

use super::kernel;
use crate::{Error, Result};
use verbatim_base::{call::Stop, int8::quantise};

const SAMPLE_PER_CLUSTER: usize = 64;

const ROUNDS: usize = 8;

/// The rows that a thread compares before it checks for a stop request.
const SLICE: usize = 4096;

#[derive(Debug)]
pub(super) struct Clusters {
    pub(super) centres: Centres,
    pub(super) assignments: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Centres {
    /// The int8 numbers, one centre after the other.
    pub(super) rows: Vec<u8>,
    pub(super) scales: Vec<f32>,
}

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

/// Returns the number of clusters for `count` vectors: the square root of `count`.
pub(super) fn number(count: u32) -> u32 {
    f64::from(count).sqrt().ceil() as u32
}

/// Divides rows into clusters. Calls `progress` with the finished share of the work.
pub(super) fn divide(
    rows: Rows<'_>,
    clusters: u32,
    threads: usize,
    stop: &Stop,
    progress: &mut dyn FnMut(f64),
) -> Result<Clusters> {
    let clusters = clusters as usize;
    let count = rows.scales.len();
    // A row with scale 0 is not a vector and has no direction.
    let step = (count / (clusters * SAMPLE_PER_CLUSTER)).max(1);
    let sample: Vec<u32> = (0..count)
        .step_by(step)
        .filter(|row| rows.scales[*row] > 0.0)
        .map(|row| row as u32)
        .collect();
    let all: Vec<u32> = (0..count as u32).collect();
    let work = (ROUNDS * sample.len() + count) as f64;
    let mut done = 0;
    let mut assignment = Assignment {
        rows,
        threads: threads.max(1),
        stop,
        tell: &mut |more| {
            done += more;
            progress(done as f64 / work);
        },
    };
    let mut centres = Centres::from_sample(rows, &sample, clusters);
    for _ in 0..ROUNDS {
        let of = assignment.nearest(&sample, &centres)?;
        centres.move_to_means(rows, &sample, &of);
    }
    let assignments = assignment.nearest(&all, &centres)?;
    Ok(Clusters { centres, assignments })
}

impl Centres {
    /// Returns the initial centres, taken evenly from the sample.
    fn from_sample(rows: Rows<'_>, sample: &[u32], clusters: usize) -> Centres {
        let mut centres =
            Centres { rows: vec![0; clusters * rows.dimensions], scales: vec![0.0; clusters] };
        for (cluster, centre) in centres.rows.chunks_exact_mut(rows.dimensions).enumerate() {
            if let Some(row) = sample.get(cluster * sample.len() / clusters) {
                centre.copy_from_slice(rows.row(*row as usize));
                centres.scales[cluster] = rows.scales[*row as usize];
            }
        }
        centres
    }

    /// Moves each centre to the mean direction of its sampled rows.
    fn move_to_means(&mut self, rows: Rows<'_>, sample: &[u32], of: &[u32]) {
        let mut sums = vec![0.0_f32; self.rows.len()];
        for (row, cluster) in sample.iter().zip(of) {
            let at = *cluster as usize * rows.dimensions;
            let scale = rows.scales[*row as usize];
            let sum = &mut sums[at..at + rows.dimensions];
            for (sum, byte) in sum.iter_mut().zip(rows.row(*row as usize)) {
                *sum += f32::from(*byte as i8) * scale;
            }
        }
        for (cluster, sum) in sums.chunks_exact_mut(rows.dimensions).enumerate() {
            let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
            // The centre of an empty cluster does not move.
            if length > 0.0 {
                sum.iter_mut().for_each(|x| *x /= length);
                let at = cluster * rows.dimensions;
                self.scales[cluster] = quantise(sum, &mut self.rows[at..at + rows.dimensions]);
            }
        }
    }

    fn nearest(&self, rows: Rows<'_>, wanted: &[u32]) -> Vec<u32> {
        let mut products = vec![0; self.scales.len()];
        let nearest = wanted.iter().map(|row| {
            let row: Vec<i8> = rows.row(*row as usize).iter().map(|byte| *byte as i8).collect();
            kernel::dots(&row, &self.rows, &mut products);
            let mut best = (f32::MIN, 0);
            for (cluster, (product, scale)) in products.iter().zip(&self.scales).enumerate() {
                let similarity = *product as f32 * scale;
                if similarity > best.0 {
                    best = (similarity, cluster as u32);
                }
            }
            best.1
        });
        nearest.collect()
    }
}

struct Assignment<'a> {
    rows: Rows<'a>,
    threads: usize,
    stop: &'a Stop,
    /// Called now and then with the number of newly compared rows.
    tell: &'a mut dyn FnMut(usize),
}

impl Assignment<'_> {
    /// Returns the nearest centre of each row in `wanted`.
    fn nearest(&mut self, wanted: &[u32], centres: &Centres) -> Result<Vec<u32>> {
        let rows = self.rows;
        let mut of = Vec::with_capacity(wanted.len());
        for slice in wanted.chunks(SLICE * self.threads) {
            self.stop.check(Error::Stopped)?;
            thread::scope(|scope| {
                let shares: Vec<_> = slice
                    .chunks(slice.len().div_ceil(self.threads))
                    .map(|share| scope.spawn(move || centres.nearest(rows, share)))
                    .collect();
                for share in shares {
                    of.extend(share.join().expect("comparing numbers does not panic"));
                }
            });
            (self.tell)(slice.len());
        }
        Ok(of)
    }
}
