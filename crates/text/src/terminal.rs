//! Makes texts of others safe to show in a terminal.

/// Replaces the characters that control a terminal by U+FFFD.
pub fn harmless(text: &str) -> String {
    text.replace(
        |c: char| is_deceptive(c) || c.is_control() && !matches!(c, '\n' | '\t'),
        "\u{FFFD}",
    )
}

/// Returns whether a terminal shows a text in another way than it is because of a character: controls of the
/// direction of the following text, annotation marks, and tags, which are invisible.
pub fn is_deceptive(c: char) -> bool {
    matches!(
        c,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
            | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_terminal_gets() {
        let text = "a\u{FFF9}b\u{FFFB}c\u{E0001}d\u{E0041}e\u{202E}f\u{1b}g";
        assert_eq!(harmless(text), "a\u{FFFD}b\u{FFFD}c\u{FFFD}d\u{FFFD}e\u{FFFD}f\u{FFFD}g");
        assert_eq!(harmless("é 日本 😀\n\t"), "é 日本 😀\n\t");
    }
}
