//! The log of a server: lines on standard error.
//!
//! A separate thread writes the lines, so that answers are not delayed if nobody reads the log. If
//! too many lines wait, further lines are left out and counted.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use verbatim_text::terminal::harmless;

/// The maximum number of lines that wait to be written.
const MOST_WAITING: usize = 1_000;

/// The maximum time that a server waits for the last lines before it ends.
const PATIENCE: Duration = Duration::from_millis(300);

static WAITING: AtomicU64 = AtomicU64::new(0);

/// The number of lines that were left out because too many waited.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// Queues a line for standard error; errors are ignored. Terminal control characters are replaced.
pub(crate) fn log(message: &str) {
    /// `None` if the thread cannot be started.
    static LINES: OnceLock<Option<SyncSender<String>>> = OnceLock::new();

    let line = format!("verbatim: {}", harmless(message));
    let lines = LINES.get_or_init(|| {
        let (sender, receiver) = sync_channel(MOST_WAITING);
        let thread = thread::Builder::new().name("log".to_owned());
        thread.spawn(move || write_all(&receiver)).ok().map(|_| sender)
    });
    let Some(lines) = lines else { return write(&line) };
    WAITING.fetch_add(1, Ordering::Relaxed);
    if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = lines.try_send(line) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
        LEFT_OUT.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until all lines are written, but not longer than `PATIENCE`.
pub(crate) fn flush() {
    let end = Instant::now() + PATIENCE;
    while WAITING.load(Ordering::Acquire) > 0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
}

fn write_all(lines: &Receiver<String>) {
    for line in lines {
        write(&line);
        match LEFT_OUT.swap(0, Ordering::Relaxed) {
            0 => {}
            1 => write("verbatim: a line of the log was left out, because nobody read it"),
            lines => {
                write(&format!(
                    "verbatim: {lines} lines of the log were left out, because nobody read it"
                ));
            }
        }
        WAITING.fetch_sub(1, Ordering::Release);
    }
}

fn write(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
