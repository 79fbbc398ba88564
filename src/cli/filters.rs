//! The filters that several commands take.

use clap::{builder::NonEmptyStringValueParser, error::ErrorKind};
use clap_complete::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};

use super::{
    clock::Clock,
    completions::conversations,
    error::{Error, Result},
    found::target,
    notes,
};
use verbatim_base::model::Stop;
use verbatim_engine::{
    self as engine, Engine, Narrowing, Note, Scope, SourceKind, import::FORMATS,
};
use verbatim_text::{date::Edge, shell::quoted};

#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Filters {
    /// Only this source: chatgpt, claude, claude-code, codex (repeatable)
    ///
    /// Or a kind of source: export, archive (the transcripts of coding agents), threads.
    #[arg(long, hide_short_help = true, value_name = "SOURCE", value_parser = source, add = ArgValueCandidates::new(|| {
        sources().into_iter().map(CompletionCandidate::new).collect()
    }))]
    source: Vec<String>,
    /// Only coding agents' conversations in a project with this in its name, in any letter case
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Only coding agents' conversations on this branch
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    branch: Option<String>,
    /// Only coding agents' conversations in a folder with this in its path
    #[arg(long, hide_short_help = true, value_name = "PATH")]
    folder: Option<String>,
    /// Only conversations in which a model with this in its name answered, in any letter case
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    model: Option<String>,
    /// Only coding agents' conversations that call a tool with this in its name, in any letter case
    #[arg(long, hide_short_help = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    tool: Option<String>,
    /// Only coding agents' conversations that call a tool for a file with this in its path
    #[arg(long, hide_short_help = true, value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    file: Option<String>,
    /// Only this conversation: its id, title or link
    #[arg(
        long = "in",
        value_name = "CONVERSATION",
        add = ArgValueCompleter::new(conversations)
    )]
    within: Option<String>,
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
    /// Only up to the end of this day or period, or up to this moment
    #[arg(long, hide_short_help = true, value_name = "DATE")]
    until: Option<String>,
    /// Read and show times in UTC, not in the time zone of this computer
    #[arg(long, hide_short_help = true)]
    pub(super) utc: bool,
}

fn source(name: &str) -> Result<String, String> {
    let known = sources();
    match known.iter().any(|it| it == name) {
        true => Ok(name.to_owned()),
        false => Err(format!("the sources are {}", known.join(", "))),
    }
}

/// Returns the names that `--source` takes.
fn sources() -> Vec<String> {
    let kinds = SourceKind::ALL.into_iter().map(|kind| kind.name().to_owned());
    kinds.chain(FORMATS.iter().map(|format| format.service())).collect()
}

impl Filters {
    /// Returns whether the answer can include transcripts of coding agents.
    pub(super) fn takes_transcripts(&self) -> bool {
        let is_archive = |name: &String| {
            name == SourceKind::Archive.name()
                || FORMATS.iter().any(|format| format.is_transcript() && format.service() == *name)
        };
        self.source.is_empty() || self.source.iter().any(is_archive)
    }

    /// Returns the scope of the filters. Notes name the filters that nothing matches.
    pub(super) fn scope(
        &self,
        engine: &Engine,
        clock: Clock,
        stop: &Stop,
    ) -> Result<(Scope, Vec<Note>)> {
        let date = |flag: &str, text: &Option<String>, edge| {
            let parsed = text.as_ref().map(|text| clock.parse(text, edge)).transpose();
            parsed.map_err(|error| usage(format!("invalid value for '{flag} <DATE>': {error}")))
        };
        let since = date("--since", &self.since, Edge::Start)?;
        let until = date("--until", &self.until, Edge::End)?;
        if let (Some(since), Some(until)) = (since, until)
            && since > until
        {
            return Err(usage("--since is after --until: no message can be in between".to_owned()));
        }
        let kind = |name: &String| SourceKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kinds: Vec<SourceKind> = self.source.iter().filter_map(kind).collect();
        let has_services = kinds.len() < self.source.len();
        let scope = Scope {
            sources: if has_services { Vec::new() } else { kinds },
            roles: self.role.clone(),
            since,
            until,
            ..Scope::default()
        };
        let narrowing = Narrowing {
            services: if has_services { self.source.clone() } else { Vec::new() },
            project: self.project.clone(),
            branch: self.branch.clone(),
            folder: self.folder.clone(),
            model: self.model.clone(),
            tool: self.tool.clone(),
            file: self.file.clone(),
        };
        let (mut scope, notes) = engine.all_sources().narrowed(scope, &narrowing, stop)?;
        if let Some(word) = &self.within {
            let named = target(engine, word, stop);
            let (about, number) = named.map_err(|error| not_found(error, engine, stop))?;
            if let (Some(_), Some((id, _))) = (number, word.rsplit_once(':')) {
                let id = quoted(id);
                return Err(usage(format!(
                    "--in takes a conversation, not one message: --in {id}"
                )));
            }
            if scope.sources.is_empty() || scope.sources.contains(&about.source) {
                scope.sources = vec![about.source];
            }
            scope.conversation = Some(about.id);
        }
        Ok((scope, notes))
    }
}

/// Adds unreadable sources to a not-found error, because they may contain the conversation.
fn not_found(error: engine::Error, engine: &Engine, stop: &Stop) -> Error {
    let unread = notes::lines(&engine.all_sources().problems(stop));
    match error {
        engine::Error::NoConversation { .. } if !unread.is_empty() => {
            usage(format!("{error}; {}", unread.join("; ")))
        }
        error => error.into(),
    }
}

/// Returns the error for a wrong command line.
pub(super) fn usage(message: String) -> Error {
    Error::Usage(clap::Error::raw(ErrorKind::ValueValidation, format!("{message}\n")))
}
