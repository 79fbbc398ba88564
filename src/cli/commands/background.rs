//! A process of this program that works on after a command has ended.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::cli::settings::engine_config::PlaceArgs;
use crate::cli::settings::environment::{Environment, is_off};

const VARIABLE: &str = "VERBATIM_BACKGROUND";

/// Starts `verbatim reindex` with a low priority, for a database and the places of this command. Returns whether
/// it was started.
///
/// The process has no streams and a process group of its own, so that it outlives the terminal.
pub(super) fn reindex(db: Option<&Path>, places: &PlaceArgs, environment: &Environment) -> bool {
    if is_off(environment.variable(VARIABLE)) {
        return false;
    }
    let mut command = Command::new(&environment.program);
    command.arg("reindex");
    let named = [("--db", db), ("--home", places.home.as_deref())];
    let archives = places.archive.iter().map(|folder| ("--archive", Some(folder.as_path())));
    for (flag, path) in named.into_iter().chain(archives) {
        command.args(path.map(|path| [flag.as_ref(), path.as_os_str()]).into_iter().flatten());
    }
    if places.no_archive {
        command.arg("--no-archive");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    #[cfg(windows)]
    std::os::windows::process::CommandExt::creation_flags(&mut command, windows::CREATION_FLAGS);
    // The process inherits the priority of the thread that starts it.
    let thread = thread::spawn(move || {
        #[cfg(unix)]
        let _ = rustix::process::nice(10);
        command.spawn().is_ok()
    });
    thread.join().unwrap_or(false)
}

#[cfg(windows)]
mod windows {
    const BELOW_NORMAL_PRIORITY_CLASS: u32 = 0x4000;
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
    const DETACHED_PROCESS: u32 = 0x8;

    pub(super) const CREATION_FLAGS: u32 =
        BELOW_NORMAL_PRIORITY_CLASS | CREATE_NEW_PROCESS_GROUP | DETACHED_PROCESS;
}
