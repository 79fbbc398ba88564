//! Many clients at the same time.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::classes::{Class, Literal};
use crate::corpus::random::Random;
use crate::measure::percentile;
use crate::race::Racer;
use crate::{Ours, print};

/// Asks with several clients for some seconds. Each client has its own connections to one of two engines.
/// Every answer must equal the answer without load.
pub(crate) fn run(address: &Path, classes: &[Class], clients: usize, seconds: u64) -> Result<()> {
    let literals: Vec<&Literal> = classes.iter().flat_map(|class| &class.literals).collect();
    let engines = [Ours::open(address), Ours::open(address)];
    let ids = |ours: &Ours, literal: &Literal| -> Result<Vec<String>> {
        let hits = ours.ask(&literal.request())?;
        Ok(hits.into_iter().map(|hit| hit.message_id.into_owned()).collect())
    };
    let expected: Vec<Vec<String>> =
        literals.iter().map(|literal| ids(&engines[0], literal)).collect::<Result<_>>()?;
    let (wrong, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let until = Instant::now() + Duration::from_secs(seconds);
    let times: Vec<f64> = thread::scope(|scope| {
        let ask = |client: usize| {
            let mut random = Random::new(client as u64);
            let mut times = Vec::new();
            while Instant::now() < until {
                let at = random.below(literals.len());
                let begun = Instant::now();
                match ids(&engines[client % engines.len()], literals[at]) {
                    Ok(found) if found == expected[at] => {}
                    Ok(_) => drop(wrong.fetch_add(1, Ordering::Relaxed)),
                    Err(_) => drop(failed.fetch_add(1, Ordering::Relaxed)),
                }
                times.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            times
        };
        let threads: Vec<_> = (0..clients).map(|client| scope.spawn(move || ask(client))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        joined.flatten().collect()
    });
    let (wrong, failed) = (wrong.into_inner(), failed.into_inner());
    print(format_args!(
        "\n{clients} clients for {seconds} s: {} answers, {:.0} a second; median {:.0} ms, 99 % {:.0} ms, \
         slowest {:.0} ms; {wrong} wrong, {failed} failed",
        times.len(),
        times.len() as f64 / seconds as f64,
        percentile(50, times.clone()),
        percentile(99, times.clone()),
        times.iter().copied().fold(0.0, f64::max),
    ))?;
    ensure!(wrong == 0, "{wrong} answers are wrong");
    Ok(())
}
