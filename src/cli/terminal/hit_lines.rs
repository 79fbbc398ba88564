//! The messages of an answer, in the form that a terminal shows.

use std::ops::Range;

use super::layout::{LineLayout, Piece, beginning, excerpt};
use super::output::{on_one_line, role};
use verbatim_answer::clock::Clock;
use verbatim_answer::conversation::{DescribedConversation, MessageKey, UNTITLED};
use verbatim_answer::json_lines::Context;
use verbatim_answer::marks::Marks;
use verbatim_base::model::{Hit, Instant};
use verbatim_engine::{ConversationKey as Key, Engine, SourceKind};
use verbatim_text::snippet;

#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) layout: LineLayout,
    pub(crate) clock: Clock,
    pub(crate) context: Context,
}

#[derive(Clone, Copy)]
pub(crate) struct HitMarks<'a> {
    pub(crate) marks: &'a Marks,
    pub(crate) most: usize,
}

impl HitMarks<'_> {
    pub(super) fn spans(self, text: &str) -> Vec<Range<usize>> {
        self.marks.spans(text, self.most)
    }
}

/// A matching message, or a conversation with a matching title.
pub(crate) struct HitLine {
    pub(crate) key: Key,
    pub(crate) message: MessageKey,
    pub(crate) title: Vec<Piece>,
    pub(crate) role: String,
    /// The text around the match; `None` if only the title matches.
    pub(crate) text: Option<Vec<Piece>>,
}

impl HitLine {
    /// Makes the form of a hit that is counted, and not displayed.
    pub(crate) fn counted(kind: SourceKind, hit: &Hit<'_>, is_title_only: bool) -> HitLine {
        HitLine {
            key: (kind, hit.conversation_id.clone().into_owned()),
            message: MessageKey::of(hit),
            title: Vec::new(),
            role: String::new(),
            text: (!is_title_only).then(Vec::new),
        }
    }

    pub(crate) fn new(
        kind: SourceKind,
        hit: &Hit<'_>,
        layout: LineLayout,
        marks: HitMarks<'_>,
    ) -> HitLine {
        let title = match snippet::trim(&hit.title) {
            "" => vec![Piece::plain(UNTITLED)],
            title => {
                // The length in bytes is enough if nothing is cut: no text has more columns than bytes.
                let columns = if layout.is_cut { layout.columns } else { title.len() + 2 };
                beginning(title, &marks.spans(title), columns)
            }
        };
        let spans = marks.spans(&hit.content);
        let is_title_only =
            spans.is_empty() && marks.marks.has_only_title(&hit.content, &hit.title);
        HitLine {
            key: (kind, hit.conversation_id.clone().into_owned()),
            message: MessageKey::of(hit),
            title,
            role: role(hit),
            text: (!is_title_only)
                .then(|| excerpt(&hit.content, &spans, layout.columns_of_message())),
        }
    }
}

/// Returns the service with the project and the branch, for a terminal.
pub(crate) fn place(conversation: &DescribedConversation) -> String {
    on_one_line(&conversation.service_and_project()).into_owned()
}

/// Returns the service, the time and the id for the heading of a conversation.
pub(crate) fn facts(
    conversation: &DescribedConversation,
    page: &Page<'_>,
    time: Option<Instant>,
) -> [String; 3] {
    // The match may be a message without a time.
    let time = time.or_else(|| conversation.last());
    [place(conversation), page.clock.words(time), on_one_line(&conversation.short_id).into_owned()]
}
