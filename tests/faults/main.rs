//! Crashes, damage, and many processes at once.

#[path = "../shared/cases.rs"]
mod cases;
#[allow(dead_code, reason = "not every binary needs it")]
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
#[allow(dead_code, reason = "not every binary needs it")]
#[path = "../shared/http_server.rs"]
mod http_server;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(unix)]
#[path = "../shared/program.rs"]
mod program;
#[allow(dead_code, reason = "not every binary needs it")]
#[path = "../shared/running.rs"]
mod running;
mod soak;
