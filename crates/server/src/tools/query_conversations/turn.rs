//! Turns in answers, and the number of tokens that they may take.

use serde::Serialize;

use crate::tools::{bound, tool::first_turn};
use verbatim_engine::{ConversationMatch, SAVED, Session, SourceKind};
use verbatim_text::{date, snippet};

/// The maximum number of tokens of an answer, not counting the text around its parts.
pub(super) const ANSWER_TOKENS: usize = 16_000;

/// The number of tokens of the JSON around a turn, or around the fields of a conversation.
pub(super) const TURN_FRAME: usize = 30;

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnText {
    pub(super) role: String,
    pub(super) content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) score: Option<f64>,
    /// The line of the turn, for the tool `read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
}

pub(super) fn without_summaries(items: &mut [ConversationMatch]) {
    for item in items {
        item.matches.retain(|one| {
            let is_first = one.hit.position == Some(1) && one.hit.role == SAVED;
            !(one.source == SourceKind::Threads && is_first)
        });
    }
}

impl TurnText {
    /// Returns a message of a session, cut to the budget; `None` if the budget is used up.
    pub(super) fn read(session: &Session, at: usize, budget: &mut Budget) -> Option<TurnText> {
        let message = session.message(at);
        Some(TurnText {
            content: budget.spend(&message.content)?,
            role: if message.role.is_empty() {
                "unknown".into()
            } else {
                message.role.into_owned()
            },
            turn_index: Some(at - first_turn(session)),
            created_at: message.time.and_then(date::to_iso),
            ..TurnText::default()
        })
    }
}

/// A turn in a compact text: the first letter of its role, its content and, for a turn that matched, its
/// line for the tool `read`.
#[derive(Serialize)]
pub(super) struct CompactTurn {
    r: String,
    c: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    l: Option<u32>,
}

impl CompactTurn {
    pub(super) fn new(turn: &TurnText, most: usize) -> CompactTurn {
        let content = snippet::cut(&turn.content, most).unwrap_or(&turn.content);
        CompactTurn { r: turn.role.chars().take(1).collect(), c: content.to_owned(), l: turn.line }
    }
}

pub(super) struct Budget {
    left: usize,
    per_turn: usize,
    /// Whether a turn was cut or left out.
    pub(super) is_cut: bool,
}

impl Budget {
    pub(super) fn new(left: usize, per_turn: usize) -> Budget {
        Budget { left, per_turn, is_cut: false }
    }

    /// Returns a text, cut to the remaining tokens; `None` if no tokens are left.
    pub(super) fn spend(&mut self, text: &str) -> Option<String> {
        let text = snippet::trim(text);
        if self.left == 0 {
            self.is_cut = true;
            return None;
        }
        let most = self.per_turn.min(self.left);
        let text = match bound::cut(text, most) {
            Some(start) => {
                self.is_cut = true;
                format!("{start}…")
            }
            None => text.to_owned(),
        };
        self.left = self.left.saturating_sub(bound::tokens(&text) + TURN_FRAME);
        Some(text)
    }
}
