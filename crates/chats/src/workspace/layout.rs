//! The layout of a workspace: finds the date and the conversation in a path.

use std::{
    cmp::Reverse,
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use super::{Error, Folder};
use verbatim_text::date::{self, Edge};

/// The folder whose conversations have their type in their names: `001-brainstorm-feature`.
const UNTYPED: &str = "conversations";

/// A month or a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dates(String);

/// A conversation's folder, `TYPE/DATE/NNN-slug`, or a file that lies directly in a date's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArchivePlace<'a> {
    pub(super) date: &'a str,
    pub(super) conversation: &'a str,
}

/// The order of files: the newest conversation first, then by path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    date: Reverse<String>,
    number: Reverse<u64>,
    pub(super) path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents<'a> {
    /// Folders of dates, at any depth.
    Dates,
    /// The conversations of a date.
    Conversations(&'a str),
    Nothing,
}

/// The layout of one searched folder, for conversations of one type or of every type.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkspaceLayout<'a> {
    folder: &'a Folder,
    kind: Option<&'a str>,
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
    pub(super) fn contain(&self, date: &str) -> bool {
        date == self.0 || self.0.len() == "YYYY-MM".len() && date.starts_with(&self.0)
    }
}

impl Rank {
    pub(super) fn new(place: ArchivePlace<'_>, path: &Path) -> Rank {
        // The order is reversed, so that a month sorts after its days: `2025-11` is a prefix of `2025-11-10`.
        Rank {
            date: Reverse(place.date.to_owned()),
            number: Reverse(number(place.conversation)),
            path: path.to_owned(),
        }
    }
}

impl<'a> WorkspaceLayout<'a> {
    pub(super) fn new(folder: &'a Folder, kind: Option<&'a str>) -> WorkspaceLayout<'a> {
        WorkspaceLayout { folder, kind }
    }

    /// Returns the conversation of a file; `None` if the file is outside of all conversations.
    pub(super) fn locate<'p>(&self, path: &'p Path) -> Option<ArchivePlace<'p>> {
        let in_layout = |root: &Path| {
            let mut names = path.strip_prefix(root).ok()?.components().map(name);
            let (mut kind, mut date) = (names.next()??, names.next()??);
            if kind == UNTYPED && !is_date(date) {
                (kind, date) = (date, names.next()??);
            }
            let conversation = names.next()??;
            let wanted = is_date(date) && self.is_kind(kind, conversation);
            wanted.then_some(ArchivePlace { date, conversation })
        };
        in_layout(&self.folder.path).or_else(|| in_layout(&self.folder.workspace))
    }

    /// Returns what a folder may contain.
    pub(super) fn contents<'p>(&self, path: &'p Path) -> Contents<'p> {
        let in_layout = |root: &Path| {
            let Ok(inner) = path.strip_prefix(root) else { return Contents::Nothing };
            let mut names = inner.components().map(name);
            let Some(kind) = names.next() else { return Contents::Dates };
            let kinds = [Some(UNTYPED), self.kind];
            let of_kind = |name: &str| kinds.iter().flatten().any(|k| k.eq_ignore_ascii_case(name));
            if self.kind.is_some() && !kind.is_some_and(of_kind) {
                return Contents::Nothing;
            }
            match (names.next(), names.next()) {
                (None, _) => Contents::Dates,
                (Some(Some(date)), _) if is_date(date) => Contents::Conversations(date),
                // `conversations/TYPE/DATE`
                (Some(Some(inner)), date) if kind == Some(UNTYPED) => match date {
                    _ if self.kind.is_some_and(|kind| !inner.eq_ignore_ascii_case(kind)) => {
                        Contents::Nothing
                    }
                    None => Contents::Dates,
                    Some(Some(date)) if is_date(date) => Contents::Conversations(date),
                    Some(_) => Contents::Nothing,
                },
                _ => Contents::Nothing,
            }
        };
        match (in_layout(&self.folder.path), in_layout(&self.folder.workspace)) {
            (Contents::Conversations(date), _) | (_, Contents::Conversations(date)) => {
                Contents::Conversations(date)
            }
            (Contents::Dates, _) | (_, Contents::Dates) => Contents::Dates,
            _ => Contents::Nothing,
        }
    }

    fn is_kind(&self, folder: &str, conversation: &str) -> bool {
        let Some(kind) = self.kind else { return true };
        if folder.eq_ignore_ascii_case(kind) {
            return true;
        }
        let slug = slug(conversation);
        let begins = slug.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind));
        folder == UNTYPED && begins && matches!(slug.as_bytes().get(kind.len()), None | Some(b'-'))
    }
}

fn name(component: Component<'_>) -> Option<&str> {
    match component {
        Component::Normal(name) => OsStr::to_str(name),
        _ => None,
    }
}

/// Returns whether a folder's name is a month or a day. The function runs for every folder, so days
/// up to 28 are accepted without parsing.
fn is_date(name: &str) -> bool {
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<u8>().ok());
    is_shaped(name)
        && match (number(name.get(5..7)), number(name.get(8..))) {
            (Some(1..=12), None | Some(1..=28)) => true,
            _ => Dates::parse(name).is_ok(),
        }
}

/// Returns whether a text has the form `0000-00` or `0000-00-00`.
fn is_shaped(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    matches!(text.len(), 7 | 10) && text.bytes().enumerate().all(fits)
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
        let place = WorkspaceLayout::new(folder, kind).locate(Path::new(path))?;
        Some(format!("{} {}", place.date, place.conversation))
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
        let rank = |date, conversation| {
            Rank::new(ArchivePlace { date, conversation }, Path::new(conversation))
        };
        let order = [
            ("2025-12-01", "1000-a"),
            ("2025-12-01", "002-a"),
            ("2025-12-01", "002-b"),
            ("2025-12-01", "notes"),
            ("2025-11-30", "001-a"),
            ("2025-11", "009-a"),
        ]
        .map(|(date, conversation)| rank(date, conversation));
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
