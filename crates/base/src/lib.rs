//! The ground that all crates of Verbatim stand on: plain data, and files that only their owner can read.
//!
//! - [`model`]: conversations, messages, requests and instants
//! - [`call`]: what ends the work of a call, and what it waits for
//! - [`private`]: makes every folder and file, with rights for their owner alone; locks between processes
//! - [`files`]: opens files to read, whatever is in their place
//! - [`map_faults`]: mapped files that another process may cut while they are read
//! - [`int8`]: rounded vectors
//! - [`failpoint`]: where tests end the program as a crash does; [`lock`]: mutexes, also after a panic
//!
//! It knows no format, no database and no network. It uses no other crate of Verbatim.

pub mod call;
pub mod failpoint;
pub mod files;
pub mod int8;
pub mod lock;
pub mod map_faults;
pub mod model;
pub mod private;
