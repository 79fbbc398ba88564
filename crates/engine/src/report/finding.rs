//! The findings of the doctor and of the comparison of samples.

use schemars::JsonSchema;
use serde::Serialize;

/// The verdict on one thing that the doctor checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing is wrong.
    #[serde(rename = "ok")]
    Well,
    /// A fact that users should know. Answers are right.
    Note,
    /// Something must be repaired.
    Wrong,
}

/// A finding of the doctor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// `ok`, `note` or `wrong`.
    pub verdict: Verdict,
    /// What was examined, in a word or by its path.
    pub about: String,
    /// What was found, in a sentence.
    pub what: String,
    /// How to fix it.
    #[serde(rename = "fix")]
    pub mend: Option<String>,
}

impl Finding {
    /// Returns a finding that nothing is wrong.
    pub fn well(about: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Well, about: about.into(), what: what.into(), mend: None }
    }

    /// Returns a finding that is worth knowing.
    pub fn note(about: impl Into<String>, what: impl Into<String>, mend: &str) -> Finding {
        let mend = (!mend.is_empty()).then(|| mend.to_owned());
        Finding { verdict: Verdict::Note, about: about.into(), what: what.into(), mend }
    }

    /// Returns a finding that something has to be repaired.
    pub fn wrong(about: impl Into<String>, what: impl Into<String>, mend: &str) -> Finding {
        Finding { verdict: Verdict::Wrong, ..Finding::note(about, what, mend) }
    }
}
