//! Restricts a question of several concepts to the conversations that contain every concept as text.

use std::{collections::HashSet, ops::ControlFlow, sync::Arc};

use super::scoped::{InCommon, Scoped};
use super::{notes::Notes, question::Mode};
use crate::error::Result;
use crate::source::{Note, Source, sink::Rendered};
use verbatim_base::model::{Hit, Request};
use verbatim_text::query::PhraseSearch;

/// Finds the conversations that contain every concept, if the question has several. A question by
/// vectors alone is not restricted. Adds notes about the sources that cannot be read.
pub(super) fn narrowed<'a>(
    scoped: Scoped<'a>,
    sources: &[Source],
    notes: &mut Notes,
) -> Result<Scoped<'a>> {
    if scoped.ranker.question.mode == Mode::Vector || scoped.ranker.concepts().len() < 2 {
        return Ok(scoped);
    }
    let mut common = InCommon::new();
    for source in sources {
        match with_every_concept(&scoped, source) {
            Err(error) if error.is_of_source() && sources.len() > 1 => {
                notes.add(Note::Unreadable { source: source.kind, reason: error.to_string() });
            }
            ids => {
                common.insert(source.kind, ids?);
            }
        }
    }
    Ok(Scoped { common: Some(Arc::new(common)), ..scoped })
}

fn with_every_concept(scoped: &Scoped<'_>, source: &Source) -> Result<HashSet<String>> {
    let mut common = scoped.conversations_of_origin(source)?;
    for concept in scoped.ranker.concepts() {
        for search in PhraseSearch::all_of(concept) {
            common = Some(with_text(scoped, source, search.request, common.as_ref())?);
        }
    }
    Ok(common.unwrap_or_default())
}

/// Returns the wanted conversations that contain a text in the question's scope.
fn with_text(
    scoped: &Scoped<'_>,
    source: &Source,
    request: Request,
    wanted: Option<&HashSet<String>>,
) -> Result<HashSet<String>> {
    let scope = &scoped.scope;
    let request =
        Request { roles: scope.roles.clone(), since: scope.since, until: scope.until, ..request };
    let mut ids = HashSet::new();
    let mut sink = Rendered::new(
        |hit: Hit<'_>| {
            let id = hit.conversation_id;
            let is_wanted = scope.conversation.as_ref().is_none_or(|wanted| *wanted == id)
                && wanted.is_none_or(|wanted| wanted.contains(&*id));
            is_wanted.then(|| id.into_owned())
        },
        |id| {
            ids.insert(id);
            ControlFlow::Continue(())
        },
    );
    source.search(&request, scoped.ranker.call, &mut sink)?;
    Ok(ids)
}
