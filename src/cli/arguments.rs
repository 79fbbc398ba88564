//! Values of flags that several commands take.

/// Returns a count as a limit; 0 stands for no limit.
pub(super) fn limit(count: usize) -> usize {
    if count == 0 { usize::MAX } else { count }
}

/// Parses a count of messages, conversations or lines.
pub(super) fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a whole number, such as 20".to_owned())
}

/// Parses a number of threads.
pub(super) fn threads(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|number| (1..=256).contains(number));
    number.ok_or_else(|| "write a number from 1 to 256".to_owned())
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
