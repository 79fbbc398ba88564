//! What is asked for: the question of a person or a client as a value. A command line, an address and a typed
//! text become an [`Asked`], so that the same question has the same answer in every face.

use super::exact::ExactSearch;
use super::filters::{Filters, names};
use verbatim_base::call::Call;
use verbatim_base::model::{Matching, Request};
use verbatim_engine::{self as engine, Engine, Mode, Question, Scope, trimmed};
use verbatim_text::{expression::literals, snippet::echo};

/// The number of messages of an answer if nobody asks for more or fewer.
pub const USUAL_LIMIT: usize = 50;

/// The most messages of a ranked answer. Messages with a lower rank do not answer the question.
pub const MOST_RANKED: usize = 1_000;

/// A question to the chats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The text to find, an expression, or the question that messages answer.
    pub text: String,
    /// Texts of which a message may have one in place of the text.
    pub or: Vec<String>,
    /// Texts that a message must have too.
    pub and: Vec<String>,
    /// Texts that a message must not have.
    pub not: Vec<String>,
    /// How the texts match; a ranked search does without.
    pub matching: TextMatching,
    /// How messages are ranked; `None` for an exact search.
    pub mode: Option<Mode>,
    /// Which messages are asked for.
    pub filters: Filters,
    /// Whether the oldest messages come first.
    pub oldest_first: bool,
    /// The most messages, 0 for all; `None` for the usual number.
    pub limit: Option<usize>,
}

/// How the texts of an exact search match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextMatching {
    /// Whether the texts are regular expressions.
    pub is_regex: bool,
    /// Whether the texts match only as whole words.
    pub is_word: bool,
    /// Whether the case of letters matters.
    pub case: LetterCase,
    /// Whether accents and width are ignored.
    pub ignores_accents: bool,
}

/// Whether the case of letters matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LetterCase {
    /// If a text has a capital letter, as ripgrep's `--smart-case` decides.
    #[default]
    Smart,
    /// It matters.
    Sensitive,
    /// It does not matter.
    Ignored,
}

/// The reason why something cannot be asked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskedError {
    /// An address has a parameter that does not exist.
    #[error("there is no parameter {name:?}, only q, {known}")]
    UnknownParameter {
        /// The parameter.
        name: String,
        /// The names of all others.
        known: String,
    },
    /// A parameter with one value stands twice in an address.
    #[error("{name} is given twice{}", if *name == TEXT { "; further texts are `or`, `and` and `not`" } else { "" })]
    Twice {
        /// The parameter.
        name: &'static str,
    },
    /// The value of a parameter is no value for it.
    #[error("{name} is {expected}, not {value:?}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The values that it takes.
        expected: &'static str,
        /// What was given.
        value: String,
    },
    /// An address has no text.
    #[error("q, the text to find, is missing")]
    NoText,
    /// A text is blank, and every message has it.
    #[error("every message has the empty text; give a text that only some messages have")]
    Blank,
    /// An option is for exact search only.
    #[error("{option} is for exact search; leave out mode or {option}")]
    NotRanked {
        /// The name of the option.
        option: &'static str,
    },
    /// A regular expression matches with its accents.
    #[error("regex and fold do not go together; leave out one of them")]
    FoldedRegex,
}

/// The parameters of an address that are no filters.
const TEXT: &str = "q";
const REGEX: &str = "regex";
const WORD: &str = "word";
const OR: &str = "or";
const AND: &str = "and";
const NOT: &str = "not";
const IGNORE_CASE: &str = "ignore-case";
const CASE_SENSITIVE: &str = "case-sensitive";
const FOLD: &str = "fold";
const MODE: &str = "mode";
const LIMIT: &str = "limit";
const OLDEST: &str = "oldest";
const OTHERS: [&str; 11] =
    [REGEX, WORD, OR, AND, NOT, IGNORE_CASE, CASE_SENSITIVE, FOLD, MODE, LIMIT, OLDEST];

/// The modes by name; `None` is exact search.
pub const MODES: [(&str, Option<Mode>); 5] = [
    ("exact", None),
    // The name in the MCP tool `search`.
    ("text", None),
    ("words", Some(Mode::Text)),
    ("vector", Some(Mode::Vector)),
    ("both", Some(Mode::Both)),
];

impl Asked {
    /// Takes the text, with its filters, from how a typed text was read.
    pub fn read_as(&mut self, typed: Asked) {
        let Asked { text, or, and, not, filters, .. } = typed;
        self.text = text;
        self.or.extend(or);
        self.and.extend(and);
        self.not.extend(not);
        for (name, value) in filters.given() {
            let _is_filter = self.filters.add(name, value);
        }
    }

    /// Returns the question for a text that is found as it is.
    pub fn of(text: &str) -> Asked {
        Asked { text: text.to_owned(), ..Asked::default() }
    }

    /// Returns the exact search of these texts in a scope. Fails if a text is no expression, or too long.
    pub fn search<'a>(
        &self,
        engine: &'a Engine,
        scope: Scope,
        call: &Call,
    ) -> engine::Result<ExactSearch<'a>> {
        let mut search = ExactSearch::new(engine, self.request(), scope, call)?;
        search.oldest_first = self.oldest_first;
        Ok(search)
    }

    /// Returns the question in the fields of an address, as `/search` takes them.
    pub fn from_fields(fields: &[(String, String)]) -> Result<Asked, AskedError> {
        let mut asked = Asked::default();
        let mut given = Vec::new();
        for (name, value) in fields {
            let Some(name) = known(name) else {
                let known = OTHERS.into_iter().chain(names()).collect::<Vec<_>>().join(", ");
                let name = echo(name).into_owned();
                return Err(AskedError::UnknownParameter { name, known });
            };
            if !may_repeat(name) && given.contains(&name) {
                return Err(AskedError::Twice { name });
            }
            given.push(name);
            asked.take(name, value)?;
        }
        if !given.contains(&TEXT) {
            return Err(AskedError::NoText);
        }
        asked.check()?;
        Ok(asked)
    }

    fn take(&mut self, name: &'static str, value: &str) -> Result<(), AskedError> {
        let matching = &mut self.matching;
        match name {
            TEXT => self.text = value.to_owned(),
            OR => self.or.push(filled(value)?),
            AND => self.and.push(filled(value)?),
            NOT => self.not.push(filled(value)?),
            REGEX => matching.is_regex = is_on(name, value)?,
            WORD => matching.is_word = is_on(name, value)?,
            FOLD => matching.ignores_accents = is_on(name, value)?,
            OLDEST => self.oldest_first = is_on(name, value)?,
            IGNORE_CASE if is_on(name, value)? => matching.case = LetterCase::Ignored,
            CASE_SENSITIVE if is_on(name, value)? => matching.case = LetterCase::Sensitive,
            IGNORE_CASE | CASE_SENSITIVE => {}
            MODE => {
                let mode = MODES.iter().find(|(name, _)| *name == value);
                let expected = "exact, words, vector or both";
                let (_, mode) = mode.ok_or_else(|| wrong(name, expected, value))?;
                self.mode = *mode;
            }
            LIMIT => {
                let limit = value.parse().map_err(|_| wrong(name, "a number", value))?;
                self.limit = Some(limit);
            }
            filter => {
                let _is_filter = self.filters.add(filter, value);
            }
        }
        Ok(())
    }

    /// Refuses what does not go together.
    pub fn check(&self) -> Result<(), AskedError> {
        let TextMatching { is_regex, is_word, case, ignores_accents } = self.matching;
        if is_regex && ignores_accents {
            return Err(AskedError::FoldedRegex);
        }
        if self.mode.is_none() {
            return Ok(());
        }
        let exact_only = [
            (is_regex, REGEX),
            (is_word, WORD),
            (!self.or.is_empty(), OR),
            (case == LetterCase::Ignored, IGNORE_CASE),
            (case == LetterCase::Sensitive, CASE_SENSITIVE),
            (ignores_accents, FOLD),
            (self.oldest_first, OLDEST),
        ];
        match exact_only.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => Err(AskedError::NotRanked { option }),
            None => Ok(()),
        }
    }

    /// Returns the exact search of the texts, without its filters and its limit.
    pub fn request(&self) -> Request {
        let TextMatching { is_regex, is_word, case, ignores_accents } = self.matching;
        let matching = if is_regex {
            Matching::Regex
        } else if is_word {
            Matching::Word
        } else {
            Matching::Literal
        };
        let mut request = Request {
            text: if is_regex { self.text.clone() } else { trimmed(&self.text).to_owned() },
            or: self.or.clone(),
            and: self.and.clone(),
            not: self.not.clone(),
            matching,
            ignore_accents: ignores_accents,
            ..Request::default()
        };
        request.case_sensitive = match case {
            LetterCase::Smart => case_matters(&request),
            LetterCase::Sensitive => true,
            LetterCase::Ignored => false,
        };
        if is_regex && is_word {
            request.text = whole_words(&request.text);
            for text in request.or.iter_mut().chain(&mut request.and).chain(&mut request.not) {
                *text = whole_words(text);
            }
        }
        request
    }

    /// Returns the question to rank by: the text, and in it the texts that an answer must or must not have.
    pub fn question(&self, mode: Mode, scope: Scope) -> Question {
        let and = self.and.iter().map(|text| quoted(text));
        let not = self.not.iter().map(|text| format!("-{}", quoted(text)));
        let parts = std::iter::once(self.text.clone()).chain(and).chain(not);
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        let limit = self.most().unwrap_or(MOST_RANKED);
        Question { concepts: vec![parts.join(" ")], mode, scope, limit, ..Question::default() }
    }

    /// Returns the most messages of the answer; `None` for all.
    pub fn most(&self) -> Option<usize> {
        match self.limit {
            Some(0) => None,
            limit => Some(limit.unwrap_or(USUAL_LIMIT)),
        }
    }
}

/// Returns the name of a parameter as it is known, if it is; `source` and `service` are one filter.
fn known(name: &str) -> Option<&'static str> {
    std::iter::once(TEXT).chain(OTHERS).chain(names()).find(|known| *known == name)
}

fn may_repeat(name: &str) -> bool {
    let is_filter = name != TEXT && !OTHERS.contains(&name);
    [OR, AND, NOT].contains(&name) || is_filter && Filters::may_repeat(name)
}

fn is_on(name: &'static str, value: &str) -> Result<bool, AskedError> {
    match value {
        "" | "1" | "true" | "on" => Ok(true),
        "0" | "false" | "off" => Ok(false),
        other => Err(wrong(name, "true or false", other)),
    }
}

fn wrong(name: &'static str, expected: &'static str, value: &str) -> AskedError {
    AskedError::Value { name, expected, value: echo(value).into_owned() }
}

/// Refuses a blank text, which every message has.
pub fn filled(text: &str) -> Result<String, AskedError> {
    if trimmed(text).is_empty() { Err(AskedError::Blank) } else { Ok(text.to_owned()) }
}

/// Returns an expression of the matches that are whole words: no word goes on at an end of them.
fn whole_words(expression: &str) -> String {
    format!(r"(?:\b{{start-half}}|\b)(?:{expression})(?:\b{{end-half}}|\b)")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', " "))
}

/// Returns whether the case of letters matters if nobody says so: if a text to find has an upper-case letter, or
/// if expressions have no literal character, such as `\p{Lu}`.
pub fn case_matters(request: &Request) -> bool {
    let Request { text, or, and, not, matching, .. } = request;
    let texts = std::iter::once(text).chain(or).chain(and).chain(not);
    let literals: String = match matching {
        Matching::Regex => texts.map(|text| literals(text)).collect(),
        _ => texts.map(String::as_str).collect(),
    };
    literals.chars().any(char::is_uppercase) || *matching == Matching::Regex && literals.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(query: &[(&str, &str)]) -> Result<Asked, AskedError> {
        let fields: Vec<(String, String)> =
            query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Asked::from_fields(&fields)
    }

    #[test]
    fn an_address_asks_as_a_command_line_does() {
        let asked = fields(&[
            ("q", " Red "),
            ("or", "blue"),
            ("not", "green"),
            ("word", ""),
            ("fold", "1"),
            ("ignore-case", "on"),
            ("service", "codex"),
            ("source", "claude"),
            ("since", "7d"),
            ("limit", "0"),
            ("oldest", "true"),
        ])
        .unwrap();
        let request = asked.request();
        assert_eq!((request.text.as_str(), request.matching), ("Red", Matching::Word));
        assert!(!request.case_sensitive && request.ignore_accents && asked.oldest_first);
        assert_eq!((request.or, request.not), (vec!["blue".to_owned()], vec!["green".to_owned()]));
        assert_eq!((asked.most(), asked.filters.since.as_deref()), (None, Some("7d")));
        assert_eq!(asked.filters.names.of("service"), ["codex", "claude"]);
        let usual = fields(&[("q", "x")]).unwrap();
        assert_eq!((usual.most(), usual), (Some(USUAL_LIMIT), Asked::of("x")));
        for (_, mode) in MODES {
            let names = MODES.iter().filter(|(_, other)| *other == mode);
            for (name, _) in names {
                assert_eq!(fields(&[("q", "x"), ("mode", name)]).unwrap().mode, mode);
            }
        }
    }

    #[test]
    fn what_cannot_be_asked_says_why() {
        for (query, why) in [
            (&[][..], "q, the text to find, is missing"),
            (&[("q", "x"), ("colour", "1")], "there is no parameter \"colour\", only q, regex, "),
            (&[("q", "x"), ("q", "y")], "q is given twice; further texts"),
            (&[("q", "x"), ("limit", "1"), ("limit", "2")], "limit is given twice"),
            (&[("q", "x"), ("since", "1d"), ("since", "2d")], "since is given twice"),
            (&[("q", "x"), ("fold", "maybe")], "fold is true or false, not \"maybe\""),
            (&[("q", "x"), ("limit", "many")], "limit is a number, not \"many\""),
            (&[("q", "x"), ("limit", "-1")], "limit is a number"),
            (&[("q", "x"), ("mode", "best")], "mode is exact, words, vector or both"),
            (&[("q", "x"), ("or", " ")], "every message has the empty text"),
            (&[("q", "x"), ("regex", "1"), ("fold", "1")], "regex and fold do not go together"),
        ] {
            let error = fields(query).unwrap_err().to_string();
            assert!(error.starts_with(why), "{query:?}: {error}");
        }
        for option in ["regex", "word", "or", "ignore-case", "case-sensitive", "fold", "oldest"] {
            let error = fields(&[("q", "x"), ("mode", "both"), (option, "1")]).unwrap_err();
            assert_eq!(error, AskedError::NotRanked { option });
        }
    }

    #[test]
    fn whole_words_of_expressions_are_words_in_every_text() {
        let matching = TextMatching { is_regex: true, is_word: true, ..TextMatching::default() };
        let not = vec!["b".to_owned()];
        let request = Asked { not, matching, ..Asked::of("a|c") }.request();
        assert_eq!(
            (&*request.text, &*request.not),
            (&*whole_words("a|c"), &[whole_words("b")][..])
        );
    }

    #[test]
    fn letter_case_matters_if_a_capital_is_typed() {
        let matters = |text: &str, is_regex: bool, case: LetterCase| {
            let matching = TextMatching { is_regex, case, ..TextMatching::default() };
            Asked { matching, ..Asked::of(text) }.request().case_sensitive
        };
        assert!(!matters("canción", false, LetterCase::Smart));
        assert!(matters("ÉTÉ", false, LetterCase::Smart));
        assert!(!matters(r"\Wx", true, LetterCase::Smart), "a class is no letter");
        assert!(matters(r"\p{Lu}", true, LetterCase::Smart));
        assert!(matters("x", false, LetterCase::Sensitive));
        assert!(!matters("X", false, LetterCase::Ignored));
    }

    #[test]
    fn a_question_has_the_texts_in_it() {
        let asked = Asked {
            and: vec!["a \"b\"".to_owned()],
            not: vec!["c".to_owned()],
            ..Asked::of("why")
        };
        let question = asked.question(Mode::Both, Scope::default());
        assert_eq!(question.concepts, ["why \"a  b \" -\"c\""]);
        assert_eq!(question.limit, USUAL_LIMIT);
        let all = Asked { limit: Some(0), ..asked }.question(Mode::Both, Scope::default());
        assert_eq!(all.limit, MOST_RANKED);
    }
}
