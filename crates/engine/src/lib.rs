//! Joins databases, indexes, models and imports, and answers questions about conversations.
//!
//! Rooms, each using only those below it:
//!
//! - `report`: status, doctor and statistics
//! - `import`: imports exports, with all that follows an import
//! - `search`: exact search in all sources, its counts, and other readings of a text that is found nowhere
//! - `conversation`: finds, describes and forgets a conversation
//! - `memory`: recorded threads, and the passages that are recalled for their turns
//! - `rank`: ranked search over all sources
//! - `upkeep`: keeps the home folder private, and indexes, terms, vectors and the transcript store current
//! - `source`: sources, and the trait [`Reader`] through which they are read; the summaries and made titles of
//!   their conversations; with `scoring`, the scores of their messages, and `filters`, the filters of
//!   conversations by name
//! - `attachments`: the files of imported messages
//! - `decisions`: which conversations are not stored, and which are not shown
//! - `config`: paths, options and addresses of stores; `error`: all errors
//!
//! It uses every crate below it, and is the only one that joins them. `verbatim-answer` and the faces
//! (`verbatim-server`, the program) use this crate and plain functions over text.
//!
//! Invariant: an answer shows one state of a database, the state at the beginning of the question.

#![cfg_attr(
    not(feature = "cluster"),
    allow(
        dead_code,
        unused_imports,
        unused_variables,
        clippy::infallible_destructuring_match,
        reason = "some is for clusters alone"
    )
)]

mod attachments;
mod config;
mod conversation;
mod decisions;
mod error;
pub mod filters;
pub mod import;
mod memory;
mod rank;
mod report;
pub mod scoring;
mod search;
mod source;
mod upkeep;

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;

use verbatim_base::call::{Call, Stop};
use verbatim_base::model::{Hit, Instant, Request};

use source::Sources;

pub use config::{Config, StoreAddress, StoredTranscripts};
pub use conversation::describe::{ConversationKey, Described};
pub use conversation::forget::{ForgetProgress, Forgettable, Forgetter};
pub use conversation::lookup::{ConversationHeading, Lookup, address_of, id_at};
pub use error::{Error, Result};
pub use import::import_and_index::{ImportOptions, ImportOutcome, ImportStep};
pub use memory::{database::Memory, recall::Recalled, threads::Recorded};
pub use rank::Ranker;
pub use rank::{ConversationMatch, Fields, Match, Mode, Question, Ranking};
pub use report::doctor::examine;
pub use report::finding::{Finding, Verdict};
pub use report::statistics::Tally;
pub use report::statistics::counted_by;
pub use report::status::{MeaningStatus, SourceStatus, Status};
pub use report::status::{embedded, indexed, status};
pub use source::LiveReader;
pub use source::{
    About, Counts, FallbackReason, ListedPage, Listing, Messages, Reader, Scope, SearchPlan,
    Session, Source, SourceKind,
    request::trimmed,
    sink::{Rendered, Show, Sink},
};
pub use upkeep::IndexNeed;
pub use upkeep::Upkeep;
pub use upkeep::encode::{Encoded, MAX_IN_PASSING};
pub use upkeep::enrich::Enriched;
pub use upkeep::enrich::{EnrichProgress, EnrichStage};
pub use upkeep::events::UpkeepEvent;
pub use upkeep::home::{TOKEN_FILE, prepare_home};
pub use upkeep::index_all::{Completing, IndexReport, IndexStep, Indexed, VectorsLeft};
pub use upkeep::maintainer::Maintainer;
pub use upkeep::refresh::{Progress, Reindex, Reindexed};
pub use upkeep::transcripts::{ArchiveProgress, ArchiveReport};

pub use attachments::{Attachment, AttachmentCounts, MAX_ALL, MAX_FILE};
pub use decisions::flags::{Flag, Flags, count as count_of, in_both};
pub use decisions::{Decisions, exclusions::Exclusions};
pub use filters::Narrowing;
pub use search::alike::MoreAlike;
pub use search::count::Count;
pub use search::exact::{Make, Render, Searched};
pub use search::facets::{AcceptsTime, Choice, Facets};
pub use search::readings::{QueryReading, ReadingKind};
pub use source::{
    AttachmentFiles, ChosenIds, ConversationIds, Description, IndexState, ListOptions, Note, Place,
    Places, summary::SAVED,
};
// What the interface of this crate names, from the crates below.
pub use verbatim_chats::db::threads::{Error as ThreadError, Save, Start, Thread};
pub use verbatim_chats::db::transcripts::Error as TranscriptStoreError;
pub use verbatim_chats::db::writer::{Changes, Error as WriterError, Writer};
pub use verbatim_chats::db::{Error as DatabaseError, Heading};
pub use verbatim_chats::import::beside::{COWORK_FOLDER, is_of_cowork};
pub use verbatim_chats::import::compressed::stem as file_stem;
pub use verbatim_chats::import::{Branches, Error as ExportError, ImportTally, Skipped};
pub use verbatim_chats::workspace::{self, Error as WorkspaceError};
pub use verbatim_embed::{Error as EmbedError, Key, Provider, Remote, Unknown as UnknownProvider};
pub use verbatim_index::{Error as IndexError, Resources, Size, Trace, WeightedTerm};

#[cfg(test)]
extern crate self as verbatim_engine;
#[cfg(test)]
#[path = "../../../tests/shared/test_export.rs"]
mod test_export;
#[cfg(test)]
pub(crate) use test_export::TestExport;

/// The version of the program, with the commit of a release build: `0.1.0 (632c459 2026-11-26)`.
pub const VERSION: &str = env!("VERBATIM_VERSION");

/// The search engine over the sources that its [`Config`] names.
#[derive(Debug)]
pub struct Engine {
    sources: Arc<Sources>,
    memory: Memory,
}

impl Engine {
    /// Returns an engine. Databases are opened at the first question.
    pub fn new(config: Config) -> Engine {
        let sources = Arc::new(Sources::new(config));
        Engine { memory: Memory::new(Arc::clone(&sources)), sources }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        self.sources.config()
    }

    /// Returns the sources that exist now, the export first. Looks them up at every call.
    pub fn sources(&self) -> Vec<Source> {
        self.sources.present()
    }

    /// Closes all open indexes. The next question opens them again.
    pub fn close(&self) {
        self.sources.close();
    }

    /// Calls `show` with copies of the export's messages that match, newest first, until `show` breaks.
    ///
    /// By default the hits are those of SQLite's `LIKE '%text%'` over contents and titles.
    /// [`Source::search`] lends the hits instead, and searches any of the [`Engine::sources`].
    pub fn exact(
        &self,
        request: &Request,
        call: &Call,
        show: &mut dyn FnMut(Hit<'static>) -> ControlFlow<()>,
    ) -> Result<SearchPlan> {
        self.sources.export()?.exact(request, call, show)
    }

    /// Returns the messages that answer a question best. Messages with the same text are returned once,
    /// with their number.
    pub fn rank(&self, question: &Question, call: &Call) -> Result<Ranking<Match>> {
        Ranker::new(&self.sources, question, call).messages()
    }

    /// Returns the conversations that answer a question best.
    pub fn rank_conversations(
        &self,
        question: &Question,
        call: &Call,
    ) -> Result<Ranking<ConversationMatch>> {
        let ranking = Ranker::new(&self.sources, question, call).conversations()?;
        if question.fields == Fields::Summaries && ranking.items.is_empty() {
            // Titles and summaries are compared by words alone. Messages are found by meaning too.
            let question = Question { fields: Fields::Both, ..question.clone() };
            return Ranker::new(&self.sources, &question, call).conversations();
        }
        Ok(ranking)
    }

    /// Returns a page of the conversations in a scope that have messages, latest activity first.
    pub fn list(&self, scope: &Scope, page: Range<usize>, call: &Call) -> Result<ListedPage> {
        self.sources.list(scope, page, ListOptions::default(), call)
    }

    /// Counts the messages in a scope. `day` returns the day of a time, as [`Reader::count`] says.
    pub fn tally(&self, scope: &Scope, day: &dyn Fn(Instant) -> i64, call: &Call) -> Result<Tally> {
        report::statistics::tally(&self.sources, scope, day, call)
    }

    /// Returns the numbers of messages and conversations of all sources that can be read.
    pub fn size(&self, call: &Call) -> Result<(u64, usize)> {
        report::statistics::size(&self.sources, call)
    }

    /// Returns the lookup of conversations by their ids, or by the words of a person or a client.
    pub fn find<'a>(&'a self, call: &'a Call) -> Lookup<'a> {
        Lookup { sources: &self.sources, memory: &self.memory, call }
    }

    /// Imports exports into the configured database, or into that of the home folder, and indexes it. Does for the
    /// caller all that an import by a command or on the page does: conversations that the user excluded or forgot
    /// are left out, and attached files are kept.
    pub fn import(
        &self,
        exports: &[PathBuf],
        options: ImportOptions,
        call: &Call,
        progress: &dyn Fn(ImportStep<'_>),
    ) -> Result<ImportOutcome, import::Error> {
        import::import_and_index::import_and_index(&self.sources, exports, options, call, progress)
    }

    /// Returns the work that keeps indexes and the transcript store current.
    pub fn upkeep(&self) -> Upkeep<'_> {
        Upkeep { sources: &self.sources }
    }

    /// Returns all sources, for questions to several of them at once.
    pub fn all_sources(&self) -> &Arc<Sources> {
        &self.sources
    }

    /// Returns the recorded threads, and recall for their turns.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

/// Returns the matching lines in the configured workspaces, or in the folder `named` inside one of them.
pub fn search_workspace(
    config: &Config,
    question: &workspace::WorkspaceQuestion,
    named: Option<&str>,
    stop: &Stop,
) -> Result<workspace::FoundLines> {
    let folders = workspace::folders(&config.workspaces, named)?;
    Ok(workspace::search(&folders, question, stop)?)
}
