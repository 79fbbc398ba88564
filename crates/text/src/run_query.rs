//! Boolean queries of the character runs that a text must have to match a regular expression.
//!
//! For each part of the expression, the analysis keeps the texts that the part matches. If there are many, it
//! keeps only their beginnings and ends. The results for consecutive parts are joined to longer runs. Russ
//! Cox describes the method ("Regular Expression Matching with a Trigram Index", 2012).
//!
//! Runs are folded ([`super::fold`]), except those that have a capital and are searched in this case.
//!
//! Invariant: if an expression matches a text, the folded text has the runs of the expression's query.

use std::{collections::BTreeSet, fmt};

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::feasible::{class_ranges, may_match};
use super::fold::fold;
use super::grams::{CommonGrams, Gram, LONGEST, capital_grams, query_grams, word_grams};
use super::loose::{is_sign, signs_as};
use super::pattern::Pattern;

const MAX_TEXTS: usize = 64;

const MAX_BYTES: usize = 256;

/// The maximum number of characters in a class that are listed one by one, before folding.
const MAX_CLASS: u32 = 64;

const MAX_REPEATS: u32 = 16;

/// The maximum number of runs in a query. With more runs, reading all texts is as fast.
const MAX_RUNS: usize = 2_000;

/// The number of last parts of a query that are checked for redundancy.
const MAX_TIDIED: usize = 32;

const MAX_COMPARED: usize = 10_000;

/// A condition on the runs of characters in a text. Every matching text meets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunQuery {
    /// Any text may match, because no run is required.
    Anything,
    /// The text must have this run, in any case.
    Run(String),
    /// The text must have this run in this case. It has capitals that are indexed.
    Cased(String),
    /// The text must have this run as whole words.
    Word(String),
    /// The text must have the runs of all of these queries.
    All(Vec<RunQuery>),
    /// The text must have the runs of at least one of these queries. Without queries, no text matches.
    OneOf(Vec<RunQuery>),
}

impl RunQuery {
    /// Returns the query for a regular expression, whose matches must be valid UTF-8. If `is_cased` is set,
    /// capitals are looked up in their case too.
    pub fn from_expression(hir: &Hir, is_cased: bool) -> RunQuery {
        if !may_match(hir) {
            return RunQuery::OneOf(Vec::new());
        }
        let folded = Analysis::from_hir(hir, fold).into_query().bounded();
        if !is_cased {
            return folded;
        }
        let cased = Analysis::from_hir(hir, |letter| letter).into_query().cased().bounded();
        RunQuery::conjunction(vec![folded, cased])
    }

    fn bounded(self) -> RunQuery {
        if self.size() > MAX_RUNS { RunQuery::Anything } else { self }
    }

    /// Returns the query for a text that must occur as whole words.
    pub fn from_word(word: &str) -> RunQuery {
        RunQuery::Word(fold_text(word))
    }

    /// Returns the query for a text in loose form, folded. Each of its signs may be any of equal look.
    pub fn from_loose(text: &str) -> RunQuery {
        const MOST_SIGNS: usize = 8;
        const AROUND: usize = LONGEST - 1;

        let runs: Vec<&str> = text.split(is_sign).collect();
        let mut parts: Vec<RunQuery> = Vec::new();
        for (sign, sides) in text.chars().filter(|it| is_sign(*it)).zip(runs.windows(2)) {
            // A sign alone says little beside others, and is all that there is if no run has a character.
            let is_alone = sides.iter().all(|run| run.is_empty());
            if parts.len() == MOST_SIGNS || is_alone && runs.iter().any(|run| !run.is_empty()) {
                continue;
            }
            let before = sides[0].chars().count().saturating_sub(AROUND);
            let before: String = sides[0].chars().skip(before).collect();
            let after: String = sides[1].chars().take(AROUND).collect();
            let looks = std::iter::once(&sign).chain(signs_as(sign));
            let one_of = looks.map(|look| RunQuery::Run(format!("{before}{look}{after}")));
            parts.push(RunQuery::OneOf(one_of.collect()));
        }
        let runs = runs.into_iter().filter(|run| !run.is_empty());
        parts.extend(runs.map(|run| RunQuery::Run(run.to_owned())));
        RunQuery::conjunction(parts)
    }

    /// Returns the query for a LIKE pattern: its runs, in any order.
    pub fn from_pattern(pattern: &Pattern<'_>) -> RunQuery {
        RunQuery::conjunction(pattern.runs().map(|run| RunQuery::Run(fold_text(run))).collect())
    }

    /// Returns a query for the texts that match this one and have the capitals of a pattern in their case.
    pub fn with_capitals(self, pattern: &Pattern<'_>) -> RunQuery {
        let cased = pattern.runs().map(|run| RunQuery::Run(run.to_owned()).cased());
        RunQuery::conjunction(std::iter::once(self).chain(cased).collect())
    }

    fn cased(self) -> RunQuery {
        match self {
            RunQuery::Run(run) if !capital_grams(&run).is_empty() => RunQuery::Cased(run),
            RunQuery::All(parts) => {
                RunQuery::conjunction(parts.into_iter().map(RunQuery::cased).collect())
            }
            RunQuery::OneOf(parts) => {
                RunQuery::disjunction(parts.into_iter().map(RunQuery::cased).collect())
            }
            _ => RunQuery::Anything,
        }
    }

    fn conjunction(parts: Vec<RunQuery>) -> RunQuery {
        let mut all = Vec::new();
        for part in parts {
            match part {
                RunQuery::Anything => {}
                RunQuery::All(parts) => all.extend(parts),
                part => all.push(part),
            }
        }
        // Only the last parts are compared, because redundant parts are usually close to each other.
        let first = all.len().saturating_sub(MAX_TIDIED);
        let mut place = first;
        while place < all.len() {
            if (first..all.len()).any(|other| other != place && all[other].implies(&all[place])) {
                all.remove(place);
            } else {
                place += 1;
            }
        }
        match all.len() {
            0 => RunQuery::Anything,
            1 => all.remove(0),
            _ => RunQuery::All(all),
        }
    }

    fn disjunction(mut parts: Vec<RunQuery>) -> RunQuery {
        if parts.is_empty() || parts.contains(&RunQuery::Anything) {
            return RunQuery::Anything;
        }
        if parts.len() == 1 { parts.remove(0) } else { RunQuery::OneOf(parts) }
    }

    /// Returns whether every text that matches this query also matches `those`. The answer false may be
    /// wrong.
    fn implies(&self, those: &RunQuery) -> bool {
        match (self, those) {
            (RunQuery::Run(this), RunQuery::Run(that))
            | (RunQuery::Cased(this), RunQuery::Cased(that)) => this.contains(that.as_str()),
            _ if self.size() * those.size() > MAX_COMPARED => false,
            (RunQuery::OneOf(parts), _) => parts.iter().all(|part| part.implies(those)),
            (RunQuery::All(parts), _) => parts.iter().any(|part| part.implies(those)),
            (_, RunQuery::OneOf(parts)) => parts.iter().any(|part| self.implies(part)),
            (_, RunQuery::All(parts)) => parts.iter().all(|part| self.implies(part)),
            _ => false,
        }
    }

    fn size(&self) -> usize {
        match self {
            RunQuery::Anything => 0,
            RunQuery::Run(_) | RunQuery::Cased(_) | RunQuery::Word(_) => 1,
            RunQuery::All(parts) | RunQuery::OneOf(parts) => parts.iter().map(RunQuery::size).sum(),
        }
    }

    /// Returns the indexed grams of a run or a word; a text that has it has all of them. Other queries
    /// have none.
    pub fn grams(&self, common: &CommonGrams) -> Vec<Gram> {
        let run = match self {
            RunQuery::Run(run) => run,
            RunQuery::Cased(run) => return capital_grams(run),
            RunQuery::Word(word) => return word_grams(&Pattern::literal(word), common),
            _ => return Vec::new(),
        };
        // No gram has a NUL.
        let parts = run.split('\0').filter(|part| !part.is_empty());
        parts.flat_map(|part| query_grams(&Pattern::literal(part), common)).collect()
    }
}

impl fmt::Display for RunQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, word) = match self {
            RunQuery::Anything => return f.write_str("anything"),
            RunQuery::Run(run) | RunQuery::Cased(run) | RunQuery::Word(run) => {
                return write!(f, "{run:?}");
            }
            RunQuery::All(parts) => (parts, " and "),
            RunQuery::OneOf(parts) if parts.is_empty() => return f.write_str("nothing"),
            RunQuery::OneOf(parts) => (parts, " or "),
        };
        for (place, part) in parts.iter().enumerate() {
            f.write_str(if place > 0 { word } else { "" })?;
            match part {
                RunQuery::All(_) | RunQuery::OneOf(_) => write!(f, "({part})")?,
                part => write!(f, "{part}")?,
            }
        }
        Ok(())
    }
}

/// Returns the runs before and after each gap of an expression. A gap is one character of a large
/// class, such as `.` or `\w`, between two parts that each match only one text. Any other text that is not
/// empty is a gap after a run of two characters; its second run is empty.
///
/// Invariant: if the expression matches a text, the folded text has, for each gap, its first run, any
/// character, and its second run.
pub fn gaps_of_expression(hir: &Hir) -> Vec<(String, String)> {
    let mut gaps = Vec::new();
    // The run before the last part that has several texts, whether this part is a gap, and the run since.
    let mut before: Option<(String, bool)> = None;
    let mut run = String::new();
    let parts = concatenated_parts(hir);
    let last_filled = parts
        .iter()
        .rposition(|part| part.properties().minimum_len().is_some_and(|least| least > 0));
    for (place, part) in parts.into_iter().enumerate() {
        let analysis = Analysis::from_hir(part, fold);
        let only = analysis.exact.as_ref().filter(|texts| texts.len() == 1);
        if let Some(text) = only.and_then(|texts| texts.first()) {
            run.push_str(text);
            continue;
        }
        let ended = std::mem::take(&mut run);
        if let Some((left, is_gap)) = before.take() {
            gaps.push((left, if is_gap { ended.clone() } else { String::new() }));
        }
        if last_filled.is_some_and(|last| place <= last) {
            before = Some((ended, matches!(part.kind(), HirKind::Class(Class::Unicode(_)))));
        }
    }
    if let Some((left, is_gap)) = before {
        gaps.push((left, if is_gap { run } else { String::new() }));
    }
    gaps.retain(|(left, right)| {
        (!right.is_empty() && !left.is_empty() || left.chars().count() == 2)
            // No gram has a NUL.
            && !left.contains('\0')
            && !right.contains('\0')
    });
    gaps
}

fn concatenated_parts(hir: &Hir) -> Vec<&Hir> {
    match hir.kind() {
        HirKind::Concat(parts) => parts.iter().flat_map(concatenated_parts).collect(),
        HirKind::Capture(capture) => concatenated_parts(&capture.sub),
        _ => vec![hir],
    }
}

fn fold_text(text: &str) -> String {
    text.chars().map(fold).collect()
}

type Texts = BTreeSet<String>;

/// The known facts about the texts that a part of an expression matches.
#[derive(Clone, Debug)]
struct Analysis {
    exact: Option<Texts>,
    /// The beginnings and the ends of the texts. They are used only if `exact` is `None`.
    prefixes: Texts,
    suffixes: Texts,
    /// The runs that every text has, in addition to those in the sets above.
    query: RunQuery,
}

impl Analysis {
    fn anything() -> Analysis {
        let any = Texts::from([String::new()]);
        Analysis { exact: None, prefixes: any.clone(), suffixes: any, query: RunQuery::Anything }
    }

    fn exactly(texts: Texts) -> Analysis {
        Analysis { exact: Some(texts), ..Analysis::anything() }
    }

    fn nothing() -> Analysis {
        Analysis::exactly(Texts::from([String::new()]))
    }

    /// Returns the facts for a part. `letter` is the form of a letter in all texts and runs: folded, or itself.
    fn from_hir(hir: &Hir, letter: fn(char) -> char) -> Analysis {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Analysis::nothing(),
            HirKind::Literal(literal) => match str::from_utf8(&literal.0) {
                Ok(text) => Analysis::exactly(Texts::from([text.chars().map(letter).collect()]))
                    .limit_length(),
                Err(_) => Analysis::anything(),
            },
            HirKind::Class(class) => Analysis::from_class(class, letter),
            HirKind::Capture(capture) => Analysis::from_hir(&capture.sub, letter),
            HirKind::Repetition(repetition) => Analysis::from_repetition(repetition, letter),
            HirKind::Concat(parts) => {
                let parts = parts.iter().map(|part| Analysis::from_hir(part, letter));
                parts.fold(Analysis::nothing(), Analysis::concatenate)
            }
            HirKind::Alternation(parts) => Analysis::alternate(
                parts.iter().map(|part| Analysis::from_hir(part, letter)).collect(),
            ),
        }
    }

    fn from_class(class: &Class, letter: fn(char) -> char) -> Analysis {
        let ranges = class_ranges(class);
        let size: u32 = ranges.iter().map(|(start, end)| end - start + 1).sum();
        if size > MAX_CLASS {
            return Analysis::anything();
        }
        let characters = ranges.into_iter().flat_map(|(start, end)| start..=end);
        let characters: Option<Texts> =
            characters.map(|code| Some(letter(char::from_u32(code)?).to_string())).collect();
        characters.map_or_else(Analysis::anything, Analysis::exactly)
    }

    fn from_repetition(repetition: &Repetition, letter: fn(char) -> char) -> Analysis {
        let once = Analysis::from_hir(&repetition.sub, letter);
        if repetition.min == 0 {
            return match repetition.max {
                Some(1) => Analysis::alternate(vec![once, Analysis::nothing()]),
                _ => Analysis::anything(),
            };
        }
        let copies = repetition.min.min(MAX_REPEATS);
        let mut all = once.clone();
        for _ in 1..copies {
            all = all.concatenate(once.clone());
        }
        // If more copies may follow, the texts are only beginnings and ends.
        if repetition.max == Some(copies) { all } else { all.into_inexact() }
    }

    /// Returns the facts about texts of this part followed by texts of the next part.
    fn concatenate(self, next: Analysis) -> Analysis {
        if let (Some(these), Some(those)) = (&self.exact, &next.exact)
            && let Some(texts) = cross_product(these, those)
        {
            return Analysis::exactly(texts).limit_length();
        }
        let these = self.exact.clone();
        let those = next.exact.clone();
        let before = self.into_inexact();
        let after = next.into_inexact();
        let mut queries = vec![before.query, after.query];
        queries.extend(cross_product(&before.suffixes, &after.prefixes).as_ref().map(require_any));
        let prefixes = these.and_then(|exact| cross_product(&exact, &after.prefixes));
        let suffixes = those.and_then(|exact| cross_product(&before.suffixes, &exact));
        Analysis {
            exact: None,
            prefixes: prefixes.unwrap_or(before.prefixes),
            suffixes: suffixes.unwrap_or(after.suffixes),
            query: RunQuery::conjunction(queries),
        }
        .shorten_affixes()
    }

    fn alternate(parts: Vec<Analysis>) -> Analysis {
        let exact: Option<Vec<&Texts>> = parts.iter().map(|part| part.exact.as_ref()).collect();
        if let Some(exact) = exact {
            let texts: Texts = exact.into_iter().flatten().cloned().collect();
            if texts.len() <= MAX_TEXTS {
                return Analysis::exactly(texts);
            }
        }
        let parts: Vec<Analysis> = parts.into_iter().map(Analysis::into_inexact).collect();
        let prefixes = union(parts.iter().map(|part| &part.prefixes));
        let suffixes = union(parts.iter().map(|part| &part.suffixes));
        let query = RunQuery::disjunction(parts.into_iter().map(|part| part.query).collect());
        Analysis { exact: None, prefixes, suffixes, query }
    }

    fn limit_length(self) -> Analysis {
        let mut texts = self.exact.iter().flatten();
        if texts.any(|text| text.len() > MAX_BYTES) { self.into_inexact() } else { self }
    }

    fn into_inexact(self) -> Analysis {
        let Some(exact) = self.exact else { return self };
        let query = RunQuery::conjunction(vec![self.query, require_any(&exact)]);
        Analysis { exact: None, prefixes: exact.clone(), suffixes: exact, query }.shorten_affixes()
    }

    /// Shortens the beginnings and ends to the characters that can be in a gram with another part.
    fn shorten_affixes(mut self) -> Analysis {
        let starts = self.prefixes.iter().map(|text| text.chars().take(LONGEST - 1).collect());
        self.prefixes = starts.collect();
        let ends = self.suffixes.iter().map(|text| {
            let length = text.chars().count();
            text.chars().skip(length.saturating_sub(LONGEST - 1)).collect()
        });
        self.suffixes = ends.collect();
        self
    }

    fn into_query(self) -> RunQuery {
        let Analysis { prefixes, suffixes, query, .. } = self.into_inexact();
        RunQuery::conjunction(vec![query, require_any(&prefixes), require_any(&suffixes)])
    }
}

/// Returns all concatenations of a text of the first set and a text of the second set, unless there are too
/// many.
fn cross_product(these: &Texts, those: &Texts) -> Option<Texts> {
    if these.len() * those.len() > MAX_TEXTS {
        return None;
    }
    let pairs = these.iter().flat_map(|this| those.iter().map(move |that| format!("{this}{that}")));
    Some(pairs.collect())
}

fn union<'t>(sets: impl Iterator<Item = &'t Texts>) -> Texts {
    let texts: Texts = sets.flatten().cloned().collect();
    if texts.len() > MAX_TEXTS { Texts::from([String::new()]) } else { texts }
}

fn require_any(texts: &Texts) -> RunQuery {
    if texts.contains("") {
        return RunQuery::Anything;
    }
    let needed = texts.iter().filter(|text| {
        // Any text with the longer run also has the shorter run, so the longer run is not needed.
        !texts.iter().any(|other| other.len() < text.len() && text.contains(other.as_str()))
    });
    RunQuery::disjunction(needed.cloned().map(RunQuery::Run).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_gaps() {
        for (pattern, expected) in [
            ("a.b", &[("a", "b")][..]),
            ("(?i). M.e", &[(" m", "e")]),
            (r"x\wy[^z]z{2}", &[("x", "y"), ("y", "zz")]),
            (r"(a(b.))\bc", &[("ab", "c")]),
            ("[ab].c", &[]),
            ("a[bc]d", &[("a", "d")]),
            ("a..b", &[]),
            ("a.*b", &[]),
            ("a.?b", &[]),
            ("a.{1}b|c", &[]),
            ("a.\0", &[]),
            ("a.b*c", &[]),
            ("ab..cd", &[("ab", "")]),
            ("ab.cd", &[("ab", "cd")]),
            ("ab[cd]?e.", &[("ab", "")]),
            ("ab.", &[("ab", "")]),
            (r"ab(x|yz)?cd$", &[("ab", "")]),
            ("ab.*", &[]),
            (r"xab\b.*(c+)", &[]),
        ] {
            let hir = regex_syntax::parse(pattern).expect("it parses");
            let gaps = gaps_of_expression(&hir);
            let gaps: Vec<_> = gaps.iter().map(|(left, right)| (&**left, &**right)).collect();
            assert_eq!(gaps, expected, "{pattern}");
        }
    }

    #[test]
    fn expressions_have_runs() {
        for (pattern, expected) in [
            ("hello", r#""hello""#),
            ("Hello World", r#""hello world""#),
            ("(?i)straSSe|weg", r#""strasse" or "weg""#),
            ("colou?r", r#""color" or "colour""#),
            ("a.*b", r#""a" and "b""#),
            ("foo.*bar", r#""foo" and "bar""#),
            (r"error_\d+: (disk|memory)", r#"(": disk" or ": memory") and "error_""#),
            ("ab{3}", r#""abbb""#),
            ("x(ab)+y", r#""xab" and "aby""#),
            ("[ck]at", r#""cat" or "kat""#),
            ("[a-d]at", r#""aat" or "bat" or "cat" or "dat""#),
            (r"\w+", "anything"),
            ("a*", "anything"),
            ("(abc)?", "anything"),
            ("^$", "anything"),
            (".", "anything"),
            (r"\bword\b", r#""word""#),
            ("日本|東京", r#""日本" or "東京""#),
            ("\u{212A}elvin", r#""kelvin""#),
            (r"word\bword", "nothing"),
        ] {
            let hir = regex_syntax::parse(pattern).expect("it parses");
            let query = RunQuery::from_expression(&hir, false).to_string();
            let sorted = |text: &str| {
                let mut parts: Vec<&str> = text.split(" and ").collect();
                parts.sort_unstable();
                parts.join(" and ")
            };
            assert_eq!(sorted(&query), sorted(expected), "{pattern}");
        }
        for (pattern, expected) in [
            ("getUser|setUser", r#"("getuser" or "setuser") and ("getUser" or "setUser")"#),
            ("user|setUser", r#""user""#),
            (r"\bUser\w*", r#""user" and "User""#),
            ("[Uu]ser", r#""user""#),
            ("(?i)User", r#""user""#),
        ] {
            let hir = regex_syntax::parse(pattern).expect("it parses");
            assert_eq!(RunQuery::from_expression(&hir, true).to_string(), expected, "{pattern}");
        }
        let long: Vec<String> =
            ('一'..).step_by(3).take(1_600).map(|letter| letter.to_string()).collect();
        let hir = regex_syntax::parse(&long.join(".")).expect("it parses");
        assert!((1_600..=MAX_RUNS).contains(&RunQuery::from_expression(&hir, false).size()));
        let names: Vec<String> = (0..1000).map(|n| format!("name{n:04}x")).collect();
        let hir = regex_syntax::parse(&names.join("|")).expect("it parses");
        assert_ne!(RunQuery::from_expression(&hir, false), RunQuery::Anything);
    }
}
