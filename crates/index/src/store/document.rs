//! The messages and conversations that a build adds to the index.

use verbatim_base::model::Instant;

/// A message to add to the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// The key of the message's row in the database.
    pub key: i64,
    /// The message's id, from `messages.id`, as text.
    pub id: &'a str,
    /// The number of the message's conversation, in the order of [`crate::BuildPlan::conversations`].
    pub conversation: u32,
    /// `messages.role`, as text; empty for NULL.
    pub role: &'a str,
    /// Whether the role is stored as a text, or is NULL. A role of another type never equals a text.
    pub is_text_role: bool,
    /// The time of the message; `None` if the stored value is not a valid time.
    pub time: Option<Instant>,
    /// The message's position, from `messages.position`.
    pub position: Option<i64>,
    /// The text that is searched and shown; `None` for NULL.
    pub shown: Option<&'a [u8]>,
    /// The stored text if it differs from the shown text. Both texts are searched.
    pub stored: Option<&'a [u8]>,
}

/// A conversation to add to the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationTitle {
    /// The id, from `conversations.id`, as text.
    pub id: String,
    /// `conversations.title`, as bytes; `None` for NULL.
    pub title: Option<Vec<u8>>,
}

impl ConversationTitle {
    pub(crate) fn title_bytes(&self) -> &[u8] {
        self.title.as_deref().unwrap_or_default()
    }
}
