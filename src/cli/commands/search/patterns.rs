//! The texts of a search as flags, and flags for a search that finds something.

use crate::cli::commands::filters::ids;
use verbatim_answer::asked::{Asked, LetterCase, TextMatching, case_matters, filled};
use verbatim_answer::filters::Filters;
use verbatim_answer::readings::described;
use verbatim_answer::words::quoted;
use verbatim_base::model::{Matching, Request};
use verbatim_engine::{QueryReading, Scope};
use verbatim_text::shell;

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
    /// Find what looks equal: cafe finds café, テスト finds ﾃｽﾄ, don't finds don’t; for case, see -i and -s
    #[arg(hide_short_help = true, long)]
    fold: bool,
}

impl Patterns {
    /// Returns whether the text is given as words, in which filters may stand.
    pub(super) fn are_words(&self) -> bool {
        self.regexp.is_empty() && !self.words.is_empty()
    }

    /// Returns the question with these texts, without filters.
    pub(super) fn asked(&self) -> Asked {
        let mut expressions = self.regexp.iter().cloned();
        let text = expressions.next().unwrap_or_else(|| self.words.join(" "));
        let case = if self.case_sensitive {
            LetterCase::Sensitive
        } else if self.ignore_case {
            LetterCase::Ignored
        } else {
            LetterCase::Smart
        };
        Asked {
            text,
            or: expressions.chain(self.or.iter().cloned()).collect(),
            and: self.and.clone(),
            not: self.not.clone(),
            matching: TextMatching {
                is_regex: !self.regexp.is_empty(),
                is_word: self.word,
                case,
                ignores_accents: self.fold,
            },
            ..Asked::default()
        }
    }
}

/// Returns a hint: what another search finds, and its command.
pub(super) fn hint(reading: &QueryReading, filters: &Filters) -> String {
    let QueryReading { request, scope, .. } = reading;
    let mut words = vec!["verbatim".to_owned(), "search".to_owned()];
    if *scope != Scope::default() {
        let given = filters.given();
        words.extend(given.flat_map(|(name, value)| [format!("--{name}"), value.to_owned()]));
    }
    words.extend(arguments_of(request));
    let command: Vec<String> = words.iter().map(|word| shell::quoted(word)).collect();
    format!("{}: {}", described(reading, quoted), command.join(" "))
}

/// Returns the arguments of `verbatim search` that make a request, without its roles and dates.
fn arguments_of(request: &Request) -> Vec<String> {
    let Request { text, or, and, not, matching, case_sensitive, ignore_accents, .. } = request;
    let is_regex = *matching == Matching::Regex;
    let expressions = if is_regex { std::slice::from_ref(text) } else { &[] };
    let mut texts: Vec<String> = Vec::new();
    for (flag, values) in
        [("-e", expressions), ("--or", &or[..]), ("--and", &and[..]), ("--not", &not[..])]
    {
        texts.extend(values.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    let case = match (*case_sensitive, case_matters(request)) {
        (true, false) => Some("-s"),
        (false, true) => Some("-i"),
        _ => None,
    };
    let flags =
        [(*matching == Matching::Word).then_some("-w"), ignore_accents.then_some("--fold"), case];
    let mut arguments: Vec<String> = flags.into_iter().flatten().map(str::to_owned).collect();
    if is_regex {
        arguments.extend(texts);
    } else if text.starts_with('-') {
        // No flag may follow the two dashes.
        arguments.extend(texts);
        arguments.extend(["--".to_owned(), text.clone()]);
    } else {
        arguments.push(text.clone());
        arguments.extend(texts);
    }
    arguments
}
