//! The chosen filters: a text that lists them, and the fields for dates.

use maud::{Markup, html};

use super::page_query::{NO_PROJECT, PageQuery};
use crate::web::frame::chart::hour_name;
use crate::web::frame::labels::{label_of, role_name};

/// Returns the names of the chosen filters, without the dates.
pub(super) fn chosen_names(query: &PageQuery) -> impl Iterator<Item = String> {
    let services = query.chosen("service").iter().map(|name| label_of(name).1.to_owned());
    let projects = query.chosen("project").iter().map(|name| match &**name {
        NO_PROJECT => "no project".to_owned(),
        name => name.to_owned(),
    });
    let others =
        query.filters.names.given().filter(|(it, _)| !["service", "project"].contains(&it.name));
    let others = others.flat_map(|(_, names)| names).chain(&query.filters.within).cloned();
    let roles = query.filters.roles.iter().map(|role| role_name(role).to_lowercase());
    let flags = [(query.starred, "starred"), (query.hidden, "hidden")];
    let flags = flags.into_iter().filter(|it| it.0).map(|it| it.1.to_owned());
    services.chain(projects).chain(others).chain(roles).chain(flags)
}

/// Returns the chosen dates and the chosen hour in words.
fn dates(query: &PageQuery) -> Option<String> {
    let range = match query.dates() {
        ["", ""] => None,
        [from, ""] => Some(format!("from {from}")),
        ["", to] => Some(format!("to {to}")),
        [from, to] => Some(format!("{from} – {to}")),
    };
    let parts: Vec<String> = range.into_iter().chain(query.hour.map(hour_name)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns a text that lists the chosen filters.
pub(crate) fn chosen(query: &PageQuery) -> String {
    chosen_names(query).chain(dates(query)).collect::<Vec<_>>().join(", ")
}

/// Returns the address of the same search since a date; of all dates if it is empty.
fn since(query: &PageQuery, date: &str) -> String {
    let mut other = PageQuery { page: 0, ..query.clone() };
    other.filters.since = if date.is_empty() { None } else { Some(date.to_owned()) };
    other.filters.until = None;
    other.address()
}

/// Returns the empty timeline and the date fields, in a fold that is open on a wide screen.
pub(crate) fn date_fields(query: &PageQuery, is_open: bool) -> Markup {
    let [first, last] = query.dates();
    html! {
        details.when #when open[is_open] {
            summary.btn #range {
                @match dates(query) {
                    Some(dates) => { span.sr { "Dates: " } (dates) },
                    None => "Dates",
                }
            }
            div #hist {}
            div.row {
                label { "From " input.field #from name="from" value=(first) form="find"
                    placeholder="the first" autocomplete="off"; }
                label { "to " input.field #to name="to" value=(last) form="find"
                    placeholder="today" autocomplete="off"; }
                span.row {
                    a href=(since(query, "today")) data-from="today" { "Today" }
                    " " a href=(since(query, "7d")) data-from="7d" { "7 days" }
                    " " a href=(since(query, "30d")) data-from="30d" { "30 days" }
                    " " a href=(since(query, "52w")) data-from="52w" { "A year" }
                    " " a href=(since(query, "")) data-from="" { "All dates" }
                }
                button.btn.nojs form="find" { "Set" }
                @if let Some(hour) = query.hour {
                    span { (hour_name(hour)) }
                    input type="hidden" name="hour" value=(hour) form="find";
                }
            }
        }
    }
}
