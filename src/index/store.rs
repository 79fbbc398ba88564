//! The document store: every message in doc-id order, to verify candidates and to make hits.
//!
//! Two files, whose numbers are little-endian. `rows` holds one record per message:
//!
//! ```text
//! length of the head (varint) | head | shown text | stored text, if it differs
//! head: flags (u8) | length of the shown text (varint), if the stored text differs
//!       position (zigzag varint), if there is one | key (zigzag varint) | message id
//! ```
//!
//! `columns` holds the fast fields. First come some bytes per message, so that a search checks dates
//! before it reads any text, and finds all other fields of a hit in one or two cache lines:
//!
//! ```text
//! start of its record | seconds after the earliest message | nanoseconds | conversation
//! ```
//!
//! Each of these numbers takes as many bytes as the largest of its kind needs ([`Field`]). The messages
//! with a time come first. One more such entry follows the last message, for the end of its record, and
//! [`PADDING`]. Then follow:
//!
//! - the role of each message as a number: one byte each, or as many as the number of distinct roles
//!   needs. They stand close together because every candidate is checked against them first.
//! - the irregular messages (u32 each)
//! - the ends of each conversation's id and title (u64 each; the highest bit marks a title that is
//!   NULL), and the bytes of the ids and titles
//!
//! The manifest holds the start of each array and the keys of the roles. A key is the role itself, but
//! for roles that are no texts and for those that begin with a NUL: see [`role_key`].

use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::HashMap,
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::{
    artifact::Mapped,
    role::{role_key, role_of},
    uuid::{format_uuid, parse_uuid},
    varint::{push_varint, take_varint},
};
use crate::{
    model::{Hit, Instant},
    private,
};

/// Flag: the stored text differs from the shown text, as in databases of JSON parts.
const HAS_STORED: u8 = 1;
/// Flag: the message has a position.
const HAS_POSITION: u8 = 2;
/// Flag: the message id is sixteen bytes, which are shown as a UUID.
const IS_UUID: u8 = 4;
/// Flag: a text is not regular, so grams do not find it and it is verified byte by byte.
const IS_IRREGULAR: u8 = 8;
/// Flag: the text and the title are both NULL, so no pattern matches.
const IS_NOTHING: u8 = 16;

/// Zeros after the fields, so that eight bytes can be read at each of them.
const PADDING: usize = 8;

/// Set in the end of a title that is NULL.
const NO_TITLE: u64 = 1 << 63;

/// A message as it goes into the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// The key of the message's row in the database.
    pub key: i64,
    /// The message's id, from `messages.id`, as text.
    pub id: &'a str,
    /// The number of its conversation, in the order of [`super::BuildPlan::conversations`].
    pub conversation: u32,
    /// `messages.role`, as text; empty for NULL.
    pub role: &'a str,
    /// Whether the role is stored as a text, or is NULL. Other roles equal no text.
    pub is_text_role: bool,
    /// The time of the message.
    pub time: Option<Instant>,
    /// The message's position, from `messages.position`.
    pub position: Option<i64>,
    /// The text that is searched and shown; `None` for NULL.
    pub shown: Option<&'a [u8]>,
    /// The stored text if it differs from the shown text; it is searched too.
    pub stored: Option<&'a [u8]>,
}

/// A conversation as it goes into the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationTitle {
    /// The conversation's id, from `conversations.id`, as text.
    pub id: String,
    /// `conversations.title`, as bytes; `None` for NULL.
    pub title: Option<Vec<u8>>,
}

impl ConversationTitle {
    pub(super) fn title_bytes(&self) -> &[u8] {
        self.title.as_deref().unwrap_or_default()
    }
}

/// The sizes of the two files' arrays, and where they start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RowLayout {
    messages: u32,
    /// The number of messages with a time; they are the first ones.
    dated: u32,
    /// The keys of the roles, by number.
    roles: Vec<String>,
    /// The bytes of a role's number: 1, 2 or 4.
    role_bytes: u32,
    irregular: u32,
    conversations: u32,
    /// The earliest time in seconds.
    earliest: i64,
    /// The bytes of the fields of one message.
    entry: u32,
    start: Field,
    seconds: Field,
    nanos: Field,
    conversation: Field,
    fields_at: u64,
    roles_at: u64,
    irregular_at: u64,
    titles_at: u64,
    title_bytes_at: u64,
}

/// Where a number is in the fields of a message, and how many bytes it has: up to eight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Field {
    at: u32,
    bytes: u32,
}

impl Field {
    /// Appends a field to an entry that has `entry` bytes.
    fn append(entry: &mut u32, largest: u64) -> Field {
        let field = Field { at: *entry, bytes: (u64::BITS - largest.leading_zeros()).div_ceil(8) };
        *entry += field.bytes;
        field
    }

    fn put(self, entry: &mut [u8], number: u64) {
        let bytes = self.bytes as usize;
        entry[self.at as usize..][..bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
    }

    /// Reads the field of an entry. Eight bytes follow the start of the field.
    #[inline]
    fn get(self, entry: &[u8]) -> u64 {
        let eight = entry[self.at as usize..].first_chunk().expect("there is padding");
        let shift = u64::BITS.saturating_sub(8 * self.bytes);
        u64::from_le_bytes(*eight).checked_shl(shift).map_or(0, |number| number >> shift)
    }
}

/// Writes the document store, message by message.
#[derive(Debug)]
pub(super) struct DocStoreWriter {
    rows: BufWriter<File>,
    offsets: Vec<u64>,
    times: Vec<Option<Instant>>,
    conversation_of: Vec<u32>,
    role_of: Vec<u32>,
    roles: HashMap<String, u32>,
    irregular: Vec<u32>,
    head: Vec<u8>,
}

impl DocStoreWriter {
    pub(super) fn create(rows: &Path, messages: usize) -> io::Result<DocStoreWriter> {
        let mut offsets = Vec::with_capacity(messages + 1);
        offsets.push(0);
        Ok(DocStoreWriter {
            rows: BufWriter::with_capacity(1 << 20, private::create_file(rows)?),
            offsets,
            times: Vec::with_capacity(messages),
            conversation_of: Vec::with_capacity(messages),
            role_of: Vec::with_capacity(messages),
            roles: HashMap::new(),
            irregular: Vec::new(),
            head: Vec::new(),
        })
    }

    /// Appends the next message. `regular` says whether all its texts are regular, and `titled`
    /// whether its conversation has a title.
    pub(super) fn add(
        &mut self,
        document: &Document<'_>,
        regular: bool,
        titled: bool,
    ) -> io::Result<()> {
        let doc = self.role_of.len() as u32;
        let key = role_key(document.role, document.is_text_role);
        let role = match self.roles.get(&*key) {
            Some(role) => *role,
            None => {
                let role = self.roles.len() as u32;
                self.roles.insert(key.into_owned(), role);
                role
            }
        };
        let uuid = parse_uuid(document.id);
        let mut flags = 0;
        flags |= if document.stored.is_some() { HAS_STORED } else { 0 };
        flags |= if document.position.is_some() { HAS_POSITION } else { 0 };
        flags |= if uuid.is_some() { IS_UUID } else { 0 };
        flags |= if regular { 0 } else { IS_IRREGULAR };
        flags |= if document.shown.is_none() && !titled { IS_NOTHING } else { 0 };
        let shown = document.shown.unwrap_or_default();
        self.head.clear();
        self.head.push(flags);
        if document.stored.is_some() {
            push_varint(&mut self.head, shown.len() as u64);
        }
        for number in document.position.into_iter().chain([document.key]) {
            push_varint(&mut self.head, (number << 1 ^ number >> 63) as u64);
        }
        match &uuid {
            Some(uuid) => self.head.extend_from_slice(uuid),
            None => self.head.extend_from_slice(document.id.as_bytes()),
        }
        let mut length = Vec::with_capacity(5);
        push_varint(&mut length, self.head.len() as u64);
        let stored = document.stored.unwrap_or_default();
        for bytes in [&length[..], &self.head, shown, stored] {
            self.rows.write_all(bytes)?;
        }
        let size = length.len() + self.head.len() + shown.len() + stored.len();
        self.offsets.push(self.offsets[doc as usize] + size as u64);
        self.times.push(document.time);
        self.conversation_of.push(document.conversation);
        self.role_of.push(role);
        if !regular {
            self.irregular.push(doc);
        }
        Ok(())
    }

    /// Returns the documents of each role, in the order of the roles' keys.
    pub(super) fn docs_by_role(&self) -> Vec<(&str, Vec<u32>)> {
        let mut docs = vec![Vec::new(); self.roles.len()];
        for (doc, role) in self.role_of.iter().enumerate() {
            docs[*role as usize].push(doc as u32);
        }
        let roles = self.roles.iter();
        let mut by_role: Vec<_> = roles
            .map(|(name, role)| (name.as_str(), std::mem::take(&mut docs[*role as usize])))
            .collect();
        by_role.sort_unstable();
        by_role
    }

    pub(super) fn docs_by_conversation(&self, conversations: usize) -> DocsByConversation {
        let mut ends = vec![0u32; conversations + 1];
        for conversation in &self.conversation_of {
            ends[*conversation as usize] += 1;
        }
        let mut before = 0;
        for end in &mut ends {
            before += std::mem::replace(end, before);
        }
        let mut docs = vec![0; self.conversation_of.len()];
        for (doc, conversation) in self.conversation_of.iter().enumerate() {
            let place = &mut ends[*conversation as usize];
            docs[*place as usize] = doc as u32;
            *place += 1;
        }
        DocsByConversation { ends, docs }
    }

    /// Returns the layout of the fields.
    fn fields_layout(&self) -> RowLayout {
        let times = || self.times.iter().flatten();
        let earliest = times().map(|time| time.seconds).min().unwrap_or(0);
        let latest = times().map(|time| time.seconds).max().unwrap_or(0);
        let nanos = times().map(|time| time.nanos).max().unwrap_or(0);
        let conversation = self.conversation_of.iter().max().copied().unwrap_or(0);
        let end = self.offsets.last().copied().unwrap_or(0);
        let mut entry = 0;
        RowLayout {
            messages: self.role_of.len() as u32,
            dated: times().count() as u32,
            earliest,
            start: Field::append(&mut entry, end),
            seconds: Field::append(&mut entry, latest.wrapping_sub(earliest) as u64),
            nanos: Field::append(&mut entry, nanos.into()),
            conversation: Field::append(&mut entry, conversation.into()),
            entry,
            ..RowLayout::default()
        }
    }

    /// Writes the fields of all messages; returns where they start.
    fn put_fields(&self, layout: &RowLayout, out: &mut Columns) -> io::Result<u64> {
        let start = out.at;
        let mut entry = vec![0; layout.entry as usize];
        for (doc, offset) in self.offsets.iter().enumerate() {
            entry.fill(0);
            layout.start.put(&mut entry, *offset);
            if let Some(Some(time)) = self.times.get(doc) {
                let seconds = time.seconds.wrapping_sub(layout.earliest) as u64;
                layout.seconds.put(&mut entry, seconds);
                layout.nanos.put(&mut entry, time.nanos.into());
            }
            if let Some(conversation) = self.conversation_of.get(doc) {
                layout.conversation.put(&mut entry, (*conversation).into());
            }
            out.write(&entry)?;
        }
        out.write(&[0; PADDING])?;
        Ok(start)
    }

    /// Writes the columns, and returns the layout for the manifest.
    pub(super) fn finish(
        mut self,
        columns: &Path,
        conversations: &[ConversationTitle],
    ) -> io::Result<RowLayout> {
        self.rows.flush()?;
        let mut out = Columns { file: BufWriter::new(private::create_file(columns)?), at: 0 };
        let role_bytes = match self.roles.len() {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        };
        let mut layout = self.fields_layout();
        layout.fields_at = self.put_fields(&layout, &mut out)?;
        let layout = RowLayout {
            irregular: self.irregular.len() as u32,
            conversations: conversations.len() as u32,
            roles_at: out.put_bytes(
                self.role_of
                    .iter()
                    .flat_map(|role| role.to_le_bytes().into_iter().take(role_bytes)),
            )?,
            irregular_at: out.put(self.irregular.iter().map(|doc| doc.to_le_bytes()))?,
            titles_at: {
                let mut at = 0u64;
                let ends = conversations.iter().flat_map(|conversation| {
                    let id_end = at + conversation.id.len() as u64;
                    at = id_end + conversation.title_bytes().len() as u64;
                    let mark = if conversation.title.is_none() { NO_TITLE } else { 0 };
                    [id_end.to_le_bytes(), (at | mark).to_le_bytes()]
                });
                out.put(std::iter::once([0; 8]).chain(ends))?
            },
            title_bytes_at: out.at,
            roles: {
                let mut roles: Vec<_> = self.roles.into_iter().collect();
                roles.sort_unstable_by_key(|(_, number)| *number);
                roles.into_iter().map(|(name, _)| name).collect()
            },
            role_bytes: role_bytes as u32,
            ..layout
        };
        for conversation in conversations {
            out.file.write_all(conversation.id.as_bytes())?;
            out.file.write_all(conversation.title_bytes())?;
        }
        out.file.flush()?;
        Ok(layout)
    }
}

#[derive(Debug)]
pub(super) struct DocsByConversation {
    /// The end of each conversation's documents in `docs`.
    ends: Vec<u32>,
    docs: Vec<u32>,
}

impl DocsByConversation {
    /// Returns the documents of a conversation, ascending.
    pub(super) fn of(&self, conversation: u32) -> &[u32] {
        let conversation = conversation as usize;
        let start = if conversation == 0 { 0 } else { self.ends[conversation - 1] };
        &self.docs[start as usize..self.ends[conversation] as usize]
    }
}

struct Columns {
    file: BufWriter<File>,
    at: u64,
}

impl Columns {
    /// Writes an array; returns where it starts.
    fn put<const N: usize>(&mut self, values: impl Iterator<Item = [u8; N]>) -> io::Result<u64> {
        let start = self.at;
        for value in values {
            self.write(&value)?;
        }
        Ok(start)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Writes an array whose elements have a size that is known at run time only.
    fn put_bytes(&mut self, bytes: impl Iterator<Item = u8>) -> io::Result<u64> {
        self.put(bytes.map(|byte| [byte]))
    }
}

/// The document store, open for reading.
#[derive(Debug)]
pub(super) struct DocStore {
    layout: RowLayout,
    rows: Mapped,
    columns: Mapped,
}

/// The texts of a message, and its flags.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowTexts<'a> {
    pub(super) shown: &'a [u8],
    /// The text as the database stores it; equal to `shown` for plain text.
    pub(super) stored: &'a [u8],
    pub(super) regular: bool,
    pub(super) differ: bool,
    /// Both the text and the title are NULL.
    pub(super) nothing: bool,
}

struct FileHeader<'a> {
    flags: u8,
    shown_length: Option<usize>,
    rest: &'a [u8],
}

/// The fields of a head that a search does not need.
struct Rest<'a> {
    position: Option<i64>,
    key: i64,
    id: &'a [u8],
}

impl<'a> FileHeader<'a> {
    fn rest(&self) -> Rest<'a> {
        let mut rest = self.rest;
        let mut number = || {
            let zigzag = take_varint(&mut rest);
            (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
        };
        let position = (self.flags & HAS_POSITION != 0).then(&mut number);
        let key = number();
        Rest { position, key, id: rest }
    }

    fn id(&self) -> Cow<'a, str> {
        let id = self.rest().id;
        match <&[u8; 16]>::try_from(id) {
            Ok(uuid) if self.flags & IS_UUID != 0 => Cow::Owned(format_uuid(uuid)),
            _ => lossy(id),
        }
    }
}

impl DocStore {
    /// Takes the two mapped files; returns `None` unless they are as long as the layout says.
    pub(super) fn open(rows: Mapped, columns: Mapped, layout: RowLayout) -> Option<DocStore> {
        let rows = DocStore { layout, rows, columns };
        let whole = rows.titles_end().is_some_and(|end| end == rows.columns.len() as u64)
            && rows.start(rows.layout.messages) == rows.rows.len() as u64;
        whole.then_some(rows)
    }

    fn titles_end(&self) -> Option<u64> {
        let last = self.layout.titles_at + 16 * u64::from(self.layout.conversations);
        let bytes = self.columns.get(last as usize..last as usize + 8)?;
        let end = u64::from_le_bytes(bytes.try_into().ok()?) & !NO_TITLE;
        Some(self.layout.title_bytes_at + end)
    }

    pub(super) fn messages(&self) -> u32 {
        self.layout.messages
    }

    pub(super) fn conversations(&self) -> u32 {
        self.layout.conversations
    }

    fn number(&self, column: u64, place: u32) -> u64 {
        let at = (column + 8 * u64::from(place)) as usize;
        u64::from_le_bytes(self.columns[at..at + 8].try_into().expect("eight bytes"))
    }

    fn short_number(&self, column: u64, place: u32) -> u32 {
        let at = (column + 4 * u64::from(place)) as usize;
        u32::from_le_bytes(self.columns[at..at + 4].try_into().expect("four bytes"))
    }

    #[inline]
    fn field(&self, field: Field, doc: u32) -> u64 {
        let at = self.layout.fields_at as usize + self.layout.entry as usize * doc as usize;
        field.get(&self.columns[at..])
    }

    /// Returns the start of a message's record, which is the end of the previous record.
    fn start(&self, doc: u32) -> u64 {
        self.field(self.layout.start, doc)
    }

    pub(super) fn time(&self, doc: u32) -> Option<Instant> {
        (doc < self.layout.dated).then(|| {
            let seconds = self.field(self.layout.seconds, doc) as i64;
            let nanos = self.field(self.layout.nanos, doc) as u32;
            Instant { seconds: seconds.wrapping_add(self.layout.earliest), nanos }
        })
    }

    /// Returns the messages whose time lies within the bounds, as an interval of doc ids.
    pub(super) fn interval(
        &self,
        since: Option<Instant>,
        until: Option<Instant>,
    ) -> std::ops::Range<u32> {
        if since.is_none() && until.is_none() {
            return 0..self.layout.messages;
        }
        let start = until.map_or(0, |until| self.first(|time| time <= until));
        let end = since.map_or(self.layout.dated, |since| self.first(|time| time < since));
        start..end.max(start)
    }

    /// Returns the first message with a time for which `is_past` holds; it holds for all later ones.
    fn first(&self, is_past: impl Fn(Instant) -> bool) -> u32 {
        let (mut low, mut high) = (0, self.layout.dated);
        while low < high {
            let middle = low.midpoint(high);
            if self.time(middle).is_some_and(&is_past) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Returns for each role, by its number, whether it equals one of these texts.
    pub(super) fn wanted_roles(&self, texts: &[String]) -> Vec<bool> {
        let wanted: Vec<_> = texts.iter().map(|text| role_key(text, true)).collect();
        let roles = self.layout.roles.iter();
        roles.map(|role| wanted.iter().any(|key| key == role)).collect()
    }

    /// Returns the number of a message's role.
    #[inline]
    pub(super) fn role(&self, doc: u32) -> usize {
        let roles = self.layout.roles_at as usize;
        let doc = doc as usize;
        match self.layout.role_bytes {
            1 => usize::from(self.columns[roles + doc]),
            2 => {
                let at = roles + 2 * doc;
                usize::from(u16::from_le_bytes([self.columns[at], self.columns[at + 1]]))
            }
            _ => self.short_number(self.layout.roles_at, doc as u32) as usize,
        }
    }

    pub(super) fn conversation(&self, doc: u32) -> u32 {
        self.field(self.layout.conversation, doc) as u32
    }

    /// Returns a message's role as text.
    pub(super) fn role_name(&self, doc: u32) -> &str {
        role_of(&self.layout.roles[self.role(doc)]).0
    }

    /// Returns the position of a message in its conversation.
    pub(super) fn position(&self, doc: u32) -> Option<i64> {
        self.record(doc).0.rest().position
    }

    /// Returns the key of a message's row in the database.
    pub(super) fn key(&self, doc: u32) -> i64 {
        self.record(doc).0.rest().key
    }

    /// Compares two messages by their place in an answer: newest first, the higher position first,
    /// the higher key first.
    pub(super) fn order(&self, doc: u32, other: &DocStore, other_doc: u32) -> Ordering {
        other.time(other_doc).cmp(&self.time(doc)).then_with(|| {
            let (this, other) = (self.record(doc).0.rest(), other.record(other_doc).0.rest());
            other.position.cmp(&this.position).then(other.key.cmp(&this.key))
        })
    }

    /// Returns whether a message equals a row of the database, whose text is in `stored`. The
    /// conversation is not compared.
    pub(super) fn is_same(&self, doc: u32, row: &Document<'_>) -> bool {
        let (head, texts) = self.record(doc);
        let stored = &texts[head.shown_length.unwrap_or(0)..];
        let titled = self.title_text(self.conversation(doc)).is_some();
        let nothing = row.stored.is_none() && !titled;
        let rest = head.rest();
        stored == row.stored.unwrap_or_default()
            && nothing == (head.flags & IS_NOTHING != 0)
            && self.time(doc) == row.time
            && rest.position == row.position
            && role_of(&self.layout.roles[self.role(doc)]) == (row.role, row.is_text_role)
            && match <&[u8; 16]>::try_from(rest.id) {
                Ok(uuid) if head.flags & IS_UUID != 0 => {
                    parse_uuid(row.id).is_some_and(|id| id == *uuid)
                }
                _ => rest.id == row.id.as_bytes(),
            }
    }

    /// Returns a message as it was added to the index; `id` is the buffer for its id.
    pub(super) fn document<'a>(&'a self, doc: u32, id: &'a mut String) -> Document<'a> {
        let (head, texts) = self.record(doc);
        let (shown, stored) = texts.split_at(head.shown_length.unwrap_or(texts.len()));
        let rest = head.rest();
        let (role, is_text_role) = role_of(&self.layout.roles[self.role(doc)]);
        id.clear();
        id.push_str(&head.id());
        Document {
            key: rest.key,
            id,
            conversation: self.conversation(doc),
            role,
            is_text_role,
            time: self.time(doc),
            position: rest.position,
            // Only where the title is NULL too does a NULL text differ from an empty one.
            shown: (head.flags & IS_NOTHING == 0).then_some(shown),
            stored: head.shown_length.is_some().then_some(stored),
        }
    }

    pub(super) fn conversation_id(&self, conversation: u32) -> &[u8] {
        self.id_or_title(2 * conversation)
    }

    /// Returns the title of a conversation; empty for NULL.
    pub(super) fn title(&self, conversation: u32) -> &[u8] {
        self.id_or_title(2 * conversation + 1)
    }

    /// Returns the title of a conversation; `None` for NULL.
    pub(super) fn title_text(&self, conversation: u32) -> Option<&[u8]> {
        let end = self.number(self.layout.titles_at, 2 * conversation + 2);
        (end & NO_TITLE == 0).then(|| self.title(conversation))
    }

    /// Returns an id (even numbers) or a title (odd numbers) of a conversation.
    fn id_or_title(&self, number: u32) -> &[u8] {
        let base = self.layout.title_bytes_at;
        let start = base + (self.number(self.layout.titles_at, number) & !NO_TITLE);
        let end = base + (self.number(self.layout.titles_at, number + 1) & !NO_TITLE);
        &self.columns[start as usize..end as usize]
    }

    /// Returns the irregular messages with doc ids from `from` on, ascending.
    pub(super) fn irregular(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        let doc = move |place| self.short_number(self.layout.irregular_at, place);
        let (mut low, mut high) = (0, self.layout.irregular);
        while low < high {
            let middle = low.midpoint(high);
            if doc(middle) < from {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low..self.layout.irregular).map(doc)
    }

    /// Returns the head and the texts of a message's record.
    fn record(&self, doc: u32) -> (FileHeader<'_>, &[u8]) {
        let (start, end) = (self.start(doc) as usize, self.start(doc + 1) as usize);
        let mut record = &self.rows[start..end];
        let head_length = take_varint(&mut record) as usize;
        let (mut head, texts) = record.split_at(head_length);
        let flags = head[0];
        head = &head[1..];
        let shown_length = (flags & HAS_STORED != 0).then(|| take_varint(&mut head) as usize);
        (FileHeader { flags, shown_length, rest: head }, texts)
    }

    #[inline]
    pub(super) fn texts(&self, doc: u32) -> RowTexts<'_> {
        let (head, texts) = self.record(doc);
        let (shown, stored) = match head.shown_length {
            Some(length) => texts.split_at(length),
            None => (texts, texts),
        };
        RowTexts {
            shown,
            stored,
            regular: head.flags & IS_IRREGULAR == 0,
            differ: head.shown_length.is_some(),
            nothing: head.flags & IS_NOTHING != 0,
        }
    }

    pub(super) fn hit(&self, doc: u32, raw_content: bool) -> Hit<'_> {
        let (head, texts) = self.record(doc);
        let (shown, stored) = texts.split_at(head.shown_length.unwrap_or(texts.len()));
        let content = if raw_content && head.shown_length.is_some() { stored } else { shown };
        let conversation = self.conversation(doc);
        Hit {
            message_id: head.id(),
            conversation_id: lossy(self.conversation_id(conversation)),
            title: lossy(self.title(conversation)),
            role: self.role_name(doc).into(),
            time: self.time(doc),
            content: lossy(content),
            position: head.rest().position,
        }
    }
}

/// Returns a text with U+FFFD for each sequence that is not UTF-8.
///
/// `from_utf8` checks valid text several times faster than `from_utf8_lossy`, and nearly all text is valid.
pub(super) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (rows, columns) = (folder.path().join("rows"), folder.path().join("columns"));
        let conversations = [
            ConversationTitle { id: "one".into(), title: Some("Títle".into()) },
            ConversationTitle { id: "two".into(), title: None },
        ];
        let id = "0123abcd-0000-4000-8000-00000000ffff";
        let at = |seconds| Some(Instant { seconds, nanos: 5 });
        let documents = [
            (id, 1, ("user", true), at(9), Some(3), "shown", Some("stored")),
            ("client-created-root", 0, ("", true), at(7), Some(-1), "日本", None),
            ("0123ABCD-0000-4000-8000-00000000FFFF", 0, ("user", false), None, None, "", None),
        ];
        let mut writer = DocStoreWriter::create(&rows, 3).expect("create");
        for (id, conversation, (role, is_text_role), time, position, shown, stored) in documents {
            let (key, bytes) = (-5, Some(shown.as_bytes()));
            let document = Document {
                key,
                id,
                conversation,
                role,
                is_text_role,
                time,
                position,
                shown: bytes,
                stored: stored.map(str::as_bytes),
            };
            writer.add(&document, shown != "shown", true).expect("add");
        }
        assert_eq!(writer.docs_by_conversation(2).of(0), [1, 2]);
        assert_eq!(writer.docs_by_conversation(2).of(1), [0]);
        let layout = writer.finish(&columns, &conversations).expect("finish");
        let map = |path: &Path| Mapped::new(&File::open(path).expect("open")).expect("a map");
        let rows = DocStore::open(map(&rows), map(&columns), layout).expect("whole");
        for (doc, (id, conversation, role, time, position, shown, stored)) in (0..).zip(documents) {
            let hit = rows.hit(doc, false);
            assert_eq!((&*hit.message_id, &*hit.role), (id, role.0));
            assert_eq!(hit.conversation_id, conversations[conversation as usize].id);
            assert_eq!(hit.title.as_bytes(), conversations[conversation as usize].title_bytes());
            assert_eq!((hit.time, hit.position, &*hit.content), (time, position, shown));
            assert_eq!(rows.hit(doc, true).content, stored.unwrap_or(shown));
            assert_eq!(rows.texts(doc).differ, stored.is_some());
            let mut buffer = String::new();
            let document = rows.document(doc, &mut buffer);
            let stored_bytes = stored.map(str::as_bytes);
            assert_eq!((document.key, document.id, document.stored), (-5, id, stored_bytes));
            let row = Document { stored: stored_bytes.or(document.shown), ..document };
            assert!(rows.is_same(doc, &row), "{row:?}");
            assert!(!rows.is_same(doc, &Document { stored: Some(b"other"), ..row }));
            assert!(!rows.is_same(doc, &Document { role: "other", ..row }));
            assert!(!rows.is_same(doc, &Document { is_text_role: !row.is_text_role, ..row }));
        }
        assert_eq!(rows.irregular(0).collect::<Vec<_>>(), [0]);
        assert_eq!(rows.irregular(1).count(), 0);
        let instant = |seconds, nanos| Some(Instant { seconds, nanos });
        assert_eq!(rows.interval(None, None), 0..3);
        assert_eq!(rows.interval(instant(7, 5), None), 0..2);
        assert_eq!(rows.interval(instant(7, 6), None), 0..1);
        assert_eq!(rows.interval(None, instant(9, 4)), 1..2);
        assert!(rows.interval(instant(8, 0), instant(8, 0)).is_empty());
    }

    #[test]
    fn role_numbers_are_as_wide_as_they_must_be() {
        for roles in [1_u32, 256, 257, 65_536, 65_537] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let (rows, columns) = (folder.path().join("rows"), folder.path().join("columns"));
            let mut writer = DocStoreWriter::create(&rows, roles as usize).expect("create");
            for number in 0..roles {
                let role = &*format!("role {number}");
                let (key, time, position) = (0, None, None);
                let (shown, stored, conversation) = (None, None, 0);
                let document = Document {
                    key,
                    id: "",
                    conversation,
                    role,
                    is_text_role: true,
                    time,
                    position,
                    shown,
                    stored,
                };
                writer.add(&document, true, true).expect("add");
            }
            let layout = writer.finish(&columns, &[]).expect("finish");
            let map = |path: &Path| Mapped::new(&File::open(path).expect("open")).expect("a map");
            let rows = DocStore::open(map(&rows), map(&columns), layout).expect("whole");
            for number in [0, roles / 2, roles - 1] {
                assert_eq!(rows.role_name(number), format!("role {number}"));
            }
        }
    }
}
