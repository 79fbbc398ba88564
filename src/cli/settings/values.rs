//! Values of flags and settings as people write them.

pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a whole number, such as 20".to_owned())
}

/// Parses a share as a number from 0 to 1 or as a percentage, such as `0.4` or `40%`. Returns whole percents.
pub(super) fn parse_share(text: &str) -> Option<u8> {
    let percent = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().ok(),
        None => text.trim().parse::<f64>().ok().map(|share| share * 100.0),
    };
    // NaN is in no range.
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent))?;
    Some(percent.round() as u8)
}

/// Parses a number of bytes with an optional K, M or G.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let factor = match text.bytes().last() {
        Some(b'K' | b'k') => 1 << 10,
        Some(b'M' | b'm') => 1 << 20,
        Some(b'G' | b'g') => 1 << 30,
        _ => 1,
    };
    let digits = if factor > 1 { &text[..text.len() - 1] } else { text };
    let size = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
    size.filter(|size| *size >= 16 << 20)
        .ok_or_else(|| "a size of 16M or more, such as 512M or 2G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_number_up_to_one_or_a_percentage() {
        for (text, percent) in [
            ("0", Some(0)),
            ("0.4", Some(40)),
            (".295", Some(30)),
            ("1", Some(100)),
            ("40%", Some(40)),
            (" 40 % ", Some(40)),
            ("100%", Some(100)),
            ("1.01", None),
            ("40", None),
            ("101%", None),
            ("-0.1", None),
            ("NaN", None),
            ("inf", None),
            ("%", None),
            ("", None),
            ("most", None),
        ] {
            assert_eq!(parse_share(text), percent, "{text:?}");
        }
    }
}
