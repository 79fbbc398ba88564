//! Batches: several messages in one array, a feature of protocol revision 2025-03-26.
//!
//! The answers to a batch are sent as one array when all answers exist.

use std::collections::HashSet;

use rmcp::model::RequestId;
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Batches {
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
    /// Returns the array of answers; `None` if the batch has no answers.
    fn complete(self) -> Option<Value> {
        (!self.answers.is_empty()).then_some(Value::Array(self.answers))
    }
}

impl Batches {
    /// Adds a batch whose requests are not delivered yet. If the batch has no pending request,
    /// returns its answer instead.
    pub(super) fn begin(&mut self, batch: Batch) -> Option<Value> {
        if batch.waiting.is_empty() {
            return batch.complete();
        }
        self.open.push(batch);
        None
    }

    /// Returns whether a request belongs to a batch and has no answer yet.
    pub(super) fn holds(&self, id: &RequestId) -> bool {
        self.open.iter().any(|batch| batch.waiting.contains(id))
    }

    /// Adds the answer to a request of a batch; `None` for a cancelled request, which gets no
    /// answer. Returns the answer to the whole batch when its last request is answered.
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
