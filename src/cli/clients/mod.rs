//! The AI clients that can start this program, with the paths and formats of their configuration files.

pub mod config_file;
mod examine;
mod probe;
mod remote;

use std::{
    env,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

pub(super) use self::{
    config_file::ConfigFile,
    examine::{NOT_UTF_8, ParseServe, configured, examine, remedy_of},
    probe::probe,
    remote::{MCP_PATH, NOT_TAKEN, RemoteEntry, TOKEN_VARIABLE, answers, is_of_this_computer},
};
use super::environment::Environment;

/// The name of the server in the configurations that this program writes.
pub(super) const SERVER: &str = "verbatim";

/// The keys of a server's address in the configurations of different clients.
const URL_KEYS: [&str; 3] = ["url", "httpUrl", "serverUrl"];

/// The tool profile that is written into the configuration of every known client.
pub(super) const PROFILE: &str = "agent";

/// The syntax of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON without comments and trailing commas.
    StrictJson,
    /// JSON with comments and trailing commas.
    Json,
    Toml,
}

/// The form of a server's entry in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryForm {
    /// An entry with the keys `command` and `args`.
    Plain,
    /// An entry with `command`, `args` and `"type": "stdio"`.
    Stdio,
    /// An entry with `command`, `args`, `"type": "local"` and a list of the allowed tools.
    Copilot,
    /// An entry with `"type": "local"` and a `command` that lists the program and its arguments.
    OpenCode,
}

/// A client with a documented configuration file.
#[derive(Clone, Debug)]
pub(super) struct AiClient {
    /// The name of the client on the command line.
    pub(super) id: &'static str,
    /// The name of the client for people.
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
    /// A file or folder that exists if the client is installed.
    marker: PathBuf,
    /// The key of the object that holds the servers by name.
    pub(super) key: &'static str,
    pub(super) syntax: Syntax,
    entry: EntryForm,
    /// Whether users start the client from the desktop. Such a client gets a `PATH` with few folders.
    is_desktop: bool,
}

impl AiClient {
    /// Returns whether the client seems to be installed, or is at least configured.
    pub(super) fn is_installed(&self) -> bool {
        self.marker.exists() || self.path.exists()
    }

    /// Returns the entry that starts this program as a server: keys and values, in the usual order.
    pub(super) fn entry(&self, program: &Path, arguments: &[String]) -> Vec<(&'static str, Value)> {
        let program = program.to_string_lossy();
        let (command, args) = (("command", json!(program)), ("args", json!(arguments)));
        match self.entry {
            EntryForm::Plain => vec![command, args],
            EntryForm::Stdio => vec![("type", json!("stdio")), command, args],
            EntryForm::Copilot => {
                vec![("type", json!("local")), command, args, ("tools", json!(["*"]))]
            }
            EntryForm::OpenCode => {
                let words = std::iter::once(&*program).chain(arguments.iter().map(String::as_str));
                let command = ("command", words.collect());
                vec![("type", json!("local")), command, ("enabled", json!(true))]
            }
        }
    }

    /// Returns the entries of this program that the client uses in every project.
    pub(super) fn servers<'a>(&self, config: &'a Value) -> Vec<Server<'a>> {
        servers_in(config).filter(|server| server.key == self.key).collect()
    }

    /// Returns a sentence that says how to make the client read its configuration again.
    pub(super) fn restart(&self) -> String {
        match self.is_desktop {
            true => format!("Restart {} so that it reads this.", self.name),
            false => format!("New sessions of {} read this.", self.name),
        }
    }
}

/// Returns every known client that exists on this platform.
pub(super) fn known(environment: &Environment) -> Vec<AiClient> {
    let home = environment.user_folder.as_deref();
    let config = environment.config_folder.as_deref();
    // Zed uses this folder on macOS too, and OpenCode on every platform.
    let dot_config = home.map(|home| home.join(".config"));
    let open_code = if cfg!(target_os = "linux") { config } else { dot_config.as_deref() };
    let xdg = if cfg!(windows) { config } else { open_code };
    let claude = environment.filled("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let codex = environment.filled("CODEX_HOME").map(PathBuf::from);
    let codex = codex.or_else(|| Some(home?.join(".codex")));
    let claude_code = claude.as_deref().or(home);
    let claude_marker = if claude.is_some() { ".claude.json" } else { ".claude" };
    let zed = if cfg!(windows) { "Zed" } else { "zed" };
    use EntryForm::{Copilot, OpenCode, Plain, Stdio};
    use Syntax::{Json, StrictJson, Toml};
    let mut clients = Vec::new();
    let mut add =
        |id, name, folder: Option<&Path>, [marker, path]: [&str; 2], key, syntax, entry| {
            let Some(folder) = folder else { return };
            let is_desktop =
                !["claude-code", "codex", "copilot", "gemini", "opencode"].contains(&id);
            let (path, marker) = (folder.join(path), folder.join(marker));
            clients.push(AiClient { id, name, path, marker, key, syntax, entry, is_desktop });
        };
    let at = ["Claude", "Claude/claude_desktop_config.json"];
    add("claude-desktop", "Claude Desktop", config, at, "mcpServers", StrictJson, Plain);
    let at = [claude_marker, ".claude.json"];
    add("claude-code", "Claude Code", claude_code, at, "mcpServers", StrictJson, Stdio);
    let at = [".", "config.toml"];
    add("codex", "Codex", codex.as_deref(), at, "mcp_servers", Toml, Plain);
    add("cursor", "Cursor", home, [".cursor", ".cursor/mcp.json"], "mcpServers", Json, Plain);
    add("vscode", "VS Code", config, ["Code", "Code/User/mcp.json"], "servers", Json, Stdio);
    let at = [".gemini", ".gemini/settings.json"];
    add("gemini", "Gemini CLI", home, at, "mcpServers", Json, Plain);
    let settings = format!("{zed}/settings.json");
    add("zed", "Zed", xdg, [zed, &settings], "context_servers", Json, Plain);
    let at = [".codeium/windsurf", ".codeium/windsurf/mcp_config.json"];
    add("windsurf", "Windsurf", home, at, "mcpServers", Json, Plain);
    let at = [".lmstudio", ".lmstudio/mcp.json"];
    add("lm-studio", "LM Studio", home, at, "mcpServers", Json, Plain);
    add("kiro", "Kiro", home, [".kiro", ".kiro/settings/mcp.json"], "mcpServers", Json, Plain);
    let at = [".copilot", ".copilot/mcp-config.json"];
    add("copilot", "GitHub Copilot CLI", home, at, "mcpServers", Json, Copilot);
    add(
        "opencode",
        "OpenCode",
        open_code,
        ["opencode", "opencode/opencode.json"],
        "mcp",
        Json,
        OpenCode,
    );
    clients
}

/// Returns the configuration files of a project that clients read.
fn of_project(environment: &Environment) -> Vec<AiClient> {
    let folder = &environment.working_folder;
    let clients = known(environment).into_iter();
    clients
        .filter_map(|client| {
            let path = match client.id {
                "claude-code" => ".mcp.json",
                "vscode" => ".vscode/mcp.json",
                "cursor" => ".cursor/mcp.json",
                _ => return None,
            };
            let path = folder.join(path);
            (path != client.path).then_some(AiClient { path, ..client })
        })
        .collect()
}

/// The entry of a server in a client's configuration.
#[derive(Debug)]
pub(super) struct Server<'a> {
    pub(super) key: &'a str,
    pub(super) name: &'a str,
    pub(super) entry: &'a Map<String, Value>,
}

impl<'a> Server<'a> {
    /// Returns the program and its arguments. OpenCode has both in one list.
    pub(super) fn command(&self) -> Option<(&'a str, Vec<&'a str>)> {
        let words =
            |value: &'a Value| value.as_array().into_iter().flatten().filter_map(Value::as_str);
        match self.entry.get("command")? {
            Value::String(command) => {
                let args = self.entry.get("args").into_iter().flat_map(words).collect();
                Some((command, args))
            }
            list => {
                let mut words = words(list);
                Some((words.next()?, words.collect()))
            }
        }
    }

    fn variable(&self, name: &str) -> Option<&'a str> {
        let variables = self.entry.get("env").or_else(|| self.entry.get("environment"))?;
        variables.get(name)?.as_str()
    }

    /// Returns whether the user switched the server off in the client.
    pub(super) fn is_switched_off(&self) -> bool {
        let is = |key: &str, value: bool| self.entry.get(key) == Some(&Value::Bool(value));
        is("disabled", true) || is("enabled", false)
    }

    fn is_ours(&self) -> bool {
        let command = self.command().map(|(command, _)| command);
        self.name.eq_ignore_ascii_case(SERVER) || command.is_some_and(is_named_verbatim)
    }
}

fn is_named_verbatim(command: &str) -> bool {
    Path::new(command).file_stem().is_some_and(|stem| stem == SERVER)
}

/// Returns the entries of this program in a configuration and in its projects, whatever their keys are.
pub(super) fn servers(config: &Value) -> Vec<Server<'_>> {
    let projects = config.get("projects").and_then(Value::as_object);
    let projects = projects.into_iter().flat_map(Map::values);
    std::iter::once(config).chain(projects).flat_map(servers_in).collect()
}

/// Returns the entries of this program in a configuration or in a project of it.
fn servers_in(config: &Value) -> impl Iterator<Item = Server<'_>> {
    let lists = config.as_object().into_iter().flatten();
    let lists = lists.filter_map(|(key, list)| Some((key, list.as_object()?)));
    lists.flat_map(|(key, list)| {
        list.iter().filter_map(move |(name, entry)| {
            let server = Server { key, name, entry: entry.as_object()? };
            let mut keys = ["command", "args"].into_iter().chain(URL_KEYS);
            let is_server = keys.any(|it| server.entry.contains_key(it));
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

/// Returns whether an app that was started from the desktop can find a command.
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
