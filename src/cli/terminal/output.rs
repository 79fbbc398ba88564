//! The output and the exit codes of commands.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::{waiting, wrap::wrapped};
use verbatim_base::model::Hit;
use verbatim_text::terminal::is_deceptive;

pub(crate) use verbatim_answer::json_lines::{JsonHit, json_line};
pub(crate) use verbatim_text::amount::{counted, grouped};
pub(crate) use verbatim_text::terminal::{harmless, on_one_line};

/// The exit code if something was found or done.
pub(crate) const FOUND: u8 = 0;

pub(crate) const NOTHING: u8 = 1;

/// The exit code for errors, as in grep.
pub(crate) const TROUBLE: u8 = 2;

/// The beginning of clap's errors, and of the errors here, which have the name of the program.
const CLAP_PREFIX: &str = "error:";
const PREFIX: &str = "verbatim:";

/// Writes a message to standard error; a failure to write is ignored.
pub(crate) fn complain(message: &str) {
    waiting::clear();
    write_error(&format!("{PREFIX} {}", harmless(message)), error_columns());
}

/// Writes an error of the command line. It loses its colours if a line is too long for the terminal, or if
/// a name in it has characters that control one.
pub(crate) fn write_usage(usage: &clap::Error) {
    let columns = error_columns();
    let plain = usage.to_string().replacen(CLAP_PREFIX, PREFIX, 1);
    let text = harmless(&plain);
    let is_wide = columns.is_some_and(|columns| text.lines().any(|line| line.width() > columns));
    if is_wide || text != plain {
        write_error(&text, columns);
    } else {
        let text = usage.render().ansi().to_string().replacen(CLAP_PREFIX, PREFIX, 1);
        let _ = write!(anstream::stderr(), "{text}");
    }
}

fn error_columns() -> Option<usize> {
    terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| width.0.into())
}

fn write_error(text: &str, columns: Option<usize>) {
    let lines: Vec<String> = text.lines().map(|line| wrapped(line, columns, 2)).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

/// A writer for a terminal. It escapes deceptive characters and control characters as in JSON, except for
/// line breaks, tabs, and the escape sequences of this program: colours and links. In the text of messages,
/// [`harmless`] replaces these too, and JSON escapes them.
pub(crate) struct TerminalWriter<'a> {
    out: &'a mut dyn Write,
    /// The first bytes of a character that is not complete yet.
    begun: Vec<u8>,
}

impl TerminalWriter<'_> {
    pub(crate) fn new(out: &mut dyn Write) -> TerminalWriter<'_> {
        TerminalWriter { out, begun: Vec::new() }
    }
}

impl Write for TerminalWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut given = std::mem::take(&mut self.begun);
        given.extend_from_slice(bytes);
        let mut chunks = given.utf8_chunks();
        while let Some(chunk) = chunks.next() {
            let text = chunk.valid();
            let mut plain = 0;
            let mut own_end = 0;
            for (at, c) in text.char_indices() {
                if c == '\u{1b}' && at >= own_end {
                    match own_sequence(&text[at..]) {
                        OwnSequence::Whole(length) => own_end = at + length,
                        OwnSequence::Begun
                            if chunk.invalid().is_empty() && chunks.clone().next().is_none() =>
                        {
                            self.out.write_all(&text.as_bytes()[plain..at])?;
                            self.begun = text.as_bytes()[at..].to_vec();
                            return Ok(bytes.len());
                        }
                        OwnSequence::Begun | OwnSequence::None => {}
                    }
                }
                if at >= own_end && (is_deceptive(c) || c.is_control() && !matches!(c, '\n' | '\t'))
                {
                    self.out.write_all(&text.as_bytes()[plain..at])?;
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(self.out, "\\u{unit:04x}")?;
                    }
                    plain = at + c.len_utf8();
                }
            }
            self.out.write_all(&text.as_bytes()[plain..])?;
            let invalid = chunk.invalid();
            let is_cut = str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if is_cut && chunks.clone().next().is_none() {
                self.begun = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.out.write_all("\u{FFFD}".as_bytes())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// An escape sequence of this program at the beginning of a text.
#[derive(Debug, PartialEq, Eq)]
enum OwnSequence {
    /// Its length in bytes.
    Whole(usize),
    /// The text ends within it.
    Begun,
    None,
}

/// The maximum length in bytes of a link's address with its escape sequence.
const LONGEST_LINK: usize = 4096;

fn own_sequence(text: &str) -> OwnSequence {
    const LINK: &str = "\u{1b}]8;;";
    const END_OF_LINK: &str = "\u{1b}\\";
    if let Some(colour) = text.strip_prefix("\u{1b}[") {
        let digits =
            colour.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | ':'));
        if digits.starts_with('m') {
            OwnSequence::Whole(text.len() - digits.len() + 1)
        } else if digits.is_empty() && text.len() < LONGEST_LINK {
            OwnSequence::Begun
        } else {
            OwnSequence::None
        }
    } else if let Some(link) = text.strip_prefix(LINK) {
        let rest = link.trim_start_matches(|c: char| c.is_ascii_graphic());
        if rest.starts_with(END_OF_LINK) {
            OwnSequence::Whole(text.len() - rest.len() + END_OF_LINK.len())
        } else if END_OF_LINK.starts_with(rest) && text.len() < LONGEST_LINK {
            OwnSequence::Begun
        } else {
            OwnSequence::None
        }
    } else if LINK.starts_with(text) {
        OwnSequence::Begun
    } else {
        OwnSequence::None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TerminalAnswer {
    Yes,
    No,
    /// A number of a list, from 1 on.
    Number(usize),
}

/// Asks a question on standard error; an empty line means yes.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    Ok(confirm_or_number(question, 0)? == TerminalAnswer::Yes)
}

/// Does the same as [`confirm`], but a number up to `count` is an answer too.
pub(crate) fn confirm_or_number(question: &str, count: usize) -> io::Result<TerminalAnswer> {
    ask(&format!("{question} [Y/n]"), TerminalAnswer::Yes, count, &mut io::stdin().lock())
}

/// Asks on standard error before an action that cannot be undone; an empty line means no.
pub(crate) fn confirm_deletion(question: &str) -> io::Result<bool> {
    let answer = ask(&format!("{question} [y/N]"), TerminalAnswer::No, 0, &mut io::stdin().lock())?;
    Ok(answer == TerminalAnswer::Yes)
}

/// Asks until there is an answer. `usual` is the answer of an empty line.
fn ask(
    question: &str,
    usual: TerminalAnswer,
    count: usize,
    input: &mut dyn io::BufRead,
) -> io::Result<TerminalAnswer> {
    waiting::clear();
    let question = harmless(question);
    let mut log = io::stderr();
    loop {
        write!(log, "{question} ")?;
        log.flush()?;
        let mut line = String::new();
        // The end of the input is not an answer, so it does not mean yes.
        if input.read_line(&mut line)? == 0 {
            writeln!(log)?;
            return Ok(TerminalAnswer::No);
        }
        match line.trim().to_lowercase().as_str() {
            "" => return Ok(usual),
            "y" | "yes" => return Ok(TerminalAnswer::Yes),
            "n" | "no" => return Ok(TerminalAnswer::No),
            word => match word.parse() {
                Ok(number) if (1..=count).contains(&number) => {
                    return Ok(TerminalAnswer::Number(number));
                }
                _ if count > 0 => writeln!(log, "Type y, n, or the number of the one you want.")?,
                _ => writeln!(log, "Type y or n.")?,
            },
        }
    }
}

pub(crate) fn role(hit: &Hit) -> String {
    if hit.role.is_empty() { "unknown".to_owned() } else { on_one_line(&hit.role).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_until_it_is_answered() {
        for (typed, expected) in [
            ("\n", TerminalAnswer::Yes),
            ("maybe\n\u{1b}\n3\nNo\n", TerminalAnswer::No),
            (" YES \n", TerminalAnswer::Yes),
            ("0\n2\n", TerminalAnswer::Number(2)),
            ("perhaps", TerminalAnswer::No),
        ] {
            let answer =
                ask("Import both?", TerminalAnswer::Yes, 2, &mut typed.as_bytes()).unwrap();
            assert_eq!(answer, expected, "{typed:?}");
        }
    }

    #[test]
    fn no_character_that_controls_a_terminal_reaches_it() {
        let own = "\u{1b}[1;38:5:1mé\u{1b}[0m\t\u{1b}]8;;https://e/\u{1b}\\a\u{1b}]8;;\u{1b}\\\n";
        let text = format!(
            "a\u{202E}b\u{9b}31m\u{7f}\u{2066}京\u{200f}\u{061c}{own}\u{1b}[2J\u{1b}]0;t\u{7}\r\u{1b}]8;;é\u{1b}c."
        );
        let expected = format!(
            "a\\u202eb\\u009b31m\\u007f\\u2066京\\u200f\\u061c{own}\\u001b[2J\\u001b]0;t\\u0007\\u000d\\u001b]8;;é\\u001bc."
        );
        for size in 1..text.len() {
            let mut out = Vec::new();
            let mut writer = TerminalWriter::new(&mut out);
            for bytes in text.as_bytes().chunks(size) {
                writer.write_all(bytes).unwrap();
            }
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{size} bytes at once");
        }
        let mut out = Vec::new();
        TerminalWriter::new(&mut out).write_all(b"\x9b31m\xff.").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\u{FFFD}31m\u{FFFD}.");
        assert_eq!(harmless("\u{202E}\u{1b}\u{7f}\ta"), "\u{FFFD}\u{FFFD}\u{FFFD}\ta");
    }
}
