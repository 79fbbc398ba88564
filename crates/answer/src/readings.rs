//! Says what other readings of a search find. [`ReadingKind`] lists them.

use verbatim_base::model::Request;
use verbatim_engine::{MoreAlike, QueryReading, ReadingKind};
use verbatim_text::amount::{counted, grouped};

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
        ReadingKind::AnyAccents => "with other accents, width or signs".to_owned(),
        ReadingKind::Rendered => "with other spaces or signs between the words".to_owned(),
        ReadingKind::Expression => "as a regular expression".to_owned(),
        ReadingKind::Nearest => format!("{has} {texts}"),
        ReadingKind::Words if !request.or.is_empty() => format!("{has} one of the texts"),
        ReadingKind::Words if !request.not.is_empty() => {
            let not: Vec<String> = request.not.iter().map(|text| quote(text)).collect();
            format!("{has} {texts} without {}", not.join(" or "))
        }
        ReadingKind::Words if request.and.is_empty() => "without the quotation marks".to_owned(),
        ReadingKind::Words => {
            let has_phrase = all.iter().any(|text| text.contains(char::is_whitespace));
            let what = if has_phrase { "texts" } else { "words" };
            let all = if request.and.len() == 1 { "both" } else { "all the" };
            format!("{has} {all} {what}")
        }
    };
    format!("{found} {how}")
}

/// Returns how many more messages match if signs of equal look do: `117 more messages with ’`.
pub fn more_alike(more: &MoreAlike) -> String {
    let MoreAlike { reading, is_cut, signs } = more;
    let messages = reading.count.messages;
    let than = if *is_cut { "more than " } else { "" };
    let noun = if messages == 1 { "message" } else { "messages" };
    format!("{than}{} more {noun} with {}", grouped(messages), signs.join(" or "))
}

/// Returns how a text is read, for the head of the results of a reading: `all the words, in any order`.
pub fn way(kind: ReadingKind, text: &str) -> &'static str {
    let request = kind.request(&Request { text: text.to_owned(), ..Request::default() });
    match (kind, request) {
        (ReadingKind::AnyAccents, _) => "with any accents, width and signs",
        (ReadingKind::Expression, _) => "as a regular expression",
        (_, Some(request)) if !request.or.is_empty() => "one of the texts beside OR",
        (_, Some(request)) if !request.not.is_empty() => "without the words after a minus",
        (_, Some(request)) if request.and.is_empty() => "without the quotation marks",
        _ => "all the words, in any order",
    }
}
