//! Makes the query for the documents that may match a request. It may find too many, but misses none.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    document::{self, MESSAGE},
    layout::{LONG_GRAM, LONGEST_GRAM},
};
use crate::{
    model::{Matching, Request},
    text::{
        fold::fold,
        matcher::{Matchers, texts},
        pattern::Pattern,
        run_query::RunQuery,
    },
};

/// The most grams of a run that are looked up.
const MOST_GRAMS: usize = 64;

/// The most grams of a run that are looked up in long texts.
const MOST_LONG_GRAMS: usize = 16;

/// The most grams of a whole request. A cluster takes some 1,000 clauses.
const MOST_CLAUSES: usize = 800;

/// The most grams with gaps of a text. For each of them, a cluster looks for the grams that fill the gap.
const MOST_GAPS: usize = 8;

/// The most conversations with matching titles that a query names. If more titles match, every message
/// is a candidate; then there are hits everywhere.
const MOST_TITLES: usize = 16_000;

/// How a cluster looks up the grams that fill a gap: it merges the most common of them while it reads, and
/// stops early. Otherwise it would first collect the documents of all. The text is as it is in a request.
pub(super) const GAP_REWRITE: &str = r#""rewrite":"constant_score_blended","#;

/// Returns the query of the documents that may match, with the filters of the request. `has_odd` tells
/// whether there are documents without reliable grams.
///
/// `titled` returns the hashes of the conversations whose titles match the matcher at a place in the
/// list of alternative texts, followed by the required texts.
pub(super) fn candidates(
    request: &Request,
    matchers: &Matchers,
    has_odd: bool,
    titled: &mut dyn FnMut(usize) -> Vec<i64>,
) -> Value {
    let [any, all] = matchers.runs(request);
    let [any_texts, all_texts, _] = texts(request);
    let texts = [any_texts, all_texts].concat();
    let mut left = MOST_CLAUSES;
    let mut clause = |place: usize, runs: &RunQuery| {
        let query = of_runs(runs, &mut left)?;
        let titles = titled(place);
        if titles.len() > MOST_TITLES {
            return None;
        }
        let mut needed = vec![query];
        if request.matching == Matching::Like {
            needed.extend(texts.get(place).into_iter().flat_map(|text| of_gaps(text)));
        }
        let query = json!({ "bool": { "filter": needed } });
        let mut one_of = vec![query];
        if has_odd {
            one_of.push(json!({ "term": { "odd": true } }));
        }
        if !titles.is_empty() {
            one_of.push(json!({ "terms": { "c": titles } }));
        }
        Some(json!({ "bool": { "should": one_of, "minimum_should_match": 1 } }))
    };
    let mut filters = vec![json!({ "term": { "kind": MESSAGE } })];
    let first_needed = any.len();
    // If any message may have one of the alternative texts, the others narrow nothing.
    let any: Option<Vec<Value>> =
        any.iter().enumerate().map(|(place, runs)| clause(place, runs)).collect();
    if let Some(any) = any.filter(|any| !any.is_empty()) {
        filters.push(json!({ "bool": { "should": any, "minimum_should_match": 1 } }));
    }
    let needed = all.iter().enumerate();
    filters.extend(needed.filter_map(|(place, runs)| clause(first_needed + place, runs)));
    if !request.roles.is_empty() {
        let roles: Vec<i64> = request.roles.iter().map(|role| document::hash(role)).collect();
        filters.push(json!({ "terms": { "rh": roles } }));
    }
    // The query compares whole seconds; the client compares the nanoseconds.
    if let Some(since) = request.since {
        filters.push(json!({ "range": { "s": { "gte": since.seconds } } }));
    }
    if let Some(until) = request.until {
        filters.push(json!({ "range": { "s": { "lte": until.seconds } } }));
    }
    json!({ "bool": { "filter": filters } })
}

/// Returns the query for texts that contain some runs of characters; `None` if any text may match.
fn of_runs(runs: &RunQuery, left: &mut usize) -> Option<Value> {
    match runs {
        RunQuery::Anything => None,
        RunQuery::Run(run) => of_run(run, left),
        RunQuery::All(parts) => {
            let all: Vec<Value> = parts.iter().filter_map(|part| of_runs(part, left)).collect();
            (!all.is_empty()).then(|| json!({ "bool": { "filter": all } }))
        }
        RunQuery::OneOf(parts) => {
            let any: Option<Vec<Value>> = parts.iter().map(|part| of_runs(part, left)).collect();
            Some(json!({ "bool": { "should": any?, "minimum_should_match": 1 } }))
        }
    }
}

fn of_run(run: &str, left: &mut usize) -> Option<Value> {
    // A text with a NUL is always looked at, and no other has one.
    let parts = run.split('\0').filter(|part| !part.is_empty());
    let (mut grams, mut long): (BTreeSet<String>, BTreeSet<String>) = Default::default();
    for part in parts {
        let letters: Vec<char> = part.chars().collect();
        // A run that is shorter than a gram is a gram itself.
        let length = letters.len().min(LONGEST_GRAM);
        grams.extend(letters.windows(length).map(|gram| gram.iter().collect::<String>()));
        long.extend(letters.windows(LONG_GRAM).map(|gram| gram.iter().collect::<String>()));
    }
    let is_of_one = |gram: &&String| gram.chars().all(|letter| gram.starts_with(letter));
    let mut of_short = some_terms(field, &grams, MOST_GRAMS);
    of_short.extend(long.iter().filter(is_of_one).map(|gram| json!({ "term": { "h": gram } })));
    let of_long = some_terms(|_| "h", &long, MOST_LONG_GRAMS);
    let count = of_short.len() + of_long.len();
    if grams.is_empty() || count > *left {
        return None;
    }
    *left -= count;
    if of_long.is_empty() {
        return Some(json!({ "bool": { "filter": of_short } }));
    }
    let is_long = json!({ "term": { "long": true } });
    let short = json!({ "bool": { "filter": of_short, "must_not": is_long } });
    let long = json!({ "bool": { "filter": of_long } });
    Some(json!({ "bool": { "should": [short, long], "minimum_should_match": 1 } }))
}

/// Returns the clauses of the grams that a pattern has around a `_`, which stands for one character.
fn of_gaps(text: &str) -> Vec<Value> {
    let (mut short, mut long) = (BTreeSet::new(), BTreeSet::new());
    for segment in Pattern::parse(text).segments {
        // No text with grams has a NUL.
        let letters = segment.runs.join("_");
        let letters: Vec<Option<char>> = letters
            .chars()
            .map(|it| Some(fold(it)).filter(|it| !matches!(it, '_' | '\0')))
            .collect();
        let add = |grams: &mut BTreeSet<String>, length: usize, fewest: usize| {
            for gram in letters.windows(length) {
                let known = gram.iter().flatten().count();
                // A gram that begins or ends with the gap says no more than a shorter one.
                let is_around = gram[0].is_some() && gram[length - 1].is_some();
                if is_around && known >= fewest && known < length {
                    grams.insert(gram.iter().map(wildcard).collect());
                }
            }
        };
        add(&mut short, LONGEST_GRAM, LONGEST_GRAM - 1);
        add(&mut long, LONG_GRAM, LONG_GRAM - 2);
    }
    let clause = |field: &'static str| {
        move |gram: &String| {
            json!({ "wildcard": { field: { "rewrite": "constant_score_blended", "value": gram } } })
        }
    };
    let mut all: Vec<Value> = short.iter().take(MOST_GAPS).map(clause("g")).collect();
    let of_long: Vec<Value> = long.iter().take(MOST_GAPS).map(clause("h")).collect();
    if !of_long.is_empty() {
        let is_short = json!({ "bool": { "must_not": { "term": { "long": true } } } });
        let long = json!({ "bool": { "filter": of_long } });
        all.push(json!({ "bool": { "should": [is_short, long], "minimum_should_match": 1 } }));
    }
    all
}

/// Returns a character for the pattern of a wildcard query, escaped; `?` for a gap.
fn wildcard(letter: &Option<char>) -> String {
    match letter {
        None => "?".to_owned(),
        Some(letter @ ('*' | '?' | '\\')) => format!("\\{letter}"),
        Some(letter) => letter.to_string(),
    }
}

/// Returns the clauses of some of the grams of a run, evenly spread.
fn some_terms(
    field: impl Fn(&str) -> &'static str,
    grams: &BTreeSet<String>,
    most: usize,
) -> Vec<Value> {
    let step = grams.len().div_ceil(most).max(1);
    grams.iter().step_by(step).map(|gram| json!({ "term": { field(gram): gram } })).collect()
}

/// Returns the field of a gram of at most three characters.
fn field(gram: &str) -> &'static str {
    if gram.chars().nth(1).is_some() { "g" } else { "o" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Matching;

    /// Long texts are found by grams of five characters, and every text by one letter five times in a row.
    #[test]
    fn longer_grams_narrow_what_common_ones_propose() {
        let of = |run: &str| {
            let mut left = MOST_CLAUSES;
            of_run(run, &mut left).expect("grams").to_string()
        };
        assert!(!of("ther").contains("long"));
        assert!(of("t").contains(r#"{"o":"t"}"#) && of("th").contains(r#"{"g":"th"}"#));
        let query = of("there a");
        for part in [r#"{"g":"her"}"#, r#"{"h":"there"}"#, r#"{"h":"ere a"}"#, r#"{"long":true}"#] {
            assert!(query.contains(part), "{query}");
        }
        let of_one = r#"{"bool":{"filter":[{"term":{"g":"..."}},{"term":{"h":"....."}}]"#;
        assert!(of(".......").contains(of_one), "{}", of("......."));
        let mut left = 10;
        assert_eq!(of_run("much longer than that", &mut left), None);
        assert_eq!(left, 10);
    }

    /// A gap between two characters has the grams of all characters that may fill it.
    #[test]
    fn gaps_narrow_a_pattern() {
        let of = |text: &str| of_gaps(text).iter().map(Value::to_string).collect::<String>();
        let clause = |field: &str, value: &str| {
            format!(r#"{{"wildcard":{{"{field}":{{{GAP_REWRITE}"value":"{value}"}}}}}}"#)
        };
        let query = of("GO_ng%many");
        for (field, value) in [("g", "o?n"), ("h", "go?ng")] {
            assert!(query.contains(&clause(field, value)), "{query}");
        }
        assert!(of("e_a_o").contains(&clause("h", "e?a?o")));
        assert!(of(r"*_?").contains(&clause("g", r"\\*?\\?")));
        for text in ["many", "_a", "a_", "a__b", "a%b"] {
            assert_eq!(of(text), "", "{text}");
        }
    }

    /// The titles of a needed text propose messages, whether or not the texts before it have runs.
    #[test]
    fn titles_are_those_of_the_text_itself() {
        let request = |text: &str| Request {
            text: text.to_owned(),
            or: vec!["foo".to_owned()],
            and: vec!["bar".to_owned()],
            matching: Matching::Regex,
            ..Request::default()
        };
        for (text, places) in [(r"\d+", vec![2]), ("red", vec![0, 1, 2])] {
            let request = request(text);
            let matchers = Matchers::of(&request).expect("expressions");
            let mut asked = Vec::new();
            candidates(&request, &matchers, true, &mut |place| {
                asked.push(place);
                Vec::new()
            });
            assert_eq!(asked, places, "{text}");
        }
    }
}
