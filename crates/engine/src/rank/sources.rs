//! Opens the sources that a question ranks. Refreshes their indexes first if that is quick.
//!
//! If a maintainer works in the background, a question does not build a whole index. It waits a short
//! time for the maintainer's index, because otherwise the work would be done twice, or thrown away.

use std::{borrow::Cow, cell::RefCell, collections::HashSet, sync::Arc, thread, time::Duration};

use super::{
    question::Mode,
    ranker::{MAX_WAIT, Ranker, SMALL},
};
use crate::{
    error::{Error, Result},
    scoring::Scorer,
    source::{Lacking, Note, Source, SourceKind, Task},
    upkeep::{
        encode::MAX_IN_PASSING,
        enrich,
        refresh::{self, Reindex},
    },
};
use verbatim_base::model::Stop;
use verbatim_index::{Resources, Snapshot};

/// Pause between two checks whether another thread or process has finished an index.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Time after an unfinished refresh during which questions do not try to refresh again.
const PAUSE: Duration = Duration::from_secs(60);

/// The memory and threads that a question may use to refresh an index.
const RESOURCES: Resources = Resources { memory: 128 << 20, threads: 1 };

pub(super) struct RankedSource {
    pub(super) kind: SourceKind,
    pub(super) scorer: Box<dyn Scorer>,
    pub(super) source: Source,
    /// The comparison of an outdated index with its database; `None` if the index is current.
    pub(super) checked: Option<RefCell<Checked>>,
}

/// The messages of an outdated index that were compared with the database.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) seen: HashSet<u32>,
    pub(super) changed_or_deleted: HashSet<u32>,
}

impl Checked {
    fn new(snapshot: Arc<Snapshot>) -> Checked {
        Checked { snapshot, seen: HashSet::new(), changed_or_deleted: HashSet::new() }
    }
}

impl RankedSource {
    pub(super) fn is_changed_or_deleted(&self, doc_id: u32) -> bool {
        self.checked
            .as_ref()
            .is_some_and(|checked| checked.borrow().changed_or_deleted.contains(&doc_id))
    }

    /// Returns how many more candidates to fetch because of deleted messages. It is twice their number,
    /// so that a few rounds are enough even if many messages were deleted.
    pub(super) fn to_replace(&self) -> usize {
        self.checked.as_ref().map_or(0, |checked| 2 * checked.borrow().changed_or_deleted.len())
    }
}

pub(super) struct OpenedSources {
    /// Sources that are ranked by an index.
    pub(super) ranked: Vec<RankedSource>,
    /// Sources without a usable index, which are scanned.
    pub(super) scanned: Vec<Source>,
}

impl Ranker<'_> {
    /// Returns the sources in the question's scope that can be read, and adds notes about the others.
    pub(super) fn readable_sources(&mut self) -> Result<Vec<Source>> {
        self.wait_for_transcripts()?;
        let (sources, notes) = self.sources.readable(&self.scope.sources, self.stop)?;
        notes.into_iter().for_each(|note| self.note(note));
        let (scope, notes) = self.sources.resolved(&self.scope, &sources, self.stop)?;
        notes.into_iter().for_each(|note| self.note(note));
        let is_wanted =
            |source: &Source| scope.sources.is_empty() || scope.sources.contains(&source.kind);
        let sources = sources.into_iter().filter(is_wanted).collect();
        self.scope = scope;
        Ok(sources)
    }

    /// Opens the sources in the question's scope, and adds notes about what is missing.
    pub(super) fn open_sources(&mut self) -> Result<OpenedSources> {
        let mut opened = OpenedSources { ranked: Vec::new(), scanned: Vec::new() };
        let sources = self.readable_sources()?;
        self.narrow(&sources)?;
        for source in sources {
            match self.open(&source)? {
                Some(ranked) => opened.ranked.push(ranked),
                None => opened.scanned.push(source),
            }
        }
        Ok(opened)
    }

    /// Opens a source for ranking; `None` if the source must be scanned.
    fn open(&mut self, source: &Source) -> Result<Option<RankedSource>> {
        // A cluster maintains its own index.
        let is_here = source.database().is_some();
        let may_freshen = is_here && !self.sources.config().leave_indexes;
        if may_freshen && source.current_index(self.stop).is_err() {
            self.freshen(source)?;
        }
        if may_freshen && missing(source, self.stop) != (0, 0) {
            self.enrich(source)?;
        }
        self.check_stop()?;
        let is_current = !is_here || source.current_index(self.stop).is_ok();
        let older = if is_current { None } else { source.latest_index(self.stop) };
        let reader = source.latest_reader(self.stop);
        let mut scope = self.narrowed_scope();
        if let Cow::Owned(roles) = self.roles_in(source.kind) {
            scope.to_mut().roles = roles;
        }
        let scorer = match reader.map(|reader| reader.scorer(&scope, self.stop)) {
            None => None,
            Some(Ok(scorer)) => scorer,
            Some(Err(error)) if error.is_of_source() => {
                self.note(Note::Unreadable { source: source.kind, reason: error.reason() });
                return Ok(None);
            }
            Some(Err(error)) => return Err(error),
        };
        let Some(scorer) = scorer else {
            self.note_unindexed(source);
            return Ok(None);
        };
        let (terms, vectors) = scorer.missing();
        let messages = source.latest_index(self.stop).map_or(vectors, |index| index.max_doc());
        let is_without_vectors = self.question.mode == Mode::Vector && vectors >= messages.max(1);
        // An outdated index is used only if its messages can be compared with rows of the database, and
        // only if the scorer uses the same snapshot.
        let is_ranked = |it: &Arc<Snapshot>| {
            it.reading().plain
                && source.latest_index(self.stop).is_some_and(|now| Arc::ptr_eq(it, &now))
        };
        let older = older.filter(is_ranked);
        if !is_current && older.is_none() {
            self.note_unindexed(source);
            return Ok(None);
        }
        if terms > 0 || is_without_vectors {
            let what = if terms > 0 { Lacking::Words } else { Lacking::Vectors };
            self.note_lacking(source, terms.max(vectors), what);
            return Ok(None);
        }
        if vectors > 0 && self.question.mode != Mode::Text {
            self.note_lacking(source, vectors, Lacking::Vectors);
        }
        self.note_encoding(source, scorer.encoded());
        if !is_current {
            self.note(Note::OlderIndex { source: source.kind });
        }
        let checked = older.map(|snapshot| RefCell::new(Checked::new(snapshot)));
        Ok(Some(RankedSource { kind: source.kind, scorer, source: source.clone(), checked }))
    }

    /// Refreshes the index of a source if that is quick.
    fn freshen(&self, source: &Source) -> Result<()> {
        let is_small = source.store().bytes() <= SMALL;
        match source.is_maintained() && !is_small {
            _ if source.is_refresh_slow() => {}
            true => self.refresh_or_wait(source)?,
            // The refresh of a small database has no time limit.
            false if is_small => refresh_within(self.stop, source, self.stop),
            false => refresh_within(&self.in_time, source, self.stop),
        }
        Ok(())
    }

    /// Adds the missing terms and vectors if only a few messages lack them. Otherwise waits for the
    /// maintainer to add them. Questions never wait for vectors of a provider.
    fn enrich(&self, source: &Source) -> Result<()> {
        let Some(snapshot) = source.latest_index(self.stop) else { return Ok(()) };
        enrich::enrich_small(&snapshot, source.model(), RESOURCES, self.stop);
        let needs_vectors = source.model().is_built_in() && self.question.mode != Mode::Text;
        let is_made = || {
            let (terms, vectors) = missing(source, self.stop);
            terms == 0 && (vectors == 0 || !needs_vectors)
        };
        if source.is_maintained() { self.wait_for(source, &is_made) } else { Ok(()) }
    }

    /// Adds the changes of a database to its index, or waits for the maintainer to build the index.
    fn refresh_or_wait(&self, source: &Source) -> Result<()> {
        if source.latest_index(self.stop).is_some() {
            match refresh::refresh_changes(source, RESOURCES, &self.in_time) {
                Ok(true) => return Ok(()),
                Err(error) if error.is_stopped() => {
                    source.postpone_refresh(PAUSE);
                    return self.check_stop();
                }
                _ => {}
            }
        }
        self.wait_for(source, &|| source.current_index(self.stop).is_ok())
    }

    /// Waits until the maintainer is done or has failed, or until the question's time limit.
    fn wait_for(&self, source: &Source, is_made: &dyn Fn() -> bool) -> Result<()> {
        while !is_made() && !self.in_time.requested() && !matches!(source.task(), Task::Failed) {
            thread::sleep(RETRY_PAUSE);
        }
        self.check_stop()
    }

    /// Waits until the transcripts were read for the first time.
    fn wait_for_transcripts(&self) -> Result<()> {
        let is_wanted =
            self.scope.sources.is_empty() || self.scope.sources.contains(&SourceKind::Archive);
        let upkeep_state = self.sources.upkeep_state();
        let has_some = !self.sources.config().archives.is_empty();
        while is_wanted
            && has_some
            && upkeep_state.is_running()
            && !upkeep_state.are_transcripts_read()
            && !self.in_time.requested()
        {
            thread::sleep(RETRY_PAUSE);
        }
        self.check_stop()
    }

    fn check_stop(&self) -> Result<()> {
        if self.stop.requested() { Err(verbatim_chats::db::Error::Stopped.into()) } else { Ok(()) }
    }

    fn note_unindexed(&mut self, source: &Source) {
        let is_coming = source.is_maintained() && !matches!(source.task(), Task::Failed);
        self.note(match is_coming {
            true => building(source),
            false => Note::NotIndexed {
                source: source.kind,
                can_be: source.store().can_be_indexed(source, self.stop),
            },
        });
    }

    /// Adds a note if the encoder has many messages to read. A few are read in a second; the conversation of
    /// an agent that asks has some in every answer.
    fn note_encoding(&mut self, source: &Source, (made, total): (u32, u32)) {
        let is_ranked_by_vectors = self.question.mode != Mode::Text && self.vector_share > 0.0;
        let (made, total) = (u64::from(made), u64::from(total));
        if is_ranked_by_vectors && total.saturating_sub(made) > MAX_IN_PASSING {
            self.note(Note::Encoding { source: source.kind, made, total });
        }
    }

    fn note_lacking(&mut self, source: &Source, count: u32, what: Lacking) {
        self.note(match source.is_maintained() && !matches!(source.task(), Task::Failed) {
            true => building(source),
            false => Note::NotEmbedded { source: source.kind, count: count.into(), what },
        });
    }
}

fn building(source: &Source) -> Note {
    let (percent, seconds_left) = source.task().progress();
    Note::Building { source: source.kind, percent, seconds_left }
}

/// Returns how many messages in a source's index lack terms, and how many lack vectors.
fn missing(source: &Source, stop: &Stop) -> (u32, u32) {
    let snapshot = source.latest_index(stop);
    snapshot.map_or((0, 0), |it| source.searcher(&source.catalogue(&it)).missing())
}

/// Refreshes the index of a source within a time limit. Waits if another process refreshes the index.
fn refresh_within(in_time: &Stop, source: &Source, stop: &Stop) {
    let options = Reindex { resources: RESOURCES, full: false };
    let patience = in_time.within(MAX_WAIT);
    loop {
        match source.reindex(options, in_time, &mut |_| ()) {
            Err(Error::Indexing { .. }) if !patience.requested() => thread::sleep(RETRY_PAUSE),
            Err(error) if error.is_stopped() && !stop.requested() => {
                // Without this pause every question would wait for a refresh, and discard its work each time.
                source.postpone_refresh(PAUSE);
                return;
            }
            // After any failure, an older index is better than none.
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Question, TestExport};

    #[test]
    fn an_answer_says_that_the_encoder_has_many_messages_to_read() {
        let export = TestExport::of(&[]);
        let numbers = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MAX_IN_PASSING})"
        );
        let fill = format!(
            "{numbers} INSERT INTO conversations SELECT i, 'Title' FROM n;
             {numbers} INSERT INTO messages SELECT 'm' || i, i, 'user', 'red ' || i, i FROM n;"
        );
        export.connection.execute_batch(&fill).unwrap();
        let notes = |mode| {
            export.reindex();
            let concepts = vec!["red".to_owned()];
            let question = Question { concepts, mode, limit: 10, ..Question::default() };
            let ranking = export.engine.rank(&question, &Stop::never()).unwrap();
            assert!(ranking.is_complete(), "{:?}", ranking.notes);
            ranking.notes
        };
        assert_eq!(notes(Mode::Both), [], "so few are read in a second");
        export.add(0, "red as well");
        let total = MAX_IN_PASSING + 1;
        let expected = Note::Encoding { source: SourceKind::Export, made: 0, total };
        assert_eq!(notes(Mode::Both), [expected]);
        assert_eq!(notes(Mode::Text), []);
    }

    #[test]
    fn a_refresh_that_takes_too_long_is_not_tried_by_the_next_question() {
        let export = TestExport::indexed(&["red"]);
        let notes = || {
            let question =
                Question { concepts: vec!["red".to_owned()], limit: 10, ..Question::default() };
            export.engine.rank(&question, &Stop::never()).unwrap().notes
        };
        let source = export.engine.sources().remove(0);
        export.add(1, "red as well");
        refresh_within(&Stop::after(Duration::ZERO), &source, &Stop::never());
        assert_eq!(notes(), [Note::OlderIndex { source: SourceKind::Export }]);
        // After the pause a question tries the refresh again.
        source.postpone_refresh(Duration::ZERO);
        assert_eq!(notes(), []);
    }
}
