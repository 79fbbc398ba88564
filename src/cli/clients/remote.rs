//! Clients that reach the server over HTTP: what their configurations say, and whether it answers.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, Server, URL_KEYS};

/// The variable that holds the token for clients that read it from there.
pub(crate) const TOKEN_VARIABLE: &str = "VERBATIM_TOKEN";

/// The path of MCP, and of what says whether the server is there.
const MCP: &str = "/mcp";
const HEALTH: &str = "/healthz";

/// How long a server may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a configuration says about a server that is reached over HTTP.
#[derive(Debug)]
pub(crate) struct RemoteEntry {
    pub(crate) entry: Vec<(&'static str, Value)>,
    /// Whether the token itself is in it, not a variable.
    pub(crate) holds_token: bool,
}

impl Client {
    /// Returns what the client's configuration says about a server over HTTP; `None` if the client's
    /// configuration has no such servers.
    pub(crate) fn remote_entry(&self, url: &str, token: &str) -> Option<RemoteEntry> {
        let headers =
            |token: &str| ("headers", json!({"Authorization": format!("Bearer {token}")}));
        let (url_key, by_variable) = match self.id {
            "claude-desktop" => return None,
            "codex" => {
                let variable = ("bearer_token_env_var", json!(TOKEN_VARIABLE));
                let entry = vec![("url", json!(url)), variable];
                return Some(RemoteEntry { entry, holds_token: false });
            }
            "gemini" => ("httpUrl", Some(format!("${TOKEN_VARIABLE}"))),
            "opencode" => ("url", Some(format!("{{env:{TOKEN_VARIABLE}}}"))),
            "windsurf" => ("serverUrl", None),
            // Apps that the desktop starts do not see the variables of a shell.
            _ => ("url", None),
        };
        let mut entry = Vec::new();
        match self.id {
            "claude-code" | "vscode" | "copilot" => entry.push(("type", json!("http"))),
            "opencode" => entry.push(("type", json!("remote"))),
            _ => {}
        }
        entry.push((url_key, json!(url)));
        entry.push(headers(by_variable.as_deref().unwrap_or(token)));
        match self.id {
            "copilot" => entry.push(("tools", json!(["*"]))),
            "opencode" => entry.push(("enabled", json!(true))),
            _ => {}
        }
        Some(RemoteEntry { entry, holds_token: by_variable.is_none() })
    }
}

impl Server<'_> {
    /// Returns the address of a server that is reached over HTTP.
    pub(crate) fn url(&self) -> Option<&str> {
        URL_KEYS.iter().find_map(|key| self.entry.get(*key)?.as_str())
    }
}

/// Asks whether a server is there. The error is a phrase that follows "it".
pub(crate) fn answers(url: &str) -> Result<(), String> {
    let base = url.trim_end_matches('/');
    let base = base.strip_suffix(MCP).unwrap_or(base);
    let agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build();
    match ureq::Agent::from(agent).get(format!("{base}{HEALTH}")).call() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("does not answer at {base}: {error}")),
    }
}
