//! The environment of the program.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::{env, fmt, fs};

use anstream::{AutoStream, ColorChoice};

use verbatim_answer::clock::Clock;

use super::settings_file::{self, SettingsFile};

/// The environment variable with which a shell requests completions. Its value names the shell.
pub(crate) const COMPLETED_SHELL: &str = "VERBATIM_COMPLETE";

const VARIABLES: [&str; 14] = [
    COMPLETED_SHELL,
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COLUMNS",
    "COMPACT_RESPONSES",
    "ENABLE_CONVERSATIONS",
    "LESS",
    "PAGER",
    "PATH",
    "VERBATIM_BACKGROUND",
    "VERBATIM_FORGET_DELETED",
    "VERBATIM_PAGER",
    "VERBATIM_TOKEN",
    settings_file::FILE_VARIABLE,
];

/// The folders beside the homes of the users of Windows.
const NO_USERS: [&str; 4] = ["All Users", "Default", "Default User", "Public"];

/// The variables, the folders and the terminal of the program's process.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub variables: Variables,
    /// The content of the configuration file; empty until a command reads the file.
    pub settings: SettingsFile,
    /// The home folder of the user, in which coding agents have their folders.
    pub user_folder: Option<PathBuf>,
    /// The path of this program, for the configurations of clients that start it.
    pub program: PathBuf,
    pub working_folder: PathBuf,
    /// The platform's folder for user data that is not copied to other machines.
    pub data_folder: Option<PathBuf>,
    pub download_folder: Option<PathBuf>,
    /// The home folders of the users of Windows, if the program runs in Windows Subsystem for Linux (WSL).
    pub windows_homes: Vec<PathBuf>,
    /// The platform's folder for a user's configuration; `None` if the process does not know the user.
    pub config_folder: Option<PathBuf>,
    /// Whether questions can be asked: standard input and standard error are a terminal.
    pub can_ask: bool,
    /// Whether output goes to a terminal that shows colours.
    pub colours: bool,
    pub terminal: bool,
    /// Whether the whole screen can be used: standard input and output are a terminal that is not dumb.
    pub full_screen: bool,
    /// Whether the terminal only prints: it cannot move its cursor.
    pub dumb: bool,
    pub columns: Option<usize>,
    /// Whether the terminal is known to support links.
    pub shows_links: bool,
    /// Whether times are shown and read in the time zone of this computer, not in UTC.
    pub local_time: bool,
    /// Whether standard error is a terminal; progress is shown there.
    pub progress: bool,
}

impl Environment {
    pub(crate) fn clock(&self) -> Clock {
        Clock::new(self.local_time)
    }

    pub fn of_process() -> io::Result<Environment> {
        let stdout = io::stdout();
        let working_folder = env::current_dir()
            .map_err(|error| io::Error::new(error.kind(), "the working folder is gone"))?;
        // If `HOME` is not set, the home folder in the system's user database must not be used.
        let user_folder =
            dirs::home_dir().filter(|_| cfg!(windows) || env::var_os("HOME").is_some());
        // Other systems than Linux have no such file.
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let dumb = stdout.is_terminal() && env::var_os("TERM").is_some_and(|name| name == "dumb");
        Ok(Environment {
            variables: Variables(
                variable_names().filter_map(|name| Some((name, env::var_os(name)?))).collect(),
            ),
            settings: SettingsFile::default(),
            data_folder: dirs::data_local_dir(),
            download_folder: dirs::download_dir()
                .or_else(|| Some(user_folder.as_ref()?.join("Downloads"))),
            config_folder: dirs::config_dir()
                .filter(|_| user_folder.is_some() || env::var_os("XDG_CONFIG_HOME").is_some()),
            windows_homes: windows_homes(&kernel, Path::new("/mnt/c/Users")),
            user_folder,
            program: env::current_exe().unwrap_or_else(|_| "verbatim".into()),
            working_folder,
            can_ask: io::stdin().is_terminal() && io::stderr().is_terminal(),
            colours: AutoStream::choice(&stdout) != ColorChoice::Never,
            terminal: stdout.is_terminal(),
            full_screen: io::stdin().is_terminal() && stdout.is_terminal() && !dumb,
            dumb,
            columns: terminal_size::terminal_size_of(&stdout).map(|(width, _)| width.0.into()),
            shows_links: supports_hyperlinks::on(supports_hyperlinks::Stream::Stdout),
            local_time: true,
            progress: io::stderr().is_terminal(),
        })
    }

    /// Returns the folders in which browsers store downloads. A user of WSL cannot read those of every user
    /// of Windows.
    pub(crate) fn download_folders(&self) -> Vec<PathBuf> {
        let windows = self.windows_homes.iter().map(|home| home.join("Downloads"));
        let windows = windows.filter(|folder| folder.read_dir().is_ok());
        self.download_folder.iter().cloned().chain(windows).collect()
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        debug_assert!(variable_names().any(|known| known == name), "{name} is not read");
        self.variables.0.get(name).map(OsString::as_os_str)
    }

    /// Returns the value of an environment variable; an empty value counts as absent.
    pub(crate) fn filled(&self, name: &str) -> Option<&OsStr> {
        self.variable(name).filter(|value| !value.is_empty())
    }
}

/// Returns the home folders in the folder of the users of Windows, if the name of the kernel is WSL's.
fn windows_homes(kernel: &str, users: &Path) -> Vec<PathBuf> {
    if !kernel.to_ascii_lowercase().contains("microsoft") {
        return Vec::new();
    }
    let entries = fs::read_dir(users).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut homes: Vec<PathBuf> = entries
        .filter(|path| !path.file_name().is_some_and(|name| NO_USERS.iter().any(|it| name == *it)))
        .filter(|path| path.is_dir())
        .collect();
    homes.sort();
    homes
}

pub(crate) fn variable_names() -> impl Iterator<Item = &'static str> {
    let of_settings = settings_file::ALL.iter().flat_map(|setting| setting.variables);
    of_settings.chain(&VARIABLES).copied()
}

/// Returns whether the value of a variable switches something off.
pub(crate) fn is_off(variable: Option<&OsStr>) -> bool {
    let value = variable.and_then(OsStr::to_str).unwrap_or_default().trim().to_ascii_lowercase();
    ["false", "0", "no", "off"].contains(&value.as_str())
}

/// The values of environment variables, by name. `Debug` hides them, because a value may be a secret.
#[derive(Clone, Default)]
pub struct Variables(BTreeMap<&'static str, OsString>);

impl<const N: usize> From<[(&'static str, &str); N]> for Variables {
    fn from(values: [(&'static str, &str); N]) -> Variables {
        Variables(values.into_iter().map(|(name, value)| (name, value.into())).collect())
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_of_windows_are_found_in_wsl_only() {
        let users = tempfile::tempdir().unwrap();
        for name in ["ben", "ann", "Public", "Default"] {
            fs::create_dir(users.path().join(name)).unwrap();
        }
        fs::write(users.path().join("desktop.ini"), "").unwrap();
        let homes = ["ann", "ben"].map(|name| users.path().join(name));
        for kernel in ["5.15.153.1-microsoft-standard-WSL2\n", "4.4.0-19041-Microsoft\n"] {
            assert_eq!(windows_homes(kernel, users.path()), homes);
        }
        assert!(windows_homes("6.8.0-45-generic\n", users.path()).is_empty());
        assert!(windows_homes("4.4.0-19041-Microsoft\n", &users.path().join("none")).is_empty());
    }
}
