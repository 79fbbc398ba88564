//! Keeps what a user types during a progress line out of that line. The terminal does not show it, and the
//! shell reads and shows it afterwards. On Windows, a terminal shows what is typed only to a program that reads.

#[cfg(unix)]
use std::{io::stderr, sync::Mutex};

#[cfg(unix)]
use rustix::{
    process::getpgrp,
    termios::{LocalModes, OptionalActions::Now, Termios, tcgetattr, tcgetpgrp, tcsetattr},
};

#[cfg(unix)]
use crate::lock::lock;

/// The settings of the terminal before what is typed was hidden.
#[cfg(unix)]
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// While this value exists, the terminal of standard error does not show what is typed.
#[derive(Debug)]
pub(super) struct Hidden;

impl Hidden {
    pub(super) fn begin() -> Hidden {
        #[cfg(unix)]
        hide();
        Hidden
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        show();
    }
}

#[cfg(unix)]
fn hide() {
    let mut before = lock(&BEFORE);
    if before.is_none()
        && is_ours()
        && let Ok(found) = tcgetattr(stderr())
    {
        let mut quiet = found.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        *before = tcsetattr(stderr(), Now, &quiet).is_ok().then_some(found);
    }
}

/// Lets the terminal show again what is typed.
pub(super) fn show() {
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
