//! Runs the whole program: reads the environment of the process, runs a command, and returns the exit code.

use std::{
    env,
    io::{self, BufWriter, Write},
    process::ExitCode,
};

use anstream::AutoStream;

use super::{
    Environment, Error, completions, engine_config,
    output::{FOUND, TROUBLE, complain, write_usage},
    run,
    wrap::shortened,
};
use verbatim_base::map_faults;
use verbatim_engine as engine;

/// Runs the program `verbatim` with the arguments, the environment and the streams of this process.
/// Returns the exit code as in grep: 0 if something was found, 1 if nothing was found, 2 for
/// errors.
pub fn run_program() -> ExitCode {
    match run_command() {
        Ok(code) => ExitCode::from(code),
        Err(error) => report(&error),
    }
}

fn run_command() -> anyhow::Result<u8> {
    map_faults::survive();
    #[cfg(debug_assertions)]
    if let Some(number) = env::var("VERBATIM_FAILPOINT").ok().and_then(|text| text.parse().ok()) {
        verbatim_base::failpoint::arm(number);
    }
    let environment = Environment::of_process()?;
    if completions::answer(super::command, env::args_os(), &environment)? {
        return Ok(FOUND);
    }
    // This stream does not choose colours; it only converts them for old Windows consoles.
    let mut out = BufWriter::new(AutoStream::always(io::stdout()));
    let code = run(env::args_os(), &environment, &mut out)?;
    out.flush()?;
    Ok(code)
}

/// Prints an error to standard error, except that a closed pipe is not an error.
fn report(error: &anyhow::Error) -> ExitCode {
    let broken = error.chain().any(|cause| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    });
    if broken {
        return ExitCode::SUCCESS;
    }
    match error.downcast_ref::<Error>() {
        Some(Error::Usage(usage)) => write_usage(usage),
        Some(error @ Error::Engine(engine::Error::NoDatabase { .. })) => {
            let environment = Environment::of_process().unwrap_or_default();
            let user = engine_config::user_prefix(&environment);
            complain(&shortened(&error.to_string(), user.as_deref()));
        }
        _ => complain(&error.to_string()),
    }
    ExitCode::from(TROUBLE)
}
