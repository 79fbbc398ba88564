//! Values of flags that several commands take.

/// Returns a count as a limit; 0 stands for no limit.
pub(super) fn limit(count: usize) -> usize {
    if count == 0 { usize::MAX } else { count }
}

/// Parses a number of bytes with an optional K, M or G.
pub(super) fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']) {
        Some(digits) => match text.as_bytes()[digits.len()].to_ascii_uppercase() {
            b'K' => (digits, 1 << 10),
            b'M' => (digits, 1 << 20),
            _ => (digits, 1 << 30),
        },
        None => (text, 1),
    };
    let size = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
    size.filter(|size| *size >= 16 << 20)
        .ok_or_else(|| "a size of 16M or more, such as 512M or 2G".to_owned())
}
