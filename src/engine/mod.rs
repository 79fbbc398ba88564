//! Joins databases, indexes, models and imports, and answers questions about conversations.
//!
//! Rooms, each using only those below it:
//!
//! - `report`: status, doctor and statistics
//! - `memory`: recorded threads, and what is recalled for their turns
//! - `rank`: ranked search over all sources
//! - `upkeep`: keeps indexes, terms, vectors, summaries and the transcript store current
//! - `source`: sources, and the trait [`Reader`] through which they are asked
//! - `config`, `error`: where things are, and what can go wrong
//!
//! Invariant: an answer is of one state of a database, the state it was in when the question came.

mod config;
mod error;
mod home;
pub mod import;
mod lookup;
mod memory;
mod rank;
mod report;
mod source;
#[cfg(test)]
mod testing;
mod upkeep;

use std::{ops::ControlFlow, sync::Arc};

use crate::{
    db::{self, Service},
    model::{Hit, Request, Stop},
};

use rank::Ranker;
use report::Reports;
use source::Sources;

pub use config::Config;
pub use error::Error;
pub(crate) use home::{OldHome, prepare};
pub use lookup::{ConversationHeading, Lookup};
pub(crate) use lookup::{address_of, id_at};
pub use memory::{database::Memory, recall::Recalled};
pub use rank::{ConversationMatch, Fields, Match, Mode, Question, Ranking};
pub use report::{
    finding::{Finding, Verdict},
    statistics::Tally,
    status::{SnapshotStatus, SourceStatus, ago},
};
#[cfg(feature = "internals")]
pub use source::LiveReader;
pub use source::{
    About, Counts, FallbackReason, Listing, Messages, Reader, Scope, SearchPlan, Session, Source,
    SourceKind,
    request::trimmed,
    scoring,
    sink::{Rendered, Sink},
    summaries::SAVED,
};
pub use upkeep::{
    Upkeep,
    enrich::Enriched,
    events::UpkeepEvent,
    maintainer::Maintainer,
    refresh::{Progress, Reindex, Reindexed},
    transcripts::{ArchiveProgress, ArchiveReport},
};

pub(crate) use crate::workspace;
pub(crate) use source::Note;
#[cfg(test)]
pub(crate) use testing::TestExport;
// Types of the rooms below that the faces name.
pub use crate::{
    db::{
        threads::{Save, Start, Thread},
        writer::{Error as WriterError, Writer},
    },
    embed::{Provider, Unknown as UnknownProvider},
    import::{Branches, compressed::stem as file_stem},
    index::{Error as IndexError, Resources, Trace},
};

/// Answers questions about the sources that its [`Config`] leads to.
#[derive(Debug)]
pub struct Engine {
    sources: Arc<Sources>,
    memory: Memory,
}

impl Engine {
    /// Returns an engine; nothing is opened before the first question.
    pub fn new(config: Config) -> Engine {
        let sources = Arc::new(Sources::new(config));
        Engine { memory: Memory::new(Arc::clone(&sources)), sources }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        self.sources.config()
    }

    /// The recorded threads.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The recorded threads, for the tests.
    #[cfg(feature = "internals")]
    pub fn recorded_threads(&self) -> &Memory {
        &self.memory
    }

    /// Returns the sources that exist now, the export first; looked up at every call.
    pub fn sources(&self) -> Vec<Source> {
        self.sources.present()
    }

    /// Closes every index that is open; the next question opens what is there then.
    pub fn close(&self) {
        self.sources.close();
    }

    /// Hands the messages of the export that match to `sink`, newest first, until it breaks off.
    ///
    /// The hits are those of SQLite's `LIKE '%text%'` over contents and titles.
    pub fn search(
        &self,
        request: &Request,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> Result<SearchPlan, Error> {
        self.sources.export()?.search(request, stop, sink)
    }

    /// Does as [`Engine::search`] does, and hands over copies of the hits.
    pub fn exact(
        &self,
        request: &Request,
        stop: &Stop,
        show: &mut dyn FnMut(Hit<'static>) -> ControlFlow<()>,
    ) -> Result<SearchPlan, Error> {
        self.sources.export()?.exact(request, stop, show)
    }

    /// Searches every source as [`Engine::exact`] searches the export, and returns the hits, newest
    /// first, with how each source was searched and what was left out.
    pub(crate) fn exact_in_all(&self, request: &Request, stop: &Stop) -> Result<FoundInAll, Error> {
        let mut hits = Vec::new();
        let (plans, notes) = self.sources.each(&Scope::default(), |source| {
            let before = hits.len();
            let plan = source.exact(request, stop, &mut |hit| {
                hits.push((source.kind, hit));
                ControlFlow::Continue(())
            })?;
            Ok((plan, hits.len() - before))
        })?;
        // A stable sort: each source's own order stays.
        hits.sort_by_key(|(_, hit)| std::cmp::Reverse(hit.time));
        hits.truncate(request.limit.unwrap_or(usize::MAX));
        Ok(FoundInAll { hits, plans, notes })
    }

    /// Returns what is to be said of roles that no message in a scope has.
    pub(crate) fn unknown_role(&self, scope: &Scope, stop: &Stop) -> Result<Option<Note>, Error> {
        self.sources.unknown_role(scope, stop)
    }

    /// Returns the messages that answer a question best. A text that several messages have is
    /// returned once, with their number.
    pub fn rank(&self, question: &Question, stop: &Stop) -> Result<Ranking<Match>, Error> {
        Ranker::new(&self.sources, question, stop).messages()
    }

    /// Returns the ids of the messages that answer a question best, duplicate texts included.
    pub(crate) fn rank_ids(&self, question: &Question, stop: &Stop) -> Result<Vec<String>, Error> {
        Ranker::new(&self.sources, question, stop).message_ids()
    }

    /// Returns the conversations that answer a question best.
    pub fn rank_conversations(
        &self,
        question: &Question,
        stop: &Stop,
    ) -> Result<Ranking<ConversationMatch>, Error> {
        Ranker::new(&self.sources, question, stop).conversations()
    }

    /// Returns the conversations in a scope from `offset` on, latest activity first, and how many
    /// there are in all.
    pub fn list(
        &self,
        scope: &Scope,
        offset: usize,
        limit: usize,
        stop: &Stop,
    ) -> Result<(Vec<About>, usize), Error> {
        self.listed(scope, offset, limit, stop).map(|page| (page.abouts, page.total))
    }

    /// Does as [`Engine::list`] does, and says what the list leaves out.
    pub(crate) fn listed(
        &self,
        scope: &Scope,
        offset: usize,
        limit: usize,
        stop: &Stop,
    ) -> Result<ListedPage, Error> {
        let (sources, mut notes) = self.sources.readable(scope, stop)?;
        let (scope, unknown) = self.sources.resolved(scope, &sources, stop)?;
        let (listings, unreadable) =
            self.sources.each(&scope, |source| source.reader(stop).list(&scope, stop))?;
        let mut places = Vec::new();
        for (number, listing) in listings.iter().enumerate() {
            places.extend((0..listing.len()).map(|place| (listing.last(place), number, place)));
        }
        notes.extend(unknown);
        notes.extend(unreadable);
        let mut known = Vec::new();
        notes.retain(|note| {
            !known.contains(note) && {
                known.push(note.clone());
                true
            }
        });
        // Each listing is sorted; the sort is stable, so that equal times keep the sources' order.
        places.sort_by_key(|(last, ..)| std::cmp::Reverse(*last));
        let total = places.len();
        if total == 0 {
            notes.extend(self.unknown_role(&scope, stop)?);
        }
        let page = places.into_iter().skip(offset).take(limit);
        let abouts = page.map(|(_, number, place)| listings[number].about(place)).collect();
        Ok(ListedPage { abouts, total, notes })
    }

    /// Returns what is to be said of sources in a scope that cannot be read.
    pub(crate) fn unreadable(&self, scope: &Scope, stop: &Stop) -> Vec<Note> {
        self.sources.problems(scope, stop)
    }

    /// Opens a conversation; `None` if the source has none of that id that has messages.
    pub fn session(
        &self,
        source: SourceKind,
        id: &str,
        raw_content: bool,
        stop: &Stop,
    ) -> Result<Option<Session>, Error> {
        let Some(there) = self.sources.of_kind(source) else { return Ok(None) };
        there.session(id, raw_content, stop)
    }

    /// Returns what is known of a conversation; `None` if the source has none of that id that has
    /// messages.
    pub fn about(&self, kind: SourceKind, id: &str, stop: &Stop) -> Result<Option<About>, Error> {
        self.sources.about(kind, id, stop)
    }

    /// Returns up to `count` messages before a hit of a source and as many after it, in reading
    /// order.
    pub(crate) fn neighbours(
        &self,
        source: SourceKind,
        hit: &Hit<'_>,
        count: usize,
        raw_content: bool,
        stop: &Stop,
    ) -> Result<(Vec<Hit<'static>>, Vec<Hit<'static>>), Error> {
        let source = self.sources.of_kind(source);
        let Some(source) = source else { return Ok((Vec::new(), Vec::new())) };
        let messages = source.reader(stop).read(&hit.conversation_id, raw_content, stop)?;
        let Some(messages) = messages else { return Ok((Vec::new(), Vec::new())) };
        let Some(turn) = messages.turn_of(hit) else { return Ok((Vec::new(), Vec::new())) };
        let copy = |turn| messages.message(turn).kept(0);
        let before = (turn.saturating_sub(count)..turn).map(copy).collect();
        let end = messages.turns().min(turn.saturating_add(count).saturating_add(1));
        Ok((before, (turn + 1..end).map(copy).collect()))
    }

    /// Returns the service that a conversation is from; `None` if the source does not say.
    pub(crate) fn service(
        &self,
        source: SourceKind,
        id: &str,
        stop: &Stop,
    ) -> Result<Option<Service>, Error> {
        let Some(source) = self.sources.of_kind(source) else { return Ok(None) };
        source.on_database(|path| db::read(path, stop, |database| db::service(database, id)))
    }

    /// Counts the messages of some kinds of sources; of all sources if none is named.
    pub fn tally(&self, kinds: &[SourceKind], stop: &Stop) -> Result<Tally, Error> {
        report::statistics::tally(&self.sources, kinds, stop)
    }

    /// Returns the work that keeps indexes and the transcript store current.
    pub fn upkeep(&self) -> Upkeep<'_> {
        Upkeep { sources: &self.sources }
    }

    /// Returns what examines folders, databases and indexes.
    pub(crate) fn reports(&self) -> Reports<'_> {
        Reports { sources: &self.sources }
    }

    /// Returns what finds conversations by the words of a person or a client.
    pub fn find<'a>(&'a self, stop: &'a Stop) -> Lookup<'a> {
        Lookup { sources: &self.sources, memory: &self.memory, stop }
    }
}

/// What an exact search of every source found.
#[derive(Debug)]
pub(crate) struct FoundInAll {
    pub(crate) hits: Vec<(SourceKind, Hit<'static>)>,
    /// How each source was searched, and how many hits it has.
    pub(crate) plans: Vec<(SearchPlan, usize)>,
    /// What was left out.
    pub(crate) notes: Vec<Note>,
}

/// A page of a list of conversations.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedPage {
    pub(crate) abouts: Vec<About>,
    /// The number of conversations in the whole list.
    pub(crate) total: usize,
    /// What the list leaves out.
    pub(crate) notes: Vec<Note>,
}

/// Returns the lines of the configured workspaces that match, or of the folder `named` inside one.
pub(crate) fn search_workspace(
    config: &Config,
    question: &workspace::Question,
    named: Option<&str>,
    stop: &Stop,
) -> Result<workspace::Found, Error> {
    let folders = workspace::folders(&config.workspaces, named)?;
    Ok(workspace::search(&folders, question, stop)?)
}
