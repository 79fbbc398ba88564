//! The conversations of a snapshot as one table, which is kept in a file beside the snapshot.
//!
//! A process that shows a few conversations of very many reads only their entries. All numbers are
//! little-endian:
//!
//! ```text
//! number of conversations (u32) | number of parts (u32)
//! for each conversation, latest activity first and then by id, those without a time last:
//!     time of its last message | time of its first message | number of its messages (u32)
//! the numbers of the conversations in the order of their ids (u32 each)
//! for each conversation, the end of its parts (u32)
//! the parts of all conversations: a segment and the number of the conversation in it (u32 each)
//! for each segment and each of its conversations, the number of the conversation (u32)
//! ```
//!
//! A time is a number of seconds (i64) and nanoseconds (u32). Ids, titles and messages stay in the segments.

use std::{borrow::Cow, collections::HashMap, ops::Deref, sync::Arc};

use super::slots::Slots;
use super::sorted_ids::{SortedIds, sorted};
use crate::source::store::snapshot_cache::cache_file;
use verbatim_base::model::Instant;
use verbatim_index::{KeptFile, Snapshot};
use verbatim_text::lossy;

const NAME: &str = "catalogue";

const FORMAT: u32 = 1;

/// The nanoseconds that stand for no time.
const NO_TIME: u32 = u32::MAX;

/// The number of a conversation without living messages.
const DELETED: u32 = u32::MAX;

const HEADER: usize = 8;
const TIME: usize = 12;
const ENTRY: usize = 2 * TIME + 4;
const PART: usize = 8;
const NUMBER: usize = 4;

#[derive(Debug)]
pub(crate) struct CatalogueTable {
    snapshot: Arc<Snapshot>,
    bytes: TableBytes,
    count: usize,
    /// The starts of the arrays after the entries.
    sorted_at: usize,
    ends_at: usize,
    parts_at: usize,
    /// For each segment, the start of the numbers of its conversations.
    numbers_at: Vec<usize>,
    /// The ids and titles that are not UTF-8, with U+FFFD in place of what is not.
    repaired: Slots<[String; 2]>,
}

#[derive(Debug)]
enum TableBytes {
    Kept(KeptFile),
    Made(Vec<u8>),
}

impl Deref for TableBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            TableBytes::Kept(file) => file,
            TableBytes::Made(bytes) => bytes,
        }
    }
}

impl CatalogueTable {
    /// Opens the table of a snapshot. Makes and keeps it, if it is not kept.
    pub(crate) fn open(snapshot: Arc<Snapshot>) -> CatalogueTable {
        if let Some(table) = CatalogueTable::kept(&snapshot) {
            return table;
        }
        let bytes = made(&snapshot);
        cache_file(&snapshot, NAME, FORMAT, &bytes);
        CatalogueTable::over(snapshot, TableBytes::Made(bytes))
            .expect("a table that was just made has its length")
    }

    fn kept(snapshot: &Arc<Snapshot>) -> Option<CatalogueTable> {
        let file = snapshot.kept(NAME, FORMAT).ok()?;
        CatalogueTable::over(Arc::clone(snapshot), TableBytes::Kept(file))
            .filter(CatalogueTable::is_sound)
    }

    /// Returns a view of a table; `None` if its length is wrong.
    fn over(snapshot: Arc<Snapshot>, bytes: TableBytes) -> Option<CatalogueTable> {
        let count = number(&bytes, 0)? as usize;
        let parts = number(&bytes, 4)? as usize;
        let sorted_at = HEADER + ENTRY * count;
        let ends_at = sorted_at + NUMBER * count;
        let parts_at = ends_at + NUMBER * count;
        let mut end = parts_at + PART * parts;
        let mut numbers_at = Vec::new();
        for segment in 0..snapshot.segments().len() {
            numbers_at.push(end);
            end += NUMBER * snapshot.conversations_in(segment) as usize;
        }
        let repaired = Slots::new(count);
        (end == bytes.len()).then_some(CatalogueTable {
            snapshot,
            bytes,
            count,
            sorted_at,
            ends_at,
            parts_at,
            numbers_at,
            repaired,
        })
    }

    /// Returns whether all numbers are within their bounds. The checksum says only that the bytes are those that
    /// somebody wrote.
    fn is_sound(&self) -> bool {
        let count = self.count as u32;
        let parts = self.number(NUMBER);
        let mut end = 0;
        let mut turns = 0;
        for conversation in 0..count {
            let entry = HEADER + ENTRY * conversation as usize;
            let is_time = [8, TIME + 8].iter().all(|at| {
                let nanos = self.number(entry + at);
                nanos < 1_000_000_000 || nanos == NO_TIME
            });
            let is_in_order =
                conversation == 0 || self.last(conversation) <= self.last(conversation - 1);
            let place = NUMBER * conversation as usize;
            let start = std::mem::replace(&mut end, self.number(self.ends_at + place));
            let is_within = self.number(self.sorted_at + place) < count && start < end;
            if !(is_time && is_in_order && is_within) {
                return false;
            }
            turns += u64::from(self.turns(conversation));
        }
        end == parts
            && turns == u64::from(self.snapshot.messages())
            && (0..parts as usize).map(|part| self.parts_at + PART * part).all(|at| {
                let segment = self.number(at) as usize;
                self.texts(segment, self.number(at + NUMBER)).is_some()
            })
            && (self.numbers_at.first().copied().unwrap_or(self.bytes.len())..self.bytes.len())
                .step_by(NUMBER)
                .all(|at| self.number(at) < count || self.number(at) == DELETED)
    }

    /// Returns whether the file is unchanged since it was opened.
    pub(crate) fn is_intact(&self) -> bool {
        match &self.bytes {
            TableBytes::Kept(file) => file.is_intact(),
            TableBytes::Made(_) => true,
        }
    }

    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn last(&self, conversation: u32) -> Option<Instant> {
        self.time(HEADER + ENTRY * conversation as usize)
    }

    pub(crate) fn begun(&self, conversation: u32) -> Option<Instant> {
        self.time(HEADER + ENTRY * conversation as usize + TIME)
    }

    pub(crate) fn turns(&self, conversation: u32) -> u32 {
        self.number(HEADER + ENTRY * conversation as usize + 2 * TIME)
    }

    pub(crate) fn id(&self, conversation: u32) -> &str {
        let first = self.parts(conversation).next().and_then(|(part, at)| self.texts(part, at));
        std::str::from_utf8(first.unwrap_or_default().0)
            .unwrap_or_else(|_| &self.repaired(conversation)[0])
    }

    pub(crate) fn title(&self, conversation: u32) -> &str {
        // The title in the last segment is the current title.
        let last = self.parts(conversation).last().and_then(|(part, at)| self.texts(part, at));
        std::str::from_utf8(last.unwrap_or_default().1.unwrap_or_default())
            .unwrap_or_else(|_| &self.repaired(conversation)[1])
    }

    /// Returns the doc ids of a conversation without deleted messages; within a segment, the oldest
    /// message first.
    pub(crate) fn doc_ids(&self, conversation: u32) -> Vec<u32> {
        let mut doc_ids = Vec::with_capacity(self.turns(conversation) as usize);
        for (segment, number) in self.parts(conversation) {
            let start = doc_ids.len();
            doc_ids.extend(self.snapshot.living_in_conversation(segment, number));
            doc_ids[start..].reverse();
        }
        doc_ids
    }

    /// Returns the number of a message's conversation; `None` for a deleted message.
    pub(crate) fn conversation(&self, doc_id: u32) -> Option<u32> {
        let (segment, number) = self.snapshot.living_place(doc_id)?;
        let found = self.number(self.numbers_at[segment] + NUMBER * number as usize);
        ((found as usize) < self.count).then_some(found)
    }

    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.sorted_ids().find(id)
    }

    /// Does the same as [`Listing::shared_start`](super::Listing::shared_start).
    pub(crate) fn shared_start(&self, id: &str) -> usize {
        self.sorted_ids().shared_start(id)
    }

    /// Returns the conversations whose ids begin with a text. The case of ASCII letters is ignored.
    pub(crate) fn beginning_with(&self, start: &str) -> Vec<u32> {
        self.sorted_ids().beginning_with(start)
    }

    fn sorted_ids<'a>(
        &'a self,
    ) -> SortedIds<impl Fn(usize) -> u32 + 'a, impl Fn(u32) -> &'a str + 'a> {
        SortedIds {
            count: self.count,
            number_at: |place| self.number(self.sorted_at + NUMBER * place),
            id_of: |number| self.id(number),
        }
    }

    /// Returns the segments of a conversation's messages, each with its number in the segment.
    fn parts(&self, conversation: u32) -> impl Iterator<Item = (usize, u32)> {
        let at = self.ends_at + NUMBER * conversation as usize;
        let start = if conversation == 0 { 0 } else { self.number(at - NUMBER) };
        (start..self.number(at)).map(|part| {
            let at = self.parts_at + PART * part as usize;
            (self.number(at) as usize, self.number(at + NUMBER))
        })
    }

    /// Returns the id and the title of a segment's conversation.
    fn texts(&self, segment: usize, number: u32) -> Option<(&[u8], Option<&[u8]>)> {
        (segment < self.numbers_at.len() && number < self.snapshot.conversations_in(segment))
            .then(|| self.snapshot.conversation_in(segment, number))
    }

    fn repaired(&self, conversation: u32) -> &[String; 2] {
        self.repaired.slot(conversation).get_or_init(|| {
            let mut parts = self.parts(conversation).filter_map(|(part, at)| self.texts(part, at));
            let Some(first) = parts.next() else { return Default::default() };
            let (_, title) = parts.last().unwrap_or(first);
            [first.0, title.unwrap_or_default()].map(|bytes| lossy(bytes).into_owned())
        })
    }

    /// Returns a number of the table. If another program cut the file, it may be wrong, but reading it does
    /// not fail.
    fn number(&self, at: usize) -> u32 {
        number(&self.bytes, at).unwrap_or_default()
    }

    fn time(&self, at: usize) -> Option<Instant> {
        let nanos = self.number(at + 8);
        (nanos != NO_TIME).then(|| {
            let [low, high] = [at, at + 4].map(|at| u64::from(self.number(at)));
            Instant { seconds: (high << 32 | low) as i64, nanos }
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(NUMBER)?)?;
    Some(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

/// A conversation while the table is made.
struct Gathered<'a> {
    id: Cow<'a, str>,
    last: Option<Instant>,
    begun: Option<Instant>,
    turns: u32,
}

fn made(snapshot: &Snapshot) -> Vec<u8> {
    let mut conversations: Vec<Gathered<'_>> = Vec::new();
    // The part of a conversation in a segment: the conversation, the segment, and the number in it.
    let mut parts: Vec<(u32, u32, u32)> = Vec::new();
    let mut numbers: Vec<u32> = Vec::new();
    let mut by_name: HashMap<Cow<'_, str>, u32> = HashMap::new();
    let segments = snapshot.segments().len();
    for segment in 0..segments {
        let first_undated = snapshot.first_undated_in(segment);
        for number in 0..snapshot.conversations_in(segment) {
            let mut messages = snapshot.living_in_conversation(segment, number);
            let Some(newest) = messages.next() else {
                numbers.push(DELETED);
                continue;
            };
            // The documents of a segment are in result order, those without a time last.
            let mut oldest = newest;
            let mut turns = 1;
            for doc_id in messages {
                turns += 1;
                if doc_id < first_undated {
                    oldest = doc_id;
                }
            }
            let id = lossy(snapshot.conversation_in(segment, number).0);
            let at = by_name.get(&id).copied().unwrap_or_else(|| {
                conversations.push(Gathered { id, last: None, begun: None, turns: 0 });
                conversations.len() as u32 - 1
            });
            let it = &mut conversations[at as usize];
            it.turns += turns;
            it.last = it.last.max(snapshot.time(newest));
            it.begun = it.begun.into_iter().chain(snapshot.time(oldest)).min();
            parts.push((at, segment as u32, number));
            numbers.push(at);
        }
        // A segment has each conversation only once, so names are needed only for several segments.
        if segment + 1 < segments {
            let new = conversations.iter().zip(0..).skip(by_name.len());
            by_name.extend(new.map(|(it, at)| (it.id.clone(), at)));
        }
    }
    let mut order: Vec<u32> = (0..conversations.len() as u32).collect();
    order.sort_unstable_by(|a, b| {
        let a = &conversations[*a as usize];
        let b = &conversations[*b as usize];
        b.last.cmp(&a.last).then_with(|| a.id.cmp(&b.id))
    });
    let mut place_of = vec![0; order.len()];
    for (place, at) in (0..).zip(&order) {
        place_of[*at as usize] = place;
    }
    // The sort is stable, so that the parts of a conversation stay in the order of the segments.
    parts.sort_by_key(|(at, ..)| place_of[*at as usize]);
    let mut table = vec![order.len() as u32, parts.len() as u32];
    for at in &order {
        let it = &conversations[*at as usize];
        for time in [it.last, it.begun] {
            let Instant { seconds, nanos } = time.unwrap_or(Instant { seconds: 0, nanos: NO_TIME });
            table.extend([seconds as u32, (seconds >> 32) as u32, nanos]);
        }
        table.push(it.turns);
    }
    table.extend(sorted(order.len(), |at| &conversations[order[at as usize] as usize].id));
    let mut end = 0;
    for at in &order {
        end += parts[end..].iter().take_while(|(part_of, ..)| part_of == at).count();
        table.push(end as u32);
    }
    for (_, segment, number) in parts {
        table.extend([segment, number]);
    }
    let place_of = numbers.iter().map(|at| place_of.get(*at as usize).copied().unwrap_or(DELETED));
    table.extend(place_of);
    table.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::TestExport;
    use verbatim_base::call::Call;

    fn snapshot(export: &TestExport) -> Arc<Snapshot> {
        export.engine.sources().remove(0).current_index(&Call::default()).unwrap()
    }

    fn made_now(snapshot: &Arc<Snapshot>) -> CatalogueTable {
        let bytes = TableBytes::Made(made(snapshot));
        CatalogueTable::over(Arc::clone(snapshot), bytes).unwrap()
    }

    /// An export whose index has two segments, and deleted documents.
    fn changed_export() -> TestExport {
        let export = TestExport::indexed(&["red", "green", "blue", "white"]);
        let change = |sql: &str| export.connection.execute_batch(sql).unwrap();
        change(
            "DELETE FROM messages WHERE id = 'm1';
             UPDATE messages SET content = 'grey' WHERE id = 'm2';
             UPDATE conversations SET title = x'FF41' WHERE id = '2';
             INSERT INTO conversations VALUES (x'FE42', NULL);
             INSERT INTO messages VALUES ('a', '0', 'tool', 'old', 1600000000);
             INSERT INTO messages VALUES ('b', '0', 'user', 'timeless', NULL);
             INSERT INTO messages VALUES ('c', x'FE42', 'user', 'bytes', NULL);",
        );
        export.reindex();
        export
    }

    #[test]
    fn a_table_has_the_conversations_of_all_segments() {
        let export = changed_export();
        let snapshot = snapshot(&export);
        let table = made_now(&snapshot);
        let shown = |number: u32| {
            let seconds = |time: Option<Instant>| time.map(|time| time.seconds);
            let times = [table.begun(number), table.last(number)].map(seconds);
            (table.id(number), table.title(number), times, table.turns(number))
        };
        let at = |seconds: i64| Some(1_700_000_000 + seconds);
        let expected = [
            ("3", "Title 3", [at(3), at(3)], 1),
            ("2", "\u{FFFD}A", [at(2), at(2)], 1),
            ("0", "Title 0", [Some(1_600_000_000), at(0)], 3),
            ("\u{FFFD}B", "", [None, None], 1),
        ];
        assert_eq!((0..table.count as u32).map(shown).collect::<Vec<_>>(), expected);
        for number in 0..table.count as u32 {
            let doc_ids = table.doc_ids(number);
            assert_eq!(doc_ids.len() as u32, table.turns(number));
            for doc_id in doc_ids {
                assert_eq!(table.conversation(doc_id), Some(number));
                assert_eq!(snapshot.hit(doc_id, false).conversation_id, table.id(number));
            }
            assert_eq!(table.find(table.id(number)), Some(number));
        }
        let living = (0..snapshot.max_doc() + 1).filter(|id| table.conversation(*id).is_some());
        assert_eq!(living.count() as u32, snapshot.messages());
        assert_eq!(table.find("1"), None);
    }

    #[test]
    fn a_table_that_is_not_as_it_was_kept_is_made_again() {
        let export = changed_export();
        let snapshot = snapshot(&export);
        let expected = made_now(&snapshot);
        assert!(CatalogueTable::kept(&snapshot).is_none());
        let first = CatalogueTable::open(Arc::clone(&snapshot));
        assert!(matches!(first.bytes, TableBytes::Made(_)));
        let kept = CatalogueTable::kept(&snapshot).unwrap();
        assert!(kept.is_intact() && *kept.bytes == *expected.bytes);
        let index = snapshot.segments()[0].folder.parent().unwrap().to_owned();
        let folder = index.join(snapshot.name()).join(NAME);
        let (data, manifest) = (folder.join("data"), folder.join("manifest"));
        let bytes = fs::read(&data).unwrap();
        let flipped: Vec<u8> = bytes.iter().map(|byte| byte ^ 1).collect();
        let cut = bytes[..bytes.len() - 4].to_vec();
        for changed in [flipped, cut, Vec::new()] {
            let kept = CatalogueTable::kept(&snapshot).unwrap();
            fs::write(&data, changed).unwrap();
            assert!(!kept.is_intact());
            assert!(CatalogueTable::kept(&snapshot).is_none());
            assert!(*CatalogueTable::open(Arc::clone(&snapshot)).bytes == *expected.bytes);
            assert!(CatalogueTable::kept(&snapshot).is_some(), "it is kept again");
        }
        for text in ["", "{}", "{\"format\": 9}"] {
            fs::write(&manifest, text).unwrap();
            assert!(CatalogueTable::kept(&snapshot).is_none(), "{text}");
        }
        // A table of another snapshot, with the same number of conversations.
        drop(CatalogueTable::open(Arc::clone(&snapshot)));
        let other = changed_export();
        let other = self::snapshot(&other);
        drop(CatalogueTable::open(Arc::clone(&other)));
        let other_index = other.segments()[0].folder.parent().unwrap().to_owned();
        let other_folder = other_index.join(other.name()).join(NAME);
        fs::copy(other_folder.join("manifest"), &manifest).unwrap();
        fs::copy(other_folder.join("data"), &data).unwrap();
        assert!(CatalogueTable::kept(&snapshot).is_none());
    }

    #[test]
    fn a_table_with_a_number_out_of_bounds_is_not_used() {
        let export = changed_export();
        let snapshot = snapshot(&export);
        let bytes = made(&snapshot);
        let sound = |bytes: Vec<u8>| {
            CatalogueTable::over(Arc::clone(&snapshot), TableBytes::Made(bytes))
                .filter(CatalogueTable::is_sound)
        };
        assert!(sound(bytes.clone()).is_some());
        for at in (0..bytes.len()).step_by(NUMBER) {
            for forged in [0, 2, 7, 1_000, u32::MAX - 1, u32::MAX] {
                let mut bytes = bytes.clone();
                bytes[at..at + NUMBER].copy_from_slice(&u32::to_le_bytes(forged));
                let Some(table) = sound(bytes) else { continue };
                for number in 0..table.count as u32 {
                    assert!(table.doc_ids(number).len() <= snapshot.max_doc() as usize);
                    let _ = (table.id(number), table.title(number), table.find("2"));
                }
                for doc_id in 0..snapshot.max_doc() {
                    let _number = table.conversation(doc_id);
                }
            }
        }
    }

    #[test]
    fn a_cut_file_gives_no_panic() {
        let export = changed_export();
        let snapshot = snapshot(&export);
        let count = made_now(&snapshot).count;
        for end in 0..made(&snapshot).len() {
            let mut table = made_now(&snapshot);
            let mut bytes = made(&snapshot);
            bytes[end..].fill(0);
            table.bytes = TableBytes::Made(bytes);
            for number in 0..count as u32 {
                let _ = (table.id(number), table.title(number), table.last(number));
                let _ = (table.doc_ids(number), table.find("2"));
            }
        }
    }
}
