//! The command `verbatim watch`.

use std::io::{self, Write};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use chrono::Local;

use crate::cli::command::{CommandArgs, Facts, Invocation, Terminal};
use crate::cli::error::{Error, Result};
use crate::cli::terminal::echo;
use crate::cli::terminal::output::{FOUND, complain, counted, harmless};
use verbatim_engine::{Engine, SourceKind, StoreAddress, UpkeepEvent};
use verbatim_server::watch;

/// The maximum time that the program waits for a refresh to stop and clean up before it ends.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// Keep the indexes current until you stop it
///
/// Follows the databases and refreshes their indexes; prints a line for each refresh. A server does
/// this by itself; use this command for searches in the terminal. Ctrl-C ends it.
///
///     verbatim watch
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {}

enum Wake {
    Event(watch::Event),
    Interrupted,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        Facts::INDEXES
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        let Invocation { engine, terminal: Terminal { environment, out }, .. } = invocation;
        if environment.progress {
            complain(&format!("following {}; Ctrl-C ends it", followed(engine)));
        }
        if matches!(engine.config().db, Some(StoreAddress::Cluster(_))) {
            complain("the cluster keeps its own index; only transcripts are followed");
        }
        let (sender, messages) = mpsc::channel();
        let interrupt = sender.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(Error::Watch)?;
        thread::spawn(move || {
            drop(runtime.block_on(interrupted()));
            drop(interrupt.send(Wake::Interrupted));
        });
        let watch = watch::start(Arc::clone(engine), move |event| {
            drop(sender.send(Wake::Event(event)));
        });
        let watch = watch.map_err(Error::Watch)?;
        let written = write_events(messages, out);
        watch.end(SHUTDOWN_PATIENCE);
        written?;
        Ok(FOUND)
    }
}

fn write_events(messages: mpsc::Receiver<Wake>, out: &mut dyn Write) -> io::Result<()> {
    for message in messages {
        let Wake::Event(event) = message else { break };
        let event = harmless(&event_text(&event));
        writeln!(out, "{} {event}", Local::now().format("%H:%M:%S"))?;
        out.flush()?;
    }
    Ok(())
}

fn followed(engine: &Engine) -> String {
    let sources = engine.sources().into_iter();
    let databases = sources.filter(|source| source.kind != SourceKind::Archive).count();
    let has_transcripts = engine.config().archives.iter().any(|folder| folder.is_dir());
    match (databases, has_transcripts) {
        (0, false) => "the home folder, which has no chats yet".to_owned(),
        (0, true) => "the transcripts".to_owned(),
        (_, false) => counted(databases, "database"),
        (_, true) => format!("{} and the transcripts", counted(databases, "database")),
    }
}

/// Waits until the user or the system asks the program to end.
pub(super) async fn interrupted() -> io::Result<()> {
    echo::take_ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut end = signal(SignalKind::terminate())?;
        tokio::select! {
            _ = end.recv() => Ok(()),
            result = tokio::signal::ctrl_c() => result,
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Returns the text of an event for a log, with a command that helps if there is one.
pub(super) fn event_text(event: &watch::Event) -> String {
    match event {
        watch::Event::Index(UpkeepEvent::NotImported { .. }) => {
            format!("{event}; `verbatim import` reads it")
        }
        event => event.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_export::TestExport;
    use verbatim_engine::Config;

    #[test]
    fn only_what_is_there_is_said_to_be_followed() {
        let with = |config: &Config, archives| {
            followed(&Engine::new(Config { archives, ..config.clone() }))
        };
        let export = TestExport::indexed(&["red"]);
        let config = export.engine.config();
        let folder = tempfile::tempdir().unwrap();
        let empty = Config { home: folder.path().to_owned(), ..Config::default() };
        let there = || vec![folder.path().to_owned()];
        assert_eq!(with(config, Vec::new()), "1 database");
        assert_eq!(with(config, vec!["nowhere".into()]), "1 database");
        assert_eq!(with(config, there()), "1 database and the transcripts");
        assert_eq!(with(&empty, there()), "the transcripts");
        assert_eq!(with(&empty, Vec::new()), "the home folder, which has no chats yet");
    }
}
