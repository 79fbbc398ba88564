//! Verification: decides whether candidates match, by their texts and titles.

use super::plan::{Candidate, GramQuery};
use super::postings::DocBits;
use super::segment::Segment;
use super::signature::{Signature, SignatureQuery};
use super::store::DocStore;
use verbatim_text::matcher::{Matcher, Matchers};

const CACHED_TITLES: usize = 64;

/// The number of bytes at the beginning of a text. A common run usually occurs there.
const BEGINNING: usize = 1 << 10;

/// A cache of conversation numbers, and whether each conversation's title matches.
type Titles = [(u32, bool); CACHED_TITLES];

pub(super) struct Verifier<'a> {
    segment: &'a Segment,
    store: &'a DocStore,
    query: &'a GramQuery<'a>,
    matchers: &'a Matchers,
    /// The matcher, if the request has only one and a message must match it.
    single: Option<&'a Matcher>,
    raw_content: bool,
    /// If the query is one run: the messages in which a character follows the run. `None` if they are not
    /// known.
    followed: Option<&'a DocBits>,
    titles: Vec<Titles>,
    buffer: Vec<u8>,
    /// The message whose shown text is at the beginning of `buffer`, and the length of this text.
    known: Option<(u32, usize)>,
    pub(super) bytes_read: u64,
}

impl<'a> Verifier<'a> {
    pub(super) fn new(segment: &'a Segment, query: &'a GramQuery<'_>) -> Verifier<'a> {
        let matchers = &query.matchers;
        let single = match (&matchers.any[..], &matchers.all[..], &matchers.none[..]) {
            ([matcher], [], []) => Some(matcher),
            _ => None,
        };
        let count = matchers.any.len() + matchers.all.len() + matchers.none.len();
        Verifier {
            segment,
            store: &segment.store,
            query,
            matchers,
            single,
            raw_content: query.request.raw_content,
            followed: None,
            titles: vec![[(u32::MAX, false); CACHED_TITLES]; count],
            buffer: Vec::new(),
            known: None,
            bytes_read: 0,
        }
    }

    /// Returns a verifier that reads only a small part of most texts. `followed` has the messages in which
    /// some character follows the query's run ([`Segment::followed`]). Titles do not count.
    pub(super) fn with_followed(self, followed: Option<&'a DocBits>) -> Verifier<'a> {
        Verifier { followed, ..self }
    }

    /// Returns whether a message with one text has the common run; `None` if that takes the whole text.
    #[inline]
    fn has_run(&mut self, doc: u32) -> Option<bool> {
        let followed = self.followed?;
        let matcher = self.single?;
        let is_followed = followed.contains(doc);
        if is_followed && self.segment.plain.contains(doc) {
            return Some(true);
        }
        let texts = self.store.texts(doc);
        if !texts.regular || texts.differ {
            return None;
        }
        if !is_followed {
            // No character follows the run, so a matching text ends with it. Few texts do.
            let may_end = match (self.query.common_run, texts.shown.last()) {
                (Some(run), Some(last)) => run.may_end_with(last),
                _ => true,
            };
            return Some(may_end && matcher.matches(texts.shown.tail(&mut self.buffer)));
        }
        let beginning = texts.shown.part(0..texts.shown.len().min(BEGINNING), &mut self.buffer);
        let whole = beginning.iter().rposition(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
        matcher.matches(&beginning[..whole]).then_some(true)
    }

    #[inline]
    pub(super) fn matches(&mut self, candidate: &Candidate) -> bool {
        if let Some(has_run) = self.has_run(candidate.doc) {
            return has_run;
        }
        if self.query.is_gram && candidate.by_text && self.segment.plain.contains(candidate.doc) {
            return true;
        }
        if let Some(matcher) = self.single {
            return self.has(matcher, 0, candidate, self.query.texts_only);
        }
        // With several matchers, the posting lists do not tell whether the text or the title may match.
        let candidate = Candidate { doc: candidate.doc, by_text: true, by_title: true };
        let matchers = self.matchers;
        let texts_only = self.query.texts_only;
        let mut any = matchers.any.iter().zip(0..);
        let mut all = matchers.all.iter().zip(matchers.any.len()..);
        let mut none = matchers.none.iter().zip(matchers.any.len() + matchers.all.len()..);
        (matchers.any.is_empty()
            || any.any(|(it, number)| self.has(it, number, &candidate, texts_only)))
            && all.all(|(it, number)| self.has(it, number, &candidate, texts_only))
            && !none.any(|(it, number)| self.has(it, number, &candidate, texts_only))
    }

    /// Returns whether the text of a match has one of the texts that must match, if there are any, whatever its
    /// title has.
    pub(super) fn has_in_text(&mut self, doc: u32) -> bool {
        let candidate = Candidate { doc, by_text: true, by_title: false };
        let mut matchers = self.required().peekable();
        matchers.peek().is_none()
            || self.matches_without_title(doc)
            || matchers.any(|(number, matcher)| self.has(matcher, number, &candidate, true))
    }

    /// Returns the matchers of which a message must match one or all, with their numbers.
    fn required(&self) -> impl Iterator<Item = (usize, &'a Matcher)> + use<'a> {
        self.matchers.any.iter().chain(&self.matchers.all).enumerate()
    }

    /// Returns whether the matcher with this number matches the text or, unless only texts count, the title
    /// of a message.
    #[inline]
    fn has(
        &mut self,
        pattern: &Matcher,
        number: usize,
        candidate: &Candidate,
        texts_only: bool,
    ) -> bool {
        let Candidate { doc, by_text, by_title } = *candidate;
        let store = self.store;
        self.known = None;
        let by_title = by_title && !texts_only;
        let signature = if by_text { self.signature(doc) } else { None };
        let wanted = &self.query.signatures[number];
        let is_other = signature.is_some_and(|signature| !signature.may_have(wanted));
        if is_other && !by_title {
            return false;
        }
        let by_text = by_text && !is_other;
        let texts = store.texts(doc);
        if pattern.matches_all() {
            return !texts.nothing;
        }
        let first = if self.raw_content { texts.stored } else { texts.shown };
        let has_second = texts.differ && !self.raw_content && pattern.matches_stored_parts();
        let second = if has_second && !texts_only { Some(texts.stored) } else { None };
        if !texts.regular {
            self.bytes_read += (texts.shown.len() + texts.stored.len()) as u64;
            let title = store.title(store.conversation(doc));
            let buffer = &mut self.buffer;
            return !texts_only && pattern.matches_irregular(title)
                || pattern.matches_irregular(first.read(buffer))
                || second.is_some_and(|second| pattern.matches_irregular(second.read(buffer)));
        }
        if by_title && self.title_matches(pattern, number, store.conversation(doc)) {
            return true;
        }
        if !by_text {
            return false;
        }
        if let (Some(signature), SignatureQuery::Run { slots, characters }) = (signature, wanted)
            && pattern.reads_parts()
        {
            let read = &mut self.bytes_read;
            let mut answer = Some(false);
            signature.any_part(slots, *characters, first.read(&mut self.buffer), |part| {
                *read += part.len() as u64;
                answer = pattern.matches_part(part);
                answer != Some(false)
            });
            if let Some(answer) = answer {
                return answer;
            }
        }
        self.bytes_read += first.len() as u64;
        if pattern.matches(first.read(&mut self.buffer)) {
            self.known = if first.fills_buffer() { Some((doc, first.len())) } else { None };
            return true;
        }
        let Some(second) = second else { return false };
        self.bytes_read += second.len() as u64;
        pattern.matches(second.read(&mut self.buffer))
    }

    /// Returns the shown text of a message, if verification has just read it.
    pub(super) fn known_text(&self, doc: u32) -> Option<&[u8]> {
        let (known, length) = self.known?;
        if known == doc { self.buffer.get(..length) } else { None }
    }

    /// Returns whether a matching message must match by its shown text, with a single text to match.
    pub(super) fn is_by_text(&mut self, doc: u32) -> bool {
        self.single.is_some() && self.matches_without_title(doc)
    }

    /// Returns whether a match has no text but the shown one, and its title has none of the texts that must match.
    fn matches_without_title(&mut self, doc: u32) -> bool {
        let texts = self.store.texts(doc);
        let conversation = self.store.conversation(doc);
        let mut required = self.required();
        texts.regular
            && !texts.differ
            && !required.any(|(number, it)| self.title_matches(it, number, conversation))
    }

    #[inline]
    fn signature(&self, doc: u32) -> Option<Signature<'a>> {
        let signature = self.segment.signatures.get(doc)?;
        // A signature cannot tell whether the loose form of a text matches.
        let is_known = !self.query.request.ignore_accents || self.segment.plain.contains(doc);
        if is_known { Some(signature) } else { None }
    }

    pub(super) fn docs_by_title(&mut self) -> DocBits {
        let store = self.store;
        let titles = (0..store.conversations()).map(|number| store.title(number));
        let matching: Vec<bool> = titles
            .map(|title| self.matchers.any.iter().any(|matcher| matcher.matches(title)))
            .collect();
        let mut titled = DocBits::new(store.messages());
        for doc in 0..store.messages() {
            if matching[store.conversation(doc) as usize] {
                titled.insert(doc);
            }
        }
        titled
    }

    fn title_matches(&mut self, pattern: &Matcher, number: usize, conversation: u32) -> bool {
        let known = &mut self.titles[number][conversation as usize % CACHED_TITLES];
        if known.0 != conversation {
            *known = (conversation, pattern.matches(self.store.title(conversation)));
        }
        known.1
    }
}
