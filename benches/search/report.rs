//! The figures of a run, and the page that states them.

use std::{fmt::Write, fs, thread};

use serde::{Deserialize, Serialize};

use crate::classes::TYPING;
use crate::haystack::Source;
use crate::hunt::Hunt;
use crate::measure::Cost;
use crate::modes::{MODE_SIDES, OURS_IN_MODES, WORDS};
use crate::race::{Figures, Heat};
use crate::stage::Built;

/// The sides, in the order in which figures are kept.
pub(crate) const SIDES: [&str; 5] =
    ["LIKE", "LIKE, time index", "FTS5 trigram", "FTS5 tuned", "Verbatim"];

/// The place of each side in `SIDES`.
pub(crate) const LIKE: usize = 0;
pub(crate) const TIME_INDEX: usize = 1;
pub(crate) const FTS5: usize = 2;
pub(crate) const FTS5_TUNED: usize = 3;
pub(crate) const OURS: usize = 4;

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
    /// The average load of the minute before.
    load: Option<f64>,
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
    generated: bool,
    pub(crate) messages: usize,
    conversations: usize,
    pub(crate) bytes: usize,
    /// The messages of 2 KiB and more, and their bytes.
    long: (usize, usize),
    /// Capitals among all characters, as a share.
    capitals: f64,
}

impl Corpus {
    pub(crate) fn of(Source { messages, titles, .. }: &Source, generated: bool) -> Corpus {
        let texts = || (0..messages.len()).map(|at| messages.get(at));
        let long: Vec<usize> = texts().map(str::len).filter(|bytes| *bytes >= 2_048).collect();
        let letters: usize = texts().map(|text| text.chars().count()).sum();
        let capitals = texts().flat_map(str::bytes).filter(u8::is_ascii_uppercase).count();
        Corpus {
            generated,
            messages: messages.len(),
            conversations: titles.len(),
            bytes: messages.bytes(),
            long: (long.len(), long.iter().sum()),
            capitals: capitals as f64 / letters as f64,
        }
    }
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
            load: field("/proc/loadavg", "").and_then(|text| text.split(' ').next()?.parse().ok()),
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

    /// Returns the class in which a figure of `side` is the least, as a multiple of ours.
    fn least(&self, side: usize, of: fn(&Figures) -> f64) -> Option<(&str, f64)> {
        let ratios =
            self.heats.iter().filter_map(|heat| Some((&*heat.class, ratio(heat, side, of)?)));
        ratios.min_by(|one, other| one.1.total_cmp(&other.1))
    }
}

/// Returns a figure of `side` as a multiple of ours; we are the last side.
fn ratio(heat: &Heat, side: usize, of: fn(&Figures) -> f64) -> Option<f64> {
    Some(of(figures(heat, side)?) / of(figures(heat, heat.figures.len() - 1)?))
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
        "{} messages in {} conversations, {:.0} MB of text ({}). {machine}. {}\
         Everything is warm. Times are CPU time of all threads, end to end with rows: the newest 50 \
         matching messages, all columns. A literal's figure is its median; a class has the median, \
         the 95th percentile and the worst of its literals, and in brackets how many there was time for.\n\n\
         A message has {:.0} bytes on average; {:.1} % of the messages have 2 KiB or more, and {:.0} % of \
         the text; {:.1} % of the characters are capitals. (In 532,167 real messages: 203 bytes, 1.2 %, 54 %, \
         4.3 %.)\n",
        thousands(corpus.messages),
        thousands(corpus.conversations),
        corpus.bytes as f64 / 1e6,
        if corpus.generated { "generated" } else { "a database given by its path" },
        machine.load.map_or(String::new(), |load| format!(
            "The machine was {} (load average before the run: {load:.2}). ",
            if load < 0.5 { "quiet" } else { "**busy**" }
        )),
        corpus.bytes as f64 / corpus.messages as f64,
        100.0 * corpus.long.0 as f64 / corpus.messages as f64,
        100.0 * corpus.long.1 as f64 / corpus.bytes as f64,
        100.0 * corpus.capitals,
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
    writeln!(page, "## Patterns of LIKE\n")?;
    table(&results.heats, &SIDES, &[LIKE, FTS5_TUNED], page)?;
    writeln!(
        page,
        "## Other modes\n\n\
         The same words as literals, without accents and as whole words; expressions; and capitals, where \
         case matters. Scan: the `regex` crate over all rows in memory, the newest first, to \
         the 50th. Ripgrep: its engine over one file of all texts, in memory, to the 50th line.\n"
    )?;
    table(&results.modes, &MODE_SIDES, &[0, 1], page)?;
    builds(results, page)?;
    targets(results, page)?;
    hunted(results, page)?;
    grown(results, page)?;
    agreement(results, page)
}

/// Writes the figures of all sides, and how many times as much the sides `against` take as we do.
fn table(heats: &[Heat], sides: &[&str], against: &[usize], page: &mut String) -> std::fmt::Result {
    write!(page, "| class | {} |", sides.join(" | "))?;
    for side in against {
        write!(page, " × {0}, median | × {0}, 95 % |", sides[*side])?;
    }
    writeln!(page, " our worst literal |")?;
    writeln!(page, "|---|{}---|", "--:|".repeat(sides.len() + 2 * against.len()))?;
    for heat in heats {
        write!(page, "| {} |", cell(&heat.class))?;
        for side in 0..sides.len() {
            match figures(heat, side) {
                Some(Figures { median, percentile_95, worst, literals, .. }) => {
                    let [median, at_95, worst] = [median, percentile_95, worst].map(|it| time(*it));
                    write!(page, " {median}; {at_95}; {worst} ({literals}) |")?;
                }
                None => write!(page, " – |")?,
            }
        }
        for side in against {
            let figures: [fn(&Figures) -> f64; 2] = [|of| of.median, |of| of.percentile_95];
            for of in figures {
                match ratio(heat, *side, of) {
                    Some(ratio) if ratio < 1.0 => write!(page, " **{ratio:.2}** |")?,
                    ratio => write!(page, " {} |", ratio.map_or("–".to_owned(), times))?,
                }
            }
        }
        let worst = figures(heat, sides.len() - 1);
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

fn targets(results: &Results, page: &mut String) -> std::fmt::Result {
    writeln!(page, "## Targets\n")?;
    writeln!(page, "Set for 1,000,000 generated messages.\n")?;
    writeln!(page, "| what | target | reached | |\n|---|---|---|---|")?;
    let mut target = |what: &str, wanted: &str, reached: String, is_met: bool| {
        let verdict = if is_met { "reached" } else { "**missed**" };
        writeln!(page, "| {what} | {wanted} | {reached} | {verdict} |")
    };
    let median = results.least(FTS5_TUNED, |of| of.median);
    let at_95 = results.least(FTS5_TUNED, |of| of.percentile_95);
    for (what, wanted, least) in [
        ("FTS5 tuned, medians of every class", 1, median),
        ("FTS5 tuned, 95th percentiles of every class", 1, at_95),
        ("plain LIKE, medians of every class", 100, results.least(LIKE, |of| of.median)),
    ] {
        let Some((class, ratio)) = least else { continue };
        let reached = format!("{ratio:.2} × or more, least in “{}”", cell(class));
        target(what, &format!("≥ {wanted} ×"), reached, ratio >= f64::from(wanted))?;
    }
    let typing = results.heats.iter().find(|heat| heat.class == TYPING);
    if let Some(typing) = typing.and_then(|heat| figures(heat, OURS)) {
        let reached = format!("{}, {}", time(typing.worst), code(&typing.worst_literal));
        target("the worst as you type", "≤ 10 ms", reached, typing.worst <= 10e3)?;
    }
    if let Some(slowest) = results.hunt.slowest.first() {
        let ratio = slowest.wall / slowest.scan;
        let wanted = "≤ 1.2 × the wall time of a scan by the `regex` crate with all cores";
        target("the worst of the random patterns", wanted, format!("{ratio:.2} ×"), ratio <= 1.2)?;
    }
    if let ([_, _, fts5, _], [one, two]) = (results.baselines.as_slice(), results.ours.as_slice()) {
        let [share, theirs] = [two, fts5].map(|it| it.disk as f64 / results.corpus.bytes as f64);
        let reached = format!("{share:.2} × (FTS5: {theirs:.2} ×)");
        target("disk: index and sidecar", "≤ 3 × the text", reached, share <= 3.0)?;
        let speed = fts5.build.cpu / one.build.cpu;
        let reached = format!("{speed:.1} × (without FTS5’s optimize)");
        target("build, one core", "≥ 1.5 × as fast as FTS5", reached, speed >= 1.5)?;
        if let Some(peak) = one.build.peak.max(two.build.peak) {
            target("memory, building", "≤ 1 GiB", memory(Some(peak)), peak <= 1 << 20)?;
        }
    }
    if let Some(serving) = results.serving {
        let what = "memory, serving, beyond the page cache";
        target(what, "≤ 64 MiB", memory(Some(serving)), serving <= 64 << 10)?;
    }
    let what = "a fresh process, start to end, one answer";
    let first = results.first_answer;
    target(what, "≤ 25 ms", time(first * 1e6), first <= 0.025)?;
    writeln!(page)
}

fn hunted(results: &Results, page: &mut String) -> std::fmt::Result {
    let hunt = &results.hunt;
    writeln!(page, "## The slowest of {} random patterns\n", thousands(hunt.patterns))?;
    writeln!(
        page,
        "1 to 40 characters of any message, with wildcards and changes. Median {}, 99th percentile \
         {}. Scan: the wall time of the `regex` crate over all rows in memory with all cores, the newest \
         first, to the 50th.\n",
        time(hunt.median),
        time(hunt.percentile_99)
    )?;
    writeln!(page, "| pattern | CPU | wall | scan |\n|---|--:|--:|--:|")?;
    for suspect in &hunt.slowest {
        let [cpu, wall, scan] = [suspect.cpu, suspect.wall, suspect.scan].map(time);
        writeln!(page, "| {} | {cpu} | {wall} | {scan} |", code(&suspect.pattern))?;
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
