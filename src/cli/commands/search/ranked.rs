//! `verbatim search --mode words|vector|both`: the best messages for a question.

use crate::cli::command::Terminal;
use crate::cli::error::Result;
use crate::cli::terminal::hit_groups::HitGroups;
use crate::cli::terminal::hit_lines::{HitLine, HitMarks, Page};
use crate::cli::terminal::layout::excerpt;
use crate::cli::terminal::notes;
use crate::cli::terminal::output::{FOUND, NOTHING, complain, counted};
use verbatim_answer::{
    asked::MOST_RANKED, json_lines::JsonLines, nothing::no_answer, ranked::RankedMessages,
};
use verbatim_base::{call::Call, model::Hit};
use verbatim_engine::Question;

/// The line above the messages that are far from the question.
const FAR: &str = "further away:";

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
    let call = Call::default();
    let ranking = RankedMessages::find(page.engine, question, &call)?;
    let is_empty = ranking.items.is_empty();
    if is_empty && notes::has_no_chats(page.engine, &call)? {
        complain(&notes::no_chats(page.engine));
        return Ok(NOTHING);
    }
    if form.quiet {
        return Ok(if is_empty { NOTHING } else { FOUND });
    }
    notes::print(ranking.true_notes());
    if is_empty {
        complain(&no_answer(&question.concepts[0]));
        return Ok(NOTHING);
    }
    ranking.heading().into_iter().for_each(complain);
    if !ranking.is_total_exact && (environment.terminal || !form.has_limit) {
        let shown = ranking.items.len();
        let advice = if ranking.total > shown && question.limit < MOST_RANKED {
            format!("-n {} shows more", shown * 4)
        } else {
            "there may be more; a search without --mode finds them".to_owned()
        };
        complain(&format!("only the best {}; {advice}", counted(shown, "message")));
    }
    if form.json {
        let Page { engine, clock, context, .. } = page;
        JsonLines { engine, clock, context, call: &call, out }.ranked(&ranking)?;
        return Ok(FOUND);
    }
    let marks = HitMarks { marks: &ranking.marks, most: usize::MAX };
    let (near, far) = ranking.near_and_far();
    for some in [near, far].into_iter().filter(|some| !some.is_empty()) {
        if some[0].is_far {
            writeln!(out, "\n{FAR}")?;
        }
        let mut groups = HitGroups::new(usize::MAX, page, marks);
        for one in some {
            let hit = Hit { content: one.passage.as_str().into(), ..one.hit.lent() };
            let mut line = HitLine::new(one.source, &hit, page.layout, marks);
            // A ranked message is shown even if only its title contains words of the question.
            line.text.get_or_insert_with(|| {
                excerpt(&hit.content, &[], page.layout.columns_of_message())
            });
            groups.add(line)?;
        }
        groups.write(out)?;
    }
    Ok(FOUND)
}
