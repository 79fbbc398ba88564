//! Imports exports and whole canonical databases into an index of a cluster.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use super::{Error, Progress, Report, import_until};
use crate::{
    cluster::{self, Cluster, Importer},
    db,
    engine::withheld::Withheld,
    import::Branches,
    model::{Stop, StoredConversation, StoredMessage},
    private,
};

impl From<cluster::Error> for Error {
    fn from(error: cluster::Error) -> Error {
        match error {
            cluster::Error::Stopped => db::Error::Stopped.into(),
            error => Error::Cluster { reason: error.to_string() },
        }
    }
}

/// How an import into a cluster is done.
pub(crate) struct ClusterImport<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) branches: Branches,
    pub(crate) withheld: &'a Withheld,
    pub(crate) stop: &'a Stop,
}

/// Merges exports and whole canonical databases into the index of a cluster.
///
/// Exports are first merged into a temporary database, so that they are merged with each other as
/// those of a file are. Readers see all of a database or nothing of it. When it is stopped, the same
/// import goes on later.
pub(crate) fn import_into_cluster(
    sources: &[PathBuf],
    options: &ClusterImport<'_>,
    progress: &dyn Fn(Progress),
) -> Result<Report, Error> {
    let begun = Instant::now();
    let (databases, exports): (Vec<&PathBuf>, Vec<&PathBuf>) =
        sources.iter().partition(|source| db::is_canonical(source));
    // A wrong password is better known before the exports are read.
    options.cluster.client()?;
    let mut report = Report::default();
    if !exports.is_empty() {
        let exports: Vec<PathBuf> = exports.into_iter().cloned().collect();
        let failed =
            |source| Error::Database(db::writer::Error::Io { path: std::env::temp_dir(), source });
        let folder = private::temporary_dir().map_err(failed)?;
        let target = folder.path().join("import.db");
        let ClusterImport { branches, withheld, stop, .. } = *options;
        report = import_until(&exports, &target, branches, withheld, stop, progress)?;
        report.changes = db::writer::Changes::default();
        if !report.stopped && target.is_file() {
            options.copy(&target, &mut Report::default(), &mut report.changes)?;
        }
    }
    for database in databases {
        let mut changes = std::mem::take(&mut report.changes);
        options.copy(database, &mut report, &mut changes)?;
        report.changes = changes;
    }
    report.took = begun.elapsed();
    Ok(report)
}

impl ClusterImport<'_> {
    /// Copies the conversations of a database that changed, all of them or none.
    fn copy(
        &self,
        path: &Path,
        report: &mut Report,
        changes: &mut db::writer::Changes,
    ) -> Result<(), Error> {
        let obstacle = db::read(path, self.stop, db::obstacle)?;
        if let Some(why) = obstacle {
            let reason = format!("{}: cannot be copied into a cluster: {why}", path.display());
            return Err(Error::Cluster { reason });
        }
        // One transaction for both passes: the second must find what the first one saw.
        let database = db::open(path, self.stop)?;
        let mut importer = Importer::new(self.cluster.client()?, self.stop)?;
        let mut failure = None;
        db::carry(&database, &mut |_| true, &mut |conversation, messages| {
            let is_in = self.takes(&conversation, report);
            if !is_in {
                return true;
            }
            report.tally.conversations += 1;
            report.tally.messages += messages.len() as u64;
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
            let mut failure = None;
            let put = |importer: &mut Importer<'_>,
                       it: StoredConversation,
                       messages: Vec<StoredMessage>| {
                importer.put(&it, messages).err()
            };
            let wanted = importer.wanted();
            db::carry(&database, &mut |id| wanted.contains(id), &mut |it, messages| {
                failure = put(&mut importer, it, messages);
                failure.is_none()
            })?;
            if let Some(error) = failure {
                return Err(error.into());
            }
        }
        let imported = importer.finish()?;
        changes.new_conversations += imported.new_conversations;
        changes.updated_conversations += imported.updated_conversations;
        changes.unchanged_conversations += imported.unchanged_conversations;
        changes.new_messages += imported.new_messages;
        Ok(())
    }

    /// Returns whether a conversation may be stored; counts it otherwise.
    fn takes(&self, conversation: &StoredConversation, report: &mut Report) -> bool {
        let service = conversation.provenance.as_ref().map_or("", |it| it.service.as_str());
        if self.withheld.is_forgotten(&conversation.id, service) {
            report.forgotten += 1;
            return false;
        }
        if conversation.origin.as_ref().is_some_and(|origin| self.withheld.is_excluded(origin)) {
            report.excluded += 1;
            return false;
        }
        true
    }
}
