//! The documents of an index: messages and conversations.

use std::collections::{BTreeSet, HashMap};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::gram_code::{GramSet, LONG_GRAM, PAIR, TRIPLE, code, fold_text};
use verbatim_base::model::{Instant, Origin, Provenance, StoredConversation, StoredMessage};
use verbatim_text::{like::is_regular, loose};

pub(super) const MESSAGE: &str = "m";

pub(super) const CONVERSATION: &str = "c";

/// The maximum length, in bytes, of a text without grams of five characters (except those of one repeated
/// letter). A longer text contains most of the frequent grams of three characters. These hardly narrow a
/// search, so the text has grams of five characters too.
const SHORT_TEXT: usize = 1_000;

/// The number of bytes of the hash in a document's name. Base64 encodes it without padding.
const HASH_BYTES: usize = 12;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MessageDocument {
    kind: String,
    pub(super) c: i64,
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) role: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rh: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p: Option<i64>,
    r: i64,
    k: i64,
    /// The content, if it is valid UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    t: Option<String>,
    /// The content in Base64, if it is not valid UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<String>,
    /// The text of JSON parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    d: Option<String>,
    /// The fields `t` and `d` of long messages in earlier formats.
    #[serde(skip_serializing)]
    lt: Option<String>,
    #[serde(skip_serializing)]
    ld: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Whether the content is irregular. Then it has no reliable grams, and is a candidate in every search.
    #[serde(default, skip_serializing_if = "is_false")]
    odd: bool,
    /// The folded characters of the texts, and the grams of two, three and five of them, each once. Not in
    /// `_source`.
    #[serde(skip_deserializing, skip_serializing_if = "String::is_empty")]
    o: String,
    #[serde(skip_deserializing, skip_serializing_if = "String::is_empty")]
    g: String,
    #[serde(skip_deserializing, skip_serializing_if = "String::is_empty")]
    q: String,
    #[serde(skip_deserializing, skip_serializing_if = "String::is_empty")]
    h: String,
    #[serde(default, skip_serializing_if = "is_false")]
    long: bool,
    /// The place in the reading order of the conversation, from 0.
    #[serde(default)]
    pub(super) i: u32,
    #[serde(default)]
    pub(super) l: u32,
    /// The terms, the words of the vector (one character each), and the packed vector in Base64. Not in
    /// `_source`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) w: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) vt: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) v: String,
}

/// The sort key of a message: time, position, row and hash. Messages without a value come last.
pub(super) type MessageOrder = (Option<i64>, Option<u32>, Option<i64>, i64, i64);

fn is_false(value: &bool) -> bool {
    !value
}

impl MessageDocument {
    pub(super) fn new(
        conversation: &str,
        message: &StoredMessage,
        document: &str,
        grams: &mut GramSet,
    ) -> Self {
        let mut one = MessageDocument {
            kind: MESSAGE.to_owned(),
            c: hash(conversation),
            id: message.id.clone(),
            role: message.role.clone(),
            rh: message.has_text_role.then(|| hash(&message.role)),
            s: message.time.map(|time| time.seconds),
            n: message.time.map(|time| time.nanos),
            p: message.position,
            r: message.row,
            k: hash(document),
            d: message.decoded.clone(),
            model: message.model.clone(),
            ..MessageDocument::default()
        };
        let stored = message.content.as_deref();
        match stored.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
            Some((_, Ok(text))) => one.t = Some(text.to_owned()),
            Some((bytes, Err(_))) => one.b = Some(STANDARD.encode(bytes)),
            None => {}
        }
        one.odd = stored.is_some_and(|bytes| !is_regular(bytes));
        let texts = [one.t.as_deref(), one.d.as_deref()];
        let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
        one.long = bytes > SHORT_TEXT;
        let mut letters: Vec<Vec<char>> = texts.into_iter().flatten().map(fold_text).collect();
        // The parts of the texts that change when accents are removed have grams too.
        for text in texts.into_iter().flatten() {
            let _: Result<(), ()> = loose::windows(text, |window| {
                letters.push(fold_text(window));
                Ok(())
            });
        }
        one.o = distinct(&letters);
        one.g = grams.collect(&letters, PAIR);
        one.q = grams.collect(&letters, TRIPLE);
        one.h = if one.long { grams.collect(&letters, LONG_GRAM) } else { of_one_letter(&letters) };
        one
    }

    pub(super) fn order(&self) -> MessageOrder {
        (self.s, self.n, self.p, self.r, self.k)
    }

    pub(super) fn into_message(self) -> StoredMessage {
        let bytes = self.b.and_then(|text| STANDARD.decode(text).ok());
        StoredMessage {
            id: self.id,
            role: self.role,
            has_text_role: self.rh.is_some(),
            time: self.s.map(|seconds| Instant { seconds, nanos: self.n.unwrap_or_default() }),
            position: self.p,
            row: self.r,
            content: self.t.or(self.lt).map(String::into_bytes).or(bytes),
            decoded: self.d.or(self.ld),
            model: self.model,
        }
    }
}

fn distinct(texts: &[Vec<char>]) -> String {
    let mut ascii = [false; 128];
    let mut others = BTreeSet::new();
    for letter in texts.iter().flatten() {
        match ascii.get_mut(*letter as usize) {
            Some(is_there) => *is_there = true,
            None => drop(others.insert(*letter)),
        }
    }
    let ascii = ('\0'..).zip(ascii).filter(|(_, is_there)| *is_there).map(|(letter, _)| letter);
    ascii.chain(others).collect()
}

fn of_one_letter(texts: &[Vec<char>]) -> String {
    let grams = texts.iter().flat_map(|text| text.windows(LONG_GRAM));
    let of_one = grams.filter(|gram| gram.iter().all(|letter| *letter == gram[0]));
    BTreeSet::from_iter(of_one.map(code)).into_iter().collect()
}

/// A conversation as a document, with the data of its messages that lists and counts need.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ConversationDocument {
    pub(super) kind: String,
    k: i64,
    pub(super) id: String,
    /// The title, if it is valid UTF-8; absent for NULL.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The title in Base64, if it is not valid UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    title_bytes: Option<String>,
    /// The time of the last change, in seconds and nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<(i64, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    /// The hash of the last imported version.
    pub(super) digest: String,
    /// The roles and the models of the messages, without repeats.
    roles: Vec<String>,
    models: Vec<String>,
    /// For each message: the number of its role, the number of its model or −1, and its time.
    messages: Vec<TallyDocument>,
    #[serde(default)]
    c: i64,
    /// The title made from the messages if the conversation has no title, and the summary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) made: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) summary: String,
    /// The hashes of the title's and the summary's terms. Not in `_source`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) tw: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) sw: String,
}

/// The role, the model, the seconds and the nanoseconds of a message.
type TallyDocument = (u32, i64, Option<i64>, u32);

/// The data of a message for counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tallied {
    /// The numbers of the role and the model in the lists of the conversation.
    pub role: u32,
    pub model: Option<u32>,
    pub time: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct MessageTally {
    roles: Vec<String>,
    models: Vec<String>,
    messages: Vec<TallyDocument>,
}

/// Returns the place of a name in a list, and adds it if the list does not have it.
fn place_in(list: &mut Vec<String>, name: &str) -> usize {
    list.iter().position(|known| known == name).unwrap_or_else(|| {
        list.push(name.to_owned());
        list.len() - 1
    })
}

impl MessageTally {
    pub(super) fn add(&mut self, message: &StoredMessage) {
        let role = place_in(&mut self.roles, &message.role);
        let model = message.model.as_deref().filter(|model| !model.is_empty());
        let model = model.map_or(-1, |model| place_in(&mut self.models, model) as i64);
        let seconds = message.time.map(|time| time.seconds);
        let nanos = message.time.map_or(0, |time| time.nanos);
        self.messages.push((role as u32, model, seconds, nanos));
    }
}

impl ConversationDocument {
    pub(super) fn new(
        conversation: &StoredConversation,
        digest: String,
        tally: MessageTally,
    ) -> Self {
        let title = conversation.title.as_deref().map(|bytes| (bytes, str::from_utf8(bytes)));
        let (title, title_bytes) = match title {
            None => (None, None),
            Some((_, Ok(text))) => (Some(text.to_owned()), None),
            Some((bytes, Err(_))) => (None, Some(STANDARD.encode(bytes))),
        };
        let provenance = conversation.provenance.clone();
        ConversationDocument {
            kind: CONVERSATION.to_owned(),
            k: hash(&conversation_name(&conversation.id)),
            id: conversation.id.clone(),
            title,
            title_bytes,
            updated: conversation.updated.map(|time| (time.seconds, time.nanos)),
            model: conversation.model.clone(),
            service: provenance.as_ref().map(|it| it.service.clone()),
            link: provenance.and_then(|it| it.link),
            origin: conversation.origin.clone(),
            digest,
            roles: tally.roles,
            models: tally.models,
            messages: tally.messages,
            c: hash(&conversation.id),
            ..ConversationDocument::default()
        }
    }

    pub(super) fn turns(&self) -> usize {
        self.messages.len()
    }

    /// Splits the document into the conversation, the roles, the models and the messages' data.
    pub(super) fn into_parts(self) -> (StoredConversation, Vec<String>, Vec<String>, Vec<Tallied>) {
        let bytes = self.title_bytes.and_then(|text| STANDARD.decode(text).ok());
        let link = self.link;
        let model = self.model;
        let conversation = StoredConversation {
            id: self.id,
            title: self.title.map(String::into_bytes).or(bytes),
            updated: self.updated.map(|(seconds, nanos)| Instant { seconds, nanos }),
            origin: self.origin,
            provenance: self.service.map(|service| Provenance {
                service,
                link,
                model: model.clone(),
            }),
            model,
        };
        let tallied = self.messages.into_iter().map(|(role, model, seconds, nanos)| Tallied {
            role,
            model: u32::try_from(model).ok(),
            time: seconds.map(|seconds| Instant { seconds, nanos }),
        });
        (conversation, self.roles, self.models, tallied.collect())
    }
}

/// Returns the hash by which an index finds conversations and roles.
pub(super) fn hash(text: &str) -> i64 {
    let digest = Sha256::digest(text);
    digest.iter().take(8).fold(0, |number, byte| number << 8 | i64::from(*byte))
}

pub(super) fn conversation_name(id: &str) -> String {
    format!("c{}", long_hash(id))
}

/// Returns the prefix of the names of a conversation's message documents.
pub(super) fn message_names(id: &str) -> String {
    format!("m{}", long_hash(id))
}

/// Returns a hash of one length, in URL-safe Base64: the cluster stores such names compactly, as bytes.
fn long_hash(id: &str) -> String {
    URL_SAFE_NO_PAD.encode(&Sha256::digest(id)[..HASH_BYTES])
}

#[derive(Default)]
pub(super) struct ConversationDigest(Sha256);

impl ConversationDigest {
    pub(super) fn new(conversation: &StoredConversation) -> ConversationDigest {
        let mut digest = ConversationDigest::default();
        digest.0.update(format!("{conversation:?}"));
        digest
    }

    pub(super) fn add(&mut self, message: &StoredMessage) {
        let StoredMessage { id, role, has_text_role, time, position, row, .. } = message;
        let facts = (id, role, has_text_role, time, position, row, &message.model);
        self.0.update(format!("{facts:?}"));
        let text = message.content.as_deref();
        self.0.update(text.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
        self.0.update(text.unwrap_or_default());
        self.0.update([u8::from(message.decoded.is_some())]);
    }

    pub(super) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Counts an id and returns its number of occurrences so far, which distinguishes equal ids.
pub(super) fn occurrence<'i>(seen: &mut HashMap<&'i str, u32>, id: &'i str) -> u32 {
    let count = seen.entry(id).or_default();
    *count += 1;
    *count
}
