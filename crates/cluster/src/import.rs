//! Writes conversations into a copy of the current index. The copy replaces the current index at the end.
//!
//! Invariant: the document of a conversation is sent only after the documents of its messages have arrived.
//! So a killed import can continue where it stopped.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::bulk::{Bulk, line};
use super::client::{Client, HttpRequest, shown};
use super::document::{
    self, ConversationDigest, ConversationDocument, MessageDocument, MessageTally, occurrence,
};
use super::error::{Error, Result};
use super::features::FeatureMaker;
use super::generation::{self, Generation};
use super::gram_code::GramSet;
use super::layout::FORMAT;
use super::view::{self, ClusterConversation, MOST_CONVERSATIONS, Shards};
use verbatim_base::call::Stop;
use verbatim_base::model::{Instant, StoredConversation, StoredMessage};

/// The maximum size of one document in bytes. Clusters accept requests of up to 100 MB.
const LONGEST_DOCUMENT: usize = 95 << 20;

/// The numbers of conversations and messages that an import changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub new_conversations: u64,
    pub updated_conversations: u64,
    pub unchanged_conversations: u64,
    pub new_messages: u64,
    pub(crate) messages: u64,
}

/// A writer of conversations into an index. First all conversations are given to [`Importer::plan`], which
/// finds the changed conversations. Then the changed conversations are given to [`Importer::put`].
pub struct Importer<'a> {
    client: &'a Client,
    stop: &'a Stop,
    /// The index behind the alias now, and its conversations by id.
    current: Option<String>,
    known: HashMap<String, ClusterConversation>,
    changed: HashMap<String, String>,
    /// The number of messages of the conversations that changed.
    pub to_write: u64,
    /// The hashes of all planned ids, to detect repeated ids.
    met: HashSet<i64>,
    target: Option<Generation>,
    /// The hashes of the conversations that an earlier attempt wrote, by id.
    written: HashMap<String, String>,
    bulk: Option<Bulk<'a>>,
    features: FeatureMaker,
    grams: GramSet,
    imported: Imported,
}

impl<'a> Importer<'a> {
    /// Makes an importer. Reads the stored conversations, and fails if the cluster does not answer.
    pub fn new(client: &'a Client, stop: &'a Stop) -> Result<Importer<'a>> {
        let current = generation::current(client, stop)?;
        let known = match &current {
            Some(current) => view::conversations(client, current, stop)?,
            None => Vec::new(),
        };
        let known = known.into_iter().map(|it| (it.stored.id.clone(), it)).collect();
        Ok(Importer::with_known(client, current, known, stop))
    }

    fn with_known(
        client: &'a Client,
        current: Option<String>,
        known: HashMap<String, ClusterConversation>,
        stop: &'a Stop,
    ) -> Importer<'a> {
        Importer {
            client,
            stop,
            current,
            known,
            changed: HashMap::new(),
            to_write: 0,
            met: HashSet::new(),
            target: None,
            written: HashMap::new(),
            bulk: None,
            features: FeatureMaker::default(),
            grams: GramSet::default(),
            imported: Imported::default(),
        }
    }

    /// Records whether a conversation changed since its last import.
    pub fn plan(
        &mut self,
        conversation: &StoredConversation,
        messages: &[StoredMessage],
    ) -> Result<()> {
        let id = &conversation.id;
        if !self.met.insert(document::hash(id)) {
            let why = format!("two of its conversations have the id {:?}", shown(id));
            return Err(self.client.refused(why));
        }
        let mut digest = ConversationDigest::new(conversation);
        messages.iter().for_each(|message| digest.add(message));
        let digest = digest.finish();
        self.imported.messages += messages.len() as u64;
        match self.known.get(id) {
            Some(known) if known.digest == digest => self.imported.unchanged_conversations += 1,
            known => {
                if known.is_some() {
                    self.imported.updated_conversations += 1;
                } else {
                    self.imported.new_conversations += 1;
                }
                self.changed.insert(id.clone(), digest);
                self.to_write += messages.len() as u64;
            }
        }
        Ok(())
    }

    /// Makes the index to write to, or finds the index that an earlier attempt of the same import began.
    /// Returns whether there is anything to write.
    pub fn begin(&mut self) -> Result<bool> {
        if self.changed.is_empty() && self.current.is_some() {
            return Ok(false);
        }
        if self.known.len() as u64 + self.imported.new_conversations > MOST_CONVERSATIONS as u64 {
            return Err(self.client.refused(view::too_many()));
        }
        let mut all: Vec<(&String, &String)> = self.changed.iter().collect();
        all.sort_unstable();
        let import = document::conversation_name(&format!("{all:?}"));
        self.target = Some(self.begun_or_new(&import, true)?);
        Ok(true)
    }

    /// Returns an importer that writes all conversations of the current index into a new index. Continues an
    /// earlier attempt, if there is one.
    pub(super) fn for_rebuild(
        client: &'a Client,
        current: &str,
        all: &[ClusterConversation],
        stop: &'a Stop,
    ) -> Result<Importer<'a>> {
        let digests = all.iter().map(|it| (it.stored.id.clone(), it.digest.clone()));
        let mut importer =
            Importer::with_known(client, Some(current.to_owned()), HashMap::new(), stop);
        importer.changed = digests.collect();
        let name = document::conversation_name(&format!("{current} anew, format {FORMAT}"));
        importer.target = Some(importer.begun_or_new(&name, false)?);
        Ok(importer)
    }

    /// Returns the index that an earlier attempt began, or makes one: a copy of the current index, or empty.
    fn begun_or_new(&mut self, import: &str, is_copy: bool) -> Result<Generation> {
        let base = self.current.clone().unwrap_or_default();
        let begun = generation::all(self.client, self.stop)?.into_iter().find(|it| {
            it.is_current()
                && it.import == import
                && it.base == base
                && Some(&it.name) != self.current.as_ref()
        });
        let begun = match begun {
            Some(begun) => self.is_usable(&begun)?.then_some(begun),
            None => None,
        };
        let target = match begun {
            Some(begun) => {
                let written = view::conversations(self.client, &begun.name, self.stop)?;
                self.written = written.into_iter().map(|it| (it.stored.id, it.digest)).collect();
                begun
            }
            None => {
                let current = self.current.as_deref();
                generation::begin(self.client, current, import, is_copy, self.stop)?
            }
        };
        self.bulk = Some(Bulk::new(self.client, self.stop, &target.name));
        Ok(target)
    }

    /// Returns whether the work on an unfinished index can continue. If a lost node had the only copy
    /// of a shard, the index is deleted.
    fn is_usable(&self, begun: &Generation) -> Result<bool> {
        match generation::wait_for(self.client, &begun.name, "yellow", self.stop) {
            Ok(()) => self.refresh(&begun.name).map(|()| true),
            Err(Error::Stopped) => Err(Error::Stopped),
            Err(_) => generation::delete(self.client, &begun.name, self.stop).map(|()| false),
        }
    }

    /// Returns the ids of the conversations that must be given to `Importer::put`.
    pub fn ids_to_put(&self) -> HashSet<String> {
        self.changed
            .iter()
            .filter(|(id, digest)| self.written.get(*id) != Some(*digest))
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Writes a conversation. Keeps messages of earlier imports that the conversation no longer has.
    pub fn put(
        &mut self,
        conversation: &StoredConversation,
        messages: Vec<StoredMessage>,
    ) -> Result<()> {
        let id = conversation.id.clone();
        let Some(digest) = self.changed.get(&id).cloned() else { return Ok(()) };
        let Some(bulk) = &mut self.bulk else { return Ok(()) };
        let known = self.known.get(&id);
        let (conversation, messages) = match (known, &self.current) {
            (Some(known), Some(current)) => {
                let old = view::messages(self.client, current, known, self.stop)?;
                let old: Vec<StoredMessage> = old.into_iter().map(|(_, old)| old).collect();
                let before = old.len() as u64;
                let merged = merge_versions(&known.stored, old, conversation, messages);
                self.imported.new_messages += (merged.1.len() as u64).saturating_sub(before);
                merged
            }
            _ => {
                self.imported.new_messages += messages.len() as u64;
                (conversation.clone(), messages)
            }
        };
        let names = document::message_names(&id);
        let mut tally = MessageTally::default();
        // Names contain the message's place, so that the messages around it can be found by name.
        let mut messages = messages;
        messages.sort_by_key(|message| (message.position, message.time, message.row));
        for (place, message) in (0..).zip(&messages) {
            tally.add(message);
            let name = format!("{names}{place}");
            let mut document = MessageDocument::new(&id, message, &name, &mut self.grams);
            self.features.add(&mut document, place, message);
            let line = line(self.client, &name, &document)?;
            if line.len() > LONGEST_DOCUMENT {
                let why = format!(
                    "message {:?} of conversation {:?} takes {} bytes, and a cluster takes {}",
                    shown(&message.id),
                    shown(&id),
                    line.len(),
                    LONGEST_DOCUMENT
                );
                return Err(self.client.refused(why));
            }
            bulk.add(&line)?;
        }
        let mut document = ConversationDocument::new(&conversation, digest, tally);
        self.features.add_summary(&mut document, &conversation, &messages);
        debug_assert_eq!(document.turns(), messages.len());
        bulk.add_after(line(self.client, &document::conversation_name(&id), &document)?);
        Ok(())
    }

    /// Sends the remaining documents, makes all documents visible, and replaces the current index.
    pub fn finish(mut self) -> Result<Imported> {
        let Some(target) = self.target.take() else { return Ok(self.imported) };
        if let Some(bulk) = self.bulk.take() {
            bulk.finish()?;
        }
        self.refresh(&target.name)?;
        self.check(&target.name)?;
        generation::complete(self.client, &target, self.stop)?;
        generation::publish(self.client, &target, self.stop)?;
        // The import is complete. If this fails, the next import deletes the old indexes.
        let _ = generation::tidy(self.client, &target, self.stop);
        Ok(self.imported)
    }

    fn refresh(&self, index: &str) -> Result<()> {
        #[derive(Deserialize)]
        struct Refreshed {
            #[serde(rename = "_shards")]
            shards: Shards,
        }
        let what = "make documents visible";
        let call = HttpRequest::import(what, "POST", format!("/{index}/_refresh"));
        match self.client.ask::<Refreshed>(call, self.stop)?.shards.failed {
            0 => Ok(()),
            failed => Err(self.client.failed(what, format!("{failed} shards failed"))),
        }
    }

    /// Fails unless the index has as many messages as its conversations record.
    fn check(&self, index: &str) -> Result<()> {
        let (there, expected) = view::messages_there(self.client, index, self.stop)?;
        if there == expected {
            return Ok(());
        }
        // A node that restarted may have lost messages that it had acknowledged. The next attempt would
        // trust the stored conversations, so the index is deleted.
        generation::delete(self.client, index, self.stop)?;
        let why = format!("the index has {there} of {expected} messages; do it again");
        Err(self.client.failed("check what was written", why))
    }
}

/// Merges a new version of a conversation into the old version, like an import into a database: an older
/// version only adds messages, and messages that the new version lacks come last.
fn merge_versions(
    old: &StoredConversation,
    old_messages: Vec<StoredMessage>,
    new: &StoredConversation,
    new_messages: Vec<StoredMessage>,
) -> (StoredConversation, Vec<StoredMessage>) {
    let is_older = last_change(new, &new_messages) < last_change(old, &old_messages);
    let (kept, first, second) = if is_older {
        (old, old_messages, new_messages)
    } else {
        (new, new_messages, old_messages)
    };
    let keys: HashSet<(String, u32)> = {
        let mut seen = HashMap::new();
        first.iter().map(|it| (it.id.clone(), occurrence(&mut seen, &it.id))).collect()
    };
    let is_extra: Vec<bool> = {
        let mut seen = HashMap::new();
        second
            .iter()
            .map(|it| {
                let count = occurrence(&mut seen, it.id.as_str());
                !keys.contains(&(it.id.clone(), count))
            })
            .collect()
    };
    let mut last = first.iter().filter_map(|message| message.position).max();
    let mut all = first;
    for (mut message, is_extra) in second.into_iter().zip(is_extra) {
        if is_extra {
            last = last.map(|last| last.saturating_add(1));
            message.position = last.or(message.position);
            all.push(message);
        }
    }
    let mut conversation = kept.clone();
    let other = if is_older { new } else { old };
    conversation.title = conversation.title.or_else(|| other.title.clone());
    conversation.origin = conversation.origin.or_else(|| other.origin.clone());
    conversation.provenance = conversation.provenance.or_else(|| other.provenance.clone());
    conversation.model = conversation.model.or_else(|| other.model.clone());
    (conversation, all)
}

fn last_change(conversation: &StoredConversation, messages: &[StoredMessage]) -> Option<Instant> {
    conversation.updated.or_else(|| messages.iter().filter_map(|message| message.time).max())
}
