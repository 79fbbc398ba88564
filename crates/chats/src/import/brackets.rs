//! Finds the brackets of a JSON text, 64 bytes at a time.
//!
//! The method is the first stage of simdjson (Langdale and Lemire, "Parsing gigabytes of JSON per second",
//! 2019). One difference: outside strings a backslash has no meaning, because damaged exports contain such
//! backslashes.

use std::ops::ControlFlow;

use wide::u8x16;

const BLOCK: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BracketScan {
    pub(super) at: usize,
    in_string: bool,
    /// Whether the next byte belongs to an escape sequence.
    is_escaped: bool,
}

impl BracketScan {
    /// Returns a scan from a place outside strings.
    pub(super) fn new(at: usize) -> BracketScan {
        BracketScan { at, ..BracketScan::default() }
    }

    /// Calls `found` with the place and the byte of each bracket outside strings, up to the end of `bytes`
    /// or until `found` breaks off.
    pub(super) fn go_on<T>(
        &mut self,
        bytes: &[u8],
        mut found: impl FnMut(usize, u8) -> ControlFlow<T>,
    ) -> ControlFlow<T> {
        while let Some(rest) = bytes.get(self.at..).filter(|rest| !rest.is_empty()) {
            let block = &rest[..rest.len().min(BLOCK)];
            let quick = block.first_chunk().and_then(|block| self.brackets(block));
            let mut brackets = quick.unwrap_or_else(|| self.brackets_by_bytes(block));
            while brackets != 0 {
                let at = self.at + brackets.trailing_zeros() as usize;
                found(at, bytes[at])?;
                brackets &= brackets - 1;
            }
            self.at += block.len();
        }
        ControlFlow::Continue(())
    }

    /// Returns a bit for each bracket outside strings; `None` if a backslash is outside strings.
    fn brackets(&mut self, block: &[u8; BLOCK]) -> Option<u64> {
        let [mut quotes, mut backslashes, mut brackets] = [0; 3];
        for (part, bytes) in block.as_chunks().0.iter().enumerate() {
            let bytes = u8x16::new(*bytes);
            let bits = |found: u8x16| u64::from(found.to_bitmask()) << (16 * part);
            quotes |= bits(bytes.simd_eq(u8x16::splat(b'"')));
            backslashes |= bits(bytes.simd_eq(u8x16::splat(b'\\')));
            // This bit turns square brackets into braces, and no other byte into a brace.
            let braces = bytes | u8x16::splat(b'{' ^ b'[');
            let either = braces.simd_eq(u8x16::splat(b'{')) | braces.simd_eq(u8x16::splat(b'}'));
            brackets |= bits(either);
        }
        let mut escaped = u64::from(self.is_escaped);
        let mut left = backslashes & !escaped;
        let mut is_escaped = false;
        while left != 0 {
            let first = left & left.wrapping_neg();
            escaped |= first << 1;
            left &= !(first | first << 1);
            is_escaped = first >> (BLOCK - 1) == 1;
        }
        // Each bit becomes the parity of the quotes up to its place.
        let mut strings = quotes & !escaped;
        for shift in [1, 2, 4, 8, 16, 32] {
            strings ^= strings << shift;
        }
        if self.in_string {
            strings = !strings;
        }
        if backslashes & !strings != 0 {
            return None;
        }
        (self.in_string, self.is_escaped) = (strings >> (BLOCK - 1) == 1, is_escaped);
        Some(brackets & !strings)
    }

    /// Does the same for at most 64 bytes of any kind.
    fn brackets_by_bytes(&mut self, block: &[u8]) -> u64 {
        let mut brackets = 0;
        for (place, byte) in block.iter().enumerate() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' | b'}' | b']' if !self.in_string => brackets |= 1 << place,
                _ => {}
            }
        }
        brackets
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn all(parts: &[&[u8]], mut scan: BracketScan) -> Vec<usize> {
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        for part in parts {
            bytes.extend_from_slice(part);
            let flow = scan.go_on(&bytes, |at, _| {
                places.push(at);
                ControlFlow::<()>::Continue(())
            });
            assert!(flow.is_continue());
        }
        places
    }

    proptest! {
        #[test]
        fn blocks_find_what_bytes_find(
            pieces in vec(prop_oneof![
                8 => Just("\""), 3 => Just("\\"), 2 => Just("{"), 2 => Just("]"), 1 => Just("\\\\"),
                4 => Just("some text"), 1 => Just("\\u00e9"), 1 => Just("É["), 1 => Just("a: [1, 2],"),
            ], 0..200),
            cut in 0..1000usize,
        ) {
            let text = pieces.concat();
            let mut by_bytes = BracketScan::default();
            let mut expected = Vec::new();
            for at in 0..text.len() {
                if by_bytes.brackets_by_bytes(&text.as_bytes()[at..=at]) == 1 {
                    expected.push(at);
                }
            }
            let (first, second) = text.as_bytes().split_at(cut.min(text.len()));
            prop_assert_eq!(all(&[first, second], BracketScan::default()), expected);
        }
    }
}
