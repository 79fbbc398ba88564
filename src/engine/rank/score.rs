//! Scores of messages: words and vectors, what stands beside them, and who wrote them.
//!
//! ```text
//! B(i) = BM25(i) / the best;   V(i) = max(0, (cos(i) - cos_K) / (cos_1 - cos_K))
//! f(i) = (1 - v) B(i) + v V(i);   v = 0.35 where messages are short, 0.2 where they are long
//! g(i) = f(i) + borrow(i) (0.4 f(i-1) + 0.2 f(i-2) + 0.15 f(i+1) + 0.1 f(i+2))
//! score(i) = g(i) + 0.15 where the one author who is named wrote i
//! ```
//!
//! The best K by words and the best K by vectors, and what stands beside them in their
//! conversations, are scored so. A long message borrows less, and so does every message where they
//! are long on average: of their own they have enough, and what stands beside them says less. Nor
//! does a vector say as much of a long text: it is the mean of all that the text speaks of. v is less
//! where the model does not know all words of the question, and 0 where it is of another language.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use super::{
    concept::ParsedConcept,
    prepare::{PLAIN_ROLES, Searcher},
};
use crate::{
    engine::{Error, Mode, Scope},
    index::{Bm25, DocSet, Norms, TermIndex, holding},
    model::Stop,
    text::{query::Query, words::Tokenizer},
};

/// How many of the best by words, and by vectors, are scored: in one conversation, and over all.
const DEPTH: (usize, usize) = (100, 200);

/// The same where several things must be found in a conversation.
const DEEPER: usize = 1000;

/// What vectors count where messages are short, and where they are long; words count the rest.
///
/// From .2 to .4 the figures are nearly the same on LoCoMo, and .2 is best on MT-RAG's passages and
/// Cranfield's abstracts.
const VECTORS: (f32, f32) = (0.35, 0.2);

/// What a message has of those beside it: how far after it the other stands, and the share.
const BORROWED: [(i64, f32); 4] = [(-1, 0.4), (-2, 0.2), (1, 0.15), (2, 0.1)];

/// TermIndex that count, up to which a message borrows the whole of its share: some 60 in all.
const OWN: f32 = 32.0;

/// What it adds to be by the author who is named.
const BY_AUTHOR: f32 = 0.15;

/// What it adds that all of the question's weight is in the title.
const IN_TITLE: f32 = 0.05;

/// What it adds to be new; half of it after half a year.
const RECENT: (f32, f32) = (0.01, 182.0 * 86_400.0);

/// The most that a score can be before it is brought between 0 and 1.
const MOST: f32 = 1.0 + 0.4 + 0.2 + 0.15 + 0.1 + BY_AUTHOR + IN_TITLE + RECENT.0;

/// The average lengths, in words that count, up to which messages are short and from which they
/// are long: some 25 and 180 words in all.
const LENGTHS: (f32, f32) = (15.0, 100.0);

/// A message with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scored {
    /// Which of the sources.
    pub(crate) searcher: usize,
    pub(crate) doc_id: u32,
    pub(crate) score: f32,
}

impl Scored {
    /// The better first; of equal ones the first source's, then the newer.
    pub(crate) fn order(&self, other: &Scored) -> Ordering {
        let of_equal = || (self.searcher, self.doc_id).cmp(&(other.searcher, other.doc_id));
        other.score.total_cmp(&self.score).then_with(of_equal)
    }
}

/// Returns where between short and long messages are on average, from 0 to 1: smooth in the
/// logarithm.
fn longness(average: f32) -> f32 {
    let share = (average / LENGTHS.0).ln() / (LENGTHS.1 / LENGTHS.0).ln();
    share.clamp(0.0, 1.0)
}

/// Returns how length counts where messages are so long on average.
///
/// Short turns differ in length by chance; long answers are long because they say more.
fn norms(average: f32) -> Norms {
    let share = longness(average);
    Norms { k1: 0.9 + 0.3 * share, b: 0.4 + 0.35 * share, average }
}

/// Which messages of a source are asked.
#[derive(Debug)]
pub(crate) struct Filter {
    /// The doc ids of each part that lie within the dates.
    intervals: Vec<Range<u32>>,
    /// The doc ids of the one conversation asked, ascending.
    pub(crate) conversation: Option<Vec<u32>>,
    /// The conversations asked, where only some are.
    conversations: Option<HashSet<u32>>,
    roles: Vec<String>,
}

impl Filter {
    /// Finds what of a source is in a scope; `conversations` are those of the project or session.
    pub(crate) fn of(
        searcher: &Searcher,
        scope: &Scope,
        conversations: Option<HashSet<u32>>,
    ) -> Filter {
        let snapshot = searcher.snapshot();
        let interval = |doc_ids: &Range<u32>| {
            // Newest first, and those without a time last.
            let first = |is_past: &dyn Fn(u32) -> bool| {
                let (mut low, mut high) = (doc_ids.start, doc_ids.end);
                while low < high {
                    let middle = low.midpoint(high);
                    if is_past(middle) { high = middle } else { low = middle + 1 }
                }
                low
            };
            let start = scope.until.map_or(doc_ids.start, |until| {
                first(&|doc_id| snapshot.time(doc_id).is_none_or(|time| time <= until))
            });
            let end = match (scope.since, scope.until) {
                (Some(since), _) => {
                    first(&|doc_id| snapshot.time(doc_id).is_none_or(|time| time < since))
                }
                (None, Some(_)) => first(&|doc_id| snapshot.time(doc_id).is_none()),
                (None, None) => doc_ids.end,
            };
            start..end.max(start)
        };
        let intervals: Vec<_> = searcher.parts.iter().map(|part| interval(&part.doc_ids)).collect();
        let conversation = scope.conversation.as_ref().map(|id| {
            let mut doc_ids = match searcher.catalogue.find(id) {
                Some(conversation) => searcher.catalogue.doc_ids(conversation).to_vec(),
                None => Vec::new(),
            };
            doc_ids.sort_unstable();
            doc_ids
        });
        Filter { intervals, conversation, conversations, roles: scope.roles.clone() }
    }

    /// Whether a message is asked.
    pub(crate) fn accepts(&self, searcher: &Searcher, doc_id: u32) -> bool {
        let snapshot = searcher.snapshot();
        (self.roles.is_empty() || self.roles.iter().any(|role| role == snapshot.role(doc_id)))
            && snapshot.is_live(doc_id)
            && self.intervals.iter().any(|interval| interval.contains(&doc_id))
            && self.conversations.as_ref().is_none_or(|some| {
                searcher.catalogue.conversation(doc_id).is_some_and(|one| some.contains(&one))
            })
    }

    /// The authors who wrote any of it, perhaps others besides.
    pub(crate) fn authors<'r>(&self, searcher: &'r Searcher) -> Vec<&'r str> {
        let Some(doc_ids) = &self.conversation else {
            return searcher.authors.iter().map(String::as_str).collect();
        };
        let snapshot = searcher.catalogue.snapshot();
        let mut authors: Vec<&str> = doc_ids.iter().map(|doc_id| snapshot.role(*doc_id)).collect();
        authors.sort_unstable();
        authors.dedup();
        authors.retain(|author| !PLAIN_ROLES.contains(author));
        authors
    }
}

/// What of a source one thing asked for is sought in.
struct Filtered<'a> {
    searcher: &'a Searcher,
    selection: &'a Filter,
    words: Vec<(Range<u32>, &'a TermIndex)>,
    /// Slots that alone come into question, ascending: those of one conversation, or with a phrase.
    doc_ids: Option<Vec<u32>>,
    /// Slots with what is excluded.
    banned: HashSet<u32>,
    /// What is still to be looked for in a text.
    query: Option<&'a Query>,
}

impl<'a> Filtered<'a> {
    fn of(
        searcher: &'a Searcher,
        selection: &'a Filter,
        concept: &'a ParsedConcept,
        stop: &Stop,
    ) -> Result<Filtered<'a>, Error> {
        let words = searcher.words();
        let cutter = Tokenizer::default();
        let query = &concept.query;
        let mut field = Filtered {
            searcher,
            selection,
            doc_ids: selection.conversation.clone(),
            banned: HashSet::new(),
            query: None,
            words,
        };
        let has_words = searcher.parts.iter().all(|part| part.words.is_some());
        let required: Vec<String> =
            query.phrases.iter().flat_map(|phrase| cutter.required(phrase)).collect();
        if !query.phrases.is_empty() {
            field.query = Some(query);
            if has_words && !required.is_empty() {
                let found = holding(&field.words, &required, stop)?;
                field.doc_ids = Some(match field.doc_ids {
                    Some(doc_ids) => doc_ids
                        .into_iter()
                        .filter(|doc_id| found.binary_search(doc_id).is_ok())
                        .collect(),
                    None => found,
                });
            }
        }
        for phrase in &query.excluded {
            let required = cutter.required(phrase);
            if required.is_empty() || !has_words {
                field.query = Some(query);
                continue;
            }
            let snapshot = searcher.snapshot();
            let one = Query { excluded: vec![phrase.clone()], ..Query::default() };
            let found = holding(&field.words, &required, stop)?;
            let has = |doc_id: &u32| !one.allows(&snapshot.content(*doc_id));
            field.banned.extend(found.into_iter().filter(has));
        }
        Ok(field)
    }

    fn accepts(&self, doc_id: u32) -> bool {
        self.selection.accepts(self.searcher, doc_id)
            && !self.banned.contains(&doc_id)
            && self
                .query
                .is_none_or(|query| query.allows(&self.searcher.snapshot().content(doc_id)))
    }

    fn among(&self) -> DocSet<'_> {
        match &self.doc_ids {
            Some(doc_ids) => DocSet::DocIds(doc_ids),
            None => DocSet::Intervals(&self.selection.intervals),
        }
    }

    /// The most like a vector, the best first.
    fn like(&self, vector: &[f32], most: usize) -> Result<Vec<(u32, f32)>, crate::index::Error> {
        let mut found = Vec::new();
        for part in &self.searcher.parts {
            let Some(vectors) = &part.vectors else { continue };
            let first = part.doc_ids.start;
            match &self.doc_ids {
                Some(doc_ids) => {
                    let doc_ids =
                        doc_ids.iter().copied().filter(|doc_id| part.doc_ids.contains(doc_id));
                    let doc_ids: Vec<u32> =
                        doc_ids.filter(|doc_id| self.accepts(*doc_id)).collect();
                    let scores = self.likeness(vector, &doc_ids)?;
                    found
                        .extend(doc_ids.into_iter().zip(scores).filter(|(_, score)| *score != 0.0));
                }
                None => {
                    let accepts = |doc_id: u32| self.accepts(first + doc_id);
                    let best = vectors.top_k(vector, most, accepts)?;
                    found.extend(best.iter().map(|scored| (first + scored.doc_id, scored.score)));
                }
            }
        }
        found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(most);
        Ok(found)
    }

    /// How like a vector each of some messages is; 0 for those without a vector.
    fn likeness(&self, vector: &[f32], doc_ids: &[u32]) -> Result<Vec<f32>, crate::index::Error> {
        let mut scores = vec![0.0; doc_ids.len()];
        for part in &self.searcher.parts {
            let Some(vectors) = &part.vectors else { continue };
            let inside: Vec<usize> =
                (0..doc_ids.len()).filter(|at| part.doc_ids.contains(&doc_ids[*at])).collect();
            let of_part: Vec<u32> =
                inside.iter().map(|at| doc_ids[*at] - part.doc_ids.start).collect();
            for (at, score) in inside.iter().zip(vectors.scores(vector, &of_part)?) {
                scores[*at] = score;
            }
        }
        Ok(scores)
    }
}

/// Returns where a cosine is placed between the least of the best, which are sorted, and the very
/// best: from 0 to 1.
pub(crate) fn nearness(best: &[f32]) -> impl Fn(f32) -> f32 + use<> {
    let first = best.first().copied().unwrap_or(1.0);
    let last = best.last().copied().unwrap_or(0.0);
    // Of one there is no range to place it in: it is the best there is.
    let range = first - last;
    move |cosine| match range > 1e-6 {
        true => ((cosine - last) / range).max(0.0),
        false => f32::from(cosine >= first),
    }
}

/// Returns the messages that answer one thing asked for, the best first.
///
/// What is quoted in a sentence is found first, the rest after it; where nothing has it as it stands,
/// it is words like the others: people quote from memory.
pub(crate) fn weigh(
    searchers: &[Arc<Searcher>],
    selections: &[Filter],
    concept: &mut ParsedConcept,
    mode: Mode,
    is_one_of_several: bool,
    stop: &Stop,
    notes: &mut Vec<String>,
) -> Result<Vec<Scored>, Error> {
    let mut found = scored(searchers, selections, concept, mode, is_one_of_several, stop, notes)?;
    let query = &mut concept.query;
    let is_enough = !found.is_empty() && !query.is_sentence;
    if query.phrases.is_empty() || query.is_all_quoted || is_enough {
        return Ok(found);
    }
    let phrases = std::mem::take(&mut query.phrases);
    if found.is_empty() {
        let quoted: Vec<_> = phrases.iter().map(|phrase| format!("“{}”", phrase.text())).collect();
        let quoted = quoted.join(" and ");
        notes.push(format!("nothing has {quoted} as it stands: ranked by its words"));
    }
    let mut others = scored(searchers, selections, concept, mode, is_one_of_several, stop, notes)?;
    if !found.is_empty() {
        let first: HashSet<(usize, u32)> =
            found.iter().map(|one| (one.searcher, one.doc_id)).collect();
        others.retain(|one| !first.contains(&(one.searcher, one.doc_id)));
        found.iter_mut().for_each(|one| one.score = f32::midpoint(one.score, 1.0));
        others.iter_mut().for_each(|one| one.score /= 2.0);
    }
    found.extend(others);
    Ok(found)
}

fn scored(
    searchers: &[Arc<Searcher>],
    selections: &[Filter],
    concept: &ParsedConcept,
    mode: Mode,
    is_one_of_several: bool,
    stop: &Stop,
    notes: &mut Vec<String>,
) -> Result<Vec<Scored>, Error> {
    let is_narrow = selections.iter().any(|selection| selection.conversation.is_some());
    let depth = match (is_one_of_several, is_narrow) {
        (true, _) => DEEPER,
        (false, true) => DEPTH.0,
        (false, false) => DEPTH.1,
    };
    let norms = norms(concept.average);
    let fields = searchers.iter().zip(selections);
    let fields: Vec<Filtered<'_>> = fields
        .map(|(searcher, selection)| Filtered::of(searcher, selection, concept, stop))
        .collect::<Result<_, _>>()?;

    let mut by_words: Vec<(usize, u32, f32)> = Vec::new();
    let mut by_vector: Vec<(usize, u32, f32)> = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        let accepts = |doc_id: u32| field.accepts(doc_id);
        let bm25 = Bm25 { segments: &field.words, terms: &concept.terms, norms };
        let found = bm25.best(field.among(), &accepts, depth, stop)?;
        by_words.extend(found.into_iter().map(|(doc_id, score)| (place, doc_id, score)));
        if let Some(vector) = &concept.vector {
            match field.like(vector, depth) {
                Ok(found) => {
                    by_vector
                        .extend(found.into_iter().map(|(doc_id, score)| (place, doc_id, score)));
                }
                Err(error) => notes.push(format!("ranked by words alone: {error}")),
            }
        }
        if stop.requested() {
            return Err(crate::db::Error::Stopped.into());
        }
    }
    for found in [&mut by_words, &mut by_vector] {
        found.sort_unstable_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
        found.truncate(depth);
    }
    let (share, vector_share) = match (mode, concept.vector.is_some()) {
        (Mode::Vector, true) => (0.0, 1.0),
        (_, true) if !concept.terms.is_empty() => {
            let share = VECTORS.0 + (VECTORS.1 - VECTORS.0) * longness(concept.average);
            (1.0 - concept.known * share, concept.known * share)
        }
        (_, true) => (0.0, 1.0),
        (_, false) => (1.0, 0.0),
    };
    let best_words = by_words.first().map_or(1.0, |found| found.2);
    let cosines: Vec<f32> = by_vector.iter().map(|found| found.2).collect();
    let nearness = nearness(&cosines);

    let mut all = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        let seeds = by_words.iter().chain(&by_vector).filter(|seed| seed.0 == place);
        let scores = beside(field, seeds.map(|seed| seed.1));
        let doc_ids: Vec<u32> = {
            let mut doc_ids: Vec<u32> = scores.into_iter().collect();
            doc_ids.sort_unstable();
            doc_ids
        };
        let mut own: HashMap<u32, f32> = HashMap::with_capacity(doc_ids.len());
        if share > 0.0 {
            let any = |_| true;
            let among = DocSet::DocIds(&doc_ids);
            let bm25 = Bm25 { segments: &field.words, terms: &concept.terms, norms };
            let found = bm25.best(among, &any, doc_ids.len(), stop)?;
            let shares =
                found.into_iter().map(|(doc_id, score)| (doc_id, share * score / best_words));
            own.extend(shares);
        }
        if let Some(vector) = &concept.vector {
            let found =
                field.likeness(vector, &doc_ids).unwrap_or_else(|_| vec![0.0; doc_ids.len()]);
            for (doc_id, score) in doc_ids.iter().zip(found).filter(|(_, score)| *score != 0.0) {
                *own.entry(*doc_id).or_default() += vector_share * nearness(score);
            }
        }
        all.extend(finish(field, concept, &doc_ids, &own).map(|(doc_id, score)| Scored {
            searcher: place,
            doc_id,
            score: (score / MOST).clamp(0.0, 1.0),
        }));
    }
    all.sort_unstable_by(Scored::order);
    Ok(all)
}

/// Returns some messages and those beside them that are asked.
fn beside(field: &Filtered<'_>, seeds: impl Iterator<Item = u32>) -> HashSet<u32> {
    let catalogue = &field.searcher.catalogue;
    let mut doc_ids = HashSet::new();
    for seed in seeds {
        doc_ids.insert(seed);
        let (Some(conversation), Some(place)) =
            (catalogue.conversation(seed), catalogue.place(seed))
        else {
            continue;
        };
        let reading = catalogue.reading(conversation);
        let end = reading.len().min(place as usize + 3);
        for doc_id in &reading[(place as usize).saturating_sub(2)..end] {
            if !doc_ids.contains(doc_id) && field.accepts(*doc_id) {
                doc_ids.insert(*doc_id);
            }
        }
    }
    doc_ids
}

/// Adds to each message's own score what it has from elsewhere; leaves out what has nothing.
fn finish<'a>(
    field: &'a Filtered<'a>,
    concept: &'a ParsedConcept,
    doc_ids: &'a [u32],
    own: &'a HashMap<u32, f32>,
) -> impl Iterator<Item = (u32, f32)> + 'a {
    let catalogue = &field.searcher.catalogue;
    let snapshot = field.searcher.snapshot();
    let newest = catalogue.conversations().first().and_then(|listed| listed.last);
    let mut titles: HashMap<u32, f32> = HashMap::new();
    let cutter = Tokenizer::default();
    let total: f32 = concept.terms.iter().map(|term| term.weight).sum();
    let mut in_title = move |conversation: u32| {
        *titles.entry(conversation).or_insert_with(|| {
            let title = &catalogue.conversations()[conversation as usize].title;
            let of_title = cutter.question(title);
            let there = concept.terms.iter().filter(|term| of_title.contains(&term.term));
            there.map(|term| term.weight).sum::<f32>() / total.max(f32::MIN_POSITIVE)
        })
    };
    doc_ids.iter().filter_map(move |doc_id| {
        let conversation = catalogue.conversation(*doc_id)?;
        let reading = catalogue.reading(conversation);
        let place = i64::from(catalogue.place(*doc_id)?);
        let own_words = field.searcher.length(*doc_id).unwrap_or(1).max(1) as f32;
        let share = (OWN / own_words).min(1.0) * (OWN / concept.average).min(1.0);
        let mut score = own.get(doc_id).copied().unwrap_or(0.0);
        for (distance, part) in BORROWED {
            let at = usize::try_from(place + distance).ok();
            let other = at.and_then(|at| reading.get(at)).and_then(|doc_id| own.get(doc_id));
            score += share * part * other.unwrap_or(&0.0);
        }
        if score <= 0.0 {
            return None;
        }
        if concept.author.as_deref() == Some(snapshot.role(*doc_id)) {
            score += BY_AUTHOR;
        }
        score += IN_TITLE * in_title(conversation);
        if let (Some(newest), Some(time)) = (newest, snapshot.time(*doc_id)) {
            let age = (newest.seconds.saturating_sub(time.seconds)).max(0) as f32;
            score += RECENT.0 * (-age / RECENT.1).exp2();
        }
        Some((*doc_id, score))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_counts_more_where_messages_are_long() {
        let [short, middle, long] = [9.0, 38.7, 160.0].map(norms);
        assert_eq!((short.k1, short.b), (0.9, 0.4));
        assert_eq!((long.k1, long.b), (1.2, 0.75));
        assert!((middle.k1 - 1.05).abs() < 0.01 && (middle.b - 0.575).abs() < 0.01);
    }
}
