//! The command `verbatim web`.

use super::http_listener::{ADDRESS, ListenAt, token_of};
use super::{exclusions, serve};
use crate::cli::command::{CommandArgs, Facts, Invocation, Terminal};
use crate::cli::error::Result;
use crate::cli::settings::environment::Environment;
use crate::cli::terminal::output::{FOUND, complain};
use verbatim_engine::Config;
use verbatim_server::http::search::searches_of;

/// Search and read your chats in the browser
///
///     verbatim web
///     verbatim web 9000 --no-open
///
/// Starts a server on this computer and opens its page. The address that it prints holds the token
/// that lets your browser in; other users of the computer cannot open the page. AI clients reach the
/// same server at /mcp. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Listen here: a port, a host, or both [default: 127.0.0.1:8377]
    #[arg(value_name = "ADDRESS")]
    address: Option<String>,
    /// Only print the address, and do not open it
    #[arg(long)]
    no_open: bool,
    /// Options of the server that have no flags here, so that only the settings set them.
    #[arg(skip)]
    serving: serve::Args,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        Facts::INDEXES
    }

    fn configure(&mut self, config: &mut Config, environment: &Environment) {
        self.serving.configure(config, environment);
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        let Invocation { engine, terminal: Terminal { environment, out }, .. } = invocation;
        exclusions::follow(engine, environment);
        let (mut options, offer) = serve::select_tools(&self.serving, engine, environment)?;
        let address = self.address.as_deref();
        // If the default port is taken, the server uses another port, and the browser opens that address.
        let places = ListenAt {
            address: address.or(Some(ADDRESS)),
            socket: None,
            may_move: address.is_none(),
        };
        let page = serve::page(engine, environment)?;
        let config = engine.config();
        let server = self.serving.admission.server(&places, Some(page), config, environment)?;
        let server = server.with_search(searches_of(engine, environment.local_time));
        let Some(address) = server.url() else { return Ok(FOUND) };
        // Other users can see the browser's command line, so the address that is opened must not have the token.
        let mut printed = address.clone();
        let mut opened = address;
        if let Some(code) = server.login_code()? {
            let token = token_of(None, config, environment)?;
            printed = format!("{printed}/#token={}", token.as_str());
            opened = format!("{opened}/#token={code}");
        }
        writeln!(out, "{printed}")?;
        out.flush()?;
        // The error of the crate `open` is not printed, because it contains the address with the login code.
        if !self.no_open && open::that_detached(&opened).is_err() {
            complain("no browser could be started; open the address above");
        }
        options.page_url = server.url();
        serve::over_http(server, engine, options, offer)
    }
}
