//! What answers say about a conversation.

use std::{borrow::Cow, collections::HashMap, slice};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resume::ResumeCommand;
use verbatim_base::call::Call;
use verbatim_base::map_faults::FaultWatch;
use verbatim_base::model::{Hit, Instant, Origin, Provenance};
use verbatim_engine::{
    About, ConversationKey, Described, Description, Engine, Error, Result, SourceKind,
};
use verbatim_text::{address::page_path, snippet, terminal::on_one_line};

/// The title of a conversation without one.
pub const UNTITLED: &str = "Untitled";

/// The maximum number of characters of a title in a file name.
const LONGEST_NAME: usize = 60;

/// A conversation of an answer.
#[derive(Debug)]
pub struct DescribedConversation {
    /// The source of the conversation.
    pub kind: SourceKind,
    /// The id in the source.
    pub id: String,
    /// The shortest beginning of the id that no other conversation has.
    pub short_id: String,
    /// The origin, if the conversation is from a coding agent.
    pub origin: Option<Origin>,
    provenance: Option<Provenance>,
    description: Option<Description>,
}

/// Where a conversation is from, in every JSON object of one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConversationJson<'a> {
    /// `export`, `archive` (coding agents) or `threads`.
    source: &'a str,
    /// What wrote it: `chatgpt`, `claude`, `claude-code`, `codex`; the source if that is not known.
    service: &'a str,
    /// The project, of a coding agent's conversation.
    project: Option<&'a str>,
    /// The branch of Git, of a coding agent's conversation.
    branch: Option<&'a str>,
    /// The folder in which the agent worked.
    folder: Option<&'a str>,
    /// The model that answered, if it is known.
    model: Option<&'a str>,
    /// The conversation on its service's site.
    url: Option<&'a str>,
}

impl DescribedConversation {
    /// Returns the message number that `verbatim show` accepts: the line in a transcript, else the
    /// place in the conversation.
    pub fn number(&self, message: &Hit<'_>) -> Option<u32> {
        self.description.as_ref().map(|description| description.line(message))
    }

    /// Returns the place of a message in the conversation, from 0 to 1.
    pub fn place(&self, message: &Hit<'_>) -> f64 {
        self.description.as_ref().map_or(0.0, |description| {
            description.turn(message) as f64 / f64::from(description.about.turns.max(1))
        })
    }

    /// Returns whether all messages are newer than a time. False if that is not known.
    pub fn is_newer(&self, time: Instant) -> bool {
        self.description.as_ref().is_some_and(|description| description.is_newer(time))
    }

    /// Returns the time of the last message.
    pub fn last(&self) -> Option<Instant> {
        self.description.as_ref()?.about.last
    }

    /// Returns the name of the service or the agent; of the source if that is not known.
    pub fn service(&self) -> &str {
        let service = self.provenance.as_ref().map(|provenance| provenance.service.as_str());
        service.filter(|service| !service.is_empty()).unwrap_or(self.kind.name())
    }

    /// Returns the address on the service's site.
    pub fn link(&self) -> Option<&str> {
        self.provenance.as_ref()?.link.as_deref()
    }

    /// Returns the time at which the transcript's file was found missing.
    pub fn gone(&self) -> Option<Instant> {
        self.origin.as_ref()?.gone
    }

    /// Returns the project with the branch; `None` without a project.
    pub fn project(&self) -> Option<String> {
        let origin = self.origin.as_ref()?;
        match (origin.project.as_deref()?, origin.branch.as_deref()) {
            ("", _) => None,
            (project, None | Some("")) => Some(on_one_line(project).into_owned()),
            (project, Some(branch)) => {
                Some(on_one_line(&format!("{project}@{branch}")).into_owned())
            }
        }
    }

    /// Returns the service with the project and the branch.
    pub fn service_and_project(&self) -> String {
        let project = self.project().map(|project| format!(" · {project}")).unwrap_or_default();
        format!("{}{project}", self.service())
    }

    /// Returns the address of the conversation's page.
    pub fn address(&self) -> String {
        page_path(&self.id)
    }

    /// Returns the command that resumes the session of a coding agent.
    pub fn resume(&self) -> Option<ResumeCommand<'_>> {
        ResumeCommand::of(self.service(), self.origin.as_ref()?)
    }

    /// Returns the facts about the origin for JSON.
    pub fn json(&self) -> ConversationJson<'_> {
        let origin = self.origin.as_ref();
        ConversationJson {
            source: self.kind.name(),
            service: self.service(),
            project: origin.and_then(|origin| origin.project.as_deref()),
            branch: origin.and_then(|origin| origin.branch.as_deref()),
            folder: origin.and_then(|origin| origin.folder.as_deref()),
            model: self.provenance.as_ref().and_then(|provenance| provenance.model.as_deref()),
            url: self.link(),
        }
    }
}

/// Returns a title on one line; [`UNTITLED`] if there is none.
pub fn title_line(title: &str) -> String {
    match snippet::trim(title) {
        "" => UNTITLED.to_owned(),
        title => title.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Returns a title as a file name without an extension, which every system allows.
pub fn file_name(title: &str) -> String {
    let words = title.split(|c: char| !c.is_alphanumeric() && !"-_'+".contains(c));
    let name = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let name = snippet::cut(&name, LONGEST_NAME).unwrap_or(&name).trim_end();
    if name.is_empty() { UNTITLED.to_owned() } else { name.to_owned() }
}

/// Looks up one conversation.
pub fn conversation(
    engine: &Engine,
    key: ConversationKey,
    call: &Call,
) -> Result<DescribedConversation> {
    let mut found = conversations(engine, slice::from_ref(&key), call)?;
    Ok(found.remove(&key).expect("every conversation that is asked for is described"))
}

/// Looks up conversations. The answer has every conversation, even if its details cannot be read.
pub fn conversations(
    engine: &Engine,
    keys: &[ConversationKey],
    call: &Call,
) -> Result<HashMap<ConversationKey, DescribedConversation>> {
    let faults = FaultWatch::begin();
    let found = engine.find(call).described(keys)?.into_iter().map(|(key, one)| {
        let Described { short_id, description, origin, provenance } = one;
        let (kind, id) = key.clone();
        (key, DescribedConversation { kind, id, short_id, origin, provenance, description })
    });
    let found = found.collect();
    if faults.has_noticed() {
        return Err(Error::Torn { folder: engine.config().index_folder() });
    }
    Ok(found)
}

/// Looks up the services and the links of the listed conversations.
pub fn provenance(
    engine: &Engine,
    abouts: &[About],
    call: &Call,
) -> Result<HashMap<ConversationKey, Provenance>> {
    let mut provenance = HashMap::new();
    for kind in SourceKind::ALL {
        let of_kind = abouts.iter().filter(|about| about.source == kind);
        let ids: Vec<&str> = of_kind.map(|about| about.id.as_str()).collect();
        if !ids.is_empty() {
            let known = engine.all_sources().provenance(kind, &ids, call)?.into_iter();
            provenance.extend(known.map(|(id, one)| ((kind, id), one)));
        }
    }
    Ok(provenance)
}

/// Describes conversations of a list, in its order, without their messages; `short` are their short ids.
pub fn listed(
    engine: &Engine,
    abouts: &[About],
    short: &[String],
    call: &Call,
) -> Result<Vec<DescribedConversation>> {
    let mut provenance = provenance(engine, abouts, call)?;
    let described = abouts.iter().zip(short).map(|(about, short_id)| DescribedConversation {
        kind: about.source,
        id: about.id.clone(),
        short_id: short_id.clone(),
        origin: Some(Origin {
            project: about.project.clone(),
            branch: about.branch.clone(),
            folder: about.folder.clone(),
            ..Origin::default()
        }),
        provenance: provenance.remove(&(about.source, about.id.clone())),
        description: None,
    });
    Ok(described.collect())
}

/// Returns the conversation that a word names. If several sources have it, returns that of the first.
pub fn named(engine: &Engine, word: &str, call: &Call) -> Result<About> {
    let find = engine.find(call);
    let error = match find.by_word(word) {
        Err(error) => error,
        found => return found,
    };
    if let Error::SameId { id, .. } = &error {
        for kind in SourceKind::ALL {
            if let Ok(Some(about)) = find.about(kind, id) {
                return Ok(about);
            }
        }
    }
    Err(error)
}

/// Returns the conversation, and maybe the number of the message, that a word such as `ID:NUMBER` names.
pub fn target(engine: &Engine, word: &str, call: &Call) -> Result<(About, Option<u32>)> {
    let numbered = word.rsplit_once(':').and_then(|(id, number)| Some((id, number.parse().ok()?)));
    match (engine.find(call).by_word(word), numbered) {
        (Err(Error::NoConversation { .. }), Some((id, number))) => {
            Ok((engine.find(call).by_word(id)?, Some(number)))
        }
        (found, _) => Ok((found?, None)),
    }
}

/// The fields that identify a message in its conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageKey {
    message_id: String,
    position: Option<i64>,
    seconds: Option<i64>,
    nanos: u32,
}

impl MessageKey {
    /// Returns the key of a message.
    pub fn of(hit: &Hit<'_>) -> MessageKey {
        MessageKey {
            message_id: hit.message_id.clone().into_owned(),
            position: hit.position,
            seconds: hit.time.map(|time| time.seconds),
            nanos: hit.time.map_or(0, |time| time.nanos),
        }
    }

    /// Returns when the message was written.
    pub fn time(&self) -> Option<Instant> {
        self.seconds.map(|seconds| Instant { seconds, nanos: self.nanos })
    }

    /// Returns the hit of the message in a conversation, without its texts.
    pub fn hit<'a>(&'a self, conversation_id: &'a str) -> Hit<'a> {
        Hit {
            message_id: Cow::Borrowed(&self.message_id),
            conversation_id: Cow::Borrowed(conversation_id),
            title: Cow::Borrowed(""),
            role: Cow::Borrowed(""),
            time: self.time(),
            content: Cow::Borrowed(""),
            position: self.position,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_as_names_of_files() {
        for (title, expected) in [
            ("What's a/b: 10%?", "What's a b 10"),
            ("  日本語  の質問 ", "日本語 の質問"),
            ("..", "Untitled"),
            (&"long ".repeat(20), "long ".repeat(12).trim_end()),
        ] {
            assert_eq!(file_name(title), expected, "{title}");
        }
    }
}
