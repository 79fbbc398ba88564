//! Every command line in README.md and docs/ works.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use verbatim_search::cli;

use crate::scene::Scene;

/// The beginnings of lines that are not run, and why.
const NOT_RUN: [(&str, &str); 6] = [
    ("cargo ", "it builds the program"),
    ("claude ", "a client of another vendor"),
    ("ollama ", "a program that serves models"),
    ("export ", "it changes the shell that runs the next line"),
    ("curl ", "it needs the network"),
    ("jq ", "it reads a test set"),
];

/// Lines that ask on a terminal. They are run with `--yes`.
const ASKING: [&str; 2] = ["verbatim import", "verbatim connect claude-desktop"];

/// The command that takes the whole screen; without a terminal it prints a hint.
const FULL_SCREEN: &str = "verbatim";

/// Servers, which run until they are told to end.
const SERVERS: [&str; 2] = ["verbatim web", "verbatim serve"];

/// The languages of blocks that hold commands.
const SHELLS: [&str; 4] = ["", "sh", "bash", "console"];

/// A command line of a document.
#[derive(Debug, PartialEq)]
struct Line {
    command: String,
    /// The output that the document shows: the lines after a command that begins with `$ `.
    output: Vec<String>,
}

/// Returns the command lines of the shell's blocks in a document, without comments.
fn lines_of(text: &str) -> Vec<Line> {
    let mut language: Option<&str> = None;
    let mut lines: Vec<Line> = Vec::new();
    let mut shows_output = false;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), language) {
            (Some(name), None) => (language, shows_output) = (Some(name.trim()), false),
            (Some(_), Some(_)) => language = None,
            (None, Some(language)) if SHELLS.contains(&language) && !line.trim().is_empty() => {
                let command = line.strip_prefix("$ ");
                match lines.last_mut().filter(|_| shows_output && command.is_none()) {
                    Some(last) => last.output.push(line.to_owned()),
                    None => {
                        shows_output = command.is_some();
                        let command = without_comment(command.unwrap_or(line).trim());
                        lines.push(Line { command, output: Vec::new() });
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(language, None, "a block has no end");
    lines.retain(|line| !line.command.is_empty());
    lines
}

/// Returns a line without the comment at its end.
fn without_comment(line: &str) -> String {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return line[..at].trim_end().to_owned(),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        before = c;
    }
    line.to_owned()
}

/// Returns the programs that a line starts, one for each command of a pipe.
fn programs(line: &str) -> Vec<String> {
    let words = shlex::split(line).expect("the quotes are closed");
    let starts = words.split(|word| word == "|").filter_map(|command| command.first().cloned());
    starts.collect()
}

fn is_installed(program: &str, scene: &Scene) -> bool {
    scene.shell(&format!("command -v {program}")).status.success()
}

/// Runs the lines of a document one after the other; returns how many ran.
fn run(name: &str, text: &str, scene: &Scene) -> usize {
    let mut count = 0;
    for Line { command: line, output: shown } in lines_of(text) {
        if let Some((_, why)) = NOT_RUN.iter().find(|(start, _)| line.starts_with(start)) {
            eprintln!("{name}: not run, {why}: {line}");
            continue;
        }
        assert!(line.starts_with("verbatim"), "{name}: neither run nor in the list: {line}");
        if let Some(missing) = programs(&line).iter().find(|it| !is_installed(it, scene)) {
            eprintln!("{name}: not run, {missing} is not installed: {line}");
            continue;
        }
        if SERVERS.iter().any(|start| line.starts_with(start)) {
            // These servers use the same port, so they run one at a time.
            static PORT: Mutex<()> = Mutex::new(());
            let _alone = PORT.lock().unwrap_or_else(PoisonError::into_inner);
            // The server is ended after it has printed its address, perhaps before it handles signals.
            let script = format!(
                "{line} >printed 2>&1 & server=$!; for tenth in $(seq 600); do
                 grep -q :// printed && break; sleep 0.1; done; cat printed; rm printed
                 kill -TERM $server && wait $server || test $? = 143"
            );
            let output = scene.shell(&script);
            assert!(output.status.success(), "{name}: {line}\n{output:?}");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(printed.contains("://"), "{name}: {line}\n{output:?}");
            count += 1;
            continue;
        }
        let asks = ASKING.contains(&line.as_str());
        let output = scene.shell(&if asks { format!("{line} --yes") } else { line.clone() });
        let expected = if line == FULL_SCREEN { 2 } else { 0 };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{name}: {line}\n{errors}");
        if !shown.is_empty() {
            let printed = String::from_utf8_lossy(&output.stdout);
            let printed: Vec<&str> = printed.lines().filter(|line| !line.is_empty()).collect();
            assert_eq!(printed, shown, "{name}: {line}");
        }
        // The exit code of a pipe is that of its last command.
        if programs(&line).len() > 1 {
            let first = shlex::split(&line).expect("the quotes are closed");
            let first: Vec<&str> =
                first.iter().skip(1).map(String::as_str).take_while(|word| *word != "|").collect();
            let output = scene.command(&first).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{name}: {line}");
        }
        count += 1;
    }
    count
}

fn document(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

#[test]
fn every_command_of_the_readme_works_in_its_order() {
    let count = run("README.md", &document("README.md").1, &Scene::new());
    assert!(count >= 8, "{count}");
}

#[test]
fn every_command_of_the_documents_works() {
    let mut names: Vec<PathBuf> = fs::read_dir(document("docs/json.md").0.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    names.sort();
    let mut count = 0;
    for path in names {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        if lines_of(&text).iter().any(|line| line.command.starts_with("verbatim")) {
            count += run(&name, &text, &Scene::imported());
        }
    }
    assert!(count >= 10, "{count}");
}

/// Parses a line as the program does, up to a pipe; returns what is wrong.
fn parsed(line: &str) -> Result<(), clap::Error> {
    let words = shlex::split(&without_comment(line)).expect("the quotes are closed");
    let words = words.into_iter().take_while(|word| !["|", ">"].contains(&word.as_str()));
    cli::command().try_get_matches_from(words).map(drop)
}

/// Returns the texts between back quotes that begin with the program's name.
fn inline(text: &str) -> Vec<String> {
    let starts = text.match_indices("`verbatim ").map(|(at, _)| &text[at + 1..]);
    let ended = starts.filter_map(|rest| rest.split_once('`')).map(|(command, _)| command);
    // A text in the source may continue in the next line.
    let joined = ended.map(|text| text.replace("///", " ").replace("//!", " ").replace('\\', " "));
    joined.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Returns every file of a folder with this ending.
fn with_ending(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|it| it == ending));
    files.chain(folders.iter().flat_map(|folder| with_ending(folder, ending))).collect()
}

#[test]
fn every_command_that_is_named_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = with_ending(&root.join("docs"), "md");
    files.extend(with_ending(&root.join("src"), "rs"));
    files.push(root.join("README.md"));
    let mut count = 0;
    for file in files {
        for command in inline(&fs::read_to_string(&file).unwrap()) {
            // The text may be a format, with placeholders for words.
            let is_whole = !command.contains(['{', '<', '…', '|']);
            let plain = command.replace(['[', ']'], "");
            if !is_whole {
                continue;
            }
            count += 1;
            let Err(error) = parsed(&plain) else { continue };
            let given = match error.get(ContextKind::InvalidValue) {
                Some(ContextValue::String(value)) => value.as_str(),
                _ => "",
            };
            let is_name = matches!(
                error.kind(),
                ErrorKind::MissingRequiredArgument
                    | ErrorKind::MissingSubcommand
                    | ErrorKind::DisplayHelp
                    | ErrorKind::DisplayVersion
                    | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
            // The value is missing, or is a placeholder in capitals.
            let is_placeholder = error.kind() == ErrorKind::InvalidValue
                && given.bytes().all(|byte| byte.is_ascii_uppercase());
            assert!(is_name || is_placeholder, "{}: `{command}`: {error}", file.display());
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn every_example_of_a_help_is_a_command() {
    fn examples(command: &clap::Command) -> Vec<String> {
        let about = command.get_long_about().or(command.get_about());
        let about = about.map(ToString::to_string).unwrap_or_default();
        let own = about.lines().map(str::trim).filter(|line| line.starts_with("verbatim "));
        let own = own.map(str::to_owned).collect::<Vec<_>>().into_iter();
        own.chain(command.get_subcommands().flat_map(examples)).collect()
    }
    let examples = examples(&cli::command());
    for example in &examples {
        parsed(example).unwrap_or_else(|error| panic!("{example}: {error}"));
    }
    assert!(examples.len() > 20, "{examples:?}");
}

#[test]
fn lines_are_found_in_the_blocks_of_the_shell() {
    let text = "verbatim none\n```\nverbatim a \"# b\" # c\n\n# d\n```\n```json\n{}\n```\n\
                ```sh\nx | y\n```\n```\n$ verbatim c\nred\n\n  green\n$ d # e\n```\n";
    let line = |command: &str, output: &[&str]| Line {
        command: command.to_owned(),
        output: output.iter().map(|line| (*line).to_owned()).collect(),
    };
    let expected = [
        line("verbatim a \"# b\"", &[]),
        line("x | y", &[]),
        line("verbatim c", &["red", "  green"]),
        line("d", &[]),
    ];
    assert_eq!(lines_of(text), expected);
    let piped = programs("verbatim a '| b' | jq -r '[.a] | @tsv' | sort");
    assert_eq!(piped, ["verbatim", "jq", "sort"]);
}
