//! Makes texts of others safe to show in a terminal.

/// Returns a text without characters that control a terminal.
pub(crate) fn harmless(text: &str) -> String {
    let is_harmful = |c: char| is_bidi_control(c) || c.is_control() && !matches!(c, '\n' | '\t');
    text.chars().map(|c| if is_harmful(c) { '\u{FFFD}' } else { c }).collect()
}

/// Returns whether a character changes the direction of the text after it, so that a terminal shows the
/// characters in another order.
pub(crate) fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
