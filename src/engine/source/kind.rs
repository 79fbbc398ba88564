//! The kinds of sources.

/// The kinds of sources; there is at most one source of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// The user's export, read-only: the source of `conversation_search`.
    Export,
    /// Transcripts of coding agents, copied from their files into a database of ours.
    Archive,
    /// Threads that `manage_conversation` recorded.
    Threads,
}

impl SourceKind {
    /// Every kind, in the order in which sources are searched.
    pub const ALL: [SourceKind; 3] = [SourceKind::Export, SourceKind::Archive, SourceKind::Threads];

    /// Returns the name that users see and type.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Export => "export",
            SourceKind::Archive => "archive",
            SourceKind::Threads => "threads",
        }
    }
}
