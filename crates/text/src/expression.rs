//! Regular expressions with bounded memory.
//!
//! Parsing takes at most about 12 MB, and compiling up to three times the size of the compiled program.
//! Expressions are compiled one at a time, so many take little more. Matching takes linear time.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Mutex, OnceLock};

use regex_syntax::ParserBuilder;
use regex_syntax::ast::{self, AssertionKind, Ast, ClassSetItem};
use regex_syntax::hir::{Hir, HirKind};

use super::feasible::class_ranges;
use super::run_query::{RunQuery, gaps_of_expression};
use super::snippet;

use verbatim_base::lock::lock;

pub(crate) const MAX_PATTERN_BYTES: usize = 10_000;

/// The maximum size of a compiled expression in bytes. `\w{100}` takes 6 MB, a thousand names take 1 MB.
pub const MAX_PROGRAM_BYTES: usize = 12 << 20;

/// The maximum memory per thread for the states of a compiled expression. A thousand words take more than 1
/// MB. With too little memory, matching takes 50 times as long.
pub const MAX_STATES_BYTES: usize = 8 << 20;

/// The maximum number of classes (`[a-z]`, `\w`) in an expression. Parsing `\pL` takes 40 kB.
const MAX_CLASSES: usize = 300;

const MAX_EXPLANATION: usize = 1000;

/// A lock that is held during a compilation, so that many compilations take no more memory than one.
pub static COMPILING: Mutex<()> = Mutex::new(());

/// The reason why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(unnameable_types, reason = "programs read its message, in the errors that hold it")]
pub enum ExpressionError {
    /// The expression cannot be parsed. The text shows where.
    #[error("not a regular expression: {0}")]
    Syntax(String),
    /// The expression is too long.
    #[error("the regular expression is too long: {bytes} bytes, and at most {most} are read")]
    Long {
        /// The length of the expression in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        most: usize,
    },
    /// The expression has too many classes (`[a-z]`, `\w`).
    #[error("the regular expression has too many classes: {classes}, and at most {most} are read")]
    Classes {
        /// The number of classes in the expression.
        classes: usize,
        /// The maximum number of classes.
        most: usize,
    },
    /// The compiled expression would take too much memory.
    #[error(
        "the regular expression is too large: it would take more than {most} bytes of memory; \
         repeat less in it ({{…}})"
    )]
    Large {
        /// The maximum size in bytes.
        most: usize,
    },
}

impl ExpressionError {
    /// Converts an error message of the compiler to an error.
    pub fn from_compiler(pattern: &str, error: &str, most: usize) -> ExpressionError {
        if error.contains("size limit") {
            return ExpressionError::Large { most };
        }
        let own = ParserBuilder::new().utf8(false).build().parse(pattern);
        let text = own.map_or_else(|own| own.to_string(), |_| error.to_owned());
        // The message repeats the pattern, which may be very long.
        ExpressionError::Syntax(snippet::shortened(&text, MAX_EXPLANATION))
    }
}

/// Returns the expression that matches a text.
pub fn escaped(text: &str) -> String {
    regex_syntax::escape(text)
}

/// Refuses expressions that take much memory to parse.
pub fn check_size(pattern: &str) -> Result<(), ExpressionError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(ExpressionError::Long { bytes: pattern.len(), most: MAX_PATTERN_BYTES });
    }
    let pairs = pattern.as_bytes().windows(2);
    let classes = pairs
        .filter(|two| two[0] == b'[' || two[0] == b'\\' && two[1].is_ascii_alphabetic())
        .count();
    if classes <= MAX_CLASSES {
        Ok(())
    } else {
        Err(ExpressionError::Classes { classes, most: MAX_CLASSES })
    }
}

/// The matcher of a regular expression.
///
/// Classes of Unicode such as `\w` are large, and compiling one takes longer than most searches. So texts of
/// ASCII, which are often all that a search reads, have a program of their own, and the program for other
/// texts is compiled when the first of them comes.
#[derive(Debug)]
pub struct RegexPattern {
    pattern: String,
    case_sensitive: bool,
    can_be_empty: bool,
    most: usize,
    /// The program for texts of ASCII; `None` if the expression may mean something else in ASCII.
    of_ascii: Option<regex::bytes::Regex>,
    of_all: OnceLock<Program>,
    /// An expression without Unicode's word boundaries that matches whenever the program for all texts does.
    wider: OnceLock<Option<regex::bytes::Regex>>,
    runs: RunQuery,
    /// The runs before and after its gaps, as [`gaps_of_expression`] returns them.
    gaps: Vec<(String, String)>,
}

#[derive(Debug)]
enum Program {
    /// Matches bytes, without a check that they are UTF-8.
    Bytes(regex::bytes::Regex),
    /// For an expression that matches an empty text. Only this form never matches inside a character.
    Text(regex::Regex),
}

impl RegexPattern {
    /// Compiles an expression. The program takes at most `most` bytes.
    pub fn new(pattern: &str, case_sensitive: bool, most: usize) -> Result<Self, ExpressionError> {
        check_size(pattern)?;
        let alone = lock(&COMPILING);
        let hir = ParserBuilder::new()
            .multi_line(true)
            .case_insensitive(!case_sensitive)
            .build()
            .parse(pattern)
            .map_err(|error| {
                ExpressionError::from_compiler(pattern, &error.to_string(), MAX_PROGRAM_BYTES)
            })?;
        let is_cased = case_sensitive && pattern.contains(|c: char| c.is_ascii_uppercase());
        let mut this = RegexPattern {
            pattern: pattern.to_owned(),
            case_sensitive,
            can_be_empty: hir.properties().minimum_len() == Some(0),
            most,
            of_ascii: None,
            of_all: OnceLock::new(),
            wider: OnceLock::new(),
            runs: RunQuery::from_expression(&hir, is_cased),
            gaps: gaps_of_expression(&hir),
        };
        // A program that is surely small cannot be refused later.
        let is_small = most_program_bytes(&hir) <= most as u64;
        // A character beyond ASCII may have a case in ASCII.
        if is_small && literals(pattern).is_ascii() {
            this.of_ascii = this.bytes_builder(pattern).unicode(false).build().ok();
        }
        if this.of_ascii.is_none() {
            let program = this.compiled().map_err(|error| {
                ExpressionError::from_compiler(pattern, &error.to_string(), most)
            })?;
            this.of_all = OnceLock::from(program);
        }
        drop(alone);
        Ok(this)
    }

    fn bytes_builder(&self, pattern: &str) -> regex::bytes::RegexBuilder {
        let mut builder = regex::bytes::RegexBuilder::new(pattern);
        builder.multi_line(true).case_insensitive(!self.case_sensitive);
        builder.size_limit(self.most).dfa_size_limit(MAX_STATES_BYTES);
        builder
    }

    fn compiled(&self) -> Result<Program, regex::Error> {
        if !self.can_be_empty {
            return self.bytes_builder(&self.pattern).build().map(Program::Bytes);
        }
        let mut builder = regex::RegexBuilder::new(&self.pattern);
        builder.multi_line(true).case_insensitive(!self.case_sensitive);
        builder.size_limit(self.most).dfa_size_limit(MAX_STATES_BYTES);
        builder.build().map(Program::Text)
    }

    /// Returns the program for texts of ASCII, as long as the other is not compiled. The other reads most
    /// texts faster, up to four times.
    fn only_ascii(&self) -> Option<&regex::bytes::Regex> {
        self.of_ascii.as_ref().filter(|_| self.of_all.get().is_none())
    }

    fn program(&self) -> &Program {
        self.of_all.get_or_init(|| {
            let _alone = lock(&COMPILING);
            self.compiled().expect("it is small, and compiled for ASCII")
        })
    }

    fn wider(&self) -> Option<&regex::bytes::Regex> {
        let wider = self.wider.get_or_init(|| {
            let wider = without_unicode_boundaries(&self.pattern)?;
            let _alone = lock(&COMPILING);
            // Without this program, matching only takes longer.
            self.bytes_builder(&wider).build().ok()
        });
        wider.as_ref()
    }

    /// Returns the runs of characters that every matching text has.
    pub fn runs(&self) -> &RunQuery {
        &self.runs
    }

    /// Returns the runs before and after each gap: every matching text has them, with one character between.
    pub fn gaps(&self) -> impl Iterator<Item = (&str, &str)> {
        self.gaps.iter().map(|(left, right)| (left.as_str(), right.as_str()))
    }

    /// Returns whether the expression matches in `text`, which should be UTF-8.
    #[inline]
    pub fn matches(&self, text: &[u8]) -> bool {
        if let Some(program) = self.only_ascii()
            && text.is_ascii()
        {
            return program.is_match(text);
        }
        if !text.is_ascii() && self.wider().is_some_and(|wider| !wider.is_match(text)) {
            return false;
        }
        match self.program() {
            Program::Bytes(regex) => regex.is_match(text),
            Program::Text(regex) => str::from_utf8(text).is_ok_and(|text| regex.is_match(text)),
        }
    }

    /// Returns the byte spans of the first `most` matches in a text that are not empty.
    pub fn first_spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        let bytes = match self.only_ascii().filter(|_| text.is_ascii()) {
            Some(regex) => regex,
            None => match self.program() {
                Program::Bytes(regex) => regex,
                Program::Text(regex) => {
                    let found = regex.find_iter(text).map(|found| found.range());
                    return found.filter(|span| !span.is_empty()).take(most).collect();
                }
            },
        };
        let found = bytes.find_iter(text.as_bytes()).map(|found| found.range());
        found.filter(|span| !span.is_empty()).take(most).collect()
    }
}

/// Returns more bytes than the program of an expression takes: several times its size.
fn most_program_bytes(hir: &Hir) -> u64 {
    const OF_STATE: u64 = 256;
    /// A class takes a state for each byte of its UTF-8 sequences, even if it has one range.
    const OF_CLASS: u64 = 8 << 10;
    const OF_RANGE: u64 = 400;

    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => OF_STATE,
        HirKind::Literal(literal) => OF_STATE * (literal.0.len() as u64 + 1),
        HirKind::Class(class) => OF_CLASS + OF_RANGE * class_ranges(class).len() as u64,
        HirKind::Capture(capture) => most_program_bytes(&capture.sub).saturating_add(2 * OF_STATE),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(most_program_bytes).fold(OF_STATE, u64::saturating_add)
        }
        HirKind::Repetition(repetition) => {
            let copies = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            let sub = most_program_bytes(&repetition.sub).saturating_add(OF_STATE);
            sub.saturating_mul(copies.into())
        }
    }
}

/// Returns an expression that matches in every text in which `pattern` does, and has only word boundaries of
/// ASCII; `None` if the pattern has no word boundaries.
///
/// The crate `regex` compiles Unicode's word boundaries to automata that stop at characters that are not
/// ASCII. After such a character it matches about thirty times as slowly. At every boundary, one of the two
/// characters beside it belongs to no word, and so to no ASCII word. Half boundaries of ASCII check exactly
/// this.
fn without_unicode_boundaries(pattern: &str) -> Option<String> {
    struct BoundaryFinder(Vec<(Range<usize>, &'static str)>);

    impl ast::Visitor for BoundaryFinder {
        type Output = Vec<(Range<usize>, &'static str)>;
        type Err = ();

        fn finish(self) -> Result<Self::Output, ()> {
            Ok(self.0)
        }

        fn visit_pre(&mut self, ast: &Ast) -> Result<(), ()> {
            let Ast::Assertion(assertion) = ast else { return Ok(()) };
            let wider = match assertion.kind {
                AssertionKind::WordBoundary => r"(?-u:\b{start-half}|\b{end-half})",
                AssertionKind::WordBoundaryStart
                | AssertionKind::WordBoundaryStartAngle
                | AssertionKind::WordBoundaryStartHalf => r"(?-u:\b{start-half})",
                AssertionKind::WordBoundaryEnd
                | AssertionKind::WordBoundaryEndAngle
                | AssertionKind::WordBoundaryEndHalf => r"(?-u:\b{end-half})",
                AssertionKind::NotWordBoundary => "(?:)",
                _ => return Ok(()),
            };
            self.0.push((assertion.span.start.offset..assertion.span.end.offset, wider));
            Ok(())
        }
    }

    let ast = ast::parse::Parser::new().parse(pattern).ok()?;
    let boundaries = ast::visit(&ast, BoundaryFinder(Vec::new())).ok()?;
    let mut text = String::new();
    let mut end = 0;
    for (span, wider) in &boundaries {
        text.push_str(&pattern[end..span.start]);
        text.push_str(wider);
        end = span.end;
    }
    if boundaries.is_empty() { None } else { Some(text + &pattern[end..]) }
}

/// Returns the literal characters of an expression, and the ends of its ranges. Letters of escapes such as
/// `\W` are none.
pub fn literals(pattern: &str) -> String {
    struct Literals(String);

    impl ast::Visitor for Literals {
        type Output = String;
        type Err = Infallible;

        fn finish(self) -> Result<String, Infallible> {
            Ok(self.0)
        }

        fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
            if let Ast::Literal(literal) = ast {
                self.0.push(literal.c);
            }
            Ok(())
        }

        fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
            match item {
                ClassSetItem::Literal(literal) => self.0.push(literal.c),
                ClassSetItem::Range(range) => self.0.extend([range.start.c, range.end.c]),
                _ => {}
            }
            Ok(())
        }
    }

    match parsed(pattern) {
        Some(ast) => visited(&ast, Literals(String::new())),
        None => String::new(),
    }
}

/// Returns whether a text looks as if it was meant as a regular expression: it is one, and has an alternation,
/// a class, an anchor, or a repetition of any character or of a group.
pub fn is_expression(text: &str) -> bool {
    struct Signs(bool);

    impl ast::Visitor for Signs {
        type Output = bool;
        type Err = Infallible;

        fn finish(self) -> Result<bool, Infallible> {
            Ok(self.0)
        }

        fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
            self.0 |= match ast {
                Ast::Alternation(_)
                | Ast::Assertion(_)
                | Ast::ClassUnicode(_)
                | Ast::ClassPerl(_)
                | Ast::ClassBracketed(_) => true,
                Ast::Repetition(repetition) => {
                    matches!(*repetition.ast, Ast::Dot(_) | Ast::Group(_))
                }
                _ => false,
            };
            Ok(())
        }
    }

    parsed(text).is_some_and(|ast| visited(&ast, Signs(false)))
}

fn parsed(pattern: &str) -> Option<Ast> {
    check_size(pattern).ok()?;
    ast::parse::Parser::new().parse(pattern).ok()
}

fn visited<V: ast::Visitor<Err = Infallible>>(ast: &Ast, visitor: V) -> V::Output {
    ast::visit(ast, visitor).unwrap_or_else(|never| match never {})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_were_meant_as_expressions() {
        for text in
            ["error|fail", "error.*fail", r"\d+ ms", "^error", "[Tt]imeout", "(ab)+", "end$"]
        {
            assert!(is_expression(text), "{text}");
        }
        for text in ["tomato sun", "how are you?", "c++", "1.5", "f(x)", "(", "a*b", ""] {
            assert!(!is_expression(text), "{text}");
        }
    }

    #[test]
    fn literal_characters() {
        for (pattern, expected) in [
            ("aBc", "aBc"),
            (r"\W\S\D\pL", ""),
            ("[a-zA-Z]", "azAZ"),
            ("[[:upper:]]x", "x"),
            ("é|É", "éÉ"),
            ("(", ""),
        ] {
            assert_eq!(literals(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn what_is_surely_small_is_compiled_for_all_texts_too() {
        const MOST: usize = 1 << 20;

        let parts = [
            ".", "(?s).", "[^a]", r"\w", r"\W", r"\D", r"\S", "k", "[a-z]", "(a.|b)", "(?:a?.)*",
            "",
        ];
        for (part, case_sensitive) in parts.iter().flat_map(|part| [(part, true), (part, false)]) {
            let mut delayed = 0;
            // Steps of a tenth come close to the limit.
            for copies in (0..110).map(|step| 1.1_f64.powi(step) as u32) {
                let pattern = format!("x(?:{part}){{{copies}}}");
                let Ok(own) = RegexPattern::new(&pattern, case_sensitive, MOST) else { break };
                delayed += usize::from(own.of_ascii.is_some());
                assert!(!own.matches("é".as_bytes()), "{pattern}");
            }
            assert!(delayed > 0, "{part}");
        }
        for pattern in ["a{4294967295,}", "((((a{9999}){9999}){9999}){9999}){9999}"] {
            assert!(RegexPattern::new(pattern, true, MOST).is_err(), "{pattern}");
        }
    }

    #[test]
    fn texts_of_ascii_match_as_all_texts_do() {
        let own = |pattern: &str, case_sensitive| {
            RegexPattern::new(pattern, case_sensitive, MAX_PROGRAM_BYTES).expect("small")
        };
        for pattern in [
            r"\w+\b",
            r"[^k]",
            r"(?u)\W",
            r"\bK\d",
            "s{2}",
            ".",
            "x*",
            r"\s$",
            "[[:alpha:]]",
            r"[\w--a]",
        ] {
            for case_sensitive in [false, true] {
                let own = own(pattern, case_sensitive);
                let ascii = own.of_ascii.as_ref().expect("it is an expression of ASCII");
                for byte in 0..0x80u8 {
                    let text = format!("{}s1 K{0}ka\n", char::from(byte));
                    let expected = match own.program() {
                        Program::Bytes(regex) => regex.is_match(text.as_bytes()),
                        Program::Text(regex) => regex.is_match(&text),
                    };
                    assert_eq!(ascii.is_match(text.as_bytes()), expected, "{pattern} {text:?}");
                }
            }
        }
        // These letters have a case in ASCII, and `\pL` is no class of ASCII.
        for pattern in ["\u{17F}", r"\x{212A}", "[\u{17F}-\u{180}]", r"\pL", r"\w{60}"] {
            let own = own(pattern, false);
            assert!(own.of_ascii.is_none() && own.of_all.get().is_some(), "{pattern}");
        }
        assert!(own("\u{17F}", false).matches(b"S") && own(r"\x{212A}", false).matches(b"k"));
    }

    #[test]
    fn expressions_without_boundaries_of_unicode_match_all_that_the_others_do() {
        assert_eq!(without_unicode_boundaries("[a-z]+é"), None);
        let some: Vec<char> = "ae_1 -éж日\u{301}'\n".chars().collect();
        let patterns = r"\b \B \ba a\b \bé é\b \b.a.\b \b\w{2}\b \b\W\b a\Be \<a a\> \b{start}[aж] [eж]\b{end}
            (\ba|e\b)*1 \b{start-half}é 日\b{end-half} (?-u:\b)a (?:\b|é)+a ^\b.\b$ (?x)\b#\b";
        for pattern in patterns.split_whitespace() {
            let wider = without_unicode_boundaries(pattern).expect("it has a boundary");
            assert!(!wider.contains(r"\B"), "{wider}");
            let own = RegexPattern::new(pattern, true, MAX_PROGRAM_BYTES);
            let own = own.expect("a small expression");
            assert!(own.wider().is_some(), "{pattern}: {wider}");
            let expected = regex::RegexBuilder::new(pattern).multi_line(true).build();
            let expected = expected.expect("a small expression");
            for number in 0..some.len().pow(4) {
                let places = (0..4).map(|digit| number / some.len().pow(digit) % some.len());
                let text: String = places.map(|place| some[place]).collect();
                let found = own.matches(text.as_bytes());
                assert_eq!(found, expected.is_match(&text), "{pattern}: {text:?}");
            }
        }
    }

    #[test]
    fn wrong_expressions_are_explained() {
        let error = |pattern: &str| RegexPattern::new(pattern, false, MAX_PROGRAM_BYTES).err();
        let text = error("foo(bar").expect("a parenthesis is open").to_string();
        assert!(text.contains("unclosed group") && text.contains("foo(bar\n"), "{text}");
        assert!(matches!(error(r"(?:\w{100}){100}"), Some(ExpressionError::Large { .. })));
        let long = error(&"x".repeat(MAX_PATTERN_BYTES + 1));
        assert!(matches!(long, Some(ExpressionError::Long { .. })), "{long:?}");
        assert!(error(r"(?-u:\xFF)").is_some());
        let classes = error(&r"\d".repeat(301)).expect("so many classes are refused");
        assert!(
            classes.to_string().ends_with("classes: 301, and at most 300 are read"),
            "{classes}"
        );
    }
}
