//! `verbatim` without a command: the full-screen search.

use std::io::Write;
#[cfg(feature = "picker")]
use std::{cell::Cell, sync::Arc};

#[cfg(feature = "picker")]
use super::{show, transcripts};
#[cfg(not(feature = "picker"))]
use crate::cli::error::Error;
#[cfg(feature = "picker")]
use crate::cli::{
    command::Terminal,
    error::refuse_torn,
    picker::{self, Picked},
    settings::engine_config,
    terminal::{
        notes,
        output::{self, FOUND, NOTHING, TerminalWriter},
        pager::{FoundPlace, Landing, Paged, PagedAtFound},
    },
};
use crate::cli::{
    error::Result,
    settings::{engine_config::PlaceArgs, environment::Environment},
    terminal::output::TROUBLE,
};
#[cfg(feature = "picker")]
use verbatim_engine::{self as engine, Engine};

/// The output of the program without a command and without a terminal.
const EXAMPLES: &str = "\
Verbatim finds what was said in your AI chats, exactly.

  verbatim demo                     try it on a small sample
  verbatim import                   bring in the exports in your downloads
  verbatim search \"borrow checker\"  find the messages that contain a text
  verbatim search TEXT --mode both  rank messages by words and meaning
  verbatim list                     list the conversations
  verbatim show 6650a1b2            print a conversation
  verbatim connect                  let AI clients search your chats
";

/// Opens the picker; without a terminal, prints example commands.
pub(crate) fn run(
    places: &PlaceArgs,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8> {
    if !environment.full_screen {
        // A script that gives no command is wrong, so standard output stays empty and the exit code is 2.
        let alone = if environment.dumb {
            "This terminal cannot show the search screen"
        } else {
            "On a terminal, `verbatim` searches as you type"
        };
        anstream::eprintln!("{EXAMPLES}{alone}; `verbatim --help` says more.");
        return Ok(TROUBLE);
    }
    #[cfg(feature = "picker")]
    return search_as_typed(places, environment, out);
    #[cfg(not(feature = "picker"))]
    Err(Error::NotBuilt { what: "the full-screen search", feature: "picker" })
}

#[cfg(feature = "picker")]
fn search_as_typed(
    places: &PlaceArgs,
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<u8> {
    engine_config::check_home(places, environment)?;
    let mut config = engine_config::config(places, environment);
    config.embeddings = engine_config::embeddings(None, environment)?;
    config.vector_share = engine_config::vector_share(environment)?;
    config.cluster_login = engine_config::cluster_login(environment)?;
    engine::prepare_home(&config, false);
    let engine = Arc::new(Engine::new(config));
    transcripts::sync_for_reading(&engine, environment);
    let Some(mut picker) = picker::start(&engine, environment)? else {
        output::complain(notes::NO_CHATS);
        return Ok(NOTHING);
    };
    loop {
        let (word, marks) = match picker.run()? {
            Picked::NoChats => {
                output::complain(notes::NO_CHATS);
                return Ok(NOTHING);
            }
            Picked::Nothing => return Ok(FOUND),
            Picked::Resume(command) => {
                writeln!(out, "{command}")?;
                return Ok(FOUND);
            }
            Picked::Show { word, marks } => (word, marks),
        };
        let place = Cell::new(FoundPlace::default());
        let found = Landing { mark: &|text| marks.spans(text, show::MOST_MARKS), place: &place };
        let Some(paged) = Paged::that_waits(out, environment) else {
            // The picker would hide the answer, and its end lets Ctrl-C end the program.
            drop(picker);
            return show_picked(&word, found, &engine, Terminal { environment, out });
        };
        let (columns, lines) = picker.size();
        let mut paged = PagedAtFound::new(paged, &found, columns, lines);
        let terminal = Terminal { environment, out: &mut TerminalWriter::new(&mut paged) };
        let code = show_picked(&word, found, &engine, terminal);
        let has_waited = paged.finish()?;
        let code = code?;
        if !has_waited {
            return Ok(code);
        }
    }
}

#[cfg(feature = "picker")]
fn show_picked(
    word: &str,
    found: Landing<'_>,
    engine: &Engine,
    terminal: Terminal<'_>,
) -> Result<u8> {
    let code = show::run(&show::Args::of(word), engine, terminal, Some(found))?;
    refuse_torn(engine)?;
    Ok(code)
}
