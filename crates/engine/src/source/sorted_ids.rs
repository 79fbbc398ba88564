//! Finds ids, and the prefixes that distinguish them from other ids, without comparing all ids.

use std::cmp::Ordering;

use super::scope::shared_start;

/// The numbers of ids, each with the first bytes of its id. They are sorted by the ids with ASCII letters
/// in lower case, and then by the ids themselves.
#[derive(Debug)]
pub(super) struct SortedIds(Vec<(u64, u32)>);

impl SortedIds {
    /// Sorts the ids with the numbers from 0 to `count`, exclusive.
    pub(super) fn of<'a>(count: usize, id_of: impl Fn(u32) -> &'a str) -> SortedIds {
        let mut sorted: Vec<(u64, u32)> =
            (0..count as u32).map(|number| (first_bytes(id_of(number)), number)).collect();
        // Most ids differ in their first bytes, so the ids themselves need not be read.
        sorted.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| order(id_of(a.1), id_of(b.1))).then(a.1.cmp(&b.1))
        });
        SortedIds(sorted)
    }

    /// Returns the number of an id.
    pub(super) fn find<'a>(&self, id: &str, id_of: impl Fn(u32) -> &'a str) -> Option<u32> {
        let (_, number) = *self.0.get(self.place(id, &id_of))?;
        (id_of(number) == id).then_some(number)
    }

    /// Does the same as [`Listing::shared_start`](super::reader::Listing::shared_start). In sorted order,
    /// the id with the longest common prefix is a neighbour.
    pub(super) fn shared_start<'a>(&self, id: &str, id_of: impl Fn(u32) -> &'a str) -> usize {
        let (before, after) = self.0.split_at(self.place(id, &id_of));
        let other = |(_, number): &&(u64, u32)| id_of(*number) != id;
        let neighbours = [before.iter().rev().find(other), after.iter().find(other)];
        let shared = neighbours.into_iter().flatten().map(|it| shared_start(id, id_of(it.1)));
        shared.max().unwrap_or(0)
    }

    /// Returns the position of the first id that is equal to `id` or follows it.
    fn place<'a>(&self, id: &str, id_of: impl Fn(u32) -> &'a str) -> usize {
        let first = first_bytes(id);
        let is_before = |(bytes, number): &(u64, u32)| {
            bytes.cmp(&first).then_with(|| order(id_of(*number), id)) == Ordering::Less
        };
        self.0.partition_point(is_before)
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
        let sorted = SortedIds::of(ids.len(), id_of);
        for id in ids.into_iter().chain(["ab", "x", "É1", "conversation-", "CONVERSATION-1"]) {
            let others = ids.iter().filter(|other| **other != id);
            let expected = others.map(|other| shared_start(id, other)).max();
            assert_eq!(Some(sorted.shared_start(id, id_of)), expected, "{id}");
            let expected = ids.iter().position(|other| *other == id);
            assert_eq!(sorted.find(id, id_of).map(|number| number as usize), expected, "{id}");
        }
    }
}
