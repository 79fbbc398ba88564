//! Tips for wrong command lines: what to type in place of an unknown command or flag.

use std::{ffi::OsString, path::Path};

use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

use verbatim_text::shell::quoted;

/// The hint that says how to remove the program and all its data.
const UNINSTALL: &str = "to remove Verbatim: `verbatim disconnect CLIENT` for each client, stop \
     its service if you made one; then delete the home folder, which `verbatim status` names, \
     and the program (after an installation with Cargo: cargo uninstall verbatim-search)";

/// Flags of other programs, and what to type here.
const HABITS: [(&[&str], &str); 5] = [
    (&["-F", "--fixed-strings"], "a text is found exactly as it is typed, so leave this flag out"),
    (&["--web"], "to read a conversation on its site: verbatim open CONVERSATION"),
    (&["--title"], "searches find titles too; `verbatim list` lists them"),
    (&["--no-pager"], "without a pager: PAGER=cat before the command"),
    (&["--utc", "--timezone", "--tz"], "times in UTC: TZ=UTC before the command"),
];

/// Flags of other programs, and the flag of the same meaning here. A command gets only tips with flags that
/// it has.
const FLAGS: [(&[&str], &str); 18] = [
    (&["--after", "--newer", "--newer-than", "--changed-within", "--date", "--days"], "--since"),
    (&["--before", "--older", "--older-than", "--changed-before"], "--until"),
    (&["--format", "--output", "-o", "-0", "--null", "--jsonl"], "--json"),
    (&["--max", "--max-count", "--max-results", "-m", "--head", "--top", "--count"], "-n"),
    (&["--sort", "--sortr", "--order", "--reverse", "-r", "--asc"], "--oldest"),
    (&["--files-with-matches", "--conversations"], "-l"),
    (&["-v", "--invert-match", "--exclude", "--without"], "--not"),
    (&["-A", "-B", "--after-context", "--before-context", "--around"], "-C"),
    (&["-E", "-P", "-G", "--regex", "--extended-regexp", "--perl-regexp"], "-e"),
    (&["--word-regexp", "--exact", "--whole"], "-w"),
    (&["--user", "--assistant", "--author", "--by", "--sender"], "--role"),
    (&["--conversation", "--chat", "--thread"], "--in"),
    (&["--repo", "--repository"], "--project"),
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
    let invalid = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    let tips = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (_, Some(ContextValue::String(word))) => {
            let tips = of_command(&word.clone(), &words, program);
            // clap's own tip would be a command that has only some of the letters.
            error.remove(ContextKind::SuggestedSubcommand);
            tips
        }
        (ErrorKind::MissingRequiredArgument, _) => match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(missing)) => {
                missing.iter().find_map(|name| example_of(name)).into_iter().collect()
            }
            _ => Vec::new(),
        },
        (ErrorKind::InvalidValue, _)
            if invalid.as_ref().is_some_and(|it| it.contains("<DATE>")) =>
        {
            vec!["for example 7d, yesterday, 2025-01 or 2025-01-31".to_owned()]
        }
        (ErrorKind::InvalidValue, _) => {
            let tips = of_value(&error);
            error.remove(ContextKind::SuggestedValue);
            tips
        }
        (ErrorKind::ArgumentConflict, _)
            if invalid.as_ref().is_some_and(|it| it.contains("[WORDS]")) =>
        {
            vec!["the expression takes the place of the words; --and adds a text".to_owned()]
        }
        (ErrorKind::UnknownArgument, _) => {
            let given = invalid.unwrap_or_default();
            let tips = of_argument(&given, &words, program);
            let is_text = given.starts_with("--") && words.first().is_some_and(|it| it == "search");
            // clap's own tips would be a flag that has only some of the letters, and how to pass the flag as
            // a text.
            error.remove(ContextKind::SuggestedArg);
            error.remove(ContextKind::Usage);
            if !is_text {
                error.remove(ContextKind::Suggested);
            }
            tips
        }
        _ => Vec::new(),
    };
    if !tips.is_empty() {
        let tips = tips.into_iter().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Returns the tips for an unknown command: the commands that it may stand for, and how to find it as a text.
fn of_command(word: &str, words: &[String], program: &Command) -> Vec<String> {
    if word == "uninstall" {
        return vec![UNINSTALL.to_owned()];
    }
    let rest: Vec<_> = words.iter().skip_while(|it| *it != word).map(|word| quoted(word)).collect();
    let what = match () {
        () if word.contains("://") => "to read that conversation: verbatim show",
        () if Path::new(word).exists() => "to import that: verbatim import",
        () => "to find that text in your chats: verbatim search",
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
    let similar = commands.iter().map(|name| {
        let command = program.find_subcommand(name);
        let about = command.and_then(Command::get_about).map(ToString::to_string);
        let about = about.unwrap_or_default();
        format!("there is a command '{name}': {}", about.trim_end_matches('.'))
    });
    similar.chain([format!("{what} {}", rest.join(" "))]).collect()
}

/// Returns the tips for an argument that the command does not take.
fn of_argument(given: &str, words: &[String], program: &Command) -> Vec<String> {
    // Without this tip, clap says how to pass the negative number as a word of the text. But the user
    // meant it as the value of the flag.
    let mut pairs = words.iter().zip(words.iter().skip(1));
    let negative = pairs.find_map(|(flag, value)| {
        let value = value.strip_prefix('-')?;
        let is_value = value.starts_with(|c: char| c.is_ascii_digit()) && value != "0";
        (flag.starts_with('-') && flag != "--" && is_value)
            .then(|| format!("the value has no minus: {flag} {value}"))
    });
    if let Some(tip) = negative {
        return vec![tip];
    }
    let first = words.first().map(String::as_str).unwrap_or_default();
    let from = |start| {
        words.iter().skip(start).map(|word| format!(" {}", quoted(word))).collect::<String>()
    };
    let name = first.trim_start_matches('-');
    if first == "list" && !given.starts_with('-') {
        return vec![format!("to find that text in your chats: verbatim search {}", quoted(given))];
    }
    if first.starts_with('-') && !name.is_empty() && program.find_subcommand(name).is_some() {
        return vec![format!("commands have no dashes: verbatim {name}{}", from(1))];
    }
    let has = |command: &Command, flag: &str| flags(command).any(|known| known == flag);
    let search = program.find_subcommand("search");
    if first.starts_with('-') && search.is_some_and(|search| has(search, given)) {
        return vec![format!("flags follow their command: verbatim search{}", from(0))];
    }
    if let Some((_, tip)) = HABITS.iter().find(|(flags, _)| flags.contains(&given)) {
        return vec![(*tip).to_owned()];
    }
    let mut path = vec![program];
    for word in words {
        path.extend(path.last().and_then(|command| command.find_subcommand(word)));
    }
    let names = || path.iter().flat_map(|command| flags(command));
    let synonym = FLAGS.iter().find(|(flags, _)| flags.contains(&given));
    let synonym =
        synonym.map(|(_, flag)| (*flag).to_owned()).filter(|flag| names().any(|it| it == *flag));
    let long: Vec<String> = names().filter(|name| name.starts_with("--")).collect();
    let near = || {
        given.strip_prefix("--").and_then(|given| {
            nearest(given, long.iter().filter_map(|name| name.strip_prefix("--")))
        })
    };
    match synonym {
        Some(flag) => vec![format!("here that is '{flag}'")],
        None => near()
            .map(|name| format!("a similar argument exists: '--{name}'"))
            .into_iter()
            .collect(),
    }
}

/// Returns the tip for a value of a list: those that begin with it, or the most similar one.
fn of_value(error: &clap::Error) -> Vec<String> {
    let (Some(ContextValue::String(given)), Some(ContextValue::Strings(known))) =
        (error.get(ContextKind::InvalidValue), error.get(ContextKind::ValidValue))
    else {
        return Vec::new();
    };
    let given = given.to_lowercase();
    let known = || known.iter().map(String::as_str);
    let begin: Vec<&str> =
        known().filter(|name| !given.is_empty() && name.starts_with(&given)).collect();
    let similar = match begin.is_empty() {
        true => nearest(&given, known()).into_iter().collect(),
        false => begin,
    };
    let names: Vec<String> = similar.iter().map(|name| format!("'{name}'")).collect();
    match names.as_slice() {
        [] => Vec::new(),
        [one] => vec![format!("a similar value exists: {one}")],
        _ => vec![format!("similar values exist: {}", names.join(" and "))],
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
    let distance = |name: &str| match name.starts_with(given) {
        true => 1,
        false => strsim::osa_distance(given, name),
    };
    let near = names.map(|name| (distance(name), name)).filter(|(far, _)| *far <= allowed);
    near.min_by_key(|(far, _)| *far).map(|(_, name)| name)
}

/// Returns a sentence about where to find the value of a missing argument, or an example.
fn example_of(missing: &str) -> Option<String> {
    let example = match missing {
        "<WORDS>..." => "for example: verbatim search borrow checker",
        "<CONVERSATION>" | "<CONVERSATION>..." => {
            "`verbatim list` and `verbatim search` print the ids of conversations"
        }
        "<CLIENT>" => "`verbatim connect` lists the AI clients, and says which are connected",
        "<FOLDER>" => "for example: verbatim export my-chats",
        _ => return None,
    };
    Some(example.to_owned())
}
