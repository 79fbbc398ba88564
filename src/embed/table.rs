//! Vectors in memory, rounded as those on disk are.

use super::{
    scan,
    vectors::{Query, quantise},
};

/// The vectors of some things, by number; all of one model.
#[derive(Clone, Debug, Default)]
pub struct Table {
    dimensions: usize,
    rows: Vec<u8>,
    /// 0 where there is no vector.
    scales: Vec<f32>,
}

impl Table {
    /// Returns an empty table of vectors of so many numbers.
    pub fn new(dimensions: usize) -> Table {
        Table { dimensions, ..Table::default() }
    }

    /// How many numbers a vector has.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Adds a vector; none where it has another number of numbers.
    pub fn push(&mut self, vector: &[f32]) {
        self.rows.resize(self.rows.len() + self.dimensions, 0);
        self.scales.push(0.0);
        self.set(self.scales.len() - 1, vector);
    }

    /// Puts a vector in the place of another; none where it has another number of numbers.
    pub fn set(&mut self, at: usize, vector: &[f32]) {
        let row = &mut self.rows[at * self.dimensions..][..self.dimensions];
        let fits = vector.len() == self.dimensions;
        self.scales[at] = if fits { quantise(vector, row) } else { 0.0 };
    }

    /// Adds a row and a scale as [`Table::row`] returned them; none where it has another length.
    pub fn push_row(&mut self, row: &[u8], scale: f32) {
        if row.len() == self.dimensions {
            self.rows.extend_from_slice(row);
            self.scales.push(scale);
        } else {
            self.push(&[]);
        }
    }

    /// The rounded numbers of a vector, and what each is to be multiplied by: 0 where there is none.
    pub fn row(&self, at: usize) -> (&[u8], f32) {
        (&self.rows[at * self.dimensions..][..self.dimensions], self.scales[at])
    }

    /// Returns how like a question each is: the cosine, but for what int8 rounds off; less than -1
    /// where there is no vector. Nothing for a question of another number of numbers.
    pub fn scores(&self, question: &[f32]) -> Vec<f32> {
        if question.len() != self.dimensions {
            return Vec::new();
        }
        let question = Query::new(question);
        let mut products = vec![0; self.scales.len()];
        scan::dots(question.numbers(), &self.rows, &mut products);
        let scored = products.into_iter().zip(&self.scales);
        scored.map(|(product, scale)| question.score(product, *scale)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_like_are_alike() {
        let mut table = Table::new(2);
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
