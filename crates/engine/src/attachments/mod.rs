//! The files of messages: pictures, documents and sounds. One folder in the home holds the files of imports,
//! another holds those of agents' transcripts. The databases hold only the names of imported files.
//!
//! Invariant: no name or path of an export decides where a file is written.
//! Invariant: a stored file is removed together with the last list that names it.
//! Invariant: no stored file is removed unless every list could be read.

mod attachment;
mod attachment_writer;
mod import;
mod media_type;
mod store;
mod transcripts;

pub use attachment::Attachment;
pub use attachment_writer::{MAX_ALL, MAX_FILE};
pub use import::AttachmentCounts;
pub(super) use import::AttachmentImport;
pub(crate) use store::{ATTACHMENTS, AttachmentStore, TRANSCRIPT_FILES, is_in_store};
pub(super) use transcripts::TranscriptFiles;
