//! Converts texts and numbers to instants, and instants to texts.

mod typed;

use chrono::{DateTime, NaiveDate};

pub use self::typed::{Typed, parse_typed};
use verbatim_base::model::Instant;

/// The start or the end of a period that a text names, such as a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The first instant of the period.
    Start,
    /// The last millisecond of the period.
    End,
}

/// Converts a number of seconds since 1970 to an instant; returns `None` if the number is not finite.
///
/// Uses the shortest decimal form of the number, so that a REAL 1700000000.1 and a text "1700000000.1" are
/// the same instant.
pub fn from_number(seconds: f64) -> Option<Instant> {
    if !seconds.is_finite() {
        return None;
    }
    from_decimal(&format!("{seconds}"))
}

/// Parses a time in a database: a decimal number of seconds, or ISO 8601.
pub fn from_stored(text: &str) -> Option<Instant> {
    let text = text.trim();
    from_decimal(text).or_else(|| parse_iso(text, Edge::Start))
}

/// Parses `[+-]digits[.digits][e[+-]digits]` as seconds since 1970, to the nanosecond.
fn from_decimal(text: &str) -> Option<Instant> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if let Some(at) = digits.find(['e', 'E']) {
        let exponent = digits[at + 1..].trim_start_matches(['+', '-']);
        let plain = is_digits(exponent) && from_decimal(&digits[..at]).is_some();
        return if plain { from_number(text.parse().ok()?) } else { None };
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty()
        || !whole.is_empty() && !is_digits(whole)
        || !fraction.is_empty() && !is_digits(fraction)
    {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i64>().unwrap_or(i64::MAX) };
    let nanos = nanos(fraction);
    Some(if sign < 0 && nanos > 0 {
        Instant { seconds: -whole - 1, nanos: 1_000_000_000 - nanos }
    } else {
        Instant { seconds: sign * whole, nanos }
    })
}

/// Parses an ISO 8601 date or date-time. For a date alone, `edge` selects the start or end of the period.
///
/// Accepts `YYYY`, `YYYY-MM`, `YYYY-Www`, `YYYY-MM-DD`, `YYYY-Www-D`, and a day followed by `T`, `t` or a space and
/// `HH:MM[:SS[.fraction]]`, with `Z`, `±HH`, `±HHMM` or `±HH:MM`. Also accepts the basic forms `YYYYMMDD`,
/// `YYYYWww`, `YYYYWwwD` and `HHMM[SS]`. No offset means UTC. The end of a date is its last millisecond.
pub fn parse_iso(text: &str, edge: Edge) -> Option<Instant> {
    let text = text.trim();
    if !text.is_ascii() {
        return None;
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let (first, next) = period(date, time.is_some())?;
    let Some(time) = time else {
        return match edge {
            Edge::Start => Some(Instant { seconds: midnight(first), nanos: 0 }),
            Edge::End => Some(Instant { seconds: midnight(next?) - 1, nanos: 999_000_000 }),
        };
    };
    let (clock, offset) = split_offset(time.trim_start())?;
    let (seconds, nanos) = parse_clock(clock)?;
    Some(Instant { seconds: midnight(first) + seconds - offset, nanos })
}

/// Returns the first day of the period that a date names, and the day after its last.
fn period(date: &str, day_required: bool) -> Option<(NaiveDate, Option<NaiveDate>)> {
    let bytes = date.as_bytes();
    if date.contains(['W', 'w']) {
        let (first, is_day) = period_in_week(date)?;
        let days = chrono::Days::new(if is_day { 1 } else { 7 });
        return if is_day || !day_required {
            Some((first, first.checked_add_days(days)))
        } else {
            None
        };
    }
    let (year, month, day) = match bytes.len() {
        10 if bytes[4] == b'-' && bytes[7] == b'-' => {
            (&date[..4], Some(&date[5..7]), Some(&date[8..]))
        }
        8 => (&date[..4], Some(&date[4..6]), Some(&date[6..])),
        7 if bytes[4] == b'-' => (&date[..4], Some(&date[5..]), None),
        4 => (date, None, None),
        _ => return None,
    };
    if day_required && day.is_none() {
        return None;
    }
    let month_number = month.map_or(Some(1), number)?;
    let day_number = day.map_or(Some(1), number)?;
    let first = NaiveDate::from_ymd_opt(number(year)? as i32, month_number, day_number)?;
    let next = match (month, day) {
        (_, Some(_)) => first.succ_opt(),
        (Some(_), None) => first.checked_add_months(chrono::Months::new(1)),
        (None, None) => first.checked_add_months(chrono::Months::new(12)),
    };
    Some((first, next))
}

/// Returns the first day of a week, `YYYY-Www` or `YYYYWww`, or a day of it, `YYYY-Www-D` or `YYYYWwwD`, and
/// whether the text names a day.
fn period_in_week(date: &str) -> Option<(NaiveDate, bool)> {
    let (year, rest) = date.split_at_checked(4)?;
    let (week, has_hyphens) = match rest.strip_prefix('-') {
        Some(week) => (week, true),
        None => (rest, false),
    };
    let (week, day) = week.strip_prefix(['W', 'w'])?.split_at_checked(2)?;
    let day = match (day, has_hyphens) {
        ("", _) => None,
        (day, true) => Some(day.strip_prefix('-')?),
        (day, false) => Some(day),
    };
    if day.is_some_and(|day| day.len() != 1) {
        return None;
    }
    let day_number = day.map_or(Some(1), number)? as u8;
    let weekday = chrono::Weekday::try_from(day_number.checked_sub(1)?).ok()?;
    let first = NaiveDate::from_isoywd_opt(number(year)? as i32, number(week)?, weekday)?;
    Some((first, day.is_some()))
}

/// Splits `HH:MM:SS+02:00` into the clock and the offset in seconds east of UTC.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else {
        return Some((time, 0));
    };
    let sign = if time.as_bytes()[at] == b'-' { -1 } else { 1 };
    let digits = time[at + 1..].replace(':', "");
    if !is_digits(&digits) || !matches!(digits.len(), 2 | 4) {
        return None;
    }
    let hours: i64 = digits[..2].parse().ok()?;
    let minutes: i64 = digits.get(2..4).map_or(Some(0), |part| part.parse().ok())?;
    if hours > 23 || minutes > 59 {
        return None;
    }
    Some((time[..at].trim_end(), sign * (hours * 3600 + minutes * 60)))
}

fn parse_clock(clock: &str) -> Option<(i64, u32)> {
    let (whole, fraction) = match clock.split_once(['.', ',']) {
        Some((_, fraction)) if !is_digits(fraction) => return None,
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (clock, None),
    };
    let parts: Vec<&str> = if whole.contains(':') {
        whole.split(':').collect()
    } else {
        (0..whole.len()).step_by(2).map(|at| &whole[at..whole.len().min(at + 2)]).collect()
    };
    if parts.iter().any(|part| part.len() != 2) {
        return None;
    }
    let numbers = parts.into_iter().map(number).collect::<Option<Vec<u32>>>()?;
    let [hours, minutes, seconds] = match (&numbers[..], fraction) {
        ([hours], None) => [*hours, 0, 0],
        ([hours, minutes], None) => [*hours, *minutes, 0],
        ([hours, minutes, seconds], _) => [*hours, *minutes, *seconds],
        _ => return None,
    };
    let nanos = fraction.map_or(0, nanos);
    let is_midnight = hours == 24 && minutes == 0 && seconds == 0 && nanos == 0;
    if (hours > 23 && !is_midnight) || minutes > 59 || seconds > 59 {
        return None;
    }
    Some((i64::from(hours * 3600 + minutes * 60 + seconds), nanos))
}

fn nanos(fraction: &str) -> u32 {
    let digits = &fraction[..fraction.len().min(9)];
    digits.bytes().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))
        * 10u32.pow(9 - digits.len() as u32)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(digits: &str) -> Option<u32> {
    if is_digits(digits) { digits.parse().ok() } else { None }
}

fn midnight(day: NaiveDate) -> i64 {
    day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp()
}

/// Returns an instant as `YYYY-MM-DD HH:MM` in UTC; `None` if it is outside the calendar's range.
pub fn to_minute(instant: Instant) -> Option<String> {
    let time = DateTime::from_timestamp(instant.seconds, instant.nanos)?;
    Some(time.format("%Y-%m-%d %H:%M").to_string())
}

/// Returns an instant in ISO 8601 with `Z`, with only as many fractional digits as needed.
pub fn to_iso(instant: Instant) -> Option<String> {
    let time = DateTime::from_timestamp(instant.seconds, instant.nanos)?;
    Some(time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, nanos: u32) -> Option<Instant> {
        Some(Instant { seconds, nanos })
    }

    #[test]
    fn stored_times() {
        let day = 1_705_276_800; // 2024-01-15
        for (text, expected) in [
            ("1700000000", at(1_700_000_000, 0)),
            (" 1700000000.25 ", at(1_700_000_000, 250_000_000)),
            ("1700000000.1234567", at(1_700_000_000, 123_456_700)),
            ("-1.5", at(-2, 500_000_000)),
            ("-2", at(-2, 0)),
            ("1.7e9", at(1_700_000_000, 0)),
            (".5", at(0, 500_000_000)),
            ("1700000000000", at(1_700_000_000_000, 0)),
            ("2024-01-15", at(day, 0)),
            ("2024-01-15T00:00:01Z", at(day + 1, 0)),
            ("2024-01-15 00:00:01.5", at(day + 1, 500_000_000)),
            ("2024-01-15T02:00:00+02:00", at(day, 0)),
            ("2024-01-14T19:00:00-0500", at(day, 0)),
            ("2024-01-15T00:00:00.123456+00:00", at(day, 123_456_000)),
            ("2024-01-14T24:00:00Z", at(day, 0)),
            ("", None),
            (".", None),
            ("-", None),
            ("None", None),
            ("1e", None),
            ("inf", None),
            ("NaN", None),
            ("2024-02-30", None),
            ("2024-01-15T25:00", None),
            ("2024-01-15T", None),
            ("2024-01T10:00", None),
            ("2024-01-15T10:00.5", None),
            ("1700000000.", at(1_700_000_000, 0)),
        ] {
            assert_eq!(from_stored(text), expected, "{text:?}");
        }
    }

    #[test]
    fn numbers_equal_their_text() {
        assert_eq!(from_number(1_700_000_000.123456), from_stored("1700000000.123456"));
        assert_eq!(from_number(f64::NAN), None);
        assert_eq!(from_number(1e300).map(|instant| instant.seconds), Some(i64::MAX));
    }

    #[test]
    fn ends_of_periods() {
        for (text, expected) in [
            ("2024-01-15", "2024-01-15T23:59:59.999Z"),
            ("2024-02", "2024-02-29T23:59:59.999Z"),
            ("2023", "2023-12-31T23:59:59.999Z"),
            ("2024-01-15T14:30", "2024-01-15T14:30:00Z"),
            ("20240115", "2024-01-15T23:59:59.999Z"),
            ("2025-W07-1", "2025-02-10T23:59:59.999Z"),
            ("2025W077", "2025-02-16T23:59:59.999Z"),
            ("2025-W07", "2025-02-16T23:59:59.999Z"),
            ("2020W53", "2021-01-03T23:59:59.999Z"),
            ("2025-W07-1T14:30", "2025-02-10T14:30:00Z"),
            ("2026-W40", "2026-10-04T23:59:59.999Z"),
            ("2026w01", "2026-01-04T23:59:59.999Z"),
            ("2026-w40-3", "2026-09-30T23:59:59.999Z"),
        ] {
            let end = parse_iso(text, Edge::End).expect(text);
            assert_eq!(to_iso(end).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "yesterday",
            "2024-13-01",
            "2024-1-5",
            "15/01/2024",
            "２０２４-01-15",
            "-",
            "2025-041",
            "2025041",
            "2025-W53",
            "2026-w60",
            "2025-W00",
            "2025-W07-8",
            "2025-W07-0",
            "2025W07-1",
            "2025-W071",
            "2025-W7-1",
            "W07-1",
            "2025-W07-",
            "2025-W07T10:00",
            "2024-01-15T14:30:60",
            "+025-W07",
        ] {
            assert_eq!(parse_iso(text, Edge::End), None, "{text}");
        }
    }

    #[test]
    fn decimals_come_back() {
        for text in ["1700000000.123456", "-1.5", "0", "-2", "1700000000", "-0.25"] {
            assert_eq!(from_stored(text).expect(text).to_decimal(), text);
        }
    }
}
