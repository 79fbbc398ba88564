//! Lists of conversations with or without messages. If no message has a time, the times of the
//! conversation itself are used.

use std::{collections::HashMap, sync::Arc};

use crate::error::Result;
use crate::source::kind::SourceKind;
use crate::source::reader::Listing;
use crate::source::scope::{About, Scope, shared_start};
use crate::source::store::{Source, Timeless};
use verbatim_base::model::{Instant, Origin};
use verbatim_base::{call::Call, lock::lock};
use verbatim_chats::db::{self, Outline};

impl Source {
    /// Lists the conversations in a scope like [`Reader::list`](super::reader::Reader::list), and also
    /// conversations of an export and threads without messages.
    pub(crate) fn sessions(&self, scope: &Scope, call: &Call) -> Result<Box<dyn Listing>> {
        let reader = self.reader(call);
        let listing = reader.list(scope, call)?;
        let timeless = self.timeless(call)?;
        if timeless.is_empty() {
            return Ok(listing);
        }
        let mut entries = Vec::new();
        let is_dated = scope.since.is_some() || scope.until.is_some();
        for place in 0..listing.len() {
            let own = match listing.last(place) {
                Some(_) => None,
                None => timeless.get(listing.heading(place).0).cloned(),
            };
            entries.push(SessionEntry { place: Some((0, place)), own });
        }
        let mut lists = vec![listing];
        if is_dated {
            let undated = Scope { since: None, until: None, ..scope.clone() };
            let listing = reader.list(&undated, call)?;
            for place in 0..listing.len() {
                let own = timeless.get(listing.heading(place).0);
                if let Some(own) = own.filter(|own| scope.covers(own.begun, own.last)) {
                    entries.push(SessionEntry { place: Some((1, place)), own: Some(own.clone()) });
                }
            }
            lists.push(listing);
        }
        let left_out = self.left_out(call)?;
        for own in timeless.values() {
            if own.turns == 0
                && scope.roles.is_empty()
                && scope.accepts_id(self.kind, &own.id)
                && scope.accepts_origin(self.kind, None)
                && scope.covers(own.begun, own.last)
                && !left_out.contains(&own.id)
            {
                entries.push(SessionEntry { place: None, own: Some(own.clone()) });
            }
        }
        let sessions = Sessions { kind: self.kind, lists, entries: Vec::new() };
        entries.sort_by(|a, b| {
            let order = sessions.last_of(b).cmp(&sessions.last_of(a));
            order.then_with(|| sessions.heading_of(a).0.cmp(sessions.heading_of(b).0))
        });
        Ok(Box::new(Sessions { entries, ..sessions }))
    }

    /// Returns the description of a conversation, which may have no messages.
    pub(crate) fn session_about(&self, id: &str, call: &Call) -> Result<Option<About>> {
        let scope = Scope { conversation: Some(id.to_owned()), ..Scope::default() };
        let sessions = self.sessions(&scope, call)?;
        Ok((!sessions.is_empty()).then(|| sessions.about(0)))
    }

    /// Returns a function like [`Listing::shared_start`] that compares an id with the ids of conversations
    /// without messages.
    pub(crate) fn shared_with_empty(&self, call: &Call) -> Result<impl Fn(&str) -> usize> {
        let timeless = self.timeless(call)?;
        Ok(move |id: &str| {
            let others = timeless.keys().filter(|other| *other != id);
            others.map(|other| shared_start(id, other)).max().unwrap_or(0)
        })
    }

    /// Returns the conversations in which no message has a time. Returns none for a cluster, which does not
    /// store such conversations, and none for transcripts, whose conversations begin with their first
    /// message.
    fn timeless(&self, call: &Call) -> Result<Arc<HashMap<String, Outline>>> {
        if self.kind.has_origins() || self.database().is_none() {
            return Ok(Arc::default());
        }
        let (path, state) = self.on_database(|path| Ok((path.to_owned(), db::state(path)?)))?;
        if let Some(known) = &*lock(&self.state.timeless)
            && known.path == path
            && known.state == state
        {
            return Ok(Arc::clone(&known.outlines));
        }
        let outlines = Arc::new(self.fact("timeless", call, || self.read_timeless(call))?);
        let known = Timeless { path, state, outlines: Arc::clone(&outlines) };
        *lock(&self.state.timeless) = Some(known);
        Ok(outlines)
    }

    fn read_timeless(&self, call: &Call) -> Result<HashMap<String, Outline>> {
        let listing = self.whole_reader(call).list(&Scope::default(), call)?;
        let places: HashMap<&str, usize> =
            (0..listing.len()).map(|place| (listing.heading(place).0, place)).collect();
        let rows = self.on_database(|path| {
            db::read_tables(path, call, |database| {
                db::conversation_rows(database, &|id: &str| {
                    places.get(id).is_none_or(|place| listing.last(*place).is_none())
                })
            })
        })?;
        let mut timeless = HashMap::new();
        for row in rows {
            let turns = places.get(&*row.id).map_or(0, |place| listing.turns(*place));
            timeless.insert(row.id.clone(), Outline { turns, ..row });
        }
        Ok(timeless)
    }
}

/// A conversation. `place` is its list and its position in the list, if it has messages. `own` is its row,
/// if none of its messages has a time.
struct SessionEntry {
    place: Option<(usize, usize)>,
    own: Option<Outline>,
}

struct Sessions {
    kind: SourceKind,
    lists: Vec<Box<dyn Listing>>,
    entries: Vec<SessionEntry>,
}

impl Sessions {
    fn last_of(&self, SessionEntry { place, own }: &SessionEntry) -> Option<Instant> {
        let listed = place.and_then(|(list, place)| self.lists[list].last(place));
        listed.or(own.as_ref().and_then(|own| own.last))
    }

    fn heading_of<'a>(
        &'a self,
        SessionEntry { place, own }: &'a SessionEntry,
    ) -> (&'a str, &'a str) {
        match (place, own) {
            (Some((list, place)), _) => self.lists[*list].heading(*place),
            (None, Some(own)) => (&own.id, &own.title),
            (None, None) => ("", ""),
        }
    }
}

impl Listing for Sessions {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn last(&self, place: usize) -> Option<Instant> {
        self.last_of(&self.entries[place])
    }

    fn heading(&self, place: usize) -> (&str, &str) {
        self.heading_of(&self.entries[place])
    }

    fn turns(&self, place: usize) -> u32 {
        self.entries[place].place.map_or(0, |(list, place)| self.lists[list].turns(place))
    }

    fn origin(&self, place: usize) -> Option<&Origin> {
        self.entries[place].place.and_then(|(list, place)| self.lists[list].origin(place))
    }

    fn describe(&self, place: usize, with_summary: bool) -> About {
        let SessionEntry { place, own } = &self.entries[place];
        let own = own.clone().unwrap_or_default();
        let Some((list, place)) = place else {
            return About::of_outline(self.kind, own, Origin::default());
        };
        let about = self.lists[*list].describe(*place, with_summary);
        About { begun: about.begun.or(own.begun), last: about.last.or(own.last), ..about }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestExport;

    /// Returns the ids of the conversations of an export, with or without messages.
    fn ids(export: &TestExport) -> Vec<String> {
        let source = export.engine.sources().remove(0);
        let sessions = source.sessions(&Scope::default(), &Call::default()).unwrap();
        (0..sessions.len()).map(|place| sessions.heading(place).0.to_owned()).collect()
    }

    #[test]
    fn conversations_without_times_are_last_whether_few_or_many() {
        let export = TestExport::indexed(&["red", "blue"]);
        assert_eq!(ids(&export), ["1", "0"]);
        let add = |sql: &str| export.connection.execute_batch(sql).unwrap();
        add("INSERT INTO conversations VALUES ('a', 'Empty'), ('b', 'Timeless');
            INSERT INTO messages VALUES ('x', 'b', 'user', 'green', NULL);");
        let mut expected = vec!["1".to_owned(), "0".to_owned(), "a".to_owned(), "b".to_owned()];
        for many in [0, 600] {
            let more = (0..many).map(|number| format!("c{number:03}"));
            for id in more {
                add(&format!("INSERT INTO conversations VALUES ('{id}', NULL)"));
                expected.push(id);
            }
            assert_eq!(ids(&export), expected, "without an index");
            export.reindex();
            assert_eq!(ids(&export), expected, "with an index");
        }
        add("INSERT INTO conversations VALUES (NULL, 'No id'), (x'64', 'Bytes')");
        expected.insert(2, String::new());
        expected.push("d".to_owned());
        assert_eq!(ids(&export), expected);
    }
}
