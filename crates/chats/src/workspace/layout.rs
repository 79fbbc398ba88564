//! The layout of a workspace: finds the date and the conversation in a path.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use super::{Error, Folder, WorkspaceQuestion};
use verbatim_text::date::{self, Edge};

/// The folder whose conversations have their type in their names: `001-brainstorm-feature`.
const UNTYPED: &str = "conversations";

/// A month or a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dates(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkspacePlace<'a> {
    /// A folder that may contain folders of dates.
    AboveDates,
    /// The folder of a date, or what is in it.
    InDate(DatedPlace<'a>),
    Outside,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatedPlace<'a> {
    kind: &'a str,
    date: &'a str,
    /// A folder, or a file that lies directly in the folder of the date.
    pub(super) conversation: Option<&'a str>,
}

/// A file of a conversation. The newest conversation comes first, and its files in the order of their paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConversationFile {
    // The order is reversed, so that a month comes after its days: `2025-11` is a prefix of `2025-11-10`.
    date: Reverse<String>,
    number: Reverse<u64>,
    pub(super) path: PathBuf,
    pub(super) conversation: String,
}

impl Dates {
    /// Parses `YYYY-MM` or `YYYY-MM-DD`.
    pub fn parse(text: &str) -> Result<Dates, Error> {
        if !is_shaped(text) {
            return Err(Error::NotADate(text.to_owned()));
        }
        match date::parse_iso(text, Edge::Start) {
            Some(_) => Ok(Dates(text.to_owned())),
            None => Err(Error::NoSuchDay(text.to_owned())),
        }
    }

    /// Returns whether a date is in the range. A month contains its days and the month itself.
    fn contain(&self, date: &str) -> bool {
        date == self.0 || self.0.len() == "YYYY-MM".len() && date.starts_with(&self.0)
    }
}

impl ConversationFile {
    pub(super) fn new(date: &str, conversation: &str, path: &Path) -> ConversationFile {
        ConversationFile {
            date: Reverse(date.to_owned()),
            number: Reverse(number(conversation)),
            path: path.to_owned(),
            conversation: conversation.to_owned(),
        }
    }
}

impl Folder {
    /// Returns where a path lies in the layout that begins at this folder or at its workspace.
    pub(super) fn locate<'p>(&self, path: &'p Path) -> WorkspacePlace<'p> {
        match (place_below(&self.path, path), place_below(&self.workspace, path)) {
            (place @ WorkspacePlace::InDate(_), _) | (_, place @ WorkspacePlace::InDate(_)) => {
                place
            }
            (WorkspacePlace::AboveDates, _) | (_, WorkspacePlace::AboveDates) => {
                WorkspacePlace::AboveDates
            }
            (WorkspacePlace::Outside, WorkspacePlace::Outside) => WorkspacePlace::Outside,
        }
    }
}

impl WorkspaceQuestion {
    /// Returns whether the question is about conversations of this date and type.
    pub(super) fn accepts(&self, place: DatedPlace<'_>) -> bool {
        self.dates.as_ref().is_none_or(|dates| dates.contain(place.date))
            && self.kind.as_ref().is_none_or(|kind| place.is_of_kind(kind))
    }
}

impl DatedPlace<'_> {
    /// Returns the file with this path; `None` if it is in no conversation.
    pub(super) fn file(self, path: &Path) -> Option<ConversationFile> {
        Some(ConversationFile::new(self.date, self.conversation?, path))
    }

    fn is_of_kind(&self, kind: &str) -> bool {
        if self.kind.eq_ignore_ascii_case(kind) {
            return true;
        }
        let Some(conversation) = self.conversation else { return self.kind == UNTYPED };
        let slug = slug(conversation);
        let begins = slug.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind));
        self.kind == UNTYPED
            && begins
            && matches!(slug.as_bytes().get(kind.len()), None | Some(b'-'))
    }
}

fn place_below<'p>(root: &Path, path: &'p Path) -> WorkspacePlace<'p> {
    let Ok(path) = path.strip_prefix(root) else { return WorkspacePlace::Outside };
    let names = path.iter().map(|name| name.to_str().unwrap_or("\u{FFFD}"));
    let names: Vec<&str> = names.take(4).collect();
    let (kind, names) = match &names[..] {
        [] => return WorkspacePlace::AboveDates,
        [UNTYPED, kind, names @ ..] if !is_date(kind) => (*kind, names),
        [kind, names @ ..] => (*kind, names),
    };
    match names {
        [] => WorkspacePlace::AboveDates,
        [date, rest @ ..] if is_date(date) => {
            WorkspacePlace::InDate(DatedPlace { kind, date, conversation: rest.first().copied() })
        }
        _ => WorkspacePlace::Outside,
    }
}

fn is_date(name: &str) -> bool {
    is_shaped(name) && date::parse_iso(name, Edge::Start).is_some()
}

/// Returns whether a text has the form `0000-00` or `0000-00-00`.
fn is_shaped(text: &str) -> bool {
    matches!(text.len(), 7 | 10)
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

fn number(conversation: &str) -> u64 {
    let digits = conversation.len() - slug(conversation).len();
    let digits = conversation[..digits].trim_end_matches('-');
    if digits.is_empty() { 0 } else { digits.parse().unwrap_or(u64::MAX) }
}

/// Returns the name of a conversation's folder without its number.
fn slug(conversation: &str) -> &str {
    let rest = conversation.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == conversation.len() { rest } else { rest.strip_prefix('-').unwrap_or(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(folder: &Folder, kind: Option<&'static str>, path: &str) -> Option<String> {
        let WorkspacePlace::InDate(place) = folder.locate(Path::new(path)) else { return None };
        let question = WorkspaceQuestion { kind: kind.map(str::to_owned), ..Default::default() };
        if !question.accepts(place) {
            return None;
        }
        Some(format!("{} {}", place.date, place.conversation?))
    }

    #[test]
    fn places() {
        let whole = Folder { path: "/w".into(), workspace: "/w".into() };
        for (path, kind, expected) in [
            ("/w/conversations/2025-11/001-a/x.md", None, Some("2025-11 001-a")),
            ("/w/plan/2025-11-10/002-b/deep/x.md", None, Some("2025-11-10 002-b")),
            ("/w/plan/2025-11-10/002-b/x.md", Some("plan"), Some("2025-11-10 002-b")),
            ("/w/plan/2025-11-10/002-b/x.md", Some("debug"), None),
            ("/w/plan/2025-11-10/002-debug/x.md", Some("debug"), None),
            ("/w/conversations/2025-11/002-debug-b/x", Some("debug"), Some("2025-11 002-debug-b")),
            ("/w/conversations/2025-11/002-debug/x", Some("debug"), Some("2025-11 002-debug")),
            ("/w/conversations/2025-11/002-debugger/x", Some("debug"), None),
            ("/w/conversations/2025-11/002-a-debug-b/x", Some("debug"), None),
            ("/w/conversations/2025-11-31/001-a/x.md", None, None),
            ("/w/conversations/2025-13/001-a/x.md", None, None),
            ("/w/conversations/2025-1/001-a/x.md", None, None),
            ("/w/conversations/2025-11/x.md", None, Some("2025-11 x.md")),
            ("/w/plan/2025-11-10/x.md", Some("plan"), Some("2025-11-10 x.md")),
            ("/w/plan/2025-11-10/x.md", Some("debug"), None),
            ("/w/conversations/plan/2025-11/001-a/x", None, Some("2025-11 001-a")),
            ("/w/conversations/plan/2025-11/001-a/x", Some("Plan"), Some("2025-11 001-a")),
            ("/w/conversations/plan/2025-11/001-debug/x", Some("debug"), None),
            ("/w/conversations/plan/2025-11/x", None, Some("2025-11 x")),
            ("/w/conversations/plan/deep/2025-11/001-a/x", None, None),
            ("/w/plan/deep/2025-11/001-a/x", None, None),
            ("/w/2025-11/001-a/x.md", None, None),
            ("/v/conversations/2025-11/001-a/x.md", None, None),
        ] {
            assert_eq!(layout(&whole, kind, path).as_deref(), expected, "{path} {kind:?}");
        }
        let month = Folder { path: "/w/plan/2025-11".into(), workspace: "/w".into() };
        let inner = Folder { path: "/w/inner".into(), workspace: "/w".into() };
        let found = layout(&month, None, "/w/plan/2025-11/001-a/x");
        assert_eq!(found.as_deref(), Some("2025-11 001-a"));
        let found = layout(&inner, None, "/w/inner/plan/2025-11/001-a/x");
        assert_eq!(found.as_deref(), Some("2025-11 001-a"));
    }

    #[test]
    fn newest_first() {
        let order = [
            ("2025-12-01", "1000-a"),
            ("2025-12-01", "002-a"),
            ("2025-12-01", "002-b"),
            ("2025-12-01", "notes"),
            ("2025-11-30", "001-a"),
            ("2025-11", "009-a"),
        ]
        .map(|(date, name)| ConversationFile::new(date, name, Path::new(name)));
        assert!(order.is_sorted(), "{order:#?}");
        assert_eq!(number("99999999999999999999999-x"), u64::MAX);
    }

    #[test]
    fn dates() {
        for text in ["2025-11", "2025-11-10", "2024-02-29"] {
            assert!(Dates::parse(text).is_ok(), "{text}");
        }
        for text in ["2025", "2025-1", "20251110", "2025-11-1", "2025-11-10T00:00", "", "２０25-11"]
        {
            assert!(matches!(Dates::parse(text), Err(Error::NotADate(_))), "{text}");
        }
        for text in ["2025-02-29", "2025-13", "2025-00-01", "2025-11-31"] {
            assert!(matches!(Dates::parse(text), Err(Error::NoSuchDay(_))), "{text}");
        }
        let month = Dates::parse("2025-11").unwrap();
        assert!(
            month.contain("2025-11") && month.contain("2025-11-30") && !month.contain("2025-12")
        );
        let day = Dates::parse("2025-11-10").unwrap();
        assert!(day.contain("2025-11-10") && !day.contain("2025-11"));
    }
}
