use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::{collections::HashMap, sync::OnceLock};

/// Number of messages up to which a search compares all of them.
const FEW: usize = 64;

/// Finder of the numbers of messages. The first search in a long conversation builds a hash table, so
/// that later searches are fast.
#[derive(Debug, Default)]
pub(crate) struct TurnFinder(OnceLock<HashMap<u64, Vec<u32>>>);

impl TurnFinder {
    /// Returns the first of `count` turns that has the key `wanted` and is accepted by `is_same`.
    pub(crate) fn find<K: Hash>(
        &self,
        count: usize,
        wanted: &K,
        key: impl Fn(usize) -> K,
        is_same: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if count <= FEW {
            return (0..count).find(|turn| is_same(*turn));
        }
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let table = self.0.get_or_init(|| {
            let mut table: HashMap<u64, Vec<u32>> = HashMap::with_capacity(count);
            for turn in 0..count {
                table.entry(hasher.hash_one(key(turn))).or_default().push(turn as u32);
            }
            table
        });
        table
            .get(&hasher.hash_one(wanted))?
            .iter()
            .map(|turn| *turn as usize)
            .find(|turn| is_same(*turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_conversations_are_searched_as_short_ones() {
        for count in [0, 1, FEW, FEW + 1, 1_000] {
            let finder = TurnFinder::default();
            let find = |wanted: usize, least: usize| {
                finder.find(
                    count,
                    &(wanted / 3),
                    |turn| turn / 3,
                    |turn| turn / 3 == wanted / 3 && turn >= least,
                )
            };
            for turn in 0..count {
                assert_eq!(find(turn, 0), Some(turn / 3 * 3));
                assert_eq!(find(turn, turn), Some(turn));
            }
            assert_eq!(find(count + 3, 0), None);
        }
    }
}
