//! Expressions over a workspace: an error, or lines of the file. A plain word finds the lines that
//! have it.
//!
//! Input: the expression up to a NUL, then the file.

use std::{fs, path::PathBuf, time::Duration};

use tempfile::TempDir;
use verbatim_base::call::Stop;
use verbatim_chats::workspace::{self, Folder, WorkspaceQuestion};

/// The most characters of a line, and the dots at its ends.
const LONGEST: usize = 1002;

thread_local! {
    static WORKSPACE: (TempDir, Vec<Folder>, PathBuf) = made();
}

/// Returns a workspace, and the file of its conversation.
fn made() -> (TempDir, Vec<Folder>, PathBuf) {
    let root = tempfile::tempdir().expect("a folder");
    let conversation = root.path().join("conversations/chats/2025-11-10/001-x");
    fs::create_dir_all(&conversation).expect("a folder");
    let folders = workspace::folders(&[root.path().to_owned()], None).expect("a workspace");
    let file = conversation.join("transcript.md");
    (root, folders, file)
}

pub(super) fn run(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == 0) else { return };
    let (Ok(pattern), text) = (std::str::from_utf8(&data[..end]), &data[end + 1..]) else { return };
    WORKSPACE.with(|(_, folders, file)| {
        fs::write(file, text).expect("a file");
        let pattern = pattern.to_owned();
        let question =
            WorkspaceQuestion { pattern, limit: usize::MAX, ..WorkspaceQuestion::default() };
        let found =
            workspace::search(folders, &question, &Stop::never().within(Duration::from_secs(20)));
        let Ok(found) = found else { return };
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        for line in &found.lines {
            assert!(line.number >= 1 && line.number <= lines.len() as u64, "{line:?}");
            assert!(line.text.chars().count() <= LONGEST && !line.text.contains('\n'), "{line:?}");
        }
        let word = question.pattern.to_ascii_lowercase();
        let is_plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_plain && text.is_ascii() && !text.contains(&0) {
            let has =
                |line: &&[u8]| String::from_utf8_lossy(line).to_ascii_lowercase().contains(&word);
            let numbered = (1..).zip(&lines).filter(|(_, line)| has(line));
            let expected: Vec<u64> = numbered.map(|(number, _)| number).collect();
            let numbers: Vec<u64> = found.lines.iter().map(|line| line.number).collect();
            assert_eq!(numbers, expected, "{word:?} in {text:?}");
        }
    });
}
