//! Links between a coding agent's conversation and those of the agents that it started.

use maud::{Markup, html};

use super::{
    ask::encoded,
    card::{counted, title_of},
};
use crate::{
    engine::{About, Engine, Error, Scope, Session},
    model::Stop,
    text::snippet,
};

/// The most started agents that are shown.
const MOST_AGENTS: usize = 100;

/// The characters of an agent's first prompt by which the call that started it is found.
const PROMPT: usize = 400;

/// The beginning of a tool call in a message.
const CALL: &str = "[tool: ";

/// What a conversation started, and what started it.
#[derive(Default)]
pub(super) struct Family {
    /// The conversation that started this one, with the address of the call.
    parent: Option<(String, String)>,
    agents: Vec<Agent>,
    /// The number of started agents that are not shown.
    more: usize,
}

/// A conversation of an agent that another one started.
struct Agent {
    title: String,
    address: String,
    turns: u32,
    /// The beginning of its first message.
    prompt: String,
}

impl Family {
    /// Finds the conversations of the same session. A session's own conversation has the session's id.
    pub(super) fn of(engine: &Engine, talk: &Session, stop: &Stop) -> Result<Family, Error> {
        let (kind, id) = (talk.about.source, &talk.about.id);
        let Some(session) = talk.about.session.clone().filter(|name| !name.is_empty()) else {
            return Ok(Family::default());
        };
        if session != *id {
            let parent = engine.session(kind, &session, false, stop)?;
            let parent = parent.map(|parent| {
                let call = call_of(&parent, &prompt_of(talk));
                let call = call.map(|turn| parent.line(turn));
                let call = call.map_or(String::new(), |number| format!("/{number}#m{number}"));
                (title_of(&parent), format!("/c/{}{call}", encoded(&session)))
            });
            return Ok(Family { parent, ..Family::default() });
        }
        let scope = Scope { sources: vec![kind], session: Some(session), ..Scope::default() };
        let page = engine.listed_briefly(&scope, 0, MOST_AGENTS + 1, stop)?;
        let mut abouts: Vec<&About> = page.abouts.iter().filter(|about| about.id != *id).collect();
        abouts.truncate(MOST_AGENTS);
        abouts.sort_by_key(|about| (about.begun, &about.id));
        let mut agents = Vec::new();
        for about in abouts {
            let Some(agent) = engine.session(kind, &about.id, false, stop)? else { continue };
            agents.push(Agent::of(about, &agent));
        }
        let more = page.total.saturating_sub(1 + agents.len());
        Ok(Family { parent: None, agents, more })
    }

    /// Returns the rows of facts: what started the conversation, and what it started.
    pub(super) fn facts(&self) -> Markup {
        html! {
            @if let Some((title, address)) = &self.parent {
                div { dt { "Started by" } " " dd dir="auto" { a href=(address) { (title) } } }
            }
            @if !self.agents.is_empty() {
                div.agents {
                    dt { "Started" }
                    " " dd {
                        details {
                            summary { (counted(self.agents.len() + self.more, "agent")) }
                            ul { @for agent in &self.agents { li { (agent.link()) } } }
                            @if self.more > 0 { p.note { (self.more) " more are not listed" } }
                        }
                    }
                }
            }
        }
    }

    /// Returns links to the agents that a message started.
    pub(super) fn of_message(&self, role: &str, content: &str) -> Markup {
        let is_call = |agent: &&Agent| starts(role, content, &agent.prompt);
        html! {
            @for agent in self.agents.iter().filter(is_call) {
                p.agent { (agent.link()) }
            }
        }
    }
}

impl Agent {
    fn of(about: &About, agent: &Session) -> Agent {
        Agent {
            title: title_of(agent),
            address: format!("/c/{}", encoded(&about.id)),
            turns: about.turns,
            prompt: prompt_of(agent),
        }
    }

    fn link(&self) -> Markup {
        html! {
            a href=(self.address) dir="auto" { (self.title) }
            " " span.note { "agent, " (counted(self.turns as usize, "message")) }
        }
    }
}

/// Returns the beginning of a conversation's first prompt; empty if it has none.
fn prompt_of(talk: &Session) -> String {
    let first = (0..talk.turns()).find(|turn| talk.role(*turn) == "user");
    let text = first.map(|turn| talk.message(turn).content).unwrap_or_default();
    let text = snippet::trim(&text);
    snippet::cut(text, PROMPT).unwrap_or(text).to_owned()
}

/// Returns whether a message has a call whose arguments have the prompt.
fn starts(role: &str, content: &str, prompt: &str) -> bool {
    !prompt.is_empty()
        && role == "assistant"
        && content.contains(CALL)
        && memchr::memmem::find(content.as_bytes(), prompt.as_bytes()).is_some()
}

fn call_of(parent: &Session, prompt: &str) -> Option<usize> {
    let is_call = |turn: &usize| starts(parent.role(*turn), &parent.message(*turn).content, prompt);
    (0..parent.turns()).find(is_call)
}
