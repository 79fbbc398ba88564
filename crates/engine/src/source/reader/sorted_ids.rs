//! Finds ids, and the prefixes that distinguish them from other ids, without comparing all ids.

use std::cmp::Ordering;

use crate::source::scope::{is_agent_of, shared_start};

/// Ids in sorted order: by the ids with ASCII letters in lower case, and then by the ids themselves.
pub(crate) struct SortedIds<N, I> {
    pub(crate) count: usize,
    pub(crate) number_at: N,
    pub(crate) id_of: I,
}

/// Returns the numbers from 0 to `count`, exclusive, in the order of their ids.
pub(crate) fn sorted<'a>(count: usize, id_of: impl Fn(u32) -> &'a str) -> Vec<u32> {
    let mut sorted: Vec<(u64, u32)> =
        (0..count as u32).map(|number| (first_bytes(id_of(number)), number)).collect();
    // Most ids differ in their first bytes, so the ids themselves need not be read.
    sorted.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| order(id_of(a.1), id_of(b.1))).then(a.1.cmp(&b.1))
    });
    sorted.into_iter().map(|(_, number)| number).collect()
}

impl<'a, N: Fn(usize) -> u32, I: Fn(u32) -> &'a str> SortedIds<N, I> {
    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        let number = self.numbers_from(self.place(|other| order(other, id))).next()?;
        ((self.id_of)(number) == id).then_some(number)
    }

    /// Does the same as [`Listing::shared_start`](super::reader::Listing::shared_start). In sorted order,
    /// the id with the longest common prefix is a neighbour.
    pub(crate) fn shared_start(&self, id: &str) -> usize {
        let place = self.place(|other| order(other, id));
        let mut before = (0..place).rev().map(|at| (self.id_of)((self.number_at)(at)));
        let mut after = self.numbers_from(place).map(&self.id_of);
        let neighbours = [
            before.find(|other| *other != id),
            after.find(|other| *other != id && !is_agent_of(other, id)),
        ];
        neighbours.into_iter().flatten().map(|other| shared_start(id, other)).max().unwrap_or(0)
    }

    /// Returns the numbers of the ids that begin with a text. The case of ASCII letters is ignored.
    pub(crate) fn beginning_with(&self, start: &str) -> Vec<u32> {
        let first = self.place(|other| folded(other).cmp(folded(start)));
        let numbers = self.numbers_from(first).take_while(|number| {
            let id = (self.id_of)(*number).as_bytes();
            id.get(..start.len()).is_some_and(|id| id.eq_ignore_ascii_case(start.as_bytes()))
        });
        numbers.collect()
    }

    fn numbers_from(&self, place: usize) -> impl Iterator<Item = u32> {
        (place..self.count).map(&self.number_at)
    }

    /// Returns the position of the first id that is not less by a comparison.
    fn place(&self, compared: impl Fn(&str) -> Ordering) -> usize {
        let mut low = 0;
        let mut high = self.count;
        while low < high {
            let middle = low.midpoint(high);
            match compared((self.id_of)((self.number_at)(middle))) {
                Ordering::Less => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }
}

fn order(one: &str, other: &str) -> Ordering {
    folded(one).cmp(folded(other)).then_with(|| one.cmp(other))
}

fn folded(id: &str) -> impl Iterator<Item = u8> {
    id.bytes().map(|byte| byte.to_ascii_lowercase())
}

/// Returns the first bytes of an id, with ASCII letters in lower case, as a number that sorts like them.
fn first_bytes(id: &str) -> u64 {
    let mut first = [0; size_of::<u64>()];
    first.iter_mut().zip(folded(id)).for_each(|(at, byte)| *at = byte);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_look_at_each_id() {
        let ids = [
            "",
            "a",
            "abc",
            "ABd",
            "abc-1",
            "abC-12",
            "b",
            "é1",
            "é2",
            "zz",
            "a\0",
            "ABC",
            "conversation-1",
            "Conversation-1",
            "conversation-12",
            "conversation-2",
        ];
        let id_of = |number: u32| ids[number as usize];
        let order = sorted(ids.len(), id_of);
        let sorted = SortedIds { count: ids.len(), number_at: |place: usize| order[place], id_of };
        for id in ids.into_iter().chain(["ab", "x", "É1", "conversation-", "CONVERSATION-1"]) {
            let others = ids.iter().filter(|other| **other != id);
            let expected = others.map(|other| shared_start(id, other)).max();
            assert_eq!(Some(sorted.shared_start(id)), expected, "{id}");
            let expected = ids.iter().position(|other| *other == id);
            assert_eq!(sorted.find(id).map(|number| number as usize), expected, "{id}");
            let mut found = sorted.beginning_with(id);
            found.sort_unstable();
            let begins = |number: &u32| shared_start(ids[*number as usize], id) == id.len();
            let expected: Vec<u32> = (0..ids.len() as u32).filter(begins).collect();
            assert_eq!(found, expected, "{id}");
        }
    }
}
