//! The messages of one part that match, in result order.

use std::ops::Range;

use tantivy::postings::TermInfo;

use super::{
    Error,
    postings::{Conjunction, DocBits, END, List},
    search::{GramUse, Trace},
    snapshot::SegmentReader,
    store::Rows,
};
use crate::{
    model::Request,
    text::{
        grams::{CommonGrams, Gram, WildcardGap, gaps, query_grams},
        like::LikePattern,
    },
};

/// The most lists that are intersected: more of them cost more than the candidates they spare.
const MOST_LISTS: usize = 10;

/// The most lists in a part after the first, which is small: the rarest of the first suffice.
const MOST_LATER_LISTS: usize = 4;

/// Messages in a list of such a part that are verified sooner than another list is looked up.
const FEW: u32 = 16;

/// Bytes read for verification, and candidates, after which a pattern with `_` is looked at more
/// closely ([`super::gaps`]): about what that costs.
const PATIENCE: (u64, u64) = (1 << 20, 2_000);

/// What is asked of every part alike.
pub(super) struct Query<'a> {
    request: &'a Request,
    /// `None` without a text filter: everything matches.
    pattern: Option<LikePattern>,
    common: &'a CommonGrams,
}

/// The grams of the text; from the second part on those that the first one, the largest, has found
/// the rarest: what is absent is then found out at once.
pub(super) struct Needed {
    in_text: Vec<Gram>,
    in_title: Vec<Gram>,
}

impl<'a> Query<'a> {
    pub(super) fn new(request: &'a Request, common: &'a CommonGrams) -> Query<'a> {
        let pattern = (!request.text.is_empty())
            .then(|| LikePattern::parse(&request.text, request.case_sensitive));
        Query { request, pattern, common }
    }

    pub(super) fn needed(&self) -> Needed {
        let grams = query_grams(&self.request.text, self.common);
        Needed { in_title: grams.clone(), in_text: grams }
    }
}

/// The lists that propose candidates.
enum Lists {
    /// A gram of the pattern is nowhere: nothing can match.
    Nothing,
    /// The lists to intersect; none of them if any message may match.
    All(Vec<(TermInfo, List)>),
}

/// A search in one part.
pub(super) struct Cursor<'a> {
    pub(super) member: &'a SegmentReader,
    common: &'a CommonGrams,
    verifier: Verifier<'a>,
    wanted_roles: Vec<bool>,
    in_text: Option<Conjunction>,
    in_title: Option<Conjunction>,
    /// Whether any text may match: then a title makes no more candidates.
    any_text: bool,
    irregular: std::iter::Peekable<Box<dyn Iterator<Item = u32> + 'a>>,
    interval: Range<u32>,
    gaps: Vec<WildcardGap>,
    next: u32,
    text_at: u32,
    title_at: u32,
    turns: u32,
    candidates: u64,
}

impl<'a> Cursor<'a> {
    /// Finds the lists; `None` if nothing can match.
    pub(super) fn open(
        member: &'a SegmentReader,
        query: &'a Query<'_>,
        needed: &mut Needed,
        trace: &mut Trace,
    ) -> Result<Option<Cursor<'a>>, Error> {
        let Query { request, common, .. } = *query;
        let (rows, postings) = (&member.part.rows, &member.part.postings);
        let role_list = match &request.roles[..] {
            [role] => match postings.find(List::Role, role.as_bytes())? {
                Some(info) => Some((info, List::Role)),
                None => return Ok(None),
            },
            _ => None,
        };
        let of_text = lists(member, List::Text, &mut needed.in_text, trace)?;
        let any_text = matches!(&of_text, Lists::All(lists) if lists.is_empty());
        let of_title = match any_text {
            true => Lists::Nothing,
            false => lists(member, List::Title, &mut needed.in_title, trace)?,
        };
        let interval = rows.interval(request.since, request.until);
        let irregular: Box<dyn Iterator<Item = u32>> = Box::new(rows.irregular(interval.start));
        Ok(Some(Cursor {
            in_text: conjunction(member, of_text, role_list.as_ref())?,
            in_title: conjunction(member, of_title, role_list.as_ref())?,
            member,
            common,
            verifier: Verifier::new(rows, query.pattern.as_ref(), request.raw_content),
            wanted_roles: rows.wanted_roles(&request.roles),
            any_text,
            irregular: irregular.peekable(),
            next: interval.start,
            interval,
            gaps: gaps(&request.text),
            text_at: 0,
            title_at: 0,
            turns: 0,
            candidates: 0,
        }))
    }

    /// Returns the next message that matches; `None` after the last, or once `stop` says so.
    pub(super) fn next(
        &mut self,
        stop: &mut dyn FnMut() -> bool,
        trace: &mut Trace,
    ) -> Result<Option<u32>, Error> {
        let (rows, dead) = (&self.member.part.rows, self.member.dead.as_ref());
        let mut stop = || stop();
        loop {
            let wanted = &self.wanted_roles;
            let accepts =
                |doc| wanted[rows.role(doc)] && dead.is_none_or(|dead| !dead.contains(doc));
            let (next, end) = (self.next, self.interval.end);
            for (at, lists) in
                [(&mut self.text_at, &mut self.in_text), (&mut self.title_at, &mut self.in_title)]
            {
                if *at < next || next == 0 {
                    *at = lists
                        .as_mut()
                        .map_or(END, |lists| lists.seek(next, end, accepts, &mut stop));
                }
            }
            let irregular_at = self.irregular.peek().copied().unwrap_or(END);
            let doc = self.text_at.min(self.title_at).min(irregular_at);
            if doc >= end {
                self.next = end;
                return Ok(None);
            }
            if irregular_at == doc {
                self.irregular.next();
            }
            self.next = doc + 1;
            self.turns = self.turns.wrapping_add(1);
            if self.turns.is_multiple_of(64) && stop() {
                return Ok(None);
            }
            // Irregular messages come without having been asked about.
            if !accepts(doc) {
                continue;
            }
            self.candidates += 1;
            trace.candidates += 1;
            let read = self.verifier.bytes_read;
            if !self.gaps.is_empty() && (read > PATIENCE.0 || self.candidates > PATIENCE.1) {
                self.narrow(trace)?;
            }
            let by_title = self.any_text || self.title_at == doc;
            let matches = self.verifier.matches(doc, self.text_at == doc, by_title);
            trace.bytes_read += self.verifier.bytes_read - read;
            if matches {
                trace.verified += 1;
                return Ok(Some(doc));
            }
        }
    }

    /// Looks at the pattern's `_`, which the runs around them were not enough for.
    fn narrow(&mut self, trace: &mut Trace) -> Result<(), Error> {
        let Some(lists) = &mut self.in_text else { return Ok(()) };
        let mut narrowed = false;
        for gap in std::mem::take(&mut self.gaps) {
            if let Some(documents) = self.member.part.fill(&gap, self.common)? {
                lists.narrow(documents);
                trace.gaps += 1;
                narrowed = true;
            }
        }
        if self.any_text && narrowed {
            // Until now every message was a candidate, by its title too.
            let mut titled = Conjunction::new(Vec::new());
            titled.narrow(self.verifier.titled());
            self.in_title = Some(titled);
            self.title_at = 0;
        }
        Ok(())
    }
}

/// Returns the rarest lists of grams, the shortest first; the first part leaves the grams in that
/// order, and only those that later parts need.
fn lists(
    member: &SegmentReader,
    list: List,
    grams: &mut Vec<Gram>,
    trace: &mut Trace,
) -> Result<Lists, Error> {
    let mut found: Vec<(TermInfo, Gram)> = Vec::with_capacity(grams.len());
    let mut used = |gram: Gram, messages| {
        let in_titles = list == List::Title;
        // The first part is by far the largest, and tells what the others would.
        if member.first == 0 {
            trace.grams.push(GramUse { gram: gram.to_string(), in_titles, messages });
        }
    };
    let most = if member.first == 0 { usize::MAX } else { MOST_LATER_LISTS };
    for (place, gram) in grams.iter().enumerate().take(most) {
        match member.part.postings.find(list, gram.term(&mut [0; 8]))? {
            Some(info) => {
                let is_enough = member.first != 0 && info.doc_freq <= FEW;
                found.push((info, *gram));
                if is_enough {
                    break;
                }
            }
            None => {
                used(*gram, 0);
                // What is rare here is likely to be absent from the other parts too.
                grams.swap(0, place);
                return Ok(Lists::Nothing);
            }
        }
    }
    found.sort_unstable_by_key(|(info, _)| info.doc_freq);
    if member.first == 0 {
        grams.clear();
        grams.extend(found.iter().take(MOST_LATER_LISTS).map(|(_, gram)| *gram));
    }
    found.truncate(MOST_LISTS);
    found.iter().for_each(|(info, gram)| used(*gram, info.doc_freq));
    Ok(Lists::All(found.into_iter().map(|(info, _)| (info, list)).collect()))
}

/// Opens lists, and that of the role where it leads; `None` if nothing can match.
fn conjunction(
    member: &SegmentReader,
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
    let open = lists.iter().map(|(info, list)| member.part.postings.read(*list, info));
    Ok(Some(Conjunction::new(open.collect::<Result<_, _>>()?)))
}

/// Tells for candidates whether they match.
struct Verifier<'a> {
    rows: &'a Rows,
    /// `None` without a text filter: everything matches.
    pattern: Option<&'a LikePattern>,
    raw_content: bool,
    /// Whether the titles of some conversations match, by the conversation's number.
    titles: [(u32, bool); 64],
    bytes_read: u64,
}

impl<'a> Verifier<'a> {
    fn new(rows: &'a Rows, pattern: Option<&'a LikePattern>, raw_content: bool) -> Verifier<'a> {
        let titles = [(u32::MAX, false); 64];
        Verifier { rows, pattern, raw_content, titles, bytes_read: 0 }
    }

    /// Returns whether a message matches, by its text or its title as far as each may.
    #[inline]
    fn matches(&mut self, doc: u32, by_text: bool, by_title: bool) -> bool {
        let Some(pattern) = self.pattern else { return true };
        let rows = self.rows;
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
        let rows = self.rows;
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
            *known = (conversation, pattern.matches(self.rows.title(conversation)));
        }
        known.1
    }
}
