//! The command `verbatim status`.

use std::{
    io::{self, Write},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Serialize;

use super::http_listener::token_of;
use crate::cli::{
    command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal},
    error::Result,
    settings::{
        engine_config::{self, PlaceArgs},
        settings_report::{self, JsonSettings, SettingsReport},
    },
    terminal::{
        output::{FOUND, counted, harmless},
        progress::bytes,
    },
};
use verbatim_answer::hint::because;
use verbatim_base::model::Stop;
use verbatim_engine::{
    self as engine, Engine, FallbackReason, IndexNeed, SourceKind, SourceStatus, Status,
    StoreAddress, ago,
};
use verbatim_text::shell::quoted;

/// Show which databases are searched, and how current their indexes are
///
/// Shows for each source its database and why it was chosen, its contents, its index, and the process
/// that is refreshing the index, if any.
///
///     verbatim status
///     verbatim status --settings
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Show each setting, its value, and what set it: a flag, an environment variable, the configuration
    /// file or nothing
    #[arg(long, conflicts_with = "json")]
    settings: bool,
    /// Print only the token that lets clients in over HTTP
    ///
    /// It is made if there is none. It is in the file `token` of the home folder; without that file, the next
    /// start of the server makes another one.
    #[arg(long, conflicts_with_all = ["json", "settings"])]
    token: bool,
    /// Print JSON, with the settings
    #[arg(long)]
    json: bool,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        let counts = !self.token && !self.settings;
        let form = if self.settings {
            OutputForm::Sentences(settings_report::NAMES)
        } else if self.token || self.json {
            OutputForm::AsItIs
        } else {
            OutputForm::Sentences(0)
        };
        Facts {
            // The token is made where there is no home yet.
            reads: if self.token { Reads::Nothing } else { Reads::Home },
            writes: false,
            takes_db: true,
            makes_vectors: false,
            may_be_torn: false,
            waits_for: counts.then_some("counting messages"),
            form,
        }
    }

    fn run(&self, call: Invocation<'_>) -> Result<u8> {
        run(self, call.engine, call.places, call.terminal)
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JsonStatus<'a> {
    /// The version of the program.
    version: &'static str,
    /// The flag, variable or key that names the database.
    named_by: Option<&'static str>,
    #[serde(flatten)]
    settings: JsonSettings<'a>,
    #[serde(flatten)]
    status: Status,
}

fn run(args: &Args, engine: &Engine, places: &PlaceArgs, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    if args.token {
        writeln!(out, "{}", token_of(None, engine.config(), environment)?.as_str())?;
        return Ok(FOUND);
    }
    let settings = SettingsReport::new(places, engine, environment);
    if args.settings {
        settings.write(out)?;
        return Ok(FOUND);
    }
    let named = engine_config::named_by(places, environment);
    let status = engine::status(engine.all_sources(), &Stop::never());
    if args.json {
        let version = env!("CARGO_PKG_VERSION");
        let json = JsonStatus { version, named_by: named, settings: settings.json(), status };
        let json = serde_json::to_value(&json).map_err(io::Error::from)?;
        writeln!(out, "{json:#}")?;
        return Ok(FOUND);
    }
    write(&status, named, places, engine, out)?;
    Ok(FOUND)
}

/// Writes the status of every source; `named` is the flag or variable that names the database.
fn write(
    status: &Status,
    named: Option<&'static str>,
    places: &PlaceArgs,
    engine: &Engine,
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Some(missing) = &status.missing {
        writeln!(
            out,
            "export: none\n  {missing}\n  `verbatim import` reads an export; --db or CONVERSATION_DB \
             names a database"
        )?;
    }
    for source in &status.sources {
        let chosen = reason_chosen(source, named, engine);
        let text = places.in_commands(&source_lines(source, &chosen));
        writeln!(out, "{}", harmless(&text))?;
    }
    if !status.exclude.is_empty() {
        let excluded = harmless(&status.exclude.join(", "));
        let of = |source: &SourceStatus| match &source.excluded {
            Ok(excluded) => {
                format!("{} of the {}", counted(*excluded, "conversation"), source.source)
            }
            Err(error) => harmless(&format!("an unknown number of the {}: {error}", source.source)),
        };
        let sources = status.sources.iter().filter(|source| source.source != "threads").map(of);
        let sources = sources.collect::<Vec<_>>().join(", ");
        writeln!(out, "excluded: {excluded}\n  in no answer: {sources}")?;
    }
    match &status.forgotten {
        Ok(0) => {}
        Ok(forgotten) => {
            let forgotten = counted(*forgotten, "conversation");
            writeln!(out, "forgotten: {forgotten}\n  `verbatim forget --list` lists them")?;
        }
        Err(error) => writeln!(out, "forgotten: unknown: {}", harmless(error))?,
    }
    for path in &status.not_imported {
        let path = path.display().to_string();
        let command = places.in_commands(&format!("verbatim import {}", quoted(&path)));
        writeln!(
            out,
            "{}",
            harmless(&format!("not imported: {path}\n  `{command}` brings it in"))
        )?;
    }
    writeln!(out, "home: {}\nindexes: {}", status.home.display(), status.index.display())
}

/// Returns the reason why a source's database was chosen, and the databases that were not chosen.
fn reason_chosen(source: &SourceStatus, named: Option<&'static str>, engine: &Engine) -> String {
    let config = engine.config();
    if source.source != "export" {
        return "kept by verbatim".to_owned();
    }
    if let Some(named) = named {
        return format!("named by {named}");
    }
    let folder = source.database.path().and_then(|path| path.parent()).unwrap_or(&config.home);
    let folder = folder.display();
    let passed_over = config.passed_over();
    let others = passed_over.iter().filter(|(_, is_canonical)| *is_canonical).count();
    let mut text = match others {
        0 => format!("the only database with chats in {folder}"),
        _ => format!("newer than {} in {folder}", counted(others, "other")),
    };
    if config.local_folder().is_some() {
        text.push_str(
            ", the db/ of the working folder, which is only read; imports and indexes go to the home",
        );
    }
    for (path, is_canonical) in &passed_over {
        let why = if *is_canonical { "" } else { ", which holds no chats" };
        text.push_str(&format!("\n  not searched: {}{why}", path.display()));
    }
    text
}

fn source_lines(source: &SourceStatus, chosen: &str) -> String {
    let mut lines = vec![
        format!("{}: {}", source.source, source.database),
        format!("  chosen: {chosen}"),
        format!("  holds: {}", contents(source)),
    ];
    if source.kept > 0 {
        let kept = counted(source.kept, "conversation");
        lines.push(format!("  kept: {kept} whose transcripts were deleted or cut"));
    }
    lines.extend(source.unread_parts.iter().map(|what| format!("  not read: {what}")));
    let changed = source.changed.map(|at| format!(", changed {} ago", in_one_unit(ago(at))));
    match source.database {
        StoreAddress::Cluster(_) => {
            lines.push("  searched: by the cluster, whose index the imports write".to_owned());
            return lines.join("\n");
        }
        StoreAddress::Database(_) => {}
    }
    lines.push(format!("  size: {}{}", bytes(source.bytes), changed.unwrap_or_default()));
    lines.push(match &source.by_like {
        None => "  searched: by its index, which is current".to_owned(),
        Some(why) => searched_without_index(source, why),
    });
    lines.extend(source.generation.as_ref().map(|snapshot| {
        let with = if snapshot.derived.is_empty() { "" } else { ", with " };
        format!("  index: {}{with}{}", bytes(snapshot.bytes), snapshot.derived.join(" and "))
    }));
    let meaning = source.generation.as_ref().and_then(|snapshot| snapshot.meaning.as_ref());
    let meaning = meaning.filter(|meaning| !meaning.is_complete());
    lines.extend(meaning.map(|meaning| format!("  meaning: {meaning}")));
    if let Some(last) = &source.refreshed {
        let cpu = last.cpu.map(|cpu| format!(", {cpu:.1} s of CPU time"));
        lines.push(format!(
            "  last refresh: {} ago, {} {} in {:.1} s{}",
            in_one_unit(ago(last.at)),
            last.what,
            counted(last.messages, "message"),
            last.took,
            cpu.unwrap_or_default()
        ));
    }
    if let Some(activity) = &source.at_work {
        lines.push(match activity.process {
            0 => "  at work: a process refreshes the index".to_owned(),
            process => format!(
                "  at work: process {process} has been refreshing the index for {}",
                in_one_unit(ago(activity.since))
            ),
        });
    }
    lines.join("\n")
}

fn searched_without_index(source: &SourceStatus, why: &FallbackReason) -> String {
    let kind = SourceKind::ALL.into_iter().find(|kind| kind.name() == source.source);
    let need = kind.map(|kind| IndexNeed::new(kind, source.bytes, why));
    match need.unwrap_or(IndexNeed::ByCommand) {
        IndexNeed::Small => {
            "  searched: without an index, which so few need only for --mode both; \
                             the first such search builds it"
                .to_owned()
        }
        IndexNeed::BySearch => format!(
            "  searched: slowly, because {why}; the next search of the transcripts brings the index up to \
             date"
        ),
        IndexNeed::ByCommand => format!("  searched: slowly, because {}", because(why)),
    }
}

fn contents(source: &SourceStatus) -> String {
    let mut text = match (&source.error, source.messages) {
        (Some(error), _) => error.clone(),
        (None, Some(messages)) => format!(
            "{} in {}",
            counted(messages, "message"),
            counted(source.conversations.unwrap_or_default(), "conversation")
        ),
        (None, None) => "not counted: that takes long without a current index".to_owned(),
    };
    if let (Some(first), Some(last)) = (&source.first, &source.last) {
        let day = |time: &str| time.split('T').next().unwrap_or_default().to_owned();
        text.push_str(&format!(", {} to {}", day(first), day(last)));
    }
    text
}

/// Returns a duration in one unit, such as `3 hours`.
fn in_one_unit(length: Duration) -> String {
    let seconds = length.as_secs();
    let (number, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    counted(number, unit)
}
