//! The filters that several commands take.

use std::sync::Arc;

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
    self as engine, About, ConversationIds, Engine, Narrowing, Note, Scope, SourceKind,
    import::FORMATS,
};
use verbatim_text::{date::Edge, shell::quoted};

#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Filters {
    /// Only what this service or agent wrote: chatgpt, claude, claude-code, codex (repeatable)
    ///
    /// Or of one source: export, archive (the transcripts of coding agents), threads. Each of these filters by
    /// name takes a part of the name, in any letter case, and can be repeated.
    #[arg(long, alias = "source", hide_short_help = true, value_name = "SERVICE", value_parser = filled(), add = ArgValueCandidates::new(|| {
        services().into_iter().map(CompletionCandidate::new).collect()
    }))]
    service: Vec<String>,
    /// Only coding agents' conversations in a project with this in its name
    #[arg(long, value_name = "NAME", value_parser = filled())]
    project: Vec<String>,
    /// Only coding agents' conversations on a branch with this in its name
    #[arg(long, hide_short_help = true, value_name = "NAME", value_parser = filled())]
    branch: Vec<String>,
    /// Only coding agents' conversations in a folder with this in its path
    #[arg(long, hide_short_help = true, value_name = "PATH", value_parser = filled())]
    folder: Vec<String>,
    /// Only conversations in which a model with this in its name answered
    #[arg(long, hide_short_help = true, value_name = "NAME", value_parser = filled())]
    model: Vec<String>,
    /// Only coding agents' conversations that call a tool with this in its name
    #[arg(long, hide_short_help = true, value_name = "NAME", value_parser = filled())]
    tool: Vec<String>,
    /// Only coding agents' conversations that call a tool for a file with this in its path
    #[arg(long, hide_short_help = true, value_name = "PATH", value_parser = filled())]
    file: Vec<String>,
    /// Only this conversation: its id, title or link (repeatable)
    #[arg(
        long = "in",
        value_name = "CONVERSATION",
        add = ArgValueCompleter::new(conversations)
    )]
    within: Vec<String>,
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

/// Returns the parser of a name, which must not be blank.
fn filled() -> NonEmptyStringValueParser {
    NonEmptyStringValueParser::new()
}

/// Returns the names that `--service` is completed with.
fn services() -> Vec<String> {
    let kinds = SourceKind::ALL.into_iter().map(|kind| kind.name().to_owned());
    FORMATS.iter().map(|format| format.service()).chain(kinds).collect()
}

impl Filters {
    /// Returns whether the answer can include transcripts of coding agents.
    pub(super) fn takes_transcripts(&self) -> bool {
        let may_be_archive = |name: &String| {
            let mut exports = FORMATS.iter().filter(|format| !format.is_transcript());
            let other = [SourceKind::Export, SourceKind::Threads];
            !other.into_iter().any(|kind| kind.name() == name)
                && !exports.any(|format| format.service() == *name)
        };
        self.service.is_empty() || self.service.iter().any(may_be_archive)
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
        let kinds: Vec<SourceKind> = self.service.iter().filter_map(kind).collect();
        let has_services = kinds.len() < self.service.len();
        let sources = if has_services { Vec::new() } else { kinds };
        let all = engine.all_sources();
        let roles = all.named_roles(&self.role, &sources, stop)?;
        let roles = roles.map_err(|unknown| usage(unknown.to_string()))?;
        let scope = Scope { sources, roles, since, until, ..Scope::default() };
        let narrowing = Narrowing {
            services: if has_services { self.service.clone() } else { Vec::new() },
            projects: self.project.clone(),
            branches: self.branch.clone(),
            folders: self.folder.clone(),
            models: self.model.clone(),
            tools: self.tool.clone(),
            files: self.file.clone(),
        };
        let (mut scope, notes) = all.narrowed(scope, &narrowing, stop)?;
        if let Some(unknown) = notes.iter().find(|note| matches!(note, Note::Unknown { .. })) {
            return Err(usage(unknown.to_string()));
        }
        self.choose(&mut scope, engine, stop)?;
        Ok((scope, notes))
    }

    /// Restricts a scope to the conversations of `--in`.
    fn choose(&self, scope: &mut Scope, engine: &Engine, stop: &Stop) -> Result<()> {
        let mut chosen = Vec::new();
        for word in &self.within {
            let named = target(engine, word, stop);
            let (about, number) = named.map_err(|error| not_found(error, engine, stop))?;
            if let (Some(_), Some((id, _))) = (number, word.rsplit_once(':')) {
                let id = quoted(id);
                return Err(usage(format!(
                    "--in takes a conversation, not one message: --in {id}"
                )));
            }
            chosen.push(about);
        }
        match &chosen[..] {
            [] => {}
            [about] => {
                if scope.sources.is_empty() || scope.sources.contains(&about.source) {
                    scope.sources = vec![about.source];
                }
                scope.conversation = Some(about.id.clone());
            }
            chosen => {
                let mut ids = ConversationIds::new();
                for About { source, id, .. } in chosen {
                    let is_wanted = scope.conversations.as_ref().is_none_or(|wanted| {
                        wanted.get(source).is_some_and(|ids| ids.contains(id))
                    });
                    let of_source = ids.entry(*source).or_default();
                    of_source.extend(is_wanted.then(|| id.clone()));
                }
                scope.conversations = Some(Arc::new(ids));
            }
        }
        Ok(())
    }

    /// Returns the arguments that give these filters.
    pub(super) fn arguments(&self) -> Vec<String> {
        let one = |text: &Option<String>| text.iter().cloned().collect();
        let all: [(&str, Vec<String>); 11] = [
            ("--service", self.service.clone()),
            ("--project", self.project.clone()),
            ("--branch", self.branch.clone()),
            ("--folder", self.folder.clone()),
            ("--model", self.model.clone()),
            ("--tool", self.tool.clone()),
            ("--file", self.file.clone()),
            ("--in", self.within.clone()),
            ("--role", self.role.clone()),
            ("--since", one(&self.since)),
            ("--until", one(&self.until)),
        ];
        let given = all.into_iter().flat_map(|(flag, values)| {
            values.into_iter().flat_map(move |value| [flag.to_owned(), value])
        });
        given.chain(self.utc.then(|| "--utc".to_owned())).collect()
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
