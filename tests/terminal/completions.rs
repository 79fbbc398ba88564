//! `verbatim completions`.

use std::{fs, path::Path, process::Command};

use crate::{corpus::folder, terminal::sample};

fn program(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", home).env("VERBATIM_HOME", home).current_dir(home);
    command
}

/// Returns the completions that a shell gets for the last of the words of a command line.
fn completed(home: &Path, words: &[&str]) -> Vec<String> {
    let mut command = program(home);
    command.env("VERBATIM_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_COMPLETE_COMP_TYPE", "9");
    let output = command.arg("--").arg("verbatim").args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn commands_ids_and_titles_are_completed() {
    let folder = folder();
    let home = folder.path();
    fs::create_dir(home.join("db")).unwrap();
    drop(sample(&home.join("db/chats.db")));
    assert_eq!(completed(home, &["rei"]), ["reindex"]);
    assert_eq!(completed(home, &["connect", "claude-c"]), ["claude-code"]);
    assert_eq!(completed(home, &["show", "6650a1b2-0001"]), ["6650a1b2-0001"]);
    assert_eq!(completed(home, &["show", "rust l"]), ["'Rust lifetimes'"]);
    assert_eq!(completed(home, &["show", "nothing has this"]), [""; 0]);
    assert_eq!(completed(home, &["search", "--in", "6650a1b2-0001"]), ["6650a1b2-0001"]);
    assert_eq!(completed(home, &["search", "--service", "claude-"]), ["claude-code"]);
    assert_eq!(completed(home, &["search", "red", "--role", "a"]), ["assistant"]);
}

#[test]
fn every_shell_has_a_script() {
    let folder = folder();
    let home = folder.path();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = program(home).args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && script.contains("VERBATIM_COMPLETE"),
            "{shell}: {script}"
        );
    }
}

#[test]
#[cfg(unix)]
fn bash_takes_its_script() {
    let folder = folder();
    let script = r#"source <("$0" completions bash) && complete -p verbatim"#;
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_verbatim")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("verbatim"), "{output:?}");
}
