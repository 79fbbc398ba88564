//! Exact search in one generation: candidates in result order, verified on the sidecar.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use tantivy::postings::TermInfo;

use super::{
    Error, Generation,
    postings::{Conjunction, DocBits, END, List},
};
use crate::{
    model::{Hit, Request, Stop},
    text::{
        grams::{gaps, query_grams},
        like::LikePattern,
    },
};

/// The most lists that are intersected: more of them cost more than the candidates they spare.
const MOST_LISTS: usize = 10;

/// Bytes read for verification, and candidates, after which a pattern with `_` is looked at more
/// closely ([`super::gaps`]): about what that costs.
const PATIENCE: (u64, u64) = (1 << 20, 2_000);

/// A gram that a search looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GramUse {
    /// The gram, ASCII letters in lower case.
    pub gram: String,
    /// Whether it was looked up in the titles rather than the texts.
    pub in_titles: bool,
    /// The number of messages that hold it.
    pub messages: u32,
}

/// What a search did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The grams whose lists were used.
    pub grams: Vec<GramUse>,
    /// How many `_` the candidates were narrowed by.
    pub gaps: u64,
    /// Messages that the lists proposed, within the dates and roles asked for.
    pub candidates: u64,
    /// Messages that matched.
    pub verified: u64,
    /// Bytes of text read to verify.
    pub bytes_read: u64,
    /// Time to find the posting lists.
    pub lookup: Duration,
    /// Time to intersect them and to verify.
    pub search: Duration,
    /// Time to make rows and to hand them over.
    pub rows: Duration,
}

/// The lists that propose candidates.
enum Lists {
    /// A gram of the pattern is nowhere: nothing can match.
    Nothing,
    /// The lists to intersect; none of them if any message may match.
    All(Vec<(TermInfo, List)>),
}

impl Generation {
    /// Gives the messages that match a request to `sink`, in result order.
    pub fn search(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn FnMut(Hit) -> ControlFlow<()>,
    ) -> Result<Trace, Error> {
        let mut trace = Trace::default();
        let begun = Instant::now();
        let Some(mut limit) = Some(request.limit.unwrap_or(usize::MAX)).filter(|limit| *limit > 0)
        else {
            return Ok(trace);
        };
        let mut wanted_roles = [request.roles.is_empty(); 256];
        for role in self.rows.role_numbers(&request.roles) {
            wanted_roles[usize::from(role)] = true;
        }
        let role_list = match &request.roles[..] {
            [role] => match self.postings.find(List::Role, role.as_bytes())? {
                Some(info) => Some((info, List::Role)),
                None => return Ok(trace),
            },
            _ => None,
        };
        let pattern = (!request.text.is_empty())
            .then(|| LikePattern::parse(&request.text, request.case_sensitive));
        let mut verifier = Verifier::new(self, pattern.as_ref(), request.raw_content);
        let of_text = self.lists(List::Text, &request.text, &mut trace)?;
        // Where any text may match, a title makes no more candidates.
        let any_text = matches!(&of_text, Lists::All(lists) if lists.is_empty());
        let of_title = match any_text {
            true => Lists::Nothing,
            false => self.lists(List::Title, &request.text, &mut trace)?,
        };
        let mut in_text = self.conjunction(of_text, role_list.as_ref())?;
        let mut in_title = self.conjunction(of_title, role_list.as_ref())?;
        let interval = self.rows.interval(request.since, request.until);
        let mut irregular = self.rows.irregular(interval.start).peekable();
        trace.lookup = begun.elapsed();

        let mut rows_time = Duration::ZERO;
        let mut stopped = false;
        let mut ask = || {
            stopped = stopped || stop.requested();
            stopped
        };
        let accepts = |doc| wanted_roles[usize::from(self.rows.role(doc))];
        let mut next = interval.start;
        let (mut text_at, mut title_at) = (0, 0);
        let mut turns = 0u32;
        let mut gaps = gaps(&request.text);
        loop {
            if text_at < next || next == 0 {
                text_at = in_text
                    .as_mut()
                    .map_or(END, |lists| lists.seek(next, interval.end, accepts, &mut ask));
            }
            if title_at < next || next == 0 {
                title_at = in_title
                    .as_mut()
                    .map_or(END, |lists| lists.seek(next, interval.end, accepts, &mut ask));
            }
            let irregular_at = irregular.peek().copied().unwrap_or(END);
            let doc = text_at.min(title_at).min(irregular_at);
            if doc >= interval.end {
                break;
            }
            if irregular_at == doc {
                irregular.next();
            }
            next = doc + 1;
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(64) && ask() {
                break;
            }
            // Irregular messages come without having been asked about.
            if !accepts(doc) {
                continue;
            }
            trace.candidates += 1;
            if !gaps.is_empty()
                && (verifier.bytes_read > PATIENCE.0 || trace.candidates > PATIENCE.1)
                && let Some(lists) = &mut in_text
            {
                for gap in std::mem::take(&mut gaps) {
                    if let Some(documents) = self.fill(&gap)? {
                        lists.narrow(documents);
                        trace.gaps += 1;
                    }
                }
                if any_text && trace.gaps > 0 {
                    // Until now every message was a candidate, by its title too.
                    let mut titled = Conjunction::new(Vec::new());
                    titled.narrow(verifier.titled());
                    in_title = Some(titled);
                    title_at = 0;
                }
            }
            if !verifier.matches(doc, text_at == doc, any_text || title_at == doc) {
                continue;
            }
            trace.verified += 1;
            let matched = Instant::now();
            let flow = sink(self.rows.hit(doc, request.raw_content));
            rows_time += matched.elapsed();
            limit -= 1;
            if flow.is_break() || limit == 0 {
                break;
            }
        }
        if stopped {
            return Err(Error::Stopped);
        }
        trace.bytes_read = verifier.bytes_read;
        trace.rows = rows_time;
        trace.search = begun.elapsed().saturating_sub(trace.lookup + rows_time);
        Ok(trace)
    }

    /// Returns the rarest lists of a pattern's grams, the shortest first.
    fn lists(&self, list: List, pattern: &str, trace: &mut Trace) -> Result<Lists, Error> {
        let mut found = Vec::new();
        for gram in query_grams(pattern, &self.common) {
            match self.postings.find(list, gram.term(&mut [0; 8]))? {
                Some(info) => found.push((info, gram)),
                None => {
                    let in_titles = list == List::Title;
                    trace.grams.push(GramUse { gram: gram.to_string(), in_titles, messages: 0 });
                    return Ok(Lists::Nothing);
                }
            }
        }
        found.sort_unstable_by_key(|(info, _)| info.doc_freq);
        found.truncate(MOST_LISTS);
        trace.grams.extend(found.iter().map(|(info, gram)| GramUse {
            gram: gram.to_string(),
            in_titles: list == List::Title,
            messages: info.doc_freq,
        }));
        Ok(Lists::All(found.into_iter().map(|(info, _)| (info, list)).collect()))
    }

    /// Opens lists, and that of the role where it leads; `None` if nothing can match.
    fn conjunction(
        &self,
        lists: Lists,
        role: Option<&(TermInfo, List)>,
    ) -> Result<Option<Conjunction>, Error> {
        let Lists::All(mut lists) = lists else { return Ok(None) };
        // A role is known of every message: its list is of use only where it is the shortest.
        if let Some(role) = role
            && lists.first().is_none_or(|(rarest, _)| role.0.doc_freq < rarest.doc_freq)
        {
            lists.insert(0, role.clone());
        }
        let open = lists.iter().map(|(info, list)| self.postings.read(*list, info));
        Ok(Some(Conjunction::new(open.collect::<Result<_, _>>()?)))
    }
}

/// Tells for candidates whether they match.
struct Verifier<'a> {
    generation: &'a Generation,
    /// `None` without a text filter: everything matches.
    pattern: Option<&'a LikePattern>,
    raw_content: bool,
    /// Whether the titles of some conversations match, by the conversation's number.
    titles: [(u32, bool); 64],
    bytes_read: u64,
}

impl<'a> Verifier<'a> {
    fn new(
        generation: &'a Generation,
        pattern: Option<&'a LikePattern>,
        raw_content: bool,
    ) -> Verifier<'a> {
        let titles = [(u32::MAX, false); 64];
        Verifier { generation, pattern, raw_content, titles, bytes_read: 0 }
    }

    /// Returns whether a message matches, by its text or its title as far as each may.
    #[inline]
    fn matches(&mut self, doc: u32, by_text: bool, by_title: bool) -> bool {
        let Some(pattern) = self.pattern else { return true };
        let rows = &self.generation.rows;
        let texts = rows.texts(doc);
        if pattern.matches_all() {
            return !texts.nothing;
        }
        if !texts.regular {
            self.bytes_read += (texts.shown.len() + texts.stored.len()) as u64;
            return pattern.matches_irregular(rows.title(rows.conversation(doc)))
                || !self.raw_content && pattern.matches_irregular(texts.shown)
                || (texts.differ || self.raw_content) && pattern.matches_irregular(texts.stored);
        }
        if by_title && self.title_matches(pattern, rows.conversation(doc)) {
            return true;
        }
        if !by_text {
            return false;
        }
        let first = if self.raw_content { texts.stored } else { texts.shown };
        self.bytes_read += first.len() as u64;
        if pattern.matches(first) {
            return true;
        }
        if !texts.differ || self.raw_content {
            return false;
        }
        self.bytes_read += texts.stored.len() as u64;
        pattern.matches(texts.stored)
    }

    /// Returns the messages of the conversations whose titles match.
    fn titled(&mut self) -> DocBits {
        let rows = &self.generation.rows;
        let matching: Vec<bool> = (0..rows.conversations())
            .map(|at| self.pattern.is_none_or(|pattern| pattern.matches(rows.title(at))))
            .collect();
        let mut titled = DocBits::new(rows.messages());
        (0..rows.messages())
            .filter(|doc| matching[rows.conversation(*doc) as usize])
            .for_each(|doc| titled.insert(doc));
        titled
    }

    fn title_matches(&mut self, pattern: &LikePattern, conversation: u32) -> bool {
        let known = &mut self.titles[conversation as usize % 64];
        if known.0 != conversation {
            *known = (conversation, pattern.matches(self.generation.rows.title(conversation)));
        }
        known.1
    }
}
