//! Finds the conversations in a stream of JSON, one after the other.
//!
//! The scanner looks only at brackets and strings. So even a gigabyte on a single line needs only the memory
//! of its longest conversation.

use std::io::{self, Read};
use std::ops::{ControlFlow, Range};

use memchr::memmem;

use super::brackets::BracketScan;

/// The number of bytes read at once. Fuzzing uses a small number, so that many values span two reads.
const CHUNK: usize = if cfg!(fuzzing) { 1 << 10 } else { 1 << 20 };

/// The maximum length of a conversation in bytes. Real conversations stay below 100 MB without pictures.
const MAX_VALUE_BYTES: usize = 512 << 20;

/// At this length and each doubling of it, a conversation is searched for other conversations inside it,
/// because a bracket may be missing.
const SUSPICIOUS: usize = 32 << 20;

/// The maximum number of searches for conversations that a missing bracket hides.
const RESCUES: usize = 100;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScannedValue<'a> {
    /// One complete value: an element of the outermost array, or the outermost object itself.
    Value(&'a [u8]),
    /// The beginning of a value whose brackets do not close. The values after it can be read.
    Broken(&'a [u8]),
    /// The beginning of a value that is cut off by the end of the stream.
    Cut(&'a [u8]),
    /// A value that is longer than any conversation. Its bytes are dropped.
    TooLong,
    /// Bytes after the last value that are not JSON.
    Garbage,
}

#[derive(Debug, Default)]
pub(super) struct FieldNames {
    /// The possible names of a conversation's field for its messages.
    pub(super) messages: Vec<&'static str>,
    /// The possible names of the field for the list, in an object that contains a list of conversations.
    pub(super) lists: Vec<&'static str>,
}

pub(super) struct Scanner<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    ended: bool,
    /// Whether a bracket has opened an array or an object.
    has_begun: bool,
    longest: usize,
    names: FieldNames,
    level: Level,
    rescues: usize,
    last: Range<usize>,
    failure: Option<io::Error>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The scanner is before, between or after outermost values.
    Outside,
    Array,
    /// The scanner is in the object that contains the array, after the array.
    Wrapper,
}

enum ValueEnd {
    At(usize),
    /// The value ends at this place, but with a closing bracket of the wrong kind.
    Mismatched(usize),
    Missing,
    /// The value is longer than any conversation.
    TooFar,
}

struct EndSearch {
    start: usize,
    scan: BracketScan,
    depth: usize,
    is_string: bool,
}

impl EndSearch {
    /// Continues the search up to the end of `bytes`. Returns the place after the value, and its closing
    /// bracket if it has one.
    fn go_on(&mut self, bytes: &[u8]) -> Option<(usize, Option<u8>)> {
        let EndSearch { start, scan, depth, is_string } = self;
        while *depth == 0 {
            let at = scan.at;
            match bytes.get(at)? {
                b'"' if *is_string => return Some((at + 1, None)),
                // The escaped byte may not be read yet.
                b'\\' if *is_string => scan.at += 1,
                _ if *is_string => {}
                b'"' if at == *start => *is_string = true,
                b'{' | b'[' => *depth = 1,
                b'"' | b'}' | b']' | b',' => return Some((at, None)),
                byte if byte.is_ascii_whitespace() => return Some((at, None)),
                _ => {}
            }
            scan.at += 1;
        }
        let end = scan.go_on(bytes, |at, byte| {
            *depth = if matches!(byte, b'{' | b'[') { *depth + 1 } else { *depth - 1 };
            match depth {
                0 => ControlFlow::Break((at + 1, Some(byte))),
                _ => ControlFlow::Continue(()),
            }
        });
        end.break_value()
    }
}

impl<R: Read> Scanner<R> {
    /// Returns a scanner for `input`. `names` are the names of fields by which conversations are recognised.
    pub(super) fn new(input: R, names: FieldNames) -> Scanner<R> {
        Scanner {
            input,
            buffer: Vec::new(),
            at: 0,
            ended: false,
            has_begun: false,
            longest: MAX_VALUE_BYTES,
            names,
            level: Level::Outside,
            rescues: RESCUES,
            last: 0..0,
            failure: None,
        }
    }

    pub(super) fn into_inner(self) -> R {
        self.input
    }

    /// Returns the error that ended reading before the end of the stream, if there was one.
    pub(super) fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Returns whether the stream had an array or an object, and ended after it.
    pub(super) fn is_closed(&self) -> bool {
        self.has_begun && self.level != Level::Array
    }

    /// Returns whether the stream ended before the end of its array of conversations.
    pub(super) fn is_unfinished(&self) -> bool {
        self.ended && self.level == Level::Array
    }

    /// Returns the next value; `None` at the end.
    ///
    /// If reading fails, the stream ends there, after all values before the failure were returned.
    pub(super) fn next(&mut self) -> Option<ScannedValue<'_>> {
        self.last = 0..0;
        if self.at > self.buffer.len() / 2 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        loop {
            let byte = self.token()?;
            let start = self.at;
            self.has_begun |= matches!(byte, b'[' | b'{');
            match (self.level, byte) {
                (_, b',') => self.at += 1,
                (Level::Outside, b'[') => {
                    self.at += 1;
                    self.level = Level::Array;
                }
                (Level::Outside, b'{') => {
                    if self.enter_wrapper() {
                        self.level = Level::Array;
                    } else {
                        return Some(self.value(start));
                    }
                }
                // The bytes of a byte order mark.
                (Level::Outside, 0xEF | 0xBB | 0xBF) => self.at += 1,
                // Skip stray brackets: conversations may follow.
                (Level::Outside, b']' | b'}') => self.at += 1,
                (Level::Outside, _) => {
                    self.at = self.buffer.len();
                    self.ended = true;
                    return Some(ScannedValue::Garbage);
                }
                (Level::Array, b']') => {
                    self.at += 1;
                    self.level = Level::Wrapper;
                }
                (Level::Array, b'}' | b':') => self.at += 1,
                (Level::Array, _) => return Some(self.value(start)),
                // The other fields of the object that contains the array.
                (Level::Wrapper, b'"') => match self.value_end(start) {
                    ValueEnd::At(end) => self.at = end,
                    _ => return None,
                },
                (Level::Wrapper, b':') => {
                    self.at += 1;
                    self.token()?;
                    match self.value_end(self.at) {
                        ValueEnd::At(end) => self.at = end,
                        _ => return None,
                    }
                }
                (Level::Wrapper, b'}') => {
                    self.at += 1;
                    self.level = Level::Outside;
                }
                (Level::Wrapper, _) => self.level = Level::Outside,
            }
        }
    }

    /// Returns the value that begins at `start`, complete or not, and moves past it.
    fn value(&mut self, start: usize) -> ScannedValue<'_> {
        match self.value_end(start) {
            ValueEnd::At(end) => {
                self.at = end;
                self.last = start..end;
                ScannedValue::Value(&self.buffer[start..end])
            }
            ValueEnd::TooFar => ScannedValue::TooLong,
            ValueEnd::Mismatched(end) => match self.skip_to_inner(start, end) {
                Some(next) => ScannedValue::Broken(&self.buffer[start..next]),
                None => {
                    self.at = end - 1;
                    ScannedValue::Broken(&self.buffer[start..end - 1])
                }
            },
            ValueEnd::Missing => match self.skip_to_inner(start, self.buffer.len()) {
                Some(next) => ScannedValue::Broken(&self.buffer[start..next]),
                None => {
                    self.at = self.buffer.len();
                    ScannedValue::Cut(&self.buffer[start..])
                }
            },
        }
    }

    /// Searches the last value for another conversation inside it, because the last value turned out to be
    /// damaged. If there is one, it becomes the next value.
    ///
    /// A damaged value can have balanced brackets: one is missing in one place, another is one too many.
    pub(super) fn reconsider(&mut self) -> bool {
        let last = std::mem::take(&mut self.last);
        !last.is_empty() && self.skip_to_inner(last.start, last.end).is_some()
    }

    /// Moves to a conversation inside the value from `start` to `end`, if there is one.
    fn skip_to_inner(&mut self, start: usize, end: usize) -> Option<usize> {
        self.rescues = self.rescues.checked_sub(1)?;
        let next = start + similar_start(&self.buffer[start..end])?;
        self.at = next;
        self.level = Level::Array;
        Some(next)
    }

    /// Moves into the list of an object such as `{"conversations": […]}`. Does not move for other objects.
    fn enter_wrapper(&mut self) -> bool {
        let start = self.at;
        self.at += 1;
        loop {
            let name = match self.token() {
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                Some(b'"') => self.at,
                _ => break,
            };
            let ValueEnd::At(end) = self.value_end(name) else { break };
            self.at = end;
            if self.token() != Some(b':') {
                break;
            }
            self.at += 1;
            let first = self.token();
            let named = &self.buffer[name + 1..end - 1];
            let is_named = |field: &&str| field.as_bytes() == named;
            if first == Some(b'[') && self.names.lists.iter().any(is_named) {
                self.at += 1;
                return true;
            }
            // This object is a conversation, which may be long, so its end is not searched.
            if self.names.messages.iter().any(is_named) {
                break;
            }
            match self.value_end(self.at) {
                ValueEnd::At(end) => self.at = end,
                _ => break,
            }
        }
        self.at = start;
        false
    }

    /// Moves to the next byte that is not white space, and returns it.
    fn token(&mut self) -> Option<u8> {
        let first = self.at;
        loop {
            while let Some(byte) = self.buffer.get(self.at) {
                if !byte.is_ascii_whitespace() {
                    return Some(*byte);
                }
                self.at += 1;
            }
            // Keeps one blank as a separator. Drops the others, because a stream may have a gigabyte of them.
            self.at = self.at.min(first + 1);
            self.buffer.truncate(self.at);
            if !self.fill() {
                return None;
            }
        }
    }

    /// Finds the end of the value whose first byte is at `start`. Reads more input if necessary.
    fn value_end(&mut self, start: usize) -> ValueEnd {
        let mut search =
            EndSearch { start, scan: BracketScan::new(start), depth: 0, is_string: false };
        let mut is_too_long = false;
        let mut suspicious = SUSPICIOUS;
        loop {
            match search.go_on(&self.buffer) {
                Some((end, _)) if is_too_long => {
                    self.at = end;
                    return ValueEnd::TooFar;
                }
                Some((end, closing)) => {
                    // The ASCII code of a closing bracket is that of its opening bracket plus two.
                    let is_pair =
                        closing.is_none_or(|it| self.buffer[start].checked_add(2) == Some(it));
                    return if is_pair { ValueEnd::At(end) } else { ValueEnd::Mismatched(end) };
                }
                None => {}
            }
            let length = self.buffer.len() - start;
            if length >= suspicious {
                suspicious *= 2;
                if self.rescues > 0 && similar_start(&self.buffer[start..]).is_some() {
                    return ValueEnd::Missing;
                }
            }
            if length > self.longest {
                is_too_long = true;
                search.scan.at -= length;
                self.buffer.truncate(start);
            }
            if !self.fill() {
                if !is_too_long {
                    return ValueEnd::Missing;
                }
                self.at = self.buffer.len();
                return ValueEnd::TooFar;
            }
        }
    }

    fn fill(&mut self) -> bool {
        let filled = self.buffer.len();
        while !self.ended && self.buffer.len() == filled {
            self.buffer.resize(filled + CHUNK, 0);
            let read = self.input.read(&mut self.buffer[filled..]);
            self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(error);
                    self.ended = true;
                }
            }
        }
        self.buffer.len() > filled
    }
}

/// Returns the place of an object inside `bytes` that begins with the same two field names as `bytes`.
///
/// If a bracket is missing, one conversation contains all later ones. This place is the beginning of the next
/// one.
fn similar_start(bytes: &[u8]) -> Option<usize> {
    let (first, second) = first_names(bytes)?;
    memmem::find_iter(&bytes[1..], first).map(|at| at + 1).find_map(|name| {
        let open = bytes[..name].iter().rposition(|byte| !byte.is_ascii_whitespace())?;
        let before = bytes[..open].iter().rposition(|byte| !byte.is_ascii_whitespace())?;
        let found = bytes[open] == b'{'
            && bytes[before] == b','
            && first_names(&bytes[open..]) == Some((first, second));
        found.then_some(open)
    })
}

/// Returns the first two names of an object, quotes included.
fn first_names(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut scanner = Scanner::new(bytes.get(1..)?.take(4096), FieldNames::default());
    scanner.token().filter(|byte| *byte == b'"')?;
    let first = scanner.at;
    let ValueEnd::At(first_end) = scanner.value_end(first) else { return None };
    scanner.at = first_end;
    scanner.token().filter(|byte| *byte == b':')?;
    scanner.at += 1;
    scanner.token()?;
    let ValueEnd::At(end) = scanner.value_end(scanner.at) else { return None };
    scanner.at = end;
    scanner.token().filter(|byte| *byte == b',')?;
    scanner.at += 1;
    scanner.token().filter(|byte| *byte == b'"')?;
    let second = scanner.at;
    let ValueEnd::At(second_end) = scanner.value_end(second) else { return None };
    Some((&bytes[1 + first..1 + first_end], &bytes[1 + second..1 + second_end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns one byte at a time, so that the buffer ends at every place once.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn names() -> FieldNames {
        FieldNames { messages: vec!["mapping"], lists: vec!["conversations"] }
    }

    fn all(mut scanner: Scanner<impl Read>) -> Vec<String> {
        let mut found = Vec::new();
        while let Some(item) = scanner.next() {
            found.push(match item {
                ScannedValue::Value(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                ScannedValue::Broken(bytes) => format!("broken {}", String::from_utf8_lossy(bytes)),
                ScannedValue::Cut(bytes) => format!("cut {}", String::from_utf8_lossy(bytes)),
                ScannedValue::TooLong => "too long".to_owned(),
                ScannedValue::Garbage => "garbage".to_owned(),
            });
        }
        found
    }

    #[test]
    fn values_of_every_shape() {
        for (json, expected) in [
            ("", vec![]),
            ("[]", vec![]),
            ("[1, \"a,]\" ,{}]", vec!["1", "\"a,]\"", "{}"]),
            (
                r#"[{"a":"}\"]"},{"b":[1,{"c":2}]}]"#,
                vec![r#"{"a":"}\"]"}"#, r#"{"b":[1,{"c":2}]}"#],
            ),
            ("\u{feff}[{\"a\":1}]", vec!["{\"a\":1}"]),
            (r#"{"a":1}"#, vec![r#"{"a":1}"#]),
            ("{\"a\":1}\n{\"b\":2}\n", vec![r#"{"a":1}"#, r#"{"b":2}"#]),
            (
                r#"{"v":{"x":[]},"conversations":[{"a":1}, 2],"u":[{"n":3}]}"#,
                vec![r#"{"a":1}"#, "2"],
            ),
            (
                r#"{"mapping":{"conversations":[]},"a":1}"#,
                vec![r#"{"mapping":{"conversations":[]},"a":1}"#],
            ),
            ("[{\"a\":1}] trailing", vec!["{\"a\":1}", "garbage"]),
            ("<html>", vec!["garbage"]),
            ("[{\"a\":1},{\"b\":", vec!["{\"a\":1}", "cut {\"b\":"]),
            ("[{\"a\":1}},{\"b\":2}]", vec!["{\"a\":1}", "{\"b\":2}"]),
            ("[{\"a\":1}],{\"b\":2}]", vec!["{\"a\":1}", "{\"b\":2}"]),
            (
                r#"[{"t":1,"m":{"x":{}},{"t":2,"m":{}},{"t":3,"m":{}}]"#,
                vec![r#"broken {"t":1,"m":{"x":{}},"#, r#"{"t":2,"m":{}}"#, r#"{"t":3,"m":{}}"#],
            ),
        ] {
            assert_eq!(all(Scanner::new(json.as_bytes(), names())), expected, "{json}");
            assert_eq!(
                all(Scanner::new(Drip(json.as_bytes()), names())),
                expected,
                "{json}, byte by byte"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_text_before_a_bracket() {
        let mut scanner =
            Scanner::new(&b"[\xFF\xFF{\"a\": 1}, {\"b\": 2}]"[..], FieldNames::default());
        assert!(matches!(scanner.next(), Some(ScannedValue::Broken(_))));
        assert!(all(scanner).contains(&"{\"b\": 2}".to_owned()));
    }

    #[test]
    fn blanks_between_values_take_no_memory() {
        const BLANKS: u64 = 100 << 20;
        let blanks = || io::repeat(b' ').take(BLANKS);
        let json = (&b"{"[..])
            .chain(blanks())
            .chain(&b"\"conversations\":["[..])
            .chain(blanks())
            .chain(&b"{\"a\":1} 2"[..])
            .chain(blanks())
            .chain(&b"3]"[..]);
        let mut scanner = Scanner::new(json, names());
        let mut found = Vec::new();
        while let Some(ScannedValue::Value(bytes)) = scanner.next() {
            found.push(String::from_utf8_lossy(bytes).into_owned());
        }
        assert_eq!(found, ["{\"a\":1}", "2", "3"]);
        assert!(scanner.buffer.capacity() < 8 << 20, "{} bytes", scanner.buffer.capacity());
    }

    #[test]
    fn a_value_too_long_is_passed_over() {
        let json = format!("[{{\"a\":\"{}\\\"\"}},{{\"b\":1}}]", "x".repeat(100));
        let mut scanner = Scanner::new(Drip(json.as_bytes()), names());
        scanner.longest = 50;
        assert_eq!(all(scanner), ["too long", "{\"b\":1}"]);
    }
}
