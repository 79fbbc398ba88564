//! The command `verbatim search`.

use std::{
    io::{self, Write},
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use clap::{Args as _, FromArgMatches, ValueEnum, error::ErrorKind};
use clap_complete::ArgValueCompleter;
use serde::Serialize;

use super::{
    arguments,
    command::{CommandArgs, Facts, Invocation, OutputForm, Reads},
    completions::conversations,
    engine_config::{PlaceArgs, passed_over_note},
    environment::{Environment, Terminal},
    error::{Error, Result},
    filters::FilterArgs,
    found::{Context, FoundHit, Page},
    groups::Groups,
    hints,
    lines::{JsonAnswer, JsonLines},
    look::{Color, Look},
    matching::{ListForm, MatchingConversations},
    notes,
    output::{FOUND, NOTHING, complain, counted, grouped, json_line},
    patterns::{self, Patterns},
    ranked,
};
use verbatim_answer::{
    exact::{ExactSearch, NothingFound},
    notes::{Audience, lines},
};
use verbatim_base::model::{Hit, Request, Stop};
use verbatim_engine::{
    self as engine, Count, Engine, Make, Note, Question, Scope, SearchPlan, Searched, SourceKind,
    StoreAddress,
};
use verbatim_text::snippet;

/// The maximum number of highlighted matches in a message.
const MOST_SPANS: usize = 100;

/// The number of messages that are shown if the user gives no limit.
const MOST_SHOWN: usize = 50;

/// The number of messages up to which a cluster's are counted beyond the limit.
const MOST_COUNTED_IN_CLUSTER: usize = 1_000;

/// The number of other searches that are proposed if nothing was found.
const MOST_READINGS: usize = 3;

/// Find a piece of text in your chats
///
/// Prints the conversations with a message or a title that contains the words, one after the other.
/// Letters match in any case, unless the words have a capital letter (-i, -s). Conversations with the
/// newest match come first. `verbatim show ID:NUMBER` shows a message.
/// With --mode words, vector or both, the words are a question. The messages that answer it best come
/// first. They contain its "quoted" texts exactly, and none of its -words.
/// The exit code is grep's: 0 if something was found, 1 if nothing, 2 for trouble.
///
///     verbatim search borrow checker --since 30d
///     verbatim search -e 'timeout after \d+ ?ms' --not staging
///     verbatim search "how did we fix the login?" --mode both --project shop
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    patterns: Patterns,
    /// exact, or the best by words, by meaning (vector) or by both
    ///
    /// exact: messages that contain the words (text, as in the MCP tool `search`, is the same); words: the
    /// best by words; vector: the best by meaning; both: the best by words and meaning.
    #[arg(long, value_name = "MODE", default_value = "exact", hide_possible_values = true)]
    mode: SearchMode,
    #[command(flatten)]
    filters: FilterArgs,
    /// Only this conversation: its id, title or link (repeatable)
    #[arg(long = "in", value_name = "CONVERSATION", add = ArgValueCompleter::new(conversations))]
    within: Vec<String>,
    /// Print at most this many messages, and as many titles, 0 for all [default: 50]
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = arguments::count)]
    limit: Option<usize>,
    /// Print the oldest messages first, not the newest
    #[arg(long, hide_short_help = true)]
    oldest: bool,
    /// Print this many messages of the conversation before and after each match
    #[arg(short = 'C', long, value_name = "COUNT", default_value_t = 0, value_parser = arguments::count)]
    context: usize,
    /// Print this many messages before each match
    #[arg(short = 'B', long, hide_short_help = true, value_name = "COUNT", value_parser = arguments::count)]
    before_context: Option<usize>,
    /// Print this many messages after each match
    #[arg(short = 'A', long, hide_short_help = true, value_name = "COUNT", value_parser = arguments::count)]
    after_context: Option<usize>,
    /// Print one JSON object per message: message_id, conversation_id, title, role, time, content,
    /// position, source, service, project, branch, folder, model, url, number, title_only; with
    /// -C also context
    #[arg(long)]
    json: bool,
    /// Print only the conversations, one line each with its number of matches; -n counts them
    #[arg(short = 'l', long, hide_short_help = true, conflicts_with = "count")]
    conversations: bool,
    /// Print only the ids of the conversations, each followed by a zero byte, for xargs -0
    #[arg(short = '0', long, hide_short_help = true, conflicts_with_all = ["json", "count"])]
    null: bool,
    /// Print only how many messages match, of all sources and without a limit; titles are counted apart
    #[arg(short = 'c', long, hide_short_help = true)]
    count: bool,
    /// Print nothing; the exit code says whether something was found
    #[arg(short = 'q', long, hide_short_help = true)]
    quiet: bool,
    /// Colour the output
    #[arg(long, hide_short_help = true, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

impl Args {
    /// Parses the arguments of a search.
    pub(super) fn parsed(words: impl IntoIterator<Item = String>) -> Result<Args> {
        let command = Args::augment_args(clap::Command::new("search").no_binary_name(true));
        let matches = command.try_get_matches_from(words).map_err(Error::Usage)?;
        Args::from_arg_matches(&matches).map_err(Error::Usage)
    }

    /// Returns the arguments of a search that prints a few messages with a text.
    pub(super) fn few(text: &str) -> Args {
        let words = ["--limit=3", "--", text].map(str::to_owned);
        Args::parsed(words).expect("these arguments are allowed")
    }

    fn filters(&self) -> FilterArgs {
        self.filters.within(&self.within)
    }

    /// Returns the request of an exact search.
    pub(super) fn request(&self) -> Request {
        self.patterns.request()
    }

    /// Returns the question to rank by.
    pub(super) fn question(&self, mode: engine::Mode, scope: Scope) -> Question {
        let limit = Some(self.most()).filter(|most| *most < usize::MAX).unwrap_or(ranked::MOST);
        let concepts = vec![self.patterns.question()];
        Question { concepts, mode, scope, limit, ..Question::default() }
    }

    pub(super) fn ranks(&self) -> bool {
        self.mode != SearchMode::Exact
    }

    fn context(&self) -> Context {
        let or_both = |count: Option<usize>| count.unwrap_or(self.context);
        Context { before: or_both(self.before_context), after: or_both(self.after_context) }
    }

    /// Returns the maximum number of messages to show.
    fn most(&self) -> usize {
        match self.limit {
            Some(0) => usize::MAX,
            limit => limit.unwrap_or(MOST_SHOWN),
        }
    }

    /// Returns whether the messages around each match are shown.
    fn has_context(&self) -> bool {
        !self.context().is_empty()
    }

    /// Returns whether the answer is for a person and may be long.
    fn is_paged(&self) -> bool {
        !(self.json || self.count || self.null || self.quiet)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SearchMode {
    // `text` is the name in the MCP tool `search`.
    #[value(alias = "text")]
    Exact,
    Words,
    Vector,
    Both,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        let reads = match (self.filters.takes_transcripts(), self.ranks()) {
            (false, _) => Reads::Home,
            (true, true) => Reads::EverySource,
            (true, false) => Reads::EverySourceExactly,
        };
        let form = if self.is_paged() { OutputForm::Pages } else { OutputForm::AsItIs };
        Facts {
            reads,
            writes: false,
            takes_db: true,
            makes_vectors: true,
            may_be_torn: self.ranks() || self.has_context(),
            waits_for: Some("searching"),
            form,
        }
    }

    fn run(&self, call: Invocation<'_>) -> Result<u8> {
        run(self, call.places, call.engine, call.terminal)
    }
}

pub(super) fn run(
    args: &Args,
    places: &PlaceArgs,
    engine: &Engine,
    terminal: Terminal<'_>,
) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let stop = Stop::never();
    let clock = environment.clock();
    let mode = rank_by(args)?;
    let (scope, notes) = args.filters().scope(engine, clock, &stop)?;
    notes::print(&notes);
    let passed_over = passed_over_note(engine.config());
    if let Some(note) = passed_over.as_ref().filter(|_| environment.progress) {
        complain(note);
    }
    let look = args.color.applied(Look::of(environment));
    let context = args.context();
    let page = Page { engine, look, clock, context };
    if let Some(mode) = mode {
        let Args { json, quiet, limit, .. } = *args;
        let has_limit = limit.is_some_and(|limit| (1..=ranked::MOST).contains(&limit));
        let form = ranked::Form { json, quiet, has_limit };
        return ranked::run(&args.question(mode, scope), form, page, Terminal { environment, out });
    }
    let search = Exact::of(args, page, scope, &stop)?;
    let count = match () {
        () if args.quiet => usize::from(search.search.finds()?),
        () if args.count => search.count(args.json, environment.terminal, out)?,
        () if args.conversations || args.null => {
            let form = ListForm { json: args.json, null: args.null };
            search.conversations(form, out)?
        }
        () if args.json => {
            let JsonAnswer { count, is_cut, notes } = search.json(out)?;
            notes::print(&notes);
            search.say_if_cut(is_cut, out)?;
            count
        }
        () => search.grouped(environment.terminal, out)?,
    };
    if count > 0 {
        return Ok(FOUND);
    }
    if args.quiet {
        return Ok(NOTHING);
    }
    complain(&places.in_commands(&search.nothing()?));
    if let Some(note) = passed_over.filter(|_| !environment.progress) {
        complain(&note);
    }
    Ok(NOTHING)
}

/// The flags of this command that are not parameters of `/search`.
const NOT_ASKED: [&str; 10] = [
    "regexp",
    "json",
    "context",
    "before-context",
    "after-context",
    "conversations",
    "null",
    "count",
    "quiet",
    "color",
];

/// The parameter of `/search` that makes the text a regular expression.
const REGEX: &str = "regex";

/// The last line of an incomplete answer of `/search`.
#[derive(Serialize)]
struct IncompleteLine {
    /// Whether the search covered everything that was requested.
    complete: bool,
    /// Whether the limit left messages out.
    more: bool,
    /// The words of the question that no message has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent_words: Vec<String>,
    notes: Vec<String>,
}

impl IncompleteLine {
    fn of(answer: &JsonAnswer, is_ranked: bool, is_oldest: bool) -> IncompleteLine {
        let JsonAnswer { count, is_cut, notes } = answer;
        let mut lines = lines(notes, Audience::Person);
        let kind = match (is_ranked, is_oldest) {
            (true, _) => "best",
            (false, true) => "oldest",
            (false, false) => "newest",
        };
        let advice = if is_ranked { "a higher limit gives more" } else { "limit=0 gives all" };
        lines.extend(is_cut.then(|| format!("these are the {count} {kind} messages; {advice}")));
        IncompleteLine {
            complete: !notes.iter().any(Note::is_gap),
            more: *is_cut,
            absent_words: notes.iter().flat_map(Note::absent_words).cloned().collect(),
            notes: lines,
        }
    }
}

/// Answers `/search`. The parameters are the flags of this command, and `q` is the text. Writes the
/// lines of `--json`. If the answer is incomplete, an additional last line says what is missing.
pub(super) fn answer(
    asked: &[(String, String)],
    engine: &Engine,
    environment: &Environment,
    stop: &Stop,
    out: &mut dyn Write,
) -> Result<()> {
    let args = parse(asked).map_err(Error::Usage)?;
    let clock = environment.clock();
    let mode = rank_by(&args)?;
    let (scope, notes) = args.filters().scope(engine, clock, stop)?;
    let look = Look::of(environment);
    let context = Context::default();
    let page = Page { engine, look, clock, context };
    let mut answer = match mode {
        Some(mode) => ranked::json(&args.question(mode, scope), page, stop, out)?,
        None => Exact::of(&args, page, scope, stop)?.json(out)?,
    };
    answer.notes.splice(..0, notes);
    if answer.is_cut || !answer.notes.is_empty() {
        json_line(out, &IncompleteLine::of(&answer, mode.is_some(), args.oldest))?;
    }
    Ok(())
}

/// Parses the parameters of `/search`.
fn parse(asked: &[(String, String)]) -> Result<Args, clap::Error> {
    let command = Args::augment_args(clap::Command::new("search").no_binary_name(true));
    let flags = command.get_arguments().filter_map(|flag| Some((flag.get_long()?, flag)));
    let flags: Vec<_> = flags.filter(|(name, _)| !NOT_ASKED.contains(name)).collect();
    let mut words = vec!["--json".to_owned()];
    let (mut text, mut is_regex) = (None, false);
    for (name, value) in asked {
        let is_on = || match value.as_str() {
            "" | "1" | "true" | "on" => Ok(true),
            "0" | "false" | "off" => Ok(false),
            other => {
                let message = format!("{name} is true or false, not {:?}\n", snippet::echo(other));
                Err(clap::Error::raw(ErrorKind::InvalidValue, message))
            }
        };
        let flag = flags.iter().find(|(flag, _)| flag == name).map(|(_, flag)| *flag);
        match (name.as_str(), flag) {
            ("q", _) if text.is_some() => {
                let message = "q is given twice; further texts are `or`, `and` and `not`\n";
                return Err(clap::Error::raw(ErrorKind::ArgumentConflict, message));
            }
            ("q", _) => text = Some(value.clone()),
            (REGEX, _) => is_regex = is_on()?,
            (name, Some(flag)) if flag.get_action().takes_values() => {
                words.push(format!("--{name}={value}"));
            }
            (name, Some(_)) => words.extend(is_on()?.then(|| format!("--{name}"))),
            (name, None) => {
                let known = flags.iter().map(|(name, _)| *name).chain([REGEX]);
                let known = known.collect::<Vec<_>>().join(", ");
                let name = snippet::echo(name);
                let message = format!("there is no parameter {name:?}, only q, {known}\n");
                return Err(clap::Error::raw(ErrorKind::UnknownArgument, message));
            }
        }
    }
    let required = || {
        clap::Error::raw(ErrorKind::MissingRequiredArgument, "q, the text to find, is missing\n")
    };
    let text = text.ok_or_else(required)?;
    match is_regex {
        true => words.push(format!("--regexp={text}")),
        false => words.extend(["--".to_owned(), text]),
    }
    Args::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// Returns the mode of ranked search; `None` for exact search.
fn rank_by(args: &Args) -> Result<Option<engine::Mode>> {
    let mode = match args.mode {
        SearchMode::Exact => return Ok(None),
        SearchMode::Words => engine::Mode::Text,
        SearchMode::Vector => engine::Mode::Vector,
        SearchMode::Both => engine::Mode::Both,
    };
    args.patterns.refuse_for_ranking()?;
    patterns::refuse(args.count, "--count")?;
    patterns::refuse(args.oldest, "--oldest")?;
    patterns::refuse(args.conversations, "--conversations")?;
    patterns::refuse(args.null, "--null")?;
    Ok(Some(mode))
}

struct Exact<'a> {
    page: Page<'a>,
    filters: FilterArgs,
    search: ExactSearch<'a>,
    /// The maximum number of messages to show.
    limit: usize,
    /// Whether the user gave the limit.
    has_limit: bool,
}

impl<'a> Exact<'a> {
    fn of(args: &'a Args, page: Page<'a>, scope: Scope, stop: &Stop) -> Result<Exact<'a>> {
        let mut search = ExactSearch::new(page.engine, args.request(), scope, stop)?;
        search.oldest_first = args.oldest;
        let has_limit = args.limit.is_some();
        Ok(Exact { page, filters: args.filters(), search, limit: args.most(), has_limit })
    }

    /// Searches, and prints the notes.
    fn all<T: Send>(
        &self,
        limit: Option<usize>,
        make: Make<'_, T>,
        show: &mut dyn FnMut(T) -> ControlFlow<()>,
    ) -> Result<Searched> {
        let searched = self.search.each(limit, make.into(), show)?;
        notes::print(&searched.notes);
        Ok(searched)
    }

    fn at_most(&self) -> Option<usize> {
        Some(self.limit).filter(|most| *most < usize::MAX)
    }

    fn count(&self, is_json: bool, is_terminal: bool, out: &mut dyn Write) -> Result<usize> {
        let (count, notes) = self.search.count()?;
        notes::print(&notes);
        let Count { messages, conversations, titles } = count;
        let (of_messages, of_conversations, of_titles) = (
            counted(messages, "message"),
            counted(conversations, "conversation"),
            counted(titles, "conversation"),
        );
        match (is_json, is_terminal) {
            (true, _) => json_line(out, &count)?,
            // As grep does, so that scripts can compare it.
            (false, false) => writeln!(out, "{messages}")?,
            (false, true) => {
                writeln!(out, "{of_messages} in {of_conversations}")?;
                if titles > 0 {
                    writeln!(out, "{of_titles} by title")?;
                }
            }
        }
        Ok(messages + titles)
    }

    /// Writes the conversations that match, in the order of their first matches.
    fn conversations(&self, form: ListForm, out: &mut dyn Write) -> Result<usize> {
        let mut found = MatchingConversations::default();
        let render = |kind: SourceKind, hit: Hit<'_>| {
            Some(MatchingConversations::render(&self.search, kind, &hit))
        };
        self.all(None, &render, &mut |one| {
            found.take(one);
            ControlFlow::Continue(())
        })?;
        let count = found.write(self.limit, form, self.page, out)?;
        self.say_if_cut(count < found.len(), out)?;
        Ok(count)
    }

    fn json(&self, out: &mut dyn Write) -> Result<JsonAnswer> {
        let most = self.limit;
        let mut lines = JsonLines::new(self.page, most, out);
        let clock = self.page.clock;
        let render = |kind, hit: Hit<'_>| {
            let is_title_only = self.search.is_title_only(&hit);
            Some(JsonLines::render(kind, &hit, is_title_only, clock))
        };
        let (mut count, mut is_cut) = (0, false);
        let mut show = |page| {
            is_cut = count == most;
            if is_cut {
                return ControlFlow::Break(());
            }
            count += 1;
            // One hit more than the limit is read, to know whether there are more hits.
            match lines.show(page) {
                ControlFlow::Break(()) if count == most => ControlFlow::Continue(()),
                flow => flow,
            }
        };
        let limit = self.at_most().map(|most| most.saturating_add(1));
        let make: Make<'_, _> = &render;
        let notes = self.search.each(limit, make.into(), &mut show)?.notes;
        Ok(JsonAnswer { count: lines.finish()?, is_cut, notes })
    }

    /// Returns the limit for each source; `None` if titles can match, because each title is shown only once.
    fn limit_of_source(&self) -> Option<usize> {
        let Request { text, or, and, .. } = &self.search.request;
        let has_text = !text.is_empty() || !or.is_empty() || !and.is_empty();
        self.at_most().filter(|_| !has_text)
    }

    fn grouped(&self, is_terminal: bool, out: &mut dyn Write) -> Result<usize> {
        let marks = (&self.search.marks, MOST_SPANS);
        let mark = |text: &str| self.search.marks.spans(text, MOST_SPANS);
        let mut groups = Groups::new(self.limit);
        let is_full = AtomicBool::new(false);
        let mut outcome = Ok(());
        let most = self.most_counted();
        // Of all hits, the first ones are written while the search looks for the others.
        let writes_begun = self.limit == usize::MAX && !self.search.oldest_first;
        let mut show = |found: FoundHit| {
            let time = found.message.time();
            let taken = groups.take(found).and_then(|()| match writes_begun {
                true => groups.write_begun(time, &self.page, &mark, out),
                false => Ok(()),
            });
            if let Err(error) = taken {
                outcome = Err(error);
                return ControlFlow::Break(());
            }
            if !groups.is_full() {
                return ControlFlow::Continue(());
            }
            is_full.store(true, Ordering::Relaxed);
            match is_terminal && groups.messages() < most {
                true => ControlFlow::Continue(()),
                false => {
                    groups.is_cut = true;
                    ControlFlow::Break(())
                }
            }
        };
        let render = |kind, hit: Hit<'_>| {
            // What is beyond the limit is only counted.
            Some(match is_full.load(Ordering::Relaxed) {
                false => FoundHit::of(kind, &hit, self.page.look, marks),
                true => {
                    let is_title_only = self.search.is_title_only(&hit);
                    FoundHit::counted(kind, &hit, is_title_only)
                }
            })
        };
        let searched = self.all(self.limit_of_source(), &render, &mut show)?;
        outcome?;
        let is_cut = groups.is_cut;
        let count = groups.write(&self.page, &mark, out)?;
        if is_terminal && count > 0 {
            let text = format!("{}{}", groups.totals(), self.searched(&searched)?);
            writeln!(out, "{}", self.page.look.note(&text))?;
        }
        self.say_if_cut(!is_terminal && is_cut, out)?;
        Ok(count)
    }

    /// Returns the number of messages up to which they are counted beyond the limit. A cluster sends each
    /// message that it counts.
    fn most_counted(&self) -> usize {
        match self.page.engine.config().db {
            Some(StoreAddress::Cluster(_)) => MOST_COUNTED_IN_CLUSTER,
            _ => usize::MAX,
        }
    }

    /// Writes a line below the messages if the default limit may have left out messages.
    fn say_if_cut(&self, is_cut: bool, out: &mut dyn Write) -> io::Result<()> {
        if is_cut && !self.has_limit {
            out.flush()?;
            let limit = self.limit;
            complain(&format!(
                "the first {limit} are shown, and there may be more; `-n 0` shows all"
            ));
        }
        Ok(())
    }

    /// Returns the number of searched messages and the time; empty if SQLite searched, or with filters.
    fn searched(&self, searched: &Searched) -> Result<String> {
        let mut took = Duration::ZERO;
        for plan in &searched.plans {
            match plan {
                SearchPlan::ByIndex { trace, .. } => took = took.max(trace.lookup + trace.search),
                SearchPlan::ByCluster { took: one, .. } => took = took.max(*one),
                SearchPlan::ByLike { .. } => return Ok(String::new()),
            }
        }
        if self.search.has_filters() {
            return Ok(String::new());
        }
        let (messages, _) = self.page.engine.size(&Stop::never())?;
        let took = took.as_secs_f64() * 1e3;
        Ok(format!(" (of {} searched in {took:.1} ms)", grouped(messages)))
    }

    /// Returns the sentence that nothing was found, with the number of searched messages and other searches
    /// that find something.
    fn nothing(&self) -> Result<String> {
        let engine = self.page.engine;
        let (messages, conversations) = engine.size(&Stop::never())?;
        if notes::is_without_chats(engine, messages) {
            return Ok(notes::NO_CHATS.to_owned());
        }
        let NothingFound { sentence, readings, has_nearest } = self.search.nothing(MOST_READINGS);
        let none = match self.search.has_filters() {
            true => sentence,
            false => {
                let messages = counted(messages as usize, "message");
                let conversations = counted(conversations, "conversation");
                format!("{sentence} ({messages} in {conversations} looked at)")
            }
        };
        let hints: Vec<String> =
            readings.iter().map(|reading| hints::line(reading, &self.filters)).collect();
        Ok(match &hints[..] {
            [] if has_nearest => format!("{none}; --mode both finds the nearest by meaning"),
            [] => none,
            [hint] => format!("{none}; {hint}"),
            hints => format!("{none}\n  {}", hints.join("\n  ")),
        })
    }
}
