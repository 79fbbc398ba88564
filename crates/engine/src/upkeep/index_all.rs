//! Indexes all sources, one after the other, as `reindex` and the end of an import do.

use std::thread;
use std::time::{Duration, Instant};

use super::enrich::{EnrichProgress, Enriched};
use super::refresh::{Progress, Reindex, Reindexed};
use super::transcripts::{self, ArchiveProgress, ArchiveReport};
use super::{encode::Encoded, maintainer::INDEX_SHARE};
use crate::error::{Error, Result};
use crate::source::{Source, SourceKind, Sources};
use verbatim_base::call::Call;

/// How long an import waits for another process that builds the same index, and the pause between two tries.
const MOST_WAITING: Duration = Duration::from_secs(120);
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// How long to try again while other programs change the database during each attempt.
const MOST_CHANGING: Duration = Duration::from_secs(20);

/// The number of messages whose vectors by the sentence encoder an import makes before it ends.
const MOST_ENCODED: u64 = 2_000;

/// The progress of completing an index: first the index itself, then the files for ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Completing {
    /// The index of texts is being built or refreshed.
    Index(Progress),
    /// The terms and vectors are being made.
    Ranking(EnrichProgress),
}

impl Completing {
    /// Returns the finished share, from 0 to 1.
    pub fn share(self) -> f64 {
        match self {
            Completing::Index(step) => step.share() * INDEX_SHARE,
            Completing::Ranking(step) => INDEX_SHARE + (1.0 - INDEX_SHARE) * step.share(),
        }
    }
}

/// A step of indexing all sources.
#[derive(Debug)]
pub enum IndexStep<'a> {
    /// Transcripts are copied into their store.
    Transcripts(ArchiveProgress),
    /// The transcripts were copied into their store, or could not be.
    TranscriptsRead(&'a Result<ArchiveReport>),
    /// Another process builds the same index, and its end is waited for. This is told once for each source.
    Waiting,
    /// The index of a source is being made.
    Building(SourceKind, Completing),
    /// Coding agents change their transcripts all the time, so the newest of them are not indexed.
    Unsteady,
    /// The index of a source is current.
    Indexed(&'a Indexed),
    /// All indexes that could be made are there. Only vectors of the sentence encoder are made from now on.
    Searchable,
    /// Vectors are made by the sentence encoder.
    Encoding(SourceKind, Encoded),
    /// The vectors by the sentence encoder were made: so many.
    VectorsMade(SourceKind, u64),
    /// Another process makes the vectors of a source by the sentence encoder.
    VectorsElsewhere,
}

/// What was done for the index of a source.
#[derive(Debug)]
pub struct Indexed {
    /// The kind of the source.
    pub kind: SourceKind,
    /// Number of messages in the index.
    pub messages: u64,
    /// What happened to the index of texts.
    pub result: Reindexed,
    /// The terms and vectors that were made.
    pub enriched: Enriched,
    /// The duration of all this.
    pub took: Duration,
    /// The size of the index in bytes, including words and vectors; 0 for a cluster.
    pub bytes: u64,
}

/// What was done for the indexes of all sources.
#[derive(Debug, Default)]
pub struct IndexReport {
    /// The sources whose index can be used.
    pub indexed: Vec<Source>,
    /// The first error. If the work was stopped, the error says so.
    pub failed: Option<Error>,
    /// The vectors by the sentence encoder that an import leaves to the background.
    pub left: Option<VectorsLeft>,
}

/// The vectors by the sentence encoder that are still to be made after an import.
#[derive(Clone, Copy, Debug)]
pub struct VectorsLeft {
    /// How many messages have and lack their vectors.
    pub encoded: Encoded,
    /// Whether a process or a thread makes them already.
    pub is_under_way: bool,
}

/// The work on the indexes of all sources.
pub(crate) struct IndexWork<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) options: Reindex,
    /// Whether an import asks for it. Then other builders are waited for, transcripts may stay outdated, and the
    /// vectors of the sentence encoder are left to the background if it would take long to make them.
    pub(crate) is_after_import: bool,
    pub(crate) call: &'a Call,
    pub(crate) tell: &'a dyn Fn(IndexStep<'_>),
}

impl IndexWork<'_> {
    /// Indexes every source. An error of one source does not stop the work on the others.
    pub(crate) fn run(&self) -> IndexReport {
        let mut report = IndexReport::default();
        self.read_transcripts();
        for source in self.sources.present() {
            match self.index_in_turn(&source) {
                Ok(failed) => report.failed = report.failed.or(failed),
                Err(error) if error.is_stopped() => {
                    return IndexReport { failed: Some(error), ..report };
                }
                // The agents, and a server that follows them, write all the time. The server indexes it too.
                Err(error)
                    if self.is_after_import
                        && source.kind == SourceKind::Archive
                        && error.is_contention() =>
                {
                    (self.tell)(IndexStep::Unsteady);
                }
                Err(error) => {
                    report.failed.get_or_insert(error);
                    continue;
                }
            }
            report.indexed.push(source);
        }
        (self.tell)(IndexStep::Searchable);
        let may_wait = report.failed.is_none() && self.encoded().missing() <= MOST_ENCODED;
        if may_wait || !self.is_after_import {
            self.encode(&mut report);
        }
        let encoded = self.encoded();
        if self.is_after_import && encoded.missing() > MOST_ENCODED {
            let present = self.sources.present();
            let is_under_way = present.iter().any(|source| source.is_being_encoded(self.call));
            report.left = Some(VectorsLeft { encoded, is_under_way });
        }
        report
    }

    fn read_transcripts(&self) {
        let config = self.sources.current_config();
        let read = transcripts::sync(&config, &mut None, self.call, &|now| {
            (self.tell)(IndexStep::Transcripts(now));
        });
        (self.tell)(IndexStep::TranscriptsRead(&read.map_err(Error::from)));
    }

    /// Indexes a source. If other programs change the database during the attempt, tries again. After an import,
    /// waits for another process that builds the same index, such as the server of an AI client.
    fn index_in_turn(&self, source: &Source) -> Result<Option<Error>> {
        let begun = Instant::now();
        let mut changing_since = begun;
        let mut is_told = false;
        loop {
            let error = match self.index(source) {
                Err(error) if !self.call.stop.requested() => error,
                done => return done,
            };
            let is_elsewhere = self.is_after_import && matches!(error, Error::Indexing { .. });
            let passes = if is_elsewhere {
                changing_since = Instant::now();
                begun.elapsed() < MOST_WAITING
            } else {
                error.is_contention() && changing_since.elapsed() < MOST_CHANGING
            };
            if !passes {
                return Err(error);
            }
            if is_elsewhere && !std::mem::replace(&mut is_told, true) {
                (self.tell)(IndexStep::Waiting);
            }
            thread::sleep(RETRY_PAUSE);
        }
    }

    /// Makes the index, with its words and vectors. Returns an error of words or vectors as a value, because exact
    /// search does not need them.
    fn index(&self, source: &Source) -> Result<Option<Error>> {
        let begun = Instant::now();
        let kind = source.kind;
        let result = source.reindex(self.options, self.call, &mut |now| {
            (self.tell)(IndexStep::Building(kind, Completing::Index(now)));
        })?;
        let mut failed = None;
        let enriched = source.enrich(self.options.resources, self.call, &mut |now| {
            (self.tell)(IndexStep::Building(kind, Completing::Ranking(now)));
        });
        let enriched = match enriched {
            Err(error) if !error.is_stopped() => {
                failed = Some(error);
                Enriched::default()
            }
            enriched => enriched?,
        };
        let (messages, bytes) = source.store().indexed(source, self.call);
        let took = begun.elapsed();
        let indexed = Indexed { kind, messages, result, enriched, took, bytes };
        (self.tell)(IndexStep::Indexed(&indexed));
        Ok(failed)
    }

    /// Makes the vectors by the sentence encoder that messages lack. All searches work without them.
    fn encode(&self, report: &mut IndexReport) {
        for source in &report.indexed {
            let made = source.encode(self.options.resources.threads, self.call, &|now| {
                (self.tell)(IndexStep::Encoding(source.kind, now));
            });
            match made {
                Ok(made) => (self.tell)(IndexStep::VectorsMade(source.kind, made)),
                Err(error) if error.is_stopped() => {
                    report.failed = Some(error);
                    return;
                }
                Err(error) => {
                    report.failed.get_or_insert(error);
                    continue;
                }
            }
            if source.encoded(self.call).missing() > 0 {
                (self.tell)(IndexStep::VectorsElsewhere);
            }
        }
    }

    fn encoded(&self) -> Encoded {
        self.sources.present().iter().fold(Encoded::default(), |sum, source| {
            let Encoded { made, total } = source.encoded(self.call);
            Encoded { made: sum.made + made, total: sum.total + total }
        })
    }
}
