//! Conversions between UUIDs as texts and as sixteen bytes, for message ids.

/// Returns the bytes of a UUID in the form that [`format_uuid`] writes: lower case with hyphens.
pub(super) fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    if text.len() != 36 {
        return None;
    }
    let is_parted = [8, 13, 18, 23].into_iter().all(|place| text[place] == b'-');
    let mut uuid = [0; 16];
    let mut all = 0;
    for (byte, place) in uuid.iter_mut().zip(UUID_PLACES) {
        let [high, low] = [text[place], text[place + 1]].map(|b| NIBBLES[usize::from(b)]);
        all |= high | low;
        *byte = high << 4 | low & 15;
    }
    (is_parted && all < 16).then_some(uuid)
}

/// The place of each byte's two digits in a UUID.
const UUID_PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// The value of each digit; 16 or more for other characters.
const NIBBLES: [u8; 256] = {
    let mut nibbles = [0xFF; 256];
    let mut digit = 0;
    while digit < 16 {
        nibbles[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    nibbles
};

/// Returns the text of a UUID: lower case with hyphens.
pub(super) fn format_uuid(uuid: &[u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; 36];
    for (byte, place) in uuid.iter().zip(UUID_PLACES) {
        text[place] = DIGITS[usize::from(byte >> 4)];
        text[place + 1] = DIGITS[usize::from(byte & 15)];
    }
    str::from_utf8(&text).expect("digits and hyphens are ASCII").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_back_the_same_is_a_uuid() {
        let uuid = "0123abcd-4567-4000-8000-89ef00ffeedd";
        assert_eq!(parse_uuid(uuid).map(|bytes| format_uuid(&bytes)).as_deref(), Some(uuid));
        for at in 0..uuid.len() {
            for other in ["-", "A", "g", "/", ":", "`", "\u{7f}"] {
                let mut text = uuid.to_owned();
                text.replace_range(at..=at, other);
                assert!(text == uuid || parse_uuid(&text).is_none(), "{text}");
            }
        }
        assert_eq!(parse_uuid("0123abcd456740008000 89ef00ffeedd"), None);
        assert_eq!(parse_uuid(&"é".repeat(18)), None);
    }
}
