//! `file`: the files for which an agent called a tool.

use super::name_filter::{FilterBy, NameFilter};
use crate::source::is_part;
use verbatim_chats::import::tool::named_files;

pub(super) const FILTER: NameFilter = NameFilter {
    name: "file",
    alias: None,
    legend: "File",
    value: "PATH",
    help: "Only coding agents' conversations that call a tool for a file with this in its path",
    more_help: "",
    is_common: false,
    is_facet: false,
    values: Vec::new,
    by: FilterBy::Calls {
        fits: |given, content| named_files(content).any(|name| is_part(given, name)),
        known: None,
    },
};
