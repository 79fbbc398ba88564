//! The command `verbatim serve`.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::{sync::Arc, time::Duration};

use super::http_listener::{ADDRESS, Admission, ListenAt};
use super::watch::{event_text, interrupted};
use super::{exclusions, indexing};
use crate::cli::command::{CommandArgs, Facts, Invocation, Terminal};
use crate::cli::error::{Error, Result};
use crate::cli::settings::environment::{Environment, is_off};
use crate::cli::settings::{self, engine_config, settings_file};
use crate::cli::terminal::output::{FOUND, complain};
use verbatim_base::private::FileLock;
use verbatim_engine::{Config, Engine, UpkeepEvent};
use verbatim_server::http::HttpServer;
use verbatim_server::http::search::searches_of;
use verbatim_server::tools::{self, Offer, Options};
use verbatim_server::{mcp, watch};

/// The message for a person who starts the server by hand in a terminal.
const BY_HAND: &str = "serving AI clients on standard input; clients start this command \
                       themselves, after `verbatim connect`. Ctrl-D ends it";

/// The maximum time that the program waits for a refresh to stop and clean up before it ends.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(2);

/// Serve the search to AI clients over the Model Context Protocol
///
/// Speaks MCP on standard input and output until the input ends; the log goes to
/// standard error. Clients start this command themselves; `verbatim connect` writes
/// their configuration. With --http or --socket, speaks MCP over HTTP at /mcp until Ctrl-C;
/// clients send the token that `verbatim status --token` prints.
///
///     verbatim serve --tools agent
///     verbatim serve --http 8377 --page
#[derive(Debug, Default, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(group(clap::ArgGroup::new("listens").args(["http", "socket"]).multiple(true)))]
pub(crate) struct Args {
    /// Offer these tools, by name, separated by commas; agent, letta, chatgpt and all stand for
    /// several
    /// [default: VERBATIM_TOOLS, then all but those that save and delete conversations]
    #[arg(long, value_name = "NAMES")]
    tools: Option<String>,
    /// A folder of dated conversations that may be searched (repeatable) [default: VERBATIM_WORKSPACE,
    /// several separated as in PATH]
    #[arg(long = "workspace", value_name = "FOLDER")]
    workspaces: Vec<PathBuf>,
    /// Do not ignore the case of the letters A to Z
    #[arg(long, hide_short_help = true)]
    case_sensitive: bool,
    /// Match and show messages as stored, even if that is the JSON of ChatGPT's message parts
    #[arg(long, hide_short_help = true)]
    raw_content: bool,
    /// Do not refresh indexes; this is how `verbatim connect` and `verbatim doctor` try a server
    #[arg(long, hide = true)]
    no_watch: bool,
    /// Speak HTTP on this address: a port, a host, or both
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = ADDRESS)]
    http: Option<String>,
    /// Speak HTTP on this Unix socket; only you can connect to it, without a token
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Serve the page for browsers too
    #[arg(long, requires = "listens")]
    page: bool,
    #[command(flatten)]
    pub(super) admission: Admission,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        Facts::INDEXES
    }

    fn configure(&mut self, config: &mut Config, environment: &Environment) {
        config.leave_indexes |= self.no_watch
            || environment.setting(&settings_file::WATCH).text().as_deref() == Some("false");
        let flag = self.workspaces.iter().map(|folder| folder.clone().into_os_string()).collect();
        let flag = Some(flag).filter(|_| !self.workspaces.is_empty());
        let workspaces = settings::resolve(&settings_file::WORKSPACES, flag, environment);
        config.workspaces = workspaces.paths().unwrap_or_default();
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        let Invocation { engine, terminal: Terminal { environment, .. }, .. } = invocation;
        let (mut options, offer) = select_tools(self, engine, environment)?;
        if let Some(note) = engine_config::local_note(engine.config()) {
            complain(&note);
        }
        let places = ListenAt {
            address: self.http.as_deref(),
            socket: self.socket.as_deref(),
            may_move: false,
        };
        self.admission.refuse_idle(&places)?;
        exclusions::follow(engine, environment);
        if self.http.is_none() && self.socket.is_none() {
            if environment.can_ask {
                complain(BY_HAND);
            }
            let watch = start_watch(engine);
            let served = mcp::serve(Arc::clone(engine), options, offer);
            end_watch(watch);
            served?;
            return Ok(FOUND);
        }
        let page = self.page.then(|| page(engine, environment)).transpose()?;
        let mut server = self.admission.server(&places, page, engine.config(), environment)?;
        server = server.with_search(searches_of(engine, environment.local_time));
        server.logs = true;
        options.page_url = self.admission.outer_url(server.url()).filter(|_| self.page);
        if let Some(url) = server.url() {
            let page = if self.page { format!(" and the page at {url}") } else { String::new() };
            let token = self.admission.token_hint();
            complain(&format!("serves MCP at {url}/mcp{page}{token}"));
        }
        if let Some(path) = &self.socket {
            complain(&format!("serves MCP on the socket {}, at /mcp", path.display()));
        }
        over_http(server, engine, options, offer)
    }
}

pub(super) fn select_tools(
    args: &Args,
    engine: &Engine,
    environment: &Environment,
) -> Result<(Options, Offer)> {
    let flag = args.tools.as_ref().map(|names| vec![names.into()]);
    let named = settings::resolve(&settings_file::TOOLS, flag, environment);
    let has_workspace = !engine.config().workspaces.is_empty();
    let offer = tools::selected(named.text().as_deref(), has_workspace)
        .map_err(|source| Error::Tools { by: named.by.to_string(), source })?;
    let options = Options {
        case_sensitive: args.case_sensitive,
        raw_content: args.raw_content,
        verbose: is_off(environment.variable("COMPACT_RESPONSES")),
        no_conversations: is_off(environment.variable("ENABLE_CONVERSATIONS")),
        page_url: None,
    };
    Ok((options, offer))
}

/// The lock of the process that serves the page of a home. It holds the address.
const PAGE_LOCK: &str = "page.lock";

/// Returns the address of the page of a home, if a process serves it.
pub(super) fn running_page(home: &Path) -> Option<String> {
    let url = FileLock::holder(&home.join(PAGE_LOCK))?;
    let address = url.strip_prefix("http://")?.parse().ok()?;
    TcpStream::connect_timeout(&address, MAX_CONNECT).is_ok().then_some(url)
}

const MAX_CONNECT: Duration = Duration::from_secs(1);

/// Answers over HTTP until a signal ends the program.
pub(super) fn over_http(
    server: HttpServer,
    engine: &Arc<Engine>,
    options: Options,
    offer: Offer,
) -> Result<u8> {
    // The lock says to others that this process serves the page, and where.
    let lock = engine.config().home.join(PAGE_LOCK);
    let mut running =
        options.page_url.as_ref().and_then(|_| FileLock::try_acquire(&lock, 1).ok()?);
    if let (Some(lock), Some(url)) = (&mut running, server.url()) {
        let _is_signed = lock.sign(&url);
    }
    let watch = start_watch(engine);
    let signal = async { drop(interrupted().await) };
    let engine = Arc::clone(engine);
    let served = server.serve(|is_over| mcp::http::router(engine, options, offer, is_over), signal);
    end_watch(watch);
    served?;
    Ok(FOUND)
}

#[cfg(feature = "page")]
pub(crate) fn page(engine: &Arc<Engine>, environment: &Environment) -> Result<axum::Router> {
    let resources = indexing::resources(environment);
    Ok(verbatim_server::web::router(Arc::clone(engine), environment.local_time, resources))
}

#[cfg(not(feature = "page"))]
pub(crate) fn page(_: &Arc<Engine>, _: &Environment) -> Result<axum::Router> {
    Err(Error::NotBuilt { what: "the page", feature: "page" })
}

/// Starts to watch the databases, unless this is switched off. Searches are correct without the
/// watch, so an error of the thread's start is only logged.
fn start_watch(engine: &Arc<Engine>) -> Option<watch::Watch> {
    if engine.config().leave_indexes {
        return None;
    }
    let started = watch::start(Arc::clone(engine), |event| match event {
        // Merging changes no answer, so it is of no interest to users.
        watch::Event::Index(UpkeepEvent::Merged { .. }) => {}
        event => complain(&event_text(&event)),
    });
    started.map_err(|error| complain(&error.to_string())).ok()
}

fn end_watch(watch: Option<watch::Watch>) {
    if let Some(watch) = watch {
        watch.end(SHUTDOWN_PATIENCE);
    }
}
