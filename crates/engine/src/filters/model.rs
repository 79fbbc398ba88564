//! `model`: the models that answered.

use super::name_filter::{FilterBy, NameFilter};
use crate::source::is_part;

pub(super) const FILTER: NameFilter = NameFilter {
    name: "model",
    alias: None,
    legend: "Model",
    value: "NAME",
    help: "Only conversations in which a model with this in its name answered",
    more_help: "",
    is_common: false,
    is_facet: true,
    values: Vec::new,
    by: FilterBy::Names {
        names: |facts| facts.models.iter().map(String::as_str).collect(),
        fits: is_part,
    },
};
