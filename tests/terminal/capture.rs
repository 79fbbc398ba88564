//! The picture of a search in the README: the program's own output on the sample, drawn as SVG.

use std::{fmt::Write, process::Command};

use crate::corpus::folder;

/// Columns of the terminal that is drawn.
const COLUMNS: usize = 92;

/// Pixels of a column and of a line.
const CELL: (f64, f64) = (8.4, 19.0);

/// The command that is drawn.
const COMMAND: [&str; 3] = ["search", "borrow", "checker"];

/// Returns a text with the characters escaped that XML gives a meaning.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the style that a sequence of SGR numbers selects.
fn style_of(numbers: &str) -> String {
    let mut style = String::new();
    for number in numbers.split(';') {
        style.push_str(match number {
            "1" => "font-weight:bold;",
            "2" => "opacity:.6;",
            "4" => "text-decoration:underline;",
            "31" | "91" => "fill:#ff7b72;",
            "32" | "92" => "fill:#7ee787;",
            "33" | "93" => "fill:#e3b341;",
            "34" | "94" => "fill:#79c0ff;",
            "35" | "95" => "fill:#d2a8ff;",
            "36" | "96" => "fill:#76e3ea;",
            _ => "",
        });
    }
    style
}

/// Returns a line of a terminal as SVG.
fn drawn(line: &str) -> String {
    let (mut out, mut style) = (String::new(), String::new());
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        add(&mut out, &style, &rest[..at]);
        let sequence = &rest[at + 1..];
        rest = match (sequence.strip_prefix('['), sequence.strip_prefix(']')) {
            (Some(sequence), _) => {
                let end =
                    sequence.find(|c: char| c.is_ascii_alphabetic()).expect("a whole sequence");
                style = style_of(&sequence[..end]);
                &sequence[end + 1..]
            }
            // A link: its address is not drawn.
            (None, Some(link)) => link.split_once("\u{1b}\\").map_or("", |(_, rest)| rest),
            (None, None) => sequence,
        };
    }
    add(&mut out, &style, rest);
    out
}

fn add(out: &mut String, style: &str, text: &str) {
    match (text.is_empty(), style.is_empty()) {
        (true, _) => {}
        (_, true) => out.push_str(&escaped(text)),
        (_, false) => write!(out, "<tspan style=\"{style}\">{}</tspan>", escaped(text)).unwrap(),
    }
}

#[test]
fn the_picture_in_the_readme_is_what_the_program_prints() {
    let home = folder();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().env("HOME", home.path()).env("TZ", "UTC").args(arguments);
        command.env("CLICOLOR_FORCE", "1").env("COLUMNS", COLUMNS.to_string());
        let output = command.current_dir(home.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let sample = home.path().join("sample");
    let at = ["--home", sample.to_str().unwrap()];
    run(&[&at[..], &["demo"]].concat());
    let sample = sample.join("demo");
    let at = ["--home", sample.to_str().unwrap()];
    let output = run(&[&at[..], &COMMAND, &["--color", "always"]].concat());
    let prompt = format!("\u{1b}[2m$\u{1b}[0m \u{1b}[1mverbatim {}\u{1b}[0m", COMMAND.join(" "));
    let lines: Vec<String> =
        [prompt.as_str()].into_iter().chain(output.lines()).map(drawn).collect();
    let (width, height) = (COLUMNS as f64 * CELL.0 + 32.0, lines.len() as f64 * CELL.1 + 32.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"verbatim {}\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"14\" \
         fill=\"#e6edf3\" xml:space=\"preserve\">\n",
        COMMAND.join(" ")
    );
    for (number, line) in lines.iter().enumerate() {
        let y = 16.0 + CELL.1 * (number as f64 + 0.75);
        writeln!(svg, "<text x=\"16\" y=\"{y:.1}\">{line}</text>").unwrap();
    }
    svg.push_str("</g>\n</svg>\n");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/search.svg");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &svg).unwrap();
    }
    let now = std::fs::read_to_string(path).unwrap_or_default();
    assert!(now == svg, "docs/search.svg differs; UPDATE=1 rewrites it:\n{svg}");
}
