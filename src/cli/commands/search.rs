//! The command `verbatim search`.

pub(super) mod conversations;
mod patterns;
mod ranked;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{ColorChoice, ValueEnum, error::ErrorKind};
use clap_complete::ArgValueCompleter;

use self::conversations::ListForm;
use self::patterns::{Patterns, hint};
use super::filters::{self, FilterArgs};
use super::{completions::conversations, indexing};
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal};
use crate::cli::error::{Error, Result};
use crate::cli::settings::engine_config::passed_over_note;
use crate::cli::settings::values;
use crate::cli::terminal::hit_groups::HitGroups;
use crate::cli::terminal::hit_lines::{HitLine, HitMarks, Page};
use crate::cli::terminal::layout::{LineLayout, Piece};
use crate::cli::terminal::notes;
use crate::cli::terminal::output::{FOUND, NOTHING, complain, counted, grouped};
use verbatim_answer::asked::{Asked, AskedError, MOST_RANKED};
use verbatim_answer::exact::{ExactSearch, Grouping, NothingFound};
use verbatim_answer::json_lines::{Context, JsonLines, WrittenLines, json_line};
use verbatim_answer::readings::more_alike;
use verbatim_answer::typed::TypedQuery;
use verbatim_answer::words;
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Request};
use verbatim_engine::{Count, Engine, Make, Mode, Scope, SearchPlan, Searched, StoreAddress};
use verbatim_text::shell;

/// The maximum number of highlighted matches in a message.
const MOST_SPANS: usize = 100;

/// The number of messages up to which a cluster's are counted beyond the limit.
const MOST_COUNTED_IN_CLUSTER: usize = 1_000;

const FEW: usize = 3;

/// The number of other searches that are proposed if nothing was found.
const MOST_READINGS: usize = 3;

/// Find a piece of text in your chats
///
/// Prints the conversations with a message or a title that contains the words, one after the other.
/// Letters match in any case, unless the words have a capital letter (-i, -s). Conversations with the
/// newest match come first. `verbatim show ID:NUMBER` shows a message.
/// With --mode words, vector or both, the words are a question. The messages that answer it best come
/// first. They contain its "quoted" texts exactly, and none of its -words.
/// A word such as role:user, since:7d, project:shop or title:plan is a filter, as its flag is.
/// The exit code is grep's: 0 if something was found, 1 if nothing, 2 for trouble.
///
///     verbatim search borrow checker --since 30d
///     verbatim search -e 'timeout after \d+ ?ms' --not staging
///     verbatim search "how did we fix the login?" --mode both --project shop
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
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
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = values::parse_count)]
    limit: Option<usize>,
    /// Print the oldest messages first, not the newest
    #[arg(long, hide_short_help = true)]
    oldest: bool,
    /// Print this many messages of the conversation before and after each match
    #[arg(short = 'C', long, value_name = "COUNT", default_value_t = 0, value_parser = values::parse_count)]
    context: usize,
    /// Print this many messages before each match
    #[arg(short = 'B', long, hide_short_help = true, value_name = "COUNT", value_parser = values::parse_count)]
    before_context: Option<usize>,
    /// Print this many messages after each match
    #[arg(short = 'A', long, hide_short_help = true, value_name = "COUNT", value_parser = values::parse_count)]
    after_context: Option<usize>,
    /// Print one JSON object per message: message_id, conversation_id, title, role, time, content,
    /// position, source, service, project, branch, folder, model, url, number, title_only; with
    /// -C also context
    #[arg(long)]
    json: bool,
    /// Print only the conversations, one line each with its number of matches; -n counts them
    #[arg(short = 'l', long, hide_short_help = true)]
    conversations: bool,
    /// Print only the ids of the conversations, each followed by a zero byte, for xargs -0
    #[arg(short = '0', long, hide_short_help = true, conflicts_with_all = ["json", "count"])]
    null: bool,
    /// Print only how many messages match, of all sources and without a limit, with -l how many conversations;
    /// titles are counted apart
    #[arg(short = 'c', long, hide_short_help = true)]
    count: bool,
    /// Print nothing; the exit code says whether something was found
    #[arg(short = 'q', long, hide_short_help = true)]
    quiet: bool,
    /// Colour the output
    #[arg(long, hide_short_help = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

impl Args {
    /// Returns what is asked for, without the filters by name.
    fn asked(&self) -> Result<Asked> {
        let mode = match self.mode {
            SearchMode::Exact => None,
            SearchMode::Words => Some(Mode::Text),
            SearchMode::Vector => Some(Mode::Vector),
            SearchMode::Both => Some(Mode::Both),
        };
        let asked = Asked {
            mode,
            filters: self.filters.within(&self.within),
            oldest_first: self.oldest,
            limit: self.limit,
            ..self.patterns.asked()
        };
        asked.check().map_err(refused)?;
        for (is_given, option) in
            [(self.count, "count"), (self.conversations, "conversations"), (self.null, "null")]
        {
            if is_given && mode.is_some() {
                return Err(refused(AskedError::NotRanked { option }));
            }
        }
        Ok(asked)
    }

    fn context(&self) -> Context {
        Context {
            before: self.before_context.unwrap_or(self.context),
            after: self.after_context.unwrap_or(self.context),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SearchMode {
    // `text` is the name in the MCP tool `search`.
    #[value(alias = "text")]
    Exact,
    Words,
    #[value(alias = "semantic")]
    Vector,
    Both,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        let is_ranked = self.mode != SearchMode::Exact;
        let reads = if !self.filters.takes_transcripts() {
            Reads::Home
        } else if is_ranked {
            Reads::EverySource
        } else {
            Reads::EverySourceExactly
        };
        let is_short = self.json || self.count || self.null || self.quiet;
        Facts {
            reads,
            writes: false,
            takes_db: true,
            makes_vectors: true,
            may_be_torn: is_ranked || !self.context().is_empty(),
            waits_for: Some("searching"),
            form: if is_short { OutputForm::AsItIs } else { OutputForm::Pages },
        }
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        let Invocation { engine, places, terminal: Terminal { environment, out }, .. } = invocation;
        let call = Call::default();
        let clock = environment.clock();
        let mut asked = self.asked()?;
        let text = asked.text.clone();
        let typed = if self.patterns.are_words() {
            TypedQuery::read(&text, asked.mode, engine, clock, &call, filters::in_working_folder)
                .map_err(filters::refused)?
        } else {
            TypedQuery::default()
        };
        let is_read = self.patterns.are_words() && typed.is_read(&text);
        if let Some(problem) = &typed.problem {
            complain(problem);
        }
        if is_read {
            asked.read_as(typed.asked);
        }
        let (scope, notes) = filters::scope(&asked.filters, engine, clock, &call)?;
        notes::print(&notes);
        let passed_over = passed_over_note(engine.config());
        if let Some(note) = passed_over.as_ref().filter(|_| environment.progress) {
            complain(note);
        }
        let layout = LineLayout::of(environment).coloured(self.color);
        let page = Page { engine, layout, clock, context: self.context() };
        if is_read && !self.quiet {
            let as_text = Asked { text: text.clone(), ..Asked::default() };
            let (count, _) = as_text.search(engine, Scope::default(), &call)?.count()?;
            if count.messages > 0 {
                let have = if count.messages == 1 { "has" } else { "have" };
                complain(&format!(
                    "{} {have} {} as text: verbatim search --and {}",
                    counted(count.messages, "message"),
                    words::quoted(&text),
                    shell::quoted(&text)
                ));
            }
        }
        if let Some(mode) = asked.mode {
            let has_limit = self.limit.is_some_and(|limit| (1..=MOST_RANKED).contains(&limit));
            let form = ranked::Form { json: self.json, quiet: self.quiet, has_limit };
            let question = asked.question(mode, scope);
            indexing::complete(engine, &question, places, environment);
            return ranked::run(&question, form, page, Terminal { environment, out });
        }
        let search = Exact::of(&asked, page, scope, &call)?;
        let count = if self.quiet {
            usize::from(search.search.finds()?)
        } else if self.count {
            search.count(self, environment.terminal, out)?
        } else if self.conversations || self.null {
            let form = ListForm { json: self.json, null: self.null };
            search.conversations(form, out)?
        } else if self.json {
            search.json(out)?
        } else {
            search.grouped(environment.terminal, out)?
        };
        if self.quiet {
            return Ok(if count > 0 { FOUND } else { NOTHING });
        }
        if count > 0 {
            search.write_more_alike(environment.terminal && !self.null && !self.json, out)?;
            return Ok(FOUND);
        }
        complain(&places.in_commands(&search.nothing()?));
        if let Some(note) = passed_over.filter(|_| !environment.progress) {
            complain(&note);
        }
        Ok(NOTHING)
    }
}

pub(super) fn show_few(text: &str, engine: &Engine, terminal: Terminal<'_>) -> Result<()> {
    let Terminal { environment, out } = terminal;
    let asked = Asked { limit: Some(FEW), ..Asked::of(text) };
    let page = Page {
        engine,
        layout: LineLayout::of(environment),
        clock: environment.clock(),
        context: Context::default(),
    };
    Exact::of(&asked, page, Scope::default(), &Call::default())?
        .grouped(environment.terminal, out)?;
    Ok(())
}

/// Returns the error of a question that cannot be asked, with the flags of this command.
fn refused(error: AskedError) -> Error {
    let message = match error {
        AskedError::NotRanked { option } => {
            let flag = if option == "regex" { "regexp" } else { option };
            format!("--{flag} is for exact search; leave out --mode or --{flag}")
        }
        error => error.to_string(),
    };
    Error::Usage(clap::Error::raw(ErrorKind::ArgumentConflict, format!("{message}\n")))
}

struct Exact<'a> {
    page: Page<'a>,
    asked: &'a Asked,
    search: ExactSearch<'a>,
    limit: usize,
}

impl<'a> Exact<'a> {
    fn of(asked: &'a Asked, page: Page<'a>, scope: Scope, call: &Call) -> Result<Exact<'a>> {
        let search = asked.search(page.engine, scope, call)?;
        Ok(Exact { page, asked, search, limit: asked.most().unwrap_or(usize::MAX) })
    }

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

    fn count(&self, args: &Args, is_terminal: bool, out: &mut dyn Write) -> Result<usize> {
        let (count, notes) = self.search.count()?;
        notes::print(&notes);
        let Count { messages, conversations, titles } = count;
        if args.json {
            json_line(out, &count)?;
        } else if args.conversations && is_terminal {
            writeln!(out, "{}", counted(conversations + titles, "conversation"))?;
        } else if args.conversations {
            writeln!(out, "{}", conversations + titles)?;
        } else if is_terminal {
            let conversations = counted(conversations, "conversation");
            writeln!(out, "{} in {conversations}", counted(messages, "message"))?;
            if titles > 0 {
                writeln!(out, "{} by title", counted(titles, "conversation"))?;
            }
        } else {
            // As grep does, so that scripts can compare it.
            writeln!(out, "{messages}")?;
        }
        Ok(messages + titles)
    }

    /// Writes the conversations that match, in the order of their first matches.
    fn conversations(&self, form: ListForm, out: &mut dyn Write) -> Result<usize> {
        let mut grouping = Grouping::default();
        let make: Make<'_, _> = &|kind, hit: Hit<'_>| {
            let title = vec![Piece::plain(&hit.title)];
            let line = HitLine::counted(kind, &hit, self.search.is_title_only(&hit));
            Some(HitLine { title, ..line })
        };
        self.all(None, make, &mut |HitLine { key, message, title, text, .. }| {
            grouping.add(key, title, message.time(), text.is_none());
            ControlFlow::Continue(())
        })?;
        let all = &grouping.conversations;
        let shown = &all[..self.limit.min(all.len())];
        conversations::write(shown, form, self.page, out)?;
        self.write_cut_note(shown.len() < all.len(), out)?;
        Ok(shown.len())
    }

    fn json(&self, out: &mut dyn Write) -> Result<usize> {
        let call = Call::default();
        let Page { engine, clock, context, .. } = self.page;
        let mut lines = JsonLines { engine, clock, context, call: &call, out };
        let WrittenLines { count, is_cut, notes } = lines.exact(&self.search, self.asked.most())?;
        notes::print(&notes);
        self.write_cut_note(is_cut, out)?;
        Ok(count)
    }

    fn grouped(&self, is_terminal: bool, out: &mut dyn Write) -> Result<usize> {
        let Request { text, or, and, .. } = &self.search.request;
        // If titles can match, no source may stop at the limit, because each title is shown only once.
        let limit = if text.is_empty() && or.is_empty() && and.is_empty() {
            self.asked.most()
        } else {
            None
        };
        // A cluster sends each message that it counts.
        let most_counted = match self.page.engine.config().db {
            Some(StoreAddress::Cluster(_)) => MOST_COUNTED_IN_CLUSTER,
            _ => usize::MAX,
        };
        let marks = HitMarks { marks: &self.search.marks, most: MOST_SPANS };
        let mut groups = HitGroups::new(self.limit, self.page, marks);
        let is_full = AtomicBool::new(false);
        let mut outcome = Ok(());
        // Of all hits, the first ones are written while the search looks for the others.
        let writes_begun = self.limit == usize::MAX && !self.search.oldest_first;
        let make: Make<'_, _> = &|kind, hit: Hit<'_>| {
            // What is beyond the limit is only counted.
            if is_full.load(Ordering::Relaxed) {
                return Some(HitLine::counted(kind, &hit, self.search.is_title_only(&hit)));
            }
            Some(HitLine::new(kind, &hit, self.page.layout, marks))
        };
        let searched = self.all(limit, make, &mut |hit: HitLine| {
            let time = hit.message.time();
            outcome = groups.add(hit);
            if outcome.is_ok() && writes_begun {
                outcome = groups.write_begun(time, out);
            }
            if outcome.is_err() {
                return ControlFlow::Break(());
            }
            if groups.is_full() {
                is_full.store(true, Ordering::Relaxed);
                groups.is_cut = !is_terminal || groups.messages >= most_counted;
            }
            if groups.is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        outcome?;
        let is_cut = groups.is_cut;
        let count = groups.write(out)?;
        if is_terminal && count > 0 {
            let text = format!("{}{}", groups.totals(), self.searched(&searched)?);
            writeln!(out, "{}", self.page.layout.note(&text))?;
        }
        self.write_cut_note(!is_terminal && is_cut, out)?;
        Ok(count)
    }

    /// Writes a line below the messages if the default limit may have left out messages.
    fn write_cut_note(&self, is_cut: bool, out: &mut dyn Write) -> io::Result<()> {
        if is_cut && self.asked.limit.is_none() {
            out.flush()?;
            let limit = self.limit;
            complain(&format!(
                "the first {limit} are shown, and there may be more; `-n 0` shows all"
            ));
        }
        Ok(())
    }

    /// Writes how many more messages have signs of equal look.
    fn write_more_alike(&self, is_terminal: bool, out: &mut dyn Write) -> Result<()> {
        if !is_terminal && self.asked.limit.is_some() {
            return Ok(());
        }
        let Some(more) = self.search.more_alike() else { return Ok(()) };
        let line = format!("{}: --fold", more_alike(&more));
        if is_terminal {
            writeln!(out, "{}", self.page.layout.note(&line))?;
        } else {
            out.flush()?;
            complain(&line);
        }
        Ok(())
    }

    /// Returns the number of searched messages and the time; empty if SQLite searched, or with filters.
    fn searched(&self, searched: &Searched) -> Result<String> {
        let mut took = Duration::ZERO;
        for plan in &searched.plans {
            match plan {
                SearchPlan::ByIndex { trace, .. } => took = took.max(trace.took),
                SearchPlan::ByCluster { took: one, .. } => took = took.max(*one),
                SearchPlan::ByLike { .. } => return Ok(String::new()),
            }
        }
        if self.search.has_filters() {
            return Ok(String::new());
        }
        let (messages, _) = self.page.engine.size(&Call::default())?;
        let took = took.as_secs_f64() * 1e3;
        Ok(format!(" (of {} searched in {took:.1} ms)", grouped(messages)))
    }

    /// Returns the sentence that nothing was found, with the number of searched messages and other searches
    /// that find something.
    fn nothing(&self) -> Result<String> {
        let engine = self.page.engine;
        let (messages, conversations) = engine.size(&Call::default())?;
        if notes::is_without_chats(engine, messages) {
            return Ok(notes::no_chats(engine));
        }
        let NothingFound { sentence, readings, has_nearest } = self.search.nothing(MOST_READINGS);
        let none = if self.search.has_filters() {
            sentence
        } else {
            let messages = counted(messages as usize, "message");
            let conversations = counted(conversations, "conversation");
            format!("{sentence} ({messages} in {conversations} looked at)")
        };
        let hints: Vec<String> =
            readings.iter().map(|reading| hint(reading, &self.asked.filters)).collect();
        Ok(match &hints[..] {
            [] if has_nearest => format!("{none}; --mode both finds the nearest by meaning"),
            [] => none,
            [hint] => format!("{none}; {hint}"),
            hints => format!("{none}\n  {}", hints.join("\n  ")),
        })
    }
}
