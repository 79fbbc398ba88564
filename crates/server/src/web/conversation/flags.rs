//! The flags of conversations: starred and hidden. Results leave out hidden conversations.

use maud::{Markup, html};

use crate::web::search::page_query::PageQuery;
use verbatim_answer::conversation::DescribedConversation;
use verbatim_engine::{Flag, Flags, count_of};
use verbatim_text::amount::counted;

/// The parameters of the address that sets or removes a flag.
pub(super) const STAR: &str = "star";
pub(super) const HIDE: &str = "hide";

/// Returns a button; `way_back` is the query of the address of the shown message.
pub(super) fn button(
    flags: &Flags,
    flag: Flag,
    card: &DescribedConversation,
    way_back: &str,
) -> Markup {
    let is_set = flags.has(flag, card.kind, &card.id);
    let (name, label) = match (flag, is_set) {
        (Flag::Starred, true) => (STAR, "★ Starred"),
        (Flag::Starred, false) => (STAR, "☆ Star"),
        (Flag::Hidden, true) => (HIDE, "Show in results again"),
        (Flag::Hidden, false) => (HIDE, "Hide from results"),
    };
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
