//! `verbatim search --mode words|vector|both`: the best messages for a question.

use std::{io::Write, ops::Range};

use serde::Serialize;

use super::{
    environment::Terminal,
    error::Result,
    found::{ConversationJson, FoundHit, Key, Page, conversations},
    groups::Groups,
    indexing,
    lines::{JsonAnswer, JsonNeighbour, Neighbours},
    notes,
    output::{FOUND, JsonHit, NOTHING, complain, counted, json_line},
};
use verbatim_answer::{nothing::no_answer, ranked::RankedMessages};
use verbatim_base::model::{Hit, Stop};
use verbatim_engine::{Match, Question};

/// The limit for `--limit 0`. Messages with a lower rank do not answer the question.
pub(super) const MOST: usize = 1_000;

/// The line above the messages that are far from the question.
const FAR: &str = "further away:";

/// The output format of the messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) json: bool,
    pub(super) quiet: bool,
    /// Whether the user gave the limit, and knows that there may be more.
    pub(super) has_limit: bool,
}

/// Writes the best messages for a question, best first.
pub(super) fn run(
    question: &Question,
    form: Form,
    page: Page<'_>,
    terminal: Terminal<'_>,
) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let (text, stop) = (question.concepts[0].as_str(), Stop::never());
    indexing::complete(page.engine, question, environment);
    let ranking = RankedMessages::find(page.engine, question, &stop)?;
    let is_empty = ranking.items.is_empty();
    if is_empty && notes::has_no_chats(page.engine, &stop)? {
        complain(notes::NO_CHATS);
        return Ok(NOTHING);
    }
    if form.quiet {
        return Ok(if is_empty { NOTHING } else { FOUND });
    }
    notes::print(ranking.true_notes());
    if is_empty {
        complain(&no_answer(text));
        return Ok(NOTHING);
    }
    ranking.heading().into_iter().for_each(complain);
    if !ranking.is_total_exact && (environment.terminal || !form.has_limit) {
        let shown = ranking.items.len();
        let advice = match ranking.total > shown && question.limit < MOST {
            true => format!("-n {} shows more", shown * 4),
            false => "there may be more; a search without --mode finds them".to_owned(),
        };
        complain(&format!("only the best {}; {advice}", counted(shown, "message")));
    }
    if form.json {
        write_json(&ranking, page, &stop, out)?;
        return Ok(FOUND);
    }
    let mark = |text: &str| ranking.marks.spans(text, usize::MAX);
    let shown = |one: &Match| {
        let content = one.passage.as_str().into();
        let hit = Hit { content, ..one.hit.lent() };
        let found = FoundHit::of(one.source, &hit, page.look, (&ranking.marks, usize::MAX));
        // A ranked message is shown even if only its title contains words of the question.
        let text = found.text.unwrap_or_else(|| {
            super::look::excerpt(&hit.content, &[], page.look.columns_of_message())
        });
        FoundHit { text: Some(text), ..found }
    };
    let (near, far) = ranking.near_and_far();
    for some in [near, far].into_iter().filter(|some| !some.is_empty()) {
        if some[0].is_far {
            writeln!(out, "\n{FAR}")?;
        }
        write_groups(some.iter().map(shown), page, &mark, out)?;
    }
    Ok(FOUND)
}

fn write_groups(
    found: impl Iterator<Item = FoundHit>,
    page: Page<'_>,
    mark: &dyn Fn(&str) -> Vec<Range<usize>>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut groups = Groups::new(usize::MAX);
    for found in found {
        groups.take(found)?;
    }
    groups.write(&page, mark, out)?;
    Ok(())
}

/// Writes the best messages for a question as JSON.
pub(super) fn json(
    question: &Question,
    page: Page<'_>,
    stop: &Stop,
    out: &mut dyn Write,
) -> Result<JsonAnswer> {
    let ranking = RankedMessages::find(page.engine, question, stop)?;
    write_json(&ranking, page, stop, out)?;
    let RankedMessages { items, notes, is_total_exact, .. } = ranking;
    Ok(JsonAnswer { count: items.len(), is_cut: !is_total_exact, notes })
}

fn write_json(
    ranking: &RankedMessages,
    page: Page<'_>,
    stop: &Stop,
    out: &mut dyn Write,
) -> Result<()> {
    let (found, absent_words) = (&ranking.items, ranking.absent_words());
    let key = |one: &Match| (one.source, one.hit.conversation_id.clone().into_owned());
    let keys: Vec<Key> = found.iter().map(key).collect();
    let conversations = conversations(page.engine, &keys, stop)?;
    let mut neighbours = Neighbours::new(page);
    for (one, key) in found.iter().zip(&keys) {
        let context = neighbours.of(key, &one.hit)?;
        let origin = conversations[key].json();
        let shown = JsonMatch::of(one, page, origin);
        json_line(out, &JsonMatch { absent_words: &absent_words, context, ..shown })?;
    }
    Ok(())
}

#[derive(Serialize)]
struct JsonMatch<'a> {
    #[serde(flatten)]
    hit: JsonHit<'a>,
    #[serde(flatten)]
    origin: ConversationJson<'a>,
    score: f64,
    line: u32,
    passage: &'a str,
    copies: u32,
    number: u32,
    far: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    absent_words: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Vec<JsonNeighbour>>,
}

impl JsonMatch<'_> {
    fn of<'a>(one: &'a Match, page: Page<'_>, origin: ConversationJson<'a>) -> JsonMatch<'a> {
        JsonMatch {
            hit: JsonHit::of(&one.hit, page.clock),
            origin,
            score: one.score,
            line: one.line,
            passage: &one.passage,
            copies: one.copies,
            number: one.line,
            far: one.is_far,
            absent_words: &[],
            context: None,
        }
    }
}
