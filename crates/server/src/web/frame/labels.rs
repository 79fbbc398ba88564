//! Names and times as HTML: of services, roles and conversations.

use maud::{Markup, html};

use verbatim_answer::{clock::Clock, conversation::DescribedConversation};
use verbatim_base::model::Instant;
use verbatim_engine::import::FORMATS;

/// Returns the service, the project, the time and the short id of a conversation as HTML.
pub(crate) fn meta(
    conversation: &DescribedConversation,
    clock: Clock,
    time: Option<Instant>,
) -> Markup {
    html! {
        (service(conversation.service()))
        @if let Some(project) = conversation.project() { " " span dir="auto" { (project) } }
        " " (moment(clock, time))
        " " span.id { (conversation.short_id) }
    }
}

/// Returns the name of a service, an agent or a source, with its colour.
pub(crate) fn service(name: &str) -> Markup {
    let (class, label) = label_of(name);
    html! { span class=(format!("src {class}")) { (label) } }
}

/// Returns the CSS class and the display name of a service, an agent or a source.
pub(crate) fn label_of(name: &str) -> (&str, &str) {
    if let Some(format) = FORMATS.iter().find(|format| format.service() == name) {
        return (name, format.label());
    }
    match name {
        "export" => ("", "Database"),
        "archive" => ("", "Transcripts"),
        "threads" => ("", "Saved threads"),
        other => ("", other),
    }
}

pub(crate) fn role_name(role: &str) -> &str {
    match role {
        "user" => "You",
        "assistant" => "Assistant",
        "tool" => "Tool",
        "system" => "System",
        "" => "Unknown",
        other => other,
    }
}

/// Returns a time in words, with its ISO form in the HTML.
pub(super) fn moment(clock: Clock, time: Option<Instant>) -> Markup {
    timed(clock, time, &clock.words(time))
}

/// Returns a time in words with its hour.
pub(crate) fn hour(clock: Clock, time: Option<Instant>) -> Markup {
    timed(clock, time, &clock.words_and_hour(time))
}

fn timed(clock: Clock, time: Option<Instant>, words: &str) -> Markup {
    let iso = time.and_then(|time| clock.iso(time));
    let minute = time.and_then(|time| clock.minute(time));
    html! {
        @if let (Some(iso), Some(minute)) = (iso, minute) {
            time datetime=(iso) title=(minute) { (words) }
        }
    }
}
