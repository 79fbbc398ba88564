//! Files that were cut or rewritten. If such a file lacks some of the text that was read from it,
//! the stored messages are kept under another name.

use std::collections::{HashMap, HashSet};
use std::io;

use super::archive_walk::TranscriptPath;
use verbatim_chats::import::results;
use verbatim_chats::import::transcript::{TranscriptEvent, TranscriptReader};
use verbatim_text::hash::{Fnv1a, fnv1a};

/// The character between a file's name and the number of an earlier state of the file. Names of transcripts
/// end with an extension, so no transcript has such a name.
const BEFORE_NUMBER: char = '~';

/// Returns a name for what was read from a file before it was cut.
pub(super) fn earlier_name(name: &str, is_used: impl Fn(&str) -> bool) -> String {
    let names = (1..).map(|number| format!("{name}{BEFORE_NUMBER}{number}"));
    names.into_iter().find(|name| !is_used(name)).expect("there are fewer files than numbers")
}

/// Returns whether `earlier` is a name that `earlier_name` made for the file `name`.
pub(super) fn is_earlier(earlier: &str, name: &str) -> bool {
    earlier.strip_prefix(name).is_some_and(|rest| rest.starts_with(BEFORE_NUMBER))
}

/// Returns whether a file lacks a text whose hash is stored.
pub(super) fn lacks_text(
    stored: impl IntoIterator<Item = u64>,
    found: &TranscriptPath,
) -> io::Result<bool> {
    let mut input = found.open_unpacked()?;
    let mut texts: HashMap<String, Fnv1a> = HashMap::new();
    let mut reader = TranscriptReader::new(&found.path);
    reader.read::<io::Error>(&mut input, &mut |_: &TranscriptReader, event| {
        match event {
            TranscriptEvent::Message(mut message) => {
                results::complete_beside(&mut message, &found.path);
                if texts.contains_key(&message.id) {
                    return Ok(false);
                }
                texts.entry(message.id).or_default().write(message.content.as_bytes());
            }
            TranscriptEvent::More { id, text } => {
                texts.entry(id).and_modify(|hash| hash.write(text.as_bytes()));
            }
            TranscriptEvent::File { .. } => {}
        }
        Ok(true)
    })?;
    let mut texts: HashSet<u64> = texts.into_values().map(Fnv1a::finish).collect();
    texts.extend(reader.at_end().iter().map(|message| fnv1a(message.content.as_bytes())));
    Ok(stored.into_iter().any(|hash| !texts.contains(&hash)))
}
