//! The state of one session, and the state that all sessions of a server share.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::logging::ClientLog;
use crate::{
    engine::Engine,
    tools::{Options, Tool},
};

/// The state that all sessions of a server share.
pub(super) struct ServerState {
    pub(super) engine: Arc<Engine>,
    pub(super) options: Options,
    pub(super) tools: Vec<&'static Tool>,
    /// One permit for each call that may run.
    pub(super) permits: Arc<Semaphore>,
    /// One permit for each call that may search without an index.
    pub(super) scans: Semaphore,
}

impl ServerState {
    pub(super) fn new(
        engine: Arc<Engine>,
        options: Options,
        tools: Vec<&'static Tool>,
    ) -> ServerState {
        let permits = Arc::new(Semaphore::new(super::CONCURRENT_CALLS));
        let scans = Semaphore::new(super::CONCURRENT_SCANS);
        ServerState { engine, options, tools, permits, scans }
    }
}

pub(super) struct ClientSession {
    pub(super) shared: Arc<ServerState>,
    /// Cancelled some time after the client has gone; calls end then.
    pub(super) is_over: CancellationToken,
    pub(super) log: ClientLog,
    /// Whether nothing is kept between two requests.
    pub(super) is_stateless: bool,
}

impl ClientSession {
    pub(super) fn new(shared: Arc<ServerState>, is_over: CancellationToken) -> ClientSession {
        ClientSession { shared, is_over, log: ClientLog::default(), is_stateless: false }
    }

    /// Returns the session of one request over HTTP, where nothing is kept for the next.
    pub(super) fn of_request(
        shared: Arc<ServerState>,
        is_over: CancellationToken,
    ) -> ClientSession {
        ClientSession { is_stateless: true, ..ClientSession::new(shared, is_over) }
    }

    pub(super) fn tool(&self, name: &str) -> Option<&'static Tool> {
        self.shared.tools.iter().copied().find(|tool| tool.name == name)
    }
}
