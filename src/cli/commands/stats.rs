//! The command `verbatim stats`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::AnsiColor;
use schemars::JsonSchema;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::filters::FilterArgs;
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal};
use crate::cli::error::Result;
use crate::cli::terminal::layout::{LineLayout, Piece, fitted};
use crate::cli::terminal::notes;
use crate::cli::terminal::output::{
    FOUND, NOTHING, complain, counted, grouped, json_line, on_one_line,
};
use crate::cli::terminal::wrap::wrapped;
use verbatim_answer::clock::Clock;
use verbatim_base::{call::Call, model::Instant};
use verbatim_engine::{Engine, Scope, Tally};
use verbatim_text::months;

/// The length of the longest bar in characters. If there is room for fewer than `LEAST_BAR`
/// characters, no bars are drawn.
const BAR_WIDTH: usize = 40;
const LEAST_BAR: usize = 4;

/// The maximum number of bars; the last bar is the sum of all other values.
const MOST_BARS: usize = 15;

/// Count messages by month, role, service and model
///
///     verbatim stats --since 2025 --role user
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    filters: FilterArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        Facts {
            reads: Reads::EverySource,
            writes: false,
            takes_db: true,
            makes_vectors: false,
            may_be_torn: true,
            waits_for: Some("counting messages"),
            form: OutputForm::AsItIs,
        }
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        run(self, invocation.engine, invocation.terminal)
    }
}

fn run(args: &Args, engine: &Engine, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let call = Call::default();
    let clock = environment.clock();
    let (scope, unknown) = args.filters.scope(engine, clock, &call)?;
    notes::print(&unknown);
    let tally = engine.tally(&scope, &|time| clock.day(time), &call)?;
    let services = engine.all_sources().services(&tally.by_conversation, &call)?;
    notes::print(&tally.notes);
    if tally.messages == 0 {
        notes::print(engine.all_sources().unknown_role(&scope, &call)?.as_slice());
        let no_chats = notes::has_no_chats(engine, &call)?.then(|| notes::no_chats(engine));
        complain(if let Some(no_chats) = &no_chats {
            no_chats
        } else if scope == Scope::default() {
            "no message found"
        } else {
            "no message found; without filters, `verbatim stats` counts all"
        });
    }
    if args.json {
        let statistics = JsonStatistics {
            messages: tally.messages,
            conversations: tally.conversations,
            first: tally.first.and_then(|time| clock.iso(time)),
            last: tally.last.and_then(|time| clock.iso(time)),
            months: &tally.months,
            roles: &tally.roles,
            sources: &tally.sources,
            services: &services,
            models: &tally.models,
        };
        json_line(out, &statistics)?;
    } else {
        charts(out, &tally, &services, clock, LineLayout::of(environment))?;
    }
    Ok(if tally.messages > 0 { FOUND } else { NOTHING })
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JsonStatistics<'a> {
    /// Messages within the filters.
    messages: u64,
    /// Conversations that have one of them.
    conversations: usize,
    /// The time of the first one.
    first: Option<String>,
    /// The time of the last one.
    last: Option<String>,
    /// Messages by month, such as `2025-01`, and `no time`.
    months: &'a BTreeMap<String, u64>,
    /// Messages by role; `unknown` for none.
    roles: &'a BTreeMap<String, u64>,
    /// Messages by source.
    sources: &'a BTreeMap<String, u64>,
    /// Messages by service or agent; the source where it is not known.
    services: &'a BTreeMap<String, u64>,
    /// Messages by the model that wrote them, as far as the sources name it.
    models: &'a BTreeMap<String, u64>,
}

fn charts(
    out: &mut dyn Write,
    tally: &Tally,
    services: &BTreeMap<String, u64>,
    clock: Clock,
    layout: LineLayout,
) -> io::Result<()> {
    let mut line = format!(
        "{} in {}",
        counted(tally.messages, "message"),
        counted(tally.conversations, "conversation")
    );
    if let (Some(first), Some(last)) = (day(tally.first, clock), day(tally.last, clock)) {
        line.push_str(&format!(", {first} to {last}"));
    }
    writeln!(out, "{}", wrapped(&line, layout.wrap_columns(), 2))?;
    chart(out, "Months", &months::fill_gaps(&tally.months), layout)?;
    for (heading, counts) in
        [("Roles", &tally.roles), ("Services", services), ("Models", &tally.models)]
    {
        chart(out, heading, &largest(counts), layout)?;
    }
    Ok(())
}

fn day(time: Option<Instant>, clock: Clock) -> Option<String> {
    clock.minute(time?)?.split(' ').next().map(str::to_owned)
}

/// Returns the counts, largest first. Counts beyond [`MOST_BARS`] are added up to one count.
fn largest(counts: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut counts: Vec<(String, u64)> =
        counts.iter().map(|(name, count)| (name.clone(), *count)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if counts.len() > MOST_BARS {
        let rest = counts.split_off(MOST_BARS - 1);
        let sum = rest.iter().map(|(_, count)| count).sum();
        counts.push((format!("{} others", rest.len()), sum));
    }
    counts
}

fn chart(
    out: &mut dyn Write,
    heading: &str,
    counts: &[(String, u64)],
    layout: LineLayout,
) -> io::Result<()> {
    let Some(most) = counts.iter().map(|(_, count)| *count).max() else { return Ok(()) };
    let digits = grouped(most).len();
    // The columns that the count and the spaces around it leave.
    let room =
        layout.wrap_columns().map_or(usize::MAX, |columns| columns.saturating_sub(digits + 4));
    let mut names: Vec<String> = Vec::new();
    for (name, _) in counts {
        let pieces = fitted(&[Piece::plain(&on_one_line(name))], room);
        names.push(pieces.into_iter().map(|piece| piece.text).collect());
    }
    let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let longest = room.saturating_sub(width + 2).min(BAR_WIDTH);
    writeln!(out, "\n{heading}")?;
    for (name, (_, count)) in names.iter().zip(counts) {
        let pad = " ".repeat(width - name.width());
        let number = grouped(*count);
        write!(out, "  {name}{pad}  {number:>digits$}")?;
        let bar = bar(*count, most, longest);
        if !bar.is_empty() && longest >= LEAST_BAR {
            write!(out, "  {}", layout.styled(AnsiColor::Cyan.on_default(), &bar))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Returns a bar with a precision of an eighth of a character. The bar of a count above 0 is not empty;
/// the bar of `most` has the length `longest`.
fn bar(count: u64, most: u64, longest: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = u128::from(count) * longest as u128 * 8 / u128::from(most.max(1));
    let eighths = if count > 0 { eighths.max(1) as usize } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_TIME: &str = "no time";

    #[test]
    fn numbers_and_bars() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(bar(0, 7, 40), "");
        assert_eq!(bar(1, u64::MAX, 40), "▏");
        assert_eq!(bar(7, 7, 40).chars().count(), 40);
        assert_eq!(bar(1, 80, 40), "▌");
    }

    #[test]
    fn gaps_are_shown() {
        let mut tally = Tally::default();
        for (month, count) in
            [("+33658-09", 1), ("2023-11", 1), ("2024-02", 2), ("2124-01", 1), (NO_TIME, 3)]
        {
            tally.months.insert(month.to_owned(), count);
        }
        let names: Vec<String> =
            months::fill_gaps(&tally.months).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["+33658-09", "2023-11", "2023-12", "2024-01", "2024-02", "2124-01", NO_TIME]
        );
    }
}
