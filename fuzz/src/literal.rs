//! The search for a text in any case finds what a regular expression finds, and a matching text holds
//! the grams of what is looked for.
//!
//! Input: a byte of settings, what is looked for up to a NUL, the text.

use std::ops::Range;

use regex::RegexBuilder;
use verbatim_text::{
    grams::{CommonGrams, GramTokenizer, query_grams},
    literal::LiteralPattern,
    matcher::Matcher,
    pattern::Pattern,
};

/// The most spans that are compared.
const MOST: usize = 20;

pub(super) fn run(data: &[u8]) {
    let Some((settings, data)) = data.split_first() else { return };
    let Some(end) = data.iter().position(|byte| *byte == 0) else { return };
    let (Ok(wanted), bytes) = (std::str::from_utf8(&data[..end]), &data[end + 1..]) else { return };
    if wanted.is_empty() {
        return;
    }
    let sensitive = settings & 1 == 1;
    let mut expression = RegexBuilder::new(&regex::escape(wanted));
    let Ok(expression) = expression.case_insensitive(!sensitive).build() else { return };
    let text = &*String::from_utf8_lossy(bytes);
    let expected: Vec<Range<usize>> =
        expression.find_iter(text).take(MOST).map(|found| found.range()).collect();
    let pattern = LiteralPattern::new(wanted, sensitive);
    assert_eq!(pattern.first_spans(text, MOST), expected, "{wanted:?} in {text:?}");
    assert_eq!(pattern.first_spans(text, 1), expected[..expected.len().min(1)]);
    assert_eq!(pattern.matches(text.as_bytes()), !expected.is_empty(), "{wanted:?} in {text:?}");
    assert_eq!(
        Matcher::Literal(pattern).matches_irregular(bytes),
        !expected.is_empty(),
        "{wanted:?} in {bytes:?}"
    );
    if expected.is_empty() {
        return;
    }
    let sample = if settings & 2 == 2 { Vec::new() } else { vec![text; 3] };
    let common = CommonGrams::from_sample(sample.into_iter());
    let mut held = Vec::new();
    GramTokenizer::default().tokenize(text, &common, |gram| held.push(gram));
    for gram in query_grams(&Pattern::literal(wanted), &common) {
        assert!(held.contains(&gram), "{gram} of {wanted:?} in {text:?}");
    }
}
