//! A user's folder, commands in it, and what they say.
#![allow(dead_code, reason = "not every binary needs it")]

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::corpus::folder;

/// The exit code, the output and the errors of a command.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) errors: String,
}

impl Said {
    pub(crate) fn of(command: &mut Command) -> Said {
        let output = command.output().expect("the program can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code();
        Said { code, out: text(&output.stdout), errors: text(&output.stderr) }
    }

    #[track_caller]
    pub(crate) fn ends(&self, code: i32) -> &Said {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn prints(&self, text: &str) -> &Said {
        assert!(self.out.contains(text), "{text:?} is not printed:\n{self}");
        self
    }

    #[track_caller]
    pub(crate) fn prints_not(&self, text: &str) -> &Said {
        assert!(!self.out.contains(text), "{text:?} is printed:\n{self}");
        self
    }

    #[track_caller]
    pub(crate) fn warns(&self, text: &str) -> &Said {
        assert!(self.errors.contains(text), "{text:?} is not among the errors:\n{self}");
        self
    }

    #[track_caller]
    pub(crate) fn warns_not(&self, text: &str) -> &Said {
        assert!(!self.errors.contains(text), "{text:?} is among the errors:\n{self}");
        self
    }

    /// Returns the values of JSON that the output holds.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<Value> {
        let values = serde_json::Deserializer::from_str(&self.out).into_iter();
        values.map(|value| value.unwrap_or_else(|error| panic!("{error}:\n{self}"))).collect()
    }
}

impl Display for Said {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {:?}\n{}{}", self.code, self.out, self.errors)
    }
}

/// A user's folder, with a working folder in it.
pub(crate) struct User(TempDir);

impl User {
    pub(crate) fn new() -> User {
        let user = User(folder());
        fs::create_dir(user.path("work")).unwrap();
        user
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Returns a command in the working folder, without a terminal.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().env("HOME", self.0.path()).current_dir(self.path("work"));
        command.env("XDG_CONFIG_HOME", self.path("config")).args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        Said::of(&mut self.command(arguments))
    }
}
