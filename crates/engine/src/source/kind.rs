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

/// What is true of every source of a kind.
struct KindFacts {
    name: &'static str,
    is_plural: bool,
    has_origins: bool,
    may_be_left_out: bool,
}

/// The facts of each kind, in the order of [`SourceKind::ALL`].
const FACTS: [KindFacts; SourceKind::ALL.len()] = [
    KindFacts { name: "export", is_plural: false, has_origins: false, may_be_left_out: true },
    KindFacts { name: "archive", is_plural: false, has_origins: true, may_be_left_out: true },
    KindFacts { name: "threads", is_plural: true, has_origins: false, may_be_left_out: false },
];

impl SourceKind {
    /// Every kind, in the order in which sources are searched.
    pub const ALL: [SourceKind; 3] = [SourceKind::Export, SourceKind::Archive, SourceKind::Threads];

    fn facts(self) -> &'static KindFacts {
        &FACTS[self as usize]
    }

    /// Returns the name that users see and type.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns whether the name is a plural.
    pub(crate) fn is_plural(self) -> bool {
        self.facts().is_plural
    }

    /// Returns whether conversations are transcripts, of which answers tell the origin: the file and the project.
    /// Positions are lines of the file, and a conversation begins with its first message.
    pub(crate) fn has_origins(self) -> bool {
        self.facts().has_origins
    }

    /// Returns whether exclusions, or copies in other sources, can leave conversations out of answers.
    pub(crate) fn may_be_left_out(self) -> bool {
        self.facts().may_be_left_out
    }
}
