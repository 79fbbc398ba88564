//! The details of a conversation beside its title.

use std::collections::HashMap;

use maud::{Markup, html};

use crate::tools::{clock::Clock, session::ResumeCommand};
use verbatim_base::model::{Hit, Instant, Origin, Stop};
pub(super) use verbatim_engine::{
    About, ConversationKey, Engine, Error, Sketch, SourceKind, import::FORMATS,
};
pub(super) use verbatim_text::amount::counted;
use verbatim_text::{address::page_path, snippet};

/// The details of a conversation.
pub(super) struct Card {
    pub(super) kind: SourceKind,
    pub(super) id: String,
    pub(super) short_id: String,
    pub(super) service: String,
    pub(super) origin: Origin,
    /// The address on the service's site.
    pub(super) link: Option<String>,
    sketch: Option<Sketch>,
}

impl Card {
    /// Returns the number of a message and its place in the conversation, from 0 to 1.
    pub(super) fn place(&self, hit: &Hit<'_>) -> (u32, f64) {
        let Some(sketch) = &self.sketch else { return (1, 0.0) };
        let turns = f64::from(sketch.about.turns.max(1));
        (sketch.line(hit), sketch.turn(hit) as f64 / turns)
    }

    /// Returns the address of the conversation's page.
    pub(super) fn address(&self) -> String {
        page_path(&self.id)
    }

    /// Returns the address of the page that asks whether to forget the conversation.
    pub(super) fn forget_address(&self) -> String {
        format!("{}/forget", self.address())
    }

    /// Returns the command that resumes the session of a coding agent.
    pub(super) fn resume(&self) -> Option<String> {
        ResumeCommand::of(&self.service, &self.origin).map(|session| session.to_string())
    }

    /// Returns the project with the branch; `None` without a project.
    pub(super) fn project(&self) -> Option<String> {
        let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
        let project = named(&self.origin.project)?;
        Some(match named(&self.origin.branch) {
            Some(branch) => format!("{project}@{branch}"),
            None => project,
        })
    }

    /// Returns the service, the project, the time and the short id as HTML.
    pub(super) fn meta(&self, clock: Clock, time: Option<Instant>) -> Markup {
        html! {
            (service(&self.service))
            @if let Some(project) = self.project() { " " span dir="auto" { (project) } }
            " " (moment(clock, time))
            " " span.id { (self.short_id) }
        }
    }
}

/// Returns the name of a service, an agent or a source, with its colour.
pub(super) fn service(name: &str) -> Markup {
    let (class, label) = label_of(name);
    html! { span class=(format!("src {class}")) { (label) } }
}

/// Returns the CSS class and the display name of a service, an agent or a source.
pub(super) fn label_of(name: &str) -> (&str, &str) {
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

/// Returns the display name of a role.
pub(super) fn role_name(role: &str) -> &str {
    match role {
        "user" => "You",
        "assistant" => "Assistant",
        "tool" => "Tool",
        "system" => "System",
        "" => "Unknown",
        other => other,
    }
}

/// Returns the title of a conversation, on one line.
pub(super) fn title_of(about: &About) -> String {
    match snippet::trim(&about.title) {
        "" => "Untitled".to_owned(),
        title => title.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Returns a time in words, with its ISO form in the HTML.
pub(super) fn moment(clock: Clock, time: Option<Instant>) -> Markup {
    timed(clock, time, &clock.words(time))
}

/// Returns a time in words with its hour.
pub(super) fn hour(clock: Clock, time: Option<Instant>) -> Markup {
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

/// Looks up conversations. The answer has every conversation, even if its details cannot be read.
pub(super) fn cards(
    engine: &Engine,
    keys: &[ConversationKey],
    stop: &Stop,
) -> Result<HashMap<ConversationKey, Card>, Error> {
    let described = engine.find(stop).described(keys)?.into_iter().map(|(key, one)| {
        let (service, link) = one.provenance.map(|it| (it.service, it.link)).unwrap_or_default();
        let service = if service.is_empty() { key.0.name().to_owned() } else { service };
        let origin = one.origin.unwrap_or_default();
        let (kind, id) = key.clone();
        (key, Card { kind, id, short_id: one.short_id, service, origin, link, sketch: one.sketch })
    });
    Ok(described.collect())
}
