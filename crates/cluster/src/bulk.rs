//! Sends documents in batches, several at a time.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::{Client, HttpRequest, full, is_full, shown};
use super::error::Result;
use verbatim_base::call::Stop;

const BATCH_BYTES: usize = 4 << 20;

const MOST_ON_THE_WAY: usize = 4;

const MOST_ATTEMPTS: u32 = 12;

const WHAT: &str = "write documents";

/// A sender of documents to an index.
///
/// Invariant: a document of [`Bulk::add_after`] is sent after all documents that were added before it
/// have arrived.
pub(super) struct Bulk<'a> {
    client: &'a Client,
    stop: &'a Stop,
    index: String,
    batch: String,
    sent: u64,
    arrived: u64,
    on_the_way: VecDeque<JoinHandle<Result<()>>>,
    /// Waiting documents, each with the number of batches that must arrive before it is sent.
    waiting: VecDeque<(u64, String)>,
}

impl<'a> Bulk<'a> {
    pub(super) fn new(client: &'a Client, stop: &'a Stop, index: &str) -> Bulk<'a> {
        Bulk {
            client,
            stop,
            index: index.to_owned(),
            batch: String::new(),
            sent: 0,
            arrived: 0,
            on_the_way: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Adds a document in the form that [`line`] returns.
    pub(super) fn add(&mut self, line: &str) -> Result<()> {
        self.batch.push_str(line);
        if self.batch.len() < BATCH_BYTES { Ok(()) } else { self.send() }
    }

    /// Adds a document that must arrive after all documents added before it.
    pub(super) fn add_after(&mut self, line: String) {
        let needed = self.sent + u64::from(!self.batch.is_empty());
        self.waiting.push_back((needed, line));
    }

    /// Sends the remaining documents, and waits until all of them have arrived.
    pub(super) fn finish(mut self) -> Result<()> {
        while !self.batch.is_empty() || !self.waiting.is_empty() {
            if self.batch.is_empty() {
                self.wait_for(0)?;
            }
            self.send()?;
        }
        self.wait_for(0)
    }

    /// Sends the batch, together with the waiting documents that may be sent now.
    fn send(&mut self) -> Result<()> {
        self.wait_for(MOST_ON_THE_WAY - 1)?;
        let mut batch = std::mem::take(&mut self.batch);
        // The size of a batch is bounded, because many documents may be waiting.
        while batch.len() < 2 * BATCH_BYTES
            && let Some((needed, _)) = self.waiting.front()
            && *needed <= self.arrived
            && let Some((_, line)) = self.waiting.pop_front()
        {
            batch.push_str(&line);
        }
        self.sent += 1;
        let client = self.client.clone();
        let stop = self.stop.clone();
        let index = self.index.clone();
        self.on_the_way.push_back(thread::spawn(move || send(&client, &index, batch, &stop)));
        Ok(())
    }

    fn wait_for(&mut self, most: usize) -> Result<()> {
        while self.on_the_way.len() > most
            && let Some(oldest) = self.on_the_way.pop_front()
        {
            oldest
                .join()
                .unwrap_or_else(|_| Err(self.client.failed(WHAT, "the request broke off")))?;
            self.arrived += 1;
        }
        Ok(())
    }
}

/// Returns the two lines of a bulk request for one document.
pub(super) fn line(client: &Client, name: &str, document: &impl Serialize) -> Result<String> {
    let action = json!({ "index": { "_id": name } });
    let text = serde_json::to_string(document)
        .map_err(|error| client.failed("write a document", error.to_string()))?;
    let mut line = String::with_capacity(text.len() + 80);
    let _ = write!(line, "{action}\n{text}\n");
    Ok(line)
}

fn send(client: &Client, index: &str, body: String, stop: &Stop) -> Result<()> {
    #[derive(Deserialize)]
    struct BulkAnswer {
        errors: bool,
        #[serde(default)]
        items: Vec<HashMap<String, Item>>,
    }
    #[derive(Deserialize)]
    struct Item {
        #[serde(rename = "_id")]
        name: String,
        status: u16,
        #[serde(default)]
        error: Value,
    }
    let path =
        format!("/{index}/_bulk?filter_path=errors,items.*._id,items.*.status,items.*.error");
    let mut body = Arc::new(body);
    for attempt in 1.. {
        let call = HttpRequest::import(WHAT, "POST", path.clone()).with_text(Arc::clone(&body));
        let answer: BulkAnswer = client.ask(call, stop)?;
        // The status is 200 even if documents in the request failed.
        if !answer.errors {
            break;
        }
        let mut again = String::new();
        let mut lines = body.split_inclusive('\n');
        for item in answer.items.into_iter().flat_map(HashMap::into_values) {
            let two = [lines.next(), lines.next()];
            let reason = shown(item.error["reason"].as_str().unwrap_or_default());
            match item.status {
                200..=299 => {}
                429 if is_full(&reason) => return Err(client.failed(WHAT, full(&reason))),
                429 | 503 if attempt < MOST_ATTEMPTS => again.extend(two.into_iter().flatten()),
                status => {
                    let why =
                        format!("document {} was refused, status {status}: {reason}", item.name);
                    return Err(client.failed(WHAT, why));
                }
            }
        }
        if again.is_empty() {
            break;
        }
        body = Arc::new(again);
        client.pause(attempt, stop)?;
    }
    Ok(())
}
