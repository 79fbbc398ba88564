//! The command `verbatim web`.

use std::sync::Arc;

use serde_json::json;

use super::{
    environment::Terminal,
    error::Result,
    exclude,
    listen::{self, ADDRESS, ListenAt},
    output::{FOUND, complain, json_line},
    serve,
    token::token_of,
};
use verbatim_engine::Engine;

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
pub(super) struct Args {
    /// Listen here: a port, a host, or both [default: 127.0.0.1:8377]
    #[arg(value_name = "ADDRESS")]
    address: Option<String>,
    /// Only print the address, and do not open it
    #[arg(long)]
    no_open: bool,
    /// Options of the server that have no flags here, so that only the settings set them.
    #[arg(skip)]
    pub(super) serving: serve::Args,
}

pub(super) fn run(args: &Args, engine: Engine, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    exclude::follow(&engine, environment);
    let engine = Arc::new(engine);
    let (mut options, offer) = serve::select_tools(&args.serving, &engine, environment)?;
    let address = args.address.as_deref();
    // If the default port is taken, the server uses another port, and the browser opens that address.
    let places =
        ListenAt { address: address.or(Some(ADDRESS)), socket: None, may_move: address.is_none() };
    let page = serve::page(&engine, environment)?;
    let config = engine.config();
    let server = args.serving.admission.server(&places, Some(page), config, environment)?;
    let server = server.with_search(listen::search_by(&engine, environment));
    let Some(address) = server.url() else { return Ok(FOUND) };
    // Other users can see the browser's command line, so the address that is opened must not have the token.
    let (mut printed, mut opened) = (address.clone(), address);
    if let Some(code) = server.login_code()? {
        let token = token_of(None, config, environment)?;
        printed = format!("{printed}/#token={}", token.as_str());
        opened = format!("{opened}/#token={code}");
    }
    writeln!(out, "{printed}")?;
    out.flush()?;
    // The error of the crate `open` is not printed, because it contains the address with the login code.
    if !args.no_open && open::that_detached(&opened).is_err() {
        complain("no browser could be started; open the address above");
    }
    options.page_url = server.url();
    serve::over_http(server, engine, (options, offer))
}

/// Print the token that lets clients in over HTTP
///
///     verbatim token
///
/// The first server over HTTP makes it; so does this command. Clients send it as
/// `Authorization: Bearer TOKEN`, and the page asks for it once.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct TokenArgs {
    /// Make a new token; clients with the old one are let in until the server starts again
    #[arg(long)]
    new: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn token(args: &TokenArgs, engine: &Engine, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let config = engine.config();
    let token = match args.new {
        true => verbatim_server::http::token::AccessToken::renewed(&config.home)
            .map_err(verbatim_server::http::Error::from)?,
        false => token_of(None, config, environment)?,
    };
    match args.json {
        true => json_line(out, &json!({"token": token.as_str()}))?,
        false => writeln!(out, "{}", token.as_str())?,
    }
    if args.new {
        complain("clients need the new token as soon as the server is started again");
        if environment.filled("VERBATIM_TOKEN").is_some() {
            complain("but VERBATIM_TOKEN is set: a server started with it accepts only that token");
        }
    }
    Ok(FOUND)
}
