//! Vectors in memory, rounded to int8 like the vectors on disk.

use super::{kernel, query::QueryVector};
use verbatim_base::int8::quantise;

/// Numbered vectors of one model.
#[derive(Clone, Debug, Default)]
pub struct VectorTable {
    dimensions: usize,
    rows: Vec<u8>,
    /// The scale of each vector; 0 for a text without a vector.
    scales: Vec<f32>,
}

impl VectorTable {
    /// Makes an empty table for vectors of this dimension.
    pub fn new(dimensions: usize) -> VectorTable {
        VectorTable { dimensions, ..VectorTable::default() }
    }

    /// Returns the dimension of the vectors; 0 for the default table.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Appends a vector, or an empty row if its dimension differs.
    pub fn push(&mut self, vector: &[f32]) {
        self.rows.resize(self.rows.len() + self.dimensions, 0);
        self.scales.push(0.0);
        self.set(self.scales.len() - 1, vector);
    }

    /// Replaces a vector, or makes its row empty if the dimension of the new vector differs.
    pub fn set(&mut self, at: usize, vector: &[f32]) {
        let row = &mut self.rows[at * self.dimensions..][..self.dimensions];
        let fits = vector.len() == self.dimensions;
        self.scales[at] = if fits { quantise(vector, row) } else { 0.0 };
    }

    /// Appends a row and a scale from [`VectorTable::row`], or an empty row if its length differs.
    pub fn push_row(&mut self, row: &[u8], scale: f32) {
        if row.len() == self.dimensions {
            self.rows.extend_from_slice(row);
            self.scales.push(scale);
        } else {
            self.push(&[]);
        }
    }

    /// Returns the int8 numbers of a vector and its scale. The scale is 0 if there is no vector.
    pub fn row(&self, at: usize) -> (&[u8], f32) {
        (&self.rows[at * self.dimensions..][..self.dimensions], self.scales[at])
    }

    /// Returns the cosine of each vector with the query. An empty row has a value below -1. Returns no
    /// cosines if the dimension of the query differs.
    pub fn scores(&self, query: &[f32]) -> Vec<f32> {
        if query.len() != self.dimensions {
            return Vec::new();
        }
        let query = QueryVector::new(query);
        let mut products = vec![0; self.scales.len()];
        kernel::dots(&query.numbers, &self.rows, &mut products);
        let scored = products.into_iter().zip(&self.scales);
        scored.map(|(product, scale)| query.score(product, *scale)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_like_are_alike() {
        let mut table = VectorTable::new(2);
        table.push(&[0.6, 0.8]);
        table.push(&[0.0, 0.0]);
        table.push(&[1.0]);
        let (row, scale) = table.row(0);
        let (row, scale) = (row.to_vec(), scale);
        table.push_row(&row, scale);
        let scores = table.scores(&[0.6, 0.8]);
        assert!((scores[0] - 1.0).abs() < 0.01 && scores[0] == scores[3], "{scores:?}");
        assert!(scores[1] < -1.0 && scores[2] < -1.0, "{scores:?}");
        assert_eq!(table.scores(&[1.0]), [0.0; 0]);
    }
}
