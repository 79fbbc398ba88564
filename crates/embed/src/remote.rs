//! Vectors over HTTP by OpenAI's protocol, which Ollama, LM Studio, llama.cpp and vLLM speak too.
//!
//! Invariant: a key is in the request's header and nowhere else, errors included.

use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::json;

use super::provider::Remote;
use super::transport::{RequestFailure, Transport};
use super::{Error, MOST_DIMENSIONS, Result};
use verbatim_base::{call::Stop, lock::lock};

pub use super::transport::{parse, said};

const BATCH_TEXTS: usize = 64;

const BATCH_BYTES: usize = 100_000;

/// Number of characters of a text that are sent. Models take about 8,000 tokens, and a character may
/// be more than one token.
const MOST_CHARACTERS: usize = 6_000;

/// A text of this length fits every model, so it is not shortened after a refusal.
const FEWEST_CHARACTERS: usize = 200;

const DOCUMENT_ATTEMPTS: u32 = 5;

/// Number of attempts to send a question. It is small, because a user waits.
const QUESTION_ATTEMPTS: u32 = 2;

/// The longest time that a question waits for an answer.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after a failure during which questions fail at once, without a request.
const PAUSE: Duration = Duration::from_secs(15);

/// Limit of the waiting time that a provider may demand.
const MOST_WAIT: Duration = Duration::from_secs(60);

/// A client of a provider.
#[derive(Debug)]
pub struct RemoteModel {
    remote: Remote,
    name: String,
    transport: Transport,
    dimensions: OnceLock<usize>,
    /// The time and the reason of the last failure, until a request succeeds.
    absent: Mutex<Option<(Instant, String)>>,
}

/// The purpose of a vector: it decides how long to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Question,
    Document,
}

impl RemoteModel {
    /// Returns a client; nothing is sent before the first text.
    pub fn new(remote: Remote) -> RemoteModel {
        let host = remote.endpoint.split('/').nth(2).unwrap_or_default();
        let is_here = ["localhost", "127.0.0.1", "[::1]"]
            .iter()
            .any(|here| host == *here || host.starts_with(&format!("{here}:")));
        RemoteModel {
            name: remote.name(),
            transport: Transport::new(is_here, remote.timeout),
            dimensions: OnceLock::new(),
            absent: Mutex::new(None),
            remote,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn dimensions(&self, stop: &Stop) -> Result<usize> {
        if let Some(dimensions) = self.dimensions.get() {
            return Ok(*dimensions);
        }
        Ok(self.encode(&["dimensions"], Purpose::Question, stop)?.pop().unwrap_or_default().len())
    }

    /// Returns the vectors of texts. Blank texts are not sent and get all zeros.
    pub(super) fn encode(
        &self,
        texts: &[&str],
        purpose: Purpose,
        stop: &Stop,
    ) -> Result<Vec<Vec<f32>>> {
        if purpose == Purpose::Question {
            self.expect_present()?;
        }
        let cut: Vec<(usize, &str)> = texts
            .iter()
            .enumerate()
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(at, text)| (at, cut(text)))
            .collect();
        let mut vectors = vec![Vec::new(); texts.len()];
        for batch in batches(&cut) {
            let inputs: Vec<&str> = batch.iter().map(|(_, text)| *text).collect();
            let answer = self.ask(&inputs, purpose, stop)?;
            for ((at, _), vector) in batch.iter().zip(answer) {
                vectors[*at] = vector;
            }
        }
        if vectors.iter().any(Vec::is_empty) {
            let dimensions = self.dimensions(stop)?;
            for vector in vectors.iter_mut().filter(|vector| vector.is_empty()) {
                vector.resize(dimensions, 0.0);
            }
        }
        Ok(vectors)
    }

    /// Fails at once if the provider failed a moment ago.
    fn expect_present(&self) -> Result<()> {
        let absent = lock(&self.absent);
        match &*absent {
            Some((since, why)) if since.elapsed() < PAUSE => Err(self.failed(why.clone())),
            _ => Ok(()),
        }
    }

    fn failed(&self, why: String) -> Error {
        // The part after a question mark may hold a secret.
        let endpoint = self.remote.endpoint.split('?').next().unwrap_or_default().to_owned();
        Error::Provider { endpoint, why }
    }

    /// Requests the vectors of texts. Repeats a failed request, and halves a request that is too
    /// large.
    fn ask(&self, texts: &[&str], purpose: Purpose, stop: &Stop) -> Result<Vec<Vec<f32>>> {
        let tries = match purpose {
            Purpose::Document => DOCUMENT_ATTEMPTS,
            Purpose::Question => QUESTION_ATTEMPTS,
        };
        let mut wait = self.remote.first_wait;
        let mut tried = 0;
        loop {
            let failure = match self.try_once(texts, purpose, stop)? {
                Ok(vectors) => {
                    *lock(&self.absent) = None;
                    return self.check_and_normalise(vectors);
                }
                Err(failure) => failure,
            };
            tried += 1;
            match failure {
                RequestFailure::TooMuch(_) if texts.len() > 1 => {
                    let (first, second) = texts.split_at(texts.len() / 2);
                    let mut vectors = self.ask(first, purpose, stop)?;
                    vectors.extend(self.ask(second, purpose, stop)?);
                    return Ok(vectors);
                }
                RequestFailure::TooMuch(why) => {
                    let count = texts[0].chars().count();
                    if count <= FEWEST_CHARACTERS {
                        return Err(self.failed(why));
                    }
                    let half: String = texts[0].chars().take(count / 2).collect();
                    return self.ask(&[&half], purpose, stop);
                }
                RequestFailure::Passing(_, after) if tried < tries => {
                    let wait_now = after.unwrap_or(wait).min(MOST_WAIT);
                    wait *= 2;
                    // A question does not wait when the provider demands a long pause.
                    if purpose == Purpose::Document || wait_now <= QUESTION_TIMEOUT {
                        stop.pause(wait_now, Error::Stopped)?;
                    }
                }
                RequestFailure::Passing(why, _) => {
                    let why = format!("{why} (tried several times)");
                    let mut absent = lock(&self.absent);
                    *absent = Some((Instant::now(), why.clone()));
                    return Err(self.failed(why));
                }
                RequestFailure::Final(why) => return Err(self.failed(why)),
            }
        }
    }

    /// Sends one request, and waits for its answer or the stop.
    fn try_once(
        &self,
        texts: &[&str],
        purpose: Purpose,
        stop: &Stop,
    ) -> Result<Result<Vec<Vec<f32>>, RequestFailure>> {
        let body = json!({"model": self.remote.model, "input": texts, "encoding_format": "float"});
        let timeout = match purpose {
            Purpose::Document => self.remote.timeout,
            Purpose::Question => self.remote.timeout.min(QUESTION_TIMEOUT),
        };
        let transport = self.transport.clone();
        let remote = self.remote.clone();
        let count = texts.len();
        let answer = stop.wait_for(
            move || transport.exchange(&remote, body.to_string(), count, timeout),
            Error::Stopped,
        )?;
        Ok(answer.unwrap_or_else(|| Err(RequestFailure::Final("the request broke off".to_owned()))))
    }

    /// Normalises the vectors. Fails if their dimension differs from that of earlier answers.
    pub fn check_and_normalise(&self, mut vectors: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>> {
        for vector in &mut vectors {
            let dimensions = *self.dimensions.get_or_init(|| vector.len());
            let why = if vector.len() != dimensions {
                format!(
                    "it answered with {} numbers for a text, and with {dimensions} for another",
                    vector.len()
                )
            } else if vector.is_empty() || vector.len() > MOST_DIMENSIONS {
                format!("it answered with {} numbers for a text", vector.len())
            } else {
                let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
                if length.is_finite() {
                    if length > 0.0 {
                        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
                    }
                    continue;
                }
                "it answered with something that is not a number".to_owned()
            };
            return Err(self.failed(why));
        }
        Ok(vectors)
    }
}

/// Returns the part of a text that is sent.
fn cut(text: &str) -> &str {
    let end = text.char_indices().nth(MOST_CHARACTERS).map_or(text.len(), |(end, _)| end);
    &text[..end]
}

fn batches<'a, 'b>(texts: &'b [(usize, &'a str)]) -> Vec<&'b [(usize, &'a str)]> {
    let mut all = Vec::new();
    let mut start = 0;
    let mut size = 0;
    for (at, (_, text)) in texts.iter().enumerate() {
        if at > start && (at - start == BATCH_TEXTS || size + text.len() > BATCH_BYTES) {
            all.push(&texts[start..at]);
            start = at;
            size = 0;
        }
        size += text.len();
    }
    if start < texts.len() {
        all.push(&texts[start..]);
    }
    all
}
