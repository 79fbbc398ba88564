//! Exact search in all sources at the same time.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, ScopedJoinHandle};
use std::{
    mem,
    ops::{ControlFlow, Range},
    panic::resume_unwind,
    vec,
};

use crate::error::Result;
use crate::source::sink::{Rendered, Show};
use crate::source::{Note, Scope, SearchPlan, SourceKind, Sources};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Request};

/// Number of batches of hits that a source may send before the receiver takes them.
const MOST_WAITING: usize = 2;

/// The fewest and the most hits of a part of [`Sources::search_oldest`], but for hits of one time.
const FEWEST_OF_PART: usize = 64;
const MOST_OF_PART: usize = 20_000;

/// The size up to which a part is found without the times of all hits.
const MOST_OF_PROBED: usize = 2_000;

/// The seconds between which the end of a part is looked for: the years 1970 to 2100.
const PROBED: Range<i64> = 0..4_102_444_800;

/// The outcome of an exact search of all sources.
#[derive(Debug)]
pub struct Searched {
    /// The plan of each source.
    pub plans: Vec<SearchPlan>,
    /// Notes about sources and messages that were left out.
    pub notes: Vec<Note>,
}

/// Function that makes an owned value from a hit with borrowed texts; `None` leaves the hit out.
pub type Make<'a, T> = &'a (dyn Fn(SourceKind, Hit<'_>) -> Option<T> + Sync);

/// Functions that choose the data to keep of each hit.
pub struct Render<'a, T> {
    /// Function that makes the value to keep of a hit.
    pub make: Make<'a, T>,
    /// Function that returns whether the texts of a conversation are needed, as in [`Sink::reads`](crate::Sink::reads).
    pub reads: &'a (dyn Fn(SourceKind, &str) -> bool + Sync),
}

impl<'a, T> From<Make<'a, T>> for Render<'a, T> {
    fn from(make: Make<'a, T>) -> Render<'a, T> {
        Render { make, reads: &|_, _| true }
    }
}

/// The time of a hit, and the value that was made from the hit.
type Timed<T> = (Option<Instant>, T);

/// Sends the values made from hits to the thread that merges the sources. Sends all hits that are confirmed at
/// once, because waking a thread for each hit takes longer than finding the hit.
struct BatchSender<T>(SyncSender<Vec<T>>);

impl<T> Show<T> for BatchSender<T> {
    fn show(&mut self, values: &mut Vec<T>, call: &Call) -> ControlFlow<()> {
        let batch = mem::take(values);
        if batch.is_empty() || !call.stop.requested() && self.0.send(batch).is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// The hits of one source, newest first.
struct Stream<'s, T> {
    kind: SourceKind,
    batches: Receiver<Vec<Timed<T>>>,
    batch: vec::IntoIter<Timed<T>>,
    next: Option<Timed<T>>,
    search: ScopedJoinHandle<'s, Result<SearchPlan>>,
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

impl Sources {
    /// Searches the sources in a scope, several at the same time. Passes the hits that match the request to
    /// `show`, newest first, until `show` breaks. The request's limit only lets a source stop earlier;
    /// `show` must count the hits.
    pub fn search<T: Send>(
        &self,
        request: &Request,
        scope: &Scope,
        call: &Call,
        render: Render<'_, T>,
        show: &mut dyn FnMut(T) -> ControlFlow<()>,
    ) -> Result<Searched> {
        let (mut sources, mut notes) = self.readable(&scope.sources, call)?;
        let (scope, unknown) = self.resolved_to_ids(scope, &sources, call)?;
        notes.extend(unknown);
        sources.retain(|source| scope.sources.is_empty() || scope.sources.contains(&source.kind));
        let bounded = &scope.bounded(request);
        let has_roles = !request.roles.is_empty();
        let kept = |kind, hit: Hit<'_>| {
            let is_wanted = scope.accepts_id(kind, &hit.conversation_id)
                && (!has_roles || scope.accepts_role(&hit.role));
            is_wanted.then(|| (render.make)(kind, hit)).flatten()
        };
        let only = scope.only();
        // A source without a wanted conversation is not asked.
        if let Some(only) = &only {
            sources.retain(|source| only.get(&source.kind).is_some_and(|ids| !ids.is_empty()));
        }
        if let [source] = &*sources {
            // With one source there is nothing to merge, so the searching thread shows the hits.
            let reads = |id: &str| (render.reads)(source.kind, id);
            let mut sink = Rendered::new(|hit: Hit<'_>| kept(source.kind, hit), show);
            sink.reads = &reads;
            sink.only = only;
            let plan = source.search(bounded, call, &mut sink)?;
            return Ok(Searched { plans: vec![plan], notes });
        }
        let mut plans = Vec::new();
        let mut first = None;
        thread::scope(|threads| {
            let mut streams = Vec::new();
            for source in &sources {
                let kind = source.kind;
                let kept = &kept;
                let only = only.clone();
                let (sender, batches) = sync_channel(MOST_WAITING);
                let search = threads.spawn(move || {
                    let timed = |hit: Hit<'_>| Some((hit.time, kept(kind, hit)?));
                    let reads = |id: &str| (render.reads)(kind, id);
                    let mut sink = Rendered::new(timed, BatchSender(sender));
                    sink.reads = &reads;
                    sink.only = only;
                    source.search(bounded, call, &mut sink)
                });
                let batch = Vec::new().into_iter();
                streams.push(Stream { kind, batches, batch, next: None, search });
            }
            streams.iter_mut().for_each(Stream::advance);
            while let Some(stream) = newest(&mut streams) {
                let Some((_, hit)) = stream.next.take() else { break };
                if show(hit).is_break() {
                    break;
                }
                stream.advance();
            }
            for Stream { kind, batches, search, .. } in streams {
                drop(batches);
                match search.join().unwrap_or_else(|panic| resume_unwind(panic)) {
                    Ok(plan) => plans.push(plan),
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

    /// Searches like [`Sources::search`], but passes the hits to `show` oldest first. Hits without a time come
    /// last. The first parts are found by their dates. For the others, the hits are found twice: first their times,
    /// then, in parts, what `make` makes of them.
    pub fn search_oldest<T: Send>(
        &self,
        request: &Request,
        scope: &Scope,
        call: &Call,
        make: Make<'_, T>,
        show: &mut dyn FnMut(T) -> ControlFlow<()>,
    ) -> Result<Searched> {
        let mut size = request.limit.unwrap_or(0).clamp(FEWEST_OF_PART, MOST_OF_PART);
        let mut request = Request { limit: None, ..request.clone() };
        let since = request.since;
        // Other readers than an index on this computer would take as long for each part as for all.
        let may_probe = self.present().iter().all(|source| source.current_index(call).is_ok());
        while may_probe
            && size <= MOST_OF_PROBED
            && let Some(until) = self.end_of_part(&request, scope, call, size)?
        {
            let part = Request {
                until: request.until.into_iter().chain([until]).min(),
                ..request.clone()
            };
            let mut hits = Vec::new();
            let searched = self.search(&part, scope, call, make.into(), &mut |hit| {
                hits.push(hit);
                ControlFlow::Continue(())
            })?;
            if hits.into_iter().rev().try_for_each(&mut *show).is_break() {
                return Ok(searched);
            }
            request.since = Some(Instant { seconds: until.seconds + 1, nanos: 0 });
            size *= 4;
        }
        let has_begun = request.since != since;
        let mut times = Vec::new();
        let time: Make<'_, _> = &|_, hit| Some(hit.time);
        let render = Render { make: time, reads: &|_, _| false };
        let searched = self.search(&request, scope, call, render, &mut |time| {
            times.push(time);
            ControlFlow::Continue(())
        })?;
        let mut end = times.partition_point(Option::is_some);
        let untimed = times.len() - end;
        while end > 0 {
            let mut start = end.saturating_sub(size);
            // A part has all hits of a time.
            while start > 0 && times[start - 1] == times[start] {
                start -= 1;
            }
            let part = Request { since: times[end - 1], until: times[start], ..request.clone() };
            let mut hits = Vec::new();
            self.search(&part, scope, call, make.into(), &mut |hit| {
                hits.push(hit);
                ControlFlow::Continue(())
            })?;
            if hits.into_iter().rev().try_for_each(&mut *show).is_break() {
                return Ok(searched);
            }
            end = start;
            size = (size * 4).min(MOST_OF_PART);
        }
        if untimed > 0 || has_begun {
            let request = Request { since, ..request };
            let of_untimed: Make<'_, T> =
                &|kind, hit| if hit.time.is_none() { make(kind, hit) } else { None };
            self.search(&request, scope, call, of_untimed.into(), show)?;
        }
        Ok(searched)
    }

    /// Counts the hits up to a time, at most `most`.
    fn count_to(
        &self,
        most: usize,
        request: &Request,
        until: Option<Instant>,
        scope: &Scope,
        call: &Call,
    ) -> Result<usize> {
        let until = request.until.into_iter().chain(until).min();
        let part = Request { until, ..request.clone() };
        let make: Make<'_, ()> = &|_, _| Some(());
        let render = Render { make, reads: &|_, _| false };
        let mut found = 0;
        self.search(&part, scope, call, render, &mut |()| {
            found += 1;
            if found < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(found)
    }

    /// Returns a time until which there are at least `size` hits, and at most about four times as many; `None` if there
    /// are few in all.
    fn end_of_part(
        &self,
        request: &Request,
        scope: &Scope,
        call: &Call,
        size: usize,
    ) -> Result<Option<Instant>> {
        let most = 4 * size;
        if self.count_to(most, request, None, scope, call)? < most {
            return Ok(None);
        }
        let mut between = PROBED;
        between.start =
            request.since.map_or(between.start, |since| since.seconds.max(between.start));
        while between.end - between.start > 1 {
            let seconds = between.start + (between.end - between.start) / 2;
            let until = Instant { seconds, nanos: 999_999_999 };
            match self.count_to(most, request, Some(until), scope, call)? {
                found if found < size => between.start = seconds,
                found if found < most => return Ok(Some(until)),
                _ => between.end = seconds,
            }
        }
        let is_over = between.is_empty();
        let end = Instant { seconds: between.end, nanos: 999_999_999 };
        Ok((!is_over).then_some(end))
    }
}

/// Returns the stream with the newest hit. If several hits have the same time, the first stream wins.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{ConversationIds, TestExport};

    #[test]
    fn every_field_of_a_scope_counts() {
        let export = TestExport::of(&["red", "blue", "red fox"]);
        let sql = "INSERT INTO messages VALUES ('a', 1, 'assistant', 'blue fox', 1700000009)";
        export.connection.execute(sql, []).unwrap();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let ids = |ids: &[&str]| -> Arc<ConversationIds> {
            let ids = ids.iter().map(|id| (*id).to_owned());
            Arc::new([(SourceKind::Export, ids.collect())].into())
        };
        let at = |seconds| Some(Instant { seconds, nanos: 0 });
        let name = |name: &str| Some(name.to_owned());
        let all = Scope::default;
        let scopes = [
            (4, all()),
            (0, Scope { sources: vec![SourceKind::Threads], ..all() }),
            (1, Scope { roles: vec!["assistant".to_owned()], ..all() }),
            (2, Scope { since: at(1_700_000_002), ..all() }),
            (2, Scope { until: at(1_700_000_001), ..all() }),
            (2, Scope { conversation: name("1"), ..all() }),
            (4, Scope { project: name("Export"), ..all() }),
            (0, Scope { project: name("shop"), ..all() }),
            (2, Scope { session: name("1"), ..all() }),
            (3, Scope { conversations: Some(ids(&["1", "2"])), ..all() }),
            (2, Scope { without: ids(&["1"]), ..all() }),
            (2, Scope { excluded: Arc::new(["1".to_owned()].into()), ..all() }),
        ];
        let found = |request: &Request, scope: &Scope| {
            let mut count = 0;
            let mut show = |()| {
                count += 1;
                ControlFlow::Continue(())
            };
            let make: Make<'_, ()> = &|_, _| Some(());
            let sources = export.engine.all_sources();
            sources.search(request, scope, &Call::default(), make.into(), &mut show).unwrap();
            count
        };
        for is_indexed in [false, true] {
            for (expected, scope) in &scopes {
                assert_eq!(found(&Request::default(), scope), *expected, "{is_indexed} {scope:?}");
            }
            // The roles and dates of a request count too.
            let users = Request { roles: texts(&["user"]), ..Request::default() };
            assert_eq!(found(&users, &scopes[2].1), 0);
            assert_eq!(found(&Request { until: at(1_700_000_002), ..users }, &scopes[3].1), 1);
            // The newest message is from the assistant: it must not use up the limit.
            let one = Request {
                roles: texts(&["assistant", "user"]),
                limit: Some(1),
                ..Request::default()
            };
            assert!(found(&one, &Scope { roles: texts(&["user"]), ..all() }) > 0);
            export.reindex();
        }
    }

    #[test]
    fn the_oldest_are_the_newest_from_the_other_end() {
        let export = TestExport::of(&["red"]);
        let sql = "INSERT INTO messages VALUES (?1, 0, 'user', ?2, ?3)";
        export.connection.execute_batch("BEGIN").unwrap();
        for n in 0..4_000_i64 {
            let time = match n % 50 {
                0 => None,
                1 => Some(-5_000_000_000 + n),
                2 => Some(5_000_000_000 + n),
                3 => Some(1_500_000_000),
                _ => Some(1_400_000_000 + n * 7_919 % 3_000 * 90_000),
            };
            let text = if n % 3 == 0 { "red" } else { "red and blue" };
            export.connection.execute(sql, (format!("a{n}"), text, time)).unwrap();
        }
        export.connection.execute_batch("COMMIT").unwrap();
        export.reindex();
        let sources = export.engine.all_sources();
        let at = |seconds| Some(Instant { seconds, nanos: 0 });
        let make: Make<'_, _> = &|_, hit| Some((hit.time, hit.message_id.into_owned()));
        let scopes = [
            Scope::default(),
            Scope { since: at(1_450_000_000), ..Scope::default() },
            Scope { until: at(1_600_000_000), ..Scope::default() },
            Scope { since: at(-6_000_000_000), until: at(1_500_000_000), ..Scope::default() },
        ];
        for text in ["red", "blue"] {
            for scope in &scopes {
                let request = Request { text: text.to_owned(), ..Request::default() };
                let (mut newest, call) = (Vec::new(), Call::default());
                let mut all = |hit| {
                    newest.push(hit);
                    ControlFlow::Continue(())
                };
                sources.search(&request, scope, &call, make.into(), &mut all).unwrap();
                let timed = newest.iter().filter(|(time, _)| time.is_some()).rev();
                let untimed = newest.iter().filter(|(time, _)| time.is_none());
                let expected: Vec<_> = timed.chain(untimed).cloned().collect();
                for most in [1, 100, 700, usize::MAX] {
                    let limit = Some(most).filter(|most| *most < 1_000);
                    let request = Request { limit, ..request.clone() };
                    let mut oldest = Vec::new();
                    let mut some = |hit| {
                        oldest.push(hit);
                        if oldest.len() < most {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        }
                    };
                    sources.search_oldest(&request, scope, &call, make, &mut some).unwrap();
                    assert_eq!(oldest, expected[..most.min(expected.len())], "{text} {most}");
                }
            }
        }
    }

    #[test]
    fn hits_whose_texts_are_not_wanted_are_the_same_hits() {
        let export =
            TestExport::of(&["red fox", "a title", "Red", "[\"re\\u0064\", \"x\"]", "blue"]);
        let nul = "INSERT INTO messages VALUES ('z', 0, 'user', x'ff72656420ff', 1700000000)";
        export.connection.execute(nul, []).unwrap();
        export.reindex();
        for text in ["red", "ed", "title", "[", "d", "title 0", "x"] {
            let request = Request { text: text.to_owned(), ..Request::default() };
            let found = |reads: bool| {
                let make = |_, hit: Hit<'_>| Some(hit.into_owned());
                let render = Render { make: &make, reads: &|_, _| reads };
                let mut hits = Vec::new();
                let mut show = |hit| {
                    hits.push(hit);
                    ControlFlow::Continue(())
                };
                let (scope, call) = (Scope::default(), Call::default());
                let sources = export.engine.all_sources();
                let searched = sources.search(&request, &scope, &call, render, &mut show);
                assert!(matches!(searched.unwrap().plans[0], SearchPlan::ByIndex { .. }));
                hits
            };
            let (read, unread) = (found(true), found(false));
            assert_eq!(read.len(), unread.len(), "{text}");
            for (read, unread) in read.iter().zip(&unread) {
                let has = |hit: &Hit<'_>| hit.content.to_lowercase().contains(text);
                assert_eq!(has(read), has(unread), "{text}: {read:?}");
                let content = read.content.clone();
                assert_eq!(*read, Hit { content, ..unread.clone() }, "{text}");
            }
            let is_spared = unread.iter().zip(&read).any(|(unread, read)| unread != read);
            assert_eq!(is_spared, !["title", "title 0"].contains(&text), "{text}");
        }
    }
}
