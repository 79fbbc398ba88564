//! Parses the controls of a terminal: escape sequences and control characters.

pub(super) const ESCAPE: u8 = 0x1b;

/// The first byte of a character from U+0080 to U+009F (C1) in UTF-8.
pub(super) const FIRST_OF_C1: u8 = 0xc2;

/// The longest control string that begins with a C1 character, in bytes. In a text that was decoded wrongly,
/// such a character stands for a letter.
const LONGEST_OF_C1: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control<'t> {
    Text(&'t str),
    LineEnd,
    /// To the first column.
    Return,
    Back,
    /// To another line in the same column.
    OtherLine,
    Save,
    Restore,
    /// A control sequence (CSI): its last character, and its first two numbers, 0 if it has none.
    Sequence(u8, [usize; 2]),
    /// A control that neither writes nor moves.
    Nothing,
}

/// Returns the control at the beginning of a text, and its length in bytes; `None` if the text begins with
/// an ordinary character.
pub(super) fn control(text: &str) -> Option<(Control<'_>, usize)> {
    let bytes = text.as_bytes();
    Some(match bytes[0] {
        ESCAPE => {
            let (control, length) = escape(&text[1..]);
            (control, length + 1)
        }
        b'\n' => (Control::LineEnd, 1),
        b'\r' => {
            let returns = bytes.iter().take_while(|byte| **byte == b'\r').count();
            match bytes.get(returns) {
                Some(b'\n') => (Control::LineEnd, returns + 1),
                _ => (Control::Return, returns),
            }
        }
        0x08 => (Control::Back, 1),
        0 | 0x07 | 0x0e | 0x0f | 0x7f => (Control::Nothing, 1),
        FIRST_OF_C1 if is_introducer(bytes[1]) => {
            let rest = &text[2..];
            let (control, length) = match bytes[1] {
                0x9b => sequence(rest).ok()?,
                kind => {
                    let rest = crate::up_to(rest, LONGEST_OF_C1);
                    (Control::Nothing, string(rest, kind == 0x9d, true).ok()?)
                }
            };
            (control, length + 2)
        }
        _ => return None,
    })
}

/// Returns whether the C1 character with this second byte begins a sequence: DCS, SOS, CSI, OSC, PM or APC.
pub(super) fn is_introducer(second: u8) -> bool {
    matches!(second, 0x90 | 0x98 | 0x9b | 0x9d..=0x9f)
}

/// Parses the rest of a sequence after ESC. If ESC begins nothing, the length is 0.
fn escape(rest: &str) -> (Control<'_>, usize) {
    let bytes = rest.as_bytes();
    let Some(first) = bytes.first() else { return (Control::Nothing, 0) };
    match first {
        b'[' => {
            let (control, length) =
                sequence(&rest[1..]).unwrap_or_else(|length| (Control::Nothing, length));
            (control, length + 1)
        }
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let length = string(&rest[1..], *first == b']', false);
            (Control::Nothing, 1 + length.unwrap_or_else(|length| length))
        }
        // The title of a window in screen and tmux.
        b'k' => (Control::Nothing, string(&rest[1..], false, true).map_or(0, |length| 1 + length)),
        // A set of characters, or a switch of the terminal.
        0x20..=0x2f => {
            let between = bytes.iter().take_while(|byte| matches!(byte, 0x20..=0x2f)).count();
            let is_known = match bytes.get(between) {
                Some(last) if *first == b' ' => b"FGLMN".contains(last) && between == 1,
                Some(last) => matches!(last, 0x30..=0x7e),
                None => false,
            };
            (Control::Nothing, if is_known { between + 1 } else { 0 })
        }
        b'7' => (Control::Save, 1),
        b'8' => (Control::Restore, 1),
        b'D' | b'M' => (Control::OtherLine, 1),
        b'c' => (Control::Sequence(b'H', [0, 0]), 1),
        b'E' => (Control::LineEnd, 1),
        0x30..=0x5f | b'`' | b'a' | b'b' | b'd' | b'l'..=b'o' | b'|' | b'}' | b'~' => {
            (Control::Nothing, 1)
        }
        _ => (Control::Nothing, 0),
    }
}

/// Parses a control sequence after its introducer. Fails with the length if the sequence has no end.
fn sequence(rest: &str) -> Result<(Control<'_>, usize), usize> {
    let bytes = rest.as_bytes();
    let numbers = bytes.iter().take_while(|byte| matches!(byte, 0x30..=0x3f)).count();
    let between = bytes[numbers..].iter().take_while(|byte| matches!(byte, 0x20..=0x2f)).count();
    let length = numbers + between;
    let last = match bytes.get(length) {
        Some(last @ 0x40..=0x7e) => *last,
        _ => return Err(length),
    };
    let numbers = &rest[..numbers];
    let control = match numbers.strip_prefix(['<', '=', '>', '?']) {
        // The other screen, for example of an editor.
        Some("47" | "1047" | "1049") if matches!(last, b'h' | b'l') => Control::OtherLine,
        None if between == 0 => {
            let mut numbers = numbers.split([';', ':']).map(|it| match it.parse() {
                Ok(number) => number,
                Err(_) if it.is_empty() => 0,
                Err(_) => usize::from(u16::MAX),
            });
            let first = numbers.next().unwrap_or_default();
            Control::Sequence(last, [first, numbers.next().unwrap_or_default()])
        }
        _ => Control::Nothing,
    };
    Ok((control, length + 1))
}

/// Returns the length of a control string with its end. If the string has no end, fails with the number of
/// bytes that belong to it: up to the next sequence or line, and none of an OSC that is no command.
fn string(rest: &str, is_osc: bool, is_one_line: bool) -> Result<usize, usize> {
    let bytes = rest.as_bytes();
    let mut line_end = None;
    let mut end = bytes.len();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            0x07 if is_osc => return Ok(at + 1),
            // Cancelled.
            0x18 | 0x1a => return Ok(at + 1),
            0x9c if at > 0 && bytes[at - 1] == FIRST_OF_C1 => return Ok(at + 1),
            &ESCAPE if bytes.get(at + 1) == Some(&b'\\') => return Ok(at + 2),
            &ESCAPE => {
                end = at;
                break;
            }
            b'\n' if is_osc || is_one_line => {
                end = at;
                break;
            }
            b'\n' => line_end = line_end.or(Some(at)),
            _ => {}
        }
    }
    let is_command = !is_osc || bytes.first().is_some_and(u8::is_ascii_digit);
    Err(if is_command { line_end.unwrap_or(end) } else { 0 })
}
