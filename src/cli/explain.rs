//! `verbatim search --explain`: the plan of a search and its cost.

use std::{
    io::{self, Write},
    time::Duration,
};

use super::output::harmless;
use verbatim_answer::hint::because;
use verbatim_engine::{SearchPlan, Trace};

pub(super) fn explain(out: &mut dyn Write, plan: &SearchPlan, hits: usize) -> io::Result<()> {
    match plan {
        SearchPlan::ByIndex { snapshot, trace } => {
            writeln!(out, "answered by: the index ({snapshot})")?;
            explain_index(out, trace)?;
        }
        SearchPlan::ByLike { why, took } => {
            writeln!(out, "answered by: LIKE, by SQLite over every message")?;
            writeln!(out, "because: {}", because(why))?;
            writeln!(out, "time: {}", micros(*took))?;
        }
        SearchPlan::ByCluster { index, candidates, took } => {
            writeln!(out, "answered by: the cluster (index {index})")?;
            writeln!(out, "candidates: {candidates}")?;
            writeln!(out, "time: {}", micros(*took))?;
        }
    }
    writeln!(out, "hits: {hits}")
}

fn explain_index(out: &mut dyn Write, trace: &Trace) -> io::Result<()> {
    let Trace { grams, gaps, candidates, verified, bytes_read, .. } = trace;
    if trace.scan_threads > 0 {
        let threads = trace.scan_threads;
        writeln!(out, "grams: none that is indexed; {threads} threads read every message")?;
    } else if grams.is_empty() {
        writeln!(out, "grams: none that is indexed; every message is a candidate")?;
    }
    for (in_titles, place, holders) in
        [(false, "texts", "messages"), (true, "titles", "conversations")]
    {
        if grams.iter().any(|gram| gram.in_titles == in_titles) {
            writeln!(out, "grams in {place}:")?;
        }
        for gram in grams.iter().filter(|gram| gram.in_titles == in_titles) {
            let name = harmless(&format!("{:?}", gram.gram.to_string()));
            writeln!(out, "  {name} in {} {holders}", gram.messages)?;
        }
    }
    if *gaps > 0 {
        writeln!(out, "narrowed by: the characters that {gaps} of the wildcards can match")?;
    }
    writeln!(out, "candidates: {candidates}")?;
    writeln!(out, "verified: {verified}")?;
    writeln!(out, "bytes read: {bytes_read}")?;
    for (step, took) in [
        ("finding the lists", trace.lookup),
        ("intersecting and verifying", trace.search),
        ("making rows", trace.rows),
        ("all", trace.lookup + trace.search + trace.rows),
    ] {
        writeln!(out, "time, {step}: {}", micros(took))?;
    }
    Ok(())
}

fn micros(duration: Duration) -> String {
    format!("{:.1} µs", duration.as_secs_f64() * 1e6)
}
