//! `project`: the project of a coding agent's conversation.

use super::name_filter::{FilterBy, NameFilter};
use crate::{decisions::exclusions::projects, source::is_part};

pub(super) const FILTER: NameFilter = NameFilter {
    name: "project",
    alias: None,
    legend: "Project",
    value: "NAME",
    help: "Only coding agents' conversations in a project with this in its name",
    more_help: "",
    is_common: true,
    is_facet: true,
    values: Vec::new,
    by: FilterBy::Names { names: |facts| projects(facts.origin).collect(), fits: is_part },
};
