//! Dated conversation folders, searched with ripgrep's own libraries.
//!
//! A workspace holds `TYPE/DATE/CONVERSATION/…`, where `TYPE` may be `conversations` or
//! `conversations/TYPE`, and `DATE` is a month (`2025-11`) or a day (`2025-11-10`). A file in a date's
//! folder is a conversation of its own.
//!
//! Invariant: hidden, ignored, binary, encoded and linked files are treated as `rg` treats them.
//! Invariant: no file outside of the searched folder is opened.

mod layout;
mod search;

use std::{fs, io, path::PathBuf};

pub use layout::Dates;
pub use search::search;

use verbatim_text::expression::ExpressionError;

/// An error of a search of the workspace.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields hold")]
pub enum Error {
    /// No workspace is configured.
    #[error(
        "no workspace is configured; name its folder with --workspace FOLDER or in VERBATIM_WORKSPACE"
    )]
    NoWorkspace,
    /// A configured workspace does not exist or cannot be read.
    #[error("workspace {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The named folder is not in a configured workspace.
    #[error(
        "{named:?} is not a folder inside a configured workspace ({}); name it from there",
        listed(workspaces)
    )]
    Outside { named: String, workspaces: Vec<PathBuf> },
    /// The regular expression does not parse.
    #[error("not a regular expression as ripgrep reads them: {0}")]
    Pattern(String),
    /// The regular expression is too long.
    #[error("too long: {bytes} bytes, and at most {most} are allowed; search for a part of it")]
    Long { bytes: usize, most: usize },
    /// The regular expression has too many character classes.
    #[error("has too many classes ([a-z], \\w): {classes}, and at most {most} are allowed")]
    Classes { classes: usize, most: usize },
    /// The regular expression takes too much memory.
    #[error("too large: it would take more than {most} bytes of memory; repeat less in it ({{…}})")]
    Large { most: usize },
    /// Matching the regular expression takes too long.
    #[error("too slow to match; repeat less in it ({{…}}, + and *), or search for a part of it")]
    Slow,
    /// The date is neither a month nor a day.
    #[error("takes YYYY-MM (month) or YYYY-MM-DD (day); got {0:?}")]
    NotADate(String),
    /// The month or day does not exist.
    #[error("there is no date {0:?}; it takes YYYY-MM (month) or YYYY-MM-DD (day)")]
    NoSuchDay(String),
    /// The [`Stop`](verbatim_base::call::Stop) was requested.
    #[error("stopped")]
    Stopped,
}

impl Error {
    fn from_expression(error: ExpressionError) -> Error {
        match error {
            ExpressionError::Syntax(text) => Error::Pattern(text),
            ExpressionError::Long { bytes, most } => Error::Long { bytes, most },
            ExpressionError::Classes { classes, most } => Error::Classes { classes, most },
            ExpressionError::Large { most } => Error::Large { most },
        }
    }
}

/// A question to a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceQuestion {
    /// A regular expression, matched in either case.
    pub pattern: String,
    /// The month or day of the conversations; `None` for all.
    pub dates: Option<Dates>,
    /// The type of the conversations; `None` for all.
    pub kind: Option<String>,
    /// The maximum number of lines to return.
    pub limit: usize,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The name of the conversation's folder, such as `001-brainstorm-feature`, or the name of a
    /// file that lies directly in a date's folder.
    pub conversation: String,
    /// The full path of the file that contains the line.
    pub path: PathBuf,
    /// The number of the line in the file, from 1.
    pub number: u64,
    /// The line without white space at its ends; of a long line, the text around the first match.
    pub text: String,
}

/// The matching lines: newest conversation first, then by path, then by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLines {
    /// The matching lines, at most as many as the limit of the search.
    pub lines: Vec<Line>,
    /// Files and folders that could not be read completely, with the reason.
    pub unread: Vec<String>,
    /// Whether any folder of a date exists.
    pub has_conversations: bool,
}

/// A folder to search: a configured workspace, or a folder inside one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// The path of the workspace, with links resolved.
    path: PathBuf,
    /// The path of the configured workspace, with links resolved.
    workspace: PathBuf,
}

/// Returns the folders to search: every configured workspace, or the folder `named` inside one.
///
/// A name is a path, absolute or relative to a workspace. Links are resolved before the check.
pub fn folders(workspaces: &[PathBuf], named: Option<&str>) -> Result<Vec<Folder>, Error> {
    if workspaces.is_empty() {
        return Err(Error::NoWorkspace);
    }
    let mut roots = Vec::with_capacity(workspaces.len());
    for path in workspaces {
        let real = dunce::canonicalize(path).and_then(|real| fs::read_dir(&real).map(|_| real));
        roots.push(real.map_err(|source| Error::Unreadable { path: path.clone(), source })?);
    }
    let Some(named) = named else {
        // A workspace inside another workspace would be searched twice.
        roots.sort();
        roots.dedup_by(|inner, outer| inner.starts_with(outer));
        return Ok(roots
            .into_iter()
            .map(|path| Folder { workspace: path.clone(), path })
            .collect());
    };
    for workspace in roots {
        if let Ok(path) = dunce::canonicalize(workspace.join(named))
            && path.starts_with(&workspace)
            && path.is_dir()
        {
            return Ok(vec![Folder { path, workspace }]);
        }
    }
    Err(Error::Outside { named: named.to_owned(), workspaces: workspaces.to_vec() })
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
