//! Terminal colours in the outputs of tools.

use std::borrow::Cow;

use anstyle_parse::{Params, Parser, Perform, Utf8Parser};

use super::mark::escaped;

/// The character that begins a control sequence.
const ESCAPE: char = '\x1b';

/// The minimum difference between the largest and the smallest component of a colour that is not grey.
const LEAST_HUE: u8 = 64;

/// Returns a text without control sequences and other control characters.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(ESCAPE) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(runs(text).into_iter().map(|(_, run)| run).collect())
}

/// Returns a text as HTML with its colours as classes. Background colours are left out, because on
/// the page only matches have a background.
pub(super) fn html(text: &str) -> String {
    if !text.contains(ESCAPE) {
        return escaped(text);
    }
    let run = |(look, run): (AnsiStyle, String)| match look.classes() {
        classes if classes.is_empty() => escaped(&run),
        classes => format!("<span class=\"{classes}\">{}</span>", escaped(&run)),
    };
    runs(text).into_iter().map(run).collect()
}

/// The style of a text in a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AnsiStyle {
    /// The class of the colour; empty for the normal colour of text.
    colour: &'static str,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
}

impl AnsiStyle {
    fn classes(self) -> String {
        let classes = [
            (!self.colour.is_empty(), self.colour),
            (self.is_bold, "t-bold"),
            (self.is_dim, "t-dim"),
            (self.is_italic, "t-italic"),
            (self.is_underlined, "t-underline"),
        ];
        let classes = classes.into_iter().filter(|(is_set, _)| *is_set).map(|(_, class)| class);
        classes.collect::<Vec<_>>().join(" ")
    }

    /// Applies the parameters of a control sequence (ECMA-48, SGR). Unknown parameters change nothing.
    fn set(&mut self, params: &Params) {
        // The components of a colour are separated by semicolons or by colons.
        let mut numbers = params.iter().flatten().copied();
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = AnsiStyle::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                3 => self.is_italic = true,
                4 => self.is_underlined = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                23 => self.is_italic = false,
                24 => self.is_underlined = false,
                30..=37 => self.colour = of_sixteen(number - 30),
                90..=97 => self.colour = of_sixteen(number - 90),
                39 => self.colour = "",
                38 => self.colour = of_many(&mut numbers),
                48 | 58 => drop(of_many(&mut numbers)),
                _ => {}
            }
        }
    }
}

/// Returns the class of one of the 16 basic colours. Black, grey and white have the normal colour of text.
fn of_sixteen(number: u16) -> &'static str {
    ["", "t-red", "t-green", "t-yellow", "t-blue", "t-magenta", "t-cyan", ""]
        [usize::from(number % 8)]
}

/// Returns the class nearest to a colour of the 256-colour palette, or to a colour in RGB.
fn of_many(numbers: &mut impl Iterator<Item = u16>) -> &'static str {
    let mut next = || numbers.next().unwrap_or_default().min(255) as u8;
    match next() {
        5 => match next() {
            number @ 0..16 => of_sixteen(number.into()),
            // Numbers 16 to 231 are a colour cube with six steps for each component. Greys follow.
            number @ 16..232 => {
                let place = number - 16;
                nearest([place / 36, place / 6 % 6, place % 6].map(|step| step * 51))
            }
            _ => "",
        },
        2 => nearest([next(), next(), next()]),
        _ => "",
    }
}

fn nearest(parts: [u8; 3]) -> &'static str {
    let (most, least) = (parts.into_iter().max(), parts.into_iter().min());
    let (most, least) = (most.unwrap_or_default(), least.unwrap_or_default());
    if most - least < LEAST_HUE {
        return "";
    }
    let middle = least + (most - least) / 2;
    let bits = parts.map(|part| u16::from(part > middle));
    of_sixteen(bits[0] | bits[1] << 1 | bits[2] << 2)
}

/// Splits a text into runs with one style each.
fn runs(text: &str) -> Vec<(AnsiStyle, String)> {
    let mut runs = StyledRuns::default();
    let mut parser = Parser::<Utf8Parser>::new();
    text.bytes().for_each(|byte| parser.advance(&mut runs, byte));
    runs.runs
}

#[derive(Default)]
struct StyledRuns {
    look: AnsiStyle,
    runs: Vec<(AnsiStyle, String)>,
}

impl Perform for StyledRuns {
    fn print(&mut self, character: char) {
        match self.runs.last_mut() {
            Some((look, run)) if *look == self.look => run.push(character),
            _ => self.runs.push((self.look, character.to_string())),
        }
    }

    fn execute(&mut self, byte: u8) {
        if matches!(byte, b'\n' | b'\t') {
            self.print(char::from(byte));
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: u8) {
        if action == b'm' && intermediates.is_empty() && !ignore {
            self.look.set(params);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_classes_and_other_sequences_are_gone() {
        for (text, expected) in [
            ("a < b\r\n", "a &lt; b\r\n"),
            ("\x1b[31merror\x1b[0m: x", "<span class=\"t-red\">error</span>: x"),
            (
                "\x1b[1;92mok\x1b[22m!",
                "<span class=\"t-green t-bold\">ok</span><span class=\"t-green\">!</span>",
            ),
            (
                "\x1b[38;5;196mr\x1b[38:2:10:20:250mb\x1b[m.",
                "<span class=\"t-red\">r</span><span class=\"t-blue\">b</span>.",
            ),
            ("\x1b[48;5;1;4mu\x1b[24;7mv", "<span class=\"t-underline\">u</span>v"),
            ("\x1b[2K\x1b[1A\x1b]0;title\x07a\tb\r\n\x08é日", "a\tb\né日"),
            ("\x1b]8;;http://a.example\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b[31m<script>", "<span class=\"t-red\">&lt;script&gt;</span>"),
            ("cut \x1b[3", "cut "),
        ] {
            assert_eq!(html(text), expected, "{text:?}");
        }
        assert_eq!(plain("\x1b[31merror\x1b[0m:\n日"), "error:\n日");
        assert!(matches!(plain("a\x07b"), Cow::Borrowed("a\x07b")));
    }
}
