//! The chosen filters: a text that lists them, and the fields for dates.

use maud::{Markup, html};

use super::{
    ask::{Ask, NO_PROJECT},
    card::{label_of, role_name},
    chart::hour_name,
};

/// Returns a text that lists the chosen filters.
pub(super) fn chosen(ask: &Ask) -> String {
    let services = ask.services.iter().map(|name| label_of(name).1.to_owned());
    let projects = ask.projects.iter().map(|name| match &**name {
        NO_PROJECT => "no project".to_owned(),
        name => name.to_owned(),
    });
    let models = ask.models.iter().cloned();
    let roles = ask.roles.iter().map(|role| role_name(role).to_lowercase());
    let from = (!ask.from.is_empty()).then(|| format!("from {}", ask.from));
    let to = (!ask.to.is_empty()).then(|| format!("to {}", ask.to));
    let hour = ask.hour.map(hour_name);
    let flags = [(ask.starred, "starred"), (ask.hidden, "hidden")];
    let flags = flags.into_iter().filter(|it| it.0).map(|it| it.1.to_owned());
    services
        .chain(projects)
        .chain(models)
        .chain(roles)
        .chain(from)
        .chain(to)
        .chain(hour)
        .chain(flags)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the empty timeline and the date fields.
pub(super) fn when(ask: &Ask) -> Markup {
    let to = |from: &str| Ask { from: from.to_owned(), to: String::new(), page: 0, ..ask.clone() };
    html! {
        section.when #when aria-label="When" {
            div #hist {}
            div.row {
                label { "From " input.field #from name="from" value=(ask.from) form="find"
                    placeholder="the first" autocomplete="off"; }
                label { "to " input.field #to name="to" value=(ask.to) form="find"
                    placeholder="today" autocomplete="off"; }
                span.row {
                    a href=(to("30d").address()) data-from="30d" { "30 days" }
                    " " a href=(to("52w").address()) data-from="52w" { "A year" }
                    " " a href=(to("").address()) data-from="" { "All dates" }
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
