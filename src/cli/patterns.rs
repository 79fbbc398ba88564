//! The texts of an exact search, and the way in which they match.

use clap::error::ErrorKind;

use super::{
    error::{Error, Result},
    filters::ids,
};
use verbatim_base::model::{Matching, Request};
use verbatim_engine as engine;
use verbatim_text::expression::literals;

#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Patterns {
    /// The words to find, as one text; write -- before one that begins with a dash
    ///
    /// They may be left out beside a filter, such as --since or --project.
    #[arg(required_unless_present_any = ids().chain(["regexp", "and", "not"]), value_name = "WORDS")]
    words: Vec<String>,
    /// Find what this regular expression matches
    ///
    /// ^ and $ match at the beginning and the end of a line. Repeat it to find any of several.
    #[arg(short = 'e', long, value_name = "REGEX", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["words", "fold"])]
    regexp: Vec<String>,
    /// Find the text only as whole words
    #[arg(short = 'w', long)]
    word: bool,
    /// Also find messages that have this text (repeatable)
    #[arg(hide_short_help = true, long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(value_parser = filled)]
    or: Vec<String>,
    /// Only messages that have this too, in the text or the title (repeatable)
    #[arg(hide_short_help = true, long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(value_parser = filled)]
    and: Vec<String>,
    /// Only messages that do not have this, in the text or the title (repeatable)
    #[arg(hide_short_help = true, long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(value_parser = filled)]
    not: Vec<String>,
    /// Ignore the case of letters, even if the text has a capital letter
    #[arg(hide_short_help = true, short = 'i', long, overrides_with = "case_sensitive")]
    ignore_case: bool,
    /// Do not ignore the case of letters; this is the default if the text has a capital letter
    #[arg(hide_short_help = true, short = 's', long, overrides_with = "ignore_case")]
    case_sensitive: bool,
    /// Ignore accents and width: cafe finds café, テスト finds ﾃｽﾄ; for the case of letters, see -i and -s
    #[arg(hide_short_help = true, long)]
    fold: bool,
}

impl Patterns {
    /// Returns the patterns of a search for one text.
    #[cfg(feature = "picker")]
    pub(super) fn of(text: &str) -> Patterns {
        Patterns { words: vec![text.to_owned()], ..Patterns::default() }
    }

    pub(super) fn text(&self) -> String {
        self.words.join(" ")
    }

    /// Returns the question to rank by: the words, and the texts that an answer must or must not have.
    pub(super) fn question(&self) -> String {
        let quoted = |text: &String| format!("\"{}\"", text.replace('"', " "));
        let and = self.and.iter().map(quoted);
        let not = self.not.iter().map(|text| format!("-{}", quoted(text)));
        let parts = std::iter::once(self.text()).chain(and).chain(not);
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn request(&self) -> Request {
        let trimmed = |text: &String| engine::trimmed(text).to_owned();
        let matching = match () {
            () if !self.regexp.is_empty() => Matching::Regex,
            () if self.word => Matching::Word,
            () => Matching::Literal,
        };
        let expression = |text: &String| match self.word {
            true => format!(r"\b(?:{text})\b"),
            false => text.clone(),
        };
        let mut expressions = self.regexp.iter().map(expression);
        let text = expressions.next().unwrap_or_else(|| trimmed(&self.text()));
        let request = Request {
            text,
            or: expressions.chain(self.or.iter().cloned()).collect(),
            and: self.and.clone(),
            not: self.not.clone(),
            matching,
            ignore_accents: self.fold,
            ..Request::default()
        };
        let case_sensitive = self.case_sensitive || !self.ignore_case && case_matters(&request);
        Request { case_sensitive, ..request }
    }

    /// Refuses flags that ranked search does not support.
    pub(super) fn refuse_for_ranking(&self) -> Result<()> {
        for (given, name) in [
            (!self.regexp.is_empty(), "--regexp"),
            (self.word, "--word"),
            (!self.or.is_empty(), "--or"),
            (self.ignore_case, "--ignore-case"),
            (self.case_sensitive, "--case-sensitive"),
            (self.fold, "--fold"),
        ] {
            refuse(given, name)?;
        }
        Ok(())
    }
}

/// Refuses a blank text, which every message has.
fn filled(text: &str) -> Result<String, &'static str> {
    match engine::trimmed(text).is_empty() {
        true => Err("every message has the empty text; give a text that only some messages have"),
        false => Ok(text.to_owned()),
    }
}

/// Refuses a flag of exact search with `--mode`.
pub(super) fn refuse(given: bool, name: &str) -> Result<()> {
    if !given {
        return Ok(());
    }
    let message = format!("{name} is for exact search; leave out --mode or {name}\n");
    Err(Error::Usage(clap::Error::raw(ErrorKind::ArgumentConflict, message)))
}

/// Returns whether the case of letters matters if no flag says so, as ripgrep's `--smart-case` decides: if a
/// text to find has an upper-case letter, or if expressions have no literal character, such as `\p{Lu}`.
fn case_matters(request: &Request) -> bool {
    let Request { text, or, and, not, matching, .. } = request;
    let texts = std::iter::once(text).chain(or).chain(and).chain(not);
    let literals: String = match matching {
        Matching::Regex => texts.map(|text| literals(text)).collect(),
        _ => texts.map(String::as_str).collect(),
    };
    literals.chars().any(char::is_uppercase) || *matching == Matching::Regex && literals.is_empty()
}

/// Returns the arguments of `verbatim search` that make a request, without its roles and dates.
pub(super) fn arguments_of(request: &Request) -> Vec<String> {
    let Request { text, or, and, not, matching, case_sensitive, ignore_accents, .. } = request;
    let mut arguments = Vec::new();
    let mut add = |flag: &str, value: &str| arguments.extend([flag.to_owned(), value.to_owned()]);
    let is_regex = *matching == Matching::Regex;
    if is_regex {
        add("-e", text);
    }
    or.iter().for_each(|text| add("--or", text));
    and.iter().for_each(|text| add("--and", text));
    not.iter().for_each(|text| add("--not", text));
    let case = match (*case_sensitive, case_matters(request)) {
        (true, false) => Some("-s"),
        (false, true) => Some("-i"),
        _ => None,
    };
    let flags =
        [(*matching == Matching::Word).then_some("-w"), ignore_accents.then_some("--fold"), case];
    let mut first: Vec<String> = flags.into_iter().flatten().map(str::to_owned).collect();
    if !is_regex {
        first.extend(text.starts_with('-').then(|| "--".to_owned()));
        first.push(text.clone());
    }
    match first.iter().position(|flag| flag == "--") {
        // No flag may follow the two dashes.
        Some(at) => {
            let words = first.split_off(at);
            first.into_iter().chain(arguments).chain(words).collect()
        }
        None => first.into_iter().chain(arguments).collect(),
    }
}
