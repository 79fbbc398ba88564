//! Clients that reach the server over HTTP: their configuration entries, and a check of the server.

use std::{net::IpAddr, time::Duration};

use axum::http::Uri;
use serde_json::{Value, json};

use super::{super::environment::Environment, AiClient, Entry, Server, TOKEN_VARIABLE, url_keys};

pub(crate) const MCP_PATH: &str = "/mcp";
const HEALTH: &str = "/healthz";

/// The beginning of the message about a server that expects another token.
pub(crate) const NOT_TAKEN: &str = "refuses the token";

/// The prefix of a token in a header, and the forms in which clients write the name of a variable instead.
const BEARER: &str = "Bearer ";
const VARIABLE_KEY: &str = "bearer_token_env_var";
const VARIABLE_MARKS: [char; 2] = ['$', '{'];

const UNAUTHORISED: u16 = 401;

const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct RemoteEntry {
    pub(crate) entry: Entry,
    /// Whether the entry holds the token itself, not the name of a variable.
    pub(crate) holds_token: bool,
    pub(crate) is_here: bool,
}

impl AiClient {
    /// Returns the entry for a server over HTTP; `None` if the client does not support such servers.
    pub(crate) fn remote_entry(&self, url: &str, token: &str) -> Option<RemoteEntry> {
        let authorisation = match self.token {
            Some(TOKEN_VARIABLE) => (VARIABLE_KEY, json!(TOKEN_VARIABLE)),
            variable => {
                let bearer = format!("{BEARER}{}", variable.unwrap_or(token));
                ("headers", json!({"Authorization": bearer}))
            }
        };
        let entry = self.completed(vec![(self.url?, json!(url)), authorisation], true);
        let (holds_token, is_here) = (self.token.is_none(), is_of_this_computer(url));
        Some(RemoteEntry { entry, holds_token, is_here })
    }
}

impl Server<'_> {
    pub(crate) fn url(&self) -> Option<&str> {
        url_keys().find_map(|key| self.entry.get(*key)?.as_str())
    }

    /// Returns the token in the entry, or the reference to the variable that the client reads.
    fn bearer(&self) -> Option<&str> {
        self.entry.get("headers")?.get("Authorization")?.as_str()?.strip_prefix(BEARER)
    }

    pub(crate) fn holds_token(&self) -> bool {
        self.bearer().is_some_and(|token| !token.starts_with(VARIABLE_MARKS))
    }

    /// Returns whether the client reads the token from its variable.
    fn reads_variable(&self) -> bool {
        let named = self.entry.get(VARIABLE_KEY).and_then(Value::as_str).or(self.bearer());
        named.is_some_and(|name| name.contains(TOKEN_VARIABLE))
    }

    /// Returns the token that the client sends; `None` if this program cannot know the token.
    pub(crate) fn token(&self, environment: &Environment) -> Option<String> {
        match self.bearer().filter(|_| self.holds_token()) {
            Some(token) => Some(token.to_owned()),
            None if self.reads_variable() => {
                let variable = environment.variable(TOKEN_VARIABLE)?;
                Some(variable.to_str()?.trim().to_owned()).filter(|token| !token.is_empty())
            }
            None => None,
        }
    }
}

/// Returns whether an address always means this computer.
pub(crate) fn is_of_this_computer(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
}

/// Checks whether a server answers and accepts a token. The error completes a sentence that begins with "it".
#[cfg(feature = "remote")]
pub(crate) fn answers(url: &str, token: Option<&str>) -> Result<(), String> {
    let base = url.trim_end_matches('/');
    let base = base.strip_suffix(MCP_PATH).unwrap_or(base);
    let agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build();
    let agent = ureq::Agent::from(agent);
    let away = |error| format!("does not answer at {base}: {error}");
    agent.get(format!("{base}{HEALTH}")).call().map_err(away)?;
    let Some(token) = token else { return Ok(()) };
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let request = agent.post(url).header("Authorization", format!("{BEARER}{token}"));
    let request = request.header("Content-Type", "application/json");
    match request.header("Accept", "application/json, text/event-stream").send(message) {
        Ok(_) => Ok(()),
        Err(ureq::Error::StatusCode(UNAUTHORISED)) => Err(format!(
            "{NOT_TAKEN} that the client sends; start the server again if the token is new, or give the \
             client the token of the server: verbatim connect CLIENT --http"
        )),
        Err(error) => Err(format!("does not answer at {url}: {error}")),
    }
}

#[cfg(not(feature = "remote"))]
pub(crate) fn answers(_: &str, _: Option<&str>) -> Result<(), String> {
    Err("was not asked, because this program was built without the feature `remote`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_computer() {
        for url in ["http://127.0.0.1:8377/mcp", "http://localhost/mcp", "https://[::1]:1/mcp"] {
            assert!(is_of_this_computer(url), "{url}");
        }
        for url in [
            "https://other.example/mcp",
            "http://localhost.evil.example/mcp",
            "http://localhost@evil.example/mcp",
            "http://127.0.0.1.evil.example/mcp",
            "http://192.168.1.7:8377/mcp",
            "http:///mcp",
        ] {
            assert!(!is_of_this_computer(url), "{url}");
        }
    }
}
