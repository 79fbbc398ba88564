//! A message as it is shown in its conversation.

use std::{borrow::Cow, ops::Range};

use maud::{Markup, PreEscaped, html};

use super::mark::{MOST_MARKED, escaped, mark_html};
use super::prose::{first_words, telling_line};
use super::{artifact, code::Highlighter, diff::parse_change, markdown::render};
use crate::web::search::excerpt::{FIRST_SPANS, around, marked};
use crate::web::search::page_query::ShownParts;
use verbatim_answer::{clock::Clock, marks::Marks};
use verbatim_base::model::{Hit, Instant};
use verbatim_engine::Session;
use verbatim_text::amount::{self, counted, grouped};
use verbatim_text::parts::{self, Part};
use verbatim_text::{screen, snippet};

/// The number of bytes of a message that are shown at first.
pub(super) const MOST_SHOWN: usize = 40_000;

/// The longest message in bytes that is shown as Markdown; a longer message is shown as plain text.
const MOST_RENDERED: usize = 200_000;

/// The number of characters of the summary of a part that the reader can expand.
const SUMMARY: usize = 120;

/// The maximum number of counted matches in a part of a message. Only a very long message has more matches.
const MOST_COUNTED: usize = 10_000;

/// The number of bytes that a cut message shows before its first match.
const BEFORE_MATCH: usize = 4_000;

pub(super) struct ShownMessage<'a> {
    pub(super) number: u32,
    pub(super) role: &'a str,
    pub(super) time: Option<Instant>,
    pub(super) content: &'a str,
    pub(super) address: String,
    pub(super) is_current: bool,
    /// Whether the whole message is shown, even if it is long.
    pub(super) is_whole: bool,
    /// The number of its bytes that are shown at first.
    pub(super) most: usize,
    /// Whether the parts that are usually collapsed are expanded.
    pub(super) is_open: bool,
    pub(super) versions: Option<Versions>,
    pub(super) files: Markup,
    pub(super) pictures: usize,
}

impl<'a> ShownMessage<'a> {
    /// Returns a message that nobody chose, without files.
    pub(super) fn new(
        session: &'a Session,
        turn: usize,
        hit: &'a Hit<'_>,
        address: String,
    ) -> Self {
        ShownMessage {
            number: session.line(turn),
            role: session.role(turn),
            time: hit.time,
            content: &hit.content,
            address,
            is_current: false,
            is_whole: false,
            most: MOST_SHOWN,
            is_open: false,
            versions: None,
            files: html! {},
            pictures: 0,
        }
    }
}

pub(super) struct Versions {
    /// The number of this version, from 1.
    pub(super) number: usize,
    pub(super) all: usize,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

pub(super) struct MessageSettings<'a> {
    pub(super) clock: Clock,
    pub(super) marker: &'a Marks,
    pub(super) highlighter: Highlighter,
    /// Whether thinking and answer may follow each other without a separator. Then thinking is shown too.
    pub(super) joins_thinking: bool,
    pub(super) view: ShownParts,
    /// The wanted match of the chosen message, from 0.
    pub(super) hit: usize,
    /// The place of the current match, once the chosen message is drawn.
    pub(super) place: HitPlace,
}

#[derive(Clone, Copy, Default)]
pub(super) struct HitPlace {
    pub(super) number: usize,
    pub(super) before: Option<usize>,
    pub(super) after: Option<usize>,
}

pub(super) struct ReadMessage<'a> {
    pub(super) of: &'a ShownMessage<'a>,
    text: &'a str,
    spans: Vec<Range<usize>>,
    shown: Range<usize>,
    pub(super) parts: Vec<Part<'a>>,
}

impl ReadMessage<'_> {
    /// Returns whether the message is only calls, results and thoughts of an agent.
    pub(super) fn is_steps(&self) -> bool {
        are_steps(self.of.role, &self.parts)
    }

    pub(super) fn is_cut(&self) -> bool {
        self.shown.len() < self.text.len()
    }

    fn hits_before(&self, end: usize) -> usize {
        self.spans.partition_point(|span| span.start < end)
    }
}

pub(super) struct MessageBody {
    pub(super) before: Markup,
    pub(super) pieces: Vec<MessagePiece>,
    pub(super) after: Markup,
}

pub(super) enum MessagePiece {
    Text(Markup),
    Step(AgentStep),
}

/// A call with its results, a thought, or a result without its call.
pub(super) struct AgentStep {
    pub(super) tool: Option<String>,
    pub(super) html: Markup,
    pub(super) hits: usize,
    /// Whether the step holds what the reader chose.
    pub(super) is_chosen: bool,
}

#[derive(Default)]
struct StepResults {
    html: Vec<Markup>,
    lines: usize,
    hits: usize,
    is_chosen: bool,
}

#[derive(Clone, Copy)]
struct PartMarks<'a> {
    marker: &'a Marks,
    /// The current match among the next ones, from 0.
    now: Option<usize>,
    /// The number of matches in the parts before.
    before: usize,
}

impl PartMarks<'_> {
    fn mark(self, html: &str) -> (String, usize) {
        let most = MOST_MARKED.saturating_sub(self.before);
        mark_html(html, self.now, most, &|text| self.marker.spans(text, MOST_COUNTED))
    }

    fn skipping(self, marked: usize) -> Self {
        let now = self.now.and_then(|now| now.checked_sub(marked));
        PartMarks { now, before: self.before + marked, ..self }
    }
}

struct StepFold<'a> {
    summary: Markup,
    html: String,
    /// The text of a part that is shown as a change of a file.
    raw: Option<&'a str>,
}

impl<'a> MessageSettings<'a> {
    pub(super) fn read<'m>(&self, message: &'m ShownMessage<'m>) -> ReadMessage<'m> {
        let text = snippet::trim(message.content);
        let hit = if message.is_current { self.hit } else { 0 };
        let most = if message.is_current { usize::MAX } else { FIRST_SPANS };
        let spans = self.marker.spans(text, most);
        let near = &spans[hit.min(spans.len().saturating_sub(1))..];
        let shown =
            if message.is_whole { 0..text.len() } else { part_of(text, near, message.most) };
        let mut parts = parts(message.role, &text[shown.clone()], self.joins_thinking);
        parts.retain(|part| is_shown(part, self.view));
        ReadMessage { of: message, text, spans, shown, parts }
    }

    /// Returns the parts of a message. `results` has the results of each of its calls.
    pub(super) fn body(
        &mut self,
        read: &ReadMessage<'_>,
        results: &[Vec<&ReadMessage<'_>>],
    ) -> MessageBody {
        let (pieces, hits) =
            self.draw_at_match(read, |settings, now| settings.pieces(read, results, now));
        let pieces = pieces.into_iter().map(|(piece, _)| piece).collect();
        MessageBody { before: note_before(read), pieces, after: notes_after(read, hits) }
    }

    /// Draws a message whose current match is the wanted one, or else the last one that is drawn. `draw` also
    /// returns the number of drawn matches.
    fn draw_at_match<T>(
        &mut self,
        read: &ReadMessage<'_>,
        draw: impl Fn(&mut Self, Option<usize>) -> (T, usize),
    ) -> (T, usize) {
        if !read.of.is_current {
            return draw(self, None);
        }
        let earlier = read.hits_before(read.shown.start);
        let later = read.hits_before(read.shown.end);
        let wanted = self.hit.saturating_sub(earlier);
        let mut drawn = draw(self, Some(wanted));
        let now = wanted.min(drawn.1.saturating_sub(1));
        if now < wanted && drawn.1 > 0 {
            drawn = draw(self, Some(now));
        }
        let number = earlier + now;
        let is_last = now + 1 >= drawn.1;
        let after = if is_last { later } else { number + 1 };
        let after = (!is_last || later < read.spans.len()).then_some(after);
        self.place = HitPlace { number, before: number.checked_sub(1), after };
        drawn
    }

    /// Returns the parts of a message, each with the number of its matches, and the number of all matches.
    fn pieces(
        &mut self,
        read: &ReadMessage<'_>,
        results: &[Vec<&ReadMessage<'_>>],
        now: Option<usize>,
    ) -> (Vec<(MessagePiece, usize)>, usize) {
        let message = read.of;
        let mut marks = PartMarks { marker: self.marker_of(read), now, before: 0 };
        let mut results = results.iter();
        let mut hits = 0;
        let mut pieces = Vec::new();
        let mut parts = read.parts.iter().peekable();
        while let Some(part) = parts.next() {
            let (piece, count) = match part {
                Part::Text(_) | Part::ThinkingAndAnswer(_) | Part::Artifact(_) => {
                    let (html, count) = self.text(part, message, marks);
                    (MessagePiece::Text(html), count)
                }
                Part::Thinking(text) => self.thought(text, message, marks),
                Part::Output(text) => {
                    let fold =
                        StepFold { summary: html! { (first_line(text)) }, ..output_fold(text) };
                    if is_brief(text) {
                        brief_step(text, "", message, marks)
                    } else {
                        folded_step(None, fold, message, marks, StepResults::default())
                    }
                }
                Part::Call(name, arguments) => {
                    let mut of_call = StepResults::default();
                    let fold = call_fold(name, arguments);
                    let mut own = 0;
                    if let Some(Part::Output(text)) = parts.peek() {
                        parts.next();
                        let in_call = marks.now.map_or(0, |_| marks.mark(&fold.html).1);
                        let (html, count) = result_html(text, marks.skipping(in_call));
                        own = count;
                        of_call.add(text, html, count);
                    } else {
                        for read in results.next().into_iter().flatten() {
                            self.add_result(read, &mut of_call);
                        }
                    }
                    let (piece, count) = folded_step(Some(name), fold, message, marks, of_call);
                    (piece, count + own)
                }
            };
            hits += count;
            marks = marks.skipping(count);
            pieces.push((piece, count));
        }
        (pieces, hits)
    }

    /// Returns what marks a message. Matches are marked only in messages that the search found.
    fn marker_of(&self, read: &ReadMessage<'_>) -> &'a Marks {
        if read.spans.is_empty() { &Marks::None } else { self.marker }
    }

    fn text(
        &mut self,
        part: &Part<'_>,
        message: &ShownMessage<'_>,
        marks: PartMarks<'_>,
    ) -> (Markup, usize) {
        let (Part::Text(text) | Part::ThinkingAndAnswer(text)) = part else {
            let Part::Artifact(artifact) = part else { return (html! {}, 0) };
            let (html, count) = marks.mark(&artifact::html(artifact, &mut self.highlighter));
            return (PreEscaped(html), count);
        };
        let is_typed = message.role == "user";
        let text = &without_placeholders(text, message.pictures);
        let html = if message.content.len() <= MOST_RENDERED {
            render(&screen::written(text), is_typed, &mut self.highlighter)
        } else {
            preformatted(text, "The message as it was written")
        };
        let (html, count) = marks.mark(&html);
        let is_thinking = matches!(part, Part::ThinkingAndAnswer(_));
        let html = html! {
            @if is_thinking { p.note { "Thinking, and the answer below it" } }
            div.md dir="auto" { (PreEscaped(html)) }
        };
        (html, count)
    }

    fn thought(
        &mut self,
        text: &str,
        message: &ShownMessage<'_>,
        marks: PartMarks<'_>,
    ) -> (MessagePiece, usize) {
        let written = screen::written(text);
        let words = first_words(&written);
        if !snippet::trim(&written).contains('\n') && snippet::cut(&words, SUMMARY).is_none() {
            return brief_step(&words, "Thinking: ", message, marks);
        }
        let html = if message.content.len() <= MOST_RENDERED {
            let html = render(&written, false, &mut self.highlighter);
            format!("<div class=\"md\" dir=\"auto\">{html}</div>")
        } else {
            preformatted(text, "Thinking as it was written")
        };
        let summary = html! { "Thinking: " bdi { (snippet::shortened(&words, SUMMARY)) } };
        let fold = StepFold { summary, html, raw: None };
        folded_step(None, fold, message, marks, StepResults::default())
    }

    fn add_result(&mut self, read: &ReadMessage<'_>, results: &mut StepResults) {
        let message = read.of;
        let text = &read.text[read.shown.clone()];
        let marker = self.marker_of(read);
        let (html, count) = self
            .draw_at_match(read, |_, now| result_html(text, PartMarks { marker, now, before: 0 }));
        let html = html! {
            article.msg.result id=(format!("m{}", message.number)) aria-current=[message.is_current.then_some("true")]
                aria-label=(format!("Message {}, the result", message.number)) {
                (self.number(read))
                div { (note_before(read)) (html) (notes_after(read, count)) }
            }
        };
        results.add(text, html, count);
        results.is_chosen |= message.is_current || message.is_open;
    }

    /// Returns the number of a message as a link. It is the anchor of the chosen message without a match.
    pub(super) fn number(&self, read: &ReadMessage<'_>) -> Markup {
        let message = read.of;
        let is_found = !matches!(self.marker, Marks::None) && read.spans.is_empty();
        let anchor = (message.is_current && is_found).then_some("hit");
        let minute = message.time.and_then(|time| self.clock.minute(time));
        html! {
            a.no id=[anchor] href=(message.address) title=[minute] aria-label=(format!("Link to message {}", message.number)) {
                (message.number)
            }
        }
    }
}

fn note_before(read: &ReadMessage<'_>) -> Markup {
    html! { @if read.shown.start > 0 { (rest_note(read.of, read.shown.start, "before this")) } }
}

/// Returns the notes and the files below a message with this number of matches.
fn notes_after(read: &ReadMessage<'_>, hits: usize) -> Markup {
    let end = read.shown.end;
    let text = read.text;
    html! {
        @if hits > MOST_MARKED {
            p.note { (grouped(MOST_MARKED)) " of the matches in this message are marked: the first, and those beside the current one." }
        }
        @if end < text.len() { (rest_note(read.of, text.len() - end, "more")) }
        @if hits == 0 && !read.spans.is_empty() {
            p.note.as-written id=[read.of.is_current.then_some("hit")] { "In the text as it was written: "
                span dir="auto" { (marked(&around(text, &read.spans))) } }
        }
        @if text.is_empty() { p.note { "An empty message" } }
        (read.of.files)
    }
}

impl StepResults {
    fn add(&mut self, text: &str, html: Markup, hits: usize) {
        self.lines += screen::written(snippet::trim(text)).lines().count();
        self.html.push(html);
        self.hits += hits;
    }
}

/// Returns a step that needs no fold: a text of one short line below a name.
fn brief_step(
    text: &str,
    name: &str,
    message: &ShownMessage<'_>,
    marks: PartMarks<'_>,
) -> (MessagePiece, usize) {
    let (html, hits) = marks.mark(&escaped(&screen::written(snippet::trim(text))));
    let html = html! { p.fold.brief dir="auto" { (name) (PreEscaped(html)) } };
    let is_chosen = message.is_current && hits > 0;
    (MessagePiece::Step(AgentStep { tool: None, html, hits, is_chosen }), hits)
}

/// Returns a step in a fold, and the number of matches in the step itself.
fn folded_step(
    tool: Option<&str>,
    fold: StepFold<'_>,
    message: &ShownMessage<'_>,
    marks: PartMarks<'_>,
    results: StepResults,
) -> (MessagePiece, usize) {
    let StepFold { summary, html, raw } = fold;
    let (html, count) = marks.mark(&html);
    let hits = count + results.hits;
    let is_chosen = results.is_chosen || (message.is_current && hits > 0);
    let size = match results.lines {
        _ if results.html.is_empty() => String::new(),
        0 => " → nothing".to_owned(),
        lines => format!(" → {}", counted(lines, "line")),
    };
    let html = html! {
        details.fold open[message.is_open || is_chosen] {
            summary {
                (summary)
                @if !size.is_empty() { span.size { (size) } }
                @if hits > 0 { " " span.n { mark { (counted(hits, "hit")) } } }
            }
            (PreEscaped(html))
            (as_written(raw))
            @for result in results.html { (result) }
        }
    };
    let tool = tool.map(str::to_owned);
    (MessagePiece::Step(AgentStep { tool, html, hits, is_chosen }), count)
}

fn call_fold<'a>(name: &str, arguments: &'a str) -> StepFold<'a> {
    match parse_change(&screen::written(arguments)) {
        Some(change) => {
            let summary =
                html! { code { (name) } " " bdi { (short_path(change.file)) } " " (change.size()) };
            StepFold { summary, html: change.html(), raw: Some(arguments) }
        }
        None => {
            let summary = html! { code { (name) } " " bdi { (telling_words(arguments)) } };
            let html = if arguments.trim().is_empty() {
                String::new()
            } else {
                preformatted(arguments, "Arguments of the tool")
            };
            StepFold { summary, html, raw: None }
        }
    }
}

fn output_fold(text: &str) -> StepFold<'_> {
    let html = parse_change(&screen::written(text)).map(|change| change.html());
    let raw = html.is_some().then_some(text);
    let html = html.unwrap_or_else(|| preformatted(text, "Output of the tool"));
    StepFold { summary: html! {}, html, raw }
}

fn result_html(text: &str, marks: PartMarks<'_>) -> (Markup, usize) {
    let StepFold { html, raw, .. } = output_fold(text);
    let (html, count) = marks.mark(&html);
    let html = html! {
        @if snippet::trim(text).is_empty() { p.note { "No output" } } @else { (PreEscaped(html)) }
        (as_written(raw))
    };
    (html, count)
}

fn as_written(raw: Option<&str>) -> Markup {
    html! {
        @if let Some(raw) = raw {
            details.as-is {
                summary { "As it was written" }
                (PreEscaped(preformatted(raw, "The change as it was written")))
            }
        }
    }
}

fn preformatted(text: &str, label: &str) -> String {
    format!(
        "<pre tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><code>{}</code></pre>",
        escaped(&screen::written(text))
    )
}

const TELLING: [&str; 9] =
    ["command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt"];

/// Returns the end of a whole path, which tells the file, and any other text as it is.
fn short_path(text: &str) -> String {
    let is_whole = text.starts_with(['/', '~']) || text.get(1..3) == Some(":\\");
    let mut starts = text.rmatch_indices(['/', '\\']).map(|(at, _)| at + 1);
    match starts.nth(1) {
        Some(start) if is_whole && !text.contains(char::is_whitespace) => text[start..].to_owned(),
        _ => text.to_owned(),
    }
}

/// Returns the first words of the arguments of a call: the value of an argument that says what the call
/// does, or else the first line.
fn telling_words(arguments: &str) -> String {
    if arguments.trim().is_empty() {
        return String::new();
    }
    if let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(arguments) {
        let value = TELLING.iter().find_map(|name| fields.get(*name)?.as_str());
        return value.map_or_else(|| first_line(arguments), |value| short_path(&first_line(value)));
    }
    let mut at = 0;
    for line in arguments.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let Some((name, value)) = line.split_once(':') else { break };
        let is_telling = TELLING.contains(&name);
        let is_short = !value.trim().is_empty();
        if is_telling {
            let rest = &arguments[start + name.len() + 1..];
            return short_path(&first_line(if is_short { value } else { rest }));
        }
        // The lines after this one may be the value of the argument.
        if !is_short {
            break;
        }
    }
    first_line(arguments)
}

impl Versions {
    pub(super) fn show(&self, number: u32) -> Markup {
        html! {
            nav.branch aria-label=(format!("Versions of message {number}")) {
                (version_link(self.before.as_deref(), "Previous version", "‹"))
                span { (self.number) " of " (self.all) }
                (version_link(self.after.as_deref(), "Next version", "›"))
            }
        }
    }
}

fn version_link(address: Option<&str>, label: &str, arrow: &str) -> Markup {
    html! {
        @match address {
            Some(address) => a href=(address) aria-label=(label) { (arrow) },
            None => span.off aria-hidden="true" { (arrow) },
        }
    }
}

/// Returns a note that a message is longer than the shown part, with a link to all of it.
fn rest_note(message: &ShownMessage<'_>, bytes: usize, what: &str) -> Markup {
    let query = if message.address.contains('?') { "&" } else { "?" };
    let (address, anchor) = message.address.split_once('#').unwrap_or((&message.address, ""));
    html! {
        p.note.rest {
            (amount::bytes(bytes as u64)) " " (what) ". "
            a href=(format!("{address}{query}all=1#{anchor}")) { "Show all of message " (message.number) }
        }
    }
}

/// Returns the range of a long text that is shown, of `most` bytes: from its beginning, or around its first match.
fn part_of(text: &str, spans: &[Range<usize>], most: usize) -> Range<usize> {
    if text.len() <= most {
        return 0..text.len();
    }
    let before = BEFORE_MATCH.min(most / 2);
    let first = spans.first().map_or(0, |span| span.start);
    let start = if first < most - before { 0 } else { first - before };
    let end = next_boundary(text, start + most);
    let start = next_boundary(text, start);
    let line = text[start..].find('\n').filter(|at| start > 0 && *at < before);
    start + line.map_or(0, |at| at + 1)..end
}

fn next_boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

fn is_shown(part: &Part<'_>, view: ShownParts) -> bool {
    match part {
        Part::Text(_) | Part::Artifact(_) => matches!(view, ShownParts::All | ShownParts::Text),
        Part::Thinking(_) => matches!(view, ShownParts::All | ShownParts::Thinking),
        Part::ThinkingAndAnswer(_) => view != ShownParts::Tools,
        Part::Call(..) | Part::Output(_) => matches!(view, ShownParts::All | ShownParts::Tools),
    }
}

pub(super) fn is_in_view(
    view: ShownParts,
    role: &str,
    content: &str,
    joins_thinking: bool,
) -> bool {
    let parts = parts(role, snippet::trim(content), joins_thinking);
    parts.iter().any(|part| is_shown(part, view))
}

fn are_steps(role: &str, parts: &[Part<'_>]) -> bool {
    let mut parts = parts.iter().peekable();
    !matches!(role, "user" | "system")
        && parts.peek().is_some()
        && parts.all(|part| matches!(part, Part::Thinking(_) | Part::Call(..) | Part::Output(_)))
}

/// Returns whether a message is only calls, results and thoughts of an agent.
pub(super) fn is_only_steps(role: &str, content: &str, joins_thinking: bool) -> bool {
    are_steps(role, &parts(role, snippet::trim(content), joins_thinking))
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
    match telling_line(&screen::written(text)) {
        "" => "nothing".to_owned(),
        line => snippet::shortened(line, SUMMARY),
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
            let clock = Clock::new(false);
            let marker = &Marks::None;
            let view = ShownParts::All;
            let hit = 0;
            let place = HitPlace::default();
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
                most: MOST_SHOWN,
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
        for most in [MOST_SHOWN, 1_000] {
            let shown = part_of(&text, std::slice::from_ref(&span), most);
            assert!(shown.start > 0 && shown.contains(&at) && shown.end < text.len());
            assert!(shown.len() <= most + 4, "{}", shown.len());
        }
        assert!(part_of(&text, &[], 9).start == 0 && part_of("short", &[], 9) == (0..5));
    }

    #[test]
    fn whole_paths_are_short() {
        for (text, expected) in [
            ("/Users/a/.worktrees/streaming/.gitignore", "streaming/.gitignore"),
            ("C:\\Users\\a\\b.rs", "a\\b.rs"),
            ("~/src/a/b.rs", "a/b.rs"),
            ("/a/b.rs", "a/b.rs"),
            ("/b.rs", "/b.rs"),
            ("src/a/b/c.rs", "src/a/b/c.rs"),
            ("/bin/ls /a/b/c", "/bin/ls /a/b/c"),
            ("", ""),
        ] {
            assert_eq!(short_path(text), expected);
        }
    }

    #[test]
    fn a_shown_picture_needs_no_placeholder() {
        let text = "[image]\n[image]\nWhich of [image] is better?";
        let shown = |pictures| without_placeholders(text, pictures).into_owned();
        assert_eq!([shown(0), shown(1)], [text, text]);
        assert_eq!(shown(2), "Which of [image] is better?");
    }
}
