//! `verbatim watch`.

use std::{
    io::Write,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use chrono::Local;

use super::{Error, FOUND};
use crate::{engine::Engine, watch};

/// How long a refresh that was told to end may take to clean up after itself.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Keep the indexes current until it is stopped
///
/// Follows the databases and refreshes their indexes in the background, one line each. A server
/// does so by itself; this is for searches in the terminal. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {}

/// What the loop is told.
enum Told {
    Event(watch::Event),
    Enough,
}

pub(super) fn run(_: &Args, engine: Engine, out: &mut dyn Write) -> Result<u8, Error> {
    let (tell, told) = mpsc::channel();
    let enough = tell.clone();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(Error::Watch)?;
    thread::spawn(move || {
        drop(runtime.block_on(interrupted()));
        drop(enough.send(Told::Enough));
    });
    let watch = watch::start(Arc::new(engine), move |event| drop(tell.send(Told::Event(event))))
        .map_err(Error::Watch)?;
    let write = || -> std::io::Result<()> {
        for told in told {
            let Told::Event(event) = told else { break };
            writeln!(out, "{} {event}", Local::now().format("%H:%M:%S"))?;
            out.flush()?;
        }
        Ok(())
    };
    let written = write();
    watch.end(LAST_WORDS);
    written?;
    Ok(FOUND)
}

/// Waits until the user or the system wants the program to end.
async fn interrupted() -> std::io::Result<()> {
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
