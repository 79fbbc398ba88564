//! A search for slow queries: thousands of patterns of every shape and mode, changed versions of the slowest
//! patterns, and a report of the slowest of all.

use std::{hint, time::Instant};

use anyhow::Result;
use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::{
    classes::{self, Literal, Mode},
    corpus::random::Random,
    haystack::Source,
    measure::{cpu_micros, median, percentile},
    race::{Racer, describe},
};

/// How many of the slowest patterns run again, and how often: the machine may have been slow by chance.
const SUSPECTS: usize = 30;
const RETRIALS: usize = 5;

/// The share of all patterns that are changed versions of slow ones, as a divisor. They are made in
/// generations, each from the slowest patterns so far.
const CHANGED: usize = 3;
const GENERATIONS: usize = 5;
const PARENTS: usize = 40;

/// How many of the slowest are reported.
const REPORTED: usize = 10;

/// The results of the hunt, in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hunt {
    pub(crate) patterns: usize,
    pub(crate) median: f64,
    pub(crate) percentile_99: f64,
    /// The slowest patterns, the slowest first.
    pub(crate) slowest: Vec<Suspect>,
    /// Patterns among the slowest for which LIKE gives another answer.
    pub(crate) differing: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Suspect {
    pub(crate) pattern: String,
    /// Microseconds of CPU of all threads.
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
}

/// Puts `count` random patterns to `ours`, and compares its answers to the slowest with those of `like`.
pub(crate) fn hunt(
    source: &Source,
    count: usize,
    ours: &dyn Racer,
    like: &dyn Racer,
) -> Result<Hunt> {
    let mut timed: Vec<(f64, Literal)> = Vec::with_capacity(count);
    let mut random = Random::new(13);
    let time = |timed: &mut Vec<(f64, Literal)>, literals: Vec<Literal>| -> Result<()> {
        for literal in literals {
            let request = literal.request();
            let (hits, micros) = cpu_micros(|| ours.ask(&request));
            // A changed expression may be invalid.
            if hits.is_ok() || literal.mode != Mode::Regex {
                hits?;
                timed.push((micros, literal));
            }
        }
        timed.sort_by(|one, other| other.0.total_cmp(&one.0));
        Ok(())
    };
    time(&mut timed, classes::patterns(source, count - count / CHANGED))?;
    for _ in 0..GENERATIONS {
        let parents: Vec<&Literal> = timed.iter().take(PARENTS).map(|(_, one)| one).collect();
        let children = (0..count / CHANGED / GENERATIONS)
            .filter_map(|at| classes::changed(parents[at % parents.len()], &mut random));
        let children: Vec<Literal> = children.collect();
        time(&mut timed, children)?;
    }
    let mut slowest = Vec::new();
    let mut differing = Vec::new();
    for (at, (_, literal)) in timed.iter().take(SUSPECTS).enumerate() {
        let request = literal.request();
        let mut trials = Vec::new();
        for _ in 0..RETRIALS {
            let start = Instant::now();
            let (hits, cpu) = cpu_micros(|| ours.ask(&request));
            trials.push((cpu, start.elapsed().as_secs_f64() * 1e6));
            hits?;
        }
        let is_like = literal.mode == Mode::Like;
        if at < REPORTED && is_like && ours.ask(&request)? != like.ask(&request)? {
            differing.push(describe(literal));
        }
        slowest.push(Suspect {
            pattern: describe(literal),
            cpu: median(trials.iter().map(|trial| trial.0).collect()),
            wall: median(trials.iter().map(|trial| trial.1).collect()),
        });
    }
    slowest.sort_by(|one, other| other.cpu.total_cmp(&one.cpu));
    slowest.truncate(REPORTED);
    let times: Vec<f64> = timed.into_iter().map(|(micros, _)| micros).collect();
    Ok(Hunt {
        patterns: times.len(),
        percentile_99: percentile(99, times.clone()),
        median: median(times),
        slowest,
        differing,
    })
}

/// Returns the microseconds of a search in memory for a text that no message has.
pub(crate) fn bare_scan(source: &Source) -> f64 {
    let finder = memmem::Finder::new("the quick absent fox");
    let scan = || cpu_micros(|| hint::black_box(finder.find(source.messages.lower())));
    median((0..RETRIALS).map(|_| scan().1).collect())
}
