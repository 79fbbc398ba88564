//! Makes texts of others safe to show in a terminal.

/// Replaces the characters that control a terminal by U+FFFD.
pub fn harmless(text: &str) -> String {
    let is_harmful = |c: char| is_bidi_control(c) || c.is_control() && !matches!(c, '\n' | '\t');
    match text.contains(is_harmful) {
        true => text.replace(is_harmful, "\u{FFFD}"),
        false => text.to_owned(),
    }
}

/// Returns whether a character changes the direction of the following text, so that a terminal shows
/// characters in another order.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
