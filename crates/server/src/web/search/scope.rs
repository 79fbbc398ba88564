//! The scope of the filters in an address.

use std::sync::Arc;

use super::page_query::{PageQuery, Way};
use crate::web::frame::site::{ChosenConversations, Problem, Site};
use verbatim_answer::{
    filters::Filters,
    typed::{TypedQuery, as_it_is},
};
use verbatim_base::{call::Call, model::Request};
use verbatim_engine::filters::ALL;
use verbatim_engine::{
    Choice, ChosenIds, ConversationIds, Flags, Mode, Note, ReadingKind, Scope, in_both,
};

/// Reads the filters and the phrases in the text of a request. An expression has none.
pub(crate) fn read(site: &Site, query: &PageQuery, call: &Call) -> Result<PageQuery, Problem> {
    let is_expression = query.reads().is_some() && query.reading == Some(ReadingKind::Expression);
    if query.is_as_typed || is_expression {
        return Ok(query.clone());
    }
    // Another reading of the text reads its phrases itself.
    let has_phrases = query.way == Way::Exact && query.reading.is_none();
    let mode = if has_phrases { None } else { Some(Mode::Both) };
    let typed = TypedQuery::read(&query.q, mode, &site.engine, site.clock(), call, as_it_is)?;
    let is_told = typed.is_read(&query.q) || typed.problem.is_some();
    Ok(PageQuery { typed: is_told.then(|| Box::new(typed)), ..query.clone() })
}

/// Returns the scope of the filters in the text, with the ids of its conversations.
fn typed_scope(site: &Site, query: &PageQuery, call: &Call) -> Result<Scope, Problem> {
    let Some(typed) = &query.typed else { return Ok(Scope::default()) };
    let mut scope = typed.scope.clone();
    scope.conversations = scope.only();
    if scope.conversations.is_none() && !scope.sources.is_empty() {
        let mut filters = Filters::default();
        filters.names.is_whole = true;
        let sources = scope.sources.iter().map(|kind| kind.name().to_owned());
        filters.names.set("service", sources.collect());
        scope.conversations = site.chosen(&filters, call)?.conversations;
    }
    Ok(scope)
}

/// Returns the filters, with the dates as instants. The filters that are no facets choose the conversations.
pub(crate) fn choice(
    site: &Site,
    query: &PageQuery,
    flags: &Flags,
    call: &Call,
) -> Result<Choice, Problem> {
    let (scope, _) = scope(site, query, &Flags::default(), call)?;
    let typed = typed_scope(site, query, call)?;
    let chosen = query.conversations();
    let services = chosen.names.of("service").to_vec();
    let projects = chosen.names.of("project").to_vec();
    let models = chosen.names.of("model").to_vec();
    let mut others = chosen;
    for facet in ALL.iter().filter(|filter| filter.is_facet) {
        others.names.set(facet.name, Vec::new());
    }
    let mut ids = flagged(query, flags);
    ids.only = both(ids.only, both(typed.conversations, site.chosen(&others, call)?.conversations));
    let Scope { roles, since, until, .. } = scope;
    let request = Request { roles, since, until, ..request(query) };
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
    let typed = typed_scope(site, query, call)?;
    let mut roles = query.filters.roles.clone();
    roles.extend(typed.roles);
    let since = since.max(typed.since);
    let until = [until, typed.until].into_iter().flatten().min();
    let conversations = both(typed.conversations, both(only, conversations));
    Ok((Scope { roles, since, until, conversations, without, ..Scope::default() }, notes))
}

/// Returns the exact search for the text.
pub(super) fn request(query: &PageQuery) -> Request {
    let request = query.asked().request();
    let reading = query.reading.filter(|_| query.reads().is_some());
    reading.and_then(|reading| reading.request(&request)).unwrap_or(request)
}
