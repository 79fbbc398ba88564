//! Reads one file of an export: its conversations, or its transcript.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::{self, Read};
use std::path::Path;

use super::builder::ConversationBuilder;
use super::compressed::is_named_as_transcript;
use super::format::{FileLayout, Format, TranscriptFormat};
use super::json::{Brackets, Damage, ObjectFields, Raw};
use super::package::is_json;
use super::scan::{ScannedValue, Scanner};
use super::tally::{Branches, ImportTally, Reason, Skipped};
use super::transcript::{self, TranscriptReader};
use super::{foreign, formats, head, page};
use verbatim_base::model::Conversation;
use verbatim_text::{amount::counted, screen};

/// If this many values at the beginning are not conversations, the file is not an export.
const FOREIGN_AFTER_VALUES: u64 = 200;

/// The phrase for parts of exports and for files that are not listed one by one.
const OTHER_PARTS: &str = "other parts of exports";

/// The number of values of a file that are checked to detect its format.
const VALUES_LOOKED_AT: usize = 20;

pub(super) type ConversationSink<'a, E> =
    &'a mut dyn FnMut(&'static Format, Conversation) -> Result<(), E>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileContents {
    /// A conversation, readable or not.
    Conversations,
    /// Parts of an export that are read, but nothing is said in them.
    Blank,
    /// JSON without any value, or with values that exports have besides conversations.
    Nothing,
    Foreign,
}

pub(super) struct ExportFile<'a> {
    name: &'a str,
    branches: Branches,
    tally: &'a mut ImportTally,
    /// Whether a conversation was found in the file, readable or not.
    is_recognised: bool,
    /// Whether the file is JSON and has nothing that an import could read.
    is_known_as_empty: bool,
    /// Whether a part was read in which nothing is said.
    has_blank: bool,
    /// Whether the file is a web page, which goes on after its conversations.
    is_page: bool,
    /// Values that are not conversations. They are reported only if a conversation follows.
    pending: Vec<Skipped>,
    /// The number of texts with bytes that are not UTF-8.
    lossy_texts: u64,
}

impl<'a> ExportFile<'a> {
    pub(super) fn new(name: &'a str, branches: Branches, tally: &'a mut ImportTally) -> Self {
        ExportFile {
            name,
            branches,
            tally,
            is_recognised: false,
            is_known_as_empty: false,
            has_blank: false,
            is_page: false,
            pending: Vec::new(),
            lossy_texts: 0,
        }
    }

    pub(super) fn read<E>(
        mut self,
        mut reader: CountingReader<'_, impl Read>,
        sink: ConversationSink<'_, E>,
    ) -> Result<FileContents, E> {
        let mut start = Vec::new();
        let read = transcript::read_start(&mut reader, self.name, transcript::ENOUGH, &mut start);
        if let Some(encoding) = wide_encoding(&start) {
            self.recognise();
            self.damaged(&format!("its text is {encoding}; save it as UTF-8"));
            self.tally.bytes += reader.read;
        } else if read.is_ok() && transcript::is_transcript(&start) {
            self.recognise();
            self.transcript(start.chain(reader), sink)?;
        } else if read.is_ok() && transcript::is_too_long(self.name, &start) {
            self.transcript(start.chain(reader), sink)?;
        } else if page::is_page(&start) {
            self.page(start, reader, sink)?;
        } else if let Some(what) = foreign::describe_start(&start) {
            self.is_known_as_empty = true;
            self.tally.leave_out(what, OTHER_PARTS, 1);
        } else if let Some(what) = transcript::foreign_transcript(&start)
            .filter(|_| is_named_as_transcript(Path::new(self.name)))
        {
            self.is_known_as_empty = true;
            self.tally.leave_out(what, OTHER_PARTS, 1);
        } else {
            self.values(start.chain(reader), sink)?;
            if let (false, Some(what)) = (self.is_recognised, foreign::describe_name(self.name)) {
                self.is_known_as_empty = true;
                self.tally.leave_out(what, OTHER_PARTS, 1);
            }
        }
        if self.lossy_texts > 0 {
            let texts = counted(self.lossy_texts, "text");
            self.damaged(&format!(
                "bytes that are not UTF-8 are in {texts}; save the file as UTF-8 and import it again"
            ));
        }
        Ok(match (self.is_recognised, self.is_known_as_empty) {
            (true, _) => FileContents::Conversations,
            (false, true) if self.has_blank => FileContents::Blank,
            (false, true) => FileContents::Nothing,
            (false, false) => FileContents::Foreign,
        })
    }

    /// Reads a web page. The page of an export may be long; the conversations of other pages are searched for.
    fn page<E>(
        &mut self,
        mut start: Vec<u8>,
        mut reader: CountingReader<'_, impl Read>,
        sink: ConversationSink<'_, E>,
    ) -> Result<(), E> {
        self.is_page = true;
        if let Some(at) = page::exported(&start) {
            self.values(start[at..].chain(reader), sink)?;
        } else {
            if let Err(error) = reader.by_ref().take(page::LONGEST_PAGE).read_to_end(&mut start) {
                self.damaged(&format!("cannot be read to its end: {error}"));
            }
            let found = page::conversations(&start).join(&b'\n');
            self.values(found.chain(reader), sink)?;
        }
        // A page that has the name of another file may be an error of a download.
        if !self.is_recognised && !is_json(Path::new(self.name)) {
            self.is_known_as_empty = true;
            self.tally.leave_out(page::described(&start), OTHER_PARTS, 1);
        }
        Ok(())
    }

    /// Reads a file of JSON values, some or all of which are conversations.
    fn values<E>(
        &mut self,
        input: io::Chain<&[u8], CountingReader<'_, impl Read>>,
        sink: ConversationSink<'_, E>,
    ) -> Result<(), E> {
        let mut scanner = Scanner::new(input, formats::field_names());
        let mut ordinal = 0;
        let mut known = 0;
        let mut is_cut = false;
        let before = self.tally.conversations;
        let mut brackets = Brackets::default();
        while let Some(value) = scanner.next() {
            ordinal += 1;
            is_cut |= matches!(value, ScannedValue::Cut(_));
            let (bytes, broken) = match value {
                ScannedValue::Value(bytes) => (bytes, None),
                ScannedValue::Broken(bytes) => (bytes, Some(Reason::Unbalanced)),
                ScannedValue::Cut(bytes) => (bytes, Some(Reason::CutOff)),
                ScannedValue::TooLong => (&b""[..], Some(Reason::TooLong)),
                ScannedValue::Garbage => {
                    if self.is_recognised && !self.is_page {
                        self.damaged("something that is not JSON follows the conversations");
                    }
                    break;
                }
            };
            let (fields, damage) = brackets.value(bytes).fields_until_damage();
            let is_damaged = broken.is_some() || damage.is_some();
            let format = formats::of_conversation(&fields)
                .or_else(|| if is_damaged { formats::detect_damaged(bytes) } else { None });
            if let (false, Some(transcript)) = (is_damaged, format.and_then(Format::transcript)) {
                self.recognise();
                match self.records(transcript, &fields, sink) {
                    Ok(read) => read?,
                    Err(damage) => self.damaged(&Reason::Damaged(damage)),
                }
                continue;
            }
            if format.is_none()
                && let Some(what) = formats::describe_known_part(&fields)
            {
                self.tally.leave_out(what, OTHER_PARTS, 1);
                known += 1;
                continue;
            }
            let failure = broken.or(damage.map(Reason::Damaged));
            let reason = match self.conversation(&fields, format, failure) {
                Ok((_, None)) => {
                    self.has_blank = true;
                    known += 1;
                    continue;
                }
                Ok((format, Some(conversation))) => {
                    self.recognise();
                    self.hand_over(format, conversation, &|| str::from_utf8(bytes).is_ok(), sink)?;
                    continue;
                }
                Err(reason) => reason,
            };
            let name = title_or_id(&fields);
            // A conversation without its closing bracket seems to contain the next conversation.
            let is_damaged = format.is_some() && matches!(reason, Reason::Damaged(_));
            let reason =
                if is_damaged && scanner.reconsider() { Reason::Unbalanced } else { reason };
            let is_foreign = self.skip(ordinal, name, &reason, format.is_some());
            if is_foreign {
                break;
            }
        }
        self.is_known_as_empty = ordinal == known && scanner.is_closed();
        if let Some(error) = scanner.failure() {
            self.damaged(&format!("cannot be read to its end: {error}"));
        } else if self.is_recognised && (is_cut || scanner.is_unfinished()) {
            let name = self.name;
            let read = self.tally.conversations - before;
            let what = format!(
                "{name} is cut off after {read} conversation{}; what followed is missing",
                if read == 1 { "" } else { "s" }
            );
            self.tally.damaged.push(what);
        }
        self.tally.bytes += scanner.into_inner().into_inner().1.read;
        Ok(())
    }

    /// Reads a conversation; `None` if nothing is said in the value. If `failure` is given, returns it as the error.
    fn conversation(
        &mut self,
        fields: &ObjectFields<'_>,
        format: Option<&'static Format>,
        failure: Option<Reason>,
    ) -> Result<(&'static Format, Option<Conversation>), Reason> {
        if let Some(reason) = failure {
            return Err(reason);
        }
        let format = format.ok_or_else(formats::unknown_format)?;
        match &format.layout {
            FileLayout::Object(object) => {
                Ok((format, (object.read)(fields, self.branches, self.tally)?))
            }
            FileLayout::Transcript(_) => Err(formats::unknown_format()),
        }
    }

    /// Records that a value could not be read; returns whether the file is not an export.
    fn skip(
        &mut self,
        ordinal: u64,
        name: Option<String>,
        reason: &Reason,
        is_conversation: bool,
    ) -> bool {
        if is_conversation {
            self.recognise();
        }
        let file = self.name.to_owned();
        let skipped = Skipped { file, ordinal, name, reason: reason.to_string() };
        if self.is_recognised {
            self.tally.skip(skipped);
            return false;
        }
        self.pending.push(skipped);
        ordinal >= FOREIGN_AFTER_VALUES
    }

    fn transcript<E>(
        &mut self,
        mut input: io::Chain<&[u8], CountingReader<'_, impl Read>>,
        sink: ConversationSink<'_, E>,
    ) -> Result<(), E> {
        let mut reader = TranscriptReader::new(Path::new(self.name));
        let mut builder = ConversationBuilder::new(&mut self.tally.history, Path::new(self.name));
        // The file does not grow, so its last line is whole or damaged.
        let mut lines = (&mut input).chain(&b"\n"[..]);
        let read = reader
            .read::<io::Error>(&mut lines, &mut |reader, event| Ok(builder.add(reader, event)));
        let conversation = builder.finish(&reader);
        self.tally.bytes += input.into_inner().1.read;
        if reader.format().is_some() {
            self.recognise();
        } else if !self.is_recognised {
            let what = reader.foreign().into_iter();
            what.for_each(|what| self.tally.leave_out(what, OTHER_PARTS, 1));
            return Ok(());
        }
        if let Err(error) = read {
            self.damaged(&format!("cannot be read to its end: {error}"));
        }
        self.finish(&reader, conversation, sink)
    }

    /// Reads a transcript in one object. Its records are items of the object's lists.
    fn records<E>(
        &mut self,
        transcript: &TranscriptFormat,
        fields: &ObjectFields<'_>,
        sink: ConversationSink<'_, E>,
    ) -> Result<Result<(), E>, Damage> {
        let mut records: Vec<Raw<'_>> = Vec::new();
        for field in transcript.records {
            match fields.get(field) {
                Some(list) if list.is_array() => records.extend(list.items()?),
                record => records.extend(record),
            }
        }
        let mut reader = TranscriptReader::new(Path::new(self.name));
        let mut builder = ConversationBuilder::new(&mut self.tally.history, Path::new(self.name));
        for record in records {
            let Ok(()) = reader.line::<Infallible>(record.bytes(), &mut |reader, event| {
                Ok(builder.add(reader, event))
            });
        }
        let conversation = builder.finish(&reader);
        Ok(self.finish(&reader, conversation, sink))
    }

    fn finish<E>(
        &mut self,
        reader: &TranscriptReader,
        conversation: Option<Conversation>,
        sink: ConversationSink<'_, E>,
    ) -> Result<(), E> {
        self.tally.malformed += reader.malformed();
        for (kind, count) in reader.unknown() {
            self.tally.unknown(kind, *count);
        }
        for (what, count) in reader.left_out() {
            self.tally.leave_out(what.clone(), what, *count);
        }
        match (reader.format(), conversation) {
            (Some(format), Some(conversation)) => {
                self.hand_over(format, conversation, &|| reader.not_utf8() == 0, sink)
            }
            _ => Ok(()),
        }
    }

    fn hand_over<E>(
        &mut self,
        format: &'static Format,
        mut conversation: Conversation,
        is_utf8: &dyn Fn() -> bool,
        sink: ConversationSink<'_, E>,
    ) -> Result<(), E> {
        date(&mut conversation);
        clean(&mut conversation);
        let texts = conversation.messages.iter().map(|message| &message.content);
        let texts = texts.chain(&conversation.title);
        let replaced = texts.filter(|text| text.contains(char::REPLACEMENT_CHARACTER)).count();
        if replaced > 0 && !is_utf8() {
            conversation.is_lossy = true;
            self.lossy_texts += replaced as u64;
        }
        self.tally.conversations += 1;
        self.tally.messages += conversation.messages.len() as u64;
        self.tally.bare += u64::from(conversation.messages.is_empty());
        sink(format, conversation)
    }

    /// Records that the file is an export, and reports the pending values that are not conversations.
    fn recognise(&mut self) {
        self.is_recognised = true;
        for skipped in self.pending.drain(..) {
            self.tally.skip(skipped);
        }
    }

    fn damaged(&mut self, reason: &(impl std::fmt::Display + ?Sized)) {
        self.tally.damaged.push(format!("{}: {reason}", self.name));
    }
}

/// Returns UTF-16 or UTF-32 if a text begins with its byte order mark, or with ASCII characters in it.
fn wide_encoding(start: &[u8]) -> Option<&'static str> {
    match start {
        [0xFF, 0xFE, 0, 0, ..]
        | [0, 0, 0xFE, 0xFF, ..]
        | [1..=127, 0, 0, 0, ..]
        | [0, 0, 0, 1..=127, ..] => Some("UTF-32"),
        [0xFF, 0xFE, ..]
        | [0xFE, 0xFF, ..]
        | [1..=127, 0, 1..=127, 0, ..]
        | [0, 1..=127, 0, 1..=127, ..] => Some("UTF-16"),
        _ => None,
    }
}

/// Returns the format of the first conversation in a file that begins with these bytes.
pub(super) fn detect_format(start: &[u8]) -> Option<&'static Format> {
    if let Some(format) = transcript::format_of(start) {
        return Some(format);
    }
    let mut scanner = Scanner::new(start, formats::field_names());
    for _ in 0..VALUES_LOOKED_AT {
        let format = match scanner.next()? {
            ScannedValue::Value(bytes) => {
                formats::of_conversation(&Raw::new(bytes).fields_until_damage().0)
            }
            // Conversations can be longer than the part of the file that was read.
            ScannedValue::Broken(bytes) | ScannedValue::Cut(bytes) => {
                formats::detect_damaged(bytes)
            }
            ScannedValue::TooLong | ScannedValue::Garbage => return None,
        };
        if format.is_some() {
            return format;
        }
    }
    None
}

/// If no message of a conversation has a time, sets all times to the conversation's start time, so that date
/// ranges find the conversation.
fn date(conversation: &mut Conversation) {
    if conversation.messages.iter().all(|message| message.create_time.is_none()) {
        for message in &mut conversation.messages {
            message.create_time = conversation.create_time;
        }
    }
}

/// Takes escape sequences of terminals out of a conversation. The outputs of programs are what a terminal shows.
fn clean(conversation: &mut Conversation) {
    for message in &mut conversation.messages {
        if message.role == "tool"
            && let Cow::Owned(shown) = screen::shown(&message.content)
        {
            message.content = shown;
        }
        head::clean(&mut message.content);
    }
    conversation.title.iter_mut().for_each(head::clean);
}

fn title_or_id(fields: &ObjectFields<'_>) -> Option<String> {
    ["title", "name", "id", "uuid", "conversation_id"].into_iter().find_map(|name| {
        fields.text(name).filter(|text| !text.trim().is_empty()).map(Cow::into_owned)
    })
}

/// A reader that counts bytes and reports them to `progress`.
pub(super) struct CountingReader<'a, R> {
    pub(super) inner: R,
    pub(super) progress: &'a dyn Fn(u64),
    pub(super) read: u64,
}

impl<R: Read> Read for CountingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read += read as u64;
        (self.progress)(read as u64);
        Ok(read)
    }
}
