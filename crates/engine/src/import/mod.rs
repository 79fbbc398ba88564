//! Imports exports into a canonical database.

pub(crate) mod import_and_index;
mod known_import;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};
use std::{cell::Cell, io, sync::Arc};

use crate::attachments::{AttachmentCounts, AttachmentImport, AttachmentStore};
use crate::config::{Config, StoreAddress};
use crate::decisions::Decisions;
use crate::error::Error as EngineError;
use crate::source::{Store, store_at};
use verbatim_base::{call::Call, model};
use verbatim_chats::db;
use verbatim_chats::db::writer::{self, Changes, EarlierImport, SourceCounts, Writer};
use verbatim_chats::import::{self, Branches, Export, ImportTally};
#[cfg(feature = "cluster")]
use verbatim_cluster as cluster;

use known_import::KnownImports;

pub use crate::config::may_write;
pub use verbatim_chats::db::is_being_made;
pub use verbatim_chats::import::compressed::is_named_as_transcript;
pub use verbatim_chats::import::{FORMATS, FoundExport, OTHER_BRANCHES};

/// An error of an import.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// An export cannot be read.
    #[error(transparent)]
    Export(#[from] import::Error),
    /// The database cannot be written.
    #[error(transparent)]
    Database(#[from] writer::Error),
    /// A database that is to be copied into a cluster cannot be read.
    #[error(transparent)]
    Source(#[from] db::Error),
    /// The database cannot be written, and some of the conversations are stored already.
    #[error("{source}; before that, {stored} new and changed conversations were stored")]
    Partly { stored: u64, source: Box<writer::Error> },
    /// The cluster cannot be written.
    #[error("{reason}")]
    Cluster { reason: String },
    /// The decisions about conversations cannot be read, or a forgotten one cannot be removed again.
    #[error(transparent)]
    Decisions(#[from] EngineError),
}

impl Error {
    /// Returns the error of an import that has stored some changes.
    fn after(self, stored: Changes) -> Error {
        match (self, stored.new_conversations + stored.updated_conversations) {
            (Error::Database(source), stored @ 1..) => {
                Error::Partly { stored, source: Box::new(source) }
            }
            (error, _) => error,
        }
    }
}

/// The result of an import.
#[derive(Debug, Default)]
pub struct Report {
    /// Counts of the conversations and messages read from the exports.
    pub tally: ImportTally,
    /// The changes to the database.
    pub changes: Changes,
    /// The exports that could not be read.
    pub failures: Vec<import::Error>,
    /// The duration of the import.
    pub took: Duration,
    /// Number of skipped zips in folders of exports, because they hold no chats.
    pub foreign_zips: u64,
    /// Number of conversations that were left out because their project or folder is excluded.
    pub excluded: u64,
    /// Number of conversations that were left out because they were forgotten.
    pub forgotten: u64,
    /// Whether the import was stopped before its end.
    pub stopped: bool,
    /// Counts of the attached files; `None` if the database is not in the home folder.
    pub attachments: Option<AttachmentCounts>,
    /// Number of exports that were not read, because they are unchanged since they were imported.
    pub unchanged: u64,
    /// The last time when one of these exports was imported.
    pub unchanged_since: Option<model::Instant>,
}

impl Report {
    /// Counts an export that was not read, because it is unchanged.
    fn add_unchanged(&mut self, earlier: EarlierImport) {
        let SourceCounts { conversations, messages, .. } = earlier.counts;
        self.tally.conversations += conversations;
        self.tally.messages += messages;
        self.changes.unchanged_conversations += conversations;
        self.changes.unchanged_messages += messages;
        self.unchanged += 1;
        self.unchanged_since = self.unchanged_since.max(earlier.time);
    }

    /// Returns the parts of the exports that could not be read, one sentence each. Empty if all parts
    /// were read.
    pub fn missing(&self) -> Vec<String> {
        let ImportTally { damaged, skipped_count, malformed, .. } = &self.tally;
        let mut missing: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        missing.extend(damaged.iter().cloned());
        let counted = [
            (skipped_count, "of the conversations could not be read"),
            (malformed, "of the lines could not be read"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| **count > 0);
        missing.extend(counted.map(|(count, what)| format!("{count} {what}")));
        let attachments = self.attachments.iter();
        missing.extend(attachments.flat_map(|counts| counts.failures.iter().cloned()));
        missing
    }
}

/// The progress of an import.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportProgress {
    /// Bytes read; messages written, while an export is copied into a cluster.
    pub done: u64,
    /// Bytes to read in all, or messages to write.
    pub total: u64,
    /// The export that is being read.
    pub source: SourceProgress,
}

/// The progress of reading one export.
#[derive(Clone, Copy, Debug, Default)]
pub struct SourceProgress {
    /// The position of the export in the order of reading, from 0.
    pub number: usize,
    /// The service or program of the export, such as `ChatGPT`; unknown before the first conversation.
    pub service: Option<&'static str>,
    /// Number of bytes of the export that were read.
    pub done: u64,
    /// Number of bytes in the export.
    pub total: u64,
    /// Number of conversations in the export that were read.
    pub conversations: u64,
    /// Number of messages in the export that were read.
    pub messages: u64,
    /// Number of attached files that were looked for. They are read after the messages.
    pub files: u64,
    /// Whether a database is being copied into a cluster. Then messages are counted, not bytes.
    pub is_copy: bool,
}

/// The target of an import, and the conversations that it leaves out.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    store: Arc<dyn Store>,
    decisions: &'a Decisions,
    /// The store for attached files; `None` if attached files are not kept.
    attachments: Option<AttachmentStore>,
    /// Called when the import has waited a while for another program that writes to the database.
    on_wait: Option<fn()>,
}

impl<'a> Target<'a> {
    /// Makes a target. Attached files are kept only for a database in the home folder.
    pub(crate) fn new(
        config: &Config,
        store: &StoreAddress,
        decisions: &'a Decisions,
        on_wait: Option<fn()>,
    ) -> Target<'a> {
        let attachments = store.path().and_then(|path| AttachmentStore::beside(config, path));
        Target { store: store_at(store.clone(), config), decisions, attachments, on_wait }
    }

    /// Returns a target that is a database, without a store for attached files.
    fn database(path: &Path, decisions: &'a Decisions) -> Target<'a> {
        let store = store_at(path.into(), &Config::default());
        Target { store, decisions, attachments: None, on_wait: None }
    }
}

/// Merges the exports at `sources` into the database at `target`, in this order.
///
/// A folder of zips is a folder of exports. If an export cannot be read, the report says so, and the
/// others are imported. It is an error only if no export can be read. A missing database is created
/// with the first conversation. The target may also be the address of an OpenSearch index that needs
/// no password. Whole canonical databases can be imported into such an index too.
pub fn import(
    sources: &[PathBuf],
    target: &Path,
    branches: Branches,
    progress: &dyn Fn(ImportProgress),
) -> Result<Report, Error> {
    let decisions = Decisions::default();
    let target = Target::database(target, &decisions);
    import_until(sources, &target, branches, &Call::default(), progress)
}

/// Does the same as [`fn@import`], but can be stopped. After a stop, the database has all conversations that
/// were read, and the report says that the import was stopped.
pub(crate) fn import_until(
    sources: &[PathBuf],
    target: &Target<'_>,
    branches: Branches,
    call: &Call,
    progress: &dyn Fn(ImportProgress),
) -> Result<Report, Error> {
    #[cfg(feature = "cluster")]
    if let Some(cluster) = target.store.cluster() {
        let decisions = target.decisions;
        let how = clustered::ClusterImport { cluster, branches, decisions, call, progress };
        return clustered::import_into_cluster(sources, &how);
    }
    let Some(database) = target.store.database() else {
        return Err(db::Error::NotFound { path: target.store.address().to_string().into() }.into());
    };
    let begun = Instant::now();
    let mut report = Report::default();
    let writer = Writer::open_telling(database, target.on_wait)?;
    let exports = opened(sources, &mut report);
    let total = exports.iter().map(|(_, export)| export.size()).sum();
    let store = target.attachments.as_ref();
    let stamps: Vec<_> =
        exports.iter().map(|(path, _)| known_import::settled_stamp(path)).collect();
    // Exports are skipped together, because a transcript may repeat messages of another.
    let known = KnownImports::new(target.decisions, store, branches);
    let earlier = exports
        .iter()
        .zip(&stamps)
        .map(|((path, _), stamp)| writer.earlier_import(&known.export(path, stamp.as_ref()?)));
    let earlier: Option<Vec<EarlierImport>> = earlier.collect();
    if report.failures.is_empty()
        && let Some(earlier) = earlier.filter(|earlier| !earlier.is_empty())
    {
        earlier.into_iter().for_each(|earlier| report.add_unchanged(earlier));
        progress(ImportProgress { done: total, total, ..ImportProgress::default() });
        report.took = begun.elapsed();
        return Ok(report);
    }
    let mut reading = ImportReading {
        target,
        branches,
        call,
        progress,
        last_progress: Cell::new(ImportProgress { total, ..ImportProgress::default() }),
        writer,
        attachments: store.map(|store| AttachmentImport::new(store, call)),
        report,
    };
    let mut is_any_read = false;
    let mut read_stamps = Vec::new();
    for (number, ((source, export), stamp)) in exports.into_iter().zip(stamps).enumerate() {
        if call.stop.requested() {
            reading.report.stopped = true;
            break;
        }
        let read = reading.read(number, export).and_then(|(is_whole, counts)| {
            reading.writer.note(&source, is_whole, counts)?;
            Ok(is_whole)
        });
        is_any_read |= read.map_err(|error| error.after(reading.writer.stored()))?;
        read_stamps.extend(stamp.map(|stamp| (source, stamp)));
    }
    let ImportReading { writer, mut report, attachments, .. } = reading;
    let stored = writer.stored();
    let is_ambiguous = writer.is_ambiguous();
    report.changes = writer.finish().map_err(|error| Error::from(error).after(stored))?;
    report.attachments = attachments.map(AttachmentImport::publish);
    if !report.stopped && !is_ambiguous && report.missing().is_empty() {
        let known = KnownImports::new(target.decisions, store, branches);
        // Without the record, the next import reads the exports again.
        let _ = known.remember(database, &read_stamps);
    }
    report.took = begun.elapsed();
    if !is_any_read && report.tally.conversations == 0 && !report.failures.is_empty() {
        let mut failures = report.failures.iter();
        let first = failures.position(|it| !matches!(it, import::Error::MissingPart { .. }));
        return Err(report.failures.swap_remove(first.unwrap_or(0)).into());
    }
    Ok(report)
}

struct ImportReading<'a> {
    target: &'a Target<'a>,
    branches: Branches,
    call: &'a Call,
    progress: &'a dyn Fn(ImportProgress),
    last_progress: Cell<ImportProgress>,
    writer: Writer,
    attachments: Option<AttachmentImport<'a>>,
    report: Report,
}

impl ImportReading<'_> {
    /// Merges one export. Returns whether all of it was read, and how much.
    fn read(&mut self, number: usize, mut export: Export) -> Result<(bool, SourceCounts), Error> {
        let ImportReading { target, branches, call, .. } = *self;
        let ImportReading { writer, attachments, report, last_progress, progress, .. } = self;
        let tell = |change: &dyn Fn(&mut ImportProgress)| {
            let mut now = last_progress.get();
            change(&mut now);
            last_progress.set(now);
            progress(now);
        };
        let tally = &mut report.tally;
        let before = (tally.conversations, tally.messages, tally.skipped_count);
        let damaged = tally.damaged.len();
        let total = export.size();
        let mut left_out = (0, 0);
        tell(&|now| now.source = SourceProgress { number, total, ..SourceProgress::default() });
        let advance = |bytes: u64| {
            tell(&|now| {
                now.done += bytes;
                now.source.done += bytes;
            });
        };
        let read = export.read(branches, tally, &advance, &mut |format, conversation| {
            call.stop.check(ReadError::Stopped)?;
            let origin = conversation.origin.as_ref();
            let is_forgotten = target.decisions.is_forgotten(&conversation.id, format.name());
            if is_forgotten || origin.is_some_and(|origin| target.decisions.is_excluded(origin)) {
                *if is_forgotten { &mut report.forgotten } else { &mut report.excluded } += 1;
                left_out.0 += 1;
                left_out.1 += conversation.messages.len() as u64;
                return Ok(());
            }
            tell(&|now| {
                now.source.service.get_or_insert(format.label());
                now.source.conversations += 1;
                now.source.messages += conversation.messages.len() as u64;
            });
            let row = writer.put(format.name(), &conversation)?;
            if let Some(attachments) = attachments {
                attachments.add(row, &conversation);
            }
            Ok(())
        });
        tally.conversations = tally.conversations.saturating_sub(left_out.0);
        tally.messages = tally.messages.saturating_sub(left_out.1);
        let counts = SourceCounts {
            conversations: tally.conversations - before.0,
            messages: tally.messages - before.1,
            skipped: tally.skipped_count - before.2,
        };
        let is_whole = read.is_ok() && tally.damaged.len() == damaged;
        match read {
            Ok(()) => {}
            Err(ReadError::Export(error)) => report.failures.push(error),
            Err(ReadError::Database(error)) => return Err(error.into()),
            Err(ReadError::Stopped) => report.stopped = true,
        }
        if let Some(attachments) = attachments {
            attachments.store_pending(&mut export, &|| tell(&|now| now.source.files += 1));
            report.stopped |= call.stop.requested();
        }
        Ok((is_whole, counts))
    }
}

/// Opens the exports at some paths, and adds those that cannot be opened to the report.
fn opened(sources: &[PathBuf], report: &mut Report) -> Vec<(PathBuf, Export)> {
    let mut exports = Vec::new();
    let mut paths = Vec::new();
    for source in sources {
        let expanded = import::expanded(source);
        if expanded.exports.first() != Some(source) {
            report.foreign_zips += expanded.foreign_zips as u64;
            report.failures.extend(import::undownloaded(source));
            let lines = expanded.left_out.into_iter().map(|line| (line, 1));
            report.tally.left_out.extend(lines);
        }
        paths.extend(expanded.exports);
    }
    // A manifest names all zips that are missing.
    if !report.failures.iter().any(import::Error::is_only_links) {
        report.failures.extend(import::missing_parts(&paths));
    }
    for path in paths {
        match Export::open(&path) {
            Ok(export) => exports.push((path, export)),
            Err(error) => report.failures.push(error),
        }
    }
    exports
}

#[cfg(feature = "cluster")]
impl From<cluster::Error> for Error {
    fn from(error: cluster::Error) -> Error {
        match error {
            cluster::Error::Stopped => db::Error::Stopped.into(),
            error => Error::Cluster { reason: error.to_string() },
        }
    }
}

/// The reason why reading an export ended early.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Export(#[from] import::Error),
    #[error(transparent)]
    Database(#[from] writer::Error),
    #[error("stopped")]
    Stopped,
}

/// The exports in a folder, errors of zips that cannot be read or are not downloaded yet, and lines about parts
/// of exports that imports leave out. The flag says whether the export was imported into the database and has
/// not changed since.
type FoundExports = (Vec<(FoundExport, bool)>, Vec<import::Error>, Vec<String>);

/// Returns the exports in a folder, the newest first. Fails if the folder cannot be read.
pub fn found_in(folder: &Path, target: &StoreAddress) -> io::Result<FoundExports> {
    let imports = target.path().map(|path| db::read(path, &Call::default(), db::imports));
    let imports = imports.and_then(|read| read.ok()).unwrap_or_default();
    let (exports, failures, left_out) = import::exports_in(folder)?;
    let mut found = Vec::new();
    for export in exports {
        let path = export.path.to_string_lossy();
        let since = export.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let is_imported = since.is_some_and(|since| {
            imports.iter().any(|(known, at)| *known == path && *at >= since.as_secs_f64())
        });
        found.push((export, is_imported));
    }
    Ok((found, failures, left_out))
}

/// Returns the titles of the imported conversations that changed last, at most `most`.
pub fn newest_titles(target: &Path, most: usize) -> Vec<String> {
    db::read(target, &Call::default(), |database| db::newest_titles(database, most))
        .unwrap_or_default()
}

#[cfg(feature = "cluster")]
mod clustered {
    use std::path::{Path, PathBuf};
    use std::time::Instant;

    use super::{Error, ImportProgress, Report, SourceProgress, Target, import_until};
    use crate::decisions::Decisions;
    use verbatim_base::{call::Call, model::StoredConversation, private};
    use verbatim_chats::{db, import::Branches};
    use verbatim_cluster::{Cluster, Importer};

    pub(super) struct ClusterImport<'a> {
        pub(super) cluster: &'a Cluster,
        pub(super) branches: Branches,
        pub(super) decisions: &'a Decisions,
        pub(super) call: &'a Call,
        pub(super) progress: &'a dyn Fn(ImportProgress),
    }

    /// Merges exports and whole canonical databases into the index of a cluster.
    ///
    /// Exports are first merged with each other in a temporary database. Readers see all conversations of a
    /// database or none. A stopped import continues when it is repeated.
    pub(super) fn import_into_cluster(
        sources: &[PathBuf],
        options: &ClusterImport<'_>,
    ) -> Result<Report, Error> {
        let begun = Instant::now();
        let (databases, exports): (Vec<&PathBuf>, Vec<&PathBuf>) =
            sources.iter().partition(|source| db::is_canonical(source));
        // A wrong password should fail before the exports are read.
        options.cluster.client()?;
        let mut report = Report::default();
        if !exports.is_empty() {
            let exports: Vec<PathBuf> = exports.into_iter().cloned().collect();
            let folder = private::temporary_dir().map_err(|source| {
                Error::Database(db::writer::Error::Io { path: std::env::temp_dir(), source })
            })?;
            let target = folder.path().join("import.db");
            let ClusterImport { branches, decisions, call, progress, .. } = *options;
            let into = Target::database(&target, decisions);
            report = import_until(&exports, &into, branches, call, progress)?;
            report.changes = db::writer::Changes::default();
            if !report.stopped && target.is_file() {
                options.copy(
                    &target,
                    sources.len(),
                    &mut Report::default(),
                    &mut report.changes,
                )?;
            }
        }
        for (number, database) in databases.into_iter().enumerate() {
            let mut changes = std::mem::take(&mut report.changes);
            options.copy(database, sources.len() + 1 + number, &mut report, &mut changes)?;
            report.changes = changes;
        }
        report.took = begun.elapsed();
        Ok(report)
    }

    impl ClusterImport<'_> {
        /// Copies the conversations of a database that changed, all of them or none. `number` is its place in
        /// the progress.
        fn copy(
            &self,
            path: &Path,
            number: usize,
            report: &mut Report,
            changes: &mut db::writer::Changes,
        ) -> Result<(), Error> {
            if let Some(why) = db::read(path, self.call, db::obstacle)? {
                let reason = format!("{}: cannot be copied into a cluster: {why}", path.display());
                return Err(Error::Cluster { reason });
            }
            // Both passes use one transaction, so that the second pass reads the same state as the first.
            let database = db::open(path, self.call)?;
            let mut importer = Importer::new(self.cluster.client()?, &self.call.stop)?;
            let mut failure = None;
            let mut copied = SourceProgress { number, is_copy: true, ..SourceProgress::default() };
            db::each_conversation(&database, &mut |_| true, &mut |conversation, messages| {
                if !self.takes(&conversation, report) {
                    return true;
                }
                report.tally.conversations += 1;
                report.tally.messages += messages.len() as u64;
                copied.conversations += 1;
                copied.messages += messages.len() as u64;
                self.tell(copied);
                failure = importer.plan(&conversation, &messages).err();
                failure.is_none()
            })?;
            if let Some(error) = failure {
                return Err(error.into());
            }
            if !database.steady() {
                return Err(db::Error::Unsteady { path: path.to_owned() }.into());
            }
            if importer.begin()? {
                let wanted = importer.ids_to_put();
                copied.total = importer.to_write;
                db::each_conversation(
                    &database,
                    &mut |id| wanted.contains(id),
                    &mut |it, messages| {
                        copied.done += messages.len() as u64;
                        self.tell(copied);
                        failure = importer.put(&it, messages).err();
                        failure.is_none()
                    },
                )?;
            }
            if let Some(error) = failure {
                return Err(error.into());
            }
            let imported = importer.finish()?;
            changes.new_conversations += imported.new_conversations;
            changes.updated_conversations += imported.updated_conversations;
            changes.unchanged_conversations += imported.unchanged_conversations;
            changes.new_messages += imported.new_messages;
            Ok(())
        }

        fn tell(&self, now: SourceProgress) {
            (self.progress)(ImportProgress { done: now.done, total: now.total, source: now });
        }

        /// Returns whether a conversation may be stored. Counts conversations that may not.
        fn takes(&self, conversation: &StoredConversation, report: &mut Report) -> bool {
            let service = conversation.provenance.as_ref().map_or("", |it| it.service.as_str());
            if self.decisions.is_forgotten(&conversation.id, service) {
                report.forgotten += 1;
                return false;
            }
            if conversation.origin.as_ref().is_some_and(|origin| self.decisions.is_excluded(origin))
            {
                report.excluded += 1;
                return false;
            }
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_read_before_a_stop_is_in() {
        let folder = tempfile::tempdir().unwrap();
        let chats: Vec<String> = (0..5)
            .map(|number| {
                format!(
                    r#"{{"uuid": "{number}", "chat_messages": [{{"uuid": "m{number}", "text": "red"}}]}}"#
                )
            })
            .collect();
        let export = folder.path().join("conversations.json");
        fs::write(&export, format!("[{}]", chats.join(","))).unwrap();
        let target = folder.path().join("a.db");
        let call = Call::default();
        let after_two = |progress: ImportProgress| {
            if progress.source.conversations == 2 {
                call.stop.request();
            }
        };
        let sources = [export];
        let decisions = Decisions::default();
        let into = Target::database(&target, &decisions);
        let report = import_until(&sources, &into, Branches::Shown, &call, &after_two).unwrap();
        assert!(report.stopped && report.changes.new_conversations == 2, "{report:?}");
        let counted = db::read(&target, &Call::default(), db::counts).unwrap();
        assert_eq!(counted, (2, 2));
        let rest = import(&sources, &target, Branches::Shown, &|_| {}).unwrap();
        assert!(!rest.stopped && rest.changes.new_conversations == 3, "{rest:?}");
    }

    fn write(path: &Path, json: &str) -> PathBuf {
        fs::write(path, json).unwrap();
        path.to_owned()
    }

    /// Returns the rows of a query, after a check that the database is intact.
    fn rows(database: &Path, sql: &str) -> Vec<String> {
        let connection = rusqlite::Connection::open(database).unwrap();
        let sound: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    /// Query for everything that an import stores, except the conversation with the id `other`.
    const ALL: &str = "
        SELECT quote(id) || quote(create_time) || quote(title) FROM conversations WHERE id != 'other'
        UNION ALL SELECT quote(id) || quote(conversation_id) || quote(role) || quote(content)
            || quote(create_time) || position FROM messages WHERE conversation_id != 'other'
        UNION ALL SELECT quote(conversation_id) || quote(source) || quote(model) || quote(link)
            FROM verbatim_conversations WHERE conversation_id != 'other'
        UNION ALL SELECT quote(message_id) || quote(export_id) || quote(model) FROM verbatim_messages
        UNION ALL SELECT quote(message_id) || number || quote(name) FROM verbatim_attachments
        UNION ALL SELECT quote(message_id) || quote(follows) FROM verbatim_branches
        ORDER BY 1";

    #[test]
    fn a_new_database_holds_what_an_old_one_would() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let node = |id: &str, parent: &str, text: &str| {
            format!(
                r#""{id}": {{"id": "{id}", "parent": "{parent}", "message": {{"id": "{id}",
                "author": {{"role": "user"}}, "create_time": 1700000000.5,
                "content": {{"content_type": "text", "parts": ["{text}"]}},
                "metadata": {{"model_slug": "m", "attachments": [{{"name": "{text}.txt"}}]}}}}}}"#
            )
        };
        let chat = |id: &str, text: &str| {
            let nodes = [node("a", "", text), node("b", "a", "two"), node("c", "a", "three")];
            format!(
                r#"{{"id": "{id}", "title": "{text}", "create_time": 5, "current_node": "b",
                "mapping": {{{}}}}}"#,
                nodes.join(",")
            )
        };
        // Message ids are repeated, one conversation comes twice, and two services use the same id.
        let chats = [chat("1", "red"), chat("2", "green"), chat("1", "blue"), chat("3", "red")];
        let first = write(&file("a.json"), &format!("[{}]", chats.join(",")));
        let second = write(
            &file("b.json"),
            r#"[{"uuid": "2", "chat_messages": [{"uuid": "b", "text": "four"}]},
                {"uuid": "9", "chat_messages": [{"uuid": "z", "text": "five"}]}]"#,
        );
        let other = write(
            &file("c.json"),
            r#"[{"uuid": "other", "chat_messages": [{"uuid": "o", "text": "o"}]}]"#,
        );
        let sources = [first, second];
        let into = |sources: &[PathBuf], name: &str| {
            import(sources, &file(name), Branches::All, &|_| {}).unwrap().changes
        };
        let new = into(&sources, "new.db");
        into(&[other], "old.db");
        assert_eq!(into(&sources, "old.db"), new);
        assert_eq!(rows(&file("new.db"), ALL), rows(&file("old.db"), ALL));
        assert_eq!(
            rows(
                &file("new.db"),
                "SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql > ''"
            )
            .len(),
            1
        );
        let again = into(&sources, "new.db");
        assert!(!again.any(), "{again:?}");
    }

    #[test]
    fn two_imports_make_one_database() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let chat = |id: &str, text: &str| {
            format!(
                r#"[{{"uuid": "{id}", "chat_messages": [{{"uuid": "m{id}", "text": "{text}"}}]}}]"#
            )
        };
        let slow = write(&file("a.json"), &chat("1", "red"));
        let fast = write(&file("b.json"), &chat("2", "green"));
        let target = file("chats.db");
        let meanwhile = |progress: ImportProgress| {
            if progress.source.conversations == 1 && !target.exists() {
                import(std::slice::from_ref(&fast), &target, Branches::Shown, &|_| {}).unwrap();
            }
        };
        let report = import(&[slow], &target, Branches::Shown, &meanwhile).unwrap();
        assert_eq!(report.changes.new_conversations, 1, "{report:?}");
        let paths = rows(&target, "SELECT path FROM verbatim_imports ORDER BY 1");
        assert_eq!(paths.len(), 2, "{paths:?}");
        assert_eq!(rows(&target, "SELECT content FROM messages ORDER BY 1"), ["green", "red"]);
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 3, "nothing is left behind");
    }
}
