//! Finds how much of an id is needed to tell it from other ids, without comparing all ids.

use super::scope::shared_start;

/// The numbers of ids, sorted by the ids with ASCII letters in lower case.
#[derive(Debug)]
pub(super) struct SortedIds(Vec<u32>);

impl SortedIds {
    /// Sorts the ids with the numbers 0 to `count`.
    pub(super) fn of<'a>(count: usize, id_of: impl Fn(u32) -> &'a str) -> SortedIds {
        let mut sorted: Vec<u32> = (0..count as u32).collect();
        sorted.sort_by(|a, b| folded(id_of(*a)).cmp(folded(id_of(*b))));
        SortedIds(sorted)
    }

    /// Does as [`Listing::shared_start`](super::reader::Listing::shared_start) does. In the order of
    /// the ids, the most similar other id is one of the neighbours.
    pub(super) fn shared_start<'a>(&self, id: &str, id_of: impl Fn(u32) -> &'a str) -> usize {
        let at = self.0.partition_point(|number| folded(id_of(*number)).lt(folded(id)));
        let (before, after) = self.0.split_at(at);
        let other = |number: &&u32| id_of(**number) != id;
        let neighbours = [before.iter().rev().find(other), after.iter().find(other)];
        let shared = neighbours.into_iter().flatten().map(|it| shared_start(id, id_of(*it)));
        shared.max().unwrap_or(0)
    }
}

fn folded(id: &str) -> impl Iterator<Item = u8> {
    id.bytes().map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_look_at_each_id() {
        let ids = ["", "a", "abc", "ABd", "abc-1", "abC-12", "b", "é1", "é2", "zz"];
        let id_of = |number: u32| ids[number as usize];
        let sorted = SortedIds::of(ids.len(), id_of);
        for id in ids.into_iter().chain(["ab", "x", "É1"]) {
            let others = ids.iter().filter(|other| **other != id);
            let expected = others.map(|other| shared_start(id, other)).max();
            assert_eq!(Some(sorted.shared_start(id, id_of)), expected, "{id}");
        }
    }
}
