//! Checks the texts of a request before the search.

use std::borrow::Cow;

use crate::error::{Error, Result};
use verbatim_base::model::{Matching, Request};
use verbatim_text::{like::MOST_PATTERN_BYTES, loose::loose, snippet};

/// Returns the text without white space at its ends, like Python's `str.strip()`.
pub fn trimmed(text: &str) -> &str {
    snippet::trim(text)
}

/// Maximum number of texts that one request searches for.
const MOST_TEXTS: usize = 64;

/// Returns the request with its texts checked; a blank text is not a filter. White space at the
/// ends of words and of patterns of `LIKE` is removed, as the contract of `conversation_search`
/// requires. Literal texts and regular expressions keep it.
pub(crate) fn checked(request: &Request) -> Result<Cow<'_, Request>> {
    let others = [&request.or, &request.and, &request.not];
    let count = 1 + others.iter().map(|texts| texts.len()).sum::<usize>();
    if count > MOST_TEXTS {
        return Err(Error::TooManyTexts { count, most: MOST_TEXTS });
    }
    let is_text = matches!(request.matching, Matching::Literal | Matching::Word);
    if request.ignore_accents && !is_text {
        return Err(Error::AccentsOfPattern);
    }
    let text = checked_text(&request.text, request)?;
    if others.iter().all(|texts| texts.is_empty()) {
        if text.len() == request.text.len() {
            return Ok(Cow::Borrowed(request));
        }
        return Ok(Cow::Owned(Request { text: text.to_owned(), ..request.clone() }));
    }
    let mut trimmed = Request { text: text.to_owned(), ..request.clone() };
    for texts in [&mut trimmed.or, &mut trimmed.and, &mut trimmed.not] {
        for text in &mut *texts {
            *text = checked_text(text, request)?.to_owned();
        }
        texts.retain(|text| !text.is_empty());
    }
    Ok(Cow::Owned(trimmed))
}

/// Checks a text of a request, and trims it if its kind of matching allows this.
fn checked_text<'t>(text: &'t str, request: &Request) -> Result<&'t str> {
    let text = match request.matching {
        Matching::Like | Matching::Word => trimmed(text),
        Matching::Literal if trimmed(text).is_empty() => "",
        Matching::Literal | Matching::Regex => text,
    };
    if text.contains('\0') && request.matching != Matching::Like {
        return Err(Error::NulInQuery);
    }
    let bytes = text.len() + 2;
    match request.matching {
        Matching::Like if bytes > MOST_PATTERN_BYTES => Err(Error::QueryTooLong { bytes }),
        Matching::Literal | Matching::Word if text.len() > MOST_PATTERN_BYTES => {
            Err(Error::TextTooLong { bytes: text.len() })
        }
        _ if request.ignore_accents && !text.is_empty() && loose(text, true).is_empty() => {
            Err(Error::OnlyAccents { text: text.to_owned() })
        }
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Result<String, String> {
        let request = Request { text: text.to_owned(), ..Request::default() };
        checked(&request).map(|request| request.text.clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn trimmed_as_python_does() {
        for (query, expected) in [
            ("  a b ", "a b"),
            ("\ta\n", "a"),
            ("\u{1c}\u{1f}\u{85}\u{a0}a\u{200b}\u{2028}", "a\u{200b}"),
            (" \t\u{3000}\u{1c} ", ""),
            ("", ""),
            ("%", "%"),
        ] {
            assert_eq!(text(query).as_deref(), Ok(expected), "{query:?}");
        }
    }

    #[test]
    fn limits() {
        assert!(text(&"é".repeat(24_999)).is_ok());
        let error = text(&"x".repeat(49_999)).expect_err("one byte too long");
        assert!(error.contains("50001") && error.contains("50000"), "{error}");
        let literal = |length| {
            let text = "x".repeat(length);
            let matching = Matching::Literal;
            let request = Request { text, matching, ..Request::default() };
            checked(&request).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(literal(50_000), Ok(()));
        let matching = Matching::Literal;
        let blank = Request { text: " \t".to_owned(), matching, ..Request::default() };
        assert_eq!(checked(&blank).expect("nothing is wrong").text, "");
        let request = Request { text: " a ".to_owned(), ..blank };
        assert_eq!(checked(&request).expect("nothing is wrong").text, " a ");
        let error = literal(50_001).expect_err("one byte too long");
        assert!(error.contains("50001 bytes") && !error.contains("LIKE"), "{error}");
        assert_eq!(text("a\0b").as_deref(), Ok("a\0b"));
        let nul =
            Request { text: "a\0b".to_owned(), matching: Matching::Literal, ..Request::default() };
        assert!(matches!(checked(&nul), Err(Error::NulInQuery)));
    }

    #[test]
    fn several_texts() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let request = Request {
            text: " a ".to_owned(),
            or: texts(&["b ", " "]),
            not: texts(&[" c"]),
            matching: Matching::Word,
            ignore_accents: true,
            ..Request::default()
        };
        let trimmed = checked(&request).expect("nothing is wrong").into_owned();
        assert_eq!((&*trimmed.text, trimmed.or, trimmed.not), ("a", texts(&["b"]), texts(&["c"])));
        let error = |request: Request| checked(&request).expect_err("it is refused").to_string();
        let many = Request { or: vec!["a".to_owned(); 64], ..request.clone() };
        assert!(error(many).contains("66 texts"));
        let marks = Request { text: "\u{301}".to_owned(), ..request.clone() };
        assert!(error(marks).contains("nothing but accents"));
        let regex = Request { matching: Matching::Regex, ..request.clone() };
        assert!(error(regex).contains("regular expressions"));
        let regex = Request { matching: Matching::Regex, ignore_accents: false, ..request.clone() };
        assert_eq!(checked(&regex).expect("nothing is wrong").text, " a ");
    }
}
