//! Lists of conversations, from the catalogue of an index that mirrors its database, else from SQLite.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
};

use crate::engine::{About, Catalogue, Engine, Error, FallbackReason, Scope, Source, SourceKind};
use crate::{
    db::{self, Outline, StoredOrigin},
    index::Snapshot,
    model::{Instant, Stop},
};

/// A conversation in a list of several sources: when it was last active, and where it is from.
type Key = (Option<Instant>, usize, usize);

/// What is known of the conversations of one source, latest activity first.
enum List {
    Indexed(Arc<Catalogue>, Vec<u32>),
    Read(Vec<Outline>, HashMap<String, StoredOrigin>),
}

impl Engine {
    /// Returns the conversations in a scope from `offset` on, latest activity first, and how many
    /// there are in all.
    ///
    /// A conversation is in a scope of dates if it was going on at any of them, and in one of roles
    /// if a message of it has one.
    pub fn list(
        &self,
        scope: &Scope,
        offset: usize,
        limit: usize,
    ) -> Result<(Vec<About>, usize), Error> {
        let mut lists = Vec::new();
        let mut keys: Vec<Key> = Vec::new();
        for source in self.sources_of(scope)? {
            let list = self.list_of(&source, scope)?;
            let place = lists.len();
            match &list {
                List::Indexed(catalogue, found) => {
                    let listed = catalogue.conversations();
                    let last = |conversation: &u32| listed[*conversation as usize].last;
                    keys.extend(found.iter().zip(0..).map(|(one, at)| (last(one), place, at)));
                }
                List::Read(found, _) => {
                    keys.extend(found.iter().zip(0..).map(|(one, at)| (one.last, place, at)));
                }
            }
            lists.push((source, list));
        }
        // Each list is in order: equal times leave the sources in theirs.
        keys.sort_by_key(|(last, ..)| std::cmp::Reverse(*last));
        let total = keys.len();
        let page = keys.into_iter().skip(offset).take(limit);
        let abouts = page.map(|(_, place, at)| match &lists[place] {
            (source, List::Indexed(catalogue, found)) => {
                self.about_listed(source.kind, catalogue, found[at])
            }
            (source, List::Read(found, origins)) => {
                about_read(source.kind, &found[at], origins.get(&found[at].id))
            }
        });
        Ok((abouts.collect(), total))
    }

    /// Returns what is known of a conversation; `None` where the source has none of that id that
    /// has messages.
    pub fn about(&self, source: SourceKind, id: &str) -> Result<Option<About>, Error> {
        let scope =
            Scope { sources: vec![source], conversation: Some(id.to_owned()), ..Scope::default() };
        Ok(self.list(&scope, 0, 1)?.0.pop())
    }

    /// Returns the sources in a scope; the export is asked for only where it is there.
    pub(crate) fn sources_of(&self, scope: &Scope) -> Result<Vec<Source>, Error> {
        let wanted = |kind| scope.sources.is_empty() || scope.sources.contains(&kind);
        let mut sources = self.sources();
        if sources.is_empty() && wanted(SourceKind::Export) {
            // Says what was looked for, and where.
            sources.push(self.export()?);
        }
        sources.retain(|source| wanted(source.kind));
        Ok(sources)
    }

    /// Returns the catalogue of a source whose index mirrors it.
    pub fn catalogue(&self, source: &Source) -> Result<Arc<Catalogue>, FallbackReason> {
        Ok(self.catalogue_of(source.kind, &self.current_index(source)?))
    }

    /// Returns the catalogue of a snapshot, the one made before where it is of the same.
    pub(crate) fn catalogue_of(
        &self,
        kind: SourceKind,
        snapshot: &Arc<Snapshot>,
    ) -> Arc<Catalogue> {
        let made = &self.catalogues[kind as usize];
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some(known) if Arc::ptr_eq(known.snapshot(), snapshot) => Arc::clone(known),
            _ => Arc::clone(made.insert(Arc::new(Catalogue::of(kind, Arc::clone(snapshot))))),
        }
    }

    /// Returns where a conversation comes from.
    fn origin<'c>(
        &self,
        kind: SourceKind,
        catalogue: &'c Catalogue,
        conversation: u32,
    ) -> Option<&'c StoredOrigin> {
        if kind != SourceKind::Archive {
            return None;
        }
        catalogue.origin(conversation, || {
            let path = self.config().archive_database();
            // Without it the conversation is known all the same.
            db::read(&path, &Stop::never(), db::origins).unwrap_or_default()
        })
    }

    /// Returns what a catalogue knows of a conversation.
    pub(crate) fn about_listed(
        &self,
        source: SourceKind,
        catalogue: &Catalogue,
        conversation: u32,
    ) -> About {
        let listed = &catalogue.conversations()[conversation as usize];
        let brief = catalogue.brief(conversation);
        let origin = self.origin(source, catalogue, conversation).cloned().unwrap_or_default();
        About {
            source,
            id: listed.id.clone(),
            title: if brief.title.is_empty() { &listed.title } else { &brief.title }.clone(),
            summary: brief.summary.clone(),
            turns: listed.turns(),
            begun: listed.begun,
            last: listed.last,
            file: origin.file.map(PathBuf::from),
            project: origin.project,
            session: origin.session,
        }
    }

    /// Returns the conversations of the project or session that a scope names; `None` for all.
    pub(crate) fn conversations_of(
        &self,
        kind: SourceKind,
        catalogue: &Catalogue,
        scope: &Scope,
    ) -> Option<HashSet<u32>> {
        if scope.project.is_none() && scope.session.is_none() {
            return None;
        }
        let all = 0..catalogue.conversations().len() as u32;
        Some(all.filter(|one| is_of(self.origin(kind, catalogue, *one), scope)).collect())
    }

    /// Returns the ids of the conversations of the project or session that a scope names.
    pub(crate) fn ids_of(&self, source: &Source, scope: &Scope) -> Result<HashSet<String>, Error> {
        let scope = Scope {
            sources: vec![source.kind],
            project: scope.project.clone(),
            session: scope.session.clone(),
            ..Scope::default()
        };
        Ok(match self.list_of(source, &scope)? {
            List::Indexed(catalogue, found) => {
                let id = |at: u32| catalogue.conversations()[at as usize].id.clone();
                found.into_iter().map(id).collect()
            }
            List::Read(found, _) => found.into_iter().map(|one| one.id).collect(),
        })
    }

    /// Returns the conversation whose transcript is a file.
    pub(crate) fn of_file(&self, source: &Source, file: &Path) -> Result<Option<About>, Error> {
        let is_it = |origin: Option<&StoredOrigin>| {
            origin.and_then(|origin| origin.file.as_ref()).is_some_and(|it| Path::new(it) == file)
        };
        Ok(match self.list_of(source, &Scope::default())? {
            List::Indexed(catalogue, found) => {
                let place =
                    found.into_iter().find(|at| is_it(self.origin(source.kind, &catalogue, *at)));
                place.map(|at| self.about_listed(source.kind, &catalogue, at))
            }
            List::Read(found, origins) => {
                let one = found.iter().find(|one| is_it(origins.get(&one.id)));
                one.map(|one| about_read(source.kind, one, origins.get(&one.id)))
            }
        })
    }

    fn list_of(&self, source: &Source, scope: &Scope) -> Result<List, Error> {
        let within = |begun: Option<Instant>, last: Option<Instant>| {
            let after = scope.since.is_none_or(|since| last.is_some_and(|last| last >= since));
            let before = scope.until.is_none_or(|until| begun.is_some_and(|begun| begun <= until));
            after && before
        };
        let Ok(catalogue) = self.catalogue(source) else {
            let (mut found, origins) = self.on_source(source, |path| {
                db::read(path, &Stop::never(), |database| {
                    let found = db::outline(database, &scope.roles)?;
                    let is_archive = source.kind == SourceKind::Archive;
                    let origins = if is_archive { db::origins(database)? } else { HashMap::new() };
                    Ok((found, origins))
                })
            })?;
            found.retain(|one| {
                within(one.begun, one.last)
                    && scope.conversation.as_ref().is_none_or(|id| *id == one.id)
                    && is_of(origins.get(&one.id), scope)
            });
            return Ok(List::Read(found, origins));
        };
        let snapshot = catalogue.snapshot();
        let spoken = |conversation: &u32| {
            let mut doc_ids = catalogue.doc_ids(*conversation).iter();
            scope.roles.is_empty()
                || doc_ids
                    .any(|doc_id| scope.roles.iter().any(|role| role == snapshot.role(*doc_id)))
        };
        let is_within = |conversation: &u32| {
            let listed = &catalogue.conversations()[*conversation as usize];
            within(listed.begun, listed.last)
        };
        let is_of = |conversation: &u32| {
            scope.project.is_none() && scope.session.is_none()
                || is_of(self.origin(source.kind, &catalogue, *conversation), scope)
        };
        let all = match &scope.conversation {
            Some(id) => catalogue.find(id).into_iter().collect(),
            None => (0..catalogue.conversations().len() as u32).collect::<Vec<_>>(),
        };
        let found = all.into_iter().filter(|one| is_within(one) && is_of(one) && spoken(one));
        let found = found.collect();
        Ok(List::Indexed(catalogue, found))
    }
}

fn about_read(source: SourceKind, outline: &Outline, origin: Option<&StoredOrigin>) -> About {
    let origin = origin.cloned().unwrap_or_default();
    About {
        source,
        id: outline.id.clone(),
        title: outline.title.clone(),
        summary: String::new(),
        turns: outline.turns,
        begun: outline.begun,
        last: outline.last,
        file: origin.file.map(PathBuf::from),
        project: origin.project,
        session: origin.session,
    }
}

/// Whether a conversation is of the project and the session asked for.
fn is_of(origin: Option<&StoredOrigin>, scope: &Scope) -> bool {
    let fits = |asked: &Option<String>, here: Option<&String>| {
        asked.as_ref().is_none_or(|asked| here == Some(asked))
    };
    fits(&scope.project, origin.and_then(|origin| origin.project.as_ref()))
        && fits(&scope.session, origin.and_then(|origin| origin.session.as_ref()))
}
