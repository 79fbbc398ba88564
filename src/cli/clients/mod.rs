//! The AI clients that can start this program, with the paths and formats of their configuration files.

pub mod config_file;
mod examine;
mod probe;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::{env, iter};

use serde_json::{Map, Value, json};

use self::config_file::Syntax;
pub(super) use self::config_file::{ConfigFile, Entry, EntryPlace, Fault};
pub(super) use self::examine::{ParseServe, examine};
pub(super) use self::probe::probe;
use super::settings::{engine_config::agent_folder, environment::Environment};

pub(super) const SERVER: &str = "verbatim";

/// The end of a sentence about a server that is switched off.
pub(super) const OFF: &str = "is switched off in the client";

/// The end of a sentence about a server that has an address.
pub(super) const BY_ADDRESS: &str = "is reached by its address, which is not checked";

/// The tool profile that is written into the configuration of every known client.
pub(super) const PROFILE: &str = "agent";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryForm {
    /// An entry with the keys `command` and `args`, or with an address.
    Plain,
    /// The same, with `"type": "stdio"` or `"http"`.
    Stdio,
    /// The same, with `"type": "local"` or `"http"`, and a list of the allowed tools.
    Copilot,
    /// An entry with `"type": "local"` or `"remote"`, whose `command` lists the program and its arguments.
    OpenCode,
}

#[derive(Clone, Copy, Debug)]
enum Base {
    Home,
    Config,
    /// `~/.config`, on macOS too.
    DotConfig,
    ClaudeCode,
    Codex,
}

#[derive(Debug)]
pub(super) struct ClientKind {
    /// The name of the client on the command line.
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    base: Base,
    /// A file or folder that exists if the client is installed.
    marker: &'static str,
    file: &'static str,
    /// The configuration file in the folder of a project.
    in_project: Option<&'static str>,
    /// The key of the object that holds the servers by name.
    pub(super) key: &'static str,
    pub(super) syntax: Syntax,
    form: EntryForm,
    /// The key of a server's address; `None` if the client reaches no servers over HTTP.
    url: Option<&'static str>,
    /// Whether users start the client from the desktop. Such a client gets a `PATH` with few folders.
    is_desktop: bool,
}

const USUAL: ClientKind = ClientKind {
    id: "",
    name: "",
    base: Base::Home,
    marker: "",
    file: "",
    in_project: None,
    key: "mcpServers",
    syntax: Syntax::Json,
    form: EntryForm::Plain,
    url: Some("url"),
    is_desktop: true,
};

const ZED: [&str; 2] =
    if cfg!(windows) { ["Zed", "Zed/settings.json"] } else { ["zed", "zed/settings.json"] };

/// The variable from which Codex reads the token.
pub(super) const TOKEN_VARIABLE: &str = "VERBATIM_TOKEN";

#[rustfmt::skip]
pub(super) static TABLE: [ClientKind; 12] = [
    ClientKind { id: "claude-desktop", name: "Claude Desktop", base: Base::Config, marker: "Claude",
        file: "Claude/claude_desktop_config.json", syntax: Syntax::StrictJson, url: None, ..USUAL },
    ClientKind { id: "claude-code", name: "Claude Code", base: Base::ClaudeCode, marker: ".claude",
        file: ".claude.json", in_project: Some(".mcp.json"), syntax: Syntax::StrictJson,
        form: EntryForm::Stdio, is_desktop: false, ..USUAL },
    ClientKind { id: "codex", name: "Codex", base: Base::Codex, marker: ".", file: "config.toml",
        key: "mcp_servers", syntax: Syntax::Toml, is_desktop: false, ..USUAL },
    ClientKind { id: "cursor", name: "Cursor", marker: ".cursor", file: ".cursor/mcp.json",
        in_project: Some(".cursor/mcp.json"), ..USUAL },
    ClientKind { id: "vscode", name: "VS Code", base: Base::Config, marker: "Code", file: "Code/User/mcp.json",
        in_project: Some(".vscode/mcp.json"), key: "servers", form: EntryForm::Stdio, ..USUAL },
    ClientKind { id: "gemini", name: "Gemini CLI", marker: ".gemini", file: ".gemini/settings.json",
        url: Some("httpUrl"), is_desktop: false, ..USUAL },
    ClientKind { id: "zed", name: "Zed", base: if cfg!(windows) { Base::Config } else { Base::DotConfig },
        marker: ZED[0], file: ZED[1], key: "context_servers", ..USUAL },
    ClientKind { id: "windsurf", name: "Windsurf", marker: ".codeium/windsurf",
        file: ".codeium/windsurf/mcp_config.json", url: Some("serverUrl"), ..USUAL },
    ClientKind { id: "lm-studio", name: "LM Studio", marker: ".lmstudio", file: ".lmstudio/mcp.json", ..USUAL },
    ClientKind { id: "kiro", name: "Kiro", marker: ".kiro", file: ".kiro/settings/mcp.json", ..USUAL },
    ClientKind { id: "copilot", name: "GitHub Copilot CLI", marker: ".copilot",
        file: ".copilot/mcp-config.json", form: EntryForm::Copilot, is_desktop: false, ..USUAL },
    ClientKind { id: "opencode", name: "OpenCode", base: Base::DotConfig, marker: "opencode",
        file: "opencode/opencode.json", key: "mcp", form: EntryForm::OpenCode,
        is_desktop: false, ..USUAL },
];

#[derive(Debug)]
pub(super) struct AiClient {
    kind: &'static ClientKind,
    pub(super) path: PathBuf,
    marker: PathBuf,
}

impl Deref for AiClient {
    type Target = ClientKind;

    fn deref(&self) -> &ClientKind {
        self.kind
    }
}

impl AiClient {
    /// Returns a client of the user; `None` if the user has no folder for its configuration.
    fn of(kind: &'static ClientKind, environment: &Environment) -> Option<AiClient> {
        let folder = kind.base.folder(environment)?;
        Some(AiClient { kind, path: folder.join(kind.file), marker: folder.join(kind.marker) })
    }

    /// Returns whether the client seems to be installed, or is at least configured.
    pub(super) fn is_installed(&self) -> bool {
        self.marker.exists() || self.path.exists()
    }

    pub(super) fn read(&self) -> Result<ConfigFile, Fault> {
        ConfigFile::read(&self.path, self.syntax)
    }

    /// Returns the entry that starts this program as a server.
    pub(super) fn entry(&self, program: &Path, arguments: &[String]) -> Entry {
        let program = program.to_string_lossy();
        let words = iter::once(&*program).chain(arguments.iter().map(String::as_str));
        let entry = match self.form {
            EntryForm::OpenCode => vec![("command", words.collect())],
            _ => vec![("command", json!(program)), ("args", json!(arguments))],
        };
        self.completed(entry, false)
    }

    /// Returns a file with nothing but the entry of a server over HTTP, for the user to copy; `None` if the client
    /// does not support such servers. `TOKEN` stands for the token.
    pub(super) fn remote_file(&self, url: &str) -> Option<Result<String, Fault>> {
        let authorisation = match self.syntax {
            Syntax::Toml => ("bearer_token_env_var", json!(TOKEN_VARIABLE)),
            _ => ("headers", json!({"Authorization": "Bearer TOKEN"})),
        };
        let entry = self.completed(vec![(self.url?, json!(url)), authorisation], true);
        Some(self.file_with(&entry))
    }

    pub(super) fn file_with(&self, entry: &Entry) -> Result<String, Fault> {
        self.syntax.edit("", EntryPlace { key: self.key, name: SERVER }, Some(entry))
    }

    /// Adds to an entry what the client expects beside the program or the address.
    fn completed(&self, mut entry: Entry, is_remote: bool) -> Entry {
        let (here, remote, last) = match self.form {
            EntryForm::Plain => return entry,
            EntryForm::Stdio => ("stdio", "http", None),
            EntryForm::Copilot => ("local", "http", Some(("tools", json!(["*"])))),
            EntryForm::OpenCode => ("local", "remote", Some(("enabled", json!(true)))),
        };
        entry.insert(0, ("type", json!(if is_remote { remote } else { here })));
        entry.extend(last);
        entry
    }

    /// Returns the entries of this program that the client uses in every project.
    pub(super) fn servers<'a>(&self, config: &'a Value) -> Vec<Server<'a>> {
        servers_in(config).filter(|server| server.key == self.key).collect()
    }

    pub(super) fn restart(&self) -> String {
        if self.is_desktop {
            format!("Restart {} so that it reads this.", self.name)
        } else {
            format!("New sessions of {} read this.", self.name)
        }
    }
}

impl Base {
    fn folder(self, environment: &Environment) -> Option<PathBuf> {
        let home = environment.user_folder.clone();
        match self {
            Base::Home => home,
            Base::DotConfig if !cfg!(target_os = "linux") => Some(home?.join(".config")),
            Base::Config | Base::DotConfig => environment.config_folder.clone(),
            Base::ClaudeCode => environment.filled("CLAUDE_CONFIG_DIR").map(PathBuf::from).or(home),
            Base::Codex => agent_folder("CODEX_HOME", ".codex", environment),
        }
    }
}

pub(super) fn known_clients(environment: &Environment) -> Vec<AiClient> {
    TABLE.iter().filter_map(|kind| AiClient::of(kind, environment)).collect()
}

fn project_clients(environment: &Environment) -> impl Iterator<Item = AiClient> {
    known_clients(environment).into_iter().filter_map(|client| {
        let path = environment.working_folder.join(client.in_project?);
        (path != client.path).then_some(AiClient { path, ..client })
    })
}

#[derive(Debug)]
pub(super) struct Server<'a> {
    pub(super) key: &'a str,
    pub(super) name: &'a str,
    pub(super) entry: &'a Map<String, Value>,
}

impl<'a> Server<'a> {
    /// Returns the program and its arguments. OpenCode has both in one list.
    pub(super) fn command(&self) -> Option<(&'a str, Vec<&'a str>)> {
        match self.entry.get("command")? {
            Value::String(command) => {
                let args = self.entry.get("args").into_iter().flat_map(words_of).collect();
                Some((command, args))
            }
            list => {
                let mut words = words_of(list);
                Some((words.next()?, words.collect()))
            }
        }
    }

    fn variables(&self) -> Option<&'a Map<String, Value>> {
        self.entry.get("env").or_else(|| self.entry.get("environment"))?.as_object()
    }

    /// Returns whether the user switched the server off in the client.
    pub(super) fn is_switched_off(&self) -> bool {
        self.entry.get("disabled") == Some(&Value::Bool(true))
            || self.entry.get("enabled") == Some(&Value::Bool(false))
    }

    pub(super) fn has_address(&self) -> bool {
        url_keys().any(|key| self.entry.contains_key(*key))
    }

    fn is_ours(&self) -> bool {
        let command = self.command().map(|(command, _)| command);
        self.name.eq_ignore_ascii_case(SERVER) || command.is_some_and(is_named_verbatim)
    }
}

fn words_of(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the keys of a server's address in the configurations of different clients.
fn url_keys() -> impl Iterator<Item = &'static &'static str> {
    TABLE.iter().filter_map(|kind| kind.url.as_ref())
}

fn is_named_verbatim(command: &str) -> bool {
    Path::new(command).file_stem().is_some_and(|stem| stem == SERVER)
}

/// Returns the entries of this program in a configuration and in its projects, whatever their keys are.
pub(super) fn servers(config: &Value) -> Vec<Server<'_>> {
    let projects = config.get("projects").and_then(Value::as_object);
    let projects = projects.into_iter().flat_map(Map::values);
    iter::once(config).chain(projects).flat_map(servers_in).collect()
}

fn servers_in(config: &Value) -> impl Iterator<Item = Server<'_>> {
    let lists = config.as_object().into_iter().flatten();
    let lists = lists.filter_map(|(key, list)| Some((key, list.as_object()?)));
    lists.flat_map(|(key, list)| {
        list.iter().filter_map(move |(name, entry)| {
            let server = Server { key, name, entry: entry.as_object()? };
            let mut keys = ["command", "args"].iter().chain(url_keys());
            let is_server = keys.any(|it| server.entry.contains_key(*it));
            (is_server && server.is_ours()).then_some(server)
        })
    })
}

/// Returns whether a command can be started, by its path or by its name in `PATH`.
fn can_start(command: &Path, environment: &Environment) -> bool {
    if command.components().count() > 1 {
        return command.is_absolute() && is_program(command);
    }
    let folders = environment.variable("PATH").map(env::split_paths).into_iter().flatten();
    is_in(command, folders)
}

fn can_start_from_desktop(command: &Path) -> bool {
    const FOLDERS: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
    let local = cfg!(target_os = "linux").then_some("/usr/local/bin");
    command.is_absolute()
        || cfg!(windows)
        || is_in(command, FOLDERS.into_iter().chain(local).map(PathBuf::from))
}

fn is_in(command: &Path, folders: impl IntoIterator<Item = PathBuf>) -> bool {
    let names = ["", env::consts::EXE_SUFFIX];
    folders.into_iter().any(|folder| {
        names.iter().any(|suffix| {
            let mut name = command.as_os_str().to_owned();
            name.push(suffix);
            is_program(&folder.join(name))
        })
    })
}

fn is_program(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    metadata.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_are_ours() {
        let config = json!({
            "mcpServers": {"chats": {"command": "/bin/verbatim"}, "other": {"command": "x"}},
            "projects": {"/p": {"mcpServers": {"Verbatim": {"command": "x"}}}, "/q": 5},
            "mcp": {"list": {"command": ["/bin/verbatim", "serve"]}},
            "verbatim": {"theme": {"verbatim": 1}},
        });
        let mut names: Vec<&str> = servers(&config).iter().map(|server| server.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["Verbatim", "chats", "list"]);
        assert!(servers(&Value::Null).is_empty());
    }
}
