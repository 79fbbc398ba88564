//! Variable-length numbers (LEB128): seven bits per byte, the lowest bits first. The top bit means that
//! another byte follows.

/// Appends a number to `out`, in 1 to 10 bytes.
pub fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the front of `bytes`. If its last byte is missing, the number ends with `bytes`.
#[inline]
pub fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    let mut shift = 0;
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
