//! A pseudo-terminal with a program on it.

use std::io::{Read, Write};
use std::process::Child;
use std::sync::Arc;

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

/// A program on a terminal of its own. The terminal is closed when all clones of `pty` are dropped.
pub(crate) struct OnTerminal {
    pub(crate) child: Child,
    pub(crate) pty: Arc<Pty>,
}

impl OnTerminal {
    /// Starts a command on a terminal of some lines and columns.
    pub(crate) fn start(command: Command, (lines, columns): (u16, u16)) -> OnTerminal {
        let (pty, terminal) = open().expect("a terminal");
        pty.resize(Size::new(lines, columns)).expect("a size");
        let child = command.spawn(terminal).expect("the program starts");
        OnTerminal { child, pty: Arc::new(pty) }
    }

    /// Types a text.
    pub(crate) fn press(&self, text: &str) {
        (&*self.pty).write_all(text.as_bytes()).expect("the terminal takes keys");
    }

    /// Passes everything that the program writes to `take`, until it ends or `take` returns false. At the
    /// end of the program, Linux returns an error.
    pub(crate) fn read(pty: &Pty, mut take: impl FnMut(&[u8]) -> bool) {
        let (mut pty, mut bytes) = (pty, [0; 4096]);
        while let Ok(count @ 1..) = pty.read(&mut bytes) {
            if !take(&bytes[..count]) {
                return;
            }
        }
    }
}
