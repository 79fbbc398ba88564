//! Crashes, damage, and many processes at once.

#[path = "../shared/cases.rs"]
mod cases;
#[path = "../shared/corpus.rs"]
mod corpus;
#[cfg(unix)]
mod crash;
#[cfg(unix)]
mod damage;
mod hammer;
#[cfg(unix)]
mod havoc;
#[cfg(unix)]
#[path = "../shared/http_server.rs"]
mod http_server;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(unix)]
#[path = "../shared/program.rs"]
mod program;
#[path = "../shared/running.rs"]
mod running;
mod soak;
