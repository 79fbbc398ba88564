//! The files of messages: pictures, documents and sounds, in two folders of the home: those of imports,
//! and those of the transcripts of agents. The databases know the names of imported files only.
//!
//! Invariant: no name or path of an export decides where a file is written.
//! Invariant: a content that no list has any more is removed with the conversation that had it.
//! Invariant: no content is removed unless every list could be read.

mod attachment;
mod import;
mod keeper;
mod media_type;
mod store;
mod transcripts;

pub(crate) use attachment::Attachment;
pub(crate) use import::AttachmentCounts;
pub(super) use import::AttachmentImport;
pub(crate) use keeper::{MAX_ALL, MAX_FILE};
pub(crate) use store::{ATTACHMENTS, AttachmentStore, TRANSCRIPT_FILES, is_in_store};
pub(super) use transcripts::TranscriptFiles;
