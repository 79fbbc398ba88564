//! Tells a client that shows answers whether to ask again.

use std::time::Duration;

use super::source::Sources;
use crate::{
    db::{self, Probe},
    index::IndexDir,
    model::Stop,
    text::hash::Fnv1a,
};

/// How long a cluster may take to report its state.
const PATIENCE: Duration = Duration::from_secs(5);

impl Sources {
    /// Returns a text that changes when a database or its index does, and when what is left out does. It
    /// takes some system calls, or a request to a cluster.
    pub(crate) fn stamp(&self) -> String {
        let mut hash = Fnv1a::default();
        let folder = self.config().index_folder();
        hash.write_text(&format!("{:?}", self.exclusions().now().1));
        for source in self.present() {
            hash.write_text(source.kind.name());
            if let Some(cluster) = source.cluster() {
                let state = cluster.view(&Stop::after(PATIENCE));
                hash.write_text(state.as_ref().map_or("", |view| view.index()));
                continue;
            }
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
