//! Counts of the changes of a merge.

/// The numbers of conversations and messages that were added, updated or left unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New conversations.
    pub new_conversations: u64,
    /// Stored conversations that changed.
    pub updated_conversations: u64,
    /// Stored conversations that did not change.
    pub unchanged_conversations: u64,
    /// New messages.
    pub new_messages: u64,
    /// Stored messages whose text or data changed.
    pub updated_messages: u64,
    /// Stored messages that did not change.
    pub unchanged_messages: u64,
}

impl Changes {
    /// Returns the number of conversations of the import that are stored now.
    pub fn stored_conversations(&self) -> u64 {
        self.new_conversations + self.updated_conversations + self.unchanged_conversations
    }

    /// Returns the number of messages of the import that are stored now.
    pub fn stored_messages(&self) -> u64 {
        self.new_messages + self.updated_messages + self.unchanged_messages
    }
}

impl Changes {
    /// Returns whether anything was written.
    pub fn any(&self) -> bool {
        self.new_conversations + self.updated_conversations + self.new_messages > 0
    }

    pub(super) fn add(&mut self, other: Changes) {
        self.new_conversations += other.new_conversations;
        self.updated_conversations += other.updated_conversations;
        self.unchanged_conversations += other.unchanged_conversations;
        self.new_messages += other.new_messages;
        self.updated_messages += other.updated_messages;
        self.unchanged_messages += other.unchanged_messages;
    }

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
