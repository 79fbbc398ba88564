//! What the server says of its own: on standard error, and to clients that want to hear it.
//!
//! The newest revision of the protocol puts the level into each request and calls the rest
//! deprecated; older clients, which are most, set it once.

#![expect(deprecated, reason = "clients of older revisions know no other way")]

use std::{
    io::{self, Write},
    sync::atomic::{AtomicU8, Ordering},
};

use rmcp::{
    RoleServer,
    model::{LoggingLevel as Level, LoggingMessageNotificationParam, ProtocolVersion},
    service::RequestContext,
};
use serde_json::json;

use super::Server;

/// The level from which on a client is told; nothing until it sets one, for there are clients that
/// take the first line that comes for their answer.
#[derive(Debug)]
pub(super) struct Threshold(AtomicU8);

impl Default for Threshold {
    fn default() -> Threshold {
        Threshold(AtomicU8::new(u8::MAX))
    }
}

impl Threshold {
    /// Sets the level that a client asks for.
    pub(super) fn set(&self, level: Level) {
        self.0.store(level as u8, Ordering::Relaxed);
    }
}

impl Server {
    /// Says that something went wrong which is none of the client's doing.
    pub(super) async fn report(&self, context: &RequestContext<RoleServer>, message: &str) {
        log(message);
        self.tell(context, Level::Error, message).await;
    }

    /// Says something to clients that want to hear everything.
    pub(super) async fn mention(&self, context: &RequestContext<RoleServer>, message: &str) {
        self.tell(context, Level::Debug, message).await;
    }

    /// Tells the client, if it wants to hear of this level.
    async fn tell(&self, context: &RequestContext<RoleServer>, level: Level, message: &str) {
        let is_new = context
            .protocol_version()
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let from = match context.meta.log_level() {
            Some(level) => level as u8,
            None if is_new => return,
            None => self.threshold.0.load(Ordering::Relaxed),
        };
        if level as u8 >= from {
            let note = LoggingMessageNotificationParam::new(level, json!(message));
            // A client that does not hear it still gets its answer.
            let _ = context.peer.notify_logging_message(note.with_logger("verbatim")).await;
        }
    }
}

/// Writes a line to the log, which is standard error; a log that is gone is not missed.
pub(super) fn log(message: &str) {
    let _ = writeln!(io::stderr(), "verbatim: {message}");
}
