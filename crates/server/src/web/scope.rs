//! The scope of the filters in an address.

use std::sync::Arc;

use super::{
    ask::{Ask, NO_PROJECT},
    site::{Problem, Site},
};
use verbatim_base::model::{Matching, Request, Stop};
use verbatim_engine::{Choice, ChosenIds, ConversationIds, Flags, ReadingKind, Scope, in_both};
use verbatim_text::date::Edge;

/// Returns the filters, with the dates as instants.
pub(super) fn choice(site: &Site, ask: &Ask, flags: &Flags) -> Result<Choice, Problem> {
    let date = |text: &str, edge| match text {
        "" => Ok(None),
        text => site.clock().parse(text, edge).map(Some).map_err(Problem::Wrong),
    };
    let project = |name: &String| if name == NO_PROJECT { String::new() } else { name.clone() };
    let (since, until) = (date(&ask.from, Edge::Start)?, date(&ask.to, Edge::End)?);
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        let what = "The first date is after the last one: no message can be in between.";
        return Err(Problem::Wrong(what.to_owned()));
    }
    Ok(Choice {
        services: ask.services.clone(),
        projects: ask.projects.iter().map(project).collect(),
        models: ask.models.clone(),
        request: Request { roles: ask.roles.clone(), since, until, ..request(ask) },
        ids: flagged(ask, flags),
    })
}

/// Returns the conversations that pass the filters for starred and hidden conversations.
pub(super) fn flagged(ask: &Ask, flags: &Flags) -> ChosenIds {
    let without = if ask.hidden { Arc::default() } else { Arc::clone(&flags.hidden) };
    let only = match (ask.starred, ask.hidden) {
        (false, false) => None,
        (true, false) => Some(Arc::clone(&flags.starred)),
        (false, true) => Some(Arc::clone(&flags.hidden)),
        (true, true) => Some(Arc::new(in_both(&flags.starred, &flags.hidden))),
    };
    ChosenIds { only, without }
}

pub(super) fn scope(site: &Site, ask: &Ask, flags: &Flags, stop: &Stop) -> Result<Scope, Problem> {
    let Choice { services, projects, models, request, ids } = choice(site, ask, flags)?;
    let Request { roles, since, until, .. } = request;
    let (conversations, without) = (ids.only, ids.without);
    let mut scope = Scope { roles, since, until, conversations, without, ..Scope::default() };
    if !services.is_empty() || !projects.is_empty() || !models.is_empty() {
        let is_of = |chosen: &[String], name: &str| {
            chosen.is_empty() || chosen.iter().any(|chosen| chosen == name)
        };
        let places = site.places(!models.is_empty(), stop)?;
        let wanted = places.iter().filter(|((kind, _), place)| {
            (is_of(&services, &place.service) || is_of(&services, kind.name()))
                && is_of(&projects, place.project.as_deref().unwrap_or(""))
                && (models.is_empty() || place.models.iter().any(|model| is_of(&models, model)))
        });
        let mut ids = ConversationIds::new();
        for ((kind, id), _) in wanted {
            ids.entry(*kind).or_default().insert(id.clone());
        }
        if let Some(flagged) = &scope.conversations {
            ids = in_both(flagged, &ids);
        }
        scope.conversations = Some(Arc::new(ids));
    }
    Ok(scope)
}

/// Returns the exact search for the text.
pub(super) fn request(ask: &Ask) -> Request {
    let request = Request {
        text: ask.text().to_owned(),
        matching: if ask.text().is_empty() { Matching::Like } else { Matching::Literal },
        case_sensitive: ask.is_case_sensitive,
        ..Request::default()
    };
    let reading = ask.reading.filter(|_| ask.reads().is_some());
    let request = match reading {
        // The reader says that the text is an expression.
        Some(ReadingKind::Expression) => Request { matching: Matching::Regex, ..request },
        reading => reading.and_then(|reading| reading.request(&request)).unwrap_or(request),
    };
    match request.matching {
        Matching::Literal if ask.is_word => Request { matching: Matching::Word, ..request },
        Matching::Regex if ask.is_word => {
            Request { text: format!(r"\b(?:{})\b", request.text), ..request }
        }
        _ => request,
    }
}
