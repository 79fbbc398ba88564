//! Handles Ctrl-C: the command stops its work cleanly and reports what was done.

use std::{process, thread};

use super::{echo, output::complain};
use crate::cli::settings::environment::Environment;
use verbatim_base::call::Call;

const INTERRUPTED: u8 = 130;

/// Returns a stop that Ctrl-C requests. A second Ctrl-C ends the program at once. Without a
/// terminal, the signal ends the program as usual.
pub(crate) fn stop_on_interrupt(environment: &Environment) -> Call {
    let call = Call::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    if let (true, Ok(runtime)) = (environment.progress, runtime) {
        let requested = call.clone();
        echo::take_ctrl_c();
        thread::spawn(move || {
            for number in 0.. {
                if runtime.block_on(tokio::signal::ctrl_c()).is_err() {
                    return;
                }
                requested.stop.request();
                if number > 0 {
                    echo::show();
                    process::exit(INTERRUPTED.into());
                }
            }
        });
    }
    call
}

/// Reports what was done before Ctrl-C, and returns the exit code.
pub(crate) fn stopped(what: &str) -> u8 {
    complain(&format!("stopped: {what}"));
    INTERRUPTED
}
