//! The configurations of AI clients that start this program.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{environment::Environment, places::Places};
use crate::engine::Finding;

/// Parses the arguments of this program; `None` if they name another command than serve.
pub(super) type ParseServe = fn(&[&str]) -> Result<Option<Places>, clap::Error>;

/// A configuration file of a client.
struct Client {
    name: &'static str,
    path: PathBuf,
    /// The keys under which servers are listed by name.
    keys: &'static [&'static str],
}

/// Examines the configuration files of all known clients.
pub(super) fn examine(
    environment: &Environment,
    parse: ParseServe,
    report: &mut dyn FnMut(Finding),
) {
    let mut configured = 0;
    for client in clients(environment) {
        let Ok(text) = fs::read_to_string(&client.path) else { continue };
        let about = format!("{} ({})", client.name, client.path.display());
        let is_toml = client.path.extension().is_some_and(|name| name == "toml");
        let parsed = if is_toml {
            toml::from_str::<Value>(&text).map_err(|error| error.message().to_owned())
        } else {
            serde_json::from_str(&strict_json(&text)).map_err(|error| error.to_string())
        };
        let config = match parsed {
            Ok(config) => config,
            Err(_) if text.trim().is_empty() => continue,
            Err(error) => {
                let what = format!("the client cannot read its configuration: {error}");
                report(Finding::wrong(about, what, "correct the JSON or TOML in that file"));
                continue;
            }
        };
        for (name, server) in servers(&config, client.keys) {
            let about = format!("{about}, server {name:?}");
            configured += 1;
            match fault(server, environment, parse) {
                None => report(Finding::well(about, "starts verbatim as it should")),
                Some((what, remedy)) => report(Finding::wrong(about, what, &remedy)),
            }
        }
    }
    if configured == 0 {
        let what = "none that we know is configured to start verbatim";
        let remedy = "verbatim is searched in the terminal too; the README says what clients need";
        report(Finding::note("clients", what, remedy));
    }
}

fn clients(environment: &Environment) -> Vec<Client> {
    let mut clients = Vec::new();
    let mut add = |name, folder: &Option<PathBuf>, path: &str, keys| {
        if let Some(folder) = folder {
            clients.push(Client { name, path: folder.join(path), keys });
        }
    };
    let (home, config) = (&environment.user_folder, &environment.config_folder);
    add("Claude Desktop", config, "Claude/claude_desktop_config.json", &["mcpServers"]);
    add("Claude Code", home, ".claude.json", &["mcpServers"]);
    add("Cursor", home, ".cursor/mcp.json", &["mcpServers"]);
    add("VS Code", config, "Code/User/mcp.json", &["servers"]);
    add("VS Code", &Some(environment.working_folder.clone()), ".vscode/mcp.json", &["servers"]);
    add("Claude Code", &Some(environment.working_folder.clone()), ".mcp.json", &["mcpServers"]);
    add("Codex", home, ".codex/config.toml", &["mcp_servers"]);
    add("Windsurf", home, ".codeium/windsurf/mcp_config.json", &["mcpServers"]);
    add("Gemini CLI", home, ".gemini/settings.json", &["mcpServers"]);
    add("Zed", config, "zed/settings.json", &["context_servers"]);
    add("Letta", home, ".letta/mcp_config.json", &["mcpServers"]);
    clients
}

/// Returns the servers of a configuration and its projects that are this program, by name.
fn servers<'a>(config: &'a Value, keys: &[&str]) -> Vec<(&'a str, &'a Value)> {
    let mut found = Vec::new();
    let projects = config["projects"].as_object().into_iter().flat_map(|map| map.values());
    for place in std::iter::once(config).chain(projects) {
        for key in keys {
            let listed = place[*key].as_object().into_iter().flatten();
            let ours = listed.filter(|(name, server)| {
                let command = Path::new(server["command"].as_str().unwrap_or_default());
                name.to_lowercase().contains("verbatim")
                    || command.file_stem().is_some_and(|stem| stem == "verbatim")
            });
            found.extend(ours.map(|(name, server)| (name.as_str(), server)));
        }
    }
    found
}

/// Returns what keeps a server from starting, and the remedy.
fn fault(server: &Value, environment: &Environment, parse: ParseServe) -> Option<(String, String)> {
    let program = environment.program.display();
    let Some(command) = server["command"].as_str() else {
        // A server on the network is not started by the client.
        return server["url"]
            .as_str()
            .is_none()
            .then(|| ("names no \"command\"".to_owned(), format!("set \"command\" to {program}")));
    };
    let args: Vec<&str> =
        server["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if std::iter::once(command).chain(args.iter().copied()).any(|text| text.contains("${")) {
        return None;
    }
    if !can_start(Path::new(command), environment) {
        let what = format!("starts {command:?}, which is not there or cannot be run");
        return Some((what, format!("set \"command\" to {program}")));
    }
    if Path::new(command).file_stem().is_none_or(|stem| stem != "verbatim") {
        // A shell or a wrapper does not say which program it starts.
        return None;
    }
    let shown = args.join(" ");
    let places = match parse(&args) {
        Ok(Some(places)) => places,
        Ok(None) => {
            let what = format!("starts another command than serve ({shown})");
            return Some((what, "set \"args\" to [\"serve\"]".to_owned()));
        }
        Err(error) => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let what = format!("gives arguments that verbatim does not take ({shown}): {line}");
            return Some((what, "see `verbatim serve --help`".to_owned()));
        }
    };
    let variable = |name: &str| server["env"][name].as_str().map(PathBuf::from);
    let named = places.db.or_else(|| variable("CONVERSATION_DB"));
    let named = named.or_else(|| variable("ORIGIN_CONVERSATION_DB"))?;
    if !named.is_absolute() {
        let what = format!(
            "names the database {named:?} by a path that depends on the folder it starts in"
        );
        return Some((what, "give the whole path of the database".to_owned()));
    }
    if !named.is_file() {
        let what = format!("names the database {named:?}, which is not there");
        return Some((what, "give the path of a database, or leave it out".to_owned()));
    }
    None
}

/// Returns whether a command can be started, by its path or by its name in `PATH`.
fn can_start(command: &Path, environment: &Environment) -> bool {
    if command.components().count() > 1 {
        return command.is_absolute() && is_program(command);
    }
    let folders = environment.path.as_deref().map(env::split_paths).into_iter().flatten();
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
    let Ok(metadata) = fs::metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    metadata.is_file()
}

/// Returns JSON without comments and trailing commas, which editors allow.
fn strict_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{FEFF}').chars().peekable();
    let mut in_string = false;
    while let Some(c) = rest.next() {
        match c {
            _ if in_string => {
                out.push(c);
                match c {
                    '\\' => out.extend(rest.next()),
                    '"' => in_string = false,
                    _ => {}
                }
            }
            '"' => {
                in_string = true;
                out.push(c);
            }
            '/' if rest.peek() == Some(&'/') => {
                while rest.peek().is_some_and(|c| *c != '\n') {
                    rest.next();
                }
            }
            '/' if rest.peek() == Some(&'*') => {
                rest.next();
                let mut last = ' ';
                for c in rest.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            '}' | ']' => {
                let kept = out.trim_end();
                if kept.ends_with(',') {
                    out.truncate(kept.len() - 1);
                }
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_are_left_out() {
        for (text, expected) in [
            (r#"{"a": "b // c", /* d */ "e": [1, 2,], }"#, r#"{"a": "b // c",  "e": [1, 2] }"#),
            ("{\n// x\n\"a\": \"\\\"/*\"}", "{\n\n\"a\": \"\\\"/*\"}"),
            ("{} /* never ended", "{} "),
        ] {
            let text = strict_json(text);
            assert_eq!(
                text.split_whitespace().collect::<String>(),
                expected.split_whitespace().collect::<String>()
            );
        }
    }

    #[test]
    fn servers_that_are_ours() {
        let config = serde_json::json!({
            "mcpServers": {"chats": {"command": "/bin/verbatim"}, "other": {"command": "x"}},
            "projects": {"/p": {"mcpServers": {"Verbatim": {"command": "x"}}}, "/q": 5},
        });
        let names: Vec<&str> =
            servers(&config, &["mcpServers"]).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["chats", "Verbatim"]);
        assert!(servers(&Value::Null, &["mcpServers"]).is_empty());
    }
}
