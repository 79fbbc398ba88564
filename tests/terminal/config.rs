//! The configuration file, and what `verbatim status` says of the settings.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::calls::has;
use crate::corpus::database;
use crate::program::Server;
use crate::user::{Said, User};

/// Returns a user with a configuration file.
fn user_with(settings: &str) -> User {
    let user = User::new();
    user.set(settings);
    user
}

impl User {
    fn set(&self, settings: &str) {
        let path = self.write("config/verbatim/config.toml", settings);
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    }
}

/// Returns a setting, as `verbatim status --json` says it.
fn shown(command: &mut Command, key: &str) -> Value {
    let status = &Said::of(command).ends(0).json()[0];
    let settings = status["settings"].as_array().unwrap();
    settings.iter().find(|one| one["key"] == key).expect("the key").clone()
}

fn home_with(path: &Path, text: &str) -> Connection {
    fs::create_dir_all(path.join("db")).unwrap();
    database(&path.join("db/a.db"), &[text])
}

#[test]
fn flags_come_before_variables_and_these_before_the_file() {
    let user = user_with("# mine\nhome = '~/filed'\narchives = []\n");
    for name in ["filed", "variable", "flag"] {
        drop(home_with(&user.path(name), &format!("red {name}")));
    }
    let found = |command: &mut Command| Said::of(command.args(["search", "red"])).out;
    assert!(found(&mut user.command(&[])).contains("filed"));
    let mut command = user.command(&[]);
    assert!(found(command.env("VERBATIM_HOME", user.path("variable"))).contains("variable"));
    let mut command = user.command(&[]);
    command.env("VERBATIM_HOME", user.path("variable")).arg("--home").arg(user.path("flag"));
    assert!(found(&mut command).contains("flag"));

    let home = |command: &mut Command| {
        let home = shown(command.args(["status", "--json"]), "home");
        (home["from"].clone(), home["name"].clone(), home["line"].clone())
    };
    assert_eq!(home(&mut user.command(&[])), ("file".into(), Value::Null, 2.into()));
    let mut command = user.command(&[]);
    let by_variable = home(command.env("VERBATIM_HOME", user.path("variable")));
    assert_eq!(by_variable, ("variable".into(), "VERBATIM_HOME".into(), Value::Null));
    let flag = user.path("flag");
    let mut command = user.command(&["--home", flag.to_str().unwrap()]);
    assert_eq!(home(&mut command), ("flag".into(), "--home".into(), Value::Null));

    let Said { out: text, .. } = user.run(&["status", "--settings"]);
    let expected = format!("home                {}  (line 2)\n", user.path("filed").display());
    assert!(text.contains("file                ~/config/verbatim/config.toml\n"), "{text}");
    has(&text, &[&expected, "archives            none  (line 3)\n"]);
    assert!(text.contains("watch               true  (default)\n"), "{text}");
}

#[test]
fn the_model_and_its_share_are_settings() {
    let user = user_with("embeddings = 'http://filed/v1#m'\nvector-share = 0.5\n");
    drop(home_with(&user.path("home"), "red"));
    let setting = |key: &str, variables: &[(&'static str, &str)]| {
        let mut command = user.command(&["status", "--json"]);
        let shown = shown(command.envs(variables.iter().copied()), key);
        (shown["value"].clone(), shown["name"].clone())
    };
    assert_eq!(setting("embeddings", &[]), ("http://filed/v1#m".into(), Value::Null));
    let variable = [("VERBATIM_EMBEDDINGS", "static")];
    assert_eq!(setting("embeddings", &variable), ("static".into(), "VERBATIM_EMBEDDINGS".into()));
    assert_eq!(setting("vector-share", &[]), ("0.5".into(), Value::Null));
    let share = [("VERBATIM_VECTOR_SHARE", "40%")];
    assert_eq!(setting("vector-share", &share), ("40%".into(), "VERBATIM_VECTOR_SHARE".into()));
    user.set("");
    assert_eq!(setting("vector-share", &[]), ("0.3".into(), Value::Null), "that of the model");

    let with_share = |text: &str| {
        let mut command = user.command(&["--home", "../home", "status", "--json"]);
        Said::of(command.env("VERBATIM_VECTOR_SHARE", text))
    };
    user.run(&["--home", "../home", "reindex"]).ends(0);
    let status = with_share("40%").json();
    assert_eq!(status[0]["sources"][0]["generation"]["meaning"]["vector_share"], 0.4);
    with_share("40").ends(2).warns("VERBATIM_VECTOR_SHARE: \"40\" is not a share");
    let said = Said::of(user.command(&["search", "red"]).env("VERBATIM_EMBEDDINGS", "ollama:m"));
    let says = "VERBATIM_EMBEDDINGS: \"ollama:m\" is not an embedding model; write";
    said.ends(2).warns(says).warns("URL#MODEL");
    user.set("\nvector-share = 1.5\n");
    user.run(&["status", "--settings"]).ends(2).warns("config.toml:2: vector-share takes a number");
}

#[test]
fn another_file_or_none() {
    let user = user_with("homes = 1");
    let other = user.path("other.toml");
    fs::write(&other, "threads = 3\n").unwrap();
    let mut command = user.command(&["status", "--json"]);
    assert_eq!(shown(command.env("VERBATIM_CONFIG", &other), "threads")["value"], "3");
    let mut command = user.command(&["status", "--json"]);
    let none = shown(command.env("VERBATIM_CONFIG", ""), "threads");
    assert_eq!(none["from"], "default");
    let mut command = user.command(&["status", "--settings"]);
    command.env("VERBATIM_CONFIG", user.path("nowhere.toml"));
    Said::of(&mut command)
        .ends(2)
        .warns("cannot read the configuration file")
        .warns("VERBATIM_CONFIG names it");
    // Without HOME and XDG_CONFIG_HOME, the program does not read the configuration of the current user.
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().current_dir(user.path("work")).args(["status", "--json"]);
    let Said { out, .. } = Said::of(&mut command);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["settings_file"], Value::Null);
}

#[test]
fn a_mistake_in_the_file_is_said_with_its_line() {
    let user = user_with("\nhomes = '/a'\n");
    let Said { code, out, errors } = user.run(&["list"]);
    let path = user.path("config/verbatim/config.toml");
    let expected =
        format!("verbatim: {}:2: unknown key \"homes\"; did you mean \"home\"?\n", path.display());
    assert_eq!((code, out.as_str(), errors), (Some(2), "", expected));
    user.set("embeddings = 'ollama'\n");
    user.run(&["search", "red"]).ends(2).warns("config.toml:1: ");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    user.run(&["list"]).ends(2).warns("cannot read the configuration file");
}

#[cfg(unix)]
#[test]
fn a_secret_is_only_in_a_file_of_ones_own_and_never_shown() {
    let user = user_with("\nembeddings-key = 'hunter2'\n");
    user.run(&["status", "--settings"])
        .ends(2)
        .warns("config.toml:2: embeddings-key is a secret")
        .warns("chmod 600")
        .warns_not("hunter2");
    let path = user.path("config/verbatim/config.toml");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    for arguments in [&["status", "--settings"][..], &["status", "--json"]] {
        user.run(arguments).ends(0).prints("set").prints_not("hunter2");
    }
}

#[test]
fn what_finds_nothing_says_so_in_words_that_fit() {
    let user = user_with("home = '~/home'\narchives = []\n");
    drop(home_with(&user.path("home"), "Conv 59"));
    let case = user.run(&["search", "-s", "conv 59"]);
    case.ends(1).warns("verbatim search 'conv 59'");
    case.warns("(1 message in 1 conversation looked at)");
    user.run(&["search", "--not", "Conv"]).warns("no message is without \"Conv\"");
    let not = user.run(&["search", "--and", "Conv", "--not", "59"]);
    not.warns("no message has \"Conv\" without \"59\"");
}

#[test]
fn the_file_sets_what_commands_read() {
    let user = user_with("home = '~/filed'\narchives = []\nmemory = '64M'\n");
    drop(home_with(&user.path("filed"), "Red"));
    user.run(&["search", "Red"]).ends(0);
    user.run(&["reindex"]).ends(0);
    user.set("home = '~/filed'\ndb = '~/filed/db/none.db'\n");
    user.run(&["search", "Red"]).ends(2).warns("none.db");
    user.run(&["status"]).prints("none.db");
    user.set("home = '~/filed'\ntools = ['serach']\nwatch = false\n");
    user.run(&["serve"]).ends(2).warns("config.toml:2: ");
}

#[test]
fn a_server_reads_cases_and_parts_as_its_flags_say() {
    let user = user_with("home = '~/h'\narchives = []\n");
    drop(home_with(&user.path("h"), r#"["a caf\u00e9"]"#));
    let serve = |words: &[&str]| Server::start(user.command(words).stderr(Stdio::null()));
    let finds = |flags: &[&str], query: &str| -> bool {
        let mut server = serve(&[&["serve", "--no-watch"], flags].concat());
        let answer = server.call("conversation_search", &json!({"query": query}));
        answer != "No matching messages."
    };
    assert!(finds(&[], "caf\u{e9}") && !finds(&["--raw-content"], "caf\u{e9}"));
    assert!(finds(&[], "A CAF") && !finds(&["--case-sensitive"], "A CAF"));
    // A server that does not watch makes no index.
    for (watch, makes_index) in [(false, false), (true, true)] {
        user.set(&format!("home = '~/h'\narchives = []\nwatch = {watch}\n"));
        let mut server = serve(&["serve"]);
        let until = Instant::now() + Duration::from_secs(if makes_index { 60 } else { 1 });
        let has_index = || indexes(&user.path("h/index")) > 0;
        while !has_index() && Instant::now() < until {
            server.call("conversation_search", &json!({"query": "a"}));
        }
        assert_eq!(has_index(), makes_index, "watch = {watch}");
    }
}

fn indexes(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}
