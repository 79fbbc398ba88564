//! Dot products of one int8 vector with many, by the fastest instructions of the processor.
//!
//! Every kernel gives the same integers.

#![allow(unsafe_code)]

use std::sync::LazyLock;

/// Computes the dot product of `query` with each row of `rows`; rows are as long as the query.
type Kernel = fn(query: &[i8], rows: &[u8], out: &mut [i32]);

/// The fastest kernel of this processor.
static BEST: LazyLock<Kernel> = LazyLock::new(|| {
    #[cfg(target_arch = "x86_64")]
    {
        if x86::has_vnni() {
            return x86::by_vnni;
        }
        if x86::has_avx2() {
            return x86::by_avx2;
        }
    }
    by_scalar
});

/// Writes to `out` the dot product of `query` with each row of `rows`.
///
/// `rows` holds `out.len()` rows of int8, each as long as the query.
pub(super) fn dots(query: &[i8], rows: &[u8], out: &mut [i32]) {
    assert_eq!(rows.len(), query.len() * out.len(), "one row for each product");
    if !query.is_empty() {
        (*BEST)(query, rows, out);
    }
}

/// Plain code. The compiler uses the vector instructions that every processor of the target has, such
/// as NEON on 64-bit ARM.
fn by_scalar(query: &[i8], rows: &[u8], out: &mut [i32]) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        *out = dot(query, row);
    }
}

fn dot(a: &[i8], b: &[u8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b as i8))).sum()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::dot;

    pub(super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2")
    }

    pub(super) fn has_vnni() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")
    }

    pub(super) fn by_avx2(query: &[i8], rows: &[u8], out: &mut [i32]) {
        assert!(has_avx2());
        // SAFETY: the processor has AVX2, as was just checked.
        unsafe { avx2(query, rows, out) }
    }

    pub(super) fn by_vnni(query: &[i8], rows: &[u8], out: &mut [i32]) {
        assert!(has_vnni());
        // SAFETY: the processor has AVX-512F and VNNI, as was just checked.
        unsafe { vnni(query, rows, out) }
    }

    #[target_feature(enable = "avx2")]
    fn avx2(query: &[i8], rows: &[u8], out: &mut [i32]) {
        let (wide, rest) = query.as_chunks::<32>();
        for (row, out) in rows.chunks_exact(query.len()).zip(out) {
            let (row_wide, row_rest) = row.as_chunks::<32>();
            let mut sum = _mm256_setzero_si256();
            for (a, b) in wide.iter().zip(row_wide) {
                // SAFETY: both are arrays of 32 bytes; loads of 16 at 0 and at 16 stay inside, and
                // these loads need no alignment.
                let [a, b] =
                    [a.as_ptr().cast::<__m128i>(), b.as_ptr().cast()].map(|start| unsafe {
                        [start, start.add(1)]
                            .map(|half| _mm256_cvtepi8_epi16(_mm_loadu_si128(half)))
                    });
                // Two products of int8 add up to 32,768 at most: madd's 32-bit sums hold them.
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a[0], b[0]));
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a[1], b[1]));
            }
            let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0b01_00_11_10));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0b10_11_00_01));
            *out = _mm_cvtsi128_si32(sum) + dot(rest, row_rest);
        }
    }

    /// The instruction multiplies unsigned by signed bytes. So 128 is added to the bytes of the rows,
    /// and 128 times the query's sum is subtracted at the end.
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn vnni(query: &[i8], rows: &[u8], out: &mut [i32]) {
        let (wide, rest) = query.as_chunks::<64>();
        let sum_of_wide: i32 = wide.as_flattened().iter().map(|x| i32::from(*x)).sum();
        let flip = _mm512_set1_epi32(0x8080_8080_u32 as i32);
        for (row, out) in rows.chunks_exact(query.len()).zip(out) {
            let (row_wide, row_rest) = row.as_chunks::<64>();
            let mut sum = _mm512_setzero_si512();
            for (a, b) in wide.iter().zip(row_wide) {
                // SAFETY: both are arrays of 64 bytes, and these loads need no alignment.
                let [a, b] = [a.as_ptr().cast::<__m512i>(), b.as_ptr().cast()]
                    .map(|start| unsafe { _mm512_loadu_si512(start) });
                sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(b, flip), a);
            }
            *out = _mm512_reduce_add_epi32(sum) - 128 * sum_of_wide + dot(rest, row_rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all() -> Vec<Kernel> {
        let mut all: Vec<Kernel> = vec![by_scalar, dots];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(x86::has_avx2().then_some(x86::by_avx2 as Kernel));
            all.extend(x86::has_vnni().then_some(x86::by_vnni as Kernel));
        }
        all
    }

    fn naive(query: &[i8], rows: &[u8]) -> Vec<i32> {
        let product = |row: &[u8]| {
            let products = query.iter().zip(row).map(|(a, b)| i64::from(*a) * i64::from(*b as i8));
            products.sum::<i64>() as i32
        };
        rows.chunks_exact(query.len()).map(product).collect()
    }

    #[test]
    fn the_largest_sums_fit() {
        for (a, b) in [(-128_i8, -128_i8), (-128, 127), (127, 127), (127, -128), (0, 1)] {
            for length in [1, 31, 64, 256, 4096] {
                let (query, rows) = (vec![a; length], vec![b as u8; 3 * length]);
                for kernel in all() {
                    let mut out = [1; 3];
                    kernel(&query, &rows, &mut out);
                    assert_eq!(out.to_vec(), naive(&query, &rows), "{a} {b} {length}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]
        #[test]
        fn every_kernel_counts_alike(
            (query, rows) in (1..200_usize, 0..9_usize).prop_flat_map(|(length, rows)| (
                prop::collection::vec(any::<i8>(), length),
                prop::collection::vec(any::<u8>(), length * rows),
            ))
        ) {
            let expected = naive(&query, &rows);
            for kernel in all() {
                let mut out = vec![7; expected.len()];
                kernel(&query, &rows, &mut out);
                prop_assert_eq!(&out, &expected);
            }
        }
    }
}
