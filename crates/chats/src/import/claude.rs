//! Claude.ai's exports: a list of messages in `chat_messages`.

mod projects;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::import::fields::{derive_id, names, own_id, time, with_files};
use crate::import::format::{FileLayout, Format, ObjectFormat};
use crate::import::head::Head;
use crate::import::json::{Damage, ObjectFields, Raw, Value};
use crate::import::plain::plain;
use crate::import::sources;
use crate::import::tally::{Branches, ImportTally, Reason};
use crate::import::tool::{call, joined, lines, placeholder};
use verbatim_base::model::{AttachedContent, AttachedFile, Conversation, Message};
use verbatim_text::address::encoded;
use verbatim_text::parts::{ANSWER, Artifact, CALL, RESULT, THINKING};

pub(super) const SOURCE_FORMAT: Format = Format {
    name: "claude",
    label: "Claude.ai",
    is_conversation: |fields| {
        fields.get("chat_messages").is_some_and(|list| are_messages(list, "sender"))
            || is_design(fields)
            || projects::is_project(fields)
            || projects::is_memory(fields)
    },
    layout: FileLayout::Object(ObjectFormat {
        messages: "chat_messages",
        marks: &projects::MARKS,
        foreign: &[],
        list: "conversations",
        read: |fields, branches, tally| {
            if fields.has("chat_messages") || is_design(fields) {
                return conversation(fields, branches, tally).map(Some);
            }
            let is_project = projects::is_project(fields);
            let read = if is_project { projects::project } else { projects::memory };
            Ok(Some(read(fields)?).filter(|conversation| !conversation.messages.is_empty()))
        },
    }),
};

/// Returns whether these are the fields of a chat about a design. Such a chat has its own file.
fn is_design(fields: &ObjectFields<'_>) -> bool {
    let list = fields.get(DESIGN_MESSAGES).filter(|list| list.is_array());
    list.is_some_and(|list| are_messages(list, "role"))
        && ["uuid", "project", "created_at"].iter().all(|name| fields.has(name))
}

/// Returns whether a list may have messages, which name the one who said them in the field `sender`.
fn are_messages(list: Raw<'_>, sender: &str) -> bool {
    let first = list.items().ok().and_then(|items| items.into_iter().find(|it| it.is_object()));
    let fields = first.map(|first| first.fields_until_damage().0);
    fields.is_none_or(|it| {
        [sender, "role", "uuid"].iter().any(|name| it.has(name))
            && ["text", "content"].iter().any(|name| it.has(name))
    })
}

/// The heading of the service's summary of a conversation.
const SUMMARY: &str = "[summary of the conversation]";

const DESIGN_MESSAGES: &str = "messages";

fn conversation(
    fields: &ObjectFields<'_>,
    branches: Branches,
    tally: &mut ImportTally,
) -> Result<Conversation, Reason> {
    let list = fields.get("chat_messages").or_else(|| fields.get(DESIGN_MESSAGES));
    let list = list.filter(|list| list.is_array());
    let items = list.ok_or(Reason::NoMessages("chat_messages"))?.items()?;
    // A message that is no object is the text of one.
    let mut others = Vec::new();
    for raw in items.iter().filter(|raw| !raw.is_object()) {
        tally.unknown("a message that is no object", 1);
        others.push([br#"{"sender":"system","text":"#, raw.bytes(), b"}"].concat());
    }
    let mut texts = others.iter();
    let mut turns = Vec::new();
    for raw in items {
        let text = if raw.is_object() { None } else { texts.next() };
        turns.push(text.map_or(raw, |text| Raw::new(text)).fields()?);
    }
    let mut messages: Vec<Message> = Vec::with_capacity(turns.len());
    let mut files = Vec::new();
    let parents = Parents::new(&turns);
    let (order, shown) =
        parents.order(fields.text("current_leaf_message_uuid").as_deref(), branches);
    tally.leave_out_branches((turns.len() - order.len()) as u64);
    // The message id of each turn that was read. An empty turn has the id of its parent's message.
    let mut read: HashMap<usize, String> = HashMap::new();
    for (place, at) in order.into_iter().enumerate() {
        let before = parents.parents[at].and_then(|parent| read.get(&parent)).cloned();
        let before = before.unwrap_or_default();
        match message(&turns[at], at, tally)? {
            Some((mut message, own)) => {
                read.insert(at, message.id.clone());
                message.follows = (place >= shown).then_some(before);
                let at = messages.len();
                files.extend(own.into_iter().map(|file| AttachedFile { message: at, ..file }));
                messages.push(message);
            }
            None => {
                read.insert(at, before);
                tally.empty += 1;
            }
        }
    }
    let own_id = own_id(fields, ["uuid", "id", "conversation_id"]);
    let update_time = fields.get("updated_at").and_then(time);
    // The service's own summary, by which its search finds the conversation.
    let summary = fields.text("summary").unwrap_or_default();
    if !summary.trim().is_empty() && !messages.is_empty() {
        messages.push(Message {
            id: "/summary".to_owned(),
            role: "system".to_owned(),
            content: format!("{SUMMARY}\n{}", summary.trim()),
            create_time: update_time.or(messages.last().and_then(|last| last.create_time)),
            ..Message::default()
        });
    }
    let create_time = fields.get("created_at").and_then(time);
    let title = fields.text("name").or_else(|| fields.text("title")).map(Cow::into_owned);
    let link = own_id.as_ref().map(|id| format!("https://claude.ai/chat/{}", encoded(id)));
    let id = own_id.unwrap_or_else(|| derive_id(create_time, title.as_deref(), &messages));
    Ok(projects::with_whole_ids(Conversation {
        id,
        link,
        title,
        create_time,
        update_time,
        model: fields.text("model").map(Cow::into_owned),
        archived: fields.get("is_archived").is_some_and(Raw::is_true),
        starred: fields.get("is_starred").is_some_and(Raw::is_true),
        messages,
        files,
        ..Conversation::default()
    }))
}

struct Parents<'a> {
    by_id: HashMap<Cow<'a, str>, usize>,
    parents: Vec<Option<usize>>,
    /// Whether messages name several missing parents. Otherwise all first messages name the same one.
    is_torn: bool,
}

impl<'a> Parents<'a> {
    fn new(turns: &[ObjectFields<'a>]) -> Parents<'a> {
        let ids = turns.iter().enumerate();
        let by_id: HashMap<Cow<'_, str>, usize> =
            ids.filter_map(|(at, turn)| Some((turn.text("uuid")?, at))).collect();
        let parents: Vec<Option<usize>> = turns
            .iter()
            .map(|turn| by_id.get(&turn.text("parent_message_uuid")?).copied())
            .collect();
        let firsts = turns.iter().zip(&parents).filter(|(_, parent)| parent.is_none());
        let named: HashSet<_> =
            firsts.filter_map(|(it, _)| it.text("parent_message_uuid")).collect();
        Parents { by_id, parents, is_torn: named.len() > 1 }
    }

    fn ancestors(&self, turn: usize) -> impl Iterator<Item = usize> {
        let mut seen = HashSet::new();
        let up = std::iter::successors(Some(turn), |at| self.parents[*at]);
        up.take_while(move |at| seen.insert(*at))
    }

    /// Returns the messages to read, and how many of them the service shows. The shown messages come first:
    /// the path to the current message, or the whole list if the messages do not name their parents or the
    /// chain of parents is broken. The other messages keep the list's order, but each comes after its parent.
    fn order(&self, current: Option<&str>, branches: Branches) -> (Vec<usize>, usize) {
        let leaf = current.and_then(|id| self.by_id.get(id));
        let mut path: Vec<usize> =
            leaf.map(|leaf| self.ancestors(*leaf).collect()).unwrap_or_default();
        path.reverse();
        // A path of one message is used only if other messages name their parents.
        let all = self.parents.len();
        if path.is_empty() || self.is_torn || self.parents.iter().all(Option::is_none) {
            return ((0..all).collect(), all);
        }
        let shown = path.len();
        if branches == Branches::All {
            let mut seen: HashSet<usize> = path.iter().copied().collect();
            for turn in 0..all {
                let begin = path.len();
                let up = std::iter::successors(Some(turn), |at| self.parents[*at]);
                path.extend(up.take_while(|at| seen.insert(*at)));
                path[begin..].reverse();
            }
        }
        (path, shown)
    }
}

/// The text that Claude.ai writes instead of calls of tools.
const UNSUPPORTED: &str = "```\nThis block is not supported on your current device yet.\n```";

/// The fields of a message whose texts are read where they have any.
const READ: [&str; 5] = ["attachments", "content", "files", "files_v2", "text"];

/// Reads a message and its files; returns `None` if the message has neither text nor files.
fn message(
    fields: &ObjectFields<'_>,
    at: usize,
    tally: &mut ImportTally,
) -> Result<Option<(Message, Vec<AttachedFile>)>, Damage> {
    let mut texts = PartTexts::default();
    let mut cited = Vec::new();
    let mut has_text = false;
    if let Some(content) = fields.get("content") {
        let content = content.value()?;
        // In a chat about a design, the content is an object with blocks or with a text.
        let blocks = content.get("contentBlocks").filter(|blocks| !blocks.items().is_empty());
        let is_untyped = content.get("type").is_none();
        let blocks = blocks.or_else(|| content.get("content").filter(|_| is_untyped));
        for block in blocks.unwrap_or(&content).items() {
            texts.add(block_text(block, tally));
            has_text |= block.str("type") == "text" && !block.str("text").trim().is_empty();
            has_text |= block.as_str().is_some_and(|text| !text.trim().is_empty());
            cited.extend(block.get("citations").cloned());
        }
    }
    if !has_text {
        let text = match fields.get("text") {
            Some(text) if text.is_object() || text.is_array() => plain(&text.value()?, true),
            text => text.and_then(Raw::text).unwrap_or_default().into_owned(),
        };
        let text = text.replace(UNSUPPORTED, "");
        if !texts.texts.iter().any(|it| it.contains(text.trim())) {
            texts.add(text);
        }
    }
    let mut attachments = Vec::new();
    let mut contents = Vec::new();
    let mut ids = HashSet::new();
    if let Some(list) = fields.get("attachments") {
        attachments.extend(names(list, &["file_name", "name"])?);
        for file in list.value()?.items() {
            let extracted = file.str("extracted_content");
            if !extracted.trim().is_empty() {
                texts.add(lines([file.str("file_name"), extracted]));
                let text = AttachedContent::Text(extracted.to_owned());
                contents.push(attached(file.str("file_name"), text));
            }
        }
    }
    for list in ["files", "files_v2"] {
        if let Some(list) = fields.get(list) {
            for file in list.value()?.items() {
                let id = file.str("file_uuid").to_owned();
                if !id.is_empty() && ids.insert(id.clone()) {
                    contents.push(attached(file.str("file_name"), AttachedContent::Id(id)));
                }
            }
            let mut known: HashSet<String> = attachments.iter().cloned().collect();
            let names = names(list, &["file_name", "name"])?.into_iter();
            attachments.extend(names.filter(|name| known.insert(name.clone())));
        }
    }
    if texts.texts.is_empty() && attachments.is_empty() && contents.is_empty() {
        let mut others = Vec::new();
        for (name, value) in fields.iter().filter(|(name, _)| !READ.contains(name)) {
            others.push((name.to_owned(), value.value()?));
        }
        let text = Head::words(&Value::Object(others));
        if !text.is_empty() {
            tally.unknown("a message without content", 1);
            texts.add(text);
        }
    }
    let content =
        sources::append_sources(with_files(texts.texts.join("\n\n"), &attachments), &cited);
    if content.trim().is_empty() {
        return Ok(None);
    }
    let id = fields.text("uuid").or_else(|| fields.text("id")).filter(|id| !id.is_empty());
    let message = Message {
        // The caller puts the conversation's id before the slash.
        id: id.map_or_else(|| format!("/{}", at + 1), Cow::into_owned),
        role: match fields.text("sender").or_else(|| fields.text("role")).unwrap_or_default() {
            sender if sender == "human" => "user".to_owned(),
            sender => sender.into_owned(),
        },
        content,
        create_time: fields.get("created_at").and_then(time),
        update_time: fields.get("updated_at").and_then(time),
        model: fields.text("model").map(Cow::into_owned),
        attachments,
        ..Message::default()
    };
    Ok(Some((message, contents)))
}

#[derive(Default)]
struct PartTexts {
    texts: Vec<String>,
    /// Whether the last text is not a part of the answer itself, such as thinking.
    is_aside: bool,
}

impl PartTexts {
    /// Adds a text, and marks where the answer goes on after another part.
    fn add(&mut self, text: String) {
        if text.trim().is_empty() {
            return;
        }
        let is_aside = [THINKING, CALL, RESULT].iter().any(|mark| text.starts_with(mark));
        let goes_on = self.is_aside && !is_aside;
        self.texts.push(if goes_on { format!("{ANSWER}\n{text}") } else { text });
        self.is_aside = is_aside;
    }
}

/// Returns a text below its mark; nothing if the text is empty.
fn below_mark(mark: &str, text: &str) -> String {
    if text.trim().is_empty() { String::new() } else { format!("{mark}\n{text}") }
}

/// Returns an artifact that a call makes or replaces, between tags as in older exports; `None` if the call does
/// something else or has an argument that the tags cannot hold.
fn artifact(block: &Value) -> Option<String> {
    const ATTRIBUTES: [(&str, &str); 4] =
        [("identifier", "id"), ("type", "type"), ("language", "language"), ("title", "title")];
    const OTHERS: [&str; 3] = ["command", "content", "version_uuid"];

    let input = block.get("input").filter(|_| block.str("name") == "artifacts")?;
    let Value::Object(fields) = input else { return None };
    let is_whole = matches!(input.str("command"), "create" | "rewrite")
        && !["id", "content"].map(|name| input.str(name)).contains(&"")
        && fields.iter().all(|(name, value)| {
            matches!(value, Value::Null)
                || OTHERS.contains(&name.as_str())
                || ATTRIBUTES.iter().any(|it| it.1 == name)
        });
    let attributes = ATTRIBUTES.map(|(attribute, name)| (attribute, input.str(name)));
    Artifact::written(&attributes, input.str("content")).filter(|_| is_whole)
}

fn attached(name: &str, content: AttachedContent) -> AttachedFile {
    AttachedFile { message: 0, name: name.to_owned(), content }
}

/// Blocks that describe how the answer was made, and have no text for the reader.
const WORDLESS: [&str; 3] = ["flag", "redacted_thinking", "token_budget"];

/// Returns the text of a block. Counts blocks that are not known, and those whose text has no known shape.
fn block_text(block: &Value, tally: &mut ImportTally) -> String {
    if let Value::Array(blocks) = block {
        return lines(blocks.iter().map(|block| block_text(block, tally)));
    }
    let text = known_text(block, tally);
    let kind = block.str("type");
    if !text.trim().is_empty() || matches!(block, Value::Null) || WORDLESS.contains(&kind) {
        return text;
    }
    let words = plain(block, true);
    // The result of a tool may be empty; its other fields describe the tool.
    if words.trim().is_empty() || kind == "tool_result" {
        return text;
    }
    tally.unknown(if kind.is_empty() { "(no type)" } else { kind }, 1);
    words
}

fn known_text(block: &Value, tally: &mut ImportTally) -> String {
    if let Some(text) = block.as_str() {
        return text.to_owned();
    }
    match block.str("type") {
        "text" => block.str("text").to_owned(),
        // The whole content of a message in a chat about a design.
        "" if matches!(block, Value::Object(it) if it.iter().all(|(name, _)| name == "text")) => {
            block.str("text").to_owned()
        }
        // The page shows the summaries above the thinking.
        "thinking" => {
            let summaries = block.at("summaries").items().iter().map(|it| it.str("summary"));
            let thoughts = ["thinking", "text"].map(|name| block.str(name));
            below_mark(THINKING, &lines(summaries.chain(thoughts)))
        }
        "tool_use" | "server_tool_use" => {
            let shown = block.get("display_content").map(|shown| plain(shown, true));
            let extra = [block.str("message"), shown.as_deref().unwrap_or_default()];
            match artifact(block) {
                Some(artifact) => joined("\n\n", [extra[0], extra[1], &artifact]),
                None => call(block.str("name"), &extra, block.at("input")),
            }
        }
        "tool_result" => {
            let content = block.at("content").items();
            let texts: Vec<String> = content.iter().map(|item| block_text(item, tally)).collect();
            let shown = ["display_content", "structured_content", "message"];
            let shown = shown.iter().filter(|_| texts.iter().all(String::is_empty));
            let shown = shown.filter_map(|name| Some(plain(block.get(name)?, true)));
            let shown = shown.into_iter().find(|it| !it.is_empty());
            below_mark(RESULT, &shown.unwrap_or_else(|| lines(&texts)))
        }
        "image" => file("image", block),
        "document" | "file" | "local_resource" => file("file", block),
        "voice_note" => lines([block.str("title"), block.str("text")]),
        "knowledge" | "web_search_result" | "search_result" => {
            lines([block.str("title"), block.str("url"), block.str("text")])
        }
        // The caller reads and counts a block of an unknown kind with text.
        kind => {
            if !WORDLESS.contains(&kind) && plain(block, true).trim().is_empty() {
                tally.unknown(if kind.is_empty() { "(no type)" } else { kind }, 1);
            }
            String::new()
        }
    }
}

/// Returns a placeholder for a file, and the file's text below it, if the block has the text.
fn file(kind: &str, block: &Value) -> String {
    let source = block.get("source").filter(|source| source.str("type") == "text");
    let text = source.map_or("", |it| it.str("data"));
    lines([placeholder(kind, block).as_str(), block.str("extracted_content"), text])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_answer_are_marked() {
        let text = |content: &str| {
            let message = format!(r#"{{"uuid":"m","sender":"assistant","content":[{content}]}}"#);
            let fields = Raw::new(message.as_bytes()).fields().unwrap();
            super::message(&fields, 0, &mut ImportTally::default()).unwrap().unwrap().0.content
        };
        let says = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
        let calls = |input: &str| {
            format!(r#"{{"type":"tool_use","name":"artifacts","input":{{{input}}}}}"#)
        };
        let thinks = r#"{"type":"thinking","thinking":"Hm."}"#;
        let result = r#"{"type":"tool_result","content":[{"type":"text","text":"OK"}]}"#;
        let made = calls(
            r#""id":"a","type":"text/html","title":"Page","command":"create","content":"<p>\n","language":null,"version_uuid":"v""#,
        );
        let tags = "<antArtifact identifier=\"a\" type=\"text/html\" title=\"Page\">\n<p>\n\n</antArtifact>";
        let all = [thinks, &says("A"), &says("B"), &made, result, &says(" "), &says("C")].join(",");
        let expected =
            format!("[thinking]\nHm.\n\n[answer]\nA\n\nB\n\n{tags}\n\n[result]\nOK\n\n[answer]\nC");
        assert_eq!(text(&all), expected);
        assert_eq!(text(&says("A")), "A");
        for (input, expected) in [
            (r#""command":"update","id":"a","old_str":"x""#, "command: update\nid: a\nold_str: x"),
            (r#""command":"create","content":"x""#, "command: create\ncontent: x"),
            (
                r#""command":"create","id":"a","content":"x","more":"y""#,
                "command: create\nid: a\ncontent: x\nmore: y",
            ),
            (
                r#""command":"create","id":"\"'","content":"x""#,
                "command: create\nid: \"'\ncontent: x",
            ),
        ] {
            assert_eq!(text(&calls(input)), format!("[tool: artifacts]\n{expected}"));
        }
    }

    #[test]
    fn messages_of_other_branches_come_after_what_they_follow() {
        // The first message has two versions of its answer. The list has the second version backwards.
        let parents = vec![None, Some(0), Some(3), Some(0), Some(5), Some(4)];
        let parents =
            Parents { by_id: HashMap::from([(Cow::Borrowed("leaf"), 1)]), parents, is_torn: false };
        assert_eq!(parents.order(Some("leaf"), Branches::All), (vec![0, 1, 3, 2, 5, 4], 2));
        assert_eq!(parents.order(Some("leaf"), Branches::Shown), (vec![0, 1], 2));
    }
}
