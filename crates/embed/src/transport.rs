//! Requests to a provider, and its answers.

use std::time::Duration;

use serde::Deserialize;

use super::provider::Remote;

#[cfg(feature = "remote")]
const MOST_BYTES: u64 = 64 << 20;

#[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "nothing is sent"))]
pub(super) enum RequestFailure {
    /// A later attempt may work. The provider may have said how long to wait.
    Passing(String, Option<Duration>),
    Final(String),
    /// The request may work with fewer or shorter texts.
    TooMuch(String),
}

/// Connections to a provider; none in a program that is built without the feature `remote`.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    #[cfg(feature = "remote")]
    agent: ureq::Agent,
}

#[cfg(not(feature = "remote"))]
impl Transport {
    pub(super) fn new(_: bool, _: Duration) -> Transport {
        Transport {}
    }

    /// Fails, and says what would help.
    pub(super) fn exchange(
        &self,
        _: &Remote,
        _: String,
        _: usize,
        _: Duration,
    ) -> Result<Vec<Vec<f32>>, RequestFailure> {
        let why =
            "this program was built without remote models; build it with the feature `remote`";
        Err(RequestFailure::Final(why.to_owned()))
    }
}

#[cfg(feature = "remote")]
impl Transport {
    /// Opens nothing. A provider on this computer is reached without a proxy.
    pub(super) fn new(is_here: bool, timeout: Duration) -> Transport {
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A redirect could send the key to another server.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("verbatim/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(timeout.min(Duration::from_secs(5))));
        if is_here {
            config = config.proxy(None);
        }
        Transport { agent: config.build().into() }
    }

    pub(super) fn exchange(
        &self,
        remote: &Remote,
        body: String,
        count: usize,
        timeout: Duration,
    ) -> Result<Vec<Vec<f32>>, RequestFailure> {
        let mut request = self
            .agent
            .post(&remote.endpoint)
            .header("content-type", "application/json")
            .config()
            .timeout_global(Some(timeout))
            .build();
        if let Some(key) = &remote.key {
            request = request.header("authorization", format!("Bearer {}", key.as_str()));
        }
        let mut response = request.send(body).map_err(|error| classify_failure(&error, timeout))?;
        let status = response.status().as_u16();
        let after = response.headers().get("retry-after");
        let after = after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let after = after.map(Duration::from_secs);
        let read = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec();
        if status != 200 {
            let said = read.map(|bytes| said(&bytes, remote)).unwrap_or_default();
            return Err(match status {
                401 | 403 => RequestFailure::Final(format!(
                    "it refused the key (status {status}); VERBATIM_EMBEDDINGS_KEY holds one"
                )),
                400 | 413 | 422 => {
                    RequestFailure::TooMuch(format!("it refused (status {status}{said})"))
                }
                408 | 429 | 500..=599 => RequestFailure::Passing(
                    format!("it answered with status {status}{said}"),
                    after,
                ),
                404 => RequestFailure::Final(format!(
                    "it answered with status 404{said}; the address before the # usually ends in /v1"
                )),
                _ => RequestFailure::Final(format!("it answered with status {status}{said}")),
            });
        }
        let bytes = read.map_err(|error| classify_failure(&error, timeout))?;
        let vectors = parse(&bytes).map_err(|why| {
            RequestFailure::Final(format!("its answer does not fit the request: {why}"))
        })?;
        if vectors.len() != count {
            let why = format!("it answered with {} vectors for {count} texts", vectors.len());
            return Err(RequestFailure::Final(why));
        }
        Ok(vectors)
    }
}

#[cfg(feature = "remote")]
fn classify_failure(error: &ureq::Error, timeout: Duration) -> RequestFailure {
    match error {
        ureq::Error::Timeout(_) => {
            RequestFailure::Passing(format!("it did not answer within {timeout:?}"), None)
        }
        ureq::Error::Io(_)
        | ureq::Error::Protocol(_)
        | ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed => RequestFailure::Passing(error.to_string(), None),
        _ => RequestFailure::Final(error.to_string()),
    }
}

/// Returns the start of a provider's error message, after a colon and without the key.
pub fn said(bytes: &[u8], remote: &Remote) -> String {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum ProviderAnswer {
        Plain { error: String },
        Nested { error: ErrorMessage },
    }
    #[derive(Deserialize)]
    struct ErrorMessage {
        message: String,
    }
    let text = match serde_json::from_slice(bytes) {
        Ok(ProviderAnswer::Plain { error }) => error,
        Ok(ProviderAnswer::Nested { error }) => error.message,
        Err(_) => return String::new(),
    };
    let text = match &remote.key {
        Some(key) => text.replace(key.as_str(), "…"),
        None => text,
    };
    let text: String = text.chars().take(200).collect();
    format!(": {}", text.replace(char::is_control, " "))
}

/// Reads the vectors of an answer, in the order of the texts.
pub fn parse(bytes: &[u8]) -> Result<Vec<Vec<f32>>, String> {
    #[derive(Deserialize)]
    struct Embeddings {
        data: Vec<Embedding>,
    }
    #[derive(Deserialize)]
    struct Embedding {
        index: usize,
        embedding: Vec<f32>,
    }
    let mut answer: Embeddings =
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    answer.data.sort_by_key(|one| one.index);
    if answer.data.iter().enumerate().any(|(at, one)| one.index != at) {
        return Err("some texts have no vector, or two".to_owned());
    }
    Ok(answer.data.into_iter().map(|one| one.embedding).collect())
}
