//! The command `verbatim reindex`.

use std::cell::RefCell;
use std::io::{self, Write};

use super::indexing::{self, IndexLines};
use crate::cli::command::{CommandArgs, Facts, Invocation, Terminal};
use crate::cli::error::Result;
use crate::cli::terminal::interrupt;
use crate::cli::terminal::output::{FOUND, complain};
use verbatim_engine::{IndexStep, Reindex};

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
pub(crate) struct Args {
    /// Build every index again, even if it is up to date
    #[arg(long)]
    full: bool,

    /// Make the vectors of this model: static, built-in or URL#MODEL
    ///
    /// The names are those of the setting `embeddings`, which this flag overrides for one run. "static"
    /// leaves the sentence model out.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
}

const ELSEWHERE: &str =
    "another process makes the vectors of the sentence model; `verbatim status` says how far it is";

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        Facts::INDEXES
    }

    fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        let Invocation { engine, terminal: Terminal { environment, out }, .. } = invocation;
        let call = interrupt::stop_on_interrupt(environment);
        if engine.config().db.is_some() {
            // This call returns an error that names the missing database.
            engine.config().export_store()?;
        }
        let options = Reindex { resources: indexing::resources(environment), full: self.full };
        let report = ReindexReport { out, is_searchable: false, written: Ok(()) };
        let report = RefCell::new(report);
        let lines = IndexLines::new(environment);
        let done = engine.upkeep().index_all(options, &call, &|step| {
            lines.show(&step);
            report.borrow_mut().write_step(&step);
        });
        lines.clear();
        let ReindexReport { is_searchable, written, .. } = report.into_inner();
        written?;
        match done.failed {
            Some(error) if error.is_stopped() && is_searchable => Ok(interrupt::stopped(
                "the vectors that were made stay, and searches use them; another reindex, or a running \
             server, goes on",
            )),
            Some(error) if error.is_stopped() => {
                Ok(interrupt::stopped("what was indexed stays; run it again to go on"))
            }
            Some(error) => Err(error.into()),
            None => {
                if done.indexed.is_empty() {
                    engine.config().export_store()?;
                }
                Ok(FOUND)
            }
        }
    }
}

struct ReindexReport<'a> {
    out: &'a mut dyn Write,
    /// Whether only vectors of the sentence model are left.
    is_searchable: bool,
    written: io::Result<()>,
}

impl ReindexReport<'_> {
    fn write_step(&mut self, step: &IndexStep<'_>) {
        let written = match step {
            IndexStep::TranscriptsRead(Ok(report)) if report.read > 0 => {
                writeln!(self.out, "{report}")
            }
            IndexStep::Indexed(one) => indexing::write_result(one, self.out),
            IndexStep::Searchable => {
                self.is_searchable = true;
                // Whoever reads the lines above can search already.
                self.out.flush()
            }
            IndexStep::VectorsElsewhere => {
                complain(ELSEWHERE);
                Ok(())
            }
            _ => Ok(()),
        };
        if self.written.is_ok() {
            self.written = written;
        }
    }
}
