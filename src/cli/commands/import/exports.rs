//! Finds the exports to import: those that the user names, or those in the downloads folder.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Datelike, Local};
use ignore::overrides::OverrideBuilder;
use unicode_width::UnicodeWidthStr;

use crate::cli::settings::engine_config;
use crate::cli::settings::environment::Environment;
use crate::cli::terminal::layout::padded;
use crate::cli::terminal::output::{
    FOUND, NOTHING, TerminalAnswer, complain, confirm_or_number, harmless,
};
use crate::cli::terminal::progress::bytes;
use crate::cli::terminal::wrap::wrapped;
use verbatim_engine::import::{self, FoundExport};
use verbatim_engine::{Config, StoreAddress};
use verbatim_text::excerpt;

/// The fewest columns for the name of an export.
const LEAST_NAME: usize = 12;

/// The exit code if exports were found, but there is no terminal to ask the user.
const UNANSWERED: u8 = 2;

const HOW_TO_EXPORT: &str = "To get one:
  ChatGPT: Settings > Data controls > Export data
  Claude:  Settings > Privacy > Export data
Each service sends you a link to a zip. Download it, and run `verbatim import` again.";

const DOWNLOAD_ZIPS: &str =
    "Download the zips that the manifest lists, and run `verbatim import` again.";

pub(super) enum FoundChoice {
    /// Import these exports. The list is empty if all found exports were imported before.
    Import(Vec<PathBuf>),
    /// There are no exports, only these folders with transcripts that are followed.
    Transcripts(Vec<PathBuf>),
    /// Import nothing; end with this exit code.
    Leave(u8),
}

/// Looks for exports among the downloads, and asks whether to import them.
pub(super) fn choose(
    yes: bool,
    config: &Config,
    target: &StoreAddress,
    environment: &Environment,
    out: &mut dyn Write,
) -> io::Result<FoundChoice> {
    let folders = environment.download_folders();
    if folders.is_empty() {
        let choice = without_exports(config);
        if matches!(choice, FoundChoice::Leave(_)) {
            complain("the downloads folder is not known; name the export");
        }
        return Ok(choice);
    }
    let mut found = Vec::new();
    let mut with_exports = Vec::new();
    let mut without = Vec::new();
    let mut only_links = false;
    let mut not_read = Vec::new();
    for folder in &folders {
        let place = engine_config::short(folder, environment);
        let (exports, failures, left_out) = match import::found_in(folder, target) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Default::default(),
            Err(error) => {
                complain(&format!("{place} cannot be read: {error}; name the export"));
                return Ok(FoundChoice::Leave(UNANSWERED));
            }
        };
        for failure in failures {
            only_links |= failure.is_only_links();
            complain(&failure.to_string());
        }
        let places = if exports.is_empty() { &mut without } else { &mut with_exports };
        places.push(place);
        found.extend(exports);
        not_read.extend(left_out);
    }
    if found.is_empty() {
        let places = without.join(" and ");
        let how = if only_links { DOWNLOAD_ZIPS } else { HOW_TO_EXPORT };
        let text = format!("No export of ChatGPT or Claude.ai found in {places}.\n{how}");
        for line in text.lines() {
            writeln!(out, "{}", wrapped(line, environment.columns, 2))?;
        }
        return Ok(without_exports(config));
    }
    writeln!(out, "Found in {}:", with_exports.join(" and "))?;
    write_found(&found, environment, out)?;
    for line in not_read {
        let line = format!("not imported: {}", harmless(&line));
        writeln!(out, "{}", wrapped(&line, environment.columns, 2))?;
    }
    out.flush()?;
    let fresh: Vec<PathBuf> = found
        .iter()
        .filter(|(_, is_imported)| !is_imported)
        .map(|(export, _)| export.path.clone())
        .collect();
    let example = engine_config::pasted(&found[0].0.path, environment);
    let question = match (fresh.len(), found.len()) {
        (0, _) => {
            writeln!(out, "Nothing is new. To import one again: verbatim import {example}")?;
            return Ok(FoundChoice::Import(fresh));
        }
        (1, 1) => "Import it?".to_owned(),
        (1, _) => "Import the new one?".to_owned(),
        (2, 2) => "Import both?".to_owned(),
        (fresh, all) if fresh == all => format!("Import all {fresh}?"),
        (fresh, _) => format!("Import the {fresh} new ones?"),
    };
    if yes {
        return Ok(FoundChoice::Import(fresh));
    }
    if !environment.can_ask {
        complain(&format!(
            "nothing was imported, because there is no terminal to ask: `verbatim import --yes` \
             imports what is new; `verbatim import {example}` imports only that file"
        ));
        return Ok(FoundChoice::Leave(UNANSWERED));
    }
    let numbered = if found.len() > 1 { found.len() } else { 0 };
    match confirm_or_number(&question, numbered)? {
        TerminalAnswer::Yes => return Ok(FoundChoice::Import(fresh)),
        TerminalAnswer::Number(one) => {
            return Ok(FoundChoice::Import(vec![found[one - 1].0.path.clone()]));
        }
        TerminalAnswer::No => {}
    }
    writeln!(out, "Nothing was imported. To import one: verbatim import {example}")?;
    Ok(FoundChoice::Leave(FOUND))
}

/// Returns the followed folders that have transcripts, or else that nothing is to be imported.
fn without_exports(config: &Config) -> FoundChoice {
    let folders = config.archives.iter().filter(|folder| has_transcripts(folder));
    let folders: Vec<PathBuf> = folders.cloned().collect();
    if folders.is_empty() { FoundChoice::Leave(NOTHING) } else { FoundChoice::Transcripts(folders) }
}

/// Writes a numbered line for each export. On a terminal, long names are cut in the middle.
fn write_found(
    found: &[(FoundExport, bool)],
    environment: &Environment,
    out: &mut dyn Write,
) -> io::Result<()> {
    let digits = found.len().to_string().len();
    let mut names = Vec::new();
    let mut facts = Vec::new();
    for (export, is_imported) in found {
        names.push(harmless(&export.path.file_name().unwrap_or_default().to_string_lossy()));
        let note = if *is_imported { " (imported already)" } else { "" };
        facts.push(export_facts(export) + note);
    }
    if let Some(columns) = environment.columns {
        let longest = facts.iter().map(|facts| facts.width()).max().unwrap_or(0);
        let room = columns.saturating_sub(digits + 6 + longest).max(LEAST_NAME);
        for name in names.iter_mut().filter(|name| name.width() > room) {
            *name = cut_in_the_middle(name, room);
        }
    }
    let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
    for (number, (name, facts)) in (1..).zip(names.iter().zip(facts)) {
        let line = format!("  {number:digits$}  {}  {facts}", padded(name, width));
        writeln!(out, "{}", wrapped(&line, environment.columns, 5))?;
    }
    Ok(())
}

fn cut_in_the_middle(text: &str, columns: usize) -> String {
    let start = excerpt::start(text, columns / 2, excerpt::columns).len();
    let ends = text.char_indices().map(|(at, _)| at).filter(|at| *at > start);
    let room = columns - columns / 2 - 1;
    let end = ends.into_iter().find(|at| text[*at..].width() <= room).unwrap_or(text.len());
    format!("{}…{}", &text[..start], &text[end..])
}

/// Returns whether a folder, or a folder in it, has a file with the name of a transcript.
fn has_transcripts(folder: &Path) -> bool {
    let files = ignore::WalkBuilder::new(folder).standard_filters(false).build();
    files.flatten().any(|entry| import::is_named_as_transcript(entry.path()))
}

fn export_facts(export: &FoundExport) -> String {
    let mut text = format!("{}, {}", export.service, bytes(export.bytes));
    if let Some(modified) = export.modified {
        let day: DateTime<Local> = modified.into();
        let format = if day.year() == Local::now().year() { "%-d %B" } else { "%-d %B %Y" };
        text.push_str(&format!(", {}", day.format(format)));
    }
    text
}

/// Returns the sources that the user named, with a leading `~/` replaced by the user's folder.
pub(super) fn expand_sources(sources: &[PathBuf], environment: &Environment) -> Vec<PathBuf> {
    let sources = sources.iter().map(|source| engine_config::expand_home(source, environment));
    if cfg!(windows) { sources.flat_map(expand_wildcards).collect() } else { sources.collect() }
}

/// Returns the files that match a pattern with wildcards. On Windows, shells do not expand wildcards.
fn expand_wildcards(path: PathBuf) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if path.exists() || !name.contains(['*', '?']) {
        return vec![path];
    }
    let mut pattern = OverrideBuilder::new("");
    // On Windows, the case of letters in file names does not matter.
    let Ok(pattern) = pattern
        .case_insensitive(true)
        .and_then(|pattern| pattern.add(&name))
        .and_then(|pattern| pattern.build())
    else {
        return vec![path];
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| pattern.matched(entry.file_name(), false).is_whitelist())
        .map(|entry| entry.path())
        .collect();
    found.sort();
    if found.is_empty() { vec![path] } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_in_the_last_part_of_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["a.zip", "b.zip", "c.json"] {
            fs::write(path(name), "").unwrap();
        }
        assert_eq!(expand_wildcards(path("*.zip")), [path("a.zip"), path("b.zip")]);
        assert_eq!(expand_wildcards(path("?.json")), [path("c.json")]);
        for name in ["*.txt", "none.zip", "a.zip"] {
            assert_eq!(expand_wildcards(path(name)), [path(name)]);
        }
    }
}
