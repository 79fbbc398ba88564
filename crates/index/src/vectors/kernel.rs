//! Dot products of one int8 vector with many, by the fastest instructions of the processor.
//!
//! The rows are int8, or packed unsigned numbers of two or four bits. All kernels give the same results.
//!
//! Packed numbers are in planes: byte j of a row of n bytes holds the numbers j, n + j, 2n + j and 3n + j,
//! the first in its lowest bits. With four bits, bytes have two. So a shift and a mask unpack a plane.

#![allow(unsafe_code)]

use std::sync::LazyLock;

/// Computes the dot product of `query` with each row of `rows`; rows are as long as the query.
type Kernel = fn(query: &[i8], rows: &[u8], out: &mut [i32]);

/// The fastest kernels of this processor, for int8 and for packed numbers of two and of four bits.
static BEST: LazyLock<[Kernel; 3]> = LazyLock::new(|| {
    #[cfg(target_arch = "x86_64")]
    {
        if x86::has_vnni() {
            return [x86::by_vnni, x86::packed_by_vnni::<2>, x86::packed_by_vnni::<4>];
        }
        if x86::has_avx2() {
            return [x86::by_avx2, x86::packed_by_avx2::<2>, x86::packed_by_avx2::<4>];
        }
    }
    [by_scalar, packed_by_scalar::<2>, packed_by_scalar::<4>]
});

/// Writes to `out` the dot product of `query` with each row of `rows`.
///
/// `rows` holds `out.len()` rows of int8, each as long as the query.
pub(super) fn dots(query: &[i8], rows: &[u8], out: &mut [i32]) {
    assert_eq!(rows.len(), query.len() * out.len(), "one row for each product");
    if !query.is_empty() {
        BEST[0](query, rows, out);
    }
}

/// Writes to `out` the dot product of `query` with each row of `rows`, whose numbers have two or four bits.
/// The query is padded to all planes of a row.
pub(super) fn packed_dots(bits: u32, query: &[i8], rows: &[u8], out: &mut [i32]) {
    let planes = (u8::BITS / bits) as usize;
    assert_eq!(planes * rows.len(), query.len() * out.len(), "one row for each product");
    if !query.is_empty() {
        BEST[if bits == 2 { 1 } else { 2 }](query, rows, out);
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

fn packed_by_scalar<const BITS: u32>(query: &[i8], rows: &[u8], out: &mut [i32]) {
    let length = query.len() * BITS as usize / u8::BITS as usize;
    for (row, out) in rows.chunks_exact(length).zip(out) {
        *out = packed_dot::<BITS>(query, row, 0);
    }
}

/// Returns the dot product of a row's bytes from `start` on.
fn packed_dot<const BITS: u32>(query: &[i8], row: &[u8], start: usize) -> i32 {
    let mut sum = 0;
    for (shift, plane) in (0_u32..).step_by(BITS as usize).zip(query.chunks_exact(row.len())) {
        for (a, byte) in plane[start..].iter().zip(&row[start..]) {
            let number = i16::from(byte >> shift & ((1 << BITS) - 1));
            sum += i32::from(i16::from(*a) * number);
        }
    }
    sum
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{dot, packed_dot};

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
                // The sum of two products of int8 is at most 32,768, which fits madd's 32-bit sums.
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a[0], b[0]));
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a[1], b[1]));
            }
            let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0b01_00_11_10));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0b10_11_00_01));
            *out = _mm_cvtsi128_si32(sum) + dot(rest, row_rest);
        }
    }

    /// Uses an instruction that multiplies unsigned by signed bytes. So 128 is added to each byte of a row,
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

    pub(super) fn packed_by_avx2<const BITS: u32>(query: &[i8], rows: &[u8], out: &mut [i32]) {
        assert!(has_avx2());
        // SAFETY: the processor has AVX2, as was just checked.
        unsafe { packed_avx2::<BITS>(query, rows, out) }
    }

    pub(super) fn packed_by_vnni<const BITS: u32>(query: &[i8], rows: &[u8], out: &mut [i32]) {
        assert!(has_vnni());
        // SAFETY: the processor has AVX-512F and VNNI, as was just checked.
        unsafe { packed_vnni::<BITS>(query, rows, out) }
    }

    #[target_feature(enable = "avx2")]
    fn packed_avx2<const BITS: u32>(query: &[i8], rows: &[u8], out: &mut [i32]) {
        let length = query.len() * BITS as usize / u8::BITS as usize;
        let mask = _mm256_set1_epi8((1 << BITS) - 1);
        for (row, out) in rows.chunks_exact(length).zip(out) {
            let mut sum = _mm256_setzero_si256();
            for (at, bytes) in row.as_chunks::<32>().0.iter().enumerate() {
                // SAFETY: it is an array of 32 bytes, and this load needs no alignment.
                let mut packed = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
                // The 16-bit sums cannot overflow: they add at most eight products of at most 15 × 128.
                let mut short = _mm256_setzero_si256();
                for plane in query.chunks_exact(length) {
                    let plane = &plane.as_chunks::<32>().0[at];
                    // SAFETY: it is an array of 32 bytes, and this load needs no alignment.
                    let plane = unsafe { _mm256_loadu_si256(plane.as_ptr().cast()) };
                    let numbers = _mm256_and_si256(packed, mask);
                    short = _mm256_add_epi16(short, _mm256_maddubs_epi16(numbers, plane));
                    packed = _mm256_srl_epi16(packed, _mm_cvtsi32_si128(BITS as i32));
                }
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(short, _mm256_set1_epi16(1)));
            }
            let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0b01_00_11_10));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0b10_11_00_01));
            *out = _mm_cvtsi128_si32(sum) + packed_dot::<BITS>(query, row, length - length % 32);
        }
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    fn packed_vnni<const BITS: u32>(query: &[i8], rows: &[u8], out: &mut [i32]) {
        let length = query.len() * BITS as usize / u8::BITS as usize;
        let mask = _mm512_set1_epi32(i32::from_ne_bytes([(1 << BITS) - 1; 4]));
        for (row, out) in rows.chunks_exact(length).zip(out) {
            let mut sum = _mm512_setzero_si512();
            for (at, bytes) in row.as_chunks::<64>().0.iter().enumerate() {
                // SAFETY: it is an array of 64 bytes, and this load needs no alignment.
                let mut packed = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
                for plane in query.chunks_exact(length) {
                    let plane = &plane.as_chunks::<64>().0[at];
                    // SAFETY: it is an array of 64 bytes, and this load needs no alignment.
                    let plane = unsafe { _mm512_loadu_si512(plane.as_ptr().cast()) };
                    sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(packed, mask), plane);
                    packed = _mm512_srli_epi32::<BITS>(packed);
                }
            }
            *out =
                _mm512_reduce_add_epi32(sum) + packed_dot::<BITS>(query, row, length - length % 64);
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

    fn all_packed<const BITS: u32>() -> Vec<Kernel> {
        let mut all: Vec<Kernel> = vec![packed_by_scalar::<BITS>, |query, rows, out| {
            packed_dots(BITS, query, rows, out);
        }];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(x86::has_avx2().then_some(x86::packed_by_avx2::<BITS> as Kernel));
            all.extend(x86::has_vnni().then_some(x86::packed_by_vnni::<BITS> as Kernel));
        }
        all
    }

    fn check_packed<const BITS: u32>(query: &[i8], rows: &[u8]) {
        let planes = (u8::BITS / BITS) as usize;
        let query = &query[..query.len() / planes * planes];
        let length = query.len() / planes;
        if length == 0 {
            return;
        }
        let rows = &rows[..rows.len() / length * length];
        let numbers = |row: &[u8], at: usize| -> Vec<u8> {
            let shift = BITS as usize * at;
            row.iter().map(|byte| byte >> shift & ((1 << BITS) - 1)).collect()
        };
        let unpack = |row: &[u8]| (0..planes).flat_map(|at| numbers(row, at)).collect::<Vec<u8>>();
        let unpacked: Vec<u8> = rows.chunks_exact(length).flat_map(unpack).collect();
        let expected = naive(query, &unpacked);
        for kernel in all_packed::<BITS>() {
            let mut out = vec![7; expected.len()];
            kernel(query, rows, &mut out);
            assert_eq!(out, expected, "{BITS} bits");
        }
    }

    #[test]
    fn the_largest_sums_of_packed_rows_fit() {
        for (a, length) in [(-128_i8, 256), (127, 256), (-128, 4_096), (127, 28)] {
            check_packed::<2>(&vec![a; length], &vec![0xFF; length]);
            check_packed::<4>(&vec![a; length], &vec![0xFF; length]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]
        #[test]
        fn every_packed_kernel_counts_alike(
            query in prop::collection::vec(any::<i8>(), 0..600),
            rows in prop::collection::vec(any::<u8>(), 0..900),
        ) {
            check_packed::<2>(&query, &rows);
            check_packed::<4>(&query, &rows);
        }

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
