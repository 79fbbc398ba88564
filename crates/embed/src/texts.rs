//! The texts to encode.

use std::{borrow::Cow, fmt};

/// Numbered texts.
pub struct Texts<'t> {
    /// The number of texts. Their numbers begin with 0.
    pub count: u32,
    /// Function that returns the text with a number; empty if the text gets no vector.
    pub text: &'t (dyn Fn(u32) -> Cow<'t, str> + Sync),
}

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").field("count", &self.count).finish_non_exhaustive()
    }
}
