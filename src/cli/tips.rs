//! Tips for wrong command lines: what to type in place of an unknown command or flag.

use std::{ffi::OsString, path::Path};

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use verbatim_text::shell::quoted;

/// The hint that says how to remove the program and all its data.
const UNINSTALL: &str = "to remove Verbatim: `verbatim disconnect CLIENT` for each client, stop \
     its service if you made one; then delete the home folder, which `verbatim status` names, \
     and the program (after an installation with Cargo: cargo uninstall verbatim-search)";

/// Flags of other programs, and what to type here.
const HABITS: [(&[&str], &str); 11] = [
    (
        &["-F", "--fixed-strings", "--exact"],
        "a text is found exactly as it is typed, so leave this flag out",
    ),
    (&["--web"], "to read a conversation on its site: verbatim open CONVERSATION"),
    (&["--title"], "searches find titles too; `verbatim list` lists them"),
    (&["--no-pager", "--pager"], "without a pager: PAGER=cat before the command"),
    (&["--all"], "all results: -n 0"),
    (&["--newest", "--latest", "--recent"], "the newest come first; --oldest turns this round"),
    (&["--me", "--mine"], "what you wrote: --role user"),
    (&["--markdown", "--md"], "as Markdown: `verbatim show ID | cat`, or `verbatim export FOLDER`"),
    (&["--vimgrep", "--csv", "--fields"], "for programs: --json"),
    (&["--lang", "--language"], "all languages are searched"),
    (&["--utc", "--timezone", "--tz"], "times in UTC: TZ=UTC before the command"),
];

/// Flags of other programs, and the flag of the same meaning here. A command gets only tips with flags that
/// it has.
const FLAGS: [(&[&str], &str); 19] = [
    (
        &["--after", "--newer", "--newer-than", "--changed-within", "--date", "--days", "--from"],
        "--since",
    ),
    (&["--before", "--older", "--older-than", "--changed-before", "--to"], "--until"),
    (&["--format", "--output", "-o", "-0", "--null", "--jsonl"], "--json"),
    (&["--max", "--max-count", "--max-results", "-m", "--head", "--top", "--count"], "-n"),
    (&["--sort", "--sortr", "--order", "--reverse", "-r", "--asc"], "--oldest"),
    (&["--files-with-matches", "--conversations"], "-l"),
    (&["-v", "--invert-match", "--exclude", "--without"], "--not"),
    (&["-A", "-B", "--after-context", "--before-context", "--around"], "-C"),
    (&["-E", "-P", "-G", "--regex", "--extended-regexp", "--perl-regexp"], "-e"),
    (&["--word-regexp", "--whole"], "-w"),
    (&["--user", "--assistant", "--author", "--by", "--sender"], "--role"),
    (&["--conversation", "--chat", "--thread", "--id"], "--in"),
    (&["--repo", "--repository"], "--project"),
    (&["--port", "-p", "--listen", "--bind"], "--http"),
    (&["--cwd", "--dir", "--directory", "--path"], "--folder"),
    (&["--agent", "--provider"], "--service"),
    (&["--no-color", "--no-colour", "--colour"], "--color"),
    (&["--semantic", "--ranked", "--fuzzy"], "--mode"),
    (&["--force", "--no-confirm", "-f"], "--yes"),
];

/// Commands of other programs, and the commands of the same meaning here.
const COMMANDS: [(&[&str], &[&str]); 14] = [
    (&["index", "rebuild", "build", "refresh"], &["reindex"]),
    (&["ls", "dir", "title", "titles", "history", "sessions", "conversations"], &["list"]),
    (&["query", "ask", "rg", "look"], &["search"]),
    (&["cat", "view", "read", "print", "less"], &["show"]),
    (&["remove", "rm", "del", "purge", "erase"], &["forget"]),
    (&["browse", "browser", "ui", "gui", "app", "page"], &["web"]),
    (&["init", "update", "add", "load", "ingest", "sync", "pull"], &["import"]),
    (&["setup", "install"], &["import", "connect"]),
    (&["mcp", "server", "start", "daemon", "run"], &["serve"]),
    (&["save", "dump", "backup", "markdown"], &["export"]),
    (&["continue"], &["resume"]),
    (&["goto", "link", "url"], &["open"]),
    (&["check", "diagnose", "health", "verify", "fsck"], &["doctor"]),
    (&["info", "config", "configure", "settings", "set", "get", "token"], &["status"]),
];

/// Adds a tip to an error: a command to type in place of an unknown command, or an example of a
/// missing argument.
pub(super) fn with_tip(
    mut error: clap::Error,
    arguments: &[OsString],
    program: &Command,
) -> clap::Error {
    let words: Vec<String> =
        arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let invalid = text_of(&error, ContextKind::InvalidArg).unwrap_or_default();
    let tips = if let Some(word) = text_of(&error, ContextKind::InvalidSubcommand) {
        // clap's own tip would be a command that has only some of the letters.
        error.remove(ContextKind::SuggestedSubcommand);
        of_command(&word, &words, program)
    } else {
        let tip = match error.kind() {
            ErrorKind::MissingRequiredArgument => match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing)) => {
                    missing.iter().find_map(|name| example_of(name)).map(str::to_owned)
                }
                _ => None,
            },
            ErrorKind::InvalidValue if invalid.contains("<DATE>") => {
                Some("for example 7d, yesterday, 2025-01 or 2025-01-31".to_owned())
            }
            ErrorKind::InvalidValue => {
                let tip = of_value(&error);
                error.remove(ContextKind::SuggestedValue);
                tip
            }
            ErrorKind::ArgumentConflict => of_conflict(&error, &invalid).map(str::to_owned),
            ErrorKind::UnknownArgument => {
                // clap's own tips would be a flag that has only some of the letters, and how to pass the flag
                // as a text.
                error.remove(ContextKind::SuggestedArg);
                error.remove(ContextKind::Usage);
                error.remove(ContextKind::Suggested);
                of_argument(&invalid, &words, program)
            }
            _ => None,
        };
        tip.into_iter().collect()
    };
    if !tips.is_empty() {
        let tips = tips.into_iter().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

/// Returns the tips for an unknown command: the commands that it may stand for, and how to find it as a text.
fn of_command(word: &str, words: &[String], program: &Command) -> Vec<String> {
    if word == "uninstall" {
        return vec![UNINSTALL.to_owned()];
    }
    let what = if word.contains("://") {
        "to read that conversation: verbatim show"
    } else if Path::new(word).exists() {
        "to import that: verbatim import"
    } else {
        "to find that text in your chats: verbatim search"
    };
    let given = word.to_lowercase();
    let synonym = COMMANDS.iter().find(|(names, _)| names.contains(&given.as_str()));
    let commands: Vec<&str> = match synonym {
        Some((_, commands)) => commands.to_vec(),
        None => {
            let names = program.get_subcommands().flat_map(|command| {
                command.get_name_and_visible_aliases().into_iter().chain(command.get_aliases())
            });
            nearest(&given, names).into_iter().collect()
        }
    };
    let mut tips = Vec::new();
    for name in commands {
        let command = program.find_subcommand(name);
        let about = command.and_then(Command::get_about).map(ToString::to_string);
        let about = about.unwrap_or_default();
        tips.push(format!("there is a command '{name}': {}", about.trim_end_matches('.')));
    }
    let start = words.iter().position(|it| it == word).unwrap_or(words.len());
    tips.push(format!("{what}{}", pasted(&words[start..])));
    tips
}

/// Returns words for the end of a command, each after a space.
fn pasted(words: &[String]) -> String {
    words.iter().map(|word| format!(" {}", quoted(word))).collect()
}

/// Returns the tip for an argument that the command does not take.
fn of_argument(given: &str, words: &[String], program: &Command) -> Option<String> {
    // Without this tip, clap says how to pass the negative number as a word of the text. But the user
    // meant it as the value of the flag.
    for (flag, value) in words.iter().zip(words.iter().skip(1)) {
        let value = value.strip_prefix('-').unwrap_or_default();
        let is_number = value.starts_with(|c: char| c.is_ascii_digit()) && value != "0";
        if ["-n", "--limit"].contains(&flag.as_str()) && is_number {
            return Some("all results: -n 0".to_owned());
        }
        if flag.starts_with('-') && flag != "--" && is_number {
            return Some(format!("the value has no minus: {flag} {value}"));
        }
    }
    let first = words.first().map(String::as_str).unwrap_or_default();
    if first == "list" && !given.starts_with('-') {
        return Some(format!("to find that text in your chats: verbatim search {}", quoted(given)));
    }
    if first.starts_with('-') {
        let name = first.trim_start_matches('-');
        if !name.is_empty() && program.find_subcommand(name).is_some() {
            let rest = pasted(&words[1..]);
            return Some(format!("commands have no dashes: verbatim {name}{rest}"));
        }
        let search = program.find_subcommand("search");
        if search.is_some_and(|search| flags(search).any(|known| known == given)) {
            return Some(format!("flags follow their command: verbatim search{}", pasted(words)));
        }
    }
    if first == "web" && ["--port", "-p", "--http", "--listen"].contains(&given) {
        return Some("the port needs no flag: verbatim web 8000".to_owned());
    }
    if let Some((_, tip)) = HABITS.iter().find(|(flags, _)| flags.contains(&given)) {
        return Some((*tip).to_owned());
    }
    let mut command = program;
    let mut known: Vec<String> = flags(program).collect();
    for word in words {
        if let Some(inner) = command.find_subcommand(word) {
            known.extend(flags(inner));
            command = inner;
        }
    }
    let synonym = FLAGS.iter().find(|(flags, _)| flags.contains(&given));
    if let Some((_, flag)) = synonym.filter(|(_, flag)| known.iter().any(|it| it == flag)) {
        return Some(format!("here that is '{flag}'"));
    }
    let long = known.iter().filter_map(|name| name.strip_prefix("--"));
    let name = nearest(given.strip_prefix("--")?, long)?;
    Some(format!("a similar argument exists: '--{name}'"))
}

/// Returns the tip for two arguments that exclude each other: which one to take.
fn of_conflict(error: &clap::Error, invalid: &str) -> Option<&'static str> {
    let others = match error.get(ContextKind::PriorArg) {
        Some(ContextValue::String(one)) => one.clone(),
        Some(ContextValue::Strings(several)) => several.join(" "),
        _ => String::new(),
    };
    let both = format!("{invalid} {others}");
    Some(if both.contains("[WORDS]") {
        "the expression takes the place of the words; --and adds a text"
    } else if both.contains("--fold") {
        "in an expression, write the letters: caf[eé]; words take --fold"
    } else if both.contains("--null") {
        "-0 prints the ids alone, for xargs; `-l --json` prints an object for each conversation"
    } else {
        return None;
    })
}

/// Returns the tip for a value of a list: those that begin with it, or the most similar one.
fn of_value(error: &clap::Error) -> Option<String> {
    let given = text_of(error, ContextKind::InvalidValue)?.to_lowercase();
    let Some(ContextValue::Strings(known)) = error.get(ContextKind::ValidValue) else {
        return None;
    };
    let known = known.iter().map(String::as_str);
    let mut similar: Vec<&str> = Vec::new();
    if !given.is_empty() {
        similar.extend(known.clone().filter(|name| name.starts_with(&given)));
    }
    if similar.is_empty() {
        similar.extend(nearest(&given, known));
    }
    let names: Vec<String> = similar.iter().map(|name| format!("'{name}'")).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("a similar value exists: {one}")),
        _ => Some(format!("similar values exist: {}", names.join(" and "))),
    }
}

/// Returns the flags of a command, with their dashes.
fn flags(command: &Command) -> impl Iterator<Item = String> {
    command.get_arguments().flat_map(|known| {
        let long = known.get_long_and_visible_aliases().unwrap_or_default();
        let long = long.into_iter().map(|name| format!("--{name}"));
        let short = known.get_short().map(|name| format!("-{name}"));
        long.chain(short).collect::<Vec<_>>()
    })
}

/// Returns the name that was meant, if the given one is its beginning or has a typing error or two.
/// Names that only share letters are not similar.
fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = given.chars().count();
    let allowed = match length {
        0..=2 => return None,
        3..=6 => 1,
        _ => 2,
    };
    let distances = names.map(|name| {
        (if name.starts_with(given) { 1 } else { strsim::osa_distance(given, name) }, name)
    });
    let near = distances.filter(|(distance, _)| *distance <= allowed);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Returns a sentence about where to find the value of a missing argument, or an example.
fn example_of(missing: &str) -> Option<&'static str> {
    Some(match missing {
        "<WORDS>..." => "for example: verbatim search borrow checker",
        "<CONVERSATION>" | "<CONVERSATION>..." => {
            "`verbatim list` and `verbatim search` print the ids of conversations"
        }
        "<CLIENT>" => "`verbatim connect` lists the AI clients, and says which are connected",
        "<FOLDER>" => "for example: verbatim export my-chats",
        _ => return None,
    })
}
