//! Switches off the terminal's echo while a progress line is shown, so that typed keys do not
//! appear in the line. The shell reads and shows them afterwards. On Windows this is not necessary:
//! a terminal echoes keys only while a program reads them.

use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::{
    io::stderr,
    sync::{Mutex, Once},
    thread,
};

#[cfg(unix)]
use rustix::{
    process::getpgrp,
    termios::{LocalModes, OptionalActions::Now, Termios, tcgetattr, tcgetpgrp, tcsetattr},
};

#[cfg(unix)]
use verbatim_base::lock::lock;

/// Whether another part of the program decides when Ctrl-C ends it.
static IS_CTRL_C_TAKEN: AtomicBool = AtomicBool::new(false);

/// The settings of the terminal before the echo was switched off; `None` while the echo is on.
#[cfg(unix)]
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// While this value exists, the terminal of standard error has no echo.
#[derive(Debug)]
pub(super) struct Hidden;

impl Hidden {
    pub(super) fn begin() -> Hidden {
        #[cfg(unix)]
        {
            static WATCH: Once = Once::new();
            WATCH.call_once(show_before_ctrl_c);
            let mut before = lock(&BEFORE);
            if before.is_none()
                && is_ours()
                && let Ok(echoing) = tcgetattr(stderr())
            {
                let mut quiet = echoing.clone();
                quiet.local_modes.remove(LocalModes::ECHO);
                *before = tcsetattr(stderr(), Now, &quiet).is_ok().then_some(echoing);
            }
        }
        Hidden
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        show();
    }
}

/// Says that the caller decides when Ctrl-C ends the program.
pub(crate) fn take_ctrl_c() {
    IS_CTRL_C_TAKEN.store(true, Ordering::SeqCst);
}

/// Switches the echo on before Ctrl-C ends the program, because not every shell does that.
#[cfg(unix)]
fn show_before_ctrl_c() {
    use signal_hook::{consts::SIGINT, iterator::Signals, low_level::emulate_default_handler};
    let Ok(mut signals) = Signals::new([SIGINT]) else { return };
    thread::spawn(move || {
        for signal in signals.forever() {
            if !IS_CTRL_C_TAKEN.load(Ordering::SeqCst) {
                show();
                let _ = emulate_default_handler(signal);
            }
        }
    });
}

pub(crate) fn show() {
    #[cfg(unix)]
    if let Some(before) = lock(&BEFORE).take().filter(|_| is_ours()) {
        let _ = tcsetattr(stderr(), Now, &before);
    }
}

/// Returns whether the program runs in the foreground. In the background, the terminal belongs to another
/// program, and a change of its settings would stop this one.
#[cfg(unix)]
fn is_ours() -> bool {
    tcgetpgrp(stderr()).is_ok_and(|group| group == getpgrp())
}
