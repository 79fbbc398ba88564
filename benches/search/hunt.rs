//! A search for slow queries: thousands of patterns of every shape and mode, changed versions of the slowest
//! patterns, and a report of the slowest of all.

use std::time::Instant;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::classes::{self, Literal, Mode};
use crate::corpus::random::Random;
use crate::haystack::Source;
use crate::measure::{cpu_micros, median, percentile};
use crate::modes::Scan;
use crate::race::{Racer, describe};

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
    /// Microseconds on the clock.
    pub(crate) wall: f64,
    /// Microseconds on the clock of a scan by the `regex` crate with all cores.
    pub(crate) scan: f64,
}

/// Puts `count` random patterns to `ours`, compares its answers to the slowest with those of `like`, and races
/// them against `scan`.
pub(crate) fn hunt(
    source: &Source,
    count: usize,
    ours: &dyn Racer,
    like: &dyn Racer,
    scan: &Scan,
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
        let mut trials = [const { Vec::new() }; 3];
        for _ in 0..RETRIALS {
            let start = Instant::now();
            let (hits, cpu) = cpu_micros(|| ours.ask(&request));
            let wall = start.elapsed();
            hits?;
            let start = Instant::now();
            scan.in_parallel(&request)?;
            trials[0].push(cpu);
            trials[1].push(wall.as_secs_f64() * 1e6);
            trials[2].push(start.elapsed().as_secs_f64() * 1e6);
        }
        let is_like = literal.mode == Mode::Like;
        if at < REPORTED && is_like && ours.ask(&request)? != like.ask(&request)? {
            differing.push(describe(literal));
        }
        let [cpu, wall, scan] = trials.map(median);
        slowest.push(Suspect { pattern: describe(literal), cpu, wall, scan });
    }
    slowest.sort_by(|one, other| other.wall.total_cmp(&one.wall));
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
