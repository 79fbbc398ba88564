//! The document store: all messages in doc-id order, for verifying candidates and making hits.
//!
//! There are two files. Numbers are little-endian. `rows` holds one record per message:
//!
//! ```text
//! length of the head (varint) | head | shown text, then the stored text if it differs
//! head: flags and table (u8) | length of the shown text (varint), if the stored text differs
//!       position (zigzag varint), if there is one | key (zigzag varint) | message id
//! ```
//!
//! The texts of a record are compressed together ([`packed`]), if they are short and compression makes them
//! shorter.
//!
//! `columns` holds the fast fields. It begins with one entry per message. So a search checks dates before it
//! reads any text, and finds all other fields of a hit in one or two cache lines:
//!
//! ```text
//! start of its record | seconds after the earliest message | nanoseconds | conversation
//! ```
//!
//! Each number takes as many bytes as the largest number in its field needs ([`Field`]). Messages with a time
//! come first. Nanoseconds are divided by a common divisor. After the last message comes one more entry,
//! whose start is the end of the last record, and [`layout::PADDING`]. Then follow:
//!
//! - the role of each message as a number of one, two or four bytes. Roles are in an array of their own,
//!   because a search checks the role of every candidate first.
//! - the irregular messages (u32 each)
//! - the ends of each conversation's id and title (u64 each; the highest bit marks a title that is
//!   NULL), and the bytes of the ids and titles
//! - the start of each conversation's messages and the end of the last conversation's (u32 each), and the
//!   messages ([`members`])
//! - the tables that texts are packed with
//!
//! Conversations are numbered in the order of their first messages.
//!
//! The manifest holds the start of each array and the keys of the roles ([`role_key`]).

mod document;
mod layout;
mod members;
mod packed;
mod writer;

use std::{borrow::Cow, cmp::Ordering, ops::Range};

use super::role::{parse_role_key, role_key};
use super::uuid::{format_uuid, parse_uuid};
use super::varint::take_varint;
use layout::{
    Field, HAS_POSITION, HAS_STORED, IS_IRREGULAR, IS_NOTHING, IS_UUID, NO_TITLE, TABLE_SHIFT,
};
use packed::Symbols;
use verbatim_base::map_faults::Mapped;
use verbatim_base::model::{Hit, Instant};
use verbatim_text::lossy;

pub use document::{ConversationTitle, Document};
pub(super) use layout::RowLayout;
pub(super) use members::Members;
pub(super) use packed::{LONG, Text};
pub(super) use writer::DocStoreWriter;

#[derive(Debug)]
pub(super) struct DocStore {
    layout: RowLayout,
    rows: Mapped,
    columns: Mapped,
    symbols: Symbols,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RowTexts<'a> {
    pub(super) shown: Text<'a>,
    /// The text as the database stores it. It equals `shown`, unless `differ` is set.
    pub(super) stored: Text<'a>,
    pub(super) regular: bool,
    pub(super) differ: bool,
    /// Whether both the text and the title are NULL.
    pub(super) nothing: bool,
}

/// The id and the packed texts of a [`Document`].
#[derive(Debug, Default)]
pub struct DocumentBuffer {
    id: String,
    texts: Vec<u8>,
}

struct FileHeader<'a> {
    flags: u8,
    shown_length: Option<usize>,
    rest: &'a [u8],
}

/// The fields of a record's head that verification does not need.
struct Rest<'a> {
    position: Option<i64>,
    key: i64,
    id: &'a [u8],
}

impl<'a> FileHeader<'a> {
    fn rest(&self) -> Rest<'a> {
        let mut rest = self.rest;
        let has_position = self.flags & HAS_POSITION != 0;
        let position = if has_position { Some(take_signed(&mut rest)) } else { None };
        let key = take_signed(&mut rest);
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

fn take_signed(bytes: &mut &[u8]) -> i64 {
    let zigzag = take_varint(bytes);
    (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
}

impl DocStore {
    /// Opens the two mapped files; returns `None` if their lengths do not fit the layout.
    pub(super) fn open(rows: Mapped, columns: Mapped, layout: RowLayout) -> Option<DocStore> {
        let symbols = Symbols::read(columns.get(layout.symbols_at as usize..)?)?;
        let rows = DocStore { layout, rows, columns, symbols };
        let whole = rows.titles_end().is_some_and(|end| end == rows.layout.members_at)
            && rows.layout.members_at + 4 * (u64::from(rows.layout.conversations) + 1)
                == rows.layout.member_bytes_at
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

    /// Gives back the memory of the texts that were read.
    pub(super) fn release(&self) {
        self.rows.release();
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

    fn start(&self, doc: u32) -> u64 {
        self.field(self.layout.start, doc)
    }

    pub(super) fn time(&self, doc: u32) -> Option<Instant> {
        (doc < self.layout.dated).then(|| {
            let seconds = self.field(self.layout.seconds, doc) as i64;
            let nanos =
                (self.field(self.layout.nanos, doc) as u32).wrapping_mul(self.layout.nano_step);
            Instant { seconds: seconds.wrapping_add(self.layout.earliest), nanos }
        })
    }

    /// Returns the number of messages with a time. They come before all others.
    pub(super) fn dated(&self) -> u32 {
        self.layout.dated
    }

    /// Returns the messages with times from `since` to `until`, as an interval of doc ids.
    pub(super) fn interval(&self, since: Option<Instant>, until: Option<Instant>) -> Range<u32> {
        if since.is_none() && until.is_none() {
            return 0..self.layout.messages;
        }
        let start = until.map_or(0, |until| self.first(|time| time <= until));
        let end = since.map_or(self.layout.dated, |since| self.first(|time| time < since));
        start..end.max(start)
    }

    /// Returns the first message whose time `is_past` accepts. `is_past` must accept all later times too.
    fn first(&self, is_past: impl Fn(Instant) -> bool) -> u32 {
        first_place(self.layout.dated, |doc| self.time(doc).is_some_and(&is_past))
    }

    /// Returns for each role number whether the role equals one of these texts.
    pub(super) fn wanted_roles(&self, texts: &[String]) -> Vec<bool> {
        let wanted: Vec<_> = texts.iter().map(|text| role_key(text, true)).collect();
        let roles = self.layout.roles.iter();
        roles.map(|role| wanted.iter().any(|key| key == role)).collect()
    }

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

    /// Returns the roles of all messages, each by its number.
    pub(super) fn role_names(&self) -> impl Iterator<Item = &str> {
        self.layout.roles.iter().map(|role| parse_role_key(role).0)
    }

    pub(super) fn role_name(&self, doc: u32) -> &str {
        parse_role_key(&self.layout.roles[self.role(doc)]).0
    }

    pub(super) fn position(&self, doc: u32) -> Option<i64> {
        self.record(doc).0.rest().position
    }

    pub(super) fn key(&self, doc: u32) -> i64 {
        self.record(doc).0.rest().key
    }

    /// Compares two messages by their place in an answer: newest first, the higher position first,
    /// the higher key first.
    pub(super) fn order(&self, doc: u32, other: &DocStore, other_doc: u32) -> Ordering {
        other.time(other_doc).cmp(&self.time(doc)).then_with(|| {
            let this = self.record(doc).0.rest();
            let other = other.record(other_doc).0.rest();
            other.position.cmp(&this.position).then(other.key.cmp(&this.key))
        })
    }

    /// Returns whether a message equals a row of the database. The row's text is in `stored`. Does not
    /// compare the conversation.
    pub(super) fn is_same(&self, doc: u32, row: &Document<'_>) -> bool {
        let (head, texts) = self.record(doc);
        let (_, stored) = self.text(&head, texts).split_at(head.shown_length.unwrap_or(0));
        let titled = self.title_text(self.conversation(doc)).is_some();
        let nothing = row.stored.is_none() && !titled;
        let rest = head.rest();
        let known = row.stored.unwrap_or_default();
        stored.len() == known.len()
            && *stored.bytes() == *known
            && nothing == (head.flags & IS_NOTHING != 0)
            && self.time(doc) == row.time
            && rest.position == row.position
            && parse_role_key(&self.layout.roles[self.role(doc)]) == (row.role, row.is_text_role)
            && match <&[u8; 16]>::try_from(rest.id) {
                Ok(uuid) if head.flags & IS_UUID != 0 => {
                    parse_uuid(row.id).is_some_and(|id| id == *uuid)
                }
                _ => rest.id == row.id.as_bytes(),
            }
    }

    pub(super) fn document<'a>(
        &'a self,
        doc: u32,
        DocumentBuffer { id, texts: buffer }: &'a mut DocumentBuffer,
    ) -> Document<'a> {
        let (head, texts) = self.record(doc);
        let texts = self.text(&head, texts).read(buffer);
        let (shown, stored) = texts.split_at(head.shown_length.unwrap_or(texts.len()));
        let rest = head.rest();
        let (role, is_text_role) = parse_role_key(&self.layout.roles[self.role(doc)]);
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
            // The store tells a NULL text from an empty text only if the title is NULL too.
            shown: (head.flags & IS_NOTHING == 0).then_some(shown),
            stored: head.shown_length.is_some().then_some(stored),
        }
    }

    pub(super) fn conversation_id(&self, conversation: u32) -> &[u8] {
        self.id_or_title(2 * conversation)
    }

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
        let count = self.layout.irregular;
        let first = first_place(count, |place| self.irregular_at(place) >= from);
        (first..count).map(|place| self.irregular_at(place))
    }

    fn irregular_at(&self, place: u32) -> u32 {
        self.short_number(self.layout.irregular_at, place)
    }

    /// Returns the messages of a conversation; `None` if it has none.
    pub(super) fn members(&self, conversation: u32) -> Option<Members<'_>> {
        if conversation >= self.layout.conversations {
            return None;
        }
        let [start, end] = [conversation, conversation + 1].map(|place| {
            self.layout.member_bytes_at as usize
                + self.short_number(self.layout.members_at, place) as usize
        });
        Members::read(self.columns.get(start..end)?)
    }

    fn record(&self, doc: u32) -> (FileHeader<'_>, &[u8]) {
        let mut record = &self.rows[self.start(doc) as usize..self.start(doc + 1) as usize];
        let head_length = take_varint(&mut record) as usize;
        let (mut head, texts) = record.split_at(head_length);
        let flags = head[0];
        head = &head[1..];
        let shown_length = (flags & HAS_STORED != 0).then(|| take_varint(&mut head) as usize);
        (FileHeader { flags, shown_length, rest: head }, texts)
    }

    fn text<'a>(&'a self, head: &FileHeader<'_>, texts: &'a [u8]) -> Text<'a> {
        self.symbols.text(head.flags >> TABLE_SHIFT, texts)
    }

    #[inline]
    pub(super) fn texts(&self, doc: u32) -> RowTexts<'_> {
        let (head, texts) = self.record(doc);
        let texts = self.text(&head, texts);
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
        let texts = self.text(&head, texts);
        let (shown, stored) = texts.split_at(head.shown_length.unwrap_or(texts.len()));
        let content = if raw_content && head.shown_length.is_some() { stored } else { shown };
        self.row(doc, &head, lossy_text(content.bytes()))
    }

    /// Returns a message with `content` as its text, without reading the message's own text.
    pub(super) fn hit_with<'a>(&'a self, doc: u32, content: Cow<'a, str>) -> Hit<'a> {
        self.row(doc, &self.record(doc).0, content)
    }

    fn row<'a>(&'a self, doc: u32, head: &FileHeader<'a>, content: Cow<'a, str>) -> Hit<'a> {
        let conversation = self.conversation(doc);
        Hit {
            message_id: head.id(),
            conversation_id: lossy(self.conversation_id(conversation)),
            title: lossy(self.title(conversation)),
            role: self.role_name(doc).into(),
            time: self.time(doc),
            content,
            position: head.rest().position,
        }
    }
}

/// Returns the first of `count` places that `is_past` accepts; it must accept all later places too.
fn first_place(count: u32, is_past: impl Fn(u32) -> bool) -> u32 {
    let mut low = 0;
    let mut high = count;
    while low < high {
        let middle = low.midpoint(high);
        if is_past(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Returns a text with U+FFFD for invalid UTF-8, as [`lossy`] does; the bytes may be owned.
pub(super) fn lossy_text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, path::Path};

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
        let mut writer = DocStoreWriter::create(folder.path(), "rows", 3, 2, &[]).expect("create");
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
        assert_eq!(writer.conversations(), [1, 0]);
        let finished = writer.finish(folder.path(), "columns", &conversations);
        let (layout, _) = finished.expect("finish");
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
            let mut buffer = DocumentBuffer::default();
            let document = rows.document(doc, &mut buffer);
            let stored_bytes = stored.map(str::as_bytes);
            assert_eq!((document.key, document.id, document.stored), (-5, id, stored_bytes));
            let row = Document { stored: stored_bytes.or(document.shown), ..document };
            assert!(rows.is_same(doc, &row), "{row:?}");
            assert!(!rows.is_same(doc, &Document { stored: Some(b"other"), ..row }));
            assert!(!rows.is_same(doc, &Document { role: "other", ..row }));
            assert!(!rows.is_same(doc, &Document { is_text_role: !row.is_text_role, ..row }));
        }
        let members = |conversation| {
            let mut members = rows.members(conversation)?;
            let seek = |target| members.seek(target).then(|| members.doc());
            Some([0, 1, 2, 3].map(seek))
        };
        assert_eq!(members(0), Some([Some(0), None, None, None]));
        assert_eq!(members(1), Some([Some(1), Some(1), Some(2), None]));
        assert_eq!(members(2), None);
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
            let mut writer = DocStoreWriter::create(folder.path(), "rows", roles as usize, 1, &[])
                .expect("create");
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
            let conversation = ConversationTitle { id: "one".into(), title: None };
            let finished = writer.finish(folder.path(), "columns", &[conversation]);
            let (layout, _) = finished.expect("finish");
            let map = |path: &Path| Mapped::new(&File::open(path).expect("open")).expect("a map");
            let rows = DocStore::open(map(&rows), map(&columns), layout).expect("whole");
            for number in [0, roles / 2, roles - 1] {
                assert_eq!(rows.role_name(number), format!("role {number}"));
            }
        }
    }
}
