//! Keeps the indexes current while a program runs: file events say when to look, a thread of low
//! priority looks and refreshes.
//!
//! Events are nothing but reasons to look again; what there is to do is found by looking. So an
//! event too many costs some system calls, and one that never came (folders on a network, a
//! system's limit of watched files, files written at once into a new folder) costs the seconds
//! until the next look that needs no reason.
//!
//! Invariant: a search waits for nothing that happens here.

mod folders;

use std::{
    io,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use folders::FolderWatcher;

use crate::{
    engine::{Engine, Maintainer, UpkeepEvent},
    model::Stop,
};

/// The time between two looks for which there was no reason.
const POLL: Duration = Duration::from_secs(5);

/// The same while the system sends no events.
const BLIND_POLL: Duration = Duration::from_secs(2);

/// The least time between two looks: a busy folder must not keep a core busy.
const BREATH: Duration = Duration::from_millis(50);

/// Keeps the indexes current until it is ended or dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Stop,
    bell: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

/// What happened, for a log.
#[derive(Debug)]
pub enum Event {
    /// Something about an index.
    Index(UpkeepEvent),
    /// The system sends no events for a folder; why.
    Blind(String),
}

/// Rung when there is reason to look.
#[derive(Debug, Default)]
struct Notify {
    rung: Mutex<bool>,
    condition: Condvar,
}

impl Notify {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condition.notify_all();
    }

    /// Waits until the bell is rung, at most for `patience`.
    fn wait(&self, patience: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.condition.wait_timeout_while(rung, patience, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// Starts to keep the indexes of an engine current; `tell` hears what happens.
pub fn start(
    engine: Arc<Engine>,
    mut tell: impl FnMut(Event) + Send + 'static,
) -> io::Result<Watch> {
    let (stop, bell) = (Stop::never(), Arc::new(Notify::default()));
    let (asked, heard) = (stop.clone(), Arc::clone(&bell));
    let thread = thread::Builder::new().name("keeper".to_owned()).spawn(move || {
        yield_to_others();
        keep(&engine, &asked, &heard, &mut tell);
    })?;
    Ok(Watch { stop, bell, thread: Some(thread) })
}

impl Watch {
    /// Ends what is going on and waits until it has, at most for `patience`.
    pub fn end(mut self, patience: Duration) {
        self.ask();
        let begun = Instant::now();
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && begun.elapsed() < patience
        {
            thread::sleep(Duration::from_millis(2));
        }
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            drop(thread.join());
        }
    }

    fn ask(&self) {
        self.stop.request();
        self.bell.ring();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ask();
    }
}

fn keep(engine: &Arc<Engine>, stop: &Stop, bell: &Arc<Notify>, tell: &mut dyn FnMut(Event)) {
    let mut keeper = Maintainer::new(Arc::clone(engine));
    let wake = Arc::clone(bell);
    let mut eyes = FolderWatcher::new(engine.config().index_folder(), move || wake.ring());
    while !stop.requested() {
        // Before looking: what changes in between is an event.
        eyes.turn(&engine.watched(), &mut |problem| tell(Event::Blind(problem)));
        let next = keeper.look(stop, &mut |news| tell(Event::Index(news)));
        let poll = if eyes.is_blind() { BLIND_POLL } else { POLL };
        thread::sleep(BREATH.min(next.unwrap_or(BREATH)));
        bell.wait(next.unwrap_or(poll).min(poll));
    }
}

/// Lets what else there is to do on the machine go first: a third of its share. Lower, and a machine
/// that is busy for long would leave no time at all. Only where a thread has a priority of its own:
/// elsewhere searches would be slowed too.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(5);
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Event::Index(news) => news.fmt(f),
            Event::Blind(problem) => write!(
                f,
                "no file events ({problem}): looking every {} seconds instead",
                BLIND_POLL.as_secs()
            ),
        }
    }
}
