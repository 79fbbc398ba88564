//! Sinks, which receive hits and show them after a check.
//! Hits of an index are read from mapped files. If a file is truncated or changed during the search, wrong
//! bytes are read, and this can only be detected afterwards. So a hit is held back, and shown only after
//! the files were checked again.

use std::{collections::HashSet, ops::ControlFlow, sync::Arc};

use crate::source::scope::ConversationIds;
use verbatim_base::{call::Call, model::Hit};

/// A receiver of the hits of a search.
pub trait Sink {
    /// Takes the next hit. It must not be shown before [`Sink::confirm`].
    fn push(&mut self, hit: Hit<'_>);

    /// Confirms that all hits taken so far are right and may be shown. Breaks off the search if no more
    /// hits are wanted; then the sink must not be called again. Stops showing hits when `stop` is requested.
    fn confirm(&mut self, call: &Call) -> ControlFlow<()>;

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

/// Receives the values that a [`Rendered`] made of hits, once the hits are confirmed.
pub trait Show<T> {
    /// Takes the values that it wants. Breaks off the search if it wants no more, or if the stop is requested.
    fn show(&mut self, values: &mut Vec<T>, call: &Call) -> ControlFlow<()>;
}

impl<T, F: FnMut(T) -> ControlFlow<()>> Show<T> for F {
    fn show(&mut self, values: &mut Vec<T>, call: &Call) -> ControlFlow<()> {
        values.drain(..).try_for_each(|value| {
            if call.stop.requested() { ControlFlow::Break(()) } else { self(value) }
        })
    }
}

/// A sink of two functions. `render` makes an owned value from each hit, whose texts are borrowed. `show`
/// gets the value after the hit is confirmed.
pub struct Rendered<'a, T, R, S> {
    render: R,
    show: S,
    held: Vec<T>,
    /// Returns whether the texts of a conversation are needed, as [`Sink::reads`] does.
    pub(crate) reads: &'a dyn Fn(&str) -> bool,
    /// The conversations whose hits are wanted, as in [`Sink::only`].
    pub(crate) only: Option<Arc<ConversationIds>>,
}

impl<T, R, S> Rendered<'_, T, R, S>
where
    R: FnMut(Hit<'_>) -> Option<T>,
    S: Show<T>,
{
    /// Returns a sink. It drops hits for which `render` returns `None`.
    pub fn new(render: R, show: S) -> Self {
        Rendered { render, show, held: Vec::new(), reads: &|_| true, only: None }
    }
}

impl<T, R, S> Sink for Rendered<'_, T, R, S>
where
    R: FnMut(Hit<'_>) -> Option<T>,
    S: Show<T>,
{
    fn push(&mut self, hit: Hit<'_>) {
        self.held.extend((self.render)(hit));
    }

    fn confirm(&mut self, call: &Call) -> ControlFlow<()> {
        self.show.show(&mut self.held, call)
    }

    fn discard(&mut self) {
        self.held.clear();
    }

    fn reads(&self, conversation: &str) -> bool {
        (self.reads)(conversation)
    }

    fn only(&self) -> Option<Arc<ConversationIds>> {
        self.only.clone()
    }
}
