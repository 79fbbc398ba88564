//! The manifests of Claude.ai: files that only list the zips of an export, with links to them.

use std::fs;
use std::path::{Path, PathBuf};

use super::Error;
use super::json::{Raw, Value};
use super::package::is_json;
use verbatim_base::files;

const LONGEST: u64 = 16 << 20;

/// The kinds of zips that an import does not need.
const UNNEEDED: [&str; 2] = ["frames", "light_metadata"];

/// Returns an error for each manifest at a path, a file or a folder, that lists zips that are not beside it.
pub fn undownloaded(path: &Path) -> Vec<Error> {
    lists(path).into_iter().filter_map(|(path, list)| list.missing(&path)).collect()
}

/// Returns the error of an import of a manifest, or of a folder with a manifest and no chats.
pub(super) fn only_links(path: &Path) -> Option<Error> {
    let (path, list) = lists(path).into_iter().next()?;
    let reason = format!(
        "a file that only lists the {} zips of an export of Claude.ai, and all of them are beside it; \
         import the folder",
        list.names.len()
    );
    Some(list.missing(&path).unwrap_or(Error::OnlyLinks { path, reason }))
}

fn lists(path: &Path) -> Vec<(PathBuf, DownloadList)> {
    let mut paths = match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => vec![path.to_owned()],
    };
    paths.retain(|it| {
        let name = it.file_name().unwrap_or_default().to_string_lossy();
        is_json(it)
            && (it == path || name.contains("manifest"))
            && fs::metadata(it).is_ok_and(|file| file.is_file() && file.len() <= LONGEST)
    });
    paths.sort();
    paths.into_iter().filter_map(|path| Some((path.clone(), DownloadList::read(&path)?))).collect()
}

/// Returns the names of the files and folders that are in the folder of a file.
fn names_beside(path: &Path) -> Vec<String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Returns whether a zip is among some files. Browsers unpack zips, or add a number to a name that is there
/// already.
fn is_among(names: &[String], name: &str) -> bool {
    let stem = name.strip_suffix(".zip").unwrap_or(name);
    let numbered = format!("{stem} (");
    names
        .iter()
        .any(|it| it == name || it == stem || it.starts_with(&numbered) && it.ends_with(").zip"))
}

/// Returns whether a zip or another file is in its folder, perhaps unpacked.
pub(super) fn is_here(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    is_among(&names_beside(path), &name)
}

struct DownloadList {
    /// The names of the zips, and whether an import needs them.
    names: Vec<(String, bool)>,
}

impl DownloadList {
    fn read(path: &Path) -> Option<DownloadList> {
        let bytes = files::read(path).ok()?;
        let list = Raw::new(&bytes).value().ok()?;
        let items = list.get("data_files").map(Value::items)?;
        let names: Vec<_> = items
            .iter()
            .filter_map(|item| {
                let name = item.str("filename");
                let is_needed = !UNNEEDED.contains(&item.str("category"));
                name.ends_with(".zip").then(|| (name.to_owned(), is_needed))
            })
            .collect();
        (!names.is_empty()).then_some(DownloadList { names })
    }

    /// Returns the error that names the zips that are not beside the manifest; `None` if none is needed.
    fn missing(&self, path: &Path) -> Option<Error> {
        let beside = names_beside(path);
        let (here, missing): (Vec<_>, Vec<_>) =
            self.names.iter().partition(|(name, _)| is_among(&beside, name));
        if !missing.iter().any(|(_, is_needed)| *is_needed) {
            return None;
        }
        let [here, missing] = [here, missing]
            .map(|zips| zips.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "));
        let here = match &*here {
            "" => "none of them is here yet".to_owned(),
            here => format!("here already: {here}"),
        };
        let reason = format!(
            "a file that only lists the {} zips of an export of Claude.ai, with a link to each; {here}; \
             to be downloaded with the links in it (`export_url`), each of which works once: {missing}; then \
             import the folder with the zips",
            self.names.len()
        );
        Some(Error::OnlyLinks { path: path.to_owned(), reason })
    }
}
