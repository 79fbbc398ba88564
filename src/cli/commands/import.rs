//! `verbatim import`: imports exports into a canonical database.

pub(crate) mod error;
mod exports;

use std::cell::RefCell;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use unicode_width::UnicodeWidthStr;

use self::{error::Error, exports::FoundChoice};
use super::background;
use super::indexing::{self, IndexLines};
use crate::cli::command::{CommandArgs, Facts, Invocation, Terminal};
use crate::cli::settings::engine_config::{self, PlaceArgs};
use crate::cli::settings::environment::Environment;
use crate::cli::terminal::interrupt;
use crate::cli::terminal::output::{FOUND, complain, counted, grouped, harmless};
use crate::cli::terminal::progress::{Step, bytes, duration};
use crate::cli::terminal::wrap::wrapped;
use verbatim_answer::import_report::{
    Remedies, left_out, left_out_in_brief, stored, unindexed, vectors_left,
};
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Matching, Request};
use verbatim_engine::{
    Branches, Config, Engine, ImportOptions, ImportOutcome, ImportStep, ListOptions, Make, Scope,
    SourceKind, StoreAddress, VectorsLeft,
    import::{self, ImportProgress, Report, SourceProgress},
};
use verbatim_text::shell::quoted;

/// The exit code if a part of the exports could not be read, or could not be indexed.
const PARTIAL: u8 = 1;

/// The number of recent titles that are searched for a word for an example query.
const TITLES: usize = 20;

/// The maximum number of words that are tried for an example query, and the maximum time for all.
const WORDS: usize = 20;
const MOST_SEARCHING: Duration = Duration::from_millis(300);

const LETTERS: std::ops::RangeInclusive<usize> = 5..=16;

/// Import exported chats, and index them
///
/// Without a SOURCE it looks for exports where browsers put them, and asks before it imports them.
///
/// Takes what ChatGPT and Claude.ai send you: the zip as it is, the folder it unpacks to, or
/// conversations.json alone; a folder of such zips; and the transcripts of Claude Code and Codex, a
/// file or a folder of them. Transcripts in the agents' own folders are followed anyway, and not
/// copied. The format is detected automatically. You can import the same or a newer
/// export again at any time: new messages are added, changed ones are updated, none is deleted.
///
/// Chats go to the home folder's db/, or to the database that --db names. The exit code is 0 if
/// everything was read and indexed, 1 if a part could not be, and 2 if nothing was imported.
///
///     verbatim import
///     verbatim import ~/Downloads/chatgpt-export.zip
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct ImportArgs {
    /// Exports and transcripts; each is a zip, a folder, a JSON or a JSONL file
    #[arg(value_name = "SOURCE")]
    sources: Vec<PathBuf>,

    /// Import what is found without asking
    #[arg(short, long)]
    yes: bool,

    /// Show counts of messages and speeds too
    #[arg(long, hide_short_help = true)]
    verbose: bool,
}

type Result<T, E = Error> = std::result::Result<T, E>;

impl CommandArgs for ImportArgs {
    fn facts(&self) -> Facts {
        Facts::INDEXES
    }

    fn run(&self, invocation: Invocation<'_>) -> crate::cli::Result<u8> {
        Ok(run(self, invocation)?)
    }
}

/// Imports the exports, indexes them and writes a report to `out`.
fn run(args: &ImportArgs, invocation: Invocation<'_>) -> Result<u8> {
    let Invocation { engine, places, terminal: Terminal { environment, out }, .. } = invocation;
    if args.sources.iter().any(|source| source.as_os_str() == "-") {
        return Err(Error::Stdin);
    }
    let named = engine_config::named_by(places, environment);
    let target = target(engine.config(), named)?;
    let choice = if args.sources.is_empty() {
        exports::choose(args.yes, engine.config(), &target, environment, out)?
    } else {
        FoundChoice::Import(exports::expand_sources(&args.sources, environment))
    };
    let sources = match choice {
        FoundChoice::Import(sources) => sources,
        FoundChoice::Transcripts(sources) => {
            return Followed { sources, is_named: false, engine, places, environment }.index(out);
        }
        FoundChoice::Leave(code) => return Ok(code),
    };
    let is_default = engine.config().db.is_none();
    let (followed, sources): (Vec<_>, Vec<_>) =
        sources.into_iter().partition(|source| is_default && engine.config().follows(source));
    let followed = Followed { sources: followed, is_named: true, engine, places, environment };
    if sources.is_empty() {
        return followed.index(out);
    }
    let begun = Instant::now();
    let call = interrupt::stop_on_interrupt(environment);
    let options = ImportOptions {
        branches: Branches::Shown,
        resources: indexing::resources(environment),
        on_wait: Some(|| complain("waiting for another program that is writing to the database")),
    };
    let lines = ImportLines {
        args,
        environment,
        export: RefCell::default(),
        indexing: IndexLines::new(environment),
        out: RefCell::new(&mut *out),
        written: RefCell::new(Ok(())),
    };
    let result = engine.import(&sources, options, &call, &|step| lines.show(step));
    lines.end()?;
    let imported = match result {
        Err(error @ import::Error::Partly { .. }) => {
            complain(&format!("not everything was imported: {error}"));
            return Ok(PARTIAL);
        }
        result => result?,
    };
    let report = &imported.report;
    if report.stopped {
        let done = counted(report.changes.stored_conversations(), "conversation");
        let what = format!("imported so far: {done}; run it again to go on");
        return Ok(interrupt::stopped(&what));
    }
    let mut code = if report.missing().is_empty() { FOUND } else { PARTIAL };
    let Some(path) = target.path() else {
        let took = duration(report.took);
        writeln!(out, "They are in {target}, and every search sees all of them ({took}).")?;
        writeln!(out, "try: verbatim search TEXT --db {}", quoted(&target.to_string()))?;
        return Ok(code);
    };
    let mut left = None;
    if let Some(index) = &imported.index {
        if call.stop.requested() {
            let what = "everything is imported; `verbatim reindex` goes on with the index";
            return Ok(interrupt::stopped(what));
        }
        if let Some(error) = &index.failed {
            complain(&format!("imported, but not all of it is indexed: {}", unindexed(error)));
            code = PARTIAL;
        }
        left = index.left.map(|left| in_background(left, Some(path), places, environment));
    }
    followed.write(out)?;
    let ending = Ending { engine, imported: &imported, target: path, environment };
    ending.write(begun, left, out)?;
    Ok(code)
}

/// Returns the database to import into. Returns an error if another program made the named database.
fn target(config: &Config, named: Option<&'static str>) -> Result<StoreAddress> {
    if let Some(StoreAddress::Database(path)) = &config.db
        && !import::may_write(path)?
    {
        return Err(Error::Foreign { path: path.clone(), named: named.unwrap_or("--db") });
    }
    Ok(config.import_store())
}

/// What an import shows and writes while it works.
struct ImportLines<'a> {
    args: &'a ImportArgs,
    environment: &'a Environment,
    /// The progress line of the export that is read.
    export: RefCell<Option<(Step, SourceProgress)>>,
    indexing: IndexLines<'a>,
    out: RefCell<&'a mut dyn Write>,
    /// Whether the report could be written.
    written: RefCell<io::Result<()>>,
}

impl ImportLines<'_> {
    fn show(&self, step: ImportStep<'_>) {
        match step {
            ImportStep::Reading(now) => self.show_export(now),
            ImportStep::Imported(report) => {
                self.end_export(true);
                *self.written.borrow_mut() = self.write_report(report);
            }
            ImportStep::Indexing(step) => self.indexing.show(&step),
        }
    }

    fn show_export(&self, progress: ImportProgress) {
        let now = progress.source;
        if self.export.borrow().as_ref().is_none_or(|(_, last)| last.number != now.number) {
            self.end_export(true);
            *self.export.borrow_mut() = Some((Step::begin(self.environment, "Reading"), now));
        }
        let mut export = self.export.borrow_mut();
        let Some((step, last)) = &mut *export else { return };
        *last = now;
        if let Some(name) = now.service.or(now.is_copy.then_some("Copying")) {
            step.rename(name);
        }
        let text = if now.conversations > 0 { counts(&now) } else { bytes(now.total) };
        step.show(now.done as f64 / now.total.max(1) as f64, &text);
    }

    /// Ends the progress line of an export. The line stays on the terminal if conversations were read.
    fn end_export(&self, is_whole: bool) {
        match self.export.borrow_mut().take() {
            Some((step, last)) if is_whole && last.conversations > 0 => step.finish(&counts(&last)),
            Some((step, _)) => step.clear(),
            None => {}
        }
    }

    /// Writes what was imported and what was left out. If not everything was imported, says so as an error too.
    fn write_report(&self, report: &Report) -> io::Result<()> {
        let out = &mut **self.out.borrow_mut();
        write_report(report, self.args.verbose, self.environment.columns, out)?;
        out.flush()?;
        if !report.missing().is_empty() {
            complain("not everything was imported; the report names what is missing");
        }
        Ok(())
    }

    fn end(self) -> io::Result<()> {
        self.end_export(false);
        self.written.into_inner()
    }
}

fn counts(source: &SourceProgress) -> String {
    let files = match source.files {
        0 => String::new(),
        files => format!(", {} named", counted(files, "file")),
    };
    format!(
        "{}, {}{files}",
        counted(source.conversations, "conversation"),
        counted(source.messages, "message")
    )
}

/// Writes what was imported, and what was not: in one line or, with `verbose`, one line for each kind of thing.
pub(super) fn write_report(
    report: &Report,
    verbose: bool,
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}", wrapped(&stored(report), columns, 2))?;
    if verbose {
        let changes = &report.changes;
        let megabytes = report.tally.bytes as f64 / 1e6;
        writeln!(
            out,
            "messages: {} new, {} updated, {} unchanged; {} read in {} ({:.0} MB/s)",
            grouped(changes.new_messages),
            grouped(changes.updated_messages),
            grouped(changes.unchanged_messages),
            bytes(report.tally.bytes),
            duration(report.took),
            megabytes / report.took.as_secs_f64().max(1e-3),
        )?;
    }
    let remedies = Remedies {
        branches: "; the page that `verbatim web` opens can import them",
        forgotten: "; `verbatim forget --list` lists them",
        files: "; `verbatim export` writes them out",
        room: "`verbatim forget` makes room for files: it removes those of a conversation",
    };
    let lines = if verbose {
        left_out(report, remedies)
    } else {
        left_out_in_brief(report, "`verbatim import --verbose` has the details")
    };
    for line in lines {
        // A file name may contain line breaks.
        let line = harmless(&line.replace('\n', " "));
        writeln!(out, "{}", wrapped(&line, columns, 2))?;
    }
    Ok(())
}

/// Transcripts that the user wants to import, although this program already follows them.
struct Followed<'a> {
    sources: Vec<PathBuf>,
    is_named: bool,
    engine: &'a Engine,
    places: &'a PlaceArgs,
    environment: &'a Environment,
}

impl Followed<'_> {
    /// Updates the transcript store and the indexes if there is nothing to import. An earlier
    /// import may have been stopped before its end.
    fn index(&self, out: &mut dyn Write) -> Result<u8> {
        let mut code = FOUND;
        let call = interrupt::stop_on_interrupt(self.environment);
        let lines = IndexLines::new(self.environment);
        let resources = indexing::resources(self.environment);
        let index =
            self.engine.upkeep().index_after_import(resources, &call, &|step| lines.show(&step));
        if call.stop.requested() {
            return Ok(interrupt::stopped("`verbatim reindex` goes on with the index"));
        }
        if let Some(error) = index.failed {
            complain(&format!("not everything is indexed: {}", unindexed(&error)));
            code = PARTIAL;
        }
        let db = self.places.db.as_deref();
        let left = index.left.map(|left| in_background(left, db, self.places, self.environment));
        if self.is_named {
            self.write(out)?;
        } else {
            let services = self.services()?;
            writeln!(out, "{}", wrapped(&services, self.environment.columns, 2))?;
        }
        if let Some(left) = left {
            let line = vectors_line(left, self.environment, |name| format!("verbatim {name}"));
            let line = self.places.in_commands(&line);
            writeln!(out, "{}", wrapped(&line, self.environment.columns, 2))?;
        }
        Ok(code)
    }

    fn services(&self) -> Result<String> {
        let places = self.engine.all_sources().places(false, &Call::default())?;
        let transcripts = places.iter().filter(|((kind, _), _)| *kind == SourceKind::Archive);
        let known: Vec<&str> = transcripts.map(|(_, place)| &*place.service).collect();
        let formats = import::FORMATS.iter().filter(|format| known.contains(&&*format.service()));
        let agents = formats.map(|format| format.label()).collect::<Vec<_>>().join(" and ");
        let conversations = counted(known.len() as u64, "conversation");
        let of = if agents.is_empty() { "coding agents" } else { &agents };
        Ok(format!("{conversations} of {of} can be searched now: verbatim search TEXT"))
    }

    /// Writes that the transcripts are not copied, and why they need not be copied.
    fn write(&self, out: &mut dyn Write) -> Result<()> {
        let scope = Scope { sources: vec![SourceKind::Archive], ..Scope::default() };
        let sources = self.engine.all_sources();
        let page = sources.list(&scope, 0..usize::MAX, ListOptions::BRIEF, &Call::default());
        let known = page.map(|page| page.abouts).unwrap_or_default();
        for source in &self.sources {
            let real = dunce::canonicalize(source).unwrap_or_else(|_| source.clone());
            let files = known.iter().filter_map(|about| about.file.as_ref());
            let number = files.filter(|file| file.starts_with(&real)).count() as u64;
            let line = format!(
                "{}: nothing to import. Verbatim follows these transcripts already ({}): it finds what \
                 the agent adds, and keeps what the agent deletes.",
                engine_config::short(source, self.environment),
                counted(number, "conversation")
            );
            writeln!(out, "{}", wrapped(&line, self.environment.columns, 2))?;
        }
        Ok(())
    }
}

/// Lets a process make the vectors that an import left, unless one does so already.
fn in_background(
    left: VectorsLeft,
    db: Option<&Path>,
    places: &PlaceArgs,
    environment: &Environment,
) -> VectorsLeft {
    let is_under_way = left.is_under_way || background::reindex(db, places, environment);
    VectorsLeft { is_under_way, ..left }
}

fn vectors_line(
    left: VectorsLeft,
    environment: &Environment,
    command: impl Fn(&str) -> String,
) -> String {
    let [status, reindex] = ["status", "reindex"].map(|name| format!("`{}`", command(name)));
    vectors_left(left, indexing::resources(environment).threads, &status, &reindex)
}

/// The last lines of an import: where the chats are, and what to do next.
struct Ending<'a> {
    engine: &'a Engine,
    imported: &'a ImportOutcome,
    target: &'a Path,
    environment: &'a Environment,
}

impl Ending<'_> {
    fn write(
        &self,
        begun: Instant,
        left: Option<VectorsLeft>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let config = self.engine.config();
        let is_in_home = self.target.starts_with(config.db_folder());
        let home = std::path::absolute(&config.home).unwrap_or_else(|_| config.home.clone());
        let place = if is_in_home { &home } else { self.target };
        let place = engine_config::short(place, self.environment);
        let private = if is_in_home { " (only you can read them)" } else { "" };
        let took = duration(begun.elapsed());
        let is_indexed = self.imported.index.as_ref().is_some_and(|index| {
            index.indexed.iter().any(|source| source.kind == SourceKind::Export)
        });
        let done = if is_indexed { "Ready" } else { "Imported" };
        let mut lines = vec![format!("{done} in {took}. Your chats are in {place}{private}.")];
        lines.extend(
            left.map(|left| vectors_line(left, self.environment, |name| self.command(name))),
        );
        if let Ok(read) = config.export_store()
            && read.path().is_none_or(|read| {
                dunce::canonicalize(read).ok() != dunce::canonicalize(self.target).ok()
            })
        {
            let read = match &read {
                StoreAddress::Database(path) => engine_config::short(path, self.environment),
                StoreAddress::Cluster(address) => address.clone(),
            };
            lines.push(format!("Without --db, searches here read {read}."));
        }
        for line in lines {
            writeln!(out, "{}", wrapped(&line, self.environment.columns, 0))?;
        }
        let words = self.suggestion(is_indexed);
        let words = words.as_deref().unwrap_or("something you remember");
        // A person types the words in a shell in quotation marks.
        writeln!(out, "Try: {} \"{words}\"", self.command("search"))
    }

    fn command(&self, name: &str) -> String {
        let config = self.engine.config();
        let is_default = config.home == engine_config::default_home(self.environment);
        let (flag, path) = if !self.target.starts_with(config.db_folder()) {
            ("--db", self.target)
        } else if is_default && config.local_folder().is_none() {
            return format!("verbatim {name}");
        } else {
            ("--home", config.home.as_path())
        };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        format!("verbatim {name} {flag} {}", quoted(&path.to_string_lossy()))
    }

    /// Returns a long word of the user's own chats, for an example query: a word that is in a recent title
    /// and in a message, or else a word of a recent conversation. Without an index, a word that is in a recent
    /// title, because looking for a message takes longer than an import that finds nothing new.
    fn suggestion(&self, is_indexed: bool) -> Option<String> {
        let titles = import::newest_titles(self.target, TITLES);
        if !is_indexed {
            return titles.iter().flat_map(|title| long_words(title)).next();
        }
        let call = Call::default().within(MOST_SEARCHING);
        let mut words = titles.iter().flat_map(|title| long_words(title)).take(WORDS);
        if let Some(word) = words.find(|word| self.is_in_a_message(word, &call)) {
            return Some(word);
        }
        let scope = Scope { sources: vec![SourceKind::Export], ..Scope::default() };
        let page = self.imported.sources.list(&scope, 0..TITLES, ListOptions::default(), &call);
        let abouts = page.ok()?.abouts;
        let mut words = abouts.iter().flat_map(|about| long_words(&about.summary)).take(WORDS);
        words.find(|word| self.is_in_a_message(word, &call))
    }

    /// Returns whether a search in the shell finds a word in the text of a message.
    fn is_in_a_message(&self, word: &str, call: &Call) -> bool {
        let case_sensitive = word.chars().any(char::is_uppercase);
        let request = Request {
            text: word.to_owned(),
            case_sensitive,
            matching: Matching::Literal,
            ..Request::default()
        };
        let is_in_text: Make<'_, bool> =
            &|_, hit: Hit<'_>| Some(hit.content.to_lowercase().contains(&word.to_lowercase()));
        let mut is_found = false;
        let sources = &self.imported.sources;
        let searched =
            sources.search(&request, &Scope::default(), call, is_in_text.into(), &mut |is_in| {
                is_found |= is_in;
                if is_in { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        searched.is_ok() && is_found
    }
}

/// Returns the words of a text that are good for an example query, the longest first.
fn long_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphabetic());
    let mut words: Vec<&str> = words
        .filter(|word| {
            let letters = word.chars().count();
            // In Chinese and Japanese, a longer run of letters is a part of a sentence.
            let is_wide = word.width() > letters;
            if is_wide { (2..=4).contains(&letters) } else { LETTERS.contains(&letters) }
        })
        .collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    words.into_iter().map(str::to_owned).collect()
}
