//! Sets and removes the star of a conversation, and hides and unhides a conversation.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};

use super::flags::{HIDE, STAR};
use crate::web::conversation;
use crate::web::frame::site::{Problem, SiteState, changed, refused};
use crate::web::search::page_query::{PageQuery, fields};
use verbatim_base::call::Call;
use verbatim_engine::{Error, Flag, Flags};
use verbatim_text::address::id_in_path;

pub(crate) async fn set(
    State(site): State<Arc<SiteState>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    let done = changed(&site, move |site| {
        let wanted = fields(&query).find_map(|(name, value)| {
            let flag = match &*name {
                STAR => Flag::Starred,
                HIDE => Flag::Hidden,
                _ => return None,
            };
            Some((flag, value == "1"))
        });
        let Some((flag, is_set)) = wanted else {
            let why = "The address does not say what is to be changed.";
            return Err(Problem::Wrong(why.to_owned()));
        };
        let (session, card) = conversation::find(site, &id, &Call::default())?;
        // If the id in the address now finds another conversation, nothing changes.
        if card.id != id_in_path(&id) {
            return Err(Error::NoConversation { word: id.clone() }.into());
        }
        Flags::set(site.engine.config(), flag, session.about.source, &card.id, is_set)?;
        let at =
            fields(&query).find_map(|(name, value)| (name == "at").then(|| value.parse().ok())?);
        let query = PageQuery::parse(&query);
        Ok(at
            .map_or(card.address() + &query.marks(), |at| conversation::address(&card, &query, at)))
    });
    match done.await {
        Ok(address) => Redirect::to(&address).into_response(),
        Err(problem) => refused(&problem),
    }
}
