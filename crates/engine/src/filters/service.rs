//! `service`: the service, the agent or the source of a conversation.

use super::name_filter::{FilterBy, NameFilter};
use crate::source::{SourceKind, is_part, same_name};
use verbatim_chats::import::FORMATS;

pub(super) const FILTER: NameFilter = NameFilter {
    name: "service",
    alias: Some("source"),
    legend: "Service",
    value: "SERVICE",
    help: "Only what this service or agent wrote: chatgpt, claude, claude-code, codex (repeatable)",
    more_help: "Or of one source: export, archive (the transcripts of coding agents), threads. Each of these filters by \
                name takes a part of the name, in any letter case, and can be repeated.",
    is_common: false,
    is_facet: true,
    values: || {
        let kinds = SourceKind::ALL.into_iter().map(|kind| kind.name().to_owned());
        FORMATS.iter().map(|format| format.service()).chain(kinds).collect()
    },
    by: FilterBy::Names {
        names: |facts| facts.service.into_iter().chain([facts.kind.name()]).collect(),
        fits: is_meant,
    },
};

/// Returns whether a service is meant by a whole name, or by a part that is not the name of another one: the
/// name of Claude.ai begins that of Claude Code.
fn is_meant(given: &str, service: &str) -> bool {
    let is_known = || (FILTER.values)().iter().any(|known| same_name(given, known));
    same_name(given, service) || is_part(given, service) && !is_known()
}
