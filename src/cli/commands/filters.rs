//! The filters that several commands take, as flags. `verbatim_answer::filters` says what they mean.

use std::path::{Component, MAIN_SEPARATOR, Path};

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use clap_complete::{ArgValueCandidates, CompletionCandidate};

use crate::cli::error::{Error, Result, usage};
use verbatim_answer::clock::Clock;
use verbatim_answer::filters::{self, FilterError, SINCE, UNTIL, WITHIN};
use verbatim_base::call::Call;
use verbatim_engine::filters::{ALL, NameFilter};
use verbatim_engine::{Engine, Note, Scope};

#[derive(Clone, Debug, Default)]
pub(super) struct FilterArgs {
    given: filters::Filters,
}

#[derive(Clone, Debug, Default, clap::Args)]
struct OtherFilters {
    /// Only messages with this role: user, assistant, tool, system (repeatable)
    #[arg(long, value_name = "ROLE", add = ArgValueCandidates::new(|| {
        ["user", "assistant", "tool", "system"].map(CompletionCandidate::new).into()
    }))]
    role: Vec<String>,
    /// Only from this day or moment on: 7d, yesterday, "last week", 2025-01-31
    ///
    /// Also 1h, 30min, 3months, "2 years ago", monday, "this month", nov, "3 nov 2025", 2026-W40, 2025,
    /// 2025-01 and 2025-01-31T14:30. A period, such as a week, begins here, and ends with --until.
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Only coding agents' conversations in this project: in the working folder or, within a repository of Git, in
    /// all of it
    #[arg(long, hide_short_help = true)]
    here: bool,
    /// Only up to the end of this day or period, or up to this moment
    #[arg(long, hide_short_help = true, value_name = "DATE")]
    until: Option<String>,
}

fn flag(filter: &'static NameFilter) -> Arg {
    let values = filter.values;
    let flag = Arg::new(filter.name)
        .long(filter.name)
        .value_name(filter.value)
        .value_parser(NonEmptyStringValueParser::new())
        .action(ArgAction::Append)
        .hide_short_help(!filter.is_common)
        .help(filter.help)
        .add(ArgValueCandidates::new(move || {
            values().into_iter().map(CompletionCandidate::new).collect()
        }));
    let flag = filter.alias.into_iter().fold(flag, |flag, alias| flag.alias(alias));
    match filter.more_help {
        "" => flag,
        more => flag.long_help(format!("{}\n\n{more}", filter.help)),
    }
}

/// Returns the ids of the flags that narrow a search without words.
pub(crate) fn ids() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().map(|filter| filter.name).chain(["within", filters::BY_ROLE, SINCE, UNTIL])
}

const PROJECT: &str = "project";
const FOLDER: &str = "folder";

/// Returns a filter in which a relative path has become a folder: `.` and `..` and paths that begin with them. As a
/// project, `.` is the repository of Git that the working folder is in.
pub(crate) fn in_working_folder(name: &'static str, value: &str) -> (&'static str, String) {
    let first = Path::new(value).components().next();
    let is_relative = matches!(first, Some(Component::CurDir | Component::ParentDir));
    if !is_relative || ![PROJECT, FOLDER].contains(&name) {
        return (name, value.to_owned());
    }
    let Ok(folder) = dunce::canonicalize(value).or_else(|_| std::path::absolute(value)) else {
        return (name, value.to_owned());
    };
    let mut root = folder.as_path();
    if name == PROJECT {
        root = folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&folder);
    }
    // With a separator at its end, a folder whose name only begins alike is another one.
    (
        FOLDER,
        format!("{}{MAIN_SEPARATOR}", root.display().to_string().trim_end_matches(MAIN_SEPARATOR)),
    )
}

impl clap::Args for FilterArgs {
    fn augment_args(command: Command) -> Command {
        let command = ALL.into_iter().fold(command, |command, filter| command.arg(flag(filter)));
        OtherFilters::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        FilterArgs::augment_args(command)
    }
}

impl FromArgMatches for FilterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<FilterArgs, clap::Error> {
        let mut filters = FilterArgs::default();
        filters.update_from_arg_matches(matches)?;
        Ok(filters)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for filter in ALL {
            for value in matches.get_many::<String>(filter.name).into_iter().flatten() {
                let (name, value) = in_working_folder(filter.name, value);
                self.given.add(name, &value);
            }
        }
        let OtherFilters { role, since, here, until } = OtherFilters::from_arg_matches(matches)?;
        if here {
            let (name, value) = in_working_folder(PROJECT, ".");
            self.given.add(name, &value);
        }
        self.given.roles = role;
        self.given.since = since;
        self.given.until = until;
        Ok(())
    }
}

impl FilterArgs {
    /// Returns these filters, for these conversations only.
    pub(super) fn within(&self, conversations: &[String]) -> filters::Filters {
        filters::Filters { within: conversations.to_vec(), ..self.given.clone() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.given == filters::Filters::default()
    }

    /// Returns whether the answer can include transcripts of coding agents.
    pub(super) fn takes_transcripts(&self) -> bool {
        self.given.takes_transcripts()
    }

    /// Returns the scope of the filters, and notes about sources that they leave out.
    pub(super) fn scope(
        &self,
        engine: &Engine,
        clock: Clock,
        call: &Call,
    ) -> Result<(Scope, Vec<Note>)> {
        scope(&self.given, engine, clock, call)
    }
}

/// Returns the scope of filters that are flags, and notes about sources that they leave out.
pub(crate) fn scope(
    filters: &filters::Filters,
    engine: &Engine,
    clock: Clock,
    call: &Call,
) -> Result<(Scope, Vec<Note>)> {
    filters.scope(engine, clock, call).map_err(refused)
}

/// Returns the error of filters that cannot be applied, with their flags.
pub(crate) fn refused(error: FilterError) -> Error {
    match error {
        FilterError::Engine(error) => error.into(),
        FilterError::Date { filter, reason } => {
            usage(format!("invalid value for '--{filter} <DATE>': {reason}"))
        }
        FilterError::OneMessage { conversation } => usage(format!(
            "--{WITHIN} takes a conversation, not one message: --{WITHIN} {conversation}"
        )),
        error => usage(error.to_string()),
    }
}
