//! Writes the document store, message by message.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use super::document::{ConversationTitle, Document};
use super::layout::{
    Field, HAS_POSITION, HAS_STORED, IS_IRREGULAR, IS_NOTHING, IS_UUID, NO_TITLE, PADDING,
    RowLayout, TABLE_SHIFT,
};
use super::members::push_members;
use super::packed::Packer;
use crate::artifact::{ArtifactFile, WrittenFile};
use crate::role::role_key;
use crate::uuid::parse_uuid;
use crate::varint::push_varint;
use verbatim_base::model::Instant;

/// The common divisors of a segment's times that are tried, in nanoseconds.
const NANO_STEPS: [u32; 2] = [1_000_000, 1_000];

#[derive(Debug)]
pub(crate) struct DocStoreWriter {
    rows: ArtifactFile,
    packer: Packer,
    offsets: Vec<u64>,
    times: Vec<Option<Instant>>,
    conversations: Numbers,
    conversation_of: Vec<u32>,
    role_of: Vec<u32>,
    roles: HashMap<String, u32>,
    irregular: Vec<u32>,
    head: Vec<u8>,
    texts: Vec<u8>,
    packed: Vec<u8>,
}

#[derive(Debug)]
struct Numbers {
    /// The number of each conversation of the plan that has a message.
    number_of: Vec<Option<u32>>,
    /// The conversations that have messages, in the order of their numbers.
    order: Vec<u32>,
}

impl Numbers {
    fn number(&mut self, conversation: u32) -> u32 {
        *self.number_of[conversation as usize].get_or_insert_with(|| {
            self.order.push(conversation);
            self.order.len() as u32 - 1
        })
    }

    /// Returns all conversations of the plan. Conversations without messages come last.
    fn all_conversations(&self) -> impl Iterator<Item = usize> {
        let without = self.number_of.iter().enumerate().filter(|(_, number)| number.is_none());
        self.order.iter().map(|place| *place as usize).chain(without.map(|(place, _)| place))
    }
}

impl DocStoreWriter {
    /// Begins a store for given numbers of messages and conversations. `sample` trains the compression.
    pub(crate) fn create(
        folder: &Path,
        rows: &str,
        messages: usize,
        conversations: usize,
        sample: &[&str],
    ) -> io::Result<DocStoreWriter> {
        let mut offsets = Vec::with_capacity(messages + 1);
        offsets.push(0);
        Ok(DocStoreWriter {
            rows: ArtifactFile::begin(folder, rows)?,
            packer: Packer::train(sample),
            offsets,
            times: Vec::with_capacity(messages),
            conversations: Numbers {
                number_of: vec![None; conversations],
                order: Vec::with_capacity(conversations),
            },
            conversation_of: Vec::with_capacity(messages),
            role_of: Vec::with_capacity(messages),
            roles: HashMap::new(),
            irregular: Vec::new(),
            head: Vec::new(),
            texts: Vec::new(),
            packed: Vec::new(),
        })
    }

    /// Appends the next message. `regular` says whether all its texts are regular, and `titled`
    /// whether its conversation has a title.
    pub(crate) fn add(
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
        let texts = match document.stored {
            Some(stored) => {
                self.texts.clear();
                self.texts.extend_from_slice(shown);
                self.texts.extend_from_slice(stored);
                &self.texts[..]
            }
            None => shown,
        };
        self.packed.clear();
        let table = self.packer.pack(texts, &mut self.packed);
        let texts = if table == 0 { texts } else { &self.packed };
        flags |= table << TABLE_SHIFT;
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
        for bytes in [&length[..], &self.head, texts] {
            self.rows.write_all(bytes)?;
        }
        let size = length.len() + self.head.len() + texts.len();
        self.offsets.push(self.offsets[doc as usize] + size as u64);
        self.times.push(document.time);
        self.conversation_of.push(self.conversations.number(document.conversation));
        self.role_of.push(role);
        if !regular {
            self.irregular.push(doc);
        }
        Ok(())
    }

    /// Returns the documents of each role, in the order of the roles' keys.
    pub(crate) fn docs_by_role(&self) -> Vec<(&str, Vec<u32>)> {
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

    /// Returns the conversations of the plan that have messages, in the order of their numbers.
    pub(crate) fn conversations(&self) -> &[u32] {
        &self.conversations.order
    }

    fn docs_by_conversation(&self, conversations: usize) -> DocsByConversation {
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

    fn fields_layout(&self) -> RowLayout {
        let times: Vec<Instant> = self.times.iter().copied().flatten().collect();
        let earliest = times.iter().map(|time| time.seconds).min().unwrap_or(0);
        let latest = times.iter().map(|time| time.seconds).max().unwrap_or(0);
        let nanos = times.iter().map(|time| time.nanos).max().unwrap_or(0);
        let mut nano_steps = NANO_STEPS.into_iter();
        let nano_step = nano_steps
            .find(|step| times.iter().all(|time| time.nanos.is_multiple_of(*step)))
            .unwrap_or(1);
        let conversation = self.conversation_of.iter().max().copied().unwrap_or(0);
        let end = self.offsets.last().copied().unwrap_or(0);
        let mut entry = 0;
        RowLayout {
            messages: self.role_of.len() as u32,
            dated: times.len() as u32,
            earliest,
            start: Field::append(&mut entry, end),
            seconds: Field::append(&mut entry, latest.wrapping_sub(earliest) as u64),
            nanos: Field::append(&mut entry, (nanos / nano_step).into()),
            nano_step,
            conversation: Field::append(&mut entry, conversation.into()),
            entry,
            ..RowLayout::default()
        }
    }

    fn put_fields(&self, layout: &RowLayout, out: &mut Columns) -> io::Result<u64> {
        let start = out.at;
        let mut entry = vec![0; layout.entry as usize];
        for (doc, offset) in self.offsets.iter().enumerate() {
            entry.fill(0);
            layout.start.put(&mut entry, *offset);
            if let Some(Some(time)) = self.times.get(doc) {
                let seconds = time.seconds.wrapping_sub(layout.earliest) as u64;
                layout.seconds.put(&mut entry, seconds);
                layout.nanos.put(&mut entry, (time.nanos / layout.nano_step).into());
            }
            if let Some(conversation) = self.conversation_of.get(doc) {
                layout.conversation.put(&mut entry, (*conversation).into());
            }
            out.write(&entry)?;
        }
        out.write(&[0; PADDING])?;
        Ok(start)
    }

    /// Writes the columns, and returns the layout for the manifest and the two files.
    pub(crate) fn finish(
        self,
        folder: &Path,
        columns: &str,
        conversations: &[ConversationTitle],
    ) -> io::Result<(RowLayout, [WrittenFile; 2])> {
        let members = self.docs_by_conversation(conversations.len());
        let order: Vec<&ConversationTitle> =
            self.conversations.all_conversations().map(|place| &conversations[place]).collect();
        let mut out = Columns { file: ArtifactFile::begin(folder, columns)?, at: 0 };
        let role_bytes = match self.roles.len() {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        };
        let mut layout = self.fields_layout();
        layout.fields_at = self.put_fields(&layout, &mut out)?;
        let mut layout = RowLayout {
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
                let ends = order.iter().flat_map(|conversation| {
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
        for conversation in order {
            out.write(conversation.id.as_bytes())?;
            out.write(conversation.title_bytes())?;
        }
        let mut starts = Vec::with_capacity(conversations.len() + 1);
        let mut bytes = Vec::new();
        for number in 0..conversations.len() as u32 {
            starts.push(bytes.len() as u32);
            push_members(members.members(number), &mut bytes);
        }
        starts.push(bytes.len() as u32);
        layout.members_at = out.put(starts.iter().map(|start| start.to_le_bytes()))?;
        layout.member_bytes_at = out.at;
        out.write(&bytes)?;
        layout.symbols_at = out.at;
        out.write(&self.packer.tables())?;
        Ok((layout, [self.rows.finish()?, out.file.finish()?]))
    }
}

#[derive(Debug)]
struct DocsByConversation {
    /// The end of each conversation's documents in `docs`.
    ends: Vec<u32>,
    docs: Vec<u32>,
}

impl DocsByConversation {
    fn members(&self, conversation: u32) -> &[u32] {
        let conversation = conversation as usize;
        let start = if conversation == 0 { 0 } else { self.ends[conversation - 1] };
        &self.docs[start as usize..self.ends[conversation] as usize]
    }
}

struct Columns {
    file: ArtifactFile,
    at: u64,
}

impl Columns {
    /// Writes an array; returns its offset.
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

    /// Writes an array whose element size is known only at run time.
    fn put_bytes(&mut self, bytes: impl Iterator<Item = u8>) -> io::Result<u64> {
        self.put(bytes.map(|byte| [byte]))
    }
}
