//! Restricts a question of several concepts to the conversations that contain every concept as text.

use std::{borrow::Cow, collections::HashSet, ops::ControlFlow, sync::Arc};

use super::{
    question::{ConversationMatch, Mode, Ranking},
    ranker::{InCommon, Ranker},
};
use crate::{
    error::Result,
    source::{Note, Scope, Source, sink::Rendered},
};
use verbatim_base::model::{Hit, Matching, Request};
use verbatim_text::query::{PhraseSearch, Query};

impl Ranker<'_> {
    /// Finds the conversations that contain every concept, if the question has several. A question by
    /// vectors alone is not restricted.
    pub(super) fn narrow(&mut self, sources: &[Source]) -> Result<()> {
        if self.question.mode == Mode::Vector || self.concepts().len() < 2 {
            return Ok(());
        }
        let mut common = InCommon::new();
        for source in sources {
            match self.with_every_concept(source) {
                Err(error) if error.is_of_source() && sources.len() > 1 => {
                    self.note(Note::Unreadable { source: source.kind, reason: error.reason() });
                }
                ids => {
                    common.insert(source.kind, ids?);
                }
            }
        }
        self.common = Some(Arc::new(common));
        Ok(())
    }

    /// Returns the scope, restricted to the conversations that contain every concept.
    pub(super) fn narrowed_scope(&self) -> Cow<'_, Scope> {
        match &self.common {
            None => Cow::Borrowed(&self.scope),
            Some(common) => {
                Cow::Owned(Scope { conversations: Some(Arc::clone(common)), ..self.scope.clone() })
            }
        }
    }

    /// Adds the other conversations that contain every concept after the ranked ones. Ranking misses them
    /// if a concept is only a part of a word.
    pub(super) fn completed(
        mut self,
        mut items: Vec<ConversationMatch>,
    ) -> Result<Ranking<ConversationMatch>> {
        let mut common = self.common.take().map(Arc::unwrap_or_clone).unwrap_or_default();
        let total = common.values().map(HashSet::len).sum();
        // These conversations contain the concepts as written, so notes about missing words do not apply.
        self.notes.retain(|note| !matches!(note, Note::Slip { .. } | Note::NoWord { .. }));
        let limit = self.question.limit;
        if items.len() < limit.min(total) {
            for (kind, ids) in &mut common {
                let ranked = items.iter().filter(|item| item.about.source == *kind);
                let ranked: HashSet<&str> = ranked.map(|item| item.about.id.as_str()).collect();
                ids.retain(|id| !ranked.contains(id.as_str()));
            }
            self.common = Some(Arc::new(common));
            let sources = self.readable_sources()?;
            let rest = self.conversations_by_substring(&sources)?;
            let least = items.last().map_or(1.0, |item| item.score);
            items.extend(
                rest.items
                    .into_iter()
                    .map(|item| ConversationMatch { score: least * item.score, ..item }),
            );
            items.truncate(limit);
            self.notes = rest.notes;
        }
        Ok(Ranking { items, total, is_total_exact: true, notes: self.notes })
    }

    fn with_every_concept(&self, source: &Source) -> Result<HashSet<String>> {
        let mut common = self.conversations_of_origin(source)?;
        for concept in self.concepts() {
            for request in requests(concept) {
                common = Some(self.with_text(source, request, common.as_ref())?);
            }
        }
        Ok(common.unwrap_or_default())
    }

    /// Returns the wanted conversations that contain a text in the question's scope.
    fn with_text(
        &self,
        source: &Source,
        request: Request,
        wanted: Option<&HashSet<String>>,
    ) -> Result<HashSet<String>> {
        let scope = &self.scope;
        let request = Request {
            roles: scope.roles.clone(),
            since: scope.since,
            until: scope.until,
            ..request
        };
        let is_wanted = |id: &str| {
            scope.conversation.as_ref().is_none_or(|wanted| wanted == id)
                && wanted.is_none_or(|wanted| wanted.contains(id))
        };
        let render = |hit: Hit<'_>| {
            is_wanted(&hit.conversation_id).then(|| hit.conversation_id.into_owned())
        };
        let mut found = HashSet::new();
        let mut sink = Rendered::new(render, |id| {
            found.insert(id);
            ControlFlow::Continue(())
        });
        source.search(&request, self.stop, &mut sink)?;
        Ok(found)
    }
}

/// Returns the exact searches for a concept. A conversation contains the concept if all find something.
fn requests(concept: &str) -> Vec<Request> {
    let query = Query::parse(concept);
    let texts: Vec<&str> = match () {
        () if query.phrases.is_empty() && !query.excludes() => vec![concept],
        () if query.phrases.is_empty() => vec![query.text.trim()],
        () if query.is_all_quoted => Vec::new(),
        () => query.outside.split_whitespace().collect(),
    };
    let literal = |text: &str| Request {
        text: text.to_owned(),
        matching: Matching::Literal,
        ..Request::default()
    };
    let texts = texts.into_iter().filter(|text| !text.is_empty()).map(literal);
    texts.chain(query.phrases.iter().map(|phrase| PhraseSearch::quoted(phrase).request)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_concept_requires() {
        for (concept, expected) in [
            ("React Router", &["React Router"][..]),
            ("\"JWT tokens\"", &[r"jwt\s+tokens"]),
            ("\"kens\" -Angular", &["kens"]),
            ("router \"JWT tokens\"", &["router", r"jwt\s+tokens"]),
            ("router -Angular", &["router"]),
        ] {
            let texts: Vec<String> = requests(concept).into_iter().map(|it| it.text).collect();
            assert_eq!(texts, expected, "{concept}");
        }
    }
}
