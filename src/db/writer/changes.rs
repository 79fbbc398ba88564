//! Counts of what a merge changes.

/// What has been written, and what was there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Conversations that were not there.
    pub new_conversations: u64,
    /// Conversations that were there, and of which something is new.
    pub updated_conversations: u64,
    /// Conversations as they were.
    pub unchanged_conversations: u64,
    /// Messages that were not there.
    pub new_messages: u64,
    /// Messages whose text or data changed.
    pub updated_messages: u64,
    /// Messages as they were.
    pub unchanged_messages: u64,
}

impl Changes {
    /// Returns whether anything was written.
    pub fn any(&self) -> bool {
        self.new_conversations + self.updated_conversations > 0
    }

    /// Adds up changes.
    pub(super) fn add(&mut self, other: Changes) {
        self.new_conversations += other.new_conversations;
        self.updated_conversations += other.updated_conversations;
        self.unchanged_conversations += other.unchanged_conversations;
        self.new_messages += other.new_messages;
        self.updated_messages += other.updated_messages;
        self.unchanged_messages += other.unchanged_messages;
    }

    /// Returns the changes after earlier ones.
    pub(super) fn since(&self, earlier: Changes) -> Changes {
        Changes {
            new_conversations: self.new_conversations - earlier.new_conversations,
            updated_conversations: self.updated_conversations - earlier.updated_conversations,
            unchanged_conversations: self.unchanged_conversations - earlier.unchanged_conversations,
            new_messages: self.new_messages - earlier.new_messages,
            updated_messages: self.updated_messages - earlier.updated_messages,
            unchanged_messages: self.unchanged_messages - earlier.unchanged_messages,
        }
    }
}
