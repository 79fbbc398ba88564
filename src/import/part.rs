//! One file of an export: the conversations in it, or the transcript that it is.

use std::{
    borrow::Cow,
    convert::Infallible,
    io::{self, Read},
    path::Path,
};

use memchr::memmem;

use super::{
    Branches, Kind, Reason, Skipped, Tally, chatgpt, claude,
    json::{Fields, Raw},
    repeats::ConversationBuilder,
    scan::{Item, Items},
    transcript::{self, Reader},
};
use crate::model::Conversation;

/// A file that has held this many values and no conversation among them is something else.
const FOREIGN_AFTER: u64 = 200;

/// One file of an export while it is read.
pub(super) struct Part<'a> {
    pub(super) name: &'a str,
    pub(super) branches: Branches,
    pub(super) tally: &'a mut Tally,
    /// Whether anything in it was a conversation, readable or not.
    pub(super) recognised: bool,
    /// Values that are no conversations, while it is open whether any is.
    pub(super) pending: Vec<Skipped>,
}

impl Part<'_> {
    pub(super) fn read<E>(
        &mut self,
        mut reader: Watched<'_, impl Read>,
        sink: &mut dyn FnMut(Kind, Conversation) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = Vec::new();
        let read = reader.by_ref().take(transcript::ENOUGH).read_to_end(&mut start);
        if read.is_ok() && transcript::is_one(&start) {
            return self.transcript(start.chain(reader), sink);
        }
        let mut items = Items::new(start.chain(reader));
        let mut ordinal = 0;
        while let Some(item) = items.next() {
            ordinal += 1;
            let (bytes, broken) = match item {
                Item::Value(bytes) => (bytes, None),
                Item::Broken(bytes) => (bytes, Some(Reason::Unbalanced)),
                Item::Cut(bytes) => (bytes, Some(Reason::CutOff)),
                Item::TooLong => (&b""[..], Some(Reason::TooLong)),
                Item::Garbage => {
                    if self.recognised {
                        self.tally.damaged.push(format!(
                            "{}: something that is no JSON follows the conversations",
                            self.name
                        ));
                    }
                    break;
                }
            };
            let (fields, damage) = Raw::new(bytes).fields_until_damage();
            let damaged = broken.is_some() || damage.is_some();
            let kind = Kind::of(&fields).or_else(|| if damaged { named(bytes) } else { None });
            if let (None, None, Some(Kind::ClaudeCode | Kind::Codex)) = (&broken, &damage, kind) {
                self.recognise();
                match self.records(&fields, sink) {
                    Ok(read) => read?,
                    Err(reason) => self.tally.damaged.push(format!("{}: {reason}", self.name)),
                }
                continue;
            }
            let result = match (broken, damage, kind) {
                (Some(reason), _, _) => Err(reason),
                (None, Some(damage), _) => Err(Reason::Damaged(damage)),
                (None, None, Some(Kind::ChatGpt)) => {
                    chatgpt::conversation(&fields, self.branches, self.tally)
                }
                (None, None, Some(Kind::Claude)) => {
                    claude::conversation(&fields, self.branches, self.tally)
                }
                (None, None, _) => Err(Reason::Unknown),
            };
            match (result, kind) {
                (Ok(conversation), Some(kind)) => {
                    self.recognise();
                    self.tally.conversations += 1;
                    self.tally.messages += conversation.messages.len() as u64;
                    sink(kind, conversation)?;
                }
                (Ok(_), None) => {}
                (Err(reason), kind) => {
                    if kind.is_some() {
                        self.recognise();
                    }
                    let name = ["title", "name", "id", "uuid", "conversation_id"]
                        .into_iter()
                        .find_map(|name| {
                            fields
                                .text(name)
                                .filter(|text| !text.trim().is_empty())
                                .map(Cow::into_owned)
                        });
                    let damaged = kind.is_some() && matches!(reason, Reason::Damaged(_));
                    let reason =
                        if damaged && items.reconsider() { Reason::Unbalanced } else { reason };
                    let skipped = Skipped {
                        file: self.name.to_owned(),
                        ordinal,
                        name,
                        reason: reason.to_string(),
                    };
                    if self.recognised {
                        self.tally.skip(skipped);
                    } else {
                        self.pending.push(skipped);
                        if ordinal >= FOREIGN_AFTER {
                            break;
                        }
                    }
                }
            }
        }
        if let Some(error) = items.failure() {
            self.tally.damaged.push(format!("{}: cannot be read to its end: {error}", self.name));
        }
        self.tally.bytes += items.into_inner().into_inner().1.read;
        Ok(())
    }

    /// Reads a transcript, which is one conversation.
    fn transcript<E>(
        &mut self,
        mut input: io::Chain<&[u8], Watched<'_, impl Read>>,
        sink: &mut dyn FnMut(Kind, Conversation) -> Result<(), E>,
    ) -> Result<(), E> {
        self.recognise();
        let mut reader = Reader::new(Path::new(self.name));
        let mut builder = ConversationBuilder::new(&mut self.tally.history, Path::new(self.name));
        let read = reader
            .read::<io::Error>(&mut input, &mut |reader, event| Ok(builder.add(reader, event)));
        let conversation = builder.build(&reader);
        if let Err(error) = read {
            self.tally.damaged.push(format!("{}: cannot be read to its end: {error}", self.name));
        }
        self.tally.bytes += input.into_inner().1.read;
        self.finish(&reader, conversation, sink)
    }

    /// Reads a transcript whose records are the items of a list.
    fn records<E>(
        &mut self,
        fields: &Fields<'_>,
        sink: &mut dyn FnMut(Kind, Conversation) -> Result<(), E>,
    ) -> Result<Result<(), E>, Reason> {
        let mut reader = Reader::new(Path::new(self.name));
        let mut records: Vec<Raw<'_>> = fields.get("session").into_iter().collect();
        for list in ["loglines", "items"] {
            records.extend(fields.get(list).map(Raw::items).transpose()?.into_iter().flatten());
        }
        let mut builder = ConversationBuilder::new(&mut self.tally.history, Path::new(self.name));
        for record in records {
            let Ok(()) = reader.record_alone::<Infallible>(record.bytes(), &mut |reader, event| {
                Ok(builder.add(reader, event))
            });
        }
        let conversation = builder.build(&reader);
        Ok(self.finish(&reader, conversation, sink))
    }

    fn finish<E>(
        &mut self,
        reader: &Reader,
        conversation: Option<Conversation>,
        sink: &mut dyn FnMut(Kind, Conversation) -> Result<(), E>,
    ) -> Result<(), E> {
        self.tally.malformed += reader.malformed();
        if let (Some(kind), Some(conversation)) = (reader.kind(), conversation) {
            self.tally.conversations += 1;
            self.tally.messages += conversation.messages.len() as u64;
            sink(kind, conversation)?;
        }
        Ok(())
    }

    /// Notes that this is an export after all, and so are the values that looked foreign.
    fn recognise(&mut self) {
        self.recognised = true;
        for skipped in self.pending.drain(..) {
            self.tally.skip(skipped);
        }
    }
}

/// Tells the kind of a conversation that is too broken to have fields.
fn named(bytes: &[u8]) -> Option<Kind> {
    if memmem::find(bytes, b"\"mapping\"").is_some() {
        Some(Kind::ChatGpt)
    } else if memmem::find(bytes, b"\"chat_messages\"").is_some() {
        Some(Kind::Claude)
    } else {
        None
    }
}

/// Tells of what is read from a reader.
pub(super) struct Watched<'a, R> {
    pub(super) inner: R,
    pub(super) progress: &'a dyn Fn(u64),
    pub(super) read: u64,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read += read as u64;
        (self.progress)(read as u64);
        Ok(read)
    }
}
