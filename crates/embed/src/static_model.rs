//! A table of vectors by piece, and the vector of a text: the weighted mean of its pieces' vectors.
//!
//! The method and the file are those of model2vec (<https://github.com/MinishLab/model2vec>).

use super::{safetensors::Tensors, wordpiece::Id};

/// A table of `rows` × `DIMENSIONS` numbers of eight bits, with a weight for each row.
///
/// It is read in place: loading it costs nothing.
pub(super) struct VectorRows<const DIMENSIONS: usize> {
    rows: &'static [[u8; DIMENSIONS]],
    /// One float32 a row, the least significant byte first.
    weights: &'static [[u8; 4]],
}

impl<const DIMENSIONS: usize> VectorRows<DIMENSIONS> {
    /// Reads the arrays `embeddings` (`rows` × `DIMENSIONS`, int8) and `weights` (`rows`, float32) of a
    /// safetensors file.
    ///
    /// Fails if the file is of another format, or an array is missing or of another type or shape.
    pub(super) fn parse(file: &'static [u8], rows: usize) -> serde_json::Result<Self> {
        let tensors = Tensors::parse(file)?;
        Ok(VectorRows {
            rows: tensors.bytes("embeddings", "I8", &[rows, DIMENSIONS])?.as_chunks().0,
            weights: tensors.bytes("weights", "F32", &[rows])?.as_chunks().0,
        })
    }

    /// Returns the weighted mean of rows, made a unit vector; all zeros if all rows are zeros or none is
    /// given.
    ///
    /// Invariant: each number is the sum over the rows in their order, in float32, so that equal texts have
    /// had equal vectors from the first version on.
    pub(super) fn mean(&self, ids: &[Id]) -> Vec<f32> {
        /// Numbers that are summed at a time: as many as registers hold.
        const LANE: usize = 32;
        const { assert!(DIMENSIONS.is_multiple_of(LANE)) };
        /// Rows that are added before the sums go back to memory.
        const BLOCK: usize = 16;
        let mut mean = vec![0.0; DIMENSIONS];
        let mut rows = [(&[0; DIMENSIONS], 0.0); BLOCK];
        for ids in ids.chunks(BLOCK) {
            for (row, id) in rows.iter_mut().zip(ids) {
                let id = usize::from(*id);
                *row = (&self.rows[id], f32::from_le_bytes(self.weights[id]));
            }
            for (lane, sums) in mean.as_chunks_mut::<LANE>().0.iter_mut().enumerate() {
                let mut sum = *sums;
                for (row, weight) in &rows[..ids.len()] {
                    for (sum, byte) in sum.iter_mut().zip(&row[lane * LANE..][..LANE]) {
                        *sum += f32::from(*byte as i8) * weight;
                    }
                }
                *sums = sum;
            }
        }
        let count = ids.len().max(1) as f32;
        let mut squares = 0.0;
        for x in &mut mean {
            *x /= count;
            squares += *x * *x;
        }
        let length = f32::max(squares.sqrt(), 1e-12);
        mean.iter_mut().for_each(|x| *x /= length);
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file of two rows of 32 numbers, ±1 and ±2, with the weights 1 and 0.5.
    fn file(head: &str) -> &'static [u8] {
        let mut file = (head.len() as u64).to_le_bytes().to_vec();
        file.extend(head.bytes());
        file.extend([1.0_f32, 0.5].into_iter().flat_map(f32::to_le_bytes));
        for at in 0..64 {
            let size = 1 + at / 32;
            file.push(if at % 2 == 0 { size } else { size.wrapping_neg() });
        }
        file.leak()
    }

    const HEAD: &str = r#"{"weights":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"embeddings":{"dtype":"I8","shape":[2,32],"data_offsets":[8,72]}}"#;

    #[test]
    fn a_mean_has_the_length_one() {
        let table = VectorRows::<32>::parse(file(HEAD), 2).unwrap();
        let part = 1.0 / 32_f32.sqrt();
        for ids in [&[0][..], &[1], &[0, 1, 1]] {
            let mean = table.mean(ids);
            for (at, x) in mean.into_iter().enumerate() {
                let expected = if at % 2 == 0 { part } else { -part };
                assert!((x - expected).abs() < 1e-6, "{ids:?}: {x}");
            }
        }
        assert_eq!(table.mean(&[]), [0.0; 32]);
    }

    #[test]
    fn other_files_are_refused() {
        assert!(VectorRows::<32>::parse(file(HEAD), 3).is_err());
        assert!(VectorRows::<64>::parse(file(HEAD), 2).is_err());
        let changes = [
            ("F32", "F16"),
            ("[8,72]", "[8,73]"),
            ("[8,72]", "[8,71]"),
            ("[8,72]", "[9,8]"),
            ("{", ""),
        ];
        for (from, to) in changes {
            let head = HEAD.replacen(from, to, 1);
            assert!(VectorRows::<32>::parse(file(&head), 2).is_err(), "{from} {to}");
        }
        for length in [0, 7, 8, 100, file(HEAD).len() - 1] {
            assert!(VectorRows::<32>::parse(&file(HEAD)[..length], 2).is_err(), "{length}");
        }
    }
}
