//! A pager for long answers on a terminal, as in git.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, BufWriter, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

#[cfg(unix)]
use std::sync::Arc;

use super::{environment::Environment, output::complain};

/// The default pager and its options: the pager ends if the answer fits on the screen, shows
/// colours, and does not clear the screen.
const PAGER: &str = "less";
const LESS: &str = "FRX";

/// The option with which `less` waits for the user even if the answer fits on the screen.
const LESS_WAITS: &str = " -+F";

/// A pager that ends within this time did not wait for the user.
const BLINK: Duration = Duration::from_millis(300);

/// A writer to a pager, which starts at the first byte. Without a pager, it writes to `out`.
pub(super) struct Paged<'a> {
    out: &'a mut dyn Write,
    command: Option<Command>,
    running: Option<(Child, BufWriter<ChildStdin>, Instant)>,
}

impl<'a> Paged<'a> {
    /// Returns a writer to the pager of the environment, or without a pager if `is_wanted` is false.
    pub(super) fn new(out: &'a mut dyn Write, environment: &Environment, is_wanted: bool) -> Self {
        let command = if is_wanted { command(environment, false) } else { None };
        Paged { out, command, running: None }
    }

    /// Returns a writer to a pager that waits for the user, even if the answer is short; `None` if there
    /// is no pager.
    pub(super) fn that_waits(
        out: &'a mut dyn Write,
        environment: &Environment,
    ) -> Option<Paged<'a>> {
        let command = Some(command(environment, true)?);
        Some(Paged { out, command, running: None })
    }

    fn target(&mut self) -> &mut dyn Write {
        if let Some(mut command) = self.command.take()
            && let Ok(mut child) = command.spawn()
            && let Some(input) = child.stdin.take()
        {
            // Ctrl-C must not end this program: otherwise the shell would read the keys for the pager.
            super::echo::take_ctrl_c();
            #[cfg(unix)]
            let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::default());
            self.running = Some((child, BufWriter::new(input), Instant::now()));
        }
        match &mut self.running {
            Some((_, input, _)) => input,
            None => &mut *self.out,
        }
    }

    /// Waits until the user leaves the pager; returns whether the pager waited for the user. It is not an
    /// error if the user leaves early.
    pub(super) fn finish(mut self) -> io::Result<bool> {
        let Some((mut child, mut input, begun)) = self.running.take() else {
            return self.out.flush().map(|()| false);
        };
        let flushed = input.flush();
        drop(input);
        child.wait()?;
        match flushed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(begun.elapsed() > BLINK),
        }
    }
}

impl Write for Paged<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.target().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.running {
            Some((_, input, _)) => input.flush(),
            None => self.out.flush(),
        }
    }
}

/// Returns the command of the pager; `waits` says whether it must wait for the user.
fn command(environment: &Environment, waits: bool) -> Option<Command> {
    let named = environment.variable("VERBATIM_PAGER").or(environment.variable("PAGER"));
    let is_there = |name: &str| {
        let path = environment.variable("PATH").unwrap_or_default();
        env::split_paths(path).any(|folder| folder.join(name).is_file())
    };
    let pager = match named {
        Some(pager) if pager.is_empty() || pager == "cat" => return None,
        Some(pager) => {
            let words = pager.to_string_lossy();
            let program = words.split_whitespace().next().unwrap_or_default();
            let is_name = !program.contains(['/', '=', '$', '\'', '"', '(']);
            if !cfg!(windows)
                && environment.variable("PATH").is_some()
                && is_name
                && !is_there(program)
            {
                complain(&format!("the pager {program} is not installed"));
                return None;
            }
            pager
        }
        None if is_there(PAGER) && !environment.dumb => OsStr::new(PAGER),
        None => return None,
    };
    let mut pager = OsString::from(pager);
    let program = pager.to_string_lossy().split_whitespace().next().map(PathBuf::from);
    if waits && program.is_some_and(|program| program.file_stem() == Some(OsStr::new(PAGER))) {
        pager.push(LESS_WAITS);
    }
    let mut command = shell(&pager);
    command.stdin(Stdio::piped());
    if environment.variable("LESS").is_none() {
        command.env("LESS", LESS);
    }
    Some(command)
}

/// Returns the command that starts a pager by the platform's shell, because a pager is named with its options.
#[cfg(unix)]
fn shell(pager: &OsStr) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager);
    command
}

#[cfg(windows)]
fn shell(pager: &OsStr) -> Command {
    use std::os::windows::process::CommandExt;
    // `arg` would escape the quotation marks of a path in a way that `cmd` does not read. With `/S`, `cmd`
    // removes the outer quotation marks and no others.
    let mut line = std::ffi::OsString::from("\"");
    line.push(pager);
    line.push("\"");
    let mut command = Command::new("cmd");
    command.args(["/S", "/C"]).raw_arg(line);
    command
}
