//! `verbatim` without a command: the full-screen search.

#[cfg(feature = "picker")]
use std::cell::Cell;

#[cfg(feature = "picker")]
use super::show;
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Reads};
#[cfg(not(feature = "picker"))]
use crate::cli::error::Error;
use crate::cli::error::Result;
use crate::cli::terminal::output::TROUBLE;
#[cfg(feature = "picker")]
use crate::cli::{
    command::Terminal,
    error::refuse_torn,
    picker::{self, Picked},
    terminal::{
        notes,
        output::{FOUND, NOTHING, TerminalWriter, complain},
        pager::{FoundPlace, Landing, Paged, PagedAtFound},
    },
};
#[cfg(feature = "picker")]
use verbatim_engine::Engine;

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

/// Without a command and a full screen, the program prints example commands.
pub(crate) struct Examples;

impl CommandArgs for Examples {
    fn facts(&self) -> Facts {
        Facts { takes_db: true, ..Facts::WITHOUT_CHATS }
    }

    fn run(&self, call: Invocation<'_>) -> Result<u8> {
        let alone = if call.terminal.environment.dumb {
            "This terminal cannot show the search screen"
        } else {
            "On a terminal, `verbatim` searches as you type"
        };
        // A script that gives no command is wrong, so standard output stays empty and the exit code is 2.
        anstream::eprintln!("{EXAMPLES}{alone}; `verbatim --help` says more.");
        Ok(TROUBLE)
    }
}

/// Without a command, the program searches what the user types.
pub(crate) struct SearchAsTyped;

impl CommandArgs for SearchAsTyped {
    fn facts(&self) -> Facts {
        Facts {
            reads: Reads::EverySource,
            writes: false,
            takes_db: true,
            makes_vectors: true,
            may_be_torn: false,
            waits_for: None,
            form: OutputForm::AsItIs,
        }
    }

    #[cfg(not(feature = "picker"))]
    fn run(&self, _: Invocation<'_>) -> Result<u8> {
        Err(Error::NotBuilt { what: "the full-screen search", feature: "picker" })
    }

    #[cfg(feature = "picker")]
    fn run(&self, call: Invocation<'_>) -> Result<u8> {
        let Invocation { engine, terminal: Terminal { environment, out }, .. } = call;
        let Some(mut picker) = picker::start(engine, environment)? else {
            complain(&notes::no_chats(engine));
            return Ok(NOTHING);
        };
        loop {
            let (word, marks) = match picker.run()? {
                Picked::NoChats => {
                    complain(&notes::no_chats(engine));
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
            let found =
                Landing { mark: &|text| marks.spans(text, show::MOST_MARKS), place: &place };
            let Some(paged) = Paged::that_waits(out, environment) else {
                // The picker would hide the answer, and its end lets Ctrl-C end the program.
                drop(picker);
                return show_picked(&word, found, engine, Terminal { environment, out });
            };
            let (columns, lines) = picker.size();
            let mut paged = PagedAtFound::new(paged, &found, columns, lines);
            let terminal = Terminal { environment, out: &mut TerminalWriter::new(&mut paged) };
            let code = show_picked(&word, found, engine, terminal);
            let has_waited = paged.finish()?;
            let code = code?;
            if !has_waited {
                return Ok(code);
            }
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
