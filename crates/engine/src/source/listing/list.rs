//! Lists the conversations of all sources.

use std::{cmp::Reverse, ops::Range};

use crate::error::Result;
use crate::source::note::Note;
use crate::source::reader::Listing;
use crate::source::scope::{About, Scope};
use crate::source::sources::Sources;
use verbatim_base::call::Call;

/// Which conversations a list includes, and how it describes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Whether summaries, which take time to make, are left out.
    pub briefly: bool,
    /// Whether an export's conversations without messages, and threads without messages, are listed too.
    pub with_empty: bool,
    /// Whether the earliest activity comes first. Conversations without a time come last in either order.
    pub oldest_first: bool,
}

impl ListOptions {
    /// Conversations with messages, without summaries.
    pub const BRIEF: ListOptions =
        ListOptions { briefly: true, with_empty: false, oldest_first: false };
}

/// A page of a list of conversations.
#[derive(Clone, Debug, Default)]
pub struct ListedPage {
    /// The conversations of the page, in the order that the options ask for.
    pub abouts: Vec<About>,
    /// The number of conversations in the whole list.
    pub total: usize,
    /// Notes about conversations and sources that the list leaves out.
    pub notes: Vec<Note>,
}

impl ListedPage {
    /// Returns a sentence for each thing that the list leaves out, and for each name in the scope that
    /// nothing has.
    pub fn notes(&self) -> Vec<String> {
        self.notes.iter().map(ToString::to_string).collect()
    }
}

/// A page of a list of conversations that are not described yet.
pub struct Undescribed {
    listings: Vec<Box<dyn Listing>>,
    /// For each conversation the number of its listing, and its place there.
    page: Vec<(usize, usize)>,
    pub total: usize,
    pub notes: Vec<Note>,
}

impl Undescribed {
    pub fn ids(&self) -> Vec<&str> {
        self.page.iter().map(|(number, place)| self.listings[*number].heading(*place).0).collect()
    }

    /// Describes some of the conversations, `briefly` without their summaries.
    pub fn abouts(&self, wanted: Range<usize>, briefly: bool) -> Vec<About> {
        self.page[wanted]
            .iter()
            .map(|(number, place)| self.listings[*number].describe(*place, !briefly))
            .collect()
    }
}

impl Sources {
    /// Lists the conversations in a scope in the order of their latest activity, and describes those of a page.
    pub fn list(
        &self,
        scope: &Scope,
        page: Range<usize>,
        options: ListOptions,
        call: &Call,
    ) -> Result<ListedPage> {
        let listed = self.undescribed(scope, page, options, call)?;
        let abouts = listed.abouts(0..listed.page.len(), options.briefly);
        Ok(ListedPage { abouts, total: listed.total, notes: listed.notes })
    }

    /// Works like [`Sources::list`], but leaves the descriptions to the caller, who makes them in parts.
    pub fn undescribed(
        &self,
        scope: &Scope,
        wanted: Range<usize>,
        options: ListOptions,
        call: &Call,
    ) -> Result<Undescribed> {
        let (sources, mut notes) = self.readable(&scope.sources, call)?;
        let (scope, unknown) = self.resolved(scope, &sources, call)?;
        let (listings, unreadable) = self.each(&scope.sources, |source| {
            if options.with_empty {
                source.sessions(&scope, call)
            } else {
                source.reader(call).list(&scope, call)
            }
        })?;
        for note in unknown.into_iter().chain(unreadable) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let total = listings.iter().map(|listing| listing.len()).sum();
        let page = if options.oldest_first {
            oldest(&listings, wanted)
        } else {
            newest(&listings, wanted)
        };
        if total == 0 {
            notes.extend(self.unknown_role(&scope, call)?);
        }
        Ok(Undescribed { listings, page, total, notes })
    }
}

/// Returns a page of the conversations of several listings, the latest activity first. Looks only at the
/// conversations up to the end of the page.
fn newest(listings: &[Box<dyn Listing>], wanted: Range<usize>) -> Vec<(usize, usize)> {
    let mut next = vec![0; listings.len()];
    let mut page = Vec::new();
    for at in 0..wanted.end {
        let left = (0..).zip(listings).filter(|(number, listing)| next[*number] < listing.len());
        // Each listing is sorted. Of equal times, that of the first source comes first.
        let first = left.min_by_key(|(number, listing)| Reverse(listing.last(next[*number])));
        let Some((number, _)) = first else { break };
        if at >= wanted.start {
            page.push((number, next[number]));
        }
        next[number] += 1;
    }
    page
}

/// Returns a page of the conversations of several listings, the earliest activity first. Conversations without
/// a time are last.
fn oldest(listings: &[Box<dyn Listing>], wanted: Range<usize>) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for (number, listing) in listings.iter().enumerate() {
        places.extend((0..listing.len()).map(|place| (listing.last(place), number, place)));
    }
    // The sort is stable, so that equal times keep the sources' order.
    places.sort_by_key(|(last, ..)| (last.is_none(), *last));
    let page = places.into_iter().skip(wanted.start).take(wanted.len());
    page.map(|(_, number, place)| (number, place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;

    #[test]
    fn a_part_is_described_before_the_others() {
        let export = TestExport::indexed(&["red", "green", "blue"]);
        let call = Call::default();
        let page = export
            .engine
            .all_sources()
            .undescribed(&Scope::default(), 0..3, ListOptions::BRIEF, &call)
            .unwrap();
        assert_eq!(
            (page.ids(), page.abouts(0..1, false)[0].id.as_str()),
            (vec!["2", "1", "0"], "2")
        );
        let source = export.engine.sources().remove(0);
        let snapshot = source.current_index(&call).unwrap();
        assert_eq!(source.catalogue(&snapshot).summaries_made(), 1);
    }
}
