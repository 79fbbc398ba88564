//! `verbatim forget`: permanently removes conversations from the databases that this program writes.

use std::io::Write;

use clap_complete::ArgValueCompleter;
use schemars::JsonSchema;
use serde::Serialize;

use super::{background, completions::conversations, indexing, transcripts};
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal};
use crate::cli::error::{Error, Result};
use crate::cli::settings::engine_config::PlaceArgs;
use crate::cli::settings::environment::Environment;
use crate::cli::terminal::interrupt;
use crate::cli::terminal::output::{
    FOUND, NOTHING, complain, confirm_deletion, counted, grouped, harmless, json_line,
};
use crate::cli::terminal::progress::Step;
use verbatim_answer::conversation::{conversation, named};
use verbatim_base::{call::Call, model::Instant};
use verbatim_engine::{
    Config, Engine, Error as EngineError, ForgetProgress, Forgettable, Forgetter, Scope,
};
use verbatim_text::{shell::quoted, snippet::names};

/// The number of messages of which an index takes noticeable time.
const MANY_MESSAGES: u64 = 5_000;

const DECLINED: u8 = NOTHING;

/// Remove conversations from your chats, for good
///
/// Removes conversations from the databases that verbatim keeps, and from their indexes, after a yes.
/// No import of an export and no transcript of a coding agent brings them back; --undo lets them. The
/// exports and transcripts themselves stay as they are, and so do databases that are only read.
///
///     verbatim forget 6650a1b2
///     verbatim forget --undo 6650a1b2-4f1e-4c6a-9b1e-0d3c5a7e9f10
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The conversations: the beginning of an id, a title or a part of it, a link
    ///
    /// Words that do not name a conversation each are one title.
    #[arg(
        value_name = "CONVERSATION",
        required_unless_present_any = ["list", "undo"],
        add = ArgValueCompleter::new(conversations)
    )]
    conversations: Vec<String>,
    /// Forget without asking
    #[arg(short, long)]
    yes: bool,
    /// List what was forgotten: ids and times, nothing else is known
    #[arg(long, conflicts_with_all = ["conversations", "undo"])]
    list: bool,
    /// Let a forgotten conversation come back: from its transcript, or with an import of its export
    #[arg(long, value_name = "ID", conflicts_with = "conversations")]
    undo: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        Facts {
            reads: Reads::EverySource,
            writes: true,
            takes_db: true,
            makes_vectors: true,
            may_be_torn: false,
            waits_for: Some("looking up conversations"),
            form: OutputForm::AsItIs,
        }
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        run(self, invocation.engine, invocation.places, invocation.terminal)
    }
}

fn run(args: &Args, engine: &Engine, places: &PlaceArgs, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    if args.list {
        return list(args, engine, Terminal { environment, out });
    }
    if let Some(id) = &args.undo {
        return undo(args, id, engine, Terminal { environment, out });
    }
    let call = Call::default();
    let found = find_forgettable(&args.conversations, engine, &call)?;
    if !args.yes && !environment.can_ask {
        let ids = args.conversations.iter().map(|word| format!(" {}", quoted(word)));
        return Err(Error::Forget(format!(
            "nothing was forgotten, because there is no terminal to ask; without asking: verbatim \
             forget --yes{}",
            ids.collect::<String>()
        )));
    }
    if !args.yes {
        for one in &found {
            complain(&description(one, engine, &call));
        }
        let sources = found.iter().flat_map(|one| one.sources.clone()).collect();
        let scope = Scope { sources, ..Scope::default() };
        let messages = engine.tally(&scope, &Instant::day, &call)?.messages;
        if messages >= MANY_MESSAGES && !scope.sources.is_empty() {
            complain(&format!(
                "the index is built again afterwards, for {} messages; this takes a while",
                grouped(messages)
            ));
        }
        let these = if found.len() == 1 { "this conversation" } else { "these conversations" };
        if !confirm_deletion(&format!("Forget {these} for good?"))? {
            complain("nothing was forgotten");
            return Ok(DECLINED);
        }
    }
    let call = interrupt::stop_on_interrupt(environment);
    let step = Step::begin(environment, "Indexing");
    let resources = indexing::resources(environment);
    let mut is_told = false;
    let forgetter = Forgetter::new(engine.all_sources());
    let left = forgetter.forget(&found, resources, &call, &mut |progress| match progress {
        ForgetProgress::Indexing(share) => step.show(share, "without what was forgotten"),
        ForgetProgress::Waiting(_) if is_told => {}
        ForgetProgress::Waiting(path) => {
            is_told = true;
            complain(&format!("waiting for another process that writes {}", path.display()));
        }
    });
    step.clear();
    let left = match left {
        Err(error) if error.is_stopped() => {
            return Ok(interrupt::stopped("run it again to finish it"));
        }
        left => left?,
    };
    for path in &left.logs {
        complain(&format!(
            "{}: its log still has the text, because a program reads an older state; end that \
             program, then forget it again",
            path.display()
        ));
    }
    if let Some(address) = &left.in_cluster {
        complain(&format!(
            "{address}: searches no longer find it, but files of the cluster keep the text \
             until it merges them"
        ));
    }
    for path in &left.lists {
        complain(&format!(
            "{}: this list of the files of a conversation is damaged; files of messages stay, because \
             they may be of that conversation; delete the list, import its export again, then forget \
             this conversation again",
            path.display()
        ));
    }
    for path in &left.not_indexed {
        complain(&format!(
            "{}: not indexed, because another program keeps writing to it; searches are complete but \
             slow, until `verbatim reindex` or a server makes the index",
            path.display()
        ));
    }
    write(args, &found, out)?;
    out.flush()?;
    if engine.sources().iter().any(|source| source.encoded(&call).missing() > 0) {
        background::reindex(places.db.as_deref(), places, environment);
    }
    let is_all = delete_damaged(args, &found, engine, environment)?;
    Ok(if left.is_clean() && is_all { FOUND } else { NOTHING })
}

/// Lists the damaged transcript stores that were set aside, and deletes them if the user agrees.
/// Returns whether none remains.
fn delete_damaged(
    args: &Args,
    found: &[Forgettable],
    engine: &Engine,
    environment: &Environment,
) -> Result<bool> {
    let forgetter = Forgetter::new(engine.all_sources());
    let mut is_all = true;
    for store in forgetter.damaged_stores(found) {
        let name = store.display();
        complain(&format!(
            "{name}: may still have the text; it was set aside because it was damaged, and may \
             hold the only copy of deleted transcripts; delete it if you do not need these"
        ));
        if environment.can_ask
            && !args.yes
            && confirm_deletion(&format!("Delete {name} for good?"))?
        {
            forgetter.delete_damaged(&store)?;
        } else {
            is_all = false;
        }
    }
    Ok(is_all)
}

/// Returns the conversations that the words name, each by itself, or else all as one title.
fn find_forgettable(words: &[String], engine: &Engine, call: &Call) -> Result<Vec<Forgettable>> {
    let each = find_each(words, engine, call);
    if words.len() < 2 {
        return each;
    }
    let title = words.join(" ");
    match (each, find_each(std::slice::from_ref(&title), engine, call)) {
        (Ok(each), Ok(whole)) if each.iter().any(|one| one.id != whole[0].id) => {
            Err(Error::Forget(format!(
                "nothing was forgotten, because these words name {} and are a title too; for the title: \
                 verbatim forget {}",
                counted(each.len(), "conversation"),
                quoted(&title)
            )))
        }
        (Ok(each), _) => Ok(each),
        (Err(_), Ok(whole)) => Ok(whole),
        // Several titles that have all words are meant, rather than all that have one of them.
        (Err(_), Err(of_title)) if !is_unknown(&of_title) => Err(of_title),
        (Err(error), Err(_)) => Err(error),
    }
}

fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::Engine(EngineError::NoConversation { .. }))
}

/// Returns the conversations with the given ids, titles or links, including excluded conversations.
fn find_each(words: &[String], engine: &Engine, call: &Call) -> Result<Vec<Forgettable>> {
    let all = Engine::new(Config { exclude: Vec::new(), ..engine.config().clone() });
    let forgetter = Forgetter::new(all.all_sources());
    let mut found: Vec<Forgettable> = Vec::new();
    for word in words {
        let id = match named(&all, word, call) {
            Ok(about) => about.id,
            Err(error @ (EngineError::NoConversation { .. } | EngineError::NoDatabase { .. })) => {
                match forgetter.excluded_id(word, call)? {
                    Some(id) => id,
                    None if forgetter.find(word, call)?.is_some() => word.clone(),
                    None => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        };
        if found.iter().any(|one| one.id == id) {
            continue;
        }
        match forgetter.find(&id, call)? {
            Some(one) => found.push(one),
            None => return Err(EngineError::NoConversation { word: word.clone() }.into()),
        }
    }
    Ok(found)
}

fn description(one: &Forgettable, engine: &Engine, call: &Call) -> String {
    if one.sources.is_empty() {
        return format!("{}, which is forgotten already", one.id);
    }
    let mut services = Vec::new();
    for kind in &one.sources {
        services.push(match conversation(engine, (*kind, one.id.clone()), call) {
            Ok(conversation) => conversation.service().to_owned(),
            Err(_) => kind.name().to_owned(),
        });
    }
    let title = if one.title.is_empty() { "(no title)" } else { &one.title };
    let messages = counted(one.messages as usize, "message");
    format!("{title} ({}), {messages}, {}", services.join(" and "), one.id)
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JsonForgotten<'a> {
    /// The ids of the conversations.
    forgotten: Vec<&'a str>,
    /// Messages that were removed.
    messages: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JsonListed<'a> {
    /// Its id.
    id: &'a str,
    /// The service that it is from.
    service: Option<&'a str>,
    /// When it was forgotten.
    time: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JsonUndone<'a> {
    /// The id that was taken from the list.
    undone: &'a str,
}

fn write(args: &Args, found: &[Forgettable], out: &mut dyn Write) -> Result<()> {
    let messages: u64 = found.iter().map(|one| one.messages).sum();
    if args.json {
        let ids: Vec<&str> = found.iter().map(|one| one.id.as_str()).collect();
        return Ok(json_line(out, &JsonForgotten { forgotten: ids, messages })?);
    }
    let conversations = counted(found.len(), "conversation");
    writeln!(out, "{conversations} forgotten, {}", counted(messages as usize, "message"))?;
    for one in found {
        let id = quoted(&one.id);
        let how = match one.sources.as_slice() {
            [kind] if kind.name() == "threads" => "a recorded thread cannot be brought back".into(),
            _ => format!("`verbatim forget --undo {id}` lets it come back"),
        };
        writeln!(out, "{}", harmless(&format!("  {}: {how}", one.id)))?;
    }
    Ok(())
}

fn list(args: &Args, engine: &Engine, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let forgotten = Forgetter::new(engine.all_sources()).list()?;
    let clock = environment.clock();
    for one in &forgotten {
        let at = Instant { seconds: one.at.cast_signed(), nanos: 0 };
        if args.json {
            let service = one.service.as_deref();
            json_line(out, &JsonListed { id: &one.id, service, time: clock.iso(at) })?;
            continue;
        }
        let time = clock.minute(at).unwrap_or_default();
        let service = one.service.as_deref().unwrap_or_default();
        writeln!(out, "{}", harmless(format!("{}  {time}  {service}", one.id).trim_end()))?;
    }
    if forgotten.is_empty() {
        complain("nothing was forgotten so far");
    }
    Ok(FOUND)
}

fn undo(args: &Args, id: &str, engine: &Engine, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let forgetter = Forgetter::new(engine.all_sources());
    let forgotten = forgetter.list()?;
    let mut named: Vec<&str> = forgotten.iter().map(|one| one.id.as_str()).collect();
    named.retain(|known| known.starts_with(id));
    let id = match named.as_slice() {
        [one] => *one,
        _ if named.contains(&id) => id,
        [] => {
            return Err(Error::Forget(format!(
                "{id:?} is not in the list of what was forgotten; `verbatim forget --list` prints it"
            )));
        }
        several => {
            return Err(Error::Forget(format!("{id:?} may be any of {}", names(several))));
        }
    };
    forgetter.undo(id)?;
    transcripts::sync(engine, environment, &Call::default());
    if args.json {
        json_line(out, &JsonUndone { undone: id })?;
    } else {
        let text = format!(
            "{id} may come back: from a transcript at once, from an export when you name it to \
             `verbatim import FILE`"
        );
        writeln!(out, "{}", harmless(&text))?;
    }
    Ok(FOUND)
}
