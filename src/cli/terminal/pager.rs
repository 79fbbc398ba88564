//! A pager for long answers on a terminal, as in git.

use std::cell::Cell;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

#[cfg(unix)]
use std::sync::Arc;

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthStr;

use super::{layout::MATCH, output::complain};
use crate::cli::settings::environment::Environment;

/// The default pager and its options: the pager ends if the answer fits on the screen, shows
/// colours, and does not clear the screen.
const PAGER: &str = "less";
const LESS: &str = "FRX";

/// The options with which `less` waits for the user even if the answer fits on the screen, and says how to
/// come back.
const LESS_WAITS: &str = r#" -+F "-Psq\: back to the results" "-Pmq\: back to the results" "-PMq\: back to the results""#;

/// A pager that ends within this time did not wait for the user.
const BLINK: Duration = Duration::from_millis(300);

/// A writer to a pager, which starts at the first byte. Without a pager, it writes to `out`.
pub(crate) struct Paged<'a> {
    out: &'a mut dyn Write,
    command: Option<Command>,
    /// The options of `less` in the environment; `None` if the pager is another program.
    less: Option<OsString>,
    running: Option<(Child, BufWriter<ChildStdin>, Instant)>,
}

impl<'a> Paged<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, environment: &Environment, is_wanted: bool) -> Self {
        let command = if is_wanted { command(environment, false) } else { None };
        Paged { out, command, less: None, running: None }
    }

    /// Returns a writer to a pager that waits for the user, even if the answer is short; `None` if there
    /// is no pager.
    pub(crate) fn that_waits(
        out: &'a mut dyn Write,
        environment: &Environment,
    ) -> Option<Paged<'a>> {
        let command = command(environment, true)?;
        let options = environment.variable("LESS").unwrap_or(OsStr::new(LESS));
        let is_less = command.get_args().any(|it| it.to_string_lossy().contains(LESS_WAITS));
        let less = is_less.then(|| options.to_owned());
        Some(Paged { out, command: Some(command), less, running: None })
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
    pub(crate) fn finish(mut self) -> io::Result<bool> {
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FoundPlace {
    /// A part before the message that was found.
    #[default]
    Before,
    Within,
    After,
}

/// A message that was found, and how it is shown in its conversation.
#[derive(Clone, Copy)]
pub(crate) struct Landing<'a> {
    pub(crate) mark: &'a dyn Fn(&str) -> Vec<Range<usize>>,
    /// Says which part of the conversation is being written.
    pub(crate) place: &'a Cell<FoundPlace>,
}

/// A writer to a pager whose first screen shows the message that was found. It keeps what is written until
/// that message is complete.
pub(crate) struct PagedAtFound<'a> {
    paged: Paged<'a>,
    found: &'a Landing<'a>,
    kept: Vec<u8>,
    start: Option<usize>,
    is_open: bool,
    columns: usize,
    lines: usize,
}

impl<'a> PagedAtFound<'a> {
    pub(crate) fn new(
        paged: Paged<'a>,
        found: &'a Landing<'a>,
        columns: usize,
        lines: usize,
    ) -> PagedAtFound<'a> {
        PagedAtFound { paged, found, kept: Vec::new(), start: None, is_open: false, columns, lines }
    }

    pub(crate) fn finish(mut self) -> io::Result<bool> {
        self.open()?;
        self.paged.finish()
    }

    fn open(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_open, true) || self.kept.is_empty() {
            return Ok(());
        }
        let kept = std::mem::take(&mut self.kept);
        let start = self.start.unwrap_or(0);
        let top = self.top(&kept, start);
        let mut from = 0;
        if let Some(less) = &self.paged.less {
            let mut options = less.clone();
            options.push(format!(" +{}", newlines(&kept[..top]) + 1));
            self.paged.command.as_mut().map(|command| command.env("LESS", options));
        } else if top > 0 {
            // No other pager is told a line, so it begins with the message.
            from = start;
        }
        self.paged.write_all(&kept[from..])
    }

    /// Returns the offset of the line that is the top of the screen: at most a third of the screen is above
    /// the match.
    fn top(&self, kept: &[u8], start: usize) -> usize {
        let room = self.lines.saturating_sub(1) / 3;
        let mut top = line_start(kept, start + self.match_in(&kept[start..]));
        let mut above = 0;
        while top > 0 {
            let before = line_start(kept, top - 1);
            let line = String::from_utf8_lossy(&kept[before..top - 1]);
            let columns = strip_str(&line).to_string().width();
            above += columns.div_ceil(self.columns.max(1)).max(1);
            if above > room {
                break;
            }
            top = before;
        }
        top
    }

    /// Returns the offset of the first line with a match in a message as it is written.
    fn match_in(&self, message: &[u8]) -> usize {
        let text = String::from_utf8_lossy(message);
        if let Some(mark) = text.find(&MATCH.render().to_string()) {
            return mark;
        }
        // Without colours nothing is marked.
        let plain = strip_str(&text).to_string();
        let found = (self.found.mark)(&plain).first().map_or(0, |span| span.start);
        let line = newlines(&plain.as_bytes()[..found]);
        let ends = message.iter().enumerate().filter(|(_, it)| **it == b'\n').map(|(at, _)| at + 1);
        line.checked_sub(1).and_then(|line| ends.into_iter().nth(line)).unwrap_or(0)
    }
}

impl Write for PagedAtFound<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let place = self.found.place.get();
        if self.is_open || place == FoundPlace::After {
            self.open()?;
            return self.paged.write(bytes);
        }
        if place == FoundPlace::Within {
            self.start.get_or_insert(self.kept.len());
        }
        self.kept.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_open { self.paged.flush() } else { Ok(()) }
    }
}

/// Returns the offset of the line that has the byte at an offset.
fn line_start(text: &[u8], at: usize) -> usize {
    text[..at].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1)
}

fn newlines(text: &[u8]) -> usize {
    text.iter().filter(|it| **it == b'\n').count()
}

/// Returns the command of the pager; `waits` says whether it must wait for the user.
fn command(environment: &Environment, waits: bool) -> Option<Command> {
    let named = environment.variable("VERBATIM_PAGER").or(environment.variable("PAGER"));
    let pager = match named {
        Some(pager) if pager.is_empty() || pager == "cat" => return None,
        Some(pager) => {
            let words = pager.to_string_lossy();
            let program = words.split_whitespace().next().unwrap_or_default();
            let is_name = !program.contains(['/', '=', '$', '\'', '"', '(']);
            if !cfg!(windows)
                && environment.variable("PATH").is_some()
                && is_name
                && !is_installed(program, environment)
            {
                complain(&format!("the pager {program} is not installed"));
                return None;
            }
            pager
        }
        None if is_installed(PAGER, environment) && !environment.dumb => OsStr::new(PAGER),
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

fn is_installed(program: &str, environment: &Environment) -> bool {
    let path = environment.variable("PATH").unwrap_or_default();
    env::split_paths(path).any(|folder| folder.join(program).is_file())
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
