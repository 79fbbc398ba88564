//! An exact search of all sources, as every face asks it, and its hits by conversation.

use std::{collections::HashMap, ops::ControlFlow};

use super::marks::Marks;
use super::nothing::{has_nearest, sentence};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Instant, Request};
use verbatim_engine::{
    ConversationKey, Count, Engine, MoreAlike, Note, QueryReading, Render, Result, Scope, Searched,
};
use verbatim_text::excerpt::Piece;

/// An exact search.
pub struct ExactSearch<'a> {
    engine: &'a Engine,
    /// What is searched for. Its limit is not used.
    pub request: Request,
    /// Where it is searched for.
    pub scope: Scope,
    /// Whether the oldest messages come first.
    pub oldest_first: bool,
    /// What matches in texts.
    pub marks: Marks,
    call: Call,
}

/// What to say about a search that found nothing.
pub struct NothingFound {
    /// The sentence that nothing matches.
    pub sentence: String,
    /// Other readings of the texts, which find something.
    pub readings: Vec<QueryReading>,
    /// Whether there are no readings, but messages that are near by meaning.
    pub has_nearest: bool,
}

impl<'a> ExactSearch<'a> {
    /// Returns a search. Fails if a text is no expression, or too long.
    pub fn new(
        engine: &'a Engine,
        request: Request,
        scope: Scope,
        call: &Call,
    ) -> Result<ExactSearch<'a>> {
        let marks = Marks::of(&request)?;
        let call = call.clone();
        Ok(ExactSearch { engine, request, scope, oldest_first: false, marks, call })
    }

    /// Passes what `make` makes of the hits to `show`, in order, until it breaks. Each source may stop after
    /// `limit` hits; `show` must count them.
    pub fn each<T: Send>(
        &self,
        limit: Option<usize>,
        render: Render<'_, T>,
        show: &mut dyn FnMut(T) -> ControlFlow<()>,
    ) -> Result<Searched> {
        let request = Request { limit, ..self.request.clone() };
        let sources = self.engine.all_sources();
        if self.oldest_first {
            sources.search_oldest(&request, &self.scope, &self.call, render.make, show)
        } else {
            sources.search(&request, &self.scope, &self.call, render, show)
        }
    }

    /// Returns whether only the title of a hit's conversation matches, and not the message.
    pub fn is_title_only(&self, hit: &Hit<'_>) -> bool {
        self.marks.has_only_title(&hit.content, &hit.title)
    }

    /// Returns whether anything matches.
    pub fn finds(&self) -> Result<bool> {
        self.engine.all_sources().finds(&self.request, &self.scope, &self.call)
    }

    /// Returns the messages that match if signs of equal look do, and not as it is.
    pub fn more_alike(&self) -> Option<MoreAlike> {
        self.engine.more_alike(&self.request, &self.scope, &self.call)
    }

    /// Counts everything that matches.
    pub fn count(&self) -> Result<(Count, Vec<Note>)> {
        self.engine.all_sources().count(&self.request, &self.scope, &self.call)
    }

    /// Returns whether the search leaves out messages by their filters.
    pub fn has_filters(&self) -> bool {
        self.scope != Scope::default()
    }

    /// Returns at most `most` other readings of the texts, which find something. Tries them.
    pub fn readings(&self, most: usize) -> Vec<QueryReading> {
        self.engine.readings(&self.request, &self.scope, most, &self.call)
    }

    /// Returns what to say if nothing was found, with at most `most` readings. Tries them.
    pub fn nothing(&self, most: usize) -> NothingFound {
        let readings = self.readings(most);
        let has_nearest =
            readings.is_empty() && has_nearest(self.engine, &self.request, &self.scope, &self.call);
        let sentence = sentence(&self.request, &readings, self.has_filters());
        NothingFound { sentence, readings, has_nearest }
    }
}

/// Conversations in the order of their first hit, with what a face keeps of their messages.
#[derive(Debug)]
pub struct Grouping<T> {
    places: HashMap<ConversationKey, usize>,
    /// The conversations.
    pub conversations: Vec<GroupedConversation<T>>,
}

/// A conversation with hits.
#[derive(Debug)]
pub struct GroupedConversation<T> {
    /// The source and the id.
    pub key: ConversationKey,
    /// The title in pieces; empty if it is not shown.
    pub title: Vec<Piece>,
    /// The time of the first hit.
    pub time: Option<Instant>,
    /// The number of messages that match; 0 if only the title does.
    pub messages: usize,
    /// What is kept of messages.
    pub kept: Vec<T>,
}

impl<T> Default for Grouping<T> {
    fn default() -> Grouping<T> {
        Grouping { places: HashMap::new(), conversations: Vec::new() }
    }
}

impl<T> Grouping<T> {
    /// Counts a hit of a conversation, which is new if it had none. Returns the place of the conversation.
    pub fn add(
        &mut self,
        key: ConversationKey,
        title: Vec<Piece>,
        time: Option<Instant>,
        is_title_only: bool,
    ) -> usize {
        let conversations = &mut self.conversations;
        let place = *self.places.entry(key).or_insert_with_key(|key| {
            let key = key.clone();
            conversations.push(GroupedConversation {
                key,
                title,
                time,
                messages: 0,
                kept: Vec::new(),
            });
            conversations.len() - 1
        });
        conversations[place].messages += usize::from(!is_title_only);
        place
    }

    /// Returns the number of messages that match.
    pub fn messages(&self) -> usize {
        self.conversations.iter().map(|conversation| conversation.messages).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_export::TestExport;
    use verbatim_base::model::Matching;
    use verbatim_engine::{Make, SourceKind};

    fn search<'a>(export: &'a TestExport, text: &str, scope: Scope) -> ExactSearch<'a> {
        let (text, matching) = (text.to_owned(), Matching::Literal);
        let request = Request { text, matching, ..Request::default() };
        ExactSearch::new(&export.engine, request, scope, &Call::default()).unwrap()
    }

    #[test]
    fn hits_come_in_either_order() {
        let export = TestExport::indexed(&["red one", "blue", "red two"]);
        let mut asked = search(&export, "red", Scope::default());
        let mut ids = || {
            let mut ids = Vec::new();
            let make: Make<'_, _> = &|_, hit: Hit<'_>| Some(hit.message_id.into_owned());
            asked
                .each(None, make.into(), &mut |id| {
                    ids.push(id);
                    ControlFlow::Continue(())
                })
                .unwrap();
            asked.oldest_first = !asked.oldest_first;
            ids
        };
        let (newest, mut oldest) = (ids(), ids());
        oldest.reverse();
        assert_eq!((newest.len(), &newest), (2, &oldest));
        assert!(search(&export, "red", Scope::default()).finds().unwrap());
        assert!(!search(&export, "green", Scope::default()).finds().unwrap());
        // Every title is "title" and a number.
        let (count, _) = search(&export, "title 1", Scope::default()).count().unwrap();
        assert_eq!((count.messages, count.titles), (0, 1));
    }

    #[test]
    fn a_message_with_one_of_the_texts_is_no_title() {
        // Every title is "title" and a number.
        let export = TestExport::indexed(&["red fox", "blue"]);
        let count = |text: &str, and: &[&str], matching| {
            let and = and.iter().map(|&text| text.to_owned()).collect();
            let request = Request { text: text.to_owned(), and, matching, ..Request::default() };
            let (engine, call) = (&export.engine, Call::default());
            let search = ExactSearch::new(engine, request, Scope::default(), &call).unwrap();
            let (count, _) = search.count().unwrap();
            (count.messages, count.titles)
        };
        assert_eq!(count("title", &[], Matching::Literal), (0, 2));
        assert_eq!(count("title", &["red"], Matching::Literal), (1, 0));
        assert_eq!(count("title", &["0"], Matching::Literal), (0, 1));
        // Each text matches, though nothing in it can be marked.
        assert_eq!(count("title|$", &[], Matching::Regex), (2, 0));
    }

    #[test]
    fn without_a_hit_it_says_what_finds_something() {
        let export = TestExport::indexed(&["the red fox"]);
        let nothing = search(&export, "fox red", Scope::default()).nothing(3);
        assert_eq!(nothing.sentence, "no message has \"fox red\" as one text");
        assert!(!nothing.readings.is_empty() && !nothing.has_nearest);
        let scope = Scope { roles: vec!["nobody".to_owned()], ..Scope::default() };
        let nothing = search(&export, "red fox", scope).nothing(3);
        assert_eq!(nothing.sentence, "no message has \"red fox\" within these filters");
    }

    #[test]
    fn hits_are_grouped_by_conversation() {
        let key = |id: &str| (SourceKind::Export, id.to_owned());
        let mut grouping: Grouping<u32> = Grouping::default();
        for (number, (id, is_title_only)) in
            (0..).zip([("a", false), ("b", true), ("a", false), ("b", true)])
        {
            let place = grouping.add(key(id), Vec::new(), None, is_title_only);
            grouping.conversations[place].kept.push(number);
        }
        let all: Vec<_> =
            grouping.conversations.iter().map(|it| (&*it.key.1, it.messages, &*it.kept)).collect();
        assert_eq!(all, [("a", 2, &[0, 2][..]), ("b", 0, &[1, 3][..])]);
        assert_eq!(grouping.messages(), 2);
    }
}
