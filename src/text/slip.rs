//! Slips of the keyboard: one letter too many, too few, or another one, or two the wrong way round.

/// The fewest letters of a word that is taken for a slip: of shorter ones too many are near others.
pub const LEAST: usize = 4;

/// Whether one of two words can have been meant by the other: they differ by one slip, not in the
/// first letter.
pub fn is_slip(one: &[u8], other: &[u8]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if long.len() - short.len() > 1 || short.first() != long.first() {
        return false;
    }
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[same..], &long[same..]);
    match (short, long) {
        ([], rest) => rest.len() == 1,
        (_, [_, rest @ ..]) if short.len() < long.len() => short == rest,
        ([a, b, rest @ ..], [c, d, others @ ..]) if (a, b) == (d, c) => rest == others,
        ([_, rest @ ..], [_, others @ ..]) => rest == others,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_and_no_more() {
        for (one, other, expected) in [
            ("turtel", "turtl", true),
            ("reciev", "receiv", true),
            ("borow", "borrow", true),
            ("chacker", "checker", true),
            ("deplo", "deploy", true),
            ("same", "same", false),
            ("house", "mouse", false),
            ("abcd", "acbe", false),
            ("abcdef", "badcef", false),
            ("abc", "abcde", false),
            ("", "", false),
            ("a", "", false),
        ] {
            assert_eq!(is_slip(one.as_bytes(), other.as_bytes()), expected, "{one} {other}");
            assert_eq!(is_slip(other.as_bytes(), one.as_bytes()), expected, "{other} {one}");
        }
    }
}
