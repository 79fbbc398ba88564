//! Charts, drawn by the server. Widths are in percent, so charts are sharp at every size.

use std::collections::BTreeMap;

use maud::{Markup, html};

use verbatim_text::amount::grouped;
use verbatim_text::months::{self, month_number};

/// The minimum number of months in a chart. With fewer months, the columns would be too wide.
const FEWEST: usize = 24;

/// Pixels of the highest column.
const HEIGHT: u64 = 48;

const NAMES: &str =
    "January February March April May June July August September October November December";

pub(crate) struct Month<'a> {
    pub(crate) name: &'a str,
    pub(crate) count: u64,
    /// Whether the month is in the range of dates.
    pub(crate) is_in: bool,
}

impl Month<'_> {
    fn in_words(&self) -> String {
        format!("{}: {}", month_name(self.name), grouped(self.count as usize))
    }
}

/// Returns the months in order, with the empty months between them. Messages without a time are left out.
pub(crate) fn months(counts: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    months::fill_gaps(counts).into_iter().filter(|(name, _)| month_number(name).is_some()).collect()
}

pub(super) fn month_name(month: &str) -> String {
    match month_number(month) {
        Some(number) => {
            let name = NAMES.split(' ').nth(number as usize % 12).unwrap_or_default();
            format!("{name} {}", number / 12)
        }
        None => month.to_owned(),
    }
}

pub(crate) fn percent(part: f64, whole: f64) -> String {
    format!("{:.2}%", part / whole.max(1.0) * 100.0)
}

pub(crate) fn histogram(months: &[Month<'_>]) -> Markup {
    let Some((first, last)) = months.first().zip(months.last()) else { return html! {} };
    let most = months.iter().map(|month| month.count).max().unwrap_or(0).max(1);
    let busiest = months.iter().find(|month| month.count == most).unwrap_or(first);
    let all = months.len().max(FEWEST) as f64;
    let names: Vec<&str> = months.iter().map(|month| month.name).collect();
    let label = format!(
        "Messages by month, {} to {}; most, {}, in {}",
        month_name(first.name),
        month_name(last.name),
        grouped(most as usize),
        month_name(busiest.name)
    );
    let width = percent(0.82, all);
    let within: Vec<usize> = (0..months.len()).filter(|at| months[*at].is_in).collect();
    let chosen = within.first().zip(within.last());
    let brush = chosen.filter(|_| within.len() < months.len());
    let from = chosen.map_or(0, |(from, _)| *from);
    let to = chosen.map_or(months.len() - 1, |(_, to)| *to);
    html! {
        svg.hist width="100%" height="68" role="img" aria-label=(label) data-all=(all) {
            @if let Some((from, to)) = brush {
                rect.brush x=(percent(*from as f64, all)) y="0"
                    width=(percent((to - from + 1) as f64, all)) height=(HEIGHT) {}
            }
            @for (at, month) in months.iter().enumerate() {
                @let height = if month.count == 0 { 0 } else { (month.count * HEIGHT / most).max(2) };
                rect class=[month.is_in.then_some("in")] data-month=(month.name)
                    x=(percent(at as f64 + 0.09, all)) y=(HEIGHT - height)
                    width=(width) height=(height) {
                    title { (month.in_words()) }
                }
            }
            @for (at, label) in years(&names) {
                text x=(percent(at as f64, all)) y="66" { (label) }
            }
        }
        @if months.len() > 1 {
            div.ends {
                @for (id, label, at) in [("first", "First month", from), ("last", "Last month", to)] {
                    input id=(id) type="range" min="0" max=(all - 1.0) value=(at) aria-label=(label)
                        aria-valuetext=(months[at].in_words());
                }
            }
        }
    }
}

/// Returns the positions of the year labels, as many as have room.
fn years<'a>(months: &[&'a str]) -> Vec<(usize, &'a str)> {
    const MOST: usize = 8;

    let mut starts: Vec<(usize, &str)> = Vec::new();
    for (at, month) in months.iter().enumerate() {
        let year = month.split('-').next().unwrap_or_default();
        if starts.last().is_none_or(|(_, last)| *last != year) {
            starts.push((at, year));
        }
    }
    // The first label is left out if the second label would cover it.
    if starts.len() > 1 && (starts[1].0 as f64) < months.len() as f64 * 0.12 {
        starts.remove(0);
    }
    // A label at the right end would reach beyond the chart.
    starts.retain(|(at, _)| *at == 0 || (*at as f64) < months.len() as f64 * 0.94);
    let step = starts.len().div_ceil(MOST).max(1);
    starts.into_iter().step_by(step).collect()
}

/// The pixels of the highest value of a chart with lines at round numbers, and of its base.
const TALL: f64 = 176.0;
const FOOT: f64 = 184.0;

/// Returns the distance between the lines of a chart, and the value of its highest line, which is `most` or
/// above it.
fn scale(most: f64) -> (f64, f64) {
    let step = round_step(most);
    (step, (most / step - 1e-9).ceil() * step)
}

/// Draws the messages by month for the statistics; `address` is that of a search in a month.
pub(super) fn columns(months: &[(String, u64)], address: &dyn Fn(&str) -> String) -> Markup {
    let most = months.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let (step, top) = scale(most as f64);
    let all = months.len().max(FEWEST) as f64;
    let names: Vec<&str> = months.iter().map(|(name, _)| name.as_str()).collect();
    let label = "Messages by month; the numbers are in the table below";
    html! {
        svg.chart height="204" role="group" aria-label=(label) {
            // The lines are at round numbers.
            @for line in (0..=(top / step + 1e-9) as u64).map(|line| line as f64 * step) {
                @let y = FOOT - line / top * TALL;
                line.axis x1="0" x2="100%" y1=(format!("{y:.1}")) y2=(format!("{y:.1}")) {}
                text x="-8" y=(format!("{:.1}", y + 4.0)) text-anchor="end" { (grouped(line as usize)) }
            }
            @for (at, year) in years(&names) {
                text x=(percent(at as f64, all)) y=(FOOT + 17.0) { (year) }
            }
            @for (at, (name, count)) in months.iter().enumerate() {
                @if *count > 0 {
                    @let height = (*count as f64 / top * TALL).max(1.0);
                    // The table below has these links for the keyboard.
                    a href=(address(name)) tabindex="-1" {
                        rect.col x=(percent(at as f64 + 0.09, all)) y=(format!("{:.1}", FOOT - height))
                            width=(percent(0.82, all)) height=(format!("{height:.1}")) {
                            title { (month_name(name)) ": " (grouped(*count as usize)) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a round number that is about a quarter of `most`; at least 1.
fn round_step(most: f64) -> f64 {
    let steps = (0..).map(|n: i32| [1.0, 2.0, 5.0][n as usize % 3] * 10f64.powi(n / 3));
    steps.into_iter().find(|step| most / step < 6.0).unwrap_or(most)
}

pub(super) const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

pub(super) const HOURS: usize = 24;

pub(super) fn count_at(hours: &BTreeMap<i64, u64>, day: usize, hour: usize) -> u64 {
    hours.get(&((day * HOURS + hour) as i64)).copied().unwrap_or(0)
}

pub(crate) fn hour_name(hour: i64) -> String {
    let day = hour as usize / HOURS % DAYS.len();
    let hour = hour as usize % HOURS;
    format!("{} {hour}:00–{}:00", DAYS[day], hour + 1)
}

/// The number of shades, without the shade for 0.
const SHADES: usize = 5;

/// Returns the lowest count of each shade. The shades divide the hours that have messages into equal parts,
/// so that one busy hour does not hide the differences between the others.
fn shades(hours: &BTreeMap<i64, u64>) -> Vec<u64> {
    let mut counts: Vec<u64> = hours.values().copied().filter(|count| *count > 0).collect();
    counts.sort_unstable();
    let mut least: Vec<u64> =
        (0..SHADES).filter_map(|part| counts.get(part * counts.len() / SHADES)).copied().collect();
    least.dedup();
    least
}

/// Draws the messages by the hours of a week, counted from Monday 0:00: more messages, stronger colour.
/// `address` is that of a search in an hour.
pub(super) fn heat(hours: &BTreeMap<i64, u64>, address: &dyn Fn(i64) -> String) -> Markup {
    const ROW: usize = 22;

    let least = shades(hours);
    let most = hours.values().copied().max().unwrap_or(0);
    // The strongest colour stands for the most messages, however few shades there are.
    let weakest = SHADES - least.len();
    let busiest = hours.iter().find(|(_, count)| **count == most).map_or(0, |(hour, _)| *hour);
    let label = format!(
        "Messages by hour and weekday; most, {}, on {}; the numbers are in the table below",
        grouped(most as usize),
        hour_name(busiest)
    );
    let all = HOURS as f64;
    html! {
        div.heat {
            div aria-hidden="true" { @for day in DAYS { div { (day) } } }
            svg width="100%" height=(ROW * DAYS.len() + 18) role="group" aria-label=(label) {
                @for row in 0..DAYS.len() {
                    @for hour in 0..HOURS {
                        @let number = (row * HOURS + hour) as i64;
                        @let count = count_at(hours, row, hour);
                        @let shade = match least.partition_point(|least| *least <= count) {
                            0 => 0,
                            number => weakest + number,
                        };
                        @let cell = html! {
                            rect class=(format!("q{shade}")) x=(percent(hour as f64, all))
                                y=(row * ROW + 1) width=(percent(0.92, all)) height=(ROW - 2) rx="2" {
                                title { (hour_name(number)) ": " (grouped(count as usize)) }
                            }
                        };
                        @if count == 0 { (cell) } @else { a href=(address(number)) tabindex="-1" { (cell) } }
                    }
                }
                @for hour in (0..HOURS).step_by(6) {
                    text x=(percent(hour as f64, all)) y=(ROW * DAYS.len() + 14) { (hour) ":00" }
                }
            }
        }
        @if most > 0 {
            ul.legend.shades aria-label="Messages an hour of the week" {
                @for (place, from) in least.iter().enumerate() {
                    @let to = least.get(place + 1).map_or(most, |next| next - 1);
                    li class=(format!("q{}", weakest + place + 1)) {
                        span { (grouped(*from as usize)) @if to > *from { "–" (grouped(to as usize)) } }
                    }
                }
            }
        }
    }
}

pub(super) fn as_table(label: &str, head: &Markup, rows: &Markup) -> Markup {
    html! {
        details.fold {
            summary { "The same as a table" }
            div.scroll tabindex="0" role="group" aria-label=(label) {
                table { thead { tr { (head) } } tbody { (rows) } }
            }
        }
    }
}

/// Draws a bar of a table. Its name is the share of all.
pub(super) fn bar(count: u64, most: u64, all: u64) -> Markup {
    let share = format!("{:.0} %", count as f64 * 100.0 / all.max(1) as f64);
    html! {
        svg role="img" aria-label=(share) {
            title { (share) } rect width=(percent(count as f64, most as f64)) height="10" {} }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_divide_the_hours_into_equal_parts() {
        let address = |hour: i64| format!("/?hour={hour}");
        let cells = |drawn: &str, q: u32| drawn.matches(&format!("<rect class=\"q{q}\"")).count();
        // One busy hour does not level the others, and much alike is not all of one colour.
        let drawn = heat(&[(0, 1600), (1, 300), (2, 20)].into(), &address).into_string();
        assert_eq!([5, 4, 3, 2].map(|q| cells(&drawn, q)), [1, 1, 1, 0], "{drawn}");
        let even = (0..100).map(|hour| (hour, 1_000 + hour as u64)).collect();
        let drawn = heat(&even, &address).into_string();
        assert_eq!([0, 1, 2, 3, 4, 5].map(|q| cells(&drawn, q)), [68, 20, 20, 20, 20, 20]);
        assert!(drawn.contains("href=\"/?hour=99\"") && !drawn.contains("hour=100"), "{drawn}");
        assert!(drawn.contains("1,000–1,019") && drawn.contains("1,080–1,099"), "{drawn}");
        let none = heat(&BTreeMap::new(), &address).into_string();
        assert!(cells(&none, 0) == 168 && !none.contains("legend"), "{none}");
    }

    #[test]
    fn months_and_steps() {
        let counts = [("2024-11", 3), ("2025-02", 1), ("9999-01", 1), ("no time", 4)];
        let counts = counts.map(|(name, count)| (name.to_owned(), count)).into();
        let names: Vec<String> = months(&counts).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["2024-11", "2024-12", "2025-01", "2025-02", "9999-01"]);
        for (most, step) in [(1, 1), (5, 1), (6, 2), (11, 2), (12, 5), (99, 20), (5_000, 1_000)] {
            assert_eq!(round_step(f64::from(most)), f64::from(step), "{most}");
            // No value is above the highest line.
            assert!((most..most + step).contains(&(scale(f64::from(most)).1 as i32)), "{most}");
        }
        assert_eq!(month_name("2025-02"), "February 2025");
        assert!(histogram(&[]).into_string().is_empty());
    }
}
