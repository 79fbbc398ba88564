//! Finds the messages that answer a question, by its scores or by its text.

use std::collections::{HashMap, HashSet};

use super::fuse::{self, ConversationPlace, Scored};
use super::question::{Fields, Mode};
use super::sources::{self, OpenedSources, ReadableSources};
use super::substring::{TextReading, TextSearch};
use super::{concept, notes::Notes, ranker::Ranker};
use crate::{error::Result, scoring::Concept, source::Note};
use verbatim_text::words::Tokenizer;

/// The scored messages for a question, with its sources and concepts.
pub(super) struct ScoredMessages<'a> {
    pub(super) opened: OpenedSources<'a>,
    pub(super) concepts: Vec<Concept>,
    /// The messages of the conversations that answer every concept, the best first.
    pub(super) messages: Vec<Scored>,
    /// The share of the question's IDF that conversations cover with all their messages and their titles.
    pub(super) covered: HashMap<ConversationPlace, f32>,
    /// Whether only the best candidates of a concept were scored.
    pub(super) is_cut: bool,
    pub(super) notes: Notes,
}

/// How a question is answered.
pub(super) enum FoundBy<'a> {
    /// By the scores of messages and, in sources without an index, by the question's words.
    Score(ScoredMessages<'a>),
    /// By its text, because the question asks for this, or because it has no terms and no vector.
    Text(TextSearch<'a>, Notes),
}

/// Scores every message that fits the question, in the sources that have an index.
pub(super) fn find<'a>(ranker: &'a Ranker<'a>) -> Result<FoundBy<'a>> {
    if ranker.question.mode != Mode::Exact {
        ranker.question.check_size()?;
    }
    let ReadableSources { scoped, sources, mut notes } = sources::readable(ranker)?;
    if ranker.question.mode == Mode::Exact {
        return Ok(FoundBy::Text(TextSearch::new(scoped, sources, TextReading::AsTyped)?, notes));
    }
    let texts = ranker.concepts();
    let opened = sources::open(scoped, sources, &mut notes)?;
    let is_single = texts.len() == 1;
    let is_without_index = opened.ranked.is_empty();
    if is_single && is_without_index && is_without_words(&Concept::new(texts[0])) {
        return by_literal_text(opened, notes, texts[0]);
    }
    let mut concepts = Vec::new();
    let mut by_concept: Vec<Vec<Scored>> = Vec::new();
    let mut covered = HashMap::new();
    let mut is_cut = false;
    for text in texts.into_iter().filter(|_| !is_without_index) {
        let mut concept = concept::parse(ranker, &opened.ranked, text, &mut notes)?;
        if is_single && is_without_words(&concept) {
            return by_literal_text(opened, notes, text);
        }
        if is_single && may_be_within_words(&opened, &concept, text, &notes) {
            let search = literal_search(&opened)?;
            if search.finds_one(&mut notes)? {
                notes.0.retain(|note| !matches!(note, Note::NoWord { .. }));
                let within = Note::WithinWords { text: text.to_owned() };
                notes.add(if has_words(text) { within } else { without_words(text) });
                return Ok(FoundBy::Text(search, notes));
            }
        }
        if ranker.question.fields != Fields::Summaries {
            let scores = fuse::scored(&opened, &mut concept, text, &mut notes)?;
            by_concept.push(scores.messages);
            covered = scores.covered;
            is_cut |= scores.is_cut;
        }
        concepts.push(concept);
    }
    let messages = match by_concept.len() {
        0 => Vec::new(),
        1 => by_concept.remove(0),
        _ => in_common_conversations(&opened, by_concept),
    };
    Ok(FoundBy::Score(ScoredMessages { opened, concepts, messages, covered, is_cut, notes }))
}

fn literal_search<'a>(opened: &OpenedSources<'a>) -> Result<TextSearch<'a>> {
    TextSearch::new(opened.scoped.clone(), opened.all(), TextReading::Literal)
}

fn by_literal_text<'a>(
    opened: OpenedSources<'a>,
    mut notes: Notes,
    text: &str,
) -> Result<FoundBy<'a>> {
    notes.add(without_words(text));
    Ok(FoundBy::Text(literal_search(&opened)?, notes))
}

fn without_words(text: &str) -> Note {
    Note::NoWords { text: text.to_owned() }
}

/// Returns whether no message contains a word of the question that ranks, so that its text may only be found
/// within other words.
fn may_be_within_words(
    opened: &OpenedSources<'_>,
    concept: &Concept,
    text: &str,
    notes: &Notes,
) -> bool {
    let question = opened.scoped.ranker.question;
    opened.unranked.is_empty()
        && concept.terms.is_empty()
        && concept.query.text == text
        && question.mode != Mode::Vector
        && question.fields != Fields::Summaries
        && !notes.has(Note::is_gap)
}

/// Returns whether a concept has no term, no vector and no quoted phrase to rank by.
fn is_without_words(concept: &Concept) -> bool {
    concept.terms.is_empty()
        && concept.vector.is_none()
        && concept.query.phrases.is_empty()
        && !has_words(&concept.query.text)
}

fn has_words(text: &str) -> bool {
    !Tokenizer::default().question(text).is_empty()
}

/// Returns the messages of the conversations that answer every concept. The score of a message is the mean of
/// its best score and of its conversation's score for all concepts.
fn in_common_conversations(
    opened: &OpenedSources<'_>,
    by_concept: Vec<Vec<Scored>>,
) -> Vec<Scored> {
    // The sources were narrowed to these conversations, even if one of their messages did not get a score.
    let are_common = opened.scoped.common.is_some();
    let count = by_concept.len() as f32;
    let mut common: Option<HashSet<ConversationPlace>> = None;
    let mut sums: HashMap<ConversationPlace, f32> = HashMap::new();
    for scored in &by_concept {
        let mut best: HashMap<ConversationPlace, f32> = HashMap::new();
        for scored in scored {
            if let Some(conversation) = scored.conversation(&opened.ranked) {
                let score = best.entry(conversation).or_default();
                *score = score.max(scored.score);
            }
        }
        let here: HashSet<_> = best.keys().copied().collect();
        common = Some(match common {
            Some(common) if are_common => &common | &here,
            Some(common) => &common & &here,
            None => here,
        });
        for (conversation, score) in best {
            *sums.entry(conversation).or_default() += score / count;
        }
    }
    let common = common.unwrap_or_default();
    let mut messages: HashMap<(usize, u32), Scored> = HashMap::new();
    for scored in by_concept.iter().flatten() {
        if let Some(conversation) = scored.conversation(&opened.ranked)
            && common.contains(&conversation)
        {
            let score = (scored.score + sums[&conversation]) / 2.0;
            let known = Scored { score: 0.0, ..*scored };
            let known = messages.entry((scored.source, scored.doc_id)).or_insert(known);
            known.score = known.score.max(score);
        }
    }
    let mut messages: Vec<Scored> = messages.into_values().collect();
    messages.sort_unstable_by(Scored::order);
    messages
}
