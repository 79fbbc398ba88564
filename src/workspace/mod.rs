//! Dated conversation folders, searched with ripgrep's own libraries.
//!
//! A workspace holds `TYPE/DATE/CONVERSATION/…`, where `TYPE` may be `conversations` and `DATE` is a
//! month (`2025-11`) or a day (`2025-11-10`).
//!
//! Invariant: what is hidden, ignored, binary, encoded or behind a link is treated as `rg` treats it.
//! Invariant: nothing outside the folder that is searched is opened.

mod best;
mod layout;
mod line;
mod search;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub use layout::Dates;
pub use search::search;

/// What can go wrong with a search of the workspace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No workspace is configured.
    #[error(
        "no workspace is configured; name its folder with --workspace FOLDER or in VERBATIM_WORKSPACE"
    )]
    NoWorkspace,
    /// A configured workspace is not there.
    #[error("workspace {}: {source}", path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder was named that is in no configured workspace.
    #[error("{named:?} is no folder inside a configured workspace ({})", listed(workspaces))]
    Outside {
        /// What was named.
        named: String,
        /// The workspaces.
        workspaces: Vec<PathBuf>,
    },
    /// The regular expression is none.
    #[error("not a regular expression as ripgrep reads them: {0}")]
    Pattern(String),
    /// The date is neither a month nor a day.
    #[error("takes YYYY-MM (month) or YYYY-MM-DD (day); got {0:?}")]
    NotADate(String),
    /// The month or day is in no calendar.
    #[error("no calendar has {0:?}; it takes YYYY-MM (month) or YYYY-MM-DD (day)")]
    NoSuchDay(String),
    /// The [`Stop`](crate::model::Stop) was requested.
    #[error("stopped")]
    Stopped,
}

/// What to look for in a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// A regular expression, matched in either case.
    pub pattern: String,
    /// The month or day of the conversations; `None` for all.
    pub dates: Option<Dates>,
    /// The type of the conversations; `None` for all.
    pub kind: Option<String>,
    /// The most lines to return.
    pub limit: usize,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The folder of its conversation, such as `001-brainstorm-feature`.
    pub conversation: String,
    /// The month or day under which the conversation is kept.
    pub date: String,
    /// Its file.
    pub path: PathBuf,
    /// Its number in the file, from 1.
    pub number: u64,
    /// Its text without white space at the ends; where it is long, what surrounds the first match.
    pub text: String,
}

/// The lines that match, newest conversation first, then by path, then by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The lines.
    pub lines: Vec<Line>,
    /// What could not be read, as the system says it.
    pub unread: Vec<String>,
}

/// A folder to search, inside a configured workspace or one itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Without links.
    path: PathBuf,
    /// The configured workspace that it is in, without links.
    workspace: PathBuf,
}

/// Returns the folders to search: every configured workspace, or the folder `named` inside one.
///
/// A name is a path, absolute or from a workspace; links are followed before it is judged.
pub fn folders(workspaces: &[PathBuf], named: Option<&str>) -> Result<Vec<Folder>, Error> {
    if workspaces.is_empty() {
        return Err(Error::NoWorkspace);
    }
    let roots = workspaces.iter().map(|path| {
        let real = fs::canonicalize(path).and_then(|real| fs::read_dir(&real).map(|_| real));
        real.map_err(|source| Error::Unreadable { path: path.clone(), source })
    });
    let mut roots = roots.collect::<Result<Vec<PathBuf>, Error>>()?;
    let Some(named) = named else {
        // A workspace inside another would be searched twice.
        roots.sort();
        roots.dedup_by(|inner, outer| inner.starts_with(outer));
        let whole = |path: PathBuf| Folder { workspace: path.clone(), path };
        return Ok(roots.into_iter().map(whole).collect());
    };
    let inside = |root: &PathBuf| {
        let path = fs::canonicalize(root.join(Path::new(named))).ok()?;
        let there = path.starts_with(root) && path.is_dir();
        there.then(|| Folder { path, workspace: root.clone() })
    };
    let found = roots.iter().find_map(inside).ok_or_else(|| Error::Outside {
        named: named.to_owned(),
        workspaces: workspaces.to_vec(),
    })?;
    Ok(vec![found])
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
