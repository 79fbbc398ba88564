//! The conversations and messages of an answer: their numbers, and the text about their origin.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use serde::{Deserialize, Serialize};

use super::{
    clock::Clock,
    look::{Look, Piece, excerpt, plain},
    output::{harmless, role},
};
use verbatim_base::{
    map_faults,
    model::{Hit, Instant, Origin, Provenance, Stop},
};
use verbatim_engine::{About, Described, Engine, Error, Result, Session, Sketch, SourceKind};
use verbatim_text::snippet;

pub(super) use verbatim_engine::ConversationKey as Key;

/// The fields that identify a message in its conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MessageKey {
    message_id: String,
    position: Option<i64>,
    seconds: Option<i64>,
    nanos: u32,
}

impl MessageKey {
    pub(super) fn of(hit: &Hit<'_>) -> MessageKey {
        MessageKey {
            message_id: hit.message_id.clone().into_owned(),
            position: hit.position,
            seconds: hit.time.map(|time| time.seconds),
            nanos: hit.time.map_or(0, |time| time.nanos),
        }
    }

    pub(super) fn time(&self) -> Option<Instant> {
        self.seconds.map(|seconds| Instant { seconds, nanos: self.nanos })
    }

    /// Returns the hit of the message in a conversation, without its texts.
    pub(super) fn hit<'a>(&'a self, conversation_id: &'a str) -> Hit<'a> {
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

/// The numbers of messages to show before and after each match.
#[derive(Clone, Copy, Default)]
pub(super) struct Context {
    pub(super) before: usize,
    pub(super) after: usize,
}

impl Context {
    pub(super) fn is_empty(self) -> bool {
        self.before + self.after == 0
    }

    /// Returns the turns around a turn of a session, this turn included.
    pub(super) fn around(self, turn: usize, session: &Session) -> Range<usize> {
        let end = turn.saturating_add(self.after).saturating_add(1).min(session.turns());
        turn.saturating_sub(self.before)..end
    }
}

/// The settings for showing an answer.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    pub(super) engine: &'a Engine,
    pub(super) look: Look,
    pub(super) clock: Clock,
    pub(super) context: Context,
    pub(super) raw_content: bool,
}

/// A matching message, or a conversation with a matching title.
pub(super) struct FoundHit {
    pub(super) key: Key,
    pub(super) message: MessageKey,
    pub(super) title: Vec<Piece>,
    pub(super) role: String,
    /// The text around the match; `None` if only the title matches.
    pub(super) text: Option<Vec<Piece>>,
}

impl FoundHit {
    /// Makes the form of a hit that is counted, and not displayed.
    pub(super) fn counted(kind: SourceKind, hit: &Hit<'_>, is_title_only: bool) -> FoundHit {
        FoundHit {
            key: (kind, hit.conversation_id.clone().into_owned()),
            message: MessageKey::of(hit),
            title: Vec::new(),
            role: String::new(),
            text: (!is_title_only).then(Vec::new),
        }
    }

    /// Makes the displayed form of a hit. `mark` returns the ranges of matches in a text.
    pub(super) fn of(
        kind: SourceKind,
        hit: &Hit<'_>,
        look: Look,
        mark: &dyn Fn(&str) -> Vec<Range<usize>>,
    ) -> FoundHit {
        let title = title(hit, mark, look);
        let spans = mark(&hit.content);
        let is_title_only = spans.is_empty() && !mark(snippet::trim(&hit.title)).is_empty();
        FoundHit {
            key: (kind, hit.conversation_id.clone().into_owned()),
            message: MessageKey::of(hit),
            title,
            role: role(hit),
            text: (!is_title_only)
                .then(|| excerpt(&hit.content, &spans, look.columns_of_message())),
        }
    }
}

/// Where a conversation is from, in every JSON object of one.
#[derive(Serialize)]
pub(super) struct JsonOrigin<'a> {
    source: &'a str,
    service: &'a str,
    project: Option<&'a str>,
    branch: Option<&'a str>,
    folder: Option<&'a str>,
    model: Option<&'a str>,
    url: Option<&'a str>,
}

#[derive(Debug)]
pub(super) struct DescribedConversation {
    sketch: Option<Sketch>,
    origin: Option<Origin>,
    pub(super) short_id: String,
    provenance: Option<Provenance>,
    kind: SourceKind,
}

impl DescribedConversation {
    /// Returns the message number that `verbatim show` accepts: the line in a transcript, else the
    /// place in the conversation.
    pub(super) fn number(&self, message: &Hit<'_>) -> Option<u32> {
        self.sketch.as_ref().map(|sketch| sketch.line(message))
    }

    /// Returns whether all messages are newer than a time. False if that is not known.
    pub(super) fn is_newer(&self, time: Instant) -> bool {
        self.sketch.as_ref().is_some_and(|sketch| sketch.is_newer(time))
    }

    /// Returns the name of the service or the agent; of the source if that is not known.
    pub(super) fn service(&self) -> &str {
        let service = self.provenance.as_ref().map(|provenance| provenance.service.as_str());
        service.filter(|service| !service.is_empty()).unwrap_or(self.kind.name())
    }

    /// Returns the address on the service's site.
    pub(super) fn link(&self) -> Option<&str> {
        self.provenance.as_ref()?.link.as_deref()
    }

    /// Returns the time at which the transcript's file was found missing.
    pub(super) fn gone(&self) -> Option<Instant> {
        self.origin.as_ref()?.gone
    }

    pub(super) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Returns the facts about the origin for JSON.
    pub(super) fn json_origin(&self) -> JsonOrigin<'_> {
        let origin = self.origin.as_ref();
        JsonOrigin {
            source: self.kind.name(),
            service: self.service(),
            project: origin.and_then(|origin| origin.project.as_deref()),
            branch: origin.and_then(|origin| origin.branch.as_deref()),
            folder: origin.and_then(|origin| origin.folder.as_deref()),
            model: self.provenance.as_ref().and_then(|provenance| provenance.model.as_deref()),
            url: self.link(),
        }
    }

    /// Returns the service with the project and the branch.
    pub(super) fn place(&self) -> String {
        let origin = self.origin.as_ref();
        let named = |name: Option<&String>| name.filter(|name| !name.is_empty()).cloned();
        let project = named(origin.and_then(|origin| origin.project.as_ref()));
        let branch = named(origin.and_then(|origin| origin.branch.as_ref()));
        let project = match (project, branch) {
            (Some(project), Some(branch)) => format!(" · {project}@{branch}"),
            (Some(project), None) => format!(" · {project}"),
            (None, _) => String::new(),
        };
        harmless(&format!("{}{project}", self.service()))
    }

    /// Returns the service, the time and the id for the heading of a conversation.
    pub(super) fn facts(&self, page: &Page<'_>, time: Option<Instant>) -> [String; 3] {
        // The match may be a message without a time.
        let time = time.or_else(|| self.sketch.as_ref()?.about.last);
        [self.place(), page.clock.words(time), harmless(&self.short_id)]
    }
}

/// Returns the conversation, and maybe the number of the message, that a word such as `ID:NUMBER` names.
pub(super) fn target(engine: &Engine, word: &str, stop: &Stop) -> Result<(About, Option<u32>)> {
    let numbered = word.rsplit_once(':').and_then(|(id, number)| Some((id, number.parse().ok()?)));
    match (engine.find(stop).by_word(word), numbered) {
        (Err(Error::NoConversation { .. }), Some((id, number))) => {
            Ok((engine.find(stop).by_word(id)?, Some(number)))
        }
        (found, _) => Ok((found?, None)),
    }
}

/// Looks up one conversation.
pub(super) fn conversation(
    engine: &Engine,
    key: Key,
    stop: &Stop,
) -> Result<DescribedConversation> {
    let mut found = conversations(engine, std::slice::from_ref(&key), stop)?;
    Ok(found.remove(&key).expect("every conversation that is asked for is described"))
}

/// Looks up conversations. The answer has every conversation, even if its details cannot be read.
pub(super) fn conversations(
    engine: &Engine,
    keys: &[Key],
    stop: &Stop,
) -> Result<HashMap<Key, DescribedConversation>> {
    let faults = map_faults::count();
    let found = engine.find(stop).described(keys)?.into_iter().map(|(key, one)| {
        let Described { short_id, sketch, origin, provenance } = one;
        let kind = key.0;
        (key, DescribedConversation { sketch, origin, short_id, provenance, kind })
    });
    let found = found.collect();
    match map_faults::count() == faults {
        true => Ok(found),
        false => Err(Error::Torn { folder: engine.config().index_folder() }),
    }
}

/// Looks up the services and the links of the listed conversations.
pub(super) fn provenance(
    engine: &Engine,
    abouts: &[About],
    stop: &Stop,
) -> Result<HashMap<Key, Provenance>> {
    let mut provenance = HashMap::new();
    for kind in SourceKind::ALL {
        let of_kind = abouts.iter().filter(|about| about.source == kind);
        let ids: Vec<&str> = of_kind.map(|about| about.id.as_str()).collect();
        if !ids.is_empty() {
            let known = engine.all_sources().provenance(kind, &ids, stop)?.into_iter();
            provenance.extend(known.map(|(id, one)| ((kind, id), one)));
        }
    }
    Ok(provenance)
}

/// Describes conversations of a list, in its order; `short` are their short ids.
pub(super) fn listed(
    engine: &Engine,
    abouts: &[About],
    short: &[String],
    stop: &Stop,
) -> Result<Vec<DescribedConversation>> {
    let mut provenance = provenance(engine, abouts, stop)?;
    let described = abouts.iter().zip(short).map(|(about, short_id)| DescribedConversation {
        sketch: None,
        origin: Some(Origin {
            project: about.project.clone(),
            branch: about.branch.clone(),
            folder: about.folder.clone(),
            ..Origin::default()
        }),
        short_id: short_id.clone(),
        provenance: provenance.remove(&(about.source, about.id.clone())),
        kind: about.source,
    });
    Ok(described.collect())
}

/// Returns the title of a conversation on one line, with marked matches.
fn title(hit: &Hit<'_>, mark: impl Fn(&str) -> Vec<Range<usize>>, look: Look) -> Vec<Piece> {
    match snippet::trim(&hit.title) {
        "" => vec![plain("Untitled")],
        // The length in bytes is enough if nothing is cut: no text has more columns than bytes.
        title => {
            let columns = if look.is_cut { look.columns } else { title.len() + 2 };
            excerpt_from_start(title, &mark(title), columns)
        }
    }
}

/// Returns the beginning of a text on one line, with marked matches.
fn excerpt_from_start(text: &str, spans: &[Range<usize>], columns: usize) -> Vec<Piece> {
    let first = spans.first().map_or(0, |span| span.start);
    // If the first match is not within the columns, the text around the match is returned.
    if first + 1 >= columns {
        return excerpt(text, spans, columns);
    }
    let whole = 0..0;
    let spans: Vec<_> = std::iter::once(whole).chain(spans.iter().cloned()).collect();
    excerpt(text, &spans, columns)
}
