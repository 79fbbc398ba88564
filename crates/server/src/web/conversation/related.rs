//! Links between a coding agent's conversation, the conversation that it was forked from, and those of the
//! agents that it started.

use std::cell::OnceCell;

use maud::{Markup, html};

use crate::tools::read::partition_point;
use verbatim_answer::conversation::title_line;
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant};
use verbatim_engine::{About, Engine, Error, ListOptions, Scope, Session, SourceKind};
use verbatim_text::{address::page_path, amount::counted, parts::CALL, snippet};

const MOST_AGENTS: usize = 100;

/// The number of characters of an agent's first prompt that are looked for in tool calls.
const PROMPT: usize = 400;

/// The maximum number of messages that are searched for the call that started an agent.
const MOST_LOOKED_AT: usize = 500;

/// The maximum number of seconds between a call and the start of the agent that the call started.
const STARTS_WITHIN: i64 = 60 * 60;

/// The agents that a conversation started, and the parent conversation, which started this one.
#[derive(Default)]
pub(super) struct RelatedSessions {
    /// The title of the conversation that started this conversation, and the address of the call.
    parent: Option<(String, String)>,
    /// The conversation that this one was forked from. This one has only the messages since then.
    forked_from: Option<About>,
    agents: Vec<Agent>,
    /// The number of started agents that are not shown.
    more: usize,
}

struct Agent {
    about: About,
    /// The beginning of the agent's first prompt, once it was read.
    prompt: OnceCell<String>,
}

impl RelatedSessions {
    /// Finds the agents that a conversation started, and the conversation that started this
    /// conversation. An agent's session is the id of the conversation that started the agent.
    pub(super) fn find(
        engine: &Engine,
        agent: &Session,
        call: &Call,
    ) -> Result<RelatedSessions, Error> {
        let kind = agent.about.source;
        let id = &agent.about.id;
        let Some(session) = agent.about.session.as_ref().filter(|name| !name.is_empty()) else {
            return Ok(RelatedSessions::default());
        };
        let parent =
            if session == id { None } else { engine.find(call).session(kind, session, false)? };
        let parent = parent.map(|parent| {
            let call = call_of(&parent, agent).map(|turn| parent.line(turn));
            let call = call.map_or(String::new(), |number| format!("/{number}#m{number}"));
            (title_line(&parent.about.title), page_path(session) + &call)
        });
        let forked_from = if kind == SourceKind::Archive && session == id {
            engine.all_sources().forked_from(id, call)?
        } else {
            None
        };
        let scope = Scope { sources: vec![kind], session: Some(id.clone()), ..Scope::default() };
        let sources = engine.all_sources();
        let first = 0..MOST_AGENTS + 1;
        let page = sources.list(&scope, first, ListOptions::BRIEF, call)?;
        let total = page.total;
        // If the id does not belong to a session, the scope contains the conversations of another session.
        let (mut family, other): (Vec<About>, Vec<About>) =
            page.abouts.into_iter().partition(|about| about.session.as_ref() == Some(id));
        family.retain(|about| about.id != *id);
        family.truncate(MOST_AGENTS);
        family.sort_by(|a, b| (a.begun, &a.id).cmp(&(b.begun, &b.id)));
        let all = if other.is_empty() { total - usize::from(session == id) } else { family.len() };
        let more = all.saturating_sub(family.len());
        let agents =
            family.into_iter().map(|about| Agent { about, prompt: OnceCell::new() }).collect();
        Ok(RelatedSessions { parent, forked_from, agents, more })
    }

    pub(super) fn facts(&self) -> Markup {
        html! {
            @if let Some((title, address)) = &self.parent {
                div { dt { "Started by" } " " dd dir="auto" { a href=(address) { (title) } } }
            }
            @if let Some(about) = &self.forked_from {
                @let address = page_path(&about.id);
                div { dt { "Forked from" } " " dd dir="auto" { a href=(address) { (title_line(&about.title)) } } }
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

    /// Returns links to the agents that a message started. Reads only agents that started soon
    /// after the message, and only their first prompts.
    pub(super) fn links_of_message(&self, engine: &Engine, hit: &Hit<'_>, call: &Call) -> Markup {
        html! {
            @if may_start(&hit.role, &hit.content) {
                @for agent in &self.agents {
                    @if is_soon_after(hit.time, agent.about.begun)
                        && starts(&hit.role, &hit.content, agent.prompt(engine, call)) {
                        p.agent { (agent.link()) }
                    }
                }
            }
        }
    }
}

impl Agent {
    fn prompt(&self, engine: &Engine, call: &Call) -> &str {
        self.prompt.get_or_init(|| {
            let agent = engine.find(call).session(self.about.source, &self.about.id, false);
            agent.ok().flatten().map(|agent| prompt_of(&agent)).unwrap_or_default()
        })
    }

    fn link(&self) -> Markup {
        html! {
            a href=(page_path(&self.about.id)) dir="auto" { (title_line(&self.about.title)) }
            " " span.note { "agent, " (counted(self.about.turns as usize, "message")) }
        }
    }
}

/// Returns the beginning of a conversation's first prompt; empty if there is no prompt.
fn prompt_of(session: &Session) -> String {
    let first = (0..session.turns()).find(|turn| session.role(*turn) == "user");
    let text = first.map(|turn| session.message(turn).content).unwrap_or_default();
    let text = snippet::trim(&text);
    snippet::cut(text, PROMPT).unwrap_or(text).to_owned()
}

fn may_start(role: &str, content: &str) -> bool {
    role == "assistant" && content.contains(CALL)
}

/// Returns whether a message has a tool call and contains the prompt.
fn starts(role: &str, content: &str, prompt: &str) -> bool {
    !prompt.is_empty()
        && may_start(role, content)
        && memchr::memmem::find(content.as_bytes(), prompt.as_bytes()).is_some()
}

fn is_soon_after(call: Option<Instant>, begun: Option<Instant>) -> bool {
    let Some((call, begun)) = call.zip(begun) else { return true };
    (call.seconds - 1..=call.seconds + STARTS_WITHIN).contains(&begun.seconds)
}

/// Returns the last message before an agent's start that has a call with the agent's prompt.
fn call_of(parent: &Session, agent: &Session) -> Option<usize> {
    let prompt = prompt_of(agent);
    // Messages are in the order of their times.
    let end = partition_point(parent.turns(), |turn| {
        let time = parent.message(turn).time.zip(agent.about.begun);
        time.is_none_or(|(time, begun)| time.seconds <= begun.seconds + 1)
    });
    (end.saturating_sub(MOST_LOOKED_AT)..end)
        .rev()
        .find(|turn| starts(parent.role(*turn), &parent.message(*turn).content, &prompt))
}
