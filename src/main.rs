//! The `verbatim` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    verbatim_search::run_program()
}
