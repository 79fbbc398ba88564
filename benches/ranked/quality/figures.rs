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
pub(crate) struct Figures {
    pub(crate) recall_at_5: f64,
    pub(crate) recall_at_10: f64,
    pub(crate) recall_at_10_interval: [f64; 2],
    pub(crate) mrr_at_10: f64,
    pub(crate) mrr_at_10_interval: [f64; 2],
    pub(crate) ndcg_at_10: f64,
    pub(crate) ms_per_query: f64,
}

impl Figures {
    /// Returns the figures of at least one question.
    pub(crate) fn mean_of(questions: &[QuestionFigures], ms_per_query: f64) -> Figures {
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
pub(crate) struct QuestionFigures {
    recall_at_5: f64,
    recall_at_10: f64,
    mrr_at_10: f64,
    ndcg_at_10: f64,
}

impl QuestionFigures {
    /// Returns the figures of a ranking of messages, best first. `relevant` is not empty.
    pub(crate) fn of_ranking(found: &[&str], relevant: &HashSet<String>) -> QuestionFigures {
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
