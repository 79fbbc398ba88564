//! The scope of the filters in an address.

use std::sync::Arc;

use super::page_query::PageQuery;
use crate::web::frame::site::{ChosenConversations, Problem, Site};
use verbatim_base::{call::Call, model::Request};
use verbatim_engine::filters::ALL;
use verbatim_engine::{Choice, ChosenIds, ConversationIds, Flags, Note, Scope, in_both};

/// Returns the filters, with the dates as instants. The filters that are no facets choose the conversations.
pub(crate) fn choice(
    site: &Site,
    query: &PageQuery,
    flags: &Flags,
    call: &Call,
) -> Result<Choice, Problem> {
    let (since, until) = query.filters.dates(site.clock())?;
    let chosen = query.conversations();
    let services = chosen.names.of("service").to_vec();
    let projects = chosen.names.of("project").to_vec();
    let models = chosen.names.of("model").to_vec();
    let mut others = chosen;
    for facet in ALL.iter().filter(|filter| filter.is_facet) {
        others.names.set(facet.name, Vec::new());
    }
    let mut ids = flagged(query, flags);
    ids.only = both(ids.only, site.chosen(&others, call)?.conversations);
    let request = Request { roles: query.filters.roles.clone(), since, until, ..request(query) };
    Ok(Choice { services, projects, models, request, ids })
}

/// Returns the conversations that both choices have; `None` for all.
fn both(
    one: Option<Arc<ConversationIds>>,
    other: Option<Arc<ConversationIds>>,
) -> Option<Arc<ConversationIds>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Arc::new(in_both(&one, &other))),
        (one, other) => one.or(other),
    }
}

/// Returns the conversations that pass the filters for starred and hidden conversations.
pub(super) fn flagged(query: &PageQuery, flags: &Flags) -> ChosenIds {
    let without = if query.hidden { Arc::default() } else { Arc::clone(&flags.hidden) };
    let only = match (query.starred, query.hidden) {
        (false, false) => None,
        (true, false) => Some(Arc::clone(&flags.starred)),
        (false, true) => Some(Arc::clone(&flags.hidden)),
        (true, true) => Some(Arc::new(in_both(&flags.starred, &flags.hidden))),
    };
    ChosenIds { only, without }
}

/// Returns the scope of an address, and notes about names that nothing has.
pub(crate) fn scope(
    site: &Site,
    query: &PageQuery,
    flags: &Flags,
    call: &Call,
) -> Result<(Scope, Vec<Note>), Problem> {
    let (since, until) = query.filters.dates(site.clock())?;
    let ChosenIds { only, without } = flagged(query, flags);
    let ChosenConversations { conversations, notes } = site.chosen(&query.conversations(), call)?;
    let roles = query.filters.roles.clone();
    let conversations = both(only, conversations);
    Ok((Scope { roles, since, until, conversations, without, ..Scope::default() }, notes))
}

/// Returns the exact search for the text.
pub(super) fn request(query: &PageQuery) -> Request {
    let request = query.asked().request();
    let reading = query.reading.filter(|_| query.reads().is_some());
    reading.and_then(|reading| reading.request(&request)).unwrap_or(request)
}
