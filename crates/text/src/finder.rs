//! Finds a run of characters in bytes: the inner loop of verification.

use memchr::{memchr2, memmem};

/// A run of characters without wildcards, prepared for fast search.
#[derive(Debug)]
pub(super) enum Literal {
    /// Bytes to compare exactly: they have no ASCII letters, or the pattern is case-sensitive.
    Exact(Box<memmem::Finder<'static>>),
    Letter(u8),
    /// Bytes to compare in either ASCII case. The search probes the two bytes that are probably rarest.
    Folded {
        bytes: Vec<u8>,
        first: ByteProbe,
        second: ByteProbe,
    },
}

/// A test for one byte of a literal, in any case of its letter.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteProbe {
    pub(super) place: usize,
    byte: u8,
    /// The bits in which the cases differ; 0 for a letter without cases. With several such bits, the probe
    /// may also find bytes of other letters.
    bits: u8,
}

impl ByteProbe {
    /// Returns the probe for a place of a lower-case literal. Only ASCII letters match in both cases.
    fn new(bytes: &[u8], place: usize) -> ByteProbe {
        let byte = bytes[place];
        ByteProbe { place, byte, bits: if byte.is_ascii_alphabetic() { 0x20 } else { 0 } }
    }

    /// Returns the probe for a place that may have any of `bytes`.
    pub(super) fn any_of(place: usize, bytes: &[u8]) -> ByteProbe {
        let byte = bytes.iter().fold(0, |all, byte| all | byte);
        ByteProbe { place, byte, bits: bytes.iter().fold(0, |bits, other| bits | (byte ^ other)) }
    }

    /// Returns a rank of how many bytes of a text the probe finds: the higher, the more.
    pub(super) fn frequency(self) -> u32 {
        /// A bit that may be 0 or 1 doubles the number of bytes that the probe finds, approximately.
        const OF_BIT: u32 = 8;

        u32::from(frequency(self.byte)) + OF_BIT * self.bits.count_ones()
    }

    #[inline]
    fn accepts(self, byte: u8) -> bool {
        byte | self.bits == self.byte
    }
}

const STRIDE: usize = 64;

impl Literal {
    pub(super) fn new(run: &str, case_sensitive: bool) -> Literal {
        if case_sensitive || !run.bytes().any(|byte| byte.is_ascii_alphabetic()) {
            return Literal::Exact(Box::new(memmem::Finder::new(run).into_owned()));
        }
        let bytes = lowered(run, false);
        if let [letter] = bytes[..] {
            return Literal::Letter(letter);
        }
        let mut places: Vec<usize> = (0..bytes.len()).collect();
        places.sort_by_key(|place| frequency(bytes[*place]));
        places[..2].sort_unstable();
        Literal::Folded {
            first: ByteProbe::new(&bytes, places[0]),
            second: ByteProbe::new(&bytes, places[1]),
            bytes,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Literal::Exact(finder) => finder.needle().len(),
            Literal::Letter(_) => 1,
            Literal::Folded { bytes, .. } => bytes.len(),
        }
    }

    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        let (bytes, first, second) = match self {
            Literal::Exact(finder) => return finder.find(text),
            Literal::Letter(letter) => {
                return memchr2(*letter, letter.to_ascii_uppercase(), text);
            }
            Literal::Folded { bytes, first, second } => (bytes, *first, *second),
        };
        find_probed(text, bytes.len(), first, second, |start| {
            text[start..start + bytes.len()].eq_ignore_ascii_case(bytes)
        })
    }
}

/// Returns the leftmost place where `length` bytes match. Calls `is_match` only where both probes find their
/// bytes. `first` must be to the left of `second`.
#[inline]
pub(super) fn find_probed(
    text: &[u8],
    length: usize,
    first: ByteProbe,
    second: ByteProbe,
    is_match: impl Fn(usize) -> bool,
) -> Option<usize> {
    // A match may begin at any of `starts` places. The two slices have the two probed bytes for each place.
    let starts = (text.len() + 1).checked_sub(length)?;
    let firsts = &text[first.place..first.place + starts];
    let seconds = &text[second.place..second.place + starts];
    let (chunks, rest) = firsts.as_chunks::<STRIDE>();
    let (beside, rest_beside) = seconds.as_chunks::<STRIDE>();
    for (number, (a, b)) in chunks.iter().zip(beside).enumerate() {
        let mut places = agreeing(a, first, b, second);
        while places != 0 {
            let start = number * STRIDE + places.trailing_zeros() as usize;
            if is_match(start) {
                return Some(start);
            }
            places &= places - 1;
        }
    }
    let after = chunks.len() * STRIDE;
    rest.iter().zip(rest_beside).zip(after..).find_map(|((a, b), start)| {
        let agrees = first.accepts(*a) && second.accepts(*b);
        if agrees && is_match(start) { Some(start) } else { None }
    })
}

/// Returns a bit for each place: whether both probes find their bytes there.
///
/// The loop has no branches, so that the compiler can vectorise it on any processor.
#[inline]
fn agreeing(a: &[u8; STRIDE], first: ByteProbe, b: &[u8; STRIDE], second: ByteProbe) -> u64 {
    let mut both = [0u8; STRIDE];
    for ((both, a), b) in both.iter_mut().zip(a).zip(b) {
        *both = u8::from(first.accepts(*a) & second.accepts(*b));
    }
    // Most strides have no place, and gathering takes longer than the comparison.
    if both.iter().fold(0, |any, place| any | place) == 0 {
        return 0;
    }
    let (words, _) = both.as_chunks::<8>();
    let mut places = 0;
    for (place, word) in words.iter().enumerate() {
        // Gathers the lowest bits of eight bytes into the highest byte of the product.
        let bits = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        places |= bits << (8 * place);
    }
    places
}

/// Returns a rank of how often a byte occurs in prose, code and ids: the higher, the more often.
///
/// The rank affects only the speed of a search.
pub(super) fn frequency(byte: u8) -> u8 {
    const BY_FREQUENCY: &[u8] = b" etaoinsrlhdcumpfgybw.v,k\n0-1/_2:\"3x=4()5'86970j;qz*`{}<>";
    match BY_FREQUENCY.iter().position(|known| *known == byte) {
        Some(place) => 250 - 2 * place as u8,
        // Most characters of a script share their first byte.
        None if byte >= 0xC0 => 240,
        None if byte >= 0x80 => 120,
        None => 40,
    }
}

pub(super) fn lowered(run: &str, case_sensitive: bool) -> Vec<u8> {
    if case_sensitive { run.as_bytes().to_vec() } else { run.to_ascii_lowercase().into_bytes() }
}
