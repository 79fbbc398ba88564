//! An error of changing a client's configuration.

use std::{io, path::PathBuf};

use crate::cli::clients::Fault;

/// The end of the address of a server.
pub(super) const MCP_PATH: &str = "/mcp";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}: this machine has no folder for its configuration (is HOME set?)")]
    NoFolder(String),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {fault} (nothing was changed)", path.display())]
    Config { path: PathBuf, fault: Fault },
    #[error("{0} has no servers over HTTP in its configuration; leave out --http")]
    NoHttp(&'static str),
    #[error(
        "{0:?} is not the address of a server; it must begin with http:// or https:// and end \
         with {MCP_PATH}"
    )]
    NoUrl(String),
    #[error(
        "{path:?} is not UTF-8, so no configuration can name it; rename it, or use another one"
    )]
    NoText {
        /// The path of the program, or of a database or folder that the server uses.
        path: PathBuf,
    },
    #[error("nothing was changed, because there is no terminal to ask; --yes makes the change")]
    NoTerminal,
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}
