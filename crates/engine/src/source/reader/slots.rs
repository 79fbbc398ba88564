//! Values of conversations that are made at the first use.

use std::sync::OnceLock;

const CHUNK: usize = 256;

/// A slot for each number below a count. Takes memory only for chunks with a used slot, because a process
/// usually uses a few of very many.
#[derive(Debug)]
pub(crate) struct Slots<T>(Vec<OnceLock<Box<[OnceLock<T>]>>>);

impl<T> Slots<T> {
    pub(crate) fn new(count: usize) -> Slots<T> {
        Slots((0..count.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect())
    }

    pub(crate) fn slot(&self, number: u32) -> &OnceLock<T> {
        let at = number as usize;
        let chunk = self.0[at / CHUNK]
            .get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect::<Vec<_>>().into());
        &chunk[at % CHUNK]
    }

    /// Returns the number of filled slots.
    #[cfg(test)]
    pub(crate) fn filled(&self) -> usize {
        let slots = self.0.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter());
        slots.filter(|slot| slot.get().is_some()).count()
    }
}
