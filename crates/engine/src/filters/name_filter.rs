//! What a filter by name is.

use crate::source::SourceKind;
use verbatim_base::model::Origin;

/// A filter by name. It accepts the conversations that have one of the given names.
#[derive(Debug)]
pub struct NameFilter {
    /// The name of the filter: the flag, the parameter of an address, and the word before a colon.
    pub name: &'static str,
    /// Another name of the filter.
    pub alias: Option<&'static str>,
    /// The name of the filter for people.
    pub legend: &'static str,
    /// What the help calls its value.
    pub value: &'static str,
    /// What the filter accepts, in one line.
    pub help: &'static str,
    /// More lines for the long help; empty if there are none.
    pub more_help: &'static str,
    /// Whether the short help has the filter.
    pub is_common: bool,
    /// Whether the page lists the names, with their counts. Then it gives whole names.
    pub is_facet: bool,
    /// Returns values to complete.
    pub values: fn() -> Vec<String>,
    pub(crate) by: FilterBy,
}

/// What a filter compares with the given names.
#[derive(Debug)]
pub(crate) enum FilterBy {
    /// Names of the conversation.
    Names { names: NamesIn, fits: fn(given: &str, name: &str) -> bool },
    /// The calls of tools in a message of an assistant.
    Calls {
        fits: fn(given: &str, content: &str) -> bool,
        /// Returns the names in a message that an error proposes; `None` if it proposes none.
        known: Option<fn(content: &str) -> Vec<String>>,
    },
}

pub(crate) type NamesIn = for<'a> fn(&NamedFacts<'a>) -> Vec<&'a str>;

/// The facts about a conversation from which filters take names.
pub(crate) struct NamedFacts<'a> {
    pub(crate) kind: SourceKind,
    pub(crate) service: Option<&'a str>,
    pub(crate) title: &'a str,
    pub(crate) origin: &'a Origin,
    pub(crate) models: &'a [String],
}
