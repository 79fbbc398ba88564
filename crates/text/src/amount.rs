//! Formats numbers for people.

use std::time::Duration;

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

/// Returns a duration for people: `0.4 s`, `41 s`, `3 min 5 s`, `1 h 2 min`.
pub fn duration(length: Duration) -> String {
    let seconds = length.as_secs_f64();
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 2.0 => format!("{:.1} s", seconds.max(0.1)),
        0..120 => format!("{whole} s"),
        120..7_200 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
    }
}
