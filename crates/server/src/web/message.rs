//! A message as it is shown in its conversation.

use std::{borrow::Cow, ops::Range};

use maud::{Markup, PreEscaped, html};

use super::{
    artifact,
    ask::ShownParts,
    card::{counted, hour, role_name},
    code::Highlighter,
    diff::change,
    excerpt::{Marker, around, marked},
    mark::{escaped, mark_html},
    markdown::render,
};
use crate::tools::clock::Clock;
use verbatim_base::model::Instant;
use verbatim_text::{
    amount::grouped,
    parts::{self, Part},
    screen, snippet,
};

/// The number of bytes of a message that are shown at first.
pub(super) const MOST_SHOWN: usize = 40_000;

/// The longest message in bytes that is shown as Markdown; a longer message is shown as plain text.
const MOST_RENDERED: usize = 200_000;

/// The number of characters of the summary of a part that the reader can expand.
const SUMMARY: usize = 120;

/// The maximum number of marked matches in a part of a message. Only a very long message has more matches.
const MOST_MARKED: usize = 10_000;

/// The number of bytes that a cut message shows before its first match.
const BEFORE_MATCH: usize = 4_000;

pub(super) struct ShownMessage<'a> {
    pub(super) number: u32,
    pub(super) role: &'a str,
    pub(super) time: Option<Instant>,
    pub(super) content: &'a str,
    pub(super) address: String,
    /// Whether the reader chose this message.
    pub(super) is_current: bool,
    /// Whether the whole message is shown, even if it is long.
    pub(super) is_whole: bool,
    /// Whether the parts that are usually collapsed are expanded.
    pub(super) is_open: bool,
    /// The other versions of the message, if it was edited or regenerated.
    pub(super) versions: Option<Versions>,
    pub(super) files: Markup,
    /// The number of pictures in `files`.
    pub(super) pictures: usize,
}

/// The place of a message among its versions.
pub(super) struct Versions {
    /// The number of this version, from 1.
    pub(super) number: usize,
    pub(super) all: usize,
    /// The addresses of the versions before and after.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

pub(super) struct MessageSettings<'a> {
    pub(super) clock: Clock,
    pub(super) marker: &'a Marker,
    pub(super) highlighter: Highlighter,
    /// Whether thinking and answer may follow each other without a separator. Then thinking is shown too.
    pub(super) joins_thinking: bool,
    pub(super) view: ShownParts,
    /// The wanted match of the chosen message, from 0.
    pub(super) hit: usize,
    /// The place of the current match, once the chosen message is drawn.
    pub(super) place: HitPlace,
}

/// The current match among the matches of its message.
#[derive(Clone, Copy, Default)]
pub(super) struct HitPlace {
    pub(super) number: usize,
    pub(super) before: Option<usize>,
    pub(super) after: Option<usize>,
}

impl MessageSettings<'_> {
    /// Returns a message with its heading.
    pub(super) fn message(&mut self, message: &ShownMessage<'_>) -> Markup {
        let ShownMessage { number, role, .. } = message;
        let (body, has_anchor) = self.body(message);
        let needs_anchor = message.is_current && !matches!(self.marker, Marker::Nothing);
        let anchor = (needs_anchor && !has_anchor).then_some("hit");
        let class = match *role {
            "user" => "msg you",
            "tool" | "system" => "msg tool",
            _ => "msg",
        };
        html! {
            article class=(class) id=(format!("m{number}")) aria-labelledby=(format!("h{number}"))
                aria-current=[message.is_current.then_some("true")] {
                header {
                    a.no id=[anchor] href=(message.address) aria-label=(format!("Link to message {number}")) {
                        (number)
                    }
                    " " h2 id=(format!("h{number}")) { (role_name(role)) }
                    @if let Some(versions) = &message.versions { " " (versions.show(number)) }
                    " " (hour(self.clock, message.time))
                }
                (body)
                (message.files)
            }
        }
    }

    /// Returns the text of a message, and whether it has the anchor `hit`.
    fn body(&mut self, message: &ShownMessage<'_>) -> (Markup, bool) {
        let content = snippet::trim(message.content);
        let (hit, spans) = match message.is_current {
            true => (self.hit, self.marker.first_spans(content, usize::MAX)),
            false => (0, self.marker.spans(content)),
        };
        let near = &spans[hit.min(spans.len().saturating_sub(1))..];
        let shown = if message.is_whole { 0..content.len() } else { part_of(content, near) };
        let text = &content[shown.clone()];
        let spans_until = |end| spans.partition_point(|span| span.start < end);
        let (earlier, later) = (spans_until(shown.start), spans_until(shown.end));
        let wanted = hit.saturating_sub(earlier);
        let is_hit = !spans.is_empty();
        let now = message.is_current.then_some(wanted);
        let (mut shown_parts, mut marks, mut most_marks) = self.parts(message, text, is_hit, now);
        let now = wanted.min(marks.saturating_sub(1));
        if message.is_current {
            if now < wanted && marks > 0 {
                (shown_parts, marks, most_marks) = self.parts(message, text, is_hit, Some(now));
            }
            let number = earlier + now;
            let after = if now + 1 < marks { number + 1 } else { later };
            let after = (now + 1 < marks || later < spans.len()).then_some(after);
            self.place = HitPlace { number, before: number.checked_sub(1), after };
        }
        let html = html! {
            @if shown.start > 0 { (rest(message, shown.start, "before this")) }
            @for part in shown_parts { (part) }
            @if most_marks >= MOST_MARKED {
                p.note { "The first " (grouped(MOST_MARKED)) " matches of a part are marked, and the others are not." }
            }
            @if shown.end < content.len() { (rest(message, content.len() - shown.end, "more")) }
            @if marks == 0 && !spans.is_empty() {
                p.note.as-written id=[message.is_current.then_some("hit")] { "In the text as it was written: "
                    span dir="auto" { (marked(&around(content, &spans))) } }
            }
            @if content.is_empty() { p.note { "An empty message" } }
        };
        (html, is_hit)
    }

    /// Returns the shown parts of a text, the number of their matches, and the most matches of one part.
    fn parts(
        &mut self,
        message: &ShownMessage<'_>,
        text: &str,
        is_hit: bool,
        now: Option<usize>,
    ) -> (Vec<Markup>, usize, usize) {
        let (mut shown_parts, mut marks, mut most_marks) = (Vec::new(), 0, 0);
        let view = self.view;
        let parts = parts(message.role, text, self.joins_thinking);
        for part in parts.into_iter().filter(|part| is_shown(part, view)) {
            let now = now.and_then(|now| now.checked_sub(marks));
            let (html, count) = self.part(&part, message, is_hit, now);
            marks += count;
            most_marks = most_marks.max(count);
            shown_parts.push(html);
        }
        (shown_parts, marks, most_marks)
    }

    /// Returns a part of a message, and the number of its matches.
    fn part(
        &mut self,
        part: &Part<'_>,
        message: &ShownMessage<'_>,
        is_hit: bool,
        now: Option<usize>,
    ) -> (Markup, usize) {
        let is_markdown = message.content.len() <= MOST_RENDERED;
        let is_typed = message.role == "user";
        // Matches are marked only in messages that the search found.
        let marker = if is_hit { self.marker } else { &Marker::Nothing };
        let mark = |html: &str| mark_html(html, now, &|text| marker.first_spans(text, MOST_MARKED));
        let plain = |text: &str, label: &str| {
            format!(
                "<pre tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><code>{}</code></pre>",
                escaped(&screen::written(text))
            )
        };
        // The text of a part that is shown as a change of a file.
        let mut raw = None;
        let (summary, html) = match part {
            Part::Text(text) | Part::ThinkingAndAnswer(text) => {
                let text = &without_placeholders(text, message.pictures);
                let html = match is_markdown {
                    true => render(&screen::written(text), is_typed, &mut self.highlighter),
                    false => plain(text, "The message as it was written"),
                };
                let (html, count) = mark(&html);
                let is_thinking = matches!(part, Part::ThinkingAndAnswer(_));
                return (
                    html! {
                        @if is_thinking { p.note { "Thinking, and the answer below it" } }
                        div.md dir="auto" { (PreEscaped(html)) }
                    },
                    count,
                );
            }
            Part::Artifact(artifact) => {
                let (html, count) = mark(&artifact::html(artifact, &mut self.highlighter));
                return (PreEscaped(html), count);
            }
            Part::Thinking(text) => {
                let html = match is_markdown {
                    true => {
                        let html = render(&screen::written(text), false, &mut self.highlighter);
                        format!("<div class=\"md\" dir=\"auto\">{html}</div>")
                    }
                    false => plain(text, "Thinking as it was written"),
                };
                (html! { "Thinking" }, html)
            }
            Part::Call(name, arguments) => match change(&screen::written(arguments)) {
                Some(change) => {
                    raw = Some(*arguments);
                    let summary =
                        html! { code { (name) } " " bdi { (change.file) } " " (change.size()) };
                    (summary, change.html())
                }
                None => {
                    let summary = html! { code { (name) } " " (first_line(arguments)) };
                    (summary, plain(arguments, "Arguments of the tool"))
                }
            },
            Part::Output(text) if is_brief(text) => {
                let (html, count) = mark(&escaped(&screen::written(snippet::trim(text))));
                return (html! { p.fold.brief dir="auto" { (PreEscaped(html)) } }, count);
            }
            Part::Output(text) => {
                let html = change(&screen::written(text)).map(|change| change.html());
                raw = html.is_some().then_some(*text);
                (
                    html! { (first_line(text)) },
                    html.unwrap_or_else(|| plain(text, "Output of the tool")),
                )
            }
        };
        let (html, count) = mark(&html);
        let is_open = message.is_open || (message.is_current && count > 0);
        let fold = html! {
            details.fold open[is_open] {
                summary {
                    (summary)
                    @if count > 0 { span.n { mark { (counted(count, "hit")) } } }
                }
                (PreEscaped(html))
                @if let Some(raw) = raw {
                    details.as-is {
                        summary { "As it was written" }
                        (PreEscaped(plain(raw, "The change as it was written")))
                    }
                }
            }
        };
        (fold, count)
    }
}

impl Versions {
    fn show(&self, number: &u32) -> Markup {
        let link = |address: &Option<String>, label: &str, arrow: &str| {
            html! {
                @match address {
                    Some(address) => a href=(address) aria-label=(label) { (arrow) },
                    None => span.off aria-hidden="true" { (arrow) },
                }
            }
        };
        html! {
            nav.branch aria-label=(format!("Versions of message {number}")) {
                (link(&self.before, "Previous version", "‹"))
                span { (self.number) " of " (self.all) }
                (link(&self.after, "Next version", "›"))
            }
        }
    }
}

/// Returns a note that a message is longer than the shown part, with a link to all of it.
fn rest(message: &ShownMessage<'_>, bytes: usize, what: &str) -> Markup {
    let query = if message.address.contains('?') { "&" } else { "?" };
    let (address, anchor) = message.address.split_once('#').unwrap_or((&message.address, ""));
    html! {
        p.note.rest {
            (size(bytes)) " " (what) ". "
            a href=(format!("{address}{query}all=1#{anchor}")) { "Show all of message " (message.number) }
        }
    }
}

/// Returns a number of bytes in a form for people, such as `3 kB`.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Returns the range of a long text that is shown: from its beginning, or around its first match.
fn part_of(text: &str, spans: &[Range<usize>]) -> Range<usize> {
    if text.len() <= MOST_SHOWN {
        return 0..text.len();
    }
    let first = spans.first().map_or(0, |span| span.start);
    let start = if first < MOST_SHOWN - BEFORE_MATCH { 0 } else { first - BEFORE_MATCH };
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at += 1;
        }
        at
    };
    let end = boundary((start + MOST_SHOWN).min(text.len()));
    let start = boundary(start);
    let line = text[start..].find('\n').filter(|at| start > 0 && *at < BEFORE_MATCH);
    start + line.map_or(0, |at| at + 1)..end
}

fn is_shown(part: &Part<'_>, view: ShownParts) -> bool {
    match part {
        Part::Text(_) | Part::Artifact(_) => matches!(view, ShownParts::All | ShownParts::Text),
        Part::Thinking(_) => matches!(view, ShownParts::All | ShownParts::Thinking),
        Part::ThinkingAndAnswer(_) => view != ShownParts::Tools,
        Part::Call(..) | Part::Output(_) => matches!(view, ShownParts::All | ShownParts::Tools),
    }
}

/// Returns whether a view shows anything of a message.
pub(super) fn is_in_view(
    view: ShownParts,
    role: &str,
    content: &str,
    joins_thinking: bool,
) -> bool {
    let parts = parts(role, snippet::trim(content), joins_thinking);
    parts.iter().any(|part| is_shown(part, view))
}

/// Returns a text without the lines that imports write in place of pictures, if all the pictures are shown.
fn without_placeholders(text: &str, pictures: usize) -> Cow<'_, str> {
    let (placeholders, words): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.trim() == "[image]");
    match placeholders.len() {
        0 => Cow::Borrowed(text),
        count if count > pictures => Cow::Borrowed(text),
        _ => Cow::Owned(words.join("\n")),
    }
}

/// Returns whether the summary of an output would be all of it, so that there is nothing to expand.
fn is_brief(text: &str) -> bool {
    let text = snippet::trim(text);
    !text.is_empty() && !text.contains('\n') && snippet::cut(text, SUMMARY).is_none()
}

fn first_line(text: &str) -> String {
    let text = screen::written(text);
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    match snippet::cut(line, SUMMARY) {
        Some(cut) => format!("{cut}…"),
        None if line.is_empty() => "nothing".to_owned(),
        None => line.to_owned(),
    }
}

fn parts<'a>(role: &str, content: &'a str, joins_thinking: bool) -> Vec<Part<'a>> {
    match role {
        "tool" | "system" => vec![Part::Output(content)],
        "user" => vec![Part::Text(content)],
        _ => parts::parts(content, joins_thinking),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_messages() {
        let parts = |role, content| super::parts(role, content, false);
        assert_eq!(parts("assistant", "[thinking]\na"), [Part::Thinking("a")]);
        assert_eq!(parts("user", "[thinking]\na"), [Part::Text("[thinking]\na")]);
        assert_eq!(parts("tool", "a\n"), [Part::Output("a\n")]);
        let views = [ShownParts::All, ShownParts::Text, ShownParts::Thinking, ShownParts::Tools];
        let shown = |content| views.map(|view| is_in_view(view, "assistant", content, true));
        assert_eq!(shown("[tool: Bash]\nls"), [true, false, false, true]);
        assert_eq!(shown("[thinking]\nHm.\n\nSo."), [true, true, true, false]);
        assert_eq!(shown("[thinking]\nHm.\n[tool: Bash]\nls"), [true, false, true, true]);
    }

    #[test]
    fn an_answer_is_not_folded_away_with_the_thinking_above_it() {
        let shown = |joins_thinking| {
            let highlighter = Highlighter::new();
            let (clock, marker) = (Clock::new(false), &Marker::Nothing);
            let view = ShownParts::All;
            let (hit, place) = Default::default();
            let mut reading =
                MessageSettings { clock, marker, highlighter, joins_thinking, view, hit, place };
            let message = ShownMessage {
                number: 1,
                role: "assistant",
                time: None,
                content: "[thinking]\nHm.\n\nThe answer.",
                address: String::new(),
                is_current: false,
                is_whole: false,
                is_open: false,
                versions: None,
                files: html! {},
                pictures: 0,
            };
            reading.message(&message).into_string()
        };
        assert!(!shown(true).contains("<details") && shown(true).contains("The answer."));
        assert!(shown(false).contains("<details"));
    }

    #[test]
    fn only_an_output_of_one_short_line_needs_no_fold() {
        assert!(is_brief("OK") && is_brief("\nOK\n") && is_brief(&"x".repeat(SUMMARY)));
        assert!(!is_brief("") && !is_brief("a\nb") && !is_brief(&"x".repeat(SUMMARY + 1)));
    }

    #[test]
    fn long_messages_are_cut_around_the_match() {
        let text = format!("{}\nneedle {}", "日本 ".repeat(30_000), "x".repeat(60_000));
        let at = text.find("needle").unwrap();
        let span = at..at + 6;
        let shown = part_of(&text, std::slice::from_ref(&span));
        assert!(shown.start > 0 && shown.contains(&at) && shown.end < text.len());
        assert!(part_of(&text, &[]).start == 0 && part_of("short", &[]) == (0..5));
    }

    #[test]
    fn a_shown_picture_needs_no_placeholder() {
        let text = "[image]\n[image]\nWhich of [image] is better?";
        let shown = |pictures| without_placeholders(text, pictures).into_owned();
        assert_eq!([shown(0), shown(1)], [text, text]);
        assert_eq!(shown(2), "Which of [image] is better?");
    }

    #[test]
    fn sizes() {
        assert_eq!([12, 2_048, 2_100_000].map(size), ["12 bytes", "2 kB", "2.1 MB"]);
    }
}
