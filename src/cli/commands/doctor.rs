//! The command `verbatim doctor`.

use std::{io::Write, path::Path};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::cli::clients;
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal};
use crate::cli::error::Result;
use crate::cli::settings::engine_config;
use crate::cli::terminal::output::{FOUND, NOTHING, harmless};
use crate::cli::terminal::waiting;
use crate::cli::terminal::wrap::shortened;
use verbatim_answer::state;
use verbatim_base::{call::Call, files};
use verbatim_engine::{self as engine, Finding, Verdict};

/// The width of a verdict and the space after it.
const VERDICT: usize = 7;

/// The setting of Claude Code that says how long it keeps transcripts, and the number of days without it.
const CLEANUP: &str = "cleanupPeriodDays";
const USUAL_DAYS: u64 = 30;

/// Examine databases, indexes, folders and client configurations
///
/// Reports the state of each, and tells you how to fix what is wrong. Changes nothing. The exit
/// code is 1 if something is wrong.
///
///     verbatim doctor
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Check databases completely, however long that takes, their own indexes included
    #[arg(long)]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        let form = if self.json { OutputForm::AsItIs } else { OutputForm::Sentences(VERDICT) };
        Facts {
            reads: Reads::Nothing,
            writes: false,
            takes_db: true,
            makes_vectors: false,
            may_be_torn: false,
            waits_for: Some("examining"),
            form,
        }
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        run(self, invocation)
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Examined {
    /// How many things are wrong; the exit code is 1 if any is.
    wrong: usize,
    /// Everything that was examined.
    findings: Vec<Finding>,
}

fn run(args: &Args, invocation: Invocation<'_>) -> Result<u8> {
    let Invocation { engine, places, no_provider, parse_serve, terminal } = invocation;
    let Terminal { environment, out } = terminal;
    let mut findings = Vec::new();
    let user = engine_config::user_prefix(environment);
    let mut written = Ok(());
    let mut report = |finding: Finding| {
        let mend = finding.mend.map(|mend| places.in_commands(&mend));
        let finding = Finding { mend, ..finding };
        if !args.json && written.is_ok() {
            written = write_finding(out, &finding, user.as_deref());
        }
        findings.push(finding);
    };
    if let Some(error) = no_provider {
        let mend = "`verbatim status --settings` shows where that is set, and docs/ranking.md what it can be";
        report(Finding::wrong("embeddings", error.to_string(), mend));
    }
    let mut begin = |what: &str| {
        if environment.progress {
            waiting::show(what);
        }
    };
    if let Err(error) = engine_config::check_home(places, environment) {
        report(Finding::note("home", error.to_string(), ""));
    }
    let claude = engine.config().archives.iter().filter(|folder| folder.ends_with("projects"));
    for settings in claude.filter_map(|folder| Some(folder.parent()?.join("settings.json"))) {
        report(deletion(&settings));
    }
    begin("counting messages");
    let call = Call::default();
    let sources = engine.all_sources();
    let status = engine::status(sources, &call);
    for source in &status.sources {
        let facts = state::of_source(source, None, engine.config());
        facts.into_iter().filter_map(|fact| fact.finding(Some(source))).for_each(&mut report);
    }
    let facts = state::of_home(&status, engine.config());
    facts.into_iter().filter_map(|fact| fact.finding(None)).for_each(&mut report);
    engine::examine(sources, &status, args.full, &call, &mut begin, &mut report);
    begin("starting AI clients' servers");
    clients::examine(environment, parse_serve, &mut report);
    written?;
    let wrong = findings.iter().filter(|finding| finding.verdict == Verdict::Wrong).count();
    if args.json {
        writeln!(out, "{:#}", json!(Examined { wrong, findings }))?;
    } else {
        match wrong {
            0 => writeln!(out, "nothing is wrong")?,
            1 => writeln!(out, "1 thing is wrong")?,
            _ => writeln!(out, "{wrong} things are wrong")?,
        }
    }
    Ok(if wrong == 0 { FOUND } else { NOTHING })
}

/// Returns after how many days Claude Code deletes transcripts; `settings` is its file of settings.
fn deletion(settings: &Path) -> Finding {
    let text = files::read_to_string(settings).unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let (days, is_set) = match json[CLEANUP].as_u64() {
        Some(days) => (days, "is set"),
        None => (USUAL_DAYS, "is not set"),
    };
    let what = format!(
        "Claude Code deletes transcripts after {days} days ({CLEANUP} in {} {is_set}); Verbatim keeps \
         what it has read",
        settings.display()
    );
    Finding::note("transcripts", what, "")
}

fn write_finding(
    out: &mut dyn Write,
    finding: &Finding,
    user: Option<&str>,
) -> std::io::Result<()> {
    let verdict = match finding.verdict {
        Verdict::Well => "ok   ",
        Verdict::Note => "note ",
        Verdict::Wrong => "WRONG",
    };
    // The text of an error already begins with the path, so the path is not printed twice.
    let Finding { about, what, mend, .. } = finding;
    let about = if what.starts_with(about.as_str()) { "" } else { &format!("{about}: ") };
    let line = shortened(&format!("{verdict}  {about}{what}"), user);
    writeln!(out, "{}", harmless(&line))?;
    if let Some(mend) = mend {
        writeln!(out, "{:VERDICT$}-> {}", "", harmless(mend))?;
    }
    out.flush()
}
