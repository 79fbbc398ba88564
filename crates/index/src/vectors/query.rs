//! The vector of a query.

use verbatim_base::int8::quantise;

pub(super) struct QueryVector {
    pub(super) numbers: Vec<i8>,
    pub(super) scale: f32,
    pub(super) sum: i32,
    /// The product of the query with the mean, if the vectors are stored as differences from the mean.
    pub(super) of_mean: f32,
}

impl QueryVector {
    pub(super) fn new(vector: &[f32]) -> QueryVector {
        let mut bytes = vec![0; vector.len()];
        let scale = quantise(vector, &mut bytes);
        let numbers: Vec<i8> = bytes.into_iter().map(|byte| byte as i8).collect();
        let sum = numbers.iter().map(|number| i32::from(*number)).sum();
        QueryVector { numbers, scale, sum, of_mean: 0.0 }
    }

    pub(super) fn score(&self, product: i32, scale: f32) -> f32 {
        // A row without a vector is below every threshold.
        if scale == 0.0 {
            return f32::NEG_INFINITY;
        }
        self.of_mean + product as f32 * (scale * self.scale)
    }
}
