//! Resolves the names of the project and the session in a scope.

use std::{collections::BTreeSet, sync::Arc};

use crate::error::Result;
use crate::source::SourceKind;
use crate::source::note::{MAX_KNOWN, Note};
use crate::source::scope::{ConversationIds, Scope, is_part, same_name, shown_project};
use crate::source::sources::Sources;
use crate::source::store::Source;
use verbatim_base::{call::Call, model::Instant};
use verbatim_text::snippet;

/// The likeness from which an id is suggested in place of an unknown session.
const ALIKE: f64 = 0.8;

/// The results of looking up the project and session names of a scope.
#[derive(Default)]
struct Named {
    /// Whether a transcript has the given id as its session id.
    is_session: bool,
    /// The conversations whose ids equal or begin with the given id: source, id, session.
    conversations: Vec<(SourceKind, String, Option<String>)>,
    is_whole_id: bool,
    projects: BTreeSet<String>,
    sessions: Vec<String>,
    has_project: bool,
}

impl Sources {
    /// Resolves the session of a scope: a transcript's session, else the conversation with this id, else
    /// the only conversation whose id begins with it. Adds notes about unknown names.
    pub(crate) fn resolved(
        &self,
        scope: &Scope,
        sources: &[Source],
        call: &Call,
    ) -> Result<(Scope, Vec<Note>)> {
        let mut scope = scope.clone();
        if !scope.has_origin() {
            return Ok((scope, Vec::new()));
        }
        let mut named = Named::default();
        for source in sources {
            match named.record_names(source, &scope, call) {
                // The search of this source will report the error.
                Err(error) if error.is_of_source() => {}
                outcome => outcome?,
            }
        }
        let mut notes = Vec::new();
        if let Some(project) = scope.project.as_ref().filter(|_| !named.has_project) {
            let projects = std::mem::take(&mut named.projects).into_iter().collect();
            notes.push(unknown("project", project, projects));
        }
        let Some(given) = scope.session.clone().filter(|_| !named.is_session) else {
            return Ok((scope, notes));
        };
        let first = named.conversations.first().cloned();
        let session = first.as_ref().and_then(|(_, _, session)| session.clone());
        let is_one_session =
            session.is_some() && named.conversations.iter().all(|(_, _, other)| *other == session);
        match (first, named.conversations.len()) {
            (Some((kind, id, _)), 1) => {
                scope.session = None;
                scope.conversation = Some(id);
                scope.sources = vec![kind];
            }
            (Some(_), _) if is_one_session => scope.session = session,
            (Some(_), _) => {
                let ids = named.conversations.into_iter().map(|(_, id, _)| id);
                notes.push(Note::Ambiguous { given, ids: ids.take(MAX_KNOWN).collect() });
            }
            (None, _) => {
                named.add_alike(&given, sources, call)?;
                notes.push(unknown("session", &given, named.sessions));
            }
        }
        Ok((scope, notes))
    }
}

impl Sources {
    /// Works like [`Sources::resolved`], and also replaces the project and the session by the ids of their
    /// conversations.
    pub(crate) fn resolved_to_ids(
        &self,
        scope: &Scope,
        sources: &[Source],
        call: &Call,
    ) -> Result<(Scope, Vec<Note>)> {
        let (scope, notes) = self.resolved(scope, sources, call)?;
        if !scope.has_origin() {
            return Ok((scope, notes));
        }
        let wanted = scope.any_message();
        let mut ids = ConversationIds::new();
        for source in sources {
            let listing = source.reader(call).list(&wanted, call)?;
            let found = (0..listing.len()).map(|place| listing.heading(place).0.to_owned());
            ids.insert(source.kind, found.collect());
        }
        let conversations = Some(Arc::new(ids));
        Ok((Scope { project: None, session: None, conversations, ..scope }, notes))
    }

    /// Returns a note about the first role in a scope that no message has.
    pub fn unknown_role(&self, scope: &Scope, call: &Call) -> Result<Option<Note>> {
        if scope.roles.is_empty() {
            return Ok(None);
        }
        let known = self.roles(&scope.sources, call)?;
        let unknown = scope.roles.iter().find(|role| !known.contains(*role));
        Ok(unknown.map(|role| unknown_role(role, known)))
    }

    /// Returns the roles that are named by parts of their names, in any letter case. Fails with a note if a
    /// part is of no role.
    pub fn named_roles(
        &self,
        parts: &[String],
        kinds: &[SourceKind],
        call: &Call,
    ) -> Result<Result<Vec<String>, Note>> {
        if parts.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let known = self.roles(kinds, call)?;
        let mut roles = Vec::new();
        for part in parts {
            if known.contains(part) {
                roles.push(part.clone());
                continue;
            }
            let named = known.iter().filter(|role| is_part(part, role)).cloned();
            let before = roles.len();
            roles.extend(named);
            if roles.len() == before {
                return Ok(Err(unknown_role(part, known)));
            }
        }
        Ok(Ok(roles))
    }

    fn roles(&self, kinds: &[SourceKind], call: &Call) -> Result<BTreeSet<String>> {
        let mut roles = BTreeSet::new();
        self.each(kinds, |source| {
            if let Ok(snapshot) = source.current_index(call)
                && snapshot.messages() == snapshot.max_doc()
                && source.left_out(call)?.is_empty()
            {
                roles.extend(snapshot.roles().into_iter().map(str::to_owned));
                return Ok(());
            }
            let counts = source.reader(call).count(&Scope::default(), &Instant::day, call)?;
            roles.extend(counts.roles.into_keys());
            Ok(())
        })?;
        Ok(roles)
    }
}

fn unknown_role(given: &str, known: BTreeSet<String>) -> Note {
    unknown("role", given, known.into_iter().filter(|role| !role.is_empty()).collect())
}

impl Named {
    fn record_names(&mut self, source: &Source, scope: &Scope, call: &Call) -> Result<()> {
        let listing = source.reader(call).list(&Scope::default(), call)?;
        for place in 0..listing.len() {
            let (id, _) = listing.heading(place);
            let origin = listing.origin(place);
            if let Some(wanted) = &scope.project {
                let project = shown_project(source.kind, origin);
                self.has_project |= same_name(wanted, project);
                if !self.projects.contains(project) {
                    self.projects.insert(project.to_owned());
                }
            }
            let Some(wanted) = &scope.session else { continue };
            let session = origin.and_then(|origin| origin.session.as_deref());
            self.is_session |= session.is_some_and(|session| same_name(wanted, session));
            self.sessions.extend(session.map(str::to_owned));
            let is_whole = same_name(wanted, id);
            if is_whole && !self.is_whole_id {
                self.is_whole_id = true;
                self.conversations.clear();
            }
            if is_whole || !self.is_whole_id && begins(id, wanted) {
                let session = session.map(str::to_owned);
                self.conversations.push((source.kind, id.to_owned(), session));
            }
        }
        Ok(())
    }
}

impl Named {
    /// Adds the ids of conversations without a session that are nearly the given text.
    fn add_alike(&mut self, given: &str, sources: &[Source], call: &Call) -> Result<()> {
        for source in sources {
            let listing = match source.reader(call).list(&Scope::default(), call) {
                Err(error) if error.is_of_source() => continue,
                listing => listing?,
            };
            let likeness = Likeness::new(given);
            for place in 0..listing.len() {
                let (id, _) = listing.heading(place);
                let session = listing.origin(place).and_then(|origin| origin.session.as_deref());
                if session.is_none() && likeness.similarity_to(id) > ALIKE {
                    self.sessions.push(id.to_owned());
                }
            }
        }
        Ok(())
    }
}

/// Returns whether an id begins with a text, in any letter case.
fn begins(id: &str, text: &str) -> bool {
    id.get(..text.len()).is_some_and(|start| same_name(start, text))
}

/// Returns the note that none of some names is the given one.
pub(crate) fn unknown(what: &'static str, given: &str, mut names: Vec<String>) -> Note {
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(MAX_KNOWN);
    Note::Unknown { what, given: given.to_owned(), known: nearest(given, names), more }
}

/// Returns the names that are most similar to a given name, the most similar first.
fn nearest(given: &str, names: Vec<String>) -> Vec<String> {
    let likeness = Likeness::new(given);
    let mut alike: Vec<(f64, String)> =
        names.into_iter().map(|name| (likeness.similarity_to(&name), name)).collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    alike.into_iter().take(MAX_KNOWN).map(|(_, name)| name).collect()
}

/// The beginning of a name in lower case. The time of a comparison grows with the lengths of both names.
struct Likeness(String);

impl Likeness {
    /// The maximum number of characters that are compared.
    const MAX: usize = 100;

    fn new(name: &str) -> Likeness {
        Likeness(snippet::cut(name, Likeness::MAX).unwrap_or(name).to_lowercase())
    }

    /// Returns how similar another name is, from 0 to 1, in any letter case.
    fn similarity_to(&self, other: &str) -> f64 {
        strsim::jaro_winkler(&self.0, &Likeness::new(other).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first_however_long_the_given_one_is() {
        let names = ["garden", "kitchen", "gardens"].map(str::to_owned).to_vec();
        assert_eq!(nearest("Gardn", names.clone())[..2], ["garden", "gardens"]);
        let many: Vec<String> = (0..20_000).map(|at| format!("{at:036}")).collect();
        let begun = std::time::Instant::now();
        nearest(&"A".repeat(1_000_000), many);
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
