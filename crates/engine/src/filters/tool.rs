//! `tool`: the tools that an agent called.

use super::name_filter::{FilterBy, NameFilter};
use crate::source::is_part;
use verbatim_chats::import::tool::called;

pub(super) const FILTER: NameFilter = NameFilter {
    name: "tool",
    alias: None,
    legend: "Tool",
    value: "NAME",
    help: "Only coding agents' conversations that call a tool with this in its name",
    more_help: "",
    is_common: false,
    is_facet: false,
    values: Vec::new,
    by: FilterBy::Calls {
        fits: |given, content| called(content).any(|name| is_part(given, name)),
        known: Some(|content| called(content).map(str::to_owned).collect()),
    },
};
