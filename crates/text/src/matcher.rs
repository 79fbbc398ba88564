//! The matchers of a request, for the texts that a message must have, may have and must not have.

use std::ops::Range;

use super::expression::{ExpressionError, MAX_PROGRAM_BYTES, RegexPattern};
use super::like::{LikePattern, is_regular};
use super::literal::LiteralPattern;
use super::loose::{LoosePattern, is_sign, loose};
use super::pattern::Pattern;
use super::run_query::RunQuery;
use super::whole_word::WordPattern;
use verbatim_base::model::{Matching, Request, StoredMessage};

/// The matcher of one text of a request.
#[derive(Debug)]
pub enum Matcher {
    /// `LIKE '%text%'`.
    Like(LikePattern),
    /// The text itself.
    Literal(LiteralPattern),
    /// The text, with any accents and in any character width.
    Loose(LoosePattern),
    /// The text as whole words.
    Word(WordPattern),
    /// A regular expression.
    Regex(Box<RegexPattern>),
}

impl Matcher {
    /// Prepares a text of a request for matching. A compiled expression takes at most `most` bytes.
    fn new(text: &str, request: &Request, most: usize) -> Result<Matcher, ExpressionError> {
        let is_sensitive = request.case_sensitive;
        Ok(match (request.matching, request.ignore_accents) {
            (Matching::Like, _) => {
                Matcher::Like(LikePattern::new(&Pattern::parse(text), is_sensitive))
            }
            (Matching::Literal, false) => Matcher::Literal(LiteralPattern::new(text, is_sensitive)),
            (Matching::Literal, true) => Matcher::Loose(LoosePattern::new(text, is_sensitive)),
            (Matching::Word, false) => Matcher::Word(WordPattern::new(text, is_sensitive)),
            (Matching::Word, true) => Matcher::Word(WordPattern::loose(text, is_sensitive)),
            (Matching::Regex, _) => {
                Matcher::Regex(Box::new(RegexPattern::new(text, is_sensitive, most)?))
            }
        })
    }

    fn runs(&self, request: &Request, text: &str) -> RunQuery {
        let runs = match self {
            Matcher::Regex(pattern) => return pattern.runs().clone(),
            _ if request.ignore_accents => return RunQuery::from_loose(&loose(text, true)),
            Matcher::Word(_) => RunQuery::from_word(text),
            _ => with_pattern(request, text, RunQuery::from_pattern),
        };
        if request.case_sensitive {
            with_pattern(request, text, |pattern| runs.with_capitals(pattern))
        } else {
            runs
        }
    }

    /// Returns whether this is a LIKE pattern that matches every text: it is empty or has only `%`.
    pub fn matches_all(&self) -> bool {
        matches!(self, Matcher::Like(pattern) if pattern.matches_all())
    }

    fn first_spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        match self {
            Matcher::Like(pattern) => pattern.first_spans(text, most),
            Matcher::Literal(pattern) => pattern.first_spans(text, most),
            Matcher::Loose(pattern) => pattern.first_spans(text, most),
            Matcher::Word(pattern) => pattern.first_spans(text, most),
            Matcher::Regex(pattern) => pattern.first_spans(text, most),
        }
    }

    /// Returns whether every match has as many characters as the request's text, and does not depend on the
    /// text around it. Then a part of a text matches too, if it contains the whole match.
    pub fn is_of_one_length(&self) -> bool {
        match self {
            Matcher::Like(pattern) => pattern.is_of_one_length(),
            Matcher::Literal(_) | Matcher::Loose(_) => true,
            Matcher::Word(_) | Matcher::Regex(_) => false,
        }
    }

    /// Returns whether [`Matcher::matches_part`] can give an answer for some texts.
    pub fn reads_parts(&self) -> bool {
        matches!(self, Matcher::Word(_)) || self.is_of_one_length()
    }

    /// Returns whether a text matches, decided by a part of it. If the text has a match, the part must
    /// contain a whole one. `None` if only the whole text can tell.
    #[inline]
    pub fn matches_part(&self, part: &[u8]) -> Option<bool> {
        match self {
            Matcher::Word(pattern) => pattern.matches_part(part),
            pattern => Some(pattern.matches(part)),
        }
    }

    /// Returns whether JSON parts also match by their stored form, and not only by their decoded text.
    pub fn matches_stored_parts(&self) -> bool {
        matches!(self, Matcher::Like(_))
    }

    /// Returns whether a text matches. The text must be regular ([`is_regular`]).
    #[inline]
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Matcher::Like(pattern) => pattern.matches(text),
            Matcher::Literal(pattern) => pattern.matches(text),
            Matcher::Loose(pattern) => pattern.matches(text),
            Matcher::Word(pattern) => pattern.matches(text),
            Matcher::Regex(pattern) => pattern.matches(text),
        }
    }

    /// Returns whether any bytes match. Bytes that are not UTF-8 count as U+FFFD, except for `LIKE`.
    pub fn matches_irregular(&self, text: &[u8]) -> bool {
        match self {
            Matcher::Like(pattern) => pattern.matches_irregular(text),
            _ => self.matches(String::from_utf8_lossy(text).as_bytes()),
        }
    }

    /// Works like [`Matcher::matches_irregular`] for a text that is UTF-8.
    pub fn matches_text(&self, text: &str) -> bool {
        match self {
            // SQLite stops reading at a NUL.
            Matcher::Like(pattern) if text.contains('\0') => {
                pattern.matches_irregular(text.as_bytes())
            }
            matcher => matcher.matches(text.as_bytes()),
        }
    }

    /// Works like [`Matcher::matches_irregular`], but faster for a regular text ([`is_regular`]).
    pub fn matches_bytes(&self, text: &[u8]) -> bool {
        if is_regular(text) { self.matches(text) } else { self.matches_irregular(text) }
    }
}

/// The matchers of a request. A message matches if its content or title matches at least one of `any` (unless
/// `any` is empty) and each of `all`, but none of `none`.
#[derive(Debug)]
pub struct Matchers {
    /// The matchers of which at least one must match.
    pub any: Vec<Matcher>,
    /// The matchers that must all match.
    pub all: Vec<Matcher>,
    /// The matchers that exclude a message.
    pub none: Vec<Matcher>,
}

impl Matchers {
    /// Prepares the texts of a request for matching.
    pub fn of(request: &Request) -> Result<Matchers, ExpressionError> {
        let texts = texts(request);
        let count: usize = texts.iter().map(Vec::len).sum();
        let most = MAX_PROGRAM_BYTES / count.max(1);
        let [any, all, none] = texts.map(|texts| {
            let matchers = texts.into_iter().map(|text| Matcher::new(text, request, most));
            matchers.collect::<Result<Vec<Matcher>, ExpressionError>>()
        });
        Ok(Matchers { any: any?, all: all?, none: none? })
    }

    /// Returns whether the request has no texts, so that no message is left out by its text.
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.all.is_empty() && self.none.is_empty()
    }

    /// Returns whether a message matches. `has` tells whether a matcher matches its content or its title.
    #[inline]
    pub fn accept(&self, mut has: impl FnMut(&Matcher) -> bool) -> bool {
        (self.any.is_empty() || self.any.iter().any(&mut has))
            && self.all.iter().all(&mut has)
            && !self.none.iter().any(&mut has)
    }

    /// Returns whether a message of a conversation with this title is a hit of the request. NULL counts as an
    /// empty text, except for a pattern that matches every text.
    pub fn accept_stored(
        &self,
        request: &Request,
        title: Option<&[u8]>,
        message: &StoredMessage,
    ) -> bool {
        let has_role = request.roles.is_empty()
            || message.has_text_role && request.roles.contains(&message.role);
        if !has_role || !request.has_time(message.time) {
            return false;
        }
        let stored = message.content.as_deref();
        let decoded = message.decoded.as_deref().filter(|_| !request.raw_content);
        self.accept(|matcher| {
            if matcher.matches_all() {
                return title.is_some() || stored.is_some();
            }
            let is_stored = decoded.is_none() || matcher.matches_stored_parts();
            matcher.matches_bytes(title.unwrap_or_default())
                || decoded.is_some_and(|decoded| matcher.matches_bytes(decoded.as_bytes()))
                || is_stored && matcher.matches_bytes(stored.unwrap_or_default())
        })
    }

    /// Returns whether a text matches without its title.
    pub fn accept_text(&self, text: &str) -> bool {
        self.accept(|matcher| matcher.matches_text(text))
    }

    /// Returns whether a hit is a hit by its title alone: its content has none of the texts that must match. A
    /// message with one of several texts is a match, even if the others are in its title.
    pub fn has_only_title(&self, content: &str, title: &str) -> bool {
        !self.has_any(content) && self.has_any(title)
    }

    /// Returns whether a text has one of the texts that must match, if there are any.
    pub fn has_any(&self, text: &str) -> bool {
        let mut matchers = self.any.iter().chain(&self.all).peekable();
        matchers.peek().is_none() || matchers.any(|matcher| matcher.matches_text(text))
    }

    /// Returns the byte spans of matches in a text, in order: the first `most` of each pattern.
    pub fn first_spans(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        let matchers = self.any.iter().chain(&self.all);
        let mut found: Vec<Range<usize>> =
            matchers.flat_map(|matcher| matcher.first_spans(text, most)).collect();
        found.sort_unstable_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        let mut spans: Vec<Range<usize>> = Vec::new();
        for span in found {
            if spans.last().is_none_or(|last| last.end <= span.start) {
                spans.push(span);
            }
        }
        spans
    }

    /// Calls `with` for each matcher and its pattern; a regular expression has no pattern. Returns the
    /// results for `any`, then for `all`, then for `none`.
    pub fn each<T>(
        &self,
        request: &Request,
        with: impl Fn(&Matcher, Option<&Pattern<'_>>) -> T,
    ) -> Vec<T> {
        let texts = texts(request).into_iter().flatten();
        let matchers = [&self.any, &self.all, &self.none].into_iter().flatten();
        let results = texts.zip(matchers).map(|(text, matcher)| match matcher {
            Matcher::Regex(_) => with(matcher, None),
            _ => with_pattern(request, text, |pattern| with(matcher, Some(pattern))),
        });
        results.collect()
    }

    /// Returns the runs that a matching text must have, for each matcher of `any` and of `all`.
    pub fn runs(&self, request: &Request) -> [Vec<RunQuery>; 2] {
        let [any, all, _] = texts(request);
        [(any, &self.any), (all, &self.all)].map(|(texts, matchers)| {
            let pairs = texts.into_iter().zip(matchers);
            pairs.map(|(text, matcher)| matcher.runs(request, text)).collect()
        })
    }

    /// Returns the expression, if the request has one and no other text that must match.
    pub fn single_expression(&self) -> Option<&RegexPattern> {
        match (&self.any[..], &self.all[..]) {
            ([Matcher::Regex(expression)], []) => Some(expression),
            _ => None,
        }
    }

    /// If the request has a single text that is no regular expression and has no sign of several looks, calls
    /// `with` with its pattern. Every matching text has the runs of the pattern.
    pub fn with_single<T>(
        &self,
        request: &Request,
        with: impl FnOnce(&Pattern<'_>) -> T,
    ) -> Option<T> {
        match (&self.any[..], &self.all[..]) {
            ([Matcher::Regex(_)], []) => None,
            ([], []) => Some(with(&Pattern::literal(""))),
            ([_], []) => with_pattern(request, texts(request)[0].first()?, |pattern| {
                let has_signs = request.ignore_accents && pattern.text.contains(is_sign);
                (!has_signs).then(|| with(pattern))
            }),
            _ => None,
        }
    }
}

/// Returns the texts of a request that are not empty: the texts of which one must match, the texts that must
/// all match, and the texts that exclude a message.
pub fn texts(request: &Request) -> [Vec<&str>; 3] {
    let text = std::slice::from_ref(&request.text);
    [(text, &request.or), (&[], &request.and), (&[], &request.not)].map(|(first, others)| {
        let texts = first.iter().chain(others).map(String::as_str);
        texts.filter(|text| !text.is_empty()).collect()
    })
}

fn with_pattern<T>(request: &Request, text: &str, with: impl FnOnce(&Pattern<'_>) -> T) -> T {
    match (request.matching, request.ignore_accents) {
        (Matching::Like, _) => with(&Pattern::parse(text)),
        // A text has one of the characters that look like a sign.
        (_, true) => with(&Pattern::with_gaps(&loose(text, true), is_sign)),
        (_, false) => with(&Pattern::literal(text)),
    }
}
