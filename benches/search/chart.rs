//! The medians as bars on a logarithmic scale, in SVG with colours for light and dark backgrounds.

use std::fmt::Write;

use crate::race::Heat;
use crate::report::{OURS, Results, SIDES, thousands, time};

const WIDTH: f64 = 860.0;
/// Where bars begin, after the classes' names.
const LEFT: f64 = 200.0;
/// The space for the number at the end of the longest bar.
const RIGHT: f64 = 64.0;
const TOP: f64 = 64.0;
const BAR: f64 = 9.0;
const GAP: f64 = 10.0;

/// The scale's ends, as powers of ten of microseconds: 1 µs and 10 s.
const DECADES: (i32, i32) = (0, 7);

const STYLE: &str = "
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .figure { font-size: 9px; fill: #57606a; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .side0 { fill: #b8860b; } .side1 { fill: #8c96a0; } .side2 { fill: #6f7bd0; } .side3 { fill: #a05fc0; } .side4 { fill: #1a9e5c; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .figure { fill: #9ba5b0; }
    .grid { stroke: #3d444d; }
    .side0 { fill: #d9a62e; } .side1 { fill: #7d8790; } .side2 { fill: #8b96ee; } .side3 { fill: #bd86d8; } .side4 { fill: #35c67e; }
  }
";

/// Returns the chart.
pub(crate) fn svg(results: &Results) -> String {
    let mut svg = String::new();
    // Writing into a String does not fail.
    let _ = write_svg(results, &mut svg);
    svg
}

fn write_svg(results: &Results, svg: &mut String) -> std::fmt::Result {
    let group = SIDES.len() as f64 * BAR + GAP;
    let bottom = TOP + results.heats.len() as f64 * group;
    let height = bottom + 28.0;
    writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">"#
    )?;
    writeln!(svg, "<title>Median time of an exact search, by kind of query</title>")?;
    writeln!(svg, "<style>{STYLE}</style>")?;
    legend(results, svg)?;
    for decade in DECADES.0..=DECADES.1 {
        let micros = 10f64.powi(decade);
        let x = x(micros);
        writeln!(
            svg,
            r#"<line class="grid" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{bottom}"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            bottom + 18.0,
            tick(decade)
        )?;
    }
    for (at, heat) in results.heats.iter().enumerate() {
        bars(heat, TOP + GAP / 2.0 + at as f64 * group, svg)?;
    }
    writeln!(svg, "</svg>")
}

fn legend(results: &Results, svg: &mut String) -> std::fmt::Result {
    writeln!(
        svg,
        r#"<text x="12" y="22" font-weight="600">Time to the newest 50 matching messages, {} messages, {:.0} MB of text; each line is ten times the one before</text>"#,
        thousands(results.corpus.messages),
        results.corpus.bytes as f64 / 1e6
    )?;
    for (at, side) in SIDES.iter().enumerate() {
        let x = LEFT + 128.0 * at as f64;
        writeln!(
            svg,
            r#"<rect class="side{at}" x="{x}" y="36" width="12" height="12" rx="2"/><text x="{}" y="46">{side}</text>"#,
            x + 18.0
        )?;
    }
    Ok(())
}

fn bars(heat: &Heat, top: f64, svg: &mut String) -> std::fmt::Result {
    let middle = top + SIDES.len() as f64 * BAR / 2.0 + 4.0;
    writeln!(
        svg,
        r#"<text x="{}" y="{middle:.1}" text-anchor="end">{}</text>"#,
        LEFT - 10.0,
        escape(&heat.class)
    )?;
    for side in 0..SIDES.len() {
        let Some(figures) = heat.figures.get(side).and_then(Option::as_ref) else { continue };
        let (y, end) = (top + side as f64 * BAR, x(figures.median));
        let weight = if side == OURS { r#" font-weight="700""# } else { "" };
        writeln!(
            svg,
            r#"<rect class="side{side}" x="{LEFT}" y="{y:.1}" width="{:.1}" height="{}" rx="1.5"/><text class="figure" x="{:.1}" y="{:.1}"{weight}>{}</text>"#,
            end - LEFT,
            BAR - 1.0,
            end + 4.0,
            y + BAR - 1.5,
            time(figures.median)
        )?;
    }
    Ok(())
}

/// Returns where on the scale `micros` is.
fn x(micros: f64) -> f64 {
    let (first, last) = (f64::from(DECADES.0), f64::from(DECADES.1));
    let share = (micros.log10() - first) / (last - first);
    LEFT + share.clamp(0.002, 1.0) * (WIDTH - LEFT - RIGHT)
}

fn tick(decade: i32) -> String {
    let unit = ["µs", "ms", "s"][decade as usize / 3];
    format!("{} {unit}", 10usize.pow(decade as u32 % 3))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
