//! Web pages with conversations: the page in ChatGPT's exports, and saved pages of shared conversations.

use memchr::memmem;

use super::formats;
use super::json::Raw;

/// The assignment in the page of an export, before the list of all conversations.
const EXPORTED: &[u8] = b"var jsonData";

/// The maximum length of a page that is searched, in bytes.
pub(super) const LONGEST_PAGE: u64 = 64 << 20;

/// The maximum number of nested values around a conversation.
const DEEPEST: usize = 12;

/// A service with pages of conversations.
struct Service {
    name: &'static str,
    /// Its name in the titles of pages.
    word: &'static str,
    /// The beginnings of the addresses of its pages.
    hosts: &'static [&'static str],
}

impl Service {
    /// Returns whether a page names the service in its title or in its own address.
    fn is_named_in(&self, page: &[u8]) -> bool {
        /// The number of bytes after a mark in which the address must be.
        const NEAR: usize = 300;
        let title = memmem::find(page, b"<title").map(|at| &page[at..page.len().min(at + NEAR)]);
        let title = String::from_utf8_lossy(title.unwrap_or_default());
        let title = title.split_once('>').map_or("", |(_, rest)| rest);
        let title = title.split("</").next().unwrap_or_default();
        let mut parts = title.split([' ', '\u{a0}']).collect::<Vec<_>>().join(" ");
        parts.retain(|c| !c.is_control() && !matches!(c, '\u{200e}' | '\u{200f}'));
        let parts = parts.split(['|', '–', '—']).flat_map(|part| part.split(" - "));
        let ends: Vec<&str> = parts.map(str::trim).collect();
        let mut ends = [ends.first(), ends.last()].into_iter().flatten();
        let marks = [&b"saved from url"[..], b"og:url", b"canonical"];
        let mut places = marks.iter().filter_map(|mark| memmem::find(page, mark));
        ends.any(|end| *end == self.word)
            || places.any(|at| {
                let near = &page[at..page.len().min(at + NEAR)];
                self.hosts.iter().any(|host| memmem::find(near, host.as_bytes()).is_some())
            })
    }
}

const SERVICES: [Service; 11] = [
    Service { name: "ChatGPT", word: "ChatGPT", hosts: &["chatgpt.com/", "chat.openai.com/"] },
    Service { name: "Claude.ai", word: "Claude", hosts: &["claude.ai/"] },
    Service {
        name: "the Gemini app",
        word: "Gemini",
        hosts: &["gemini.google.com/", "g.co/gemini"],
    },
    Service { name: "Grok", word: "Grok", hosts: &["grok.com/", "x.com/i/grok"] },
    Service { name: "DeepSeek", word: "DeepSeek", hosts: &["chat.deepseek.com/"] },
    Service { name: "Perplexity", word: "Perplexity", hosts: &["perplexity.ai/"] },
    Service { name: "Le Chat", word: "Le Chat", hosts: &["chat.mistral.ai/"] },
    Service { name: "Microsoft Copilot", word: "Copilot", hosts: &["copilot.microsoft.com/"] },
    Service { name: "Google AI Studio", word: "AI Studio", hosts: &["aistudio.google.com/"] },
    Service { name: "Kimi", word: "Kimi", hosts: &["kimi.com/", "kimi.moonshot.cn/"] },
    Service { name: "Poe", word: "Poe", hosts: &["poe.com/"] },
];

/// Returns whether a file that begins with these bytes is a web page.
pub(super) fn is_page(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start).trim_ascii_start();
    start.starts_with(b"<") && {
        let head = start[..start.len().min(4 << 10)].to_ascii_lowercase();
        [&b"<html"[..], b"<!doctype html", b"<head"]
            .iter()
            .any(|tag| memmem::find(&head, tag).is_some())
    }
}

/// Returns the place after the assignment of all conversations, if the page of an export begins with `start`.
pub(super) fn exported(start: &[u8]) -> Option<usize> {
    let at = memmem::find(start, EXPORTED)?;
    Some(at + start[at..].iter().position(|byte| matches!(byte, b'[' | b'{'))?)
}

/// Returns the conversations that the scripts of a page have as data.
pub(super) fn conversations(page: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    for at in memmem::find_iter(page, b"<script") {
        let script = &page[at..];
        let script = &script[..memmem::find(script, b"</script").unwrap_or(script.len())];
        let opening = script.iter().position(|byte| *byte == b'>').unwrap_or(script.len());
        let data = &script[opening..];
        if formats::may_have_conversation(data)
            && let Some(start) = data.iter().position(|byte| matches!(byte, b'{' | b'['))
            && let Some((value, _)) = Raw::split(&data[start..])
        {
            add_conversations(value, DEEPEST, &mut found);
        }
    }
    found
}

fn add_conversations<'p>(value: Raw<'p>, depth: usize, found: &mut Vec<&'p [u8]>) {
    let (fields, damage) = value.fields_until_damage();
    if damage.is_some() || depth == 0 {
        return;
    }
    if formats::of_conversation(&fields).is_some() {
        return found.push(value.bytes());
    }
    let inner = fields.into_iter().map(|(_, inner)| inner);
    for inner in inner.chain(value.items().unwrap_or_default()) {
        if inner.is_object() || inner.is_array() {
            add_conversations(inner, depth - 1, found);
        }
    }
}

/// Returns what a page without readable conversations is, and what helps.
pub(super) fn described(page: &[u8]) -> String {
    if exported(page).is_some() {
        return "the web page of ChatGPT's export, without its conversations; import the zip, or the folder \
                with conversations.json"
            .to_owned();
    }
    if [&b"outer-cell"[..], b"content-cell", b"Gemini"]
        .iter()
        .all(|it| memmem::find(page, it).is_some())
    {
        return "chats of the Gemini app, whose files are not read yet".to_owned();
    }
    match SERVICES.iter().find(|service| service.is_named_in(page)).map(|service| service.name) {
        Some(name @ ("ChatGPT" | "Claude.ai")) => format!(
            "the saved page of a conversation of {name}, in which its text is not found; if the conversation \
             is yours, your export has it; if it is another's, copy the text that the page shows"
        ),
        Some(name) => {
            format!("the saved page of a conversation of {name}, whose files are not read yet")
        }
        None => "a web page, in which no conversation is found".to_owned(),
    }
}
