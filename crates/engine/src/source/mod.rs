//! Sources of conversations, and the interface through which all of them are read.
//!
//! A [`Source`] is a place that messages come from. The trait [`Reader`] has all questions to a source.
//! [`Source::reader`] chooses the best reader for the current state of the source.

mod attachment_files;
pub(crate) mod catalogue;
mod catalogue_table;
mod choice;
#[cfg(feature = "cluster")]
mod cluster_about;
#[cfg(feature = "cluster")]
mod clustered;
mod counter;
mod facts;
mod gone;
mod handle;
mod hidden;
mod hiding;
mod indexed;
mod keep;
mod kind;
mod list;
mod live;
mod narrow;
mod note;
mod places;
mod read_messages;
mod reader;
pub(crate) mod request;
mod resolve;
mod scan_store;
mod scope;
pub mod scoring;
mod session;
mod sessions;
pub(crate) mod sink;
mod sketch;
mod slots;
mod sorted_ids;
mod sources;
mod store;
mod store_facts;
pub(crate) mod summaries;
mod turns;
mod wipe;
mod work;

pub use attachment_files::AttachmentFiles;
#[cfg(feature = "cluster")]
pub(crate) use clustered::ClusterScan;
pub(crate) use gone::is_same;
pub use handle::FallbackReason;
pub(crate) use hidden::Ids;
pub use kind::SourceKind;
pub use list::ListOptions;
pub use list::ListedPage;
pub use live::LiveReader;
pub use narrow::Narrowing;
pub(crate) use note::Lacking;
pub use note::Note;
pub use places::Places;
pub use reader::{Counts, Listing, Messages, Reader, SearchPlan};
pub(crate) use scan_store::{DatabaseScan, ScanStore};
pub(crate) use scope::shared_start;
pub use scope::{About, ChosenIds, ConversationIds, Scope};
pub use session::Session;
pub(crate) use session::line_number;
pub use sketch::Sketch;
pub use sources::Source;
pub(crate) use sources::Sources;
pub(crate) use store::Store;
pub(crate) use wipe::wipe_indexes;
pub(crate) use work::Task;
