//! Parses the dates and durations that people type, such as `last monday`, `3 months ago` or `nov 2025`.

use chrono::{
    Datelike, Days, Month, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Weekday,
};

use super::{Edge, is_digits, number};

/// A moment that a person typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// A date and a time of day, in the time zone of the person.
    Wall(NaiveDateTime),
    /// This much before now.
    Ago(TimeDelta),
}

/// The numbers that are typed as words; `a` is 1 too.
const NUMBERS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

/// Words that change nothing, as in `the 3rd of November at 14:30`.
const EMPTY_WORDS: [&str; 8] = ["st", "nd", "rd", "th", "of", "and", "the", "at"];

#[derive(Clone, Copy, Debug)]
enum Unit {
    Months(u32),
    Exact(TimeDelta),
}

/// Parses what a person typed; `now` is the present in the person's time zone. Of a period such as
/// `last week`, `edge` selects the start or the end. Returns `None` if the text is no date; the error
/// says what to type in place of a form that can mean several dates.
pub fn parse_typed(text: &str, now: NaiveDateTime, edge: Edge) -> Result<Option<Typed>, String> {
    let text = text.trim().to_lowercase();
    if text.starts_with('-') {
        return Ok(None);
    }
    if let Some(dates) = in_numbers(&text, now.date()) {
        return Err(format!("{text:?} is not a date of ISO 8601; write {dates}"));
    }
    let tokens = tokens(&text);
    let mut words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    if let [number, "m", rest @ ..] = words.as_slice()
        && is_digits(number)
        && matches!(rest, [] | ["ago"])
    {
        return Err(format!(
            "{text:?} may mean months or minutes; write {number}months or {number}min"
        ));
    }
    if let Some(typed) = before_now(&words, now, edge) {
        return Ok(Some(typed));
    }
    let clock = words.last().filter(|word| word.contains(':')).map(|word| clock(word));
    if clock.is_some() {
        words.pop();
    }
    let Some((first, next)) = period(&words, now.date()) else { return Ok(None) };
    let wall = match (clock, edge) {
        (Some(Some(time)), _) if first.succ_opt() == Some(next) => Some(first.and_time(time)),
        (Some(_), _) => None,
        (None, Edge::Start) => Some(first.and_time(NaiveTime::MIN)),
        (None, Edge::End) => {
            next.and_time(NaiveTime::MIN).checked_sub_signed(TimeDelta::milliseconds(1))
        }
    };
    Ok(wall.map(Typed::Wall))
}

/// Splits a text into words and numbers, such as `3` and `months`. A time of day is one word.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in text.chars() {
        if c.is_whitespace() || [',', '.', '-', '/'].contains(&c) {
            last = ' ';
            continue;
        }
        let goes_on = match c {
            ':' => last.is_ascii_digit(),
            _ if c.is_ascii_digit() => last.is_ascii_digit() || last == ':',
            _ => last.is_alphabetic(),
        };
        match tokens.last_mut() {
            Some(token) if goes_on => token.push(c),
            _ => tokens.push(c.to_string()),
        }
        last = c;
    }
    tokens.retain(|token| !EMPTY_WORDS.contains(&token.as_str()));
    tokens
}

/// Parses a duration before now: `3 months`, `1y`, `2 weeks ago`, `1h 30min`, `last 7 days`, `now`.
fn before_now(words: &[&str], now: NaiveDateTime, edge: Edge) -> Option<Typed> {
    let words = match words {
        ["now"] => return Some(Typed::Ago(TimeDelta::zero())),
        ["last" | "past", rest @ ..] => {
            // The end of the last 7 days is now.
            let typed = if rest.len() > 1 { before_now(rest, now, edge)? } else { return None };
            return Some(if edge == Edge::End { Typed::Ago(TimeDelta::zero()) } else { typed });
        }
        [words @ .., "ago"] => words,
        words => words,
    };
    let (pairs, rest) = words.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return None;
    }
    let mut months = 0_u32;
    let mut exact = TimeDelta::zero();
    for [number, name] in pairs {
        let number = count(number)?;
        match unit(name)? {
            Unit::Months(of_one) => months = months.checked_add(number.checked_mul(of_one)?)?,
            Unit::Exact(of_one) => {
                exact = exact.checked_add(&of_one.checked_mul(number.try_into().ok()?)?)?;
            }
        }
    }
    if months == 0 {
        return Some(Typed::Ago(exact));
    }
    let wall = now.checked_sub_months(Months::new(months))?.checked_sub_signed(exact)?;
    Some(Typed::Wall(wall))
}

fn count(word: &str) -> Option<u32> {
    match NUMBERS.iter().position(|name| *name == word) {
        Some(at) => Some(at as u32 + 1),
        None if ["a", "an"].contains(&word) => Some(1),
        None => number(word),
    }
}

fn unit(name: &str) -> Option<Unit> {
    Some(match name {
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Exact(TimeDelta::seconds(1)),
        "min" | "mins" | "minute" | "minutes" => Unit::Exact(TimeDelta::minutes(1)),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Exact(TimeDelta::hours(1)),
        "d" | "day" | "days" => Unit::Exact(TimeDelta::days(1)),
        "w" | "wk" | "wks" | "week" | "weeks" => Unit::Exact(TimeDelta::weeks(1)),
        "mo" | "mos" | "mth" | "mths" | "month" | "months" => Unit::Months(1),
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Months(12),
        _ => return None,
    })
}

fn clock(word: &str) -> Option<NaiveTime> {
    let formats = ["%H:%M", "%H:%M:%S"];
    formats.iter().find_map(|format| NaiveTime::parse_from_str(word, format).ok())
}

/// Returns the period that words name: its first day, and the day after its last.
fn period(words: &[&str], today: NaiveDate) -> Option<(NaiveDate, NaiveDate)> {
    let monday =
        today.checked_sub_days(Days::new(today.weekday().num_days_from_monday().into()))?;
    let this_month = today.with_day(1)?;
    let this_year = this_month.with_month(1)?;
    match words {
        ["today"] => days(today, 1),
        ["yesterday"] => days(today.pred_opt()?, 1),
        ["this", "week"] => days(monday, 7),
        ["last", "week"] => days(monday.checked_sub_days(Days::new(7))?, 7),
        ["this", "month"] => months(this_month, 1),
        ["last", "month"] => months(this_month.checked_sub_months(Months::new(1))?, 1),
        ["this", "year"] => months(this_year, 12),
        ["last", "year"] => months(this_year.checked_sub_months(Months::new(12))?, 12),
        ["last", name] if month(name).is_some() => {
            months(latest(month(name)?, 1, this_month.pred_opt()?)?, 1)
        }
        [name] | ["last", name] if weekday(name).is_some() => {
            let back = (today.weekday().num_days_from_monday() + 7
                - weekday(name)?.num_days_from_monday())
                % 7;
            days(today.checked_sub_days(Days::new(if back == 0 { 7 } else { back.into() }))?, 1)
        }
        [name] if month(name).is_some() => months(latest(month(name)?, 1, today)?, 1),
        [name, year] | [year, name] if month(name).is_some() && parse_year(year).is_some() => {
            months(NaiveDate::from_ymd_opt(parse_year(year)?, month(name)?, 1)?, 1)
        }
        [name, day] | [day, name] if month(name).is_some() => {
            days(latest(month(name)?, parse_day(day)?, today)?, 1)
        }
        [name, day, year] | [day, name, year] | [year, name, day] if month(name).is_some() => {
            days(NaiveDate::from_ymd_opt(parse_year(year)?, month(name)?, parse_day(day)?)?, 1)
        }
        // The name of a day before a date must be that of the date.
        [name, date @ ..] if !date.is_empty() && weekday(name).is_some() => {
            let (first, next) = period(date, today)?;
            (first.succ_opt() == Some(next) && Some(first.weekday()) == weekday(name))
                .then_some((first, next))
        }
        _ => None,
    }
}

fn days(first: NaiveDate, count: u64) -> Option<(NaiveDate, NaiveDate)> {
    Some((first, first.checked_add_days(Days::new(count))?))
}

fn months(first: NaiveDate, count: u32) -> Option<(NaiveDate, NaiveDate)> {
    Some((first, first.checked_add_months(Months::new(count))?))
}

fn latest(month: u32, day: u32, limit: NaiveDate) -> Option<NaiveDate> {
    // The 29th of February may be up to eight years ago.
    let years = (0..=8).map(|back| limit.year() - back);
    let mut days = years.filter_map(|year| NaiveDate::from_ymd_opt(year, month, day));
    days.find(|day| *day <= limit)
}

fn month(name: &str) -> Option<u32> {
    // chrono knows the full names, and those of three letters.
    match name {
        "sept" => Some(9),
        _ => name.parse().ok().map(|month: Month| month.number_from_month()),
    }
}

fn weekday(name: &str) -> Option<Weekday> {
    match name {
        "tues" => Some(Weekday::Tue),
        "weds" => Some(Weekday::Wed),
        "thur" | "thurs" => Some(Weekday::Thu),
        _ => name.parse().ok(),
    }
}

fn parse_year(word: &str) -> Option<i32> {
    if word.len() == 4 { number(word).map(|year| year as i32) } else { None }
}

fn parse_day(word: &str) -> Option<u32> {
    if word.len() <= 2 { number(word) } else { None }
}

/// Returns the dates that a text of numbers such as `26/11/2026` can mean, in ISO 8601, joined by `or`.
fn in_numbers(text: &str, today: NaiveDate) -> Option<String> {
    let separator = text.chars().find(|c| ['/', '.', '-'].contains(c))?;
    let parts: Vec<&str> =
        text.split(separator).map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| part.len() > 4) {
        return None;
    }
    let numbers = parts.iter().map(|part| number(part)).collect::<Option<Vec<u32>>>()?;
    let this_year = today.year() as u32;
    let [one, other] = match numbers[..] {
        [year, a, b] if parts[0].len() == 4 => {
            [iso_date(year, a, b), if a > 12 { iso_date(year, b, a) } else { None }]
        }
        [a, b, year] => {
            let year = match parts[2].len() {
                // Two digits of a year are of this century, because there were no chats before.
                1 | 2 => this_year / 100 * 100 + year,
                4 => year,
                _ => return None,
            };
            [iso_date(year, b, a), iso_date(year, a, b)]
        }
        [year, month] if parts[0].len() == 4 => [iso_month(year, month), None],
        [month, year] if parts[1].len() == 4 => [iso_month(year, month), None],
        [a, b] => [iso_date(this_year, b, a), iso_date(this_year, a, b)],
        _ => return None,
    };
    match (one, other) {
        (Some(one), Some(other)) if one != other => Some(format!("{one} or {other}")),
        (one, other) => one.or(other),
    }
}

fn iso_date(year: u32, month: u32, day: u32) -> Option<String> {
    Some(NaiveDate::from_ymd_opt(year as i32, month, day)?.to_string())
}

fn iso_month(year: u32, month: u32) -> Option<String> {
    Some(NaiveDate::from_ymd_opt(year as i32, month, 1)?.format("%Y-%m").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thursday of week 48.
    fn now() -> NaiveDateTime {
        "2026-11-26T09:30:00".parse().unwrap()
    }

    fn wall(text: &str, edge: Edge) -> String {
        match parse_typed(text, now(), edge) {
            Ok(Some(Typed::Wall(wall))) => wall.format("%Y-%m-%d %H:%M:%S").to_string(),
            Ok(Some(Typed::Ago(length))) => {
                (now() - length).format("%Y-%m-%d %H:%M:%S").to_string()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn periods_have_a_start_and_an_end() {
        for (text, first, last) in [
            ("today", "2026-11-26", "2026-11-26"),
            ("Yesterday", "2026-11-25", "2026-11-25"),
            ("monday", "2026-11-23", "2026-11-23"),
            ("last monday", "2026-11-23", "2026-11-23"),
            ("thursday", "2026-11-19", "2026-11-19"),
            ("Fri", "2026-11-20", "2026-11-20"),
            ("tues", "2026-11-24", "2026-11-24"),
            ("this week", "2026-11-23", "2026-11-29"),
            ("last week", "2026-11-16", "2026-11-22"),
            ("this month", "2026-11-01", "2026-11-30"),
            ("last month", "2026-10-01", "2026-10-31"),
            ("this year", "2026-01-01", "2026-12-31"),
            ("last year", "2025-01-01", "2025-12-31"),
            ("nov", "2026-11-01", "2026-11-30"),
            ("last november", "2025-11-01", "2025-11-30"),
            ("December", "2025-12-01", "2025-12-31"),
            ("sept", "2026-09-01", "2026-09-30"),
            ("nov 2025", "2025-11-01", "2025-11-30"),
            ("2025 november", "2025-11-01", "2025-11-30"),
            ("3 nov 2025", "2025-11-03", "2025-11-03"),
            ("3-Nov-2025", "2025-11-03", "2025-11-03"),
            ("november 3, 2025", "2025-11-03", "2025-11-03"),
            ("the 3rd of November 2025", "2025-11-03", "2025-11-03"),
            ("3. nov. 2025", "2025-11-03", "2025-11-03"),
            ("27 nov", "2025-11-27", "2025-11-27"),
            ("nov 26", "2026-11-26", "2026-11-26"),
            ("feb 29", "2024-02-29", "2024-02-29"),
            ("Wed 7 Oct", "2026-10-07", "2026-10-07"),
        ] {
            assert_eq!(wall(text, Edge::Start), format!("{first} 00:00:00"), "{text}");
            assert_eq!(wall(text, Edge::End), format!("{last} 23:59:59"), "{text}");
        }
    }

    #[test]
    fn moments_are_before_now() {
        for (text, expected) in [
            ("7d", "2026-11-19 09:30:00"),
            ("3 days ago", "2026-11-23 09:30:00"),
            ("30min", "2026-11-26 09:00:00"),
            ("1H", "2026-11-26 08:30:00"),
            ("1h 30min", "2026-11-26 08:00:00"),
            ("2w", "2026-11-12 09:30:00"),
            ("two weeks ago", "2026-11-12 09:30:00"),
            ("a week ago", "2026-11-19 09:30:00"),
            ("3 months ago", "2026-08-26 09:30:00"),
            ("3months", "2026-08-26 09:30:00"),
            ("9mo", "2026-02-26 09:30:00"),
            ("2 years", "2024-11-26 09:30:00"),
            ("1y", "2025-11-26 09:30:00"),
            ("1 year and 1 day ago", "2025-11-25 09:30:00"),
            ("now", "2026-11-26 09:30:00"),
            ("yesterday 14:05", "2026-11-25 14:05:00"),
            ("18 Nov 2023, 9:18", "2023-11-18 09:18:00"),
        ] {
            assert_eq!(wall(text, Edge::Start), expected, "{text}");
            assert_eq!(wall(text, Edge::End), expected, "{text}");
        }
        assert_eq!(wall("last 7 days", Edge::Start), "2026-11-19 09:30:00");
        assert_eq!(wall("last 7 days", Edge::End), "2026-11-26 09:30:00");
    }

    #[test]
    fn forms_with_several_meanings_are_refused_with_what_to_type() {
        for (text, expected) in [
            ("3m", "write 3months or 3min"),
            ("3M", "write 3months or 3min"),
            ("3 m ago", "write 3months or 3min"),
            ("26/11/2026", "write 2026-11-26"),
            ("11/26/2026", "write 2026-11-26"),
            ("31.01.2025", "write 2025-01-31"),
            ("31-01-25", "write 2025-01-31"),
            ("3/4/2025", "write 2025-04-03 or 2025-03-04"),
            ("4/4/2025", "write 2025-04-04"),
            ("31.01.", "write 2026-01-31"),
            ("11/2025", "write 2025-11"),
            ("2025/01/31", "write 2025-01-31"),
            ("2025-1-5", "write 2025-01-05"),
        ] {
            let error = parse_typed(text, now(), Edge::Start).expect_err(text);
            assert!(error.ends_with(expected), "{text}: {error}");
        }
        for text in [
            "",
            "-7d",
            "d",
            "7",
            "tomorrow",
            "99999999999999d",
            "4000000000y",
            "45/45/2025",
            "1.5h",
            "31 feb 2025",
            "mon 4 nov 2025",
            "last",
            "this",
            "ago",
            "2026-w60",
            "next week",
            "1:2:3",
            "nov 2025 10:00",
            "today 25:00",
            "тест",
            "3 days 4",
            "１d",
        ] {
            assert_eq!(parse_typed(text, now(), Edge::Start), Ok(None), "{text:?}");
        }
    }
}
