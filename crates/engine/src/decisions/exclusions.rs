//! Projects and folders whose conversations are excluded everywhere.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::{fmt, path::Path};

use globset::GlobBuilder;
use regex::bytes::RegexSet;
use unicode_normalization::UnicodeNormalization;

use crate::config::{Config, without_links};
use verbatim_base::model::Origin;
use verbatim_chats::import::transcript::project;

const SPECIAL: [char; 4] = ['*', '?', '[', '{'];

/// Function that returns the projects and folders that the user excludes; `None` if they have not changed
/// since the last call.
pub(crate) type Excluding = dyn Fn() -> Option<Vec<String>> + Send + Sync;

/// The current configuration with its exclusions, which may change while a server runs.
pub struct CurrentExclusions {
    now: RwLock<(Arc<Config>, Arc<Exclusions>)>,
    excluding: OnceLock<Box<Excluding>>,
}

impl CurrentExclusions {
    pub(crate) fn new(config: Arc<Config>) -> CurrentExclusions {
        let exclusions = Arc::new(Exclusions::known(&config.exclude));
        CurrentExclusions { now: RwLock::new((config, exclusions)), excluding: OnceLock::new() }
    }

    /// Reads the exclusions from `excluding` from now on. Later calls have no effect.
    pub fn follow(&self, excluding: Box<Excluding>) {
        let _ = self.excluding.set(excluding);
    }

    pub(crate) fn now(&self) -> (Arc<Config>, Arc<Exclusions>) {
        if let Some(excluding) = self.excluding.get() {
            // The lock is held from the read on. Otherwise a slow thread could put back older exclusions.
            let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(exclude) = excluding()
                && now.0.exclude != exclude
            {
                let exclusions = Arc::new(Exclusions::known(&exclude));
                *now = (Arc::new(Config { exclude, ..Config::clone(&now.0) }), exclusions);
            }
            return now.clone();
        }
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for CurrentExclusions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentExclusions").field("now", &self.now).finish_non_exhaustive()
    }
}

/// The expression that `globset` writes for `?`. It matches one byte of a path component.
const ANY_BYTE: &str = "[^/]";

/// The replacement for `ANY_BYTE`. It matches one character of a path component.
const ANY_CHARACTER: &str = "(?u:[^/])";

/// The user's exclusions: names of projects, and folders with everything below them.
#[derive(Clone, Debug, Default)]
pub struct Exclusions {
    projects: RegexSet,
    folders: RegexSet,
}

impl Exclusions {
    /// Compiles exclusion patterns. A pattern without a slash is a project name, and a pattern with a
    /// slash is a whole path. Both may be globs. The case of letters does not matter.
    ///
    /// The error says which pattern is invalid, and why.
    pub fn parse(patterns: &[String]) -> Result<Exclusions, String> {
        let mut projects = Vec::new();
        let mut folders = Vec::new();
        for given in patterns {
            let pattern = slashed(given);
            if !pattern.contains('/') {
                projects.push(format!("{}$", expression(&pattern, given)?));
                continue;
            }
            if !is_whole(&pattern) {
                return Err(format!(
                    "has {given:?}, which is neither a name nor a whole path: name a project without a slash, or \
                     let the path begin with / or ~/; **/ at the beginning means any folder"
                ));
            }
            let pattern = pattern.trim_end_matches('/');
            // Stored paths have no symbolic links, so the pattern is also matched with its links resolved.
            for pattern in [Some(pattern.to_owned()), linked(pattern)].into_iter().flatten() {
                folders.push(format!("{}(?:/.*)?$", expression(&pattern, given)?));
            }
        }
        Ok(Exclusions { projects: set(projects)?, folders: set(folders)? })
    }

    /// Compiles the valid patterns and ignores the invalid ones.
    pub(crate) fn known(patterns: &[String]) -> Exclusions {
        let mut patterns = patterns.to_vec();
        patterns.retain(|pattern| Exclusions::parse(std::slice::from_ref(pattern)).is_ok());
        Exclusions::parse(&patterns).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.projects.is_empty() && self.folders.is_empty()
    }

    /// Returns whether conversations of an origin are excluded: by one of their projects or working
    /// folders, or by the folder of their transcript.
    pub(crate) fn excludes(&self, origin: &Origin) -> bool {
        projects(origin).any(|project| is_match(&self.projects, project))
            || origin.folders().chain(origin.file.as_deref()).any(|it| is_match(&self.folders, it))
    }
}

fn set(expressions: Vec<String>) -> Result<RegexSet, String> {
    RegexSet::new(expressions).map_err(|error| format!("is too large: {error}"))
}

fn is_match(set: &RegexSet, text: &str) -> bool {
    !set.is_empty() && !text.is_empty() && set.is_match(normal(&slashed(text)).as_bytes())
}

/// Returns the projects of a conversation: that of its first working folder, and those of the later ones.
pub(crate) fn projects(origin: &Origin) -> impl Iterator<Item = &str> {
    let later = origin.later_folders.iter().filter_map(|folder| project(folder));
    origin.project.as_deref().into_iter().chain(later).filter(|project| !project.is_empty())
}

/// Returns the regular expression of a glob, without `$`. The error says what is wrong with the glob, as `given`
/// by the user.
fn expression(pattern: &str, given: &str) -> Result<String, String> {
    let pattern = normal(pattern);
    let in_brackets = pattern.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    if in_brackets.into_iter().any(|(letters, _)| !letters.is_ascii()) {
        return Err(format!(
            "has {given:?}, which has letters in brackets that are not ASCII: write {{a,b}} instead of [ab]"
        ));
    }
    let glob = GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(false).build();
    let glob = glob.map_err(|error| format!("has {given:?}, which is no pattern: {error}"))?;
    let expression = glob.regex().replace(ANY_BYTE, ANY_CHARACTER);
    Ok(format!("(?s){}", expression.strip_suffix('$').unwrap_or(&expression)))
}

/// Returns whether a pattern is a whole path, or begins with `**/`, which means any folder.
fn is_whole(pattern: &str) -> bool {
    let has_drive = pattern.as_bytes().get(1..3) == Some(b":/");
    has_drive || pattern.starts_with('/') || pattern.starts_with("**/")
}

/// Returns the pattern with symbolic links resolved before its first special character; `None` if the
/// pattern stays the same.
fn linked(pattern: &str) -> Option<String> {
    let special = pattern.find(SPECIAL).unwrap_or(pattern.len());
    let end = if special == pattern.len() { special } else { pattern[..special].rfind('/')? };
    let (plain, rest) = pattern.split_at(end);
    let real = without_links(Some(Path::new(plain)).filter(|plain| plain.has_root())?);
    let real = slashed(real.to_str()?);
    (real != plain).then(|| format!("{}{rest}", globset::escape(&real)))
}

/// Returns a path with `/` in place of `\`.
fn slashed(path: &str) -> String {
    path.replace('\\', "/")
}

/// Returns a text in the normal form in which patterns and paths are compared: NFC and lower case.
fn normal(text: &str) -> String {
    text.nfc().flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_projects_and_paths_are_folders() {
        let excludes = |pattern: &str, project: &str, folder: &str| {
            let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let origin =
                Origin { project: text(project), folder: text(folder), ..Origin::default() };
            Exclusions::parse(&[pattern.to_owned()]).unwrap().excludes(&origin)
        };
        for (pattern, project, folder, expected) in [
            ("secret", "secret", "/home/ann/secret", true),
            ("Secret", "sEcret", "", true),
            ("client-*", "client-a", "/x", true),
            ("client-*", "a-client-a", "/x", false),
            ("secret", "parser", "/home/ann/secret/parser", false),
            ("/home/ann/secret", "parser", "/home/ann/secret/parser", true),
            ("/home/ann/secret/", "secret", "/home/ann/secret", true),
            ("/home/ann/secret", "x", "/home/ann/secrets", false),
            ("/home/ann/*/private", "private", "/home/ann/a/private/b", true),
            ("/home/ann/secret", "x", "/mnt/home/ann/secret", false),
            ("/**/secret", "x", "/mnt/home/ann/secret/a", true),
            ("C:\\work\\secret", "x", "c:\\work\\secret\\a", true),
            ("#a", "#a", "", true),
            ("!a", "!a", "", true),
            ("!a", "b", "/b", false),
            ("übung", "Übung", "", true),
            ("?bung", "U\u{308}bung", "", true),
            ("??bung", "Übung", "", false),
            ("*übung", "Die Übung", "", true),
            ("{ä,ö}*", "Öl", "", true),
            ("/home/ann/ÄÖ", "x", "/home/ann/a\u{308}ö/x", true),
            ("**/secret", "x", "/mnt/home/ann/secret/a", true),
            ("c:/work/x", "x", "C:\\work\\x\\a", true),
            ("a ", "a ", "", true),
            ("a ", "a", "", false),
            ("/home/ann/x ", "x", "/home/ann/x ", true),
            ("/home/ann/x ", "x", "/home/ann/x", false),
            ("/home/ann/[[]x]", "x", "/home/ann/[x]/y", true),
            ("/", "x", "/home", true),
        ] {
            assert_eq!(
                excludes(pattern, project, folder),
                expected,
                "{pattern} {project} {folder}"
            );
        }
        for (wrong, why) in [
            ("{a", "no pattern"),
            ("secret/", "whole path"),
            ("ann/secret", "whole path"),
            ("[äö]", "{a,b}"),
        ] {
            let error = Exclusions::parse(&[wrong.to_owned()]).unwrap_err();
            assert!(error.contains(wrong) && error.contains(why), "{error}");
        }
        assert!(Exclusions::parse(&[]).unwrap().is_empty());
    }

    #[test]
    fn the_folder_of_a_transcript_counts_too() {
        let file = Some("/home/ann/.claude/projects/-x/a.jsonl".to_owned());
        let origin = Origin { file, ..Origin::default() };
        let exclusions = Exclusions::parse(&["/home/ann/.claude/projects/-x".to_owned()]).unwrap();
        assert!(exclusions.excludes(&origin));
        assert!(!exclusions.excludes(&Origin::default()));
    }

    #[cfg(unix)]
    #[test]
    fn a_pattern_through_a_link_means_the_folder_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let real = dunce::canonicalize(folder.path()).unwrap().join("a[b");
        std::fs::create_dir_all(&real).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let file = Some(real.join("secret/x.jsonl").to_string_lossy().into_owned());
        let origin = Origin { file, ..Origin::default() };
        for pattern in ["secret", "sec*", ""] {
            let pattern = format!("{}/{pattern}", link.display());
            let exclusions = Exclusions::parse(std::slice::from_ref(&pattern)).unwrap();
            assert!(exclusions.excludes(&origin), "{pattern}");
        }
        let other = format!("{}/other", link.display());
        assert!(!Exclusions::parse(&[other]).unwrap().excludes(&origin));
    }
}
