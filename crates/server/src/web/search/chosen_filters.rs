//! The chosen filters: a text that lists them, and the fields for dates.

use maud::{Markup, html};

use super::page_query::{Ask, NO_PROJECT};
use crate::web::frame::{
    chart::hour_name,
    labels::{label_of, role_name},
};

/// Returns the names of the chosen filters, without the dates.
pub(super) fn chosen_names(ask: &Ask) -> impl Iterator<Item = String> {
    let services = ask.chosen("service").iter().map(|name| label_of(name).1.to_owned());
    let projects = ask.chosen("project").iter().map(|name| match &**name {
        NO_PROJECT => "no project".to_owned(),
        name => name.to_owned(),
    });
    let others =
        ask.filters.names.given().filter(|(it, _)| !["service", "project"].contains(&it.name));
    let others = others.flat_map(|(_, names)| names).chain(&ask.filters.within).cloned();
    let roles = ask.filters.roles.iter().map(|role| role_name(role).to_lowercase());
    let flags = [(ask.starred, "starred"), (ask.hidden, "hidden")];
    let flags = flags.into_iter().filter(|it| it.0).map(|it| it.1.to_owned());
    services.chain(projects).chain(others).chain(roles).chain(flags)
}

/// Returns the chosen dates and the chosen hour in words.
fn dates(ask: &Ask) -> Option<String> {
    let range = match ask.dates() {
        ["", ""] => None,
        [from, ""] => Some(format!("from {from}")),
        ["", to] => Some(format!("to {to}")),
        [from, to] => Some(format!("{from} – {to}")),
    };
    let parts: Vec<String> = range.into_iter().chain(ask.hour.map(hour_name)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns a text that lists the chosen filters.
pub(crate) fn chosen(ask: &Ask) -> String {
    chosen_names(ask).chain(dates(ask)).collect::<Vec<_>>().join(", ")
}

/// Returns the address of the same search since a date; of all dates if it is empty.
fn since(ask: &Ask, date: &str) -> String {
    let mut other = Ask { page: 0, ..ask.clone() };
    other.filters.since = if date.is_empty() { None } else { Some(date.to_owned()) };
    other.filters.until = None;
    other.address()
}

/// Returns the empty timeline and the date fields, in a fold that is open on a wide screen.
pub(crate) fn when(ask: &Ask, is_open: bool) -> Markup {
    let [first, last] = ask.dates();
    html! {
        details.when #when open[is_open] {
            summary.btn #range {
                @match dates(ask) {
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
                    a href=(since(ask, "today")) data-from="today" { "Today" }
                    " " a href=(since(ask, "7d")) data-from="7d" { "7 days" }
                    " " a href=(since(ask, "30d")) data-from="30d" { "30 days" }
                    " " a href=(since(ask, "52w")) data-from="52w" { "A year" }
                    " " a href=(since(ask, "")) data-from="" { "All dates" }
                }
                button.btn.nojs form="find" { "Set" }
                @if let Some(hour) = ask.hour {
                    span { (hour_name(hour)) }
                    input type="hidden" name="hour" value=(hour) form="find";
                }
            }
        }
    }
}
