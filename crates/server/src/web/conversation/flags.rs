//! The flags of conversations: starred and hidden. Results leave out hidden conversations.

use maud::{Markup, html};

use crate::web::search::page_query::PageQuery;
use verbatim_answer::conversation::DescribedConversation;
use verbatim_engine::{Flag, Flags, count_of};
use verbatim_text::amount::counted;

/// The parameters of the address that sets or removes a flag.
pub(super) const STAR: &str = "star";
pub(super) const HIDE: &str = "hide";

pub(super) fn star_button(flags: &Flags, card: &DescribedConversation, way_back: &str) -> Markup {
    let is_set = flags.has(Flag::Starred, card.kind, &card.id);
    button(STAR, is_set, if is_set { "★ Starred" } else { "☆ Star" }, card, way_back)
}

pub(super) fn hide_button(flags: &Flags, card: &DescribedConversation, way_back: &str) -> Markup {
    let is_set = flags.has(Flag::Hidden, card.kind, &card.id);
    let label = if is_set { "Show in results again" } else { "Hide from results" };
    button(HIDE, is_set, label, card, way_back)
}

/// Returns a button; `way_back` is the query of the address of the shown message.
fn button(
    name: &str,
    is_set: bool,
    label: &str,
    card: &DescribedConversation,
    way_back: &str,
) -> Markup {
    let address = format!("{}/flag?{name}={}{way_back}", card.address(), u8::from(!is_set));
    html! { form method="post" action=(address) { button.btn { (label) } } }
}

pub(crate) fn star(flags: &Flags, card: &DescribedConversation) -> Markup {
    html! {
        @if flags.has(Flag::Starred, card.kind, &card.id) {
            " " span.star title="Starred" { "★" span.sr { "Starred" } }
        }
    }
}

pub(crate) fn hidden_note(flags: &Flags, query: &PageQuery) -> Markup {
    let hidden = count_of(&flags.hidden);
    html! {
        @if hidden > 0 && !query.hidden {
            p.note.left-out {
                (counted(hidden, "conversation")) " that you hid " (if hidden == 1 { "is" } else { "are" }) " left out. "
                a href=(PageQuery { hidden: true, page: 0, ..query.clone() }.address()) { "Only the hidden ones" }
            }
        }
    }
}
