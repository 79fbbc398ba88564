//! The encoding of the list of each conversation's messages.
//!
//! ```text
//! the first message (varint) | the last one, counted from the first | the distance to each next message
//! ```

use crate::varint::{push_varint, take_varint};

pub(super) fn push_members(docs: &[u32], out: &mut Vec<u8>) {
    let (Some(first), Some(last)) = (docs.first(), docs.last()) else { return };
    push_varint(out, (*first).into());
    push_varint(out, (last - first).into());
    for two in docs.windows(2) {
        push_varint(out, (two[1] - two[0]).into());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Members<'a> {
    doc: u32,
    last: u32,
    distances: &'a [u8],
}

impl<'a> Members<'a> {
    /// Reads the bytes that [`push_members`] wrote; returns `None` for a conversation without messages.
    pub(super) fn read(mut bytes: &'a [u8]) -> Option<Members<'a>> {
        if bytes.is_empty() {
            return None;
        }
        let doc = take_varint(&mut bytes) as u32;
        let last = doc.saturating_add(take_varint(&mut bytes) as u32);
        Some(Members { doc, last, distances: bytes })
    }

    #[inline]
    pub(crate) fn doc(&self) -> u32 {
        self.doc
    }

    /// Moves to the first message at or after `target`; returns whether there is one.
    pub(crate) fn seek(&mut self, target: u32) -> bool {
        if self.last < target {
            return false;
        }
        while self.doc < target && !self.distances.is_empty() {
            self.doc = self.doc.saturating_add(take_varint(&mut self.distances) as u32);
        }
        self.doc >= target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_from_any_place() {
        let docs = [7, 8, 300, 70_000, u32::MAX - 1];
        let mut bytes = Vec::new();
        push_members(&docs, &mut bytes);
        for target in [0, 7, 8, 9, 300, 301, 70_000, 70_001, u32::MAX - 1, u32::MAX] {
            let mut members = Members::read(&bytes).expect("messages");
            let expected = docs.iter().copied().find(|doc| *doc >= target);
            let found = members.seek(target).then(|| members.doc());
            assert_eq!(found, expected, "{target}");
        }
        assert_eq!(Members::read(&[]), None);
        for cut in 1..bytes.len() {
            Members::read(&bytes[..cut]).expect("messages").seek(u32::MAX - 1);
        }
    }
}
