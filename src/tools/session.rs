//! The command that resumes a coding agent's session.

use crate::{model::Origin, text::shell::quoted};

/// The session of a coding agent. `Display` gives the command that resumes the session.
pub(crate) struct ResumeCommand<'a> {
    pub(crate) folder: Option<&'a str>,
    pub(crate) words: [&'a str; 3],
}

impl<'a> ResumeCommand<'a> {
    /// Returns the session of an agent's conversation; `None` if no known agent can resume it. A
    /// session cannot be resumed if its transcript is gone.
    pub(crate) fn of(agent: &str, origin: &'a Origin) -> Option<ResumeCommand<'a>> {
        let session = origin.session.as_deref().filter(|_| origin.gone.is_none())?;
        // The id becomes a part of a command, and a transcript may hold any text as the id.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if session.is_empty() || session.starts_with('-') || !session.chars().all(is_plain) {
            return None;
        }
        // On Windows, shells interpret these characters even inside quotation marks.
        let is_hostile = |c: char| c.is_control() || cfg!(windows) && "\"%$`".contains(c);
        let folder = origin.folder.as_deref().filter(|folder| !folder.is_empty());
        let folder = folder.filter(|folder| !folder.contains(is_hostile));
        match agent {
            "claude-code" => Some(ResumeCommand { folder, words: ["claude", "--resume", session] }),
            "codex" => Some(ResumeCommand { folder: None, words: ["codex", "resume", session] }),
            _ => None,
        }
    }
}

impl std::fmt::Display for ResumeCommand<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(folder) = self.folder {
            // With `/d`, the shell cmd changes the drive too.
            let cd = if cfg!(windows) { "cd /d" } else { "cd" };
            write!(f, "{cd} {} && ", quoted(folder))?;
        }
        let words = self.words.map(quoted);
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(windows))]
    #[test]
    fn commands_that_resume() {
        let command = |agent, folder, session| {
            let (session, folder) = (Some(String::from(session)), Some(String::from(folder)));
            let origin = Origin { session, folder, ..Origin::default() };
            ResumeCommand::of(agent, &origin).map(|session| session.to_string())
        };
        for (agent, folder, session, expected) in [
            ("claude-code", "/home/me/app", "0a-1_b", "cd /home/me/app && claude --resume 0a-1_b"),
            ("claude-code", "/it's $(x)", "0a", r"cd '/it'\''s $(x)' && claude --resume 0a"),
            ("claude-code", "/a\nb", "0a", "claude --resume 0a"),
            ("codex", "/a", "0a", "codex resume 0a"),
        ] {
            assert_eq!(command(agent, folder, session).as_deref(), Some(expected));
        }
        for session in ["", "a b", "$(rm)", "-x", "a;b"] {
            assert_eq!(command("codex", "/", session), None, "{session}");
        }
        assert_eq!(command("chatgpt", "/", "0a"), None);
    }
}
