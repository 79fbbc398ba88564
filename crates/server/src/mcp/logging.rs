//! Writes log messages to standard error, and sends them to clients that ask for them.
//!
//! In the newest protocol revision, each request contains the log level, and the other log features
//! are deprecated. Most clients are older and set the level once.

#![expect(deprecated, reason = "clients of older revisions know no other way")]

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rmcp::model::{LoggingLevel as Level, LoggingMessageNotificationParam, ProtocolVersion};
use rmcp::{RoleServer, service::RequestContext};
use serde_json::json;
use tokio::time::timeout;

use crate::log::log;

/// How long an answer waits until a log message is sent. After the end of input, no message is sent.
const PATIENCE: Duration = Duration::from_millis(100);

/// The log level of a client. Until the client sets a level, no message is sent, because some
/// clients read the first line of output as their answer.
#[derive(Debug)]
pub(super) struct ClientLog {
    threshold: AtomicU8,
}

impl Default for ClientLog {
    fn default() -> ClientLog {
        ClientLog { threshold: AtomicU8::new(u8::MAX) }
    }
}

impl ClientLog {
    pub(super) fn set(&self, level: Level) {
        self.threshold.store(level as u8, Ordering::Relaxed);
    }

    /// Reports an error that is not the client's fault.
    pub(super) async fn report(&self, context: &RequestContext<RoleServer>, message: &str) {
        log(message);
        self.send(context, Level::Error, message).await;
    }

    pub(super) async fn debug(&self, context: &RequestContext<RoleServer>, message: &str) {
        self.send(context, Level::Debug, message).await;
    }

    async fn send(&self, context: &RequestContext<RoleServer>, level: Level, message: &str) {
        let threshold = match context.meta.log_level() {
            Some(level) => level as u8,
            None if is_newest(context) => return,
            None => self.threshold.load(Ordering::Relaxed),
        };
        if level as u8 >= threshold {
            let note = LoggingMessageNotificationParam::new(level, json!(message));
            let sent = context.peer.notify_logging_message(note.with_logger("verbatim"));
            // If the message is lost, the client still gets its answer.
            let _ = timeout(PATIENCE, sent).await;
        }
    }
}

pub(super) fn is_newest(context: &RequestContext<RoleServer>) -> bool {
    let newest = ProtocolVersion::V_2026_07_28;
    context.protocol_version().is_some_and(|version| version.as_str() >= newest.as_str())
}
