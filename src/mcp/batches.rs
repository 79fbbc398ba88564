//! Batches: several messages in one array, which revision 2025-03-26 of the protocol has.
//!
//! The answers to a batch go out as one array, once all of them are there.

use std::collections::HashSet;

use rmcp::model::RequestId;
use serde_json::Value;

/// The batches that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// Whether the session's revision has batches.
    pub(super) are_allowed: bool,
    open: Vec<Batch>,
}

/// One batch: the requests that wait for an answer, and the answers so far.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) waiting: HashSet<RequestId>,
    pub(super) answers: Vec<Value>,
}

impl Batch {
    /// Returns the answers if they are complete; an array without requests has none.
    fn complete(self) -> Option<Value> {
        (!self.answers.is_empty()).then_some(Value::Array(self.answers))
    }
}

impl Batches {
    /// Adds a batch before its requests are delivered; returns its answer if none is waited for.
    pub(super) fn begin(&mut self, batch: Batch) -> Option<Value> {
        if batch.waiting.is_empty() {
            return batch.complete();
        }
        self.open.push(batch);
        None
    }

    /// Returns whether a request came in a batch and is not answered.
    pub(super) fn holds(&self, id: &RequestId) -> bool {
        self.open.iter().any(|batch| batch.waiting.contains(id))
    }

    /// Takes the answer to a request of a batch; `None` for a request that was cancelled, which has
    /// no answer. Returns the answer to the batch once it is complete.
    pub(super) fn answer(&mut self, id: &RequestId, answer: Option<Value>) -> Option<Value> {
        let at = self.open.iter().position(|batch| batch.waiting.contains(id))?;
        let batch = &mut self.open[at];
        batch.waiting.remove(id);
        batch.answers.extend(answer);
        if !batch.waiting.is_empty() {
            return None;
        }
        self.open.remove(at).complete()
    }
}
