//! Colours code blocks.
//!
//! The code uses the sixteen colours of the terminal, which are readable on light and dark backgrounds.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use syntect::easy::ScopeRegionIterator;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference};
use syntect::util::LinesWithEndings;

use super::text::StyledText;
use verbatim_server::markdown::{LANGUAGES, syntax_of};

/// The time limit of colouring code in an answer; later code has no colours.
const MOST_TIME: Duration = Duration::from_secs(1);

/// The longest line that is coloured, in bytes.
const LONGEST_LINE: usize = 2_000;

/// The colours of syntax scopes. The first entry that matches the innermost scope is used.
static COLOURS: LazyLock<Vec<(Scope, Style)>> = LazyLock::new(|| {
    let colours = [
        ("comment", Style::new().dimmed()),
        ("string", AnsiColor::Green.on_default()),
        ("constant.numeric", AnsiColor::Yellow.on_default()),
        ("constant.language", AnsiColor::Yellow.on_default()),
        ("constant.character", AnsiColor::Yellow.on_default()),
        ("keyword.operator", Style::new()),
        ("keyword", AnsiColor::Magenta.on_default()),
        ("storage", AnsiColor::Magenta.on_default()),
        ("entity.name", AnsiColor::Blue.on_default()),
        ("support", AnsiColor::Cyan.on_default()),
        ("markup.inserted", AnsiColor::Green.on_default()),
        ("markup.deleted", AnsiColor::Red.on_default()),
    ];
    colours.into_iter().filter_map(|(name, style)| Some((Scope::new(name).ok()?, style))).collect()
});

#[derive(Debug, Default)]
pub(crate) struct CodeHighlighter {
    spent: Cell<Duration>,
}

impl CodeHighlighter {
    /// Returns the lines of code, coloured if colours are on, the language is known and time is left.
    pub(super) fn highlighted(
        &self,
        code: &str,
        language: &str,
        is_coloured: bool,
    ) -> Vec<StyledText> {
        let begun = Instant::now();
        let mut analysis = None;
        if is_coloured && self.spent.get() < MOST_TIME {
            analysis = syntax_of(language).map(CodeAnalysis::new);
        }
        let mut lines = Vec::new();
        for line in LinesWithEndings::from(code) {
            let mut text = StyledText::default();
            let can_colour =
                line.len() <= LONGEST_LINE && self.spent.get() + begun.elapsed() < MOST_TIME;
            let coloured = analysis.as_mut().filter(|_| can_colour);
            if coloured.and_then(|analysis| analysis.line(line, &mut text)).is_none() {
                // The parser needs every line, so no line after a skipped line is coloured.
                analysis = None;
                text = StyledText::default();
                text.push(line.trim_end_matches('\n'), Style::new());
            }
            lines.push(text);
        }
        self.spent.set(self.spent.get() + begun.elapsed());
        lines
    }
}

struct CodeAnalysis {
    state: ParseState,
    stack: ScopeStack,
}

impl CodeAnalysis {
    fn new(syntax: &SyntaxReference) -> CodeAnalysis {
        CodeAnalysis { state: ParseState::new(syntax), stack: ScopeStack::new() }
    }

    /// Adds a line in its colours. Returns `None` if the line cannot be analysed.
    fn line(&mut self, line: &str, text: &mut StyledText) -> Option<()> {
        let operations = self.state.parse_line(line, &LANGUAGES).ok()?;
        for (piece, operation) in ScopeRegionIterator::new(&operations, line) {
            self.stack.apply(operation).ok()?;
            let piece = piece.trim_end_matches('\n');
            if !piece.is_empty() {
                text.push(piece, self.style());
            }
        }
        Some(())
    }

    fn style(&self) -> Style {
        let scopes = self.stack.as_slice().iter().rev();
        let mut known =
            scopes.filter_map(|scope| COLOURS.iter().find(|(known, _)| known.is_prefix_of(*scope)));
        known.next().map_or_else(Style::new, |(_, style)| *style)
    }
}
