//! The measurements, as Markdown.

use std::fmt::Write as _;

use crate::{Figures, SHORT, SIDES, measure::median, questions::KINDS};

pub(crate) fn report(all: &[Figures]) -> String {
    let mut out = String::from(
        "# Ranking: embedding, and answering a question\n\n\
         Written by `cargo bench --bench ranked`. Everything on one core, times are of CPU. The corpus is that of\n\
         [search.md](search.md). Ours is the engine as `verbatim search` asks it: from the question to its ten best\n\
         messages with their passages, copies counted. Vectors are of the built-in model, 256 numbers. FTS5 stems\n\
         (`porter`), keeps no text, and ranks by `bm25`, its words joined by OR; sqlite-vec compares all, by cosine, and is\n\
         given the question's vector. Both are asked for the numbers of the best 200. FTS5 takes a run of Chinese for one\n\
         word, and finds nothing.\n",
    );
    for figures in all {
        one(&mut out, figures).expect("a String takes all");
    }
    out
}

fn one(out: &mut String, figures: &Figures) -> std::fmt::Result {
    let Figures { messages, text, speed, build, size, times, recall } = figures;
    writeln!(out, "\n## {messages} messages, {text:.0} bytes each\n")?;
    writeln!(
        out,
        "Embedded in a second: {:.0} messages, {:.1} MB; of messages up to {SHORT} bytes, {:.0}.\n\n\
         | | Verbatim | FTS5 | sqlite-vec, float32 | sqlite-vec, int8 |\n|-|--:|--:|--:|--:|\n\
         | built in, s (ours: exact index, words and vectors; theirs: of vectors at hand) | {:.1} | {:.1} | {:.1} | {:.1} |\n\
         | bytes a message | words {:.0}, vectors {:.0} | {:.0} | {:.0} | {:.0} |\n\
         | of the ten nearest by float32 | {:.3} | | 1 | {:.3} |\n\n\
         A question, milliseconds: median, worst\n",
        speed[0],
        speed[1],
        speed[2],
        build[0],
        build[1],
        build[2],
        build[3],
        size[0],
        size[1],
        size[2],
        size[3],
        size[4],
        recall[0],
        recall[1],
    )?;
    writeln!(out, "| | {} |", SIDES.join(" | "))?;
    writeln!(out, "|-|{}", "--:|".repeat(SIDES.len()))?;
    let mut together: [Vec<f64>; SIDES.len()] = Default::default();
    for (kind, sides) in KINDS.iter().zip(times).filter(|(_, sides)| !sides[0].is_empty()) {
        writeln!(out, "| {kind} | {} |", cells(sides))?;
        for (all, side) in together.iter_mut().zip(sides) {
            all.extend(side);
        }
    }
    writeln!(out, "| **all {}** | {} |", together[0].len(), cells(&together))
}

fn cells(sides: &[Vec<f64>; SIDES.len()]) -> String {
    let cell = |times: &Vec<f64>| {
        let worst = times.iter().copied().fold(0.0, f64::max);
        format!("{}, {}", short(median(times.clone())), short(worst))
    };
    sides.iter().map(cell).collect::<Vec<_>>().join(" | ")
}

/// Writes milliseconds with two significant digits, or all digits before the point.
fn short(number: f64) -> String {
    let digits = match number {
        _ if number < 1.0 => 2,
        _ if number < 10.0 => 1,
        _ => 0,
    };
    format!("{number:.digits$}")
}
