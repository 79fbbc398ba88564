//! Runs the same queries on all sides by turns, so that other load of the machine slows all alike.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use verbatim_base::model::{Hit, Request};

use crate::classes::{Class, Literal, Mode};
use crate::measure::{cpu_micros, median, percentile};

/// The number of turns of each side with a literal.
const TURNS: usize = 3;

/// The most runs of a turn. The first run is slower, because other sides have filled the caches.
const RUNS: usize = 5;

/// The microseconds after which a turn ends.
const TURN: f64 = 2_000.0;

/// The microseconds of a side for one literal, after which the side gets no further turn with it.
const LITERAL_BUDGET: f64 = 200_000.0;

/// The fewest literals of a class, however long their searches take.
const FEWEST: usize = 3;

/// A side that answers queries with rows.
pub(crate) trait Racer {
    fn ask(&self, request: &Request) -> Result<Vec<Hit<'static>>>;

    /// Returns whether it can answer at all.
    fn can(&self, _: &Request) -> bool {
        true
    }
}

/// The results of one side in one class, in microseconds of CPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// The number of literals that the side ran.
    pub(crate) literals: usize,
    /// The median of the literals' medians.
    pub(crate) median: f64,
    /// The 95th percentile of the literals' medians.
    pub(crate) percentile_95: f64,
    /// The largest of the literals' medians, and its literal.
    pub(crate) worst: f64,
    pub(crate) worst_literal: String,
}

/// The results of all sides in one class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Heat {
    pub(crate) class: String,
    pub(crate) literals: usize,
    /// In the order of the sides; `None` where there was no literal.
    pub(crate) figures: Vec<Option<Figures>>,
    /// How many answers of each side were compared with the first side's.
    pub(crate) compared: Vec<usize>,
    /// Literals for which a side gave another answer than the first side.
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

/// The state of one side in a class.
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
