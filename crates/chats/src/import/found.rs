//! Finds exports in a folder of any files, such as downloads, by the beginnings of the files.

use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use super::export::Export;
use super::format::FileLayout;
use super::package::{self, is_json, is_named_as_conversations, is_zip};
use super::{Error, downloads};

const FILES_LOOKED_AT: usize = 8;

/// How deep the zips of an export are looked for.
const FOLDERS_BELOW: usize = 3;

/// An export that was found.
#[derive(Clone, Debug)]
pub struct FoundExport {
    /// The zip, the folder or the JSON file.
    pub path: PathBuf,
    /// The name of the service, such as `ChatGPT`.
    pub service: &'static str,
    /// The size of the zip or the JSON, in bytes.
    pub bytes: u64,
    /// The time of the last change of `path`; `None` if the system does not report it.
    pub modified: Option<SystemTime>,
}

/// Returns the exports of chat services in a folder, the newest first: zips, JSON files, and unpacked exports
/// in folders. Does not search deeper folders. Also returns the errors of unreadable zips, because these may
/// be exports, and of manifests whose zips are missing; and a line for each zip with another part of an export.
pub fn exports_in(folder: &Path) -> io::Result<(Vec<FoundExport>, Vec<Error>, Vec<String>)> {
    let mut found = Vec::new();
    let mut failures = Vec::new();
    let mut left_out = Vec::new();
    for path in fs::read_dir(folder)?.flatten().map(|entry| entry.path()) {
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let is_zip = metadata.is_file() && is_zip(&path.to_string_lossy());
        let looked_at = if metadata.is_dir() {
            first_json(&path)
        } else {
            // Opening a file that is not a regular file may block forever.
            (is_zip || metadata.is_file() && is_json(&path)).then(|| path.clone())
        };
        let Some(looked_at) = looked_at else { continue };
        let format = match Export::open_outer(&looked_at) {
            Ok(mut export) => {
                let format = export.format(FILES_LOOKED_AT);
                let part = export.part_left_out().filter(|_| is_zip && format.is_none());
                left_out.extend(part.map(|part| line_of(&path, part)));
                format
            }
            Err(error) => {
                failures.extend(Some(error).filter(|_| is_zip));
                None
            }
        };
        let Some(format) = format.filter(|format| matches!(format.layout, FileLayout::Object(_)))
        else {
            continue;
        };
        let bytes = if metadata.is_dir() {
            Export::open_outer(&path).map_or(0, |export| export.size())
        } else {
            metadata.len()
        };
        let service = format.label;
        let modified = metadata.modified().ok();
        found.push(FoundExport { path, service, bytes, modified });
    }
    found.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    failures.sort_by_key(ToString::to_string);
    failures.extend(downloads::undownloaded(folder));
    left_out.sort();
    Ok((found, failures, left_out))
}

/// Returns a line about a zip that holds only a part of an export that imports leave out.
fn line_of(zip: &Path, part: &str) -> String {
    format!("{part}: {}", zip.file_name().unwrap_or_default().to_string_lossy())
}

/// Returns an error for each part of the conversations that is missing between some exports, such as
/// `conversations-001.zip`.
pub fn missing_parts(exports: &[PathBuf]) -> Vec<Error> {
    let names: Vec<_> = exports.iter().map(|path| path.to_string_lossy()).collect();
    let missing = package::missing_between(names.iter().map(AsRef::as_ref)).into_iter();
    let missing = missing.map(PathBuf::from).filter(|path| !downloads::is_here(path));
    missing.map(|path| Error::MissingPart { path }).collect()
}

/// What an import of a path reads.
#[derive(Debug)]
pub struct ExpandedPath {
    /// The exports to read.
    pub exports: Vec<PathBuf>,
    /// The number of zips that hold nothing of an export.
    pub foreign_zips: usize,
    /// A line for each zip with a part of an export that imports leave out.
    pub left_out: Vec<String>,
}

/// Returns what an import of a path reads. For a folder of zips, these are the zips that have chats or cannot be
/// read, sorted by name, and the folder itself if it has chats too; else the path itself. In a folder without zips
/// and chats, the zips may be in a folder below.
pub fn expanded(path: &Path) -> ExpandedPath {
    let mut zips = zips_in(path, 0);
    if path.is_dir() && zips.is_empty() && !has_chats(path) {
        zips = zips_in(path, FOLDERS_BELOW);
    }
    let (mut exports, others): (Vec<PathBuf>, Vec<PathBuf>) =
        zips.into_iter().partition(|zip| may_have_chats(zip));
    exports.sort();
    let mut left_out: Vec<String> = others
        .iter()
        .filter_map(|zip| Some(line_of(zip, &Export::open_outer(zip).ok()?.described_part()?)))
        .collect();
    left_out.sort();
    if exports.is_empty() || has_chats(path) {
        exports.push(path.to_owned());
    }
    ExpandedPath { exports, foreign_zips: others.len() - left_out.len(), left_out }
}

fn has_chats(path: &Path) -> bool {
    Export::open_outer(path).is_ok_and(|mut export| export.format(usize::MAX).is_some())
}

/// Returns the zips in a folder, and in the folders below it to a depth.
fn zips_in(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut zips = Vec::new();
    for entry in entries {
        let path = entry.path();
        if is_zip(&path.to_string_lossy()) && path.is_file() {
            zips.push(path);
        } else if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            zips.extend(zips_in(&path, depth - 1));
        }
    }
    zips
}

/// Returns whether a zip has chats; true if it cannot be checked, so that an import shows the error.
fn may_have_chats(zip: &Path) -> bool {
    match Export::open_outer(zip) {
        Ok(mut export) => export.has_more() || export.format(usize::MAX).is_some(),
        Err(_) => true,
    }
}

/// Returns the first JSON file in a folder whose name begins with `conversations`, as in usual exports.
fn first_json(folder: &Path) -> Option<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| is_named_as_conversations(&path.to_string_lossy()) && path.is_file());
    paths.into_iter().min()
}
