//! Makes the query for documents that may match a request. It may find too many documents, but misses none.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document::{self, MESSAGE};
use super::gram_code::{LONG_GRAM, PAIR, TRIPLE, code, codes_around, is_shared};
use verbatim_base::model::{Instant, Matching, Request};
use verbatim_text::fold::fold;
use verbatim_text::matcher::{Matchers, texts};
use verbatim_text::pattern::Pattern;
use verbatim_text::run_query::RunQuery;

const MOST_GRAMS: usize = 64;

/// The maximum number of grams of a run that are looked up in long texts.
const MOST_LONG_GRAMS: usize = 16;

/// The maximum number of grams in a request. A cluster accepts about 1,000 clauses.
const MOST_CLAUSES: usize = 800;

/// If a text has at least this many grams of five characters, its grams of three characters are not looked
/// up. With fewer grams, another gram may have the same code by chance.
const ENOUGH_LONG_GRAMS: usize = 3;

/// The maximum number of gaps of a text that are looked up, for each length of grams. For a gap, all grams
/// that may fill it are looked up.
const MOST_GAPS: usize = 8;

/// The maximum number of conversations with matching titles in a query. If more titles match, every message
/// is a candidate, because hits are frequent then.
const MOST_TITLES: usize = 16_000;

/// Returns the query for the documents that may match, including the filters of the request. `has_odd` tells
/// whether there are documents without reliable grams.
///
/// `titled` returns the hashes of the conversations whose titles match the matcher with a number. Numbers
/// count the alternative texts first, then the required texts.
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
        let query = runs_clause(runs, &mut left)?;
        let titles = titled(place);
        if titles.len() > MOST_TITLES {
            return None;
        }
        let mut needed = vec![query];
        if request.matching == Matching::Like {
            needed.extend(texts.get(place).into_iter().flat_map(|text| gap_clauses(text)));
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
    // If one alternative text may be in any message, the other alternatives do not narrow the query.
    let any: Option<Vec<Value>> =
        any.iter().enumerate().map(|(place, runs)| clause(place, runs)).collect();
    if let Some(any) = any.filter(|any| !any.is_empty()) {
        filters.push(json!({ "bool": { "should": any, "minimum_should_match": 1 } }));
    }
    let needed = all.iter().enumerate();
    filters.extend(needed.filter_map(|(place, runs)| clause(first_needed + place, runs)));
    filters.extend(role_and_time(&request.roles, request.since, request.until));
    json!({ "bool": { "filter": filters } })
}

/// Returns the clauses for roles, if there are any, and for times. They compare times only to the second.
pub(super) fn role_and_time(
    roles: &[String],
    since: Option<Instant>,
    until: Option<Instant>,
) -> impl Iterator<Item = Value> {
    let hashes: Vec<i64> = roles.iter().map(|role| document::hash(role)).collect();
    let roles = (!hashes.is_empty()).then(|| json!({ "terms": { "rh": hashes } }));
    let since = since.map(|since| json!({ "range": { "s": { "gte": since.seconds } } }));
    let until = until.map(|until| json!({ "range": { "s": { "lte": until.seconds } } }));
    [roles, since, until].into_iter().flatten()
}

/// Returns the query for texts with the runs of a boolean query; `None` if any text may match.
fn runs_clause(runs: &RunQuery, left: &mut usize) -> Option<Value> {
    match runs {
        RunQuery::Anything | RunQuery::Cased(_) => None,
        RunQuery::Run(run) | RunQuery::Word(run) => run_clause(run, left),
        RunQuery::All(parts) => {
            let all: Vec<Value> = parts.iter().filter_map(|part| runs_clause(part, left)).collect();
            (!all.is_empty()).then(|| json!({ "bool": { "filter": all } }))
        }
        RunQuery::OneOf(parts) if parts.is_empty() => Some(json!({ "match_none": {} })),
        RunQuery::OneOf(parts) => {
            let any: Option<Vec<Value>> =
                parts.iter().map(|part| runs_clause(part, left)).collect();
            Some(json!({ "bool": { "should": any?, "minimum_should_match": 1 } }))
        }
    }
}

fn run_clause(run: &str, left: &mut usize) -> Option<Value> {
    // A run is split at NULs. Texts with a NUL are candidates of every search, and other texts cannot have a
    // run with a NUL.
    let parts = run.split('\0').filter(|part| !part.is_empty());
    let [mut single, mut pairs, mut triples, mut long]: [BTreeSet<char>; 4] = Default::default();
    let mut of_one = BTreeSet::new();
    for part in parts {
        let letters: Vec<char> = part.chars().collect();
        match letters[..] {
            [letter] => drop(single.insert(letter)),
            [_, _] => drop(pairs.insert(code(&letters))),
            _ => {}
        }
        for gram in letters.windows(TRIPLE) {
            triples.insert(code(gram));
            // Another gram may share this gram's character, so its pairs are looked up too.
            if is_shared(gram) {
                pairs.extend(gram.windows(PAIR).map(code));
            }
        }
        for gram in letters.windows(LONG_GRAM) {
            long.insert(code(gram));
            if gram.iter().all(|letter| *letter == gram[0]) {
                of_one.insert(code(gram));
            }
        }
    }
    let short = [("o", &single), ("g", &pairs), ("q", &triples), ("h", &of_one)];
    let of_short: Vec<Value> =
        short.into_iter().flat_map(|(field, grams)| some_terms(field, grams, MOST_GRAMS)).collect();
    let mut of_long = some_terms("h", &long, MOST_LONG_GRAMS);
    if !of_long.is_empty() && of_long.len() < ENOUGH_LONG_GRAMS {
        of_long.extend(of_short.iter().cloned());
    }
    let count = of_short.len() + of_long.len();
    if of_short.is_empty() || count > *left {
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

/// Returns the clauses for a pattern's grams around a `_`, the wildcard for one character.
fn gap_clauses(text: &str) -> Vec<Value> {
    let mut short = BTreeSet::new();
    let mut long = BTreeSet::new();
    for segment in Pattern::parse(text).segments {
        // A NUL counts as a gap, because no text with grams has a NUL.
        let letters: Vec<char> = segment.runs.join("\0").chars().map(fold).collect();
        short.extend(codes_around_gaps(&letters, TRIPLE));
        long.extend(codes_around_gaps(&letters, LONG_GRAM));
    }
    let short = short.iter().take(MOST_GAPS);
    let mut all: Vec<Value> = short.map(|codes| json!({ "terms": { "q": codes } })).collect();
    let long = long.iter().take(MOST_GAPS);
    let of_long: Vec<Value> = long.map(|codes| json!({ "terms": { "h": codes } })).collect();
    if !of_long.is_empty() {
        let is_short = json!({ "bool": { "must_not": { "term": { "long": true } } } });
        let long = json!({ "bool": { "filter": of_long } });
        all.push(json!({ "bool": { "should": [is_short, long], "minimum_should_match": 1 } }));
    }
    all
}

/// Returns the codes of all grams that may fill the gap in the middle of a gram, for each gram with no other
/// gap.
fn codes_around_gaps(letters: &[char], length: usize) -> impl Iterator<Item = Vec<char>> {
    let grams = letters.windows(length).filter(move |gram| {
        gram[length / 2] == '\0' && gram.iter().filter(|letter| **letter == '\0').count() == 1
    });
    grams.map(|gram| codes_around(gram).collect())
}

/// Returns the clauses of at most `most` grams of a run, chosen evenly.
fn some_terms(field: &str, grams: &BTreeSet<char>, most: usize) -> Vec<Value> {
    let step = grams.len().div_ceil(most).max(1);
    grams.iter().step_by(step).map(|gram| json!({ "term": { field: gram } })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbatim_base::model::Matching;

    /// Returns the character of a gram in a request.
    fn gram(field: &str, text: &str) -> String {
        json!({ "term": { field: code(&text.chars().collect::<Vec<char>>()) } }).to_string()
    }

    /// Grams of five characters narrow queries for long texts, and for all texts if they repeat one letter.
    #[test]
    fn longer_grams_narrow_what_common_ones_propose() {
        let of = |run: &str| {
            let mut left = MOST_CLAUSES;
            run_clause(run, &mut left).expect("grams").to_string()
        };
        assert!(!of("ther").contains("long"));
        assert!(of("t").contains(r#"{"o":"t"}"#) && of("th").contains(&gram("g", "th")));
        let query = of("there a");
        for (field, text) in [("q", "her"), ("h", "there"), ("h", "ere a")] {
            assert!(query.contains(&gram(field, text)), "{query}");
        }
        assert!(query.contains(r#"{"long":true}"#) && !query.contains(&gram("g", "th")));
        // Another gram may share the character of this gram, so its pairs are looked up too.
        let query = of("的知道");
        for (field, text) in [("q", "的知道"), ("g", "的知"), ("g", "知道")] {
            assert!(query.contains(&gram(field, text)), "{query}");
        }
        let of_one = format!(r#""filter":[{},{}]"#, gram("q", "..."), gram("h", "....."));
        assert!(of(".......").contains(&of_one), "{}", of("......."));
        let mut left = 10;
        assert_eq!(run_clause("much longer than that", &mut left), None);
        assert_eq!(left, 10);
    }

    /// A gap between two characters becomes a wildcard for one character.
    #[test]
    fn gaps_narrow_a_pattern() {
        let of = |text: &str| gap_clauses(text).iter().map(Value::to_string).collect::<String>();
        let around = |field: &str, text: &str| {
            let all: Vec<char> = codes_around(&text.chars().collect::<Vec<char>>()).collect();
            json!({ "terms": { field: all } }).to_string()
        };
        let query = of("GO_ng%many");
        for (field, text) in [("q", "o_n"), ("h", "go_ng")] {
            assert!(query.contains(&around(field, text)), "{query}");
        }
        assert!(of("e_a_o").contains(&around("q", "a_o")));
        for text in ["many", "_a", "a_", "a__b", "a%b"] {
            assert_eq!(of(text), "", "{text}");
        }
    }

    /// Titles are looked up for each text, even if the texts before it have no runs.
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
