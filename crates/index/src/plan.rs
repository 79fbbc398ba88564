//! The plan of an exact search: which documents of a segment are candidates.

use std::{cell::Cell, iter::Peekable, ops::Range};

use tantivy::postings::TermInfo;

use super::Result;
use super::postings::{Conjunction, DocBits, DocTree, END, List, StopCheck};
use super::role::role_key;
use super::signature::SignatureQuery;
use super::snapshot::SegmentReader;
use super::store::DocStore;
use super::trace::Trace;
use verbatim_base::model::Request;
use verbatim_text::expression::ExpressionError;
use verbatim_text::grams::{
    CommonGrams, CommonRun, Gram, WildcardGap, capital_grams, only_capital_gram, only_gram,
    query_grams, wildcard_gaps, word_grams,
};
use verbatim_text::matcher::{Matcher, Matchers};
use verbatim_text::run_query::RunQuery;

/// The maximum number of lists that are intersected. A further list costs more time than it saves.
const MAX_LISTS: usize = 10;

/// The maximum number of lists in later segments. They are small, so the grams that are rarest in the first
/// segment suffice.
const MAX_LATER_LISTS: usize = 4;

/// The length of a list in a later segment up to which verifying all its messages is cheaper than another
/// lookup.
const SHORT_LIST: u32 = 16;

/// If a list has more than one in this many messages, it is not used: reading the next message
/// takes less time than a lookup in the list.
const MOST_SHARE: u32 = 2;

/// The maximum number of gaps that are expanded. Each may take milliseconds.
const MAX_GAPS: usize = 16;

const MAX_LISTS_OF_RUN: usize = 3;

pub(super) struct GramQuery<'a> {
    pub(super) request: &'a Request,
    pub(super) matchers: Matchers,
    /// The boolean queries to look up, for several texts or for regular expressions. One of the first list
    /// must match, and all of the second list.
    runs: Option<[Vec<RunQuery>; 2]>,
    /// The signature query of each matcher, in the order `any`, `all`, `none` of the matchers.
    pub(super) signatures: Vec<SignatureQuery>,
    /// Whether the only searched text is exactly one gram. Then every plain text with this gram matches.
    pub(super) is_gram: bool,
    /// The only searched text, if it is a run that is too common to have a list.
    pub(super) common_run: Option<CommonRun>,
    /// Whether only shown texts count: a match in the title or in a stored text that is not shown is
    /// ignored.
    pub(super) texts_only: bool,
    pub(super) gaps: Vec<WildcardGap>,
    pub(super) common: &'a CommonGrams,
}

/// The grams to look up in the next segment.
///
/// The first segment is the largest. Later segments look up only the grams that are rarest in the first
/// segment. A gram that is absent from a segment moves to the front, because it is likely to be absent from
/// the next segment too.
#[derive(Clone)]
pub(super) struct QueryGrams {
    in_text: Vec<Gram>,
    in_title: Vec<Gram>,
}

impl<'a> GramQuery<'a> {
    pub(super) fn new(
        request: &'a Request,
        common: &'a CommonGrams,
    ) -> Result<(GramQuery<'a>, QueryGrams), ExpressionError> {
        let matchers = Matchers::of(request)?;
        let is_text = matches!(&matchers.any[..], [Matcher::Like(_) | Matcher::Literal(_)])
            && matchers.none.is_empty();
        // A word of the loose form of a text need not be a word of the text.
        let is_word = matches!(&matchers.any[..], [Matcher::Word(_)]) && !request.ignore_accents;
        // The loose form of a text is indexed without its case.
        let is_cased = request.case_sensitive && !request.ignore_accents;
        let mut is_gram = false;
        let mut common_run = None;
        let mut gaps = Vec::new();
        let grams = matchers.with_single(request, |pattern| {
            let only = if !is_text {
                None
            } else if request.case_sensitive {
                only_capital_gram(pattern)
            } else {
                common_run = CommonRun::from_pattern(pattern, common);
                only_gram(pattern, common)
            };
            if let Some(gram) = only {
                is_gram = true;
                return vec![gram];
            }
            let mut grams = if is_word {
                word_grams(pattern, common)
            } else {
                gaps = wildcard_gaps(pattern);
                query_grams(pattern, common)
            };
            if is_cased {
                grams.extend(pattern.runs().flat_map(capital_grams));
            }
            grams
        });
        let runs = if grams.is_none() { Some(matchers.runs(request)) } else { None };
        let signatures = matchers.each(request, SignatureQuery::new);
        if let Some(expression) = matchers.single_expression() {
            let of_expression = expression.gaps();
            gaps.extend(of_expression.map(|(left, right)| WildcardGap::between(left, right)));
        }
        gaps.retain(|gap| gap.can_narrow(common));
        gaps.truncate(MAX_GAPS);
        let in_text = grams.unwrap_or_default();
        let query = GramQuery {
            request,
            matchers,
            runs,
            signatures,
            is_gram,
            common_run,
            texts_only: false,
            gaps,
            common,
        };
        Ok((query, QueryGrams { in_title: in_text.clone(), in_text }))
    }
}

pub(super) struct Candidate {
    pub(super) doc: u32,
    pub(super) by_text: bool,
    pub(super) by_title: bool,
}

/// The candidates of a search in one segment, in result order.
pub(super) struct Plan<'a> {
    filter: DocFilter<'a>,
    in_text: Lists<'a>,
    in_title: Lists<'a>,
    /// Whether any text may match. Then every message is a candidate, so titles are not looked up.
    any_text: bool,
    /// Whether the posting lists cannot narrow a boolean query, so that every message is a candidate.
    pub(super) is_scan: bool,
    /// Messages that are not valid UTF-8 or contain a NUL. They have no reliable grams, so each is a
    /// candidate.
    irregular: Peekable<Box<dyn Iterator<Item = u32> + 'a>>,
    next: u32,
    end: u32,
    turns: u32,
}

impl<'a> Plan<'a> {
    /// Finds the posting lists in a segment; returns `None` if no message there can match.
    pub(super) fn new(
        segment: &'a SegmentReader,
        query: &GramQuery<'_>,
        grams: &mut QueryGrams,
        trace: &mut Trace,
    ) -> Result<Option<Plan<'a>>> {
        let request = query.request;
        let store = &segment.data.store;
        let role_list = match &request.roles[..] {
            [role] => {
                match segment.data.postings.find(List::Role, role_key(role, true).as_bytes())? {
                    Some(info) => Some((info, List::Role)),
                    None => return Ok(None),
                }
            }
            _ => None,
        };
        let tree = match &query.runs {
            Some(runs) => {
                let lookups = Lookups { segment, common: query.common, lists: Cell::new(0) };
                let result = lookups.request(runs)?;
                trace.lists += lookups.lists.get();
                Some(result)
            }
            None => None,
        };
        let is_scan = matches!(tree, Some(LookupResult::Everything));
        let of_text = match &tree {
            Some(LookupResult::Nothing) => None,
            Some(_) => Some(Vec::new()),
            None => rarest_lists(segment, List::Text, &mut grams.in_text, trace)?,
        };
        // A list with most of the messages hardly narrows the candidates. Only a query of one gram uses it.
        let most = if query.is_gram { u32::MAX } else { store.messages() / MOST_SHARE };
        let of_text = of_text.map(|mut lists| {
            lists.retain(|(info, _)| info.doc_freq <= most.max(SHORT_LIST));
            lists
        });
        let any_text = tree.is_some() || of_text.as_ref().is_some_and(Vec::is_empty);
        let of_title = if any_text || query.texts_only {
            None
        } else {
            rarest_lists(segment, List::Title, &mut grams.in_title, trace)?
        };
        let mut in_text = Lists::open(segment, of_text, role_list.as_ref())?;
        if let (Some(LookupResult::Documents(tree)), Some(lists)) = (tree, &mut in_text.lists) {
            lists.narrow_by(tree);
        }
        let in_title = match of_title {
            Some(lists) => Lists::open_titles(segment, lists, role_list.as_ref())?,
            None => Lists { lists: None, doc: None },
        };
        let interval = store.interval(request.since, request.until);
        let irregular: Box<dyn Iterator<Item = u32>> = Box::new(store.irregular(interval.start));
        Ok(Some(Plan {
            filter: DocFilter {
                store,
                deleted: segment.deleted.as_ref(),
                only: None,
                every_role: request.roles.is_empty(),
                roles: store.wanted_roles(&request.roles),
            },
            in_text,
            in_title,
            any_text,
            is_scan,
            irregular: irregular.peekable(),
            next: interval.start,
            end: interval.end,
            turns: 0,
        }))
    }

    pub(super) fn restrict_to_range(self, docs: Range<u32>) -> Plan<'a> {
        let next = self.next.max(docs.start);
        let end = self.end.min(docs.end);
        let irregular: Box<dyn Iterator<Item = u32>> = Box::new(self.filter.store.irregular(next));
        Plan { next, end, irregular: irregular.peekable(), ..self }
    }

    pub(super) fn restrict_to(mut self, documents: DocBits) -> Plan<'a> {
        for lists in [&mut self.in_text, &mut self.in_title] {
            if let Some(lists) = &mut lists.lists {
                lists.narrow(documents.clone());
            }
        }
        self.filter.only = Some(documents);
        self
    }

    /// Returns the next candidate; `None` after the last, or once a stop is requested.
    #[inline]
    pub(super) fn next(&mut self, stop: &mut StopCheck<'_>) -> Option<Candidate> {
        loop {
            let next = self.next;
            let end = self.end;
            let filter = &self.filter;
            let text_doc = self.in_text.seek(next, end, |doc| filter.accepts(doc), stop);
            let title_doc = self.in_title.seek(next, end, |doc| filter.accepts(doc), stop);
            let irregular_doc = self.irregular.peek().copied().unwrap_or(END);
            let doc = text_doc.min(title_doc).min(irregular_doc);
            if doc >= end {
                self.next = end;
                return None;
            }
            if irregular_doc == doc {
                self.irregular.next();
            }
            self.next = doc + 1;
            self.turns = self.turns.wrapping_add(1);
            if self.turns.is_multiple_of(64) && stop.requested() {
                return None;
            }
            // The lists apply the filters themselves; irregular messages are filtered here.
            if filter.accepts(doc) {
                let by_title = self.any_text || title_doc == doc;
                return Some(Candidate { doc, by_text: text_doc == doc, by_title });
            }
        }
    }

    pub(super) fn narrow(&mut self, documents: DocBits) {
        if let Some(lists) = &mut self.in_text.lists {
            lists.narrow(documents);
        }
    }

    /// Proposes only messages with matching titles, if every message was a candidate until now.
    pub(super) fn narrow_titles(&mut self, titled: impl FnOnce() -> DocBits) {
        if self.any_text {
            let mut lists = Conjunction::new(Vec::new());
            lists.narrow(titled());
            self.in_title = Lists { lists: Some(lists), doc: None };
        }
    }
}

/// What accepts documents, whatever their texts.
struct DocFilter<'a> {
    store: &'a DocStore,
    deleted: Option<&'a DocBits>,
    only: Option<DocBits>,
    /// Whether the request names no roles, so that every role is accepted.
    every_role: bool,
    roles: Vec<bool>,
}

impl DocFilter<'_> {
    #[inline]
    fn accepts(&self, doc: u32) -> bool {
        (self.every_role || self.roles[self.store.role(doc)])
            && self.deleted.is_none_or(|deleted| !deleted.contains(doc))
            && self.only.as_ref().is_none_or(|only| only.contains(doc))
    }
}

struct Lists<'a> {
    /// `None` if no document can match.
    lists: Option<Conjunction<'a>>,
    /// `None` before the first seek.
    doc: Option<u32>,
}

impl<'a> Lists<'a> {
    /// Opens lists, and the role's list only if that is the shortest: checking the role of each candidate is
    /// cheaper than reading a longer list.
    fn open(
        segment: &SegmentReader,
        lists: Option<Vec<(TermInfo, List)>>,
        role: Option<&(TermInfo, List)>,
    ) -> Result<Lists<'a>> {
        let Some(mut lists) = lists else { return Ok(Lists { lists: None, doc: None }) };
        if let Some(role) = role
            && lists.first().is_none_or(|(rarest, _)| role.0.doc_freq < rarest.doc_freq)
        {
            lists.insert(0, role.clone());
        }
        // An open list takes more than a kilobyte, so a growing vector would copy the lists again and again.
        let mut open = Vec::with_capacity(lists.len());
        for (info, list) in &lists {
            open.push(segment.data.postings.read(*list, info)?);
        }
        Ok(Lists { lists: Some(Conjunction::new(open)), doc: None })
    }

    /// Opens lists of titles, and the role's list if that is the shortest.
    fn open_titles(
        segment: &'a SegmentReader,
        lists: Vec<(TermInfo, List)>,
        role: Option<&(TermInfo, List)>,
    ) -> Result<Lists<'a>> {
        let shortest = lists.first().map_or(u32::MAX, |(rarest, _)| rarest.doc_freq);
        let role = role.filter(|(info, _)| info.doc_freq < shortest).cloned();
        let mut found = Lists::open(segment, Some(role.into_iter().collect()), None)?;
        let postings = &segment.data.postings;
        let trees = lists.iter().map(|(info, list)| Ok(DocTree::list(postings.read(*list, info)?)));
        let conversations = DocTree::intersection(trees.collect::<Result<_>>()?);
        if let Some(lists) = &mut found.lists {
            lists.narrow_by(DocTree::messages(&segment.data.store, conversations));
        }
        Ok(found)
    }

    /// Returns the first document at or after `target` and before `end`; [`END`] if there is none.
    #[inline]
    fn seek(
        &mut self,
        target: u32,
        end: u32,
        accepts: impl Fn(u32) -> bool,
        stop: &mut StopCheck<'_>,
    ) -> u32 {
        if let Some(doc) = self.doc
            && doc >= target
        {
            return doc;
        }
        let lists = self.lists.as_mut();
        let doc = lists.map_or(END, |lists| lists.seek(target, end, accepts, stop));
        self.doc = Some(doc);
        doc
    }
}

/// Returns the lists of the rarest grams, the shortest first. Returns no lists if any message may match, and
/// `None` if a gram is absent, so that no message can match.
fn rarest_lists(
    segment: &SegmentReader,
    list: List,
    grams: &mut Vec<Gram>,
    trace: &mut Trace,
) -> Result<Option<Vec<(TermInfo, List)>>> {
    let is_first = segment.first == 0;
    let mut present: Vec<(TermInfo, Gram)> = Vec::with_capacity(grams.len());
    let lookups = if is_first { usize::MAX } else { MAX_LATER_LISTS };
    for (place, gram) in grams.iter().enumerate().take(lookups) {
        let Some(info) = segment.data.postings.find(list, gram.term(&mut [0; 8]))? else {
            grams.swap(0, place);
            return Ok(None);
        };
        let is_enough = !is_first && info.doc_freq <= SHORT_LIST;
        present.push((info, *gram));
        if is_enough {
            break;
        }
    }
    present.sort_unstable_by_key(|(info, _)| info.doc_freq);
    if is_first {
        grams.clear();
        grams.extend(present.iter().take(MAX_LATER_LISTS).map(|(_, gram)| *gram));
    }
    present.truncate(MAX_LISTS);
    trace.lists += present.len() as u64;
    Ok(Some(present.into_iter().map(|(info, _)| (info, list)).collect()))
}

enum LookupResult<'a> {
    /// No message can match.
    Nothing,
    /// Every message is a candidate.
    Everything,
    Documents(DocTree<'a>),
}

impl<'a> LookupResult<'a> {
    fn intersection(
        parts: impl Iterator<Item = Result<LookupResult<'a>>>,
    ) -> Result<LookupResult<'a>> {
        let mut all = Vec::new();
        for part in parts {
            match part? {
                LookupResult::Nothing => return Ok(LookupResult::Nothing),
                LookupResult::Everything => {}
                LookupResult::Documents(tree) => all.push(tree),
            }
        }
        Ok(if all.is_empty() {
            LookupResult::Everything
        } else {
            LookupResult::Documents(DocTree::intersection(all))
        })
    }

    fn union(parts: impl Iterator<Item = Result<LookupResult<'a>>>) -> Result<LookupResult<'a>> {
        let mut one_of = Vec::new();
        for part in parts {
            match part? {
                LookupResult::Nothing => {}
                LookupResult::Everything => return Ok(LookupResult::Everything),
                LookupResult::Documents(tree) => one_of.push(tree),
            }
        }
        Ok(if one_of.is_empty() {
            LookupResult::Nothing
        } else {
            LookupResult::Documents(DocTree::union(one_of))
        })
    }
}

struct Lookups<'a, 't> {
    segment: &'a SegmentReader,
    common: &'t CommonGrams,
    /// The number of lists that were opened.
    lists: Cell<u64>,
}

impl<'a> Lookups<'a, '_> {
    /// Looks up the texts of a request: one of `any` must match, and every one of `all`.
    fn request(&self, [any, all]: &[Vec<RunQuery>; 2]) -> Result<LookupResult<'a>> {
        let any = if any.is_empty() {
            LookupResult::Everything
        } else {
            LookupResult::union(any.iter().map(|query| self.in_text_or_title(query)))?
        };
        let all = all.iter().map(|query| self.in_text_or_title(query));
        LookupResult::intersection(std::iter::once(Ok(any)).chain(all))
    }

    fn in_text_or_title(&self, query: &RunQuery) -> Result<LookupResult<'a>> {
        let in_title = match self.query(query, List::Title)? {
            LookupResult::Documents(conversations) => {
                LookupResult::Documents(DocTree::messages(&self.segment.data.store, conversations))
            }
            all_or_nothing => all_or_nothing,
        };
        LookupResult::union([self.query(query, List::Text), Ok(in_title)].into_iter())
    }

    fn query(&self, query: &RunQuery, list: List) -> Result<LookupResult<'a>> {
        match query {
            RunQuery::Anything => Ok(LookupResult::Everything),
            RunQuery::Run(_) | RunQuery::Cased(_) | RunQuery::Word(_) => self.run(query, list),
            RunQuery::All(parts) => {
                LookupResult::intersection(parts.iter().map(|part| self.query(part, list)))
            }
            RunQuery::OneOf(parts) => {
                LookupResult::union(parts.iter().map(|part| self.query(part, list)))
            }
        }
    }

    fn run(&self, run: &RunQuery, list: List) -> Result<LookupResult<'a>> {
        let postings = &self.segment.data.postings;
        let mut present: Vec<TermInfo> = Vec::new();
        for gram in run.grams(self.common) {
            match postings.find(list, gram.term(&mut [0; 8]))? {
                Some(info) => present.push(info),
                None => return Ok(LookupResult::Nothing),
            }
        }
        present.sort_unstable_by_key(|info| info.doc_freq);
        present.truncate(MAX_LISTS_OF_RUN);
        self.lists.set(self.lists.get() + present.len() as u64);
        let open = present
            .iter()
            .map(|info| Ok(LookupResult::Documents(DocTree::list(postings.read(list, info)?))));
        LookupResult::intersection(open)
    }
}
