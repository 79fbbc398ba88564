//! Every filter by name.

use std::path::MAIN_SEPARATOR;

use super::name_filter::{FilterBy, NameFilter};
use crate::decisions::exclusions::projects;
use crate::source::{SourceKind, is_part};
use verbatim_chats::import::FORMATS;
use verbatim_chats::import::tool::{called, named_files};

/// Every filter by name, in the order in which the help lists them.
pub const ALL: [&NameFilter; 8] = [
    // The service, the agent or the source of a conversation.
    &NameFilter {
        name: "service",
        alias: Some("source"),
        legend: "Service",
        value: "SERVICE",
        help: "Only what this service or agent wrote: chatgpt, claude, claude-code, codex (repeatable)",
        more_help: "Or of one source: export, archive (the transcripts of coding agents), threads. Each of these filters by \
                    name takes a part of the name, in any letter case, and can be repeated.",
        is_common: false,
        is_facet: true,
        values: services,
        by: FilterBy::Names {
            names: |facts| facts.service.into_iter().chain([facts.kind.name()]).collect(),
            fits: is_service,
        },
    },
    &NameFilter {
        name: "title",
        legend: "Title",
        value: "TEXT",
        help: "Only conversations with this in their title",
        by: FilterBy::Names { names: |facts| vec![facts.title], fits: is_part },
        ..PLAIN
    },
    &NameFilter {
        name: "project",
        legend: "Project",
        help: "Only coding agents' conversations in a project with this in its name",
        is_common: true,
        is_facet: true,
        by: FilterBy::Names { names: |facts| projects(facts.origin).collect(), fits: is_part },
        ..PLAIN
    },
    // The branch of Git.
    &NameFilter {
        name: "branch",
        legend: "Branch",
        help: "Only coding agents' conversations on a branch with this in its name",
        by: FilterBy::Names {
            names: |facts| facts.origin.branch.as_deref().into_iter().collect(),
            fits: is_part,
        },
        ..PLAIN
    },
    &NameFilter {
        name: "folder",
        legend: "Folder",
        value: "PATH",
        help: "Only coding agents' conversations in a folder with this in its path",
        by: FilterBy::Names { names: |facts| facts.origin.folders().collect(), fits: is_folder },
        ..PLAIN
    },
    // The models that answered.
    &NameFilter {
        name: "model",
        legend: "Model",
        help: "Only conversations in which a model with this in its name answered",
        is_facet: true,
        by: FilterBy::Names {
            names: |facts| facts.models.iter().map(String::as_str).collect(),
            fits: is_part,
        },
        ..PLAIN
    },
    &NameFilter {
        name: "tool",
        legend: "Tool",
        help: "Only coding agents' conversations that call a tool with this in its name",
        by: FilterBy::Calls {
            fits: |given, content| called(content).any(|name| is_part(given, name)),
            known: Some(|content| called(content).map(str::to_owned).collect()),
        },
        ..PLAIN
    },
    // The files for which an agent called a tool.
    &NameFilter {
        name: "file",
        legend: "File",
        value: "PATH",
        help: "Only coding agents' conversations that call a tool for a file with this in its path",
        by: FilterBy::Calls {
            fits: |given, content| named_files(content).any(|name| is_part(given, name)),
            known: None,
        },
        ..PLAIN
    },
];

/// What most filters have in common.
const PLAIN: NameFilter = NameFilter {
    name: "",
    alias: None,
    legend: "",
    value: "NAME",
    help: "",
    more_help: "",
    is_common: false,
    is_facet: false,
    values: Vec::new,
    by: FilterBy::Names { names: |_| Vec::new(), fits: is_part },
};

/// Returns whether a service is meant by a whole name, or by a part that is not the name of another one: the
/// name of Claude.ai begins that of Claude Code. Spaces, signs and letter case do not count.
fn is_service(given: &str, service: &str) -> bool {
    let given = letters_of(given);
    let labels = FORMATS.iter().filter(|format| format.service() == service);
    letters_of(service) == given
        || labels.into_iter().any(|format| letters_of(format.label()) == given)
        || !given.is_empty()
            && letters_of(service).contains(&given)
            && !services().iter().any(|known| letters_of(known) == given)
}

fn letters_of(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns whether a text is a part of a folder's path. With a separator at its end, it ends where the name of a
/// folder ends.
fn is_folder(given: &str, folder: &str) -> bool {
    is_part(given, &format!("{folder}{MAIN_SEPARATOR}"))
}

/// Returns the names of all services and sources.
fn services() -> Vec<String> {
    let kinds = SourceKind::ALL.into_iter().map(|kind| kind.name().to_owned());
    FORMATS.iter().map(|format| format.service()).chain(kinds).collect()
}
