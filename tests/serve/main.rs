//! The server: over standard input and output, over HTTP, and in a browser.

#[path = "../shared/browser.rs"]
mod browser;
#[path = "../shared/calls.rs"]
mod calls;
#[path = "../shared/cases.rs"]
mod cases;
#[path = "../shared/corpus.rs"]
mod corpus;
#[path = "../shared/exports.rs"]
mod exports;
#[path = "../shared/golden.rs"]
mod golden;
#[cfg(unix)]
mod http;
#[cfg(unix)]
mod http_clients;
#[cfg(target_os = "linux")]
mod http_load;
#[cfg(unix)]
#[path = "../shared/http_server.rs"]
mod http_server;
#[cfg(unix)]
mod letta;
mod manners;
mod mcp;
mod page;
mod page_changes;
mod page_files;
mod page_place;
mod pictures;
#[cfg(unix)]
#[path = "../shared/program.rs"]
mod program;
#[path = "../shared/running.rs"]
mod running;
#[path = "../shared/schema.rs"]
mod schema;
mod search;
#[cfg(unix)]
#[path = "../shared/user.rs"]
mod user;
mod watch;
mod workspace;
