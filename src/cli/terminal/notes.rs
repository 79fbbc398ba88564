//! The engine's notes on standard error.

use super::output::complain;
use crate::cli::error::{IMPORTING, Result};
use verbatim_answer::notes::{Audience, line};
use verbatim_base::call::Call;
use verbatim_engine::{Engine, Note, import::is_being_made};

/// The message of commands that read chats if there are none.
const NO_CHATS: &str = "there are no chats; `verbatim import` brings in the exports of \
     ChatGPT and Claude in your downloads; `verbatim demo` shows a sample";

/// Returns [`NO_CHATS`] with what the transcripts have that is not read.
pub(crate) fn no_chats(engine: &Engine) -> String {
    if is_being_made(&engine.config().db_folder()) {
        return IMPORTING.to_owned();
    }
    let status = verbatim_engine::status(engine.all_sources(), &Call::default());
    let unread = status.sources.iter().flat_map(|source| &source.unread_parts);
    unread.fold(NO_CHATS.to_owned(), |said, unread| format!("{said}\nnot read: {unread}"))
}

/// Returns whether no source has a message, excluded messages included.
pub(crate) fn has_no_chats(engine: &Engine, call: &Call) -> Result<bool> {
    Ok(is_without_chats(engine, engine.size(call)?.0))
}

/// Returns the same for a number of messages of all sources.
pub(crate) fn is_without_chats(engine: &Engine, messages: u64) -> bool {
    messages == 0 && engine.config().exclude.is_empty()
}

/// Writes notes to standard error, one line each.
pub(crate) fn print<'n>(notes: impl IntoIterator<Item = &'n Note>) {
    for note in notes {
        complain(&line(note, Audience::Person));
    }
}
