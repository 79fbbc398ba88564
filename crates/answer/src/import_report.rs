//! Reports what an import stored, what it left out, with one line for each kind, and what is not indexed.

use super::clock::Clock;
pub use verbatim_engine::import::{OTHER_BRANCHES, Report};
pub use verbatim_engine::{AttachmentCounts, MAX_ALL, MAX_FILE};
use verbatim_engine::{Error, Skipped, VectorsLeft};
use verbatim_text::amount::{bytes, counted, duration, grouped};
use verbatim_text::snippet;

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

/// Returns the line about what an import stored.
pub fn stored(report: &Report) -> String {
    let changes = &report.changes;
    let conversations = changes.stored_conversations();
    let messages = match changes.stored_messages() {
        // A cluster does not count the messages of conversations that are unchanged.
        0 if conversations > 0 => report.tally.messages,
        stored => stored,
    };
    let conversations = counted(conversations, "conversation");
    let mut line = format!("Imported {conversations}, {}", counted(messages, "message"));
    if let Some(files) = report.attachments.as_ref().filter(|files| files.kept > 0) {
        line += &format!(", {} ({})", counted(files.kept, "file"), bytes(files.bytes));
    }
    if changes.updated_conversations + changes.unchanged_conversations > 0 {
        line += &format!(
            ": {} new, {} updated, {} unchanged; {}",
            grouped(changes.new_conversations),
            grouped(changes.updated_conversations),
            grouped(changes.unchanged_conversations),
            counted(changes.new_messages, "new message"),
        );
    }
    line
}

/// Returns why not all indexes were made, and what that means.
pub fn unindexed(error: &Error) -> String {
    format!("{error}; searches find everything, but are slow until `verbatim reindex` succeeds")
}

/// Returns the line about the vectors by the sentence encoder that are made after an import, with the place that
/// says how far they are, and the command that makes them.
pub fn vectors_left(left: VectorsLeft, threads: usize, status: &str, reindex: &str) -> String {
    let messages = counted(left.encoded.missing(), "message");
    if left.is_under_way {
        let time = duration(left.encoded.time_left(threads));
        format!(
            "Searches work now. {messages} get their vectors for meaning in the background, in about \
             {time}: {status} says how far it is."
        )
    } else {
        format!(
            "Searches work now. {messages} have no vectors of the sentence model yet: {reindex} makes \
             them."
        )
    }
}

/// Returns one line for each kind of thing that an import left out. Names from the exports are not escaped.
pub fn left_out(report: &Report, remedies: Remedies) -> Vec<String> {
    let tally = &report.tally;
    let mut lines = Vec::new();
    let others = report.changes.stored_conversations() + report.excluded + report.forgotten;
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
    of_unknown_types(report, &mut lines);
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
    if report.foreign_zips > 0 {
        lines.push(format!("{} without chats ignored", counted(report.foreign_zips, "zip")));
    }
    unchanged(report, &mut lines);
    unread(report, &mut lines);
    lines
}

/// Returns what an import left out in one line, and a line for each thing that could not be read.
pub fn left_out_in_brief(report: &Report, details: &str) -> Vec<String> {
    let tally = &report.tally;
    let mut kinds = Vec::new();
    let files = report.attachments.as_ref();
    let too_large = format!(" of more than {}", bytes(MAX_FILE));
    let no_room = format!(" beyond the {} of all", bytes(MAX_ALL));
    for (count, one, what) in [
        (tally.bare, "conversation", " without messages"),
        (tally.empty, "empty message", ""),
        (report.excluded, "conversation", " of excluded projects and folders"),
        (report.forgotten, "conversation", " that you forgot"),
        (
            files.map_or(0, |files| files.absent),
            "file",
            " that messages name and the export does not have",
        ),
        (files.map_or(0, |files| files.too_large.number), "file", &too_large),
        (files.map_or(0, |files| files.no_room.number), "file", &no_room),
        (report.foreign_zips, "zip", " without chats"),
    ] {
        if count > 0 {
            kinds.push(format!("{}{what}", counted(count, one)));
        }
    }
    kinds.extend(tally.left_out.iter().map(|(what, number)| match number {
        0 | 1 => what.clone(),
        number => format!("{what} ({})", grouped(*number)),
    }));
    let mut lines = Vec::new();
    if !kinds.is_empty() {
        lines.push(format!("left out: {}; {details}", kinds.join(", ")));
    }
    of_unknown_types(report, &mut lines);
    unchanged(report, &mut lines);
    unread(report, &mut lines);
    lines
}

/// Adds the line about exports that were not read again.
fn unchanged(report: &Report, lines: &mut Vec<String>) {
    if report.unchanged > 0 {
        let exports = counted(report.unchanged, "export");
        let since = Clock::new(true).words(report.unchanged_since);
        lines.push(format!("not read again: {exports}, unchanged since {since}"));
    }
}

/// Adds the line about content of unknown types.
fn of_unknown_types(report: &Report, lines: &mut Vec<String>) {
    let unknown = &report.tally.unknown;
    if !unknown.is_empty() {
        let kinds: Vec<String> =
            unknown.iter().map(|(kind, number)| format!("{kind} ({number})")).collect();
        let kinds = kinds.join(", ");
        lines.push(format!("content of unknown types, of which the text was kept: {kinds}"));
    }
}

/// Adds the lines about files of messages.
fn of_attachments(counts: &AttachmentCounts, remedies: Remedies, lines: &mut Vec<String>) {
    if counts.kept > 0 {
        let files = counted(counts.kept, "file");
        lines.push(format!("{files} of messages kept, {}{}", bytes(counts.bytes), remedies.files));
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
}

/// Adds the lines about what could not be read.
fn unread(report: &Report, lines: &mut Vec<String>) {
    let tally = &report.tally;
    // A warning says of these that their file is cut off.
    let (cut, skipped): (Vec<&Skipped>, Vec<&Skipped>) =
        tally.skipped.iter().partition(|skipped| {
            let mut damaged = tally.damaged.iter();
            damaged.any(|damaged| damaged.starts_with(&format!("{} is cut off", skipped.file)))
                && skipped.reason.contains("ends in the middle")
        });
    let skipped_count = tally.skipped_count - cut.len() as u64;
    for (number, what) in [(tally.malformed, "line"), (skipped_count, "conversation")] {
        if number > 0 {
            let what = counted(number, what);
            lines.push(format!("skipped, because they could not be read: {what}"));
        }
    }
    for Skipped { file, name, ordinal, reason, .. } in skipped {
        let name = name.as_deref().map(|name| format!(" ({})", snippet::line(name, LONGEST_TITLE)));
        let name = name.unwrap_or_default();
        lines.push(format!("  {file}: conversation {ordinal}{name}: {reason}"));
    }
    let unnamed = tally.skipped_count - tally.skipped.len() as u64;
    if unnamed > 0 {
        lines.push(format!("  and {unnamed} more"));
    }
    if let Some(files) = report.attachments.as_ref().map(|counts| &counts.without_content)
        && files.number > 0
    {
        let more = files.number - files.names.len() as u64;
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let counted = counted(files.number, "file");
        let names = files.names.join("; ");
        lines.push(format!("cannot be read, and not kept: {counted}: {names}{more}"));
    }
    let files = report.attachments.iter().flat_map(|counts| &counts.failures);
    lines.extend(files.map(|failure| format!("warning: {failure}")));
    lines.extend(tally.damaged.iter().map(|damaged| format!("warning: {damaged}")));
    lines.extend(report.failures.iter().map(|failure| format!("not imported: {failure}")));
}
