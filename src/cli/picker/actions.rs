//! What the picker does with a conversation: opens its link, resumes its session, copies its text.

use std::{
    io,
    process::{Command, Stdio},
    thread,
};

use super::search::Target;
use crate::{
    engine::{Engine, Scope},
    model::{Origin, Stop},
};

/// The program that opens a link, and what comes before the link.
const OPENER: &[&str] = if cfg!(target_os = "macos") {
    &["open"]
} else if cfg!(windows) {
    &["rundll32", "url.dll,FileProtocolHandler"]
} else {
    &["xdg-open"]
};

/// Opens a conversation on the site that it is from; returns what to say of it.
pub(super) fn open(engine: &Engine, target: &Target) -> String {
    let service = engine.service(target.source, &target.id, &Stop::never());
    let link = match service.map(|service| service.and_then(|service| service.link)) {
        Ok(link) => link.filter(|link| link.starts_with("https://") && link.is_ascii()),
        Err(error) => return error.to_string(),
    };
    let Some(link) = link else {
        return "this conversation has no link; Enter shows it".to_owned();
    };
    match start(&link) {
        Ok(()) => format!("opens {link}"),
        Err(error) => format!("cannot start {}: {error}; the link is {link}", OPENER[0]),
    }
}

fn start(link: &str) -> io::Result<()> {
    let mut command = Command::new(OPENER[0]);
    command.args(&OPENER[1..]).arg(link);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    thread::spawn(move || child.wait());
    Ok(())
}

/// Returns the command that goes on with a coding agent's session; the error says why there is none.
pub(super) fn resume_command(engine: &Engine, target: &Target) -> Result<String, String> {
    let stop = Stop::never();
    let none = || "only sessions of Claude Code and Codex can be resumed".to_owned();
    let service = engine.service(target.source, &target.id, &stop).map_err(|e| e.to_string())?;
    let service = service.map(|service| service.name);
    let source = engine.sources().into_iter().find(|source| source.kind == target.source);
    let reader = source.ok_or_else(none)?.reader(&stop);
    let scope = Scope { conversation: Some(target.id.clone()), ..Scope::default() };
    let listing = reader.list(&scope, &stop).map_err(|error| error.to_string())?;
    let origin = (!listing.is_empty()).then(|| listing.origin(0)).flatten();
    let (Some(service), Some(origin)) = (service, origin) else { return Err(none()) };
    if origin.gone.is_some() {
        return Err("this session cannot be resumed: the file of its transcript is gone".to_owned());
    }
    resuming(&service, origin).ok_or_else(none)
}

fn resuming(service: &str, origin: &Origin) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let session = origin.session.as_ref()?;
    if !session.chars().all(is_plain) || !session.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let resume = match service {
        "claude_code" => format!("claude --resume {session}"),
        "codex" => format!("codex resume {session}"),
        _ => return None,
    };
    let folder = origin.folder.as_deref().filter(|folder| !folder.contains(char::is_control));
    Some(match folder {
        Some(folder) => format!("cd {} && {resume}", quoted(folder)),
        None => resume,
    })
}

/// Returns a path as a shell reads it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@".contains(c);
    if path.chars().all(is_plain) && !path.starts_with('-') {
        path.to_owned()
    } else if cfg!(windows) {
        format!("\"{path}\"")
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(windows))]
    #[test]
    fn commands_that_resume() {
        let origin = |session: &str, folder: &str| Origin {
            session: Some(session.to_owned()),
            folder: Some(folder.to_owned()),
            ..Origin::default()
        };
        let plain = origin("0a-1_b", "/home/me/app");
        let expected = "cd /home/me/app && claude --resume 0a-1_b";
        assert_eq!(resuming("claude_code", &plain).as_deref(), Some(expected));
        let quoted = origin("0a", "/it's $(here)");
        let expected = r"cd '/it'\''s $(here)' && codex resume 0a";
        assert_eq!(resuming("codex", &quoted).as_deref(), Some(expected));
        assert_eq!(resuming("codex", &origin("0a", "/a\nb")).as_deref(), Some("codex resume 0a"));
        for session in ["", "a b", "$(rm)", "-x", "a;b"] {
            assert_eq!(resuming("codex", &origin(session, "/")), None, "{session}");
        }
        assert_eq!(resuming("chatgpt", &plain), None);
    }
}
