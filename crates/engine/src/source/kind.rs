//! The kinds of sources.

/// The kind of a source. There is at most one source of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// The user's export, which is opened read-only. `conversation_search` searches it.
    Export,
    /// Transcripts of coding agents, copied from their files into the transcript store.
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

    /// Returns whether the name is a plural.
    pub(crate) fn is_plural(self) -> bool {
        self == SourceKind::Threads
    }

    /// Returns whether conversations are transcripts, of which answers tell the origin: the file and the project.
    /// Positions are lines of the file, and a conversation begins with its first message.
    pub(crate) fn has_origins(self) -> bool {
        self == SourceKind::Archive
    }

    /// Returns whether exclusions, or copies in other sources, can leave conversations out of answers.
    pub(crate) fn may_be_left_out(self) -> bool {
        self != SourceKind::Threads
    }
}
