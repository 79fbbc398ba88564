//! The page of a conversation: the messages around a match, the list of matches, and links.

mod artifact;
mod branches;
mod code;
mod diff;
pub(super) mod files;
pub(super) mod flags;
pub(super) mod forget;
mod mark;
mod markdown;
mod message;
pub(super) mod prose;
mod related;
pub(super) mod set_flag;
mod steps;

use std::{collections::HashMap, fmt::Write as _, ops::Range, sync::Arc, time::Duration};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::web::frame::chart::percent;
use crate::web::frame::labels::{hour, meta, role_name};
use crate::web::frame::site::{Matches, Problem, Site};
use crate::web::frame::{Frame, Tab, assets::STYLE};
use crate::web::search::excerpt::{
    FIRST_SPANS, few_words, marked, prose_around, readable, text_marks, whole,
};
use crate::web::search::find::marks;
use crate::web::search::page_query::{PageQuery, ShownParts, Way, fields};
use crate::web::search::scope::read;
use branches::Path;
use code::Highlighter;
use files::MessageFiles;
use markdown::COPY_BUTTON;
use message::{
    HitPlace, MOST_SHOWN, MessageSettings, ShownMessage, Versions, is_in_view, is_only_steps,
};
use related::RelatedSessions;
use steps::MessageThread;
use verbatim_answer::conversation::{
    DescribedConversation, conversation, file_name, named, title_line,
};
use verbatim_answer::{markdown::add_message, marks::Marks};
use verbatim_base::call::{Call, Stop};
use verbatim_base::model::Hit;
use verbatim_engine::{self as engine, Error, Flag, Flags, Session};
use verbatim_text::amount::{counted, grouped};
use verbatim_text::{address::id_in_path, screen, snippet, up_to};

/// The maximum number of messages on a page, without the steps of agents. A shorter conversation is shown completely.
const MOST_MESSAGES: usize = 120;

const BEFORE: usize = 20;

/// The maximum number of steps on a page. A fold with more is cut.
const MOST_STEPS: usize = 1_000;

/// The maximum number of bytes of messages on a page, with the first bytes of each result.
const MOST_BYTES: usize = 90_000;

/// The number of bytes that count of a tool's result, because a fold hides it, and that are shown at least.
const RESULT: usize = 1_000;

const MOST_ROWS: usize = 100;

/// The maximum number of ticks in the overview strip. More ticks could not be told apart.
const MOST_TICKS: usize = 400;

const MOST_COLOURING: Duration = Duration::from_secs(3);

#[derive(Clone)]
pub(super) struct ConversationView {
    /// The id or its beginning, a title or a link.
    id: String,
    number: Option<u32>,
    pub(super) query: PageQuery,
    is_whole: bool,
}

impl ConversationView {
    pub(super) fn new(id: String, number: Option<u32>, query: &str) -> ConversationView {
        let is_whole = fields(query).any(|(name, value)| name == "all" && value == "1");
        ConversationView { id, number, query: PageQuery::parse(query), is_whole }
    }

    /// Returns the view with its search read.
    pub(super) fn read(&self, site: &Site, call: &Call) -> Result<ConversationView, Problem> {
        Ok(ConversationView { query: read(site, &self.query, call)?, ..self.clone() })
    }
}

struct OpenConversation {
    session: Session,
    card: DescribedConversation,
    query: PageQuery,
    matches: Arc<Matches>,
    turn: Option<usize>,
    /// The wanted match of the chosen turn, from 0.
    hit: usize,
    /// The messages that are shown: the path through the branch of the chosen turn.
    path: Path,
    related: RelatedSessions,
    is_whole: bool,
}

/// What is on a page so far: messages without steps, and bytes.
#[derive(Default)]
struct PageWeight {
    messages: usize,
    bytes: usize,
}

pub(super) fn page(site: &Site, view: &ConversationView, call: &Call) -> Result<Markup, Problem> {
    let stamp = site.stamp();
    let marker = marked_in(&view.query);
    let conversation = open(site, view, &marker, call)?;
    let title = conversation.title();
    let flags = site.flags()?;
    let zone = Some(site.clock().zone());
    let messages = site.messages(call);
    let query = &view.query;
    let tab = Tab::Elsewhere;
    let frame = Frame { title: &title, tab, query, messages, zone, stamp };
    let (thread, place) = conversation.messages(site, &marker, call);
    Ok(frame.around(html! {
        div.page.talk {
            (conversation.side_list(&marker))
            main #main {
                header.head {
                    p.meta { (meta(&conversation.card, site.clock(), None)) }
                    h1 dir="auto" { (marked(&whole(&title, &marker.spans(&title, FIRST_SPANS)))) }
                }
                (conversation.about_panel(site, &flags))
                div.thread {
                    (conversation.find_form())
                    (conversation.match_bar(&marker, place))
                    (thread)
                }
            }
            (conversation.overview_strip())
        }
    }))
}

/// Returns a message with its neighbours, for the pane beside the results.
pub(super) fn peek(site: &Site, view: &ConversationView, call: &Call) -> Result<Markup, Problem> {
    let marker = marked_in(&view.query);
    let (session, card) = find(site, &view.id, call)?;
    let turn = turn_of(&session, view.number.unwrap_or(1))?;
    let mut reading = reading(site, &card, &marker, Highlighter::new());
    let path = Path::through(&session, &follows(site, &session, call)?, Some(turn));
    let place = path.place(turn).unwrap_or(0);
    let number = session.line(turn);
    let hit = session.message(turn);
    let files = MessageFiles::read(site, &card, session.about.source);
    let address = address(&card, &view.query, number);
    let message = ShownMessage {
        is_current: true,
        is_open: true,
        files: files.html(&hit),
        pictures: files.pictures(&hit),
        ..ShownMessage::new(&session, turn, &hit, permalink(&card, &view.query, number))
    };
    Ok(html! {
        header {
            h2 {
                span.of dir="auto" { (title_line(&session.about.title)) }
                " " span.id { "Message " (number) }
            }
            " " a.btn href=(address) { "Open " kbd { "Enter" } }
        }
        @for turn in &path.turns()[place.saturating_sub(2)..place] { (neighbour(&session, *turn)) }
        (reading.message(&message))
        @if let Some(turn) = path.turns().get(place + 1) { (neighbour(&session, *turn)) }
    })
}

fn neighbour(session: &Session, turn: usize) -> Markup {
    let text = session.message(turn).content;
    let words = marked(&prose_around(&screen::written(&text), &[]));
    html! {
        div.near {
            p dir="auto" { b { (session.line(turn)) " " (role_name(session.role(turn))) } " " (words) }
        }
    }
}

pub(super) fn as_written(
    site: &Site,
    id: &str,
    number: u32,
    call: &Call,
) -> Result<String, Problem> {
    let (session, _) = find(site, id, call)?;
    let message = session.message(turn_of(&session, number)?);
    Ok(screen::written(snippet::trim(&message.content)).into_owned())
}

pub(super) fn as_markdown(site: &Site, id: &str, call: &Call) -> Result<String, Problem> {
    let (session, card) = find(site, id, call)?;
    let mut text =
        format!("# {}\n\n`{}` · {}\n", title_line(&session.about.title), card.id, card.service());
    if let Some(link) = card.link() {
        let _ = write!(text, "\n<{link}>\n");
    }
    if let Some(resume) = card.resume() {
        let _ = write!(text, "\nresume: `{resume}`\n");
    }
    let path = Path::through(&session, &follows(site, &session, call)?, None);
    let files = MessageFiles::read(site, &card, session.about.source);
    for turn in 0..session.turns() {
        if call.stop.requested() {
            return Err(Problem::Wrong(
                "The conversation is too long to be sent in time".to_owned(),
            ));
        }
        let message = session.message(turn);
        let other = if path.place(turn).is_none() { " · another version" } else { "" };
        add_message(&mut text, session.line(turn), &message, other, site.clock());
        for line in files.name_lines(&message) {
            let _ = write!(text, "\n{line}\n");
        }
    }
    Ok(text)
}

/// Returns a whole conversation as one HTML file that needs no other files.
pub(super) fn as_file(site: &Site, id: &str, call: &Call) -> Result<Markup, Problem> {
    /// The policy of the file: no script runs, and nothing is loaded.
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

    let (session, card) = find(site, id, call)?;
    let title = title_line(&session.about.title);
    let path = Path::through(&session, &follows(site, &session, call)?, None);
    let others: Vec<usize> =
        (0..session.turns()).filter(|turn| path.place(*turn).is_none()).collect();
    let mut reading = reading(site, &card, &Marks::None, Highlighter::lasting(MOST_COLOURING));
    let files = MessageFiles::read(site, &card, session.about.source);
    let thread = blocks_of_file(&session, path.turns(), &files, &mut reading, &call.stop)?;
    let rest = blocks_of_file(&session, &others, &files, &mut reading, &call.stop)?;
    Ok(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE.content())) }
            }
            body {
                main.file {
                    header.head {
                        p.meta { (meta(&card, site.clock(), session.about.last)) }
                        h1 dir="auto" { (title) }
                    }
                    div.thread { @for message in &thread { (message) } }
                    @if !rest.is_empty() {
                        h2 { "Other versions" }
                        div.thread { @for message in &rest { (message) } }
                    }
                }
                footer.foot {
                    span { (counted(session.turns(), "message")) ". Times are in " (site.clock().zone()) "." }
                    span { "verbatim " (env!("CARGO_PKG_VERSION")) }
                }
            }
        }
    })
}

fn blocks_of_file(
    session: &Session,
    turns: &[usize],
    files: &MessageFiles,
    reading: &mut MessageSettings<'_>,
    stop: &Stop,
) -> Result<Vec<Markup>, Problem> {
    let hits: Vec<Hit<'_>> = turns.iter().map(|turn| session.message(*turn)).collect();
    let messages = turns.iter().zip(&hits).map(|(turn, hit)| ShownMessage {
        is_whole: true,
        files: html! { @for line in files.name_lines(hit) { p.note { (line) } } },
        ..ShownMessage::new(session, *turn, hit, format!("#m{}", session.line(*turn)))
    });
    let messages: Vec<ShownMessage<'_>> = messages.collect();
    let thread = MessageThread::new(reading, &messages);
    let mut blocks = Vec::new();
    for block in thread.blocks() {
        if stop.requested() {
            let why =
                "The conversation is too long: the file could not be made within the time limit.";
            return Err(Problem::Wrong(why.to_owned()));
        }
        blocks.push(reading.block(&thread, block));
    }
    Ok(blocks)
}

fn marked_in(query: &PageQuery) -> Marks {
    match engine::trimmed(&query.find) {
        "" => marks(query),
        find => text_marks(find),
    }
}

/// Returns whether the transcript may join thinking and answer without a separator, as in Codex.
fn joins_thinking(card: &DescribedConversation) -> bool {
    card.service() == "codex"
}

fn reading<'a>(
    site: &Site,
    card: &DescribedConversation,
    marker: &'a Marks,
    highlighter: Highlighter,
) -> MessageSettings<'a> {
    MessageSettings {
        clock: site.clock(),
        marker,
        highlighter,
        joins_thinking: joins_thinking(card),
        view: ShownParts::All,
        hit: 0,
        place: HitPlace::default(),
    }
}

/// Returns the messages on branches that the service does not show, each with the message before it.
fn follows(site: &Site, session: &Session, call: &Call) -> Result<HashMap<String, String>, Error> {
    site.engine.all_sources().branches(session.about.source, &session.about.id, call)
}

/// Opens the conversation with an id, a beginning of an id, a title or a link.
pub(super) fn find(
    site: &Site,
    id: &str,
    call: &Call,
) -> Result<(Session, DescribedConversation), Problem> {
    let engine = &site.engine;
    let id = id_in_path(id);
    let about = named(engine, id, call).map_err(|error| match error {
        Error::NoConversation { .. } => {
            let unread = engine.all_sources().problems(call);
            let unread: String = unread.iter().map(|note| format!("; {note}")).collect();
            Problem::Missing(format!("{error}{unread}"))
        }
        error => error.into(),
    })?;
    let session = engine.find(call).session(about.source, &about.id, false)?;
    let session =
        session.ok_or_else(|| Error::NoConversation { word: snippet::echo(id).into_owned() })?;
    Ok((session, conversation(engine, (about.source, about.id), call)?))
}

/// Returns the turn of the message with a number. In a transcript, returns the first turn from that line on.
fn turn_of(session: &Session, number: u32) -> Result<usize, Problem> {
    let mut turns = 0..session.turns();
    let found = turns.find(|turn| session.line(*turn) >= number);
    found.ok_or_else(|| {
        let last = session.turns().checked_sub(1).map_or(0, |turn| session.line(turn));
        Problem::Missing(format!("The last message of this conversation is {last}."))
    })
}

fn open(
    site: &Site,
    view: &ConversationView,
    marker: &Marks,
    call: &Call,
) -> Result<OpenConversation, Problem> {
    let (session, card) = find(site, &view.id, call)?;
    let mut turn = view.number.map(|number| turn_of(&session, number)).transpose()?;
    let parts = view.query.view;
    let matches = match marker {
        Marks::None => Arc::default(),
        _ => {
            let find = view.query.find.clone();
            let query = PageQuery { find, view: parts, ..view.query.bare() }.to_query_string();
            site.matches(&session.about, query, || {
                find_matches(&session, &card, parts, marker, &call.stop)
            })?
        }
    };
    // The page of a search inside the conversation begins at the first match.
    if turn.is_none() && !view.query.find.is_empty() {
        turn = matches.turns.first().copied();
    }
    let mut path = Path::through(&session, &follows(site, &session, call)?, turn);
    if parts != ShownParts::All {
        path.retain(|at| Some(at) == turn || is_turn_in_view(&session, at, parts, &card));
    }
    let related = RelatedSessions::find(&site.engine, &session, call)?;
    let hit = view.query.hit;
    let is_whole = view.is_whole;
    let query = PageQuery { hit: 0, ..view.query.clone() };
    Ok(OpenConversation { session, card, query, matches, turn, hit, path, related, is_whole })
}

fn is_turn_in_view(
    session: &Session,
    turn: usize,
    view: ShownParts,
    card: &DescribedConversation,
) -> bool {
    let role = session.role(turn);
    view == ShownParts::All
        || is_in_view(view, role, &session.message(turn).content, joins_thinking(card))
}

fn find_matches(
    session: &Session,
    card: &DescribedConversation,
    view: ShownParts,
    marker: &Marks,
    stop: &Stop,
) -> Result<Matches, Problem> {
    let mut matches = Matches::default();
    for turn in 0..session.turns() {
        if stop.requested() {
            return Err(Problem::Wrong("The conversation is too long to be searched".to_owned()));
        }
        let count = marker.spans(&session.message(turn).content, usize::MAX).len();
        if count > 0 && is_turn_in_view(session, turn, view, card) {
            matches.turns.push(turn);
            matches.counts.push(count);
        }
    }
    Ok(matches)
}

/// Returns the address of a message, with the text to mark: of its match, if there is such a text.
pub(super) fn address(card: &DescribedConversation, query: &PageQuery, number: u32) -> String {
    match query.sought() {
        "" => permalink(card, query, number),
        _ => format!("{}/{number}{}#hit", card.address(), query.marks()),
    }
}

/// Returns the address of the head of a message, with the text to mark.
fn permalink(card: &DescribedConversation, query: &PageQuery, number: u32) -> String {
    format!("{}/{number}{}#m{number}", card.address(), query.marks())
}

fn match_button(link: Option<String>, rel: &str, keys: &str, label: Markup) -> Markup {
    html! {
        @match link {
            Some(link) => a.btn id=(format!("to-{rel}")) href=(link) rel=(rel) aria-keyshortcuts=(keys) { (label) },
            None => span.btn.off { (label) },
        }
    }
}

impl OpenConversation {
    fn title(&self) -> String {
        title_line(&self.session.about.title)
    }

    fn link(&self, turn: usize, hit: usize) -> String {
        let query = PageQuery { hit, ..self.query.clone() };
        address(&self.card, &query, self.session.line(turn))
    }

    fn permalink(&self, turn: usize) -> String {
        permalink(&self.card, &self.query, self.session.line(turn))
    }

    fn place(&self) -> Option<usize> {
        self.path.place(self.turn?)
    }

    fn visible_places(&self) -> Range<usize> {
        let all = self.path.turns().len();
        if self.is_whole {
            let place = self.place().unwrap_or(0);
            return place..place + 1;
        }
        let first = self.place().unwrap_or(0);
        // At the end of a conversation, the page has as many messages as elsewhere.
        let before = BEFORE.max((first + MOST_MESSAGES).saturating_sub(all));
        let mut weight = PageWeight::default();
        let mut from = first;
        // Messages before the chosen message are added first, then messages after it.
        while from > 0 && weight.messages < before && weight.bytes < MOST_BYTES / 4 {
            from -= 1;
            self.weigh(from, &mut weight);
        }
        // The steps between two texts are one fold, which begins with the text before them.
        while from > 0 && first - from < MOST_STEPS && self.is_step(from) {
            from -= 1;
        }
        let mut to = first;
        while to < all && weight.messages < MOST_MESSAGES && weight.bytes < MOST_BYTES {
            self.weigh(to, &mut weight);
            to += 1;
        }
        let mut to = to.max(first + 1).min(all);
        while to < all && to - from < MOST_STEPS && self.is_step(to) {
            to += 1;
        }
        from..to
    }

    fn weigh(&self, place: usize, weight: &mut PageWeight) {
        let turn = self.path.turns()[place];
        let most = if self.session.role(turn) == "tool" { RESULT } else { MOST_SHOWN };
        weight.bytes += self.session.message(turn).content.len().min(most);
        weight.messages += usize::from(!self.is_step(place));
    }

    fn is_step(&self, place: usize) -> bool {
        let turn = self.path.turns()[place];
        let content = self.session.message(turn).content;
        let joins = joins_thinking(&self.card);
        is_only_steps(self.session.role(turn), up_to(&content, MOST_SHOWN), joins)
    }

    /// Returns the messages, and the place of the current match in the chosen message.
    fn messages(&self, site: &Site, marker: &Marks, call: &Call) -> (Markup, HitPlace) {
        let mut reading = MessageSettings {
            view: self.query.view,
            hit: self.hit,
            ..reading(site, &self.card, marker, Highlighter::new())
        };
        let files = MessageFiles::read(site, &self.card, self.session.about.source);
        let shown = self.visible_places();
        let turns = self.path.turns();
        let all = turns.len();
        let hits: Vec<Hit<'_>> =
            turns[shown.clone()].iter().map(|turn| self.session.message(*turn)).collect();
        // The results of a long fold are shown in part.
        let results =
            turns[shown.clone()].iter().filter(|turn| self.session.role(**turn) == "tool");
        let of_result = (2 * MOST_BYTES / results.count().max(1)).clamp(RESULT, MOST_SHOWN);
        let on_page = turns[shown.clone()].iter().zip(&hits).map(|(turn, hit)| ShownMessage {
            is_current: self.turn == Some(*turn),
            is_whole: self.is_whole,
            is_open: self.is_whole,
            versions: self.versions(*turn),
            files: html! {
                (self.related.links_of_message(&site.engine, hit, call))
                (files.html(hit))
            },
            pictures: files.pictures(hit),
            most: if hit.role == "tool" && self.turn != Some(*turn) {
                of_result
            } else {
                MOST_SHOWN
            },
            ..ShownMessage::new(&self.session, *turn, hit, self.permalink(*turn))
        });
        let messages: Vec<ShownMessage<'_>> = on_page.collect();
        let thread = MessageThread::new(&reading, &messages);
        // The chosen message is on the page in every view.
        let view = self.query.view;
        let is_bare = view != ShownParts::All
            && !turns.iter().any(|turn| is_turn_in_view(&self.session, *turn, view, &self.card));
        let html = html! {
            (files.problem())
            @if is_bare {
                p.note { "This conversation has no " (view.label().to_lowercase()) "." }
            }
            @if shown.start > 0 {
                p.pages.note {
                    a href=(self.permalink(turns[shown.start.saturating_sub(MOST_MESSAGES - BEFORE)])) rel="prev" {
                        "↑ " (counted(shown.start, "message")) " before this"
                    }
                    " · " a href=(self.permalink(turns[0])) { "The first" }
                }
            }
            @for block in thread.blocks() { (reading.block(&thread, block)) }
            @if shown.end < all {
                p.pages.note {
                    a href=(self.permalink(turns[shown.end])) { "↓ " (counted(all - shown.end, "message")) " after this" }
                    " · " a href=(self.permalink(turns[all - 1])) { "The last" }
                }
            }
        };
        (html, reading.place)
    }

    /// Returns the versions of a message; `None` if there is only one version.
    fn versions(&self, turn: usize) -> Option<Versions> {
        let versions = self.path.versions(turn);
        let at = versions.iter().position(|version| *version == turn)?;
        if versions.len() < 2 {
            return None;
        }
        let before = at.checked_sub(1).map(|before| self.permalink(versions[before]));
        let after = versions.get(at + 1).map(|after| self.permalink(*after));
        Some(Versions { number: at + 1, all: versions.len(), before, after })
    }

    /// Returns the place of the chosen turn among the matches; `None` if the turn does not match.
    fn rank(&self) -> Option<usize> {
        self.matches.turns.binary_search(&self.turn?).ok()
    }

    /// Returns the addresses of the matches before and after the current one.
    fn neighbours(&self, place: HitPlace) -> [Option<String>; 2] {
        let turns = &self.matches.turns;
        let Some(turn) = self.turn else {
            return [None, turns.first().map(|first| self.link(*first, 0))];
        };
        let earlier = turns[..turns.partition_point(|hit| *hit < turn)].last();
        let later = turns[turns.partition_point(|hit| *hit <= turn)..].first();
        let before =
            place.before.map(|hit| (turn, hit)).or(earlier.map(|last| (*last, usize::MAX)));
        let after = place.after.map(|hit| (turn, hit)).or(later.map(|first| (*first, 0)));
        [before, after].map(|to| to.map(|(turn, hit)| self.link(turn, hit)))
    }

    fn match_count(&self, marker: &Marks, place: HitPlace) -> Markup {
        let [all, messages] = [self.matches.counts.iter().sum(), self.matches.turns.len()];
        html! {
            @match self.rank() {
                Some(rank) => {
                    // A shown text may have more matches than the stored text.
                    @let number = place.number.min(self.matches.counts[rank] - 1);
                    @let before: usize = self.matches.counts[..rank].iter().sum();
                    b {
                        "Hit " (grouped(before + number + 1)) " of " (grouped(all))
                        span { ", message " (grouped(rank + 1)) " of " (grouped(messages)) }
                    }
                }
                None if messages > 0 => {
                    b { (counted(all, "hit")) span { " in " (counted(messages, "message")) } }
                }
                None if self.query.view != ShownParts::All => b { "No match in this view" },
                None if !marker.spans(&self.title(), FIRST_SPANS).is_empty() => b { "Only the title matches" },
                None => b { "No match in this conversation" },
            }
        }
    }

    fn link_in_view(&self, view: ShownParts) -> String {
        let query = PageQuery { view, ..self.query.clone() };
        match self.turn {
            Some(turn) => address(&self.card, &query, self.session.line(turn)),
            None => format!("{}{}", self.card.address(), query.marks()),
        }
    }

    fn find_form(&self) -> Markup {
        let query =
            PageQuery { find: String::new(), page: 0, ..self.query.clone() }.to_query_string();
        html! {
            form.within.row role="search" aria-label="This conversation" action=(self.card.address()) method="get" {
                @for (name, value) in fields(&query) { input type="hidden" name=(name) value=(value); }
                label.sr for="within" { "Text to find in this conversation" }
                input.field #within type="search" name="find" value=(self.query.find) dir="auto"
                    placeholder="Find in this conversation" autocomplete="off" spellcheck="false" aria-keyshortcuts="f";
                nav.views aria-label="What is shown" {
                    @for view in ShownParts::EACH {
                        a href=(self.link_in_view(view)) aria-current=[(view == self.query.view).then_some("true")] { (view.label()) }
                        " "
                    }
                }
            }
        }
    }

    fn match_bar(&self, marker: &Marks, place: HitPlace) -> Markup {
        if self.query.sought().is_empty() {
            return html! {};
        }
        let [before, after] = self.neighbours(place);
        let way = match self.query.way {
            Way::Meaning if self.query.find.is_empty() => "its words",
            _ if self.query.find.is_empty() => {
                self.query.reads().map_or("exact", |(_, words)| words)
            }
            _ => "exact",
        };
        html! {
            div.hop role="group" aria-label="Matches" {
                (match_button(before, "prev", "Shift+N", html! { "‹ " span { "Previous" } }))
                (match_button(after, "next", "n", html! { span { "Next" } " ›" }))
                p.count {
                    (self.match_count(marker, place))
                    " " span dir="auto" { "“" bdi { (snippet::echo(self.query.sought())) } "”, " (way) }
                }
                span.of aria-hidden="true" dir="auto" { (self.title()) }
                a.back href=(self.query.address()) rel="up" aria-keyshortcuts="u" { "All results" }
            }
        }
    }

    /// Returns the list beside the messages: the matches or, without a search, the prompts of the person.
    fn side_list(&self, marker: &Marks) -> Markup {
        let is_search = !self.query.sought().is_empty();
        let prompts: Vec<usize>;
        let turns: &[usize] = if is_search {
            &self.matches.turns
        } else {
            let all = self.path.turns().iter().copied();
            prompts = all.filter(|turn| self.session.role(*turn) == "user").collect();
            &prompts
        };
        let current = self.turn.unwrap_or(0);
        let middle = turns.partition_point(|turn| *turn < current);
        let start = middle.saturating_sub(MOST_ROWS / 2).min(turns.len().saturating_sub(MOST_ROWS));
        let rows = &turns[start..turns.len().min(start + MOST_ROWS)];
        let label = if is_search { "Matches in this conversation" } else { "What you wrote" };
        html! {
            nav.where aria-label=(label) {
                p {
                    @if is_search {
                        a href=(self.query.address()) rel="up" aria-keyshortcuts="u" { "← All results" }
                    } @else if !rows.is_empty() { b { "What you wrote" } }
                }
                @if start > 0 { p.note { (counted(start, "row")) " before these" } }
                ol {
                    @for turn in rows {
                        @let hit = self.session.message(*turn);
                        @let (content, spans) = readable(marker, &hit.content);
                        li {
                            a href=(self.link(*turn, 0))
                                aria-current=[(self.turn == Some(*turn)).then_some("true")] {
                                b { (self.session.line(*turn)) }
                                " " span dir="auto" {
                                    @if self.path.place(*turn).is_none() { i { "other version " } }
                                    (marked(&few_words(&content, &spans)))
                                }
                            }
                        }
                    }
                }
                @if start + rows.len() < turns.len() {
                    p.note { (counted(turns.len() - start - rows.len(), "row")) " after these" }
                }
            }
        }
    }

    fn about_panel(&self, site: &Site, flags: &Flags) -> Markup {
        let about = &self.session.about;
        let clock = site.clock();
        let address = self.card.address();
        let at = self.turn.map_or(String::new(), |turn| format!("&at={}", self.session.line(turn)));
        let query = PageQuery { hit: self.hit, ..self.query.clone() };
        let way_back = query.marks().replacen('?', "&", 1) + &at;
        html! {
            details.about {
                summary { "About" span.sr { " this conversation" } }
                div.row.acts {
                    a.btn href=(format!("{address}.md")) data-copy="text" {
                        "Copy Markdown"
                    }
                    @if let Some(link) = self.card.link().filter(|link| ["https://", "http://"].iter().any(|it| link.starts_with(it))) {
                        " " a.btn href=(link) rel="noreferrer" { "Open original ↗" }
                    }
                    " " a.btn href=(address) data-copy="address" { "Copy link" }
                    " " (flags::button(flags, Flag::Starred, &self.card, &way_back))
                    details.resume {
                        summary { "Save, hide or forget" }
                        div.row {
                            a.btn href=(format!("{address}.html")) download=(format!("{}.html", file_name(&self.title()))) { "Save as HTML" }
                            " " a.btn href=(format!("{address}.md")) download=(format!("{}.md", file_name(&self.title()))) { "Save as Markdown" }
                            " " (flags::button(flags, Flag::Hidden, &self.card, &way_back))
                            " " a.btn href=(format!("{}/forget", self.card.address())) { "Forget …" }
                        }
                    }
                    @if let Some(resume) = self.card.resume() {
                        details.resume {
                            summary { "Resume in a terminal" }
                            div.row { code { (resume) } " " (PreEscaped(COPY_BUTTON)) }
                        }
                    }
                }
                dl.facts {
                    div { dt { "Begun" } " " dd { (hour(clock, about.begun)) } }
                    div { dt { "Last" } " " dd { (hour(clock, about.last)) } }
                    div { dt { "Messages" } " " dd { (grouped(self.session.turns())) } }
                    @if self.path.branches() > 1 {
                        div { dt { "Branches" } " " dd { (grouped(self.path.branches())) } }
                    }
                    @if let Some(project) = self.card.project() {
                        div { dt { "Project" } " " dd dir="auto" { (project) } }
                    }
                    (self.related.facts())
                    div { dt { "Id" } " " dd { code { (self.card.id) } } }
                }
            }
        }
    }

    fn overview_strip(&self) -> Markup {
        let all = self.path.turns().len() as f64;
        let shown = self.visible_places();
        let step = self.matches.turns.len().div_ceil(MOST_TICKS).max(1);
        let ticks = self.matches.turns.iter().step_by(step);
        let ticks = ticks.filter_map(|turn| Some((*turn, self.path.place(*turn)?)));
        // Without a match, the strip only shows which part of the conversation is on the page.
        let is_bare = self.matches.turns.is_empty() && shown.len() == self.path.turns().len();
        html! {
            svg.strip.bare[is_bare] aria-hidden="true" focusable="false" {
                rect.view y=(percent(shown.start as f64, all)) width="100%" height=(percent(shown.len() as f64, all)) {}
                @for (turn, place) in ticks {
                    a href=(self.link(turn, 0)) tabindex="-1" {
                        title { "Message " (self.session.line(turn)) }
                        rect.t y=(percent(place as f64, all)) width="100%" height="3" {}
                    }
                }
                @if let Some(place) = self.place().filter(|_| self.rank().is_some()) {
                    rect.t.here y=(percent(place as f64, all)) width="100%" height="5" {}
                }
            }
        }
    }
}
