//! `verbatim search --mode words|vector|both`: the best messages for a question.

use std::{io::Write, ops::Range};

use crate::cli::{
    command::Terminal,
    commands::indexing,
    error::Result,
    terminal::{
        hit_groups::HitGroups,
        hit_lines::{HitLine, Page},
        layout::excerpt,
        notes,
        output::{FOUND, NOTHING, complain, counted},
    },
};
use verbatim_answer::{
    asked::MOST_RANKED, json_lines::JsonLines, nothing::no_answer, ranked::RankedMessages,
};
use verbatim_base::{call::Call, model::Hit};
use verbatim_engine::{Match, Question};

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
    let (text, call) = (question.concepts[0].as_str(), Call::default());
    indexing::complete(page.engine, question, environment);
    let ranking = RankedMessages::find(page.engine, question, &call)?;
    let is_empty = ranking.items.is_empty();
    if is_empty && notes::has_no_chats(page.engine, &call)? {
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
        let advice = match ranking.total > shown && question.limit < MOST_RANKED {
            true => format!("-n {} shows more", shown * 4),
            false => "there may be more; a search without --mode finds them".to_owned(),
        };
        complain(&format!("only the best {}; {advice}", counted(shown, "message")));
    }
    if form.json {
        let Page { engine, clock, context, .. } = page;
        JsonLines { engine, clock, context, call: &call, out }.ranked(&ranking)?;
        return Ok(FOUND);
    }
    let mark = |text: &str| ranking.marks.spans(text, usize::MAX);
    let shown = |one: &Match| {
        let content = one.passage.as_str().into();
        let hit = Hit { content, ..one.hit.lent() };
        let found = HitLine::new(one.source, &hit, page.layout, (&ranking.marks, usize::MAX));
        // A ranked message is shown even if only its title contains words of the question.
        let text = found
            .text
            .unwrap_or_else(|| excerpt(&hit.content, &[], page.layout.columns_of_message()));
        HitLine { text: Some(text), ..found }
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
    found: impl Iterator<Item = HitLine>,
    page: Page<'_>,
    mark: &dyn Fn(&str) -> Vec<Range<usize>>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut groups = HitGroups::new(usize::MAX);
    for found in found {
        groups.add(found)?;
    }
    groups.write(&page, mark, out)?;
    Ok(())
}
