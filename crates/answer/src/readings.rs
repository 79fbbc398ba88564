//! Says what another reading of a search finds.

use verbatim_engine::{QueryReading, ReadingKind};
use verbatim_text::amount::counted;

/// Returns how much a reading finds, and how it differs from the search: `2 messages have both words`. `quote`
/// puts a text in quotation marks.
pub fn described(reading: &QueryReading, quote: impl Fn(&str) -> String) -> String {
    let QueryReading { kind, request, count, .. } = reading;
    let (found, number) = match count.messages {
        0 => (format!("{} by title", counted(count.titles, "conversation")), count.titles),
        messages => (counted(messages, "message"), messages),
    };
    let has = if number == 1 { "has" } else { "have" };
    let all: Vec<&String> = std::iter::once(&request.text).chain(&request.and).collect();
    let texts = all.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" and ");
    let how = match kind {
        ReadingKind::AnyScope => "without the filters".to_owned(),
        ReadingKind::AnyCase => "in any letter case".to_owned(),
        ReadingKind::AnyAccents => "with other accents or width".to_owned(),
        ReadingKind::Unquoted => "without the quotation marks".to_owned(),
        ReadingKind::Expression => "as a regular expression".to_owned(),
        ReadingKind::Either => format!("{has} one of the texts"),
        ReadingKind::AllWords => {
            let has_phrase = all.iter().any(|text| text.contains(char::is_whitespace));
            let what = if has_phrase { "texts" } else { "words" };
            let all = if request.and.len() == 1 { "both" } else { "all the" };
            format!("{has} {all} {what}")
        }
        ReadingKind::Without => {
            let not: Vec<String> = request.not.iter().map(|text| quote(text)).collect();
            format!("{has} {texts} without {}", not.join(" or "))
        }
        ReadingKind::AllWordsButOne | ReadingKind::Part | ReadingKind::Spelling => {
            format!("{has} {texts}")
        }
    };
    format!("{found} {how}")
}
