//! Keeps a running server up to date with the exclusions in the configuration file.

use std::fs::{self, Metadata};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use crate::cli::settings::environment::Environment;
use crate::cli::settings::settings_file::{EXCLUDE, Error, SettingsFile};
use crate::cli::terminal::output::complain;
use verbatim_base::lock::lock;
use verbatim_engine::Engine;

/// The resolution of file times: two changes within this time can have the same time stamp.
const TICK: Duration = Duration::from_secs(2);

pub(crate) fn follow(engine: &Engine, environment: &Environment) {
    let Some(path) = environment.settings.path.clone() else { return };
    let user = environment.user_folder.clone();
    let follower = ExcludeFollower { path, user, last: Mutex::default() };
    engine.all_sources().exclusions().follow(Box::new(move || follower.changed()));
}

struct ExcludeFollower {
    path: PathBuf,
    user: Option<PathBuf>,
    last: Mutex<LastRead>,
}

#[derive(Default)]
struct LastRead {
    file: Option<FileTimes>,
    /// The last reported problem. Each problem is reported only once.
    problem: Option<String>,
}

/// The time, length and inode of a file. If all are equal, the file counts as unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileTimes {
    changed: Option<SystemTime>,
    length: u64,
    number: u64,
}

impl ExcludeFollower {
    /// Returns the exclusions, or `None` if the file is unchanged. If the file is missing or wrong, the
    /// last exclusions stay in force, because a typing error must not reveal an excluded conversation.
    fn changed(&self) -> Option<Vec<String>> {
        let mut last = lock(&self.last);
        let stamp = fs::metadata(&self.path).ok().map(|file| FileTimes::new(&file));
        // Many editors empty a file before they write it. Meanwhile, nothing excluded may be found.
        if stamp.is_some_and(|stamp| stamp.length == 0 && stamp.is_new()) {
            return None;
        }
        if stamp == last.file && stamp.is_none_or(|stamp| !stamp.is_new()) {
            return None;
        }
        let name = self.path.as_os_str();
        let read = SettingsFile::read(Some(name), None, self.user.as_deref());
        // An editor may have emptied the file, or begun to write it, after its length was read.
        if read.as_ref().is_ok_and(|read| stamp.is_none_or(|it| it.length != read.length)) {
            return None;
        }
        last.file = stamp;
        let problem = read.as_ref().err().map(Error::to_string);
        if let Some(problem) = problem.as_ref().filter(|_| problem != last.problem) {
            complain(&format!("{problem}; what was excluded before stays excluded"));
        }
        last.problem = problem;
        let settings = read.ok()?;
        let values = settings.entry(&EXCLUDE).map(|(_, entry)| entry.values.clone());
        let texts = values.unwrap_or_default().into_iter();
        Some(texts.map(|text| text.to_string_lossy().into_owned()).collect())
    }
}

impl FileTimes {
    fn new(file: &Metadata) -> FileTimes {
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(file);
        #[cfg(not(unix))]
        let number = 0;
        FileTimes { changed: file.modified().ok(), length: file.len(), number }
    }

    /// Returns whether the last change is so recent that another change could have the same time stamp.
    fn is_new(self) -> bool {
        let age = self.changed.and_then(|changed| changed.elapsed().ok());
        age.is_none_or(|age| age < TICK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_being_written_lifts_no_exclusion() {
        const TEXT: &str = "exclude = ['secret']\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, TEXT).unwrap();
        let follower = ExcludeFollower { path: path.clone(), user: None, last: Mutex::default() };
        let writer = std::thread::spawn(move || {
            for _ in 0..20_000 {
                fs::write(&path, TEXT).unwrap();
            }
        });
        while !writer.is_finished() {
            if let Some(exclude) = follower.changed() {
                assert_eq!(exclude, ["secret"]);
            }
        }
        writer.join().unwrap();
        assert_eq!(follower.changed().unwrap(), ["secret"]);
    }
}
