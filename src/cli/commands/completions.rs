//! The command `verbatim completions`.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;
use std::time::Duration;

use clap_complete::{CompleteEnv, CompletionCandidate, env::Shells};

use crate::cli::command::{CommandArgs, Facts, Invocation};
use crate::cli::error::{Error, Result};
use crate::cli::settings::engine_config;
use crate::cli::settings::environment::{COMPLETED_SHELL, Environment};
use crate::cli::terminal::output::FOUND;
use verbatim_base::call::Call;
use verbatim_engine::Engine;
use verbatim_text::shell::quoted;

/// The shell that requests completions. Its name is kept, because the variable is removed early.
static SHELL: OnceLock<OsString> = OnceLock::new();

const PROGRAM: &str = "verbatim";

const MAX_CANDIDATES: usize = 100;

const MAX_WAIT: Duration = Duration::from_millis(700);

/// The maximum number of characters of a title that a shell shows beside an id.
const MAX_TITLE: usize = 60;

/// Print the completions for a shell
///
///     source <(verbatim completions bash)                # in ~/.bashrc
///     source <(verbatim completions zsh)                 # in ~/.zshrc
///     verbatim completions fish | source                 # in ~/.config/fish/config.fish
///     eval (verbatim completions elvish | slurp)         # in ~/.elvish/rc.elv
///     verbatim completions powershell | Out-String | Invoke-Expression    # in $PROFILE
///
/// Commands, flags and their values are completed, and the ids and titles of conversations.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish", "powershell", "elvish"])]
    shell: String,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        Facts::WITHOUT_CHATS
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        let shells = Shells::builtins();
        let shell = shells.completer(&self.shell).expect("clap has every shell of the argument");
        let mut script = Vec::new();
        shell.write_registration(COMPLETED_SHELL, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
        invocation.terminal.out.write_all(&script)?;
        Ok(FOUND)
    }
}

/// Answers a shell that requests completions. Returns whether a shell requested them.
pub(crate) fn answer(
    command: fn() -> clap::Command,
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
) -> Result<bool> {
    SHELL.get_or_init(|| environment.variable(COMPLETED_SHELL).unwrap_or_default().to_owned());
    let completions = CompleteEnv::with_factory(command).var(COMPLETED_SHELL).bin(PROGRAM);
    completions.try_complete(arguments, Some(&environment.working_folder)).map_err(Error::Usage)
}

pub(crate) fn conversations(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy().to_lowercase();
    let Ok(environment) = Environment::of_process() else { return Vec::new() };
    let Ok(environment) = environment.with_settings() else { return Vec::new() };
    let engine =
        Engine::new(engine_config::config(&engine_config::PlaceArgs::default(), &environment));
    let call = Call::default().within(MAX_WAIT);
    let headings =
        engine.find(&call).headings(&|id, title| begins(id, &typed) || begins(title, &typed));
    let candidates = headings.unwrap_or_default().into_iter().map(|heading| {
        let title = heading.title.chars().filter(|c| !c.is_control()).take(MAX_TITLE);
        if begins(&heading.id, &typed) || heading.title.contains(char::is_control) {
            let title: String = title.collect();
            CompletionCandidate::new(inserted(heading.id)).help(Some(title.into()))
        } else {
            CompletionCandidate::new(inserted(heading.title)).help(Some(heading.id.into()))
        }
    });
    // Several conversations may have the same title.
    let mut known = HashSet::new();
    let new = candidates.filter(|candidate| known.insert(candidate.get_value().to_owned()));
    new.take(MAX_CANDIDATES).collect()
}

fn begins(text: &str, typed: &str) -> bool {
    text.to_lowercase().starts_with(typed)
}

/// Returns a candidate as the shell needs it. Bash and PowerShell insert a candidate without quoting it, and a
/// title may hold any character. The other shells quote candidates themselves.
fn inserted(candidate: String) -> String {
    match SHELL.get().and_then(|shell| shell.to_str()) {
        Some("bash") => quoted(&candidate),
        Some("powershell") => format!("'{}'", candidate.replace('\'', "''")),
        _ => candidate,
    }
}
