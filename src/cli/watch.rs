//! The command `verbatim watch`.

use std::{
    io::Write,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use chrono::Local;

use super::{
    environment::Environment,
    error::Error,
    output::{FOUND, complain, counted, harmless},
};
use crate::{
    engine::{Engine, StoreAddress, UpkeepEvent},
    watch,
};

/// The maximum time that the program waits for a refresh to stop and clean up before it ends.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// Keep the indexes current until you stop it
///
/// Follows the databases and refreshes their indexes; prints a line for each refresh. A server does
/// this by itself; use this command for searches in the terminal. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {}

/// An event that wakes the loop of `verbatim watch`.
enum Wake {
    Event(watch::Event),
    Interrupted,
}

pub(super) fn run(
    _: &Args,
    engine: Engine,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    if environment.progress {
        let count = counted(engine.sources().len(), "database");
        complain(&format!("following {count} and the transcripts; Ctrl-C ends it"));
    }
    if matches!(engine.config().db, Some(StoreAddress::Cluster(_))) {
        complain("the cluster keeps its own index; only transcripts are followed");
    }
    let (sender, messages) = mpsc::channel();
    let interrupt = sender.clone();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(Error::Watch)?;
    thread::spawn(move || {
        drop(runtime.block_on(interrupted()));
        drop(interrupt.send(Wake::Interrupted));
    });
    let send = move |event| drop(sender.send(Wake::Event(event)));
    let watch = watch::start(Arc::new(engine), send).map_err(Error::Watch)?;
    let write = || -> std::io::Result<()> {
        for message in messages {
            let Wake::Event(event) = message else { break };
            let event = harmless(&described(&event));
            writeln!(out, "{} {event}", Local::now().format("%H:%M:%S"))?;
            out.flush()?;
        }
        Ok(())
    };
    let written = write();
    watch.end(SHUTDOWN_PATIENCE);
    written?;
    Ok(FOUND)
}

/// Waits until the user or the system asks the program to end.
pub(super) async fn interrupted() -> std::io::Result<()> {
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
pub(super) fn described(event: &watch::Event) -> String {
    match event {
        watch::Event::Index(UpkeepEvent::NotImported { .. }) => {
            format!("{event}; `verbatim import` reads it")
        }
        event => event.to_string(),
    }
}
