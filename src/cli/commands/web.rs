//! The command `verbatim web`.

use super::http_listener::{ADDRESS, ListenAt, PORT, token_of};
use std::io::Write;

use super::{exclusions, serve};
use crate::cli::command::{CommandArgs, Facts, Invocation, Terminal};
use crate::cli::error::Result;
use crate::cli::settings::environment::Environment;
use crate::cli::terminal::output::{FOUND, complain};
use verbatim_engine::Config;
use verbatim_server::http::{self, search::searches_of};

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
        // A second page of the same chats would only be one more address.
        let running = serve::running_page(&engine.config().home);
        if let Some(running) = running.filter(|url| self.means(url)) {
            complain(&format!(
                "the page runs already; `verbatim web {}` starts another one",
                PORT + 1
            ));
            self.open(&running, engine.config(), environment, out)?;
            return Ok(FOUND);
        }
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
        self.open(&address, config, environment, out)?;
        options.page_url = Some(address);
        serve::over_http(server, engine, options, offer)
    }
}

impl Args {
    /// Returns whether the page at an address is wanted: another one may be started at another port.
    fn means(&self, url: &str) -> bool {
        let port = url.rsplit(':').next();
        self.address.as_deref().is_none_or(|address| address.rsplit(':').next() == port)
    }

    /// Prints an address of the page with the token, and opens it.
    fn open(
        &self,
        address: &str,
        config: &Config,
        environment: &Environment,
        out: &mut dyn Write,
    ) -> Result<()> {
        let token = token_of(None, config, environment)?;
        writeln!(out, "{address}/#token={}", token.as_str())?;
        out.flush()?;
        // Other users can see the browser's command line, so the address that is opened must not have the token.
        // The error of the crate `open` is not printed, because it contains the address with the login code.
        let code = token.login_code_now().map_err(http::Error::from)?;
        if !self.no_open && open::that_detached(format!("{address}/#token={code}")).is_err() {
            complain("no browser could be started; open the address above");
        }
        Ok(())
    }
}
