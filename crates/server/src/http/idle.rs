//! Connections that wait for a request. If too many connections are open, the connections that have
//! waited longest are closed, so that idle clients do not block others.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::CancellationToken;

use verbatim_base::lock::lock;

/// The waiting connections; the connection that has waited longest comes first.
#[derive(Debug, Default)]
pub(super) struct IdleConnections(Mutex<IdleList>);

#[derive(Debug, Default)]
struct IdleList {
    next: u64,
    waiting: BTreeMap<u64, CancellationToken>,
}

impl IdleConnections {
    /// Closes the `most` connections that have waited longest, or all if there are fewer.
    pub(super) fn close(&self, most: usize) {
        let mut list = lock(&self.0);
        for _ in 0..most {
            let Some((_, close)) = list.waiting.pop_first() else { break };
            close.cancel();
        }
    }

    fn add(&self, close: CancellationToken) -> u64 {
        let mut list = lock(&self.0);
        let place = list.next;
        list.next += 1;
        list.waiting.insert(place, close);
        place
    }

    fn remove(&self, place: u64) {
        lock(&self.0).waiting.remove(&place);
    }
}

#[derive(Debug)]
pub(super) struct ConnectionTurn {
    idle: Arc<IdleConnections>,
    close: CancellationToken,
    place: Mutex<Option<u64>>,
}

impl ConnectionTurn {
    /// Returns a waiting connection; cancelling `close` closes the connection.
    pub(super) fn new(idle: Arc<IdleConnections>, close: CancellationToken) -> ConnectionTurn {
        let place = Mutex::new(Some(idle.add(close.clone())));
        ConnectionTurn { idle, close, place }
    }

    /// Marks the beginning of a request. When the returned value is dropped, the connection waits again.
    pub(super) fn begin(self: &Arc<Self>) -> RequestTurn {
        self.set(None);
        RequestTurn(Arc::clone(self))
    }

    fn set(&self, place: Option<u64>) {
        let mut held = lock(&self.place);
        if let Some(before) = std::mem::replace(&mut *held, place) {
            self.idle.remove(before);
        }
    }
}

impl Drop for ConnectionTurn {
    fn drop(&mut self) {
        self.set(None);
    }
}

#[derive(Debug)]
pub(super) struct RequestTurn(Arc<ConnectionTurn>);

impl Drop for RequestTurn {
    fn drop(&mut self) {
        self.0.set(Some(self.0.idle.add(self.0.close.clone())));
    }
}

/// The body of an answer; dropping it ends the request.
pub(super) struct TurnBody {
    pub(super) body: Body,
    pub(super) _turn: Option<RequestTurn>,
}

impl HttpBody for TurnBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_wait_longest_are_closed_and_those_that_work_are_not() {
        let idle = Arc::new(IdleConnections::default());
        let turns: Vec<(CancellationToken, Arc<ConnectionTurn>)> = (0..5)
            .map(|_| {
                let close = CancellationToken::new();
                let turn = Arc::new(ConnectionTurn::new(Arc::clone(&idle), close.clone()));
                (close, turn)
            })
            .collect();
        let closed = || -> Vec<bool> { turns.iter().map(|it| it.0.is_cancelled()).collect() };
        let working = turns[0].1.begin();
        // The second connection waits again, as the last one.
        drop(turns[1].1.begin());
        idle.close(2);
        assert_eq!(closed(), [false, false, true, true, false]);
        drop(working);
        idle.close(2);
        assert_eq!(closed(), [false, true, true, true, true]);
        idle.close(2);
        assert_eq!(closed(), [true; 5]);
        drop(turns);
        assert!(idle.0.lock().unwrap().waiting.is_empty());
    }
}
