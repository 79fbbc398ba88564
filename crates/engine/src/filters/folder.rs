//! `folder`: the working folders.

use super::name_filter::{FilterBy, NameFilter};
use crate::source::is_part;

pub(super) const FILTER: NameFilter = NameFilter {
    name: "folder",
    alias: None,
    legend: "Folder",
    value: "PATH",
    help: "Only coding agents' conversations in a folder with this in its path",
    more_help: "",
    is_common: false,
    is_facet: false,
    values: Vec::new,
    by: FilterBy::Names { names: |facts| facts.origin.folders().collect(), fits: is_part },
};
