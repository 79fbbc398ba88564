//! Builds conversations from imported transcripts.

use std::collections::{HashMap, HashSet};
use std::{borrow::Cow, convert::Infallible, path::Path};

use super::fields::derived_hash;
use super::repeats::{
    History, MessageHolders, Repetitions, TranscriptConversation, conversation_of, is_repeat,
};
use super::tally::ImportHistory;
use super::transcript::{TranscriptEvent, TranscriptReader};
use verbatim_base::model::{AttachedContent, AttachedFile, Conversation, Message};

#[derive(Debug)]
pub(super) struct ConversationBuilder<'a> {
    history: &'a mut ImportHistory,
    file: &'a Path,
    /// Fingerprints of the messages of the transcript.
    fingerprints: HashSet<u64>,
    id: Option<String>,
    is_part: bool,
    seen: Repetitions,
    messages: Vec<Message>,
    /// The positions in `messages`, by the transcript's message ids.
    by_id: HashMap<String, usize>,
    sequence: Vec<u64>,
    files: Vec<AttachedFile>,
}

impl<'a> ConversationBuilder<'a> {
    pub(super) fn new(history: &'a mut ImportHistory, file: &'a Path) -> ConversationBuilder<'a> {
        ConversationBuilder {
            fingerprints: HashSet::new(),
            history,
            file,
            id: None,
            is_part: false,
            seen: Repetitions::default(),
            messages: Vec::new(),
            by_id: HashMap::new(),
            sequence: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Adds an event; returns false if the event is left out.
    pub(super) fn add(&mut self, reader: &TranscriptReader, event: TranscriptEvent) -> bool {
        match event {
            TranscriptEvent::Message(mut message) => {
                let Ok(is_repeat) = is_repeat(self, reader, &message);
                if is_repeat {
                    return false;
                }
                self.by_id.insert(message.id.clone(), self.messages.len());
                if self.id.is_none() {
                    let Ok(found) = conversation_of(self, reader, self.file);
                    let TranscriptConversation { id, is_part } = found;
                    (self.id, self.is_part) = (Some(id), is_part);
                }
                if let (true, Some(id)) = (message.id.starts_with('/'), &self.id) {
                    message.id.insert_str(0, id);
                }
                self.messages.push(message);
            }
            TranscriptEvent::More { id, text } => {
                if let Some(at) = self.by_id.get(&id) {
                    self.messages[*at].content.push_str(&text);
                }
            }
            TranscriptEvent::File { message, name, base64 } => {
                if let Some(message) = self.by_id.get(&message).copied() {
                    let content = AttachedContent::Base64(base64);
                    self.files.push(AttachedFile { message, name, content });
                }
            }
        }
        true
    }

    /// Adds the messages at the end of the transcript, and returns the conversation; `None` if all messages are
    /// repeats.
    pub(super) fn finish(mut self, reader: &TranscriptReader) -> Option<Conversation> {
        for message in reader.at_end() {
            self.add(reader, TranscriptEvent::Message(message));
        }
        let own = reader.id();
        for fingerprint in self.fingerprints.drain() {
            let known = [fingerprint, of_conversation(&own, fingerprint)];
            self.history.fingerprints.extend(known);
        }
        let ConversationBuilder { history, file, id, is_part, messages, sequence, files, .. } =
            self;
        if !sequence.is_empty() {
            history.sequences.entry(reader.id()).or_default().push(sequence);
        }
        let id = id?;
        history.conversations.insert(id.clone());
        let mut times = messages.iter().filter_map(|message| message.create_time);
        let first = times.next();
        let last = times.next_back().or(first);
        Some(Conversation {
            id,
            title: reader.title().map(Cow::into_owned),
            create_time: first.filter(|_| !is_part),
            update_time: last,
            model: reader.model().map(str::to_owned),
            origin: Some(reader.origin(file)),
            messages,
            files,
            is_part,
            ..Conversation::default()
        })
    }
}

/// Returns a fingerprint as that of a conversation's message.
fn of_conversation(id: &str, fingerprint: u64) -> u64 {
    derived_hash(&[id, &format!("{fingerprint:x}")])
}

impl History for ConversationBuilder<'_> {
    type Error = Infallible;
    type File = ();

    fn known(
        &mut self,
        conversations: [&str; 2],
        fingerprints: [u64; 2],
    ) -> Result<MessageHolders<()>, Infallible> {
        let known = &self.history.fingerprints;
        let [in_session, timed] = fingerprints.map(|fingerprint| {
            let is_known = self.fingerprints.contains(&fingerprint)
                || conversations.iter().any(|id| known.contains(&of_conversation(id, fingerprint)));
            is_known.then_some(())
        });
        let anywhere = known.contains(&fingerprints[0]).then_some(());
        Ok(MessageHolders { timed, in_session, anywhere })
    }

    fn add(&mut self, fingerprints: [u64; 2]) -> Result<(), Infallible> {
        self.fingerprints.extend(fingerprints);
        Ok(())
    }

    fn leave_out(&mut self, (): ()) -> Result<(), Infallible> {
        Ok(())
    }

    fn seen(&mut self) -> &mut Repetitions {
        &mut self.seen
    }

    fn record_next(&mut self, _transcript: &str, fingerprint: u64) -> Result<u64, Infallible> {
        self.sequence.push(fingerprint);
        Ok(self.sequence.len() as u64 - 1)
    }

    fn has_begun(&self) -> bool {
        self.id.is_some()
    }

    fn is_at(
        &mut self,
        transcript: &str,
        parent: Option<&str>,
        place: u64,
        fingerprint: u64,
    ) -> Result<bool, Infallible> {
        let sequences = &self.history.sequences;
        let same = sequences.get(transcript);
        let earlier = same.or_else(|| parent.and_then(|parent| sequences.get(parent)));
        let mut earlier = earlier.into_iter().flatten();
        Ok(earlier.any(|it| it.get(place as usize) == Some(&fingerprint)))
    }

    fn has_conversation(&self, id: &str) -> Result<bool, Infallible> {
        Ok(self.history.conversations.contains(id))
    }

    fn may_join(&self, _id: &str) -> Result<bool, Infallible> {
        Ok(true)
    }
}
