//! The findings of the doctor and of the comparison of samples.

use serde::Serialize;

/// The verdict on one thing that the doctor checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How serious the finding is.
    pub verdict: Verdict,
    /// The thing that was checked, as a word or a path.
    pub about: String,
    /// The fact that was found, as text for the user.
    pub what: String,
    /// Instructions for the repair, usually a command.
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
