//! The commands of the program.

#[path = "../shared/calls.rs"]
mod calls;
mod capture;
mod cli;
mod clients;
mod completions;
#[cfg(unix)]
mod config;
#[path = "../shared/corpus.rs"]
mod corpus;
#[cfg(unix)]
mod docs;
mod evaluation;
#[cfg(unix)]
mod export;
#[path = "../shared/exports.rs"]
mod exports;
#[cfg(unix)]
mod filters;
#[path = "../shared/golden.rs"]
mod golden;
mod home;
#[cfg(unix)]
#[path = "../shared/http_server.rs"]
mod http_server;
#[cfg(target_os = "linux")]
mod json;
mod lists;
#[cfg(unix)]
mod meaning;
#[cfg(unix)]
mod moved;
#[cfg(unix)]
mod newcomer;
mod notes;
#[cfg(unix)]
mod picker;
#[cfg(unix)]
mod private;
#[cfg(unix)]
#[path = "../shared/program.rs"]
mod program;
#[cfg(unix)]
#[path = "../shared/pty.rs"]
mod pty;
#[allow(dead_code, reason = "the benchmark needs all of it")]
#[path = "../../benches/ranked/quality/mod.rs"]
mod quality;
mod ranked;
#[cfg(unix)]
#[path = "../shared/scene.rs"]
mod scene;
#[cfg(unix)]
mod search;
mod status;
#[path = "../shared/terminal.rs"]
mod terminal;
#[path = "../shared/threads.rs"]
mod threads;
#[path = "../shared/transcripts.rs"]
mod transcripts;
#[path = "../shared/user.rs"]
mod user;
