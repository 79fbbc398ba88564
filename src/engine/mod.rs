//! Joins databases, indexes, models and imports, and answers questions about conversations.
//!
//! Rooms, each using only those below it:
//!
//! - `report`: status, doctor and statistics
//! - `memory`: recorded threads, and what is recalled for their turns
//! - `rank`: ranked search over all sources
//! - `upkeep`: keeps indexes, terms, vectors, summaries and the transcript store current
//! - `source`: sources, and the trait [`Reader`] through which they are asked
//! - `attachments`: the files of imported messages
//! - `withheld`: which conversations are not stored: `exclusions` and `forgotten` ones
//! - `config`, `error`: where things are, and what can go wrong
//!
//! Invariant: an answer is of one state of a database, the state it was in when the question came.

mod attachments;
mod config;
mod describe;
mod error;
mod exact;
mod exclusions;
mod facets;
mod flags;
mod forget;
mod forgotten;
mod home;
pub mod import;
mod lookup;
mod memory;
mod rank;
mod report;
mod source;
mod stamp;
mod store_address;
#[cfg(test)]
mod testing;
mod upkeep;
mod withheld;

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    ops::{ControlFlow, Range},
    sync::Arc,
};

use crate::model::{Hit, Instant, Provenance, Request, Stop};

use attachments::AttachmentStore;
use rank::Ranker;
use report::Reports;
use source::Sources;

pub use config::Config;
pub use error::Error;
pub(crate) use home::{OldHome, TOKEN_FILE, prepare};
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
pub(crate) use upkeep::{
    Completing,
    enrich::{EnrichProgress, EnrichStage},
};
pub use upkeep::{
    Upkeep,
    enrich::Enriched,
    events::UpkeepEvent,
    maintainer::Maintainer,
    refresh::{Progress, Reindex, Reindexed},
    transcripts::{ArchiveProgress, ArchiveReport},
};

pub(crate) use crate::{embed::Key, workspace};
pub(crate) use attachments::{Attachment, AttachmentCounts, MAX_ALL, MAX_FILE};
pub(crate) use describe::{ConversationKey, Described};
pub(crate) use exact::{Make, Render, Searched};
pub(crate) use exclusions::{Excluding, Exclusions};
pub(crate) use facets::{Choice, Facets};
pub(crate) use flags::{Flag, Flags, count as count_of, in_both};
pub(crate) use forget::{ForgetProgress, Forgettable, Forgetter};
pub(crate) use source::{ConversationIds, Narrowing, Note, Places, Sketch};
pub use store_address::StoreAddress;
#[cfg(test)]
pub(crate) use testing::TestExport;
pub(crate) use withheld::Withheld;
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

/// Lists the conversations of a source that are in a scope.
type List = fn(&Source, &Scope, &Stop) -> Result<Box<dyn Listing>, Error>;

/// Lists the conversations with messages, by the best reader of the source.
fn conversations(source: &Source, scope: &Scope, stop: &Stop) -> Result<Box<dyn Listing>, Error> {
    source.reader(stop).list(scope, stop)
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

    /// Takes the exclusions from `excluding` from the next question on.
    pub(crate) fn follow_exclusions(&self, excluding: Box<Excluding>) {
        self.sources.exclusions().follow(excluding);
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

    /// Returns the sources of some kinds that exist now.
    pub(crate) fn sources_of(&self, kinds: &[SourceKind]) -> Vec<Source> {
        self.sources.present_of(kinds)
    }

    /// Closes every index that is open; the next question opens what is there then.
    pub fn close(&self) {
        self.sources.close();
    }

    /// Hands the messages of the export that match to `sink`, newest first, until it breaks off.
    ///
    /// By default the hits are those of SQLite's `LIKE '%text%'` over contents and titles.
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

    /// Searches the sources in a scope as [`Engine::search`] searches the export, and shows their
    /// hits, newest first, until `show` breaks off.
    pub(crate) fn exact_in_all<T: Send>(
        &self,
        request: &Request,
        scope: &Scope,
        stop: &Stop,
        render: Render<'_, T>,
        show: &mut dyn FnMut(T) -> ControlFlow<()>,
    ) -> Result<Searched, Error> {
        self.sources.exact_in_all(request, scope, stop, render, show)
    }

    /// Counts the messages whose text matches a request, as `Sources::facets` says.
    pub(crate) fn facets(
        &self,
        request: &Request,
        choice: &Choice,
        places: &Places,
        month: &(dyn Fn(Instant) -> Option<String> + Sync),
        stop: &Stop,
    ) -> Result<Facets, Error> {
        self.sources.facets(request, choice, places, month, stop)
    }

    /// Returns where every conversation is from; without their models unless they are wanted.
    pub(crate) fn places(&self, with_models: bool, stop: &Stop) -> Result<Places, Error> {
        self.sources.places(with_models, stop)
    }

    /// Returns the scope with the conversations that a person describes. Notes names that nothing has.
    pub(crate) fn narrowed(
        &self,
        scope: Scope,
        narrowing: &Narrowing,
        stop: &Stop,
    ) -> Result<(Scope, Vec<Note>), Error> {
        self.sources.narrowed(scope, narrowing, stop)
    }

    /// Returns which services conversations of a source are from, by id.
    pub(crate) fn provenance(
        &self,
        kind: SourceKind,
        ids: &[&str],
        stop: &Stop,
    ) -> Result<HashMap<String, Provenance>, Error> {
        self.sources.provenance(kind, ids, stop)
    }

    /// Returns the messages of a conversation that its service does not show, because they are on other
    /// branches: their ids, each with the id of the message that it follows, empty for none.
    pub(crate) fn branches(
        &self,
        kind: SourceKind,
        id: &str,
        stop: &Stop,
    ) -> Result<HashMap<String, String>, Error> {
        self.sources.branches(kind, id, stop)
    }

    /// Returns the conversation that a coding agent's session was forked from, if it is known.
    pub(crate) fn forked_from(&self, id: &str, stop: &Stop) -> Result<Option<About>, Error> {
        self.sources.forked_from(id, stop)
    }

    /// Returns a note about roles that no message in a scope has.
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
        let wanted = offset..offset.saturating_add(limit);
        Ok(self.undescribed(scope, wanted, conversations, stop)?.described(false))
    }

    /// Does as [`Engine::listed`] does, without summaries.
    pub(crate) fn listed_briefly(
        &self,
        scope: &Scope,
        offset: usize,
        limit: usize,
        stop: &Stop,
    ) -> Result<ListedPage, Error> {
        let wanted = offset..offset.saturating_add(limit);
        Ok(self.undescribed(scope, wanted, conversations, stop)?.described(true))
    }

    /// Does as [`Engine::listed`] does. The caller describes the conversations, a part at a time.
    pub(crate) fn listed_in_parts(
        &self,
        scope: &Scope,
        offset: usize,
        limit: usize,
        stop: &Stop,
    ) -> Result<Undescribed, Error> {
        self.undescribed(scope, offset..offset.saturating_add(limit), conversations, stop)
    }

    /// Does as [`Engine::listed_briefly`] does, with the conversations of an export and the threads
    /// that have no messages.
    pub(crate) fn sessions_listed(
        &self,
        scope: &Scope,
        offset: usize,
        limit: usize,
        stop: &Stop,
    ) -> Result<ListedPage, Error> {
        let wanted = offset..offset.saturating_add(limit);
        Ok(self.undescribed(scope, wanted, Source::sessions, stop)?.described(true))
    }

    fn undescribed(
        &self,
        scope: &Scope,
        wanted: Range<usize>,
        list: List,
        stop: &Stop,
    ) -> Result<Undescribed, Error> {
        let (sources, mut notes) = self.sources.readable(scope, stop)?;
        let (scope, unknown) = self.sources.resolved(scope, &sources, stop)?;
        let (listings, unreadable) =
            self.sources.each(&scope, |source| list(&source, &scope, stop))?;
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
        let page = places.into_iter().skip(wanted.start).take(wanted.len());
        let page = page.map(|(_, number, place)| (number, place)).collect();
        Ok(Undescribed { listings, page, total, notes })
    }

    /// Returns notes about sources in a scope that cannot be read.
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
        let Some(there) = self.sources.of_kind(source)? else { return Ok(None) };
        there.session(id, raw_content, stop)
    }

    /// Returns the files of a conversation's messages that imports kept. [`Attachment::is_of`] says
    /// which are of a message.
    pub(crate) fn attachments(
        &self,
        source: SourceKind,
        conversation: &str,
    ) -> Result<Vec<Attachment>, Error> {
        match source {
            SourceKind::Export => AttachmentStore::of(self.config()).list(conversation),
            SourceKind::Archive => {
                AttachmentStore::of_transcripts(self.config()).list(conversation)
            }
            SourceKind::Threads => Ok(Vec::new()),
        }
    }

    /// Returns whether the copy of a file of a message is there.
    pub(crate) fn has_attachment(&self, attachment: &Attachment) -> bool {
        self.attachment_stores().iter().any(|store| store.has(attachment))
    }

    /// Opens a file of a message.
    pub(crate) fn open_attachment(&self, attachment: &Attachment) -> Result<File, Error> {
        // A content is the same in both stores: its hash names it.
        let [imported, of_transcripts] = self.attachment_stores();
        match of_transcripts.has(attachment) {
            true => of_transcripts.open(attachment),
            false => imported.open(attachment),
        }
    }

    fn attachment_stores(&self) -> [AttachmentStore; 2] {
        [AttachmentStore::of(self.config()), AttachmentStore::of_transcripts(self.config())]
    }

    /// Returns what is known of a conversation; `None` if the source has none of that id that has
    /// messages.
    pub fn about(&self, kind: SourceKind, id: &str, stop: &Stop) -> Result<Option<About>, Error> {
        self.sources.about(kind, id, stop)
    }

    /// Counts the messages of some kinds of sources; of all sources if none is named.
    pub fn tally(&self, kinds: &[SourceKind], stop: &Stop) -> Result<Tally, Error> {
        let scope = Scope { sources: kinds.to_vec(), ..Scope::default() };
        self.tally_in(&scope, &Instant::day, stop)
    }

    /// Counts the messages in a scope; `day` returns the day of a time, counted from 1970-01-01.
    pub(crate) fn tally_in(
        &self,
        scope: &Scope,
        day: &dyn Fn(Instant) -> i64,
        stop: &Stop,
    ) -> Result<Tally, Error> {
        report::statistics::tally(&self.sources, scope, day, stop)
    }

    /// Counts the messages by a number that `of` gives their times.
    pub(crate) fn counted_by(
        &self,
        of: &dyn Fn(Instant) -> i64,
        stop: &Stop,
    ) -> Result<BTreeMap<i64, u64>, Error> {
        report::statistics::counted_by(&self.sources, of, stop)
    }

    /// Returns how many of the messages that were counted are from each service.
    pub(crate) fn services(
        &self,
        tally: &Tally,
        stop: &Stop,
    ) -> Result<BTreeMap<String, u64>, Error> {
        self.sources.services(&tally.by_conversation, stop)
    }

    /// Returns a text that changes when a database or its index does.
    pub(crate) fn stamp(&self) -> String {
        self.sources.stamp()
    }

    /// Returns the forgetter of conversations.
    pub(crate) fn forgetter(&self) -> Forgetter<'_> {
        Forgetter { sources: &self.sources }
    }

    /// Returns the rules for conversations that are not stored.
    pub(crate) fn withheld(&self) -> Result<Withheld, Error> {
        Withheld::of(&self.sources.current_config())
    }

    /// Returns the work that keeps indexes and the transcript store current.
    pub fn upkeep(&self) -> Upkeep<'_> {
        Upkeep { sources: &self.sources }
    }

    /// Returns the reports on folders, databases and indexes.
    pub(crate) fn reports(&self) -> Reports<'_> {
        Reports { sources: &self.sources }
    }

    /// Returns the lookup of conversations by the words of a person or a client.
    pub fn find<'a>(&'a self, stop: &'a Stop) -> Lookup<'a> {
        Lookup { sources: &self.sources, memory: &self.memory, stop }
    }
}

/// A page of a list of conversations.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedPage {
    pub(crate) abouts: Vec<About>,
    /// The number of conversations in the whole list.
    pub(crate) total: usize,
    /// The notes about everything that the list leaves out.
    pub(crate) notes: Vec<Note>,
}

/// A page of a list of conversations, which are described when they are needed.
pub(crate) struct Undescribed {
    listings: Vec<Box<dyn Listing>>,
    /// For each conversation the number of its listing, and its place there.
    page: Vec<(usize, usize)>,
    pub(crate) total: usize,
    pub(crate) notes: Vec<Note>,
}

impl Undescribed {
    /// Returns the ids of the conversations.
    pub(crate) fn ids(&self) -> Vec<&str> {
        self.page.iter().map(|(number, place)| self.listings[*number].heading(*place).0).collect()
    }

    /// Prepares that all conversations are described.
    pub(crate) fn prepare(&self, briefly: bool) {
        for (number, listing) in self.listings.iter().enumerate() {
            let of_listing = self.page.iter().filter(|(of, _)| *of == number);
            listing.prepare(&of_listing.map(|(_, place)| *place).collect::<Vec<_>>(), briefly);
        }
    }

    /// Describes some of the conversations, `briefly` without their summaries.
    pub(crate) fn abouts(&self, wanted: Range<usize>, briefly: bool) -> Vec<About> {
        let describe = |(number, place): &(usize, usize)| match briefly {
            true => self.listings[*number].brief(*place),
            false => self.listings[*number].about(*place),
        };
        self.page[wanted].iter().map(describe).collect()
    }

    fn described(self, briefly: bool) -> ListedPage {
        self.prepare(briefly);
        let abouts = self.abouts(0..self.page.len(), briefly);
        ListedPage { abouts, total: self.total, notes: self.notes }
    }
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
