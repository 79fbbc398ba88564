//! The flags of conversations: starred and hidden. Results leave out hidden conversations.

use maud::{Markup, html};

use super::{
    ask::Ask,
    card::{Card, counted},
};
use crate::engine::{Flag, Flags, count_of};

/// The parameters of the address that sets or removes a flag.
pub(super) const STAR: &str = "star";
pub(super) const HIDE: &str = "hide";

pub(super) fn buttons(flags: &Flags, card: &Card, ask: &Ask) -> Markup {
    let button = |flag, name, off: &str, on: &str| {
        let is_set = flags.has(flag, card.kind, &card.id);
        let query = match ask.marks().strip_prefix('?') {
            Some(marks) => format!("&{marks}"),
            None => String::new(),
        };
        let address = format!("{}/flag?{name}={}{query}", card.address(), u8::from(!is_set));
        html! {
            form method="post" action=(address) {
                button.btn { @if is_set { (on) } @else { (off) } }
            }
        }
    };
    html! {
        (button(Flag::Starred, STAR, "☆ Star", "★ Starred"))
        " " (button(Flag::Hidden, HIDE, "Hide from results", "Show in results again"))
    }
}

pub(super) fn star(flags: &Flags, card: &Card) -> Markup {
    html! {
        @if flags.has(Flag::Starred, card.kind, &card.id) {
            " " span.star title="Starred" { "★" span.sr { "Starred" } }
        }
    }
}

/// Returns a note that results leave out hidden conversations, if there are any.
pub(super) fn left_out(flags: &Flags, ask: &Ask) -> Markup {
    let hidden = count_of(&flags.hidden);
    html! {
        @if hidden > 0 && !ask.hidden {
            p.note.left-out {
                (counted(hidden, "conversation")) " that you hid " (if hidden == 1 { "is" } else { "are" }) " left out. "
                a href=(Ask { hidden: true, page: 0, ..ask.clone() }.address()) { "Only the hidden ones" }
            }
        }
    }
}
