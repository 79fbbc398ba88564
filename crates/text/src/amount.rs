//! Formats numbers for people.

/// Returns a number with thousands separators: `2,000`.
pub fn grouped(number: impl TryInto<u64>) -> String {
    let digits = clamp_to_u64(number).to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns a number with its unit: `1 message`, `2,000 messages`.
pub fn counted(number: impl TryInto<u64>, unit: &str) -> String {
    let number = clamp_to_u64(number);
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {unit}{plural}", grouped(number))
}

fn clamp_to_u64(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

/// Returns a size in bytes with a unit: `340 KB`, `214 MB`, `1.2 GB`.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        1_000_000..10_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
