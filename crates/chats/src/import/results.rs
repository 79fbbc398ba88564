//! Long results of tools, which Claude Code keeps in files beside a transcript. The transcript has their beginnings.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use memchr::memmem;

use super::head;
use super::json::Raw;
use super::plain::plain;
use verbatim_base::model::Message;
use verbatim_text::screen;

/// The folder of the results of a session, in a folder that has the name of the session.
pub(super) const FOLDER: &str = "tool-results";

/// The words before the path of a file with a whole result.
const SAVED: &str = "saved to";

/// The tags around the beginning of a result.
const TAGS: [&str; 2] = ["<persisted-output>", "</persisted-output>"];

/// The maximum length of a result in bytes.
pub(super) const LONGEST_RESULT: u64 = 16 << 20;

/// Puts the whole result into a message, in place of its beginning, if a file beside the transcript has it.
pub fn complete_beside(message: &mut Message, transcript: &Path) {
    complete(message, &mut |name| {
        let session = transcript.with_extension("");
        let folders = [Some(&*session), session.parent(), session.parent().and_then(Path::parent)];
        let paths = folders.into_iter().flatten().map(|folder| folder.join(FOLDER).join(name));
        let path = paths.into_iter().find(|path| {
            fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LONGEST_RESULT)
        })?;
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(LONGEST_RESULT).read_to_end(&mut bytes)).ok()?;
        Some(bytes)
    });
}

/// Works like [`complete_beside`], with the bytes of the file that `read` returns for a name.
pub(super) fn complete(message: &mut Message, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) {
    let text = &mut message.content;
    let Some(bytes) = named(text).filter(|_| message.role == "tool").and_then(read) else { return };
    let value =
        Raw::new(&bytes).value().ok().filter(|_| bytes.trim_ascii_start().starts_with(b"["));
    let whole = match value {
        Some(blocks) => plain(&blocks, true),
        None => String::from_utf8_lossy(&bytes).into_owned(),
    };
    let mut whole = screen::shown(whole.trim_end()).into_owned();
    head::clean(&mut whole);
    let [begin, end] = TAGS.map(|tag| memmem::find(text.as_bytes(), tag.as_bytes()));
    match (begin, end) {
        _ if text.contains(whole.trim()) => {}
        (Some(begin), Some(end)) if begin < end => {
            text.replace_range(begin..end + TAGS[1].len(), &whole);
        }
        _ => *text = format!("{}\n\n{whole}", text.trim_end()),
    }
}

/// Returns the name of the file with the whole result, if a text says that it was saved.
fn named(text: &str) -> Option<&str> {
    let (_, saved) = text.split_once(SAVED)?;
    let (_, rest) = saved.split_once(FOLDER)?;
    let rest = rest.strip_prefix(['/', '\\'])?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    let name = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
    Some(name).filter(|name| !name.is_empty() && !name.starts_with('.'))
}
