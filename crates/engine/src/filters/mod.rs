//! Filters of conversations by name. A filter is an entry in [`ALL`]: the flags and the help of the terminal, the
//! picker, the page and HTTP search are made from this table. A filter that the page lists with counts is also a
//! field of [`Choice`](crate::Choice).

mod name_filter;
mod table;

pub use name_filter::NameFilter;
pub(crate) use name_filter::{FilterBy, NamedFacts};
pub use table::ALL;

/// The names that a user gives to filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing {
    given: [Vec<String>; ALL.len()],
    /// Whether names of facets are whole names, and not parts of names. Then an empty name means conversations
    /// without a name.
    pub is_whole: bool,
}

impl Narrowing {
    /// Returns whether no filter is given.
    pub fn is_empty(&self) -> bool {
        self.given.iter().all(Vec::is_empty)
    }

    /// Returns the filters with a name, each with its names.
    pub fn given(&self) -> impl Iterator<Item = (&'static NameFilter, &[String])> {
        let all = ALL.into_iter().zip(self.given.iter().map(Vec::as_slice));
        all.filter(|(_, names)| !names.is_empty())
    }

    /// Returns the names of the filter that is called `name`.
    pub fn of(&self, name: &str) -> &[String] {
        place(name).map_or(&[], |place| &self.given[place])
    }

    /// Gives a name to the filter that is called `name`. Returns false if there is no such filter.
    pub fn add(&mut self, name: &str, value: &str) -> bool {
        let place = place(name);
        place.into_iter().for_each(|place| self.given[place].push(value.to_owned()));
        place.is_some()
    }

    /// Replaces the names of the filter that is called `name`.
    pub fn set(&mut self, name: &str, names: Vec<String>) {
        if let Some(place) = place(name) {
            self.given[place] = names;
        }
    }
}

fn place(name: &str) -> Option<usize> {
    ALL.iter().position(|filter| filter.name == name || filter.alias == Some(name))
}
