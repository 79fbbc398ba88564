//! Stars, and conversations that results leave out.

use std::sync::Arc;

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::{
    ask::{Ask, fields},
    card::{Card, counted},
    site::{Problem, Site, changed, refused},
    talk,
};
use crate::{
    engine::{Error, Flag, Flags, count_of},
    model::Stop,
};

/// Sets a flag of a conversation as the address says, and leads back to it.
pub(super) async fn set(site: &Arc<Site>, id: String, query: String) -> Response {
    let work = move |site: &Site| {
        let wanted = fields(&query).find_map(|(name, value)| {
            let flag = match &*name {
                STAR => Flag::Starred,
                HIDE => Flag::Hidden,
                _ => return None,
            };
            Some((flag, value == "1"))
        });
        let what = || Problem::Wrong("The address does not say what is to be changed.".to_owned());
        let (flag, is_set) = wanted.ok_or_else(what)?;
        let (session, card) = talk::find(site, &id, &Stop::never())?;
        // A word that means another conversation by now changes nothing.
        if card.id != id {
            return Err(Error::NoConversation { word: id.clone() }.into());
        }
        let conversation = (session.about.source, &*card.id);
        Flags::set(site.engine.config(), flag, conversation, is_set)?;
        Ok(format!("{}{}", card.address(), Ask::parse(&query).marks()))
    };
    match changed(site, work).await {
        Ok(address) => Redirect::to(&address).into_response(),
        Err(problem) => refused(&problem),
    }
}

/// The fields of the address that sets a flag.
const STAR: &str = "star";
const HIDE: &str = "hide";

/// Returns the buttons that set the flags of a conversation.
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

/// Returns the mark of a conversation with a star.
pub(super) fn star(flags: &Flags, card: &Card) -> Markup {
    html! {
        @if flags.has(Flag::Starred, card.kind, &card.id) {
            " " span.star title="Starred" { "★" span.sr { "Starred" } }
        }
    }
}

/// Says that results leave conversations out, if they do.
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
