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
//! use verbatim_search::{Call, Request};
//!
//! let request = Request { text: "SOURDOUGH".to_owned(), ..Request::default() };
//! let mut found = Vec::new();
//! engine.exact(&request, &Call::default(), &mut |hit| {
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
//! use verbatim_search::{Call, Reindex, Reindexed, Request, Resources, SearchPlan};
//!
//! // Bytes of memory, and threads.
//! let resources = Resources { memory: 64 << 20, threads: 1 };
//! let call = Call::default();
//! let built = engine.upkeep().reindex(Reindex { resources, full: false }, &call, &mut |_| {})?;
//! assert!(matches!(built, Reindexed::Built { .. }));
//!
//! let request = Request { text: "fridge".to_owned(), ..Request::default() };
//! let plan = engine.exact(&request, &call, &mut |_| ControlFlow::Continue(()))?;
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
//! use verbatim_search::{Call, Matching, Request};
//!
//! let request = Request {
//!     text: r"\d+ degrees".to_owned(),
//!     or: vec!["sour(dough)?".to_owned()],
//!     not: vec!["how long".to_owned()],
//!     matching: Matching::Regex,
//!     ..Request::default()
//! };
//! let mut found = Vec::new();
//! engine.exact(&request, &Call::default(), &mut |hit| {
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
//! use verbatim_search::{Call, Question};
//!
//! let question = Question {
//!     concepts: vec!["bread in the fridge".to_owned()],
//!     limit: 5,
//!     ..Question::default()
//! };
//! let ranking = engine.rank(&question, &Call::default())?;
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
//! use verbatim_search::{Call, Instant, Scope};
//!
//! let call = Call::default();
//! let page = engine.list(&Scope::default(), 0..10, &call)?;
//! let baking = &page.abouts[0];
//! assert_eq!((baking.title.as_str(), page.total, page.notes()), ("Baking", 1, Vec::new()));
//!
//! let session = engine.find(&call).session(baking.source, &baking.id, false)?.expect("is there");
//! assert_eq!((session.turns(), session.role(0)), (2, "user"));
//! assert!(session.message(1).content.starts_with("Four hours"));
//!
//! let tally = engine.tally(&Scope::default(), &Instant::day, &call)?;
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
//! - **encoder**: the slower model, which reads a text as a whole; the **static table** has a vector for each piece of
//!   a word
//! - **excluded, forgotten, hidden, superseded**: why a conversation is *left out*: by the user's setting, for good,
//!   on the page, or because another source has a newer copy
//! - **face**: what people and programs see: the terminal, the picker, the page, MCP, HTTP
//! - **folded**: with one form for all the cases of a letter, in every script
//! - **gram**: a short piece of folded text; **posting list**: the doc ids of the messages that hold a gram
//! - **index directory**: the files of one database's index: segments and snapshots
//! - **maintainer**: refreshes indexes in the background; **upkeep** is its work
//! - **merge**: makes one segment of several
//! - **note**: a sentence about something that an answer leaves out, or that was done in another way
//! - **picker**: the full-screen search in the terminal
//! - **reader**: answers from one state of a source: by its index, or by SQLite's `LIKE`
//! - **scope**: which messages a question is about: sources, roles, dates, conversations
//! - **scorer**: ranks the messages of one source: BM25, cosines, context
//! - **segment**: a part of an index that never changes; only its deleted documents do
//! - **signature**: a table of bits that says in which pieces of a long text a run of characters may be
//! - **sink**: takes the hits of a search, and shows them once they are confirmed
//! - **snapshot**: the segments that together hold one state of a database
//! - **source**: a place that messages come from: the export, the transcripts, the recorded threads
//! - **stamp**: the identity, size and times of a file; a file with the same stamp is unchanged
//! - **summary**: the first sentences of what the person wrote first in a conversation, made when it is asked for
//! - **transcript store**: the database that the transcripts of coding agents are copied into
//!
//! # Crates
//!
//! This package is the program and the library's public face. What does the work is in crates, from
//! `verbatim-base` up to `verbatim-server`: `ARCHITECTURE.md` shows which uses which, and how a query passes
//! through them.

#![cfg_attr(
    not(all(feature = "page", feature = "picker")),
    allow(dead_code, unused_imports, unused_variables, reason = "some is for one feature alone")
)]

// Left out of doctests, because the indented examples in the help texts of `cli` are command lines.
// Hidden from the documentation: it is public for the tests of this package.
#[cfg(not(doctest))]
#[doc(hidden)]
#[allow(rustdoc::invalid_rust_codeblocks, reason = "the examples of help texts are command lines")]
pub mod cli;
#[cfg(test)]
#[path = "../tests/shared/golden.rs"]
mod golden;
#[cfg(test)]
#[path = "../tests/shared/test_export.rs"]
mod test_export;

#[cfg(not(doctest))]
pub use cli::run_program;
pub use verbatim_base::call::Call;
pub use verbatim_base::model::{Hit, Instant, Matching, Origin, Request};
pub use verbatim_engine::{
    About, ArchiveProgress, ArchiveReport, Branches, Changes, Config, ConversationMatch, Counts,
    DatabaseError, EmbedError, Encoded, Engine, Enriched, Error, ExportError, FallbackReason,
    Fields, Heading, ImportOptions, ImportOutcome, ImportStep, ImportTally, IndexError,
    IndexReport, IndexStep, Indexed, Key, ListedPage, Listing, Lookup, Maintainer, Match, Messages,
    Mode, Progress, Provider, Question, Ranking, Reader, Reindex, Reindexed, Remote, Resources,
    Scope, SearchPlan, Session, Sink, Size, Skipped, Source, SourceKind, StoreAddress, Tally,
    ThreadError, Trace, TranscriptStoreError, UnknownProvider, Upkeep, UpkeepEvent, WeightedTerm,
    WorkspaceError, WriterError,
    import::{Error as ImportError, ImportProgress, Report as ImportReport, import},
    scoring,
};
pub use verbatim_server::watch::{Event as WatchEvent, Watch, start as watch};
pub use verbatim_text::query::Query;
