//! Other readings of an exact request that finds nothing. Each was tried, and finds something.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use super::{count::Count, exact::Make};
use crate::Engine;
use crate::rank::{Mode, Question};
use crate::source::Scope;
use verbatim_base::call::Call;
use verbatim_base::model::{Matching, Request};
use verbatim_text::expression::{escaped, is_expression};
use verbatim_text::matcher::Matchers;
use verbatim_text::rendered::{expressions, without_links};
use verbatim_text::spelling::slips;
use verbatim_text::words::{is_unspaced, says_little};

/// The time limit of trying readings, all together. Those that take longer are left out.
const MOST_TIME: Duration = Duration::from_secs(2);

/// The maximum number of words of a text that is read as single words.
const MOST_WORDS: usize = 16;

/// The fewest letters of a part of a word and of a word with an error; with fewer, too many words are near.
const FEWEST_OF_WORD: usize = 5;

/// The most letters of a word with an error. A longer one is no word, and has very many neighbours.
const MOST_OF_WORD: usize = 40;

/// The fewest characters of a part of a text without spaces, where words are short.
const FEWEST_UNSPACED: usize = 2;

/// The number of messages up to which those of a word are counted.
const MOST_FREQUENT: usize = 1_000;

/// How a [`QueryReading`] differs from the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingKind {
    /// The same request without its scope.
    AnyScope,
    /// The same request in any letter case.
    AnyCase,
    /// The same request with any accents and character widths.
    AnyAccents,
    /// The words in a row with any spaces and signs between them, as a drawn page shows them: across the ends of
    /// lines, and without the signs of Markdown.
    Rendered,
    /// The text as a regular expression.
    Expression,
    /// The text as other search engines read it: without the quotation marks around it; the texts on both sides of
    /// `OR`, as alternatives; or all its words and "quoted" texts in any order, without those that have a minus
    /// before them.
    Words,
    /// A similar text that messages have: with another spelling of a word, its rarest words, or the longest
    /// beginning of the only word.
    Nearest,
}

impl ReadingKind {
    /// Returns a request for a text in this reading; `None` if the text has no such reading, or only an
    /// engine knows it.
    pub fn request(self, request: &Request) -> Option<Request> {
        match self {
            ReadingKind::AnyAccents => Some(Request { ignore_accents: true, ..request.clone() }),
            // A text in quotation marks may have two readings of words. The last one heeds all marks.
            kind => of_text(request).into_iter().rfind(|(of, _)| *of == kind).map(|(_, it)| it),
        }
    }
}

/// Another reading of a request, which finds something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryReading {
    /// How the reading differs from the request.
    pub kind: ReadingKind,
    /// The request to search for.
    pub request: Request,
    /// The scope to search in.
    pub scope: Scope,
    /// What it finds.
    pub count: Count,
}

impl QueryReading {
    /// Returns whether the reading divides the text of a request into its words.
    pub fn is_of_words(&self, asked: &Request) -> bool {
        let Request { and, not, .. } = &self.request;
        and.len() > asked.and.len() || not.len() > asked.not.len()
    }
}

impl Engine {
    /// Returns at most `most` other readings of a request that finds nothing in a scope, the most similar
    /// first. Each finds something.
    pub fn readings(
        &self,
        request: &Request,
        scope: &Scope,
        most: usize,
        call: &Call,
    ) -> Vec<QueryReading> {
        let in_time = &call.within(MOST_TIME);
        let mut candidates = Vec::new();
        if *scope != Scope::default() {
            candidates.push((ReadingKind::AnyScope, request.clone()));
        }
        if request.case_sensitive {
            let any_case = Request { case_sensitive: false, ..request.clone() };
            candidates.push((ReadingKind::AnyCase, any_case));
        }
        let is_text = matches!(request.matching, Matching::Literal | Matching::Word);
        if is_text && !request.ignore_accents {
            let folded = Request { ignore_accents: true, ..request.clone() };
            candidates.push((ReadingKind::AnyAccents, folded));
        }
        let is_one_text = is_text && request.or.is_empty();
        if is_one_text {
            let rendered = expressions(&request.text).into_iter();
            let rendered =
                rendered.map(|text| (ReadingKind::Rendered, as_expression(text, request)));
            candidates.extend(rendered);
            candidates.extend(of_text(request));
        }
        let mut readings: Vec<QueryReading> = Vec::new();
        for (kind, candidate) in candidates {
            let is_any_scope = kind == ReadingKind::AnyScope;
            let scope = if is_any_scope { &Scope::default() } else { scope };
            let mut tries = vec![candidate];
            if tries[0].case_sensitive && !is_any_scope {
                tries.push(Request { case_sensitive: false, ..tries[0].clone() });
            }
            for request in tries {
                // The second expression of a text finds what the first one does.
                let is_known = readings.iter().any(|known| {
                    known.request == request || kind == ReadingKind::Rendered && known.kind == kind
                });
                if readings.len() >= most || is_known {
                    break;
                }
                if let Some(reading) = self.tried(kind, request, scope, in_time) {
                    readings.push(reading);
                    break;
                }
            }
        }
        if is_one_text && readings.iter().all(|reading| reading.kind == ReadingKind::AnyScope) {
            readings.extend(self.nearest_text(request, scope, in_time));
        }
        readings.truncate(most);
        readings
    }

    /// Returns a reading with what it finds; `None` if it finds nothing, is refused, or takes too long.
    fn tried(
        &self,
        kind: ReadingKind,
        request: Request,
        scope: &Scope,
        in_time: &Call,
    ) -> Option<QueryReading> {
        let (count, _) = self.sources.count(&request, scope, in_time).ok()?;
        if count.is_empty() || in_time.stop.requested() {
            return None;
        }
        Some(QueryReading { kind, request, scope: scope.clone(), count })
    }

    /// Returns the request with another spelling of words that no message has, with its rarest words, or with
    /// the beginning of its only word.
    fn nearest_text(
        &self,
        request: &Request,
        scope: &Scope,
        in_time: &Call,
    ) -> Option<QueryReading> {
        let kind = ReadingKind::Nearest;
        let any_case = Request { case_sensitive: false, ..request.clone() };
        let words = words_of(&request.text);
        let mut text = request.text.clone();
        for word in &words {
            if let Some(spelling) = self.nearest_spelling(word, scope, in_time) {
                text = text.replace(word, &spelling);
            }
        }
        if text != request.text {
            let words = all_of(&words_of(&text), &any_case);
            let readings = [Request { text, ..any_case.clone() }, words].into_iter();
            let found = readings.filter_map(|it| self.tried(kind, it, scope, in_time)).next();
            if found.is_some() {
                return found;
            }
        }
        if let [word] = &words[..] {
            let bare = Request { text: word.clone(), ..any_case.clone() };
            if *word != request.text.trim()
                && let Some(reading) = self.tried(kind, bare, scope, in_time)
            {
                return Some(reading);
            }
            return self.beginning(word, &any_case, scope, in_time);
        }
        let kept = self.rarest_words(&words, &any_case, scope, in_time);
        if kept.is_empty() || kept.len() == words.len() {
            return None;
        }
        self.tried(kind, all_of(&kept, &any_case), scope, in_time)
    }

    /// Returns the most frequent of the words that differ from a word by one error; `None` if messages have the
    /// word itself, or none of them.
    fn nearest_spelling(&self, word: &str, scope: &Scope, in_time: &Call) -> Option<String> {
        const AT_ONCE: usize = 60;

        let word = word.to_lowercase();
        let is_word = word.chars().all(|it| it == '-' || it.is_alphabetic() && !is_unspaced(it));
        let matching = Matching::Literal;
        let as_it_is = Request { text: word.clone(), matching, ..Request::default() };
        if !is_word
            || !(FEWEST_OF_WORD..=MOST_OF_WORD).contains(&word.chars().count())
            || self.frequency(&as_it_is, scope, in_time) > 0
        {
            return None;
        }
        let mut frequencies: HashMap<String, usize> = HashMap::new();
        for slips in slips(&word).chunks(AT_ONCE) {
            let or = slips.to_vec();
            let request = Request { or, matching: Matching::Word, ..Request::default() };
            let matchers = Matchers::of(&request).ok()?;
            let make: Make<'_, _> = &|_, hit| {
                let spans = matchers.first_spans(&hit.content, 1);
                spans.first().map(|span| hit.content[span.clone()].to_lowercase())
            };
            let request = Request { limit: Some(MOST_FREQUENT), ..request.clone() };
            let show = &mut |found| {
                *frequencies.entry(found).or_default() += 1;
                ControlFlow::Continue(())
            };
            self.sources.search(&request, scope, in_time, make.into(), show).ok()?;
        }
        // The first letter is seldom wrong.
        let first = word.chars().next();
        let best = frequencies.into_iter().max_by_key(|(other, frequency)| {
            (other.chars().next() == first, *frequency, Reverse(other.clone()))
        });
        best.map(|(other, _)| other)
    }

    /// Returns the number of messages that match, and of those with a title that does, up to [`MOST_FREQUENT`].
    fn frequency(&self, request: &Request, scope: &Scope, in_time: &Call) -> usize {
        let request = Request { limit: Some(MOST_FREQUENT), ..request.clone() };
        let make: Make<'_, ()> = &|_, _| Some(());
        let mut frequency = 0;
        let show = &mut |()| {
            frequency += 1;
            if frequency < MOST_FREQUENT {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let searched = self.sources.search(&request, scope, in_time, make.into(), show);
        if searched.is_ok() { frequency } else { 0 }
    }

    /// Returns the words that say most and that messages have together, the rarest first of all; in their order.
    /// Returns none if these are less than half of the words that say something.
    fn rarest_words(
        &self,
        words: &[String],
        request: &Request,
        scope: &Scope,
        in_time: &Call,
    ) -> Vec<String> {
        let telling: Vec<&String> = words.iter().filter(|word| !says_little(word)).collect();
        let alone = telling.iter().map(|word| {
            let alone = Request { text: (*word).clone(), ..request.clone() };
            (self.frequency(&alone, scope, in_time), *word)
        });
        let mut rarest: Vec<(usize, &String)> = alone.filter(|(count, _)| *count > 0).collect();
        rarest.sort_by_key(|(count, _)| *count);
        let mut kept: Vec<String> = Vec::new();
        for (_, word) in rarest {
            kept.push(word.clone());
            let together = self.sources.finds(&all_of(&kept, request), scope, in_time);
            if !together.unwrap_or_default() {
                kept.pop();
            }
        }
        if kept.len() * 2 < telling.len() || kept.len() < telling.len().min(2) {
            return Vec::new();
        }
        words.iter().filter(|word| kept.contains(word)).cloned().collect()
    }

    /// Returns the longest beginning of a word that messages have, if it is most of the word.
    fn beginning(
        &self,
        word: &str,
        request: &Request,
        scope: &Scope,
        in_time: &Call,
    ) -> Option<QueryReading> {
        let ends: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
        let fewest = if word.contains(is_unspaced) { FEWEST_UNSPACED } else { FEWEST_OF_WORD };
        // Each shorter beginning is found wherever a longer one is.
        let mut low = fewest.max((ends.len() * 7).div_ceil(10));
        let mut high = ends.len();
        let mut best = None;
        while low < high {
            let middle = low + (high - low) / 2;
            let part = Request { text: word[..ends[middle]].to_owned(), ..request.clone() };
            match self.tried(ReadingKind::Nearest, part, scope, in_time) {
                Some(reading) => {
                    best = Some(reading);
                    low = middle + 1;
                }
                None => high = middle,
            }
        }
        best
    }

    /// Returns whether ranked search finds something for a text. Does not build an index to know it.
    pub fn has_nearest(&self, text: &str, scope: &Scope, call: &Call) -> bool {
        let sources = self.sources.present();
        if !sources.iter().all(|source| source.is_indexed(call)) {
            return false;
        }
        let question = Question {
            concepts: vec![text.to_owned()],
            mode: Mode::Both,
            scope: scope.clone(),
            limit: 1,
            ..Question::default()
        };
        let ranking = self.rank(&question, &call.within(MOST_TIME));
        ranking.is_ok_and(|ranking| !ranking.items.is_empty())
    }
}

/// Returns a request for an expression in the place of its text. Its other texts match as they are.
fn as_expression(expression: String, request: &Request) -> Request {
    let [and, not] =
        [&request.and, &request.not].map(|it| it.iter().map(|it| escaped(it)).collect());
    let text = match request.matching {
        Matching::Word => format!(r"\b(?:{expression})\b"),
        _ => expression,
    };
    let matching = Matching::Regex;
    Request { text, and, not, matching, ignore_accents: false, ..request.clone() }
}

/// Returns the readings of a text as it was typed in other search engines.
fn of_text(request: &Request) -> Vec<(ReadingKind, Request)> {
    let text = request.text.trim();
    let mut readings = Vec::new();
    let marks = [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('«', '»')];
    let unquoted = marks.iter().find_map(|(open, close)| {
        let text = text.strip_prefix(*open)?.strip_suffix(*close)?.trim();
        if text.is_empty() { None } else { Some(text) }
    });
    if let Some(text) = unquoted {
        readings.push((ReadingKind::Words, Request { text: text.to_owned(), ..request.clone() }));
    }
    let part = without_links(text);
    let part = part.trim_matches(['*', '~', '`', ' ']);
    if part.len() < text.len() && !part.is_empty() {
        readings.push((ReadingKind::Nearest, Request { text: part.to_owned(), ..request.clone() }));
    }
    let alternatives: Vec<&str> = text.split(" OR ").map(str::trim).collect();
    if alternatives.len() > 1 && alternatives.iter().all(|text| !text.is_empty()) {
        let or = alternatives[1..].iter().map(|text| (*text).to_owned()).collect();
        // The capital letters of `OR` do not say that the case of the others matters.
        let has_capital = alternatives.iter().any(|text| text.chars().any(char::is_uppercase));
        let case_sensitive = request.case_sensitive && has_capital;
        let text = alternatives[0].to_owned();
        readings
            .push((ReadingKind::Words, Request { text, or, case_sensitive, ..request.clone() }));
        return readings;
    }
    if request.matching == Matching::Literal && !request.ignore_accents && is_expression(text) {
        readings.push((ReadingKind::Expression, as_expression(text.to_owned(), request)));
    }
    let operators = with_signs(text);
    // The capital letters of an operator do not say that the case of the others matters.
    let has_capital = operators.chars().any(char::is_uppercase);
    let case_sensitive = request.case_sensitive && (operators == text || has_capital);
    let request = &Request { case_sensitive, ..request.clone() };
    let (with, without) = parts_of(&operators);
    if with.len() > 1 || !(with.is_empty() || without.is_empty()) {
        let not = request.not.iter().cloned().chain(without).collect();
        readings.push((ReadingKind::Words, Request { not, ..all_of(&with, request) }));
    }
    readings
}

/// Returns a text with signs in the place of the operators `AND` and `NOT`. If all its words are in capitals, they are
/// words like the others.
fn with_signs(text: &str) -> String {
    let has_operators = [" AND ", " NOT "].iter().any(|operator| text.contains(operator));
    if !has_operators || !text.chars().any(char::is_lowercase) {
        return text.to_owned();
    }
    text.replace(" AND NOT ", " -").replace(" NOT ", " -").replace(" AND ", " ")
}

/// Returns the words and the "quoted" texts of a text, each once: those that are wanted, and those with a minus
/// before them.
fn parts_of(text: &str) -> (Vec<String>, Vec<String>) {
    const QUOTES: [char; 3] = ['"', '\u{201C}', '\u{201D}'];
    let mut with = Vec::new();
    let mut without = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let bare = rest
            .strip_prefix('-')
            .filter(|bare| bare.starts_with(|c: char| c.is_alphanumeric() || QUOTES.contains(&c)));
        let part = bare.unwrap_or(rest);
        let quoted = part.strip_prefix(QUOTES).and_then(|part| part.split_once(QUOTES));
        let words;
        (words, rest) = match quoted {
            Some((quoted, after)) => (vec![quoted.trim().to_owned()], after),
            None => {
                let (word, after) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
                (words_of(word), after)
            }
        };
        let parts: &mut Vec<String> = if bare.is_some() { &mut without } else { &mut with };
        for word in words {
            if !word.is_empty() && parts.len() < MOST_WORDS && !parts.contains(&word) {
                parts.push(word);
            }
        }
        rest = rest.trim_start();
    }
    (with, without)
}

/// Returns the words of a text, each once, without punctuation at their ends.
fn words_of(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let word = if bare.is_empty() { word } else { bare };
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words.truncate(MOST_WORDS);
    words
}

fn all_of(words: &[String], request: &Request) -> Request {
    let and = words[1..].iter().chain(&request.and).cloned().collect();
    Request { text: words[0].clone(), and, ..request.clone() }
}
