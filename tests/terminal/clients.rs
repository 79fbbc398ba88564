//! `verbatim connect`, and what `verbatim doctor` finds in the configurations of AI clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::calls::has;
use crate::corpus::{database, folder};
use crate::user::Said;

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

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(self.0.path());
        command.env_clear().env("HOME", self.0.path());
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_DATA_HOME", self.path("share"));
        command
    }

    /// Runs a command that ends with an exit code; returns its output and errors.
    #[track_caller]
    fn says(&self, arguments: &[&str], code: i32) -> String {
        let said = Said::of(&mut self.command(arguments));
        said.ends(code);
        said.out + &said.errors
    }

    fn doctor(&self) -> Vec<(String, String)> {
        let json = Said::of(&mut self.command(&["doctor", "--json"])).json().remove(0);
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

/// The path of the copy of a file from before a change.
fn backup(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.verbatim.bak", path.display()))
}

#[test]
#[cfg(target_os = "linux")]
fn a_home_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let user = User::new();
    let home = user.0.path().join(std::ffi::OsStr::from_bytes(b"h\xff"));
    let mut command = user.command(&["connect", "claude-desktop", "--yes"]);
    Said::of(command.arg("--home").arg(&home)).ends(2).warns("is not UTF-8");
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
        assert!(!backup(&path).exists(), "a new file has no backup");
        let says = user.says(&["connect"], 0);
        let missing = says.split("Not found on this machine: ").nth(1).unwrap_or_default();
        assert!(missing.split([',', ' ', '\n']).all(|name| name != id), "{id}: {says}");
        let findings = user.doctor();
        assert!(findings.iter().all(|(verdict, _)| verdict == "ok"), "{id}: {findings:?}");
        let says = user.says(&["disconnect", id, "--yes"], 0);
        assert!(says.contains("not start Verbatim any more"), "{id}: {says}");
        assert!(!text_of(&path).contains("verbatim"), "{id}");
        assert_eq!(text_of(&backup(&path)), text, "{id}");
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
    assert!(says.contains("      \"verbatim\": {\n        \"command\": "), "{says}");
    assert!(says.contains(".cursor/mcp.json\n"), "{says}");
    assert_eq!(fs::read_to_string(&path).unwrap(), mine, "nothing was changed");
    let says = user.says(&["connect"], 0);
    has(&says, &["Cursor              not connected; `verbatim connect cursor`"]);
    assert!(says.contains("Not found on this machine: claude-desktop, "), "{says}");
    user.says(&["--no-archive", "connect", "cursor", "--yes"], 0);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("// my servers") && text.contains("\"z\": 1"), "{text}");
    assert!(user.says(&["connect"], 0).contains("connected, and the server answers"));
    let says = user.says(&["disconnect", "cursor"], 2);
    assert!(says.contains("loses \"verbatim\" in \"mcpServers\""), "{says}");
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
    assert!(says.contains("no comments, no comma before ] or }"), "{says}");
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
        (good.replace("\"serve\"]", "\"serve\",]"), "no comments, no comma before ] or }"),
        (format!("// mine\n{good}"), "no comments, no comma before ] or }"),
        (format!("{{\n  /* mine */{}", &good[1..]), "no comments"),
        (args(&["search", "--role"]), "does not take (search --role): a value is required"),
        (args(&["search"]), "not provided: <WORDS>..."),
        (good.replace(PROGRAM, r"C:\Users\me\verbatim.exe"), r"\\ for each \ of a path"),
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
        ("[]".to_owned(), "it is not an object"),
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
        (server(json!({"url": "http://localhost:1/mcp"})), "by its address"),
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
fn the_entry_for_a_server_over_http_is_printed() {
    let user = User::new();
    let address = "http://127.0.0.1:9/mcp";
    for (id, file, key) in FILES {
        if id == "claude-desktop" {
            let says = user.says(&["connect", id, "--http"], 2);
            assert!(says.contains("no servers over HTTP in its configuration"), "{says}");
            continue;
        }
        let says = user.says(&["connect", id, "--http", address], 0);
        let path = user.path(file);
        let (first, rest) = says.split_once('\n').unwrap();
        assert_eq!(first, format!("Add this to {} yourself:", path.display()));
        let (entry, last) = rest.trim_end().rsplit_once('\n').unwrap();
        assert!(last.contains("stands for the token of the server"), "{says}");
        assert!(entry.contains(key) && entry.contains(address), "{id}: {says}");
        let name = if id == "codex" { "VERBATIM_TOKEN" } else { "Bearer TOKEN" };
        assert!(entry.contains(name) && !path.exists(), "{id}: {says}");
        // An entry that was copied is found, and `connect` replaces it.
        user.write(file, entry);
        let listed = user.says(&["connect"], 0);
        assert!(listed.contains("connected; the server is reached by its address"), "{listed}");
        user.says(&["connect", id, "--yes"], 0);
        let text = text_of(&path);
        assert!(text.contains(PROGRAM) && !text.contains(address), "{id}: {text}");
        user.says(&["disconnect", id, "--yes"], 0);
        fs::remove_file(path).unwrap();
    }
    let says = user.says(&["connect", "cursor", "--http"], 0);
    assert!(says.contains("http://127.0.0.1:8377/mcp"), "{says}");
    for url in ["localhost:8377", "http://127.0.0.1:8377"] {
        let says = user.says(&["connect", "cursor", "--http", url], 2);
        assert!(says.contains("it must begin with http:// or https://"), "{says}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_keeps_its_rights_and_its_link() {
    use std::os::unix::fs::PermissionsExt;

    let user = User::new();
    let (link, path) = (user.path(".cursor/mcp.json"), user.path("dotfiles/mcp.json"));
    fs::create_dir_all(user.path(".cursor")).unwrap();
    std::os::unix::fs::symlink("../dotfiles/mcp.json", &link).unwrap();
    user.says(&["connect", "cursor", "--yes"], 0);
    assert!(text_of(&path).contains(PROGRAM), "a link to a file that does not exist yet");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    for rights in [0o640, 0o444] {
        user.write("dotfiles/mcp.json", "{}\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(rights)).unwrap();
        user.says(&["connect", "cursor", "--yes"], 0);
        assert!(text_of(&path).contains(PROGRAM));
        assert_eq!((mode(&path), mode(&backup(&path))), (rights, rights));
        assert_eq!(text_of(&backup(&path)), "{}\n");
        fs::remove_file(&path).unwrap();
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_cannot_be_written_is_named() {
    let user = User::new();
    // A file stands where a folder is needed, which no user can write into.
    user.write(".cursor", "mine");
    let says = user.says(&["connect", "cursor", "--yes"], 2);
    assert!(says.contains(".cursor/mcp.json: "), "{says}");
    assert_eq!(text_of(&user.path(".cursor")), "mine");
    // A folder stands where the file is.
    fs::create_dir_all(user.path(".kiro/settings/mcp.json")).unwrap();
    let says = user.says(&["connect", "kiro", "--yes"], 2);
    assert!(says.contains("mcp.json: ") && says.contains("nothing was changed"), "{says}");
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
        let said = Said::of(user.command(&["connect"]).env(name, "x"));
        said.prints("connected, and the server answers");
    }
}

/// The text of a file, if it is there.
fn text_of(path: &Path) -> String {
    String::from_utf8(fs::read(path).unwrap()).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn every_entry_is_removed_and_named() {
    let user = User::new();
    let entry = |folder: &str| json!({"command": format!("{folder}/verbatim"), "args": ["serve"]});
    let two = json!({"mcpServers": {"a": entry("/x"), "b": entry("/y")}});
    user.write(".cursor/mcp.json", &two.to_string());
    let says = user.says(&["disconnect", "cursor", "--yes"], 0);
    assert!(says.contains("loses \"a\", \"b\" in \"mcpServers\""), "{says}");
    assert!(!text_of(&user.path(".cursor/mcp.json")).contains("serve"));
    let in_project = json!({"projects": {"/p": {"mcpServers": {"verbatim": entry("/x")}}}});
    user.write(".claude.json", &in_project.to_string());
    let says = user.says(&["disconnect", "claude-code", "--yes"], 0);
    has(&says, &["No entry in \"mcpServers\" of ", "nothing to do"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_not_in_utf_8_is_named_so() {
    let user = User::new();
    fs::create_dir_all(user.path(".cursor")).unwrap();
    for (bytes, what) in [
        (&b"\xff\xfe{\0}\0"[..], "it is not in UTF-8"),
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
fn advice_fits_what_is_wrong() {
    let user = User::new();
    for (text, remedy) in [
        ("{\"mcpServers\": null}", "\"mcpServers\" has no list of servers; remove it"),
        ("{\"mcpServers\": []}", "\"mcpServers\" has no list of servers; remove it"),
        ("{\"mcpServers\": {\"verbatim\": 1}}", "\"verbatim\" is no entry of a server; remove it"),
        ("[]", "write {} in its place"),
        ("{\"a\": 1,}", "no comments, no comma before ] or }"),
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
