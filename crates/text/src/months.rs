//! Counts by month, such as `2025-01`.

use std::collections::BTreeMap;

/// The maximum number of empty months in a row. One message with a wrong date must not add many months.
const LONGEST_GAP: u32 = 36;

/// Returns the months in order, including months without messages if they are not too many.
pub fn fill_gaps(counts: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut months: Vec<(String, u64)> = Vec::new();
    let mut last: Option<u32> = None;
    for (name, count) in counts {
        let number = month_number(name);
        if let Some((last, number)) = last.zip(number)
            && (last..=last + LONGEST_GAP).contains(&number)
        {
            months.extend(
                (last + 1..number).map(|gap| (format!("{:04}-{:02}", gap / 12, gap % 12 + 1), 0)),
            );
        }
        last = number;
        months.push((name.clone(), *count));
    }
    months
}

/// Returns the number of months since the year 0; `None` if the month has no year of four digits.
pub fn month_number(month: &str) -> Option<u32> {
    let (year, month) = month.split_once('-').filter(|(year, _)| year.len() == 4)?;
    Some(year.parse::<u32>().ok()? * 12 + month.parse::<u32>().ok()?.checked_sub(1)?)
}
