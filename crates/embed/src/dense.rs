//! Products of rows of numbers with int8 matrices, by the fastest instructions of the processor.
//!
//! Rows are rounded to int16 first. All kernels give the same results. Matrices are read in place, 16 columns
//! of 256 rows at a time, so there is nothing to load. With whole texts, `matrixmultiply` and `gemm` took twice
//! as long, and questions four times: they need float32 matrices, and rearrange them at each product.

#![allow(unsafe_code)]

use std::sync::LazyLock;

/// The largest rounded number: 1,280 products with int8 fit a sum of 32 bits.
const LARGEST: f32 = 13_000.0;

/// The most rows of a matrix, which are summed.
const MOST_ROWS: usize = 1_280;

pub(super) struct Dense {
    /// Row by row.
    codes: &'static [u8],
    scales: Vec<f32>,
}

#[derive(Default)]
pub(super) struct Rounded {
    numbers: Vec<i16>,
    /// Where each row starts in the numbers, and its scale.
    rows: Vec<(usize, f32)>,
}

impl Rounded {
    /// Appends a row of small whole numbers.
    pub(super) fn push_exact(&mut self, numbers: impl Iterator<Item = i16>, scale: f32) {
        self.rows.push((self.numbers.len(), scale));
        self.numbers.extend(numbers);
    }

    /// Appends zeros that belong to no row.
    pub(super) fn push_zeros(&mut self, count: usize) {
        self.numbers.resize(self.numbers.len() + count, 0);
    }

    /// Appends rows of numbers, rounded by their common scale. Each row starts `before` numbers earlier, in
    /// what is before it.
    pub(super) fn push_rows<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a [f32]> + Clone,
        before: usize,
    ) {
        let largest = rows.clone().flatten().fold(0.0, |most: f32, x| most.max(x.abs()));
        let scale = f32::max(largest, f32::MIN_POSITIVE) / LARGEST;
        for row in rows {
            self.rows.push((self.numbers.len() - before, scale));
            self.numbers.extend(row.iter().map(|x| round(x / scale)));
        }
    }
}

/// Returns the nearest whole number of a small number. Adding 1.5 · 2²³ leaves no bits for the fraction.
fn round(x: f32) -> i16 {
    const WHOLE: f32 = 12_582_912.0;
    (x + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits()) as i16
}

impl Dense {
    /// Takes a matrix row by row, with the scales of its columns.
    ///
    /// # Panics
    ///
    /// Panics if the matrix has more than 1,280 rows, an odd number of rows, or columns that do not fill tiles.
    pub(super) fn new(codes: &'static [u8], scales: Vec<f32>) -> Dense {
        let columns = scales.len();
        let rows = codes.len() / columns;
        assert_eq!(rows * columns, codes.len(), "a scale for each column");
        assert!(columns.is_multiple_of(TILE) && rows.is_multiple_of(2) && rows <= MOST_ROWS);
        Dense { codes, scales }
    }

    pub(super) fn product(&self, input: &Rounded) -> Vec<f32> {
        let columns = self.scales.len();
        let length = self.codes.len() / columns;
        let mut sums = vec![0; input.rows.len() * columns];
        let rows: Vec<&[i16]> =
            input.rows.iter().map(|(start, _)| &input.numbers[*start..][..length]).collect();
        BEST(&rows, self.codes, columns, &mut sums);
        let mut out = Vec::with_capacity(sums.len());
        for (sums, (_, scale)) in sums.chunks_exact(columns).zip(&input.rows) {
            let sums = sums.iter().zip(&self.scales);
            out.extend(sums.map(|(sum, column_scale)| *sum as f32 * scale * column_scale));
        }
        out
    }
}

/// Columns that a kernel computes at a time.
const TILE: usize = 16;

/// Rows of a matrix that a kernel unpacks at a time: 8 KB, which stay in the fastest cache.
const PANEL: usize = 256;

/// Adds to `sums` the products of rows with a matrix of int8, which has so many columns.
type Kernel = fn(rows: &[&[i16]], codes: &[u8], columns: usize, sums: &mut [i32]);

/// The fastest kernel of this processor.
static BEST: LazyLock<Kernel> = LazyLock::new(|| {
    #[cfg(target_arch = "x86_64")]
    if x86::has_avx2() {
        return x86::by_avx2;
    }
    by_scalar
});

/// Plain code. The compiler uses the vector instructions that every processor of the target has, such as
/// NEON on 64-bit ARM.
fn by_scalar(rows: &[&[i16]], codes: &[u8], columns: usize, sums: &mut [i32]) {
    let mut panel = [[0_i16; TILE]; PANEL];
    for column in (0..columns).step_by(TILE) {
        for (at, codes) in codes.chunks(PANEL * columns).enumerate() {
            for (numbers, codes) in panel.iter_mut().zip(codes.chunks_exact(columns)) {
                for (number, code) in numbers.iter_mut().zip(&codes[column..]) {
                    *number = i16::from(*code as i8);
                }
            }
            let panel = &panel[..codes.len() / columns];
            for (sums, row) in sums.chunks_exact_mut(columns).zip(rows) {
                let mut total = [0; TILE];
                for (a, numbers) in row[at * PANEL..].iter().zip(panel) {
                    for (total, b) in total.iter_mut().zip(numbers) {
                        *total += i32::from(*a) * i32::from(*b);
                    }
                }
                sums[column..].iter_mut().zip(total).for_each(|(sum, total)| *sum += total);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{PANEL, TILE};

    /// Rows that are multiplied at a time. Their sums fill 12 of the 16 registers.
    const ROWS: usize = 6;

    pub(super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2")
    }

    pub(super) fn by_avx2(rows: &[&[i16]], codes: &[u8], columns: usize, sums: &mut [i32]) {
        assert!(has_avx2());
        // SAFETY: the processor has AVX2, as was just checked.
        unsafe { avx2(rows, codes, columns, sums) }
    }

    #[target_feature(enable = "avx2")]
    fn avx2(rows: &[&[i16]], codes: &[u8], columns: usize, sums: &mut [i32]) {
        let mut panel = [[_mm256_setzero_si256(); 2]; PANEL / 2];
        for column in (0..columns).step_by(TILE) {
            for (at, codes) in codes.chunks(PANEL * columns).enumerate() {
                let pairs = unpack(codes, columns, column, &mut panel);
                let first = at * PANEL;
                let panel = &panel[..pairs];
                let mut sums = sums.chunks_mut(ROWS * columns);
                for rows in rows.chunks(ROWS) {
                    let sums = sums.next().expect("there are sums for each row");
                    let sums = &mut sums[column..];
                    match *rows {
                        [a, b, c, d, e, f] => tile([a, b, c, d, e, f], first, panel, sums, columns),
                        [a, b, c, d, e] => tile([a, b, c, d, e], first, panel, sums, columns),
                        [a, b, c, d] => tile([a, b, c, d], first, panel, sums, columns),
                        [a, b, c] => tile([a, b, c], first, panel, sums, columns),
                        [a, b] => tile([a, b], first, panel, sums, columns),
                        [a] => tile([a], first, panel, sums, columns),
                        _ => unreachable!("a chunk has one to six rows"),
                    }
                }
            }
        }
    }

    /// Unpacks 16 columns of a matrix. Writes the two numbers of each column in two rows side by side,
    /// and returns how many pairs of rows there are.
    #[target_feature(enable = "avx2")]
    fn unpack(
        codes: &[u8],
        columns: usize,
        column: usize,
        panel: &mut [[__m256i; 2]; PANEL / 2],
    ) -> usize {
        let mut pairs = 0;
        for (rows, pair) in codes.chunks_exact(2 * columns).zip(panel) {
            let both = [&rows[column..][..TILE], &rows[columns + column..][..TILE]];
            // SAFETY: both have 16 bytes, and these loads need no alignment.
            let [a, b] = both.map(|row| unsafe { _mm_loadu_si128(row.as_ptr().cast()) });
            pair[0] = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b));
            pair[1] = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b));
            pairs += 1;
        }
        pairs
    }

    /// Adds the products of some rows with a panel to the first 16 of each row's sums.
    #[target_feature(enable = "avx2")]
    fn tile<const ROWS: usize>(
        rows: [&[i16]; ROWS],
        first: usize,
        panel: &[[__m256i; 2]],
        sums: &mut [i32],
        columns: usize,
    ) {
        let mut pairs: [&[[i16; 2]]; ROWS] = [&[]; ROWS];
        for (pairs, row) in pairs.iter_mut().zip(rows) {
            *pairs = &row[first..].as_chunks::<2>().0[..panel.len()];
        }
        let mut total = [[_mm256_setzero_si256(); 2]; ROWS];
        for (at, [left, right]) in panel.iter().enumerate() {
            for (row, total) in pairs.iter().zip(&mut total) {
                // SAFETY: each row has as many pairs as the panel, as was just checked.
                let [a, b] = *unsafe { row.get_unchecked(at) };
                let pair = _mm256_set1_epi32(i32::from(a as u16) | i32::from(b) << 16);
                total[0] = _mm256_add_epi32(total[0], _mm256_madd_epi16(pair, *left));
                total[1] = _mm256_add_epi32(total[1], _mm256_madd_epi16(pair, *right));
            }
        }
        for (at, total) in total.into_iter().enumerate() {
            let sums = &mut sums[at * columns..][..TILE];
            for (half, total) in sums.as_chunks_mut::<8>().0.iter_mut().zip(total) {
                let half = half.as_mut_ptr().cast::<__m256i>();
                // SAFETY: it is an array of 32 bytes, and this load needs no alignment.
                let sum = _mm256_add_epi32(unsafe { _mm256_loadu_si256(half) }, total);
                // SAFETY: as for the load.
                unsafe { _mm256_storeu_si256(half, sum) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Kernel> {
        let mut all: Vec<Kernel> = vec![by_scalar, *BEST];
        #[cfg(target_arch = "x86_64")]
        all.extend(x86::has_avx2().then_some(x86::by_avx2 as Kernel));
        all
    }

    fn naive(rows: &[&[i16]], codes: &[u8], columns: usize) -> Vec<i32> {
        let sum = |row: &[i16], column: usize| {
            let numbers = codes[column..].iter().step_by(columns);
            row.iter().zip(numbers).map(|(a, b)| i32::from(*a) * i32::from(*b as i8)).sum()
        };
        rows.iter().flat_map(|row| (0..columns).map(|column| sum(row, column))).collect()
    }

    #[test]
    fn every_kernel_counts_alike() {
        let mut seed = 1_u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as i32
        };
        let numbers: Vec<i16> = (0..8_000).map(|_| (next() % 13_001 - 6_500) as i16).collect();
        let codes: Vec<u8> = (0..600 * 48).map(|_| next() as u8).collect();
        for (length, columns) in [(2, 16), (254, 32), (256, 16), (258, 48), (600, 48)] {
            for count in 0..=13 {
                // The rows overlap, and begin at any place.
                let rows: Vec<&[i16]> =
                    (0..count).map(|at| &numbers[at * 511..][..length]).collect();
                let codes = &codes[..length * columns];
                let expected = naive(&rows, codes, columns);
                for kernel in all() {
                    let mut sums = vec![0; expected.len()];
                    kernel(&rows, codes, columns, &mut sums);
                    assert_eq!(sums, expected, "{count} rows, {length} × {columns}");
                }
            }
        }
    }

    #[test]
    fn the_largest_sums_fit() {
        let row = [LARGEST as i16; MOST_ROWS];
        for code in [-128_i8, 127] {
            let codes = vec![code as u8; MOST_ROWS * TILE];
            for kernel in all() {
                let mut sums = [0; TILE];
                kernel(&[&row], &codes, TILE, &mut sums);
                assert_eq!(sums, [13_000 * MOST_ROWS as i32 * i32::from(code); TILE]);
            }
        }
    }

    #[test]
    fn products_have_the_scales_of_rows_and_columns() {
        let codes: &[u8] = const { &[3; 2 * TILE] };
        let matrix = Dense::new(codes, (0..TILE).map(|at| at as f32).collect());
        let mut rows = Rounded::default();
        rows.push_exact([1, -5].into_iter(), 0.5);
        rows.push_zeros(2);
        rows.push_rows([&[0.25, 0.125][..], &[-1.0, 0.0]].into_iter(), 1);
        let product = matrix.product(&rows);
        for (product, sum) in product.chunks_exact(TILE).zip([-2.0, 0.25, -0.875]) {
            for (at, x) in product.iter().enumerate() {
                let expected = sum * 3.0 * at as f32;
                assert!((x - expected).abs() < 0.01, "{at}: {x} {expected}");
            }
        }
        assert_eq!(product.len(), 3 * TILE);
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        for (x, expected) in
            [(0.0, 0), (0.6, 1), (-0.6, -1), (0.4, 0), (12_999.7, 13_000), (-13_000.0, -13_000)]
        {
            assert_eq!(round(x), expected, "{x}");
        }
    }
}
