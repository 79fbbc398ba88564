//! The command that resumes a coding agent's session.

use std::path::Path;

use verbatim_base::model::Origin;
use verbatim_engine::is_of_cowork;
use verbatim_text::shell::quoted_for;

/// The session of a coding agent. `Display` gives the command that resumes the session.
pub struct ResumeCommand<'a> {
    /// The folder to change to first; `None` if it is unknown or any folder will do.
    pub folder: Option<&'a str>,
    /// The program and its arguments, not quoted.
    pub words: [&'a str; 3],
}

impl<'a> ResumeCommand<'a> {
    /// Returns the session of an agent's conversation; `None` if no known agent can resume it. A
    /// session cannot be resumed if its transcript is gone.
    pub fn of(agent: &str, origin: &'a Origin) -> Option<ResumeCommand<'a>> {
        let session = origin.session.as_deref().filter(|_| origin.gone.is_none())?;
        // A conversation of Claude Cowork belongs to the desktop app.
        if origin.file.as_deref().is_some_and(|file| is_of_cowork(Path::new(file))) {
            return None;
        }
        // The id becomes a part of a command, and a transcript may hold any text as the id.
        let is_id = session.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if session.is_empty() || session.starts_with('-') || !is_id {
            return None;
        }
        // On Windows, shells interpret these characters even inside quotation marks.
        let folder = origin.folder.as_deref().filter(|folder| {
            !folder.is_empty()
                && !folder
                    .contains(|c: char| c.is_control() || cfg!(windows) && "\"%$`".contains(c))
        });
        match agent {
            "claude-code" => Some(ResumeCommand { folder, words: ["claude", "--resume", session] }),
            "codex" => Some(ResumeCommand { folder: None, words: ["codex", "resume", session] }),
            _ => None,
        }
    }
}

impl ResumeCommand<'_> {
    fn line(&self, windows: bool) -> String {
        let words = self.words.map(|word| quoted_for(word, windows)).join(" ");
        // In `cmd`, `cd` stays on the same drive, and PowerShell does not know `cd /d`.
        let cd = if windows { "pushd" } else { "cd" };
        match self.folder {
            Some(folder) => format!("{cd} {} && {words}", quoted_for(folder, windows)),
            None => words,
        }
    }
}

impl std::fmt::Display for ResumeCommand<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.line(cfg!(windows)))
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

    #[test]
    fn commands_that_resume_on_windows() {
        let command = |folder| {
            ResumeCommand { folder: Some(folder), words: ["claude", "--resume", "0a"] }.line(true)
        };
        assert_eq!(command(r"D:\app"), r"pushd D:\app && claude --resume 0a");
        assert_eq!(command(r"D:\my app"), r#"pushd "D:\my app" && claude --resume 0a"#);
    }
}
