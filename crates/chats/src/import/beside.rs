//! Files that programs keep beside transcripts: files with the names of conversations, and copies.
//!
//! Codex keeps the names of all conversations in one file beside the folders of its transcripts. Claude's
//! desktop app keeps a folder for each conversation of Claude Cowork, and a file with its name beside it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::json::Raw;
use verbatim_base::files;

/// The name of the folder in which the desktop app keeps the conversations of Claude Cowork.
pub const COWORK_FOLDER: &str = "local-agent-mode-sessions";

/// The project of the conversations of Claude Cowork, whose folders are in a virtual machine.
pub(super) const COWORK: &str = "cowork";

/// The file of Codex with the names of conversations, and the folders beside it.
const CODEX_NAMES: &str = "session_index.jsonl";
const CODEX_FOLDERS: [&str; 2] = ["sessions", "archived_sessions"];

const LONGEST: u64 = 64 << 20;

/// Returns whether a transcript is of Claude Cowork.
pub fn is_of_cowork(transcript: &Path) -> bool {
    cowork_folder(transcript).is_some()
}

fn cowork_folder(path: &Path) -> Option<&Path> {
    let inner = path.ancestors().find(|folder| folder.file_name() == Some(OsStr::new(".claude")));
    inner?.parent().filter(|folder| is_of_conversation(folder))
}

fn is_of_conversation(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("local_"))
}

/// Returns whether a file has the name of a transcript, and nothing that its transcripts do not have.
pub fn is_no_transcript(file: &Path) -> bool {
    match file.file_name().and_then(OsStr::to_str) {
        Some(CODEX_NAMES) => true,
        // The log of a conversation of Claude Cowork is a signed copy of the transcript.
        Some("audit.jsonl") => file.parent().is_some_and(is_of_conversation),
        _ => false,
    }
}

/// Returns whether a folder may have transcripts. In the folder of a conversation of Claude Cowork, only one
/// folder has, and the others are the user's.
pub fn may_have_transcripts(folder: &Path) -> bool {
    let Some(outer) = folder.parent() else { return true };
    if !folder.components().any(|part| part.as_os_str() == COWORK_FOLDER) {
        true
    } else if is_of_conversation(outer) {
        folder.ends_with(".claude")
    } else if outer.ends_with(".claude") && outer.parent().is_some_and(is_of_conversation) {
        folder.ends_with("projects")
    } else {
        true
    }
}

/// Returns the path of the file that may have the name of a transcript's conversation.
pub fn names_file(transcript: &Path) -> Option<PathBuf> {
    if let Some(folder) = cowork_folder(transcript) {
        let mut name = folder.file_name()?.to_owned();
        name.push(".json");
        return Some(folder.with_file_name(name));
    }
    let folder = transcript.ancestors().skip(1).find(|folder| {
        folder.file_name().is_some_and(|name| CODEX_FOLDERS.iter().any(|it| name == *it))
    })?;
    Some(folder.with_file_name(CODEX_NAMES))
}

/// Adds the names of conversations in a file to `names`, by the ids of the conversations. Later names
/// replace earlier ones. Nothing is added from a file that cannot be read.
pub fn add_names(file: &Path, names: &mut HashMap<String, String>) {
    let mut text = Vec::new();
    if files::open(file).and_then(|file| file.take(LONGEST).read_to_end(&mut text)).is_err() {
        return;
    }
    let records: Vec<&[u8]> = if file.file_name() == Some(OsStr::new(CODEX_NAMES)) {
        text.split(|byte| *byte == b'\n').collect()
    } else {
        vec![&text]
    };
    for record in records {
        let (fields, damage) = Raw::new(record.trim_ascii()).fields_until_damage();
        let id = fields.text("cliSessionId").or_else(|| fields.text("id"));
        let name = fields.text("thread_name").or_else(|| fields.text("title"));
        if let (None, Some(id), Some(name)) = (damage, id, name)
            && !name.trim().is_empty()
        {
            names.insert(id.into_owned(), name.trim().to_owned());
        }
    }
}
