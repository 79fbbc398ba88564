//! Numbers in as few bytes as they need: seven bits a byte from the lowest, the top bit for more
//! (LEB128).

pub(super) fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the front of `bytes`; what is cut off in the middle ends there.
#[inline]
pub(super) fn take_varint(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << (shift & 63);
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
    }
    number
}
