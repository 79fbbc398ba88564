//! `verbatim open` and `verbatim resume`: return to a conversation's page on its site, or to its session.

use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use clap_complete::ArgValueCompleter;
use schemars::JsonSchema;
use serde::Serialize;

use super::completions;
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal};
use crate::cli::error::{Error, Result};
use crate::cli::terminal::hit_lines::place;
use crate::cli::terminal::output::{FOUND, NOTHING, TROUBLE, complain, harmless, json_line};
use crate::cli::terminal::waiting;
use verbatim_answer::clock::Clock;
use verbatim_answer::conversation::{
    ConversationJson, DescribedConversation, conversation, target,
};
use verbatim_answer::resume::ResumeCommand;
use verbatim_base::call::Call;
use verbatim_engine::{About, Engine};

/// The facts of both commands.
const FACTS: Facts = Facts {
    reads: Reads::EverySource,
    writes: false,
    takes_db: true,
    makes_vectors: false,
    may_be_torn: false,
    waits_for: Some("looking up conversations"),
    form: OutputForm::AsItIs,
};

/// Open a conversation on its service's site, in the browser
///
///     verbatim open 6650a1b2
///     verbatim open "borrow checker" --print
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct OpenArgs {
    /// The conversation: the beginning of its id, its title or a part of it; ID:NUMBER as search prints it
    ///
    /// Several words are one title.
    #[arg(required = true, add = ArgValueCompleter::new(completions::conversations))]
    conversation: Vec<String>,
    /// Print the address and do not open it
    #[arg(long)]
    print: bool,
    /// Print one JSON object: id, source, url
    #[arg(long)]
    json: bool,
}

/// Print the command that resumes a coding agent's session
///
///     verbatim resume bb32e6fc
///     verbatim resume bb32e6fc --run
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ResumeArgs {
    /// The conversation: the beginning of its id, its title or a part of it; ID:NUMBER as search prints it
    ///
    /// Several words are one title.
    #[arg(required = true, add = ArgValueCompleter::new(completions::conversations))]
    conversation: Vec<String>,
    /// Start the agent now
    #[arg(long, conflicts_with = "json")]
    run: bool,
    /// Print one JSON object: id, source, session, folder, command
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JsonOpened<'a> {
    /// The conversation's id.
    id: &'a str,
    #[serde(flatten)]
    origin: ConversationJson<'a>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JsonResumed<'a> {
    #[serde(flatten)]
    opened: JsonOpened<'a>,
    /// The session; null, and exit code 1, if no agent can resume it.
    session: Option<&'a str>,
    /// The command that resumes it, for a shell.
    command: Option<String>,
}

impl CommandArgs for OpenArgs {
    fn facts(&self) -> Facts {
        FACTS
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        open(self, invocation.engine, invocation.terminal.out)
    }
}

fn open(args: &OpenArgs, engine: &Engine, out: &mut dyn Write) -> Result<u8> {
    let (about, found) = find(engine, &args.conversation)?;
    if args.json {
        json_line(out, &JsonOpened { id: &about.id, origin: found.json() })?;
    }
    let Some(link) = found.link() else {
        let advice = match found.resume() {
            Some(_) => format!("; try `verbatim resume {}`", found.short_id),
            None => String::new(),
        };
        let id = &found.short_id;
        let place = place(&found);
        complain(&format!("{id} ({place}) has no address on the web{advice}"));
        return Ok(NOTHING);
    };
    if !args.json {
        writeln!(out, "{}", harmless(link))?;
    }
    if !args.print && is_web(link) {
        browse(link)?;
    }
    Ok(FOUND)
}

/// Returns whether a link is a web address. Other links from an export must not be opened.
pub(crate) fn is_web(link: &str) -> bool {
    ["https://", "http://"].iter().any(|start| link.starts_with(start))
}

pub(crate) fn browse(link: &str) -> Result<()> {
    // The error of the crate `open` is replaced, because it names a command that the user did not type.
    open::that_detached(link).map_err(|_| Error::Start {
        what: format!("a browser for {link}"),
        source: io::Error::other("none could be started; open the address yourself"),
    })
}

impl CommandArgs for ResumeArgs {
    fn facts(&self) -> Facts {
        FACTS
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        let Terminal { environment, out } = invocation.terminal;
        resume(self, invocation.engine, environment.clock(), out)
    }
}

fn resume(args: &ResumeArgs, engine: &Engine, clock: Clock, out: &mut dyn Write) -> Result<u8> {
    let (about, found) = find(engine, &args.conversation)?;
    if args.json {
        let session = found.resume();
        let resumed = JsonResumed {
            opened: JsonOpened { id: &about.id, origin: found.json() },
            session: session.as_ref().map(|session| session.words[2]),
            command: session.as_ref().map(ToString::to_string),
        };
        json_line(out, &resumed)?;
    }
    let Some(session) = found.resume() else {
        let id = &found.short_id;
        let place = place(&found);
        if let Some(gone) = found.gone() {
            let since = clock.words(Some(gone));
            complain(&format!(
                "{id} ({place}) cannot be resumed: the file of its transcript is gone or was cut \
                 (noticed: {since}); `verbatim show {id}` prints what was kept"
            ));
            return Ok(NOTHING);
        }
        complain(&format!("{id} ({place}) is not a coding agent's session that can be resumed"));
        return Ok(NOTHING);
    };
    if args.json {
        return Ok(FOUND);
    }
    if !args.run {
        writeln!(out, "{}", harmless(&session.to_string()))?;
        return Ok(FOUND);
    }
    let ResumeCommand { folder, words } = &session;
    // The agent looks a session up by the folder that it is started in.
    if let Some(folder) = folder.filter(|folder| !Path::new(folder).is_dir()) {
        let agent = ResumeCommand { folder: None, words: session.words };
        complain(&format!(
            "the session's folder is gone: {folder}; nothing was started. Make the folder again, then: \
             `{session}`; or start the agent in another folder: `{agent}`"
        ));
        return Ok(TROUBLE);
    }
    // On Windows the agents are scripts, and only a shell can find scripts by name.
    let mut command = Command::new(if cfg!(windows) { "cmd" } else { words[0] });
    if cfg!(windows) {
        command.arg("/C").arg(words[0]);
    }
    command.args(&words[1..]);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    // The terminal belongs to the agent now.
    waiting::clear();
    let status = command.status();
    let status = status.map_err(|source| Error::Start { what: words[0].to_owned(), source })?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(NOTHING))
}

fn find(engine: &Engine, words: &[String]) -> Result<(About, DescribedConversation)> {
    let call = Call::default();
    let (about, _) = target(engine, &words.join(" "), &call)?;
    let found = conversation(engine, (about.source, about.id.clone()), &call)?;
    Ok((about, found))
}
