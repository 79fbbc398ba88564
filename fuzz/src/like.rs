//! Our `LIKE` answers as SQLite's does, and a matching text holds the grams of its pattern.
//!
//! Input: a byte of settings, the pattern up to a NUL, the text.

use rusqlite::{Connection, params};
use verbatim_text::{
    grams::{CommonGrams, GramTokenizer, query_grams, wildcard_gaps},
    like::{LikePattern, is_regular},
    pattern::Pattern,
};

thread_local! {
    static SQLITE: Connection = Connection::open_in_memory().expect("a database in memory");
}

pub(super) fn run(data: &[u8]) {
    let Some((settings, data)) = data.split_first() else { return };
    let Some(end) = data.iter().position(|byte| *byte == 0) else { return };
    let (Ok(pattern), text) = (std::str::from_utf8(&data[..end]), &data[end + 1..]) else { return };
    let sensitive = settings & 1 == 1;
    let expected = SQLITE.with(|sqlite| {
        sqlite.pragma_update(None, "case_sensitive_like", sensitive).expect("a known pragma");
        // CAST keeps the bytes unchanged. A TEXT column holds invalid UTF-8 in the same way.
        let values = params![text, format!("%{pattern}%")];
        let like = "SELECT CAST(?1 AS TEXT) LIKE ?2";
        sqlite.query_row(like, values, |row| row.get::<_, bool>(0)).expect("LIKE answers")
    });
    let parsed = LikePattern::parse(pattern, sensitive);
    assert_eq!(parsed.matches_irregular(text), expected);
    if !is_regular(text) {
        return;
    }
    assert_eq!(parsed.matches(text), expected);
    let text = std::str::from_utf8(text).expect("regular text is UTF-8");
    let spans = parsed.spans(text);
    assert!(spans.is_empty() || expected);
    assert!(spans.iter().all(|span| text.get(span.clone()).is_some()));
    if !expected || sensitive {
        return;
    }
    let sample = [text; 3];
    let few = settings & 2 == 2;
    let sample = if few { Vec::new() } else { sample.to_vec() };
    let common = CommonGrams::from_sample(sample.into_iter());
    let mut held = Vec::new();
    GramTokenizer::default().tokenize(text, &common, |gram| held.push(gram));
    for gram in query_grams(&Pattern::parse(pattern), &common) {
        assert!(held.contains(&gram), "{gram} of {pattern:?} in {text:?}");
    }
    for gap in wildcard_gaps(&Pattern::parse(pattern)) {
        let mut fillings = text.chars().map(|c| c.to_ascii_lowercase());
        let fits = |c| gap.grams_filled_with(c, &common).iter().all(|gram| held.contains(gram));
        assert!(fillings.any(fits), "{gap:?} in {text:?}");
    }
}
