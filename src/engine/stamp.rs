//! Tells somebody who looks at answers whether to ask again.

use super::source::Sources;
use crate::{
    db::{self, Probe},
    index::IndexDir,
    text::hash::Fnv1a,
};

impl Sources {
    /// Returns a text that changes when a database or its index does. It takes some system calls.
    pub(crate) fn stamp(&self) -> String {
        let mut hash = Fnv1a::default();
        let folder = self.config().index_folder();
        for source in self.present() {
            hash.write_text(source.kind.name());
            if let Ok(state) = db::state(&source.path) {
                hash.write_text(&state.to_string());
            }
            let index = Probe::of(&source.path).ok().map(|it| IndexDir::of(&folder, it.real()));
            if let Some(commit) = index.and_then(|index| index.current()) {
                hash.write_text(&format!("{commit:?}"));
            }
        }
        format!("{:016x}", hash.finish())
    }
}
