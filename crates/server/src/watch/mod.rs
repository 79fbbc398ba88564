//! Keeps the indexes current while a program runs. A thread of low priority polls the sources and
//! refreshes their indexes; file events wake it early.
//!
//! An event is only a reason to poll, and polling finds the changes. So a superfluous event costs
//! some system calls. A missing event (network folders, a system's limit of watched files, files
//! written at once into a new folder) delays a refresh until the next regular poll.
//!
//! Invariant: no search waits for this thread.

mod folders;

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use folders::FolderWatcher;

use verbatim_base::{call::Call, lock::lock};
use verbatim_engine::{Engine, UpkeepEvent};

/// The time between two polls without an event.
const POLL: Duration = Duration::from_secs(5);

/// The time between two polls if the system sends no file events.
const BLIND_POLL: Duration = Duration::from_secs(2);

/// The minimum time between two polls: a busy folder must not keep a core busy.
const PAUSE: Duration = Duration::from_millis(50);

/// A thread that keeps the indexes current until this value is dropped or ended.
#[derive(Debug)]
pub struct Watch {
    call: Call,
    notify: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

/// An event for a log.
#[derive(Debug)]
pub enum Event {
    /// An event of an index.
    Index(UpkeepEvent),
    /// The system sends no events for a folder; the text says why.
    Blind(String),
}

#[derive(Debug, Default)]
struct Notify {
    is_notified: Mutex<bool>,
    condition: Condvar,
}

impl Notify {
    fn notify(&self) {
        *lock(&self.is_notified) = true;
        self.condition.notify_all();
    }

    fn wait(&self, patience: Duration) {
        let guard = lock(&self.is_notified);
        let waited =
            self.condition.wait_timeout_while(guard, patience, |is_notified| !*is_notified);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// Starts a thread that keeps the indexes of an engine current and hands events to `report`.
pub fn start(
    engine: Arc<Engine>,
    mut report: impl FnMut(Event) + Send + 'static,
) -> io::Result<Watch> {
    let call = Call::default();
    let notify = Arc::new(Notify::default());
    let thread_stop = call.clone();
    let thread_notify = Arc::clone(&notify);
    let thread = thread::Builder::new().name("maintainer".to_owned()).spawn(move || {
        lower_priority();
        maintain(&engine, &thread_stop, &thread_notify, &mut report);
    })?;
    Ok(Watch { call, notify, thread: Some(thread) })
}

impl Watch {
    /// Stops the thread, and waits at most `patience` for its end.
    pub fn end(mut self, patience: Duration) {
        self.request_stop();
        let start = Instant::now();
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && start.elapsed() < patience
        {
            thread::sleep(Duration::from_millis(2));
        }
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            drop(thread.join());
        }
    }

    fn request_stop(&self) {
        self.call.stop.request();
        self.notify.notify();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.request_stop();
    }
}

fn maintain(
    engine: &Arc<Engine>,
    call: &Call,
    notify: &Arc<Notify>,
    report: &mut dyn FnMut(Event),
) {
    let mut maintainer = engine.upkeep().maintainer();
    let wake = Arc::clone(notify);
    let mut watcher = FolderWatcher::new(engine.config().index_folder(), move || wake.notify());
    while !call.stop.requested() {
        // The folders are watched before the poll, so that a change during the poll causes an event.
        watcher.rewatch(&engine.upkeep().watched_folders(), &mut |problem| {
            report(Event::Blind(problem));
        });
        let next = maintainer.poll(call, &mut |event| report(Event::Index(event)));
        let poll = if watcher.is_blind() { BLIND_POLL } else { POLL };
        thread::sleep(PAUSE.min(next.unwrap_or(PAUSE)));
        notify.wait(next.unwrap_or(poll).min(poll));
    }
}

/// Lowers the thread's priority to about a third of the usual share of CPU time. With an even lower
/// priority, the thread would get no time on a busy machine.
///
/// Only on Linux. On other systems a priority applies to the whole process, so searches would be slower too.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(5);
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Event::Index(event) => event.fmt(f),
            Event::Blind(problem) => write!(
                f,
                "no file events ({problem}): looking every {} seconds instead",
                BLIND_POLL.as_secs()
            ),
        }
    }
}
