//! Syntax colours of code.

use std::time::{Duration, Instant};

use syntect::html::{ClassStyle, ClassedHTMLGenerator};
use syntect::{parsing::SyntaxReference, util::LinesWithEndings};

use super::mark::escaped;
use crate::markdown::{LANGUAGES, syntax_of};

const CLASSES: ClassStyle = ClassStyle::SpacedPrefixed { prefix: "s-" };

/// The time limit of colouring the code of a page; later code has no colours.
const MOST_TIME: Duration = Duration::from_millis(60);

/// The longest line that is coloured, in bytes. Longer lines are usually generated code.
const LONGEST_LINE: usize = 1_000;

/// The longest code block that is coloured, in bytes.
const MOST_BYTES: usize = 30_000;

pub(super) struct Highlighter {
    left: Duration,
}

impl Highlighter {
    pub(super) fn new() -> Highlighter {
        Highlighter::lasting(MOST_TIME)
    }

    pub(super) fn lasting(left: Duration) -> Highlighter {
        Highlighter { left }
    }

    pub(super) fn html(&mut self, code: &str, language: &str) -> String {
        let is_short = code.len() <= MOST_BYTES && code.lines().all(|l| l.len() <= LONGEST_LINE);
        if self.left.is_zero() || !is_short {
            return escaped(code);
        }
        let Some(syntax) = syntax_of(language) else { return escaped(code) };
        let begun = Instant::now();
        let html = coloured(code, syntax);
        self.left = self.left.saturating_sub(begun.elapsed());
        html.unwrap_or_else(|| escaped(code))
    }
}

fn coloured(code: &str, syntax: &SyntaxReference) -> Option<String> {
    let mut html = ClassedHTMLGenerator::new_with_class_style(syntax, &LANGUAGES, CLASSES);
    for line in LinesWithEndings::from(code) {
        html.parse_html_for_line_which_includes_newline(line).ok()?;
    }
    Some(html.finalize())
}
