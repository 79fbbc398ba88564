//! Projects and folders whose conversations are kept out of everything.

use std::{
    fmt,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::config::Config;
use crate::model::Origin;

/// Returns the projects and folders that the user excludes, if that may have changed since it was
/// called last.
pub(crate) type Excluding = dyn Fn() -> Option<Vec<String>> + Send + Sync;

/// The configuration with what the user excludes at this moment. A server runs while that changes.
pub(crate) struct CurrentExclusions {
    now: RwLock<(Arc<Config>, Arc<Exclusions>)>,
    excluding: OnceLock<Box<Excluding>>,
}

impl CurrentExclusions {
    pub(crate) fn new(config: Arc<Config>) -> CurrentExclusions {
        let exclusions = Arc::new(Exclusions::known(&config.exclude));
        CurrentExclusions { now: RwLock::new((config, exclusions)), excluding: OnceLock::new() }
    }

    /// Lets `excluding` say from now on what is excluded.
    pub(crate) fn follow(&self, excluding: Box<Excluding>) {
        // Only the first one counts.
        let _ = self.excluding.set(excluding);
    }

    /// Returns the configuration as it is now, and its exclusions.
    pub(crate) fn now(&self) -> (Arc<Config>, Arc<Exclusions>) {
        if let Some(exclude) = self.excluding.get().and_then(|excluding| excluding()) {
            let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
            if now.0.exclude != exclude {
                let exclusions = Arc::new(Exclusions::known(&exclude));
                *now = (Arc::new(Config { exclude, ..Config::clone(&now.0) }), exclusions);
            }
        }
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for CurrentExclusions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentExclusions").field("now", &self.now).finish_non_exhaustive()
    }
}

/// What the user excludes: projects by their names, and folders with all that is in them.
#[derive(Clone, Debug)]
pub(crate) struct Exclusions {
    projects: Gitignore,
    folders: Gitignore,
}

impl Default for Exclusions {
    fn default() -> Exclusions {
        Exclusions { projects: Gitignore::empty(), folders: Gitignore::empty() }
    }
}

impl Exclusions {
    /// Returns the exclusions of some patterns. A pattern without a slash is the name of a project, one
    /// with a slash is a whole path; both may be globs. The case of letters does not matter.
    ///
    /// The error says which pattern is no glob.
    pub(crate) fn of(patterns: &[String]) -> Result<Exclusions, String> {
        let build = |is_wanted: fn(&str) -> bool| {
            let mut builder = GitignoreBuilder::new("");
            let _ = builder.case_insensitive(true);
            for pattern in patterns.iter().map(|pattern| slashed(pattern)) {
                if !is_wanted(&pattern) {
                    continue;
                }
                // Neither the signs of comments and of exceptions nor blanks are special here.
                let line = format!("/{}", pattern.trim_start_matches('/').trim_end_matches('/'));
                let failed = |error| format!("has {pattern:?}, which is no pattern: {error}");
                builder.add_line(None, &line).map_err(failed)?;
            }
            builder.build().map_err(|error| error.to_string())
        };
        Ok(Exclusions {
            projects: build(|pattern| !pattern.contains('/'))?,
            folders: build(|pattern| pattern.contains('/'))?,
        })
    }

    /// Returns the exclusions of those patterns that are globs.
    pub(crate) fn known(patterns: &[String]) -> Exclusions {
        let is_glob = |pattern: &&String| Exclusions::of(std::slice::from_ref(*pattern)).is_ok();
        let patterns: Vec<String> = patterns.iter().filter(is_glob).cloned().collect();
        Exclusions::of(&patterns).unwrap_or_default()
    }

    /// Returns whether nothing is excluded.
    pub(crate) fn is_empty(&self) -> bool {
        self.projects.is_empty() && self.folders.is_empty()
    }

    /// Returns whether conversations of an origin are excluded: by their project, their working
    /// folder, or the folder of their transcript.
    pub(crate) fn excludes(&self, origin: &Origin) -> bool {
        let is_inside = |path: &Option<String>| {
            let path = path.as_deref().map(slashed).unwrap_or_default();
            let path = path.trim_start_matches('/');
            !path.is_empty() && self.folders.matched_path_or_any_parents(path, false).is_ignore()
        };
        let is_named = |project: &Option<String>| {
            let project = project.as_deref().unwrap_or_default();
            let is_name = !project.is_empty() && !project.contains('/');
            is_name && self.projects.matched(project, false).is_ignore()
        };
        is_named(&origin.project) || is_inside(&origin.folder) || is_inside(&origin.file)
    }
}

/// Returns a path with slashes, as on every platform but Windows.
fn slashed(path: &str) -> String {
    path.replace('\\', "/")
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
            Exclusions::of(&[pattern.to_owned()]).unwrap().excludes(&origin)
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
        ] {
            assert_eq!(
                excludes(pattern, project, folder),
                expected,
                "{pattern} {project} {folder}"
            );
        }
        assert!(Exclusions::of(&["{a".to_owned()]).is_err());
        assert!(Exclusions::of(&[]).unwrap().is_empty());
    }

    #[test]
    fn the_folder_of_a_transcript_counts_too() {
        let file = Some("/home/ann/.claude/projects/-x/a.jsonl".to_owned());
        let origin = Origin { file, ..Origin::default() };
        let exclusions = Exclusions::of(&["/home/ann/.claude/projects/-x".to_owned()]).unwrap();
        assert!(exclusions.excludes(&origin));
        assert!(!exclusions.excludes(&Origin::default()));
    }
}
