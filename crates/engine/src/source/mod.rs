//! Sources of conversations, and the interface through which all of them are read.
//!
//! A [`Source`] is a place that messages come from. The trait [`Reader`] has all questions to a source, and
//! its trait `Store` answers all that depends on where it is stored. [`Source::reader`] chooses the best reader
//! for the current state of the source.

mod attachment_files;
mod choice;
mod conversation_facts;
mod kind;
mod listing;
mod note;
pub(crate) mod reader;
mod scope;
mod sources;
mod stamp;
mod store;
pub(crate) mod summary;
mod visible;

pub use attachment_files::AttachmentFiles;
pub use kind::SourceKind;
pub use listing::list::{ListOptions, ListedPage};
pub use listing::places::{Place, Places};
pub(crate) use listing::session::line_number;
pub use listing::{description::Description, session::Session};
pub use note::{IndexState, Note};
pub use reader::{Counts, Listing, Messages, Reader, SearchPlan, live::LiveReader};
pub(crate) use reader::{catalogue, request, sink};
pub use scope::{About, ChosenIds, ConversationIds, Scope};
pub(crate) use scope::{agent_parts, begins_with, is_part};
pub(crate) use sources::{Sources, store_at};
pub use store::{Source, handle::FallbackReason};
pub(crate) use store::{
    Store, changed::is_same, database::size_of, wipe::forget_vectors, wipe::wipe_indexes,
    work::Task,
};
