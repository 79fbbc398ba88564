//! Receives an export that was dropped on the page, and imports it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{future::poll_fn, pin::Pin, sync::Arc};

use axum::body::{Body, HttpBody};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tempfile::TempDir;

use super::import_state::{Outcome, Stage};
use super::site::SiteState;
use crate::web::search::page_query::fields;
use verbatim_answer::import_report::{Remedies, left_out, stored, unindexed, vectors_left};
use verbatim_base::{call::Call, files, private};
use verbatim_engine::import::{ImportProgress, may_write};
use verbatim_engine::{Branches, ImportOptions, ImportStep, IndexStep, SourceKind, StoreAddress};
use verbatim_text::amount::bytes;

/// The maximum size of a received file in bytes. Exports with many pictures have some gigabytes.
pub(super) const MOST_UPLOAD_BYTES: u64 = 16 << 30;

const MOST_NAME: usize = 200;

const UPLOAD: &str = ".upload-";

/// The name of the file that is locked while the folder of a received file is in use.
const IN_USE: &str = "lock";

/// Receives a file as the body of a request, and starts the import. The page shows the progress.
pub(crate) async fn receive(
    State(site): State<Arc<SiteState>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let query = query.as_deref().unwrap_or_default();
    let name = fields(query).find(|(name, _)| name == "name");
    let name = plain_name(&name.map(|(_, name)| name).unwrap_or_default());
    let branches = if fields(query).any(|(name, all)| name == "branches" && all == "all") {
        Branches::All
    } else {
        Branches::Shown
    };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
    if !site.imports.begin(&name, length) {
        return (StatusCode::CONFLICT, "Another import is under way.").into_response();
    }
    // If the browser disconnects early, this future is dropped, and `unfinished` ends the import.
    let mut unfinished = UploadGuard { site: Arc::clone(&site), is_received: false };
    let received = store(&site, &name, length, body).await;
    unfinished.is_received = true;
    match received {
        Ok((folder, path)) => {
            tokio::task::spawn_blocking(move || {
                let done = verbatim_base::map_faults::caught(|| import(&site, &path, branches));
                drop(folder);
                site.imports.set(match done {
                    Ok(Ok(outcome)) => Stage::Done(outcome),
                    Ok(Err(error)) | Err(error) => Stage::Failed(error),
                });
                site.forget_counts();
            });
            StatusCode::ACCEPTED.into_response()
        }
        Err((status, why)) => {
            site.imports.set(Stage::Failed(why.clone()));
            (status, why).into_response()
        }
    }
}

/// Ends an import if its file did not arrive completely.
struct UploadGuard {
    site: Arc<SiteState>,
    is_received: bool,
}

impl Drop for UploadGuard {
    fn drop(&mut self) {
        if !self.is_received {
            self.site.imports.set(Stage::Failed("The file did not arrive completely.".to_owned()));
        }
    }
}

/// A folder with a received file; dropping it removes the folder.
struct UploadFolder {
    /// The open lock file, dropped first: some systems cannot remove a folder that has an open file.
    _in_use: File,
    _folder: TempDir,
}

/// Removes the folders of received files that ended servers left behind.
pub(crate) fn remove_abandoned(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let is_upload = entry.file_name().to_string_lossy().starts_with(UPLOAD);
        if is_upload
            && files::open(&entry.path().join(IN_USE)).is_ok_and(|file| file.try_lock().is_ok())
        {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

fn too_long() -> (StatusCode, String) {
    let why = format!("The file is longer than {}.", bytes(MOST_UPLOAD_BYTES));
    (StatusCode::PAYLOAD_TOO_LARGE, why)
}

fn not_kept(error: io::Error) -> (StatusCode, String) {
    (StatusCode::INSUFFICIENT_STORAGE, format!("The file cannot be kept: {error}."))
}

/// Writes a body to a file that only its owner can read.
async fn store(
    site: &SiteState,
    name: &str,
    length: Option<u64>,
    body: Body,
) -> Result<(UploadFolder, PathBuf), (StatusCode, String)> {
    if length.is_some_and(|length| length > MOST_UPLOAD_BYTES) {
        return Err(too_long());
    }
    let home = &site.engine.config().home;
    private::create_dir_all(home).map_err(not_kept)?;
    let folder = private::temporary_dir_in(home, UPLOAD).map_err(not_kept)?;
    let in_use = private::create_file(&folder.path().join(IN_USE)).map_err(not_kept)?;
    in_use.lock().map_err(not_kept)?;
    let inner = folder.path().join("file");
    private::create_dir(&inner).map_err(not_kept)?;
    let path = inner.join(name);
    let mut file: File = private::create_file(&path).map_err(not_kept)?;
    let mut body = body;
    let mut done: u64 = 0;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| {
            (StatusCode::BAD_REQUEST, format!("The file did not arrive completely: {error}."))
        })?;
        let Ok(bytes) = frame.into_data() else { continue };
        done += bytes.len() as u64;
        if done > MOST_UPLOAD_BYTES {
            return Err(too_long());
        }
        file.write_all(&bytes).map_err(not_kept)?;
        site.imports.set(Stage::Receiving(done, length));
    }
    file.flush().map_err(not_kept)?;
    Ok((UploadFolder { _in_use: in_use, _folder: folder }, path))
}

/// Makes the folder of a database. Returns an error if an import must not write to the database.
fn prepare(database: &Path) -> Result<(), String> {
    if let Some(folder) = database.parent() {
        private::create_dir_all(folder)
            .map_err(|error| format!("{}: cannot be made: {error}", folder.display()))?;
    }
    match may_write(database) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let database = database.display();
            Err(format!("{database} is not written to, because another program made it."))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn import(site: &SiteState, path: &Path, branches: Branches) -> Result<Outcome, String> {
    let config = site.engine.config();
    let target = config.import_store();
    if let Some(folder) = config.local_folder() {
        return Err(format!(
            "This page searches {}, because the server was started in its folder, and would not \
             find an import into {}. Start `verbatim web` in another folder, or name the database \
             with --db.",
            folder.display(),
            target
        ));
    }
    if let StoreAddress::Database(path) = &target {
        prepare(path)?;
    }
    site.imports.set(Stage::Reading(ImportProgress::default()));
    let options = ImportOptions { branches, resources: site.resources, on_wait: None };
    let imported = site
        .engine
        .import(&[path.to_owned()], options, &Call::default(), &|step| match step {
            ImportStep::Reading(progress) => site.imports.set(Stage::Reading(progress)),
            ImportStep::Imported(_) => site.imports.set(Stage::Indexing(0.0)),
            ImportStep::Indexing(IndexStep::Building(SourceKind::Export, done)) => {
                site.imports.set(Stage::Indexing(done.share()));
            }
            ImportStep::Indexing(_) => {}
        })
        .map_err(|error| without_folder(&error.to_string(), path))?;
    let report = &imported.report;
    let index = imported.index.as_ref();
    let remedies = Remedies { branches: "; the box above imports them too", ..Remedies::default() };
    let lines = left_out(report, remedies);
    let threads = site.resources.threads;
    Ok(Outcome {
        stored: stored(report),
        is_whole: report.missing().is_empty(),
        left_out: lines.iter().map(|line| without_folder(line, path)).collect(),
        unindexed: index.and_then(|index| index.failed.as_ref()).map(unindexed),
        vectors_left: index
            .and_then(|index| index.left)
            .map(|left| vectors_left(left, threads, "the tab Status", "`verbatim reindex`")),
    })
}

/// Returns a message without the path of the temporary folder, which users do not know.
fn without_folder(message: &str, path: &Path) -> String {
    let folder = path.parent().map(|folder| format!("{}/", folder.display())).unwrap_or_default();
    message.replace(&folder, "")
}

/// Returns the last part of a path without unsafe characters.
pub(crate) fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|c| !c.is_control()).collect();
    // The end of a name is kept, because it has the extension.
    let long = plain.len().saturating_sub(MOST_NAME);
    let start = (long..).find(|at| plain.is_char_boundary(*at)).unwrap_or_default();
    match plain[start..].trim_matches(['.', ' ']) {
        "" => "export".to_owned(),
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for (name, plain) in [
            ("chatgpt.zip", "chatgpt.zip"),
            ("../../etc/passwd", "passwd"),
            ("..", "export"),
            ("C:\\x\\a.zip", "a.zip"),
            ("a\0\nb", "ab"),
            ("", "export"),
        ] {
            assert_eq!(plain_name(name), plain, "{name}");
        }
        let long = plain_name(&format!("{}.zip", "😀".repeat(90)));
        assert!(long.len() <= MOST_NAME && long.ends_with("😀.zip"), "{long}");
    }
}
