//! `verbatim open` and `verbatim resume`: back to where a conversation took place.

use std::{io::Write, path::Path, process::Command};

use clap_complete::ArgValueCompleter;

use super::{
    clock::Clock,
    completions,
    error::Error,
    found::{Conversation, conversations, target},
    output::{FOUND, NOTHING, complain, harmless},
};
use crate::{engine::Engine, model::Stop};

/// Open a conversation on its service's site, in the browser
///
///     verbatim open 6650a1b2
///     verbatim open "borrow checker" --print
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct OpenArgs {
    /// The conversation: the beginning of its id, its title or a part of it; ID:NUMBER as search prints it
    #[arg(add = ArgValueCompleter::new(completions::conversations))]
    conversation: String,
    /// Print the address and do not open it
    #[arg(long)]
    print: bool,
}

/// Print the command that resumes a coding agent's session
///
///     verbatim resume bb32e6fc
///     verbatim resume bb32e6fc --run
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ResumeArgs {
    /// The conversation: the beginning of its id, its title or a part of it; ID:NUMBER as search prints it
    #[arg(add = ArgValueCompleter::new(completions::conversations))]
    conversation: String,
    /// Start the agent now
    #[arg(long)]
    run: bool,
}

pub(super) fn open(args: &OpenArgs, engine: &Engine, out: &mut dyn Write) -> Result<u8, Error> {
    let found = find(engine, &args.conversation)?;
    let Some(link) = found.link() else {
        let advice = match session(&found) {
            Some(_) => format!("; try `verbatim resume {}`", found.short_id),
            None => String::new(),
        };
        let (id, place) = (&found.short_id, found.place());
        complain(&format!("{id} ({place}) has no address on the web{advice}"));
        return Ok(NOTHING);
    };
    writeln!(out, "{}", harmless(link))?;
    let is_web = ["https://", "http://"].iter().any(|start| link.starts_with(start));
    if !args.print && is_web {
        let failed = |source| Error::Start { what: format!("a browser for {link}"), source };
        open::that_detached(link).map_err(failed)?;
    }
    Ok(FOUND)
}

pub(super) fn resume(
    args: &ResumeArgs,
    engine: &Engine,
    clock: Clock,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let found = find(engine, &args.conversation)?;
    let Some(session) = session(&found) else {
        let (id, place) = (&found.short_id, found.place());
        if let Some(gone) = found.gone() {
            let since = clock.words(Some(gone));
            complain(&format!(
                "{id} ({place}) cannot be resumed: the file of its transcript is gone (noticed: \
                 {since}); `verbatim show {id}` prints what was kept"
            ));
            return Ok(NOTHING);
        }
        complain(&format!("{id} ({place}) is no session of a coding agent that can be resumed"));
        return Ok(NOTHING);
    };
    if !args.run {
        writeln!(out, "{}", harmless(&session.to_string()))?;
        return Ok(FOUND);
    }
    let Session { folder, words } = session;
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    if let Some(folder) = folder.filter(|folder| Path::new(folder).is_dir()) {
        command.current_dir(folder);
    }
    let failed = |source| Error::Start { what: words[0].to_owned(), source };
    let status = command.status().map_err(failed)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(NOTHING))
}

fn find(engine: &Engine, word: &str) -> Result<Conversation, Error> {
    let stop = Stop::never();
    let (about, _) = target(engine, word, &stop)?;
    let key = (about.source, about.id);
    let mut found = conversations(engine, std::slice::from_ref(&key), &stop)?;
    Ok(found.remove(&key).expect("every conversation that is asked for is described"))
}

/// The session of a coding agent, as the agent resumes it. `Display` gives the command.
pub(super) struct Session<'a> {
    folder: Option<&'a str>,
    words: [&'a str; 3],
}

/// Returns the session of a conversation; `None` if no agent that we know can resume it.
pub(super) fn session(found: &Conversation) -> Option<Session<'_>> {
    let (folder, session) = found.session()?;
    match found.source() {
        "claude-code" => Some(Session { folder, words: ["claude", "--resume", session] }),
        "codex" => Some(Session { folder: None, words: ["codex", "resume", session] }),
        _ => None,
    }
}

impl std::fmt::Display for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A text with a NUL cannot be quoted, and is in no path.
        let quoted = |text| shlex::try_quote(text).unwrap_or_default();
        if let Some(folder) = self.folder {
            write!(f, "cd {} && ", quoted(folder))?;
        }
        let words = self.words.map(quoted);
        f.write_str(&words.join(" "))
    }
}
