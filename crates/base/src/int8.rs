//! Vectors rounded to int8, as the index and the cache of embeddings store them.

/// Rounds a vector to int8 and writes the bytes to `row`. The largest component becomes 127 or -127.
///
/// Returns the scale, which turns int8 values back into components. The scale of a zero vector is 0.
pub fn quantise(vector: &[f32], row: &mut [u8]) -> f32 {
    let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    let factor = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    for (byte, x) in row.iter_mut().zip(vector) {
        *byte = (x * factor).round() as i8 as u8;
    }
    largest / 127.0
}
