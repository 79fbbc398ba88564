//! Exact search of every source at once.

use std::{
    ops::ControlFlow,
    panic::resume_unwind,
    sync::mpsc::{Receiver, sync_channel},
    thread::{self, ScopedJoinHandle},
};

use super::{
    error::Error,
    source::{Note, Scope, SearchPlan, SourceKind, Sources, sink::Rendered},
};
use crate::model::{Hit, Instant, Request, Stop};

/// Hits of a source that wait for those of the other sources.
const MOST_WAITING: usize = 64;

/// How an exact search of every source went.
#[derive(Debug)]
pub(crate) struct Searched {
    /// How each source was searched, and how many hits it had.
    pub(crate) plans: Vec<(SourceKind, SearchPlan, usize)>,
    /// What was left out.
    pub(crate) notes: Vec<Note>,
}

/// Makes of a hit, whose texts are lent, what is kept of it; `None` to leave it out.
pub(crate) type Render<'a, T> = &'a (dyn Fn(SourceKind, Hit<'_>) -> Option<T> + Sync);

/// The hits of one source, newest first.
struct Stream<'s, T> {
    kind: SourceKind,
    hits: Receiver<(Option<Instant>, T)>,
    next: Option<(Option<Instant>, T)>,
    count: usize,
    search: ScopedJoinHandle<'s, Result<SearchPlan, Error>>,
}

impl<T> Stream<'_, T> {
    fn advance(&mut self) {
        self.next = self.hits.recv().ok();
    }
}

impl Sources {
    /// Searches the sources in a scope, each in its own thread, and shows their hits, newest first,
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
        let mut plans = Vec::new();
        let mut first = None;
        thread::scope(|threads| {
            let mut streams = Vec::new();
            for source in &sources {
                let kind = source.kind;
                let (sender, hits) = sync_channel(MOST_WAITING);
                let search = threads.spawn(move || {
                    let wanted = |hit: Hit<'_>| {
                        let time = hit.time;
                        let kept =
                            scope.accepts_id(&hit.conversation_id).then(|| render(kind, hit));
                        kept.flatten().map(|kept| (time, kept))
                    };
                    let send = |hit| match sender.send(hit) {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    };
                    source.search_visible(request, stop, &mut Rendered::new(wanted, send))
                });
                streams.push(Stream { kind, hits, next: None, count: 0, search });
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
            for Stream { kind, hits, count, search, .. } in streams {
                drop(hits);
                match search.join().unwrap_or_else(|panic| resume_unwind(panic)) {
                    Ok(plan) => plans.push((kind, plan, count)),
                    Err(error) if error.is_of_source() => {
                        notes.push(Note::Unreadable { source: kind, reason: error.to_string() });
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
