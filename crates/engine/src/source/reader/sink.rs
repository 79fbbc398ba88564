//! Sinks, which receive hits and show them after a check.
//! Hits of an index are read from mapped files. If a file is truncated or changed during the search, wrong
//! bytes are read, and this can only be detected afterwards. So a hit is held back, and shown only after
//! the files were checked again.

use std::{collections::HashSet, ops::ControlFlow, sync::Arc};

use crate::source::scope::ConversationIds;
use verbatim_base::model::{Hit, Stop};

/// A receiver of the hits of a search.
pub trait Sink {
    /// Takes the next hit. It must not be shown before [`Sink::confirm`].
    fn push(&mut self, hit: Hit<'_>);

    /// Confirms that all hits taken so far are right and may be shown. Breaks off the search if no more
    /// hits are wanted; then the sink must not be called again. Stops showing hits when `stop` is requested.
    fn confirm(&mut self, stop: &Stop) -> ControlFlow<()>;

    /// Discards the hits that are not confirmed.
    fn discard(&mut self);

    /// Returns whether the texts of a conversation's hits are needed. If not, a hit whose text matches may
    /// come with the searched text instead of its own text.
    fn reads(&self, _conversation: &str) -> bool {
        true
    }

    /// Returns the conversations whose hits the sink drops, and how many other hits it still takes. A
    /// search may skip all hits that the sink would not take.
    fn left_out(&self) -> Option<(HashSet<String>, usize)> {
        None
    }

    /// Returns the conversations whose hits the sink wants; `None` for all. A search may skip the others.
    fn only(&self) -> Option<Arc<ConversationIds>> {
        None
    }
}

/// A sink of two closures. `render` makes an owned value from each hit, whose texts are borrowed. `show`
/// gets the value after the hit is confirmed.
#[derive(Debug)]
pub struct Rendered<T, R, S> {
    render: R,
    show: S,
    held: Vec<T>,
}

impl<T, R, S> Rendered<T, R, S>
where
    R: FnMut(Hit<'_>) -> Option<T>,
    S: FnMut(T) -> ControlFlow<()>,
{
    /// Returns a sink. It drops hits for which `render` returns `None`.
    pub fn new(render: R, show: S) -> Rendered<T, R, S> {
        Rendered { render, show, held: Vec::new() }
    }
}

impl<T, R, S> Sink for Rendered<T, R, S>
where
    R: FnMut(Hit<'_>) -> Option<T>,
    S: FnMut(T) -> ControlFlow<()>,
{
    fn push(&mut self, hit: Hit<'_>) {
        self.held.extend((self.render)(hit));
    }

    fn confirm(&mut self, stop: &Stop) -> ControlFlow<()> {
        let show = &mut self.show;
        self.held.drain(..).try_for_each(|hit| match stop.requested() {
            true => ControlFlow::Break(()),
            false => show(hit),
        })
    }

    fn discard(&mut self) {
        self.held.clear();
    }
}

/// A sink that does not want the texts of some conversations.
pub(crate) struct Sparing<'a> {
    /// Function that returns whether the texts of a conversation are needed.
    pub(crate) reads: &'a dyn Fn(&str) -> bool,
    /// The conversations whose hits are wanted; `None` for all.
    pub(crate) only: Option<Arc<ConversationIds>>,
    pub(crate) sink: &'a mut dyn Sink,
}

impl Sink for Sparing<'_> {
    fn push(&mut self, hit: Hit<'_>) {
        self.sink.push(hit);
    }

    fn confirm(&mut self, stop: &Stop) -> ControlFlow<()> {
        self.sink.confirm(stop)
    }

    fn discard(&mut self) {
        self.sink.discard();
    }

    fn reads(&self, conversation: &str) -> bool {
        (self.reads)(conversation)
    }

    fn left_out(&self) -> Option<(HashSet<String>, usize)> {
        self.sink.left_out()
    }

    fn only(&self) -> Option<Arc<ConversationIds>> {
        self.only.clone()
    }
}
