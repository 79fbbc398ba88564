//! Ranking by an index that is older than its database, without showing deleted messages.

use std::collections::HashMap;

use super::{
    fuse::Scored,
    question::Match,
    ranker::{ConversationPlace, Ranker},
    sources::RankedSource,
};
use crate::{
    error::Error,
    source::{Description, Note},
};

impl Ranker<'_> {
    /// Checks whether messages from outdated indexes are still in their databases. Returns whether it found
    /// deleted messages.
    pub(super) fn check(&mut self, sources: &[RankedSource], scored: &[Scored]) -> bool {
        let mut has_found = false;
        for (place, source) in sources.iter().enumerate() {
            let Some(checked) = &source.checked else { continue };
            let mut checked = checked.borrow_mut();
            let here = scored.iter().filter(|it| it.source == place).map(|it| it.doc_id);
            let new: Vec<u32> = here.filter(|doc_id| checked.seen.insert(*doc_id)).collect();
            let changed = source.source.changed_or_deleted(&checked.snapshot, &new, self.stop);
            // If the database cannot be read, none of its messages is shown.
            let changed = changed.unwrap_or_else(|error| {
                self.note_unreadable(source, &error);
                new.into_iter().collect()
            });
            has_found |= !changed.is_empty();
            checked.changed_or_deleted.extend(changed);
        }
        has_found
    }

    /// Gives messages from outdated indexes their current titles and line numbers from the databases.
    pub(super) fn as_they_are_now(
        &mut self,
        sources: &[RankedSource],
        mut matches: Vec<Match>,
    ) -> Vec<Match> {
        for source in sources.iter().filter(|source| source.checked.is_some()) {
            let here = matches.iter().filter(|it| it.source == source.kind);
            let ids: Vec<&str> = here.map(|it| &*it.hit.conversation_id).collect();
            let descriptions = self.current_descriptions(source, &ids);
            matches.retain_mut(|it| {
                if it.source != source.kind {
                    return true;
                }
                let description = descriptions.get(&*it.hit.conversation_id);
                description.inspect(|description| it.place_in(description)).is_some()
            });
        }
        matches
    }

    /// Reads the descriptions of conversations from the databases, because their indexes are outdated.
    pub(super) fn descriptions_of_outdated(
        &mut self,
        sources: &[RankedSource],
        conversations: &[ConversationPlace],
    ) -> HashMap<ConversationPlace, Description> {
        let mut found = HashMap::new();
        for (place, source) in sources.iter().enumerate().filter(|(_, it)| it.checked.is_some()) {
            let here = conversations.iter().filter(|(source, _)| *source == place);
            let ids: Vec<(String, ConversationPlace)> =
                here.map(|key| (source.scorer.about(key.1).id, *key)).collect();
            let names: Vec<&str> = ids.iter().map(|(id, _)| id.as_str()).collect();
            let mut descriptions = self.current_descriptions(source, &names);
            found.extend(ids.iter().filter_map(|(id, key)| Some((*key, descriptions.remove(id)?))));
        }
        found
    }

    fn current_descriptions(
        &mut self,
        source: &RankedSource,
        ids: &[&str],
    ) -> HashMap<String, Description> {
        let descriptions = source.source.descriptions(ids, true, self.stop);
        descriptions.unwrap_or_else(|error| {
            self.note_unreadable(source, &error);
            HashMap::new()
        })
    }

    fn note_unreadable(&mut self, source: &RankedSource, error: &Error) {
        self.note(Note::Unreadable { source: source.kind, reason: error.reason() });
    }
}

impl Match {
    /// Sets the title and the line number from the current state of the conversation in the database.
    pub(super) fn place_in(&mut self, description: &Description) {
        self.line = description.line(&self.hit);
        self.hit.title = description.about.own_title().to_owned().into();
    }
}

#[cfg(test)]
mod tests {
    use crate::{Engine, Fields, Mode, Question, TestExport, source::Note};
    use verbatim_base::model::Stop;

    /// Returns an indexed export, and an engine that does not refresh its index.
    fn older(texts: &[&str]) -> (TestExport, Engine) {
        let export = TestExport::indexed(texts);
        let mut config = export.engine.config().clone();
        config.leave_indexes = true;
        let engine = Engine::new(config);
        // The first question builds terms and vectors. The second question opens the index in `engine`,
        // because an outdated index is used only while it is open.
        for engine in [&export.engine, &engine] {
            let ranking = engine.rank(&question("turtle", Mode::Both, 2), &Stop::never()).unwrap();
            assert_eq!(ranking.notes, []);
        }
        (export, engine)
    }

    fn question(text: &str, mode: Mode, limit: usize) -> Question {
        Question { concepts: vec![text.to_owned()], mode, limit, ..Question::default() }
    }

    #[test]
    fn an_older_index_shows_no_message_that_was_deleted_or_changed() {
        let (export, engine) =
            older(&["turtle reef", "turtle bay", "turtle isle", "turtle pond", "a dog"]);
        let change = "DELETE FROM messages WHERE id = 'm0';
            UPDATE messages SET content = 'turtle secret' WHERE id = 'm1';
            DELETE FROM conversations WHERE id = '2';
            UPDATE conversations SET title = 'A new title' WHERE id = '3';
            INSERT INTO messages VALUES ('m3a', '3', 'user', 'before it', 1600000000)";
        export.connection.execute_batch(change).unwrap();
        for mode in [Mode::Text, Mode::Vector, Mode::Both] {
            let ranking = engine.rank(&question("turtle", mode, 2), &Stop::never()).unwrap();
            let found: Vec<&str> = ranking.items.iter().map(|it| &*it.hit.message_id).collect();
            assert_eq!(found.first(), Some(&"m3"), "{mode:?}: {found:?}");
            assert!(!found.iter().any(|id| ["m0", "m1", "m2"].contains(id)), "{mode:?}: {found:?}");
            let first = &ranking.items[0];
            assert_eq!((&*first.hit.title, first.line), ("A new title", 2), "{mode:?}");
            assert!(matches!(ranking.notes[..], [Note::OlderIndex { .. }]), "{:?}", ranking.notes);
        }
    }

    #[test]
    fn what_is_gone_is_replaced_by_the_next_best() {
        let many: Vec<String> = (0..450).map(|number| format!("turtle number {number}")).collect();
        let mut texts: Vec<&str> = many.iter().map(String::as_str).collect();
        texts.push("a long text in which, after many other words, some turtle appears as well");
        let (export, engine) = older(&texts);
        export.connection.execute("DELETE FROM messages WHERE id <> 'm450'", []).unwrap();
        let ranking = engine.rank(&question("turtle", Mode::Both, 5), &Stop::never()).unwrap();
        let found: Vec<&str> = ranking.items.iter().map(|it| &*it.hit.message_id).collect();
        assert_eq!(found, ["m450"]);
    }

    #[test]
    fn conversations_of_an_older_index_are_described_as_they_are_now() {
        let secret = "The turtle named Shelly lives in the reef behind the old harbour.";
        let (export, engine) = older(&[secret, "A turtle swims.", "Another turtle swims."]);
        let change = "DELETE FROM messages WHERE id = 'm0';
            INSERT INTO messages VALUES ('n0', '0', 'user', 'nothing', 1700000100);
            DELETE FROM messages WHERE id = 'm1';
            UPDATE conversations SET title = 'Turtles' WHERE id = '2'";
        export.connection.execute_batch(change).unwrap();
        for fields in [Fields::Both, Fields::Summaries, Fields::Messages] {
            let question = Question { fields, ..question("turtle", Mode::Both, 5) };
            let ranking = engine.rank_conversations(&question, &Stop::never()).unwrap();
            let shown = format!("{:?}", ranking.items);
            assert!(!shown.contains("Shelly"), "{fields:?}: {shown}");
            let ids: Vec<&str> = ranking.items.iter().map(|item| item.about.id.as_str()).collect();
            assert!(!ids.contains(&"1"), "{fields:?}: {ids:?}");
            let last = ranking.items.iter().find(|item| item.about.id == "2");
            let title = last.map(|item| item.about.title.as_str());
            assert!(fields == Fields::Summaries || title == Some("Turtles"), "{fields:?}: {ids:?}");
        }
    }
}
