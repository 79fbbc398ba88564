//! The paths of databases, indexes and transcripts.

mod store_address;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::{fs, fs::Metadata, time::SystemTime};

use crate::error::{Error, Result};
use verbatim_base::{call::Call, files};
use verbatim_chats::db;
#[cfg(feature = "cluster")]
use verbatim_cluster::{Access, Address, Cluster};
use verbatim_embed::{Key, Provider};

pub use store_address::StoreAddress;

/// The name of the transcript store in the home folder.
pub(crate) const TRANSCRIPTS: &str = "transcripts.db";

/// Which transcripts of the transcript store are searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoredTranscripts {
    /// All, whatever folder they were read from: a home may have moved, and folders may have been renamed.
    #[default]
    All,
    /// Those of the folders in [`Config::archives`].
    OfArchives,
    /// None, and none are read either.
    None,
}

/// The paths and the model that flags and the environment choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The database or cluster index that the user named, if any. The database must exist.
    pub db: Option<StoreAddress>,
    /// The folder that holds `db/` and `index/`.
    pub home: PathBuf,
    /// Another `db/`, in the working folder. If it holds a canonical database, this database is
    /// searched instead of the home's. Verbatim never writes to this folder.
    pub local_databases: Option<PathBuf>,
    /// The index folder, if the user named one.
    pub index: Option<PathBuf>,
    /// Folders of dated conversations that may be searched.
    pub workspaces: Vec<PathBuf>,
    /// The folders of coding agents' transcripts.
    pub archives: Vec<PathBuf>,
    /// Globs of project names and of folders. The transcripts in them are excluded from everything.
    pub exclude: Vec<String>,
    /// Folders of transcripts that do not exist now. They are read once they do.
    pub absent_archives: Vec<PathBuf>,
    /// Which transcripts of the store are searched.
    pub stored_transcripts: StoredTranscripts,
    /// Whether the messages of a deleted transcript are removed from the transcript store.
    pub forget_deleted: bool,
    /// The provider of vectors.
    pub embeddings: Provider,
    /// The share of vectors in ranked search, in percent, if the user chose one; else the model has one.
    pub vector_share: Option<u8>,
    /// The credentials of the cluster that `db` names: `user:password` or `ApiKey KEY`.
    pub cluster_login: Option<Key>,
    /// The file with the trusted certificates for connections to a cluster.
    pub cluster_ca: Option<PathBuf>,
    /// Whether questions leave the indexes unchanged. Otherwise they refresh an index if that is quick.
    pub leave_indexes: bool,
}

impl Config {
    /// Returns the folder in the home folder to which imports are written.
    pub fn db_folder(&self) -> PathBuf {
        self.home.join("db")
    }

    /// Returns the working folder's `db/` if the searched database is in it.
    pub fn local_folder(&self) -> Option<&Path> {
        let folder = self.local_databases.as_deref().filter(|_| self.db.is_none())?;
        newest_canonical(folder).is_ok_and(|found| found.is_some()).then_some(folder)
    }

    /// Returns the databases in the database folders that are not searched. The flag says whether the
    /// database is canonical. Empty if the user named the database.
    pub fn passed_over(&self) -> Vec<(PathBuf, bool)> {
        let Ok(StoreAddress::Database(chosen)) = self.export_store() else { return Vec::new() };
        if self.db.is_some() {
            return Vec::new();
        }
        // Non-canonical databases in the working folder have nothing to do with chats.
        let local = self.local_folder().map(Path::to_owned);
        let folders = local.into_iter().chain([self.db_folder()]);
        let found = folders.filter_map(|folder| databases(&folder).ok()).flatten();
        let mut others: Vec<PathBuf> = found.filter(|path| *path != chosen).collect();
        others.sort();
        others.into_iter().map(|path| (path.clone(), db::is_canonical(&path))).collect()
    }

    pub(crate) fn database_folders(&self) -> impl Iterator<Item = PathBuf> {
        self.local_databases.iter().cloned().chain([self.db_folder()])
    }

    /// Returns the folder of all derived files, which can be rebuilt.
    pub fn index_folder(&self) -> PathBuf {
        self.index.clone().unwrap_or_else(|| self.home.join("index"))
    }

    /// Returns the store of the export: the database or the cluster that the user named, else the newest
    /// canonical `*.db` in the working folder's `db/`, else the newest one in the home's `db/`.
    ///
    /// It is looked up at every call, so that a file that was added later is found.
    pub fn export_store(&self) -> Result<StoreAddress> {
        match &self.db {
            Some(StoreAddress::Cluster(address)) => {
                #[cfg(feature = "cluster")]
                Address::parse(address)?;
                #[cfg(not(feature = "cluster"))]
                return Err(Error::Cluster { reason: store_address::no_clusters(address) });
                #[cfg(feature = "cluster")]
                return Ok(StoreAddress::Cluster(address.clone()));
            }
            Some(StoreAddress::Database(path)) => {
                return match files::check(path) {
                    Ok(()) => Ok(path.clone().into()),
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::NotFound | ErrorKind::NotADirectory
                        ) =>
                    {
                        Err(db::Error::NotFound { path: path.clone() }.into())
                    }
                    Err(source) => Err(db::Error::Io { path: path.clone(), source }.into()),
                };
            }
            None => {}
        }
        // A `db` that Verbatim cannot read belongs to another program.
        if let Some(folder) = &self.local_databases
            && let Ok(Some(path)) = newest_canonical(folder)
        {
            return Ok(path.into());
        }
        let folder = self.db_folder();
        match newest(&folder) {
            Ok(Some(path)) => Ok(path.into()),
            Ok(None) => Err(Error::NoDatabase { folder }),
            Err(source) => Err(db::Error::Io { path: folder, source }.into()),
        }
    }

    /// Returns the index at the address of a cluster. If the address is wrong, the first request fails.
    #[cfg(feature = "cluster")]
    pub(crate) fn cluster(&self, address: &str) -> Cluster {
        let login = self.cluster_login.as_ref().map(|login| login.as_str().to_owned());
        let access = Access { login, ca: self.cluster_ca.clone() };
        Cluster::at(address, access)
    }

    /// Returns the default target of an import.
    pub fn import_store(&self) -> StoreAddress {
        self.db.clone().unwrap_or_else(|| self.db_folder().join("verbatim.db").into())
    }

    /// Returns the database of the transcript store. It still has transcripts that were deleted, so it is
    /// not in the index folder, which users may delete.
    ///
    /// All configurations of a home share one store. Each configuration adds the files of its folders.
    pub fn archive_database(&self) -> PathBuf {
        if !self.has_transcripts() {
            return self.index_folder().join("archive.db");
        }
        self.home.join(TRANSCRIPTS)
    }

    /// Returns whether transcripts are read and searched.
    pub(crate) fn has_transcripts(&self) -> bool {
        self.stored_transcripts != StoredTranscripts::None
    }

    /// Returns the folders of transcripts to read now: those that are named, and of the others those that
    /// exist. A coding agent may be used for the first time while a server runs.
    pub(crate) fn archives_now(&self) -> impl Iterator<Item = &PathBuf> {
        self.archives.iter().chain(self.absent_archives.iter().filter(|folder| folder.is_dir()))
    }

    /// Returns the folders of transcripts with symbolic links resolved, whether they exist or not.
    pub(crate) fn archive_roots(&self) -> Vec<PathBuf> {
        self.archives
            .iter()
            .chain(&self.absent_archives)
            .map(|folder| without_links(folder))
            .collect()
    }

    /// Returns the folders whose stored transcripts alone are searched; `None` if all are.
    pub(crate) fn searched_roots(&self) -> Option<Vec<PathBuf>> {
        (self.stored_transcripts != StoredTranscripts::All).then(|| self.archive_roots())
    }

    /// Returns whether a path is in one of the configured folders of transcripts.
    pub fn follows(&self, path: &Path) -> bool {
        let Ok(path) = dunce::canonicalize(path) else { return false };
        let roots = self.archives_now().filter_map(|archive| dunce::canonicalize(archive).ok());
        roots.into_iter().any(|root| path.starts_with(root))
    }

    /// Returns the transcript store of the home, if there is one.
    pub(crate) fn transcript_store(&self) -> Option<PathBuf> {
        Some(self.home.join(TRANSCRIPTS)).filter(|path| path.is_file())
    }

    /// Returns the transcript stores that were set aside because they were damaged.
    pub(crate) fn damaged_stores(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.home).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| is_set_aside(path)).collect();
        found.sort();
        found
    }

    /// Returns the databases in the home's `db/`, to which imports may have been written.
    pub(crate) fn home_databases(&self) -> Vec<PathBuf> {
        databases(&self.db_folder()).unwrap_or_default()
    }

    /// Returns the database that threads are recorded in. It is not in `db/`, where the newest file
    /// counts as the export.
    pub fn threads_database(&self) -> PathBuf {
        self.home.join("threads.db")
    }
}

/// Returns whether a path is that of a transcript store that was set aside.
fn is_set_aside(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = name.strip_prefix("transcripts.damaged-").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns an absolute path with symbolic links resolved in the part of it that exists.
pub(crate) fn without_links(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = path.ancestors().find_map(|existing| {
        let rest = path.strip_prefix(existing).ok()?;
        Some(dunce::canonicalize(existing).ok()?.join(rest))
    });
    // `components` removes the separator at the end that joining an empty path adds.
    real.map_or_else(|| path.clone(), |real| real.components().collect())
}

/// Returns the newest canonical database of a folder, else the newest complete one. A file that is still
/// being copied is returned only if there is no complete one.
fn newest(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut found = databases(folder)?;
    let chosen = match found.len() {
        // A folder's only database is chosen even if it is unusable: opening it gives the error message.
        0 | 1 => None,
        _ => found
            .iter()
            .rposition(|path| db::is_canonical(path))
            .or_else(|| found.iter().rposition(|path| db::is_whole(path))),
    };
    let last = found.len().checked_sub(1);
    Ok(chosen.or(last).map(|at| found.swap_remove(at)))
}

fn newest_canonical(folder: &Path) -> io::Result<Option<PathBuf>> {
    Ok(databases(folder)?.into_iter().rfind(|path| db::is_canonical(path)))
}

/// Returns the `*.db` files of a folder, oldest first, and by name if equally old. Whatever else has such a name
/// counts as the oldest, so that opening it says what it is. Returns none if the folder does not exist.
fn databases(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound && !files::is_there(folder) => {
            return Ok(Vec::new());
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(io::Error::other("it is a link to something that is gone, not a folder"));
        }
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|name| name != "db") {
            continue;
        }
        let metadata = fs::metadata(&path).ok().filter(Metadata::is_file);
        let modified = metadata.and_then(|metadata| metadata.modified().ok());
        found.push((modified.unwrap_or(SystemTime::UNIX_EPOCH), path));
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Returns whether an import may write to a database that the user searches: the database does not exist
/// or an import made it. Other files also return true, because opening them explains what is wrong.
pub fn may_write(target: &Path) -> Result<bool> {
    if fs::metadata(target).map_or(0, |metadata| metadata.len()) == 0 {
        return Ok(true);
    }
    match db::read(target, &Call::default(), db::is_imported) {
        Err(db::Error::NotCanonical { .. } | db::Error::NotADatabase { .. }) => Ok(true),
        answer => Ok(answer?),
    }
}
