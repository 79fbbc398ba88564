//! The figures of a run, and the page that states them.

use std::{fmt::Write, fs, thread};

use serde::{Deserialize, Serialize};

use crate::{
    hunt::Hunt,
    measure::Cost,
    modes::{MODE_SIDES, OURS_IN_MODES, WORDS},
    race::{Figures, Heat},
    stage::Built,
};

/// The sides, in the order in which figures are kept.
pub(crate) const SIDES: [&str; 5] =
    ["LIKE", "LIKE, time index", "FTS5 trigram", "FTS5 tuned", "Verbatim"];

/// The place of each side in `SIDES`.
pub(crate) const LIKE: usize = 0;
pub(crate) const TIME_INDEX: usize = 1;
pub(crate) const FTS5: usize = 2;
pub(crate) const FTS5_TUNED: usize = 3;
pub(crate) const OURS: usize = 4;

/// The class with a lower target against FTS5, which is built for such queries.
const FTS5_FORTE: &str = "8 digits of a UUID";

/// All results of a run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    pub(crate) corpus: Corpus,
    pub(crate) baselines: Vec<Built>,
    /// Our index built with one thread, and with two.
    pub(crate) ours: Vec<Built>,
    pub(crate) heats: Vec<Heat>,
    /// The results of the modes other than LIKE, which have other sides.
    pub(crate) modes: Vec<Heat>,
    pub(crate) growth: Option<Growth>,
    /// Microseconds to look through all text in memory.
    pub(crate) bare_scan: f64,
    pub(crate) hunt: Hunt,
    /// Seconds that a new process takes for its first answer.
    pub(crate) first_answer: f64,
    /// KiB of anonymous memory after all literals.
    pub(crate) serving: Option<u64>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    memory_kib: Option<u64>,
    sqlite: String,
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let memory =
            self.memory_kib.map_or(String::new(), |kib| format!(", {} GiB", kib.div_ceil(1 << 20)));
        write!(f, "{} cores ({}){memory}, SQLite {}", self.cores, self.processor, self.sqlite)
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Corpus {
    pub(crate) generated: bool,
    pub(crate) messages: usize,
    pub(crate) conversations: usize,
    pub(crate) bytes: usize,
}

/// The results of our index alone, over fewer messages and over all.
#[derive(Serialize, Deserialize)]
pub(crate) struct Growth {
    /// The smaller number of messages.
    pub(crate) messages: usize,
    pub(crate) few: Vec<Heat>,
    pub(crate) many: Vec<Heat>,
}

impl Growth {
    /// Returns the medians of each class over the fewer messages and over all.
    fn medians(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        self.few.iter().zip(&self.many).filter_map(|(few, many)| {
            let median = |heat| figures(heat, 0).map(|figures| figures.median);
            Some((many.class.as_str(), median(few)?, median(many)?))
        })
    }
}

impl Machine {
    pub(crate) fn this() -> Machine {
        let field = |file: &str, name: &str| {
            let text = fs::read_to_string(file).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches([':', ' ', '\t']).to_owned())
        };
        Machine {
            processor: field("/proc/cpuinfo", "model name")
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_kib: field("/proc/meminfo", "MemTotal")
                .and_then(|text| text.trim_end_matches(" kB").parse().ok()),
            sqlite: rusqlite::version().to_owned(),
        }
    }
}

impl Results {
    /// Returns the queries for which our answer differs from LIKE's.
    pub(crate) fn wrong_answers(&self) -> Vec<String> {
        let raced =
            self.heats.iter().flat_map(|heat| heat.differing.get(OURS).into_iter().flatten());
        // Our whole words differ a little from those of `\b`.
        let modes = self.modes.iter().filter(|heat| !heat.class.ends_with(WORDS));
        let modes = modes.flat_map(|heat| heat.differing.get(OURS_IN_MODES).into_iter().flatten());
        raced.chain(modes).chain(&self.hunt.differing).cloned().collect()
    }

    /// Returns how many times as long `side` takes as we do, for each class that both ran.
    fn ratios(&self, side: usize) -> impl Iterator<Item = (&str, f64)> {
        self.heats.iter().filter_map(move |heat| Some((heat.class.as_str(), ratio(heat, side)?)))
    }

    /// Returns the class in which a figure of `side` is the least, as a multiple of ours.
    fn slowest_of(&self, side: usize, of: fn(&Figures) -> f64) -> Option<(&str, f64)> {
        let ratio = |heat| Some(of(figures(heat, side)?) / of(figures(heat, OURS)?));
        let ratios = self.heats.iter().filter_map(|heat| Some((heat.class.as_str(), ratio(heat)?)));
        ratios.min_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn slowest_ratio(&self, side: usize, of: impl Fn(&str) -> bool) -> Option<(&str, f64)> {
        self.ratios(side)
            .filter(|(class, _)| of(class))
            .min_by(|one, other| one.1.total_cmp(&other.1))
    }
}

fn ratio(heat: &Heat, side: usize) -> Option<f64> {
    let median = |side: usize| Some(heat.figures.get(side)?.as_ref()?.median);
    Some(median(side)? / median(OURS)?)
}

/// Returns the page.
pub(crate) fn markdown(results: &Results) -> String {
    let mut page = String::new();
    // Writing into a String does not fail.
    let _ = write_page(results, &mut page);
    page
}

fn write_page(results: &Results, page: &mut String) -> std::fmt::Result {
    let corpus = &results.corpus;
    let machine = &results.machine;
    writeln!(page, "# Exact search, measured\n")?;
    writeln!(
        page,
        "{} messages in {} conversations, {:.0} MB of text ({}). {machine}. \
         Everything is warm. Times are CPU time of all threads, end to end with rows: the newest 50 \
         matching messages, all columns. A class's figure is the median over its literals of each \
         one's median.\n",
        thousands(corpus.messages),
        thousands(corpus.conversations),
        corpus.bytes as f64 / 1e6,
        if corpus.generated { "generated" } else { "a database given by its path" },
    )?;
    writeln!(
        page,
        "- LIKE: `content LIKE '%…%' OR title LIKE '%…%'`, newest first, without any index.\n\
         - LIKE, time index: the same with an index on `messages(create_time)`.\n\
         - FTS5 trigram: two external-content tables, contents and titles, optimized; `MATCH` for \
         ASCII without wildcards, FTS5’s own `LIKE` for the rest, plain LIKE below three characters.\n\
         - FTS5 tuned: one table of messages with their titles, whose rowid is the order of time; \
         `MATCH … ORDER BY rowid DESC LIMIT 50`, with `LIKE` behind it where a phrase is not the \
         same; dates as a range of rowids; `LIKE` over the rows, the newest first, below three characters.\n\
         - Verbatim: the engine as its commands and tools ask it, index checked against the database \
         each time.\n"
    )?;
    writeln!(page, "![Medians of each class](search.svg)\n")?;
    let option = if corpus.generated {
        format!("--messages {}", corpus.messages)
    } else {
        "--db PATH".to_owned()
    };
    writeln!(page, "    cargo bench --bench search -- {option}\n")?;
    classes(results, page)?;
    spread(results, page)?;
    modes(results, page)?;
    builds(results, page)?;
    targets(results, page)?;
    hunted(results, page)?;
    grown(results, page)?;
    agreement(results, page)
}

fn classes(results: &Results, page: &mut String) -> std::fmt::Result {
    writeln!(page, "## Medians\n")?;
    let times_of = "× LIKE | × time index | × FTS5 | × tuned";
    writeln!(page, "| class | {} | {times_of} |", SIDES.join(" | "))?;
    writeln!(page, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")?;
    for heat in &results.heats {
        write!(page, "| {} |", cell(&heat.class))?;
        for side in 0..SIDES.len() {
            let median = figures(heat, side).map_or("–".to_owned(), |of| time(of.median));
            let strong = if side == OURS && median != "–" { "**" } else { "" };
            write!(page, " {strong}{median}{strong} |")?;
        }
        for side in [LIKE, TIME_INDEX, FTS5, FTS5_TUNED] {
            write!(page, " {} |", ratio(heat, side).map_or("–".to_owned(), times))?;
        }
        writeln!(page)?;
    }
    writeln!(page)
}

fn spread(results: &Results, page: &mut String) -> std::fmt::Result {
    writeln!(page, "## 95th percentiles and worst literals\n")?;
    writeln!(
        page,
        "Both of the literals' medians. In brackets: how many literals there was time for.\n"
    )?;
    writeln!(page, "| class | {} | our worst literal |", SIDES.join(" | "))?;
    writeln!(page, "|---|--:|--:|--:|--:|--:|---|")?;
    for heat in &results.heats {
        write!(page, "| {} |", cell(&heat.class))?;
        for side in 0..SIDES.len() {
            match figures(heat, side) {
                Some(of) => write!(
                    page,
                    " {}; {} ({}) |",
                    time(of.percentile_95),
                    time(of.worst),
                    of.literals
                )?,
                None => write!(page, " – |")?,
            }
        }
        let worst = figures(heat, OURS).map_or("–".to_owned(), |of| code(&of.worst_literal));
        writeln!(page, " {worst} |")?;
    }
    writeln!(page)
}

fn modes(results: &Results, page: &mut String) -> std::fmt::Result {
    writeln!(page, "## Other modes\n")?;
    writeln!(
        page,
        "The same words as literals, by case, without accents, as whole words, and expressions with and \
         without a literal. Scan: the `regex` crate over all rows in memory, the newest first, to \
         the 50th. Ripgrep: its engine over one file of all texts, in memory, to the 50th line. \
         Verbatim, LIKE: the same text by LIKE. Median; 95th percentile; worst.\n"
    )?;
    writeln!(page, "| class | {} | our worst literal |", MODE_SIDES.join(" | "))?;
    writeln!(page, "|---|--:|--:|--:|--:|---|")?;
    for heat in &results.modes {
        write!(page, "| {} |", cell(&heat.class))?;
        for side in 0..MODE_SIDES.len() {
            match figures(heat, side) {
                Some(Figures { median, percentile_95, worst, .. }) => {
                    let [median, at_95, worst] = [median, percentile_95, worst].map(|it| time(*it));
                    write!(page, " {median}; {at_95}; {worst} |")?;
                }
                None => write!(page, " – |")?,
            }
        }
        let worst = figures(heat, OURS_IN_MODES);
        writeln!(page, " {} |", worst.map_or("–".to_owned(), |of| code(&of.worst_literal)))?;
    }
    writeln!(page)
}

fn builds(results: &Results, page: &mut String) -> std::fmt::Result {
    let text = results.corpus.bytes as f64;
    writeln!(page, "## Building\n")?;
    writeln!(
        page,
        "Each in a process of its own. Disk is what comes on top of the database. Memory is the peak \
         of the resident set, mapped files included; in brackets, without them. Ours may take {} and \
         128 MiB beside it.\n",
        memory(Some(crate::ours::MEMORY as u64 >> 10))
    )?;
    writeln!(page, "| | wall | CPU | memory | disk | disk ÷ text |")?;
    writeln!(page, "|---|--:|--:|--:|--:|--:|")?;
    let mut row = |name: &str, cost: &Cost, disk: Option<u64>| {
        let (disk, share) = disk.map_or(("–".to_owned(), "–".to_owned()), |bytes| {
            (format!("{:.0} MB", bytes as f64 / 1e6), format!("{:.2}", bytes as f64 / text))
        });
        writeln!(
            page,
            "| {name} | {:.1} s | {:.1} s | {} ({}) | {disk} | {share} |",
            cost.wall,
            cost.cpu,
            memory(cost.peak),
            memory(cost.peak_anonymous)
        )
    };
    if let [_, time_index, fts5, tuned] = results.baselines.as_slice() {
        row("index on create_time", &time_index.build, Some(time_index.disk))?;
        row("FTS5 trigram", &fts5.build, None)?;
        row("FTS5 trigram, optimize", &fts5.optimize, Some(fts5.disk))?;
        row("FTS5 tuned", &tuned.build, None)?;
        row("FTS5 tuned, optimize", &tuned.optimize, Some(tuned.disk))?;
    }
    for built in &results.ours {
        row(&format!("Verbatim, threads: {}", built.threads), &built.build, Some(built.disk))?;
    }
    writeln!(page)
}

/// A target, and the measured value.
struct Target {
    against: &'static str,
    wanted: String,
    reached: String,
    met: bool,
}

fn targets(results: &Results, page: &mut String) -> std::fmt::Result {
    writeln!(page, "## Targets\n")?;
    writeln!(page, "Set for 1,000,000 generated messages.\n")?;
    writeln!(page, "| against | target | reached | |")?;
    writeln!(page, "|---|---|---|---|")?;
    for Target { against, wanted, reached, met } in list_targets(results) {
        let verdict = if met { "reached" } else { "**missed**" };
        writeln!(page, "| {against} | {wanted} | {reached} | {verdict} |")?;
    }
    writeln!(page)
}

fn list_targets(results: &Results) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut speed = |against, wanted: f64, slowest: Option<(&str, f64)>| {
        if let Some((class, ratio)) = slowest {
            targets.push(Target {
                against,
                wanted: format!("≥ {} ×", thousands_or_decimal(wanted)),
                reached: format!("{} × or more, least in “{}”", times(ratio), cell(class)),
                met: ratio >= wanted,
            });
        }
    };
    speed("plain LIKE, every class", 4_000.0, results.slowest_ratio(LIKE, |_| true));
    speed(
        "FTS5 trigram, every class but UUIDs",
        50.0,
        results.slowest_ratio(FTS5, |class| class != FTS5_FORTE),
    );
    speed(
        "FTS5 trigram, digits of a UUID",
        15.0,
        results.slowest_ratio(FTS5, |class| class == FTS5_FORTE),
    );
    speed("LIKE with an index on time", 1.5, results.slowest_ratio(TIME_INDEX, |_| true));
    speed("FTS5 tuned, medians", 1.0, results.slowest_ratio(FTS5_TUNED, |_| true));
    let at_95 = results.slowest_of(FTS5_TUNED, |figures| figures.percentile_95);
    speed("FTS5 tuned, 95th percentiles", 1.0, at_95);
    if let Some(slowest) = results.hunt.slowest.first() {
        let half_scan = results.bare_scan / 2.0;
        targets.push(Target {
            against: "the worst of the random patterns",
            wanted: format!("≤ 25 ms and half the bare scan, {}", time(half_scan)),
            reached: time(slowest.cpu),
            met: slowest.cpu <= half_scan.min(25_000.0),
        });
    }
    let growths = results.growth.iter().flat_map(Growth::medians);
    if let Some((class, growth)) = growths
        .map(|(class, few, many)| (class, many / few))
        .max_by(|one, other| one.1.total_cmp(&other.1))
    {
        targets.push(Target {
            against: "10 × the messages",
            wanted: "≤ 2 × the median".to_owned(),
            reached: format!("{growth:.2} × at most, in “{}”", cell(class)),
            met: growth <= 2.0,
        });
    }
    if let ([_, _, fts5, _], [one, two]) = (results.baselines.as_slice(), results.ours.as_slice()) {
        let share = two.disk as f64 / results.corpus.bytes as f64;
        let theirs = fts5.disk as f64 / results.corpus.bytes as f64;
        targets.push(Target {
            against: "disk: index and sidecar",
            wanted: "≤ 2.8 × the text".to_owned(),
            reached: format!("{share:.2} × (FTS5: {theirs:.2} ×)"),
            met: share <= 2.8,
        });
        let (bare, whole) = (fts5.build.cpu, fts5.build.cpu + fts5.optimize.cpu);
        let speed = whole / one.build.cpu;
        targets.push(Target {
            against: "build, one core",
            wanted: "≥ 5 × as fast as FTS5’s".to_owned(),
            reached: format!(
                "{speed:.1} × ({:.1} × without FTS5’s optimize)",
                bare / one.build.cpu
            ),
            met: speed >= 5.0,
        });
        // With one thread that splits and sorts, the reading thread still has the other core: a
        // single core would take the CPU time.
        let gain = one.build.cpu / two.build.wall;
        targets.push(Target {
            against: "build, both cores",
            wanted: "≥ 1.6 × one core".to_owned(),
            reached: format!("{gain:.2} × (CPU time of one ÷ wall time of both)"),
            met: gain >= 1.6,
        });
        if let Some(peak) = one.build.peak.max(two.build.peak) {
            targets.push(Target {
                against: "memory, building",
                wanted: "≤ 1 GiB".to_owned(),
                reached: memory(Some(peak)),
                met: peak <= 1 << 20,
            });
        }
    }
    if let Some(serving) = results.serving {
        targets.push(Target {
            against: "memory, serving, beyond the page cache",
            wanted: "≤ 64 MiB".to_owned(),
            reached: memory(Some(serving)),
            met: serving <= 64 << 10,
        });
    }
    targets.push(Target {
        against: "a fresh process, start to end, one answer",
        wanted: "≤ 60 ms".to_owned(),
        reached: time(results.first_answer * 1e6),
        met: results.first_answer <= 0.06,
    });
    targets
}

fn hunted(results: &Results, page: &mut String) -> std::fmt::Result {
    let hunt = &results.hunt;
    writeln!(page, "## The slowest of {} random patterns\n", thousands(hunt.patterns))?;
    writeln!(
        page,
        "1 to 40 characters of any message, with wildcards and changes. Median {}, 99th percentile \
         {}; a bare scan of all text in memory takes {}.\n",
        time(hunt.median),
        time(hunt.percentile_99),
        time(results.bare_scan)
    )?;
    writeln!(page, "| pattern | CPU | wall |\n|---|--:|--:|")?;
    for suspect in &hunt.slowest {
        let (cpu, wall) = (time(suspect.cpu), time(suspect.wall));
        writeln!(page, "| {} | {cpu} | {wall} |", code(&suspect.pattern))?;
    }
    writeln!(page)
}

fn grown(results: &Results, page: &mut String) -> std::fmt::Result {
    let Some(growth) = &results.growth else { return Ok(()) };
    let (few, many) = (thousands(growth.messages), thousands(results.corpus.messages));
    writeln!(page, "## Growth\n")?;
    writeln!(page, "Verbatim without the others by its side, over literals sampled from each.\n")?;
    writeln!(page, "| class | {few} messages | {many} messages | × |\n|---|--:|--:|--:|")?;
    for (class, few, many) in growth.medians() {
        let growth = many / few;
        writeln!(page, "| {} | {} | {} | {growth:.2} |", cell(class), time(few), time(many))?;
    }
    writeln!(page)
}

fn agreement(results: &Results, page: &mut String) -> std::fmt::Result {
    writeln!(page, "## Agreement\n")?;
    writeln!(page, "Answers equal to LIKE’s: the same rows in the same order.\n")?;
    for side in [TIME_INDEX, FTS5, FTS5_TUNED, OURS] {
        let compared: usize = results.heats.iter().map(|heat| heat.compared[side]).sum();
        let differing: Vec<&String> =
            results.heats.iter().flat_map(|heat| &heat.differing[side]).collect();
        write!(page, "- {}: {} of {compared}", SIDES[side], compared - differing.len())?;
        let named: Vec<String> = differing.iter().take(5).map(|text| code(text)).collect();
        if !named.is_empty() {
            write!(page, "; not those to {}", named.join(", "))?;
        }
        writeln!(page)?;
    }
    Ok(())
}

fn figures(heat: &Heat, side: usize) -> Option<&Figures> {
    heat.figures.get(side)?.as_ref()
}

/// Returns microseconds in the unit that suits them, to two or three digits.
pub(crate) fn time(micros: f64) -> String {
    match micros {
        ..9.95 => format!("{micros:.1} µs"),
        ..999.5 => format!("{micros:.0} µs"),
        ..9_995.0 => format!("{:.2} ms", micros / 1e3),
        ..999_500.0 => format!("{:.0} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

fn times(ratio: f64) -> String {
    if ratio < 20.0 { format!("{ratio:.1}") } else { thousands(ratio as usize) }
}

fn thousands_or_decimal(number: f64) -> String {
    if number.fract() == 0.0 { thousands(number as usize) } else { number.to_string() }
}

pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn memory(kib: Option<u64>) -> String {
    kib.map_or("–".to_owned(), |kib| format!("{} MiB", kib.div_ceil(1 << 10)))
}

/// Returns text for a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('_', "\\_").replace('*', "\\*")
}

/// Returns a literal as code in a table's cell.
fn code(text: &str) -> String {
    let ticks = if text.contains('`') { "``" } else { "`" };
    let space = if ticks.len() == 2 { " " } else { "" };
    format!("{ticks}{space}{}{space}{ticks}", text.replace('|', "\\|"))
}
