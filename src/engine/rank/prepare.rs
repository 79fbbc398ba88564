//! Opens the sources that a question ranks, after bringing them up to date where that is quick.

use std::{sync::Arc, thread, time::Duration};

use super::ranker::Ranker;
use crate::{
    engine::{
        error::Error,
        source::{Reader, Source, SourceKind, scoring::Scorer},
        upkeep::{
            enrich,
            refresh::{self, Reindex},
        },
    },
    index::Resources,
    model::Stop,
};

/// How long a question waits for an index that is not current.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Pause between two checks whether another process has built the index.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Pause of questions after a refresh that did not finish in time.
const PAUSE: Duration = Duration::from_secs(60);

/// The memory and threads that a question may use to refresh an index.
const RESOURCES: Resources = Resources { memory: 128 << 20, threads: 1 };

pub(super) struct RankedSource {
    pub(super) kind: SourceKind,
    pub(super) scorer: Box<dyn Scorer>,
}

impl Ranker<'_> {
    /// Opens the sources in the question's scope that can be ranked, and notes what is missing.
    pub(super) fn open_sources(&mut self) -> Result<Vec<RankedSource>, Error> {
        let mut opened = Vec::new();
        for source in self.sources.within(&self.question.scope)? {
            let name = source.kind.name();
            let scorer = match self.freshest(&source)? {
                Some(reader) => self.scorer(&source, &*reader)?,
                None => None,
            };
            let Some(scorer) = scorer else {
                self.notes.push(format!(
                    "the {name} has no index yet and was not ranked; `verbatim reindex` makes one"
                ));
                continue;
            };
            let (terms, vectors) = scorer.missing();
            for (count, what) in [(terms, "words"), (vectors, "vectors")] {
                if count > 0 {
                    self.notes.push(format!(
                        "{count} messages of the {name} have no {what} to rank by yet; \
                         `verbatim reindex` makes them"
                    ));
                }
            }
            opened.push(RankedSource { kind: source.kind, scorer });
        }
        Ok(opened)
    }

    /// Returns what ranks a source; what few messages lack is made first.
    fn scorer(
        &self,
        source: &Source,
        reader: &dyn Reader,
    ) -> Result<Option<Box<dyn Scorer>>, Error> {
        let scope = &self.question.scope;
        let scorer = reader.scorer(scope, self.stop)?;
        if scorer.as_ref().is_none_or(|scorer| scorer.missing() == (0, 0)) {
            return Ok(scorer);
        }
        if let Some(snapshot) = source.latest_index(self.stop) {
            enrich::enrich_small(&snapshot, source.model(), RESOURCES, self.stop);
        }
        if self.stop.requested() {
            return Err(crate::db::Error::Stopped.into());
        }
        reader.scorer(scope, self.stop)
    }

    /// Returns the reader of a source's current index, refreshed if that is quick; else the reader
    /// of the index before, with a note.
    fn freshest(&mut self, source: &Source) -> Result<Option<Arc<dyn Reader>>, Error> {
        if source.current_index(self.stop).is_err() && !source.is_refresh_slow() {
            refresh_within(MAX_WAIT, source, self.stop);
        }
        if self.stop.requested() {
            return Err(crate::db::Error::Stopped.into());
        }
        let is_current = source.current_index(self.stop).is_ok();
        let reader = source.latest_reader(self.stop);
        if !is_current && reader.is_some() {
            self.notes.push(format!(
                "the index of the {} is older than its database: what was written since is not \
                 ranked; `verbatim reindex` brings it up to date",
                source.kind.name()
            ));
        }
        Ok(reader)
    }
}

/// Refreshes the index of a source if that takes at most `wait`. The first index is waited for even
/// if another process makes it.
fn refresh_within(wait: Duration, source: &Source, stop: &Stop) {
    let options = Reindex { resources: RESOURCES, full: false };
    let in_time = stop.within(wait);
    loop {
        match refresh::refresh(source, options, &in_time, &mut |_| ()) {
            Err(Error::Indexing { .. })
                if source.latest_index(stop).is_none() && !in_time.requested() =>
            {
                thread::sleep(RETRY_PAUSE);
            }
            Err(error) if error.is_stopped() && !stop.requested() => {
                // Without this pause every question would wait for a refresh, and discard its work each time.
                source.postpone_refresh(PAUSE);
                return;
            }
            // Whatever went wrong, an older index is better than none.
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Question, TestExport};

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
        refresh_within(Duration::ZERO, &source, &Stop::never());
        assert!(notes().iter().any(|note| note.contains("is older than its database")));
        // After the pause it is tried again.
        source.postpone_refresh(Duration::ZERO);
        assert_eq!(notes(), [""; 0]);
    }
}
