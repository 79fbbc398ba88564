//! What the arguments of a command say of it, and what it runs with.

use std::{io::Write, sync::Arc};

use super::clients::ParseServe;
use super::error::Result;
use super::settings::engine_config::{ConfigError, PlaceArgs};
use super::settings::environment::Environment;
use verbatim_engine::{Config, Engine};

pub(super) trait CommandArgs {
    fn facts(&self) -> Facts;

    /// Takes the model of vectors from a flag; `None` stands for that of the settings.
    fn model(&self) -> Option<&str> {
        None
    }

    /// Takes from the settings what the flags leave open, and sets up the engine for the command.
    fn configure(&mut self, _config: &mut Config, _environment: &Environment) {}

    /// Runs the command; returns the exit code.
    fn run(&self, invocation: Invocation<'_>) -> Result<u8>;
}

/// What the program needs to know of a command before it runs. A command that reads chats states all of it, so that
/// none is forgotten; the constants are for the others.
pub(super) struct Facts {
    pub(super) reads: Reads,
    /// Whether the command may write to the databases of the home folder.
    pub(super) writes: bool,
    /// Whether the command reads the database that `--db` names, or passes it on.
    pub(super) takes_db: bool,
    /// Whether the command may compute vectors, of messages or of a question.
    pub(super) makes_vectors: bool,
    /// Whether the command prints from mapped files and does not try again after a fault.
    pub(super) may_be_torn: bool,
    /// The text of the line that the user sees while the command has no output yet. Without an index, some
    /// commands take seconds.
    pub(super) waits_for: Option<&'static str>,
    pub(super) form: OutputForm,
}

impl Facts {
    /// The facts of a command that uses no chats.
    pub(super) const WITHOUT_CHATS: Facts = Facts {
        reads: Reads::Nothing,
        writes: false,
        takes_db: false,
        makes_vectors: false,
        may_be_torn: false,
        waits_for: None,
        form: OutputForm::AsItIs,
    };

    /// The facts of a command that imports or indexes chats.
    pub(super) const INDEXES: Facts =
        Facts { writes: true, takes_db: true, makes_vectors: true, ..Facts::WITHOUT_CHATS };
}

/// What a command reads before it does anything else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    Nothing,
    /// The home. It must not be made if the user named it by mistake.
    Home,
    /// Every source, the transcripts of coding agents included.
    EverySource,
    /// The same, by the index of the transcripts if it takes only seconds to make.
    EverySourceExactly,
}

/// How the output of a command is shown on a terminal.
#[derive(Clone, Copy)]
pub(super) enum OutputForm {
    AsItIs,
    /// Sentences for a person; the value is the indentation of wrapped lines.
    Sentences(usize),
    /// An answer for a person that may be so long that it needs a pager.
    Pages,
}

pub(super) struct Invocation<'a> {
    pub(super) engine: &'a Arc<Engine>,
    pub(super) places: &'a PlaceArgs,
    /// Why the model of vectors is unknown, if it is and the command does without it.
    pub(super) no_provider: Option<ConfigError>,
    pub(super) parse_serve: ParseServe,
    pub(super) terminal: Terminal<'a>,
}

/// Where a command writes its output, and what it knows of its surroundings.
pub(super) struct Terminal<'a> {
    pub(super) environment: &'a Environment,
    pub(super) out: &'a mut dyn Write,
}
