//! The command `verbatim reindex`.

use super::{
    archives,
    command::{CommandArgs, Facts, Invocation, OutputForm, Reads},
    environment::Terminal,
    error::Result,
    indexing, interrupt,
    output::{FOUND, complain},
};
use verbatim_engine::{Engine, Reindex, SourceKind};

/// Build the indexes that make searches fast
///
/// Searches work without indexes, by reading every message, and while indexes are being built. The
/// database has an index, and so have the transcripts of coding agents and recorded threads, if
/// there are any. An up-to-date index is left alone.
///
/// The vectors of the sentence model come last, the newest messages first. Searches use each part of
/// them at once. Ctrl-C loses none of it: another reindex, or a running server, goes on.
///
///     verbatim reindex
///     verbatim reindex --db export.db
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Build every index again, even if it is up to date
    #[arg(long)]
    full: bool,

    /// Make the vectors of this model: static, built-in or URL#MODEL
    ///
    /// The names are those of the setting `embeddings`, which this flag overrides for one run. "static"
    /// leaves the sentence model out.
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
}

const ELSEWHERE: &str =
    "another process makes the vectors of the sentence model; `verbatim status` says how far it is";

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        Facts {
            reads: Reads::Nothing,
            writes: true,
            takes_db: true,
            makes_vectors: true,
            may_be_torn: false,
            waits_for: None,
            form: OutputForm::AsItIs,
        }
    }

    fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn run(&self, call: Invocation<'_>) -> Result<u8> {
        run(self, call.engine, call.terminal)
    }
}

fn run(args: &Args, engine: &Engine, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let stop = interrupt::stop_on_interrupt(environment);
    let sources = engine.sources();
    let has_export = sources.iter().any(|source| source.kind == SourceKind::Export);
    let report = archives::sync(engine, environment, &stop).filter(|report| report.read > 0);
    if let Some(report) = report {
        writeln!(out, "{report}")?;
    }
    let sources = engine.sources();
    if !has_export && (sources.is_empty() || engine.config().db.is_some()) {
        // This call returns an error that names the missing database.
        engine.config().export_store()?;
    }
    let options = Reindex { resources: indexing::resources(environment), full: args.full };
    let mut indexed = Vec::new();
    let mut failed = None;
    for source in &sources {
        let (one, failure) = match indexing::index_when_steady(source, options, environment, &stop)
        {
            Err(error) if error.is_stopped() => {
                return Ok(interrupt::stopped("what was indexed stays; run it again to go on"));
            }
            // An error of one source does not stop the indexing of the other sources.
            Err(error) => {
                failed = failed.or(Some(error));
                continue;
            }
            Ok(done) => done,
        };
        failed = failed.or(failure);
        indexing::write_result(&one, out)?;
        indexed.push(source);
    }
    // Whoever reads the lines above can search already.
    out.flush()?;
    for source in indexed {
        match indexing::encode(source, options.resources.threads, environment, &stop) {
            Ok(()) => {}
            Err(error) if error.is_stopped() => {
                return Ok(interrupt::stopped(
                    "the vectors that were made stay, and searches use them; another reindex, or a \
                     running server, goes on",
                ));
            }
            Err(error) => {
                failed = failed.or(Some(error));
                continue;
            }
        }
        if source.encoded(&stop).missing() > 0 {
            complain(ELSEWHERE);
        }
    }
    failed.map_or(Ok(FOUND), |error| Err(error.into()))
}
