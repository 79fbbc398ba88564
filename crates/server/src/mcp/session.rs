//! The state of one session, and the state that all sessions of a server share.

use std::sync::{Arc, Mutex};

use rmcp::{RoleServer, service::RequestContext};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::logging::ClientLog;
use crate::tools::{Offer, Options, Tool};
use verbatim_base::lock::lock;
use verbatim_engine::Engine;

/// The maximum number of concurrent calls; further calls wait.
pub(crate) const CONCURRENT_CALLS: usize = 8;

/// The maximum number of concurrent calls without an index. Such calls can take minutes, and the
/// limit leaves room for other calls.
const CONCURRENT_SCANS: usize = 4;

pub(super) struct ServerState {
    pub(super) engine: Arc<Engine>,
    pub(super) options: Options,
    offer: Offer,
    pub(super) permits: Arc<Semaphore>,
    /// One permit for each call that may search without an index.
    pub(super) scans: Semaphore,
}

impl ServerState {
    pub(super) fn new(engine: Arc<Engine>, options: Options, offer: Offer) -> ServerState {
        let permits = Arc::new(Semaphore::new(CONCURRENT_CALLS));
        let scans = Semaphore::new(CONCURRENT_SCANS);
        ServerState { engine, options, offer, permits, scans }
    }
}

pub(super) struct ClientSession {
    pub(super) shared: Arc<ServerState>,
    /// A token that is cancelled some time after the client disconnects, to end the client's calls.
    pub(super) is_over: CancellationToken,
    pub(super) log: ClientLog,
    /// Whether the session keeps no state between requests, as over HTTP.
    pub(super) is_stateless: bool,
    /// The name of the client, once the client has sent its name.
    client: Mutex<Option<String>>,
}

impl ClientSession {
    pub(super) fn new(shared: Arc<ServerState>, is_over: CancellationToken) -> ClientSession {
        let log = ClientLog::default();
        let client = Mutex::default();
        ClientSession { shared, is_over, log, is_stateless: false, client }
    }

    pub(super) fn of_request(
        shared: Arc<ServerState>,
        is_over: CancellationToken,
        client: Option<&str>,
    ) -> ClientSession {
        let session = ClientSession::new(shared, is_over);
        ClientSession {
            is_stateless: true,
            client: Mutex::new(client.map(str::to_owned)),
            ..session
        }
    }

    pub(super) fn meet(&self, client: &str) {
        *lock(&self.client) = Some(client.to_owned());
    }

    /// Returns the tools for this client. Clients of the newest revision send their name with each request.
    pub(super) fn tools(&self, context: Option<&RequestContext<RoleServer>>) -> Vec<&'static Tool> {
        let said = context.and_then(|context| Some(context.meta.client_info()?.name));
        let name = said.or_else(|| lock(&self.client).clone());
        self.shared.offer.to(name.as_deref())
    }
}
