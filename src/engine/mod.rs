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
pub mod import;
mod lookup;
mod memory;
mod rank;
mod report;
mod source;
mod upkeep;

use std::{ops::ControlFlow, path::PathBuf, sync::Arc};

use crate::{
    embed::Model,
    model::{Hit, Request, Stop},
};

use lookup::Lookup;
use rank::Ranker;
use source::Sources;

pub use crate::text::like::MOST_PATTERN_BYTES;
pub use config::Config;
pub use error::Error;
pub use lookup::ConversationHeading;
pub use memory::{database::Memory, recall::Recalled, threads::Recorded};
pub use rank::{ConversationMatch, Fields, Match, Mode, Question, Ranking};
pub use report::{
    finding::{Finding, Verdict},
    statistics::{NO_TIME, Tally},
    status::{SnapshotStatus, SourceStatus, Status, ago},
};
pub use source::{
    About, Counts, FallbackReason, IndexedReader, Listing, LiveReader, Messages, Reader, Scope,
    SearchPlan, Session, Source, SourceKind,
    request::trimmed,
    scoring,
    sink::{Rendered, Sink},
    summaries::SAVED,
};
pub use upkeep::{
    enrich::Enriched,
    events::UpkeepEvent,
    maintainer::Maintainer,
    refresh::{Progress, Reindex, Reindexed},
    transcripts::{ArchiveProgress, ArchiveReport},
};

pub use crate::workspace;
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
    index::{Resources, Trace},
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

    /// The model that turns texts into vectors.
    pub fn model(&self) -> &Model {
        self.sources.model()
    }

    /// The recorded threads.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the sources that exist now, the export first; looked up at every call.
    pub fn sources(&self) -> Vec<Source> {
        self.sources.present()
    }

    /// Closes every index that is open; the next question opens what is there then.
    pub fn forget(&self) {
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

    /// Returns the messages that answer a question best. A text that several messages have is
    /// returned once, with their number.
    pub fn rank(&self, question: &Question, stop: &Stop) -> Result<Ranking<Match>, Error> {
        Ranker::new(&self.sources, question, stop).messages()
    }

    /// Returns the ids of the messages that answer a question best, duplicate texts included.
    pub fn rank_ids(&self, question: &Question, stop: &Stop) -> Result<Vec<String>, Error> {
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
        let mut listings = Vec::new();
        let mut places = Vec::new();
        for source in self.sources.within(scope)? {
            let listing = source.reader(stop).list(scope, stop)?;
            let number = listings.len();
            places.extend((0..listing.len()).map(|place| (listing.last(place), number, place)));
            listings.push(listing);
        }
        // Each listing is sorted; the sort is stable, so that equal times keep the sources' order.
        places.sort_by_key(|(last, ..)| std::cmp::Reverse(*last));
        let total = places.len();
        let page = places.into_iter().skip(offset).take(limit);
        Ok((page.map(|(_, number, place)| listings[number].about(place)).collect(), total))
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
        let Some(messages) = there.reader(stop).read(id, raw_content, stop)? else {
            return Ok(None);
        };
        let about = self.sources.about(source, id, stop)?;
        Ok(about.map(|about| Session::new(about, messages)))
    }

    /// Returns what is known of a conversation; `None` if the source has none of that id that has
    /// messages.
    pub fn about(&self, kind: SourceKind, id: &str, stop: &Stop) -> Result<Option<About>, Error> {
        self.sources.about(kind, id, stop)
    }

    /// Returns up to `count` messages before a hit of the export and as many after it, in reading
    /// order.
    pub fn neighbours(
        &self,
        hit: &Hit<'_>,
        count: usize,
        raw_content: bool,
        stop: &Stop,
    ) -> Result<(Vec<Hit<'static>>, Vec<Hit<'static>>), Error> {
        let reader = self.sources.export()?.reader(stop);
        let messages = reader.read(&hit.conversation_id, raw_content, stop)?;
        let Some(messages) = messages else { return Ok((Vec::new(), Vec::new())) };
        let Some(turn) = messages.turn_of(hit) else { return Ok((Vec::new(), Vec::new())) };
        let copy = |turn| messages.message(turn).into_owned();
        let before = (turn.saturating_sub(count)..turn).map(copy).collect();
        let end = messages.turns().min(turn.saturating_add(count).saturating_add(1));
        Ok((before, (turn + 1..end).map(copy).collect()))
    }

    /// Counts the messages of some kinds of sources; of all sources if none is named.
    pub fn tally(&self, kinds: &[SourceKind], stop: &Stop) -> Result<Tally, Error> {
        report::statistics::tally(&self.sources, kinds, stop)
    }

    /// Returns what there is, and whether the indexes are current.
    pub fn status(&self, stop: &Stop) -> Status {
        report::status::status(&self.sources, stop)
    }

    /// Examines folders, databases and indexes; `full` examines everything, however long it takes.
    pub fn examine(&self, full: bool, stop: &Stop, report: &mut dyn FnMut(Finding)) {
        report::doctor::examine(&self.sources, full, stop, report);
    }

    /// Returns a maintainer, which keeps the indexes current in the background.
    pub fn maintainer(&self) -> Maintainer {
        Maintainer::new(Arc::clone(&self.sources))
    }

    /// Brings the index of the export up to date, unless it is current.
    pub fn reindex(
        &self,
        options: Reindex,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Reindexed, Error> {
        upkeep::refresh::refresh(&self.sources.export()?, options, stop, progress)
    }

    /// Brings the index of a source up to date, unless it is current.
    pub fn reindex_source(
        &self,
        source: &Source,
        options: Reindex,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Reindexed, Error> {
        upkeep::refresh::refresh(source, options, stop, progress)
    }

    /// Makes the terms, vectors and summaries that the index of a source lacks.
    pub fn enrich(
        &self,
        source: &Source,
        resources: Resources,
        stop: &Stop,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Enriched, Error> {
        upkeep::enrich::enrich(source, resources, stop, progress)
    }

    /// Merges all segments of a source's index into one; returns false if there was only one.
    pub fn merge(
        &self,
        source: &Source,
        resources: Resources,
        stop: &Stop,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool, Error> {
        upkeep::merge::merge(source, resources, stop, progress)
    }

    /// Returns whether the index of a source has so many small segments, or deleted messages, that
    /// a merge is due.
    pub fn is_merge_due(&self, source: &Source, stop: &Stop) -> bool {
        upkeep::merge::is_merge_due(source, stop)
    }

    /// Brings the transcript store up to date with the transcripts' files.
    pub fn sync_transcripts(
        &self,
        stop: &Stop,
        progress: &dyn Fn(ArchiveProgress),
    ) -> Result<ArchiveReport, Error> {
        let config = self.config();
        Ok(upkeep::transcripts::sync(&config.archive_database(), &config.archives, stop, progress)?)
    }

    /// Returns the folders in which a change may be a change of a source, whether they exist or not.
    pub fn watched(&self) -> Vec<PathBuf> {
        upkeep::maintainer::watched_folders(self.config())
    }

    /// Returns the lines of the workspaces that match, or of the folder `named` inside one.
    pub fn search_workspace(
        &self,
        question: &workspace::Question,
        named: Option<&str>,
        stop: &Stop,
    ) -> Result<workspace::Found, Error> {
        let folders = workspace::folders(&self.config().workspaces, named)?;
        Ok(workspace::search(&folders, question, stop)?)
    }

    /// Finds conversations by what a person or a client calls them.
    fn lookup<'a>(&'a self, stop: &'a Stop) -> Lookup<'a> {
        Lookup { sources: &self.sources, memory: &self.memory, stop }
    }

    /// Returns the conversations with an id; if there is none, those whose ids begin with it.
    pub fn named(&self, id: &str, stop: &Stop) -> Result<Vec<About>, Error> {
        self.lookup(stop).by_id(id)
    }

    /// Returns the conversation that a person means by a word: its id, else its whole title, else
    /// the beginning of its id.
    pub fn meant(&self, word: &str, stop: &Stop) -> Result<About, Error> {
        self.lookup(stop).by_word(word)
    }

    /// Returns the key of a conversation: the key that it was saved under, else a key made of its
    /// source, title and id.
    pub fn key_of(&self, about: &About) -> Result<String, Error> {
        self.lookup(&Stop::never()).key_of(about)
    }

    /// Returns the conversation that has a key.
    pub fn keyed(&self, key: &str, stop: &Stop) -> Result<Option<About>, Error> {
        self.lookup(stop).by_key(key)
    }

    /// Returns the conversations whose source, id and title pass a test, latest activity first
    /// within a source. Reads no messages.
    pub fn headings(
        &self,
        test: &dyn Fn(SourceKind, &str, &str) -> bool,
        stop: &Stop,
    ) -> Result<Vec<ConversationHeading>, Error> {
        self.lookup(stop).headings(test)
    }

    /// Returns the path by which a conversation is read.
    pub fn path_of(&self, about: &About) -> String {
        self.lookup(&Stop::never()).path_of(about)
    }

    /// Returns the conversation at a path of [`Engine::path_of`]; `None` for any other text.
    pub fn at_path(&self, path: &str, stop: &Stop) -> Result<Option<About>, Error> {
        self.lookup(stop).by_path(path)
    }
}

#[cfg(test)]
mod testing {
    use std::fs;

    use rusqlite::Connection;
    use tempfile::TempDir;

    use super::{Config, Engine, Reindex, Resources};
    use crate::model::Stop;

    /// A small export for unit tests, in a folder of its own.
    pub(crate) struct TestExport {
        pub(crate) engine: Engine,
        pub(crate) connection: Connection,
        _home: TempDir,
    }

    impl TestExport {
        /// Makes an export with a conversation for each text; the conversation's id is its number.
        pub(crate) fn of(texts: &[&str]) -> TestExport {
            let home = tempfile::tempdir().expect("folders can be made");
            fs::create_dir(home.path().join("db")).expect("folders can be made");
            let connection = Connection::open(home.path().join("db/a.db")).expect("it can be made");
            let schema = "CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
                CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT,
                    content TEXT, create_time);";
            connection.execute_batch(schema).expect("the schema is sound");
            let config = Config { home: home.path().to_owned(), ..Config::default() };
            let export = TestExport { engine: Engine::new(config), connection, _home: home };
            texts.iter().zip(0..).for_each(|(text, number)| export.add(number, text));
            export
        }

        /// Makes an export as [`TestExport::of`] does, and its index.
        pub(crate) fn indexed(texts: &[&str]) -> TestExport {
            let export = TestExport::of(texts);
            export.reindex();
            export
        }

        pub(crate) fn reindex(&self) {
            let resources = Resources { memory: 64 << 20, threads: 1 };
            let options = Reindex { resources, full: false };
            let done = self.engine.reindex(options, &Stop::never(), &mut |_| ());
            done.expect("it can be indexed");
        }

        /// Adds a conversation with one message.
        pub(crate) fn add(&self, number: u32, text: &str) {
            let sql = "INSERT INTO conversations VALUES (?1, 'Title ' || ?1)";
            self.connection.execute(sql, [number]).expect("a new id");
            let sql = "INSERT INTO messages VALUES ('m' || ?1, ?1, 'user', ?2, 1700000000 + ?1)";
            self.connection.execute(sql, (number, text)).expect("a new id");
        }
    }
}
