//! The configuration file, and what `verbatim status` says of the settings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::corpus::{database, folder};
use crate::program::Server;

/// A user with a configuration folder and a home.
struct User(TempDir);

impl User {
    fn new(settings: &str) -> User {
        let user = User(folder());
        fs::create_dir_all(user.path("config/verbatim")).unwrap();
        fs::create_dir_all(user.path("work")).unwrap();
        user.set(settings);
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn set(&self, settings: &str) {
        let path = self.path("config/verbatim/config.toml");
        fs::write(&path, settings).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().env("HOME", self.0.path()).current_dir(self.path("work"));
        command.env("XDG_CONFIG_HOME", self.path("config")).args(arguments);
        command
    }

    /// Returns the exit code, the output and the errors of a command.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        told(self.command(arguments).output().unwrap())
    }

    /// Returns the settings as JSON, by key.
    fn shown(&self, command: &mut Command, key: &str) -> Value {
        let (code, out, errors) = told(command.output().unwrap());
        assert_eq!(code, 0, "{errors}");
        let shown: Value = serde_json::from_str(&out).unwrap();
        let settings = shown["settings"].as_array().unwrap();
        settings.iter().find(|one| one["key"] == key).expect("the key").clone()
    }
}

fn told(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn home_with(path: &Path, text: &str) -> Connection {
    fs::create_dir_all(path.join("db")).unwrap();
    database(&path.join("db/a.db"), &[text])
}

#[test]
fn flags_come_before_variables_and_these_before_the_file() {
    let user = User::new("# mine\nhome = '~/filed'\narchives = []\n");
    for name in ["filed", "variable", "flag"] {
        drop(home_with(&user.path(name), &format!("red {name}")));
    }
    let found = |command: &mut Command| told(command.args(["search", "red"]).output().unwrap()).1;
    assert!(found(&mut user.command(&[])).contains("filed"));
    let mut command = user.command(&[]);
    assert!(found(command.env("VERBATIM_HOME", user.path("variable"))).contains("variable"));
    let mut command = user.command(&[]);
    command.env("VERBATIM_HOME", user.path("variable")).arg("--home").arg(user.path("flag"));
    assert!(found(&mut command).contains("flag"));

    let home = |command: &mut Command| {
        let shown = user.shown(command.args(["status", "--json"]), "home");
        (shown["from"].clone(), shown["name"].clone(), shown["line"].clone())
    };
    assert_eq!(home(&mut user.command(&[])), ("file".into(), Value::Null, 2.into()));
    let mut command = user.command(&[]);
    let by_variable = home(command.env("VERBATIM_HOME", user.path("variable")));
    assert_eq!(by_variable, ("variable".into(), "VERBATIM_HOME".into(), Value::Null));
    let flag = user.path("flag");
    let mut command = user.command(&["--home", flag.to_str().unwrap()]);
    assert_eq!(home(&mut command), ("flag".into(), "--home".into(), Value::Null));

    let (_, text, _) = user.run(&["status", "--settings"]);
    let expected = format!("home                {}  (line 2)\n", user.path("filed").display());
    assert!(text.contains("file                ~/config/verbatim/config.toml\n"), "{text}");
    assert!(
        text.contains(&expected) && text.contains("archives            none  (line 3)\n"),
        "{text}"
    );
    assert!(text.contains("watch               true  (default)\n"), "{text}");
}

#[test]
fn the_model_and_its_share_are_settings() {
    let user = User::new("embeddings = 'http://filed/v1#m'\nvector-share = 0.5\n");
    drop(home_with(&user.path("home"), "red"));
    let shown = |key: &str, variables: &[(&'static str, &str)]| {
        let mut command = user.command(&["status", "--json"]);
        let shown = user.shown(command.envs(variables.iter().copied()), key);
        (shown["value"].clone(), shown["name"].clone())
    };
    assert_eq!(shown("embeddings", &[]), ("http://filed/v1#m".into(), Value::Null));
    let variable = [("VERBATIM_EMBEDDINGS", "static")];
    assert_eq!(shown("embeddings", &variable), ("static".into(), "VERBATIM_EMBEDDINGS".into()));
    assert_eq!(shown("vector-share", &[]), ("0.5".into(), Value::Null));
    let share = [("VERBATIM_VECTOR_SHARE", "40%")];
    assert_eq!(shown("vector-share", &share), ("40%".into(), "VERBATIM_VECTOR_SHARE".into()));
    user.set("");
    assert_eq!(shown("vector-share", &[]), ("0.3".into(), Value::Null), "that of the model");

    let share_of_search = |text: &str| {
        let mut command = user.command(&["--home", "../home", "status", "--json"]);
        told(command.env("VERBATIM_VECTOR_SHARE", text).output().unwrap())
    };
    assert_eq!(user.run(&["--home", "../home", "reindex"]).0, 0);
    let status: Value = serde_json::from_str(&share_of_search("40%").1).unwrap();
    assert_eq!(status["sources"][0]["generation"]["meaning"]["vector_share"], 0.4);
    let (code, _, errors) = share_of_search("40");
    assert!(
        code == 2 && errors.contains("VERBATIM_VECTOR_SHARE: \"40\" is not a share"),
        "{errors}"
    );
    let (code, _, errors) = told(
        user.command(&["search", "red"]).env("VERBATIM_EMBEDDINGS", "ollama:m").output().unwrap(),
    );
    let says = "VERBATIM_EMBEDDINGS: \"ollama:m\" is not an embedding model; write";
    assert!(code == 2 && errors.contains(says) && errors.contains("URL#MODEL"), "{errors}");
    user.set("\nvector-share = 1.5\n");
    let (code, _, errors) = user.run(&["status", "--settings"]);
    assert!(code == 2 && errors.contains("config.toml:2: vector-share takes a number"), "{errors}");
}

#[test]
fn another_file_or_none() {
    let user = User::new("homes = 1");
    let other = user.path("other.toml");
    fs::write(&other, "threads = 3\n").unwrap();
    let mut command = user.command(&["status", "--json"]);
    assert_eq!(user.shown(command.env("VERBATIM_CONFIG", &other), "threads")["value"], "3");
    let mut command = user.command(&["status", "--json"]);
    let none = user.shown(command.env("VERBATIM_CONFIG", ""), "threads");
    assert_eq!(none["from"], "default");
    let mut command = user.command(&["status", "--settings"]);
    command.env("VERBATIM_CONFIG", user.path("nowhere.toml"));
    let (code, _, errors) = told(command.output().unwrap());
    assert!(code == 2 && errors.contains("cannot read the configuration file"), "{errors}");
    assert!(errors.contains("VERBATIM_CONFIG names it"), "{errors}");
    // Without HOME and XDG_CONFIG_HOME, the program does not read the configuration of the current user.
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().current_dir(user.path("work")).args(["status", "--json"]);
    let (_, out, _) = told(command.output().unwrap());
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["settings_file"], Value::Null);
}

#[test]
fn a_mistake_in_the_file_is_said_with_its_line() {
    let user = User::new("\nhomes = '/a'\n");
    let (code, out, errors) = user.run(&["list"]);
    let path = user.path("config/verbatim/config.toml");
    let expected =
        format!("verbatim: {}:2: unknown key \"homes\"; did you mean \"home\"?\n", path.display());
    assert_eq!((code, out.as_str(), errors), (2, "", expected));
    user.set("embeddings = 'ollama'\n");
    let (code, _, errors) = user.run(&["search", "red"]);
    assert!(code == 2 && errors.contains("config.toml:1: "), "{errors}");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let (code, _, errors) = user.run(&["list"]);
    assert!(code == 2 && errors.contains("cannot read the configuration file"), "{errors}");
}

#[cfg(unix)]
#[test]
fn a_secret_is_only_in_a_file_of_ones_own_and_never_shown() {
    let user = User::new("\nembeddings-key = 'hunter2'\n");
    let (code, _, errors) = user.run(&["status", "--settings"]);
    assert!(code == 2 && errors.contains("config.toml:2: embeddings-key is a secret"), "{errors}");
    assert!(errors.contains("chmod 600") && !errors.contains("hunter2"), "{errors}");
    let path = user.path("config/verbatim/config.toml");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    for arguments in [&["status", "--settings"][..], &["status", "--json"]] {
        let (code, text, _) = user.run(arguments);
        assert!(code == 0 && text.contains("set") && !text.contains("hunter2"), "{text}");
    }
}

#[test]
fn what_finds_nothing_says_so_in_words_that_fit() {
    let user = User::new("home = '~/home'\narchives = []\n");
    drop(home_with(&user.path("home"), "Conv 59"));
    let says = |words: &[&str]| {
        let (code, _, errors) = user.run(&[&["search"], words].concat());
        (code, errors)
    };
    let (code, errors) = says(&["-s", "conv 59"]);
    assert!(code == 1 && errors.contains("verbatim search 'conv 59'"), "{errors}");
    assert!(errors.contains("(1 message in 1 conversation looked at)"), "{errors}");
    let (_, errors) = says(&["--not", "Conv"]);
    assert!(errors.contains("no message is without \"Conv\""), "{errors}");
    let (_, errors) = says(&["--and", "Conv", "--not", "59"]);
    assert!(errors.contains("no message has \"Conv\" without \"59\""), "{errors}");
}

#[test]
fn the_file_sets_what_commands_read() {
    let user = User::new("home = '~/filed'\narchives = []\nmemory = '64M'\n");
    drop(home_with(&user.path("filed"), "Red"));
    assert_eq!(user.run(&["search", "Red"]).0, 0);
    assert_eq!(user.run(&["reindex"]).0, 0);
    user.set("home = '~/filed'\ndb = '~/filed/db/none.db'\n");
    let (code, _, errors) = user.run(&["search", "Red"]);
    assert!(code == 2 && errors.contains("none.db"), "{errors}");
    let (_, text, _) = user.run(&["status"]);
    assert!(text.contains("none.db"), "{text}");
    user.set("home = '~/filed'\ntools = ['serach']\nwatch = false\n");
    let (code, _, errors) = user.run(&["serve"]);
    assert!(code == 2 && errors.contains("config.toml:2: "), "{errors}");
}

#[test]
fn a_server_reads_cases_and_parts_as_its_flags_say() {
    let user = User::new("home = '~/h'\narchives = []\n");
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
