//! A hash function that stays the same in every version of the program, because hashes are stored in files.

/// Returns the 64-bit FNV-1a hash of some bytes.
///
/// Source: Fowler, Noll and Vo, `draft-eastlake-fnv`. The standard library's hashers are not stable, so
/// stored data must not depend on them.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = Fnv1a::default();
    hash.write(bytes);
    hash.finish()
}

/// A 64-bit FNV-1a hasher for several values, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Fnv1a {
        Fnv1a(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv1a {
    /// Adds bytes, without their number: `ab` then `c` gives the same hash as `a` then `bc`.
    pub fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Adds a text and its length, so that `ab` and `c` differ from `a` and `bc`.
    pub fn write_text(&mut self, text: &str) {
        self.write(&(text.len() as u64).to_le_bytes());
        self.write(text.as_bytes());
    }

    /// Returns the hash of everything added so far.
    pub fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn texts_are_told_apart_by_their_lengths() {
        let of = |texts: &[&str]| {
            let mut hash = Fnv1a::default();
            texts.iter().for_each(|text| hash.write_text(text));
            hash.finish()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
    }
}
