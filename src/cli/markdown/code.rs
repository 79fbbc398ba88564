//! Colours code blocks.
//!
//! The code uses the sixteen colours of the terminal, which are readable on light and dark backgrounds.

use std::{
    cell::Cell,
    sync::OnceLock,
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use syntect::{
    easy::ScopeRegionIterator,
    parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet},
    util::LinesWithEndings,
};

use super::text::StyledText;

/// The time limit of colouring code in an answer; later code has no colours.
const MOST_TIME: Duration = Duration::from_secs(1);

/// The longest line that is coloured, in bytes.
const LONGEST_LINE: usize = 2_000;

/// The colours of syntax scopes. The first entry that matches the innermost scope is used.
const COLOURS: [(&str, Style); 12] = [
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

/// Colours code. The syntax definitions are loaded for the first code block.
#[derive(Debug, Default)]
pub(crate) struct CodeHighlighter {
    syntaxes: OnceLock<Syntaxes>,
    /// The total time of colouring so far.
    taken: Cell<Duration>,
}

#[derive(Debug)]
struct Syntaxes {
    set: SyntaxSet,
    colours: Vec<(Scope, Style)>,
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
        let is_in_time = || self.taken.get() + begun.elapsed() < MOST_TIME;
        let syntaxes = || self.syntaxes.get_or_init(Syntaxes::load);
        let mut analysis = match is_coloured && !language.is_empty() && is_in_time() {
            true => syntaxes().analysis(language),
            false => None,
        };
        let mut lines = Vec::new();
        for line in LinesWithEndings::from(code) {
            let mut text = StyledText::default();
            let coloured = analysis.as_mut().filter(|_| line.len() <= LONGEST_LINE && is_in_time());
            if coloured.and_then(|analysis| analysis.line(line, &mut text)).is_none() {
                // The parser needs every line, so no line after a skipped line is coloured.
                analysis = None;
                text = StyledText::default();
                text.push(line.trim_end_matches('\n'), Style::new());
            }
            lines.push(text);
        }
        self.taken.set(self.taken.get() + begun.elapsed());
        lines
    }
}

impl Syntaxes {
    fn load() -> Syntaxes {
        let scope = |(name, style): (&str, Style)| Some((Scope::new(name).ok()?, style));
        let colours = COLOURS.into_iter().filter_map(scope).collect();
        Syntaxes { set: SyntaxSet::load_defaults_newlines(), colours }
    }

    fn analysis(&self, language: &str) -> Option<CodeAnalysis<'_>> {
        let syntax: &SyntaxReference = self.set.find_syntax_by_token(language)?;
        Some(CodeAnalysis {
            syntaxes: self,
            state: ParseState::new(syntax),
            stack: ScopeStack::new(),
        })
    }
}

/// The syntax analysis of one code block, line by line.
struct CodeAnalysis<'a> {
    syntaxes: &'a Syntaxes,
    state: ParseState,
    stack: ScopeStack,
}

impl CodeAnalysis<'_> {
    /// Adds a line in its colours. Returns `None` if the line cannot be analysed.
    fn line(&mut self, line: &str, text: &mut StyledText) -> Option<()> {
        let operations = self.state.parse_line(line, &self.syntaxes.set).ok()?;
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
        let style_of = |scope: &Scope| {
            let colours = self.syntaxes.colours.iter();
            colours
                .into_iter()
                .find(|(known, _)| known.is_prefix_of(*scope))
                .map(|(_, style)| *style)
        };
        self.stack.as_slice().iter().rev().find_map(style_of).unwrap_or_default()
    }
}
