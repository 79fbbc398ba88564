//! Accepts connections, limits their number and time, and closes them cleanly.

use std::{
    convert::Infallible,
    io, net,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::Router;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{
    gate::{self, Peer},
    idle::{ConnectionTurn, IdleConnections, TurnBody},
    metrics::Metrics,
    timed::Timed,
};

/// The limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The maximum number of open connections. If there are more, the connections that have waited
    /// longest for a request are closed. If no connection waits, new connections must wait.
    pub connections: usize,
    /// The time limit for the headers of a request, and for a connection without a request.
    pub header_time: Duration,
    /// The time limit for the client to read the next part of an answer.
    pub write_time: Duration,
    /// The time limit between two parts of a request's body.
    pub body_time: Duration,
    /// How long open connections may continue after the server is told to end.
    pub grace: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits {
            connections: 512,
            header_time: Duration::from_secs(15),
            write_time: Duration::from_secs(30),
            body_time: Duration::from_secs(30),
            grace: Duration::from_secs(2),
        }
    }
}

const HEADER_BYTES: usize = 32 << 10;

const HEADERS: usize = 100;

/// The pause after a system error, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The number of connections to close at once if too many are open, and the time limit of closing.
const CLOSED_AT_ONCE: usize = 16;
const CLOSING: Duration = Duration::from_millis(5);

pub(super) enum Listener {
    Tcp(TcpListener),
    /// A Unix socket, with the identity of its file.
    #[cfg(unix)]
    Unix(UnixListener, Option<FileIdentity>),
}

/// The device and the inode of a file.
#[cfg(unix)]
type FileIdentity = (u64, u64);

#[cfg(unix)]
fn identity(path: &std::path::Path) -> Option<FileIdentity> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

impl Drop for Listener {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Listener::Unix(listener, ours) = self
            && let Ok(address) = listener.local_addr()
            && let Some(path) = address.as_pathname()
            // Another server may have replaced the file in the meantime.
            && identity(path) == *ours
        {
            drop(std::fs::remove_file(path));
        }
    }
}

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

impl Listener {
    pub(super) fn tcp(listener: net::TcpListener) -> io::Result<Listener> {
        listener.set_nonblocking(true)?;
        Ok(Listener::Tcp(TcpListener::from_std(listener)?))
    }

    #[cfg(unix)]
    pub(super) fn unix(listener: std::os::unix::net::UnixListener) -> io::Result<Listener> {
        listener.set_nonblocking(true)?;
        let ours = listener.local_addr()?.as_pathname().and_then(identity);
        Ok(Listener::Unix(UnixListener::from_std(listener)?, ours))
    }

    async fn accept(&self) -> io::Result<(Box<dyn ByteStream>, Peer)> {
        match self {
            Listener::Tcp(listener) => loop {
                let (stream, _) = listener.accept().await?;
                // Answers are short, so waiting to fill a packet would only delay them.
                let _ = stream.set_nodelay(true);
                // A connection that the client has already closed has no address.
                if let Ok(address) = stream.local_addr() {
                    return Ok((Box::new(stream), Peer::Tcp(address.ip())));
                }
            },
            #[cfg(unix)]
            Listener::Unix(listener, _) => Ok((Box::new(listener.accept().await?.0), Peer::Socket)),
        }
    }
}

#[derive(Clone)]
pub(super) struct Acceptor {
    pub(super) app: Router,
    pub(super) limits: ConnectionLimits,
    pub(super) slots: Arc<Semaphore>,
    pub(super) idle: Arc<IdleConnections>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) stop: CancellationToken,
}

impl Acceptor {
    pub(super) async fn accept_all(self, listener: Listener) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accept = async {
                let accepted = listener.accept().await?;
                Ok::<_, io::Error>((accepted, self.slot().await?))
            };
            let accepted = tokio::select! {
                () = self.stop.cancelled() => break,
                accepted = accept => accepted,
            };
            match accepted {
                Ok(((stream, peer), slot)) => {
                    connections.spawn(self.clone().answer(stream, peer, slot));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        // No new connections are accepted while the server stops.
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    async fn slot(&self) -> io::Result<OwnedSemaphorePermit> {
        loop {
            if let Ok(slot) = self.slots.clone().try_acquire_owned() {
                return Ok(slot);
            }
            self.idle.close(CLOSED_AT_ONCE);
            if let Ok(slot) = timeout(PAUSE, self.slots.clone().acquire_owned()).await {
                return slot.map_err(io::Error::other);
            }
        }
    }

    async fn answer(self, stream: Box<dyn ByteStream>, peer: Peer, _slot: OwnedSemaphorePermit) {
        let Acceptor { app, limits, metrics, stop, idle, .. } = self;
        metrics.connections.fetch_add(1, Ordering::Relaxed);
        let stream = TokioIo::new(Timed::new(stream, limits.write_time));
        let close = CancellationToken::new();
        let connection = Arc::new(ConnectionTurn::new(idle, close.clone()));
        let service = service_fn(move |mut request: Request<Incoming>| {
            // During a request that needs no token, the connection may be closed, so that slow
            // clients do not block others.
            let turn = (!gate::is_open(&request)).then(|| connection.begin());
            request.extensions_mut().insert(peer);
            let answering = app.clone().oneshot(request);
            async move {
                let Ok(answer) = answering.await;
                Ok::<_, Infallible>(answer.map(|body| TurnBody { body, _turn: turn }))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_time)
            .max_headers(HEADERS)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(stream, service);
        let mut connection = std::pin::pin!(connection);
        // Errors are ignored, because the client may end a connection in any way.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = close.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = timeout(CLOSING, connection).await;
            }
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = timeout(limits.grace, connection).await;
            }
        }
        metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
