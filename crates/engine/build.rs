//! Tells a release build which commit it is made of, for `verbatim --version`.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    // Debug builds are made again and again between commits.
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    // The sources may lie in the repository of another project.
    let is_ours =
        || git(&["rev-parse", "--show-prefix"]).is_some_and(|prefix| prefix == "crates/engine/");
    if is_release && is_ours() {
        if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
            println!("cargo::rerun-if-changed={log}");
        }
        // A package from a registry has no repository, and no commit to name.
        if let Some(commit) = git(&["show", "-s", "--format=%h %cs", "HEAD"]) {
            version = format!("{version} ({commit})");
        }
    }
    println!("cargo::rustc-env=VERBATIM_VERSION={version}");
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
