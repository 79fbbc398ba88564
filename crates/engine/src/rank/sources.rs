//! Opens the sources that a question ranks. Refreshes their indexes first if that is quick.
//!
//! A source is ranked by an index that is current, so that no answer is stale. Of any other source, the
//! messages with the question's words are found.
//!
//! If a maintainer works in the background, a question does not build a whole index. It waits a short
//! time for the maintainer's index, because otherwise the work would be done twice, or thrown away.

use std::{borrow::Cow, thread, time::Duration};

use super::ranker::{MAX_WAIT, Ranker, SMALL};
use super::{all_concepts, notes::Notes, question::Mode, scoped::Scoped};
use crate::error::{Error, Result};
use crate::scoring::Scorer;
use crate::source::{FallbackReason, IndexState, Note, Source, SourceKind, Task};
use crate::upkeep::refresh::{self, Reindex};
use crate::upkeep::{encode::MAX_IN_PASSING, enrich};
use verbatim_base::call::{Call, Stop};
use verbatim_index::Resources;

/// Pause between two checks whether another thread or process has finished an index.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Time after an unfinished refresh during which questions do not try to refresh again.
const PAUSE: Duration = Duration::from_secs(60);

/// The memory and threads that a question may use to refresh an index.
const RESOURCES: Resources = Resources { memory: 128 << 20, threads: 1 };

/// A question with the sources in its scope that can be read.
pub(super) struct ReadableSources<'a> {
    pub(super) scoped: Scoped<'a>,
    pub(super) sources: Vec<Source>,
    pub(super) notes: Notes,
}

pub(super) struct RankedSource {
    pub(super) scorer: Box<dyn Scorer>,
    pub(super) source: Source,
}

/// A question with its sources.
pub(super) struct OpenedSources<'a> {
    pub(super) scoped: Scoped<'a>,
    /// Sources that are ranked by an index.
    pub(super) ranked: Vec<RankedSource>,
    /// Sources without a current index.
    pub(super) unranked: Vec<Source>,
}

impl OpenedSources<'_> {
    pub(super) fn all(&self) -> Vec<Source> {
        let ranked = self.ranked.iter().map(|ranked| &ranked.source);
        ranked.chain(&self.unranked).cloned().collect()
    }
}

/// Returns the sources in a question's scope that can be read, with notes about the others.
pub(super) fn readable<'a>(ranker: &'a Ranker<'a>) -> Result<ReadableSources<'a>> {
    let wanted = &ranker.question.scope;
    wait_for_transcripts(ranker)?;
    let mut notes = Notes::default();
    let (mut sources, of_sources) = ranker.sources.readable(&wanted.sources, ranker.call)?;
    notes.extend(of_sources);
    let (scope, of_scope) = ranker.sources.resolved(wanted, &sources, ranker.call)?;
    notes.extend(of_scope);
    sources.retain(|source| scope.sources.is_empty() || scope.sources.contains(&source.kind));
    let scoped = Scoped { ranker, scope, common: None };
    Ok(ReadableSources { scoped, sources, notes })
}

/// Opens the sources of a question. Adds notes about them.
pub(super) fn open<'a>(
    scoped: Scoped<'a>,
    sources: Vec<Source>,
    notes: &mut Notes,
) -> Result<OpenedSources<'a>> {
    let scoped = all_concepts::narrowed(scoped, &sources, notes)?;
    let mut ranked = Vec::new();
    let mut unranked = Vec::new();
    for source in sources {
        match open_one(&scoped, &source, notes)? {
            Some(scorer) => ranked.push(RankedSource { scorer, source }),
            None => unranked.push(source),
        }
    }
    Ok(OpenedSources { scoped, ranked, unranked })
}

/// Returns the scorer of a source; `None` if it has no index that can be ranked by.
fn open_one(
    scoped: &Scoped<'_>,
    source: &Source,
    notes: &mut Notes,
) -> Result<Option<Box<dyn Scorer>>> {
    let Ranker { call, question, .. } = *scoped.ranker;
    // A cluster maintains its own index.
    let may_freshen = source.database().is_some() && !source.config().leave_indexes;
    if may_freshen && source.current_index(call).is_err() {
        freshen(scoped.ranker, source)?;
    }
    if may_freshen && missing(source, call) != (0, 0) {
        enrich(scoped.ranker, source)?;
    }
    scoped.ranker.check_stop()?;
    let mut scope = scoped.narrowed_scope();
    if let Cow::Owned(roles) = scoped.roles_in(source.kind) {
        scope.to_mut().roles = roles;
    }
    let scorer = match source.reader(call).scorer(&scope, call) {
        Ok(scorer) => scorer,
        Err(error) if error.is_of_source() => {
            notes.add(Note::Unreadable { source: source.kind, reason: error.to_string() });
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let is_in_the_making = source.is_maintained() && !matches!(source.task(), Task::Failed);
    let progress = is_in_the_making.then(|| source.task().progress());
    if let Some(scorer) = scorer {
        let (terms, vectors) = scorer.missing();
        let messages = source.latest_index(call).map_or(vectors, |index| index.max_doc());
        if terms == 0 && (question.mode != Mode::Vector || vectors < messages.max(1)) {
            if vectors > 0 && question.mode != Mode::Text {
                notes.add(match progress {
                    Some((percent, seconds_left)) => {
                        Note::Building { source: source.kind, percent, seconds_left }
                    }
                    None => Note::NotEmbedded { source: source.kind, count: vectors.into() },
                });
            }
            notes.extend(encoding(scoped.ranker, source, &*scorer));
            return Ok(Some(scorer));
        }
    }
    let index = match progress {
        Some((percent, seconds_left)) => IndexState::Building { percent, seconds_left },
        None => match source.current_index(call) {
            Err(FallbackReason::Unreadable(reason)) => IndexState::Unreadable { reason },
            _ if source.store().can_be_indexed(source, call) => IndexState::Missing,
            _ => IndexState::Impossible,
        },
    };
    notes.add(Note::NotRanked { source: source.kind, index });
    Ok(None)
}

/// Refreshes the index of a source if that is quick.
fn freshen(ranker: &Ranker<'_>, source: &Source) -> Result<()> {
    if source.is_refresh_slow() {
        return Ok(());
    }
    let is_small = source.store().bytes() <= SMALL;
    if source.is_maintained() && !is_small {
        return refresh_or_wait(ranker, source);
    }
    // The refresh of a small database has no time limit.
    let in_time = if is_small { ranker.call } else { &ranker.in_time };
    refresh_within(in_time, source, &ranker.call.stop);
    Ok(())
}

/// Adds the missing terms and vectors if only a few messages lack them. Otherwise waits for the
/// maintainer to add them. Questions never wait for vectors of a provider.
fn enrich(ranker: &Ranker<'_>, source: &Source) -> Result<()> {
    let Some(snapshot) = source.latest_index(ranker.call) else { return Ok(()) };
    enrich::enrich_small(&snapshot, source.model(), RESOURCES, &ranker.call.stop);
    if !source.is_maintained() {
        return Ok(());
    }
    let needs_vectors = source.model().is_built_in() && ranker.question.mode != Mode::Text;
    wait_for(ranker, source, &|| {
        let (terms, vectors) = missing(source, ranker.call);
        terms == 0 && (vectors == 0 || !needs_vectors)
    })
}

/// Adds the changes of a database to its index, or waits for the maintainer to build the index.
fn refresh_or_wait(ranker: &Ranker<'_>, source: &Source) -> Result<()> {
    if source.latest_index(ranker.call).is_some() {
        match refresh::refresh_changes(source, RESOURCES, &ranker.in_time) {
            Ok(true) => return Ok(()),
            Err(error) if error.is_stopped() => {
                source.postpone_refresh(PAUSE);
                return ranker.check_stop();
            }
            _ => {}
        }
    }
    wait_for(ranker, source, &|| source.current_index(ranker.call).is_ok())
}

/// Waits until the maintainer is done or has failed, or until the question's time limit.
fn wait_for(ranker: &Ranker<'_>, source: &Source, is_made: &dyn Fn() -> bool) -> Result<()> {
    while !is_made() && !ranker.in_time.stop.requested() && !matches!(source.task(), Task::Failed) {
        thread::sleep(RETRY_PAUSE);
    }
    ranker.check_stop()
}

/// Waits until the transcripts were read for the first time.
fn wait_for_transcripts(ranker: &Ranker<'_>) -> Result<()> {
    let wanted = &ranker.question.scope.sources;
    let is_wanted = wanted.is_empty() || wanted.contains(&SourceKind::Archive);
    let upkeep_state = ranker.sources.upkeep_state();
    while is_wanted
        && !ranker.sources.config().archives.is_empty()
        && upkeep_state.is_running()
        && !upkeep_state.are_transcripts_read()
        && !ranker.in_time.stop.requested()
    {
        thread::sleep(RETRY_PAUSE);
    }
    ranker.check_stop()
}

/// Returns a note if the encoder has many messages to read. A few are read in a second; the conversation of
/// an agent that asks has some in every answer.
fn encoding(ranker: &Ranker<'_>, source: &Source, scorer: &dyn Scorer) -> Option<Note> {
    let (made, total) = scorer.encoded();
    let made = u64::from(made);
    let total = u64::from(total);
    let is_ranked_by_vectors = ranker.question.mode != Mode::Text && ranker.vector_share > 0.0;
    let is_long = is_ranked_by_vectors && total.saturating_sub(made) > MAX_IN_PASSING;
    is_long.then_some(Note::Encoding { source: source.kind, made, total })
}

/// Returns how many messages in a source's index lack terms, and how many lack vectors.
fn missing(source: &Source, call: &Call) -> (u32, u32) {
    let snapshot = source.latest_index(call);
    snapshot.map_or((0, 0), |it| source.searcher(&source.catalogue(&it)).missing())
}

/// Refreshes the index of a source within a time limit. Waits if another process refreshes the index.
fn refresh_within(in_time: &Call, source: &Source, stop: &Stop) {
    let options = Reindex { resources: RESOURCES, full: false };
    let patience = in_time.within(MAX_WAIT);
    loop {
        match source.reindex(options, in_time, &mut |_| ()) {
            Err(Error::Indexing { .. }) if !patience.stop.requested() => thread::sleep(RETRY_PAUSE),
            Err(error) if error.is_stopped() && !stop.requested() => {
                // Without this pause every question would wait for a refresh, and discard its work each time.
                source.postpone_refresh(PAUSE);
                return;
            }
            // After any other failure, the source is not ranked.
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
            let ranking = export.engine.rank(&question, &Call::default()).unwrap();
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
            export.engine.rank(&question, &Call::default()).unwrap().notes
        };
        let source = export.engine.sources().remove(0);
        export.add(1, "red as well");
        refresh_within(&Call::default().within(Duration::ZERO), &source, &Stop::never());
        let index = IndexState::Missing;
        assert_eq!(notes(), [Note::NotRanked { source: SourceKind::Export, index }]);
        // After the pause a question tries the refresh again.
        source.postpone_refresh(Duration::ZERO);
        assert_eq!(notes(), []);
    }
}
