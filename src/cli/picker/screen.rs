//! The full screen of the terminal. The normal screen is restored at the end, also after a panic.

use std::io::{self, BufWriter, Stdout, Write};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::cursor::Show;
use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui_core::terminal::{Frame, Terminal};
use ratatui_crossterm::CrosstermBackend;
use unicode_width::UnicodeWidthStr;

const BUFFER: usize = 64 << 10;

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The full screen of the terminal. Dropping this value restores the normal screen.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    /// Whether the next drawing begins with an empty screen: at the beginning, after a pager, and if the
    /// screen shows a sign that consists of several characters, such as a flag.
    must_clear: bool,
    #[cfg(unix)]
    signals: signals::Signals,
}

impl Screen {
    pub(super) fn open() -> io::Result<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                restore();
                before(info);
            }));
        });
        #[cfg(unix)]
        let signals = signals::Signals::watch()?;
        let out = BufWriter::with_capacity(BUFFER, io::stdout());
        Ok(Screen {
            terminal: Terminal::new(CrosstermBackend::new(out))?,
            must_clear: true,
            #[cfg(unix)]
            signals,
        })
    }

    /// Takes the terminal, for the first time or after a pager.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        self.signals.forget_interrupt();
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        self.must_clear = true;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
    }

    pub(super) fn size(&self) -> (usize, usize) {
        self.terminal.size().map_or((80, 24), |size| (size.width.into(), size.height.into()))
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        // Some terminals show such signs wider than this program expects, so a part of the old sign could
        // stay on the screen.
        if self.must_clear {
            queue!(self.terminal.backend_mut(), Clear(ClearType::All))?;
            // Now the last screen counts as empty.
            self.terminal.swap_buffers();
        }
        let drawn = self.terminal.draw(draw)?;
        self.must_clear = drawn.buffer.content().iter().any(|cell| is_cluster(cell.symbol()));
        Ok(())
    }

    /// Waits for an event for at most `patience`; returns whether there is an event. If a signal
    /// arrived, restores the screen and ends the program.
    pub(super) fn poll(&self, patience: Duration) -> io::Result<bool> {
        let polled = wait(patience);
        #[cfg(unix)]
        self.signals.end_on_signal()?;
        match polled {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            polled => polled,
        }
    }
}

/// Returns whether a sign consists of several characters.
fn is_cluster(sign: &str) -> bool {
    sign.chars().nth(1).is_some() && sign.width() > 1
}

/// Waits for an event. A closed terminal is always ready and never has an event, so crossterm would
/// read for ever. Therefore crossterm is called only while the terminal is open.
#[cfg(target_os = "linux")]
fn wait(patience: Duration) -> io::Result<bool> {
    await_input(Duration::ZERO)?;
    // crossterm may already have an event in its buffer.
    if event::poll(Duration::ZERO)? {
        return Ok(true);
    }
    await_input(patience)?;
    event::poll(Duration::ZERO)
}

/// Waits until standard input is readable; fails if the terminal was closed.
#[cfg(target_os = "linux")]
fn await_input(patience: Duration) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut files = [PollFd::new(&stdin, PollFlags::IN)];
    let timeout = Timespec::try_from(patience).expect("a short time");
    poll(&mut files, Some(&timeout))?;
    if files[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal is gone"));
    }
    Ok(())
}

/// Waits for an event without a check of the terminal, because `poll` does not support terminals everywhere.
#[cfg(not(target_os = "linux"))]
fn wait(patience: Duration) -> io::Result<bool> {
    event::poll(patience)
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the normal screen if it was taken. Errors are ignored, because the terminal may be closed.
pub(super) fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

#[cfg(unix)]
mod signals {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::{flag, low_level};

    /// The signals that end the program. They take effect after the screen is restored.
    pub(super) struct Signals {
        came: Arc<AtomicUsize>,
        is_over: Arc<AtomicBool>,
    }

    impl Signals {
        pub(super) fn watch() -> io::Result<Signals> {
            let came = Arc::default();
            let is_over = Arc::default();
            // SIGHUP ends the program at once, because the terminal is gone.
            for signal in [SIGINT, SIGTERM] {
                flag::register_usize(signal, Arc::clone(&came), signal as usize)?;
                flag::register_conditional_default(signal, Arc::clone(&is_over))?;
            }
            Ok(Signals { came, is_over })
        }

        /// Forgets a Ctrl-C that was typed in a pager.
        pub(super) fn forget_interrupt(&self) {
            let order = Ordering::SeqCst;
            let _ = self.came.compare_exchange(SIGINT as usize, 0, order, order);
        }

        /// Restores the screen and ends the program if a signal arrived.
        pub(super) fn end_on_signal(&self) -> io::Result<()> {
            match self.came.load(Ordering::SeqCst) {
                0 => Ok(()),
                signal => {
                    super::restore();
                    low_level::emulate_default_handler(signal as i32)
                }
            }
        }
    }

    impl Drop for Signals {
        fn drop(&mut self) {
            self.is_over.store(true, Ordering::SeqCst);
        }
    }
}
