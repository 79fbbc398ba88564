//! Builds the ranked answer: messages with passages, and conversations with their messages.

use std::collections::{HashMap, HashSet, hash_map::Entry};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::find::{FoundBy, ScoredMessages};
use super::fuse::{ConversationPlace, Scored};
use super::question::{ConversationMatch, Fields, MAX_MATCHES, Match, Ranking};
use super::substring::{TextReading, TextSearch};
use super::{distance, notes::Notes, passages::Passages, ranker::SMALL, scoped::Scoped};
use super::{sources::OpenedSources, titles, word_request::WantedWords};
use crate::error::Result;
use crate::source::{Note, Source, line_number};
use verbatim_base::model::MOST_KEPT;
use verbatim_text::snippet;

/// Shares of the second and the third message's scores that are added to the best message's score.
const FURTHER_SHARES: [f32; 2] = [0.15, 0.05];

/// The weight of the share of the question's IDF that a conversation covers with all its messages and its
/// title.
///
/// With it, a session of LoCoMo that answers is the first of all ten chats' for .67 of 700 questions, and for
/// .64 without it.
const COVERAGE_WEIGHT: f32 = 0.4;

/// The weight of title and summary scores. Message scores have weight 1.
const TITLE_WEIGHT: f32 = 0.5;

/// Maximum difference in bytes of two texts that may be equal apart from white space.
const MAX_SPACE: usize = 64;

/// Returns the messages that answer best. Messages with the same text are returned once, with their number.
pub(super) fn messages(found: FoundBy<'_>) -> Result<Ranking<Match>> {
    let found = match found {
        FoundBy::Score(scored) => scored,
        FoundBy::Text(search, notes) => return search.messages(notes),
    };
    let scoped = &found.opened.scoped;
    let limit = scoped.ranker.question.limit;
    let mut passages = Passages::new(scoped.ranker.sources.model(), &found.concepts);
    let items = matches(&found, &found.messages, limit, &mut passages);
    let unranked = unranked(&found, &found.notes, items.is_empty());
    let total = found.messages.len();
    let is_total_exact = total <= limit && !found.is_cut;
    let mut ranking = Ranking { items, total, is_total_exact, notes: Vec::new() };
    let mut notes = found.notes;
    if unranked.is_empty() {
        distance::mark(&mut ranking.items, &found.concepts);
    } else {
        ranking = with_words(
            scoped,
            unranked,
            ranking,
            &mut notes,
            |it| it.messages(Notes::default()),
            |it| &mut it.score,
        )?;
    }
    ranking.total = ranking.total.max(ranking.items.len());
    finished(&found.opened, ranking, notes)
}

/// Returns the ids of the messages that answer best, and the notes. Messages with the same text all count.
pub(super) fn message_ids(found: FoundBy<'_>) -> Result<(Vec<String>, Vec<Note>)> {
    if let FoundBy::Score(found) = &found
        && found.opened.unranked.is_empty()
    {
        let best = found.messages.iter().take(found.opened.scoped.ranker.question.limit);
        let ids = best
            .map(|it| found.opened.ranked[it.source].scorer.hit(it.doc_id).message_id.into_owned());
        return Ok((ids.collect(), found.notes.0.clone()));
    }
    let ranking = messages(found)?;
    let ids = ranking.items.into_iter().map(|item| item.hit.message_id.into_owned());
    Ok((ids.collect(), ranking.notes))
}

/// Returns the conversations that answer best.
pub(super) fn conversations(found: FoundBy<'_>) -> Result<Ranking<ConversationMatch>> {
    let mut found = match found {
        FoundBy::Score(scored) => scored,
        FoundBy::Text(search, notes) => return search.conversations(notes),
    };
    let mut notes = std::mem::take(&mut found.notes);
    let titles = match found.opened.scoped.ranker.question.fields {
        Fields::Messages | Fields::Turns => HashMap::new(),
        Fields::Summaries | Fields::Both => titles::scored(&found)?,
    };
    let mut ranking = ranked_conversations(&found, titles);
    let scoped = &found.opened.scoped;
    let unranked = unranked(&found, &notes, ranking.items.is_empty());
    if !unranked.is_empty() {
        ranking = with_words(
            scoped,
            unranked,
            ranking,
            &mut notes,
            |it| it.conversations(Notes::default()),
            |it| &mut it.score,
        )?;
    }
    let ranking = finished(&found.opened, ranking, notes)?;
    if scoped.common.is_some() { completed(&found.opened, ranking) } else { Ok(ranking) }
}

/// Returns the sources of which messages with the question's words are found: those without an index. If
/// nothing was found and vectors or summaries are missing, returns all sources.
fn unranked(found: &ScoredMessages<'_>, notes: &Notes, is_empty: bool) -> Vec<Source> {
    let opened = &found.opened;
    let is_partial =
        notes.has(|note| matches!(note, Note::NotEmbedded { .. } | Note::Building { .. }));
    let mut unranked = if is_empty && is_partial { opened.all() } else { opened.unranked.clone() };
    let is_quick = opened.scoped.ranker.is_quick;
    unranked.retain(|source| !is_quick || source.store().bytes() <= SMALL);
    unranked
}

/// Merges what is ranked with what some sources have with all words of each concept or, if this is nothing, with
/// any of them: the first of both, then the second of both, and so on. Of two with the same place, the one that
/// has all words comes first. Adds the notes of the latter.
fn with_words<T>(
    scoped: &Scoped<'_>,
    sources: Vec<Source>,
    ranked: Ranking<T>,
    notes: &mut Notes,
    answer: fn(&TextSearch<'_>) -> Result<Ranking<T>>,
    score: fn(&mut T) -> &mut f64,
) -> Result<Ranking<T>> {
    let limit = scoped.ranker.question.limit;
    let reading = TextReading::Words(WantedWords::All);
    let mut by_words = answer(&TextSearch::new(scoped.clone(), sources.clone(), reading)?)?;
    let has_all = !by_words.items.is_empty();
    if !has_all {
        let reading = TextReading::Words(WantedWords::Any);
        by_words = answer(&TextSearch::new(scoped.clone(), sources, reading)?)?;
    }
    let mut own = ranked.items.into_iter();
    let mut others = by_words.items.into_iter();
    let mut items = Vec::new();
    let mut last = 1.0;
    while own.len() + others.len() > 0 && items.len() < limit {
        let mut both = [others.next(), own.next()];
        match &mut both {
            [Some(other), Some(item)] => *score(other) = *score(item),
            [Some(other), None] => *score(other) *= last,
            [None, _] => {}
        }
        if let [_, Some(item)] = &mut both {
            last = *score(item);
        }
        if !has_all {
            both.reverse();
        }
        items.extend(both.into_iter().flatten());
    }
    items.truncate(limit);
    let total = ranked.total + by_words.total;
    let is_total_exact = ranked.is_total_exact && by_words.is_total_exact && total <= limit;
    notes.extend(by_words.notes);
    Ok(Ranking { items, total, is_total_exact, notes: Vec::new() })
}

/// Returns an answer with its notes. If nothing was found, adds a note about a role that no message has.
fn finished<T>(
    opened: &OpenedSources<'_>,
    ranking: Ranking<T>,
    mut notes: Notes,
) -> Result<Ranking<T>> {
    let is_empty = ranking.items.is_empty();
    if is_empty {
        let Scoped { ranker, scope, .. } = &opened.scoped;
        notes.extend(ranker.sources.unknown_role(scope, ranker.call)?);
    }
    Ok(Ranking { notes: notes.of_answer(is_empty), ..ranking })
}

/// Adds the other conversations that contain every concept after the ranked ones. Ranking misses them
/// if a concept is only a part of a word.
fn completed(
    opened: &OpenedSources<'_>,
    mut ranking: Ranking<ConversationMatch>,
) -> Result<Ranking<ConversationMatch>> {
    let mut common = opened.scoped.common.as_deref().cloned().unwrap_or_default();
    ranking.total = common.values().map(HashSet::len).sum();
    ranking.is_total_exact = true;
    // These conversations contain the concepts as written, so notes about missing words do not apply.
    ranking.notes.retain(|note| !matches!(note, Note::Slip { .. } | Note::NoWord { .. }));
    let limit = opened.scoped.ranker.question.limit;
    if ranking.items.len() >= limit.min(ranking.total) {
        return Ok(ranking);
    }
    for (kind, ids) in &mut common {
        let ranked = ranking.items.iter().filter(|item| item.about.source == *kind);
        let ranked: HashSet<&str> = ranked.map(|item| item.about.id.as_str()).collect();
        ids.retain(|id| !ranked.contains(id.as_str()));
    }
    let others = Scoped { common: Some(Arc::new(common)), ..opened.scoped.clone() };
    let others = TextSearch::new(others, opened.all(), TextReading::Literal)?;
    let others = others.conversations(Notes(ranking.notes))?;
    let least = ranking.items.last().map_or(1.0, |item| item.score);
    for item in others.items {
        ranking.items.push(ConversationMatch { score: least * item.score, ..item });
    }
    ranking.items.truncate(limit);
    Ok(Ranking { notes: others.notes, ..ranking })
}

fn ranked_conversations(
    found: &ScoredMessages<'_>,
    titles: HashMap<ConversationPlace, f32>,
) -> Ranking<ConversationMatch> {
    let question = found.opened.scoped.ranker.question;
    let ranked = &found.opened.ranked;
    let mut messages: HashMap<ConversationPlace, Vec<Scored>> = HashMap::new();
    for scored in &found.messages {
        if let Some(conversation) = scored.conversation(ranked) {
            messages.entry(conversation).or_default().push(*scored);
        }
    }
    let mut scores: HashMap<ConversationPlace, f32> = HashMap::new();
    for (conversation, scored) in &messages {
        // They are sorted, the best first.
        let shares = [1.0].into_iter().chain(FURTHER_SHARES);
        let scored = scored.iter().zip(shares).map(|(scored, share)| share * scored.score);
        scores.insert(*conversation, scored.sum());
    }
    for (conversation, covered) in &found.covered {
        if let Some(score) = scores.get_mut(conversation) {
            *score += COVERAGE_WEIGHT * covered;
        }
    }
    let of_messages = 1.0 + FURTHER_SHARES.iter().sum::<f32>();
    // The weight of title scores, and the highest possible score of a conversation.
    let (title_weight, mut max_score) = match question.fields {
        Fields::Messages | Fields::Turns => (0.0, of_messages),
        Fields::Summaries => (1.0, 1.0),
        Fields::Both => (TITLE_WEIGHT, of_messages + TITLE_WEIGHT),
    };
    if !found.covered.is_empty() {
        max_score += COVERAGE_WEIGHT;
    }
    for (conversation, score) in titles {
        *scores.entry(conversation).or_default() += title_weight * score;
    }
    let mut order: Vec<(ConversationPlace, f32)> = scores.into_iter().collect();
    order.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let total = order.len();
    let mut passages = Passages::new(found.opened.scoped.ranker.sources.model(), &found.concepts);
    let mut items = Vec::new();
    for (place, score) in order.into_iter().take(question.limit) {
        let scored = messages.remove(&place).unwrap_or_default();
        items.push(ConversationMatch {
            about: ranked[place.0].scorer.about(place.1),
            score: f64::from(score / max_score),
            matches: matches(found, &scored, MAX_MATCHES, &mut passages),
        });
    }
    let is_total_exact = total <= question.limit && !found.is_cut;
    Ranking { items, total, is_total_exact, notes: Vec::new() }
}

/// Returns the best messages, at most `limit`. Messages with the same text are returned once.
fn matches(
    found: &ScoredMessages<'_>,
    scored: &[Scored],
    limit: usize,
    passages: &mut Passages<'_>,
) -> Vec<Match> {
    let is_of_messages = found.opened.scoped.ranker.wanted == 0;
    let mut matches: Vec<Match> = Vec::new();
    let mut known: HashMap<u64, usize> = HashMap::new();
    for scored in scored {
        let source = &found.opened.ranked[scored.source];
        let scorer = &source.scorer;
        let next = matches.len();
        // Beyond the limit, only copies are counted. It would be expensive to read all texts for this.
        let length = scorer.content_length(scored.doc_id).min(MOST_KEPT);
        if next == limit
            && matches.iter().all(|it| it.hit.content.len().abs_diff(length) > MAX_SPACE)
        {
            continue;
        }
        let content = scorer.content(scored.doc_id);
        let mut hasher = DefaultHasher::new();
        (snippet::trim(&content), scorer.role(scored.doc_id)).hash(&mut hasher);
        match known.entry(hasher.finish()) {
            Entry::Occupied(first) => matches[*first.get()].copies += 1,
            Entry::Vacant(entry) if next < limit => {
                entry.insert(next);
                // Of a conversation, the best message is shown first or alone.
                let may_encode = is_of_messages || next == 0;
                let (passage, place) = passages.best(&content, may_encode);
                let hit = scorer.hit(scored.doc_id).into_owned_at(place, MOST_KEPT);
                let turn = scorer.turn(scored.doc_id).unwrap_or(0) as usize;
                matches.push(Match {
                    source: source.source.kind,
                    score: f64::from(scored.score),
                    line: line_number(source.source.kind, hit.position, turn),
                    passage,
                    is_far: false,
                    is_title_only: false,
                    copies: 1,
                    hit,
                });
            }
            Entry::Vacant(_) => {}
        }
    }
    matches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Question, TestExport};
    use verbatim_base::call::Call;

    #[test]
    fn of_a_very_long_message_the_part_with_the_words_is_kept() {
        let filler = "nothing to see here at all, ".repeat(MOST_KEPT / 28 + 1);
        let text = format!("{filler} the turtle swam over the reef. {}", &filler[..MOST_KEPT / 9]);
        for is_indexed in [true, false] {
            // The messages differ, although the part that is kept is the same.
            let other = format!("another beginning {text}");
            let export = TestExport::of(&[&text, &other, "something else"]);
            let mut config = export.engine.config().clone();
            if is_indexed {
                export.reindex();
            }
            // Without an index the messages are searched for these words.
            config.leave_indexes = !is_indexed;
            let engine = crate::Engine::new(config);
            for mode in [Mode::Text, Mode::Both] {
                let concepts = vec!["turtle reef".to_owned()];
                let question = Question { concepts, mode, limit: 5, ..Question::default() };
                let items = engine.rank(&question, &Call::default()).unwrap().items;
                let case = format!("{mode:?}, indexed: {is_indexed}");
                let ids: Vec<&str> = items[..2].iter().map(|it| &*it.hit.message_id).collect();
                assert!(ids.contains(&"m0") && ids.contains(&"m1"), "{case}: {ids:?}");
                let found = &items[0];
                assert!(found.passage.contains("turtle swam"), "{case}: {}", found.passage);
                assert!(found.hit.content.contains("turtle swam"), "{case}");
                assert!(found.hit.content.len() <= MOST_KEPT + 16, "{case}");
            }
        }
    }
}
