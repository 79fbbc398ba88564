//! Makes the query for the documents that may match a request. It may find too many, but misses none.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    document::{self, MESSAGE},
    layout::{LONG_GRAM, LONGEST_GRAM},
};
use crate::{
    model::Request,
    text::{matcher::Matchers, run_query::RunQuery},
};

/// The most grams of a run that are looked up.
const MOST_GRAMS: usize = 64;

/// The most grams of a run that are looked up in long texts.
const MOST_LONG_GRAMS: usize = 16;

/// The most grams of a whole request. A cluster takes some 1,000 clauses.
const MOST_CLAUSES: usize = 800;

/// The most conversations with matching titles that a query names. If more titles match, every message
/// is a candidate; then there are hits everywhere.
const MOST_TITLES: usize = 16_000;

/// Returns the query of the documents that may match, with the filters of the request.
///
/// `titled` returns the hashes of the conversations whose titles match the matcher at a place in the
/// list of alternative texts, followed by the required texts.
pub(super) fn candidates(
    request: &Request,
    matchers: &Matchers,
    titled: &mut dyn FnMut(usize) -> Vec<i64>,
) -> Value {
    let [any, all] = matchers.runs(request);
    let mut left = MOST_CLAUSES;
    let mut clause = |place: usize, runs: &RunQuery| {
        let query = of_runs(runs, &mut left)?;
        let titles = titled(place);
        if titles.len() > MOST_TITLES {
            return None;
        }
        let mut one_of = vec![query, json!({ "term": { "odd": true } })];
        if !titles.is_empty() {
            one_of.push(json!({ "terms": { "c": titles } }));
        }
        Some(json!({ "bool": { "should": one_of, "minimum_should_match": 1 } }))
    };
    let mut filters = vec![json!({ "term": { "kind": MESSAGE } })];
    let texts = any.len();
    // If any message may have one of the alternative texts, the others narrow nothing.
    let any: Option<Vec<Value>> =
        any.iter().enumerate().map(|(place, runs)| clause(place, runs)).collect();
    if let Some(any) = any.filter(|any| !any.is_empty()) {
        filters.push(json!({ "bool": { "should": any, "minimum_should_match": 1 } }));
    }
    let needed = all.iter().enumerate();
    filters.extend(needed.filter_map(|(place, runs)| clause(texts + place, runs)));
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
    let mut of_short = some_terms("g", &grams, MOST_GRAMS);
    of_short.extend(long.iter().filter(is_of_one).map(|gram| json!({ "term": { "h": gram } })));
    let of_long = some_terms("h", &long, MOST_LONG_GRAMS);
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

/// Returns the clauses of some of the grams of a run, evenly spread.
fn some_terms(field: &str, grams: &BTreeSet<String>, most: usize) -> Vec<Value> {
    let step = grams.len().div_ceil(most).max(1);
    grams.iter().step_by(step).map(|gram| json!({ "term": { field: gram } })).collect()
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
            candidates(&request, &matchers, &mut |place| {
                asked.push(place);
                Vec::new()
            });
            assert_eq!(asked, places, "{text}");
        }
    }
}
