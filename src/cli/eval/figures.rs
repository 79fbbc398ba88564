//! The figures of a ranking, and how far they may be off by the choice of the questions.

use std::collections::HashSet;

use serde::Serialize;

const RESAMPLES: usize = 1_000;

/// The share of resamples whose means are in an interval.
const CONFIDENCE: f64 = 0.95;

/// The figures of a mode: means over all questions. An interval is the 95 % percentile interval of the
/// bootstrap (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993): the ends between which the
/// mean is for most sets of as many questions that are drawn from these, with repetition.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) recall_at_5: f64,
    pub(super) recall_at_10: f64,
    pub(super) recall_at_10_interval: [f64; 2],
    pub(super) mrr_at_10: f64,
    pub(super) mrr_at_10_interval: [f64; 2],
    pub(super) ndcg_at_10: f64,
    pub(super) ms_per_query: f64,
}

impl Figures {
    /// Returns the figures of at least one question.
    pub(super) fn mean_of(questions: &[QuestionFigures], ms_per_query: f64) -> Figures {
        let each = |figure: fn(&QuestionFigures) -> f64| -> Vec<f64> {
            questions.iter().map(figure).collect()
        };
        let recall_at_10 = each(|question| question.recall_at_10);
        let mrr_at_10 = each(|question| question.mrr_at_10);
        Figures {
            recall_at_5: mean(&each(|question| question.recall_at_5)),
            recall_at_10: mean(&recall_at_10),
            recall_at_10_interval: interval(&recall_at_10),
            mrr_at_10: mean(&mrr_at_10),
            mrr_at_10_interval: interval(&mrr_at_10),
            ndcg_at_10: mean(&each(|question| question.ndcg_at_10)),
            ms_per_query,
        }
    }
}

/// The figures of one question, each from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuestionFigures {
    recall_at_5: f64,
    recall_at_10: f64,
    mrr_at_10: f64,
    ndcg_at_10: f64,
}

impl QuestionFigures {
    /// Returns the figures of a ranking of messages, best first. `relevant` is not empty.
    pub(super) fn of_ranking(found: &[&str], relevant: &HashSet<String>) -> QuestionFigures {
        let is_relevant: Vec<bool> = found.iter().map(|id| relevant.contains(*id)).collect();
        let count = relevant.len() as f64;
        let hits = |most: usize| is_relevant.iter().take(most).filter(|hit| **hit).count() as f64;
        let first = is_relevant.iter().take(10).position(|hit| *hit);
        let gain = |place: usize| 1.0 / ((place + 2) as f64).log2();
        let ideal: f64 = (0..relevant.len().min(10)).map(gain).sum();
        let places = (0..is_relevant.len().min(10)).filter(|place| is_relevant[*place]);
        QuestionFigures {
            recall_at_5: hits(5) / count,
            recall_at_10: hits(10) / count,
            mrr_at_10: first.map_or(0.0, |place| 1.0 / (place + 1) as f64),
            // A sum of no numbers would be -0.
            ndcg_at_10: places.map(gain).fold(0.0, |sum, gain| sum + gain) / ideal,
        }
    }
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Returns the interval of the mean of some numbers. It is the same each time.
fn interval(numbers: &[f64]) -> [f64; 2] {
    let mut random = SplitMix(0);
    let mut draw = |_| numbers[random.below(numbers.len())];
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| (0..numbers.len()).map(&mut draw).sum::<f64>() / numbers.len() as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    let outside = (RESAMPLES as f64 * (1.0 - CONFIDENCE) / 2.0).round() as usize;
    [means[outside], means[RESAMPLES - 1 - outside]]
}

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
struct SplitMix(u64);

impl SplitMix {
    /// Returns a number in `0..end`, which is not empty.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((u128::from(bits) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_definitions() {
        let relevant: HashSet<String> = ["a", "b"].map(str::to_owned).into();
        let found = QuestionFigures::of_ranking(&["x", "a", "y", "z", "w", "b"], &relevant);
        let figures = Figures::mean_of(&[found], 0.0);
        assert!((figures.recall_at_5 - 0.5).abs() < 1e-9);
        assert!((figures.recall_at_10 - 1.0).abs() < 1e-9);
        assert!((figures.mrr_at_10 - 0.5).abs() < 1e-9);
        let ideal = 1.0 + 1.0 / 3f64.log2();
        let expected = (1.0 / 3f64.log2() + 1.0 / 7f64.log2()) / ideal;
        assert!((figures.ndcg_at_10 - expected).abs() < 1e-9);
        let missed = QuestionFigures::of_ranking(&["x"], &relevant);
        assert_eq!(format!("{:.3}", Figures::mean_of(&[missed], 0.0).ndcg_at_10), "0.000");
        let figures = Figures::mean_of(&[found, missed], 0.0);
        assert!((figures.recall_at_10 - 0.5).abs() < 1e-9);
    }

    /// A mean of 400 numbers of which half are 1 has a standard error of 0.025.
    #[test]
    fn intervals_are_as_wide_as_the_standard_error_says() {
        let numbers: Vec<f64> = (0..400).map(|at| f64::from(at % 2)).collect();
        let [low, high] = interval(&numbers);
        let half = 1.96 * 0.025;
        assert!((low - (0.5 - half)).abs() < 0.007 && (high - (0.5 + half)).abs() < 0.007);
        assert_eq!(interval(&numbers), [low, high]);
        assert_eq!(interval(&[0.25]), [0.25, 0.25]);
    }
}
