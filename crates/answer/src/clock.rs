//! Shows times to people, and parses the times that people write.

use chrono::{
    DateTime, Datelike, FixedOffset, Local, NaiveDateTime, Offset, TimeDelta, TimeZone, Utc,
};

use verbatim_base::model::Instant;
use verbatim_text::date::{self, Edge, Typed};

/// A clock that shows and parses times, in the time zone of this computer or in UTC.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    is_local: bool,
    now: DateTime<FixedOffset>,
}

impl Clock {
    /// Returns a clock in the time zone of this computer, or in UTC.
    pub fn new(is_local: bool) -> Clock {
        let now = Utc::now();
        Clock { is_local, now: in_zone(is_local, now) }
    }

    /// Returns the current name of the time zone.
    pub fn zone(self) -> String {
        if self.is_local { self.now.format("UTC%:z").to_string() } else { "UTC".to_owned() }
    }

    /// Returns the month of a time, as `2025-01`.
    pub fn month(self, instant: Instant) -> Option<String> {
        Some(self.of_instant(instant)?.format("%Y-%m").to_string())
    }

    fn at(self, time: DateTime<Utc>) -> DateTime<FixedOffset> {
        in_zone(self.is_local, time)
    }

    fn of_instant(self, instant: Instant) -> Option<DateTime<FixedOffset>> {
        Some(self.at(DateTime::from_timestamp(instant.seconds, instant.nanos)?))
    }

    /// Returns a time in words, such as `today 09:18` or `18 Nov 2023`.
    pub fn words(self, instant: Option<Instant>) -> String {
        self.in_words(instant, ["%a %-d %b", "%-d %b %Y"])
    }

    /// Returns a time in words with its hour, such as `today 09:18` or `18 Nov 2023, 09:18`.
    pub fn words_and_hour(self, instant: Option<Instant>) -> String {
        self.in_words(instant, ["%a %-d %b, %H:%M", "%-d %b %Y, %H:%M"])
    }

    fn in_words(self, instant: Option<Instant>, [this_year, other_year]: [&str; 2]) -> String {
        let Some(time) = instant.and_then(|instant| self.of_instant(instant)) else {
            return "(no time)".to_owned();
        };
        let days = self.now.date_naive().signed_duration_since(time.date_naive()).num_days();
        match days {
            0 => time.format("today %H:%M").to_string(),
            1 => time.format("yesterday %H:%M").to_string(),
            _ if time.year() == self.now.year() => time.format(this_year).to_string(),
            _ => time.format(other_year).to_string(),
        }
    }

    /// Returns a time to the minute, such as `2023-11-18 09:18`.
    pub fn minute(self, instant: Instant) -> Option<String> {
        Some(self.of_instant(instant)?.format("%Y-%m-%d %H:%M").to_string())
    }

    /// Returns the hour of a time in its week; hour 0 begins on Monday at 0:00.
    pub fn hour_of_week(self, instant: Instant) -> i64 {
        /// The seconds from Monday 0:00 to Thursday 0:00: the Unix epoch began on a Thursday.
        const THURSDAY: i64 = 3 * 86_400;
        const WEEK: i64 = 7 * 86_400;

        let offset = self.of_instant(instant).map_or(0, |time| time.offset().local_minus_utc());
        let seconds = instant.seconds.saturating_add(THURSDAY + i64::from(offset));
        seconds.rem_euclid(WEEK) / 3_600
    }

    /// Returns the day of a time, counted from 1970-01-01.
    pub fn day(self, instant: Instant) -> i64 {
        let offset = self.of_instant(instant).map_or(0, |time| time.offset().local_minus_utc());
        Instant { seconds: instant.seconds.saturating_add(offset.into()), ..instant }.day()
    }

    /// Returns a time as ISO 8601 with its offset.
    pub fn iso(self, instant: Instant) -> Option<String> {
        let time = self.of_instant(instant)?;
        Some(time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true))
    }

    /// Parses the start or the end of a time range: ISO 8601, or what people type, such as `7d`,
    /// `last week` or `nov 2025`.
    pub fn parse(self, text: &str, edge: Edge) -> Result<Instant, String> {
        let text = text.trim();
        if let Some(parsed) = date::parse_iso(text, edge) {
            return Ok(if has_offset(text) { parsed } else { self.at_wall(parsed, edge) });
        }
        let time = match date::parse_typed(text, self.now.naive_local(), edge)? {
            Some(Typed::Wall(wall)) => Some(self.at_wall(of_utc(wall.and_utc()), edge)),
            Some(Typed::Ago(length)) => {
                self.now.checked_sub_signed(length).map(|time| of_utc(time.to_utc()))
            }
            None => None,
        };
        time.ok_or_else(|| {
            format!(
                "{text:?} is not a date; write 7d, 3months, yesterday, monday, last week, nov 2025, \
                 2025, 2025-01, 2025-01-31 or 2025-01-31T14:30 (ISO 8601)"
            )
        })
    }

    /// Returns the instant of a local time; `wall` holds the local time as if it were UTC.
    fn at_wall(self, wall: Instant, edge: Edge) -> Instant {
        let naive: Option<NaiveDateTime> =
            DateTime::from_timestamp(wall.seconds, wall.nanos).map(|time| time.naive_utc());
        let Some(naive) = naive.filter(|_| self.is_local) else { return wall };
        // When the clocks go back, a local time comes twice, and has the offset of either side. When they
        // go forward, a local time is skipped: then the offset before gives the time as much later.
        let [before, after] = [-1, 1].map(|days| {
            let offset = local_offset(naive.checked_add_signed(TimeDelta::days(days))?);
            Some((naive.checked_sub_offset(offset)?, offset))
        });
        let times = [before, after].into_iter().flatten();
        let times = times.filter(|(time, offset)| local_offset(*time) == *offset);
        let times = times.map(|(time, _)| time);
        let time = match edge {
            Edge::Start => times.min(),
            Edge::End => times.max(),
        };
        let time = time.or(before.map(|(time, _)| time));
        time.map_or(wall, |time| of_utc(time.and_utc()))
    }
}

fn local_offset(time: NaiveDateTime) -> FixedOffset {
    Local.offset_from_utc_datetime(&time).fix()
}

fn of_utc(time: DateTime<Utc>) -> Instant {
    Instant { seconds: time.timestamp(), nanos: time.timestamp_subsec_nanos() }
}

/// Returns whether a date-time has a UTC offset.
fn has_offset(text: &str) -> bool {
    let clock = text.find(['T', 't', ' ']).map_or("", |at| &text[at + 1..]);
    clock.contains(['Z', 'z', '+', '-'])
}

fn in_zone(is_local: bool, time: DateTime<Utc>) -> DateTime<FixedOffset> {
    if is_local { time.with_timezone(&Local).fixed_offset() } else { time.fixed_offset() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        let now = DateTime::parse_from_rfc3339("2026-11-22T09:30:00Z").unwrap();
        Clock { is_local: false, now: now.fixed_offset() }
    }

    #[test]
    fn times_in_words() {
        for (time, expected) in [
            ("2026-11-22T00:00:00Z", "today 00:00"),
            ("2026-11-21T23:59:00Z", "yesterday 23:59"),
            ("2026-11-18T10:00:00Z", "Wed 18 Nov"),
            ("2026-12-24T10:00:00Z", "Thu 24 Dec"),
            ("2025-11-22T09:30:00Z", "22 Nov 2025"),
        ] {
            let instant = date::parse_iso(time, Edge::Start);
            assert_eq!(clock().words(instant), expected);
        }
        assert_eq!(clock().words(None), "(no time)");
    }

    #[test]
    fn hours_of_a_week() {
        for (time, expected) in [
            ("2026-11-16T00:00:00Z", 0),
            ("2026-11-22T23:59:59Z", 167),
            ("1969-12-29T01:00:00Z", 1),
        ] {
            let instant = date::parse_iso(time, Edge::Start).unwrap();
            assert_eq!(clock().hour_of_week(instant), expected, "{time}");
        }
    }

    #[test]
    fn dates_as_people_write_them() {
        for (text, edge, expected) in [
            ("7d", Edge::Start, "2026-11-15T09:30:00Z"),
            ("2w", Edge::Start, "2026-11-08T09:30:00Z"),
            ("12h", Edge::End, "2026-11-21T21:30:00Z"),
            ("today", Edge::Start, "2026-11-22T00:00:00Z"),
            ("Yesterday", Edge::Start, "2026-11-21T00:00:00Z"),
            ("yesterday", Edge::End, "2026-11-21T23:59:59.999Z"),
            ("2025-01", Edge::End, "2025-01-31T23:59:59.999Z"),
            ("last week", Edge::Start, "2026-11-09T00:00:00Z"),
            ("last week", Edge::End, "2026-11-15T23:59:59.999Z"),
            ("3 months ago", Edge::End, "2026-08-22T09:30:00Z"),
            ("2025-01-31T14:30+02:00", Edge::Start, "2025-01-31T12:30:00Z"),
        ] {
            let parsed = clock().parse(text, edge).unwrap();
            assert_eq!(clock().iso(parsed).as_deref(), Some(expected), "{text}");
        }
        for wrong in
            ["45.01.2025", "", "-7d", "d", "7", "tomorrow", "99999999999999d", "100000000d"]
        {
            let error = clock().parse(wrong, Edge::Start).unwrap_err();
            assert!(error.contains("2025-01-31") && error.contains("7d"), "{error}");
        }
        let error = clock().parse("26/11/2026", Edge::Start).unwrap_err();
        assert!(error.ends_with("write 2026-11-26"), "{error}");
    }
}
