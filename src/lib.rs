//! Verbatim: finds what was said in your AI chats, exactly and fast.
//!
//! An [`Engine`] answers questions about the conversations in a home folder. [`import`] merges an
//! export of ChatGPT or Claude into a database; the engine searches every database that has the
//! canonical tables, with an index or without one. The answers are the same.
//!
//! # Import and search
//!
//! ```
//! use std::fs;
//! use verbatim_search::{Branches, Config, Engine, import};
//!
//! let home = tempfile::tempdir()?;
//! let export = home.path().join("conversations.json");
//! fs::write(&export, r#"[{"uuid": "c1", "name": "Baking", "chat_messages": [
//!     {"uuid": "m1", "sender": "human", "created_at": "2025-01-03T10:00:00Z",
//!      "text": "How long does a sourdough bread proof?"},
//!     {"uuid": "m2", "sender": "assistant", "created_at": "2025-01-03T10:00:09Z",
//!      "text": "Four hours at 24 degrees, or a night in the fridge."}]}]"#)?;
//! let config = Config { home: home.path().to_owned(), ..Config::default() };
//! fs::create_dir_all(config.db_folder())?;
//! let report =
//!     import(&[export], &config.db_folder().join("chats.db"), Branches::Shown, &|_| {})?;
//! assert_eq!(report.tally.messages, 2);
//! let engine = Engine::new(config);
//!
//! use std::ops::ControlFlow;
//! use verbatim_search::{Request, Stop};
//!
//! let request = Request { text: "SOURDOUGH".to_owned(), ..Request::default() };
//! let mut found = Vec::new();
//! engine.exact(&request, &Stop::never(), &mut |hit| {
//!     found.push(hit.message_id.into_owned());
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(found, ["m1"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Build the index, and see what a search did
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/baking.rs")); }
//! # let (_home, engine) = example::baking()?;
//! # use std::ops::ControlFlow;
//! use verbatim_search::{Reindex, Reindexed, Request, Resources, SearchPlan, Stop};
//!
//! // Bytes of memory, and threads.
//! let resources = Resources { memory: 64 << 20, threads: 1 };
//! let stop = Stop::never();
//! let built = engine.upkeep().reindex(Reindex { resources, full: false }, &stop, &mut |_| {})?;
//! assert!(matches!(built, Reindexed::Built { .. }));
//!
//! let request = Request { text: "fridge".to_owned(), ..Request::default() };
//! let plan = engine.exact(&request, &stop, &mut |_| ControlFlow::Continue(()))?;
//! let SearchPlan::ByIndex { trace, .. } = plan else { panic!("the index is current") };
//! assert_eq!((trace.candidates, trace.verified), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Look for expressions, words and several texts
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/baking.rs")); }
//! # let (_home, engine) = example::baking()?;
//! # use std::ops::ControlFlow;
//! use verbatim_search::{Matching, Request, Stop};
//!
//! let request = Request {
//!     text: r"\d+ degrees".to_owned(),
//!     or: vec!["sour(dough)?".to_owned()],
//!     not: vec!["how long".to_owned()],
//!     matching: Matching::Regex,
//!     ..Request::default()
//! };
//! let mut found = Vec::new();
//! engine.exact(&request, &Stop::never(), &mut |hit| {
//!     found.push(hit.message_id.into_owned());
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(found, ["m2"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rank
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/baking.rs")); }
//! # let (_home, engine) = example::baking()?;
//! use verbatim_search::{Question, Stop};
//!
//! let question = Question {
//!     concepts: vec!["bread in the fridge".to_owned()],
//!     limit: 5,
//!     ..Question::default()
//! };
//! let ranking = engine.rank(&question, &Stop::never())?;
//! assert!(ranking.items.iter().all(|item| (0.0..=1.0).contains(&item.score)));
//! assert_eq!(ranking.items.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # List, read and count
//!
//! ```
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/baking.rs")); }
//! # let (_home, engine) = example::baking()?;
//! use verbatim_search::{Instant, Scope, Stop};
//!
//! let stop = Stop::never();
//! let page = engine.list(&Scope::default(), 0..10, &stop)?;
//! let baking = &page.abouts[0];
//! assert_eq!((baking.title.as_str(), page.total, page.notes()), ("Baking", 1, Vec::new()));
//!
//! let session = engine.find(&stop).session(baking.source, &baking.id, false)?.expect("is there");
//! assert_eq!((session.turns(), session.role(0)), (2, "user"));
//! assert!(session.message(1).content.starts_with("Four hours"));
//!
//! let tally = engine.tally(&Scope::default(), &Instant::day, &stop)?;
//! assert_eq!(tally.roles["assistant"], 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Glossary
//!
//! - **alive, deleted documents**: messages of a segment that the database still holds, or no longer holds
//! - **candidate**: a document that the posting lists propose; **verification** compares its text
//! - **catalogue**: the conversations of a snapshot with their messages in reading order
//! - **clusters**: groups of similar vectors; a query is compared with the nearest groups only
//! - **document store**: the texts and fields of a segment's messages, by doc id
//! - **doc id**: the number of a message in a snapshot; 0 is the newest message
//! - **folded**: with one form for all the cases of a letter, in every script
//! - **gram**: a short piece of folded text; **posting list**: the doc ids of the messages that hold a gram
//! - **index directory**: the files of one database's index: segments and snapshots
//! - **maintainer**: refreshes indexes in the background; **upkeep** is its work
//! - **merge**: makes one segment of several
//! - **note**: a sentence about something that an answer leaves out, or that was done in another way
//! - **reader**: answers from one state of a source: by its index, or by SQLite's `LIKE`
//! - **scope**: which messages a question is about: sources, roles, dates, conversations
//! - **scorer**: ranks the messages of one source: BM25, cosines, context
//! - **segment**: a part of an index that never changes; only its deleted documents do
//! - **signature**: a table of bits that says in which pieces of a long text a run of characters may be
//! - **snapshot**: the segments that together hold one state of a database
//! - **source**: a place that messages come from: the export, the transcripts, the recorded threads
//! - **stamp**: the identity, size and times of a file; a file with the same stamp is unchanged
//! - **summary, features**: a conversation's best sentences, and the values that rank conversations by them
//! - **transcript store**: the database that the transcripts of coding agents are copied into
//!
//! # Rooms
//!
//! Each room uses only those below it. Rooms are private; this package's own tests see them by the
//! feature `internals`.
//!
//! - `cli`: the commands, one file each
//! - `http`: the HTTP server: access control, MCP, the search and the page
//! - `mcp`: the tool table over the Model Context Protocol
//! - `watch`: file events, and a thread that keeps the indexes current
//! - `web`: the page in the browser, as a router without authorisation
//! - `tools`: the tool contracts: arguments, engine, answer; knows no protocol
//! - `engine`: the only room that joins `db`, `index`, `import` and `workspace`
//! - `cluster`: chats in an index of OpenSearch; `db`: canonical SQLite databases; `index`: n-grams in
//!   tantivy, derived from a database and rebuildable; `embed`: vectors of texts; `import`: exports read
//!   into `model`; `workspace`: dated conversation folders, searched as ripgrep does
//! - `text`: LIKE patterns, n-grams, dates, snippets: pure functions over text
//! - `model`: plain data; `int8`: rounded vectors; `long_text`: texts too long for memory;
//!   `map_faults`: faults of mapped files that were cut;
//!   `failpoint`: where tests kill the program; `private`: files that only their owner can read;
//!   `log`: the lines of a server on standard error; `lock`: locks of mutexes, also after a panic

#![cfg_attr(not(feature = "internals"), allow(unreachable_pub))]
// Only the public interface must be documented. The feature `internals` makes all items public.
#![cfg_attr(feature = "internals", allow(missing_docs))]
#![cfg_attr(not(feature = "internals"), warn(unnameable_types))]

// Left out of doctests, because the indented examples in the help texts of `cli` are command lines.
#[cfg(all(feature = "internals", not(doctest)))]
pub mod cli;
#[cfg(all(not(feature = "internals"), not(doctest)))]
mod cli;
mod cluster;
#[cfg(feature = "internals")]
pub mod db;
#[cfg(not(feature = "internals"))]
mod db;
#[cfg(feature = "internals")]
pub mod embed;
#[cfg(not(feature = "internals"))]
mod embed;
#[cfg(feature = "internals")]
pub mod engine;
#[cfg(not(feature = "internals"))]
mod engine;
#[cfg(feature = "internals")]
pub mod failpoint;
#[cfg(not(feature = "internals"))]
mod failpoint;
#[cfg(feature = "internals")]
pub mod http;
#[cfg(not(feature = "internals"))]
mod http;
#[cfg(feature = "internals")]
pub mod import;
#[cfg(not(feature = "internals"))]
mod import;
#[cfg(feature = "internals")]
pub mod index;
#[cfg(not(feature = "internals"))]
mod index;
mod int8;
mod lock;
mod log;
mod long_text;
#[cfg(feature = "internals")]
pub mod map_faults;
#[cfg(not(feature = "internals"))]
mod map_faults;
#[cfg(feature = "internals")]
pub mod mcp;
#[cfg(not(feature = "internals"))]
mod mcp;
#[cfg(feature = "internals")]
pub mod model;
#[cfg(not(feature = "internals"))]
mod model;
mod private;
#[cfg(feature = "internals")]
pub mod text;
#[cfg(not(feature = "internals"))]
mod text;
#[cfg(feature = "internals")]
pub mod tools;
#[cfg(not(feature = "internals"))]
mod tools;
#[cfg(feature = "internals")]
pub mod watch;
#[cfg(not(feature = "internals"))]
mod watch;
#[cfg(feature = "internals")]
pub mod web;
#[cfg(not(feature = "internals"))]
mod web;
#[cfg(feature = "internals")]
pub mod workspace;
#[cfg(not(feature = "internals"))]
mod workspace;

#[cfg(not(doctest))]
pub use cli::run_program;
pub use db::{
    Error as DatabaseError, Heading,
    threads::Error as ThreadError,
    transcripts::Error as TranscriptStoreError,
    writer::{Changes, Error as WriterError},
};
pub use embed::{Error as EmbedError, Key, Protocol, Provider, Remote, Unknown as UnknownProvider};
pub use engine::{
    About, ArchiveProgress, ArchiveReport, Config, ConversationMatch, Counts, Engine, Enriched,
    Error, FallbackReason, Fields, ListedPage, Listing, Lookup, Maintainer, Match, Messages, Mode,
    Progress, Question, Ranking, Reader, Reindex, Reindexed, Scope, SearchPlan, Session, Sink,
    Source, SourceKind, StoreAddress, Tally, Upkeep, UpkeepEvent,
    import::{Error as ImportError, ImportProgress, Report as ImportReport, import},
    scoring::{
        Candidates, Concept, ConceptScorer, Nearness, Scale, Scorer, Statistics, TitleQuery,
        TitleScores,
    },
};
pub use import::{Branches, Error as ExportError, ImportTally, Skipped};
pub use index::{Error as IndexError, Resources, Size, Trace, WeightedTerm};
pub use model::{Hit, Instant, Matching, Origin, Request, Stop};
pub use text::query::Query;
pub use watch::{Event as WatchEvent, Watch, start as watch};
pub use workspace::Error as WorkspaceError;
