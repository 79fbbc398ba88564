//! What is known of a transcript as a whole: its session, its title, its project.

use serde::{Deserialize, Serialize};

use crate::model::Instant;

/// Characters of a prompt that are enough for a title.
const TITLE: usize = 100;

/// What is known of a transcript as a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::import) struct Head {
    /// The session that its lines name first.
    pub(in crate::import) session: Option<String>,
    /// The agent whose transcript it is, where a session started it.
    pub(in crate::import) agent: Option<String>,
    /// The session that it repeats the beginning of.
    pub(in crate::import) parent: Option<String>,
    /// The folder that the session worked in first.
    pub(in crate::import) folder: Option<String>,
    /// The branch that was checked out last.
    pub(in crate::import) branch: Option<String>,
    /// The model that answered last.
    pub(in crate::import) model: Option<String>,
    /// The title that the user gave.
    pub(in crate::import) given_title: Option<String>,
    /// The title that was made up.
    pub(in crate::import) made_title: Option<String>,
    /// The first thing that the user asked.
    prompt: Option<String>,
    /// The title of something else, perhaps; better than none.
    pub(in crate::import) last_resort: Option<String>,
    /// The time of the last line that has one.
    #[serde(with = "instant")]
    pub(in crate::import) time: Option<Instant>,
}

impl Head {
    /// Notes a prompt of the user's, where it is the first that says something.
    pub(in crate::import) fn prompt(&mut self, text: &str) {
        if self.prompt.is_none() {
            let words = text.split_whitespace().filter(|word| *word != "[image]");
            let line = words.collect::<Vec<_>>().join(" ");
            let is_command = line.starts_with('/') && !line.contains(' ') || line.starts_with("! ");
            if !line.is_empty() && !is_command {
                let mut title: String = line.chars().take(TITLE).collect();
                if title.len() < line.len() {
                    title.push('…');
                }
                self.prompt = Some(title);
            }
        }
    }

    pub(super) fn title(&self) -> Option<&String> {
        let titles = [&self.given_title, &self.made_title, &self.prompt, &self.last_resort];
        titles.into_iter().find_map(Option::as_ref)
    }
}

/// Sets a value that was not known, where there is one now.
pub(in crate::import) fn first(known: &mut Option<String>, new: Option<impl Into<String>>) {
    if known.is_none() {
        last(known, new);
    }
}

/// Sets a value, where there is one now.
pub(in crate::import) fn last(known: &mut Option<String>, new: Option<impl Into<String>>) {
    if let Some(new) = new.map(Into::into).filter(|new| !new.is_empty()) {
        *known = Some(new);
    }
}

/// Returns the name of the project in a folder: that of the folder, or of the one that a work tree
/// belongs to.
pub(super) fn project(folder: &str) -> Option<&str> {
    let parts: Vec<&str> = folder.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let trees = parts.iter().position(|part| matches!(*part, ".worktrees" | "worktrees"));
    let inner = trees.map(|at| match at.checked_sub(1).map(|before| parts[before]) {
        Some(".claude" | ".git") => at - 1,
        _ => at,
    });
    let end = inner.filter(|end| *end > 0).unwrap_or(parts.len());
    end.checked_sub(1).map(|last| parts[last])
}

/// Keeps instants as two numbers.
mod instant {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::model::Instant;

    pub(super) fn serialize<S: Serializer>(
        time: &Option<Instant>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| (time.seconds, time.nanos)).serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Option<Instant>, D::Error> {
        let time = Option::<(i64, u32)>::deserialize(deserializer)?;
        Ok(time.map(|(seconds, nanos)| Instant { seconds, nanos }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_by_folder() {
        for (folder, expected) in [
            ("/home/ann/code/verbatim", "verbatim"),
            ("/home/ann/code/verbatim/", "verbatim"),
            ("C:\\code\\verbatim", "verbatim"),
            ("/home/ann/verbatim/.worktrees/streams", "verbatim"),
            ("/home/ann/verbatim/.claude/worktrees/streams/src", "verbatim"),
            ("/worktrees/a", "a"),
        ] {
            assert_eq!(project(folder), Some(expected), "{folder}");
        }
        assert_eq!(project("/"), None);
    }

    #[test]
    fn titles() {
        let mut head = Head::default();
        for passed_over in ["  ", "/clear", "! ls -l", "[image]\n[image]"] {
            head.prompt(passed_over);
        }
        assert_eq!(head.title(), None);
        head.prompt(&format!("Why\n does {}", "it ".repeat(100)));
        assert!(head.title().unwrap().starts_with("Why does it it"));
        assert_eq!(head.title().unwrap().chars().count(), TITLE + 1);
        head.prompt("another");
        assert!(head.title().unwrap().starts_with("Why"));
    }
}
