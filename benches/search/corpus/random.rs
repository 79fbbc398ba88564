//! Random numbers that repeat: the same seed gives the same numbers on every machine.

use std::f64::consts::TAU;

/// A splitmix64 generator, which is good enough for texts and has little code.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number in `0..end`, which is not empty.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// Returns a number in `first..=last`.
    pub(crate) fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// Returns a number in `0.0..1.0`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// Returns a log-normal number, as lengths of texts and pauses between them are distributed.
    pub(crate) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let normal = radius * (TAU * self.unit()).cos();
        median * (sigma * normal).exp()
    }
}

/// Draws ranks from a Zipf–Mandelbrot law in constant time (Walker's alias method).
pub(crate) struct Zipf {
    keep: Vec<f64>,
    alias: Vec<u32>,
}

impl Zipf {
    /// Returns the law `1 / (rank + shift) ^ exponent` over `0..ranks`.
    pub(crate) fn new(ranks: usize, shift: f64, exponent: f64) -> Zipf {
        let weights: Vec<f64> =
            (0..ranks).map(|rank| (rank as f64 + shift).powf(-exponent)).collect();
        let mean = weights.iter().sum::<f64>() / ranks as f64;
        let mut keep: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut alias: Vec<u32> = (0..ranks as u32).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..ranks).partition(|&rank| keep[rank] < 1.0);
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            alias[poor] = rich as u32;
            keep[rich] -= 1.0 - keep[poor];
            if keep[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Zipf { keep, alias }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        let rank = random.below(self.keep.len());
        if random.unit() < self.keep[rank] { rank } else { self.alias[rank] as usize }
    }
}
