//! `verbatim show`.

use std::io::{self, Write};

use super::{Environment, Error, FOUND, harmless};
use crate::{
    engine::{Engine, Transcript},
    model::Stop,
    text::{date, snippet},
};

/// Print one conversation as Markdown
///
/// CONVERSATION is its id, the beginning of its id if no other begins so, or its
/// whole title.
///
///     verbatim show 6650a1b2 > chat.md
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The conversation's id, the beginning of its id, or its title
    conversation: String,
    /// Show what is stored, even where it is the JSON of ChatGPT's message parts
    #[arg(long)]
    raw_content: bool,
}

pub(super) fn run(
    args: &Args,
    engine: &Engine,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let transcript = engine.conversation(&args.conversation, args.raw_content, &Stop::never())?;
    let mut page = Vec::new();
    markdown(&mut page, &transcript)?;
    if environment.terminal {
        write!(out, "{}", harmless(&String::from_utf8_lossy(&page)))?;
    } else {
        out.write_all(&page)?;
    }
    Ok(FOUND)
}

fn markdown(out: &mut Vec<u8>, transcript: &Transcript) -> io::Result<()> {
    let title = match snippet::trim(&transcript.heading.title) {
        "" => "Untitled".to_owned(),
        title => title.replace(['\n', '\r'], " "),
    };
    let messages = transcript.messages.len();
    let plural = if messages == 1 { "" } else { "s" };
    writeln!(out, "# {title}\n")?;
    writeln!(out, "`{}` · {messages} message{plural}", transcript.heading.id)?;
    for message in &transcript.messages {
        let role = if message.role.is_empty() { "unknown" } else { &message.role };
        write!(out, "\n## {role}")?;
        if let Some(time) = message.time.and_then(date::to_minute) {
            write!(out, " · {time}")?;
        }
        writeln!(out, "\n\n{}", snippet::trim(&message.content))?;
    }
    Ok(())
}
