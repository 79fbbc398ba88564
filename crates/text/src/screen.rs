//! Takes the control of terminals out of texts: escape sequences (ECMA-48, xterm), and lines that overwrite
//! themselves, such as progress bars.
//!
//! Invariant: a text without such control is returned as it is, without a copy.
//! Invariant: time and memory are linear in the length of the text, whatever the sequences say.

mod control;
mod line;

use std::borrow::Cow;

use memchr::{memchr_iter, memchr3};

use self::control::{Control, ESCAPE, FIRST_OF_C1, control, is_introducer};
use self::line::TerminalScreen;

/// Returns the output of a program as a terminal shows it, line by line.
///
/// A line end is `\n`. The cursor moves within its line only: a sequence that moves it to another line begins
/// a new line, so that no line is lost.
pub fn shown(output: &str) -> Cow<'_, str> {
    if is_plain(output) {
        return Cow::Borrowed(output);
    }
    let mut screen = TerminalScreen::new(output.len());
    parse(output, &mut |part| screen.apply(part));
    Cow::Owned(screen.finish())
}

/// Returns a text that a person or a model wrote, without escape sequences and backspaces. A carriage return
/// ends a line, because terminals paste line ends so. Nothing is overwritten.
pub fn written(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    parse(text, &mut |part| match part {
        Control::Text(text) => plain.push_str(text),
        Control::LineEnd | Control::Return => plain.push('\n'),
        _ => {}
    });
    Cow::Owned(plain)
}

fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr3(ESCAPE, b'\r', 0x08, bytes).is_none()
        && !memchr_iter(FIRST_OF_C1, bytes).any(|at| is_introducer(bytes[at + 1]))
}

fn parse<'t>(text: &'t str, add: &mut dyn FnMut(Control<'t>)) {
    let mut from = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(next) = bytes[at..].iter().position(|byte| is_special(*byte)) {
        at += next;
        match control(&text[at..]) {
            Some((part, length)) => {
                if from < at {
                    add(Control::Text(&text[from..at]));
                }
                add(part);
                at += length;
                from = at;
            }
            None => at += 1,
        }
    }
    if from < text.len() {
        add(Control::Text(&text[from..]));
    }
}

fn is_special(byte: u8) -> bool {
    byte != b'\t' && byte.is_ascii_control() || byte == FIRST_OF_C1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cases: &[(&str, &str)]) {
        for (output, expected) in cases {
            assert_eq!(shown(output), *expected, "{output:?}");
        }
    }

    #[test]
    fn colours_of_tools_go() {
        check(&[
            // rustc and cargo
            (
                "\x1b[1m\x1b[31merror\x1b[0m\x1b[1m: mismatched types\x1b[0m",
                "error: mismatched types",
            ),
            (
                "\x1b[0m\x1b[1m\x1b[38;5;9merror[E0308]\x1b[0m\x1b[0m\x1b[1m: a\x1b[0m\n\x1b[0m \x1b[0m\x1b[0m\x1b[1m\x1b[38;5;12m--> \x1b[0m\x1b[0msrc/a.rs:4:9\x1b[0m",
                "error[E0308]: a\n --> src/a.rs:4:9",
            ),
            (
                "\x1b[1m\x1b[32m   Compiling\x1b[0m pond v0.1.0\n\x1b[1m\x1b[36m    Building\x1b[0m [====>   ] 3/10: pond\r\x1b[K\x1b[1m\x1b[32m    Finished\x1b[0m dev\n",
                "   Compiling pond v0.1.0\n    Finished dev\n",
            ),
            // gcc and grep --color
            (
                "\x1b[01m\x1b[Ka.c:1:2:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kno",
                "a.c:1:2: error: no",
            ),
            ("\x1b[35m\x1b[Ka.txt\x1b[m\x1b[K\x1b[36m\x1b[K:\x1b[m\x1b[Kreed", "a.txt:reed"),
            // vitest
            (
                "\x1b[?25l\x1b[2K\x1b[1G\n\x1b[7m\x1b[1m\x1b[36m RUN \x1b[39m\x1b[22m\x1b[27m \x1b[36mv1\x1b[39m\n \x1b[31m❯\x1b[39m a.test.ts \x1b[2m(\x1b[22m2 tests\x1b[2m)\x1b[22m\n\x1b[31m\x1b[1mAssertionError\x1b[22m: expected 1\x1b[39m\x1b[?25h",
                "\n RUN  v1\n ❯ a.test.ts (2 tests)\nAssertionError: expected 1",
            ),
            // pytest
            (
                "\x1b[1m===== test session starts =====\x1b[0m\r\na.py \x1b[32m.\x1b[0m\x1b[31mF\x1b[0m\x1b[31m    [100%]\x1b[0m\r\n\x1b[1m\x1b[31mE   assert 1 == 2\x1b[0m\r\n",
                "===== test session starts =====\na.py .F    [100%]\nE   assert 1 == 2\n",
            ),
            // eslint
            (
                "\x1b[0m\x1b[0m\n\x1b[0m\x1b[4m/x/a.js\x1b[24m\x1b[0m\n\x1b[0m  \x1b[2m1:1\x1b[22m  \x1b[31merror\x1b[39m  no  \x1b[2mno-undef\x1b[22m\x1b[0m",
                "\n/x/a.js\n  1:1  error  no  no-undef",
            ),
            // git diff --color
            (
                "\x1b[1mdiff --git a/x b/x\x1b[m\n\x1b[36m@@ -1 +1 @@\x1b[m\n\x1b[31m-old\x1b[m\n\x1b[32m+\x1b[m\x1b[32mnew\x1b[m\x1b[41m \x1b[m",
                "diff --git a/x b/x\n@@ -1 +1 @@\n-old\n+new ",
            ),
            ("\x1b[38:2::1:2:3mred\x1b[m \x1b[1;4;38;2;0;0;0mx\x1b(B\x1b[m\x0f", "red x"),
        ]);
    }

    #[test]
    fn progress_is_shown_as_it_ends() {
        check(&[
            ("10%\r20%\r100%\n", "100%\n"),
            ("100%\r9\r\n", "900%\n"),
            ("a\x08b", "b"),
            ("abc\x08\x08X", "aXc"),
            ("ab\x08 \x08", "a"),
            // man and nroff: bold and underlined
            ("N\x08NA\x08A _\x08x", "NA x"),
            ("one\r\ntwo\r\r\nthree\r", "one\ntwo\nthree"),
            // npm
            (
                "\x1b[?25l[#...] / fetch: sill a\x1b[0m\x1b[K\r[####] - reify: b\x1b[0m\x1b[K\r\x1b[K\x1b[?25hadded 3 packages\n",
                "added 3 packages\n",
            ),
            ("\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0Kadded 3", "added 3"),
            // curl
            ("  % Total\n\r  0     0\r 50   512\r100  1024\n", "  % Total\n100  1024\n"),
            ("\r####      50.0%\r######## 100.0%\n", "######## 100.0%\n"),
            // pip
            (
                "\x1b[?25l     \x1b[38;5;237m━━━━\x1b[0m \x1b[32m0.0/9.1 MB\x1b[0m \x1b[31m?\x1b[0m\r\x1b[2K     \x1b[38;2;114;156;31m━━━━\x1b[0m \x1b[32m9.1/9.1 MB\x1b[0m\n\x1b[?25hok",
                "     ━━━━ 9.1/9.1 MB\nok",
            ),
            // tqdm
            (
                "train:   0%|          | 0/8 [00:00<?, ?it/s]\rtrain:  50%|█████     | 4/8 [00:01<00:01]      \rtrain: 100%|██████████| 8/8 [00:02]\x1b[K\n",
                "train: 100%|██████████| 8/8 [00:02]\n",
            ),
            // docker pull: the lines of other rows stay
            (
                "a1: Pulling\nb2: Pulling\n\x1b[2A\x1b[2K\ra1: Done\x1b[2B\rend",
                "a1: Pulling\nb2: Pulling\na1: Done\nend",
            ),
            // ora and listr: eraseLines
            ("- one\n- two\x1b[2K\x1b[1A\x1b[2K\x1b[Gdone", "- one\ndone"),
            ("Waiting...\rDone\x1b[K", "Done"),
        ]);
    }

    #[test]
    fn the_cursor_moves_in_its_line() {
        check(&[
            ("a\x1b[3Cb", "a   b"),
            ("ok\x1b[10Gx", "ok       x"),
            ("abcdef\x1b[3DX", "abcXef"),
            ("abcdef\x1b[2G\x1b[2P", "adef"),
            ("abcdef\x1b[2G\x1b[2@", "a  bcdef"),
            ("abcdef\x1b[2G\x1b[2X", "a  def"),
            ("abcdef\x1b[3G\x1b[1K", "   def"),
            ("x\x1b[3b", "xxxx"),
            ("ab\x1b7cd\x1b8X", "abXd"),
            ("a\tb\rX", "X\tb"),
            ("a\tb\rab\x1b[3GX", "abX     b"),
            // Wide characters take two columns, and marks none.
            ("日本\rX", "X 本"),
            ("日本\x08\x08X", "日X"),
            ("e\u{301}a\x08X", "e\u{301}X"),
            ("top\x1b[5;3Hlow", "top\n  low"),
            ("old\x1b[2J\x1b[Hnew", "old\nnew"),
            ("a\x1bEb\x1bMc", "a\nb\n c"),
        ]);
    }

    #[test]
    fn sequences_of_every_form() {
        check(&[
            ("\x1b]0;title\x07a\x1b]2;t\x1b\\b", "ab"),
            ("\x1b]8;id=1;https://a.example/b\x1b\\link\x1b]8;;\x1b\\.", "link."),
            ("\x1b]8;;https://a.example\x07link\x1b]8;;\x07.", "link."),
            ("\x1bP1$r0m\nq\x1b\\a\x1b_app\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d", "abcd"),
            ("\x1bktitle\x1b\\a\x1bkb", "akb"),
            ("\x1b(0\x1b)B\x1b#8\x1b%Gx\x1b=\x1b>\x1bcy", "x\ny"),
            ("\x1b[31;1m\x1b[>4;2m\x1b[0 qx\x1b[!p", "x"),
            ("\u{9b}31mred\u{9b}0m\u{9d}0;t\u{9c}.", "red."),
            // Sequences that are cut off or broken hide no text.
            ("cut \x1b[3", "cut "),
            ("\x1b[31\nb", "\nb"),
            ("\x1b[31é", "é"),
            ("\x1b]no end\nb", "no end\nb"),
            ("\x1b]0;no end\nb", "\nb"),
            ("\x1bPno end\nb", "\nb"),
            ("\x1b]0;t\x1b[31mb", "b"),
            ("a\x1b", "a"),
            ("a\x1b\x1b[1mb\x1b\nc", "ab\nc"),
            ("a\x1b b \x1bé \x1bx", "a b é x"),
            ("a\x07\x00b\x1b[m", "ab"),
        ]);
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in [
            "",
            "plain\n\ttext\n",
            "\\u001b[31m \\x1b[0m \\033[1m ^[[31m",
            "a\u{85}b \u{92}c\u{93} £ © é 日本",
            "\u{9d} no end \u{9e}\u{90} \u{9b}",
        ] {
            assert_eq!(shown(text), text);
            assert_eq!(written(text), text);
        }
        assert!(matches!(shown("£ © \u{85}\n"), Cow::Borrowed(_)));
        assert!(matches!(written("£ © \u{85}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn written_texts_lose_no_words() {
        for (text, expected) in [
            ("first\rsecond\r\nthird", "first\nsecond\nthird"),
            ("\x08word\x08", "word"),
            ("\x1b[200~pasted\x1b[201~ \x1b[2Kx", "pasted x"),
            ("\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ] {
            assert_eq!(written(text), expected, "{text:?}");
        }
    }

    /// Checks that hostile sequences cost neither memory nor quadratic time.
    #[test]
    fn many_sequences() {
        let many = |part: &str| part.repeat(20_000);
        for part in [
            "\x1b[999999999999C\u{301}x",
            "\x1b[500Cx\n",
            "x\x1b[999999b",
            "x\x1b[1K",
            "x\x1b[2K",
            "x\x1b[1G\x1b[999@",
            "x\x08",
            "\x1b]0;x",
            "\x1bPx\n",
            "\u{90}x",
            "\u{9b}1",
            "xy\r",
            "日\x1b[D",
        ] {
            let text = many(part);
            assert!(shown(&text).len() <= 2 * text.len() + (1 << 17), "{part:?}");
            assert!(written(&text).len() <= text.len());
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_left_for_a_terminal(parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "\x1b", "[", "]", "0", ";", "1", "m", "K", "C", "G", "\r", "\n", "\x08", "\x07", "\\", "P", "H",
                "A", "@", "b", "\t", "日", "e\u{301}", "\u{9b}", "\u{9d}", "\u{9c}", " ", "X", "x", "2",
            ]), 0..40)) {
            let text = parts.concat();
            for plain in [shown(&text), written(&text)] {
                proptest::prop_assert!(!plain.contains(['\x1b', '\r', '\x08']), "{:?}", plain);
            }
        }
    }
}
