//! The dialect of Markdown that messages are written in, and the languages of its code: for the page and for
//! the terminal.

use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, Options, Parser};
use syntect::parsing::{SyntaxReference, SyntaxSet};

/// The longest name of a language, in characters.
const LONGEST_LANGUAGE: usize = 24;

/// The languages whose code is coloured, loaded for the first code block.
pub static LANGUAGES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

/// Returns a parser of a message's text.
pub fn parser(text: &str) -> Parser<'_> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(text, options)
}

/// Returns the name of the language of a code block; empty if its first line names none.
pub fn language_of(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else { return String::new() };
    let word = info.split([' ', ',', '{', '\t']).next().unwrap_or_default();
    word.chars().take(LONGEST_LANGUAGE).collect()
}

/// Returns the syntax of a language; `None` if its code is not coloured.
pub fn syntax_of(language: &str) -> Option<&'static SyntaxReference> {
    let name = match language.to_ascii_lowercase().as_str() {
        "typescript" | "ts" | "jsx" | "tsx" | "javascript" => "js".to_owned(),
        "shell" | "zsh" | "console" | "shellsession" => "sh".to_owned(),
        "jsonc" | "json5" | "jsonl" => "json".to_owned(),
        "" | "text" | "txt" | "plaintext" | "plain" => return None,
        other => other.to_owned(),
    };
    LANGUAGES.find_syntax_by_token(&name)
}
