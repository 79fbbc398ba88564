//! The help of the program and of its commands.

use clap::{Arg, Command};

use super::{settings::environment::Environment, terminal::wrap::wrapped};

/// The width of help if the output is not a terminal, and the maximum width on a terminal.
const WIDTH: usize = 100;

/// The minimum width of help; a terminal that is narrower breaks the lines.
const MIN_WIDTH: usize = 20;

/// The parts of a help; here `before-help` is the examples.
const HELP: &str = "\
{about-with-newline}
{before-help}{usage-heading} {usage}

{all-args}{after-help}";

/// The parts of the program's help; here `before-help` is the groups of commands.
const PROGRAM_HELP: &str = "\
{about-with-newline}
    verbatim import
    verbatim search borrow checker
    verbatim show 6650a1b2

{usage-heading} {usage}

{before-help}{all-args}{after-help}";

const PLACES: &str = "Where the data is: --db, --home, --archive, --no-archive; \
                      `verbatim --help` explains them";

/// The commands by what they are for. The commands of every day come first.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Search", &["search", "list", "show", "open", "resume", "stats"]),
    ("Import", &["import", "export", "forget", "demo"]),
    ("Connect", &["connect", "web", "disconnect", "serve"]),
    ("Maintain", &["status", "doctor", "reindex"]),
];

const MORE: &str = "More";

/// Returns the command line with its help made for the width of the environment: commands in groups,
/// examples before the usage, and how many options the short help leaves out. The flags for data paths
/// are hidden in the help of commands; the help of the program shows them.
pub(super) fn with_help(command: Command, environment: &Environment) -> Command {
    // A user may export the variable for help that is not on a terminal.
    let exported = environment.variable("COLUMNS").and_then(|text| text.to_str()?.parse().ok());
    let width = environment.columns.or(exported).unwrap_or(WIDTH).clamp(MIN_WIDTH, WIDTH);
    let flags = command.get_arguments().filter(|flag| flag.is_global_set());
    let flags: Vec<Arg> = flags.cloned().map(|flag| flag.hide(true)).collect();
    let groups = groups(&command, width);
    let command = command.term_width(width).help_template(PROGRAM_HELP).before_help(groups);
    // The groups list the commands, so clap must not list them again.
    let command = command.override_usage("verbatim [OPTIONS] [COMMAND]");
    let command = with_hidden_count(command, "verbatim", "");
    command.mut_subcommands(|command| {
        let path = format!("verbatim {}", command.get_name());
        let command = with_examples(command.args(flags.clone()).hide(true));
        with_hidden_count(command, &path, PLACES).mut_subcommands(|command| {
            let path = format!("{path} {}", command.get_name());
            with_hidden_count(with_examples(command), &path, "")
        })
    })
}

/// Returns the list of the commands in groups; those of no group come last.
fn groups(command: &Command, width: usize) -> String {
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let column = names.iter().map(|name| name.len()).max().unwrap_or(0) + 4;
    let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, commands)| *commands).copied().collect();
    let others: Vec<&str> = names.into_iter().filter(|name| !grouped.contains(name)).collect();
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut sections = Vec::new();
    for (title, commands) in GROUPS.into_iter().chain([(MORE, &others[..])]) {
        let mut entries = Vec::new();
        if title == GROUPS[0].0 {
            // Without a command, the program searches.
            let about = "Search as you type, without a command; F1 lists the keys";
            entries.push(("verbatim", about.to_owned()));
        }
        for name in commands {
            let command = command.find_subcommand(name).expect("the groups name commands");
            let mut about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases: Vec<&str> = command.get_visible_aliases().collect();
            if !aliases.is_empty() {
                about += &format!(" [aliases: {}]", aliases.join(", "));
            }
            entries.push((name, about));
        }
        let mut section = format!("{header}{title}:{header:#}");
        for (name, about) in entries {
            let about = wrapped(&about, Some(width.saturating_sub(column)), 0);
            let about = about.replace('\n', &format!("\n{:column$}", ""));
            let gap = column - 2 - name.len();
            section += &format!("\n  {literal}{name}{literal:#}{:gap$}{about}", "");
        }
        sections.push(section);
    }
    sections.join("\n\n")
}

/// Says at the end of the short help how many options it leaves out; `text` ends both helps.
fn with_hidden_count(command: Command, path: &str, text: &str) -> Command {
    let left_out = command.get_arguments().filter(|arg| {
        arg.is_hide_short_help_set() && !arg.is_hide_set() && !arg.is_hide_long_help_set()
    });
    let more = match left_out.count() {
        0 => String::new(),
        1 => format!("1 more option: `{path} --help`"),
        count => format!("{count} more options: `{path} --help`"),
    };
    let all: Vec<&str> = [more.as_str(), text].into_iter().filter(|it| !it.is_empty()).collect();
    if all.is_empty() {
        return command;
    }
    command.after_help(all.join("\n")).after_long_help(text.to_owned())
}

fn with_examples(command: Command) -> Command {
    let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let (examples, text): (Vec<&str>, Vec<&str>) =
        long.lines().partition(|line| line.starts_with("    "));
    let mut command = command.help_template(HELP);
    if !text.is_empty() {
        // One line for each paragraph, so that clap can wrap them.
        let paragraphs = text.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
        let paragraphs: Vec<String> = paragraphs.map(|lines| lines.join(" ")).collect();
        command = command.long_about(paragraphs.join("\n\n"));
    }
    if examples.is_empty() {
        return command;
    }
    command.before_help(examples.join("\n"))
}
