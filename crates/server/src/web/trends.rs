//! The page that compares how often texts occur, month by month.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{
    ask::{Ask, fields},
    chart::{as_table, lines, month_name, months},
    facets::everything,
    frame::{Frame, Tab},
    scope::request,
    site::{Problem, Site},
};
use verbatim_base::model::Stop;
use verbatim_engine::{Choice, Note, Scope};
use verbatim_text::amount::grouped;

const MOST_TEXTS: usize = 5;

/// The number of messages to which a share refers: a share is a number per thousand messages.
const SHARE_OF: u64 = 1_000;

struct Wanted {
    texts: Vec<String>,
    is_share: bool,
}

struct Trend {
    text: String,
    all: u64,
    months: BTreeMap<String, u64>,
}

impl Wanted {
    fn parse(query: &str) -> Wanted {
        let texts = fields(query).filter(|(name, _)| name == "q").map(|(_, text)| text);
        let texts = texts.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let is_share = fields(query).any(|(name, value)| name == "per" && value == "1000");
        Wanted { texts: texts.take(MOST_TEXTS).collect(), is_share }
    }
}

pub(super) fn page(site: &Site, query: &str, stop: &Stop) -> Result<Markup, Problem> {
    let wanted = Wanted::parse(query);
    let (ask, stamp) = (Ask::default(), site.stamp());
    let (messages, zone) = (site.messages(stop), Some(site.clock().zone()));
    let frame = Frame { title: "Trends", tab: Tab::Statistics, ask: &ask, messages, zone, stamp };
    let all = site.totals(&Scope::default(), || everything(site, &Scope::default(), stop))?;
    let mut notes = Vec::new();
    let trends: Result<Vec<Trend>, Problem> =
        wanted.texts.iter().map(|text| trend(site, text, &mut notes, stop)).collect();
    let trends = trends?;
    Ok(frame.around(html! {
        div.page.plain {
            main #main {
                h1 { "Trends" }
                p { "How many messages hold a text, month by month. Up to " (MOST_TEXTS) " texts are compared, in any letter case." }
                (form(&wanted))
                @for note in &notes { p.say.warn { b { "Note" } " " (note.to_string()) "." } }
                @if !trends.is_empty() { (comparison(&wanted, &trends, &all.months)) }
                p.after { a href="/stats" { "All statistics" } }
            }
        }
    }))
}

fn trend(site: &Site, text: &str, notes: &mut Vec<Note>, stop: &Stop) -> Result<Trend, Problem> {
    let ask = Ask { q: text.to_owned(), ..Ask::default() };
    let clock = site.clock();
    let month = |time| clock.month(time);
    let choice = Choice { request: request(&ask), ..Choice::default() };
    let counts =
        site.engine.all_sources().facets(&choice, &*site.places(false, stop)?, &month, stop)?;
    if !counts.is_complete {
        let what = format!("Counting “{text}” took too long. Compare fewer texts, or longer ones.");
        return Err(Problem::Wrong(what));
    }
    for note in counts.notes.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>() {
        notes.push(note);
    }
    Ok(Trend { text: text.to_owned(), all: counts.messages, months: counts.months })
}

fn form(wanted: &Wanted) -> Markup {
    html! {
        form.row.trends action="/trends" method="get" {
            @for place in 0..MOST_TEXTS {
                input.field name="q" value=[wanted.texts.get(place)] dir="auto" autocomplete="off"
                    aria-label=(format!("Text {}", place + 1)) placeholder=(format!("Text {}", place + 1));
            }
            label { input type="checkbox" name="per" value="1000" checked[wanted.is_share]; " of every 1,000 messages" }
            button.btn { "Compare" }
        }
    }
}

fn comparison(wanted: &Wanted, trends: &[Trend], all: &BTreeMap<String, u64>) -> Markup {
    let months = months(all);
    let value = |trend: &Trend, month: &str, of: u64| {
        let count = trend.months.get(month).copied().unwrap_or(0);
        match wanted.is_share {
            true => count as f64 * SHARE_OF as f64 / of.max(1) as f64,
            false => count as f64,
        }
    };
    let of = |trend: &Trend| -> Vec<f64> {
        months.iter().map(|(month, of)| value(trend, month, *of)).collect()
    };
    let series: Vec<Vec<f64>> = trends.iter().map(of).collect();
    let names: Vec<&str> = months.iter().map(|(month, _)| month.as_str()).collect();
    let (least, what) = match wanted.is_share {
        true => (0.1, "Messages of every 1,000"),
        false => (1.0, "Messages"),
    };
    let shown = |value: f64| match wanted.is_share {
        true => format!("{value:.1}"),
        false => grouped(value as usize),
    };
    let head = html! { th scope="col" { "Month" } @for trend in trends { th.r scope="col" { bdi { (trend.text) } } } };
    let rows = html! {
        @for (at, name) in names.iter().enumerate().rev() {
            tr {
                th scope="row" { (month_name(name)) }
                @for values in &series { td.r { (shown(values[at])) } }
            }
        }
    };
    html! {
        section aria-label=(what) {
            h2 { (what) " by month" }
            ul.legend {
                @for (place, trend) in trends.iter().enumerate() {
                    li class=(format!("t{}", place + 1)) {
                        a href=(Ask { q: trend.text.clone(), ..Ask::default() }.address()) { bdi { (trend.text) } }
                        " " span.n { (grouped(trend.all as usize)) }
                    }
                }
            }
            (lines(&names, &series, least, what))
            (as_table(&format!("{what} by month"), &head, &rows))
        }
    }
}
