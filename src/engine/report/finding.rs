//! What the doctor and the comparison of samples report.

use serde::Serialize;

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Well,
    /// Good to know; answers are right.
    Note,
    /// Something to mend.
    Wrong,
}

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How it is.
    pub verdict: Verdict,
    /// What was examined, in a word or by its path.
    pub about: String,
    /// What was found, in a sentence.
    pub what: String,
    /// What mends it: a command, mostly.
    pub mend: Option<String>,
}

impl Finding {
    /// Returns that all is well.
    pub fn well(about: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Well, about: about.into(), what: what.into(), mend: None }
    }

    /// Returns something that is good to know.
    pub fn note(about: impl Into<String>, what: impl Into<String>, mend: &str) -> Finding {
        let mend = (!mend.is_empty()).then(|| mend.to_owned());
        Finding { verdict: Verdict::Note, about: about.into(), what: what.into(), mend }
    }

    /// Returns something to mend.
    pub fn wrong(about: impl Into<String>, what: impl Into<String>, mend: &str) -> Finding {
        Finding { verdict: Verdict::Wrong, ..Finding::note(about, what, mend) }
    }
}
