//! Reports what an import left out, with one line for each kind.

use super::bound;
pub use verbatim_engine::{
    AttachmentCounts, MAX_ALL, MAX_FILE,
    import::{OTHER_BRANCHES, Report},
};
use verbatim_text::amount::{bytes, counted, grouped};

/// The longest title of a conversation in a line, in characters.
const LONGEST_TITLE: usize = 60;

/// The remedies that end the lines of the report. The command line and the page each have their own texts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remedies {
    /// How to import the branches that the service does not show.
    pub branches: &'static str,
    /// How to list the forgotten conversations.
    pub forgotten: &'static str,
    /// How to open the files of messages that the import stored.
    pub files: &'static str,
    /// How to make room for files. This text is a line of its own.
    pub room: &'static str,
}

/// Returns one line for each kind of thing that an import left out. Names from the exports are not escaped.
pub fn left_out(report: &Report, remedies: Remedies) -> Vec<String> {
    let tally = &report.tally;
    let mut lines = Vec::new();
    let changes = &report.changes;
    let stored =
        changes.new_conversations + changes.updated_conversations + changes.unchanged_conversations;
    let others = stored + report.excluded + report.forgotten;
    if tally.conversations > others {
        let repeated = counted(tally.conversations - others, "conversation");
        lines.push(format!("found more than once, and stored once: {repeated}"));
    }
    if tally.bare > 0 {
        let bare = counted(tally.bare, "conversation");
        lines.push(format!("without messages, and not in lists: {bare}"));
    }
    if tally.empty > 0 {
        lines.push(format!("{} skipped", counted(tally.empty, "empty message")));
    }
    if !tally.unknown.is_empty() {
        let kinds: Vec<String> =
            tally.unknown.iter().map(|(kind, number)| format!("{kind} ({number})")).collect();
        let kinds = kinds.join(", ");
        lines.push(format!("content of unknown types, of which the text was kept: {kinds}"));
    }
    for (what, number) in &tally.left_out {
        let number = match number {
            0 | 1 => String::new(),
            number => format!(" ({})", grouped(*number)),
        };
        let help = if what == OTHER_BRANCHES { remedies.branches } else { "" };
        lines.push(format!("not imported: {what}{number}{help}"));
    }
    if report.excluded > 0 {
        let left_out = counted(report.excluded, "conversation");
        lines.push(format!("{left_out} of excluded projects and folders left out"));
    }
    if report.forgotten > 0 {
        let left_out = counted(report.forgotten, "conversation");
        lines.push(format!("{left_out} that you forgot left out{}", remedies.forgotten));
    }
    if let Some(counts) = &report.attachments {
        of_attachments(counts, remedies, &mut lines);
    }
    unread(report, &mut lines);
    lines
}

/// Adds the lines about files of messages.
fn of_attachments(counts: &AttachmentCounts, remedies: Remedies, lines: &mut Vec<String>) {
    if counts.kept > 0 {
        let (files, size) = (counted(counts.kept, "file"), bytes(counts.bytes));
        lines.push(format!("{files} of messages kept, {size}{}", remedies.files));
    }
    if counts.absent > 0 {
        let files = counted(counts.absent, "file");
        lines.push(format!("not in the export: {files} that messages name"));
    }
    for (left_out, why) in [
        (&counts.too_large, format!("more than {} long", bytes(MAX_FILE))),
        (&counts.no_room, format!("because {} are kept at most", bytes(MAX_ALL))),
    ] {
        let names = left_out.names.join(", ");
        let more = left_out.number - left_out.names.len() as u64;
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        if left_out.number > 0 {
            let files = counted(left_out.number, "file");
            lines.push(format!("{files} of messages left out, {why}: {names}{more}"));
        }
    }
    if counts.no_room.number > 0 && !remedies.room.is_empty() {
        lines.push(remedies.room.to_owned());
    }
    lines.extend(counts.failures.iter().map(|failure| format!("warning: {failure}")));
}

/// Adds the lines about what could not be read.
fn unread(report: &Report, lines: &mut Vec<String>) {
    let tally = &report.tally;
    for (number, what) in [(tally.malformed, "line"), (tally.skipped_count, "conversation")] {
        if number > 0 {
            let what = counted(number, what);
            lines.push(format!("skipped, because they could not be read: {what}"));
        }
    }
    for skipped in &tally.skipped {
        let name =
            skipped.name.as_deref().map(|name| format!(" ({})", bound::line(name, LONGEST_TITLE)));
        let (file, reason) = (&skipped.file, &skipped.reason);
        let name = name.unwrap_or_default();
        lines.push(format!("  {file}: conversation {}{name}: {reason}", skipped.ordinal));
    }
    let unnamed = tally.skipped_count - tally.skipped.len() as u64;
    if unnamed > 0 {
        lines.push(format!("  and {unnamed} more"));
    }
    if report.foreign_zips > 0 {
        lines.push(format!("{} without chats ignored", counted(report.foreign_zips, "zip")));
    }
    lines.extend(tally.damaged.iter().map(|damaged| format!("warning: {damaged}")));
    lines.extend(report.failures.iter().map(|failure| format!("not imported: {failure}")));
}
