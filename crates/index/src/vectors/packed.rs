//! Single packed vectors, for a store that has no segments: four bytes of scale, and four bits per dimension.

use super::codes::{CodeForm, CodeWriter};
use super::query::QueryVector;
use verbatim_base::int8::quantise;

const BITS: u32 = 4;

const SCALE: usize = size_of::<f32>();

fn form(dimensions: usize) -> CodeForm {
    CodeForm { bits: BITS, dimensions }
}

/// Returns a packed unit vector; empty if the vector is zero.
pub fn pack(vector: &[f32]) -> Vec<u8> {
    let mut row = vec![0; vector.len()];
    let scale = quantise(vector, &mut row);
    if scale <= 0.0 {
        return Vec::new();
    }
    let mean = vec![0.0; vector.len()];
    let mut writer = CodeWriter::new(form(vector.len()), &mean);
    let (code, scale) = writer.encode(&row, scale);
    [&scale.to_le_bytes(), code].concat()
}

/// The vector of a query, to compare with packed vectors.
pub struct PackedQuery {
    form: CodeForm,
    query: QueryVector,
}

impl PackedQuery {
    /// Prepares a vector for comparison with packed vectors of the same dimension.
    pub fn new(vector: &[f32]) -> PackedQuery {
        let form = form(vector.len());
        let mut query = QueryVector::new(vector);
        form.fill(&mut query);
        PackedQuery { form, query }
    }

    /// Returns an estimate of the cosine with a packed vector; `None` if the bytes are not a packed vector.
    pub fn cosine(&self, packed: &[u8]) -> Option<f32> {
        let (scale, code) = packed.split_first_chunk::<SCALE>()?;
        if code.len() != self.form.bytes() {
            return None;
        }
        let mut product = [0];
        self.form.products(&self.query, code, &mut product);
        Some(self.query.score(product[0], f32::from_le_bytes(*scale)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_vectors_have_nearly_the_same_cosines() {
        let unit = |seed: u32| {
            let mut state = seed;
            let mut vector: Vec<f32> = (0..256)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 8) as f32 / (1 << 23) as f32 - 1.0
                })
                .collect();
            let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|x| *x /= norm);
            vector
        };
        let (one, other) = (unit(1), unit(2));
        let cosine: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
        let query = PackedQuery::new(&one);
        assert!((query.cosine(&pack(&one)).unwrap() - 1.0).abs() < 0.02);
        assert!((query.cosine(&pack(&other)).unwrap() - cosine).abs() < 0.02);
        assert_eq!(pack(&[0.0; 256]), [0; 0]);
        assert_eq!((query.cosine(&[]), query.cosine(&pack(&[1.0; 8]))), (None, None));
    }
}
