//! `branch`: the branch of Git.

use super::name_filter::{FilterBy, NameFilter};
use crate::source::is_part;

pub(super) const FILTER: NameFilter = NameFilter {
    name: "branch",
    alias: None,
    legend: "Branch",
    value: "NAME",
    help: "Only coding agents' conversations on a branch with this in its name",
    more_help: "",
    is_common: false,
    is_facet: false,
    values: Vec::new,
    by: FilterBy::Names {
        names: |facts| facts.origin.branch.as_deref().into_iter().collect(),
        fits: is_part,
    },
};
