//! The order of a conversation on its page: texts, and between them the steps of an agent.
//!
//! A step is a thought, or a call with its result. Steps without a text between them are one fold.

use std::collections::HashMap;

use maud::{Markup, html};

use super::message::{AgentStep, MessagePiece, MessageSettings, ReadMessage, ShownMessage};
use crate::web::frame::labels::{hour, role_name};
use crate::web::search::page_query::ShownParts;
use verbatim_answer::clock::Clock;
use verbatim_base::model::Instant;
use verbatim_text::{amount::counted, parts::Part, snippet};

/// The fewest steps that are put into one fold.
const RUN: usize = 2;

const MOST_TOOLS: usize = 4;

const MOST_TOOL: usize = 30;

pub(super) struct MessageThread<'a> {
    messages: Vec<ReadMessage<'a>>,
    /// The places of the results, by the place of the message that calls and the number of its call.
    results: HashMap<(usize, usize), Vec<usize>>,
    /// The places of messages that one element of the page shows: a message and the steps after it.
    blocks: Vec<Vec<usize>>,
}

/// Steps of one message, or a fold with steps of several messages.
#[derive(Default)]
struct StepGroup {
    html: Vec<Markup>,
    steps: usize,
    tools: Vec<String>,
    hits: usize,
    is_chosen: bool,
    /// The times of the first and the last message.
    times: Vec<Instant>,
}

impl<'a> MessageThread<'a> {
    pub(super) fn new(settings: &MessageSettings<'_>, messages: &'a [ShownMessage<'a>]) -> Self {
        let messages: Vec<_> = messages.iter().map(|message| settings.read(message)).collect();
        let results = results_by_call(&messages);
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        for place in 0..messages.len() {
            if results.values().flatten().any(|result| *result == place) {
                continue;
            }
            match blocks.last_mut() {
                Some(block) if continues(&messages[block[0]], &messages[place]) => {
                    block.push(place);
                }
                _ => blocks.push(vec![place]),
            }
        }
        MessageThread { messages, results, blocks }
    }

    pub(super) fn blocks(&self) -> &[Vec<usize>] {
        &self.blocks
    }

    fn results_of(&self, place: usize) -> Vec<Vec<&ReadMessage<'a>>> {
        let mut results = Vec::new();
        for call in 0..open_calls(&self.messages[place]) {
            let places = self.results.get(&(place, call)).into_iter().flatten();
            results.push(places.map(|place| &self.messages[*place]).collect());
        }
        results
    }

    /// Returns whether a heading has the same minute as the heading above it.
    fn repeats_minute(&self, clock: Clock, place: usize) -> bool {
        let above = self.blocks.partition_point(|block| block[0] < place);
        let Some(above) = above.checked_sub(1) else { return false };
        let minute = self.minute(clock, self.blocks[above][0]);
        minute.is_some() && minute == self.minute(clock, place)
    }

    fn minute(&self, clock: Clock, place: usize) -> Option<String> {
        clock.minute(self.messages[place].of.time?)
    }
}

/// Returns whether the steps of a message are shown below an earlier message.
fn continues(first: &ReadMessage<'_>, next: &ReadMessage<'_>) -> bool {
    let role = first.of.role;
    let next_role = next.of.role;
    let is_same = role == next_role || (role == "assistant" && next_role == "tool");
    is_same && matches!(role, "assistant" | "tool") && next.is_steps() && next.of.versions.is_none()
}

/// Returns the number of calls whose results are not in the message itself.
fn open_calls(read: &ReadMessage<'_>) -> usize {
    let mut open = 0;
    for (at, part) in read.parts.iter().enumerate() {
        let has_result = matches!(read.parts.get(at + 1), Some(Part::Output(_)));
        open += usize::from(matches!(part, Part::Call(..)) && !has_result);
    }
    open
}

/// Pairs calls with the messages after them that have the results. Results stay alone if it is not
/// certain which call each of them belongs to.
fn results_by_call(messages: &[ReadMessage<'_>]) -> HashMap<(usize, usize), Vec<usize>> {
    let mut pairs = HashMap::new();
    let mut calls: Vec<(usize, usize)> = Vec::new();
    let mut results: Vec<usize> = Vec::new();
    let mut is_certain = true;
    for place in 0..=messages.len() {
        let read = messages.get(place);
        if let Some(read) = read
            && read.of.role == "tool"
            && read.of.versions.is_none()
        {
            results.push(place);
            continue;
        }
        let is_end = read.is_none_or(|read| matches!(read.of.role, "user" | "system"));
        if is_end || !results.is_empty() {
            let results = std::mem::take(&mut results);
            let calls = std::mem::take(&mut calls);
            match calls.as_slice() {
                _ if !is_certain || results.is_empty() => {}
                [call] => drop(pairs.insert(*call, results)),
                calls if calls.len() == results.len() => {
                    pairs.extend(calls.iter().copied().zip(results.into_iter().map(|at| vec![at])));
                }
                _ => {}
            }
            is_certain = true;
        }
        if let Some(read) = read.filter(|_| !is_end) {
            calls.extend((0..open_calls(read)).map(|call| (place, call)));
            // A call may be in the part of a long message that is not shown.
            is_certain &= !read.is_cut();
        }
    }
    pairs
}

impl MessageSettings<'_> {
    pub(super) fn message(&mut self, message: &ShownMessage<'_>) -> Markup {
        let thread = MessageThread::new(self, std::slice::from_ref(message));
        self.block(&thread, &[0])
    }

    pub(super) fn block(&mut self, thread: &MessageThread<'_>, block: &[usize]) -> Markup {
        let read = &thread.messages[block[0]];
        let message = read.of;
        let class = match message.role {
            "user" => "msg you",
            "tool" | "system" => "msg tool",
            _ => "msg",
        };
        let number = message.number;
        let results = thread.results_of(block[0]);
        let body = self.body(read, &results);
        let mut shown = Vec::new();
        let mut group = StepGroup::default();
        // A message that is nothing but steps is in the fold itself.
        let is_steps = read.is_steps();
        for piece in body.pieces {
            match piece {
                MessagePiece::Text(html) => {
                    shown.extend(std::mem::take(&mut group).into_html());
                    shown.push(html);
                }
                MessagePiece::Step(step) => {
                    group.is_chosen |= is_steps && message.is_current;
                    group.add(step);
                }
            }
        }
        // A view of the steps alone has nothing else to read.
        group.is_chosen |= self.view != ShownParts::All;
        if group.steps > 0 {
            group.add_times(message, &results);
        }
        for place in &block[1..] {
            self.add_steps(thread, *place, &mut group);
        }
        shown.extend(group.into_html());
        let time = hour(self.clock, message.time);
        html! {
            article class=(class) id=(format!("m{number}")) aria-labelledby=(format!("h{number}"))
                aria-current=[message.is_current.then_some("true")] {
                header {
                    (self.number(read))
                    " " h2 id=(format!("h{number}")) { (role_name(message.role)) }
                    @if let Some(versions) = &message.versions { " " (versions.show(number)) }
                    " " @if thread.repeats_minute(self.clock, block[0]) { span.sr { (time) } } @else { (time) }
                }
                (body.before)
                @for part in shown { (part) }
                (body.after)
            }
        }
    }

    fn add_steps(&mut self, thread: &MessageThread<'_>, place: usize, group: &mut StepGroup) {
        let read = &thread.messages[place];
        let message = read.of;
        let results = thread.results_of(place);
        group.add_times(message, &results);
        let body = self.body(read, &results);
        group.is_chosen |= message.is_current;
        let earlier = std::mem::take(&mut group.html);
        for piece in body.pieces {
            if let MessagePiece::Step(step) = piece {
                group.add(step);
            }
        }
        let own = std::mem::replace(&mut group.html, earlier);
        let number = message.number;
        let role = role_name(message.role);
        group.html.push(html! {
            article.msg.part id=(format!("m{number}")) aria-label=(format!("Message {number}, {role}"))
                aria-current=[message.is_current.then_some("true")] {
                (self.number(read))
                div { (body.before) @for step in own { (step) } (body.after) }
            }
        });
    }
}

impl StepGroup {
    fn add_times(&mut self, message: &ShownMessage<'_>, results: &[Vec<&ReadMessage<'_>>]) {
        self.times.extend(message.time);
        self.times.extend(results.iter().flatten().filter_map(|result| result.of.time));
    }

    fn add(&mut self, step: AgentStep) {
        self.html.push(step.html);
        self.steps += 1;
        self.tools.extend(step.tool);
        self.hits += step.hits;
        self.is_chosen |= step.is_chosen;
    }

    /// Returns the steps as HTML: as they are, or in a fold if there are several.
    fn into_html(self) -> Vec<Markup> {
        if self.steps < RUN {
            return self.html;
        }
        let took = self.times.iter().min().zip(self.times.iter().max());
        let took = took.and_then(|(first, last)| duration(last.seconds - first.seconds));
        vec![html! {
            details.run open[self.is_chosen] {
                summary {
                    b { (counted(self.steps, "step")) } @if let Some(took) = took { ", " (took) }
                    @if !self.tools.is_empty() { " " span.names { "· " (names(&self.tools)) } }
                    @if self.hits > 0 { " " span.n { mark { (counted(self.hits, "hit")) } } }
                }
                @for step in self.html { (step) }
            }
        }]
    }
}

/// Returns the names of tools with their numbers of calls, the most frequent first.
fn names(tools: &[String]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for tool in tools {
        match counts.iter_mut().find(|(name, _)| name == tool) {
            Some((_, count)) => *count += 1,
            None => counts.push((tool, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = counts.len().saturating_sub(MOST_TOOLS);
    let mut shown = Vec::new();
    for (name, count) in counts.iter().take(MOST_TOOLS) {
        shown.push(match snippet::cut(name, MOST_TOOL) {
            Some(cut) => format!("{cut}… {count}"),
            None => format!("{name} {count}"),
        });
    }
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

/// Returns a duration in words; `None` for less than a second.
fn duration(seconds: i64) -> Option<String> {
    match seconds {
        ..1 => None,
        1..60 => Some(format!("{seconds} s")),
        60..3_600 => Some(format!("{} min", (seconds + 30) / 60)),
        _ => Some(format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::conversation::{code::Highlighter, message::HitPlace};
    use crate::web::search::excerpt::text_marks;
    use verbatim_answer::marks::Marks;

    const CALL: &str = "[tool: shell]\ncommand: rg \"TeamSheet\"\nworkdir: /src";
    const THOUGHT: &str = "[thinking]\n**Inspecting the file**\n\n";

    /// Returns the page of some messages, ten seconds apart. The reader chose the message `current`.
    fn shown(messages: &[(&str, &str)], marker: &Marks, current: u32, view: ShownParts) -> String {
        let numbered = (1..).zip(messages);
        let shown = numbered.map(|(number, (role, content))| ShownMessage {
            number,
            role,
            time: Some(Instant { seconds: 1_700_000_040 + i64::from(number) * 10, nanos: 0 }),
            content,
            address: format!("#m{number}"),
            is_current: number == current,
            is_whole: false,
            most: 40_000,
            is_open: false,
            versions: None,
            files: html! {},
            pictures: 0,
        });
        let shown: Vec<_> = shown.collect();
        let clock = Clock::new(false);
        let highlighter = Highlighter::new();
        let mut settings = MessageSettings {
            clock,
            marker,
            highlighter,
            joins_thinking: false,
            view,
            hit: 0,
            place: HitPlace::default(),
        };
        let thread = MessageThread::new(&settings, &shown);
        let blocks = thread.blocks().iter();
        blocks.map(|block| settings.block(&thread, block).into_string()).collect()
    }

    fn all(messages: &[(&str, &str)]) -> String {
        shown(messages, &Marks::None, 0, ShownParts::All)
    }

    #[test]
    fn a_call_and_its_result_are_one_fold() {
        let page =
            all(&[("user", "Go"), ("assistant", CALL), ("tool", "a\nb\nc"), ("assistant", "So.")]);
        let summary = "<summary><code>shell</code> <bdi>rg &quot;TeamSheet&quot;</bdi>\
                       <span class=\"size\"> → 3 lines</span></summary>";
        assert!(page.contains(summary), "{page}");
        assert_eq!(
            (page.matches("<details").count(), page.matches("<h2").count()),
            (1, 3),
            "{page}"
        );
        let fold = page.split("<details").nth(1).unwrap().split("</details>").next().unwrap();
        assert!(fold.contains("id=\"m3\"") && fold.contains("a\nb\nc"), "{fold}");
        for (arguments, words) in [
            ("description: List\ncommand: ls", "List"),
            ("offset: 3\nfile_path: /a/b.rs", "a/b.rs"),
            ("{\"n\":1,\"query\":\"red fox\"}", "red fox"),
            ("command:\n╭──╮\nls -l", "ls -l"),
            ("content:\nx\npath: c", "content:"),
        ] {
            let page = all(&[("assistant", &format!("[tool: T]\n{arguments}"))]);
            assert!(page.contains(&format!("<bdi>{words}</bdi>")), "{arguments}: {page}");
        }
    }

    #[test]
    fn results_are_paired_only_if_it_is_certain() {
        let two = format!("{CALL}\n{CALL}");
        let count =
            |messages: &[(&str, &str)]| all(messages).matches(" class=\"msg result\"").count();
        assert_eq!(count(&[("assistant", CALL), ("tool", "a"), ("tool", "b")]), 2);
        assert_eq!(count(&[("assistant", &two), ("tool", "a"), ("tool", "b")]), 2);
        assert_eq!(
            count(&[("assistant", CALL), ("assistant", CALL), ("tool", "a"), ("tool", "b")]),
            2
        );
        assert_eq!(count(&[("assistant", &two), ("tool", "a")]), 0);
        assert_eq!(count(&[("assistant", CALL), ("user", "Stop"), ("tool", "a")]), 0);
        assert_eq!(count(&[("tool", "a"), ("tool", "b")]), 0);
        // The result is in the message itself.
        let own = format!("{CALL}\n[result]\nx");
        assert_eq!(count(&[("assistant", &own), ("tool", "a")]), 0);
        assert!(all(&[("assistant", &own)]).contains("→ 1 line"));
    }

    #[test]
    fn steps_without_a_text_between_are_one_fold() {
        let step = format!("{THOUGHT}{CALL}");
        let patch = "[tool: apply_patch]\nx";
        let messages = [
            ("user", "Go"),
            ("assistant", &*step),
            ("tool", "red\nred"),
            ("assistant", patch),
            ("tool", "OK"),
            ("assistant", &*step),
            ("tool", "red"),
            ("assistant", "It is done."),
        ];
        let page = all(&messages);
        let summary = "<summary><b>5 steps</b>, 50 s <span class=\"names\">· shell 2, apply_patch 1</span></summary>";
        assert!(page.contains(summary), "{page}");
        assert!(
            page.contains("<details class=\"run\">")
                && page.contains("Thinking: Inspecting the file")
        );
        assert_eq!(page.matches("<h2").count(), 3, "one heading for the steps: {page}");
        for number in 1..=8 {
            assert_eq!(page.matches(&format!("id=\"m{number}\"")).count(), 1, "{page}");
        }
        // A fold that holds the chosen message or the current match is open.
        assert_eq!(page.matches(" open").count(), 0, "{page}");
        let red = text_marks("red");
        let found = shown(&messages, &red, 7, ShownParts::All);
        assert!(
            found.contains("<details class=\"run\" open>") && found.contains("<mark>3 hits</mark>")
        );
        assert_eq!(found.matches("<details class=\"fold\" open>").count(), 1, "{found}");
        assert_eq!(found.matches("class=\"now\"").count(), 1, "{found}");
        let chosen = shown(&messages, &Marks::None, 4, ShownParts::All);
        assert!(chosen.contains("<details class=\"run\" open>"), "{chosen}");
        let tools = shown(&messages[1..7], &Marks::None, 0, ShownParts::Tools);
        assert!(tools.contains("<details class=\"run\" open>") && !tools.contains("Thinking"));
    }

    #[test]
    fn a_minute_is_shown_once() {
        let page = all(&[("user", "a"); 8]);
        let parts =
            [page.matches("<time").count(), page.matches("<span class=\"sr\"><time").count()];
        assert_eq!(parts, [8, 6], "{page}");
        let words = [0, 40, 61, 3_720].map(|seconds| duration(seconds).unwrap_or_default());
        assert_eq!(words, ["", "40 s", "1 min", "1 h 2 min"]);
        let tools: Vec<String> = "abacdef".chars().map(String::from).collect();
        assert_eq!(names(&tools), "a 2, b 1, c 1, d 1, 2 more");
    }
}
