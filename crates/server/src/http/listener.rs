//! Accepts connections, limits their number and time, and closes them cleanly.

use std::{io, net, sync::Arc, time::Duration};

use axum::Router;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::{net::TcpListener, task::JoinSet, time::timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::gate::Peer;

/// The maximum number of open connections; a further one waits until one of them ends.
pub(super) const CONNECTIONS: usize = 1_024;

/// The time limit for the headers of a request, and for a connection without a request.
const HEADER_TIME: Duration = Duration::from_secs(15);

/// The time limit for the client to read the next part of an answer.
pub(super) const WRITE_TIME: Duration = Duration::from_secs(30);

/// The time limit between two parts of a request's body, and for the whole form of a login.
pub(super) const BODY_TIME: Duration = Duration::from_secs(30);

/// How long open connections may continue after the server is told to end.
pub(super) const GRACE: Duration = Duration::from_secs(2);

const HEADER_BYTES: usize = 32 << 10;

const HEADERS: usize = 100;

/// The pause after a system error, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

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
    pub(super) write_time: Duration,
    pub(super) slots: Arc<Semaphore>,
    pub(super) call: CancellationToken,
}

impl Acceptor {
    pub(super) async fn accept_all(self, listener: Listener) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accept = async {
                let slot = self.slots.clone().acquire_owned().await.map_err(io::Error::other)?;
                Ok::<_, io::Error>((listener.accept().await?, slot))
            };
            let accepted = tokio::select! {
                () = self.call.cancelled() => break,
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

    async fn answer(self, stream: Box<dyn ByteStream>, peer: Peer, _slot: OwnedSemaphorePermit) {
        let Acceptor { app, write_time, call, .. } = self;
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(write_time));
        let stream = TokioIo::new(Box::pin(stream));
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            app.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_headers(HEADERS)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(stream, service);
        let mut connection = std::pin::pin!(connection);
        // Errors are ignored, because the client may end a connection in any way.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = call.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = timeout(GRACE, connection).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::{io::AsyncWriteExt, net::TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_loses_its_connection() {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = Acceptor {
            app: Router::new().route("/", get(async || vec![0; 64 << 20])),
            write_time: Duration::from_millis(100),
            slots: Arc::new(Semaphore::new(1)),
            call: CancellationToken::new(),
        };
        let accepting = tokio::spawn(acceptor.accept_all(Listener::tcp(listener).unwrap()));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        // The only slot is free again when the connection has ended.
        let mut other = TcpStream::connect(address).await.unwrap();
        other.write_all(b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let answered = timeout(Duration::from_secs(10), other.readable()).await;
        assert!(answered.is_ok_and(|readable| readable.is_ok()));
        accepting.abort();
    }
}
