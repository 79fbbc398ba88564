//! The checks of a query, before the index or the database is searched.

use std::borrow::Cow;

use crate::engine::error::Error;
use crate::{
    model::Request,
    text::{like::MOST_PATTERN_BYTES, snippet},
};

/// Returns the text without white space at its ends, as Python's `str.strip()` leaves it.
pub fn trimmed(text: &str) -> &str {
    snippet::trim(text)
}

/// Returns the request with its text trimmed and checked; an empty text is no filter.
pub(crate) fn checked(request: &Request) -> Result<Cow<'_, Request>, Error> {
    let text = trimmed(&request.text);
    if text.contains('\0') {
        return Err(Error::NulInQuery);
    }
    if request.literal && text.len() > MOST_PATTERN_BYTES {
        return Err(Error::TextTooLong { bytes: text.len() });
    }
    let bytes = text.len() + 2;
    if !request.literal && bytes > MOST_PATTERN_BYTES {
        return Err(Error::QueryTooLong { bytes });
    }
    if text.len() == request.text.len() {
        return Ok(Cow::Borrowed(request));
    }
    Ok(Cow::Owned(Request { text: text.to_owned(), ..request.clone() }))
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
            let request = Request { text, literal: true, ..Request::default() };
            checked(&request).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(literal(50_000), Ok(()));
        let error = literal(50_001).expect_err("one byte too long");
        assert!(error.contains("50001 bytes") && !error.contains("LIKE"), "{error}");
        assert!(text("a\0b").expect_err("a NUL").contains("NUL"));
    }
}
