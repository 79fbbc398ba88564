//! Ctrl-C: the work ends in good order, and says what is done.

use std::{process, thread};

use super::{environment::Environment, output::complain};
use crate::model::Stop;

/// The exit code of a program that Ctrl-C ended, as shells have it.
const INTERRUPTED: u8 = 130;

/// Returns a stop that Ctrl-C requests. A second Ctrl-C ends the program at once.
///
/// Only with a terminal: elsewhere the signal ends the program as usual.
pub(super) fn stop_on_interrupt(environment: &Environment) -> Stop {
    let stop = Stop::never();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    if let (true, Ok(runtime)) = (environment.progress, runtime) {
        let requested = stop.clone();
        thread::spawn(move || {
            for number in 0.. {
                if runtime.block_on(tokio::signal::ctrl_c()).is_err() {
                    return;
                }
                requested.request();
                if number > 0 {
                    process::exit(INTERRUPTED.into());
                }
            }
        });
    }
    stop
}

/// Says what is done, and returns the exit code.
pub(super) fn stopped(what: &str) -> u8 {
    complain(&format!("stopped: {what}"));
    INTERRUPTED
}
