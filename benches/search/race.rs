//! Puts the same queries to all, by turns, so that what else the machine does slows them alike.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use verbatim_search::model::{Hit, Request};

use crate::{
    classes::{Class, Literal, Mode},
    measure::{cpu_micros, median, percentile},
};

/// How often each side has its turn with a literal.
const TURNS: usize = 3;

/// The most runs of a turn; the first of them pays for what the others' turns left in the caches.
const RUNS: usize = 5;

/// A turn ends that has taken this long, in microseconds.
const TURN: f64 = 2_000.0;

/// A literal is not put to a side again that has spent this much on it, in microseconds.
const LITERAL_BUDGET: f64 = 200_000.0;

/// The fewest literals of a class, however long they take.
const FEWEST: usize = 3;

/// Whoever answers queries with rows.
pub(crate) trait Racer {
    fn ask(&self, request: &Request) -> Result<Vec<Hit<'static>>>;

    /// Returns whether it can answer at all.
    fn can(&self, _: &Request) -> bool {
        true
    }
}

/// How one side did on one class, in microseconds of CPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// How many literals were put to it.
    pub(crate) literals: usize,
    /// The median over the literals of each one's median.
    pub(crate) median: f64,
    /// The 95th percentile of the literals' medians.
    pub(crate) percentile_95: f64,
    /// The largest of the literals' medians, and its literal.
    pub(crate) worst: f64,
    pub(crate) worst_literal: String,
}

/// How all did on one class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Heat {
    pub(crate) class: String,
    pub(crate) literals: usize,
    /// In the order of the sides; `None` where there was no literal.
    pub(crate) figures: Vec<Option<Figures>>,
    /// How many answers of each side were compared with the first side's.
    pub(crate) compared: Vec<usize>,
    /// Literals that a side answered otherwise than the first.
    pub(crate) differing: Vec<Vec<String>>,
}

/// Runs the literals of `class` on all sides; each spends about `budget` seconds on it.
pub(crate) fn heat(class: &Class, sides: &[Box<dyn Racer>], budget: f64) -> Result<Heat> {
    let mut lanes: Vec<Lane> = sides.iter().map(|_| Lane::default()).collect();
    for literal in &class.literals {
        let request = literal.request();
        let mut answers: Vec<Option<Vec<Hit<'static>>>> = sides.iter().map(|_| None).collect();
        let mut runs: Vec<Vec<f64>> = sides.iter().map(|_| Vec::new()).collect();
        for _ in 0..TURNS {
            for (at, side) in sides.iter().enumerate() {
                let spent = runs[at].iter().sum::<f64>();
                let is_spent = runs[at].is_empty() && lanes[at].is_spent(budget);
                if spent > LITERAL_BUDGET || is_spent || !side.can(&request) {
                    continue;
                }
                let mut turn = 0.0;
                for _ in 0..RUNS {
                    let (answer, micros) = cpu_micros(|| side.ask(&request));
                    runs[at].push(micros);
                    answers[at] = Some(answer?);
                    turn += micros;
                    if turn > TURN {
                        break;
                    }
                }
            }
        }
        let first = answers[0].take();
        for ((lane, runs), answer) in lanes.iter_mut().zip(runs).zip(answers) {
            if let (Some(first), Some(answer)) = (&first, answer) {
                lane.compared += 1;
                if *first != answer {
                    lane.differing.push(describe(literal));
                }
            }
            lane.finish(literal, runs);
        }
    }
    Ok(Heat {
        class: class.name.to_owned(),
        literals: class.literals.len(),
        compared: lanes.iter().map(|lane| lane.compared).collect(),
        differing: lanes.iter().map(|lane| lane.differing.clone()).collect(),
        figures: lanes.into_iter().map(Lane::figures).collect(),
    })
}

/// What one side has done in a class so far.
#[derive(Default)]
struct Lane {
    medians: Vec<(f64, String)>,
    /// Microseconds of all runs.
    spent: f64,
    compared: usize,
    differing: Vec<String>,
}

impl Lane {
    fn is_spent(&self, budget: f64) -> bool {
        self.medians.len() >= FEWEST && self.spent > budget * 1e6
    }

    fn finish(&mut self, literal: &Literal, runs: Vec<f64>) {
        if !runs.is_empty() {
            self.spent += runs.iter().sum::<f64>();
            self.medians.push((median(runs), describe(literal)));
        }
    }

    fn figures(self) -> Option<Figures> {
        let (worst, worst_literal) =
            self.medians.iter().max_by(|one, other| one.0.total_cmp(&other.0))?.clone();
        let medians: Vec<f64> = self.medians.into_iter().map(|(median, _)| median).collect();
        Some(Figures {
            literals: medians.len(),
            percentile_95: percentile(95, medians.clone()),
            median: median(medians),
            worst,
            worst_literal,
        })
    }
}

/// Returns the literal as a reader of the report would type it.
pub(crate) fn describe(literal: &Literal) -> String {
    let mut text = literal.text.replace(['\n', '\r', '\t'], " ");
    if literal.mode != Mode::Like {
        text += &format!(" ({:?})", literal.mode).to_lowercase();
    }
    if let Some(role) = &literal.role {
        text += &format!(" (role {role})");
    }
    if let Some(until) = &literal.until {
        text += &format!(" (until {until})");
    }
    text.trim_start().to_owned()
}
