//! `verbatim connect`, and what `verbatim doctor` finds in the configurations of AI clients.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::corpus::{database, folder};

const PROGRAM: &str = env!("CARGO_BIN_EXE_verbatim");

/// A user's folder with a home of Verbatim in its place, and one message.
struct User(TempDir);

impl User {
    fn new() -> User {
        let user = User(folder());
        fs::create_dir_all(user.path("share/verbatim/db")).unwrap();
        drop(database(&user.path("share/verbatim/db/chats.db"), &["the red one"]));
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(self.0.path());
        for name in
            ["CONVERSATION_DB", "ORIGIN_CONVERSATION_DB", "VERBATIM_HOME", "CLAUDE_CONFIG_DIR"]
        {
            command.env_remove(name);
        }
        command
            .env_remove("VERBATIM_CONFIG")
            .env("HOME", self.0.path())
            .env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_DATA_HOME", self.path("share")).env_remove("CODEX_HOME");
        command.env_remove("VERBATIM_TOKEN");
        command
    }

    /// Runs a command that ends with an exit code; returns its output and errors.
    #[track_caller]
    fn says(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    fn doctor(&self) -> Vec<(String, String)> {
        let output = self.run(&["doctor", "--json"]);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings = json["findings"].as_array().unwrap().iter();
        let of_clients = findings.filter(|it| !text(&it["about"]).contains("share/verbatim"));
        of_clients
            .filter(|it| !["disk", "database"].contains(&it["about"].as_str().unwrap()))
            .map(|it| {
                let what =
                    format!("{} {} -> {}", text(&it["about"]), text(&it["what"]), text(&it["fix"]));
                (text(&it["verdict"]), what)
            })
            .collect()
    }
}

const CLAUDE_DESKTOP: &str = "config/Claude/claude_desktop_config.json";

/// The configuration files of all clients, with the key of their servers.
const FILES: [(&str, &str, &str); 12] = [
    ("claude-desktop", CLAUDE_DESKTOP, "mcpServers"),
    ("claude-code", ".claude.json", "mcpServers"),
    ("codex", ".codex/config.toml", "mcp_servers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("vscode", "config/Code/User/mcp.json", "servers"),
    ("gemini", ".gemini/settings.json", "mcpServers"),
    ("zed", "config/zed/settings.json", "context_servers"),
    ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    ("lm-studio", ".lmstudio/mcp.json", "mcpServers"),
    ("kiro", ".kiro/settings/mcp.json", "mcpServers"),
    ("copilot", ".copilot/mcp-config.json", "mcpServers"),
    ("opencode", "config/opencode/opencode.json", "mcp"),
];

fn backups(path: &Path) -> usize {
    let name = path.file_name().unwrap().to_str().unwrap();
    let entries = fs::read_dir(path.parent().unwrap()).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|other| other.starts_with(name) && other.ends_with(".bak")).count()
}

#[test]
#[cfg(target_os = "linux")]
fn a_home_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let user = User::new();
    let home = user.0.path().join(std::ffi::OsStr::from_bytes(b"h\xff"));
    for arguments in
        [&["connect", "claude-desktop", "--yes"][..], &["service", "install", "--print"]]
    {
        let output = user.command(arguments).arg("--home").arg(&home).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && errors.contains("is not UTF-8"), "{errors}");
    }
    assert!(!user.path(CLAUDE_DESKTOP).exists());
}

#[test]
#[cfg(target_os = "linux")]
fn every_client_is_connected_and_disconnected() {
    let user = User::new();
    for (id, file, key) in FILES {
        let path = user.path(file);
        let says = user.says(&["connect", id, "--yes"], 0);
        assert!(says.contains("Checked: the server starts"), "{id}: {says}");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(key) && text.contains(PROGRAM), "{id}: {text}");
        let says = user.says(&["connect", id, "--yes"], 0);
        assert!(says.contains("connected already"), "{id}: {says}");
        assert_eq!(backups(&path), 0, "a new file has no backup");
        let says = user.says(&["connect"], 0);
        let missing = says.split("Not found on this machine: ").nth(1).unwrap_or_default();
        assert!(missing.split([',', ' ', '\n']).all(|name| name != id), "{id}: {says}");
        let findings = user.doctor();
        assert!(findings.iter().all(|(verdict, _)| verdict == "ok"), "{id}: {findings:?}");
        let says = user.says(&["disconnect", id, "--yes"], 0);
        assert!(says.contains("not start Verbatim any more"), "{id}: {says}");
        assert!(!fs::read_to_string(&path).unwrap().contains("verbatim"), "{id}");
        assert_eq!(backups(&path), 1, "{id}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_change_is_shown_and_asked_for_and_leaves_the_rest() {
    let user = User::new();
    let mine = "{\n  // my servers\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"},\n  },\n  \"z\": 1\n}\n";
    user.write(".cursor/mcp.json", mine);
    let path = user.path(".cursor/mcp.json");
    let says = user.says(&["connect", "cursor"], 2);
    assert!(says.contains("no terminal to ask; --yes makes the change"), "{says}");
    let says = user.says(&["connect", "cursor", "--print"], 0);
    assert!(says.contains("+     \"verbatim\": {"), "{says}");
    assert_eq!(fs::read_to_string(&path).unwrap(), mine, "nothing was changed");
    let says = user.says(&["connect"], 0);
    assert!(
        says.contains("Cursor              not connected; `verbatim connect cursor`"),
        "{says}"
    );
    assert!(says.contains("Not found on this machine: claude-desktop, "), "{says}");
    user.says(&["--no-archive", "connect", "cursor", "--yes"], 0);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("// my servers") && text.contains("\"z\": 1"), "{text}");
    assert!(user.says(&["connect"], 0).contains("connected, and the server answers"));
    user.says(&["disconnect", "cursor", "--yes"], 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), mine);
    assert!(user.says(&["disconnect", "cursor"], 0).contains("nothing to do"));
    // Places that are not the default are written down.
    let db = user.path("share/verbatim/db/chats.db");
    user.says(&["connect", "cursor", "--yes", "--db", db.to_str().unwrap()], 0);
    assert!(fs::read_to_string(&path).unwrap().contains(db.to_str().unwrap()));
    // A configuration that the client cannot read is not changed.
    user.write(CLAUDE_DESKTOP, "{\"a\": 1,}");
    let says = user.says(&["connect", "claude-desktop", "--yes"], 2);
    assert!(says.contains("nothing was changed"), "{says}");
    assert!(says.contains("remove the comments, and the commas before ] and }"), "{says}");
    let says = user.says(&["connect"], 0);
    assert!(says.contains("Claude Desktop      not known whether it is connected: "), "{says}");
    assert_eq!(fs::read_to_string(user.path(CLAUDE_DESKTOP)).unwrap(), "{\"a\": 1,}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_doctor_finds_every_faulty_configuration() {
    let user = User::new();
    let good_db = user.path("share/verbatim/db/chats.db");
    user.write("empty.db", "");
    user.write("text.db", "no database, but long enough to be looked at");
    fs::create_dir(user.path("empty-home")).unwrap();
    user.write("not-a-program", "x");
    let server = |entry: Value| json!({"mcpServers": {"verbatim": entry}}).to_string();
    let args = |args: &[&str]| server(json!({"command": PROGRAM, "args": args}));
    let env = |name: &str, value: &str| {
        server(json!({"command": PROGRAM, "args": ["serve"], "env": {name: value}}))
    };
    let command = |command: &str| server(json!({"command": command, "args": ["serve"]}));
    let path = |name: &str| user.path(name).to_str().unwrap().to_owned();
    let good = args(&["serve"]);
    let faulty = [
        (args(&["serve", "--tools", "serach"]), "there is no tool \"serach\""),
        (args(&["serve", "--db", &path("empty.db")]), "cannot be searched"),
        (args(&["serve", "--db", &path("text.db")]), "cannot be searched"),
        (args(&["serve", "--db", "/nowhere/chats.db"]), "which does not exist"),
        (args(&["serve", "--db", "chats.db"]), "depends on the folder"),
        (env("VERBATIM_DB", "chats.db"), "depends on the folder"),
        (env("CONVERSATION_DB", "/nowhere.db"), "which does not exist"),
        (env("ORIGIN_CONVERSATION_DB", &path("text.db")), "cannot be searched"),
        (args(&["serve", "--home", "/nowhere"]), "home folder \"/nowhere\", which does not exist"),
        (args(&["serve", "--home", "chats"]), "depends on the folder"),
        (env("VERBATIM_HOME", "/nope"), "home folder \"/nope\", which does not exist"),
        (args(&["serve", "--no-archive", "--home", &path("empty-home")]), "a search fails"),
        (command("verbatim"), "verbatim"),
        (command("/nowhere/verbatim"), "does not exist or cannot be run"),
        (command(&path("not-a-program")), "does not exist or cannot be run"),
        (command("target/verbatim"), "does not exist or cannot be run"),
        (good.replace("\"serve\"]", "\"serve\",]"), "remove the comments, and the commas"),
        (format!("// mine\n{good}"), "remove the comments, and the commas"),
        (format!("{{\n  /* mine */{}", &good[1..]), "there is a comment in line 2"),
        (args(&["search", "--role"]), "does not take (search --role): a value is required"),
        (args(&["search"]), "not provided: <WORDS>..."),
        (good.replace(PROGRAM, r"C:\Users\me\verbatim.exe"), "write each backslash twice"),
        ("{".to_owned(), "correct the JSON"),
        (server(json!({"command": PROGRAM, "args": "serve"})), "not a list of strings"),
        (server(json!({"command": PROGRAM})), "without a command"),
        (server(json!({"args": ["serve"]})), "names no \"command\""),
        (args(&["search", "x"]), "a command other than serve"),
        (args(&["serve", "--colour"]), "does not take (serve --colour)"),
        (good.replace("mcpServers", "mcpservers"), "list it under \"mcpServers\""),
        (good.replace("mcpServers", "servers"), "list it under \"mcpServers\""),
        (server(json!({"command": "/bin/sh", "args": ["-c", "exit 3"]})), "exit code 3"),
        (
            server(json!({"command": "/bin/echo", "args": ["hello"]})),
            "something other than MCP messages: hello",
        ),
        (" \n".to_owned(), "the file is empty"),
        ("[]".to_owned(), "it is not a JSON object"),
        (server(Value::Null), "names no program to start"),
    ];
    for (config, expected) in &faulty {
        user.write(CLAUDE_DESKTOP, config);
        let findings = user.doctor();
        let is_found = findings.iter().any(|(verdict, what)| {
            verdict == "wrong" && what.contains(expected) && what.contains("Claude Desktop")
        });
        assert!(is_found && findings.len() == 1, "{config}: {findings:?}");
    }
    assert!(faulty.len() >= 23);
    // Correct configurations give no findings.
    for config in [
        good.clone(),
        args(&["serve", "--db", good_db.to_str().unwrap()]),
        server(json!({"command": "/bin/sh", "args": ["-c", format!("exec {PROGRAM} serve")]})),
    ] {
        user.write(CLAUDE_DESKTOP, &config);
        let findings = user.doctor();
        let [(verdict, what)] = findings.as_slice() else { panic!("{config}: {findings:?}") };
        assert!(verdict == "ok" && what.contains("which answers"), "{config}: {what}");
    }
    for (config, expected) in [
        (args(&["serve", "--db", "${HOME}/chats.db"]), "uses variables"),
        (server(json!({"url": "http://localhost:1/mcp"})), "by its URL"),
        (server(json!({"command": PROGRAM, "disabled": true})), "switched off"),
    ] {
        user.write(CLAUDE_DESKTOP, &config);
        let findings = user.doctor();
        assert!(
            findings[0].0 == "note" && findings[0].1.contains(expected),
            "{config}: {findings:?}"
        );
    }
    // A client that names its own database does not need one in the home folder.
    let elsewhere = user.path("elsewhere.db");
    fs::rename(&good_db, &elsewhere).unwrap();
    user.write(CLAUDE_DESKTOP, &args(&["serve", "--db", elsewhere.to_str().unwrap()]));
    assert!(user.says(&["doctor"], 0).contains("nothing is wrong"));
}

#[test]
#[cfg(target_os = "linux")]
fn clients_reach_a_server_over_http() {
    use std::os::unix::fs::PermissionsExt;

    let user = User::new();
    let token = user.says(&["token"], 0).trim().to_owned();
    for (id, file, key) in FILES {
        let path = user.path(file);
        if id == "claude-desktop" {
            let says = user.says(&["connect", id, "--http", "--yes"], 2);
            assert!(says.contains("no servers over HTTP in its configuration"), "{says}");
            continue;
        }
        // The connection over HTTP replaces a server that the client starts.
        user.says(&["connect", id, "--yes"], 0);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let says = user.says(&["connect", id, "--http", "http://127.0.0.1:9/mcp", "--yes"], 0);
        assert!(says.contains("The server does not answer at http://127.0.0.1:9"), "{id}: {says}");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(key) && text.contains("http://127.0.0.1:9/mcp"), "{id}: {text}");
        assert!(!text.contains("command") && !text.contains(PROGRAM), "{id}: {text}");
        let by_variable = ["codex", "gemini", "opencode"].contains(&id);
        assert_eq!(text.contains(&token), !by_variable, "{id}: {text}");
        assert_eq!(text.contains("VERBATIM_TOKEN"), by_variable, "{id}: {text}");
        assert_eq!(says.contains("export VERBATIM_TOKEN=$(verbatim token)"), by_variable, "{says}");
        if !by_variable {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{id}: others must not read the token");
        }
        let says = user.says(&["connect", id, "--http", "http://127.0.0.1:9/mcp", "--yes"], 0);
        assert!(says.contains("connected already"), "{id}: {says}");
        // The server that the client starts replaces the connection over HTTP.
        user.says(&["connect", id, "--yes"], 0);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(PROGRAM) && !text.contains("127.0.0.1:9"), "{id}: {text}");
        user.says(&["disconnect", id, "--yes"], 0);
    }
    // A file that is linked to stays, is closed only after a yes, and is closed if it is open again.
    let (link, path) = (user.path(".cursor/mcp.json"), user.path("dotfiles/mcp.json"));
    user.write("dotfiles/mcp.json", "{}\n");
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let open_up = || fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    open_up();
    let connect = ["connect", "cursor", "--http", "http://127.0.0.1:9/mcp"];
    assert!(user.says(&connect, 2).contains("nothing was changed"));
    assert_eq!(mode(), 0o644, "nobody said yes");
    let with_yes = [&connect[..], &["--yes"]].concat();
    user.says(&with_yes, 0);
    assert_eq!(mode(), 0o600);
    open_up();
    let says = user.says(&with_yes, 0);
    assert!(says.contains("connected already") && says.contains("now only you can"), "{says}");
    assert_eq!(mode(), 0o600);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let says = user.says(&["disconnect", "cursor", "--yes"], 0);
    assert!(says.contains("It still holds the token"), "{says}");
    // Another computer does not get the token of this one.
    let other = ["connect", "cursor", "--http", "http://verbatim.invalid/mcp", "--yes"];
    let says = user.says(&other, 2);
    assert!(says.contains("is not on this computer"), "{says}");
    user.write("token-of-it", "another-computers-token-42");
    let file = user.path("token-of-it");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    user.says(&[&other[..], &["--token-file", file.to_str().unwrap()]].concat(), 0);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("another-computers-token-42") && !text.contains(&token), "{text}");
    let codex = ["connect", "codex", "--http", "http://verbatim.invalid/mcp", "--yes"];
    assert!(user.says(&codex, 0).contains("export VERBATIM_TOKEN=TOKEN (that of the server)"));
    for url in ["localhost:8377", "http://127.0.0.1:8377"] {
        let says = user.says(&["connect", "cursor", "--http", url, "--yes"], 2);
        assert!(says.contains("it must begin with http:// or https://"), "{says}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_connected_client_has_the_token_that_the_server_takes() {
    let user = User::new();
    let server = crate::http_server::HttpServer::start(|db| drop(database(db, &["red"])), &[]);
    let with = |token: &str| {
        let headers = json!({"Authorization": format!("Bearer {token}")});
        let entry = json!({"url": format!("http://{}/mcp", server.address), "headers": headers});
        user.write(".cursor/mcp.json", &json!({"mcpServers": {"verbatim": entry}}).to_string());
        let says = user.says(&["connect"], 0);
        says.lines().find(|line| line.starts_with("Cursor")).unwrap().to_owned()
    };
    let says = with(&server.token);
    assert!(says.ends_with("connected, and the server answers"), "{says}");
    let says = with("an-older-token-of-this-server");
    assert!(says.contains("connected, but the server refuses the token"), "{says}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_check_starts_the_server_without_the_variables_of_the_terminal() {
    let user = User::new();
    let script = format!("test -z \"$VARIABLE\" && exec {PROGRAM} serve");
    for name in [
        "VERBATIM_WORKSPACE",
        "ENABLE_CONVERSATIONS",
        "COMPACT_RESPONSES",
        "VERBATIM_EMBEDDINGS_KEY",
        "VERBATIM_DB",
        "VERBATIM_CLUSTER_LOGIN",
        "VERBATIM_TOKEN",
    ] {
        let script = script.replace("VARIABLE", name);
        let entry = json!({"command": "/bin/sh", "args": ["-c", script]});
        user.write(".cursor/mcp.json", &json!({"mcpServers": {"verbatim": entry}}).to_string());
        let output = user.command(&["connect"]).env(name, "x").output().unwrap();
        let says = String::from_utf8(output.stdout).unwrap();
        assert!(says.contains("connected, and the server answers"), "{name}: {says}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_service_that_cannot_be_stopped_is_not_said_to_be_gone() {
    use std::os::unix::fs::PermissionsExt;

    let user = User::new();
    let unit = "config/systemd/user/verbatim.service";
    user.write(unit, "[Unit]\n");
    for (code, words) in [(1, "may still run"), (0, "The service is removed.")] {
        user.write(unit, "[Unit]\n");
        user.write("bin/systemctl", &format!("#!/bin/sh\nexit {code}\n"));
        let program = user.path("bin/systemctl");
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = user.command(&["service", "remove", "--yes"]);
        let output = command.env("PATH", user.path("bin")).output().unwrap();
        let says = String::from_utf8(output.stdout).unwrap();
        assert!(says.contains(words) && output.status.code() == Some(code), "{says}");
        assert!(!user.path(unit).exists());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_service_is_shown_before_it_is_made() {
    let user = User::new();
    let unit = user.path("config/systemd/user/verbatim.service");
    let says = user.says(&["service", "install", "9000", "--page", "--print"], 0);
    let words = r#""serve" "--http" "9000" "--page""#.replace('\\', "");
    assert!(says.contains("ExecStart=") && says.contains(&words), "{says}");
    assert!(says.starts_with("[Unit]\n"), "the file as it is: {says}");
    assert!(!unit.exists());
    let says = user.says(&["service", "install", "99999", "--yes"], 2);
    assert!(says.contains("is not an address of this computer") && !unit.exists(), "{says}");
    let says = user.says(&["service", "install"], 2);
    assert!(says.contains("there is no terminal to ask") && !unit.exists(), "{says}");
    assert!(user.says(&["service", "remove", "--yes"], 0).contains("No service of Verbatim"));
}

/// The text of a file, if it is there.
fn text_of(path: &Path) -> String {
    String::from_utf8(fs::read(path).unwrap()).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn disconnect_gives_back_the_bytes_from_before() {
    let user = User::new();
    for (id, file, text) in [
        ("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": {\n    // add servers here\n  }\n}\n"),
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\":{\"o\":{\"command\":\"x\"}},\"a\":1}"),
        ("claude-code", ".claude.json", "\u{FEFF}{\r\n\t\"mcpServers\": { }\r\n}"),
        ("codex", ".codex/config.toml", "model = \"o3\"\r\n"),
        ("codex", ".codex/config.toml", "[mcp_servers]\n# my servers\n\n[other]\na=1"),
    ] {
        user.write(file, text);
        user.says(&["connect", id, "--yes", "--json"], 0);
        let with = text_of(&user.path(file));
        assert_eq!(with.matches("\r\n").count() > 0, text.contains("\r\n"), "{with:?}");
        assert!(with.matches("\r\n").count() == 0 || !with.replace("\r\n", "").contains('\n'));
        user.says(&["disconnect", id, "--yes", "--json"], 0);
        assert_eq!(text_of(&user.path(file)), text, "{with}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn every_entry_is_removed_and_named() {
    let user = User::new();
    let entry = |folder: &str| json!({"command": format!("{folder}/verbatim"), "args": ["serve"]});
    let two = json!({"mcpServers": {"a": entry("/x"), "b": entry("/y")}});
    user.write(".cursor/mcp.json", &two.to_string());
    let says = user.says(&["connect", "cursor", "--yes"], 0);
    assert!(says.contains("\"b\" starts Verbatim too"), "{says}");
    let says = user.says(&["disconnect", "cursor", "--yes"], 0);
    assert!(says.contains("2 entries were removed: \"a\", \"b\""), "{says}");
    assert!(!text_of(&user.path(".cursor/mcp.json")).contains("serve"));
    let in_project = json!({"projects": {"/p": {"mcpServers": {"verbatim": entry("/x")}}}});
    user.write(".claude.json", &in_project.to_string());
    let says = user.says(&["disconnect", "claude-code", "--yes"], 0);
    assert!(says.contains("starts Verbatim only in its projects"), "{says}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_not_in_utf_8_is_named_so() {
    let user = User::new();
    fs::create_dir_all(user.path(".cursor")).unwrap();
    for (bytes, what) in [
        (&b"\xff\xfe{\0}\0"[..], "it is in UTF-16"),
        (b"\xfe\xff\0{\0}", "it is in UTF-16"),
        (b"{\0}\0", "it is in UTF-16"),
        (b"{\"a\": \"\xe9\"}", "it is not in UTF-8"),
    ] {
        fs::write(user.path(".cursor/mcp.json"), bytes).unwrap();
        let says = user.says(&["connect", "cursor", "--yes"], 2);
        assert!(says.contains(what) && says.contains("save it as UTF-8 ("), "{says}");
        let findings = user.doctor();
        let [(verdict, said)] = findings.as_slice() else { panic!("{findings:?}") };
        assert!(verdict == "wrong" && said.contains(what), "{said}");
        assert!(said.ends_with("-> save it as UTF-8"), "{said}");
        assert_eq!(fs::read(user.path(".cursor/mcp.json")).unwrap(), bytes);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_link_to_a_file_that_does_not_exist_yet_stays() {
    let user = User::new();
    fs::create_dir_all(user.path(".cursor")).unwrap();
    let link = user.path(".cursor/mcp.json");
    std::os::unix::fs::symlink("../dotfiles/mcp.json", &link).unwrap();
    user.says(&["connect", "cursor", "--yes"], 0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(text_of(&user.path("dotfiles/mcp.json")).contains(PROGRAM));
}

#[test]
#[cfg(target_os = "linux")]
fn advice_fits_what_is_wrong() {
    let user = User::new();
    for (text, remedy) in [
        ("{\"mcpServers\": null}", "write {} in its place"),
        ("{\"mcpServers\": []}", "write {} in its place"),
        ("[]", "write {} in its place"),
        ("{\"a\": 1,}", "remove the comments, and the commas"),
    ] {
        user.write(CLAUDE_DESKTOP, text);
        let says = user.says(&["connect", "claude-desktop", "--yes"], 2);
        assert!(says.contains(remedy), "{text}: {says}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_is_switched_off_is_said_to_be() {
    let user = User::new();
    let entry = json!({"command": "old", "args": [], "disabled": true});
    user.write(".cursor/mcp.json", &json!({"mcpServers": {"verbatim": entry}}).to_string());
    for first in ["Cursor is connected,", "Cursor is connected already"] {
        let says = user.says(&["connect", "cursor", "--yes"], 0);
        assert!(says.contains(first), "{says}");
        assert!(says.contains("switched off in the client; switch it on there"), "{says}");
        assert!(!says.contains("verbatim import"), "{says}");
    }
}
