//! The filters of a question: which conversations and messages are asked for. Every face takes them by these
//! names; `verbatim_engine::filters` has those by name, each in a file of its own.

use std::sync::Arc;

use super::{clock::Clock, conversation::target, notes};
use verbatim_base::{call::Call, model::Instant};
use verbatim_engine::{
    self as engine, About, ConversationIds, Engine, Narrowing, Note, Scope, SourceKind,
    filters::ALL, import::FORMATS,
};
use verbatim_text::{date::Edge, shell::quoted};

/// The filter for some conversations, each named by its id, its title or its link.
pub const WITHIN: &str = "in";
/// The filter for messages of some roles.
pub const BY_ROLE: &str = "role";
/// The filter for messages from a day or a moment on.
pub const SINCE: &str = "since";
/// The filter for messages up to a day or a moment.
pub const UNTIL: &str = "until";

/// Returns the names of all filters, other names included.
pub fn names() -> impl Iterator<Item = &'static str> {
    let by_name = ALL.into_iter().flat_map(|filter| [Some(filter.name), filter.alias]);
    by_name.flatten().chain([WITHIN, BY_ROLE, SINCE, UNTIL])
}

/// The filters as a person or a client gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// The filters by name.
    pub names: Narrowing,
    /// The ids, titles or links of the only conversations.
    pub within: Vec<String>,
    /// Parts of the names of roles.
    pub roles: Vec<String>,
    /// The first day or moment.
    pub since: Option<String>,
    /// The last day or moment.
    pub until: Option<String>,
}

/// The reason why filters cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// A date cannot be read.
    #[error("{reason}")]
    Date {
        /// The name of the filter.
        filter: &'static str,
        /// What is wrong, and what can be written.
        reason: String,
    },
    /// The first date is after the last one.
    #[error("the first date is after the last one: no message can be in between")]
    NoTime,
    /// The filter [`WITHIN`] names one message.
    #[error("{WITHIN} takes a conversation, not one message: {conversation}")]
    OneMessage {
        /// The name of the message's conversation, quoted for a shell.
        conversation: String,
    },
    /// The filters name something that nothing has.
    #[error("{0}")]
    Unknown(String),
    /// The sources cannot be read.
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

impl Filters {
    /// Adds a filter by its name; returns false if there is no such filter.
    pub fn add(&mut self, name: &str, value: &str) -> bool {
        match name {
            WITHIN => self.within.push(value.to_owned()),
            BY_ROLE => self.roles.push(value.to_owned()),
            SINCE => self.since = Some(value.to_owned()),
            UNTIL => self.until = Some(value.to_owned()),
            name => return self.names.add(name, value),
        }
        true
    }

    /// Returns whether a filter can be given several times.
    pub fn may_repeat(name: &str) -> bool {
        ![SINCE, UNTIL].contains(&name)
    }

    /// Returns every filter with its values, in the order of the help.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let by_name = self.names.given().flat_map(|(filter, values)| {
            values.iter().map(move |value| (filter.name, value.as_str()))
        });
        let within = self.within.iter().map(|value| (WITHIN, value.as_str()));
        let roles = self.roles.iter().map(|value| (BY_ROLE, value.as_str()));
        let dates = [(SINCE, &self.since), (UNTIL, &self.until)];
        let dates = dates.into_iter().filter_map(|(name, date)| Some((name, date.as_deref()?)));
        by_name.chain(within).chain(roles).chain(dates)
    }

    /// Returns whether the answer can include transcripts of coding agents.
    pub fn takes_transcripts(&self) -> bool {
        let services = self.names.of("service");
        services.is_empty() || services.iter().any(|service| may_be_of_agent(service))
    }

    /// Returns the first and the last instant.
    pub fn dates(&self, clock: Clock) -> Result<(Option<Instant>, Option<Instant>), FilterError> {
        let [since, until] = [(SINCE, &self.since, Edge::Start), (UNTIL, &self.until, Edge::End)]
            .map(|(filter, text, edge)| {
                let parsed = text.as_ref().map(|text| clock.parse(text, edge)).transpose();
                parsed.map_err(|reason| FilterError::Date { filter, reason })
            });
        match (since?, until?) {
            (Some(since), Some(until)) if since > until => Err(FilterError::NoTime),
            dates => Ok(dates),
        }
    }

    /// Returns the scope of the filters, and notes about sources that they leave out. A name that nothing has
    /// is an error, which proposes others.
    pub fn scope(
        &self,
        engine: &Engine,
        clock: Clock,
        call: &Call,
    ) -> Result<(Scope, Vec<Note>), FilterError> {
        let (since, until) = self.dates(clock)?;
        let sources = engine.all_sources();
        let (mut scope, notes) = sources.narrowed(&self.names, call)?;
        let roles = sources.named_roles(&self.roles, &scope.sources, call)?;
        let roles = roles.map_err(|unknown| FilterError::Unknown(unknown.to_string()))?;
        if let Some(unknown) = notes.iter().find(|note| matches!(note, Note::Unknown { .. })) {
            return Err(FilterError::Unknown(unknown.to_string()));
        }
        self.choose(&mut scope, engine, call)?;
        Ok((Scope { roles, since, until, ..scope }, notes))
    }

    /// Returns the scope of the filters that choose conversations, of all roles and dates. Notes say which names
    /// nothing has.
    pub fn conversations(
        &self,
        engine: &Engine,
        call: &Call,
    ) -> Result<(Scope, Vec<Note>), FilterError> {
        let (mut scope, notes) = engine.all_sources().narrowed(&self.names, call)?;
        self.choose(&mut scope, engine, call)?;
        Ok((scope, notes))
    }

    /// Restricts a scope to the named conversations.
    fn choose(&self, scope: &mut Scope, engine: &Engine, call: &Call) -> Result<(), FilterError> {
        let mut chosen = Vec::new();
        for word in &self.within {
            let named = target(engine, word, call);
            let (about, number) = named.map_err(|error| not_found(error, engine, call))?;
            if let (Some(_), Some((id, _))) = (number, word.rsplit_once(':')) {
                return Err(FilterError::OneMessage { conversation: quoted(id) });
            }
            chosen.push(about);
        }
        match &chosen[..] {
            [] => {}
            [about] => {
                if scope.sources.is_empty() || scope.sources.contains(&about.source) {
                    scope.sources = vec![about.source];
                }
                scope.conversation = Some(about.id.clone());
            }
            chosen => {
                let mut ids = ConversationIds::new();
                for About { source, id, .. } in chosen {
                    let is_wanted = scope.conversations.as_ref().is_none_or(|wanted| {
                        wanted.get(source).is_some_and(|ids| ids.contains(id))
                    });
                    let of_source = ids.entry(*source).or_default();
                    of_source.extend(is_wanted.then(|| id.clone()));
                }
                scope.conversations = Some(Arc::new(ids));
            }
        }
        Ok(())
    }
}

fn may_be_of_agent(service: &str) -> bool {
    let mut exports = FORMATS.iter().filter(|format| !format.is_transcript());
    ![SourceKind::Export, SourceKind::Threads].iter().any(|kind| kind.name() == service)
        && !exports.any(|format| format.service() == service)
}

/// Adds unreadable sources to a not-found error, because they may contain the conversation.
fn not_found(error: engine::Error, engine: &Engine, call: &Call) -> FilterError {
    let unread = notes::lines(&engine.all_sources().problems(call), notes::Audience::Person);
    match error {
        engine::Error::NoConversation { .. } if !unread.is_empty() => {
            FilterError::Unknown(format!("{error}; {}", unread.join("; ")))
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_export::TestExport;

    #[test]
    fn every_name_is_a_filter() {
        let mut filters = Filters::default();
        let known: Vec<&str> = names().collect();
        assert!(known.iter().all(|name| filters.add(name, "2025")));
        assert!(!filters.add("colour", "red"));
        let given: Vec<&str> = filters.given().map(|(name, _)| name).collect();
        let aliases: Vec<&str> = ALL.iter().filter_map(|filter| filter.alias).collect();
        assert!(
            known.iter().all(|name| given.contains(name) || aliases.contains(name)),
            "{given:?}"
        );
        // Another name of a filter is given as the filter itself.
        assert_eq!(given.iter().filter(|name| **name == "service").count(), 2);
    }

    #[test]
    fn what_cannot_be_applied_says_why() {
        let export = TestExport::indexed(&["red", "blue"]);
        let says = |name: &str, value: &str| {
            let mut filters =
                Filters { since: Some("2025-02-01".to_owned()), ..Filters::default() };
            assert!(filters.add(name, value));
            let (clock, call) = (Clock::new(false), Call::default());
            filters.scope(&export.engine, clock, &call).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(says("until", "2025-02-01"), Ok(()), "the end of that day");
        let error = says("until", "2025-01-31").unwrap_err();
        assert!(error.contains("no message can be in between"), "{error}");
        let error = says("until", "soon").unwrap_err();
        assert!(error.starts_with("\"soon\" is not a date"), "{error}");
        let error = says("role", "usr").unwrap_err();
        assert!(error.starts_with("no conversation has the role \"usr\"; known: user"), "{error}");
        let error = says("service", "codx").unwrap_err();
        assert!(error.starts_with("no conversation has the service \"codx\"; known: "), "{error}");
        let error = says("in", "nonesuch").unwrap_err();
        assert!(error.contains("nonesuch"), "{error}");
        assert_eq!(says("service", "export"), Ok(()));
    }

    #[test]
    fn named_conversations_and_names_narrow_each_other() {
        let export = TestExport::of(&["red", "blue", "green"]);
        let ids = |within: &[&str]| {
            let within = within.iter().map(|id| (*id).to_owned()).collect();
            let mut filters = Filters { within, ..Filters::default() };
            assert!(filters.add("service", "Export"));
            let (scope, _) = filters.conversations(&export.engine, &Call::default()).unwrap();
            let mut ids: Vec<String> =
                scope.only().unwrap()[&SourceKind::Export].iter().cloned().collect();
            ids.sort();
            ids
        };
        assert_eq!(ids(&[]), ["0", "1", "2"]);
        assert_eq!(ids(&["0", "1"]), ["0", "1"]);
        assert_eq!(ids(&["2"]), ["2"]);
    }

    #[test]
    fn a_role_is_known_whatever_conversation_is_named() {
        let export = TestExport::indexed(&["red", "blue"]);
        let sql = "UPDATE messages SET role = 'tool' WHERE conversation_id = '1'";
        export.connection.execute(sql, []).unwrap();
        let within = vec!["0".to_owned()];
        let filters = Filters { within, roles: vec!["tool".to_owned()], ..Filters::default() };
        let (scope, _) =
            filters.scope(&export.engine, Clock::new(false), &Call::default()).unwrap();
        assert_eq!(
            (scope.conversation.as_deref(), &*scope.roles),
            (Some("0"), &["tool".to_owned()][..])
        );
    }

    #[test]
    fn transcripts_are_left_out_only_if_no_service_may_have_them() {
        let takes = |services: &[&str]| {
            let mut filters = Filters::default();
            assert!(services.iter().all(|service| filters.add("service", service)));
            filters.takes_transcripts()
        };
        assert!(takes(&[]) && takes(&["claude-code"]) && takes(&["archive"]) && takes(&["cod"]));
        assert!(!takes(&["export"]) && !takes(&["chatgpt", "threads"]));
        assert!(takes(&["chatgpt", "codex"]));
    }
}
