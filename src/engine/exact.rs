//! Exact search of every source at once.

use std::{
    mem,
    ops::ControlFlow,
    panic::resume_unwind,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, ScopedJoinHandle},
    vec,
};

use super::{
    error::Error,
    source::{
        Note, Scope, SearchPlan, SourceKind, Sources,
        sink::{Rendered, Sink},
    },
};
use crate::model::{Hit, Instant, Request, Stop};

/// Batches of a source that wait for the hits of the other sources.
const MOST_WAITING: usize = 2;

/// How an exact search of every source went.
#[derive(Debug)]
pub(crate) struct Searched {
    /// How each source was searched, and how many hits it had.
    pub(crate) plans: Vec<(SourceKind, SearchPlan, usize)>,
    /// The notes about everything that was left out.
    pub(crate) notes: Vec<Note>,
}

/// Makes the value that is kept of a hit, whose texts are lent; `None` to leave the hit out.
pub(crate) type Render<'a, T> = &'a (dyn Fn(SourceKind, Hit<'_>) -> Option<T> + Sync);

/// The value that is kept of a hit, with the time of the hit.
type Timed<T> = (Option<Instant>, T);

/// The hits of one source, newest first.
struct Stream<'s, T> {
    kind: SourceKind,
    batches: Receiver<Vec<Timed<T>>>,
    batch: vec::IntoIter<Timed<T>>,
    next: Option<Timed<T>>,
    count: usize,
    search: ScopedJoinHandle<'s, Result<SearchPlan, Error>>,
}

impl<T> Stream<'_, T> {
    fn advance(&mut self) {
        self.next = self.batch.next();
        while self.next.is_none() {
            let Ok(batch) = self.batches.recv() else { return };
            self.batch = batch.into_iter();
            self.next = self.batch.next();
        }
    }
}

/// Sends the values that are kept of hits to another thread. All hits of one confirmation are sent
/// together: to wake a thread for each hit takes longer than to find it.
struct SendingSink<R, T> {
    render: R,
    held: Vec<Timed<T>>,
    batches: SyncSender<Vec<Timed<T>>>,
}

impl<T, R: FnMut(Hit<'_>) -> Option<Timed<T>>> Sink for SendingSink<R, T> {
    fn take(&mut self, hit: Hit<'_>) {
        self.held.extend((self.render)(hit));
    }

    fn confirm(&mut self, stop: &Stop) -> ControlFlow<()> {
        let batch = mem::take(&mut self.held);
        match batch.is_empty() || !stop.requested() && self.batches.send(batch).is_ok() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    fn discard(&mut self) {
        self.held.clear();
    }
}

impl Sources {
    /// Searches the sources in a scope, several at one time, and shows their hits, newest first,
    /// until `show` breaks off. The request has the roles, the dates and the text.
    pub(crate) fn exact_in_all<T: Send>(
        &self,
        request: &Request,
        scope: &Scope,
        stop: &Stop,
        render: Render<'_, T>,
        show: &mut dyn FnMut(T) -> ControlFlow<()>,
    ) -> Result<Searched, Error> {
        let (sources, mut notes) = self.readable(scope, stop)?;
        let kept = |kind, hit: Hit<'_>| {
            let is_wanted = scope.accepts_id(kind, &hit.conversation_id);
            is_wanted.then(|| render(kind, hit)).flatten()
        };
        if let [source] = &*sources {
            // There is no other source to wait for, so the thread that finds the hits shows them.
            let mut count = 0;
            let shown = |one| {
                count += 1;
                show(one)
            };
            let mut sink = Rendered::new(|hit: Hit<'_>| kept(source.kind, hit), shown);
            let plan = source.search_visible(request, stop, &mut sink)?;
            return Ok(Searched { plans: vec![(source.kind, plan, count)], notes });
        }
        let mut plans = Vec::new();
        let mut first = None;
        thread::scope(|threads| {
            let mut streams = Vec::new();
            for source in &sources {
                let (kind, kept) = (source.kind, &kept);
                let (sender, batches) = sync_channel(MOST_WAITING);
                let search = threads.spawn(move || {
                    let render = |hit: Hit<'_>| {
                        let time = hit.time;
                        kept(kind, hit).map(|one| (time, one))
                    };
                    let mut sink = SendingSink { render, held: Vec::new(), batches: sender };
                    source.search_visible(request, stop, &mut sink)
                });
                let batch = Vec::new().into_iter();
                streams.push(Stream { kind, batches, batch, next: None, count: 0, search });
            }
            streams.iter_mut().for_each(Stream::advance);
            while let Some(stream) = newest(&mut streams) {
                let Some((_, hit)) = stream.next.take() else { break };
                stream.count += 1;
                if show(hit).is_break() {
                    break;
                }
                stream.advance();
            }
            for Stream { kind, batches, count, search, .. } in streams {
                drop(batches);
                match search.join().unwrap_or_else(|panic| resume_unwind(panic)) {
                    Ok(plan) => plans.push((kind, plan, count)),
                    Err(error) if error.is_of_source() => {
                        notes.push(Note::Unreadable { source: kind, reason: error.reason() });
                        first.get_or_insert(error);
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })?;
        match first.filter(|_| plans.is_empty()) {
            Some(error) => Err(error),
            None => Ok(Searched { plans, notes }),
        }
    }
}

/// Returns the stream with the newest hit; of equal times, the first.
fn newest<'a, 's, T>(streams: &'a mut [Stream<'s, T>]) -> Option<&'a mut Stream<'s, T>> {
    let mut best: Option<&mut Stream<'s, T>> = None;
    for stream in streams.iter_mut() {
        let Some((time, _)) = &stream.next else { continue };
        let is_newer =
            best.as_ref().and_then(|best| best.next.as_ref()).is_none_or(|(best, _)| time > best);
        if is_newer {
            best = Some(stream);
        }
    }
    best
}
