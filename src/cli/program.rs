//! The program as a whole: reads the process's environment, runs one command, picks the exit code.

use std::{
    env,
    io::{self, BufWriter, IsTerminal, Write},
    process::ExitCode,
};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context;

use super::{Environment, Error, Secret, output::complain, run};
use crate::map_faults;

/// The exit code for errors, as in grep.
const TROUBLE: u8 = 2;

/// Runs the program `verbatim` with the arguments, the environment and the streams of this process;
/// returns its exit code, which is as in grep: 0 if something was found, 1 if not, 2 for errors.
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
        crate::failpoint::arm(number);
    }
    let stdout = io::stdout();
    let environment = Environment {
        conversation_db: env::var_os("CONVERSATION_DB"),
        origin_conversation_db: env::var_os("ORIGIN_CONVERSATION_DB"),
        verbatim_home: env::var_os("VERBATIM_HOME"),
        verbatim_index: env::var_os("VERBATIM_INDEX"),
        verbatim_tools: env::var_os("VERBATIM_TOOLS"),
        compact_responses: env::var_os("COMPACT_RESPONSES"),
        enable_conversations: env::var_os("ENABLE_CONVERSATIONS"),
        verbatim_embeddings: env::var_os("VERBATIM_EMBEDDINGS"),
        verbatim_embeddings_key: env::var_os("VERBATIM_EMBEDDINGS_KEY").map(Secret),
        openai_api_key: env::var_os("OPENAI_API_KEY").map(Secret),
        verbatim_workspace: env::var_os("VERBATIM_WORKSPACE"),
        verbatim_archive: env::var_os("VERBATIM_ARCHIVE"),
        claude_config_dir: env::var_os("CLAUDE_CONFIG_DIR"),
        codex_home: env::var_os("CODEX_HOME"),
        // A program that is started without HOME must not use the home folder that the system knows.
        user_folder: dirs::home_dir().filter(|_| cfg!(windows) || env::var_os("HOME").is_some()),
        program: env::current_exe().unwrap_or_else(|_| "verbatim".into()),
        working_folder: env::current_dir().context("the working folder is gone")?,
        data_folder: dirs::data_dir(),
        config_folder: dirs::config_dir(),
        path: env::var_os("PATH"),
        colours: AutoStream::choice(&stdout) != ColorChoice::Never,
        terminal: stdout.is_terminal(),
        progress: io::stderr().is_terminal(),
    };
    // `colours` above decides on colours; on old Windows consoles the stream still converts them.
    let mut out = BufWriter::new(AutoStream::always(stdout));
    let code = run(env::args_os(), &environment, &mut out)?;
    out.flush()?;
    Ok(code)
}

/// Prints the error to standard error. A reader that closed the pipe is no error.
fn report(error: &anyhow::Error) -> ExitCode {
    let broken = error.chain().any(|cause| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    });
    if broken {
        return ExitCode::SUCCESS;
    }
    match error.downcast_ref::<Error>() {
        Some(Error::Usage(usage)) => {
            let _ = usage.print();
        }
        _ => {
            complain(&error.to_string());
        }
    }
    ExitCode::from(TROUBLE)
}
