//! Vectors with two or four bits per dimension, for a model whose vectors are spread evenly.
//!
//! The mean of the vectors of a segment is stored once. A code is the difference of a vector from the mean,
//! rounded to odd multiples of a scale. With two bits these are -3, -1, 1 and 3 times the scale. Each vector
//! has its own scale, which makes the estimate of a product unbiased (as in RaBitQ: Gao and Long, 2024).

use super::{kernel, query::QueryVector};

/// The step between two levels in standard deviations, for two bits and for four. These steps are optimal for
/// a normal distribution (Max: Quantizing for minimum distortion, 1960).
const STEPS: [f32; 2] = [0.995_7, 0.335_2];

#[derive(Clone, Copy, Debug)]
pub(super) struct CodeForm {
    pub(super) bits: u32,
    pub(super) dimensions: usize,
}

impl CodeForm {
    fn planes(self) -> usize {
        (u8::BITS / self.bits) as usize
    }

    pub(super) fn bytes(self) -> usize {
        self.dimensions.div_ceil(self.planes())
    }

    /// Returns the highest number of a dimension. A number n encodes the level 2n - highest.
    fn highest(self) -> u8 {
        (1 << self.bits) - 1
    }

    /// Pads a query with zeros to the length of a row with all planes.
    pub(super) fn fill(self, query: &mut QueryVector) {
        query.numbers.resize(self.planes() * self.bytes(), 0);
    }

    /// Writes the product of the query with the levels of each row.
    pub(super) fn products(self, query: &QueryVector, rows: &[u8], out: &mut [i32]) {
        kernel::packed_dots(self.bits, &query.numbers, rows, out);
        let highest = i32::from(self.highest());
        out.iter_mut().for_each(|product| *product = 2 * *product - highest * query.sum);
    }
}

/// The sum of int8 rows, to find their mean.
#[derive(Debug)]
pub(super) struct Mean {
    sums: Vec<f64>,
    count: u32,
}

impl Mean {
    pub(super) fn new(dimensions: usize) -> Mean {
        Mean { sums: vec![0.0; dimensions], count: 0 }
    }

    /// Adds rows with their scales. A row with scale 0 is not a vector.
    pub(super) fn add(&mut self, rows: &[u8], scales: &[f32]) {
        let rows = rows.chunks_exact(self.sums.len());
        for (row, scale) in rows.zip(scales).filter(|(_, scale)| **scale > 0.0) {
            for (sum, byte) in self.sums.iter_mut().zip(row) {
                *sum += f64::from(f32::from(*byte as i8) * scale);
            }
            self.count += 1;
        }
    }

    pub(super) fn finish(self) -> Vec<f32> {
        let count = f64::from(self.count.max(1));
        self.sums.into_iter().map(|sum| (sum / count) as f32).collect()
    }
}

pub(super) struct CodeWriter<'a> {
    form: CodeForm,
    mean: &'a [f32],
    rest: Vec<f32>,
    code: Vec<u8>,
}

impl<'a> CodeWriter<'a> {
    pub(super) fn new(form: CodeForm, mean: &'a [f32]) -> CodeWriter<'a> {
        CodeWriter { form, mean, rest: vec![0.0; mean.len()], code: vec![0; form.bytes()] }
    }

    /// Returns the code of an int8 row, and the code's scale. The scale is 0 only if the row is not a vector.
    pub(super) fn encode(&mut self, row: &[u8], scale: f32) -> (&[u8], f32) {
        self.code.fill(0);
        if scale <= 0.0 {
            return (&self.code, 0.0);
        }
        let mut square = 0.0;
        for ((rest, byte), mean) in self.rest.iter_mut().zip(row).zip(self.mean) {
            *rest = f32::from(*byte as i8) * scale - mean;
            square += *rest * *rest;
        }
        let step = STEPS[usize::from(self.form.bits > 2)] * (square / row.len() as f32).sqrt();
        let per_step = 1.0 / step.max(f32::MIN_POSITIVE);
        let highest = f32::from(self.form.highest());
        let middle = (highest + 1.0) / 2.0;
        let mut product = 0.0;
        for (plane, rest) in self.rest.chunks(self.code.len()).enumerate() {
            for (byte, rest) in self.code.iter_mut().zip(rest) {
                let number = (rest * per_step + middle).clamp(0.0, highest).floor();
                *byte |= (number as u8) << (self.form.bits as usize * plane);
                product += rest * (2.0 * number - highest);
            }
        }
        let scale = if product > 0.0 { square / product } else { 0.0 };
        (&self.code, scale.max(f32::MIN_POSITIVE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbatim_base::int8::quantise;

    /// Returns a pseudo-random unit vector for a seed.
    fn vector(seed: u32, dimensions: usize) -> Vec<f32> {
        let component = |at: usize| {
            let mixed =
                (seed ^ 0x9E37_79B9).wrapping_mul(2 * at as u32 + 1).wrapping_mul(0x85EB_CA6B);
            (mixed >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        let vector: Vec<f32> = (0..dimensions).map(component).collect();
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.into_iter().map(|x| x / length).collect()
    }

    #[test]
    fn products_are_nearly_those_of_the_vectors() {
        for (bits, dimensions, most) in [(2, 3, 0.2), (2, 64, 0.06), (2, 250, 0.03), (4, 250, 0.01)]
        {
            let form = CodeForm { bits, dimensions };
            let vectors: Vec<Vec<f32>> = (0..50).map(|seed| vector(seed, dimensions)).collect();
            let (mut rows, mut scales) = (Vec::new(), Vec::new());
            for vector in &vectors {
                let mut row = vec![0; dimensions];
                scales.push(quantise(vector, &mut row));
                rows.extend(row);
            }
            let mut mean = Mean::new(dimensions);
            mean.add(&rows, &scales);
            let mean = mean.finish();
            let mut writer = CodeWriter::new(form, &mean);
            let mut error = 0.0;
            for (at, row) in rows.chunks_exact(dimensions).enumerate() {
                let (code, scale) = writer.encode(row, scales[at]);
                let other = &vectors[(at + 1) % 50];
                let of_mean: f32 = other.iter().zip(&mean).map(|(a, b)| a * b).sum();
                let mut query = QueryVector::new(other);
                form.fill(&mut query);
                let mut product = [0];
                form.products(&query, code, &mut product);
                let cosine: f32 = vectors[at].iter().zip(other).map(|(a, b)| a * b).sum();
                let estimate = of_mean + product[0] as f32 * query.scale * scale;
                error += (cosine - estimate).abs() / 50.0;
            }
            assert!(error < most, "{bits} bits, {dimensions} dimensions: {error}");
            assert_eq!(writer.encode(&rows[..dimensions], 0.0).1, 0.0);
        }
    }
}
