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
    concept::Asked,
    prepare::{PLAIN_ROLES, Ready},
};
use crate::{
    engine::{Error, Mode, Scope},
    index::{Among, Norms, Words, best, holding},
    model::Stop,
    text::{query::Query, words::Cutter},
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

/// Words that count, up to which a message borrows the whole of its share: some 60 in all.
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
    pub(crate) ready: usize,
    pub(crate) slot: u32,
    pub(crate) score: f32,
}

impl Scored {
    /// The better first; of equal ones the first source's, then the newer.
    pub(crate) fn order(&self, other: &Scored) -> Ordering {
        let of_equal = || (self.ready, self.slot).cmp(&(other.ready, other.slot));
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
pub(crate) struct Selection {
    /// The slots of each part that lie within the dates.
    intervals: Vec<Range<u32>>,
    /// The slots of the one conversation asked, ascending.
    pub(crate) conversation: Option<Vec<u32>>,
    /// The conversations asked, where only some are.
    conversations: Option<HashSet<u32>>,
    roles: Vec<String>,
}

impl Selection {
    /// Finds what of a source is in a scope; `conversations` are those of the project or session.
    pub(crate) fn of(
        ready: &Ready,
        scope: &Scope,
        conversations: Option<HashSet<u32>>,
    ) -> Selection {
        let generation = ready.generation();
        let interval = |slots: &Range<u32>| {
            // Newest first, and those without a time last.
            let first = |is_past: &dyn Fn(u32) -> bool| {
                let (mut low, mut high) = (slots.start, slots.end);
                while low < high {
                    let middle = low.midpoint(high);
                    if is_past(middle) { high = middle } else { low = middle + 1 }
                }
                low
            };
            let start = scope.until.map_or(slots.start, |until| {
                first(&|slot| generation.time(slot).is_none_or(|time| time <= until))
            });
            let end = match (scope.since, scope.until) {
                (Some(since), _) => {
                    first(&|slot| generation.time(slot).is_none_or(|time| time < since))
                }
                (None, Some(_)) => first(&|slot| generation.time(slot).is_none()),
                (None, None) => slots.end,
            };
            start..end.max(start)
        };
        let intervals: Vec<_> = ready.parts.iter().map(|part| interval(&part.slots)).collect();
        let conversation = scope.conversation.as_ref().map(|id| {
            let mut slots = match ready.catalogue.find(id) {
                Some(conversation) => ready.catalogue.slots(conversation).to_vec(),
                None => Vec::new(),
            };
            slots.sort_unstable();
            slots
        });
        Selection { intervals, conversation, conversations, roles: scope.roles.clone() }
    }

    /// Whether a message is asked.
    pub(crate) fn accepts(&self, ready: &Ready, slot: u32) -> bool {
        let generation = ready.generation();
        (self.roles.is_empty() || self.roles.iter().any(|role| role == generation.role(slot)))
            && generation.is_live(slot)
            && self.intervals.iter().any(|interval| interval.contains(&slot))
            && self.conversations.as_ref().is_none_or(|some| {
                ready.catalogue.conversation(slot).is_some_and(|one| some.contains(&one))
            })
    }

    /// The authors who wrote any of it, perhaps others besides.
    pub(crate) fn authors<'r>(&self, ready: &'r Ready) -> Vec<&'r str> {
        let Some(slots) = &self.conversation else {
            return ready.authors.iter().map(String::as_str).collect();
        };
        let generation = ready.catalogue.generation();
        let mut authors: Vec<&str> = slots.iter().map(|slot| generation.role(*slot)).collect();
        authors.sort_unstable();
        authors.dedup();
        authors.retain(|author| !PLAIN_ROLES.contains(author));
        authors
    }
}

/// What of a source one thing asked for is sought in.
struct Field<'a> {
    ready: &'a Ready,
    selection: &'a Selection,
    words: Vec<(Range<u32>, &'a Words)>,
    /// Slots that alone come into question, ascending: those of one conversation, or with a phrase.
    slots: Option<Vec<u32>>,
    /// Slots with what is excluded.
    banned: HashSet<u32>,
    /// What is still to be looked for in a text.
    query: Option<&'a Query>,
}

impl<'a> Field<'a> {
    fn of(
        ready: &'a Ready,
        selection: &'a Selection,
        asked: &'a Asked,
        stop: &Stop,
    ) -> Result<Field<'a>, Error> {
        let words = ready.words();
        let cutter = Cutter::default();
        let query = &asked.query;
        let mut field = Field {
            ready,
            selection,
            slots: selection.conversation.clone(),
            banned: HashSet::new(),
            query: None,
            words,
        };
        let has_words = ready.parts.iter().all(|part| part.words.is_some());
        let required: Vec<String> =
            query.phrases.iter().flat_map(|phrase| cutter.required(phrase)).collect();
        if !query.phrases.is_empty() {
            field.query = Some(query);
            if has_words && !required.is_empty() {
                let found = holding(&field.words, &required, stop)?;
                field.slots = Some(match field.slots {
                    Some(slots) => {
                        slots.into_iter().filter(|slot| found.binary_search(slot).is_ok()).collect()
                    }
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
            let generation = ready.generation();
            let one = Query { excluded: vec![phrase.clone()], ..Query::default() };
            let found = holding(&field.words, &required, stop)?;
            let has = |slot: &u32| !one.allows(&generation.content(*slot));
            field.banned.extend(found.into_iter().filter(has));
        }
        Ok(field)
    }

    fn accepts(&self, slot: u32) -> bool {
        self.selection.accepts(self.ready, slot)
            && !self.banned.contains(&slot)
            && self.query.is_none_or(|query| query.allows(&self.ready.generation().content(slot)))
    }

    fn among(&self) -> Among<'_> {
        match &self.slots {
            Some(slots) => Among::Slots(slots),
            None => Among::Intervals(&self.selection.intervals),
        }
    }

    /// The most like a vector, the best first.
    fn like(&self, vector: &[f32], most: usize) -> Result<Vec<(u32, f32)>, crate::embed::Error> {
        let mut found = Vec::new();
        for part in &self.ready.parts {
            let Some(vectors) = &part.vectors else { continue };
            let first = part.slots.start;
            match &self.slots {
                Some(slots) => {
                    let slots = slots.iter().copied().filter(|slot| part.slots.contains(slot));
                    let slots: Vec<u32> = slots.filter(|slot| self.accepts(*slot)).collect();
                    let scores = self.likeness(vector, &slots)?;
                    found.extend(slots.into_iter().zip(scores).filter(|(_, score)| *score != 0.0));
                }
                None => {
                    let accepts = |slot: u32| self.accepts(first + slot);
                    let best = vectors.top_k(vector, most, accepts)?;
                    found.extend(best.iter().map(|scored| (first + scored.slot, scored.score)));
                }
            }
        }
        found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(most);
        Ok(found)
    }

    /// How like a vector each of some messages is; 0 for those without a vector.
    fn likeness(&self, vector: &[f32], slots: &[u32]) -> Result<Vec<f32>, crate::embed::Error> {
        let mut scores = vec![0.0; slots.len()];
        for part in &self.ready.parts {
            let Some(vectors) = &part.vectors else { continue };
            let inside: Vec<usize> =
                (0..slots.len()).filter(|at| part.slots.contains(&slots[*at])).collect();
            let of_part: Vec<u32> = inside.iter().map(|at| slots[*at] - part.slots.start).collect();
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
    readies: &[Arc<Ready>],
    selections: &[Selection],
    asked: &mut Asked,
    mode: Mode,
    is_one_of_several: bool,
    stop: &Stop,
    notes: &mut Vec<String>,
) -> Result<Vec<Scored>, Error> {
    let mut found = scored(readies, selections, asked, mode, is_one_of_several, stop, notes)?;
    let query = &mut asked.query;
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
    let mut others = scored(readies, selections, asked, mode, is_one_of_several, stop, notes)?;
    if !found.is_empty() {
        let first: HashSet<(usize, u32)> = found.iter().map(|one| (one.ready, one.slot)).collect();
        others.retain(|one| !first.contains(&(one.ready, one.slot)));
        found.iter_mut().for_each(|one| one.score = f32::midpoint(one.score, 1.0));
        others.iter_mut().for_each(|one| one.score /= 2.0);
    }
    found.extend(others);
    Ok(found)
}

fn scored(
    readies: &[Arc<Ready>],
    selections: &[Selection],
    asked: &Asked,
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
    let norms = norms(asked.average);
    let fields = readies.iter().zip(selections);
    let fields: Vec<Field<'_>> = fields
        .map(|(ready, selection)| Field::of(ready, selection, asked, stop))
        .collect::<Result<_, _>>()?;

    let mut by_words: Vec<(usize, u32, f32)> = Vec::new();
    let mut by_vector: Vec<(usize, u32, f32)> = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        let accepts = |slot: u32| field.accepts(slot);
        let found = best(&field.words, &asked.terms, norms, field.among(), &accepts, depth, stop)?;
        by_words.extend(found.into_iter().map(|(slot, score)| (place, slot, score)));
        if let Some(vector) = &asked.vector {
            match field.like(vector, depth) {
                Ok(found) => {
                    by_vector.extend(found.into_iter().map(|(slot, score)| (place, slot, score)));
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
    let (share, vector_share) = match (mode, asked.vector.is_some()) {
        (Mode::Vector, true) => (0.0, 1.0),
        (_, true) if !asked.terms.is_empty() => {
            let share = VECTORS.0 + (VECTORS.1 - VECTORS.0) * longness(asked.average);
            (1.0 - asked.known * share, asked.known * share)
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
        let slots: Vec<u32> = {
            let mut slots: Vec<u32> = scores.into_iter().collect();
            slots.sort_unstable();
            slots
        };
        let mut own: HashMap<u32, f32> = HashMap::with_capacity(slots.len());
        if share > 0.0 {
            let any = |_| true;
            let among = Among::Slots(&slots);
            let found = best(&field.words, &asked.terms, norms, among, &any, slots.len(), stop)?;
            let shares = found.into_iter().map(|(slot, score)| (slot, share * score / best_words));
            own.extend(shares);
        }
        if let Some(vector) = &asked.vector {
            let found = field.likeness(vector, &slots).unwrap_or_else(|_| vec![0.0; slots.len()]);
            for (slot, score) in slots.iter().zip(found).filter(|(_, score)| *score != 0.0) {
                *own.entry(*slot).or_default() += vector_share * nearness(score);
            }
        }
        all.extend(finish(field, asked, &slots, &own).map(|(slot, score)| Scored {
            ready: place,
            slot,
            score: (score / MOST).clamp(0.0, 1.0),
        }));
    }
    all.sort_unstable_by(Scored::order);
    Ok(all)
}

/// Returns some messages and those beside them that are asked.
fn beside(field: &Field<'_>, seeds: impl Iterator<Item = u32>) -> HashSet<u32> {
    let catalogue = &field.ready.catalogue;
    let mut slots = HashSet::new();
    for seed in seeds {
        slots.insert(seed);
        let (Some(conversation), Some(place)) =
            (catalogue.conversation(seed), catalogue.place(seed))
        else {
            continue;
        };
        let reading = catalogue.reading(conversation);
        let end = reading.len().min(place as usize + 3);
        for slot in &reading[(place as usize).saturating_sub(2)..end] {
            if !slots.contains(slot) && field.accepts(*slot) {
                slots.insert(*slot);
            }
        }
    }
    slots
}

/// Adds to each message's own score what it has from elsewhere; leaves out what has nothing.
fn finish<'a>(
    field: &'a Field<'a>,
    asked: &'a Asked,
    slots: &'a [u32],
    own: &'a HashMap<u32, f32>,
) -> impl Iterator<Item = (u32, f32)> + 'a {
    let catalogue = &field.ready.catalogue;
    let generation = field.ready.generation();
    let newest = catalogue.conversations().first().and_then(|listed| listed.last);
    let mut titles: HashMap<u32, f32> = HashMap::new();
    let cutter = Cutter::default();
    let total: f32 = asked.terms.iter().map(|term| term.weight).sum();
    let mut in_title = move |conversation: u32| {
        *titles.entry(conversation).or_insert_with(|| {
            let title = &catalogue.conversations()[conversation as usize].title;
            let of_title = cutter.question(title);
            let there = asked.terms.iter().filter(|term| of_title.contains(&term.term));
            there.map(|term| term.weight).sum::<f32>() / total.max(f32::MIN_POSITIVE)
        })
    };
    slots.iter().filter_map(move |slot| {
        let conversation = catalogue.conversation(*slot)?;
        let reading = catalogue.reading(conversation);
        let place = i64::from(catalogue.place(*slot)?);
        let own_words = field.ready.length(*slot).unwrap_or(1).max(1) as f32;
        let share = (OWN / own_words).min(1.0) * (OWN / asked.average).min(1.0);
        let mut score = own.get(slot).copied().unwrap_or(0.0);
        for (distance, part) in BORROWED {
            let at = usize::try_from(place + distance).ok();
            let other = at.and_then(|at| reading.get(at)).and_then(|slot| own.get(slot));
            score += share * part * other.unwrap_or(&0.0);
        }
        if score <= 0.0 {
            return None;
        }
        if asked.author.as_deref() == Some(generation.role(*slot)) {
            score += BY_AUTHOR;
        }
        score += IN_TITLE * in_title(conversation);
        if let (Some(newest), Some(time)) = (newest, generation.time(*slot)) {
            let age = (newest.seconds.saturating_sub(time.seconds)).max(0) as f32;
            score += RECENT.0 * (-age / RECENT.1).exp2();
        }
        Some((*slot, score))
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
